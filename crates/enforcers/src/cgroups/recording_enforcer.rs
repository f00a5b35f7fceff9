//! A test double: an enforcer that records the calls to another one.

use std::sync::{Arc, Mutex};

use crate::cgroups::{Change, Enforcer, Group, GroupId, KernelError, Resource, SavedState, Targets};

/// Passes every call on to another enforcer, and records the targets that it was given.
#[derive(Debug)]
pub(crate) struct RecordingEnforcer<E> {
    inner: E,
    applied: Arc<Mutex<Vec<(GroupId, Targets)>>>,
}

impl<E> RecordingEnforcer<E> {
    pub(crate) fn new(inner: E) -> RecordingEnforcer<E> {
        RecordingEnforcer { inner, applied: Arc::default() }
    }

    /// Returns the shared record of all calls of [`apply`](Enforcer::apply).
    pub(crate) fn applied(&self) -> Arc<Mutex<Vec<(GroupId, Targets)>>> {
        Arc::clone(&self.applied)
    }
}

impl<E: Enforcer> Enforcer for RecordingEnforcer<E> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn resources(&self) -> &[Resource] {
        self.inner.resources()
    }

    fn admit(&mut self, id: GroupId, group: &Group) -> Result<SavedState, KernelError> {
        self.inner.admit(id, group)
    }

    fn apply(&mut self, id: GroupId, targets: &Targets, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        self.applied.lock().unwrap().push((id, *targets));
        self.inner.apply(id, targets, changes)
    }

    fn flush(&mut self) -> Result<(), KernelError> {
        self.inner.flush()
    }

    fn dismiss(&mut self, id: GroupId) {
        self.inner.dismiss(id);
    }

    fn restore(&mut self, group: &Group, saved: &SavedState) -> Result<(), KernelError> {
        self.inner.restore(group, saved)
    }
}
