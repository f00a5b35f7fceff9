//! The small files a study reads: weights and pools.

use std::collections::BTreeMap;
use std::path::Path;

use evenhand_documents::{Document, DocumentError, Format, Source, positive};
use evenhand_model::{Quantity, Rational, Resource, Weights};

use crate::cluster_file::quantity;

/// Reads a pool: `[pool]`, then a capacity a resource, in the workload's own units or as a size in bytes.
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
/// Returns an error if the file cannot be read, has no `[pool]`, lacks a resource of the workload, or a capacity is
/// not a number greater than 0.
pub fn read_pool(path: &Path, resources: &[Resource]) -> Result<(Vec<Rational>, Vec<String>), DocumentError> {
    // With any extension: a capacity that is not a number names a file with a [pool].
    let document = Document::read_toml(path)?;
    let names = resources.iter().map(|r| r.name.as_str()).collect::<Vec<_>>().join(", ");
    let expected = match names.as_str() {
        "" => "one with a capacity for each resource of the workload".to_string(),
        names => format!("one with a capacity for each of: {names}"),
    };
    let root = document.root()?;
    let Some(pool) = root.get("pool") else {
        let problem = match root.get("machines") {
            Some(_) => {
                format!("[[machines]] without a [pool] table, expected {expected}; study alone simulates machines")
            }
            None => format!("no [pool] table, expected {expected}; or, for study, [[machines]]"),
        };
        return Err(document.source().error(0..0, problem));
    };
    let pool = pool.with_label("[pool]").table()?;
    let units = resources
        .iter()
        .map(|r| {
            let capacity = pool.required(&r.name, &expected)?.with_label(format!("capacity of {}", r.name));
            let quantity = quantity(&capacity)?;
            // With the error of other numbers.
            if quantity.exact.is_zero() {
                capacity.positive()?;
            }
            Ok(quantity.in_unit(&r.unit))
        })
        .collect::<Result<_, DocumentError>>()?;
    let names = pool.entries().map(|(key, _)| key.name());
    let unknown = names.filter(|k| resources.iter().all(|r| r.name != *k)).map(String::from).collect();
    Ok((units, unknown))
}

/// Reads weights for `users`: TOML (`default = 1`, then `[weights]` with `user = weight`), or, if
/// the file's name ends in `.csv`, lines of `user,weight`.
///
/// Users the file does not name have the default weight (1). The second value lists users it names
/// that the workload does not have.
///
/// # Errors
/// Returns an error if the file cannot be read or has no weight, or if a weight is not a number greater than 0.
pub fn read_weights(path: &Path, users: &[String]) -> Result<(Weights, Vec<String>), DocumentError> {
    let source = Source::read(path)?;
    let is_csv = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
    let (default, named) = if is_csv {
        csv_weights(&source)?
    } else {
        document_weights(&Document::of(source.clone(), Format::of_path(path))?)?
    };
    let Some(default) = default.or_else(|| (!named.is_empty()).then(one)) else {
        let expected = if is_csv { "lines user,weight" } else { "[weights] with lines user = number" };
        let problem =
            format!("found no weight, expected {expected}; without a file of weights every user's weight is 1");
        return Err(source.error(0..0, problem));
    };
    let weights = users.iter().map(|u| named.get(u).unwrap_or(&default).clone());
    // Zero was refused where it stands, with its line.
    let weights = Weights::new(weights).map_err(|e| source.error(0..0, e.to_string()))?;
    let unknown = named.into_keys().filter(|n| !users.contains(n)).collect();
    Ok((weights, unknown))
}

/// The weight of users who are not named, if the file has one, and the weights of those who are.
type Named = (Option<Quantity>, BTreeMap<String, Quantity>);

fn document_weights(document: &Document) -> Result<Named, DocumentError> {
    let root = document.root()?;
    root.deny_unknown(&["default", "weights"])?;
    let default = match root.get("default") {
        Some(value) => Some(value.with_label("default weight").positive()?),
        None => None,
    };
    let mut named = BTreeMap::new();
    if let Some(weights) = root.get("weights") {
        for (user, weight) in weights.table()?.entries() {
            let weight = weight.with_label(format!("weight of {}", user.name()));
            named.insert(user.name().to_string(), weight.positive()?);
        }
    }
    Ok((default, named))
}

