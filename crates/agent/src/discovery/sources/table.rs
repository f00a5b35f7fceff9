//! Groups that somebody wrote down in a file.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use evenhand_documents::{Document, DocumentError, Format, Source as Text, Table};
use evenhand_enforcers::cgroups::{Hierarchies, parent};

use crate::discovery::lines::{Field, lines};
use crate::discovery::paths::{children, is_path, last};
use crate::discovery::roll::{Found, Roll, bytes, file, whole_bytes};
use crate::discovery::watched::Watched;
use crate::discovery::{Guest, GuestError, Registration, Source};

pub(crate) const SOURCE: Registration = Registration {
    name: "table",
    about: "groups that a file names with their owners and sizes; it is read again when it changes",
    build,
};

/// From so many rows on within one folder, it is listed: to look for each group costs several times as much.
const MANY: usize = 8;

struct Listing {
    hierarchies: Hierarchies,
    /// In order of parents, then of names.
    rows: Watched<Vec<(String, Found)>>,
    roll: Roll,
}

fn build(table: &Table<'_>, hierarchies: &Hierarchies) -> Result<Box<dyn Source>, DocumentError> {
    let roll = Roll::read(table, &["file"])?;
    let path = file(&table.required("file", "the name of a file with a group and its owner on each line")?)?;
    let rows = Watched::open(path, read)?;
    Ok(Box::new(Listing { hierarchies: hierarchies.clone(), rows, roll }))
}

fn read(path: &Path) -> Result<Vec<(String, Found)>, DocumentError> {
    let text = Text::read(path)?;
    let mut rows = match Format::of_path(path) {
        Some(format) => tables(&Document::of(text, Some(format))?),
        None => rows(&text),
    }?;
    rows.sort_by(|(a, _), (b, _)| parent(a).cmp(parent(b)).then_with(|| a.cmp(b)));
    Ok(rows)
}

const WRONG_PATH: &str = "expected the path of a group below the root, such as machine.slice/a.scope";

