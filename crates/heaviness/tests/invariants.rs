//! Properties of every cloud: H2 to H8 of the reference, and the relation of metrics to the mechanisms after which they
//! are named.
#![allow(clippy::unwrap_used)]

use evenhand_heaviness::{
    Cloud, Endowment, Heaviness, METRICS, Metric, Node, NodeHeaviness, Number, Parameters, RunningWorkload,
    metric_named,
};
use evenhand_mechanisms::{MechanismOptions, Problem, User, mechanism_named, property_named};
use evenhand_model::Rational;
use proptest::prelude::*;

/// A cloud in small integers. Sizes are 0 to 4; 5 stands for none.
#[derive(Clone, Debug)]
struct Plan {
    width: usize,
    quotas: Vec<Vec<u8>>,
    nodes: Vec<(Vec<u8>, Vec<PlannedWorkload>)>,
}

#[derive(Clone, Debug)]
struct PlannedWorkload {
    owner: usize,
    sizes: Vec<u8>,
    load: Vec<u8>,
}

fn plans() -> impl Strategy<Value = Plan> {
    (1_usize..=3, 1_usize..=4).prop_flat_map(|(width, users)| {
        let row = |min: u8, max: u8| prop::collection::vec(min..=max, width);
        let workload =
            (0..users, row(0, 5), row(0, 6)).prop_map(|(owner, sizes, load)| PlannedWorkload { owner, sizes, load });
        let node = (row(1, 9), prop::collection::vec(workload, 0..=5));
        let nodes = prop::collection::vec(node, 1..=3);
        (prop::collection::vec(row(0, 4), users), nodes).prop_map(move |(quotas, nodes)| Plan { width, quotas, nodes })
    })
}

/// Builds the cloud with these units by resource, and with its resources in this order.
fn build<N: Number>(plan: &Plan, rule: Endowment, units: &[N], order: &[usize]) -> (Cloud<N>, Vec<Node<N>>) {
    let amounts = |row: &[u8]| -> Vec<N> { order.iter().map(|r| N::from_count(row[*r].into()) * &units[*r]).collect() };
    let sizes = |row: &[u8]| -> Vec<Option<N>> {
        order.iter().map(|r| (row[*r] < 5).then(|| N::from_count(row[*r].into()) * &units[*r])).collect()
    };
    let workload =
        |g: &PlannedWorkload| RunningWorkload { owner: g.owner, sizes: sizes(&g.sizes), load: amounts(&g.load) };
    let node = |(supply, workloads): &(Vec<u8>, Vec<PlannedWorkload>)| {
        let workloads = workloads.iter().map(workload).collect();
        Node::new(amounts(supply), vec![N::one(); plan.width], rule, workloads).unwrap()
    };
    let nodes: Vec<Node<N>> = plan.nodes.iter().map(node).collect();
    let quotas = plan.quotas.iter().map(|row| sizes(row)).collect();
    (Cloud::new(Cloud::supply_of(&nodes), quotas).unwrap(), nodes)
}

fn plain<N: Number>(plan: &Plan, rule: Endowment) -> (Cloud<N>, Vec<Node<N>>) {
    let order: Vec<usize> = (0..plan.width).collect();
    build(plan, rule, &vec![N::one(); plan.width], &order)
}

