//! Groups that a file lists.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use evenhand_documents::{Document, DocumentError, Format, Source, Table};
use evenhand_enforcers::cgroups::{Hierarchies, is_group_path, parent};

use crate::discovery::group_paths::{children, last};
use crate::discovery::split_fields::{Field, lines};
use crate::discovery::watched_file::WatchedFile;
use crate::discovery::workload_cache::{WorkloadCache, WorkloadDetails, bytes, watched, whole_bytes};

use crate::trusted_files::read_source;

use crate::discovery::{DiscoveryError, Registration, RunningWorkload, WorkloadSource};

pub(crate) const SOURCE: Registration = Registration {
    name: "table",
    about: "groups that a file lists with their owners and sizes; the file is read again when it changes",
    build,
};

/// From this number of rows in one group on, the group is listed, because looking up each row costs several times as
/// much.
const MANY: usize = 8;

struct GroupTable {
    hierarchies: Hierarchies,
    /// Sorted by parent, then by name.
    rows: WatchedFile<Vec<(String, WorkloadDetails)>>,
    cache: WorkloadCache,
}

fn build(table: &Table<'_>, hierarchies: &Hierarchies) -> Result<Box<dyn WorkloadSource>, DocumentError> {
    let cache = WorkloadCache::read(table, &["file"])?;
    let rows = watched(&table.required("file", "the name of a file with a group and its owner on each line")?, read)?;
    Ok(Box::new(GroupTable { hierarchies: hierarchies.clone(), rows, cache }))
}

fn read(path: &Path) -> Result<Vec<(String, WorkloadDetails)>, DocumentError> {
    let text = read_source(path)?;
    let mut rows = match Format::of_path(path) {
        Some(format) => tables(&Document::of(text, Some(format))?),
        None => rows(&text),
    }?;
    rows.sort_by(|(a, _), (b, _)| parent(a).cmp(parent(b)).then_with(|| a.cmp(b)));
    Ok(rows)
}

const EXPECTED_PATH: &str = "expected the path of a group below the root, such as machine.slice/a.scope";

