//! Penalties against a slow expected that adds up every job anew, and the invariants of the reference (6.6).
#![allow(clippy::unwrap_used)]

use evenhand_model::{
    Account, AccountTree, Amount, Capacity, Quantity, Rational, Resource, Span, Time, UserId, Weights,
};
use evenhand_policies::equivalents::{Combine, Equivalents};
use evenhand_policies::{Decay, Job, Policy, PolicyContext, Registry};
use proptest::prelude::*;

const HALF_LIFE_S: u64 = 1000;
const USERS: usize = 4;

fn resources() -> [Resource; 2] {
    ["cpu", "mem"].map(|r| Resource::new(r, ""))
}

fn rational(text: &str) -> Rational {
    Quantity::parse(text).unwrap().exact().clone()
}

/// The machines of the reference: A (16 cpu, 64 GB), B (8, 256), C (64, 512).
fn machines() -> Vec<(u32, Vec<Rational>)> {
    [[16u16, 64], [8, 256], [64, 512]].map(|has| (1, has.map(Rational::from).to_vec())).to_vec()
}

struct Site {
    capacity: Capacity,
    prices: Equivalents,
    weights: Weights,
    accounts: Option<AccountTree>,
}

impl Site {
    fn new(weights: [&str; USERS], accounts: Option<AccountTree>) -> Site {
        let capacity = Capacity::new(&resources(), vec![Rational::from(88), Rational::from(832)]).unwrap();
        let prices = Equivalents::new(&resources(), machines(), Combine::default()).unwrap();
        let weights = Weights::new(weights.map(|w| Quantity::parse(w).unwrap())).unwrap();
        Site { capacity, prices, weights, accounts }
    }

    fn policy(&self, name: &str) -> Box<dyn Policy> {
        let decay = Decay::from_half_life(Span::from_secs(HALF_LIFE_S)).unwrap();
        let setting =
            PolicyContext::new(&self.capacity, &self.weights).decay(Some(decay)).equivalents(Some(&self.prices));
        Registry::built_in().build(name, &setting.accounts(self.accounts.as_ref())).unwrap()
    }
}

/// A job by its numbers.
#[derive(Clone, Copy, Debug)]
struct Held {
    user: usize,
    demand: [u64; 2],
    chunks: u32,
    asked_s: u64,
    rate: f64,
    started_s: u64,
    ended_s: Option<u64>,
}

/// One unit of a resource without a unit in steps.
fn step() -> u64 {
    resources()[0].steps()
}

impl Held {
    fn demand(&self) -> [Amount; 2] {
        self.demand.map(|d| Amount(d * step()))
    }

