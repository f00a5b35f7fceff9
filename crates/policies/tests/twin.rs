//! Every policy against its obvious twin in exact rationals.
//!
//! sdrf decays by a transcendental function, but at whole multiples of the half-life everything is
//! a rational: so these tests live on that grid, and a tie is a tie.

#![allow(clippy::unwrap_used)]

use evenhand_model::{Amount, Capacity, Quantity, Rational, Resource, Span, Time, UserId, Weights, to_f64};
use evenhand_policies::{Decay, Job, PolicyContext, Registry};
use proptest::prelude::*;

const USERS: usize = 5;
const HALF_LIFE_S: u64 = 8;

/// Keys by definition, in rationals, recomputed from scratch each time.
struct Twin {
    policy: &'static str,
    capacity: Vec<Rational>,
    weights: Vec<Rational>,
    entitlement: Vec<Rational>,
    held: Vec<Vec<u64>>,
    commitment: Vec<Vec<Rational>>,
    /// Overuse in each of the last two half-lives, which are the window of sdrf-window.
    window: Vec<Vec<[Rational; 2]>>,
    /// Charge a second of what runs, and the decayed usage in the same unit.
    rate: Vec<Rational>,
    usage: Vec<Rational>,
    /// The entry penalties of Kueue: charge a second of what started since the last sample.
    pending: Vec<Rational>,
    seconds: u64,
    first: Vec<Option<u64>>,
}

/// Kueue's sampling interval, and what a start is charged at once: the part of a steady usage that is
/// reached by then, as an `f64`.
const SAMPLING_S: u64 = 300;

fn entry_penalty() -> Rational {
    Rational::try_from(1.0 - 2f64.powf(-(SAMPLING_S as f64) / HALF_LIFE_S as f64)).unwrap()
}

impl Twin {
    fn shares(&self, u: usize) -> Vec<Rational> {
        self.held[u].iter().zip(&self.capacity).map(|(&h, c)| Rational::from(h) / c).collect()
    }

    /// Eq. 6 over whole half-lives.
    fn pass(&mut self, half_lives: usize) {
        let keep = Rational::from_parts(1.into(), evenhand_model::UBig::ONE << half_lives);
        for u in 0..USERS {
            let shares = self.shares(u);
            for ((c, window), o) in self.commitment[u].iter_mut().zip(&mut self.window[u]).zip(shares) {
                let overuse = (o - &self.entitlement[u]).max(Rational::ZERO);
                for _ in 0..half_lives.min(2) {
                    window.swap(0, 1);
                    window[1] = overuse.clone();
                }
                *c = match self.policy {
                    "sdrf-window" => (&window[0] + &window[1]) / Rational::from(2u8),
                    _ => &overuse + (&*c - &overuse) * &keep,
                };
            }
            self.usage[u] = &self.rate[u] + (&self.usage[u] - &self.rate[u]) * &keep;
        }
        let samples = self.seconds / SAMPLING_S;
        self.seconds += HALF_LIFE_S * half_lives as u64;
        if self.seconds / SAMPLING_S != samples {
            self.pending.fill(Rational::ZERO);
        }
    }

    fn charge(&self, demand: [u64; 2]) -> Rational {
        let shares = demand.iter().zip(&self.capacity).map(|(&d, c)| Rational::from(d) / c);
        match self.policy {
            "usage-weighted" => shares.fold(Rational::ZERO, |a, b| a + b),
            _ => shares.max().unwrap(),
        }
    }

    fn start(&mut self, u: usize, demand: [u64; 2]) {
        (0..2).for_each(|r| self.held[u][r] += demand[r]);
        let charge = self.charge(demand);
        self.rate[u] += &charge;
        self.pending[u] += charge;
    }

    fn finish(&mut self, u: usize, demand: [u64; 2]) {
        (0..2).for_each(|r| self.held[u][r] -= demand[r]);
        let charge = self.charge(demand);
        self.rate[u] -= charge;
    }

    /// The part of a key that is kept to so many digits.
    fn remembered(&self, u: usize) -> &Rational {
        match self.policy {
            "fair-tree" | "half-life" | "usage-weighted" => (&self.usage[u]).max(&self.rate[u]),
            _ => self.commitment[u].iter().max().unwrap(),
        }
    }

