//! Fairshare by penalties (Klusáček & Rudová 2013): the user with the lowest decayed penalties in relation to its
//! entitlement comes first.
//!
//! The charge of a job is its size in processors, times the speed of its machine and the price of its queue
//! ([`Job::rate`]), times its run time (Eq. 3):
//!
//! * **While the job runs**, its requested wall time is charged, all of it at the start. So a user's second job in a
//!   cycle
//!   is already ordered with the charge of the first: the temporary usage of MetaCentrum's scheduler.
//! * **After the job has finished**, its run time is charged, as if charged continuously while it ran and decayed
//!   since.
//!
//! Charges of finished jobs halve every half-life, in continuous time: they are a line in s = 2^(-t / half-life).
//! Charges of running jobs are constant.
//!
//! The size in processors is, under `penalty`, the job's minimum processor equivalents over the machines on which it
//! fits ([`Equivalents`]); under `cpu-time` its processors, independent of speed and price: the CPU-time fairshare that
//! the paper argues against.
//!
//! Entitlements come from the account tree if there is one, else from weights. **Ties**: a key is an `f64`, and
//! one that is within [`NEAR`] of the lowest is as good as the lowest; among those it goes by the rule of this
//! crate.

use std::collections::HashMap;

use evenhand_model::{Rational, Span, Time, UserId, to_f64};

use crate::decay::{Clock, Decay};
use crate::equivalents::{Combine, Equivalents};
use crate::holdings::Holdings;
use crate::kinetic::LineOrder;
use crate::settings::{Listed, ReadSettings, Section, SettingKey, SettingOption, choice};
use crate::{Job, Policy, PolicyContext, PolicyError, Registration, Standing, TieRule};

const NAME: &str = "penalty";

pub(crate) const REGISTRATION: Registration = Registration::new(
    NAME,
    "lowest decayed penalties (processor equivalents x time x speed x queue price) over entitlement (Klusáček & Rudová 2013)",
    |context| Ok(Box::new(Penalty::new(context, Price::of_equivalents(context, &context.read_settings(NAME)?)))),
)
.needing_decay()
.with_settings::<PenaltySettings>()
.with_options(&[&COMBINE_OPTION]);

pub(crate) const CPU_TIME_REGISTRATION: Registration = Registration::new(
    "cpu-time",
    "lowest decayed processor time over entitlement: the fairshare that Klusáček & Rudová (2013) argue against",
    |context| Ok(Box::new(Penalty::new(context, Price::of_processors(context)))),
)
.needing_decay();

const COMBINE_OPTION: SettingOption = SettingOption {
    option: "combine",
    key: Some("combine"),
    value_name: "HOW",
    help: "Under the policy penalty: how GPUs and the like count beside processors and memory: max, sum, \
           max-plus-optional (as in `evenhand price`) [default: max-plus-optional]",
    values: &["max", "sum", "max-plus-optional"],
    default: Some("max-plus-optional"),
    label: "resources in a penalty",
    listed: Listed::WithPolicy,
    words: &[],
};

struct PenaltySettings {
    /// `None`: as the context's equivalents have it.
    combine: Option<Combine>,
}

impl ReadSettings for PenaltySettings {
    const KEYS: &'static [SettingKey] = &[SettingKey {
        name: "combine",
        kind: "\"max\", \"sum\" or \"max-plus-optional\"",
        default: "\"max-plus-optional\"",
        help: "how GPUs and other resources count beside processors and memory",
    }];

    fn read(section: &Section<'_>, _: &PolicyContext<'_>) -> Result<PenaltySettings, PolicyError> {
        let combine = section.parse("combine", |text| choice(text, &Combine::ALL.map(|c| (c.name(), c))))?;
        Ok(PenaltySettings { combine })
    }
}

/// Keys within this relative distance of the lowest count as lowest, because of rounding.
const NEAR: f64 = 64.0 * f64::EPSILON;

/// The size of a chunk in processors.
enum Price {
    /// The lowest processor equivalents.
    Lowest(Equivalents),
    /// Its part of the pool, of the resource of which it takes the largest.
    Share,
    /// Processors alone: which resource they are.
    Processors(usize),
}