    fn job<'a>(&self, demand: &'a [Amount]) -> Job<'a> {
        Job {
            chunks: self.chunks,
            requested: Span::from_secs(self.asked_s),
            started: Time::from_secs(self.started_s),
            rate: self.rate,
            ..Job::new(UserId(self.user as u32), demand)
        }
    }

    /// Eq. 2 and Eq. 3 at `now`, or processor time.
    fn charged(&self, now_s: u64, name: &str) -> f64 {
        let chunk = self.demand.map(|d| d.div_ceil(u64::from(self.chunks)) as f64);
        let each = match name {
            "cpu-time" => chunk[0],
            _ => {
                let machines = [[16.0, 64.0], [8.0, 256.0], [64.0, 512.0]];
                let fits = machines.iter().filter(|m| chunk[0] <= m[0] && chunk[1] <= m[1]);
                let on = |m: &[f64; 2]| (chunk[0] / m[0]).max(chunk[1] / m[1]) * m[0];
                fits.map(on).fold(f64::INFINITY, f64::min)
            }
        };
        let rate = each * f64::from(self.chunks) * if name == "cpu-time" { 1.0 } else { self.rate };
        let forgotten = |s: u64| (-((now_s - s) as f64) / HALF_LIFE_S as f64).exp2();
        match self.ended_s {
            None => rate * self.asked_s as f64,
            Some(end) => {
                let tau = HALF_LIFE_S as f64 / std::f64::consts::LN_2;
                rate * tau * (forgotten(end) - forgotten(self.started_s))
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Wait(usize, bool),
    Start(usize, [u64; 2], u32, u64, f64),
    FinishOldest(usize),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let size = (prop_oneof![Just(0u64), 1..17u64], prop_oneof![Just(0u64), 1..257u64]);
    let fits = |d: &[u64; 2], chunks: u32| {
        let chunk = d.map(|d| d.div_ceil(u64::from(chunks)));
        [[16, 64], [8, 256], [64, 512]].iter().any(|m| chunk[0] <= m[0] && chunk[1] <= m[1])
    };
    let rate = prop_oneof![Just(1.0), Just(1.5), Just(0.25)];
    prop_oneof![
        4 => (0..USERS, any::<bool>()).prop_map(|(u, w)| Event::Wait(u, w)),
        4 => (0..USERS, size, 1..4u32, prop_oneof![Just(0), Just(60), Just(86_400)], rate)
            .prop_map(|(u, (c, m), n, asked, rate)| Event::Start(u, [c, m], n, asked, rate))
            .prop_filter("fits somewhere", move |e| !matches!(e, Event::Start(_, d, n, ..) if !fits(d, *n))),
        4 => (0..USERS).prop_map(Event::FinishOldest),
        // To some 250 half-lives: epochs move.
        3 => prop_oneof![Just(1u64), Just(700), Just(40_000), Just(250_000)].prop_map(Event::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn keys_and_choices_are_those_of_adding_up_every_job(
        events in prop::collection::vec(event(), 1..60),
        weighted in any::<bool>(),
    ) {
        let weights = if weighted { ["1", "2", "1/3", "1"] } else { ["1"; USERS] };
        let site = Site::new(weights, None);
        for name in ["penalty", "cpu-time"] {
            let mut policy = site.policy(name);
            let mut jobs: Vec<Held> = Vec::new();
            let mut first = [None; USERS];
            let mut now_s = 0;
            for event in &events {
                match *event {
                    Event::Wait(u, waits) => {
                        first[u] = waits.then_some((now_s % 3, (USERS - u) as u64));
                        let user = UserId(u as u32);
                        let job = first[u].map(|(t, position)| Job::new(user, &[]).at(Time::from_secs(t), position));
                        policy.set_first_pending(user, job.as_ref());
                    }
                    Event::Start(user, demand, chunks, asked_s, rate) => {
                        let job = Held { user, demand, chunks, asked_s, rate, started_s: now_s, ended_s: None };
                        policy.started(Time::from_secs(now_s), &job.job(&job.demand()));
                        jobs.push(job);
                    }
                    Event::FinishOldest(u) => {
                        if let Some(job) = jobs.iter_mut().find(|j| j.user == u && j.ended_s.is_none()) {
                            policy.finished(Time::from_secs(now_s), &job.job(&job.demand()));
                            job.ended_s = Some(now_s);
                        }
                    }
                    Event::Pass(seconds) => now_s += seconds,
                }
                let key = |u: usize| {
                    let charged: f64 = jobs.iter().filter(|j| j.user == u).map(|j| j.charged(now_s, name)).sum();
                    let entitlement = evenhand_model::to_f64(&site.weights.entitlement(u));
                    charged / (entitlement * USERS as f64)
                };
                let keys: Vec<f64> = (0..USERS).map(key).collect();
                let now = Time::from_secs(now_s);
                // What is left after a thousand half-lives may be 0 here and not yet there.
                let mut is_nothing = [false; USERS];
                for (u, expected) in keys.iter().enumerate() {
                    let found = policy.standing(now, UserId(u as u32)).key;
                    is_nothing[u] = found == 0.0;
                    prop_assert!((found - expected).abs() <= 1e-9 * expected + 1e-9, "{name}: {found} for {expected} of {u}");
                }
                let waiting = (0..USERS).filter(|u| first[*u].is_some());
                let lowest = waiting.clone().map(|u| keys[u]).fold(f64::INFINITY, f64::min);
                match policy.next(now) {
                    None => prop_assert_eq!(waiting.count(), 0),
                    Some(user) => {
                        let u = user.index();
                        prop_assert!(first[u].is_some() && keys[u] <= lowest * (1.0 + 1e-9) + 1e-9);
                        // Of users without charges, the one whose job stands first in the log.
                        for v in waiting.filter(|v| is_nothing[*v] && is_nothing[u]) {
                            prop_assert!(first[u] <= first[v]);
                        }
                    }
                }
            }
        }
    }

    /// K5 and the kinetic order: what is asked in between changes nothing.
    #[test]
    fn looking_changes_nothing(stops in prop::collection::vec(1u64..5000, 1..20)) {
        let site = Site::new(["1"; USERS], None);
        let [mut seen, mut unseen] = [site.policy("penalty"), site.policy("penalty")];
        let job = Held { user: 0, demand: [4, 32], chunks: 1, asked_s: 900, rate: 1.0, started_s: 0, ended_s: None };
        for policy in [&mut seen, &mut unseen] {
            policy.started(Time::ZERO, &job.job(&job.demand()));
            policy.finished(Time::from_secs(600), &job.job(&job.demand()));
        }
        let mut now_s = 600;
        for stop in stops {
            now_s += stop;
            seen.next(Time::from_secs(now_s));
            seen.standing(Time::from_secs(now_s), UserId(0));
        }
        let end = Time::from_secs(now_s);
        let (a, b) = (seen.standing(end, UserId(0)).key, unseen.standing(end, UserId(0)).key);
        prop_assert!((a - b).abs() <= 1e-12 * a, "{a} {b}");
    }
}

fn start(policy: &mut dyn Policy, job: Held) {
    policy.started(Time::from_secs(job.started_s), &job.job(&job.demand()));
}

const JOB: Held = Held { user: 0, demand: [4, 4], chunks: 1, asked_s: 3600, rate: 1.0, started_s: 0, ended_s: None };

#[test]
fn four_equivalents_for_an_hour_on_a_fast_machine_in_a_dear_queue() {
    // 4 PE * 3600 s * 1.5 * 2 = 43200, the reference's oracle; alone among four users.
    let site = Site::new(["1"; USERS], None);
    let mut policy = site.policy("penalty");
    start(policy.as_mut(), Held { rate: 1.5 * 2.0, ..JOB });
    let key = policy.standing(Time::ZERO, UserId(0)).key;
    assert!((key - 43_200.0).abs() < 1e-6, "{key}");
    // Processor time knows neither speed nor price.
    let mut policy = site.policy("cpu-time");
    start(policy.as_mut(), Held { rate: 1.5 * 2.0, ..JOB });
    assert!((policy.standing(Time::ZERO, UserId(0)).key - 14_400.0).abs() < 1e-6);
}

#[test]
fn memory_is_charged_where_it_is_the_scarcer() {
    // 1 processor with 32 GB is worth a processor on B; 200 GB are 25/4 (the reference's oracles).
    let site = Site::new(["1"; USERS], None);
    for (demand, processors) in [([1, 32], 1.0), ([4, 4], 4.0), ([16, 64], 16.0), ([2, 200], 6.25)] {
        let mut policy = site.policy("penalty");
        start(policy.as_mut(), Held { demand, ..JOB });
        let key = policy.standing(Time::ZERO, UserId(0)).key;
        assert!((key - processors * 3600.0).abs() < 1e-6, "{demand:?}: {key}");
    }
    // Two chunks of 8 and 100 GB: too much for A, 25/2 on C, and on B the processors decide.
    let mut policy = site.policy("penalty");
    start(policy.as_mut(), Held { demand: [16, 200], chunks: 2, ..JOB });
    assert!((policy.standing(Time::ZERO, UserId(0)).key - 2.0 * 8.0 * 3600.0).abs() < 1e-6);
}

#[test]
fn who_starts_many_jobs_in_one_cycle_feels_the_first_before_the_second() {
    let site = Site::new(["1"; USERS], None);
    let mut policy = site.policy("penalty");
    let [a, b] = [0, 1].map(|u| Job::new(UserId(u), &[]));
    policy.set_first_pending(UserId(0), Some(&a));
    policy.set_first_pending(UserId(1), Some(&b));
    let order: Vec<u32> = (0..6)
        .map(|_| {
            let user = policy.next(Time::ZERO).unwrap();
            start(policy.as_mut(), Held { user: user.index(), ..JOB });
            user.0
        })
        .collect();
    assert_eq!(order, [0, 1, 0, 1, 0, 1]);
}

#[test]
fn a_job_that_ends_early_pays_what_it_used() {
    let site = Site::new(["1"; USERS], None);
    let mut policy = site.policy("penalty");
    let job = Held { asked_s: 1_000_000, ..JOB };
    start(policy.as_mut(), job);
    policy.finished(Time::from_secs(10), &job.job(&job.demand()));
    let key = policy.standing(Time::from_secs(10), UserId(0)).key;
    // 40 processor-seconds, less what of them was forgotten in 10 of 1000 s.
    assert!(key < 40.0 && key > 40.0 * 0.99, "{key}");
    // And half of it one half-life later.
    let later = policy.standing(Time::from_secs(10 + HALF_LIFE_S), UserId(0)).key;
    assert!((later - key / 2.0).abs() < 1e-9);
}

#[test]
fn the_same_past_in_another_order_is_a_tie() {
    let site = Site::new(["1"; USERS], None);
    let mut policy = site.policy("penalty");
    let jobs = [1, 3, 5, 7].map(|c| Held { demand: [c, 3], ..JOB });
    for user in [0, 1] {
        jobs.iter().for_each(|j| start(policy.as_mut(), Held { user, ..*j }));
    }
    let now = Time::from_secs(77);
    for j in &jobs {
        policy.finished(now, &j.job(&j.demand()));
    }
    for j in jobs.iter().rev().map(|j| Held { user: 1, ..*j }) {
        policy.finished(now, &j.job(&j.demand()));
    }
    policy.set_first_pending(UserId(0), Some(&Job::new(UserId(0), &[]).at(Time::from_secs(2), 0)));
    policy.set_first_pending(UserId(1), Some(&Job::new(UserId(1), &[]).at(Time::from_secs(1), 0)));
    assert_eq!(policy.next(now), Some(UserId(1)), "submitted earlier");
    policy.set_first_pending(UserId(1), Some(&Job::new(UserId(1), &[]).at(Time::from_secs(2), 0)));
    assert_eq!(policy.next(now), Some(UserId(0)), "then by number");
}

/// K3: a machine twice as fast halves the time, and the penalty is the same. K6: only ratios matter.
#[test]
fn speed_and_scale_cancel() {
    let key = |weights: [&str; USERS], speed: f64, seconds: u64| {
        let site = Site::new(weights, None);
        let mut policy = site.policy("penalty");
        start(policy.as_mut(), Held { asked_s: seconds, rate: speed, ..JOB });
        policy.standing(Time::ZERO, UserId(0)).key
    };
    assert_eq!(key(["1"; USERS], 1.0, 3600), key(["1"; USERS], 2.0, 1800));
    assert_eq!(key(["1", "2", "3", "4"], 1.0, 3600), key(["10", "20", "30", "40"], 1.0, 3600));
}

#[test]
fn shares_come_from_the_tree_of_accounts() {
    // Physics has 3 of 4 shares and one user, biology 1 and three.
    let account = |name: &str, shares: &str| Account { name: name.into(), parent: None, shares: rational(shares) };
    let homes = vec![Some(0), Some(1), Some(1), Some(1)];
    let tree =
        AccountTree::new(vec![account("physics", "3"), account("biology", "1")], homes, vec![Rational::ONE; USERS]);
    let site = Site::new(["1"; USERS], Some(tree.unwrap()));
    let mut policy = site.policy("penalty");
    for user in [0, 1] {
        start(policy.as_mut(), Held { user, ..JOB });
    }
    let [physics, biology] = [0, 1].map(|u| policy.standing(Time::ZERO, UserId(u)).key);
    // 3/4 against 1/12.
    assert!((biology / physics - 9.0).abs() < 1e-12, "{biology} {physics}");
}
