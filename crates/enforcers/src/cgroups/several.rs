//! Several ways of weighing or reading groups, as one.

use std::collections::{BTreeMap, HashMap};

use crate::cgroups::{Before, Change, Control, Enforcer, Group, GroupId, KernelError, Levels, Meter, Pressure, Usage};

/// Which groups an enforcer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// All of them.
    All,
    /// Those that are units of systemd, whose attributes nobody else should write.
    Units,
    /// Those that are not.
    Others,
}

struct Part {
    whom: Whom,
    enforcer: Box<dyn Enforcer>,
}

/// Enforcers as one: each control of a group is the matter of the first that has it, is for such groups, and
/// finds the group.
#[derive(Default)]
pub struct Several {
    parts: Vec<Part>,
    controls: Vec<Control>,
    /// For each group that was admitted, the parts it was admitted to and what they divide for it.
    routes: HashMap<GroupId, Vec<(u8, Mask)>>,
}

/// Which controls, by their places in [`Control::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mask(u8);

impl Mask {
    fn of(controls: &[Control]) -> Mask {
        Mask(controls.iter().fold(0, |mask, c| mask | Mask::bit(*c)))
    }

    fn bit(control: Control) -> u8 {
        match control {
            Control::Cpu => 1,
            Control::Memory => 2,
            Control::Disk => 4,
            Control::Network => 8,
        }
    }

    fn has(self, control: Control) -> bool {
        self.0 & Mask::bit(control) != 0
    }

    fn levels(self, all: &Levels) -> Levels {
        Levels {
            cpu: all.cpu.filter(|_| self.has(Control::Cpu)),
            memory: all.memory.filter(|_| self.has(Control::Memory)),
            disk: all.disk.filter(|_| self.has(Control::Disk)),
            network: all.network.filter(|_| self.has(Control::Network)),
        }
    }
}

impl Several {
    /// None so far: with none it can do nothing.
    pub fn new() -> Several {
        Several::default()
    }

    /// With another, which comes after those before it. Up to 255.
    #[must_use]
    pub fn with(mut self, whom: Whom, enforcer: Box<dyn Enforcer>) -> Several {
        if self.parts.len() < usize::from(u8::MAX) {
            self.controls.extend(enforcer.controls());
            self.controls.sort_unstable();
            self.controls.dedup();
            self.parts.push(Part { whom, enforcer });
        }
        self
    }

    fn each(
        &mut self,
        id: GroupId,
        mut act: impl FnMut(&mut dyn Enforcer, Mask) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let routes = self.routes.get(&id).ok_or(KernelError::Unknown(id))?;
        let mut first = None;
        for &(part, mask) in routes {
            if let Err(error) = act(self.parts[usize::from(part)].enforcer.as_mut(), mask) {
                first.get_or_insert(error);
            }
        }
        first.map_or(Ok(()), Err)
    }
}

