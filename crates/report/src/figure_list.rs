//! The list of the figures in a folder, by which a later report removes those of an earlier one and no other file.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ReportError;
use crate::write_file::write_file;

/// The file of the list, in the folder of the figures.
const NAME: &str = "figures.json";

/// The names of the files of figures, without their folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct FigureList {
    figures: BTreeSet<String>,
}

impl FigureList {
    pub(crate) fn of(names: impl IntoIterator<Item = String>) -> FigureList {
        FigureList { figures: names.into_iter().collect() }
    }

    /// Reads the list of a folder. A list that is missing or damaged is empty, so that nothing is removed.
    pub(crate) fn read(folder: &Path) -> FigureList {
        let text = std::fs::read(folder.join(NAME)).unwrap_or_default();
        let mut list: FigureList = serde_json::from_slice(&text).unwrap_or_default();
        list.figures.retain(|name| is_figure(name));
        list
    }

    /// Writes the list, together with what `earlier` lists.
    pub(crate) fn write_with(&self, earlier: &FigureList, folder: &Path) -> Result<(), ReportError> {
        let path = folder.join(NAME);
        let all = FigureList { figures: self.figures.union(&earlier.figures).cloned().collect() };
        let text = serde_json::to_string_pretty(&all).map_err(io::Error::from);
        match text {
            Ok(text) => write_file(&path, &(text + "\n")),
            Err(source) => Err(ReportError::Write { path, source }),
        }
    }

    /// Removes the files of this list that are not in `later`, and writes the list of those that are.
    pub(crate) fn replace_by(&self, later: &FigureList, folder: &Path) -> Result<(), ReportError> {
        for name in self.figures.difference(&later.figures) {
            let path = folder.join(name);
            match std::fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(ReportError::Write { path, source });
                }
                _ => {}
            }
        }
        later.write_with(&FigureList::default(), folder)
    }
}

/// Returns whether a name is one that figures and their data have. An edited list removes nothing outside its folder.
fn is_figure(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.chars().all(allowed) && matches!(name.rsplit_once('.'), Some((_, "svg" | "csv")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_figures_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for name in ["a.svg", "b.svg", "mine.svg"] {
            std::fs::write(path.join(name), "").unwrap();
        }
        let list = |names: &[&str]| FigureList::of(names.iter().map(|name| (*name).to_string()));
        let (earlier, later) = (list(&["a.svg", "b.svg", "gone.csv"]), list(&["b.svg"]));
        later.write_with(&earlier, path).unwrap();
        assert_eq!(FigureList::read(path), earlier);
        FigureList::read(path).replace_by(&later, path).unwrap();
        let left = |name: &str| path.join(name).exists();
        assert_eq!([left("a.svg"), left("b.svg"), left("mine.svg")], [false, true, true]);
        assert_eq!(FigureList::read(path), later);
    }

    #[test]
    fn a_damaged_or_edited_list_removes_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for (text, read) in [
            ("", &[][..]),
            ("{\"figures\": 1}", &[]),
            ("{\"figures\": [\"../a.svg\", \"/etc/b.csv\", \"notes.txt\", \"c.svg\"]}", &["c.svg"]),
        ] {
            std::fs::write(folder.path().join(NAME), text).unwrap();
            let expected = FigureList::of(read.iter().map(|name| (*name).to_string()));
            assert_eq!(FigureList::read(folder.path()), expected, "{text}");
        }
    }
}
