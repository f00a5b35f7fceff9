//! How near a simulation comes to what happened, and so how far its answers can be trusted.
//!
//! A simulation of today's rules differs from the log for two reasons: because the policy or the scheduler is another,
//! and because the log does not say all that the site did (limits, reservations, nodes that were down). What a study
//! says about a policy can be trusted no further than its simulation of today's rule agrees with the log.
//!
//! Only jobs are compared that started in both. Levels over time are compared by hour, within the time of the log.

mod classes;
mod held_back;
mod levels;
mod ranks;

use std::collections::BTreeSet;

use evenhand_model::{Capacity, Cluster, NO_TIME, Span, Time, Workload, counted, queue_names};
use evenhand_policies::equivalents::PROCESSORS;
use evenhand_simulator::Simulated;
use serde::{Deserialize, Serialize};

use classes::classes;
use held_back::held_back;
use levels::{Levels, rms_difference};
use ranks::rank_correlation;

/// A ratio of mean waits at most this far from 1, on either side, counts as the same size.
const SIZE_MARGIN: f64 = 1.25;
/// An error of utilisation up to this counts as the same use.
const UTILIZATION_MARGIN: f64 = 0.05;
/// From this rank correlation of the users' mean waits on, the same users wait long.
const SAME_ORDER: f64 = 0.8;
/// From this rank correlation on, mostly the same users wait long.
const SIMILAR_ORDER: f64 = 0.5;

/// Of fewer users an order says nothing: two are in the same order in half of all cases.
const FEWEST_USERS: u64 = 5;

/// Of fewer hours utilisation by hour says nothing: within one hour the same jobs use as much in any order.
const FEWEST_HOURS: u64 = 2;

/// The agreement of one simulated run with the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrustRecord {
    /// The simulated policy.
    pub policy: String,
    /// The run.
    pub run: String,
    /// The number of jobs that started in both.
    pub jobs: u64,
    /// The number of their users.
    #[serde(default)]
    pub users: u64,
    /// The number of hours, or of longer intervals of a long log, whose utilisation is compared.
    #[serde(default)]
    pub hours: u64,
    /// Their mean wait in the log, in seconds.
    pub logged_mean_wait_s: f64,
    /// Their mean wait in the simulation, in seconds.
    pub mean_wait_s: f64,
    /// The second over the first; `None` if no job waits in the log.
    pub mean_wait_ratio: Option<f64>,
    /// The root of the mean square difference of utilisation, by hour, of processors or else of the first resource.
    pub utilization_error: f64,
    /// The same of the number of waiting jobs, over its mean in the log; `None` if none waits there.
    pub queue_error: Option<f64>,
    /// Spearman's rank correlation of the users' mean waits; `None` where it is not defined.
    pub users_wait_rank_correlation: Option<f64>,
    /// The same of the waits of single jobs.
    pub jobs_wait_rank_correlation: Option<f64>,
    /// The part of the jobs whose starts differ by at most a minute, ten minutes, an hour.
    pub starts_within: StartsWithin,
    /// Waits by class of job and user.
    pub classes: Vec<ClassRecord>,
    /// A verdict on each kind of statement that a study makes.
    pub claims: Vec<ClaimRecord>,
    /// What the simulation does not model and the log shows signs of, in sentences.
    pub not_modelled: Vec<String>,
    /// The verdict in a sentence.
    pub verdict: String,
}

/// The parts of jobs whose simulated start is near the logged one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StartsWithin {
    /// Within a minute.
    pub minute: f64,
    /// Within ten minutes.
    pub ten_minutes: f64,
    /// Within an hour.
    pub hour: f64,
}

/// The waits of a class of jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassRecord {
    /// By what jobs are classed: `size`, `length`, `user` or `submitted`.
    pub by: String,
    /// The class.
    pub class: String,
    /// The number of its jobs.
    pub jobs: u64,
    /// Their mean wait in the log.
    pub logged_mean_wait_s: f64,
    /// Their mean wait in the simulation.
    pub mean_wait_s: f64,
}

/// Whether a kind of statement can be trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClaimRecord {
    /// The statement.
    pub claim: String,
    /// Whether it can be trusted.
    pub holds: bool,
    /// The number that decides, and its margin.
    pub because: String,
    /// Whether the log does not suffice to tell; then it does not hold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
}

/// One job in both schedules; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Pair {
    row: usize,
    logged: u64,
    simulated: u64,
}

impl Pair {
    fn waits(self, submit: Time) -> (u64, u64) {
        (self.logged - submit.nanos(), self.simulated - submit.nanos())
    }
}

