//! Irrevocable bottleneck-aware allocation: no user's allocation is ever reduced.
//!
//! The experiment of Bao (2015): every user brings its share of capacity when it arrives, and stays. With k of n users
//! of equal weight present, k/n of each resource is allocated, and no user may get less than before: A_i = max(A_i
//! before, level of its class). The two levels satisfy the rule between the classes (users whose dominant resource it
//! is have the larger share of it), and among such levels those with the highest utilization are taken.
//!
//! The rule between the classes forms a cone: rho_s >= alpha rho_d, rho_d >= gamma rho_s. The use of a resource never
//! falls as a level rises; and along the line of levels on which the first resource is saturated, the use of the second
//! rises with rho_s, since no user uses more of another resource than of its dominant one. So either both resources are
//! saturated at a point of that line within the cone, or the optimum lies on the edge of the cone that the line
//! violates, as in the closed form of `baa`.
//!
//! The highest utilization alone would give a newcomer less than it brings where a user present before makes better use
//! of it, which cannot happen in `baa` itself. Therefore no user's level starts below an equal split of everything
//! among all users who will ever arrive, unless the sharing incentive is given up. This is always feasible: the users
//! present before need no more than they have, and a newcomer no more than it brings.

use evenhand_mechanisms::{MechanismError, MechanismOptions, Number, Problem};

use crate::divider::{Divider, Period, PresentUser, Segment};
use crate::{Scenario, TimelineError};

/// Levels of class D (whose dominant resource is the first, also in case of a tie) and of class S.
type Levels<N> = [N; 2];

/// Divider that never reduces an allocation. Two resources, users who stay.
pub(crate) struct IrrevocableBaa<'a, N> {
    scenario: &'a Scenario,
    weights: N,
    /// Guaranteed level of every user.
    start: N,
    /// For each user, the highest level of its class since it arrived, at first `start`.
    highest: Vec<N>,
}

impl<'a, N: Number> IrrevocableBaa<'a, N> {
    pub(crate) fn new(scenario: &'a Scenario, options: &MechanismOptions) -> Result<Self, TimelineError> {
        if scenario.resource_count() != 2 {
            return Err(TimelineError::TwoResources { found: scenario.resource_count() });
        }
        if scenario.has_accounts() {
            let from = 0.0;
            return Err(TimelineError::Mechanism {
                from,
                source: MechanismError::AccountsUnsupported { mechanism: "baa" },
            });
        }
        let mut weights = N::zero();
        for (user, participant) in scenario.users().iter().enumerate() {
            match participant.phases.as_slice() {
                [only] if only.until.is_none() && only.limit.is_none() && only.work.is_none() => (),
                _ => return Err(TimelineError::NotPermanent { user }),
            }
            weights += &N::from_exact(&participant.weight);
        }
        let start = match options.sharing_incentive {
            Some(false) => N::zero(),
            _ => N::one() / &weights,
        };
        Ok(IrrevocableBaa { scenario, weights, highest: vec![start.clone(); scenario.users().len()], start })
    }
}

impl<N: Number> Divider<N> for IrrevocableBaa<'_, N> {
    fn divide_until_event(
        &mut self,
        present: &[PresentUser<N>],
        from: &N,
        length: Option<&N>,
    ) -> Result<Period<N>, TimelineError> {
        let users = present.iter().map(|p| self.scenario.user_in_phase::<N>(p.user, p.phase));
        let problem =
            Problem::new(2, users).map_err(|source| TimelineError::Problem { from: from.to_f64(), source })?;
        let mut brought = N::zero();
        let mut members: [Vec<Member<N>>; 2] = [Vec::new(), Vec::new()];
        for (i, p) in present.iter().enumerate() {
            brought += problem.weight(i);
            let dominant = problem.dominant_demand(i);
            let rise = [0, 1].map(|r| problem.weight(i).clone() * &problem.demand(i)[r] / dominant);
            members[problem.dominant_resource(i)].push(Member { level: self.highest[p.user].clone(), rise });
        }
        let is_present = [0, 1].map(|class: usize| !members[class].is_empty());
        let levels = highest_use(&members.map(Class::new), &(brought / &self.weights));
        let mut tasks = Vec::with_capacity(present.len());
        for (i, p) in present.iter().enumerate() {
            let highest = &mut self.highest[p.user];
            *highest = highest.clone().larger(levels[problem.dominant_resource(i)].clone());
            tasks.push(problem.weight(i).clone() * &*highest / problem.dominant_demand(i));
        }
        let loads = problem.loads(&tasks);
        // What a newcomer gets: no user is below the guaranteed level.
        let levels = levels.map(|level| level.larger(self.start.clone()));
        let levels = levels.into_iter().zip(is_present).map(|(level, present)| present.then_some(level)).collect();
        let segment = Segment {
            length: length.cloned(),
            tasks,
            loads,
            level: None,
            levels,
            commitments: Vec::new(),
            ending: None,
        };
        Ok(Period { segments: vec![segment], left: vec![None; present.len()], reached: true })
    }
}

