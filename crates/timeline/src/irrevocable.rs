//! Bottleneck-aware allocation that never takes back (reference: T3).
//!
//! The experiment of paper 002: every user brings his share of capacity when he comes, and stays. With
//! k of n users of equal weight there, k/n of each resource is given away, and nobody may get less than
//! he had: A_i = max(A_i before, level of his class). The two levels obey the rule between the classes
//! (of a resource the larger share to those whose bottleneck it is), and among such levels those are
//! taken that use most.
//!
//! The rule between the classes makes a cone: rho_s >= alpha rho_d, rho_d >= gamma rho_s. What is used of
//! a resource never falls as a level rises; and along the line of levels on which the first resource is
//! full, more of the second is used the higher rho_s, since nobody uses more of another resource than
//! of his bottleneck. So either both resources are full at a point of that line within the cone, or the
//! best point lies on the edge of the cone that the line violates, as in the closed form of `baa`.

use evenhand_mechanisms::{Number, Problem};

use crate::divider::{Divider, Piece, Present, Stretch};
use crate::{Scenario, TimelineError};

/// Levels of class D (the first resource is the bottleneck, also where both are) and of class S.
type Levels<N> = [N; 2];

pub(crate) struct Irrevocable<'a, N> {
    scenario: &'a Scenario,
    weights: N,
    /// By user: the highest level of his class since he came.
    highest: Vec<N>,
}

impl<'a, N: Number> Irrevocable<'a, N> {
    pub(crate) fn new(scenario: &'a Scenario) -> Result<Self, TimelineError> {
        if scenario.width() != 2 {
            return Err(TimelineError::TwoResources { found: scenario.width() });
        }
        let mut weights = N::zero();
        for (user, participant) in scenario.users().iter().enumerate() {
            match participant.phases.as_slice() {
                [only] if only.until.is_none() && only.limit.is_none() && only.work.is_none() => (),
                _ => return Err(TimelineError::NotOpen { user }),
            }
            weights += &N::from_exact(&participant.weight);
        }
        Ok(Irrevocable { scenario, weights, highest: vec![N::zero(); scenario.users().len()] })
    }
}

impl<N: Number> Divider<N> for Irrevocable<'_, N> {
    fn stretch(&mut self, present: &[Present<N>], from: &N, length: Option<&N>) -> Result<Stretch<N>, TimelineError> {
        let users = present.iter().map(|p| self.scenario.wants::<N>(p.user, p.phase));
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
        let is_there = [0, 1].map(|class: usize| !members[class].is_empty());
        let levels = most_used(&members.map(Class::new), &(brought / &self.weights));
        let mut tasks = Vec::with_capacity(present.len());
        for (i, p) in present.iter().enumerate() {
            let highest = &mut self.highest[p.user];
            *highest = highest.clone().or_more(levels[problem.dominant_resource(i)].clone());
            tasks.push(problem.weight(i).clone() * &*highest / problem.dominant_demand(i));
        }
        let loads = problem.loads(&tasks);
        let levels = levels.into_iter().zip(is_there).map(|(level, there)| there.then_some(level)).collect();
        let piece =
            Piece { length: length.cloned(), tasks, loads, level: None, levels, commitments: Vec::new(), ending: None };
        Ok(Stretch { pieces: vec![piece], left: vec![None; present.len()], reached: true })
    }
}

/// One user of a class.
#[derive(Clone, Debug)]
struct Member<N> {
    /// Below this level the user stays at it.
    level: N,
    /// What a level takes of each resource.
    rise: [N; 2],
}

/// The users of a class by level, with the sums that make what they use at any level a matter of one
/// search.
struct Class<N> {
    levels: Vec<N>,
    /// The sum of `rise` over the first k, for each k.
    rising: Vec<[N; 2]>,
    /// The sum of `rise * level` over all but the first k.
    staying: Vec<[N; 2]>,
    /// The largest share of the other resource, for one of the own, that a user takes.
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
            slant = slant.or_more(rise[less].clone() / &rise[more]);
        }
        for (i, Member { rise, level }) in members.iter().rev().enumerate() {
            staying.push(plus(&staying[i], &[0, 1].map(|r: usize| rise[r].clone() * level)));
        }
        staying.reverse();
        Class { levels: members.into_iter().map(|m| m.level).collect(), rising, staying, slant }
    }

    /// What the class uses at a level.
    fn used(&self, level: &N) -> [N; 2] {
        let k = self.levels.partition_point(|l| l < level);
        [0, 1].map(|r: usize| self.rising[k][r].clone() * level + &self.staying[k][r])
    }

    /// Slope and constant of what it uses just above a level.
    fn above(&self, level: &N) -> (&[N; 2], &[N; 2]) {
        let k = self.levels.partition_point(|l| l <= level);
        (&self.rising[k], &self.staying[k])
    }

    /// Slope and constant of what it uses just below a level.
    fn below(&self, level: &N) -> (&[N; 2], &[N; 2]) {
        let k = self.levels.partition_point(|l| l < level);
        (&self.rising[k], &self.staying[k])
    }

    /// The highest level at which it uses `room` of a resource; the lowest of the members' if even that
    /// is too high.
    fn level_for(&self, resource: usize, room: &N) -> N {
        let k = self.levels.partition_point(|level| self.used(level)[resource] <= *room);
        let slope = &self.rising[k][resource];
        match slope.is_positive() {
            true => (room.clone() - &self.staying[k][resource]) / slope,
            false => self.levels.first().cloned().unwrap_or_else(N::zero),
        }
    }
}

