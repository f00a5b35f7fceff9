//! How many chunks of a waiting job are missing at starts before the one that is reserved for it.

use super::kind::Kind;
use super::release_log::ReleaseLog;

/// A job of one chunk does not look at each of more releases than these.
const MANY_RELEASES: usize = if cfg!(debug_assertions) { 2 } else { 32 };

/// Ranges that are kept; starts beyond them share the last one.
const RANGES: usize = 24;

/// Starts at each of which so many chunks or more were missing, and what the job may have gained there since.
#[derive(Clone, Copy, Debug)]
struct Range {
    /// The end of the range; it begins where the one before ends.
    until: u64,
    missing: u64,
    gained: u64,
    /// The releases of which it gained are of capacity from then on,
    from: u64,
    /// before then.
    to: u64,
}

impl Range {
    fn new(until: u64, missing: u64) -> Range {
        // Where nothing is missing or known, every start is looked at.
        let (from, to) = if missing == 0 { (0, u64::MAX) } else { (u64::MAX, 0) };
        Range { until, missing, gained: 0, from, to }
    }

    /// Whether nothing was gained in two ranges, and about as much is missing.
    fn is_like(self, other: Range) -> bool {
        let size = |range: Range| range.missing.checked_ilog2();
        (self.gained, other.gained) == (0, 0) && size(self) == size(other)
    }
}

/// Why a job does not start earlier than reserved: a lower bound on the missing chunks over all starts before.
///
/// A job looks for an earlier start only at starts at which as much was released since as was missing: capacity that is
/// released soon helps no start that waits for more of it later, and the other way round.
#[derive(Clone, Debug)]
pub(super) struct Shortfall {
    /// The number of the first release that has not been considered.
    seen: u64,
    ranges: Vec<Range>,
}

impl Shortfall {
    /// Nothing is known of starts after those that will be [noted](Shortfall::note).
    pub(super) fn new(log: &ReleaseLog) -> Shortfall {
        Shortfall { seen: log.next(), ranges: Vec::new() }
    }

    /// So many are missing at every start until then; 0 if that is unknown.
    pub(super) fn until(until: u64, missing: u64, log: &ReleaseLog) -> Shortfall {
        Shortfall { seen: log.next(), ranges: vec![Range::new(until, missing)] }
    }

    /// Notes that so many chunks are missing at the starts from the last one noted until then.
    pub(super) fn note(&mut self, until: u64, missing: u64) {
        self.push(Range::new(until, missing));
    }

    /// Leaves out what has been released until now.
    pub(super) fn skip_to_end(&mut self, log: &ReleaseLog) {
        self.seen = log.next();
    }

    fn push(&mut self, range: Range) {
        let is_full = self.ranges.len() == RANGES;
        match self.ranges.last_mut() {
            // Of ranges that differ little one is made.
            Some(last) if last.is_like(range) => {
                (last.until, last.missing) = (range.until, last.missing.min(range.missing));
            }
            Some(last) if is_full => {
                *last = Range {
                    until: range.until,
                    missing: last.missing.min(range.missing),
                    gained: last.gained.max(range.gained),
                    from: last.from.min(range.from),
                    to: last.to.max(range.to),
                }
            }
            _ => self.ranges.push(range),
        }
    }

    /// Considers what has been released since the last time, for a job of a kind that takes so long at most. Returns
    /// whether there may be an earlier start.
    pub(super) fn consider(&mut self, log: &ReleaseLog, kind: &Kind, length: u64, now: u64) -> bool {
        let Some(releases) = log.since(self.seen) else {
            let until = self.ranges.last().map_or(now, |last| last.until);
            *self = Shortfall::until(until, 0, log);
            return true;
        };
        // Any of many releases may be of the only chunk that is missing.
        let span = if kind.copies == 1 && releases.len() > MANY_RELEASES { log.span_since(self.seen) } else { None };
        match span {
            Some((from, to)) => self.gain(from, to, length, now, || 1),
            None => releases
                .for_each(|release| self.gain(release.from, release.to, length, now, || release.chunks_of(kind))),
        }
        self.seen = log.next();
        self.ranges.iter().any(|range| range.until > now && range.gained >= range.missing)
    }

    /// Notes that `more` chunks fit throughout a time.
    fn gain(&mut self, from: u64, to: u64, length: u64, now: u64, more: impl Fn() -> u64) {
        // The first start at which the job still runs then.
        let first = (from + 1).saturating_sub(length.max(1)).max(now);
        let begins = self.ranges.partition_point(|range| range.until <= first);
        let mut begin = if begins == 0 { 0 } else { self.ranges[begins - 1].until };
        let mut gained = None;
        for range in &mut self.ranges[begins..] {
            if to <= begin {
                break;
            }
            begin = range.until;
            let gained = *gained.get_or_insert_with(&more);
            if gained > 0 {
                range.gained = range.gained.saturating_add(gained);
                (range.from, range.to) = (range.from.min(from), range.to.max(to));
            }
        }
    }

    /// The starts from `now` on that may have become possible, for a job that takes so long at most: calls `search` with each
    /// range of them until it finds one. It notes in the new shortfall what is missing in its range.
    pub(super) fn search<T>(
        &self,
        length: u64,
        now: u64,
        new: &mut Shortfall,
        mut search: impl FnMut(u64, u64, &mut Shortfall) -> Option<T>,
    ) -> Option<T> {
        let mut begin = now;
        for range in self.ranges.iter().filter(|range| range.until > now) {
            if range.gained < range.missing {
                new.push(*range);
                begin = range.until;
                continue;
            }
            let from = (range.from.saturating_add(1)).saturating_sub(length.max(1)).clamp(begin, range.until);
            let to = range.to.clamp(from, range.until);
            if from > begin {
                new.note(from, range.missing);
            }
            if from < to
                && let Some(found) = search(from, to, new)
            {
                return Some(found);
            }
            if to < range.until {
                new.note(range.until, range.missing);
            }
            begin = range.until;
        }
        None
    }

    /// The starts between the first and the last that may have become possible: the first, and the first that is too late.
    pub(super) fn hull(&self, length: u64, now: u64) -> (u64, u64) {
        let mut new = Shortfall { seen: self.seen, ranges: Vec::new() };
        let mut hull = (u64::MAX, 0);
        self.search(length, now, &mut new, |from, to, _| {
            hull = (hull.0.min(from), to);
            None::<()>
        });
        hull
    }
}