impl Enforcer for Several {
    fn name(&self) -> &'static str {
        "several"
    }

    fn controls(&self) -> &[Control] {
        &self.controls
    }

    fn admit(&mut self, id: GroupId, group: &Group) -> Result<Before, KernelError> {
        self.dismiss(id);
        let mut all = BTreeMap::new();
        let (mut routes, mut taken) = (Vec::new(), Mask::default());
        let mut gone = None;
        for (i, part) in (0_u8..).zip(&mut self.parts) {
            let meant = match part.whom {
                Whom::All => true,
                Whom::Units => group.unit.is_some(),
                Whom::Others => group.unit.is_none(),
            };
            let mask = Mask(Mask::of(part.enforcer.controls()).0 & !taken.0);
            if !meant || mask == Mask::default() {
                continue;
            }
            match part.enforcer.admit(id, group) {
                Ok(Before(before)) => {
                    let name = part.enforcer.name();
                    all.extend(before.into_iter().map(|(key, value)| (format!("{name}/{key}"), value)));
                    routes.push((i, mask));
                    taken.0 |= mask.0;
                }
                Err(KernelError::Gone(who)) => gone = Some(KernelError::Gone(who)),
                Err(other) => {
                    routes.iter().for_each(|(i, _)| self.parts[usize::from(*i)].enforcer.dismiss(id));
                    return Err(other);
                }
            }
        }
        match gone {
            Some(gone) if routes.is_empty() => Err(gone),
            _ => {
                self.routes.insert(id, routes);
                Ok(Before(all))
            }
        }
    }

    fn apply(&mut self, group: GroupId, levels: &Levels, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        self.each(group, |enforcer, mask| enforcer.apply(group, &mask.levels(levels), changes))
    }

    fn flush(&mut self) -> Result<(), KernelError> {
        let mut first = None;
        for part in &mut self.parts {
            if let Err(error) = part.enforcer.flush() {
                first.get_or_insert(error);
            }
        }
        first.map_or(Ok(()), Err)
    }

    fn dismiss(&mut self, id: GroupId) {
        for (part, _) in self.routes.remove(&id).unwrap_or_default() {
            self.parts[usize::from(part)].enforcer.dismiss(id);
        }
    }

    fn restore(&mut self, group: &Group, before: &Before) -> Result<(), KernelError> {
        let mut first = None;
        let mut left = before.0.len();
        let mut named = Vec::new();
        for part in &mut self.parts {
            let name = part.enforcer.name();
            if named.contains(&name) {
                continue;
            }
            named.push(name);
            let own = before.0.iter().filter_map(|(key, value)| {
                let key = key.strip_prefix(name)?.strip_prefix('/')?;
                Some((key.to_owned(), value.clone()))
            });
            let own = Before(own.collect());
            left -= own.0.len();
            if own.0.is_empty() {
                continue;
            }
            if let Err(error) = part.enforcer.restore(group, &own) {
                first.get_or_insert(error);
            }
        }
        if left > 0 && first.is_none() {
            let whose = |key: &String| named.iter().any(|n| key.strip_prefix(n).is_some_and(|k| k.starts_with('/')));
            let found = before.0.keys().find(|key| !whose(key)).cloned().unwrap_or_default();
            first = Some(KernelError::Content {
                what: group.path.clone(),
                found,
                expected: "what an enforcer here has written",
            });
        }
        first.map_or(Ok(()), Err)
    }
}

/// Meters as one: of each number what the first says that says it.
#[derive(Default)]
pub struct Meters {
    parts: Vec<Box<dyn Meter>>,
    /// For each group that was admitted, the meters that know it.
    known: HashMap<GroupId, Vec<u8>>,
}

impl Meters {
    /// None so far.
    pub fn new() -> Meters {
        Meters::default()
    }

    /// With another, which comes after those before it. Up to 255.
    #[must_use]
    pub fn with(mut self, meter: Box<dyn Meter>) -> Meters {
        if self.parts.len() < usize::from(u8::MAX) {
            self.parts.push(meter);
        }
        self
    }

    /// Gone is what one says is gone and of which no other says a number: some have none to say. Any other error is
    /// passed on.
    fn each<T: Default + PartialEq>(
        &mut self,
        id: GroupId,
        read: impl Fn(&mut dyn Meter) -> Result<T, KernelError>,
        or: impl Fn(T, T) -> T,
    ) -> Result<T, KernelError> {
        let known = self.known.get(&id).ok_or(KernelError::Unknown(id))?;
        let (mut all, mut gone) = (T::default(), None);
        for &part in known {
            match read(self.parts[usize::from(part)].as_mut()) {
                Ok(one) => all = or(all, one),
                Err(KernelError::Gone(who)) => gone = Some(KernelError::Gone(who)),
                Err(other) => return Err(other),
            }
        }
        match gone {
            Some(gone) if all == T::default() => Err(gone),
            _ => Ok(all),
        }
    }
}

impl Meter for Meters {
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<(), KernelError> {
        self.dismiss(id);
        let (mut known, mut gone) = (Vec::new(), None);
        for (i, meter) in (0_u8..).zip(&mut self.parts) {
            match meter.admit(id, group) {
                Ok(()) => known.push(i),
                Err(KernelError::Gone(who)) => gone = Some(KernelError::Gone(who)),
                Err(other) => {
                    known.iter().for_each(|i| self.parts[usize::from(*i)].dismiss(id));
                    return Err(other);
                }
            }
        }
        match gone {
            Some(gone) if known.is_empty() => Err(gone),
            _ => {
                self.known.insert(id, known);
                Ok(())
            }
        }
    }

    fn read(&mut self, id: GroupId) -> Result<Usage, KernelError> {
        self.each(id, |meter| meter.read(id), Usage::or)
    }

    fn pressure(&mut self, id: GroupId) -> Result<Pressure, KernelError> {
        self.each(id, |meter| meter.pressure(id), Pressure::or)
    }

