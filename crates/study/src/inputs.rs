//! The small files a study reads: weights and pools.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use evenhand_model::{Quantity, Rational, Resource, Weights};
use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

/// A file that cannot be read or does not say what it should.
#[derive(Debug, Error)]
pub enum InputError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It says something else than expected.
    #[error("{}:{line}:{column}: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What was found, what was expected.
        problem: String,
    },
}

/// A file's text, for errors that point into it.
struct Text<'a> {
    path: &'a Path,
    text: String,
}

impl<'a> Text<'a> {
    fn read(path: &'a Path) -> Result<Text<'a>, InputError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Text { path, text }),
            Err(source) => Err(InputError::Read { path: path.to_path_buf(), source }),
        }
    }

    fn error(&self, at: usize, problem: impl Into<String>) -> InputError {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        InputError::Content {
            path: self.path.to_path_buf(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            problem: problem.into(),
        }
    }

    fn toml<T: for<'de> Deserialize<'de>>(&self) -> Result<T, InputError> {
        toml::from_str(&self.text).map_err(|e| {
            let at = e.span().map_or(0, |s: Range<usize>| s.start);
            self.error(at, e.message().trim_end())
        })
    }

    /// A quantity greater than zero.
    fn positive(&self, value: &Spanned<Number>, what: &str) -> Result<Quantity, InputError> {
        self.positive_text(&value.get_ref().0, value.span().start, what)
    }

    fn positive_text(&self, text: &str, at: usize, what: &str) -> Result<Quantity, InputError> {
        // Said here and not by the quantity, which allows 0.
        let expected = "a number greater than 0: an integer, a decimal, a fraction \"54/13\" or a size (18Gi, 250m)";
        let positive = Quantity::parse(text).ok().filter(|quantity| !quantity.is_zero());
        positive.ok_or_else(|| self.error(at, format!("{what}: found {text:?}, expected {expected}")))
    }
}

/// A number as written, so that decimals stay exact: `4`, `0.5`, `"54/13"`, `"18Gi"`.
struct Number(String);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Integer(i64),
            Float(f64),
            Text(String),
        }
        Ok(Number(match Written::deserialize(d)? {
            Written::Integer(i) => i.to_string(),
            // The shortest text that reads back as this f64: what was written, up to 15 digits.
            Written::Float(f) => format!("{f:?}"),
            Written::Text(t) => t,
        }))
    }
}

/// Reads a pool: `[pool]`, then a capacity a resource, in the workload's own units.
///
/// ```toml
/// [pool]
/// cpu = 4
/// mem = "18Gi"
/// ```
///
/// Resources the workload does not have are no error (a cluster has GPUs, a trace may not); they are
/// returned as the second value. Other tables are left to the simulator of machines.
///
/// # Errors
/// If the file cannot be read, has no `[pool]`, lacks a resource of the workload, or a capacity is
/// not a number greater than 0.
pub fn read_pool(path: &Path, resources: &[Resource]) -> Result<(Vec<Rational>, Vec<String>), InputError> {
    #[derive(Deserialize)]
    struct File {
        pool: Option<Spanned<BTreeMap<String, Spanned<Number>>>>,
    }
    let text = Text::read(path)?;
    let file: File = text.toml()?;
    let names = resources.iter().map(|r| r.name.as_str()).collect::<Vec<_>>().join(", ");
    let Some(pool) = file.pool else {
        return Err(text.error(0, format!("no [pool] table, expected one with a capacity for each of: {names}")));
    };
    let units =
        resources
            .iter()
            .map(|r| match pool.get_ref().get(&r.name) {
                Some(value) => Ok(text.positive(value, &format!("capacity of {}", r.name))?.exact().clone()),
                None => Err(text
                    .error(pool.span().start, format!("[pool] has no {}, expected one for each of: {names}", r.name))),
            })
            .collect::<Result<_, _>>()?;
    let unknown = pool.get_ref().keys().filter(|k| resources.iter().all(|r| r.name != **k)).cloned().collect();
    Ok((units, unknown))
}

/// Reads weights for `users`: TOML (`default = 1`, then `[weights]` with `user = weight`), or, if
/// the file's name ends in `.csv`, lines of `user,weight`.
///
/// Users the file does not name have the default weight (1). The second value lists users it names
/// that the workload does not have.
///
/// # Errors
/// If the file cannot be read, or a weight is not a number greater than 0.
pub fn read_weights(path: &Path, users: &[String]) -> Result<(Weights, Vec<String>), InputError> {
    let text = Text::read(path)?;
    let is_csv = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
    let (default, named) = if is_csv { csv_weights(&text)? } else { toml_weights(&text)? };
    let weights = users.iter().map(|u| named.get(u).unwrap_or(&default).clone());
    // Zero was refused where it stands, with its line.
    let weights = Weights::new(weights).map_err(|e| text.error(0, e.to_string()))?;
    let unknown = named.into_keys().filter(|n| !users.contains(n)).collect();
    Ok((weights, unknown))
}