/// User of a class.
#[derive(Clone, Debug)]
struct Member<N> {
    /// Level below which the user keeps what it has.
    level: N,
    /// Use of each resource per level.
    rise: [N; 2],
}

/// Users of a class by level, with partial sums that reduce the use at any level to one binary search.
struct Class<N> {
    levels: Vec<N>,
    /// Sum of `rise` over the first k users, for each k.
    rising: Vec<[N; 2]>,
    /// Sum of `rise * level` over all but the first k users.
    staying: Vec<[N; 2]>,
    /// Largest use of the other resource relative to that of the dominant one.
    slant: N,
}

fn plus<N: Number>(a: &[N; 2], b: &[N; 2]) -> [N; 2] {
    [a[0].clone() + &b[0], a[1].clone() + &b[1]]
}

impl<N: Number> Class<N> {
    fn new(mut members: Vec<Member<N>>) -> Class<N> {
        members.sort_by(|a, b| a.level.compare(&b.level));
        let zero = [N::zero(), N::zero()];
        let (mut rising, mut staying) = (vec![zero.clone()], vec![zero]);
        let mut slant = N::zero();
        for (i, Member { rise, .. }) in members.iter().enumerate() {
            rising.push(plus(&rising[i], rise));
            let [less, more] = if rise[0] < rise[1] { [0, 1] } else { [1, 0] };
            slant = slant.larger(rise[less].clone() / &rise[more]);
        }
        for (i, Member { rise, level }) in members.iter().rev().enumerate() {
            staying.push(plus(&staying[i], &[0, 1].map(|r: usize| rise[r].clone() * level)));
        }
        staying.reverse();
        Class { levels: members.into_iter().map(|m| m.level).collect(), rising, staying, slant }
    }

    /// Returns the use of the class at a level.
    fn used(&self, level: &N) -> [N; 2] {
        let k = self.levels.partition_point(|l| l < level);
        [0, 1].map(|r: usize| self.rising[k][r].clone() * level + &self.staying[k][r])
    }

    /// Returns slope and constant of the use just above a level.
    fn above(&self, level: &N) -> (&[N; 2], &[N; 2]) {
        let k = self.levels.partition_point(|l| l <= level);
        (&self.rising[k], &self.staying[k])
    }

    /// Returns slope and constant of the use just below a level.
    fn below(&self, level: &N) -> (&[N; 2], &[N; 2]) {
        let k = self.levels.partition_point(|l| l < level);
        (&self.rising[k], &self.staying[k])
    }

    /// Returns the highest level at which the class uses at most `free` of a resource; the lowest level of its members
    /// if even that is too high.
    fn level_for(&self, resource: usize, free: &N) -> N {
        let k = self.levels.partition_point(|level| self.used(level)[resource] <= *free);
        let slope = &self.rising[k][resource];
        match slope.is_positive() {
            true => (free.clone() - &self.staying[k][resource]) / slope,
            false => self.levels.first().cloned().unwrap_or_else(N::zero),
        }
    }
}

/// Returns the levels with the highest use of the `free` capacity of each resource that satisfy the rule between the
/// classes.
fn highest_use<N: Number>(classes: &[Class<N>; 2], free: &N) -> Levels<N> {
    let [d, s] = classes;
    let one = N::one;
    if s.levels.is_empty() {
        return farthest(classes, free, [one(), N::zero()]).0;
    }
    if d.levels.is_empty() {
        return farthest(classes, free, [N::zero(), one()]).0;
    }
    let is_full = |used: &N| *used >= free.clone() * (N::one() - N::rounding());
    let (low, used) = farthest(classes, free, [one(), d.slant.clone()]);
    if is_full(&used[1]) {
        return low;
    }
    let (high, used) = farthest(classes, free, [s.slant.clone(), one()]);
    if is_full(&used[0]) {
        return high;
    }
    both_full(classes, free, &low, &high)
}

