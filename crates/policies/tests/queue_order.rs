//! The order against asking for one choice at a time, each time from the beginning.
#![allow(clippy::unwrap_used)]

use evenhand_model::{Amount, Capacity, Rational, Resource, Span, Time, UserId, Weights};
use evenhand_policies::queue_order::{PendingJob, Rank, StartedJob, order};
use evenhand_policies::{Decay, LogPlace, Policy, PolicyContext, Registration, Registry};
use proptest::prelude::*;

const USERS: u32 = 4;

struct Site {
    capacity: Capacity,
    weights: Weights,
}

impl Site {
    fn new() -> Site {
        let resources = ["cpu", "mem"].map(|r| Resource::new(r, ""));
        let capacity = Capacity::new(&resources, vec![Rational::from(64), Rational::from(256)]).unwrap();
        Site { capacity, weights: Weights::equal(USERS as usize) }
    }

    fn policy(&self, registration: &Registration) -> Box<dyn Policy> {
        let decay = Some(Decay::from_half_life(Span::from_secs(1000)).unwrap());
        registration.build(&PolicyContext::new(&self.capacity, &self.weights).decay(decay)).unwrap()
    }
}

fn job() -> impl Strategy<Value = PendingJob> {
    let demand = (1u64..9, 0u64..33);
    (0..USERS, demand, (0u64..50, 0u64..9), 1u64..200, prop_oneof![6 => Just(1u64), 1 => 2u64..5]).prop_map(
        |(user, (cpu, mem), (submitted, position), requested, tasks)| PendingJob {
            place: LogPlace::new(Time::from_secs(submitted), position),
            requested: Span::from_secs(requested),
            tasks,
            ..PendingJob::new(UserId(user), vec![Amount(cpu), Amount(mem)])
        },
    )
}

fn ran() -> impl Strategy<Value = StartedJob> {
    (job(), 0u64..1000, prop::option::of(0u64..500)).prop_map(|(job, started, took)| StartedJob {
        job: PendingJob { tasks: 1, ..job },
        started: Time::from_secs(started),
        ended: took.map(|took| Time::from_secs(started + took)),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn it_is_choosing_one_after_another(
        ran in prop::collection::vec(ran(), 0..12),
        waits in prop::collection::vec(job(), 0..10),
        limit in 0usize..12,
    ) {
        let site = Site::new();
        let now = Time::from_secs(900);
        for registration in Registry::built_in().policies() {
            let found = order(site.policy(registration).as_mut(), &ran, &waits, now, limit);
            // The chosen jobs have started: reported to a new policy without history.
            let mut past = ran.clone();
            let mut left: Vec<(usize, u64)> = waits.iter().map(|w| w.tasks).enumerate().collect();
            let mut expected: Vec<usize> = Vec::new();
            while expected.len() < limit {
                let rest: Vec<PendingJob> = left.iter().map(|(at, tasks)| PendingJob { tasks: *tasks, ..waits[*at].clone() }).collect();
                let one: Vec<Rank> = order(site.policy(registration).as_mut(), &past, &rest, now, 1);
                let Some(turn) = one.first() else { break };
                let (at, tasks) = &mut left[turn.job];
                if !expected.contains(at) {
                    expected.push(*at);
                }
                past.push(StartedJob { job: PendingJob { tasks: 1, ..waits[*at].clone() }, started: now, ended: None });
                *tasks -= 1;
                left.retain(|(_, tasks)| *tasks > 0);
            }
            let found: Vec<usize> = found.iter().map(|t| t.job).collect();
            prop_assert_eq!(&found, &expected, "{}", registration.name);
        }
    }
}

#[test]
fn an_array_has_the_place_of_its_first_task() {
    let site = Site::new();
    let registry = Registry::built_in();
    let drf = registry.get("drf").unwrap();
    let demand = |cpu| vec![Amount(cpu), Amount(0)];
    let waits = [
        PendingJob { tasks: 1000, ..PendingJob::new(UserId(0), demand(1)) },
        PendingJob::new(UserId(0), demand(1)),
        PendingJob { place: LogPlace::new(Time::from_secs(1), 0), ..PendingJob::new(UserId(1), demand(4)) },
        PendingJob { place: LogPlace::new(Time::from_secs(1), 0), ..PendingJob::new(UserId(1), demand(4)) },
    ];
    let turns = order(site.policy(drf).as_mut(), &[], &waits, Time::from_secs(2), 10);
    let places: Vec<(usize, u64)> = turns.iter().map(|t| (t.job, t.before)).collect();
    // One task, then four processors against one, so three more and a tie, which goes to the earlier submission.
    assert_eq!(places, [(0, 0), (2, 1), (3, 6), (1, 1002)]);
    assert_eq!(turns[2].standing.key, 4.0 / 64.0);
}
