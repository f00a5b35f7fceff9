//! Numbers worked out by hand, compared exactly.
#![allow(clippy::unwrap_used)]

use evenhand_heaviness::{
    Cloud, Endowment, Heaviness, HeavinessError, METRICS, Metric, MetricError, Node, Parameters, RootPenalty,
    RunningWorkload, metric_named,
};
use evenhand_model::Rational;

fn q(n: i32, d: u32) -> Rational {
    Rational::from_parts(n.into(), d.into())
}

fn whole(n: i32) -> Rational {
    q(n, 1)
}

fn exact(name: &str, parameters: &Parameters) -> Box<dyn Metric<Rational>> {
    (metric_named(name).unwrap().build_exact.unwrap())(parameters).unwrap()
}

fn greediness(k: i32) -> Box<dyn Metric<Rational>> {
    exact("greediness", &Parameters { k: Some(whole(k)), ..Parameters::default() })
}

fn workload(owner: usize, size: Option<Rational>, load: Rational) -> RunningWorkload<Rational> {
    RunningWorkload { owner, sizes: vec![size], load: vec![load] }
}

/// Experiment 1 of Poullie et al. (2016): two cores, two workloads of user d (0) and one of user e (1).
fn experiment_1(loads: [Rational; 3]) -> (Cloud<Rational>, Node<Rational>) {
    let workloads =
        [0, 0, 1].into_iter().zip(loads).map(|(owner, load)| workload(owner, Some(whole(1)), load)).collect();
    let node = Node::new(vec![whole(2)], vec![whole(1)], Endowment::Proportional, workloads).unwrap();
    (Cloud::new(vec![whole(2)], vec![vec![Some(whole(1))]; 2]).unwrap(), node)
}

fn assert_experiment_1(
    metric: &dyn Metric<Rational>,
    loads: [Rational; 3],
    workloads: [Rational; 3],
    users: [Rational; 2],
    combined_heaviness: [Rational; 3],
) {
    let (cloud, node) = experiment_1(loads);
    assert_eq!(cloud.norm(), [whole(1)]);
    assert_eq!(node.endowment(0), [q(2, 3)]);
    let found = Heaviness::compute(metric, &cloud, &[node]).unwrap();
    assert_eq!(found.workloads, [workloads]);
    assert_eq!(found.users, users);
    assert_eq!(found.combined_heaviness, [combined_heaviness]);
}

#[test]
fn experiment_1_with_one_busy_workload() {
    let loads = || [whole(2), whole(0), whole(0)];
    let h_v = [q(22, 9), q(2, 9), q(2, 9)];
    assert_experiment_1(&*greediness(1), loads(), h_v, [q(5, 3), q(-7, 9)], [q(37, 9), q(17, 9), q(-5, 9)]);
    let h_v = [q(10, 3), whole(0), whole(0)];
    assert_experiment_1(&*greediness(0), loads(), h_v, [q(7, 3), whole(-1)], [q(17, 3), q(7, 3), whole(-1)]);
}

#[test]
fn experiment_1_with_equal_thirds_and_with_half_half_one() {
    let thirds = [(); 3].map(|()| q(2, 3));
    for metric in [greediness(1), greediness(0), exact("deviation", &Parameters::default())] {
        let combined_heaviness = [whole(1), whole(1), q(1, 3)];
        assert_experiment_1(&*metric, thirds.clone(), thirds.clone(), [q(1, 3), q(-1, 3)], combined_heaviness);
    }
    let loads = [q(1, 2), q(1, 2), whole(1)];
    let h_v = [q(5, 9), q(5, 9), q(10, 9)];
    assert_experiment_1(&*greediness(1), loads, h_v, [q(1, 9), q(1, 9)], [q(2, 3), q(2, 3), q(11, 9)]);
}

#[test]
fn all_workloads_are_equally_heavy_at_the_fixed_point_of_experiment_1() {
    for metric in [greediness(1), exact("deviation", &Parameters::default())] {
        let (cloud, node) = experiment_1([q(19, 33), q(19, 33), q(28, 33)]);
        let found = Heaviness::compute(&*metric, &cloud, &[node]).unwrap();
        let first = &found.combined_heaviness[0][0];
        assert!(found.combined_heaviness[0].iter().all(|h| h == first), "{:?}", found.combined_heaviness);
    }
}