/// Returns the farthest point in a direction at which neither resource is overloaded, and the use there.
fn farthest<N: Number>([d, s]: &[Class<N>; 2], free: &N, direction: Levels<N>) -> (Levels<N>, [N; 2]) {
    let point = |t: &N| [direction[0].clone() * t, direction[1].clone() * t];
    let used = |t: &N| {
        let [level_d, level_s] = point(t);
        plus(&d.used(&level_d), &s.used(&level_s))
    };
    let mut corners = vec![N::zero()];
    for (class, direction) in [(d, &direction[0]), (s, &direction[1])] {
        if direction.is_positive() {
            corners.extend(class.levels.iter().map(|level| level.clone() / direction));
        }
    }
    corners.sort_by(N::compare);
    let fits = |t: &N| used(t).iter().all(|used| used <= free);
    let reached = corners.partition_point(fits).saturating_sub(1);
    let corner = corners.swap_remove(reached);
    let [level_d, level_s] = point(&corner);
    let ((slope_d, base_d), (slope_s, base_s)) = (d.above(&level_d), s.above(&level_s));
    let mut best: Option<N> = None;
    for r in 0..2 {
        let slope = slope_d[r].clone() * &direction[0] + slope_s[r].clone() * &direction[1];
        if slope.is_positive() {
            let t = (free.clone() - &base_d[r] - &base_s[r]) / slope;
            best = Some(match best {
                Some(best) => best.smaller(t),
                None => t,
            });
        }
    }
    let t = best.unwrap_or_else(|| corner.clone()).larger(corner);
    (point(&t), used(&t))
}

/// Returns the point at which both resources are saturated, on the line on which the first is, between `low`, where the
/// second is not, and `high`, where it is overloaded.
fn both_full<N: Number>([d, s]: &[Class<N>; 2], free: &N, low: &Levels<N>, high: &Levels<N>) -> Levels<N> {
    let too_much = |levels: &Levels<N>| plus(&d.used(&levels[0]), &s.used(&levels[1]))[1] > *free;
    // The period of the line between two corners, first by those of S, then by those of D.
    let on_line = |level_s: &N| [d.level_for(0, &(free.clone() - &s.used(level_s)[0])), level_s.clone()];
    let corners: Vec<&N> = s.levels.iter().filter(|l| **l > low[1] && **l < high[1]).collect();
    let k = corners.partition_point(|l| !too_much(&on_line(l)));
    let mut low = if k > 0 { on_line(corners[k - 1]) } else { low.clone() };
    let high = corners.get(k).map_or_else(|| high.clone(), |l| on_line(l));
    let (slope_s, base_s) = s.above(&low[1]);
    if slope_s[0].is_positive() {
        let on_line = |level_d: &N| {
            let left = free.clone() - &d.used(level_d)[0] - &base_s[0];
            [level_d.clone(), left / &slope_s[0]]
        };
        let mut corners: Vec<&N> = d.levels.iter().filter(|l| **l > high[0] && **l < low[0]).collect();
        corners.reverse();
        let k = corners.partition_point(|l| !too_much(&on_line(l)));
        if k > 0 {
            low = on_line(corners[k - 1]);
        }
    }
    let (slope_d, base_d) = d.below(&low[0]);
    let free = [0, 1].map(|r: usize| free.clone() - &base_d[r] - &base_s[r]);
    let product = |a: &N, b: &N| a.clone() * b;
    let determinant = product(&slope_d[0], &slope_s[1]) - product(&slope_d[1], &slope_s[0]);
    if !determinant.is_positive() {
        // No user of one class rises any more: the end of the line is as good as any other point of it.
        return low;
    }
    [
        (product(&slope_s[1], &free[0]) - product(&slope_s[0], &free[1])) / &determinant,
        (product(&slope_d[0], &free[1]) - product(&slope_d[1], &free[0])) / &determinant,
    ]
}

