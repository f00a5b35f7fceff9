//! What clients were entitled to: entitlement accrued on each resource, in a sliding window and in all.
//!
//! On a resource with `m` servers whose active clients have weights that sum to `P`, client i accrues at
//! the rate m p_i / P. So let the resource have a virtual time V that grows by m / P a nanosecond: while
//! i is active, it accrues p_i times the growth of V. A window's accrual is then one multiplication for a
//! client that was active in all of it, and only comings and goings cost more.
//!
//! V is in fixed point and exact but for the rounding of m / P; nothing is ever accumulated in floats.

use std::collections::VecDeque;

/// V counts 2^-70 ns of a client of weight 1. A run times its servers is at most 2^56 ns and a weight is at
/// most the sum of weights, so products of a weight and a difference of V stay below 2^126.
const FRACTION: u32 = 70;
/// One nanosecond and a half of it. What lies a hair below the half (2^-12 ns, more than all rounding
/// here) goes up too, so that a sum that is exactly a half is rounded alike however it was added up.
const HALF: u128 = (1 << (FRACTION - 1)) + (1 << (FRACTION - 12));
/// The same for `f64`.
const HALF_F64: f64 = 0.5 + 1.0 / 4096.0;
const NEVER: u64 = u64::MAX;

/// To the nearest nanosecond; infinity becomes `i64::MAX`.
#[inline]
pub(crate) fn round(nanos: f64) -> i64 {
    let x = nanos + HALF_F64;
    let cut = x as i64;
    cut - i64::from(cut as f64 > x)
}

/// Entitlement on several resources.
pub(crate) struct EntitlementAccrual {
    weights: Vec<u64>,
    grace: u64,
    window: u64,
    columns: Vec<Column>,
}

/// One resource (or all of them as one).
struct Column {
    servers: u64,
    /// P.
    active: u64,
    /// V over time, from the window's edge on: straight lines between points.
    history: VecDeque<Point>,
    /// When the grace of those who left ends: in order, since all have the same.
    expiries: VecDeque<(u64, u32)>,
    members: Vec<Member>,
    /// Those whose part in the window is neither all of it nor nothing.
    partial: Vec<u32>,
    /// What to add to V's growth over the window to get the part in which the client was active: 0 for all
    /// of it, infinity for none and no claim.
    correction: Vec<f64>,
    synced: u64,
}

#[derive(Clone, Copy)]
struct Point {
    at: u64,
    v: u128,
    /// V's growth a nanosecond from here on.
    rate: u128,
}

#[derive(Clone, Default)]
struct Member {
    /// Requests here now.
    present: u32,
    active: bool,
    is_partial: bool,
    /// When its grace ends; `NEVER` while it is here.
    expires: u64,
    /// V when it became active.
    since: u128,
    /// V's growth in all earlier times of activity.
    earlier: u128,
    /// Those of them that are still in the window: V at begin and end.
    closed: VecDeque<(u128, u128)>,
    /// The sum of their lengths.
    closed_growth: u128,
}

impl EntitlementAccrual {
    /// Columns with these numbers of servers, for clients with these weights.
    pub(crate) fn new(weights: &[u64], servers: &[u64], grace: u64, window: u64) -> EntitlementAccrual {
        let column = |servers: &u64| Column {
            servers: *servers,
            active: 0,
            history: VecDeque::from([Point { at: 0, v: 0, rate: 0 }]),
            expiries: VecDeque::new(),
            members: vec![Member { expires: NEVER, ..Member::default() }; weights.len()],
            partial: Vec::new(),
            correction: vec![f64::INFINITY; weights.len()],
            synced: 0,
        };
        EntitlementAccrual { weights: weights.to_vec(), grace, window, columns: servers.iter().map(column).collect() }
    }

    /// A request of the client came to the column.
    #[inline]
    pub(crate) fn enter(&mut self, now: u64, client: usize, column: usize) {
        let column = &mut self.columns[column];
        let member = &mut column.members[client];
        member.present += 1;
        if member.present > 1 {
            return;
        }
        if member.active && member.expires > now {
            member.expires = NEVER;
            return;
        }
        column.expire(now, &self.weights);
        let v = column.set_active(now, column.active + self.weights[client], self.window);
        let member = &mut column.members[client];
        (member.active, member.since, member.expires) = (true, v, NEVER);
        column.note_partial(client);
    }