/// The site of a run that is compared with a log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrustedSite<'a> {
    /// The machines and queues; `None` for a pool.
    pub(crate) cluster: Option<&'a Cluster>,
    /// Whether its scheduler follows reservations and outages.
    pub(crate) follows_closures: bool,
}

/// Compares a simulated run, on a cluster or in a pool, with the log; `None` if no job started in both.
pub(crate) fn trust(
    workload: &Workload,
    capacity: &Capacity,
    logged: &Simulated,
    run: &Simulated,
    site: TrustedSite<'_>,
) -> Option<TrustRecord> {
    let columns = workload.columns();
    let both = |row: &usize| logged.starts[*row] != NO_TIME && run.starts[*row] != NO_TIME;
    let pairs: Vec<Pair> = (0..workload.len())
        .filter(both)
        .map(|row| Pair { row, logged: logged.starts[row], simulated: run.starts[row] })
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let waits = |pair: &Pair| pair.waits(columns.submit[pair.row]);
    let mean = |part: fn((u64, u64)) -> u64| {
        pairs.iter().map(|pair| u128::from(part(waits(pair)))).sum::<u128>() as f64 / pairs.len() as f64 / 1e9
    };
    let (logged_mean_wait_s, mean_wait_s) = (mean(|(logged, _)| logged), mean(|(_, simulated)| simulated));
    let resource = workload.resources().iter().position(|r| PROCESSORS.contains(&r.name.as_str())).unwrap_or(0);
    let levels = |start: fn(&Pair) -> u64| {
        let origin = columns.submit.first().copied().unwrap_or_default();
        let mut levels = Levels::new(origin, logged.end);
        for pair in &pairs {
            let amount = workload.amounts(pair.row)[resource].0;
            levels.add(columns.submit[pair.row], Time::from_nanos(start(pair)), columns.duration[pair.row], amount);
        }
        levels.finish(capacity.steps(resource))
    };
    let (before, after) = (levels(|pair| pair.logged), levels(|pair| pair.simulated));
    let queue = before.waiting.iter().sum::<f64>() / before.waiting.len().max(1) as f64;
    let by_user: Vec<(f64, f64)> = user_means(&pairs, workload);
    let by_job: Vec<(f64, f64)> = pairs.iter().map(waits).map(|(a, b)| (a as f64, b as f64)).collect();
    let within = |span: Span| {
        let near = pairs.iter().filter(|pair| pair.logged.abs_diff(pair.simulated) <= span.nanos()).count();
        near as f64 / pairs.len() as f64
    };
    let mut record = TrustRecord {
        jobs: pairs.len() as u64,
        users: by_user.len() as u64,
        hours: before.utilization.len() as u64,
        logged_mean_wait_s,
        mean_wait_s,
        mean_wait_ratio: (logged_mean_wait_s > 0.0).then(|| mean_wait_s / logged_mean_wait_s),
        utilization_error: rms_difference(&before.utilization, &after.utilization),
        queue_error: (queue > 0.0).then(|| rms_difference(&before.waiting, &after.waiting) / queue),
        users_wait_rank_correlation: rank_correlation(&by_user),
        jobs_wait_rank_correlation: rank_correlation(&by_job),
        starts_within: StartsWithin {
            minute: within(Span::from_secs(60)),
            ten_minutes: within(Span::from_secs(600)),
            hour: within(Span::from_secs(3600)),
        },
        classes: classes(workload, &pairs, resource),
        not_modelled: not_modelled(workload, capacity, logged, site),
        ..TrustRecord::default()
    };
    record.judge();
    Some(record)
}

/// Returns the mean waits of each user with jobs in both, in nanoseconds.
fn user_means(pairs: &[Pair], workload: &Workload) -> Vec<(f64, f64)> {
    let columns = workload.columns();
    let mut sums = vec![(0u128, 0u128, 0u64); workload.users().len()];
    for pair in pairs {
        let (logged, simulated) = pair.waits(columns.submit[pair.row]);
        let sum = &mut sums[columns.user[pair.row].index()];
        *sum = (sum.0 + u128::from(logged), sum.1 + u128::from(simulated), sum.2 + 1);
    }
    let with_jobs = sums.into_iter().filter(|sum| sum.2 > 0);
    with_jobs.map(|(a, b, n)| (a as f64 / n as f64, b as f64 / n as f64)).collect()
}