#[cfg(test)]
mod tests {
    use evenhand_model::{Rational, to_f64};
    use proptest::prelude::*;

    use super::*;
    use crate::{Participant, Phase, Timeline, TimelineOptions, event_loop::run};

    fn timeline<N: Number>(scenario: &Scenario, sharing_incentive: bool) -> Timeline<N> {
        let options = MechanismOptions { sharing_incentive: Some(sharing_incentive) };
        let mut divider = IrrevocableBaa::new(scenario, &options).unwrap();
        run(scenario, "baa", &TimelineOptions::default(), &mut divider).unwrap()
    }

    /// Users of weight 1 or more with demands in tenths, who come at these seconds.
    fn scenario(users: &[(u32, [u32; 2], u32)]) -> Scenario {
        let tenth = |n: u32| Rational::from_parts(n.into(), 10u8.into());
        let user = |&(from, demand, weight): &(u32, [u32; 2], u32)| {
            Participant::new([Phase::new(Rational::from(from), demand.map(tenth))]).weight(Rational::from(weight))
        };
        Scenario::new(2, users.iter().map(user).collect::<Vec<_>>()).unwrap()
    }

    fn tasks(timeline: &Timeline<Rational>, interval: usize) -> Vec<Option<Rational>> {
        timeline.intervals[interval].users.iter().map(|u| u.as_ref().map(|s| s.tasks.clone())).collect()
    }

    #[test]
    fn the_first_user_keeps_what_it_had_and_the_next_gets_the_rest() {
        // A third of everything each. The first user, nearly all CPU, gets a third of it and leaves memory; the second
        // brings as much again, and so on.
        let scenario = scenario(&[(0, [10, 1], 1), (1, [1, 10], 1), (2, [10, 5], 1)]);
        let t = timeline::<Rational>(&scenario, true);
        let q = |n: i64, d: u64| Rational::from_parts(n.into(), d.into());
        assert_eq!(tasks(&t, 0), [Some(q(1, 3)), None, None]);
        // Both full: x + y/10 = 2/3 = x/10 + y.
        assert_eq!(tasks(&t, 1), [Some(q(20, 33)), Some(q(20, 33)), None]);
        assert_eq!(t.intervals[1].levels, [Some(q(20, 33)), Some(q(20, 33))]);
        // All of CPU would be used as well if the second got more and the third less, and more memory;
        // but the third gets what it brought.
        assert_eq!(tasks(&t, 2), [Some(q(20, 33)), Some(q(20, 33)), Some(q(1, 3))]);
        assert_eq!(t.intervals[2].levels, [Some(q(1, 3)), Some(q(20, 33))]);
        let free = timeline::<Rational>(&scenario, false);
        assert_eq!(tasks(&free, 2)[2], Some(q(6, 19)));
        assert_eq!(free.intervals[2].loads, [q(1, 1), q(1, 1)]);
    }

