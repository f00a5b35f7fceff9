//! The simulator and the policies together against an obvious program: lists searched from end to
//! end, keys by definition in exact rationals.
//!
//! Every time is a whole number of half-lives, so that sdrf too is exact.

#![allow(clippy::unwrap_used)]

use evenhand_documents::{Document, Format};
use evenhand_model::{
    Capacity, NO_TIME, Quantity, Rational, Resource, Span, Task, Time, UBig, Weights, Workload, WorkloadBuilder,
    mean_use, to_f64,
};
use evenhand_policies::multifactor::{FactorWeights, Settings};
use evenhand_policies::{Decay, Order, PolicyContext, PolicySettings, Registration, Registry};
use evenhand_simulator::{Metrics, PoolOptions, Progress, Simulated, TaskProcessors, UserTasks, simulate};
use proptest::prelude::*;

const HALF_LIFE_S: u64 = 16;

/// Times in half-lives.
#[derive(Clone, Debug)]
struct Job {
    submit: u64,
    duration: u64,
    user: usize,
    amounts: [u64; 2],
}

/// How often Kueue samples usage.
const SAMPLING_S: u64 = 300;

struct Twin<'a> {
    policy: &'a str,
    jobs: &'a [Job],
    capacity: &'a [Rational],
    weights: &'a Weights,
    /// Of multifactor.
    settings: &'a Settings,
    held: Vec<[u64; 2]>,
    commitment: Vec<[Rational; 2]>,
    /// Overuse in each of the last two half-lives, which are the window of sdrf-window.
    window: Vec<[[Rational; 2]; 2]>,
    /// Decayed charges, and Kueue's entry penalties: charges of what started since the last sample.
    usage: Vec<Rational>,
    pending: Vec<Rational>,
    running: Vec<(u64, usize)>,
    now: u64,
    starts: Vec<Option<u64>>,
    /// Whether two keys once differed so little that it is beyond the policy: after the twenty-fourth digit, or
    /// the twelfth of a penalty.
    too_near: bool,
}

