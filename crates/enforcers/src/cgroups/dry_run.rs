//! An enforcer that writes nothing.

use std::collections::HashMap;

use crate::cgroups::{Before, Change, Control, Enforcer, Group, GroupId, KernelError, Levels};

/// Says what would be written, and does not: weights as `cpu.weight` has them (100 is neutral), memory in bytes.
#[derive(Debug, Default)]
pub struct DryRun {
    last: HashMap<(GroupId, Control), u64>,
}

impl Enforcer for DryRun {
    fn name(&self) -> &'static str {
        "dry-run"
    }

    fn controls(&self) -> &[Control] {
        &Control::ALL
    }

    fn admit(&mut self, id: GroupId, _: &Group) -> Result<Before, KernelError> {
        self.dismiss(id);
        Ok(Before::default())
    }

    fn apply(&mut self, group: GroupId, levels: &Levels, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        let weight = |w: Option<f64>| w.map(|w| u64::from(evenhand_heaviness::controller::cgroup_weight(w)));
        for (control, value) in [
            (Control::Cpu, weight(levels.cpu)),
            (Control::Memory, levels.memory),
            (Control::Disk, weight(levels.disk)),
            (Control::Network, weight(levels.network)),
        ] {
            let Some(value) = value else { continue };
            if self.last.insert((group, control), value) != Some(value) {
                changes.push(Change { group, control, value });
            }
        }
        Ok(())
    }

    fn dismiss(&mut self, id: GroupId) {
        self.last.retain(|(group, _), _| *group != id);
    }

    fn restore(&mut self, _: &Group, _: &Before) -> Result<(), KernelError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_written_is_said_once() {
        let (mut dry, mut changes) = (DryRun::default(), Vec::new());
        let id = GroupId(3);
        dry.admit(id, &Group::default()).unwrap();
        let levels = Levels { cpu: Some(2.0), memory: Some(4096), ..Levels::default() };
        dry.apply(id, &levels, &mut changes).unwrap();
        dry.apply(id, &Levels { cpu: Some(2.001), ..levels }, &mut changes).unwrap();
        let said: Vec<_> = changes.drain(..).map(|c| (c.control, c.value)).collect();
        assert_eq!(said, [(Control::Cpu, 200), (Control::Memory, 4096)]);
        dry.dismiss(id);
        dry.apply(id, &levels, &mut changes).unwrap();
        assert_eq!(changes.len(), 2);
    }
}
