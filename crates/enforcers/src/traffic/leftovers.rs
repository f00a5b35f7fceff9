//! What an earlier process left on devices, for a process that divides no traffic.

use crate::cgroups::{Change, Enforcer, Group, GroupId, KernelError, Resource, SavedState, Targets};
use crate::traffic::TrafficEnforcer;

/// Stands in for a [`TrafficEnforcer`] where none is configured any more: divides nothing, and restores by
/// [`TrafficEnforcer::remove_leftovers`].
#[derive(Clone, Copy, Debug)]
pub struct TrafficLeftovers;

impl Enforcer for TrafficLeftovers {
    /// The name of [`TrafficEnforcer`], whose saved states it restores.
    fn name(&self) -> &'static str {
        "htb"
    }

    fn resources(&self) -> &[Resource] {
        &[]
    }

    fn admit(&mut self, _: GroupId, _: &Group) -> Result<SavedState, KernelError> {
        Ok(SavedState::default())
    }

    fn apply(&mut self, _: GroupId, _: &Targets, _: &mut Vec<Change>) -> Result<(), KernelError> {
        Ok(())
    }

    fn dismiss(&mut self, _: GroupId) {}

    fn restore(&mut self, group: &Group, saved: &SavedState) -> Result<(), KernelError> {
        let Some(device) = saved.0.get("device") else { return Ok(()) };
        TrafficEnforcer::remove_leftovers(device).map_err(|error| error.into_kernel_error(&group.path))
    }
}
