//! The folder that describes a site, in place of options.

use std::path::PathBuf;

use crate::arguments::StudyArgs;
use crate::failure::Failure;
use crate::output::console::Console;

/// The machines in the folder.
pub(crate) const CLUSTER: &str = "cluster.toml";

/// The users' accounts in the folder.
pub(crate) const ACCOUNTS: &str = "accounts.toml";

/// The settings of the site's own priority in the folder.
pub(crate) const POLICY_SETTINGS: &str = "policy-settings.toml";

/// The settings of the site's Slurm in the folder.
#[cfg(feature = "slurm")]
pub(crate) const SLURM_CONF: &str = "slurm.conf";

/// Returns the file of `--site` that describes the machines.
pub(super) fn cluster_file(args: &StudyArgs) -> Option<PathBuf> {
    args.site.as_ref().map(|site| site.join(CLUSTER))
}

/// Returns the arguments with the accounts and policy settings of the folder, where the user gave no others. Prints a note
/// if weights take the place of the accounts.
pub(super) fn with_site_folder(args: &StudyArgs, console: &Console) -> Result<StudyArgs, Failure> {
    let mut args = args.clone();
    let Some(site) = args.site.clone() else { return Ok(args) };
    let file = |name: &str| Some(site.join(name)).filter(|path| path.exists());
    if file(CLUSTER).is_none() {
        return Err(Failure::Input(format!(
            "--site: {} has no {CLUSTER}; expected a folder of site import or slurm study",
            site.display()
        )));
    }
    match (&args.accounts, &args.weights, file(ACCOUNTS)) {
        (None, None, accounts) => args.accounts = accounts,
        (None, Some(weights), Some(accounts)) => console.note(&format!(
            "The accounts of {} are left out: the weights of {} take their place. To keep the accounts, leave --weights \
             out, and give users their shares in a file of --accounts.",
            accounts.display(),
            weights.display()
        )),
        _ => {}
    }
    if let Some(path) = file(POLICY_SETTINGS) {
        args.policies.set_default_file(path);
    }
    Ok(args)
}
