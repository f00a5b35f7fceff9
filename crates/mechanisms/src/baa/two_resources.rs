//! Levels for two resources in closed form.
//!
//! The pairs of levels that saturate some resource form a line with one corner, where both resources are saturated. On
//! either side of the corner one resource remains saturated and the load of the other falls with the distance: each
//! class uses less of the other's resource than of its own, so W_0 W_1 > M H. Rules 1 to 3 and the levels already
//! guaranteed admit a segment of that line. The optimum is therefore the corner, or the end of the segment nearest to
//! it, and is unique.

use std::hint::black_box;

use crate::{Allocation, Number, Problem};

use super::user_classes::ClassSums;

/// Sums of a class that the closed form needs.
struct Class<N> {
    /// Sum of weights: the load of the class's own resource at a level of 1.
    weight: N,
    /// Load of the other resource at a level of 1: H of class 0, M of class 1.
    cross: N,
    /// Largest share per weight of the other resource that one user has at a level of 1: alpha of class 0, 1 / beta of
    /// class 1.
    largest_share: N,
}

/// Returns the levels of highest utilization, none below `floor`, which must be feasible.
pub(super) fn levels<N: Number>(classes: &ClassSums<N>, free: &[N], floor: &[N]) -> Vec<N> {
    let class = |own: usize, other: usize| Class {
        weight: classes.weight(own).clone(),
        cross: classes.load(other, own).clone(),
        largest_share: classes.largest_share(other, own).clone(),
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
                level = level.smaller(free[other].clone() / &class.cross);
            }
            levels[own] = level.larger(floor[own].clone());
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
        // The highest level of the other class along the line on which resource `low` is saturated, for class `low` to
        // keep what it was guaranteed and no less of its resource than any user of the other class.
        let (class, other) = (&classes[low], &classes[high]);
        let below_floor = corner[low] < floor[low] && other.cross.is_positive();
        let above_ray = corner[low] < other.largest_share.clone() * &corner[high];
        let promised = below_floor.then(|| (free[low].clone() - class.weight.clone() * &floor[low]) / &other.cross);
        let on_ray =
            above_ray.then(|| free[low].clone() / (class.weight.clone() * &other.largest_share + &other.cross));
        let (low_level, high_level) = match (promised, on_ray) {
            (Some(promised), Some(ray)) if promised <= ray => (floor[low].clone(), promised),
            (_, Some(ray)) => (ray.clone() * &other.largest_share, ray),
            (Some(promised), None) => (floor[low].clone(), promised),
            (None, None) => continue,
        };
        levels[low] = low_level.larger(floor[low].clone());
        levels[high] = high_level.larger(floor[high].clone());
        return levels;
    }
    let [corner_zero, corner_one] = corner;
    [corner_zero.larger(floor[0].clone()), corner_one.larger(floor[1].clone())]
}

/// Divides among users without limits, in one pass over the users and one over the answer.
pub(super) fn divide_unlimited<N: Number>(problem: &Problem<N>) -> Allocation<N> {
    let marks = [(N::zero(), -N::one()), (N::one(), N::one())];
    let (classes, mut tasks) = at_one(problem, black_box(&marks));
    let levels = best(&classes, &[N::one(), N::one()], &[N::zero(), N::zero()]);
    // One of both products is the answer; the other one is negative.
    for task in &mut tasks {
        *task = (task.clone() * &levels[0]).larger(-task.clone() * &levels[1]);
    }
    let levels = levels.into_iter().zip(&classes).map(|(level, c)| c.weight.is_positive().then_some(level));
    Allocation { levels: levels.collect(), ..Allocation::new(tasks) }
}

/// Returns the classes, and the tasks that levels of 1 give, negated for the users of class 1 to mark the class.
///
/// The class of a user cannot be predicted, and a mispredicted branch costs more than all the arithmetic. There is
/// therefore no branch: each iteration adds to both classes, 0 to one of them, by factors looked up in `marks` (0 and
/// -1 for class 1, 1 and 1 for class 0). The black box keeps the compiler from introducing a branch.
#[inline(never)]
fn at_one<N: Number>(problem: &Problem<N>, marks: &[(N, N); 2]) -> ([Class<N>; 2], Vec<N>) {
    let (weights, demands) = problem.rows();
    let (demands, _) = demands.as_chunks::<2>();
    let [mut w0, mut w1, mut c0, mut c1, mut m0, mut m1] = [(); 6].map(|()| N::zero());
    // Each weight is overwritten by its user's tasks: a growing vector would keep the sums in memory.
    let mut tasks = weights.to_vec();
    for (weight, [d0, d1]) in tasks.iter_mut().zip(demands) {
        let (is_zero, sign) = &marks[usize::from(d0 >= d1)];
        let per_own = N::one() / d0.clone().larger(d1.clone());
        let share = d0.clone().smaller(d1.clone()) * &per_own;
        let cross = share.clone() * &*weight;
        let (weight_zero, cross_zero) = (weight.clone() * is_zero, cross.clone() * is_zero);
        let share_zero = share.clone() * is_zero;
        w1 += &(weight.clone() - &weight_zero);
        w0 += &weight_zero;
        c1 += &(cross - &cross_zero);
        c0 += &cross_zero;
        m1 = m1.clone().larger(share - &share_zero);
        m0 = m0.clone().larger(share_zero);
        *weight = per_own * &*weight * sign;
    }
    ([Class { weight: w0, cross: c0, largest_share: m0 }, Class { weight: w1, cross: c1, largest_share: m1 }], tasks)
}
