//! What each account or user was entitled to, wanted and got, week by week; who waited while whose over-use
//! ran; and justified complaints as intervals.
//!
//! At an instant t, of a party p (an account or a user, [`Parties`]) and a resource r:
//!
//! - `o_pr` is what p **holds**, `q_pr` what its waiting tasks ask for, `C_r` the capacity;
//! - p has a **claim** if a task of its runs or waits; `e_p` is its part of the whole among those with a claim
//!   ([`Parties`]), and `E_pr = e_p C_r` its **entitlement**;
//! - `D_pr = min(q_pr, max(0, E_pr - o_pr))` is its **unmet claim**: what it is below its entitlement, as far as
//!   it asks for it;
//! - `O_pr = max(0, o_pr - E_pr)` is its **over-use**;
//! - `X_vhr = D_vr O_hr / max(D_r, O_r)`, with `D_r` and `O_r` the sums over all parties, is the over-use of h
//!   that runs while v waits: unmet claims and over-use are held against each other, each divided in proportion.
//!   Over all h it is at most `D_vr` (equal to it if there is over-use enough), over all v at most `O_hr`.
//!
//! All of these are integrated over time. What is held, waits and is wanted (`o + q`) are integers, and so are
//! their integrals. Entitlements are cut to whole multiples of 2^-20 of a step of the resource's amounts (of a
//! step, where the capacity has more than 2^40 of them); on those, unmet claims and over-use are integers too.
//! `X` is `f64`, and decides nothing.
//!
//! A **justified complaint** of p on r stands while a task of p waits and, with d what the first of them asks
//! for: some resource stands in its way (`d_s > 0` and `sum_k o_ks + d_s > C_s`), r is one of these, and
//! `o_ps + d_s <= E_ps` on each of them. For users without accounts that is the property of the same name.

mod ledger;
mod parties;
mod weeks;

use evenhand_model::{Capacity, Rational, Time};

pub use parties::Parties;
pub use weeks::Calendar;

use crate::{Past, PastError, Window};

/// How many of those whom something is held against are named.
pub const NAMED: usize = 3;

/// What there is to say of a past's parties.
#[derive(Clone, Debug, PartialEq)]
pub struct Entitlements {
    /// The weeks, each with the parties of which something ran or waited in it.
    pub weeks: Vec<Week>,
    /// Whose over-use ran while who waited, over all weeks; by victim, then by holder.
    pub pairs: Vec<Pair>,
    /// By their beginning, then by party and resource.
    pub complaints: Vec<Complaint>,
}

/// A week, or the part of it that is looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Week {
    /// From here.
    pub from: Time,
    /// Up to here.
    pub until: Time,
    /// Those of whom something ran or waited, by number.
    pub parties: Vec<PartyWeek>,
}

/// A party's week.
#[derive(Clone, Debug, PartialEq)]
pub struct PartyWeek {
    /// Its number in [`Parties`].
    pub party: usize,
    /// What it is entitled to of the whole among all of this week's parties.
    pub share: Rational,
    /// One entry a resource.
    pub uses: Vec<Use>,
}

/// What became of a party's claim on a resource in a week. Amounts are in steps, times nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Use {
    /// What it held.
    pub got: u128,
    /// What it held and waited for; cut to the largest u128.
    pub wanted: u128,
    /// Its unmet claim.
    pub unmet: f64,
    /// Its over-use.
    pub over: f64,
    /// Whose over-use ran meanwhile, and how much of it: the [`NAMED`] with most, of equal ones the smaller number.
    pub against: Vec<(usize, f64)>,
}

/// Over-use of one party that ran while another waited for what it was entitled to.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Who waited.
    pub victim: usize,
    /// Whose over-use it was.
    pub holder: usize,
    /// One entry a resource, in steps times nanoseconds.
    pub over: Vec<f64>,
}

/// An interval in which a party had a justified complaint.
#[derive(Clone, Debug, PartialEq)]
pub struct Complaint {
    /// Who.
    pub party: usize,
    /// On which resource.
    pub resource: usize,
    /// From when.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// Its unmet claim meanwhile, in steps times nanoseconds.
    pub unmet: f64,
    /// Whose over-use ran meanwhile, and how much of it: the [`NAMED`] with most.
    pub against: Vec<(usize, f64)>,
}

impl Past<'_> {
    /// Holds what each party got against its entitlement, week by week.
    ///
    /// # Errors
    /// If shares or amounts are too far apart to be held exactly.
    ///
    /// # Panics
    /// If `capacity` and `parties` are not for this workload's resources and users.
    ///
    /// ```
    /// use evenhand_audit::{Calendar, Parties, Past, Window};
    /// use evenhand_model::*;
    ///
    /// // ann holds both processors for 100 s; bob, who came 10 s later, waits for one of them, which is his.
    /// let mut w = WorkloadBuilder::new([Resource::new("cpu", "")]);
    /// for (user, submit, start, cpus) in [("ann", 0, 0, 2), ("bob", 10, 100, 1)] {
    ///     let (submit, start) = (Time::from_secs(submit), Some(Time::from_secs(start)));
    ///     let amounts = &[cpus * 1_000_000_000];
    ///     w.push(&Task { submit, start, duration: Span::from_secs(100), user, amounts, ..Task::default() });
    /// }
    /// let w = w.finish().unwrap();
    /// let tree = AccountTree::new(vec![], vec![None; 2], vec![Rational::ONE; 2]).unwrap();
    /// let users = Parties::users(&tree, w.users()).unwrap();
    /// let past = Past::original(&w).unwrap();
    /// let calendar = Calendar { origin: None, ahead: 0 };
    /// let found = past.entitlements(&past.peak_capacity().unwrap(), &users, calendar, Window::default()).unwrap();
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
    ) -> Result<Entitlements, PastError> {
        assert_eq!(capacity.width(), self.workload().resources().len(), "one capacity a resource");
        assert_eq!(parties.of_user().len(), self.workload().users().len(), "one party a user");
        let (first, last) = self.ends();
        let from = window.from.max(first).min(last);
        let until = window.until.min(last).max(from);
        ledger::Ledger::new(self, capacity, parties, from.nanos()).run(&calendar.boundaries(from, until), until)
    }
}
