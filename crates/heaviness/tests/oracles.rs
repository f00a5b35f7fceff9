//! Numbers worked out by hand, exactly.
#![allow(clippy::unwrap_used)]

use evenhand_heaviness::{
    Cloud, Endowment, Guest, Heaviness, HeavinessError, METRICS, Metric, MetricError, Node, Parameters, RootPenalty,
    metric_named,
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

fn guest(owner: usize, size: Option<Rational>, load: Rational) -> Guest<Rational> {
    Guest { owner, sizes: vec![size], load: vec![load] }
}

/// Experiment 1 of paper 003: two cores, two guests of user d (0) and one of user e (1).
fn experiment_1(loads: [Rational; 3]) -> (Cloud<Rational>, Node<Rational>) {
    let guests = [0, 0, 1].into_iter().zip(loads).map(|(owner, load)| guest(owner, Some(whole(1)), load)).collect();
    let node = Node::new(vec![whole(2)], vec![whole(1)], Endowment::Proportional, guests).unwrap();
    (Cloud::new(vec![whole(2)], vec![vec![Some(whole(1))]; 2]).unwrap(), node)
}

fn assert_experiment_1(
    metric: &dyn Metric<Rational>,
    loads: [Rational; 3],
    guests: [Rational; 3],
    users: [Rational; 2],
    precedence: [Rational; 3],
) {
    let (cloud, node) = experiment_1(loads);
    assert_eq!(cloud.norm(), [whole(1)]);
    assert_eq!(node.endowment(0), [q(2, 3)]);
    let found = Heaviness::of(metric, &cloud, &[node]).unwrap();
    assert_eq!(found.guests, [guests]);
    assert_eq!(found.users, users);
    assert_eq!(found.precedence, [precedence]);
}

#[test]
fn only_one_guest_loads() {
    let loads = || [whole(2), whole(0), whole(0)];
    let h_v = [q(22, 9), q(2, 9), q(2, 9)];
    assert_experiment_1(&*greediness(1), loads(), h_v, [q(5, 3), q(-7, 9)], [q(37, 9), q(17, 9), q(-5, 9)]);
    let h_v = [q(10, 3), whole(0), whole(0)];
    assert_experiment_1(&*greediness(0), loads(), h_v, [q(7, 3), whole(-1)], [q(17, 3), q(7, 3), whole(-1)]);
}

#[test]
fn equal_thirds_and_half_half_one() {
    let thirds = [(); 3].map(|()| q(2, 3));
    for metric in [greediness(1), greediness(0), exact("deviation", &Parameters::default())] {
        let precedence = [whole(1), whole(1), q(1, 3)];
        assert_experiment_1(&*metric, thirds.clone(), thirds.clone(), [q(1, 3), q(-1, 3)], precedence);
    }
    let loads = [q(1, 2), q(1, 2), whole(1)];
    let h_v = [q(5, 9), q(5, 9), q(10, 9)];
    assert_experiment_1(&*greediness(1), loads, h_v, [q(1, 9), q(1, 9)], [q(2, 3), q(2, 3), q(11, 9)]);
}

#[test]
fn the_fixed_point_of_experiment_1() {
    for metric in [greediness(1), exact("deviation", &Parameters::default())] {
        let (cloud, node) = experiment_1([q(19, 33), q(19, 33), q(28, 33)]);
        let found = Heaviness::of(&*metric, &cloud, &[node]).unwrap();
        let first = &found.precedence[0][0];
        assert!(found.precedence[0].iter().all(|h| h == first), "{:?}", found.precedence);
    }
}

/// In experiment 2 (equal nodes, 2 cores and 150 MB/s; d and e contend for both on node a; on b, e takes all
/// CPU and f all of the disk) precedences of d and e are equal at two thirds for d.
#[test]
fn the_fixed_point_of_experiment_2() {
    let guest = |owner, load: [Rational; 2]| Guest { owner, sizes: vec![Some(whole(1)), None], load: load.into() };
    let node =
        |guests| Node::new(vec![whole(2), whole(150)], vec![whole(1); 2], Endowment::Proportional, guests).unwrap();
    let a = node(vec![guest(0, [q(4, 3), whole(100)]), guest(1, [q(2, 3), whole(50)])]);
    let b = node(vec![guest(1, [whole(2), whole(0)]), guest(2, [whole(0), whole(150)])]);
    let nodes = [a, b];
    let supply = Cloud::supply_of(&nodes);
    assert_eq!(supply, [whole(4), whole(300)]);
    let cloud = Cloud::new(supply, vec![vec![Some(whole(5)); 2]; 3]).unwrap();
    assert_eq!(cloud.norm(), [q(3, 8), q(1, 200)]);
    assert_eq!(nodes[1].endowment(1), [whole(1), whole(75)]);
    for metric in [greediness(1), exact("deviation", &Parameters::default())] {
        let found = Heaviness::of(&*metric, &cloud, &nodes).unwrap();
        assert_eq!(found.guests, [[q(13, 12), q(7, 12)], [whole(1), whole(1)]]);
        assert_eq!(found.users, [q(1, 12), q(7, 12), whole(0)]);
        assert_eq!(found.precedence, [[q(7, 6), q(7, 6)], [q(19, 12), whole(1)]]);
    }
}

#[test]
fn endowments_by_hand() {
    let endowments = |rule, sizes: &[Option<i32>]| {
        let guests = sizes.iter().map(|s| guest(0, s.map(whole), whole(0))).collect();
        let node = Node::new(vec![whole(12)], vec![whole(1)], rule, guests).unwrap();
        (0..sizes.len()).map(|i| node.endowment(i)[0].clone()).collect::<Vec<_>>()
    };
    use Endowment::{CappedProportional, Proportional};
    assert_eq!(endowments(Proportional, &[Some(1), Some(3)]), [whole(3), whole(9)]);
    assert_eq!(endowments(CappedProportional, &[Some(1), Some(3)]), [whole(1), whole(3)]);
    for rule in [Proportional, CappedProportional] {
        assert_eq!(endowments(rule, &[Some(8), Some(16)]), [whole(4), whole(8)]);
        assert_eq!(endowments(rule, &[Some(0), Some(0)]), [whole(0), whole(0)]);
        // No virtual counterpart: the supply over the number of guests.
        assert_eq!(endowments(rule, &[None, None, None]), [whole(4), whole(4), whole(4)]);
        // The mean of the others.
        assert_eq!(endowments(rule, &[Some(10), None, Some(30)]), [whole(2), whole(4), whole(6)]);
    }
    assert_eq!(endowments(CappedProportional, &[Some(2), None]), [whole(2), whole(2)]);
}

/// A core of a node that is twice as fast is two cores of the reference node.
#[test]
fn speed_counts_supply_sizes_and_loads() {
    let node = |supply, speed, load, rule| {
        let guests = vec![guest(0, Some(whole(1)), load), guest(1, Some(whole(3)), whole(0))];
        Node::new(vec![supply], vec![speed], rule, guests).unwrap()
    };
    for rule in [Endowment::Proportional, Endowment::CappedProportional] {
        let (fast, slow) = (node(whole(2), whole(2), q(1, 2), rule), node(whole(2), whole(1), q(1, 2), rule));
        assert_eq!((fast.supply(), slow.supply()), ([whole(4)].as_slice(), [whole(2)].as_slice()));
        assert_eq!((fast.load(0), slow.load(0)), ([whole(1)].as_slice(), [q(1, 2)].as_slice()));
        assert_eq!(fast.endowment(1), [slow.endowment(1)[0].clone() * whole(2)]);
        let cloud = Cloud::new(whole_supply(&[&fast, &slow]), vec![vec![None]; 2]).unwrap();
        let found = Heaviness::of(&*greediness(1), &cloud, &[fast, slow]).unwrap();
        assert_eq!(found.guests[0][0], found.guests[1][0].clone() * whole(2));
    }
}

fn whole_supply(nodes: &[&Node<Rational>]) -> Vec<Rational> {
    Cloud::supply_of(nodes.iter().copied())
}

#[test]
fn the_root_penalty_of_known_roots() {
    let cloud = Cloud::new(vec![2.0, 8.0], vec![vec![None; 2]; 3]).unwrap();
    // 1 - sqrt(1/4 x 1) = 1/2 of each of three users' due; all of one resource is all.
    let cases = [([1.5, 0.0], 1.5), ([0.0, 0.0], 0.0), ([2.0, 1.0], 3.0), ([0.0, 9.0], 3.0), ([1.5, 6.0], 2.25)];
    for (load, expected) in cases {
        let h = RootPenalty.guest_heaviness(&cloud, &[], &[], &load);
        assert!((h - expected).abs() < 1e-12, "{load:?}: {h}");
    }
    // Tiny shares do not vanish: 3/2 of them.
    let h = RootPenalty.guest_heaviness(&cloud, &[], &[], &[2e-30, 0.0]);
    assert!((h / 1.5e-30 - 1.0).abs() < 1e-12, "{h}");
}

#[test]
fn what_is_refused() {
    let node = |supply: Vec<f64>, speed: f64, load: f64| {
        let guests = vec![Guest { owner: 3, sizes: vec![None], load: vec![load] }];
        Node::new(supply, vec![speed], Endowment::Proportional, guests)
    };
    assert_eq!(node(vec![], 1.0, 1.0), Err(HeavinessError::NoResource));
    assert_eq!(node(vec![1.0], 0.0, 1.0), Err(HeavinessError::ZeroSpeed { resource: 0 }));
    for load in [-1.0, f64::NAN, f64::INFINITY] {
        let what = "the load of a guest";
        assert_eq!(node(vec![1.0], 1.0, load), Err(HeavinessError::NotAQuantity { what, index: 0, resource: 0 }));
    }
    assert!(matches!(node(vec![1.0, 2.0], 1.0, 1.0), Err(HeavinessError::Width { found: 1, expected: 2, .. })));
    assert!(matches!(node(vec![1e300], 1e300, 1.0), Err(HeavinessError::NotAQuantity { .. })));
    let mut node = node(vec![1.0], 1.0, 0.5).unwrap();
    assert_eq!(node.set_load(1, &[1.0]), Err(HeavinessError::UnknownGuest { guest: 1, guests: 1 }));
    assert!(node.set_load(0, &[f64::NAN]).is_err() && node.load(0) == [0.5]);
    let cloud = Cloud::new(vec![1.0], vec![vec![None]; 2]).unwrap();
    let metric = (METRICS[0].build)(&Parameters::default()).unwrap();
    let unknown = HeavinessError::UnknownUser { guest: 0, owner: 3, users: 2 };
    assert_eq!(Heaviness::of(&*metric, &cloud, &[node]), Err(unknown));
    assert!(Cloud::new(vec![1.0], vec![vec![Some(-1.0)]]).is_err());
    assert!(Cloud::new(vec![1.0], vec![vec![]]).is_err());
}

#[test]
fn parameters_are_checked() {
    let third = || Some(q(1, 3));
    let refused = |name: &str, p: Parameters| (metric_named(name).unwrap().build)(&p).err();
    for metric in METRICS.iter().filter(|m| m.name != "bottleneck") {
        let expected = MetricError::UnknownParameter { metric: metric.name, parameter: "saturation" };
        assert_eq!(refused(metric.name, Parameters { saturation: third(), ..Parameters::default() }), Some(expected));
    }
    assert!(refused("deviation", Parameters { beta: third(), ..Parameters::default() }).is_some());
    assert!(refused("deviation", Parameters { gamma: Some(whole(1)), ..Parameters::default() }).is_some());
    // Above 1, but not once it is rounded.
    let nearly = Rational::ONE + q(1, 1 << 31) * q(1, 1 << 31);
    assert!(refused("deviation", Parameters { beta: Some(nearly), ..Parameters::default() }).is_some());
    assert!(refused("greediness", Parameters { k: Some(whole(2)), ..Parameters::default() }).is_some());
    assert!(refused("greediness", Parameters { beta: Some(whole(2)), ..Parameters::default() }).is_some());
    assert!(refused("bottleneck", Parameters { saturation: Some(whole(2)), ..Parameters::default() }).is_some());
    assert!(metric_named("").is_none());
}
