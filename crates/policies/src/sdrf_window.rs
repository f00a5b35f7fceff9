//! Stateful DRF with a sliding window: commitments are the mean overuse over the window.
//!
//! In Sadok et al. (2021) overuse decays exponentially (Eq. 6). Here c_r(t) = 1/W times the integral of the overuse ō_r
//! = max(o_r - entitlement, 0) from t - W to t: all overuse within the window has the same weight, and older overuse
//! none. W is two half-lives of the decay unless the setting `window` gives it, so that "half-life" has the same
//! meaning for both: half of a constant user's commitment stems from the last half-life.
//!
//! Such commitments are straight lines in t, not in s, and bend whenever old overuse leaves the window. No ordering
//! structure can use them, so each decision evaluates every waiting user. Amounts and times are whole numbers, so
//! commitments are exact: sums of steps times nanoseconds.

use std::cmp::Ordering;
use std::collections::VecDeque;

use evenhand_model::{Rational, Span, Time, UBig, UserId, to_f64};

use crate::holdings::{Holdings, RelativeWeights};
use crate::settings::{ReadSettings, Section, SettingKey};
use crate::user_set::UserSet;
use crate::{Job, Policy, PolicyContext, PolicyError, Registration, Standing, TieRule};

const NAME: &str = "sdrf-window";

pub(crate) const REGISTRATION: Registration =
    Registration::new(NAME, "sdrf whose commitments are the mean overuse of a sliding window", |context| {
        Ok(Box::new(SdrfWindow::new(context, &context.read_settings(NAME)?)))
    })
    .needing_decay()
    .with_settings::<WindowSettings>();

struct WindowSettings {
    /// W, two half-lives if absent.
    window: Option<Span>,
}

impl ReadSettings for WindowSettings {
    const KEYS: &'static [SettingKey] = &[SettingKey {
        name: "window",
        kind: "time > 0 (\"16d\")",
        default: "two half-lives",
        help: "length of the sliding window over which overuse is averaged",
    }];

    fn read(section: &Section<'_>, _: &PolicyContext<'_>) -> Result<WindowSettings, PolicyError> {
        let window = section.parse("window", |text| match Span::parse(text).map_err(|e| e.to_string())? {
            Span::ZERO => Err(format!("found {text:?}, expected a time greater than 0")),
            span => Ok(span),
        })?;
        Ok(WindowSettings { window })
    }
}

/// A bound on the rounding error of a key, whose parts are at most 1 / w; closer keys are compared exactly.
const NEAR: f64 = 64.0 * f64::EPSILON;

/// An interval in which a user held more than its entitlement.
#[derive(Clone, Copy, Debug)]
struct Overuse {
    start: u64,
    end: u64,
    held: u64,
}

/// Integrals over the times of overuse within a window: of the holdings, in steps times nanoseconds, and of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Integrals {
    held: u128,
    time: u128,
}

impl Integrals {
    fn of(held: u64, nanoseconds: u64) -> Integrals {
        Integrals { held: u128::from(held) * u128::from(nanoseconds), time: u128::from(nanoseconds) }
    }

    fn plus(self, other: Integrals) -> Integrals {
        Integrals { held: self.held + other.held, time: self.time + other.time }
    }

    fn minus(self, other: Integrals) -> Integrals {
        Integrals { held: self.held - other.held, time: self.time - other.time }
    }
}

/// One user's overuse of one resource.
#[derive(Clone, Debug, Default)]
struct History {
    /// Past overuse that is at least partly within the window, oldest first, and its integrals.
    past: VecDeque<Overuse>,
    sum: Integrals,
    /// The start of the current holdings.
    since: u64,
}

impl History {
    /// Records that `held`, which is more than the entitlement if `is_over`, was held until `now`.
    fn settle(&mut self, now: u64, held: u64, is_over: bool) {
        let start = std::mem::replace(&mut self.since, now);
        if is_over && now > start {
            self.past.push_back(Overuse { start, end: now, held });
            self.sum = self.sum.plus(Integrals::of(held, now - start));
        }
    }

    /// Returns the integrals over the window from `from` to `now`.
    fn over(&mut self, from: u64, now: u64, held: u64, is_over: bool) -> Integrals {
        while let Some(oldest) = self.past.front().copied().filter(|o| o.end <= from) {
            self.sum = self.sum.minus(Integrals::of(oldest.held, oldest.end - oldest.start));
            self.past.pop_front();
        }
        let out =
            self.past.front().map_or(Integrals::default(), |o| Integrals::of(o.held, from.saturating_sub(o.start)));
        let present = if is_over { Integrals::of(held, now - self.since.max(from)) } else { Integrals::default() };
        self.sum.minus(out).plus(present)
    }
}

struct SdrfWindow {
    /// W in nanoseconds.
    window: u64,
    holdings: Holdings,
    weights: RelativeWeights,
    /// Entitlements in steps, by user and resource: exactly, rounded, and the highest holdings without overuse.
    entitled: Vec<Rational>,
    approximate: Vec<f64>,
    highest_without_overuse: Vec<u64>,
    history: Vec<History>,
    origin: Option<Time>,
    ties: TieRule,
    /// The users with pending jobs.
    present: UserSet,
    keys: Vec<f64>,
    largest_inverse: f64,
}

