//! Users who react, in every engine: under the policy of the log they submit when they did in the log.

use evenhand_model::Workload;
use evenhand_policies::{PolicyContext, Registry};
use evenhand_simulator::{Arrivals, Jobs, Progress, Reactions, UserTasks, simulate_jobs, simulate_reactions};
use proptest::prelude::*;

use super::*;

/// The same workload with the starts of a run.
fn with_starts(world: &World, w: &Workload, starts: &[u64]) -> Workload {
    let log = log(world, starts);
    assert_eq!((log.len(), log.users()), (starts.len(), w.users()));
    log
}

/// With machines of equal speed: a log's run times are those of its machines.
fn of_one_speed(mut world: World) -> World {
    world.machines.iter_mut().for_each(|machines| machines.speed = (1, 1));
    world
}

fn submits_as_in_the_log(world: &World, backfill: Backfill) -> Result<(), TestCaseError> {
    let w = workload(world);
    let site = site(world, &w);
    let jobs = Jobs::new(&w, &site, world.layout);
    let weights = Weights::equal(w.users().len());
    let policy = || policy(world, &PolicyContext::new(site.total(), &weights));
    let (placement, blocking) = (world.placement, world.blocking);
    let options = JobOptions { placement, backfill, blocking, ..JobOptions::default() };
    let (tasks, progress) = (UserTasks::new(&w), Progress::default());
    let clock = simulate_jobs(&w, &tasks, &site, &jobs, policy().as_mut(), options, &progress).unwrap();
    prop_assert_eq!(&clock.submissions, &None);
    let log = with_starts(world, &w, &clock.starts);
    let stamps: Vec<u64> = log.columns().submit.iter().map(|t| t.nanos()).collect();
    for arrivals in [Arrivals::Clock, Arrivals::Sessions, Arrivals::Closed] {
        let reactions = Reactions::new(&log, UserTasks::new(&log), arrivals);
        let found = simulate_reactions(&log, &reactions, &site, &jobs, policy().as_mut(), options, &progress).unwrap();
        prop_assert_eq!(&found.starts, &clock.starts, "{}", arrivals.name());
        prop_assert_eq!(found.submissions.as_ref(), Some(&stamps));
        prop_assert_eq!(&found.machines, &clock.machines);
        prop_assert_eq!(found.end, clock.end);
    }
    Ok(())
}

/// Under another policy than that of the log, each job that is not rejected starts once, and is submitted when the rule
/// says, computed from its definition.
fn reacts_by_the_rule(world: &World, backfill: Backfill) -> Result<(), TestCaseError> {
    let w = workload(world);
    let site = site(world, &w);
    let jobs = Jobs::new(&w, &site, world.layout);
    let weights = Weights::equal(w.users().len());
    let build = |name: &str| Registry::built_in().build(name, &PolicyContext::new(site.total(), &weights)).unwrap();
    let (placement, blocking) = (world.placement, world.blocking);
    let options = JobOptions { placement, backfill, blocking, ..JobOptions::default() };
    let (tasks, progress) = (UserTasks::new(&w), Progress::default());
    let clock = simulate_jobs(&w, &tasks, &site, &jobs, build("fifo").as_mut(), options, &progress).unwrap();
    let log = with_starts(world, &w, &clock.starts);
    let reactions = Reactions::new(&log, UserTasks::new(&log), Arrivals::Closed);
    let found = simulate_reactions(&log, &reactions, &site, &jobs, build("drf").as_mut(), options, &progress).unwrap();
    let submissions = found.submissions.unwrap();
    let ends = found.machines.unwrap().finishes;
    for (j, job) in world.jobs.iter().enumerate() {
        prop_assert_eq!(found.starts[j] == NO_TIME, found.rejections[j].is_some());
        prop_assert!(submissions[j] <= found.starts[j]);
        let (mut then, mut now) = (None, None);
        for (i, earlier) in world.jobs.iter().enumerate().filter(|(i, earlier)| *i < j && earlier.user == job.user) {
            (then, now) = (then.max(Some(earlier.submit)), now.max(Some(submissions[i])));
            let end = clock.starts[i].saturating_add(earlier.run);
            if clock.starts[i] != NO_TIME && (end < job.submit || end == job.submit && earlier.run > 0) {
                (then, now) = (then.max(Some(end)), now.max(Some(ends[i])));
            }
        }
        let expected = then.zip(now).map_or(job.submit, |(then, now)| now + job.submit - then);
        prop_assert_eq!(submissions[j], expected, "job {}", j);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn users_react_by_the_rule_under_another_policy(
        (world, backfill) in prop_oneof![
            world(Backfill::None).prop_map(|world| (world, Backfill::None)),
            crowded(Backfill::Easy).prop_map(|world| (world, Backfill::Easy)),
            world(Backfill::Conservative).prop_map(|world| (world, Backfill::Conservative)),
        ]
    ) {
        reacts_by_the_rule(&of_one_speed(world), backfill)?;
    }

    #[test]
    fn strict_order_submits_as_in_its_log(world in world(Backfill::None)) {
        submits_as_in_the_log(&of_one_speed(world), Backfill::None)?;
    }

    #[test]
    fn easy_submits_as_in_its_log(world in prop_oneof![world(Backfill::Easy), crowded(Backfill::Easy)]) {
        submits_as_in_the_log(&of_one_speed(world), Backfill::Easy)?;
    }

    #[test]
    fn conservative_submits_as_in_its_log(world in world(Backfill::Conservative)) {
        submits_as_in_the_log(&of_one_speed(world), Backfill::Conservative)?;
    }
}