    /// A request of the client left the column.
    #[inline]
    pub(crate) fn leave(&mut self, now: u64, client: usize, column: usize) {
        let column = &mut self.columns[column];
        let member = &mut column.members[client];
        member.present -= 1;
        if member.present == 0 {
            member.expires = now + self.grace;
            column.expiries.push_back((member.expires, client as u32));
        }
    }

    /// The client has ended: no grace.
    pub(crate) fn end(&mut self, now: u64, client: usize) {
        for column in &mut self.columns {
            column.expire(now, &self.weights);
            if column.members[client].active {
                column.close(now, client, &self.weights, self.window);
            }
        }
    }

    /// Brings a column's window to `now`: what [`entitled`](Self::entitled) says is then true.
    pub(crate) fn sync(&mut self, now: u64, column: usize) -> f64 {
        let column = &mut self.columns[column];
        column.synced = now;
        let v = column.v_at(now, &self.weights);
        let edge = column.edge(now.saturating_sub(self.window));
        let growth = v - edge;
        let mut kept = 0;
        for at in 0..column.partial.len() {
            let client = column.partial[at];
            let member = &mut column.members[client as usize];
            while let Some((from, to)) = member.closed.front().copied().filter(|(_, to)| *to <= edge) {
                member.closed_growth -= to - from;
                member.closed.pop_front();
            }
            // Only the first can begin before the edge.
            let before = member.closed.front().map_or(0, |(from, _)| edge.saturating_sub(*from));
            let mut part = member.closed_growth - before;
            if member.active {
                part += v - member.since.max(edge);
            }
            member.is_partial = !member.closed.is_empty() || (member.active && member.since > edge);
            let correction = match member.is_partial {
                true => -nanos(growth - part),
                false if member.active => 0.0,
                false => f64::INFINITY,
            };
            column.correction[client as usize] = correction;
            if member.is_partial {
                column.partial[kept] = client;
                kept += 1;
            }
        }
        column.partial.truncate(kept);
        nanos(growth)
    }

    /// Brings a column to `now` if it was not for long, so that it keeps no more than the window needs.
    pub(crate) fn keep_up(&mut self, now: u64, column: usize) {
        if now - self.columns[column].synced > self.window {
            self.sync(now, column);
        }
    }

    /// After [`sync`](Self::sync): for each client, what to add to the growth it returned before
    /// multiplying with the weight.
    pub(crate) fn corrections(&self, column: usize) -> &[f64] {
        &self.columns[column].correction
    }

    /// V of a column now.
    pub(crate) fn v(&mut self, now: u64, column: usize) -> u128 {
        self.columns[column].v_at(now, &self.weights)
    }

    /// All that the client ever accrued in the column, to the nearest nanosecond, if V is `v` now.
    #[inline]
    pub(crate) fn ever(&self, v: u128, client: usize, column: usize) -> i64 {
        let member = &self.columns[column].members[client];
        let part = member.earlier + if member.active { v - member.since } else { 0 };
        ((part * u128::from(self.weights[client]) + HALF) >> FRACTION) as i64
    }
}

/// The unit of V in nanoseconds: a power of two, so multiplying by it rounds nothing.
const UNIT: f64 = 1.0 / (1u128 << FRACTION) as f64;

/// A growth of V in nanoseconds of weight 1. Faster than the conversion of u128, and as near.
#[inline]
fn nanos(growth: u128) -> f64 {
    const HIGH: f64 = (1u128 << 64) as f64 * UNIT;
    (growth >> 64) as u64 as f64 * HIGH + growth as u64 as f64 * UNIT
}

impl Column {
    /// V now, after all who are due have stopped being active.
    #[inline]
    fn v_at(&mut self, now: u64, weights: &[u64]) -> u128 {
        self.expire(now, weights);
        self.last(now)
    }

    #[inline]
    fn last(&self, now: u64) -> u128 {
        self.history.back().map_or(0, |p| p.v + p.rate * u128::from(now - p.at))
    }

    /// V at the window's edge; forgets what lies before.
    fn edge(&mut self, edge: u64) -> u128 {
        self.forget(edge);
        self.history.front().map_or(0, |p| p.v + p.rate * u128::from(edge.saturating_sub(p.at)))
    }

