//! The first start at which all equal chunks of a job fit, among the profiles of a site's machines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::availability_profile::Profile;

/// Machines with one profile, and how many chunks fit on all of them at the start that was looked at last.
struct Part<'a> {
    profile: &'a Profile,
    machines: u32,
    chunks: u128,
}

/// How many chunks of one size fit throughout a time, from one start to the next.
///
/// The number changes with the start only where a step of a profile begins to matter or ceases to, so from one start to
/// the next few profiles are looked at.
pub(super) struct StartSearch<'a> {
    chunk: &'a [u64],
    length: u64,
    parts: Vec<Part<'a>>,
    /// Before which start as many chunks fit on each part.
    until: BinaryHeap<Reverse<(u64, u32)>>,
    together: u128,
}

impl<'a> StartSearch<'a> {
    /// For chunks that are there for `length` from a start on, on machines with these profiles, and how many have each.
    pub(super) fn new(
        start: u64,
        length: u64,
        chunk: &'a [u64],
        profiles: impl Iterator<Item = (&'a Profile, u32)>,
    ) -> StartSearch<'a> {
        let (mut parts, mut all_until, mut together) = (Vec::new(), Vec::new(), 0);
        for (number, (profile, machines)) in (0..).zip(profiles) {
            let (chunks, until) = profile.copies(start, length, chunk);
            let chunks = chunks * u128::from(machines);
            together += chunks;
            parts.push(Part { profile, machines, chunks });
            all_until.push(Reverse((until, number)));
        }
        StartSearch { chunk, length, parts, until: BinaryHeap::from(all_until), together }
    }

    /// How many chunks fit on all machines together.
    pub(super) fn chunks(&self) -> u128 {
        self.together
    }

    /// The first start at which that may change; `u64::MAX` if there is none.
    pub(super) fn next_change(&self) -> u64 {
        self.until.peek().map_or(u64::MAX, |next| next.0.0)
    }

    /// Goes on to a later start.
    pub(super) fn advance(&mut self, start: u64) {
        while let Some(mut next) = self.until.peek_mut().filter(|next| next.0.0 <= start) {
            let number = next.0.1;
            let part = &mut self.parts[number as usize];
            let (chunks, until) = part.profile.copies(start, self.length, self.chunk);
            self.together -= part.chunks;
            part.chunks = chunks * u128::from(part.machines);
            self.together += part.chunks;
            *next = Reverse((until, number));
        }
    }
}