impl<'a> Twin<'a> {
    fn new(
        policy: &'a str,
        jobs: &'a [Job],
        capacity: &'a [Rational],
        weights: &'a Weights,
        settings: &'a Settings,
    ) -> Twin<'a> {
        let n = weights.len();
        Twin {
            policy,
            jobs,
            capacity,
            weights,
            settings,
            held: vec![[0; 2]; n],
            commitment: vec![[Rational::ZERO, Rational::ZERO]; n],
            window: vec![[const { [Rational::ZERO; 2] }; 2]; n],
            usage: vec![Rational::ZERO; n],
            pending: vec![Rational::ZERO; n],
            running: Vec::new(),
            now: 0,
            starts: vec![None; jobs.len()],
            too_near: false,
        }
    }

    fn shares(&self, user: usize) -> [Rational; 2] {
        [0, 1].map(|r| Rational::from(self.held[user][r]) / &self.capacity[r])
    }

    /// Eq. 6 over whole half-lives.
    fn pass(&mut self, half_lives: u64) {
        let keep = Rational::from_parts(1.into(), UBig::ONE << half_lives as usize);
        for user in 0..self.held.len() {
            for (r, share) in self.shares(user).into_iter().enumerate() {
                let overuse = (share - self.weights.entitlement(user)).max(Rational::ZERO);
                let (c, window) = (&mut self.commitment[user][r], &mut self.window[user][r]);
                for _ in 0..half_lives.min(2) {
                    window.swap(0, 1);
                    window[1] = overuse.clone();
                }
                *c = match self.policy {
                    "sdrf-window" => (&window[0] + &window[1]) / Rational::from(2u8),
                    _ => &overuse + (&*c - &overuse) * &keep,
                };
            }
            let of_user = self.running.iter().map(|&(_, i)| &self.jobs[i]).filter(|job| job.user == user);
            let rate = of_user.fold(Rational::ZERO, |sum, job| sum + self.charge(job));
            self.usage[user] = &rate + (&self.usage[user] - &rate) * &keep;
        }
    }

    /// What a running job is charged a second.
    fn charge(&self, job: &Job) -> Rational {
        let [a, b] = [0, 1].map(|r| Rational::from(job.amounts[r]) / &self.capacity[r]);
        if self.policy == "usage-weighted" { a + b } else { a.max(b) }
    }

    /// Eq. 3 of paper 004, job by job: what it asked for while it runs, then what it used, forgotten since.
    /// A job that asks for nothing is taken to ask for what it runs, at least a nanosecond.
    fn penalties(&self, user: usize) -> Rational {
        let kept = |half_lives: u64| Rational::from_parts(1.into(), UBig::ONE << half_lives as usize);
        let charged = |(i, job): (usize, &Job)| {
            let start = self.starts[i]?;
            let price = if self.policy == "cpu-time" { Rational::from(job.amounts[0]) } else { self.charge(job) };
            let seconds = if self.running.iter().any(|r| r.1 == i) {
                let least = Rational::from_parts(1.into(), UBig::from(1_000_000_000u64));
                Rational::from(job.duration * HALF_LIFE_S).max(least)
            } else {
                let tau = Rational::try_from(HALF_LIFE_S as f64 / std::f64::consts::LN_2).unwrap();
                tau * (kept(self.now - start - job.duration) - kept(self.now - start))
            };
            Some(price * seconds)
        };
        let jobs = self.jobs.iter().enumerate().filter(|(_, job)| job.user == user);
        jobs.filter_map(charged).fold(Rational::ZERO, |sum, x| sum + x)
    }

    /// Slurm's priority with Fair Tree of one level, in fractions down to the whole number.
    fn priority(&self, job: &Job) -> u32 {
        let Settings { weights, max_age, .. } = self.settings;
        let whole = |n: u32| Rational::from(n);
        let waited = Rational::from((self.now - job.submit) * HALF_LIFE_S * 1_000_000_000);
        let age = (waited / Rational::from(max_age.nanos())).min(Rational::ONE);
        let used = |u: usize| &self.usage[u] / self.weights.exact(u);
        let users = self.usage.len();
        let better = (0..users).filter(|u| used(*u) < used(job.user)).count();
        let fairshare = Rational::ONE - Rational::from(better) / Rational::from(users);
        let share = |r: usize| Rational::from(job.amounts[r]) / &self.capacity[r];
        let mut size = share(0);
        if self.settings.small_relative_to_time {
            size /= Rational::from((job.duration * HALF_LIFE_S).div_ceil(60).max(1));
        }
        if self.settings.favor_small {
            size = Rational::ONE - size;
        }
        let tres = weights.tres.iter().enumerate().map(|(r, weight)| weight * share(r));
        let sum = whole(weights.age) * age + whole(weights.fairshare) * fairshare + whole(weights.job_size) * size;
        let sum = tres.fold(sum + whole(weights.partition), |sum, x| sum + x);
        u32::try_from(sum.floor().max(1.into())).unwrap()
    }

    fn key(&self, job: &Job) -> Rational {
        let ([o, p], [c, d]) = (self.shares(job.user), self.commitment[job.user].clone());
        let key = match self.policy {
            "fifo" => return Rational::from(job.submit),
            "multifactor" => return -Rational::from(self.priority(job)),
            "drf" => o.max(p),
            "asset" => o + p,
            // Without accounts sdrf-tree is sdrf, and the two of Slurm are one.
            "sdrf" | "sdrf-window" | "sdrf-tree" => (o + c).max(p + d),
            "fair-tree" | "half-life" => self.usage[job.user].clone(),
            "usage-weighted" => {
                let penalty = 1.0 - 2f64.powf(-(SAMPLING_S as f64) / HALF_LIFE_S as f64);
                &self.usage[job.user] + &self.pending[job.user] * Rational::try_from(penalty).unwrap()
            }
            "penalty" | "cpu-time" => self.penalties(job.user),
            "sdrf-dominant" => o.max(p) + c.max(d),
            other => panic!("the twin does not know {other}: a new policy needs its definition here"),
        };
        key / self.weights.exact_over_mean(job.user)
    }

    fn fits(&self, amounts: [u64; 2]) -> bool {
        let held = |r: usize| self.running.iter().map(|&(_, i)| self.jobs[i].amounts[r]).sum::<u64>();
        (0..2).all(|r| Rational::from(held(r) + amounts[r]) <= self.capacity[r])
    }

    /// The starts, unless two keys were too near each other to be told apart.
    fn run(mut self, blocking: bool, until: Option<u64>) -> Option<Vec<Option<u64>>> {
        let accepted: Vec<bool> = self.jobs.iter().map(|j| self.fits(j.amounts)).collect();
        let mut submitted = vec![false; self.jobs.len()];
        let mut last = None;
        loop {
            let ends = self.running.iter().map(|r| r.0);
            let submissions = self.jobs.iter().zip(&submitted).filter(|(_, s)| !**s).map(|(j, _)| j.submit);
            let Some(now) = ends.chain(submissions).min() else { break };
            if until.is_some_and(|until| now > until) {
                break;
            }
            self.pass(now - last.unwrap_or(now));
            let sample = |at: u64| (at - self.jobs[0].submit) * HALF_LIFE_S / SAMPLING_S;
            if sample(now) != sample(last.unwrap_or(now)) {
                self.pending.fill(Rational::ZERO);
            }
            last = Some(now);
            self.now = now;
            for (_, i) in self.running.extract_if(.., |r| r.0 == now) {
                (0..2).for_each(|r| self.held[self.jobs[i].user][r] -= self.jobs[i].amounts[r]);
            }
            for (s, job) in submitted.iter_mut().zip(self.jobs) {
                *s |= job.submit == now;
            }
            let mut set_aside = Vec::new();
            loop {
                let waits = |i: usize| submitted[i] && accepted[i] && self.starts[i].is_none();
                let first = |i: usize| waits(i) && !(0..i).any(|k| waits(k) && self.jobs[k].user == self.jobs[i].user);
                let candidates = (0..self.jobs.len()).filter(|&i| first(i) && !set_aside.contains(&self.jobs[i].user));
                let candidates: Vec<usize> = candidates.collect();
                self.too_near |= self.differ_too_little(&candidates);
                let least = candidates
                    .into_iter()
                    .min_by_key(|&i| (self.key(&self.jobs[i]), self.jobs[i].submit, self.jobs[i].user));
                let Some(i) = least else { break };
                let job = &self.jobs[i];
                if self.fits(job.amounts) {
                    self.starts[i] = Some(now);
                    self.running.push((now + job.duration, i));
                    (0..2).for_each(|r| self.held[job.user][r] += job.amounts[r]);
                    let charge = self.charge(job);
                    self.pending[job.user] += charge;
                } else if blocking {
                    break;
                } else {
                    set_aside.push(job.user);
                }
            }
        }
        (!self.too_near).then_some(self.starts)
    }

    fn differ_too_little(&self, candidates: &[usize]) -> bool {
        let mut keys: Vec<Rational> = match self.policy {
            // Ranks go by everybody's usage, and all else is exact.
            "multifactor" => (0..self.usage.len()).map(|u| &self.usage[u] / self.weights.exact(u)).collect(),
            _ => candidates.iter().map(|&i| self.key(&self.jobs[i])).collect(),
        };
        keys.sort();
        // Penalties are sums of f64.
        let digits = if ["penalty", "cpu-time"].contains(&self.policy) { 40 } else { 80 };
        let tiny = Rational::from_parts(1.into(), UBig::ONE << digits);
        keys.windows(2).any(|w| w[0] < w[1] && (&w[1] - &w[0]) < &tiny * &w[1])
    }
}

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let job = (0u64..12, prop_oneof![1 => Just(0u64), 6 => 1u64..6], 0usize..4, [0u64..4, 0u64..4]);
    let job = job.prop_map(|(submit, duration, user, amounts)| Job { submit, duration, user, amounts });
    prop::collection::vec(job, 1..24).prop_map(|mut jobs| {
        jobs.sort_by_key(|j| j.submit);
        // Users are numbered by first appearance.
        let mut seen = Vec::new();
        for job in &mut jobs {
            let at = seen.iter().position(|&u| u == job.user).unwrap_or_else(|| {
                seen.push(job.user);
                seen.len() - 1
            });
            job.user = at;
        }
        jobs
    })
}

