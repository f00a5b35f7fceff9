//! Stateful dominant resource fairness (Sadok et al. 2021): past over-use is a commitment that decays.
//!
//! While no task of a user starts or finishes, its commitment follows Eq. 6:
//! c(t) = ō + (c(t0) - ō) e^(-(t - t0)/tau), where ō = max(o - entitlement, 0) is its overuse. With
//! s = 2^(-half-lives since the epoch) that is a straight line, c = ō + B s, and so is every branch
//! of the key: (o + ō) + B s.
//!
//! **Precision.** The lines, in `f64`, determine which users may be lowest. Among users that they cannot distinguish,
//! [`Commitment`](crate::commitment::Commitment) decides, which has 36 decimal digits and no underflow: overuse of a
//! microsecond is a small part of B, and its order in time a small part of that. [`NEAR`] derives the error bound of a
//! line.
//!
//! **Instants.** c is continuous, so it does not change within one instant, however many tasks start and finish: the
//! overuse *until* the instant counts, and the new one only after it. Besides following Eq. 6, this keeps ties exact: a
//! user that never
//! exceeded its entitlement has B = 0 and ō = 0, and its key is its share to the bit. See
//! [`Commitments`].

use std::cmp::Ordering;

use evenhand_model::{Rational, Time, UserId};

use crate::commitment::Branch;
use crate::commitments::Commitments;
use crate::holdings::{Holdings, RelativeWeights};
use crate::kinetic::{LineOrder, Order, WinnerTree};
use crate::lowest_candidates::LowestCandidates;
use crate::settings::{Listed, ReadSettings, Section, SettingKey, SettingOption, choice};
use crate::{Job, Policy, PolicyContext, PolicyError, Registration, Standing, TieRule};

const NAME: &str = "sdrf";

pub(crate) const REGISTRATION: Registration = Registration::new(
    NAME,
    "lowest max over resources of share + commitment, over weight (Sadok et al. 2021, Algorithm 1)",
    |context| Ok(Box::new(Sdrf::new(context, context.read_settings::<Key>(NAME)?))),
)
.needing_decay()
.with_settings::<Key>()
.with_options(&[&KEY_OPTION]);

pub(crate) const DOMINANT_REGISTRATION: Registration = Registration::new(
    "sdrf-dominant",
    "lowest dominant share + dominant commitment, over weight (Sadok et al. 2021, Eq. 5)",
    |context| Ok(Box::new(Sdrf::new(context, Key::DominantPlusDominant))),
)
.needing_decay();

const KEY_OPTION: SettingOption = SettingOption {
    option: "sdrf-key",
    key: Some("key"),
    value_name: "KEY",
    help: "Key of sdrf: the largest sum of share and commitment (sum: Sadok et al. 2021, Algorithm 1), or the largest share \
           plus the largest commitment (dominant: Eq. 5) [default: sum]",
    values: &["sum", "dominant"],
    default: Some("sum"),
    label: "key of sdrf",
    listed: Listed::Always,
    words: &[
        ("sum", "max over resources of (share + commitment)"),
        ("per-resource", "max over resources of (share + commitment)"),
        ("dominant", "max share + max commitment"),
    ],
};

/// The key, which is the policy's only setting.
///
/// Algorithm 1 of Sadok et al. (2021) adds share and commitment resource by resource; their Eq. 5 and
/// their code add the two maxima. They order users differently (docs/src/reference/simulation.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Key {
    /// max_r (o_r + c_r)
    #[default]
    SumPerResource,
    /// max_r o_r + max_r c_r
    DominantPlusDominant,
}

impl ReadSettings for Key {
    const KEYS: &'static [SettingKey] = &[SettingKey {
        name: "key",
        kind: "\"per-resource\" or \"dominant\"",
        default: "\"per-resource\"",
        help: "add share and commitment resource by resource, or the largest of each (\"sum\" is another name of the first)",
    }];

    fn read(section: &Section<'_>, _: &PolicyContext<'_>) -> Result<Key, PolicyError> {
        let keys = [
            ("per-resource", Key::SumPerResource),
            ("sum", Key::SumPerResource),
            ("dominant", Key::DominantPlusDominant),
        ];
        Ok(section.parse("key", |text| choice(text, &keys))?.unwrap_or_default())
    }
}