    fn forget(&mut self, edge: u64) {
        while self.history.get(1).is_some_and(|p| p.at <= edge) {
            self.history.pop_front();
        }
    }

    #[inline]
    fn expire(&mut self, now: u64, weights: &[u64]) {
        while let Some((at, client)) = self.expiries.front().copied().filter(|(at, _)| *at <= now) {
            self.expiries.pop_front();
            // Who came back in time, or left again later, is not due.
            let member = &self.members[client as usize];
            if member.active && member.expires == at {
                self.close(at, client as usize, weights, 0);
            }
        }
    }

    /// The client is active no longer. Expiries are handled in order of time, so `at` is never before
    /// the last point.
    fn close(&mut self, at: u64, client: usize, weights: &[u64], window: u64) {
        let v = self.set_active(at, self.active - weights[client], window);
        let member = &mut self.members[client];
        (member.active, member.expires) = (false, NEVER);
        if v > member.since {
            member.earlier += v - member.since;
            member.closed_growth += v - member.since;
            member.closed.push_back((member.since, v));
        }
        self.note_partial(client);
    }

    /// P changes; returns V. With a window, forgets what is before it.
    fn set_active(&mut self, at: u64, active: u64, window: u64) -> u128 {
        let v = self.last(at);
        self.active = active;
        let rate = if active == 0 { 0 } else { (u128::from(self.servers) << FRACTION) / u128::from(active) };
        match self.history.back_mut() {
            Some(p) if p.at == at => p.rate = rate,
            _ => self.history.push_back(Point { at, v, rate }),
        }
        if window > 0 {
            self.forget(at.saturating_sub(window));
        }
        v
    }

    fn note_partial(&mut self, client: usize) {
        let member = &mut self.members[client];
        if !member.is_partial {
            member.is_partial = true;
            self.partial.push(client as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::random::Stream;

    /// O3 and O4: what all accrue in a window is the time in it in which anybody was active (times the
    /// servers), and nobody accrues less than nothing or more than that.
    #[test]
    fn all_that_is_accrued_is_the_time_somebody_was_there() {
        const CLIENTS: usize = 4;
        for seed in 0..200 {
            let mut stream = Stream::new(seed, "accrual", 0);
            let weights: Vec<u64> = (0..CLIENTS).map(|_| 1 + stream.below(9)).collect();
            let (grace, window, servers) = (stream.below(40), 1 + stream.below(300), 1 + stream.below(3));
            let mut accrual = EntitlementAccrual::new(&weights, &[servers], grace, window);
            let mut present = [0u32; CLIENTS];
            let mut left = [None::<u64>; CLIENTS];
            let mut somebody: Vec<bool> = Vec::new();
            for now in 0..600u64 {
                if stream.below(4) == 0 {
                    let client = stream.below(CLIENTS as u64) as usize;
                    if present[client] > 0 && stream.below(2) == 0 {
                        accrual.leave(now, client, 0);
                        present[client] -= 1;
                        left[client] = Some(now);
                    } else {
                        accrual.enter(now, client, 0);
                        present[client] += 1;
                    }
                }
                if stream.below(5) == 0 {
                    let growth = accrual.sync(now, 0);
                    let accrued = |c: usize| weights[c] as f64 * (growth + accrual.corrections(0)[c]);
                    let all: Vec<f64> = (0..CLIENTS).map(accrued).filter(|a| a.is_finite()).collect();
                    let seen = &somebody[somebody.len().saturating_sub(window as usize)..];
                    let due = seen.iter().filter(|s| **s).count() as u64 * servers;
                    assert!((all.iter().sum::<f64>() - due as f64).abs() < 1e-6, "{seed} at {now}: {all:?} of {due}");
                    assert!(all.iter().all(|a| (-1e-9..=(window * servers) as f64 + 1e-9).contains(a)), "{all:?}");
                }
                // From now to the next instant.
                let is_there = |c: usize| present[c] > 0 || left[c].is_some_and(|t| now < t + grace);
                somebody.push((0..CLIENTS).any(is_there));
            }
        }
    }

    #[test]
    fn halves_go_up_however_they_were_added() {
        assert_eq!([0.5, -0.5, 1.49, -1.51, 0.4999999].map(round), [1, 0, 1, -2, 1]);
        assert_eq!(round(f64::INFINITY), i64::MAX);
    }
}
