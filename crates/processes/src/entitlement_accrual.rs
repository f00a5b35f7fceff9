//! Accrual of entitlement on each resource, in a sliding window and in total.
//!
//! On a resource with `m` servers whose active clients have weights that sum to `P`, client i accrues entitlement at
//! the rate m p_i / P. Let the resource have a virtual time V that grows by m / P per nanosecond: while i is active, it
//! accrues p_i times the growth of V. The accrual of a window is then one multiplication for a client that was active
//! in all of it, and only arrivals and departures cost more.
//!
//! V is in fixed point and exact except for the rounding of m / P; nothing is accumulated in floating point.

use std::collections::VecDeque;

/// Fractional bits: V counts 2^-70 ns of a client of weight 1. The length of a run times its servers is at most 2^56 ns
/// and a weight is at most the sum of weights, so products of a weight and a difference of V stay below 2^126.
const FRACTION: u32 = 70;
/// Half a nanosecond. Values slightly below the half (2^-12 ns, more than all rounding here) are rounded up too, so
/// that a sum that is exactly a half is rounded alike in whatever order it was added up.
const HALF: u128 = (1 << (FRACTION - 1)) + (1 << (FRACTION - 12));
/// The same for `f64`.
const HALF_F64: f64 = 0.5 + 1.0 / 4096.0;
const NEVER: u64 = u64::MAX;

/// Rounds to the nearest nanosecond; infinity becomes `i64::MAX`.
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

/// Accrual on one resource, or on all of them as one.
struct Column {
    servers: u64,
    /// P, the sum of the weights of active clients.
    active: u64,
    /// V over time, from the window's edge on: piecewise linear between points.
    history: VecDeque<Point>,
    /// Ends of the grace periods of clients that left: in order, since all have the same length.
    expiries: VecDeque<(u64, u32)>,
    members: Vec<Member>,
    /// Clients that were active in part of the window.
    partial: Vec<u32>,
    /// Addition to V's growth over the window that gives the growth during which the client was active: 0 if it was
    /// active throughout, infinity if it was not active and has no claim.
    correction: Vec<f64>,
    synced: u64,
}

#[derive(Clone, Copy)]
struct Point {
    at: u64,
    v: u128,
    /// Growth of V per nanosecond from here on.
    rate: u128,
}

#[derive(Clone, Default)]
struct Member {
    /// Number of its requests here now.
    present: u32,
    active: bool,
    is_partial: bool,
    /// End of its grace period; `NEVER` while it has requests here.
    expires: u64,
    /// V when it became active.
    since: u128,
    /// Growth of V during all earlier periods of activity.
    earlier: u128,
    /// Those of them that reach into the window: V at start and end.
    closed: VecDeque<(u128, u128)>,
    /// Sum of their lengths.
    closed_growth: u128,
}

impl EntitlementAccrual {
    /// Creates columns with these numbers of servers, for clients with these weights.
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

    /// Records the arrival of a client's request in the column.
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

    /// Records the departure of a client's request from the column.
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

    /// Ends the client's activity, without a grace period.
    pub(crate) fn end(&mut self, now: u64, client: usize) {
        for column in &mut self.columns {
            column.expire(now, &self.weights);
            if column.members[client].active {
                column.close(now, client, &self.weights, self.window);
            }
        }
    }

    /// Moves a column's window to `now`, and returns the growth of V over it; [`corrections`](Self::corrections) are
    /// then valid.
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
            // Only the first can start before the edge.
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

    /// Synchronizes a column that has not been for longer than a window, so that it keeps no more history than
    /// necessary.
    pub(crate) fn keep_up(&mut self, now: u64, column: usize) {
        if now - self.columns[column].synced > self.window {
            self.sync(now, column);
        }
    }

    /// Returns, after [`sync`](Self::sync), for each client what to add to the growth before multiplying by the weight.
    pub(crate) fn corrections(&self, column: usize) -> &[f64] {
        &self.columns[column].correction
    }

    /// Returns V of a column now.
    pub(crate) fn v(&mut self, now: u64, column: usize) -> u128 {
        self.columns[column].v_at(now, &self.weights)
    }

    /// Returns the total accrual of the client in the column, to the nearest nanosecond, if V is `v` now.
    #[inline]
    pub(crate) fn ever(&self, v: u128, client: usize, column: usize) -> i64 {
        let member = &self.columns[column].members[client];
        let part = member.earlier + if member.active { v - member.since } else { 0 };
        ((part * u128::from(self.weights[client]) + HALF) >> FRACTION) as i64
    }
}

/// The unit of V in nanoseconds: a power of two, so that multiplying by it rounds nothing.
const UNIT: f64 = 1.0 / (1u128 << FRACTION) as f64;

/// Converts a growth of V to nanoseconds of weight 1. Faster than the conversion of u128, and as accurate.
#[inline]
fn nanos(growth: u128) -> f64 {
    const HIGH: f64 = (1u128 << 64) as f64 * UNIT;
    (growth >> 64) as u64 as f64 * HIGH + growth as u64 as f64 * UNIT
}

impl Column {
    /// Returns V now, after ending the activity of clients whose grace period is over.
    #[inline]
    fn v_at(&mut self, now: u64, weights: &[u64]) -> u128 {
        self.expire(now, weights);
        self.last(now)
    }

    #[inline]
    fn last(&self, now: u64) -> u128 {
        self.history.back().map_or(0, |p| p.v + p.rate * u128::from(now - p.at))
    }

    /// Returns V at the window's edge, and discards the history before it.
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
            // A client that returned in time, or left again later, is not due.
            let member = &self.members[client as usize];
            if member.active && member.expires == at {
                self.close(at, client as usize, weights, 0);
            }
        }
    }

    /// Ends the client's activity. Expiries are handled in order of time, so `at` is never before the last point.
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

    /// Changes P; returns V. With a window, discards the history before it.
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

    /// The accrual of all clients in a window is the time in it during which any client was active (times the servers),
    /// and each client's is between 0 and that.
    #[test]
    fn total_accrual_is_the_time_with_any_active_client() {
        const CLIENTS: usize = 4;
        for seed in 0..200 {
            let mut stream = Stream::new(seed, "accrual", 0);
            let weights: Vec<u64> = (0..CLIENTS).map(|_| 1 + stream.below(9)).collect();
            let (grace, window, servers) = (stream.below(40), 1 + stream.below(300), 1 + stream.below(3));
            let mut accrual = EntitlementAccrual::new(&weights, &[servers], grace, window);
            let mut present = [0u32; CLIENTS];
            let mut left = [None::<u64>; CLIENTS];
            let mut any_active: Vec<bool> = Vec::new();
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
                    let seen = &any_active[any_active.len().saturating_sub(window as usize)..];
                    let due = seen.iter().filter(|s| **s).count() as u64 * servers;
                    assert!((all.iter().sum::<f64>() - due as f64).abs() < 1e-6, "{seed} at {now}: {all:?} of {due}");
                    assert!(all.iter().all(|a| (-1e-9..=(window * servers) as f64 + 1e-9).contains(a)), "{all:?}");
                }
                // From now to the next instant.
                let is_there = |c: usize| present[c] > 0 || left[c].is_some_and(|t| now < t + grace);
                any_active.push((0..CLIENTS).any(is_there));
            }
        }
    }

    #[test]
    fn halves_are_rounded_up_in_any_order_of_addition() {
        assert_eq!([0.5, -0.5, 1.49, -1.51, 0.4999999].map(round), [1, 0, 1, -2, 1]);
        assert_eq!(round(f64::INFINITY), i64::MAX);
    }
}
