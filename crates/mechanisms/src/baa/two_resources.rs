//! Two resources: the best levels in closed form (reference 4.1).
//!
//! The pairs of levels that leave nothing free of some resource form a line with one corner, where both
//! are full. On either side of the corner one resource stays full and the load of the other falls, the
//! further away the lower: each class uses less of the other's resource than of its own, so W_0 W_1 > M H.
//! What rules 1 to 3 and the levels already promised allow is a stretch of that line. So the best point
//! is the corner, or the end of the stretch that is next to it, and there is no other.

use std::hint::black_box;

use crate::{Allocation, Number, Problem};

use super::user_classes::ClassSums;

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

/// The best levels, none below `floor`, which must itself be possible.
pub(super) fn levels<N: Number>(classes: &ClassSums<N>, free: &[N], floor: &[N]) -> Vec<N> {
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
        levels[low] = low_level.larger(floor[low].clone());
        levels[high] = high_level.larger(floor[high].clone());
        return levels;
    }
    let [corner_zero, corner_one] = corner;
    [corner_zero.larger(floor[0].clone()), corner_one.larger(floor[1].clone())]
}

/// Divides among users without limits, in one pass over them and one over the answer.
pub(super) fn divide_unlimited<N: Number>(problem: &Problem<N>) -> Allocation<N> {
    let marks = [(N::zero(), -N::one()), (N::one(), N::one())];
    let (classes, mut tasks) = at_one(problem, black_box(&marks));
    let levels = best(&classes, &[N::one(), N::one()], &[N::zero(), N::zero()]);
    // One of both products is the answer, and the other one is below zero.
    for task in &mut tasks {
        *task = (task.clone() * &levels[0]).larger(-task.clone() * &levels[1]);
    }
    let levels = levels.into_iter().zip(&classes).map(|(level, c)| c.weight.is_positive().then_some(level));
    Allocation { levels: levels.collect(), ..Allocation::new(tasks) }
}

/// The classes, and the tasks that levels of 1 give, negative for the users of class 1: that remembers the
/// class.
///
/// Which class a user is cannot be predicted, and a wrong guess costs more than all the arithmetic. So there is
/// no branch: each turn adds to both classes, nothing to one of them, by factors looked up in `marks` (0 and
/// -1 for class 1, 1 and 1 for class 0). The black box keeps the compiler from making a branch of them.
#[inline(never)]
fn at_one<N: Number>(problem: &Problem<N>, marks: &[(N, N); 2]) -> ([Class<N>; 2], Vec<N>) {
    let (weights, demands) = problem.rows();
    let (demands, _) = demands.as_chunks::<2>();
    let [mut w0, mut w1, mut c0, mut c1, mut m0, mut m1] = [(); 6].map(|()| N::zero());
    // Each weight becomes its user's tasks in its place: a vector that may grow would keep the sums in memory.
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
    ([Class { weight: w0, cross: c0, most: m0 }, Class { weight: w1, cross: c1, most: m1 }], tasks)
}