/// A bound on the error of two users' lines together: the absolute error of a key is at most NEAR / 2 times the largest
/// share, divided by the weight. Closer keys are compared exactly.
///
/// With u = 2^-53, for a weight of 1 and shares up to 1, to which overuse, commitments and their
/// gaps are then limited too:
///
/// * o has an error of 3 roundings, ō (a whole difference less a fraction of a step) of less than 7: 10 u;
/// * s has a relative error below 6 u (an exponential, a series, the rounded half-lives);
/// * the settled slope (c - ō) / s: 2 u for each of c and ō, 1 for the difference, 2 + 6 to divide;
/// * a pending change of ō, over s: 7 u for each ō, 1 for the difference, 2 + 6 to divide;
/// * their sum, times the present s, added to the rest: 2 + 6 + 3;
/// * each of the two parts over the weight: 4 u, of parts up to 3 together.
///
/// That is below 90 u per key and 180 u per pair. s changes epochs by powers of two, without rounding; a slope too
/// small for an `f64` has an error of less than 2^-1000.
const NEAR: f64 = 128.0 * f64::EPSILON;

pub(crate) struct Sdrf {
    key: Key,
    holdings: Holdings,
    weights: RelativeWeights,
    commitments: Commitments,
    ties: TieRule,
    waiting: Vec<bool>,
    order: LowestCandidates,
    /// Waiting users without holdings and commitments: their key is 0, the minimum, so the tie rule alone decides among
    /// them. They are not in `order`.
    idle: WinnerTree,
    is_idle: Vec<bool>,
    /// Whether `order` counts order changes, and so has to see every instant.
    counts: bool,
    /// The largest 1 / w, and the largest share so far, at least 1: they bound the rounding error of keys whose parts
    /// cancel.
    largest_inverse: f64,
    largest_share: f64,
    near: Vec<u32>,
    line: (Vec<f64>, Vec<f64>),
}

impl Sdrf {
    pub(crate) fn new(context: &PolicyContext<'_>, key: Key) -> Sdrf {
        let users = context.weights.len();
        let width = context.capacity.width();
        let weights = RelativeWeights::new(context.weights);
        let counts = context.order == Order::LiveTree;
        Sdrf {
            key,
            holdings: Holdings::new(context.capacity, users),
            largest_inverse: (0..users as u32).map(|u| weights.inverse(UserId(u))).fold(1.0, f64::max),
            largest_share: 1.0,
            commitments: Commitments::new(context, &weights),
            weights,
            ties: TieRule::new(users),
            waiting: vec![false; users],
            order: LowestCandidates::new(
                users,
                width,
                context.order.structure(users, width),
                context.order != Order::LiveTree,
            ),
            idle: WinnerTree::new(users),
            is_idle: vec![false; users],
            counts,
            near: Vec::new(),
            line: (vec![0.0; width], vec![0.0; width]),
        }
    }

    fn set_lines(&mut self, user: UserId) {
        if !self.waiting[user.index()] {
            return;
        }
        let idle = self.holdings.row(user).iter().all(|&held| held == 0) && self.commitments.is_nothing(user);
        if idle || self.is_idle[user.index()] {
            self.set_idle(user, idle);
        }
        if idle {
            return;
        }
        let Sdrf { key, holdings, weights, commitments, order, line: (a, b), .. } = self;
        let inverse = weights.inverse(user);
        let held = holdings.row(user);
        for (r, &steps) in held.iter().enumerate() {
            a[r] = holdings.share(r, steps);
        }
        if *key == Key::DominantPlusDominant {
            let dominant = a.iter().copied().fold(0.0, f64::max);
            a.fill(dominant);
        }
        commitments.lines(user, held, |r, overuse, slope| {
            a[r] = (a[r] + overuse) * inverse;
            b[r] = slope * inverse;
        });
        order.set(user.0, a, b);
    }

    /// Returns whether a user waits with a key of 0.
    fn set_idle(&mut self, user: UserId, idle: bool) {
        if idle && !std::mem::replace(&mut self.is_idle[user.index()], idle) {
            self.order.remove(user.0);
        }
        self.is_idle[user.index()] = idle;
        let ties = &self.ties;
        self.idle.touch(user.0, idle, |a, b| ties.compare(UserId(a), UserId(b)).is_lt());
    }

    /// Notes that the holdings of `user` change at `now`.
    #[inline]
    fn change(&mut self, now: Time, user: UserId, change: impl FnOnce(&mut Holdings)) {
        let Sdrf { holdings, commitments, order, largest_share, .. } = self;
        commitments.advance(now);
        commitments.settle(user, holdings.row(user));
        change(holdings);
        let shares = holdings.row(user).iter().enumerate().map(|(r, &held)| holdings.share(r, held));
        *largest_share = shares.fold(*largest_share, f64::max);
        commitments.changed(user, holdings.row(user), |factor| order.rebase(factor));
        self.set_lines(user);
    }

