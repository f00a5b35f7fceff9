//! Speed of the simulation of jobs: jobs per second of CPU time (of wall-clock time where the kernel does not report CPU time), median
//! of five runs.
//!
//! `cargo bench -p evenhand-study --bench jobs [-- KIND… POLICY… FILE…]`: without files, a million jobs on 1,000 machines
//! at two thirds of their CPUs; with files, each of those logs on a pool of the processors that its header names
//! (MaxProcs). `-- site PLACEMENT…`: a million jobs on 10,000 machines at 85 and 95 % of their CPUs under EASY. `-- queue`:
//! jobs that are submitted while 100,000 others wait.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::Instant;

use evenhand_model::{
    Capacity, Cluster, MachineGroup, NO_TIME, Quantity, Rational, Resource, ResourceQuantity, Span, Task, Time,
    Weights, Workload, WorkloadBuilder,
};
use evenhand_policies::{Decay, PolicyContext, Registry};
use evenhand_simulator::{
    BACKFILLS, Backfill, JobOptions, Jobs, Layout, PLACEMENTS, Progress, Site, UserTasks, simulate_jobs,
};
use evenhand_workload::Source;
use evenhand_workload::import::{ImportOptions, import};

const RUNS: usize = 5;

fn main() {
    let mut files: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let mut chosen = |among: &[&'static str]| -> Vec<&'static str> {
        let named: Vec<&str> = among.iter().copied().filter(|n| files.iter().any(|f| f == n)).collect();
        files.retain(|f| !among.contains(&f.as_str()));
        if named.is_empty() { among.to_vec() } else { named }
    };
    let scenarios = chosen(&["machines", "site", "queue"]);
    let kinds = chosen(&BACKFILLS.map(|b| b.0));
    let placements = chosen(&PLACEMENTS.map(|p| p.0));
    let policies = chosen(&["fifo", "drf", "sdrf"]);
    println!(
        "{:>12} {:>12} {:>10} {:>9} {:>11} {:>12} {:>9} {:>11}",
        "backfill", "placement", "policy", "M jobs/s", "mean wait s", "most waiting", "seconds", "decisions"
    );
    for scenario in scenarios.iter().filter(|_| files.is_empty()) {
        match (*scenario, scenarios.len()) {
            ("site", 1) => site_size(&placements),
            ("queue", 1) => long_queue(&policies),
            ("machines", _) => generated(),
            _ => {}
        }
    }
    for file in files {
        let options = ImportOptions { relaxed: true, lenient: true, ..ImportOptions::default() };
        match import(&[Source::from_argument(&file)], &options) {
            Ok(imported) => log(&file, &imported.workload.expanded(), &kinds, &policies),
            Err(e) => eprintln!("{e}"),
        }
    }
}

fn log(name: &str, workload: &Workload, kinds: &[&str], policies: &[&str]) {
    let procs = workload.header().iter().find(|(key, _)| key == "MaxProcs").map_or("1", |(_, value)| value.as_str());
    let exact = |text: &str| Quantity::parse(text).map(|q| q.exact().clone()).unwrap_or(Rational::ONE);
    let units = workload.resources().iter().map(|r| exact(if r.name == "cpu" { procs } else { "1e15" })).collect();
    let Ok(capacity) = Capacity::new(workload.resources(), units) else { return };
    println!("{name}: {} jobs of {} users, {procs} processors", workload.len(), workload.users().len());
    let site = Site::pool(&capacity);
    for backfill in kinds {
        for policy in policies {
            measure(workload, &site, backfill, "first-fit", policy, RUNS);
        }
    }
}

fn measure(workload: &Workload, site: &Site, backfill: &str, placement: &str, policy: &str, runs: usize) {
    let jobs = Jobs::new(workload, site, Layout::Auto);
    let tasks = UserTasks::new(workload);
    let weights = Weights::equal(workload.users().len());
    let decay = Quantity::parse("0.999999").ok().and_then(|q| Decay::from_delta(&q).ok());
    let named = |list: &[(&str, Backfill)]| list.iter().find(|(n, _)| *n == backfill).map(|b| b.1);
    let options = JobOptions {
        backfill: named(&BACKFILLS).unwrap_or_default(),
        placement: PLACEMENTS.iter().find(|(n, _)| *n == placement).map(|p| p.1).unwrap_or_default(),
        ..JobOptions::default()
    };
    let mut seconds = Vec::new();
    let mut shown = (0.0, 0, 0);
    for _ in 0..runs {
        let context = PolicyContext::new(site.total(), &weights).decay(decay);
        let mut policy = Registry::built_in().build(policy, &context).expect("a policy");
        let begun = Clock::start();
        let run = simulate_jobs(workload, &tasks, site, &jobs, policy.as_mut(), options, &Progress::default());
        seconds.push(begun.seconds());
        let run = black_box(run.expect("nothing is cancelled"));
        let started = run.starts.iter().zip(&workload.columns().submit).filter(|(s, _)| **s != NO_TIME);
        let waits: Vec<f64> = started.map(|(s, t)| (Time::from_nanos(*s) - *t).secs_f64()).collect();
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        shown = (mean, most_waiting(workload, &run.starts), run.decisions);
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[runs / 2];
    let rate = workload.len() as f64 / median / 1e6;
    let (wait, most, decisions) = shown;
    println!(
        "{backfill:>12} {placement:>12} {policy:>10} {rate:>9.3} {wait:>11.0} {most:>12} {median:>9.3} {decisions:>11}"
    );
}

/// How many jobs wait at most at a time, of those that start.
fn most_waiting(workload: &Workload, starts: &[u64]) -> usize {
    let submissions = workload.columns().submit.iter().map(|t| t.nanos());
    let (mut submissions, mut starts): (Vec<u64>, Vec<u64>) =
        submissions.zip(starts.iter().copied()).filter(|(_, start)| *start != NO_TIME).unzip();
    submissions.sort_unstable();
    starts.sort_unstable();
    // At each submission: those submitted by then, less those that have started.
    let started = |time: &u64| starts.partition_point(|start| start <= time);
    submissions.iter().enumerate().map(|(at, time)| (at + 1).saturating_sub(started(time))).max().unwrap_or(0)
}

/// CPU time of this thread in nanoseconds, from Linux's scheduler.
fn cpu_time() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

struct Clock {
    wall: Instant,
    cpu: Option<u64>,
}

impl Clock {
    fn start() -> Clock {
        Clock { cpu: cpu_time(), wall: Instant::now() }
    }

    fn seconds(&self) -> f64 {
        match (self.cpu, cpu_time()) {
            (Some(then), Some(now)) => (now - then) as f64 / 1e9,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

fn group(name: &str, count: u32, has: [&str; 3]) -> MachineGroup {
    let has = has.iter().filter_map(|t| ResourceQuantity::parse(t).ok()).collect();
    MachineGroup {
        hosts: Vec::new(),
        name: name.into(),
        count,
        capacity: has,
        speed: Rational::ONE,
        weight: 1,
        properties: Vec::new(),
    }
}

/// Machines of three kinds, so many times 20.
fn machines(twentieths: u32) -> Cluster {
    Cluster {
        resources: vec!["cpu".into(), "mem".into(), "gpu".into()],
        groups: vec![
            group("thin", 14 * twentieths, ["16", "64", "0"]),
            group("fat", 5 * twentieths, ["64", "512", "0"]),
            group("gpu", twentieths, ["32", "256", "4"]),
        ],
        queues: Vec::new(),
        ..Cluster::default()
    }
}

/// A million jobs on 1,000 machines of three kinds, at about two thirds of their CPUs.
fn generated() {
    let workload = million(20_000_000);
    let Ok(site) = Site::machines(&machines(50), workload.resources()) else { return };
    println!("{} generated jobs of {} users on {} machines", workload.len(), workload.users().len(), site.len());
    for (backfill, placement, policy) in [
        ("none", "first-fit", "fifo"),
        ("easy", "first-fit", "fifo"),
        ("easy", "best-fit", "fifo"),
        ("easy", "worst-fit", "fifo"),
        ("easy", "dominant", "fifo"),
        ("easy", "first-fit", "drf"),
        ("easy", "first-fit", "sdrf"),
    ] {
        measure(&workload, &site, backfill, placement, policy, 1);
    }
}

/// A million jobs on 10,000 machines of three kinds.
fn site_size(placements: &[&str]) {
    for (load, mean_us) in [(85, 1_529_000), (95, 1_368_000)] {
        let workload = million(mean_us);
        let Ok(site) = Site::machines(&machines(500), workload.resources()) else { return };
        println!("{} generated jobs at {load} % of the CPUs of {} machines", workload.len(), site.len());
        for placement in placements {
            measure(&workload, &site, "easy", placement, "fifo", 1);
        }
    }
}

/// 100,000 jobs at once on one machine of 1,000 processors, then 10,000 one after another, of one user and of many.
fn long_queue(policies: &[&str]) {
    for users in [1, 200, 10_000] {
        let names: Vec<String> = (0..users).map(|u| format!("u{u}")).collect();
        let mut builder = WorkloadBuilder::new([Resource::new("cpu", "")]);
        for job in 0..110_000u64 {
            // Wide and long jobs that wait, and short ones that may pass them.
            let (cpus, hours) = if job.is_multiple_of(3) { (1 + job % 7, 1) } else { (600 + job % 300, 1 + job % 5) };
            builder.push(&Task {
                submit: Time::from_secs(job.saturating_sub(100_000) * 10),
                duration: Span::from_secs(hours * 1800 + job % 600),
                requested: Some(Span::from_secs(hours * 3600)),
                user: &names[job as usize % users],
                amounts: &[u128::from(cpus) * 1_000_000_000],
                ..Task::default()
            });
        }
        let workload = builder.finish().expect("the jobs are right");
        let Ok(capacity) = Capacity::new(workload.resources(), vec![Rational::from(1000)]) else { return };
        println!("{} jobs of {users} users, 100,000 of them at once", workload.len());
        for policy in policies {
            measure(&workload, &Site::pool(&capacity), "easy", "first-fit", policy, 1);
        }
    }
}

/// A million jobs that follow one another after so many microseconds on average.
fn million(mean_us: u64) -> Workload {
    let mut state = 1u64;
    // Splitmix64: the same jobs everywhere.
    let mut random = move |below: u64| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    };
    let mut builder = WorkloadBuilder::new(["cpu", "mem", "gpu"].map(|n| Resource::new(n, "")));
    let names: Vec<String> = (0..200).map(|u| format!("u{u}")).collect();
    let mut submit = 0;
    for _ in 0..1_000_000u32 {
        submit += random(2 * mean_us);
        let cpus = [1, 1, 1, 2, 4, 4, 8, 8, 16, 32, 64, 128][random(12) as usize];
        let mem = cpus * [1, 2, 4, 4, 6][random(5) as usize];
        let gpus = if random(20) == 0 && cpus <= 32 { 1 + random(4) } else { 0 };
        let run = [30, 60, 600, 3600, 4000, 20_000, 86_400][random(7) as usize] + random(600);
        // Many users ask for much more than they need.
        let asked = run * [1, 2, 3, 10][random(4) as usize];
        let user = (random(200) * random(200)) / 200;
        builder.push(&Task {
            submit: Time::from_nanos(submit * 1000),
            duration: Span::from_secs(run),
            requested: Some(Span::from_secs(asked)),
            user: &names[user as usize],
            amounts: &[cpus, mem, gpus].map(|a| u128::from(a) * 1_000_000_000),
            ..Task::default()
        });
    }
    builder.finish().expect("the jobs are right")
}
