//! Several meters that act as one.

use std::collections::HashMap;

use crate::cgroups::{Group, GroupId, KernelError, Meter, PerResource, Pressure, Usage};

/// Several meters that act as one: each number is that of the first meter that has it.
#[derive(Default)]
pub struct CompositeMeter {
    parts: Vec<Box<dyn Meter>>,
    /// The meters to which each group was admitted.
    known: HashMap<GroupId, Vec<usize>>,
}

impl CompositeMeter {
    /// Creates a meter without parts.
    pub fn new() -> CompositeMeter {
        CompositeMeter::default()
    }

    /// Adds a meter with lower priority than those added before.
    #[must_use]
    pub fn with(mut self, meter: Box<dyn Meter>) -> CompositeMeter {
        self.parts.push(meter);
        self
    }

    /// Combines the numbers of all parts. The group is gone if one part reports so and no other has a number: some parts
    /// have no number for a group. Other errors are passed on.
    fn combine<T: Default + PartialEq>(
        &mut self,
        id: GroupId,
        read: impl Fn(&mut dyn Meter) -> Result<PerResource<Option<T>>, KernelError>,
    ) -> Result<PerResource<Option<T>>, KernelError> {
        let known = self.known.get(&id).ok_or(KernelError::NotAdmitted(id))?;
        let (mut all, mut gone) = (PerResource::default(), None);
        for &part in known {
            match read(self.parts[part].as_mut()) {
                Ok(one) => all = PerResource::or(all, one),
                Err(KernelError::Gone(what)) => gone = Some(KernelError::Gone(what)),
                Err(other) => return Err(other),
            }
        }
        match gone {
            Some(gone) if all == PerResource::default() => Err(gone),
            _ => Ok(all),
        }
    }
}

impl Meter for CompositeMeter {
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<(), KernelError> {
        self.dismiss(id);
        let (mut known, mut gone) = (Vec::new(), None);
        for (i, meter) in self.parts.iter_mut().enumerate() {
            match meter.admit(id, group) {
                Ok(()) => known.push(i),
                Err(KernelError::Gone(what)) => gone = Some(KernelError::Gone(what)),
                Err(other) => {
                    known.iter().for_each(|i| self.parts[*i].dismiss(id));
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
        self.combine(id, |meter| meter.read(id))
    }

    fn pressure(&mut self, id: GroupId) -> Result<Pressure, KernelError> {
        self.combine(id, |meter| meter.pressure(id))
    }

    fn dismiss(&mut self, id: GroupId) {
        for part in self.known.remove(&id).unwrap_or_default() {
            self.parts[part].dismiss(id);
        }
    }
}
