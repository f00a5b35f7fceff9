//! Attributes overuse to the parties that waited meanwhile.
//!
//! At each instant the overuse of holder h is attributed to victim v in proportion: `D_v O_h / max(D, O)`, with D and O
//! the sums of unmet claims and of overuse. Between changes of v's claim and h's overuse only the common factor
//! `1 / max(D, O)` varies, so its integral is kept per resource, and a pair is updated only when one of the two changes.

use super::fixed_point::FixedPoint;
use super::{MAX_NAMED_HOLDERS, OverusePair};
use crate::user_set::UserSet;

/// The unmet claim and overuse of one party on one resource, in fixed-point units.
#[derive(Clone, Copy, Debug, Default)]
struct Balance {
    unmet: u64,
    over: u64,
    /// The values of [`Totals::per_unit`] up to which the party's pairs are settled, as a victim and as a holder.
    settled_as_victim: u128,
    settled_as_holder: u128,
}

/// The sums over all parties of one resource.
#[derive(Debug)]
struct Totals {
    format: FixedPoint,
    unmet: u128,
    over: u128,
    /// The parties with an unmet claim, and those with overuse.
    victims: UserSet,
    holders: UserSet,
    /// Integral of 2^64 / max(unmet, over) while both are positive; an integer, so that its differences are exact.
    per_unit: u128,
}

/// The overuse of each holder while each victim waited, integrated over time.
#[derive(Debug)]
pub(super) struct OveruseAttribution {
    width: usize,
    totals: Vec<Totals>,
    /// As `[party][resource]`.
    balances: Vec<Balance>,
    /// For each victim the overuse by `[column of the holder][resource]`, in fixed-point units times nanoseconds.
    rows: Vec<Vec<f64>>,
    rows_at_week_start: Vec<Vec<f64>>,
    /// The parties with overuse at any time so far, in order of first overuse, and each party's column among them.
    holders: Vec<u32>,
    column: Vec<u32>,
}

impl OveruseAttribution {
    /// Creates an attribution in which no party has an unmet claim or overuse; `formats` has one entry per resource.
    pub(super) fn new(parties: usize, formats: &[FixedPoint]) -> OveruseAttribution {
        let totals = |format: &FixedPoint| Totals {
            format: *format,
            unmet: 0,
            over: 0,
            victims: UserSet::new(parties),
            holders: UserSet::new(parties),
            per_unit: 0,
        };
        OveruseAttribution {
            width: formats.len(),
            totals: formats.iter().map(totals).collect(),
            balances: vec![Balance::default(); parties * formats.len()],
            rows: vec![Vec::new(); parties],
            rows_at_week_start: vec![Vec::new(); parties],
            holders: Vec::new(),
            column: vec![u32::MAX; parties],
        }
    }

    /// Returns the current unmet claim and overuse of a party.
    pub(super) fn balance(&self, party: usize, r: usize) -> (u64, u64) {
        let balance = &self.balances[party * self.width + r];
        (balance.unmet, balance.over)
    }

    /// Advances the time by `length` nanoseconds (at most 2^62) with the current balances.
    pub(super) fn advance_time(&mut self, length: u128) {
        for totals in self.totals.iter_mut().filter(|t| t.unmet > 0 && t.over > 0) {
            totals.per_unit += (length << 64) / totals.unmet.max(totals.over);
        }
    }

    /// Sets the current unmet claim and overuse of a party.
    pub(super) fn set_balance(&mut self, party: usize, r: usize, (unmet, over): (u64, u64)) {
        let at = party * self.width + r;
        let before = self.balances[at];
        if unmet != before.unmet {
            self.settle_victim(party, r);
            let totals = &mut self.totals[r];
            totals.unmet = totals.unmet - u128::from(before.unmet) + u128::from(unmet);
            totals.victims.set(party as u32, unmet > 0);
            self.balances[at].unmet = unmet;
        }
        if over != before.over {
            self.settle_holder(party, r);
            if self.column[party] == u32::MAX {
                self.column[party] = self.holders.len() as u32;
                self.holders.push(party as u32);
            }
            let totals = &mut self.totals[r];
            totals.over = totals.over - u128::from(before.over) + u128::from(over);
            totals.holders.set(party as u32, over > 0);
            self.balances[at].over = over;
        }
    }

