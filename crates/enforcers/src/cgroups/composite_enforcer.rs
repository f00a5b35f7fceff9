//! Several enforcers that act as one.

use std::collections::{BTreeMap, HashMap};

use crate::cgroups::{Change, Enforcer, Group, GroupId, KernelError, PerResource, Resource, SavedState, Targets};

/// The groups that an enforcer handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupFilter {
    /// All groups.
    All,
    /// Units of systemd, whose attributes only systemd should write.
    SystemdUnits,
    /// Groups that are not units of systemd.
    OtherGroups,
}

struct Part {
    filter: GroupFilter,
    enforcer: Box<dyn Enforcer>,
}

/// Several enforcers that act as one: each resource of a group is handled by the first enforcer that can divide the
/// resource, whose filter accepts the group, and which finds the group.
#[derive(Default)]
pub struct CompositeEnforcer {
    parts: Vec<Part>,
    resources: Vec<Resource>,
    /// The parts to which each group was admitted, and the resources that each of them handles.
    routes: HashMap<GroupId, Vec<(usize, PerResource<bool>)>>,
}

impl CompositeEnforcer {
    /// Creates an enforcer without parts, which can divide nothing.
    pub fn new() -> CompositeEnforcer {
        CompositeEnforcer::default()
    }

    /// Adds an enforcer with lower priority than those added before.
    #[must_use]
    pub fn with(mut self, filter: GroupFilter, enforcer: Box<dyn Enforcer>) -> CompositeEnforcer {
        self.resources.extend(enforcer.resources());
        self.resources.sort_unstable();
        self.resources.dedup();
        self.parts.push(Part { filter, enforcer });
        self
    }

    /// Gives each part the settings that it saved. Returns the first error.
    fn restore_parts(
        &mut self,
        group: &Group,
        saved: &SavedState,
        restore: impl Fn(&mut dyn Enforcer, &SavedState) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let mut first_error = None;
        let mut remaining = saved.0.len();
        let mut names = Vec::new();
        for part in &mut self.parts {
            let name = part.enforcer.name();
            if names.contains(&name) {
                continue;
            }
            names.push(name);
            let of_part = saved.0.iter().filter_map(|(key, value)| {
                let key = key.strip_prefix(name)?.strip_prefix('/')?;
                Some((key.to_owned(), value.clone()))
            });
            let of_part = SavedState(of_part.collect());
            remaining -= of_part.0.len();
            if of_part.0.is_empty() {
                continue;
            }
            if let Err(error) = restore(&mut *part.enforcer, &of_part) {
                first_error.get_or_insert(error);
            }
        }
        if remaining > 0 && first_error.is_none() {
            let is_known = |key: &String| names.iter().any(|n| key.strip_prefix(n).is_some_and(|k| k.starts_with('/')));
            let found = saved.0.keys().find(|key| !is_known(key)).cloned().unwrap_or_default();
            first_error = Some(KernelError::Content {
                what: group.path.clone(),
                found,
                expected: "a setting that an enforcer of this machine saved",
            });
        }
        first_error.map_or(Ok(()), Err)
    }
}

