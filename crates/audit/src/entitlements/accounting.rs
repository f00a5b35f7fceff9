//! Integrates entitlement, demand and use of the parties over the events of a history, week by week.

use evenhand_model::{Capacity, Time, UBig};

use super::fixed_point::{FixedCapacity, FixedPoint};
use super::overuse_attribution::OveruseAttribution;
use super::parties::{ActiveShares, Parties};
use super::{Complaint, Entitlements, PartyWeek, ResourceUse, Week};
use crate::History;
use crate::events::{Event, Events};
use crate::history::NO_ROW;
use crate::user_set::UserSet;

/// The integrals of one party and resource in the current week: in steps (`unmet` and `over`: fixed-point units) times
/// nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Integrals {
    got: u128,
    wanted: u128,
    unmet: u128,
    over: u128,
}

/// The current amounts of one party and resource, in steps (`entitled`: fixed-point units).
#[derive(Clone, Copy, Debug, Default)]
struct Amounts {
    held: u64,
    waiting: u128,
    entitled: u64,
}

/// A resource with its total use.
#[derive(Debug)]
struct ResourceState {
    format: FixedPoint,
    capacity: FixedCapacity,
    /// The capacity in whole steps.
    capacity_steps: u64,
    /// The amount that all parties hold, in steps.
    held: u64,
}

/// A complaint that has not ended.
#[derive(Debug)]
struct OpenComplaint {
    from: u64,
    /// The party's unmet claim and attributed overuse at the beginning.
    unmet: u128,
    overuse: Vec<f64>,
    /// The ties that would turn all of it so far; `None` before it has lasted.
    ties: Option<Ties>,
}

/// The ties that would turn a complaint: its task, and each task of another party that was submitted at the same instant and
/// ran in its place.
#[derive(Debug)]
struct Ties {
    task: u32,
    others: Vec<u32>,
}

/// The accounting of a history up to some event.
pub(super) struct Accounting<'a> {
    history: &'a History<'a>,
    parties: &'a Parties,
    width: usize,
    events: Events<'a>,
    /// Each party's first row that has not started, submitted or not, and each row's successor of the same party.
    first: Vec<u32>,
    next: Vec<u32>,
    running_rows: Vec<u32>,
    shares: ActiveShares<'a>,
    active: UserSet,
    waiting: UserSet,
    resources: Vec<ResourceState>,
    /// As `[party][resource]`.
    amounts: Vec<Amounts>,
    week: Vec<Integrals>,
    /// Unmet claims over all weeks, for complaints.
    total_unmet: Vec<u128>,
    complaints: Vec<Option<OpenComplaint>>,
    attribution: OveruseAttribution,
    /// The time up to which each party is integrated, and whether it was active at any time of this week.
    integrated_until: Vec<u64>,
    active_this_week: Vec<bool>,
    /// The parties whose amounts changed at this event, each once.
    changed: Vec<u32>,
    is_changed: Vec<bool>,
    now: u64,
    /// The end of the audited time.
    until: u64,
    week_start: u64,
    weeks: Vec<Week>,
    ended_complaints: Vec<Complaint>,
}