impl SdrfWindow {
    fn new(context: &PolicyContext<'_>, settings: &WindowSettings) -> SdrfWindow {
        let users = context.weights.len();
        let width = context.capacity.width();
        let decay = context.decay.expect("the registry checks that a decay is given");
        let of_user = |u: usize| {
            let share = context.weights.entitlement(u);
            (0..width).map(move |r| &share * context.capacity.exact_steps(r)).collect::<Vec<_>>()
        };
        let entitled: Vec<Rational> = (0..users).flat_map(of_user).collect();
        let weights = RelativeWeights::new(context.weights);
        SdrfWindow {
            window: settings.window.map_or(decay.half_life_ns().saturating_mul(2).max(1), Span::nanos),
            holdings: Holdings::new(context.capacity, users),
            largest_inverse: (0..users as u32).map(|u| weights.inverse(UserId(u))).fold(1.0, f64::max),
            weights,
            approximate: entitled.iter().map(to_f64).collect(),
            // More than u64 holds is never exceeded.
            highest_without_overuse: entitled
                .iter()
                .map(|e| UBig::try_from(e.floor()).ok().and_then(|f| u64::try_from(f).ok()).unwrap_or(u64::MAX))
                .collect(),
            entitled,
            history: vec![History::default(); users * width],
            origin: None,
            ties: TieRule::new(users),
            present: UserSet::new(users),
            keys: Vec::new(),
        }
    }

    /// Nanoseconds since the first event.
    fn since_origin(&mut self, now: Time) -> u64 {
        (now - *self.origin.get_or_insert(now)).nanos()
    }

    fn settle(&mut self, now: Time, user: UserId) {
        let now = self.since_origin(now);
        let width = self.holdings.width();
        for (r, &held) in self.holdings.row(user).iter().enumerate() {
            let at = user.index() * width + r;
            self.history[at].settle(now, held, held > self.highest_without_overuse[at]);
        }
    }

    fn integrals(&mut self, now: u64, user: UserId, r: usize) -> Integrals {
        let at = user.index() * self.holdings.width() + r;
        let held = self.holdings.row(user)[r];
        self.history[at].over(now.saturating_sub(self.window), now, held, held > self.highest_without_overuse[at])
    }

    /// c_r to an `f64`'s digits beside a share.
    fn commitment(&mut self, now: u64, user: UserId, r: usize) -> f64 {
        let integrals = self.integrals(now, user, r);
        if integrals.time == 0 {
            return 0.0;
        }
        let entitled = self.approximate[user.index() * self.holdings.width() + r];
        let overused = integrals.held as f64 - entitled * integrals.time as f64;
        self.holdings.share(r, 1) * (overused / self.window as f64)
    }

    fn key(&mut self, now: u64, user: UserId) -> f64 {
        let mut key = 0.0;
        for r in 0..self.holdings.width() {
            let share = self.holdings.share(r, self.holdings.row(user)[r]);
            key = f64::max(key, share + self.commitment(now, user, r));
        }
        key * self.weights.inverse(user)
    }

    /// The key before weight, exactly.
    fn exact_key(&mut self, now: u64, user: UserId) -> Rational {
        let width = self.holdings.width();
        let mut key = Rational::ZERO;
        for r in 0..width {
            let Integrals { held, time } = self.integrals(now, user, r);
            let overused = Rational::from(held) - &self.entitled[user.index() * width + r] * Rational::from(time);
            let mean = overused / Rational::from(self.window);
            let sum = (Rational::from(self.holdings.row(user)[r]) + mean) * self.holdings.exact_share(r, 1);
            key = key.max(sum);
        }
        key
    }

    fn compare(&mut self, now: u64, a: UserId, b: UserId) -> Ordering {
        let mut nothing = |u: UserId| {
            (0..self.holdings.width()).all(|r| self.holdings.row(u)[r] == 0 && self.integrals(now, u, r).time == 0)
        };
        // A shortcut for the most frequent ties.
        let order = if nothing(a) && nothing(b) {
            Ordering::Equal
        } else {
            let (x, y) = (self.exact_key(now, a), self.exact_key(now, b));
            match self.weights.equal(a, b) {
                true => x.cmp(&y),
                false => (x * self.weights.exact_over_mean(b)).cmp(&(y * self.weights.exact_over_mean(a))),
            }
        };
        order.then_with(|| self.ties.compare(a, b))
    }
}

impl Policy for SdrfWindow {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.ties.set_first_pending(user, first);
        self.present.set(user, first.is_some());
    }

    fn started(&mut self, now: Time, job: &Job<'_>) {
        let Job { user, demand, .. } = *job;
        self.settle(now, user);
        self.holdings.add(user, demand);
    }

    fn finished(&mut self, now: Time, job: &Job<'_>) {
        let Job { user, demand, .. } = *job;
        self.settle(now, user);
        self.holdings.remove(user, demand);
    }

    fn next(&mut self, now: Time) -> Option<UserId> {
        let now = self.since_origin(now);
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        for place in 0..self.present.users().len() {
            keys.push(self.key(now, self.present.users()[place]));
        }
        let lowest = keys.iter().copied().fold(f64::INFINITY, f64::min);
        let limit = lowest + NEAR * (lowest + self.largest_inverse);
        let mut best: Option<UserId> = None;
        for (place, _) in keys.iter().enumerate().filter(|(_, key)| **key <= limit) {
            let user = self.present.users()[place];
            if best.is_none_or(|best| self.compare(now, user, best).is_lt()) {
                best = Some(user);
            }
        }
        self.keys = keys;
        best
    }

    fn key_depends_on_job(&self) -> bool {
        false
    }

    fn standing(&mut self, now: Time, user: UserId) -> Standing {
        let now = self.since_origin(now);
        let commitments = (0..self.holdings.width()).map(|r| self.commitment(now, user, r)).collect();
        Standing { shares: self.holdings.shares(user), commitments, key: self.key(now, user) }
    }
}
