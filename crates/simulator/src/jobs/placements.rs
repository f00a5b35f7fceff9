//! Where the chunks of a job are.

use super::kind::Kind;

/// Machines side by side, of which each holds equally many equal chunks of a job.
///
/// A wide job mostly lies on few runs, and what is counted or changed for one machine of a run is so for all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first of the machines.
    pub(crate) machine: u32,
    pub(crate) machines: u32,
    /// How many chunks each holds.
    pub(crate) chunks: u32,
}

impl Run {
    fn of_one(machine: u32, chunks: u32) -> Run {
        Run { machine, machines: 1, chunks }
    }

    /// The machine after the last one.
    pub(crate) fn end(self) -> u32 {
        self.machine + self.machines
    }

    /// Its machines with their numbers of chunks.
    fn iter(self) -> impl Iterator<Item = (u32, u32)> + Clone {
        (self.machine..self.end()).map(move |machine| (machine, self.chunks))
    }

    /// Takes a run in if it continues this one.
    fn extend(&mut self, next: Run) -> bool {
        let continues = next.machine == self.end() && next.chunks == self.chunks;
        self.machines += if continues { next.machines } else { 0 };
        continues
    }
}

/// The runs of machines and their numbers of chunks, of which those side by side follow each other.
pub(crate) fn runs_of(mut pairs: impl Iterator<Item = (u32, u32)> + Clone) -> impl Iterator<Item = Run> + Clone {
    let mut next = pairs.next();
    std::iter::from_fn(move || {
        let (machine, chunks) = next?;
        let mut run = Run::of_one(machine, chunks);
        loop {
            next = pairs.next();
            match next {
                Some((machine, chunks)) if run.extend(Run::of_one(machine, chunks)) => {}
                _ => return Some(run),
            }
        }
    })
}

/// Machines that hold equal chunks of a job, ascending, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct AscendingRuns {
    runs: Vec<Run>,
}

impl AscendingRuns {
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run> + Clone + '_ {
        self.runs.iter().copied()
    }

    pub(crate) fn machines(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs().flat_map(|run| run.machine..run.end())
    }

    pub(crate) fn has(&self, machine: u32) -> bool {
        let at = self.runs.partition_point(|run| run.end() <= machine);
        self.runs.get(at).is_some_and(|run| run.machine <= machine)
    }

    /// The last machine and its chunks.
    pub(crate) fn last(&self) -> Option<(u32, u32)> {
        self.runs.last().map(|run| (run.end() - 1, run.chunks))
    }

    /// Removes so many of the last machine's chunks, of which it has as many.
    pub(crate) fn remove_from_last(&mut self, chunks: u32) {
        let Some((machine, had)) = self.last() else { return };
        if let Some(run) = self.runs.last_mut() {
            run.machines -= 1;
        }
        self.runs.pop_if(|run| run.machines == 0);
        if had > chunks {
            self.runs.push(Run::of_one(machine, had - chunks));
        }
    }

    /// Adds chunks to a machine.
    pub(crate) fn add(&mut self, machine: u32, chunks: u32) {
        let at = self.runs.partition_point(|run| run.end() <= machine);
        let Some(run) = self.runs.get(at).copied().filter(|run| run.machine <= machine) else {
            self.runs.insert(at, Run::of_one(machine, chunks));
            return;
        };
        let before = Run { machines: machine - run.machine, ..run };
        let after = Run { machine: machine + 1, machines: run.end() - machine - 1, ..run };
        let parts = [before, Run::of_one(machine, run.chunks + chunks), after];
        self.runs.splice(at..=at, parts.into_iter().filter(|part| part.machines > 0));
    }
}

impl From<&Placements> for AscendingRuns {
    /// Of placements in any order, of which no two are on one machine.
    fn from(held: &Placements) -> AscendingRuns {
        let mut runs: Vec<Run> = held.runs().collect();
        runs.sort_unstable_by_key(|run| run.machine);
        AscendingRuns { runs }
    }
}

/// Which machines hold how many chunks of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placements {
    /// Of no machines if there is none.
    first: Run,
    more: Vec<Run>,
    /// Where the job's last chunk is, if it is smaller than the others; it is not among them.
    pub(crate) last: Option<u32>,
    /// The chunks of further sizes: size, machine and number.
    pub(crate) of_sizes: Vec<(u16, u32, u32)>,
}

impl Placements {
    /// One chunk on a machine.
    pub(crate) fn one(machine: u32) -> Placements {
        Placements { first: Run::of_one(machine, 1), ..Placements::default() }
    }

    /// Adds a chunk of a size.
    pub(crate) fn add_of_size(&mut self, size: u16, machine: u32) {
        if size == 0 {
            return self.add(machine, 1);
        }
        match self.of_sizes.iter_mut().find(|found| (found.0, found.1) == (size, machine)) {
            Some(found) => found.2 += 1,
            None => self.of_sizes.push((size, machine, 1)),
        }
    }

