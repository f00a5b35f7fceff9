//! An enforcer that needs no kernel and writes nothing.

use std::collections::HashMap;

use crate::cgroups::{Change, Enforcer, Group, GroupId, KernelError, PerResource, Resource, SavedState, Targets};

/// Reports targets as changes without writing them: weights on the scale of `cpu.weight` (100 is the default), memory in
/// bytes. It stands in for an enforcer where no kernel is; what one would write on this machine is reported by that one's own
/// dry run, such as [`CgroupEnforcer::dry_run`](crate::cgroups::CgroupEnforcer::dry_run).
#[derive(Debug, Default)]
pub struct DryRun {
    last: HashMap<GroupId, PerResource<Option<u64>>>,
}

impl Enforcer for DryRun {
    fn name(&self) -> &'static str {
        "dry-run"
    }

    fn resources(&self) -> &[Resource] {
        &Resource::ALL
    }

    fn admit(&mut self, id: GroupId, _: &Group) -> Result<SavedState, KernelError> {
        self.dismiss(id);
        Ok(SavedState::default())
    }

    fn apply(&mut self, group: GroupId, targets: &Targets, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        let last = self.last.entry(group).or_default();
        for (resource, target) in targets.iter() {
            let Some(target) = *target else { continue };
            let value = match resource {
                Resource::Memory => target as u64,
                _ => evenhand_heaviness::controller::cgroup_weight(target).into(),
            };
            if last[resource].replace(value) != Some(value) {
                changes.push(Change { group, resource, value });
            }
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
    fn each_change_is_reported_once() {
        let (mut dry, mut changes) = (DryRun::default(), Vec::new());
        let id = GroupId(3);
        dry.admit(id, &Group::default()).unwrap();
        let targets = Targets { cpu: Some(2.0), memory: Some(4096.0), ..Targets::default() };
        dry.apply(id, &targets, &mut changes).unwrap();
        dry.apply(id, &Targets { cpu: Some(2.001), ..targets }, &mut changes).unwrap();
        let reported: Vec<_> = changes.drain(..).map(|c| (c.resource, c.value)).collect();
        assert_eq!(reported, [(Resource::Cpu, 200), (Resource::Memory, 4096)]);
        dry.dismiss(id);
        dry.apply(id, &targets, &mut changes).unwrap();
        assert_eq!(changes.len(), 2);
    }
}