/// In experiment 2 (equal nodes, 2 cores and 150 MB/s; d and e contend for both on node a; on b, e uses all CPU and f the
/// whole disk) h_p of d and e are equal if d gets two thirds.
#[test]
fn contenders_are_equally_heavy_at_the_fixed_point_of_experiment_2() {
    let workload =
        |owner, load: [Rational; 2]| RunningWorkload { owner, sizes: vec![Some(whole(1)), None], load: load.into() };
    let node = |workloads| {
        Node::new(vec![whole(2), whole(150)], vec![whole(1); 2], Endowment::Proportional, workloads).unwrap()
    };
    let a = node(vec![workload(0, [q(4, 3), whole(100)]), workload(1, [q(2, 3), whole(50)])]);
    let b = node(vec![workload(1, [whole(2), whole(0)]), workload(2, [whole(0), whole(150)])]);
    let nodes = [a, b];
    let supply = Cloud::supply_of(&nodes);
    assert_eq!(supply, [whole(4), whole(300)]);
    let cloud = Cloud::new(supply, vec![vec![Some(whole(5)); 2]; 3]).unwrap();
    assert_eq!(cloud.norm(), [q(3, 8), q(1, 200)]);
    assert_eq!(nodes[1].endowment(1), [whole(1), whole(75)]);
    for metric in [greediness(1), exact("deviation", &Parameters::default())] {
        let found = Heaviness::compute(&*metric, &cloud, &nodes).unwrap();
        assert_eq!(found.workloads, [[q(13, 12), q(7, 12)], [whole(1), whole(1)]]);
        assert_eq!(found.users, [q(1, 12), q(7, 12), whole(0)]);
        assert_eq!(found.combined_heaviness, [[q(7, 6), q(7, 6)], [q(19, 12), whole(1)]]);
    }
}

#[test]
fn endowments_equal_those_worked_out_by_hand() {
    let endowments = |rule, sizes: &[Option<i32>]| {
        let workloads = sizes.iter().map(|s| workload(0, s.map(whole), whole(0))).collect();
        let node = Node::new(vec![whole(12)], vec![whole(1)], rule, workloads).unwrap();
        (0..sizes.len()).map(|i| node.endowment(i)[0].clone()).collect::<Vec<_>>()
    };
    use Endowment::{CappedProportional, Proportional};
    assert_eq!(endowments(Proportional, &[Some(1), Some(3)]), [whole(3), whole(9)]);
    assert_eq!(endowments(CappedProportional, &[Some(1), Some(3)]), [whole(1), whole(3)]);
    for rule in [Proportional, CappedProportional] {
        assert_eq!(endowments(rule, &[Some(8), Some(16)]), [whole(4), whole(8)]);
        assert_eq!(endowments(rule, &[Some(0), Some(0)]), [whole(0), whole(0)]);
        // Without sizes: the supply over the number of workloads.
        assert_eq!(endowments(rule, &[None, None, None]), [whole(4), whole(4), whole(4)]);
        // Unknown sizes count as the mean of the others.
        assert_eq!(endowments(rule, &[Some(10), None, Some(30)]), [whole(2), whole(4), whole(6)]);
    }
    assert_eq!(endowments(CappedProportional, &[Some(2), None]), [whole(2), whole(2)]);
}

/// A core of a node that is twice as fast counts as two cores of the reference node.
#[test]
fn speed_scales_supply_sizes_and_loads() {
    let node = |supply, speed, load, rule| {
        let workloads = vec![workload(0, Some(whole(1)), load), workload(1, Some(whole(3)), whole(0))];
        Node::new(vec![supply], vec![speed], rule, workloads).unwrap()
    };
    for rule in [Endowment::Proportional, Endowment::CappedProportional] {
        let (fast, slow) = (node(whole(2), whole(2), q(1, 2), rule), node(whole(2), whole(1), q(1, 2), rule));
        assert_eq!((fast.supply(), slow.supply()), ([whole(4)].as_slice(), [whole(2)].as_slice()));
        assert_eq!((fast.load(0), slow.load(0)), ([whole(1)].as_slice(), [q(1, 2)].as_slice()));
        assert_eq!(fast.endowment(1), [slow.endowment(1)[0].clone() * whole(2)]);
        let cloud = Cloud::new(whole_supply(&[&fast, &slow]), vec![vec![None]; 2]).unwrap();
        let found = Heaviness::compute(&*greediness(1), &cloud, &[fast, slow]).unwrap();
        assert_eq!(found.workloads[0][0], found.workloads[1][0].clone() * whole(2));
    }
}

