//! What jobs that end early, and reservations that move, have released of a plan.

use super::kind::Kind;

/// Releases that are kept; a job that has not been asked about so many looks at every start.
const KEPT: usize = 1 << 14;

#[derive(Clone, Copy, Debug)]
struct Times {
    from: u64,
    to: u64,
    machines: u32,
    chunks: u64,
}

/// The last releases, numbered in their order.
#[derive(Clone, Debug)]
pub(super) struct ReleaseLog {
    width: usize,
    /// The number of the first release that is kept.
    first: u64,
    releases: Vec<Times>,
    /// What a chunk holds, release by release.
    amounts: Vec<u64>,
    /// By number, the releases after which none is of capacity from so early on: when that is.
    earliest: Vec<(u64, u64)>,
    /// The same of capacity until so late.
    latest: Vec<(u64, u64)>,
}

/// Chunks of one size that are no longer taken throughout a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release<'a> {
    pub(super) from: u64,
    pub(super) to: u64,
    machines: u32,
    chunks: u64,
    amounts: &'a [u64],
}

impl Release<'_> {
    /// How many more chunks of a kind of job fit at most.
    ///
    /// Where k chunks of an amount a become free of a resource, of which the kind's chunk takes c, k a / c more fit if c
    /// divides a, and else at most one a machine beyond that; of several resources no more than of the one with most.
    pub(super) fn chunks_of(self, kind: &Kind) -> u64 {
        let of_resource = |(amount, chunk): (&u64, &u64)| match (*amount, *chunk) {
            (_, 0) | (0, _) => 0,
            (amount, chunk) if amount % chunk == 0 => self.chunks.saturating_mul(amount / chunk),
            (amount, chunk) => {
                let more = u128::from(self.chunks) * u128::from(amount) / u128::from(chunk);
                u64::try_from(more).unwrap_or(u64::MAX).saturating_add(u64::from(self.machines))
            }
        };
        self.amounts.iter().zip(&kind.chunk).map(of_resource).max().unwrap_or(0)
    }
}

impl ReleaseLog {
    pub(super) fn new(width: usize) -> ReleaseLog {
        ReleaseLog {
            width,
            first: 0,
            releases: Vec::new(),
            amounts: Vec::new(),
            earliest: Vec::new(),
            latest: Vec::new(),
        }
    }

    /// The number of the next release.
    pub(super) fn next(&self) -> u64 {
        self.first + self.releases.len() as u64
    }

    /// Notes that chunks of one size are no longer taken on so many machines.
    pub(super) fn push(&mut self, chunk: &[u64], machines: u32, chunks: u64, from: u64, to: u64) {
        if chunks == 0 || from >= to {
            return;
        }
        if self.releases.len() == 2 * KEPT {
            self.releases.drain(..KEPT);
            self.amounts.drain(..KEPT * self.width);
            self.first += KEPT as u64;
            let is_kept = |release: &(u64, u64)| release.0 >= self.first;
            self.earliest.retain(is_kept);
            self.latest.retain(is_kept);
        }
        let number = self.next();
        while self.earliest.pop_if(|last| last.1 >= from).is_some() {}
        self.earliest.push((number, from));
        while self.latest.pop_if(|last| last.1 <= to).is_some() {}
        self.latest.push((number, to));
        self.releases.push(Times { from, to, machines, chunks });
        self.amounts.extend_from_slice(chunk);
    }

    /// The time from the first instant to the last of which capacity was released, in the releases from a number on; `None` if there
    /// are none. O(log n), where n releases are kept.
    pub(super) fn span_since(&self, number: u64) -> Option<(u64, u64)> {
        let first = |of: &[(u64, u64)]| of.get(of.partition_point(|release| release.0 < number)).map(|found| found.1);
        Some((first(&self.earliest)?, first(&self.latest)?))
    }

    /// The releases from a number on; `None` if the first of them is no longer kept.
    pub(super) fn since(&self, number: u64) -> Option<impl ExactSizeIterator<Item = Release<'_>>> {
        let at = number.checked_sub(self.first)? as usize;
        let amounts = self.amounts[at * self.width..].chunks_exact(self.width);
        Some(self.releases[at..].iter().zip(amounts).map(|(&Times { from, to, machines, chunks }, amounts)| Release {
            from,
            to,
            machines,
            chunks,
            amounts,
        }))
    }
}
