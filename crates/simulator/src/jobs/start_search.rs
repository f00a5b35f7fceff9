//! The first start at which all equal chunks of a job fit, among the profiles of a site's machines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::availability_profile::Profile;
use super::kind::EqualChunks;

/// Machines with one profile, and how many chunks fit on each at the start that was looked at last.
struct Part<'a> {
    profile: &'a Profile,
    machines: u32,
    chunks: u64,
}

/// How many chunks of one size fit throughout a time, from one start to the next.
///
/// The number changes with the start only where a step of a profile begins to matter or ceases to, so from one start to
/// the next few profiles are looked at. When that is takes longer to find than the number itself, and many searches end
/// with the first start, so it is found for the second.
pub(super) struct StartSearch<'a> {
    chunks: EqualChunks<'a>,
    start: u64,
    length: u64,
    parts: Vec<Part<'a>>,
    /// No start from then on is looked at.
    limit: u64,
    /// Before which start as many chunks fit on a part, unless that is the limit; `None` at the first start.
    until: Option<BinaryHeap<Reverse<(u64, u32)>>>,
    together: u128,
}

impl<'a> StartSearch<'a> {
    /// For starts before `limit` of chunks that are there for `length`, on machines with these profiles, and how many have each.
    pub(super) fn new(
        start: u64,
        limit: u64,
        length: u64,
        chunks: EqualChunks<'a>,
        profiles: impl Iterator<Item = (&'a Profile, u32)>,
    ) -> StartSearch<'a> {
        let mut together = 0;
        let part = |(profile, machines): (&'a Profile, u32)| {
            let fitting = profile.copies_at(start, length, chunks);
            together += u128::from(fitting) * u128::from(machines);
            Part { profile, machines, chunks: fitting }
        };
        let parts = profiles.map(part).collect();
        StartSearch { chunks, start, length, parts, limit, until: None, together }
    }

    /// How many chunks fit on all machines together.
    pub(super) fn chunks(&self) -> u128 {
        self.together
    }

    /// The first start at which that may change, or the limit.
    pub(super) fn next_change(&mut self) -> u64 {
        let until = self.until.get_or_insert_with(|| {
            let until = |part: &Part<'_>| {
                part.profile.copies_until(self.start, self.length, self.chunks, part.chunks, self.limit)
            };
            let all = (0..).zip(&self.parts);
            all.filter_map(|(number, part)| until(part).map(|until| Reverse((until, number)))).collect()
        });
        until.peek().map_or(self.limit, |next| next.0.0)
    }

    /// Goes on to a later start.
    pub(super) fn advance(&mut self, start: u64) {
        self.next_change();
        self.start = start;
        let Some(until) = &mut self.until else { return };
        while let Some(mut next) = until.peek_mut().filter(|next| next.0.0 <= start) {
            let number = next.0.1;
            let part = &mut self.parts[number as usize];
            self.together -= u128::from(part.chunks) * u128::from(part.machines);
            part.chunks = part.profile.copies_at(start, self.length, self.chunks);
            self.together += u128::from(part.chunks) * u128::from(part.machines);
            match part.profile.copies_until(start, self.length, self.chunks, part.chunks, self.limit) {
                Some(until) => *next = Reverse((until, number)),
                None => {
                    PeekMut::pop(next);
                }
            }
        }
    }
}
