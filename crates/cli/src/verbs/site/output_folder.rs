//! The folder of a site: what is in it before an import, and what an import may replace there.

use std::path::{Path, PathBuf};

use evenhand_model::files::is_same_file;
use evenhand_slurm::SIMULATED_SETTINGS;

use crate::failure::Failure;
use crate::output::console::Console;
use crate::verbs::study::site_folder::{ACCOUNTS, CLUSTER, POLICY_SETTINGS, SLURM_CONF};

/// The first line of each file of TOML that an import writes.
const IMPORTED: &str = "# Written by evenhand from what Slurm says of its site; the next import replaces this file.";

/// Returns the text of a file of an import: with a first line by which the next import knows it.
pub(crate) fn imported_text(text: &str) -> String {
    format!("{IMPORTED}\n{text}")
}

/// Checks that the files of a site replace none of their `inputs`, and that those with these `names` replace nothing that
/// evenhand did not write.
pub(crate) fn check(folder: &Path, names: &[&str], inputs: &[&Path]) -> Result<(), Failure> {
    for name in [CLUSTER, ACCOUNTS, POLICY_SETTINGS, SLURM_CONF] {
        let output = folder.join(name);
        if let Some(input) = inputs.iter().find(|input| is_same_file(input, &output)) {
            return Err(Failure::Input(format!(
                "{}: the output would replace the input {}; name another folder with --output",
                output.display(),
                input.display()
            )));
        }
        if names.contains(&name) && output.is_file() && !is_imported(&output) {
            return Err(Failure::Input(format!(
                "{}: found a file that evenhand did not write, which the output would replace; name another folder, or move the \
                 file",
                output.display()
            )));
        }
    }
    Ok(())
}

/// Returns whether an import wrote a file, by its first line.
fn is_imported(path: &Path) -> bool {
    let begins = |text: &[u8]| [IMPORTED, SIMULATED_SETTINGS].iter().any(|line| text.starts_with(line.as_bytes()));
    std::fs::read(path).is_ok_and(|text| begins(&text))
}

/// Renames the files of an earlier import that this one has not written, which a study would follow. Returns their old and
/// their new names.
///
/// A file that has not the first line of an import stays: it may be the site's own.
pub(super) fn move_old_files_aside(
    folder: &Path,
    written: &[PathBuf],
    console: &Console,
) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    let mut moved = Vec::new();
    for name in [ACCOUNTS, POLICY_SETTINGS, SLURM_CONF] {
        let old = folder.join(name);
        if written.contains(&old) || !old.is_file() {
            continue;
        }
        if !is_imported(&old) {
            let with = if name == SLURM_CONF { "with --scheduler slurm " } else { "" };
            console.note(&format!(
                "{}: no import wrote it, so it stays; a study {with}on this folder follows it.",
                old.display()
            ));
            continue;
        }
        let aside = name_aside(folder, name);
        std::fs::rename(&old, &aside).map_err(|error| {
            Failure::Environment(format!("cannot rename {} to {}: {error}", old.display(), aside.display()))
        })?;
        moved.push((old, aside));
    }
    Ok(moved)
}

/// Returns the name to which a file of an import is moved: the first of `.old`, `.old2` and so on that is free or has a file of
/// an import.
fn name_aside(folder: &Path, name: &str) -> PathBuf {
    let mut aside = folder.join(format!("{name}.old"));
    for number in 2u32.. {
        if !aside.exists() || is_imported(&aside) {
            break;
        }
        aside = folder.join(format!("{name}.old{number}"));
    }
    aside
}