    fn dismiss(&mut self, id: GroupId) {
        for part in self.known.remove(&id).unwrap_or_default() {
            self.parts[usize::from(part)].dismiss(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroups::{DryRun, Recorder, Recording};

    /// Divides some controls, knows some groups, and says so in what it answers.
    struct Fake(&'static str, &'static [Control], &'static [&'static str]);

    impl Enforcer for Fake {
        fn name(&self) -> &'static str {
            self.0
        }
        fn controls(&self) -> &[Control] {
            self.1
        }
        fn admit(&mut self, _: GroupId, group: &Group) -> Result<Before, KernelError> {
            if !self.2.contains(&group.path.as_str()) {
                return Err(KernelError::Gone(group.path.clone()));
            }
            Ok(Before([("file".to_owned(), format!("of {}", self.0))].into()))
        }
        fn apply(&mut self, group: GroupId, levels: &Levels, changes: &mut Vec<Change>) -> Result<(), KernelError> {
            for (control, value) in [(Control::Cpu, levels.cpu), (Control::Disk, levels.disk)] {
                changes.extend(value.map(|v| Change { group, control, value: v as u64 }));
            }
            Ok(())
        }
        fn dismiss(&mut self, _: GroupId) {}
        fn restore(&mut self, _: &Group, before: &Before) -> Result<(), KernelError> {
            assert_eq!(before.0["file"], format!("of {}", self.0));
            Ok(())
        }
    }

    fn group(path: &str, unit: bool) -> Group {
        Group { path: path.into(), unit: unit.then(|| path.into()), devices: Vec::new() }
    }

    #[test]
    fn the_first_that_has_a_control_and_the_group_gets_it() {
        use Control::{Cpu, Disk, Network};
        let bus = Recorder::new(Fake("bus", &[Cpu], &["u"]));
        let files = Recorder::new(Fake("files", &[Cpu, Disk], &["u", "g"]));
        let rest = Recorder::new(DryRun::default());
        let heard = [bus.heard(), files.heard(), rest.heard()];
        let mut all = Several::new()
            .with(Whom::Units, Box::new(bus))
            .with(Whom::Others, Box::new(files))
            .with(Whom::All, Box::new(rest));
        assert_eq!(all.controls(), Control::ALL);
        assert!(all.controls().contains(&Network));
        let (unit, plain, lost) = (GroupId(0), GroupId(1), GroupId(2));
        let before = all.admit(unit, &group("u", true)).unwrap();
        assert_eq!(before.0.keys().collect::<Vec<_>>(), ["bus/file"]);
        let plainly = all.admit(plain, &group("g", false)).unwrap();
        // Not there for the first, but dry runs know all.
        assert_eq!(all.admit(lost, &group("lost", false)).unwrap(), Before::default());
        let levels = Levels { memory: Some(7), ..Levels::weight(2.0) };
        let mut changes = Vec::new();
        [unit, plain, lost].into_iter().for_each(|id| all.apply(id, &levels, &mut changes).unwrap());
        let given = |i: usize| {
            let heard = heard[i].lock().unwrap();
            let applied = heard.iter().filter_map(|r| match r {
                Recording::Applied(id, levels) => Some((id.0, levels.cpu, levels.memory, levels.disk, levels.network)),
                _ => None,
            });
            applied.collect::<Vec<_>>()
        };
        let two = Some(2.0);
        assert_eq!(given(0), [(0, two, None, None, None)]);
        assert_eq!(given(1), [(1, two, None, two, None)]);
        let rest = [(0, None, Some(7), two, two), (1, None, Some(7), None, two), (2, two, Some(7), two, two)];
        assert_eq!(given(2), rest);
        all.restore(&group("u", true), &before).unwrap();
        all.restore(&group("g", false), &plainly).unwrap();
        let foreign = Before([("other/file".to_owned(), String::new())].into());
        assert!(matches!(all.restore(&group("g", false), &foreign), Err(KernelError::Content { .. })));
        all.dismiss(unit);
        assert!(matches!(all.apply(unit, &levels, &mut changes), Err(KernelError::Unknown(_))));
    }

    #[test]
    fn gone_is_what_nobody_finds() {
        let mut all = Several::new().with(Whom::All, Box::new(Fake("files", &[Control::Cpu], &["g"])));
        assert!(matches!(all.admit(GroupId(1), &group("x", false)), Err(KernelError::Gone(_))));
        assert!(all.admit(GroupId(1), &group("g", false)).is_ok());
    }
}