/// Parses lines `path owner [name] [processors] [memory]`.
fn rows(text: &Source) -> Result<Vec<(String, WorkloadDetails)>, DocumentError> {
    let mut first = HashMap::new();
    let mut rows = Vec::new();
    for (number, fields) in lines(text.text()).enumerate() {
        let given = |at: usize| fields.get(at).filter(|f: &&Field<'_>| !f.text.is_empty());
        let [path, ..] = fields[..] else { continue };
        if !is_group_path(path.text) {
            return Err(path.error(text, format!("found {:?}, {EXPECTED_PATH}", path.text)));
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
        let details = WorkloadDetails {
            name: given(2).map_or_else(|| last(path.text), |field| field.text).to_owned(),
            owner: Some(owner.text.to_owned()),
            processors: given(3).map(|field| field.positive(text, "processors")).transpose()?,
            memory_bytes: memory.transpose()?,
            ..WorkloadDetails::default()
        };
        rows.push((path.text.to_owned(), details));
    }
    Ok(rows)
}

/// Reads the tables `[[guest]]`, which is the format's name for workloads.
fn tables(document: &Document) -> Result<Vec<(String, WorkloadDetails)>, DocumentError> {
    let root = document.root()?;
    root.deny_unknown(&["guest"])?;
    let mut first = HashMap::new();
    let mut rows = Vec::new();
    let Some(workloads) = root.get("guest") else { return Ok(rows) };
    for item in workloads.list()? {
        let table = item.table()?.with_label("the guest");
        table.deny_unknown(&["path", "owner", "name", "processors", "memory", "devices"])?;
        let node = table.required("path", "path = \"…\"")?;
        let path = node.text()?;
        if !is_group_path(path) {
            return Err(node.error(format!("found {path:?}, {EXPECTED_PATH}")));
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
        let details = WorkloadDetails {
            name: name.unwrap_or_else(|| last(path)).to_owned(),
            owner: Some(crate::discovery::owner_map::user_name(&table.required("owner", "owner = \"…\"")?)?),
            devices,
            processors: table.get("processors").map(|node| node.positive()).transpose()?.map(|q| q.to_f64()),
            memory_bytes: table.get("memory").map(|node| bytes(&node)).transpose()?,
        };
        rows.push((path.to_owned(), details));
    }
    Ok(rows)
}

impl GroupTable {
    /// Returns the indices of the rows whose groups exist, with the identities of the groups.
    fn existing(&self) -> Result<Vec<(usize, u64)>, DiscoveryError> {
        let Some(root) = self.hierarchies.main() else { return Ok(Vec::new()) };
        let rows = self.rows.value();
        let mut found = Vec::with_capacity(rows.len());
        let (mut path, mut begin) = (root.to_path_buf(), 0);
        while begin < rows.len() {
            // The rows are sorted by parent.
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
                    // A row whose group does not exist is skipped.
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

impl WorkloadSource for GroupTable {
    fn list(&mut self) -> Result<Vec<Arc<RunningWorkload>>, DiscoveryError> {
        self.cache.begin_scan();
        if self.rows.refresh() {
            self.cache.clear();
        }
        let existing = self.existing()?;
        let rows = self.rows.value();
        for (group, details, identity) in existing.into_iter().map(|(row, id)| (&rows[row].0, &rows[row].1, id)) {
            if !self.cache.reuse(group, identity) {
                self.cache.insert(group.clone(), identity, Some(details.clone()));
            }
        }
        Ok(self.cache.finish_scan())
    }

    fn files(&self) -> Vec<&Path> {
        let mut files = self.cache.files();
        files.push(self.rows.path());
        files
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.rows.problem().map(str::to_owned).into_iter().collect();
        self.cache.warnings(&mut warnings);
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(text: &str) -> String {
        rows(&Source::new("g", text)).err().unwrap().to_string().lines().next().unwrap().to_owned()
    }

    #[test]
    fn rows_have_a_path_an_owner_a_name_and_sizes() {
        let text = Source::new("g", "# who\na.slice/b.scope alice\nx y/z, bob, , 1.5, 4Gi\n");
        let rows = rows(&text).unwrap();
        let short = |(path, found): &(String, WorkloadDetails)| {
            format!("{path} {:?} {} {:?} {:?}", found.owner, found.name, found.processors, found.memory_bytes)
        };
        let rows: Vec<String> = rows.iter().map(short).collect();
        assert_eq!(
            rows,
            ["a.slice/b.scope Some(\"alice\") b.scope None None", "x y/z Some(\"bob\") z Some(1.5) Some(4294967296)"]
        );
    }

    #[test]
    fn errors_have_a_position() {
        assert!(message("a b\n  /a c").starts_with("g:2:3: found \"/a\", expected the path of a group"));
        assert!(message("a").starts_with("g:1:1: found no owner"));
        assert!(message("a,").starts_with("g:1:1: found no owner"));
        assert!(message("a b c x").starts_with("g:1:7: processors: found \"x\""));
        assert!(message("a b c 1 0").starts_with("g:1:9: memory: found \"0\", expected a number greater than 0"));
        assert!(message("a b c 1 1e30").starts_with("g:1:9: found 1"));
        assert!(message("a b c 1 1 1").starts_with("g:1:11: found a sixth field"));
        assert!(message("a b\nc d\na e").starts_with("g:3:1: \"a\" occurs a second time (the first is row 1)"));
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_read_or_rejected(text in "([ab/., \n#\"=\\[\\]1i]|owner|guest|path|\\.\\.|\u{e9}){0,30}") {
            for (path, found) in rows(&Source::new("g", &*text)).unwrap_or_default() {
                prop_assert!(is_group_path(&path) && found.owner.is_some_and(|owner| !owner.is_empty()));
            }
            if let Ok(document) = Document::parse("g.toml", &text, Some(Format::Toml)) {
                let _ = tables(&document);
            }
        }
    }
}
