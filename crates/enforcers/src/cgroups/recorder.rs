//! An enforcer that writes down what it is told, around another.

use std::sync::{Arc, Mutex, PoisonError};

use crate::cgroups::{Before, Change, Control, Enforcer, Group, GroupId, KernelError, Levels};

/// One thing that an enforcer was told.
#[derive(Clone, Debug, PartialEq)]
pub enum Recording {
    /// A group was admitted.
    Admitted(GroupId, Group),
    /// Levels were given.
    Applied(GroupId, Levels),
    /// A group was let go of.
    Dismissed(GroupId),
    /// A group was put back.
    Restored(Group, Before),
}

/// Hands everything on to another enforcer, and keeps a record of it that can be read meanwhile.
#[derive(Debug)]
pub struct Recorder<E> {
    inner: E,
    heard: Arc<Mutex<Vec<Recording>>>,
}

impl<E> Recorder<E> {
    /// Around this one.
    pub fn new(inner: E) -> Recorder<E> {
        Recorder { inner, heard: Arc::default() }
    }

    /// Everything heard from now on and before, for whoever wants to look.
    pub fn heard(&self) -> Arc<Mutex<Vec<Recording>>> {
        Arc::clone(&self.heard)
    }

    fn note(&self, recording: Recording) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(recording);
    }
}

impl<E: Enforcer> Enforcer for Recorder<E> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn controls(&self) -> &[Control] {
        self.inner.controls()
    }

    fn admit(&mut self, id: GroupId, group: &Group) -> Result<Before, KernelError> {
        self.note(Recording::Admitted(id, group.clone()));
        self.inner.admit(id, group)
    }

    fn apply(&mut self, id: GroupId, levels: &Levels, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        self.note(Recording::Applied(id, *levels));
        self.inner.apply(id, levels, changes)
    }

    fn flush(&mut self) -> Result<(), KernelError> {
        self.inner.flush()
    }

    fn dismiss(&mut self, id: GroupId) {
        self.note(Recording::Dismissed(id));
        self.inner.dismiss(id);
    }

    fn restore(&mut self, group: &Group, before: &Before) -> Result<(), KernelError> {
        self.note(Recording::Restored(group.clone(), before.clone()));
        self.inner.restore(group, before)
    }
}
