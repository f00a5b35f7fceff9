//! Entitlement, demand and use of accounts or users by week, overuse while others waited, and justified complaints.

mod accounting;
mod fixed_point;
mod overuse_attribution;
mod parties;
mod weeks;

use evenhand_model::{Capacity, Rational, Time};

pub use parties::Parties;
pub use weeks::Calendar;

use crate::{History, Window};

/// Maximum number of holders that a [`ResourceUse`] or a [`Complaint`] names.
pub const MAX_NAMED_HOLDERS: usize = 3;

/// Entitlement, demand and use of a history's parties, with the overuse while others waited and the justified
/// complaints.
///
/// At an instant t, for a party p (an account or a user, see [`Parties`]) and a resource r:
///
/// - `o_pr` is the amount that p **holds**, `q_pr` the demand of its waiting tasks, `C_r` the capacity;
/// - p is **active** (has a claim) if a task of it runs or waits; `e_p` is its share among the active parties
///   ([`Parties`]), and `E_pr = e_p C_r` its **entitlement**;
/// - `D_pr = min(q_pr, max(0, E_pr - o_pr))` is its **unmet claim**: the distance below its entitlement, as far as its
///   waiting tasks demand it;
/// - `O_pr = max(0, o_pr - E_pr)` is its **overuse**;
/// - `X_vhr = D_vr O_hr / max(D_r, O_r)`, with `D_r` and `O_r` the sums over all parties, is the overuse by h while v
///   waits: unmet claims and overuse are matched in proportion. Summed over h it is at most `D_vr` (equal to it if there
///   is enough overuse), summed over v at most `O_hr`.
///
/// All of these are integrated over time. Use and demand (`o + q`) are integers, and so are their integrals.
/// Entitlements are rounded down to multiples of 2^-20 of a step of the resource's amounts (of a step, where the
/// capacity has more than 2^40 of them); relative to those, unmet claims and overuse are integers too. `X` is `f64`, and
/// no decision depends on it.
///
/// A **justified complaint** of p on r lasts while a task of p waits and, with d the demand of the first waiting task,
/// some resource s blocks it (`d_s > 0` and `sum_k o_ks + d_s > C_s`), r is one of the blocking resources, and
/// `o_ps + d_s <= E_ps` on each of them. For users without accounts this is the
/// [property](crate::Property::NoJustifiedComplaint) of that name.
///
/// Which of two tasks that were submitted at the same instant goes first is a **tie**, which a scheduler decides by the
/// order of the log or by chance. One tie would have **turned** a complaint of p on r if one task `a` of p waited through
/// all of it as p's first, and there is a task `b` of another party with the same submission that ran through all of it
/// and held at least as much of every resource, so that with the starts of a and b exchanged p has no complaint on r at any
/// instant of it: neither a, which then runs in b's place, nor the next waiting task of p gives reason for one.
#[derive(Clone, Debug, PartialEq)]
pub struct Entitlements {
    /// The weeks, in order of time.
    pub weeks: Vec<Week>,
    /// Overuse while others waited, over all weeks; sorted by victim, then by holder.
    pub pairs: Vec<OverusePair>,
    /// Justified complaints, sorted by beginning, then by party and resource.
    pub complaints: Vec<Complaint>,
}

/// A week, or the part of it that lies in the audited window.
#[derive(Clone, Debug, PartialEq)]
pub struct Week {
    /// Beginning.
    pub from: Time,
    /// End (exclusive).
    pub until: Time,
    /// The parties that were active at any time of the week, by index.
    pub parties: Vec<PartyWeek>,
}

/// One week of one party.
#[derive(Clone, Debug, PartialEq)]
pub struct PartyWeek {
    /// Index in [`Parties`].
    pub party: usize,
    /// Share of the capacity among all parties of this week.
    pub share: Rational,
    /// One entry per resource.
    pub uses: Vec<ResourceUse>,
}