/// Returns what the log shows that the simulation does not model.
fn not_modelled(
    workload: &Workload,
    capacity: &Capacity,
    logged: &Simulated,
    TrustedSite { cluster, follows_closures }: TrustedSite<'_>,
) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(part) = held_back(workload, capacity, logged).filter(|part| *part >= 0.01) {
        sentences.push(format!(
            "In the log, the job that had waited longest fitted into what was free for {:.0} % of the time in which jobs \
             waited: limits of users and queues, other priorities, reservations, dependencies, fragmentation, or \
             processors that were down held it back.",
            100.0 * part
        ));
    }
    let names: BTreeSet<&str> = workload.queues().iter().flat_map(|text| queue_names(text)).collect();
    let queues = names.len();
    let unknown = names.iter().filter(|name| cluster.is_none_or(|cluster| cluster.queue(name).is_none())).count();
    match cluster {
        None if queues > 1 => sentences.push(format!(
            "The log has {queues} queues; without a cluster file their limits and priorities are not modelled."
        )),
        Some(_) if unknown > 0 => sentences.push(format!(
            "{unknown} of the log's {} not in the cluster file; {} limits and priorities are not modelled.",
            if unknown == 1 { "queues is" } else { "queues are" },
            if unknown == 1 { "its" } else { "their" },
        )),
        _ => {}
    }
    let asked = (0..workload.len()).filter(|row| workload.requested(*row).is_some()).count();
    if 2 * asked <= workload.len() {
        let jobs = match asked {
            0 => "No job has".to_string(),
            1 => format!("Only 1 of {} has", counted(workload.len(), "job", "jobs")),
            _ => format!("Only {asked} of {} jobs have", workload.len()),
        };
        sentences.push(format!("{jobs} a requested wall time, so the site's backfilling cannot be repeated."));
    }
    if workload.resources().len() == 1 {
        sentences.push("The study has no memory of jobs, so waits for memory are not modelled.".to_string());
    }
    let followed = cluster.filter(|_| follows_closures);
    let has_reservations = followed.is_some_and(|cluster| !cluster.reservations.is_empty());
    let has_outages = followed.is_some_and(|cluster| !cluster.outages.is_empty());
    let absent = match (has_reservations, has_outages) {
        (false, false) => Some("Maintenance, failures and reservations are not in the log."),
        (true, false) => Some("Maintenance and failures outside reservations are not in the log."),
        (false, true) => Some("Reservations are not in the log."),
        (true, true) => None,
    };
    sentences.extend(absent.map(String::from));
    sentences
}