    /// Reference model: every choice of the users who rise, and of each the corner and the edges of the cone.
    fn best_use(problem: &Problem<Rational>, before: &[Rational], free: &Rational) -> Rational {
        let n = problem.users();
        let class: Vec<usize> = (0..n).map(|i| problem.dominant_resource(i)).collect();
        let rise = |i: usize, r: usize| problem.weight(i) * &problem.demand(i)[r] / problem.dominant_demand(i);
        let level_before = |i: usize| &before[i] * problem.dominant_demand(i) / problem.weight(i);
        let slant = |c: usize| {
            let members = (0..n).filter(|i| class[*i] == c);
            members.map(|i| rise(i, 1 - c) / rise(i, c)).max().unwrap_or(Rational::ZERO)
        };
        let loads = |levels: &[Rational; 2]| {
            [0, 1].map(|r| {
                (0..n)
                    .map(|i| rise(i, r) * levels[class[i]].clone().max(level_before(i)))
                    .fold(Rational::ZERO, |a, b| a + b)
            })
        };
        let has = [0, 1].map(|c: usize| class.contains(&c));
        let in_cone =
            |l: &[Rational; 2]| (!has[0] || !has[1]) || (l[1] >= slant(0) * &l[0] && l[0] >= slant(1) * &l[1]);
        let mut best: Option<Rational> = None;
        for rising in 0u32..1 << n {
            let up = |i: usize| rising >> i & 1 == 1;
            let stays = [0, 1].map(|r| {
                let held = (0..n).filter(|i| !up(*i)).map(|i| rise(i, r) * level_before(i));
                free - held.fold(Rational::ZERO, |a, b| a + b)
            });
            let slope = |r: usize, c: usize| {
                (0..n).filter(|i| up(*i) && class[*i] == c).map(|i| rise(i, r)).fold(Rational::ZERO, |a, b| a + b)
            };
            let mut points = Vec::new();
            let det = slope(0, 0) * slope(1, 1) - slope(0, 1) * slope(1, 0);
            if !det.is_zero() {
                points.push([
                    (slope(1, 1) * &stays[0] - slope(0, 1) * &stays[1]) / &det,
                    (slope(0, 0) * &stays[1] - slope(1, 0) * &stays[0]) / &det,
                ]);
            }
            for direction in [[Rational::ONE, slant(0)], [slant(1), Rational::ONE]] {
                for (r, stays) in stays.iter().enumerate() {
                    let slope = slope(r, 0) * &direction[0] + slope(r, 1) * &direction[1];
                    if !slope.is_zero() {
                        points.push(direction.clone().map(|d| d * stays / &slope));
                    }
                }
            }
            for point in points.into_iter().filter(in_cone) {
                let loads = loads(&point);
                if loads.iter().all(|load| load <= free) {
                    let used = &loads[0] + &loads[1];
                    best = Some(best.map_or(used.clone(), |b| b.max(used)));
                }
            }
        }
        best.unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn utilization_is_maximal_and_no_allocation_is_reduced(
            users in proptest::collection::vec((0u32..4, [0u32..=6, 0u32..=6], 1u32..=2), 1..=6)
                .prop_filter("wants something", |users| users.iter().all(|(_, d, _)| d != &[0, 0])),
            sharing_incentive in proptest::bool::ANY
        ) {
            let scenario = scenario(&users);
            let exact = timeline::<Rational>(&scenario, sharing_incentive);
            let float = timeline::<f64>(&scenario, sharing_incentive);
            let brings = |u: usize| scenario.entitlement(u);
            let mut before: Vec<Rational> = (0..users.len()).map(|u| {
                let dominant = scenario.users()[u].phases[0].demand.iter().max().unwrap();
                if sharing_incentive { brings(u) / dominant } else { Rational::ZERO }
            }).collect();
            for (interval, approximate) in exact.intervals.iter().zip(&float.intervals) {
                let here: Vec<usize> = (0..users.len()).filter(|u| interval.users[*u].is_some()).collect();
                let problem = Problem::new(2, here.iter().map(|u| scenario.user_in_phase::<Rational>(*u, 0))).unwrap();
                let free = here.iter().map(|u| brings(*u)).fold(Rational::ZERO, |a, b| a + b);
                let past: Vec<Rational> = here.iter().map(|u| before[*u].clone()).collect();
                prop_assert_eq!(&interval.loads[0] + &interval.loads[1], best_use(&problem, &past, &free));
                prop_assert!(interval.loads.iter().all(|load| *load <= free));
                for (i, u) in here.iter().enumerate() {
                    let x = &interval.users[*u].as_ref().unwrap().tasks;
                    prop_assert!(*x >= before[*u]);
                    prop_assert!(!sharing_incentive || x * problem.dominant_demand(i) >= brings(*u));
                    // Dynamic envy-freeness: only of users who were present before and got nothing since.
                    for (k, other) in here.iter().enumerate() {
                        let y = &interval.users[*other].as_ref().unwrap().tasks;
                        let (d, e) = (problem.demand(i), problem.demand(k));
                        let has_more = |r: usize| {
                            d[r].is_zero() || y * &e[r] / problem.weight(k) > x * &d[r] / problem.weight(i)
                        };
                        if (0..2).all(has_more) {
                            prop_assert!(users[*other].0 < users[*u].0 && *y == before[*other]);
                        }
                    }
                    let float = approximate.users[*u].as_ref().unwrap().tasks;
                    prop_assert!((float - to_f64(x)).abs() <= 1e-9 * to_f64(x));
                }
                for u in here {
                    before[u] = interval.users[u].as_ref().unwrap().tasks.clone();
                }
            }
        }
    }
}