/// Slurm's example; age, size and resources against each other; size by time with ages in large steps.
fn settings() -> Vec<Settings> {
    let weights = |age, fairshare, job_size, tres: [i64; 2]| FactorWeights {
        age,
        fairshare,
        job_size,
        tres: tres.map(Rational::from).into(),
        ..FactorWeights::default()
    };
    let mixed = Settings {
        weights: weights(500, 300, 200, [150, -50]),
        max_age: Span::from_secs(5 * HALF_LIFE_S),
        favor_small: true,
        ..Settings::default()
    };
    let by_time = Settings {
        weights: weights(3, 4, 2, [0, 2]),
        max_age: Span::from_secs(3 * HALF_LIFE_S),
        small_relative_to_time: true,
        ..Settings::default()
    };
    vec![Settings::default(), mixed, by_time]
}

fn workload(jobs: &[Job]) -> Workload {
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    for job in jobs {
        builder.push(&Task {
            submit: Time::from_secs(job.submit * HALF_LIFE_S),
            duration: Span::from_secs(job.duration * HALF_LIFE_S),
            user: &format!("user{}", job.user),
            amounts: &job.amounts.map(|a| u128::from(a) * 1_000_000_000),
            ..Task::default()
        });
    }
    builder.finish().unwrap()
}