    fn key(&self, u: usize) -> Rational {
        let (o, c) = (self.shares(u), &self.commitment[u]);
        let key = match self.policy {
            "fifo" => return Rational::from(self.first[u].unwrap()),
            "drf" => o.into_iter().max().unwrap(),
            "asset" => o.into_iter().fold(Rational::ZERO, |a, b| a + b),
            // Without accounts sdrf-tree is sdrf.
            "sdrf" | "sdrf-window" | "sdrf-tree" => o.iter().zip(c).map(|(o, c)| o + c).max().unwrap(),
            "sdrf-dominant" => o.into_iter().max().unwrap() + c.iter().max().unwrap(),
            // Without accounts, and so in one order.
            "fair-tree" | "half-life" => self.usage[u].clone(),
            "usage-weighted" => &self.usage[u] + &self.pending[u] * entry_penalty(),
            other => panic!("the twin does not know {other}: a new policy needs its definition here"),
        };
        key / &self.weights[u]
    }

    fn next(&self) -> Option<UserId> {
        let waiting = (0..USERS).filter(|&u| self.first[u].is_some());
        waiting.min_by_key(|&u| (self.key(u), self.first[u], u)).map(|u| UserId(u as u32))
    }
}

#[derive(Clone, Debug)]
enum Event {
    Wait(usize, bool),
    Start(usize, [u64; 2]),
    FinishOldest(usize),
    Pass(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let user = 0..USERS;
    prop_oneof![
        4 => (user.clone(), any::<bool>()).prop_map(|(u, w)| Event::Wait(u, w)),
        6 => (user.clone(), [0u64..4, 0u64..4]).prop_map(|(u, d)| Event::Start(u, d)),
        4 => user.prop_map(Event::FinishOldest),
        3 => (0usize..4).prop_map(Event::Pass),
        // Past an epoch, and far past what an f64 can hold beside it.
        1 => prop_oneof![Just(30), Just(70), Just(2000)].prop_map(Event::Pass),
    ]
}

fn check(capacity: [&str; 2], weights: [&str; USERS], events: &[Event]) -> Result<(), TestCaseError> {
    let quantity = |q: &str| Quantity::parse(q).unwrap();
    let resources = ["cpu", "mem"].map(|r| Resource::new(r, ""));
    let units: Vec<Rational> = capacity.iter().map(|c| quantity(c).exact().clone()).collect();
    let pool = Capacity::new(&resources, units.clone()).unwrap();
    let weighting = Weights::new(weights.map(quantity)).unwrap();
    let decay = Decay::from_half_life(Span::from_secs(HALF_LIFE_S)).unwrap();
    for registration in Registry::built_in().policies() {
        let setting = PolicyContext::new(&pool, &weighting).decay(Some(decay));
        let mut policy = registration.build(&setting).unwrap();
        if policy.depends_on_job_details() {
            continue; // tests/penalty.rs
        }
        let mut twin = Twin {
            policy: registration.name,
            capacity: units.clone(),
            weights: (0..USERS).map(|u| weighting.exact_over_mean(u)).collect(),
            entitlement: (0..USERS).map(|u| weighting.entitlement(u)).collect(),
            held: vec![vec![0; 2]; USERS],
            commitment: vec![vec![Rational::ZERO; 2]; USERS],
            window: vec![vec![[Rational::ZERO; 2]; 2]; USERS],
            rate: vec![Rational::ZERO; USERS],
            usage: vec![Rational::ZERO; USERS],
            pending: vec![Rational::ZERO; USERS],
            seconds: 0,
            first: vec![None; USERS],
        };
        let mut running: Vec<Vec<[u64; 2]>> = vec![Vec::new(); USERS];
        let mut now = Time::ZERO;
        // Samples are counted from the first event.
        prop_assert_eq!(policy.next(now), None);
        for event in events {
            match *event {
                Event::Wait(u, waits) => {
                    // Few distinct submission times, so that the last tie rule is reached too.
                    let first = waits.then_some(now.nanos() % 3);
                    twin.first[u] = first;
                    let user = UserId(u as u32);
                    policy.set_first_pending(user, first.map(|t| Job::new(user, &[]).at(Time::from_nanos(t))).as_ref());
                }
                Event::Start(u, d) => {
                    running[u].push(d);
                    twin.start(u, d);
                    policy.started(now, &Job::new(UserId(u as u32), &d.map(Amount)));
                }
                Event::FinishOldest(u) => {
                    if !running[u].is_empty() {
                        let d = running[u].remove(0);
                        twin.finish(u, d);
                        policy.finished(now, &Job::new(UserId(u as u32), &d.map(Amount)));
                    }
                }
                Event::Pass(half_lives) => {
                    twin.pass(half_lives);
                    now = now + Span::from_secs(HALF_LIFE_S * half_lives as u64);
                }
            }
            if differs_below_thirty_digits(&twin) {
                return Ok(());
            }
            prop_assert_eq!(policy.next(now), twin.next(), "{} after {:?}", registration.name, event);
            for u in 0..USERS {
                let standing = policy.standing(now, UserId(u as u32));
                for (c, exact) in standing.commitments.iter().zip(&twin.commitment[u]) {
                    prop_assert!((c - to_f64(exact)).abs() <= 1e-13, "{c} is not {exact}");
                }
            }
        }
    }
    Ok(())
}

/// Whether some pair of keys differs, but by less than thirty digits of a commitment show: two users
/// alike in all but what one of them did a hundred half-lives ago.
fn differs_below_thirty_digits(twin: &Twin) -> bool {
    let weighted = |u: usize| twin.remembered(u) / &twin.weights[u];
    let keys: Vec<(Rational, Rational)> =
        (0..USERS).filter(|&u| twin.first[u].is_some()).map(|u| (twin.key(u), weighted(u))).collect();
    let thirty_digits = Rational::from_parts(1.into(), evenhand_model::UBig::ONE << 90);
    let close =
        |(a, c): &(Rational, Rational), (b, d): &(Rational, Rational)| a < b && b - a < c.max(d) * &thirty_digits;
    keys.iter().any(|a| keys.iter().any(|b| close(a, b)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn equal_users_on_a_round_pool(events in prop::collection::vec(event(), 1..60)) {
        check(["10", "10"], ["1"; USERS], &events)?;
    }

    #[test]
    fn weighted_users_on_a_fractional_pool(
        events in prop::collection::vec(event(), 1..60),
        capacity in prop::sample::select(vec![["10", "20"], ["25/3", "10"], ["1000000000000000000", "3"], ["0.7", "1/3"]]),
        weights in prop::array::uniform5(prop::sample::select(vec!["1", "2", "1/2", "3", "1000000", "0.000001"])),
    ) {
        check(capacity, weights, &events)?;
    }
}

#[test]
fn the_two_keys_of_sdrf_order_the_users_of_the_reference_differently() {
    // A: o = (.5, .1), c = (0, .3); B: o = (.6, 0), c = 0.
    // c is reached by over-using mem by .3 + entitlement for ever (tau is short).
    let resources = ["cpu", "mem"].map(|r| Resource::new(r, ""));
    let pool = Capacity::new(&resources, vec![Rational::from(10); 2]).unwrap();
    let weights = Weights::equal(2);
    let decay = Some(Decay::from_half_life(Span::from_nanos(1)).unwrap());
    let next = |name: &str| {
        let mut policy = Registry::built_in().build(name, &PolicyContext::new(&pool, &weights).decay(decay)).unwrap();
        let (a, b) = (UserId(0), UserId(1));
        let (start, later) = (Time::ZERO, Time::from_secs(1));
        policy.started(start, &Job::new(a, &[Amount(0), Amount(8)]));
        policy.set_first_pending(a, Some(&Job::new(a, &[]).at(start)));
        policy.set_first_pending(b, Some(&Job::new(b, &[]).at(start)));
        policy.finished(later, &Job::new(a, &[Amount(0), Amount(8)]));
        policy.started(later, &Job::new(a, &[Amount(5), Amount(1)]));
        policy.started(later, &Job::new(b, &[Amount(6), Amount(0)]));
        policy.next(later)
    };
    assert_eq!(next("sdrf"), Some(UserId(0)), ".5 against .6");
    assert_eq!(next("sdrf-dominant"), Some(UserId(1)), ".8 against .6");
}
