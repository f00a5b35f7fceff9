//! Progressive filling: a level rises, and with it what each user gets, until a resource that the user demands is
//! saturated.
//!
//! Max-min fairness, DRF (with zero demands: the extension by Parkes, Procaccia and Shah), asset fairness and stateful
//! DRF (Sadok et al., 2021, Eq. 5) differ only in how many tasks a user has at a level. At level x that is a ramp,
//! `slope * (clamp(x, start, end) - start)`, so that the load of a resource is a piecewise linear, non-decreasing
//! function with two breakpoints per user. The level at which some resource saturates is found by selection: a pivot
//! among the breakpoints that remain in question either is reachable or is not, and users whose breakpoints all lie on
//! one side become part of a straight line.
//!
//! Many users are first bracketed between the levels at which a sample of them would use a little less and a little
//! more than the capacity, which one pass over all users confirms or refutes. Expected O(users × resources) per stage,
//! without sorting. Each stage saturates at least one resource, so there are at most as many stages as resources, and
//! only one if every demand is above zero.

use crate::{Allocation, Number, Problem};

/// Number of tasks of a user as a function of the level: 0 up to `start`, then `slope` more per level up to `end`.
#[derive(Clone, Debug)]
pub(crate) struct Ramp<N> {
    pub(crate) start: N,
    pub(crate) end: Option<N>,
    pub(crate) slope: N,
}

impl<N: Number> Ramp<N> {
    /// Returns the number of tasks at a level.
    fn at(&self, level: &N) -> N {
        let level = match &self.end {
            Some(end) if end < level => end,
            _ => level,
        };
        if *level <= self.start { N::zero() } else { self.slope.clone() * (level.clone() - &self.start) }
    }

    /// Returns whether the ramp ends at or below a level.
    fn has_ended(&self, level: &N) -> bool {
        self.end.as_ref().is_some_and(|end| end <= level)
    }
}

/// Raises the level until no user can get more. `ramp` returns the ramp of each user. The level of the result is the
/// last at which a resource saturated that a rising user demands.
pub(crate) fn fill<N: Number>(problem: &Problem<N>, ramp: impl Fn(usize) -> Ramp<N>) -> Allocation<N> {
    let n = problem.users();
    let ramps: Vec<Ramp<N>> = (0..n).map(ramp).collect();
    let users = UserRamps { width: problem.resource_count(), ramps: &ramps, demands: problem.demands() };
    let mut tasks = vec![N::zero(); n];
    // Capacity left of each resource; `None` once it is saturated, when no rising user demands it.
    let mut free: Vec<Option<N>> = vec![Some(N::one()); problem.resource_count()];
    let mut rising: Vec<u32> = (0..n as u32).collect();
    let mut level = N::zero();
    let mut full = None;
    while !rising.is_empty() {
        let Some(stage) = next_saturation(users, &rising, &free, level) else {
            for &i in &rising {
                tasks[i as usize] = satisfied_tasks(problem, &ramps[i as usize], i as usize);
            }
            break;
        };
        level = stage.level;
        full = Some(level.clone());
        // The resource that ended the stage is saturated even if rounding leaves a residue.
        let is_full: Vec<bool> = free
            .iter()
            .zip(&stage.used)
            .enumerate()
            .map(|(r, (left, used))| {
                r == stage.resource || left.as_ref().is_some_and(|left| left.clone() - used <= N::rounding())
            })
            .collect();
        let is_full_for = |demand: &[N]| is_full.iter().zip(demand).any(|(f, d)| *f && !d.is_zero());
        let mut stopped = Vec::with_capacity(rising.len());
        rising.retain(|&i| {
            let user = i as usize;
            let ramp = &ramps[user];
            let has_ended = ramp.has_ended(&level);
            tasks[user] = if has_ended { satisfied_tasks(problem, ramp, user) } else { ramp.at(&level) };
            let stays = has_ended || is_full_for(problem.demand(user));
            if stays {
                stopped.push(i);
            }
            !stays
        });
        if !rising.is_empty() {
            let mut used = vec![N::zero(); free.len()];
            stopped.iter().for_each(|&i| add(&mut used, problem.demand(i as usize), &tasks[i as usize]));
            for (r, left) in free.iter_mut().enumerate() {
                *left = if is_full[r] { None } else { left.take().map(|left| left - &used[r]) };
            }
        }
    }
    Allocation { level: full, ..Allocation::new(tasks) }
}