type Named = (Quantity, BTreeMap<String, Quantity>);

fn toml_weights(text: &Text<'_>) -> Result<Named, InputError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        default: Option<Spanned<Number>>,
        #[serde(default)]
        weights: BTreeMap<String, Spanned<Number>>,
    }
    let file: File = text.toml()?;
    let default = match &file.default {
        Some(value) => text.positive(value, "default weight")?,
        None => one(),
    };
    let named = file
        .weights
        .iter()
        .map(|(user, value)| Ok((user.clone(), text.positive(value, &format!("weight of {user}"))?)))
        .collect::<Result<_, InputError>>()?;
    Ok((default, named))
}

fn csv_weights(text: &Text<'_>) -> Result<Named, InputError> {
    let mut named = BTreeMap::new();
    let mut at = 0;
    for line in text.text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') || (start == 0 && line == "user,weight") {
            continue;
        }
        // The weight is what follows the last comma: user names may hold commas.
        let Some((user, weight)) = line.rsplit_once(',') else {
            return Err(text.error(start, format!("found {line:?}, expected user,weight")));
        };
        let quantity = text.positive_text(weight, start + user.len() + 1, &format!("weight of {user}"))?;
        if named.insert(user.to_string(), quantity).is_some() {
            return Err(text.error(start, format!("user {user:?} has a weight already, expected one line a user")));
        }
    }
    Ok((one(), named))
}

fn one() -> Quantity {
    Quantity::from(Rational::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::to_f64;

    fn write(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        (dir, path)
    }

    fn weights_of(name: &str, text: &str) -> Result<(Vec<f64>, Vec<String>), String> {
        let (_dir, path) = write(name, text);
        let users = ["ann", "bob"].map(String::from);
        let (w, unknown) =
            read_weights(&path, &users).map_err(|e| e.to_string().split_once(name).unwrap().1.to_string())?;
        Ok(((0..2).map(|u| to_f64(w.exact(u))).collect(), unknown))
    }

    #[test]
    fn weights_come_from_toml_or_csv() {
        let both = Ok((vec![2.0, 0.5], vec!["zoe".to_string()]));
        assert_eq!(weights_of("w.toml", "default = \"1/2\"\n[weights]\nann = 2\nzoe = 3\n"), both);
        assert_eq!(weights_of("w.csv", "user,weight\n# a comment\nann,2\nbob,0.5\nzoe,3\n"), both);
        assert_eq!(weights_of("w.toml", ""), Ok((vec![1.0, 1.0], vec![])));
    }

    #[test]
    fn bad_weights_say_where() {
        let error = |name, text| weights_of(name, text).unwrap_err();
        assert!(error("w.toml", "[weights]\nann = 0\n").starts_with(":2:7: weight of ann: found \"0\""));
        assert!(error("w.toml", "[weights]\nann = nan\n").starts_with(":2:7: weight of ann: found \"NaN\""));
        assert!(error("w.toml", "[weights]\nann = -1\n").starts_with(":2:7: weight of ann: found \"-1\""));
        assert!(error("w.toml", "[weight]\nann = 1\n").starts_with(":1:2: unknown field"));
        assert!(error("w.toml", "[weights\n").starts_with(":1:9: "));
        assert!(error("w.csv", "ann,2\nbob,x\n").starts_with(":2:5: weight of bob: found \"x\""));
        assert!(error("w.csv", "ann,2\nbob\n").starts_with(":2:1: found \"bob\""));
        assert!(error("w.csv", "ann,2\nann,3\n").starts_with(":2:1: user \"ann\" has a weight already"));
    }

    #[test]
    fn pools_hold_each_resource_of_the_workload() {
        let resources = [Resource::new("cpu", ""), Resource::new("mem", "")];
        let pool = |text: &str| {
            let (_dir, path) = write("c.toml", text);
            read_pool(&path, &resources).map_err(|e| e.to_string().split_once("c.toml").unwrap().1.to_string())
        };
        let (units, unknown) = pool("[pool]\ncpu = 0.1\nmem = \"1Ki\"\ngpu = 4\n[[machines]]\ncount = 3\n").unwrap();
        assert_eq!((to_f64(&units[0]), to_f64(&units[1]), unknown), (0.1, 1024.0, vec!["gpu".to_string()]));
        assert_eq!(units[0].to_string(), "1/10");
        assert!(pool("cpu = 1").unwrap_err().starts_with(":1:1: no [pool] table"));
        assert!(pool("[pool]\ncpu = 1").unwrap_err().contains("[pool] has no mem"));
        assert!(pool("[pool]\ncpu = 1\nmem = 0").unwrap_err().starts_with(":3:7: capacity of mem: found \"0\""));
        assert!(pool("[pool]\ncpu = []\nmem = 0").unwrap_err().starts_with(":2:7: "));
    }
}
