//! The folder that describes a site, in place of options.

use std::path::PathBuf;

use crate::arguments::StudyArgs;
use crate::failure::Failure;

/// Returns the file of `--site` that describes the machines.
pub(super) fn cluster_file(args: &StudyArgs) -> Option<PathBuf> {
    args.site.as_ref().map(|site| site.join("cluster.toml"))
}

/// Returns the arguments with the accounts and policy settings of the folder, where the user gave no others.
pub(super) fn with_site_folder(args: &StudyArgs) -> Result<StudyArgs, Failure> {
    let mut args = args.clone();
    let Some(site) = args.site.clone() else { return Ok(args) };
    let file = |name: &str| Some(site.join(name)).filter(|path| path.exists());
    if file("cluster.toml").is_none() {
        return Err(Failure::Input(format!(
            "--site: {} has no cluster.toml; expected a folder of site import or slurm study",
            site.display()
        )));
    }
    if args.accounts.is_none() && args.weights.is_none() {
        args.accounts = file("accounts.toml");
    }
    if let Some(path) = file("policy-settings.toml") {
        args.policies.set_default_file(path);
    }
    Ok(args)
}