fn run(
    w: &Workload,
    capacity: &Capacity,
    weights: &Weights,
    (policy, order, settings): (&Registration, Order, &Settings),
    options: PoolOptions,
) -> Simulated {
    let decay = Some(Decay::from_half_life(Span::from_secs(HALF_LIFE_S)).unwrap());
    let registry = Registry::built_in();
    let text = settings.to_toml(w.resources(), w.queues());
    let mut sections = PolicySettings::default();
    let document = Document::parse("settings", &text, Some(Format::Toml)).unwrap();
    sections.set_section(&registry, "multifactor", document).unwrap();
    let context = PolicyContext::new(capacity, weights).workload(w).settings(&sections);
    let mut policy = policy.build(&context.decay(decay).order(order)).unwrap();
    simulate(w, &UserTasks::new(w), capacity, policy.as_mut(), options, &Progress::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_task_starts_when_the_twin_starts_it(
        jobs in jobs(),
        capacity in prop::sample::select(vec![["3", "3"], ["5", "5"], ["10", "5"], ["7/2", "13/3"], ["2", "100"]]),
        weights in prop::sample::select(vec![["1"; 4], ["1", "2", "3", "4"], ["1/2", "1000", "1", "0.001"]]),
        blocking in any::<bool>(),
        until in prop::option::of(0u64..20),
        order in prop::sample::select(Order::ALL.to_vec()),
        settings in prop::sample::select(settings()),
    ) {
        let w = workload(&jobs);
        let units: Vec<Rational> = capacity.iter().map(|c| Quantity::parse(c).unwrap().exact().clone()).collect();
        let pool = Capacity::new(w.resources(), units.clone()).unwrap();
        let users = w.users().len();
        let weights = Weights::new(weights[..users].iter().map(|w| Quantity::parse(w).unwrap())).unwrap();
        // The first event is never left out: a run begins with it.
        let until = until.map(|u| u.max(jobs[0].submit));
        let options = PoolOptions { blocking, until: until.map(|u| Time::from_secs(u * HALF_LIFE_S)) };
        for policy in Registry::built_in().policies() {
            let found = run(&w, &pool, &weights, (policy, order, &settings), options);
            let starts: Vec<Option<u64>> = found
                .starts
                .iter()
                .map(|&s| (s != NO_TIME).then_some(s / 1_000_000_000 / HALF_LIFE_S))
                .collect();
            let Some(twin) = Twin::new(policy.name, &jobs, &units, &weights, &settings).run(blocking, until) else { continue };
            prop_assert_eq!(&starts, &twin, "{} {}", policy.name, order.name());
            check_metrics(&w, &pool, &found, &jobs, &twin)?;
        }
    }
}

/// The metrics again, by definition.
fn check_metrics(
    w: &Workload,
    pool: &Capacity,
    found: &Simulated,
    jobs: &[Job],
    starts: &[Option<u64>],
) -> Result<(), TestCaseError> {
    let m = Metrics::measure(w, &UserTasks::new(w), pool, found, TaskProcessors::in_pool(w, pool).as_ref());
    let end = found.end.secs_f64() / HALF_LIFE_S as f64;
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
    for (u, record) in m.users.iter().enumerate() {
        let own: Vec<usize> = (0..jobs.len()).filter(|&i| jobs[i].user == u && jobs[i].submit as f64 <= end).collect();
        let waits: Vec<f64> =
            own.iter().filter_map(|&i| Some((starts[i]? - jobs[i].submit) as f64 * HALF_LIFE_S as f64)).collect();
        prop_assert_eq!(record.totals.submitted, own.len() as u64);
        prop_assert_eq!(record.totals.started, waits.len() as u64);
        match record.mean_wait_s {
            None => prop_assert!(waits.is_empty()),
            Some(mean) => prop_assert!(close(mean, waits.iter().sum::<f64>() / waits.len() as f64)),
        }
        let done = own.iter().filter(|&&i| starts[i].is_some_and(|s| (s + jobs[i].duration) as f64 <= end)).count();
        prop_assert_eq!(record.totals.completed, done as u64);
    }
    check_nuwt(pool, &m, jobs, starts)?;
    // What was held over time, added task by task.
    let span = end - jobs[0].submit as f64;
    for (r, &utilization) in m.utilization.iter().enumerate() {
        let area: f64 = (0..jobs.len())
            .filter_map(|i| {
                let s = starts[i]? as f64;
                Some(((s + jobs[i].duration as f64).min(end) - s) * jobs[i].amounts[r] as f64)
            })
            .sum();
        let expected = if span == 0.0 { 0.0 } else { area / (span * pool.units(r)) };
        prop_assert!(close(utilization, expected), "{utilization} {expected}");
        prop_assert!(utilization <= 1.0 + 1e-12);
    }
    let series_total: f64 = m.series.waiting.iter().sum::<f64>();
    prop_assert!(series_total.is_finite() && m.series.waiting.iter().all(|w| *w >= 0.0));
    Ok(())
}

/// Waits against areas in exact fractions, and the spread of their quotients by definition.
fn check_nuwt(pool: &Capacity, m: &Metrics, jobs: &[Job], starts: &[Option<u64>]) -> Result<(), TestCaseError> {
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
    let whole = |n: u64| Rational::from(n);
    let mut nuwt = [Vec::new(), Vec::new()];
    for (u, record) in m.users.iter().enumerate() {
        let (mut wait, mut cpu, mut pe) = (Rational::ZERO, Rational::ZERO, Rational::ZERO);
        let mut started = 0;
        for (job, start) in jobs.iter().zip(starts).filter(|(job, _)| job.user == u) {
            let Some(start) = start else { continue };
            started += 1;
            wait += whole((start - job.submit) * HALF_LIFE_S);
            let ran = whole(job.duration * HALF_LIFE_S);
            let [cpus, mem] = job.amounts.map(whole);
            let of_mem = &mem / pool.exact_units(1) * pool.exact_units(0);
            pe += &ran * if of_mem > cpus { of_mem } else { cpus.clone() };
            cpu += ran * cpus;
        }
        let n = record.normalized;
        prop_assert!(close(n.total_wait_s, to_f64(&wait)));
        prop_assert!(close(n.squashed_area_cpu_s.unwrap(), to_f64(&cpu)));
        prop_assert!(close(n.squashed_area_pe_s.unwrap(), to_f64(&pe)), "{n:?}");
        for ((area, found), all) in [(cpu, n.nuwt_per_cpu), (pe, n.nuwt_per_pe)].into_iter().zip(&mut nuwt) {
            let per = if area > Rational::ONE { area } else { Rational::ONE };
            prop_assert_eq!(found.is_some(), started > 0);
            if let Some(found) = found {
                let exact = &wait / per;
                prop_assert!(close(found, to_f64(&exact)));
                all.push(exact);
            }
        }
    }
    for (all, found) in nuwt.into_iter().zip([m.nuwt_per_cpu, m.nuwt_per_pe]) {
        let Some(found) = found else {
            prop_assert!(all.is_empty());
            continue;
        };
        let n = whole(all.len() as u64);
        let mean = all.iter().fold(Rational::ZERO, |sum, x| sum + x) / &n;
        let square = |x: Rational| &x * &x;
        let squares = all.iter().fold(Rational::ZERO, |sum, x| sum + square(x - &mean));
        let fairness = all.iter().fold(Rational::ZERO, |sum, x| sum + square(Rational::ONE + &mean - x));
        prop_assert!(close(found.mean, to_f64(&mean)));
        prop_assert!(close(found.variance, to_f64(&(&squares / &n))));
        prop_assert!(close(found.standard_deviation.powi(2), found.variance));
        prop_assert!(close(found.fairness, to_f64(&fairness)));
        prop_assert_eq!(fairness, squares + n, "F is n (1 + variance)");
    }
    Ok(())
}

#[test]
fn a_pool_of_all_that_was_ever_used_delays_nobody() {
    let jobs: Vec<Job> = (0..50).map(|i| Job { submit: i, duration: 3, user: 0, amounts: [1, 2] }).collect();
    let w = workload(&jobs);
    let peak = Capacity::new(w.resources(), vec![Rational::from(3), Rational::from(6)]).unwrap();
    for policy in Registry::built_in().policies() {
        let found =
            run(&w, &peak, &Weights::equal(1), (policy, Order::Auto, &Settings::default()), PoolOptions::default());
        assert_eq!(found.starts, w.columns().submit.iter().map(|t| t.nanos()).collect::<Vec<_>>(), "{}", policy.name);
    }
    let r = mean_use(&w);
    let tight = Capacity::multiple(w.resources(), &r, &Quantity::parse("0.9").unwrap()).unwrap();
    let found =
        run(&w, &tight, &Weights::equal(1), (Registry::built_in().get("fifo").unwrap(), Order::Auto, &Settings::default()), PoolOptions::default());
    assert!(found.starts.iter().zip(&w.columns().submit).any(|(s, t)| *s > t.nanos()));
}
