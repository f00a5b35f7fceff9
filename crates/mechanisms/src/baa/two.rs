//! Two resources: the best levels in closed form (reference 4.1).
//!
//! The pairs of levels that leave nothing free of some resource form a line with one corner, where both
//! are full. On either side of the corner one resource stays full and the load of the other falls, the
//! further away the lower: each class uses less of the other's resource than of its own, so W_0 W_1 > M H.
//! What rules 1 to 3 and the levels already promised allow is a stretch of that line. So the best point
//! is the corner, or the end of the stretch that is next to it, and there is no other.

use crate::{Allocation, Number, Problem};

use super::classes::Classes;

/// What the closed form needs of each class.
struct Class<N> {
    /// The sum of weights: what a level of 1 uses of the class's own resource.
    weight: N,
    /// What a level of 1 uses of the other resource: H of class 0, M of class 1.
    cross: N,
    /// The largest share for weight of the other resource that a level of 1 gives one user: alpha of
    /// class 0, 1 / beta of class 1.
    most: N,
}

impl<N: Number> Class<N> {
    fn empty() -> Class<N> {
        Class { weight: N::zero(), cross: N::zero(), most: N::zero() }
    }
}

/// The best levels, none below `floor`, which must itself be possible.
pub(super) fn levels<N: Number>(classes: &Classes<N>, free: &[N], floor: &[N]) -> Vec<N> {
    let class = |own: usize, other: usize| Class {
        weight: classes.weight(own).clone(),
        cross: classes.load(other, own).clone(),
        most: classes.most(other, own).clone(),
    };
    best(&[class(0, 1), class(1, 0)], free, floor).to_vec()
}

fn best<N: Number>(classes: &[Class<N>; 2], free: &[N], floor: &[N]) -> [N; 2] {
    let mut levels = [floor[0].clone(), floor[1].clone()];
    for (own, other) in [(0, 1), (1, 0)] {
        if classes[other].weight.is_zero() {
            let class = &classes[own];
            let mut level = free[own].clone() / &class.weight;
            if class.cross.is_positive() {
                level = level.or_less(free[other].clone() / &class.cross);
            }
            levels[own] = level.or_more(floor[own].clone());
            return levels;
        }
    }
    let [zero, one] = classes;
    let determinant = zero.weight.clone() * &one.weight - one.cross.clone() * &zero.cross;
    let corner = [
        (one.weight.clone() * &free[0] - one.cross.clone() * &free[1]) / &determinant,
        (zero.weight.clone() * &free[1] - zero.cross.clone() * &free[0]) / determinant,
    ];
    for (low, high) in [(0, 1), (1, 0)] {
        // How high the other class may go along the line on which resource `low` is full, for class `low`
        // to keep what it was promised and no less of its resource than any user of the other.
        let (class, other) = (&classes[low], &classes[high]);
        let below_floor = corner[low] < floor[low] && other.cross.is_positive();
        let above_ray = corner[low] < other.most.clone() * &corner[high];
        let promised = below_floor.then(|| (free[low].clone() - class.weight.clone() * &floor[low]) / &other.cross);
        let on_ray = above_ray.then(|| free[low].clone() / (class.weight.clone() * &other.most + &other.cross));
        let (low_level, high_level) = match (promised, on_ray) {
            (Some(promised), Some(ray)) if promised <= ray => (floor[low].clone(), promised),
            (_, Some(ray)) => (ray.clone() * &other.most, ray),
            (Some(promised), None) => (floor[low].clone(), promised),
            (None, None) => continue,
        };
        levels[low] = low_level.or_more(floor[low].clone());
        levels[high] = high_level.or_more(floor[high].clone());
        return levels;
    }
    let [corner_zero, corner_one] = corner;
    [corner_zero.or_more(floor[0].clone()), corner_one.or_more(floor[1].clone())]
}

/// Divides in two passes if nobody has a limit. `None` if somebody has.
pub(super) fn divide_unlimited<N: Number>(problem: &Problem<N>) -> Option<Allocation<N>> {
    let mut classes = [Class::empty(), Class::empty()];
    // Tasks at a level of 1, below zero for the users of class 1: remembers the class without a second look
    // at the demands.
    let mut tasks = Vec::with_capacity(problem.users());
    let [zero, one] = &mut classes;
    let nothing = N::zero();
    for i in 0..problem.users() {
        if problem.limit(i).is_some() {
            return None;
        }
        let (weight, demand) = (problem.weight(i), problem.demand(i));
        let is_zero = demand[0] >= demand[1];
        let (own, other) = if is_zero { (&demand[0], &demand[1]) } else { (&demand[1], &demand[0]) };
        let per_own = N::one() / own;
        let share = other.clone() * &per_own;
        let cross = share.clone() * weight;
        let at_one = per_own * weight;
        // Both sums in every turn, of which one adds nothing: which class it is cannot be predicted.
        zero.weight += if is_zero { weight } else { &nothing };
        one.weight += if is_zero { &nothing } else { weight };
        zero.cross += if is_zero { &cross } else { &nothing };
        one.cross += if is_zero { &nothing } else { &cross };
        let most = if is_zero { &mut zero.most } else { &mut one.most };
        if share > *most {
            *most = share;
        }
        tasks.push(if is_zero { at_one } else { -at_one });
    }
    let floor = [N::zero(), N::zero()];
    let levels = best(&classes, &[N::one(), N::one()], &floor);
    let factors = [levels[0].clone(), -levels[1].clone()];
    for task in &mut tasks {
        let factor = if *task < nothing { &factors[1] } else { &factors[0] };
        *task = task.clone() * factor;
    }
    let levels = levels.into_iter().zip(&classes).map(|(level, c)| c.weight.is_positive().then_some(level));
    Some(Allocation { levels: levels.collect(), ..Allocation::new(tasks) })
}