impl Enforcer for CompositeEnforcer {
    fn name(&self) -> &'static str {
        "composite"
    }

    fn resources(&self) -> &[Resource] {
        &self.resources
    }

    fn admit(&mut self, id: GroupId, group: &Group) -> Result<SavedState, KernelError> {
        self.dismiss(id);
        let mut all = BTreeMap::new();
        let (mut routes, mut taken) = (Vec::new(), PerResource::<bool>::default());
        let mut gone = None;
        for (i, part) in self.parts.iter_mut().enumerate() {
            let accepted = match part.filter {
                GroupFilter::All => true,
                GroupFilter::SystemdUnits => group.unit.is_some(),
                GroupFilter::OtherGroups => group.unit.is_none(),
            };
            let handled = PerResource::from_fn(|r| part.enforcer.resources().contains(&r) && !taken[r]);
            if !accepted || handled == PerResource::default() {
                continue;
            }
            match part.enforcer.admit(id, group) {
                Ok(SavedState(saved)) => {
                    let name = part.enforcer.name();
                    all.extend(saved.into_iter().map(|(key, value)| (format!("{name}/{key}"), value)));
                    routes.push((i, handled));
                    taken = PerResource::from_fn(|r| taken[r] || handled[r]);
                }
                Err(KernelError::Gone(what)) => gone = Some(KernelError::Gone(what)),
                Err(other) => {
                    routes.iter().for_each(|(i, _)| self.parts[*i].enforcer.dismiss(id));
                    return Err(other);
                }
            }
        }
        match gone {
            Some(gone) if routes.is_empty() => Err(gone),
            _ => {
                self.routes.insert(id, routes);
                Ok(SavedState(all))
            }
        }
    }

    fn apply(&mut self, group: GroupId, targets: &Targets, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        let routes = self.routes.get(&group).ok_or(KernelError::NotAdmitted(group))?;
        let mut first_error = None;
        for (part, handled) in routes {
            let targets = Targets::from_fn(|resource| targets[resource].filter(|_| handled[resource]));
            if let Err(error) = self.parts[*part].enforcer.apply(group, &targets, changes) {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    fn flush(&mut self) -> Result<(), KernelError> {
        let mut first_error = None;
        for part in &mut self.parts {
            if let Err(error) = part.enforcer.flush() {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    fn dismiss(&mut self, id: GroupId) {
        for (part, _) in self.routes.remove(&id).unwrap_or_default() {
            self.parts[part].enforcer.dismiss(id);
        }
    }

    fn restore(&mut self, group: &Group, saved: &SavedState) -> Result<(), KernelError> {
        self.restore_parts(group, saved, |enforcer, of_part| enforcer.restore(group, of_part))
    }

    fn restore_remains(&mut self, group: &Group, saved: &SavedState) -> Result<(), KernelError> {
        self.restore_parts(group, saved, |enforcer, of_part| enforcer.restore_remains(group, of_part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroups::DryRun;
    use crate::cgroups::recording_enforcer::RecordingEnforcer;

    /// An enforcer that has a name, divides some resources, and finds some groups.
    struct Fake(&'static str, &'static [Resource], &'static [&'static str]);

    impl Enforcer for Fake {
        fn name(&self) -> &'static str {
            self.0
        }
        fn resources(&self) -> &[Resource] {
            self.1
        }
        fn admit(&mut self, _: GroupId, group: &Group) -> Result<SavedState, KernelError> {
            if !self.2.contains(&group.path.as_str()) {
                return Err(KernelError::Gone(group.path.clone()));
            }
            Ok(SavedState([("file".to_owned(), format!("of {}", self.0))].into()))
        }
        fn apply(&mut self, group: GroupId, targets: &Targets, changes: &mut Vec<Change>) -> Result<(), KernelError> {
            for resource in [Resource::Cpu, Resource::Disk] {
                changes.extend(targets[resource].map(|v| Change { group, resource, value: v as u64 }));
            }
            Ok(())
        }
        fn dismiss(&mut self, _: GroupId) {}
        fn restore(&mut self, _: &Group, saved: &SavedState) -> Result<(), KernelError> {
            assert_eq!(saved.0["file"], format!("of {}", self.0));
            Ok(())
        }
    }

    fn group(path: &str, unit: bool) -> Group {
        Group { path: path.into(), unit: unit.then(|| path.into()), devices: Vec::new() }
    }

    #[test]
    fn a_resource_is_handled_by_the_first_enforcer_that_can_divide_it_and_finds_the_group() {
        use Resource::{Cpu, Disk};
        let bus = RecordingEnforcer::new(Fake("bus", &[Cpu], &["u"]));
        let files = RecordingEnforcer::new(Fake("files", &[Cpu, Disk], &["u", "g"]));
        let rest = RecordingEnforcer::new(DryRun::default());
        let applied = [bus.applied(), files.applied(), rest.applied()];
        let mut all = CompositeEnforcer::new()
            .with(GroupFilter::SystemdUnits, Box::new(bus))
            .with(GroupFilter::OtherGroups, Box::new(files))
            .with(GroupFilter::All, Box::new(rest));
        assert_eq!(all.resources(), Resource::ALL);
        let (unit, plain, lost) = (GroupId(0), GroupId(1), GroupId(2));
        let saved_unit = all.admit(unit, &group("u", true)).unwrap();
        assert_eq!(saved_unit.0.keys().collect::<Vec<_>>(), ["bus/file"]);
        let saved_plain = all.admit(plain, &group("g", false)).unwrap();
        // The first enforcer does not find this group, but a dry run accepts all.
        assert_eq!(all.admit(lost, &group("lost", false)).unwrap(), SavedState::default());
        let targets = Targets { memory: Some(7.0), ..Targets::equal_weights(2.0) };
        let mut changes = Vec::new();
        [unit, plain, lost].into_iter().for_each(|id| all.apply(id, &targets, &mut changes).unwrap());
        let given = |i: usize| {
            let of = |(id, t): &(GroupId, Targets)| (id.0, t.cpu, t.memory, t.disk, t.network);
            applied[i].lock().unwrap().iter().map(of).collect::<Vec<_>>()
        };
        let (two, seven) = (Some(2.0), Some(7.0));
        assert_eq!(given(0), [(0, two, None, None, None)]);
        assert_eq!(given(1), [(1, two, None, two, None)]);
        let rest = [(0, None, seven, two, two), (1, None, seven, None, two), (2, two, seven, two, two)];
        assert_eq!(given(2), rest);
        all.restore(&group("u", true), &saved_unit).unwrap();
        all.restore(&group("g", false), &saved_plain).unwrap();
        let foreign = SavedState([("other/file".to_owned(), String::new())].into());
        assert!(matches!(all.restore(&group("g", false), &foreign), Err(KernelError::Content { .. })));
        all.dismiss(unit);
        assert!(matches!(all.apply(unit, &targets, &mut changes), Err(KernelError::NotAdmitted(_))));
    }

    #[test]
    fn a_group_that_no_enforcer_finds_is_gone() {
        let files = Fake("files", &[Resource::Cpu], &["g"]);
        let mut all = CompositeEnforcer::new().with(GroupFilter::All, Box::new(files));
        assert!(matches!(all.admit(GroupId(1), &group("x", false)), Err(KernelError::Gone(_))));
        assert!(all.admit(GroupId(1), &group("g", false)).is_ok());
    }
}