/// Demand and use of one resource by one party in one week, in steps of the resource times nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceUse {
    /// Use: the integral of `o`.
    pub got: u128,
    /// Demand: the integral of `o + q`, saturated at the largest u128.
    pub wanted: u128,
    /// Unmet claim: the integral of `D`.
    pub unmet: f64,
    /// Overuse: the integral of `O`.
    pub over: f64,
    /// The [`MAX_NAMED_HOLDERS`] parties with the largest overuse `X` meanwhile, and its amount; ties by index.
    pub against: Vec<(usize, f64)>,
}

/// Overuse by one party while another waited for what it was entitled to: the integral of `X`.
#[derive(Clone, Debug, PartialEq)]
pub struct OverusePair {
    /// Index of the party that waited.
    pub victim: usize,
    /// Index of the party with the overuse.
    pub holder: usize,
    /// One entry per resource, in steps times nanoseconds.
    pub over: Vec<f64>,
}

/// An interval in which a party had a justified complaint.
#[derive(Clone, Debug, PartialEq)]
pub struct Complaint {
    /// Index of the party.
    pub party: usize,
    /// Index of the resource.
    pub resource: usize,
    /// Beginning.
    pub from: Time,
    /// End (exclusive).
    pub until: Time,
    /// The party's unmet claim in the interval, in steps times nanoseconds.
    pub unmet: f64,
    /// The [`MAX_NAMED_HOLDERS`] parties with the largest overuse meanwhile, and its amount in steps times nanoseconds.
    pub against: Vec<(usize, f64)>,
    /// The party of a task with which one tie decided this complaint ([`Entitlements`]); `None` if no tie alone did.
    pub tie_with: Option<usize>,
}

impl History<'_> {
    /// Computes entitlement, demand and use of each party by week.
    ///
    /// # Panics
    /// Panics if `capacity` and `parties` do not match the workload's resources and users.
    ///
    /// ```
    /// use evenhand_audit::{Calendar, Parties, History, Window};
    /// use evenhand_model::*;
    ///
    /// // ann holds both processors for 100 s; bob comes 10 s later and waits for one, an equal share.
    /// let mut w = WorkloadBuilder::new([Resource::new("cpu", "")]);
    /// for (user, submit, start, cpus) in [("ann", 0, 0, 2), ("bob", 10, 100, 1)] {
    ///     let (submit, start) = (Time::from_secs(submit), Some(Time::from_secs(start)));
    ///     let amounts = &[cpus * 1_000_000_000];
    ///     w.push(&Task { submit, start, duration: Span::from_secs(100), user, amounts, ..Task::default() });
    /// }
    /// let w = w.finish().unwrap();
    /// let tree = AccountTree::new(vec![], vec![None; 2], vec![Rational::ONE; 2]).unwrap();
    /// let users = Parties::users(&tree, w.users()).unwrap();
    /// let history = History::original(&w).unwrap();
    /// let calendar = Calendar { origin: None, ahead: 0 };
    /// let found = history.entitlements(&history.peak_capacity().unwrap(), &users, calendar, Window::default());
    /// let [complaint] = &found.complaints[..] else { panic!() };
    /// assert_eq!((complaint.party, complaint.from.secs_f64(), complaint.until.secs_f64()), (1, 10.0, 100.0));
    /// assert_eq!(complaint.against, [(0, 90e9)]);
    /// ```
    pub fn entitlements(
        &self,
        capacity: &Capacity,
        parties: &Parties,
        calendar: Calendar,
        window: Window,
    ) -> Entitlements {
        assert_eq!(capacity.width(), self.workload().resources().len(), "one capacity per resource");
        assert_eq!(parties.of_user().len(), self.workload().users().len(), "one party per user");
        let (first, last) = self.time_range();
        let from = window.from.max(first).min(last);
        let until = window.until.min(last).max(from);
        accounting::Accounting::new(self, capacity, parties, from.nanos()).run(&calendar.boundaries(from, until), until)
    }
}