impl<'a> Accounting<'a> {
    /// Creates an accounting that begins at `from` (nanoseconds).
    pub(super) fn new(
        history: &'a History<'a>,
        capacity: &Capacity,
        parties: &'a Parties,
        from: u64,
    ) -> Accounting<'a> {
        let (n, width) = (parties.len(), capacity.width());
        let (first, next) = history.rows_of_parties(n, parties.of_user());
        let max_amounts = history.max_amounts();
        let resource = |r: usize| {
            let (numerator, denominator) = capacity.exact_steps(r).clone().into_parts();
            let capacity_steps = capacity.amounts()[r].0;
            let format = FixedPoint::new(max_amounts[r].max(capacity_steps));
            let numerator = UBig::try_from(numerator).unwrap_or(UBig::ZERO);
            let capacity = FixedCapacity::new(numerator, denominator, format);
            ResourceState { format, capacity, capacity_steps, held: 0 }
        };
        let resources: Vec<ResourceState> = (0..width).map(resource).collect();
        let formats: Vec<FixedPoint> = resources.iter().map(|resource| resource.format).collect();
        Accounting {
            history,
            parties,
            width,
            events: Events::new(history),
            first,
            next,
            running_rows: vec![0; n],
            shares: ActiveShares::new(parties),
            active: UserSet::new(n),
            waiting: UserSet::new(n),
            resources,
            amounts: vec![Amounts::default(); n * width],
            week: vec![Integrals::default(); n * width],
            total_unmet: vec![0; n * width],
            complaints: (0..n * width).map(|_| None).collect(),
            attribution: OveruseAttribution::new(n, &formats),
            integrated_until: vec![from; n],
            active_this_week: vec![false; n],
            changed: Vec::new(),
            is_changed: vec![false; n],
            now: from,
            until: from,
            week_start: from,
            weeks: Vec::new(),
            ended_complaints: Vec::new(),
        }
    }

    /// Processes all events before `until`; a week ends at each of `boundaries` (nanoseconds) and at `until`.
    pub(super) fn run(mut self, boundaries: &[u64], until: Time) -> Entitlements {
        let until = until.nanos();
        self.until = until;
        let mut boundaries = boundaries.iter().copied().peekable();
        while let Some(event) = self.events.next_time() {
            let to = event.clamp(self.now, until.max(self.now));
            while let Some(week) = boundaries.next_if(|&week| week <= to) {
                self.advance_time(week);
                self.end_week();
            }
            self.advance_time(to);
            if event >= until {
                break;
            }
            self.apply_events(event);
            self.update_parties();
        }
        for party in 0..self.parties.len() {
            (0..self.width).for_each(|r| self.set_complaint(party, r, false));
        }
        if self.week_start < self.now || self.weeks.is_empty() {
            self.end_week();
        }
        self.ended_complaints.sort_by_key(|c| (c.from, c.party, c.resource));
        Entitlements { weeks: self.weeks, pairs: self.attribution.pairs(), complaints: self.ended_complaints }
    }

    /// Advances the time to `to` in the current state.
    fn advance_time(&mut self, to: u64) {
        let length = u128::from(to - self.now);
        self.now = to;
        self.attribution.advance_time(length);
    }

    /// Applies all events at `now`.
    fn apply_events(&mut self, now: u64) {
        while let Some(event) = self.events.next_at(now) {
            match event {
                Event::Finish(row) => self.hold(row, false),
                Event::Start(row) => {
                    if self.history.submit(row) < now {
                        self.wait(row, false);
                    }
                    if self.history.workload().columns().duration[row as usize].nanos() > 0 {
                        self.hold(row, true);
                    }
                }
                Event::Submit(row) if self.history.has_start(row) && self.history.start(row) > now => {
                    self.wait(row, true);
                }
                Event::Submit(_) => {}
            }
        }
        for at in 0..self.changed.len() {
            let party = self.changed[at];
            let first = &mut self.first[party as usize];
            while *first != NO_ROW && self.history.start(*first) <= now {
                *first = self.next[*first as usize];
            }
            self.waiting.set(party, *first != NO_ROW && self.history.submit(*first) <= now);
        }
    }

    fn party(&self, row: u32) -> u32 {
        self.parties.of_user()[self.history.workload().columns().user[row as usize].index()]
    }

    /// Marks a party as changed, after integrating its old state.
    fn mark_changed(&mut self, party: u32) {
        if !std::mem::replace(&mut self.is_changed[party as usize], true) {
            self.integrate(party as usize);
            self.changed.push(party);
        }
    }

    /// Adds the amounts of a row to its party's holdings, or removes them.
    fn hold(&mut self, row: u32, starts: bool) {
        let party = self.party(row);
        self.mark_changed(party);
        let count = u64::from(self.history.workload().count(row as usize));
        let own = &mut self.amounts[party as usize * self.width..][..self.width];
        let demand = self.history.workload().amounts(row as usize);
        for ((amount, own), resource) in demand.iter().zip(own).zip(&mut self.resources) {
            // The sum fits u64: the history has checked its peak.
            let amount = amount.0 * count;
            if starts {
                own.held += amount;
                resource.held += amount;
            } else {
                own.held -= amount;
                resource.held -= amount;
            }
        }
        let running = &mut self.running_rows[party as usize];
        *running = if starts { *running + 1 } else { *running - 1 };
    }

    /// Adds the amounts of a row to its party's waiting demand, or removes them.
    fn wait(&mut self, row: u32, begins: bool) {
        let party = self.party(row);
        self.mark_changed(party);
        let count = u128::from(self.history.workload().count(row as usize));
        let own = &mut self.amounts[party as usize * self.width..][..self.width];
        for (amount, own) in self.history.workload().amounts(row as usize).iter().zip(own) {
            // Below 2^60 per task, 2^32 tasks per row, 2^32 rows.
            let amount = u128::from(amount.0) * count;
            own.waiting = if begins { own.waiting + amount } else { own.waiting - amount };
        }
    }

    /// Integrates a party's state since it was last integrated.
    fn integrate(&mut self, party: usize) {
        let length = u128::from(self.now - std::mem::replace(&mut self.integrated_until[party], self.now));
        if length == 0 || !self.shares.is_active(party) {
            return;
        }
        self.active_this_week[party] = true;
        for r in 0..self.width {
            let at = party * self.width + r;
            let (unmet, over) = self.attribution.balance(party, r);
            let (week, amounts) = (&mut self.week[at], &self.amounts[at]);
            // Amounts are below 2^64, all time is below 2^62.
            let got = u128::from(amounts.held) * length;
            week.got += got;
            week.wanted = week.wanted.saturating_add(got.saturating_add(amounts.waiting.saturating_mul(length)));
            week.unmet += u128::from(unmet) * length;
            week.over += u128::from(over) * length;
            self.total_unmet[at] += u128::from(unmet) * length;
        }
    }

    /// Updates entitlements, balances and complaints after the events of an instant.
    fn update_parties(&mut self) {
        let mut activity_changed = false;
        for at in 0..self.changed.len() {
            let party = self.changed[at];
            let active = self.running_rows[party as usize] > 0 || self.waiting.contains(party);
            self.active.set(party, active);
            activity_changed |= self.shares.set_active(party as usize, active);
        }
        if activity_changed {
            (0..self.active.members().len()).for_each(|at| self.mark_changed(self.active.members()[at]));
            self.update_entitlements();
        }
        for at in 0..self.changed.len() {
            let party = self.changed[at] as usize;
            (0..self.width).for_each(|r| self.update_balance(party, r));
        }
        for at in 0..self.waiting.members().len() {
            self.update_complaints(self.waiting.members()[at]);
        }
        for party in std::mem::take(&mut self.changed) {
            self.is_changed[party as usize] = false;
            if !self.waiting.contains(party) {
                (0..self.width).for_each(|r| self.set_complaint(party as usize, r, false));
            }
        }
    }

    /// Recomputes the entitlements of all changed parties.
    fn update_entitlements(&mut self) {
        // Consecutive parties with equal shares are computed once.
        let mut last = (0, 0);
        let mut entitled = vec![0; self.width];
        for &party in &self.changed {
            let party = party as usize;
            let share = if self.shares.is_active(party) { self.shares.share(party) } else { (0, 1) };
            if share != last {
                last = share;
                let amounts = self.resources.iter().map(|resource| resource.capacity.share(share));
                entitled.iter_mut().zip(amounts).for_each(|(e, amount)| *e = amount);
            }
            let own = &mut self.amounts[party * self.width..][..self.width];
            own.iter_mut().zip(&entitled).for_each(|(own, e)| own.entitled = *e);
        }
    }

    /// Recomputes a party's unmet claim and overuse.
    fn update_balance(&mut self, party: usize, r: usize) {
        let own = self.amounts[party * self.width + r];
        let format = self.resources[r].format;
        let held = format.convert_steps(own.held);
        let below = own.entitled.saturating_sub(held);
        // A demand that does not fit u64 exceeds any distance from the entitlement.
        let unmet = format.checked_from_steps(own.waiting).map_or(below, |demand| below.min(demand));
        let over = if self.shares.is_active(party) { held.saturating_sub(own.entitled) } else { 0 };
        self.attribution.set_balance(party, r, (unmet, over));
    }

    /// Determines the resources on which a waiting party has a justified complaint.
    fn update_complaints(&mut self, party: u32) {
        let p = party as usize;
        let own = &self.amounts[p * self.width..][..self.width];
        let demand = self.history.workload().amounts(self.first[p] as usize);
        let (mut blocking, mut within) = (0u64, true);
        for (r, ((demand, own), resource)) in demand.iter().zip(own).zip(&self.resources).enumerate() {
            if demand.0 > resource.capacity_steps.saturating_sub(resource.held) {
                blocking |= 1 << r;
                within &= resource.format.covers(own.entitled, own.held + demand.0);
            }
        }
        for r in 0..self.width {
            self.set_complaint(p, r, within && blocking >> r & 1 != 0);
        }
        self.update_ties(p);
    }

    /// Keeps those ties of the party's complaints that turn them also until the next event.
    fn update_ties(&mut self, party: usize) {
        let next = self.events.next_time().unwrap_or(self.now).min(self.until);
        if next <= self.now {
            return;
        }
        for r in 0..self.width {
            let at = party * self.width + r;
            let Some(mut open) = self.complaints[at].take() else { continue };
            let mut ties = open.ties.take().unwrap_or_else(|| self.ties_of(party));
            ties.others.retain(|&other| self.turns((ties.task, other), party, r, next));
            open.ties = Some(ties);
            self.complaints[at] = Some(open);
        }
    }

    /// Returns the tasks of other parties that were submitted together with the first waiting task of a party, and hold
    /// enough for it.
    fn ties_of(&self, party: usize) -> Ties {
        let task = self.first[party];
        let submit = &self.history.workload().columns().submit;
        let begin = submit.partition_point(|t| *t < submit[task as usize]) as u32;
        let together = (begin..).take_while(|&row| submit.get(row as usize) == Some(&submit[task as usize]));
        let suffices = |&row: &u32| {
            self.history.has_start(row)
                && self.party(row) as usize != party
                && (0..self.width).all(|r| self.amount(row, r) >= self.amount(task, r))
        };
        Ties { task, others: together.filter(suffices).collect() }
    }

    /// Returns what all copies of a row hold of a resource.
    fn amount(&self, row: u32, r: usize) -> u64 {
        let workload = self.history.workload();
        // Rows with a start fit u64: the history has checked its peak. Those without duration may not, and hold nothing.
        workload.amounts(row as usize)[r].0.saturating_mul(u64::from(workload.count(row as usize)))
    }

    /// Returns whether the party would have no complaint on `r` from now until `next` if its first waiting `task` had
    /// started in place of the `other`, and that had waited instead.
    fn turns(&self, (task, other): (u32, u32), party: usize, r: usize, next: u64) -> bool {
        let runs = self.history.start(other) <= self.now && self.now < self.history.finish(other);
        if self.first[party] != task || !runs {
            return false;
        }
        let mut behind = self.next[task as usize];
        while behind != NO_ROW && self.history.start(behind) <= self.now {
            behind = self.next[behind as usize];
        }
        if behind == NO_ROW || self.history.submit(behind) > self.now {
            return true;
        }
        // The task may end before the next event of what really happened.
        let length = self.history.workload().columns().duration[task as usize].nanos();
        let end = self.history.start(other) + length;
        let complains = |is_running: bool| {
            let demand = self.history.workload().amounts(behind as usize);
            let own = &self.amounts[party * self.width..][..self.width];
            let (mut blocks, mut within) = (false, true);
            for (s, ((demand, own), resource)) in demand.iter().zip(own).zip(&self.resources).enumerate() {
                let added = if is_running { self.amount(task, s) } else { 0 };
                // No more than what the other holds.
                let held = resource.held - self.amount(other, s) + added;
                if demand.0 > resource.capacity_steps.saturating_sub(held) {
                    blocks |= s == r;
                    within &= resource.format.covers(own.entitled, own.held + added + demand.0);
                }
            }
            blocks && within
        };
        !(self.now < end && complains(true) || end < next && complains(false))
    }

    /// Begins or ends a complaint.
    #[inline]
    fn set_complaint(&mut self, party: usize, r: usize, stands: bool) {
        let at = party * self.width + r;
        if self.complaints[at].is_some() == stands {
            return;
        }
        self.integrate(party);
        self.attribution.settle_victim(party, r);
        if stands {
            let overuse = self.attribution.snapshot(party, r);
            self.complaints[at] =
                Some(OpenComplaint { from: self.now, unmet: self.total_unmet[at], overuse, ties: None });
        } else if let Some(open) = self.complaints[at].take().filter(|open| open.from < self.now) {
            self.ended_complaints.push(Complaint {
                party,
                resource: r,
                from: Time::from_nanos(open.from),
                until: Time::from_nanos(self.now),
                unmet: self.resources[r].format.to_steps(self.total_unmet[at] - open.unmet),
                against: self.attribution.holders_since(party, r, &open.overuse),
                tie_with: open.ties.and_then(|ties| Some(self.party(*ties.others.first()?) as usize)),
            });
        }
    }

    /// Integrates all parties up to now and starts a new week.
    fn end_week(&mut self) {
        for party in 0..self.parties.len() {
            self.integrate(party);
            (0..self.width).for_each(|r| self.attribution.settle_victim(party, r));
        }
        let shares = self.parties.shares_among(&self.active_this_week);
        let mut parties = Vec::new();
        for (party, share) in shares.into_iter().enumerate().filter(|(party, _)| self.active_this_week[*party]) {
            let use_of = |r: usize| {
                let week = self.week[party * self.width + r];
                let format = self.resources[r].format;
                ResourceUse {
                    got: week.got,
                    wanted: week.wanted,
                    unmet: format.to_steps(week.unmet),
                    over: format.to_steps(week.over),
                    against: self.attribution.holders_of_week(party, r),
                }
            };
            parties.push(PartyWeek { party, share, uses: (0..self.width).map(use_of).collect() });
        }
        self.attribution.start_week();
        let (from, until) = (Time::from_nanos(self.week_start), Time::from_nanos(self.now));
        self.weeks.push(Week { from, until, parties });
        self.week_start = self.now;
        self.week.fill(Integrals::default());
        self.active_this_week.fill(false);
    }
}