    /// Returns a user's key before weight: its largest branch. The user must be settled.
    fn largest_branch(&self, now: Time, user: UserId) -> Branch {
        let width = self.holdings.width();
        let held = self.holdings.row(user);
        let share = |r: usize| self.holdings.exact_share(r, held[r]);
        let dominant = match self.key {
            Key::SumPerResource => None,
            Key::DominantPlusDominant => (0..width).map(share).max(),
        };
        let branches = self.commitments.now(now, user).enumerate().map(|(r, (c, overuse))| {
            let base = dominant.clone().unwrap_or_else(|| share(r));
            Branch::in_steps(base, &c, || overuse.exact(), self.commitments.step(r))
        });
        branches.max_by(Branch::compare).expect("at least one resource")
    }

    /// Compares two settled users' keys exactly, if they are equal up to rounding.
    fn compare_exactly(&self, now: Time, a: UserId, b: UserId) -> Ordering {
        let equal_weights = self.weights.equal(a, b);
        let (held_a, held_b) = (self.holdings.row(a), self.holdings.row(b));
        let nothing = |held: &[u64], user| held.iter().all(|&h| h == 0) && self.commitments.is_nothing(user);
        // A shortcut for the most frequent ties: the same state, or no holdings and no commitments.
        if nothing(held_a, a) && nothing(held_b, b) {
            return Ordering::Equal;
        }
        if equal_weights && held_a == held_b && self.commitments.are_alike(a, b) {
            return Ordering::Equal;
        }
        let key = |u: UserId| {
            let branch = self.largest_branch(now, u);
            if equal_weights { branch } else { branch.times(&(Rational::ONE / self.weights.exact_over_mean(u))) }
        };
        key(a).compare(&key(b))
    }
}

impl Policy for Sdrf {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.ties.set_first_pending(user, first);
        let was = std::mem::replace(&mut self.waiting[user.index()], first.is_some());
        match first {
            Some(_) if was && !self.is_idle[user.index()] => {}
            Some(_) => self.set_lines(user),
            None if self.is_idle[user.index()] => self.set_idle(user, false),
            None => self.order.remove(user.0),
        }
    }

    fn started(&mut self, now: Time, job: &Job<'_>) {
        let Job { user, demand, .. } = *job;
        self.change(now, user, |holdings| holdings.add(user, demand));
    }

    fn finished(&mut self, now: Time, job: &Job<'_>) {
        let Job { user, demand, .. } = *job;
        self.change(now, user, |holdings| holdings.remove(user, demand));
    }

    fn next(&mut self, now: Time) -> Option<UserId> {
        let Sdrf { holdings, commitments, order, near, .. } = self;
        commitments.advance(now);
        let idle = self.idle.winner().map(UserId);
        if idle.is_some() && !self.counts {
            return idle;
        }
        let s = commitments.s(|factor| order.rebase(factor));
        let absolute = NEAR * self.largest_inverse * self.largest_share;
        order.lowest(s, NEAR, absolute, near);
        if idle.is_some() {
            return idle;
        }
        if let [only] = **near {
            return Some(UserId(only));
        }
        near.iter().map(|&u| UserId(u)).for_each(|u| commitments.settle(u, holdings.row(u)));
        let before =
            |a: UserId, b: UserId| self.compare_exactly(now, a, b).then_with(|| self.ties.compare(a, b)).is_lt();
        self.near.iter().map(|&u| UserId(u)).reduce(|a, b| if before(b, a) { b } else { a })
    }

    fn key_depends_on_job(&self) -> bool {
        false
    }

    fn standing(&mut self, now: Time, user: UserId) -> Standing {
        self.commitments.advance(now);
        self.commitments.settle(user, self.holdings.row(user));
        let shares = self.holdings.shares(user);
        let commitments: Vec<f64> = self
            .commitments
            .now(now, user)
            .enumerate()
            .map(|(r, (c, overuse))| c.value(overuse) * self.commitments.step(r).near)
            .collect();
        let largest = |v: &mut dyn Iterator<Item = f64>| v.fold(0.0, f64::max);
        let key = match self.key {
            Key::SumPerResource => largest(&mut shares.iter().zip(&commitments).map(|(o, c)| o + c)),
            Key::DominantPlusDominant => {
                largest(&mut shares.iter().copied()) + largest(&mut commitments.iter().copied())
            }
        };
        Standing { key: key * self.weights.inverse(user), shares, commitments }
    }

    fn order_events(&self) -> u64 {
        self.order.order_events()
    }
}