impl Price {
    fn of_equivalents(context: &PolicyContext<'_>, settings: &PenaltySettings) -> Price {
        let equivalents = context.equivalents.cloned().map(|found| match settings.combine {
            Some(combine) => found.combined(combine),
            None => found,
        });
        equivalents.map_or(Price::Share, Price::Lowest)
    }

    /// The first resource, where no resource is known as processors.
    fn of_processors(context: &PolicyContext<'_>) -> Price {
        Price::Processors(context.equivalents.map_or(0, Equivalents::processors))
    }

    /// Of `chunk`, in units.
    fn processors(&self, chunk: &[Rational], holdings: &Holdings, steps: &[u64]) -> Rational {
        match self {
            // On a pool a chunk may fit that fits on no machine; it then has the price on the whole cluster.
            Price::Lowest(prices) => {
                prices.lowest(chunk).map_or_else(|| prices.of_totals(chunk), |(_, e)| e).processors
            }
            Price::Share => {
                let share = |(r, steps): (usize, &u64)| holdings.exact_share(r, *steps);
                steps.iter().enumerate().map(share).max().unwrap_or(Rational::ZERO)
            }
            Price::Processors(r) => chunk[*r].clone(),
        }
    }
}

struct Penalty {
    price: Price,
    /// Whether speed and the price of the queue count.
    by_rate: bool,
    /// Units in a step, by resource.
    unit: Vec<Rational>,
    /// What chunks of these steps hold.
    known: HashMap<Box<[u64]>, f64>,
    /// The number of parts of a processor in `running`: a power of two.
    fine: f64,
    holdings: Holdings,
    decay: Decay,
    clock: Clock,
    /// 1 / (entitlement times the number of users), by user.
    inverse: Vec<f64>,
    /// By user: the requested charges of running jobs, in parts of a processor-nanosecond. Whole numbers, so that
    /// additions and subtractions cancel exactly in any order.
    running: Vec<u128>,
    /// By user: the charges of finished jobs, in processor-seconds divided by s at that time.
    finished: Vec<f64>,
    now: Time,
    s: Option<f64>,
    ties: TieRule,
    waiting: Vec<bool>,
    order: Box<dyn LineOrder>,
    near: Vec<u32>,
}

impl Penalty {
    fn new(context: &PolicyContext<'_>, price: Price) -> Penalty {
        let users = context.weights.len();
        let decay = context.decay.expect("the registry checks that a decay is given");
        let entitlement = |user: usize| match context.accounts {
            Some(tree) => tree.user_entitlement(user).clone(),
            None => context.weights.entitlement(user),
        };
        let capacity = context.capacity;
        let holdings = Holdings::new(capacity, users);
        let all: Vec<Rational> = (0..capacity.width()).map(|r| capacity.exact_units(r).clone()).collect();
        let whole = match &price {
            Price::Lowest(prices) => to_f64(&all[prices.processors()]),
            Price::Share => 1.0,
            Price::Processors(r) => to_f64(&all[*r]),
        };
        Penalty {
            by_rate: !matches!(price, Price::Processors(_)),
            price,
            unit: (0..capacity.width()).map(|r| &all[r] / capacity.exact_steps(r)).collect(),
            known: HashMap::new(),
            // All processors are some 2^50 parts.
            fine: (50.0 - whole.log2().ceil()).exp2(),
            holdings,
            decay,
            clock: Clock::new(decay),
            inverse: (0..users).map(|u| to_f64(&(Rational::ONE / (entitlement(u) * Rational::from(users))))).collect(),
            running: vec![0; users],
            finished: vec![0.0; users],
            now: Time::ZERO,
            s: None,
            ties: TieRule::new(users),
            waiting: vec![false; users],
            order: context.order.structure(users, 1),
            near: Vec::new(),
        }
    }

    /// s at `now`, which never falls.
    fn s(&mut self, now: Time) -> f64 {
        if now > self.now {
            (self.now, self.s) = (now, None);
        }
        if let Some(s) = self.s {
            return s;
        }
        let Penalty { clock, finished, order, .. } = self;
        let s = clock.s(now, |factor| {
            finished.iter_mut().for_each(|f| *f *= factor);
            order.rebase(factor);
        });
        self.s = Some(s);
        s
    }