/// Returns the user's limit itself, rather than what its breakpoint rounds to.
fn satisfied_tasks<N: Number>(problem: &Problem<N>, ramp: &Ramp<N>, user: usize) -> N {
    match problem.limit(user) {
        Some(limit) => limit.clone(),
        None => ramp.at(ramp.end.as_ref().unwrap_or(&ramp.start)),
    }
}

/// Adds the use of a user with these tasks.
fn add<N: Number>(loads: &mut [N], demand: &[N], tasks: &N) {
    for (load, d) in loads.iter_mut().zip(demand) {
        if !d.is_zero() {
            *load += &(tasks.clone() * d);
        }
    }
}

/// End of a stage: the level at which a resource saturates.
struct Saturation<N> {
    level: N,
    /// Resource that saturates there; the first of several.
    resource: usize,
    /// Use of each resource by the users who rose.
    used: Vec<N>,
}

/// Ramps of users, with their demands (user-major).
struct UserRamps<'a, N> {
    width: usize,
    ramps: &'a [Ramp<N>],
    demands: &'a [N],
}

// Implemented by hand: derived, `Clone` and `Copy` would require them of `N`.
impl<N> Clone for UserRamps<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for UserRamps<'_, N> {}

impl<'a, N: Number> UserRamps<'a, N> {
    fn ramp(&self, user: u32) -> &'a Ramp<N> {
        &self.ramps[user as usize]
    }

    fn demand(&self, user: u32) -> &'a [N] {
        &self.demands[user as usize * self.width..][..self.width]
    }

    /// Copies some users side by side, since they will be read again and again.
    fn gathered(&self, users: impl Iterator<Item = u32> + Clone) -> (Vec<Ramp<N>>, Vec<N>) {
        let ramps = users.clone().map(|i| self.ramp(i).clone()).collect();
        (ramps, users.flat_map(|i| self.demand(i)).cloned().collect())
    }
}

/// Number of users from which on sampling pays.
const SAMPLING_THRESHOLD: usize = 20_000;

/// Returns the lowest level, at or above `from`, at which the `rising` users saturate a resource; `None` if they never
/// do.
fn next_saturation<N: Number>(
    users: UserRamps<'_, N>,
    rising: &[u32],
    free: &[Option<N>],
    from: N,
) -> Option<Saturation<N>> {
    let mut search = LevelSearch::new(users, free, from.clone(), None);
    if rising.len() < SAMPLING_THRESHOLD {
        let open = search.fold_settled(rising.iter().copied());
        return search.finish(open);
    }
    let guess = sampled_bracket(users, rising, free, &from);
    let Some((low, high)) = guess else {
        let open = search.fold_settled(rising.iter().copied());
        return search.finish(open);
    };
    search = LevelSearch::new(users, free, low.clone(), Some((high.clone(), 0)));
    let mut open = search.fold_settled(rising.iter().copied());
    let known = match (search.fills(&open, &low), search.fills(&open, &high)) {
        (None, Some(r)) => {
            search.high = Some((high, r));
            None
        }
        (Some(r), _) => Some((from, Some((low, r)))),
        (None, None) => Some((high, None)),
    };
    if let Some((low, high)) = known {
        search = LevelSearch::new(users, free, low, high);
        open = search.fold_settled(rising.iter().copied());
    }
    let (ramps, demands) = users.gathered(open.iter().copied());
    let users = UserRamps { ramps: &ramps, demands: &demands, ..users };
    LevelSearch { users, ..search }.finish((0..open.len() as u32).collect())
}

/// Returns a level that is probably reachable and one that is probably not: those at which a sample of the users,
/// scaled up, uses a little less and a little more than the free capacity.
fn sampled_bracket<N: Number>(users: UserRamps<'_, N>, rising: &[u32], free: &[Option<N>], from: &N) -> Option<(N, N)> {
    // The load of so many users deviates by less than a 125th if the users are similar: a fiftieth more and less holds
    // nearly always, and leaves few users in question.
    const SAMPLE: usize = 16_000;
    const SPREAD: usize = 50;
    let (ramps, demands) = users.gathered(rising.iter().step_by(rising.len() / SAMPLE).copied());
    let users = UserRamps { ramps: &ramps, demands: &demands, ..users };
    let part = N::from_count(ramps.len()) / N::from_count(rising.len());
    let at = |parts: usize| {
        let scale = part.clone() * N::from_count(parts) / N::from_count(SPREAD);
        let free: Vec<Option<N>> = free.iter().map(|left| left.as_ref().map(|r| r.clone() * &scale)).collect();
        let mut search = LevelSearch::new(users, &free, from.clone(), None);
        let open = search.fold_settled(0..ramps.len() as u32);
        search.finish(open).map(|stage| stage.level)
    };
    let (low, high) = (at(SPREAD - 1)?, at(SPREAD + 1)?);
    (*from < low && low < high).then_some((low, high))
}