/// Lines `path owner [name] [processors] [memory]`.
fn rows(text: &Text) -> Result<Vec<(String, Found)>, DocumentError> {
    let mut first = HashMap::new();
    let mut rows = Vec::new();
    for (number, fields) in lines(text.text()).enumerate() {
        let given = |at: usize| fields.get(at).filter(|f: &&Field<'_>| !f.text.is_empty());
        let [path, ..] = fields[..] else { continue };
        if !is_path(path.text) {
            return Err(path.error(text, format!("found {:?}, {WRONG_PATH}", path.text)));
        }
        if let Some(before) = first.insert(path.text, number) {
            let problem =
                format!("{:?} occurs a second time (the first is row {}), expected once", path.text, before + 1);
            return Err(path.error(text, problem));
        }
        if let Some(more) = fields.get(5) {
            return Err(more.error(text, "found a sixth field, expected: path owner [name] [processors] [memory]"));
        }
        let Some(owner) = given(1) else {
            return Err(path.error(text, "found no owner, expected: path owner [name] [processors] [memory]"));
        };
        let memory = given(4)
            .map(|field| whole_bytes(field.positive(text, "memory")?).map_err(|problem| field.error(text, problem)));
        let found = Found {
            name: given(2).map_or_else(|| last(path.text), |field| field.text).to_owned(),
            owner: Some(owner.text.to_owned()),
            processors: given(3).map(|field| field.positive(text, "processors")).transpose()?,
            memory_bytes: memory.transpose()?,
            ..Found::default()
        };
        rows.push((path.text.to_owned(), found));
    }
    Ok(rows)
}

/// Tables `[[guest]]`.
fn tables(document: &Document) -> Result<Vec<(String, Found)>, DocumentError> {
    let root = document.root()?;
    root.deny_unknown(&["guest"])?;
    let mut first = HashMap::new();
    let mut rows = Vec::new();
    let Some(guests) = root.get("guest") else { return Ok(rows) };
    for item in guests.list()? {
        let table = item.table()?.with_label("the guest");
        table.deny_unknown(&["path", "owner", "name", "processors", "memory", "devices"])?;
        let node = table.required("path", "path = \"…\"")?;
        let path = node.text()?;
        if !is_path(path) {
            return Err(node.error(format!("found {path:?}, {WRONG_PATH}")));
        }
        if let Some(before) = first.insert(path, node.clone()) {
            let problem = format!("found {path:?} a second time, expected once");
            return Err(node.error_against(problem, &before, "first here"));
        }
        let name = table.get("name").map(|node| node.text()).transpose()?;
        let devices = match table.get("devices") {
            Some(node) => node.list()?.map(|d| d.text().map(str::to_owned)).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        let found = Found {
            name: name.unwrap_or_else(|| last(path)).to_owned(),
            owner: Some(crate::discovery::owners::user(&table.required("owner", "owner = \"…\"")?)?),
            devices,
            processors: table.get("processors").map(|node| node.positive()).transpose()?.map(|q| q.to_f64()),
            memory_bytes: table.get("memory").map(|node| bytes(&node)).transpose()?,
        };
        rows.push((path.to_owned(), found));
    }
    Ok(rows)
}

impl Listing {
    /// The groups of the rows that are here, with their rows' numbers.
    fn here(&self) -> Result<Vec<(usize, u64)>, GuestError> {
        let Some(root) = self.hierarchies.main() else { return Ok(Vec::new()) };
        let rows = self.rows.value();
        let mut found = Vec::with_capacity(rows.len());
        let (mut path, mut begin) = (root.to_path_buf(), 0);
        while begin < rows.len() {
            // Rows are in order of parents.
            let within = parent(&rows[begin].0);
            let end = begin + rows[begin..].iter().take_while(|row| parent(&row.0) == within).count();
            if end - begin >= MANY {
                let mut listed = children(&self.hierarchies, within)?.into_iter().peekable();
                for (number, (group, _)) in (begin..).zip(&rows[begin..end]) {
                    while listed.next_if(|l| l.path < *group).is_some() {}
                    found.extend(listed.next_if(|l| l.path == *group).map(|l| (number, l.identity)));
                }
            } else {
                for (number, (group, _)) in (begin..).zip(&rows[begin..end]) {
                    path.push(group);
                    // A row whose group is not there waits for it.
                    let folder = fs::metadata(&path).ok().filter(fs::Metadata::is_dir);
                    found.extend(folder.map(|folder| (number, folder.ino())));
                    path.clear();
                    path.push(root);
                }
            }
            begin = end;
        }
        Ok(found)
    }
}

impl Source for Listing {
    fn look(&mut self) -> Result<Vec<Arc<Guest>>, GuestError> {
        self.roll.begin();
        if self.rows.refresh() {
            self.roll.clear();
        }
        let here = self.here()?;
        let rows = self.rows.value();
        for (group, found, identity) in here.into_iter().map(|(number, id)| (&rows[number].0, &rows[number].1, id)) {
            if !self.roll.has(group, identity) {
                self.roll.keep(group.clone(), identity, Some(found.clone()));
            }
        }
        Ok(self.roll.end())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.rows.problem().map(str::to_owned).into_iter().collect();
        self.roll.remarks(&mut remarks);
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(text: &str) -> String {
        rows(&Text::new("g", text)).err().unwrap().to_string().lines().next().unwrap().to_owned()
    }

    #[test]
    fn rows_say_path_owner_name_and_sizes() {
        let text = Text::new("g", "# who\na.slice/b.scope alice\nx y/z, bob, , 1.5, 4Gi\n");
        let rows = rows(&text).unwrap();
        let short = |(path, found): &(String, Found)| {
            format!("{path} {:?} {} {:?} {:?}", found.owner, found.name, found.processors, found.memory_bytes)
        };
        let rows: Vec<String> = rows.iter().map(short).collect();
        assert_eq!(
            rows,
            ["a.slice/b.scope Some(\"alice\") b.scope None None", "x y/z Some(\"bob\") z Some(1.5) Some(4294967296)"]
        );
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        assert!(said("a b\n  /a c").starts_with("g:2:3: found \"/a\", expected the path of a group"));
        assert!(said("a").starts_with("g:1:1: found no owner"));
        assert!(said("a,").starts_with("g:1:1: found no owner"));
        assert!(said("a b c x").starts_with("g:1:7: processors: found \"x\""));
        assert!(said("a b c 1 0").starts_with("g:1:9: memory: found \"0\", expected a number greater than 0"));
        assert!(said("a b c 1 1e30").starts_with("g:1:9: found 1"));
        assert!(said("a b c 1 1 1").starts_with("g:1:11: found a sixth field"));
        assert!(said("a b\nc d\na e").starts_with("g:3:1: \"a\" occurs a second time (the first is row 1)"));
    }

    proptest! {
        #[test]
        fn any_file_is_read_or_refused(text in "([ab/., \n#\"=\\[\\]1i]|owner|guest|path|\\.\\.|\u{e9}){0,30}") {
            for (path, found) in rows(&Text::new("g", &*text)).unwrap_or_default() {
                prop_assert!(is_path(&path) && found.owner.is_some_and(|owner| !owner.is_empty()));
            }
            if let Ok(document) = Document::parse("g.toml", &text, Some(Format::Toml)) {
                let _ = tables(&document);
            }
        }
    }
}