    /// Returns the charge of a job per second, in processors.
    fn rate(&mut self, job: &Job<'_>) -> f64 {
        let chunks = u64::from(job.chunks.max(1));
        let steps: Box<[u64]> = job.demand.iter().map(|a| a.0.div_ceil(chunks)).collect();
        let Penalty { price, known, unit, holdings, .. } = self;
        let each = match known.get(&steps) {
            Some(price) => *price,
            None => {
                let chunk: Vec<Rational> = steps.iter().zip(unit).map(|(c, u)| Rational::from(*c) * &*u).collect();
                let price = to_f64(&price.processors(&chunk, holdings, &steps));
                known.insert(steps, price);
                price
            }
        };
        let all = each * chunks as f64;
        if self.by_rate { all * job.rate } else { all }
    }

    /// Returns the charge of a running job, made at its start.
    fn asked(&self, rate: f64, requested: Span) -> u128 {
        // Limited to a thousand times the whole capacity.
        ((rate * self.fine).min((1_u64 << 60) as f64) as u128) * u128::from(requested.nanos())
    }

    fn set_line(&mut self, user: UserId) {
        let u = user.index();
        if self.waiting[u] {
            let inverse = self.inverse[u];
            self.order.set(user.0, &[self.constant(u) * inverse], &[self.finished[u] * inverse]);
        }
    }

    /// Returns the processor-seconds charged for running jobs.
    fn constant(&self, user: usize) -> f64 {
        self.running[user] as f64 / self.fine * 1e-9
    }

    fn key(&self, user: u32, s: f64) -> f64 {
        let u = user as usize;
        self.constant(u) * self.inverse[u] + self.finished[u] * self.inverse[u] * s
    }
}

impl Policy for Penalty {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        let was = std::mem::replace(&mut self.waiting[user.index()], first.is_some());
        self.ties.set_first_pending(user, first);
        match first {
            Some(_) if was => {}
            Some(_) => self.set_line(user),
            None => self.order.remove(user.0),
        }
    }

    fn started(&mut self, now: Time, job: &Job<'_>) {
        self.s(now);
        let rate = self.rate(job);
        self.holdings.add(job.user, job.demand);
        // Wrapping arithmetic: each addition is undone by its subtraction.
        let asked = self.asked(rate, job.requested);
        let running = &mut self.running[job.user.index()];
        *running = running.wrapping_add(asked);
        self.set_line(job.user);
    }

    fn finished(&mut self, now: Time, job: &Job<'_>) {
        let s = self.s(now);
        let rate = self.rate(job);
        self.holdings.remove(job.user, job.demand);
        let asked = self.asked(rate, job.requested);
        let running = &mut self.running[job.user.index()];
        *running = running.wrapping_sub(asked);
        // rate (1 - 2^(-T / H)) H / ln 2: a continuous charge of `rate` for T, decayed.
        let lost = self.decay.over(now - job.started).lost.to_f64();
        self.finished[job.user.index()] += rate * self.decay.tau_s() * lost / s;
        self.set_line(job.user);
    }

    fn next(&mut self, now: Time) -> Option<UserId> {
        let s = self.s(now);
        let mut near = std::mem::take(&mut self.near);
        self.order.lowest(s, 2.0 * NEAR, f64::MIN_POSITIVE, &mut near);
        let lowest = near.iter().map(|&u| self.key(u, s)).fold(f64::INFINITY, f64::min);
        let as_good = near.iter().filter(|&&u| self.key(u, s) <= lowest * (1.0 + NEAR)).map(|&u| UserId(u));
        let next = as_good.min_by(|a, b| self.ties.compare(*a, *b));
        self.near = near;
        next
    }

    fn key_depends_on_job(&self) -> bool {
        false
    }

    fn standing(&mut self, now: Time, user: UserId) -> Standing {
        let s = self.s(now);
        Standing { shares: self.holdings.shares(user), commitments: Vec::new(), key: self.key(user.0, s) }
    }

    fn depends_on_job_details(&self) -> bool {
        true
    }

    fn order_events(&self) -> u64 {
        self.order.order_events()
    }
}