fn exact_metrics() -> Vec<(&'static str, Box<dyn Metric<Rational>>)> {
    let build =
        |m: &&evenhand_heaviness::Registration| Some((m.name, (m.build_exact?)(&Parameters::default()).unwrap()));
    METRICS.iter().filter_map(build).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * (1.0 + a.abs().max(b.abs()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// H2, where every resource has a quota; H3.
    #[test]
    fn endowments_add_up_to_the_supply(plan in plans()) {
        for rule in [Endowment::Proportional, Endowment::CappedProportional] {
            let (cloud, nodes) = plain::<Rational>(&plan, rule);
            let all = (0..cloud.users()).fold(Rational::ZERO, |sum, u| sum + cloud.normalized_sum(cloud.endowment(u)));
            let has = |r: usize| plan.quotas.iter().any(|q| q[r] > 0);
            if (0..plan.width).all(has) {
                prop_assert_eq!(all, Rational::from(cloud.users()));
            }
            for (node, (_, workloads)) in nodes.iter().zip(&plan.nodes) {
                for r in 0..plan.width {
                    let sum = (0..node.workloads()).fold(Rational::ZERO, |sum, v| sum + &node.endowment(v)[r]);
                    let sizes: u32 = workloads.iter().map(|g| if g.sizes[r] < 5 { g.sizes[r].into() } else { 0 }).sum();
                    let none = workloads.iter().all(|g| g.sizes[r] == 5) && !workloads.is_empty();
                    prop_assert!(sum <= node.supply()[r]);
                    if rule == Endowment::Proportional && (sizes > 0 || none) {
                        prop_assert_eq!(&sum, &node.supply()[r]);
                    }
                }
            }
        }
    }

    /// H4: the result depends neither on the unit of a resource, nor on the order of resources or nodes.
    #[test]
    fn units_and_order_do_not_change_heaviness(plan in plans(), units in prop::collection::vec(1_u32..1000, 3)) {
        let units: Vec<Rational> = units.iter().map(|u| Rational::from_parts((*u).into(), 7u8.into())).collect();
        let order: Vec<usize> = (0..plan.width).rev().collect();
        let mut turned = plan.clone();
        turned.nodes.reverse();
        for rule in [Endowment::Proportional, Endowment::CappedProportional] {
            let (cloud, nodes) = plain::<Rational>(&plan, rule);
            let (cloud_2, nodes_2) = build(&turned, rule, &units, &order);
            for (name, metric) in exact_metrics() {
                let one = Heaviness::compute(&*metric, &cloud, &nodes).unwrap();
                let mut two = Heaviness::compute(&*metric, &cloud_2, &nodes_2).unwrap();
                two.workloads.reverse();
                two.combined_heaviness.reverse();
                prop_assert_eq!(one, two, "{}", name);
            }
        }
    }

    /// `f64` agrees with exact numbers.
    #[test]
    fn floats_agree_with_exact_numbers(plan in plans()) {
        let (cloud, nodes) = plain::<Rational>(&plan, Endowment::Proportional);
        let (cloud_2, nodes_2) = plain::<f64>(&plan, Endowment::Proportional);
        for (name, metric) in exact_metrics() {
            let float = (metric_named(name).unwrap().build)(&Parameters::default()).unwrap();
            let one = Heaviness::compute(&*metric, &cloud, &nodes).unwrap();
            let two = Heaviness::compute(&*float, &cloud_2, &nodes_2).unwrap();
            let exact = one.users.iter().chain(one.combined_heaviness.iter().flatten());
            let floats = two.users.iter().chain(two.combined_heaviness.iter().flatten());
            for (a, b) in exact.zip(floats) {
                prop_assert!(close(Number::to_f64(a), *b), "{name}: {a} {b}");
            }
        }
    }

    /// h_v and h_u by their definition in Eq. 3, for the metrics that are sums over workloads.
    #[test]
    fn the_heaviness_of_a_user_is_the_sum_over_workloads(plan in plans()) {
        let (cloud, nodes) = plain::<f64>(&plan, Endowment::CappedProportional);
        for metric in METRICS.iter().filter(|m| !["drf", "bottleneck"].contains(&m.name)) {
            let metric = (metric.build)(&Parameters::default()).unwrap();
            let found = Heaviness::compute(&*metric, &cloud, &nodes).unwrap();
            let mut users: Vec<f64> =
                (0..cloud.users()).map(|u| -metric.static_heaviness(&cloud, cloud.endowment(u))).collect();
            for (node, workloads) in nodes.iter().zip(&found.workloads) {
                let factors = metric.factors(node);
                for (v, h) in workloads.iter().enumerate() {
                    let s = metric.static_heaviness(&cloud, node.endowment(v));
                    let d = metric.dynamic_heaviness(&cloud, &factors, node.endowment(v), node.load(v));
                    prop_assert!(close(*h, s + d));
                    users[node.owners()[v]] += h;
                }
            }
            prop_assert!(users.iter().zip(&found.users).all(|(a, b)| close(*a, *b)), "{users:?} {:?}", found.users);
        }
    }

    /// A node's terms are bounded by its supply.
    #[test]
    fn terms_are_at_most_the_bound_from_the_supply(plan in plans()) {
        for rule in [Endowment::Proportional, Endowment::CappedProportional] {
            let (cloud, mut nodes) = plain::<f64>(&plan, rule);
            for node in &mut nodes {
                // Loads do not exceed the supply.
                let used: Vec<f64> = (0..plan.width).map(|r| (0..node.workloads()).map(|g| node.load(g)[r]).sum()).collect();
                for workload in 0..node.workloads() {
                    let part = |r: usize| if used[r] > 0.0 { (node.supply()[r] / used[r]).min(1.0) } else { 1.0 };
                    let load: Vec<f64> = (0..plan.width).map(|r| node.load(workload)[r] * part(r)).collect();
                    node.set_load(workload, &load).unwrap();
                }
                for metric in METRICS {
                    let metric = (metric.build)(&Parameters::default()).unwrap();
                    let mut local = NodeHeaviness::default();
                    local.update(metric.as_ref(), &cloud, node).unwrap();
                    let bounds = metric.max_terms(cloud.users(), node.supply());
                    prop_assert_eq!(bounds.len(), metric.terms(plan.width));
                    for (term, bound) in bounds.iter().enumerate() {
                        let sum: f64 = local.sums.iter().skip(term).step_by(metric.terms(plan.width)).map(|s| s.abs()).sum();
                        prop_assert!(sum <= bound * (1.0 + 1e-9), "{:?}: {} > {}", metric, sum, bound);
                    }
                }
            }
        }
    }

    /// H8: the credit on a node is at most the use beyond endowments there.
    #[test]
    fn the_credit_of_greediness_is_at_most_the_excess_use(plan in plans()) {
        let (cloud, nodes) = plain::<Rational>(&plan, Endowment::Proportional);
        let (_, metric) = exact_metrics().into_iter().find(|(name, _)| *name == "greediness").unwrap();
        let [beta, gamma] = [4u8, 2].map(|n| Rational::from_parts(n.into(), 3u8.into()));
        for node in &nodes {
            let factors = metric.factors(node);
            let mut sum = Rational::ZERO;
            for v in 0..node.workloads() {
                sum += metric.dynamic_heaviness(&cloud, &factors, node.endowment(v), node.load(v));
            }
            let mut expected = Rational::ZERO;
            for r in 0..plan.width {
                let part = |v: usize| node.load(v)[r].clone() - &node.endowment(v)[r];
                let over = (0..node.workloads()).map(part).filter(|p| *p > Rational::ZERO).fold(Rational::ZERO, |s, p| s + p);
                let less = (0..node.workloads()).map(part).filter(|p| *p < Rational::ZERO).fold(Rational::ZERO, |s, p| s - p);
                expected += &cloud.norm()[r] * (&beta * &over - &gamma * over.clone().min(less));
            }
            prop_assert_eq!(sum, expected);
        }
    }

    /// H5 to H7, of the default metric.
    #[test]
    fn deviation_is_smallest_at_the_load_convex_and_homogeneous(
        e in prop::collection::vec(0_u32..12, 6),
        u in prop::collection::vec(0_u32..12, 6),
        factor in 1_u32..9,
    ) {
        let rational = |x: &[u32]| -> Vec<Rational> { x.iter().map(|x| Rational::from(*x)).collect() };
        let cloud = Cloud::new(rational(&[3, 5, 7]), vec![vec![None; 3]; 2]).unwrap();
        let (_, metric) = exact_metrics().into_iter().find(|(name, _)| *name == "deviation").unwrap();
        let h = |e: &[Rational], u: &[Rational]| metric.workload_heaviness(&cloud, &[], e, u);
        let ([e, f], [u, v]) = (e.split_at(3).into(), u.split_at(3).into());
        let [e, f, u, v] = [e, f, u, v].map(rational);
        let plus = |a: &[Rational], b: &[Rational]| -> Vec<Rational> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
        let times = |a: &[Rational]| -> Vec<Rational> { a.iter().map(|a| a * Rational::from(factor)).collect() };
        prop_assert!(h(&plus(&e, &f), &plus(&u, &v)) <= h(&e, &u) + h(&f, &v));
        prop_assert_eq!(h(&times(&e), &times(&u)), h(&e, &u) * Rational::from(factor));
        prop_assert_eq!(h(&u, &u), metric.static_heaviness(&cloud, &u));
        for r in 0..3 {
            let with = |x: u32| { let mut e = e.clone(); e[r] = Rational::from(x); h(&e, &u) };
            for x in 0..12_u32 {
                let falls = Rational::from(x) < u[r];
                let as_expected = if falls { with(x) > with(x + 1) } else { with(x) < with(x + 1) };
                prop_assert!(as_expected);
            }
        }
        // Equal workloads and a larger quota: lighter.
        let quotas = vec![vec![Some(Rational::ONE); 3], vec![Some(Rational::from(1 + factor)); 3]];
        let cloud = Cloud::new(rational(&[3, 5, 7]), quotas).unwrap();
        let [small, large] = [0, 1].map(|user| metric.user_heaviness(&cloud, user, &u, &u));
        prop_assert!(large < small);
    }

    /// Where DRF or asset fairness divides a node among equal users, all users are equally heavy.
    #[test]
    fn allocations_by_the_mechanisms_leave_all_users_equally_heavy(demands in prop::collection::vec(prop::collection::vec(1_u32..9, 3), 1..6)) {
        let users = demands.iter().map(|row| {
            User::new(row.iter().map(|d| Rational::from_parts((*d).into(), 10u8.into())).collect::<Vec<_>>())
        });
        let problem = Problem::new(3, users).unwrap();
        for name in ["drf", "asset"] {
            let tasks = mechanism_named(name).unwrap().divide_exact(&problem, &MechanismOptions::default()).unwrap().tasks;
            let found = on_one_node(name, &Parameters::default(), &problem, &tasks);
            prop_assert!(found.users.windows(2).all(|pair| pair[0] == pair[1]), "{name} {:?}", found.users);
        }
    }

    /// The users with a justified complaint (Dolev et al. 2012) are exactly those with negative heaviness under `bottleneck`.
    #[test]
    fn a_justified_complaint_is_negative_heaviness(
        users in prop::collection::vec((prop::collection::vec(0_u32..9, 3), 1_u32..5, 0_u32..9), 1..6),
    ) {
        let given = users.iter().map(|(row, weight, _)| {
            // A user of a problem demands something.
            let row = if row.iter().all(|d| *d == 0) { vec![1; 3] } else { row.clone() };
            User::new(row.into_iter().map(Rational::from).collect::<Vec<_>>()).weight(Rational::from(*weight))
        });
        let problem = Problem::new(3, given).unwrap();
        let tasks: Vec<Rational> = users.iter().map(|(_, _, tasks)| Rational::from(*tasks)).collect();
        let max = problem.loads(&tasks).into_iter().max().unwrap();
        prop_assume!(!Number::is_zero(&max));
        let tasks: Vec<Rational> = tasks.into_iter().map(|t| t / &max).collect();
        let parameters = Parameters { saturation: Some(Rational::ONE), ..Parameters::default() };
        let found = on_one_node("bottleneck", &parameters, &problem, &tasks);
        let property = property_named("no_justified_complaint").unwrap();
        let complaints = property.findings_exact(&problem, &tasks, &Rational::ZERO);
        let who: Vec<usize> = complaints.iter().filter_map(|finding| finding.who).collect();
        let lighter: Vec<usize> = (0..users.len()).filter(|u| found.users[*u] < Rational::ZERO).collect();
        prop_assert_eq!(who, lighter);
    }
}

/// One node with 1 of each resource and one workload for each user, whose quotas are the weights.
fn on_one_node(
    name: &str,
    parameters: &Parameters,
    problem: &Problem<Rational>,
    tasks: &[Rational],
) -> Heaviness<Rational> {
    let width = problem.resource_count();
    let workload = |owner: usize| {
        let load = problem.demand(owner).iter().map(|d| d * &tasks[owner]).collect();
        RunningWorkload { owner, sizes: vec![None; width], load }
    };
    let ones = vec![Rational::ONE; width];
    let workloads = (0..tasks.len()).map(workload).collect();
    let node = Node::new(ones.clone(), ones.clone(), Endowment::Proportional, workloads).unwrap();
    let quotas = (0..tasks.len()).map(|u| vec![Some(problem.weight(u).clone()); width]).collect();
    let metric = (metric_named(name).unwrap().build_exact.unwrap())(parameters).unwrap();
    Heaviness::compute(&*metric, &Cloud::new(ones, quotas).unwrap(), &[node]).unwrap()
}

/// With unequal quotas Eq. 3 subtracts where weighted DRF divides: an example in which the orders differ.
#[test]
fn with_unequal_quotas_the_order_differs_from_weighted_drf() {
    // The load 1/4 with the endowment 1/16 (a ratio of 4, an excess of 3/16) against 3/4 with 1/2 (a ratio of 3/2, an
    // excess of 1/4).
    let sixteenth = |n: i32| Rational::from_parts(n.into(), 16u8.into());
    let quotas = [1, 8, 7].map(|n| vec![Some(sixteenth(n))]).to_vec();
    let cloud = Cloud::new(vec![Rational::ONE], quotas).unwrap();
    let build = metric_named("drf").unwrap().build_exact.unwrap();
    let metric = build(&Parameters::default()).unwrap();
    let used = [sixteenth(4), sixteenth(12)];
    let h = [0, 1].map(|u| metric.user_heaviness(&cloud, u, &[used[u].clone()], &[Rational::ONE]));
    let ratio = [0, 1].map(|u: usize| &used[u] / &cloud.endowment(u)[0]);
    assert!(h[0] < h[1] && ratio[0] > ratio[1]);
}