impl TrustRecord {
    /// Draws the conclusions. The margins are constants of this file, chosen before any log was compared.
    fn judge(&mut self) {
        let same_size = self.mean_wait_ratio.is_some_and(|r| (1.0 / SIZE_MARGIN..=SIZE_MARGIN).contains(&r));
        let is_short = self.hours < FEWEST_HOURS;
        let same_use = !is_short && self.utilization_error <= UTILIZATION_MARGIN;
        let of_use = match is_short {
            true => "the log covers no more than an hour, so there is no course over time to compare".to_string(),
            false => {
                format!(
                    "utilisation differs by {:.1} points by hour; trusted up to 5.0",
                    100.0 * self.utilization_error
                )
            }
        };
        let order = match (self.users, self.users_wait_rank_correlation) {
            (users @ ..FEWEST_USERS, _) => Err(format!("too few users to tell ({users}; from {FEWEST_USERS} on)")),
            (_, None) => Err("the users' mean waits are all the same, so there is no order to compare".to_string()),
            (_, Some(order)) => Ok(order),
        };
        let ratio = self.mean_wait_ratio.map_or("no job waits in the log".to_string(), |r| {
            format!("the simulated mean wait is {r:.2} times the logged one; trusted from 0.80 to 1.25")
        });
        let claim = |claim: &str, holds: bool, because: String| ClaimRecord {
            claim: claim.into(),
            holds,
            because,
            undecided: false,
        };
        let is_from = |least: f64| order.as_ref().is_ok_and(|order| *order >= least);
        let (is_same_order, is_similar_order) = (is_from(SAME_ORDER), is_from(SIMILAR_ORDER));
        let correlation = |order: &f64| format!("the rank correlation of the users' mean waits is {order:.2}");
        let which = match &order {
            Ok(order) if is_similar_order && !is_same_order => {
                format!("{}: enough for the direction (0.50), too little for more (0.80)", correlation(order))
            }
            Ok(order) => format!("{}; trusted from 0.80, direction from 0.50", correlation(order)),
            Err(why) => why.clone(),
        };
        self.claims = vec![
            claim("how long jobs wait", same_size, ratio),
            ClaimRecord { undecided: order.is_err(), ..claim("which users wait long", is_same_order, which) },
            ClaimRecord { undecided: is_short, ..claim("how much of the machine is used, and when", same_use, of_use) },
        ];
        self.verdict = match (&order, same_size && is_same_order, is_similar_order) {
            (Err(_), ..) if self.users < FEWEST_USERS && same_size => {
                "Size of waits can be trusted; too few users to tell about direction."
            }
            (Err(_), ..) if self.users < FEWEST_USERS => {
                "Size cannot be trusted; too few users to tell about direction."
            }
            (Err(_), ..) if same_size => "Size of waits can be trusted; direction cannot be assessed.",
            (_, true, _) if same_use => "Direction and size can be trusted.",
            (_, true, _) if is_short => {
                "Direction and size of waits can be trusted; the log is too short to tell about utilisation."
            }
            (_, true, _) => "Direction and size of waits can be trusted, utilisation over time not.",
            (_, false, true) => "Direction can be trusted, size not.",
            (_, false, false) => "Neither direction nor size can be trusted.",
        }
        .to_string();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::{Rational, Resource, Task, WorkloadBuilder};

    /// One processor; four jobs of 100 s of two users. `starts` are the logged ones.
    fn log(starts: [u64; 4]) -> Workload {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
        for (i, start) in starts.into_iter().enumerate() {
            b.push(&Task {
                submit: Time::from_secs(i as u64),
                start: Some(Time::from_secs(start)),
                duration: Span::from_secs(100),
                user: ["ann", "bob"][i / 2],
                amounts: &[1_000_000_000],
                ..Task::default()
            });
        }
        b.finish().unwrap()
    }

    /// Judged as if there were users and hours enough.
    fn compare(logged: [u64; 4], simulated: [u64; 4]) -> TrustRecord {
        let mut record =
            TrustRecord { users: FEWEST_USERS, hours: FEWEST_HOURS, ..compare_two_users(logged, simulated) };
        record.judge();
        record
    }

    fn compare_two_users(logged: [u64; 4], simulated: [u64; 4]) -> TrustRecord {
        let w = log(logged);
        let capacity = Capacity::new(w.resources(), vec![Rational::ONE]).unwrap();
        let as_logged = crate::logged::as_logged(&w);
        let starts = simulated.iter().map(|s| Time::from_secs(*s).nanos()).collect();
        let run = Simulated { starts, ..as_logged.clone() };
        trust(&w, &capacity, &as_logged, &run, TrustedSite::default()).unwrap()
    }

    #[test]
    fn a_simulation_that_repeats_the_log_is_trusted() {
        let trust = compare([0, 100, 200, 300], [0, 100, 200, 300]);
        assert_eq!((trust.mean_wait_ratio, trust.utilization_error, trust.queue_error), (Some(1.0), 0.0, Some(0.0)));
        assert_eq!(trust.users_wait_rank_correlation, Some(1.0));
        assert_eq!(trust.starts_within, StartsWithin { minute: 1.0, ten_minutes: 1.0, hour: 1.0 });
        assert_eq!(trust.verdict, "Direction and size can be trusted.");
        assert!(trust.claims.iter().all(|claim| claim.holds));
    }

    #[test]
    fn queues_that_the_cluster_file_lacks_are_counted() {
        let mut builder = WorkloadBuilder::new([Resource::new("cpu", "")]);
        for queue in ["a,b", "b", "c"] {
            builder.push(&Task { queue: Some(queue), amounts: &[1_000_000_000], ..Task::default() });
        }
        let w = builder.finish().unwrap();
        let capacity = Capacity::new(w.resources(), vec![4.into()]).unwrap();
        let of = |cluster: Option<&[&str]>| {
            let cluster = cluster.map(|names| Cluster {
                resources: vec!["cpu".into()],
                groups: Vec::new(),
                queues: names.iter().map(|name| evenhand_model::Queue::new(*name)).collect(),
                ..Cluster::default()
            });
            let site = TrustedSite { cluster: cluster.as_ref(), follows_closures: true };
            not_modelled(&w, &capacity, &crate::logged::as_logged(&w), site).join(" ")
        };
        assert!(of(None).contains("The log has 3 queues; without a cluster file"), "{}", of(None));
        let some = of(Some(&["a", "b"]));
        assert!(some.contains("1 of the log's queues is not in the cluster file; its limits"), "{some}");
        assert!(!of(Some(&["a", "b", "c"])).contains("queues"));
        assert!(some.contains("No job has a requested wall time"), "{some}");
    }

    #[test]
    fn what_the_site_states_and_the_run_follows_is_not_listed() {
        let mut builder = WorkloadBuilder::new([evenhand_model::Resource::new("cpu", "")]);
        builder.push(&Task { amounts: &[1_000_000_000], ..Task::default() });
        let w = builder.finish().unwrap();
        let capacity = Capacity::new(w.resources(), vec![4.into()]).unwrap();
        let closure = evenhand_model::Closure {
            name: "c".into(),
            machines: Vec::new(),
            from: evenhand_model::SiteTime::Date(evenhand_model::Time::ZERO),
            to: None,
            may_overlap: false,
        };
        let of = |reservations: usize, outages: usize, follows_closures: bool| {
            let cluster = Cluster {
                reservations: vec![closure.clone(); reservations],
                outages: vec![closure.clone(); outages],
                ..Cluster::default()
            };
            let site = TrustedSite { cluster: Some(&cluster), follows_closures };
            not_modelled(&w, &capacity, &crate::logged::as_logged(&w), site).pop().unwrap_or_default()
        };
        assert_eq!(of(0, 0, true), "Maintenance, failures and reservations are not in the log.");
        assert_eq!(of(1, 1, false), of(0, 0, true), "only Slurm's scheduler follows them");
        assert_eq!(of(1, 0, true), "Maintenance and failures outside reservations are not in the log.");
        assert_eq!(of(0, 1, true), "Reservations are not in the log.");
        assert!(!of(1, 1, true).contains("not in the log."));
    }

    #[test]
    fn the_same_order_at_another_size_is_trusted_for_direction_only() {
        let trust = compare([0, 1100, 1200, 1300], [0, 100, 200, 300]);
        assert_eq!(trust.verdict, "Direction can be trusted, size not.");
        assert_eq!(trust.mean_wait_ratio, Some((594.0 / 4.0) / (3594.0 / 4.0)));
        // The job at the head fitted from second 100 to 1100, and something waited from second 1 to 1300.
        assert!(trust.not_modelled[0].contains("fitted into what was free for 77 %"), "{:?}", trust.not_modelled);
    }

    #[test]
    fn users_in_the_opposite_order_are_not_trusted() {
        let trust = compare([0, 100, 200, 300], [200, 300, 2, 102]);
        assert_eq!(trust.users_wait_rank_correlation, Some(-1.0));
        assert_eq!(trust.verdict, "Neither direction nor size can be trusted.");
    }

    #[test]
    fn use_over_time_of_a_log_within_an_hour_is_not_judged() {
        let mut short =
            TrustRecord { users: FEWEST_USERS, ..compare_two_users([0, 100, 200, 300], [0, 100, 200, 300]) };
        short.judge();
        let of_use = &short.claims[2];
        assert_eq!((short.hours, of_use.undecided, of_use.holds), (1, true, false));
        assert!(of_use.because.contains("no more than an hour"), "{}", of_use.because);
        let verdict = "Direction and size of waits can be trusted; the log is too short to tell about utilisation.";
        assert_eq!(short.verdict, verdict);
        // Each job is an hour later.
        let long = compare_two_users([0, 3600, 7200, 10_800], [0, 100, 200, 300]);
        assert!(long.hours > 2 && !long.claims[2].undecided, "{long:?}");
    }

    #[test]
    fn the_order_of_few_users_or_of_equal_waits_is_not_judged() {
        let order =
            |trust: &TrustRecord| (trust.claims[1].undecided, trust.claims[1].holds, trust.claims[1].because.clone());
        let few = compare_two_users([0, 100, 200, 300], [0, 100, 200, 300]);
        assert_eq!(order(&few), (true, false, "too few users to tell (2; from 5 on)".into()));
        assert_eq!(few.verdict, "Size of waits can be trusted; too few users to tell about direction.");
        let far = compare_two_users([0, 1100, 1200, 1300], [0, 100, 200, 300]);
        assert_eq!(far.verdict, "Size cannot be trusted; too few users to tell about direction.");
        // The logged waits of both users are the same on average.
        let equal = compare([0, 101, 2, 103], [0, 101, 202, 303]);
        assert_eq!(equal.users_wait_rank_correlation, None);
        assert!(order(&equal).0 && equal.claims[1].because.contains("all the same"), "{:?}", equal.claims);
    }
}
