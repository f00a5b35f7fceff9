//! On which machines the placement rule puts the chunks of a job that starts later, beside all reservations.

use std::collections::HashSet;

use super::chunk_choice;
use super::kind::Kind;
use super::placement::Placement;
use super::placements::Placements;
use super::reservation_plan::Plan;
use super::site::Site;
use super::uneven_chunks;

impl Plan {
    /// Where first fit puts a job of equal chunks, from a start on for so long.
    fn place_first(&self, site: &Site, kind: &Kind, start: u64, length: u64) -> Option<Placements> {
        // By class of machines, once one of its machines has been met.
        let mut fitting: Vec<Option<u32>> = vec![None; self.machines.places()];
        let (mut held, mut left) = (Placements::default(), kind.full_chunks());
        let groups = kind.groups.iter().map(|&g| &site.groups[usize::from(g)]);
        for machine in groups.flat_map(|group| group.first..group.first + group.count) {
            let class = self.machines.class_of(machine);
            let on_each = *fitting[class as usize].get_or_insert_with(|| {
                let chunks = self.machines.profile_of(class).copies_at(start, length, kind.equal_chunks());
                chunks.min(u32::MAX.into()) as u32
            });
            let chunks = on_each.min(left);
            if chunks > 0 {
                held.add(machine, chunks);
                left -= chunks;
                if left == 0 {
                    return Some(held);
                }
            }
        }
        None
    }

    /// Where the rule puts a job of several equal chunks, and perhaps a smaller last one, from a start on for so long.
    pub(super) fn place(&mut self, site: &Site, kind: &Kind, start: u64, length: u64) -> Option<Placements> {
        if self.scores.rule == Placement::FirstFit && kind.last.is_none() {
            return self.place_first(site, kind, start, length);
        }
        let Plan { width, machines, scores, free, .. } = self;
        let width = *width;
        let smallest = kind.smallest_chunk();
        let mut left = u128::from(kind.copies);
        let mut last_fits = false;
        // The classes on which a chunk fits, and those on which at least the last one does.
        let (mut fitting, mut with_last) = (Vec::new(), Vec::new());
        scores.of_chunk(&kind.chunk);
        for (class, group, count) in machines.classes() {
            let from = class as usize * width;
            free.resize(free.len().max(from + width), 0);
            let row = &mut free[from..from + width];
            if !kind.groups.contains(&group) || !machines.profile_of(class).min_free_for(start, length, smallest, row) {
                continue;
            }
            let chunks = kind.chunks_on(row);
            if chunks > 0 {
                fitting.push((scores.score(row), class));
            }
            if kind.last.is_some() {
                with_last.push(class);
                last_fits = last_fits || kind.last_fits_beside_chunks(row, chunks);
            }
            left = left.saturating_sub(chunks * u128::from(count));
        }
        if left > u128::from(last_fits) {
            return None;
        }
        let free_of = |class: u32| &free[class as usize * width..][..width];
        let members_of = |class: u32| machines.members_of(class);
        let all = std::iter::once((0, fitting));
        let chosen = chunk_choice::choose_all(kind, scores, all, |_, fitting| fitting, free_of, members_of, |_| None)?;
        let mut held = Placements::default();
        chosen.iter().for_each(|&(machine, chunks)| held.add(machine, chunks));
        held.merge();
        if let Some(last) = &kind.last {
            scores.of_chunk(last);
            let others: HashSet<u32> = chosen.iter().map(|(machine, _)| *machine).collect();
            let mut best: Option<(u64, u32)> = None;
            for class in with_last {
                let members = members_of(class);
                let mut next = members.next(0);
                while let Some(machine) = next.filter(|machine| others.contains(machine)) {
                    next = members.next(machine + 1);
                }
                best = best.into_iter().chain(next.map(|machine| (scores.score(free_of(class)), machine))).min();
            }
            let mut beside = vec![0; width];
            for &(machine, chunks) in &chosen {
                if kind.last_fits_beside(free_of(machines.class_of(machine)), chunks, &mut beside) {
                    best = best.into_iter().chain([(scores.score(&beside), machine)]).min();
                }
            }
            held.last = Some(best?.1);
        }
        Some(held)
    }

    /// Where the rule puts a job of several sizes of chunks.
    pub(super) fn place_uneven(&mut self, site: &Site, kind: &Kind, start: u64, length: u64) -> Option<Placements> {
        let Plan { width, machines, scores, free, .. } = self;
        let width = *width;
        for (class, _, _) in machines.classes() {
            let from = class as usize * width;
            free.resize(free.len().max(from + width), 0);
            machines.profile_of(class).min_free(start, length, &mut free[from..from + width]);
        }
        let now = |machine: u32| &free[machines.class_of(machine) as usize * width..][..width];
        uneven_chunks::place(site, kind, &uneven_chunks::Free { now: &now, later: &|_| None }, scores)
    }
}
