//! Jobs whose chunks are of several sizes: where the chunks are put.
//!
//! With several sizes it depends on the placement rule whether all chunks fit, and more free capacity may be worse. So
//! nothing is inferred for such a job from another: each time its chunks are put one after another, largest first.

use std::collections::HashMap;

use super::kind::{Kind, fits};
use super::placement::{Placement, Scores};
use super::placements::Placements;
use super::site::Site;

/// What is free on machines, and where less may be used, what is free later.
pub(crate) struct Free<'a> {
    pub(crate) now: &'a dyn Fn(u32) -> &'a [u64],
    pub(crate) later: &'a dyn Fn(u32) -> Option<&'a [u64]>,
}

/// Puts the chunks of a job on machines by the rule, or else where first fit puts them; `None` if that fails too.
pub(crate) fn place(site: &Site, kind: &Kind, free: &Free<'_>, scores: &mut Scores) -> Option<Placements> {
    let found = place_by(site, kind, free, Some(scores));
    found.or_else(|| place_by(site, kind, free, None))
}

/// By the rule of `scores`, or first fit.
fn place_by(site: &Site, kind: &Kind, free: &Free<'_>, mut scores: Option<&mut Scores>) -> Option<Placements> {
    let is_first_fit = scores.as_ref().is_none_or(|scores| scores.rule == Placement::FirstFit);
    // What the chunks before leave on their machines, now and later.
    let mut beside: HashMap<u32, (Vec<u64>, Option<Vec<u64>>)> = HashMap::new();
    let mut held = Placements::default();
    for (size, chunks, chunk) in kind.sizes() {
        if let Some(scores) = &mut scores {
            scores.of_chunk(chunk);
        }
        for _ in 0..chunks {
            let groups = kind.groups.iter().map(|&g| &site.groups[usize::from(g)]);
            let mut best: Option<(u64, u32)> = None;
            for machine in groups.flat_map(|group| group.first..group.first + group.count) {
                let (now, later) = match beside.get(&machine) {
                    Some((now, later)) => (now.as_slice(), later.as_deref()),
                    None => ((free.now)(machine), (free.later)(machine)),
                };
                let is_taken = kind.is_spread() && beside.contains_key(&machine);
                if is_taken || !fits(chunk, now) || later.is_some_and(|later| !fits(chunk, later)) {
                    continue;
                }
                let score = scores.as_mut().map_or(0, |scores| scores.score(now));
                if best.is_none_or(|best| (score, machine) < best) {
                    best = Some((score, machine));
                }
                if is_first_fit {
                    break;
                }
            }
            let (_, machine) = best?;
            let (now, later) = beside
                .entry(machine)
                .or_insert_with(|| ((free.now)(machine).to_vec(), (free.later)(machine).map(<[u64]>::to_vec)));
            for left in [Some(now), later.as_mut()].into_iter().flatten() {
                left.iter_mut().zip(chunk).for_each(|(left, chunk)| *left -= chunk);
            }
            held.add_of_size(size, machine);
        }
    }
    held.merge();
    Some(held)
}
