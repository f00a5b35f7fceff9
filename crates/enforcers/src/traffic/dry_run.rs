//! A dry run of the enforcer: what it would send, without a class, a rule or a socket.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::cgroups::{Change, Enforcer, Group, GroupId, Hierarchies, KernelError, Resource, SavedState, Targets};
use crate::traffic::enforcer::cgroup_of;
use crate::traffic::{Settings, TrafficError, quantum};

/// Reports what a [`TrafficEnforcer`](crate::traffic::TrafficEnforcer) would set, and changes nothing.
#[derive(Debug)]
pub struct TrafficDryRun {
    link: u64,
    unified: Option<PathBuf>,
    /// The last quantum of each admitted group; `None`: none yet.
    last: HashMap<GroupId, Option<u32>>,
}

impl TrafficDryRun {
    /// Creates a dry run for this link.
    ///
    /// # Errors
    /// Returns an error if the speed of the link is unknown, or too low or too high to be divided.
    pub fn open(settings: &Settings, hierarchies: &Hierarchies) -> Result<TrafficDryRun, TrafficError> {
        Ok(TrafficDryRun { link: settings.link_speed()?, unified: hierarchies.unified.clone(), last: HashMap::new() })
    }

    /// Returns the speed of the link that would be divided, in bytes per second.
    pub fn link(&self) -> u64 {
        self.link
    }
}

impl Enforcer for TrafficDryRun {
    fn name(&self) -> &'static str {
        "htb"
    }

    fn resources(&self) -> &[Resource] {
        &[Resource::Network]
    }

    fn admit(&mut self, id: GroupId, group: &Group) -> Result<SavedState, KernelError> {
        self.dismiss(id);
        cgroup_of(group, self.unified.as_deref())?;
        self.last.insert(id, None);
        Ok(SavedState::default())
    }

    fn apply(&mut self, id: GroupId, targets: &Targets, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        let last = self.last.get_mut(&id).ok_or(KernelError::NotAdmitted(id))?;
        let Some(value) = targets.network.map(quantum) else { return Ok(()) };
        if last.replace(value) != Some(value) {
            changes.push(Change { group: id, resource: Resource::Network, value: value.into() });
        }
        Ok(())
    }

    fn dismiss(&mut self, id: GroupId) {
        self.last.remove(&id);
    }

    fn restore(&mut self, _: &Group, _: &SavedState) -> Result<(), KernelError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quanta_are_reported_for_groups_whose_packets_have_a_class() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        let hierarchies = Hierarchies { unified: Some(folder.path().to_owned()), ..Hierarchies::default() };
        let settings = Settings { device: "eth0".into(), link: Some(125_000_000), force: false };
        let mut dry = TrafficDryRun::open(&settings, &hierarchies).unwrap();
        assert_eq!(dry.link(), 125_000_000);
        let group = |path: &str, devices: &[&str]| Group {
            path: path.into(),
            devices: devices.iter().map(|device| (*device).to_owned()).collect(),
            ..Group::default()
        };
        dry.admit(GroupId(0), &group("a", &[])).unwrap();
        dry.admit(GroupId(1), &group("b", &["vnet0"])).unwrap();
        assert!(matches!(dry.admit(GroupId(2), &group("b", &[])), Err(KernelError::Gone(_))));
        assert!(matches!(dry.admit(GroupId(2), &group("../a", &[])), Err(KernelError::InvalidPath(_))));
        let mut changes = Vec::new();
        for id in [0, 0, 1] {
            dry.apply(GroupId(id), &Targets::equal_weights(2.0), &mut changes).unwrap();
        }
        let found: Vec<_> = changes.iter().map(|change| (change.group.0, change.resource, change.value)).collect();
        let value = u64::from(quantum(2.0));
        assert_eq!(found, [(0, Resource::Network, value), (1, Resource::Network, value)]);
        assert!(matches!(dry.apply(GroupId(2), &Targets::default(), &mut changes), Err(KernelError::NotAdmitted(_))));
    }
}