    /// Adds the overuse of all holders since the victim's pairs were last settled.
    pub(super) fn settle_victim(&mut self, victim: usize, r: usize) {
        let totals = &self.totals[r];
        let own = &self.balances[victim * self.width + r];
        let row = &mut self.rows[victim];
        if own.unmet > 0 && own.settled_as_victim < totals.per_unit {
            row.resize(self.holders.len() * self.width, 0.0);
            for &holder in totals.holders.members() {
                let other = &self.balances[holder as usize * self.width + r];
                let per_unit = totals.per_unit - own.settled_as_victim.max(other.settled_as_holder);
                row[self.column[holder as usize] as usize * self.width + r] +=
                    attributed(own.unmet, other.over, per_unit);
            }
        }
        self.balances[victim * self.width + r].settled_as_victim = totals.per_unit;
    }

    /// Adds the overuse of one holder to all victims since the holder's pairs were last settled.
    fn settle_holder(&mut self, holder: usize, r: usize) {
        let totals = &self.totals[r];
        let own = self.balances[holder * self.width + r];
        if own.over > 0 && own.settled_as_holder < totals.per_unit {
            let at = self.column[holder] as usize * self.width + r;
            for &victim in totals.victims.members() {
                let other = &self.balances[victim as usize * self.width + r];
                let per_unit = totals.per_unit - own.settled_as_holder.max(other.settled_as_victim);
                let row = &mut self.rows[victim as usize];
                row.resize(row.len().max(self.holders.len() * self.width), 0.0);
                row[at] += attributed(other.unmet, own.over, per_unit);
            }
        }
        self.balances[holder * self.width + r].settled_as_holder = totals.per_unit;
    }

    /// Returns the settled overuse by holder's column while `victim` waited, a baseline for
    /// [`holders_since`](Self::holders_since).
    pub(super) fn snapshot(&self, victim: usize, r: usize) -> Vec<f64> {
        self.rows[victim].iter().skip(r).step_by(self.width).copied().collect()
    }

    /// Returns the holders with the largest overuse since a snapshot.
    pub(super) fn holders_since(&self, victim: usize, r: usize, snapshot: &[f64]) -> Vec<(usize, f64)> {
        let row = self.rows[victim].iter().skip(r).step_by(self.width);
        let before = snapshot.iter().copied().chain(std::iter::repeat(0.0));
        self.largest(row.zip(before).map(|(now, before)| now - before), r)
    }

    /// Returns the holders with the largest overuse since [`start_week`](Self::start_week).
    pub(super) fn holders_of_week(&self, victim: usize, r: usize) -> Vec<(usize, f64)> {
        let before = self.rows_at_week_start[victim].iter().copied().chain(std::iter::repeat(0.0));
        let week = self.rows[victim].iter().zip(before).map(|(now, before)| now - before);
        self.largest(week.skip(r).step_by(self.width), r)
    }

    /// Starts a week.
    pub(super) fn start_week(&mut self) {
        for (before, row) in self.rows_at_week_start.iter_mut().zip(&self.rows) {
            before.clone_from(row);
        }
    }

    /// Returns all pairs with overuse, in steps times nanoseconds, by victim, then by holder. All victims must be
    /// settled.
    pub(super) fn pairs(&self) -> Vec<OverusePair> {
        let units: Vec<f64> = self.totals.iter().map(|totals| totals.format.unit()).collect();
        let mut pairs = Vec::new();
        for (victim, row) in self.rows.iter().enumerate() {
            for (over, &holder) in row.chunks_exact(self.width).zip(&self.holders) {
                if over.iter().any(|x| *x > 0.0) {
                    let over = over.iter().zip(&units).map(|(x, unit)| x * unit).collect();
                    pairs.push(OverusePair { victim, holder: holder as usize, over });
                }
            }
        }
        pairs.sort_by_key(|pair| (pair.victim, pair.holder));
        pairs
    }

    /// Returns the [`MAX_NAMED_HOLDERS`] largest amounts by column with their holders, in steps times nanoseconds.
    fn largest(&self, over: impl Iterator<Item = f64>, r: usize) -> Vec<(usize, f64)> {
        let unit = self.totals[r].format.unit();
        let by_holder = over.enumerate().map(|(column, x)| (self.holders[column] as usize, x * unit));
        let mut largest: Vec<(usize, f64)> = by_holder.filter(|(_, x)| *x > 0.0).collect();
        largest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        largest.truncate(MAX_NAMED_HOLDERS);
        largest
    }
}

/// Returns the overuse that is attributed to a victim, given the integral of 2^64 / max(unmet, over).
fn attributed(unmet: u64, over: u64, per_unit: u128) -> f64 {
    unmet as f64 * (over as f64 * (per_unit as f64 * 2f64.powi(-64)))
}
