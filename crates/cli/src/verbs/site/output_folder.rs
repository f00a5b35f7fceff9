//! The folder of a site: what is in it before an import, and what an import may replace there.

use std::path::{Path, PathBuf};

use evenhand_model::files::is_same_file;
use evenhand_slurm::SIMULATED_SETTINGS;

use super::{ACCOUNTS, CLUSTER, POLICY_SETTINGS};
use crate::failure::Failure;
use crate::output::console::Console;
use crate::verbs::study::SLURM_CONF;

/// Checks that the files of a site replace none of their `inputs`, and no `slurm.conf` that evenhand did not write.
pub(crate) fn check(folder: &Path, inputs: &[&Path], writes_conf: bool) -> Result<(), Failure> {
    for name in [CLUSTER, ACCOUNTS, POLICY_SETTINGS, SLURM_CONF] {
        let output = folder.join(name);
        if let Some(input) = inputs.iter().find(|input| is_same_file(input, &output)) {
            return Err(Failure::Input(format!(
                "{}: the output would replace the input {}; name another folder with --output",
                output.display(),
                input.display()
            )));
        }
    }
    let conf = folder.join(SLURM_CONF);
    if writes_conf && conf.is_file() && !is_imported(&conf) {
        return Err(Failure::Input(format!(
            "{}: found a file that evenhand did not write, which the output would replace; name another folder, or move the \
             file",
            conf.display()
        )));
    }
    Ok(())
}

/// Returns whether an import wrote a `slurm.conf`, by its first line.
fn is_imported(conf: &Path) -> bool {
    std::fs::read(conf).is_ok_and(|text| text.starts_with(SIMULATED_SETTINGS.as_bytes()))
}

/// Renames the files of an earlier import that this one has not written, which a study would follow. Returns their old and
/// their new names.
///
/// A `slurm.conf` that has not the first line of an import stays: it may be the site's own.
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
        if name == SLURM_CONF && !is_imported(&old) {
            console.note(&format!(
                "{}: no import wrote it, so it stays; a study with --scheduler slurm on this folder follows it.",
                old.display()
            ));
            continue;
        }
        let aside = folder.join(format!("{name}.old"));
        std::fs::rename(&old, &aside).map_err(|error| {
            Failure::Environment(format!("cannot rename {} to {}: {error}", old.display(), aside.display()))
        })?;
        moved.push((old, aside));
    }
    Ok(moved)
}