/// The levels that use most of `room` of each resource, and obey the rule between the classes.
fn most_used<N: Number>(classes: &[Class<N>; 2], room: &N) -> Levels<N> {
    let [d, s] = classes;
    let one = N::one;
    if s.levels.is_empty() {
        return farthest(classes, room, [one(), N::zero()]).0;
    }
    if d.levels.is_empty() {
        return farthest(classes, room, [N::zero(), one()]).0;
    }
    let is_full = |used: &N| *used >= room.clone() * (N::one() - N::slack());
    let (low, used) = farthest(classes, room, [one(), d.slant.clone()]);
    if is_full(&used[1]) {
        return low;
    }
    let (high, used) = farthest(classes, room, [s.slant.clone(), one()]);
    if is_full(&used[0]) {
        return high;
    }
    both_full(classes, room, &low, &high)
}

/// The farthest point in a direction at which neither resource is over-full, and what is used there.
fn farthest<N: Number>([d, s]: &[Class<N>; 2], room: &N, direction: Levels<N>) -> (Levels<N>, [N; 2]) {
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
    let fits = |t: &N| used(t).iter().all(|used| used <= room);
    let reached = corners.partition_point(fits).saturating_sub(1);
    let corner = corners.swap_remove(reached);
    let [level_d, level_s] = point(&corner);
    let ((slope_d, base_d), (slope_s, base_s)) = (d.above(&level_d), s.above(&level_s));
    let mut best: Option<N> = None;
    for r in 0..2 {
        let slope = slope_d[r].clone() * &direction[0] + slope_s[r].clone() * &direction[1];
        if slope.is_positive() {
            let t = (room.clone() - &base_d[r] - &base_s[r]) / slope;
            best = Some(match best {
                Some(best) => best.or_less(t),
                None => t,
            });
        }
    }
    let t = best.unwrap_or_else(|| corner.clone()).or_more(corner);
    (point(&t), used(&t))
}

/// The point at which both are full, on the line on which the first is, between `low`, where the second
/// is not full yet, and `high`, where it is over-full.
fn both_full<N: Number>([d, s]: &[Class<N>; 2], room: &N, low: &Levels<N>, high: &Levels<N>) -> Levels<N> {
    let too_much = |levels: &Levels<N>| plus(&d.used(&levels[0]), &s.used(&levels[1]))[1] > *room;
    // The stretch of the line between two corners, first by those of S, then by those of D.
    let on_line = |level_s: &N| [d.level_for(0, &(room.clone() - &s.used(level_s)[0])), level_s.clone()];
    let corners: Vec<&N> = s.levels.iter().filter(|l| **l > low[1] && **l < high[1]).collect();
    let k = corners.partition_point(|l| !too_much(&on_line(l)));
    let mut low = if k > 0 { on_line(corners[k - 1]) } else { low.clone() };
    let high = corners.get(k).map_or_else(|| high.clone(), |l| on_line(l));
    let (slope_s, base_s) = s.above(&low[1]);
    if slope_s[0].is_positive() {
        let on_line = |level_d: &N| {
            let left = room.clone() - &d.used(level_d)[0] - &base_s[0];
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
    let room = [0, 1].map(|r: usize| room.clone() - &base_d[r] - &base_s[r]);
    let product = |a: &N, b: &N| a.clone() * b;
    let determinant = product(&slope_d[0], &slope_s[1]) - product(&slope_d[1], &slope_s[0]);
    if !determinant.is_positive() {
        // Nobody of one class rises any more: the end of the line is as good as any other point of it.
        return low;
    }
    [
        (product(&slope_s[1], &room[0]) - product(&slope_s[0], &room[1])) / &determinant,
        (product(&slope_d[0], &room[1]) - product(&slope_d[1], &room[0])) / &determinant,
    ]
}