/// Search for the level of saturation between `low` and `high`.
struct LevelSearch<'a, N> {
    users: UserRamps<'a, N>,
    free: &'a [Option<N>],
    /// Level at which no resource is saturated.
    low: N,
    /// Level at which this resource is saturated.
    high: Option<(N, usize)>,
    /// Use by the users without a breakpoint in between: base + slope * (level - low).
    base: Vec<N>,
    slope: Vec<N>,
}

impl<'a, N: Number> LevelSearch<'a, N> {
    fn new(users: UserRamps<'a, N>, free: &'a [Option<N>], low: N, high: Option<(N, usize)>) -> LevelSearch<'a, N> {
        let zeros = vec![N::zero(); users.width];
        LevelSearch { users, free, low, high, base: zeros.clone(), slope: zeros }
    }

    /// Adds the users without a breakpoint in between to the straight line, and returns the others.
    fn fold_settled(&mut self, users: impl Iterator<Item = u32>) -> Vec<u32> {
        let high = self.high.as_ref().map(|(high, _)| high);
        let above = |b: &N| high.is_some_and(|h| b >= h);
        let mut open = Vec::new();
        for i in users {
            let ramp = self.users.ramp(i);
            if above(&ramp.start) {
                continue;
            }
            let demand = self.users.demand(i);
            if ramp.has_ended(&self.low) {
                add(&mut self.base, demand, &ramp.at(&self.low));
            } else if ramp.start <= self.low && ramp.end.as_ref().is_none_or(above) {
                add(&mut self.base, demand, &ramp.at(&self.low));
                add(&mut self.slope, demand, &ramp.slope);
            } else {
                open.push(i);
            }
        }
        open
    }

    /// Bisects the levels in question until no user has a breakpoint among them.
    fn finish(mut self, mut open: Vec<u32>) -> Option<Saturation<N>> {
        while !open.is_empty() {
            let pivot = self.pivot(&open);
            match self.fills(&open, &pivot) {
                Some(r) => self.high = Some((pivot, r)),
                None => {
                    self.base = self.used(&[], &pivot);
                    self.low = pivot;
                }
            }
            open = self.fold_settled(open.into_iter());
        }
        self.end()
    }

    /// Returns the use of all users at a level.
    fn used(&self, open: &[u32], level: &N) -> Vec<N> {
        let rise = level.clone() - &self.low;
        let mut used: Vec<N> = self.base.iter().zip(&self.slope).map(|(b, s)| b.clone() + s.clone() * &rise).collect();
        for &i in open {
            add(&mut used, self.users.demand(i), &self.users.ramp(i).at(level));
        }
        used
    }

    /// Returns the first resource that is saturated at a level.
    fn fills(&self, open: &[u32], level: &N) -> Option<usize> {
        let used = self.used(open, level);
        (0..used.len()).find(|r| self.free[*r].as_ref().is_some_and(|left| used[*r] >= *left))
    }

    /// Returns a breakpoint in between, about the median of those of the `open` users.
    fn pivot(&self, open: &[u32]) -> N {
        const SAMPLE: usize = 63;
        let high = self.high.as_ref().map(|(high, _)| high);
        let inside = |b: &N| *b > self.low && high.is_none_or(|h| b < h);
        let mut sample: Vec<&N> = open
            .iter()
            .step_by(open.len().div_ceil(SAMPLE))
            .flat_map(|&i| {
                let ramp = self.users.ramp(i);
                [Some(&ramp.start), ramp.end.as_ref()].into_iter().flatten()
            })
            .filter(|b| inside(b))
            .collect();
        // Every open user has a breakpoint in between, so the sample is not empty.
        let middle = sample.len() / 2;
        sample.select_nth_unstable_by(middle, |a, b| a.compare(b)).1.clone()
    }

    /// Returns the end of the stage, once no user has a breakpoint in between.
    fn end(self) -> Option<Saturation<N>> {
        let mut first = self.high.clone();
        for (r, slope) in self.slope.iter().enumerate().filter(|(_, s)| s.is_positive()) {
            let Some(left) = &self.free[r] else { continue };
            let at = self.low.clone() + ((left.clone() - &self.base[r]) / slope).larger(N::zero());
            if first.as_ref().is_none_or(|(earliest, _)| at < *earliest) {
                first = Some((at, r));
            }
        }
        first.map(|(level, resource)| Saturation { used: self.used(&[], &level), level, resource })
    }
}
