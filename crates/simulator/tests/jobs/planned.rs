//! Backfilling by a plan of reservations against the obvious program, and against EASY and conservative backfilling.

use evenhand_simulator::{
    BackfillOrder, Events, Passing, PlannedBackfill, PlannedLength, Processors, Reserve, ReservedStart,
};

use super::*;

fn settings() -> impl Strategy<Value = PlannedBackfill> {
    use prop::sample::select;
    let reserve = [Reserve::First(0), Reserve::First(1), Reserve::First(1), Reserve::First(2), Reserve::All];
    let length = || select(vec![PlannedLength::Limit, PlannedLength::RunTime]);
    let plan = [PlanReservations::Anew, PlanReservations::Once, PlanReservations::Compress];
    let start = [ReservedStart::Early, ReservedStart::Planned];
    let passing = [Passing::Beside, Passing::Before, Passing::Any];
    let order = [
        BackfillOrder::Policy,
        BackfillOrder::Shortest,
        BackfillOrder::Longest,
        BackfillOrder::Narrowest,
        BackfillOrder::Widest,
    ];
    let events = [Events::Together, Events::Each];
    let plans = (select(plan.to_vec()), select(start.to_vec()), select(passing.to_vec()));
    let others = (select(order.to_vec()), select(events.to_vec()));
    let all = (select(reserve.to_vec()), length(), length(), plans, others);
    let all = all.prop_map(|(reserve, waiting, running, (plan, start, passing), (order, events))| PlannedBackfill {
        reserve,
        waiting,
        running,
        plan,
        start,
        passing,
        order,
        events,
        processors: Processors::Counted,
    });
    all.prop_filter("settings that go together", |settings| settings.check().is_ok())
}

/// The same world with other backfilling.
fn starts_under(world: &World, backfill: Backfill) -> Vec<u64> {
    run(&World { backfill, ..world.clone() }).1.starts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2500))]

    #[test]
    fn a_plan_is_that_of_the_reference_model(
        world in settings().prop_flat_map(|settings| world(Backfill::Planned(settings)))
    ) {
        agrees_with_the_reference_model(&world)?;
    }

    #[test]
    fn on_a_pool_its_defaults_are_easy(world in world(Backfill::Easy)) {
        let world = World { is_pool: true, machines: world.machines[..1].to_vec(), queues: vec![], ..world };
        let world = World { machines: vec![Machines { count: 1, speed: (1, 1), ..world.machines[0].clone() }], ..world };
        let planned = starts_under(&world, Backfill::Planned(PlannedBackfill::EASY));
        prop_assert_eq!(planned, starts_under(&world, Backfill::Easy));
    }

    #[test]
    fn with_a_reservation_for_all_it_is_conservative_backfilling(world in world(Backfill::Conservative)) {
        // Under another policy new jobs get their reservations in its order.
        let world = World { policy: "fifo", queues: vec![], ..world };
        let planned = starts_under(&world, Backfill::Planned(PlannedBackfill::CONSERVATIVE));
        prop_assert_eq!(planned, starts_under(&world, Backfill::Conservative));
    }
}

proptest! {
    // The reference model takes a tenth of a second for each.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_plan_is_that_of_the_reference_model_where_ties_are_the_rule(
        world in settings().prop_flat_map(|settings| crowded(Backfill::Planned(settings)))
    ) {
        agrees_with_the_reference_model(&world)?;
    }
}