fn whole_supply(nodes: &[&Node<Rational>]) -> Vec<Rational> {
    Cloud::supply_of(nodes.iter().copied())
}

#[test]
fn the_root_penalty_equals_known_roots() {
    let cloud = Cloud::new(vec![2.0, 8.0], vec![vec![None; 2]; 3]).unwrap();
    // 1 - sqrt(1/4 x 1) = 1/2 of the entitlement of each of three users; all of one resource counts as everything.
    let cases = [([1.5, 0.0], 1.5), ([0.0, 0.0], 0.0), ([2.0, 1.0], 3.0), ([0.0, 9.0], 3.0), ([1.5, 6.0], 2.25)];
    for (load, expected) in cases {
        let h = RootPenalty.workload_heaviness(&cloud, &[], &[], &load);
        assert!((h - expected).abs() < 1e-12, "{load:?}: {h}");
    }
    // Tiny shares do not vanish: 3/2 of them.
    let h = RootPenalty.workload_heaviness(&cloud, &[], &[], &[2e-30, 0.0]);
    assert!((h / 1.5e-30 - 1.0).abs() < 1e-12, "{h}");
}

#[test]
fn invalid_nodes_clouds_and_loads_are_rejected() {
    let node = |supply: Vec<f64>, speed: f64, load: f64| {
        let workloads = vec![RunningWorkload { owner: 3, sizes: vec![None], load: vec![load] }];
        Node::new(supply, vec![speed], Endowment::Proportional, workloads)
    };
    assert_eq!(node(vec![], 1.0, 1.0), Err(HeavinessError::NoResource));
    assert_eq!(node(vec![1.0], 0.0, 1.0), Err(HeavinessError::ZeroSpeed { resource: 0 }));
    for load in [-1.0, f64::NAN, f64::INFINITY] {
        let quantity = "the load of a workload";
        assert_eq!(
            node(vec![1.0], 1.0, load),
            Err(HeavinessError::InvalidQuantity { quantity, index: 0, resource: 0 })
        );
    }
    assert!(matches!(node(vec![1.0, 2.0], 1.0, 1.0), Err(HeavinessError::Length { found: 1, expected: 2, .. })));
    assert!(matches!(node(vec![1e300], 1e300, 1.0), Err(HeavinessError::InvalidQuantity { .. })));
    let mut node = node(vec![1.0], 1.0, 0.5).unwrap();
    assert_eq!(node.set_load(1, &[1.0]), Err(HeavinessError::UnknownWorkload { workload: 1, workloads: 1 }));
    assert!(node.set_load(0, &[f64::NAN]).is_err() && node.load(0) == [0.5]);
    let cloud = Cloud::new(vec![1.0], vec![vec![None]; 2]).unwrap();
    let metric = (METRICS[0].build)(&Parameters::default()).unwrap();
    let unknown = HeavinessError::UnknownUser { workload: 0, owner: 3, users: 2 };
    assert_eq!(Heaviness::compute(&*metric, &cloud, &[node]), Err(unknown));
    assert!(Cloud::new(vec![1.0], vec![vec![Some(-1.0)]]).is_err());
    assert!(Cloud::new(vec![1.0], vec![vec![]]).is_err());
}

#[test]
fn invalid_parameters_are_rejected() {
    let third = || Some(q(1, 3));
    let error = |name: &str, p: Parameters| (metric_named(name).unwrap().build)(&p).err();
    for metric in METRICS.iter().filter(|m| m.name != "bottleneck") {
        let expected = MetricError::UnknownParameter { metric: metric.name, parameter: "saturation" };
        assert_eq!(error(metric.name, Parameters { saturation: third(), ..Parameters::default() }), Some(expected));
    }
    assert!(error("deviation", Parameters { beta: third(), ..Parameters::default() }).is_some());
    assert!(error("deviation", Parameters { gamma: Some(whole(1)), ..Parameters::default() }).is_some());
    // Above 1, but not after rounding.
    let nearly = Rational::ONE + q(1, 1 << 31) * q(1, 1 << 31);
    assert!(error("deviation", Parameters { beta: Some(nearly), ..Parameters::default() }).is_some());
    assert!(error("greediness", Parameters { k: Some(whole(2)), ..Parameters::default() }).is_some());
    assert!(error("greediness", Parameters { beta: Some(whole(2)), ..Parameters::default() }).is_some());
    assert!(error("bottleneck", Parameters { saturation: Some(whole(2)), ..Parameters::default() }).is_some());
    assert!(metric_named("").is_none());
}
