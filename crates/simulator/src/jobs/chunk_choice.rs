//! On which machines of several classes the chunks of a job are put, one chunk after another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::kind::Kind;
use super::machine_set::MachineSet;
use super::placement::{Placement, Scores};

/// A machine on which the next chunk may be put: the least is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Choice {
    score: u64,
    machine: u32,
    /// The class that it is of before the job's first chunk.
    class: u32,
    /// Its place among those chosen, if it has a chunk already; else it stands for all later ones of its class.
    at: Option<usize>,
}

/// The machines that the rule chooses for the equal chunks of a kind, and how many it puts on each, in the order of their
/// first chunks; `None` where they do not fit.
///
/// `batches`: the classes of machines in batches, by ascending least scores that they may have for a chunk.
/// `fitting_of`: the classes of a batch on which a chunk fits, with their scores for it. `later`: what is free later on a
/// machine of which no more may be used than that.
///
/// A step for each class of the batches with low enough scores, then one for each chunk (for first and best fit, which put
/// further chunks on the same machine while they fit, for each machine), times the logarithm of the number of classes and
/// machines chosen.
pub(crate) fn choose_all<'f, 'm, 'l, Batch>(
    kind: &Kind,
    scores: &mut Scores,
    batches: impl Iterator<Item = (u64, Batch)>,
    fitting_of: impl Fn(&Scores, Batch) -> Vec<(u64, u32)>,
    free_of: impl Fn(u32) -> &'f [u64],
    members_of: impl Fn(u32) -> &'m MachineSet,
    later: impl Fn(u32) -> Option<&'l [u64]>,
) -> Option<Vec<(u32, u32)>> {
    if scores.rule == Placement::FirstFit {
        let fitting = batches.flat_map(|(_, batch)| fitting_of(scores, batch)).map(|(_, class)| class);
        return choose_first(kind, fitting, free_of, members_of, later);
    }
    let together = scores.rule == Placement::BestFit;
    let first_of = |(score, class): (u64, u32)| {
        let first = members_of(class).next(0);
        first.map(|machine| Reverse(Choice { score, machine, class, at: None }))
    };
    let (mut batches, mut next) = (batches.peekable(), BinaryHeap::new());
    let mut chosen: Vec<(u32, u32)> = Vec::new();
    let (mut left, mut free) = (kind.full_chunks(), vec![0; kind.chunk.len()]);
    while left > 0 {
        let least = next.peek().map_or(u64::MAX, |Reverse(choice): &Reverse<Choice>| choice.score);
        if let Some((_, batch)) = batches.next_if(|(of_batch, _)| *of_batch <= least) {
            next.extend(fitting_of(scores, batch).into_iter().filter_map(first_of));
            continue;
        }
        let Reverse(Choice { score, machine, class, at }) = next.pop()?;
        if at.is_none() {
            let after = members_of(class).next(machine + 1);
            next.extend(after.map(|machine| Reverse(Choice { score, machine, class, at })));
        }
        let used = at.map_or(0, |at: usize| u128::from(chosen[at].1));
        let later = later(machine).map_or(u128::MAX, |free| kind.chunks_on(free));
        let most = kind.chunks_on(free_of(class)).min(later).saturating_sub(used);
        if most == 0 {
            continue;
        }
        let chunks = if together { most.min(u128::from(left)) as u32 } else { 1 };
        left -= chunks;
        let at = at.unwrap_or(chosen.len());
        match chosen.get_mut(at) {
            Some(chosen) => chosen.1 += chunks,
            None => chosen.push((machine, chunks)),
        }
        if most > u128::from(chunks) && left > 0 {
            let taken = u64::from(chosen[at].1);
            let now = free_of(class).iter().zip(&kind.chunk);
            free.iter_mut().zip(now).for_each(|(free, (f, c))| *free = f - c * taken);
            next.push(Reverse(Choice { score: scores.score(&free), machine, class, at: Some(at) }));
        }
    }
    Some(chosen)
}

/// The same for first fit: the machines in their order, as many chunks as fit on each.
fn choose_first<'f, 'm, 'l>(
    kind: &Kind,
    fitting: impl Iterator<Item = u32>,
    free_of: impl Fn(u32) -> &'f [u64],
    members_of: impl Fn(u32) -> &'m MachineSet,
    later: impl Fn(u32) -> Option<&'l [u64]>,
) -> Option<Vec<(u32, u32)>> {
    let first_of = |class: u32| {
        let on_each = kind.chunks_on(free_of(class));
        members_of(class).next(0).map(|machine| Reverse((machine, class, on_each)))
    };
    let mut next: BinaryHeap<Reverse<(u32, u32, u128)>> = fitting.filter_map(first_of).collect();
    let (mut chosen, mut left) = (Vec::new(), kind.full_chunks());
    while left > 0 {
        let mut first = next.peek_mut()?;
        let Reverse((machine, class, on_each)) = *first;
        let later = later(machine).map_or(u128::MAX, |free| kind.chunks_on(free));
        let chunks = on_each.min(later).min(u128::from(left)) as u32;
        if chunks > 0 {
            chosen.push((machine, chunks));
            left -= chunks;
        }
        match members_of(class).next(machine + 1) {
            Some(machine) => *first = Reverse((machine, class, on_each)),
            None => drop(PeekMut::pop(first)),
        }
    }
    Some(chosen)
}
