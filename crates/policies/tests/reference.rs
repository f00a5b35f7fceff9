//! Every policy against its reference model: the definition in exact rationals.

#![allow(clippy::unwrap_used)]

use evenhand_model::{Amount, Capacity, Quantity, Rational, Resource, Span, Time, UBig, UserId, Weights, to_f64};
use evenhand_policies::multifactor::Settings;
use evenhand_policies::{Decay, DrawnTies, Job, PolicyContext, Registry};
use proptest::prelude::*;

mod reference_models;
use reference_models::{MODELS, ModelJob, ReferenceModel, World, model};

const USERS: usize = 5;
const HALF_LIFE_S: u64 = 8;
const TIE_SEED: u64 = 3;

#[test]
fn every_policy_has_a_reference_model_and_every_model_a_policy() {
    let mut policies: Vec<&str> = Registry::built_in().names().collect();
    let mut models: Vec<&str> = MODELS.iter().map(|(name, _)| *name).collect();
    policies.sort_unstable();
    models.sort_unstable();
    assert_eq!(policies, models, "a policy needs a file in tests/reference_models and an entry of MODELS");
}

#[derive(Clone, Debug)]
enum Event {
    Wait(usize, bool),
    Start(usize, [u64; 2]),
    FinishOldest(usize),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let user = 0..USERS;
    prop_oneof![
        4 => (user.clone(), any::<bool>()).prop_map(|(u, w)| Event::Wait(u, w)),
        6 => (user.clone(), [0u64..4, 0u64..4]).prop_map(|(u, d)| Event::Start(u, d)),
        4 => user.prop_map(Event::FinishOldest),
        3 => (0u64..4).prop_map(Event::Pass),
        // Past an epoch, and far past what an f64 can hold beside it.
        1 => prop_oneof![Just(30), Just(70), Just(2000)].prop_map(Event::Pass),
    ]
}

fn check(capacity: [&str; 2], weights: [&str; USERS], events: &[Event]) -> Result<(), TestCaseError> {
    let quantity = |q: &str| Quantity::parse(q).unwrap();
    let resources = ["cpu", "mem"].map(|r| Resource::new(r, ""));
    let units: Vec<Rational> = capacity.iter().map(|c| quantity(c).exact().clone()).collect();
    let pool = Capacity::new(&resources, units.clone()).unwrap();
    let weights = Weights::new(weights.map(quantity)).unwrap();
    let decay = Decay::from_half_life(Span::from_secs(HALF_LIFE_S)).unwrap();
    let world =
        World { capacity: units, weights: weights.clone(), half_life_s: HALF_LIFE_S, settings: Settings::default() };
    let registry = Registry::built_in();
    // Each policy with the ties of the log, and with drawn ones.
    for (registration, drawn) in
        registry.policies().iter().flat_map(|registration| [(registration, false), (registration, true)])
    {
        let context = PolicyContext::new(&pool, &weights).decay(Some(decay));
        let mut policy = registration.build(&context).unwrap();
        if drawn {
            policy = Box::new(DrawnTies::new(policy, TIE_SEED));
        }
        let draw = |job: &ModelJob| if drawn { DrawnTies::draw(TIE_SEED, job.position) } else { 0 };
        if policy.depends_on_job_details() {
            continue; // tests/penalty.rs and tests/multifactor.rs
        }
        let mut model = model(registration.name, &world);
        let mut first: [Option<ModelJob>; USERS] = [None; USERS];
        let mut running: Vec<Vec<ModelJob>> = vec![Vec::new(); USERS];
        let (mut now, mut jobs) = (Time::ZERO, 0);
        // Samples of usage are counted from the first event.
        prop_assert_eq!(policy.next(now), None);
        for (at, event) in events.iter().enumerate() {
            match *event {
                Event::Wait(u, waits) => {
                    // Few distinct submission times, so that positions decide too. Positions fall, so that they do
                    // not agree with user numbers or with the order of the calls.
                    let submit = waits.then_some(now.nanos() % 3);
                    let position = (events.len() - at) as u64;
                    first[u] = submit.map(|submit| ModelJob { user: u, submit, position, ..ModelJob::default() });
                    let user = UserId(u as u32);
                    let job = submit.map(|submit| Job::new(user, &[]).at(Time::from_nanos(submit), position));
                    policy.set_first_pending(user, job.as_ref());
                }
                Event::Start(u, amounts) => {
                    let job = ModelJob { id: jobs, user: u, amounts, ..ModelJob::default() };
                    jobs += 1;
                    running[u].push(job);
                    model.started(&job);
                    policy.started(now, &Job::new(UserId(u as u32), &amounts.map(Amount)));
                }
                Event::FinishOldest(u) => {
                    if !running[u].is_empty() {
                        let job = running[u].remove(0);
                        model.finished(&job);
                        policy.finished(now, &Job::new(UserId(u as u32), &job.amounts.map(Amount)));
                    }
                }
                Event::Pass(half_lives) => {
                    model.pass(half_lives);
                    now = now + Span::from_secs(HALF_LIFE_S * half_lives);
                }
            }
            let pending: Vec<ModelJob> = first.iter().flatten().copied().collect();
            if differs_below_thirty_digits(model.as_ref(), &pending) {
                return Ok(());
            }
            let expected = pending.iter().min_by_key(|job| (model.key(job), draw(job), job.place()));
            let expected = expected.map(|job| UserId(job.user as u32));
            prop_assert_eq!(policy.next(now), expected, "{} after {:?}", registration.name, event);
            for u in 0..USERS {
                let standing = policy.standing(now, UserId(u as u32));
                for (c, exact) in standing.commitments.iter().zip(model.commitments(u).iter().flatten()) {
                    prop_assert!((c - to_f64(exact)).abs() <= 1e-13, "{c} is not {exact}");
                }
            }
        }
    }
    Ok(())
}

/// Whether some pair of keys differs, but by less than thirty digits of what is remembered: two users alike in all but
/// what one of them did a hundred half-lives ago.
fn differs_below_thirty_digits(model: &dyn ReferenceModel, pending: &[ModelJob]) -> bool {
    let keys: Vec<(Rational, Rational)> =
        pending.iter().map(|job| (model.key(job), model.remembered(job.user))).collect();
    let thirty_digits = Rational::from_parts(1.into(), UBig::ONE << 90);
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
        policy.set_first_pending(a, Some(&Job::new(a, &[]).at(start, 0)));
        policy.set_first_pending(b, Some(&Job::new(b, &[]).at(start, 0)));
        policy.finished(later, &Job::new(a, &[Amount(0), Amount(8)]));
        policy.started(later, &Job::new(a, &[Amount(5), Amount(1)]));
        policy.started(later, &Job::new(b, &[Amount(6), Amount(0)]));
        policy.next(later)
    };
    assert_eq!(next("sdrf"), Some(UserId(0)), ".5 against .6");
    assert_eq!(next("sdrf-dominant"), Some(UserId(1)), ".8 against .6");
}