fn csv_weights(source: &Source) -> Result<Named, DocumentError> {
    let mut named = BTreeMap::new();
    let text = source.text();
    let rows = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.len() - rows.len();
    let mut at = first;
    for line in rows.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let line = line.trim_end();
        let is_header = || line.split(',').map(str::trim).map(str::to_lowercase).eq(["user", "weight"]);
        if line.is_empty() || line.starts_with('#') || (start == first && is_header()) {
            continue;
        }
        let whole = start..start + line.len();
        // The weight is what follows the last comma: user names may hold commas.
        let Some((user, weight)) = line.rsplit_once(',') else {
            return Err(source.error(whole, format!("found {line:?}, expected user,weight")));
        };
        let quantity = positive(weight).map_err(|problem| {
            source.error(whole.end - weight.len()..whole.end, format!("weight of {user}: {problem}"))
        })?;
        let Some(user) = unquoted(user).filter(|user| !user.is_empty()) else {
            let problem =
                format!("found {line:?}, expected user,weight, where a name in quotation marks ends with one");
            return Err(source.error(whole, problem));
        };
        if named.insert(user.clone(), quantity).is_some() {
            return Err(source.error(whole, format!("user {user:?} has a weight already, expected one line a user")));
        }
    }
    Ok((None, named))
}

/// Returns a field of a CSV file without its quotation marks (RFC 4180); `None` if they are not closed.
fn unquoted(field: &str) -> Option<String> {
    let Some(rest) = field.strip_prefix('"') else { return Some(field.to_string()) };
    let inner = rest.strip_suffix('"')?;
    let name = inner.replace("\"\"", "\u{0}");
    (!name.contains('"')).then(|| name.replace('\u{0}', "\""))
}

fn one() -> Quantity {
    Quantity::from(Rational::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::to_f64;
    use std::path::PathBuf;

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
        // As spreadsheets write it.
        assert_eq!(weights_of("w.csv", "\u{feff}User, Weight\r\n\"ann\",2\r\nbob,0.5\r\nzoe,3\r\n"), both);
        assert_eq!(unquoted("\"Smith, \"\"Al\"\"\"").as_deref(), Some("Smith, \"Al\""));
        assert_eq!(weights_of("w.toml", "default = 2\n"), Ok((vec![2.0, 2.0], vec![])));
    }

    #[test]
    fn bad_weights_say_where() {
        let error = |name, text| weights_of(name, text).unwrap_err();
        for (name, text) in [("w.toml", ""), ("w.toml", "[weights]\n"), ("w.csv", ""), ("w.csv", "user,weight\n")] {
            assert!(error(name, text).starts_with(":1:1: found no weight, expected"), "{name} {text}");
        }
        assert!(error("w.toml", "[weights]\nann = 0\n").starts_with(":2:7: weight of ann: found \"0\""));
        assert!(error("w.toml", "[weights]\nann = nan\n").starts_with(":2:7: weight of ann: found \"nan\""));
        assert!(error("w.toml", "[weights]\nann = -1\n").starts_with(":2:7: weight of ann: found \"-1\""));
        assert!(error("w.toml", "[weight]\nann = 1\n").starts_with(":1:2: unknown field \"weight\""));
        assert!(error("w.toml", "[weights\n").starts_with(":1:9: "));
        assert!(error("w.csv", "ann,2\nbob,x\n").starts_with(":2:5: weight of bob: found \"x\""));
        assert!(error("w.csv", "ann,2\nbob\n").starts_with(":2:1: found \"bob\""));
        assert!(error("w.csv", "\"ann,2\n").starts_with(":1:1: found \"\\\"ann,2\", expected user,weight"));
        assert!(error("w.csv", "ann,2\n,3\n").starts_with(":2:1: found \",3\""));
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
        let (_dir, path) = write("c.toml", "[pool]\nmem = \"1TiB\"\n");
        let (units, _) = read_pool(&path, &[Resource::new("mem", "KB")]).unwrap();
        assert_eq!(units[0], Rational::from(1u64 << 30));
        assert!(pool("cpu = 1").unwrap_err().starts_with(":1:1: no [pool] table"));
        assert!(
            pool("[[machines]]\ncpu = 1")
                .unwrap_err()
                .starts_with(":1:1: [[machines]] without a [pool] table, expected one")
        );
        assert!(pool("[pool]\ncpu = 1").unwrap_err().starts_with(":1:1: [pool]: found no mem"));
        assert!(pool("[pool]\ncpu = 1\nmem = 0").unwrap_err().starts_with(":3:7: capacity of mem: found \"0\""));
        assert!(pool("[pool]\ncpu = []\nmem = 0").unwrap_err().starts_with(":2:7: "));
    }
}
