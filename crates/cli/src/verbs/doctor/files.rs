//! Configurations, secrets and state: whether they are valid, whose they are, and how old.

use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use evenhand_agent::{Configuration, check_trusted};
use evenhand_model::counted;
use evenhand_policies::Registry;

use super::Finding;
use crate::verbs::agent;
use crate::verbs::config::service_options;

/// The age from which a secret is worth replacing.
const OLD_SECRET: Duration = Duration::from_secs(365 * 86_400);

/// Reads the agent's configuration, if there is one, and adds what is wrong with it and with its secrets.
pub(super) fn read_configuration(root: &Path, findings: &mut Vec<Finding>) -> Option<Configuration> {
    let path = below(root, Path::new("/etc/evenhand/agent.toml"));
    let name = path.display().to_string();
    if fs::symlink_metadata(&path).is_err() {
        findings.push(Finding::fine(name, "not there"));
        return None;
    }
    let (configuration, sources) = match agent::read_configuration(&path) {
        Ok(read) => read,
        Err(error) => {
            let error = error.to_string();
            let first = error.lines().next().unwrap_or_default().to_owned();
            findings.push(Finding::problem(&name, first, format!("evenhand config check {name}")));
            return None;
        }
    };
    findings.push(match sources.check_trusted().and_then(|()| configuration.check_trusted_files()) {
        Err(error) => Finding::problem(&name, error.to_string(), "agent run --apply refuses it until then"),
        Ok(()) if sources.files().len() == 1 => Finding::fine(&name, "valid"),
        Ok(()) => Finding::fine(&name, format!("valid, with {} drop-in files", sources.files().len() - 1)),
    });
    if let Some(peers) = &configuration.peers {
        let tls =
            peers.tls.iter().flat_map(|tls| [(&tls.key, true), (&tls.certificate, false), (&tls.authorities, false)]);
        for (file, is_secret) in std::iter::once((&peers.key, true)).chain(tls) {
            findings.push(key_file(&below(root, file), is_secret));
        }
    }
    Some(configuration)
}

/// Examines a file of keys or certificates.
fn key_file(path: &Path, is_secret: bool) -> Finding {
    let name = path.display().to_string();
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return Finding::problem(name, error.to_string(), "the agent does not start without it"),
    };
    if let Err(error) = check_trusted(path) {
        return Finding::problem(name, error.to_string(), "the agent does not use it until then");
    }
    let mode = metadata.permissions().mode() & 0o777;
    if is_secret && mode & 0o077 != 0 {
        return Finding::problem(&name, format!("others may read it (mode {mode:03o})"), format!("chmod 600 {name}"));
    }
    let age = metadata.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
    let days = age.map_or(0, |age| age.as_secs() / 86_400);
    let age_in_days = counted(days, "day old", "days old");
    match age {
        Some(age) if is_secret && age > OLD_SECRET => {
            Finding::note(name, age_in_days, "replace it, without an interruption: docs, Agent, Certificates")
        }
        _ => Finding::fine(name, age_in_days),
    }
}

/// Examines the options of services and who may change them, and who may read or change their state.
pub(super) fn options_and_rights(root: &Path, registry: &Registry) -> Vec<Finding> {
    let mut findings = Vec::new();
    for service in ["agent", "slurm", "serve"] {
        let path = below(root, Path::new(&format!("/etc/evenhand/{service}.env")));
        if fs::symlink_metadata(&path).is_ok() {
            let name = path.display().to_string();
            findings.push(match check_trusted(&path) {
                Ok(()) => match service_options::check(&path, registry) {
                    Ok(_) => Finding::fine(name, "valid, and only its owner may write it"),
                    Err(error) => {
                        let error = error.to_string();
                        let first = error.lines().next().unwrap_or_default().to_owned();
                        Finding::problem(&name, first, format!("evenhand config check {name}"))
                    }
                },
                Err(error) => {
                    Finding::problem(name, error.to_string(), "its options run with the rights of the service")
                }
            });
        }
    }
    // The mode that no other user may have, and why.
    let folders = [
        ("/var/lib/evenhand", 0o077, "others may enter it", "chmod 700"),
        ("/var/lib/evenhand-slurm", 0o022, "others may write it", "chmod go-w"),
    ];
    for (folder, forbidden, found, remedy) in folders {
        let path = below(root, Path::new(folder));
        let Ok(metadata) = fs::metadata(&path) else { continue };
        findings.push(state_folder(&path, &metadata, forbidden, found, remedy));
    }
    findings
}

fn state_folder(path: &Path, metadata: &Metadata, forbidden: u32, found: &str, remedy: &str) -> Finding {
    let name = path.display().to_string();
    match metadata.permissions().mode() & 0o777 {
        _ if !metadata.is_dir() => Finding::problem(name, "expected a folder", "move it away"),
        mode if mode & forbidden != 0 => {
            Finding::problem(&name, format!("{found} (mode {mode:03o})"), format!("{remedy} {name}"))
        }
        _ => Finding::fine(name, "state, closed to others"),
    }
}

/// Returns the path of a file of the installation below `root`.
fn below(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix("/").map_or_else(|_| path.to_owned(), |relative| root.join(relative))
}
