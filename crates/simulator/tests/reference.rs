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

#[path = "../../policies/tests/reference_models/mod.rs"]
mod reference_models;
use reference_models::{ModelJob, ReferenceModel, World, model};

const HALF_LIFE_S: u64 = 16;

/// Times in half-lives.
#[derive(Clone, Debug)]
struct Job {
    submit: u64,
    duration: u64,
    user: usize,
    amounts: [u64; 2],
}

/// The simulation by definition.
struct Reference<'a> {
    model: Box<dyn ReferenceModel>,
    jobs: &'a [Job],
    capacity: &'a [Rational],
    running: Vec<(u64, usize)>,
    starts: Vec<Option<u64>>,
    /// Whether two keys once differed so little that the policy cannot distinguish them.
    too_near: bool,
}

impl<'a> Reference<'a> {
    fn new(policy: &str, jobs: &'a [Job], world: &'a World) -> Reference<'a> {
        Reference {
            model: model(policy, world),
            jobs,
            capacity: &world.capacity,
            running: Vec::new(),
            starts: vec![None; jobs.len()],
            too_near: false,
        }
    }

    fn model_job(&self, id: usize) -> ModelJob {
        let job = &self.jobs[id];
        let submit = job.submit - self.jobs[0].submit;
        // No job asks for a wall time, so each is taken to ask for what it runs.
        ModelJob { id, user: job.user, amounts: job.amounts, submit, position: id as u64, requested: job.duration }
    }

    fn fits(&self, amounts: [u64; 2]) -> bool {
        let held = |r: usize| self.running.iter().map(|&(_, i)| self.jobs[i].amounts[r]).sum::<u64>();
        (0..2).all(|r| Rational::from(held(r) + amounts[r]) <= self.capacity[r])
    }

    /// The starts, unless two keys were too close to be distinguished.
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
            self.model.pass(now - last.unwrap_or(now));
            last = Some(now);
            let ended: Vec<usize> = self.running.extract_if(.., |r| r.0 == now).map(|(_, i)| i).collect();
            for i in ended {
                let job = self.model_job(i);
                self.model.finished(&job);
            }
            for (s, job) in submitted.iter_mut().zip(self.jobs) {
                *s |= job.submit == now;
            }
            let mut set_aside = Vec::new();
            loop {
                let waits = |i: usize| submitted[i] && accepted[i] && self.starts[i].is_none();
                let first = |i: usize| waits(i) && !(0..i).any(|k| waits(k) && self.jobs[k].user == self.jobs[i].user);
                let candidates = (0..self.jobs.len()).filter(|&i| first(i) && !set_aside.contains(&self.jobs[i].user));
                let candidates: Vec<ModelJob> = candidates.map(|i| self.model_job(i)).collect();
                self.too_near |= self.differ_too_little(&candidates);
                let lowest = candidates.iter().min_by_key(|job| (self.model.key(job), job.place()));
                let Some(job) = lowest.copied() else { break };
                if self.fits(job.amounts) {
                    self.starts[job.id] = Some(now);
                    self.running.push((now + self.jobs[job.id].duration, job.id));
                    self.model.started(&job);
                } else if blocking {
                    break;
                } else {
                    set_aside.push(job.user);
                }
            }
        }
        (!self.too_near).then_some(self.starts)
    }

    fn differ_too_little(&self, candidates: &[ModelJob]) -> bool {
        let mut keys = self.model.compared(candidates);
        keys.sort();
        let tiny = Rational::from_parts(1.into(), UBig::ONE << self.model.digits());
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
    let text = settings.to_toml(w.resources(), w.queues(), &[]);
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
    fn every_task_starts_when_the_reference_starts_it(
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
        let world = World {
            capacity: units,
            weights: weights.clone(),
            half_life_s: HALF_LIFE_S,
            settings: settings.clone(),
        };
        for policy in Registry::built_in().policies() {
            let found = run(&w, &pool, &weights, (policy, order, &settings), options);
            let starts: Vec<Option<u64>> = found
                .starts
                .iter()
                .map(|&s| (s != NO_TIME).then_some(s / 1_000_000_000 / HALF_LIFE_S))
                .collect();
            let Some(expected) = Reference::new(policy.name, &jobs, &world).run(blocking, until) else { continue };
            prop_assert_eq!(&starts, &expected, "{} {}", policy.name, order.name());
            check_metrics(&w, &pool, &found, &jobs, &expected)?;
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
    let found = run(
        &w,
        &tight,
        &Weights::equal(1),
        (Registry::built_in().get("fifo").unwrap(), Order::Auto, &Settings::default()),
        PoolOptions::default(),
    );
    assert!(found.starts.iter().zip(&w.columns().submit).any(|(s, t)| *s > t.nanos()));
}
