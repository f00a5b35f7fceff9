//! Devices that an earlier run divided and this one does not.

use std::collections::BTreeSet;

use crate::journal::{Entry, Journal, JournalError};

/// Under which name the device that was divided is among the saved settings of a group.
const DEVICE: &str = "htb/device";
/// How the names of all settings of that enforcer begin.
const OF_TRAFFIC: &str = "htb/";

/// Removes what an earlier run left on devices other than `divided`, and then their settings from the journal: a group whose
/// entry names another device is admitted to the present one. What cannot be removed stays in the journal, by which it is
/// tried again.
///
/// The configuration may name another device than before a crash, or none. The groups of that time may have ended since.
///
/// # Errors
/// Returns an error if the journal cannot be read or written.
pub(crate) fn clear_other_devices<E>(
    journal: &Journal,
    divided: Option<&str>,
    mut remove: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), JournalError> {
    let device = |entry: &Entry| entry.saved.0.get(DEVICE).filter(|device| Some(device.as_str()) != divided).cloned();
    let mut entries = journal.entries()?;
    let others: BTreeSet<String> = entries.iter().filter_map(device).collect();
    let cleared: BTreeSet<String> = others.into_iter().filter(|device| remove(device).is_ok()).collect();
    entries.retain(|entry| device(entry).is_some_and(|device| cleared.contains(&device)));
    for entry in &mut entries {
        entry.saved.0.retain(|name, _| !name.starts_with(OF_TRAFFIC));
    }
    journal.put(&entries)
}

#[cfg(test)]
mod tests {
    use evenhand_enforcers::cgroups::{Group, SavedState};

    use super::*;

    #[test]
    fn other_devices_are_cleared_once_and_their_settings_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&Journal::path_in(folder.path())).unwrap();
        let entry = |path: &str, device: Option<&str>| {
            let weight = Some(("cpu/weight".to_owned(), "100".to_owned()));
            let of_traffic = device.map(|device| (DEVICE.to_owned(), device.to_owned()));
            let saved = SavedState(weight.into_iter().chain(of_traffic).collect());
            Entry { group: Group { path: path.into(), ..Group::default() }, identity: 1, saved }
        };
        let before = [
            entry("a", Some("old")),
            entry("b", Some("new")),
            entry("c", None),
            entry("d", Some("old")),
            entry("e", Some("stuck")),
        ];
        journal.put(&before).unwrap();
        let mut asked = Vec::new();
        clear_other_devices(&journal, Some("new"), |device| {
            asked.push(device.to_owned());
            if device == "stuck" { Err(()) } else { Ok(()) }
        })
        .unwrap();
        assert_eq!(asked, ["old", "stuck"]);
        let [_, new, plain, _, stuck] = before;
        assert_eq!(journal.entries().unwrap(), [entry("a", None), new, plain, entry("d", None), stuck]);
    }
}