    /// Adds equal chunks to a machine, which may be the one to which chunks were added last.
    pub(crate) fn add(&mut self, machine: u32, chunks: u32) {
        let last = self.more.last_mut().unwrap_or(&mut self.first);
        if last.machines == 0 || last.end() != machine + 1 {
            return self.add_run(Run::of_one(machine, chunks));
        }
        let chunks = last.chunks + chunks;
        last.machines -= 1;
        if last.machines == 0 {
            self.more.pop();
        }
        self.add_run(Run::of_one(machine, chunks));
    }

    /// Adds machines that hold none of the equal chunks yet.
    pub(crate) fn add_run(&mut self, run: Run) {
        debug_assert!(run.machines > 0 && run.chunks > 0, "{run:?}");
        if self.first.machines == 0 {
            self.first = run;
        } else if !self.more.last_mut().unwrap_or(&mut self.first).extend(run) {
            self.more.push(run);
        }
    }

    /// Makes one entry of all those of a machine.
    pub(crate) fn merge(&mut self) {
        if self.runs().is_sorted_by(|a, b| a.end() <= b.machine) {
            return;
        }
        let mut all: Vec<(u32, u32)> = self.iter().collect();
        // They come in runs of ascending machines, which this sort merges.
        all.sort();
        let of_sizes = std::mem::take(&mut self.of_sizes);
        *self = Placements { last: self.last, of_sizes, ..Placements::default() };
        all.into_iter().for_each(|(machine, chunks)| self.add(machine, chunks));
    }

    /// The machine that holds all of the equal chunks, and how many; `None` if there are several.
    pub(crate) fn only(&self) -> Option<(u32, u32)> {
        (self.more.is_empty() && self.first.machines <= 1).then_some((self.first.machine, self.first.chunks))
    }

    /// Each machine once.
    pub(crate) fn machines(&self) -> impl Iterator<Item = u32> + '_ {
        self.iter().map(|(machine, _)| machine).chain(self.other_machines())
    }

    /// Each machine once that holds no equal chunks.
    pub(crate) fn other_machines(&self) -> impl Iterator<Item = u32> + '_ {
        let is_new = |other: &u32| self.runs().all(|run| !(run.machine..run.end()).contains(other));
        let of_sizes = self.of_sizes.iter().enumerate().filter(move |(at, (_, machine, _))| {
            is_new(machine) && self.of_sizes[..*at].iter().all(|(_, before, _)| before != machine)
        });
        self.last.filter(is_new).into_iter().chain(of_sizes.map(|(_, (_, machine, _))| *machine))
    }

    /// The chunks of a job of this kind: machine, number, and what each holds.
    pub(crate) fn chunks<'k>(&self, kind: &'k Kind) -> impl Iterator<Item = (u32, u32, &'k [u64])> {
        let equal = self.iter().map(|(machine, chunks)| (machine, chunks, kind.chunk.as_slice()));
        equal.chain(self.other_chunks(kind))
    }

    /// The same for those that are not among the equal chunks.
    pub(crate) fn other_chunks<'k>(&self, kind: &'k Kind) -> impl Iterator<Item = (u32, u32, &'k [u64])> {
        let last = self.last.zip(kind.last.as_deref()).map(|(machine, chunk)| (machine, 1, chunk));
        let of_sizes = self.of_sizes.iter().map(|&(size, machine, chunks)| (machine, chunks, kind.of_size(size)));
        last.into_iter().chain(of_sizes)
    }

    /// Machines and numbers of the equal chunks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        self.runs().flat_map(Run::iter)
    }

    /// The same by run.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run> + Clone + '_ {
        std::iter::once(self.first).filter(|run| run.machines > 0).chain(self.more.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a map from machines to chunks.
        #[test]
        fn runs_are_what_was_added(
            added in prop::collection::vec((0u32..12, 1u32..4), 0..30),
            removed in prop::collection::vec(1u32..4, 0..6),
        ) {
            let mut placements = Placements::default();
            let mut all: BTreeMap<u32, u32> = BTreeMap::new();
            for &(machine, chunks) in &added {
                placements.add(machine, chunks);
                *all.entry(machine).or_default() += chunks;
            }
            let mut ascending = AscendingRuns::default();
            added.iter().for_each(|(machine, chunks)| ascending.add(*machine, *chunks));
            placements.merge();
            prop_assert!(placements.iter().eq(all.iter().map(|(machine, chunks)| (*machine, *chunks))));
            prop_assert!(runs_of(placements.iter()).eq(placements.runs()));
            for chunks in removed {
                let Some(mut last) = all.last_entry() else { break };
                let chunks = chunks.min(*last.get());
                *last.get_mut() -= chunks;
                if *last.get() == 0 {
                    last.remove();
                }
                ascending.remove_from_last(chunks);
                prop_assert_eq!(ascending.last(), all.last_key_value().map(|(machine, chunks)| (*machine, *chunks)));
            }
            prop_assert!(ascending.runs().flat_map(Run::iter).eq(all.iter().map(|(machine, chunks)| (*machine, *chunks))));
            prop_assert!((0..13).all(|machine| ascending.has(machine) == all.contains_key(&machine)));
        }
    }
}
