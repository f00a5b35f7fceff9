//! Progressive filling: a water level rises, everybody gets more, and who demands something of a
//! resource that is used up stays where he is.
//!
//! Max-min fairness, DRF (also where demands are zero: Parkes, Procaccia and Shah's extension), asset
//! fairness and paper 001's Eq. 5 differ only in how many tasks a user has at a level. At level x
//! that is `slope * clamp(x, begin, end) - intercept`, so what is used of a resource is a piecewise
//! linear function that never falls, with two breakpoints a user. The level at which some resource is
//! full is found by selection: a pivot among the breakpoints that are still in question is either
//! reachable or not, and users whose breakpoints all lie on one side become part of a straight line.
//! Expected O(n m) a stage, without sorting; each stage fills at least one resource, so there are at
//! most m, and only one if every demand is above zero.

use crate::{Allocation, Number, Problem};

/// How many tasks a user has at a level: none up to `begin`, then more by `slope` a level, up to `end`.
#[derive(Clone, Debug)]
pub(crate) struct Line<N> {
    pub(crate) begin: N,
    pub(crate) end: Option<N>,
    pub(crate) slope: N,
}

impl<N: Number> Line<N> {
    fn at(&self, level: &N) -> N {
        let level = match &self.end {
            Some(end) if end < level => end,
            _ => level,
        };
        if *level <= self.begin { N::zero() } else { self.slope.clone() * (level.clone() - &self.begin) }
    }

    fn is_past(&self, level: &N) -> bool {
        self.end.as_ref().is_some_and(|end| end <= level)
    }
}

/// Fills until nobody can get more. `line` gives the line of each user.
pub(crate) fn fill<N: Number>(problem: &Problem<N>, line: impl Fn(usize) -> Line<N>) -> Allocation<N> {
    let n = problem.users();
    let lines: Vec<Line<N>> = (0..n).map(line).collect();
    let mut tasks = vec![N::zero(); n];
    let mut used = vec![N::zero(); problem.width()];
    let mut rising: Vec<u32> = (0..n as u32).collect();
    let mut level = N::zero();
    let mut full = None;
    while !rising.is_empty() {
        let stage = first_full(problem, &lines, &rising, &used, level.clone());
        let Some(next) = stage else {
            for &i in &rising {
                tasks[i as usize] = all_wanted(problem, &lines[i as usize], i as usize);
            }
            break;
        };
        level = next;
        full = Some(level.clone());
        let mut loads = used.clone();
        for &i in &rising {
            let i = i as usize;
            tasks[i] = if lines[i].is_past(&level) { all_wanted(problem, &lines[i], i) } else { lines[i].at(&level) };
            add(&mut loads, problem.demand(i), &tasks[i]);
        }
        let growing = |i: &&u32| !lines[**i as usize].is_past(&level);
        let is_full = full_resources(&loads, rising.iter().filter(growing).map(|i| problem.demand(*i as usize)));
        rising.retain(|&i| {
            let i = i as usize;
            let stays =
                lines[i].is_past(&level) || is_full.iter().zip(problem.demand(i)).any(|(f, d)| *f && !d.is_zero());
            if stays {
                add(&mut used, problem.demand(i), &tasks[i]);
            }
            !stays
        });
    }
    Allocation { level: full, ..Allocation::new(tasks) }
}

/// The limit itself, not what its breakpoint rounds to.
fn all_wanted<N: Number>(problem: &Problem<N>, line: &Line<N>, user: usize) -> N {
    match problem.limit(user) {
        Some(limit) => limit.clone(),
        None => line.at(line.end.as_ref().unwrap_or(&line.begin)),
    }
}

fn add<N: Number>(loads: &mut [N], demand: &[N], tasks: &N) {
    for (load, d) in loads.iter_mut().zip(demand) {
        if !d.is_zero() {
            *load += &(tasks.clone() * d);
        }
    }
}

/// Those with nothing left, of which the fullest that somebody still wants is always one: it stopped the
/// filling, even if rounding leaves a trace in it.
fn full_resources<'a, N: Number>(loads: &[N], wanted: impl Iterator<Item = &'a [N]>) -> Vec<bool> {
    let mut is_wanted = vec![false; loads.len()];
    for demand in wanted {
        is_wanted.iter_mut().zip(demand).for_each(|(w, d)| *w |= !d.is_zero());
    }
    let fullest = loads.iter().zip(&is_wanted).filter(|(_, w)| **w).map(|(load, _)| load.clone()).reduce(N::or_more);
    let full = N::one() - N::slack();
    let threshold = match fullest {
        Some(fullest) => full.or_less(fullest),
        None => full,
    };
    loads.iter().map(|load| *load >= threshold).collect()
}

/// The least level, at or above `from`, at which `used` and what `rising` users have fill a resource.
/// `None` if none ever is.
fn first_full<N: Number>(problem: &Problem<N>, lines: &[Line<N>], rising: &[u32], used: &[N], from: N) -> Option<N> {
    let width = problem.width();
    // What is certain for every level between `low` and `high`: base + slope * (level - low).
    let mut low = from;
    let mut high: Option<N> = None;
    let mut base = used.to_vec();
    let mut slope = vec![N::zero(); width];
    let mut open: Vec<u32> = Vec::new();
    let settle = |i: u32, low: &N, high: &Option<N>, base: &mut [N], slope: &mut [N]| {
        let line = &lines[i as usize];
        let below = |b: &N| b <= low;
        let above = |b: &N| high.as_ref().is_some_and(|h| b >= h);
        let ends_later = line.end.as_ref().is_none_or(above);
        if above(&line.begin) {
            return true;
        }
        if line.end.as_ref().is_some_and(below) {
            add(base, problem.demand(i as usize), &line.at(low));
            return true;
        }
        if below(&line.begin) && ends_later {
            add(base, problem.demand(i as usize), &line.at(low));
            add(slope, problem.demand(i as usize), &line.slope);
            return true;
        }
        false
    };
    open.extend(rising.iter().filter(|i| !settle(**i, &low, &high, &mut base, &mut slope)));
    let mut loads = Vec::with_capacity(width);
    while !open.is_empty() {
        let pivot = pivot(lines, &open, &low, high.as_ref());
        let rise = pivot.clone() - &low;
        loads.clear();
        loads.extend(base.iter().zip(&slope).map(|(b, s)| b.clone() + s.clone() * &rise));
        for &i in &open {
            add(&mut loads, problem.demand(i as usize), &lines[i as usize].at(&pivot));
        }
        if loads.iter().any(|load| *load >= N::one()) {
            high = Some(pivot);
        } else {
            low = pivot;
            for (b, s) in base.iter_mut().zip(&slope) {
                *b += &(s.clone() * &rise);
            }
        }
        open.retain(|i| !settle(*i, &low, &high, &mut base, &mut slope));
    }
    let mut level = high;
    for (b, s) in base.into_iter().zip(slope).filter(|(_, s)| s.is_positive()) {
        let at = low.clone() + ((N::one() - b) / s).or_more(N::zero());
        level = Some(match level {
            Some(least) => least.or_less(at),
            None => at,
        });
    }
    level
}

/// A breakpoint between `low` and `high`, about in the middle of those of the `open` users.
fn pivot<N: Number>(lines: &[Line<N>], open: &[u32], low: &N, high: Option<&N>) -> N {
    const SAMPLE: usize = 63;
    let inside = |b: &N| b > low && high.is_none_or(|h| b < h);
    let step = open.len().div_ceil(SAMPLE);
    let mut sample: Vec<&N> = open
        .iter()
        .step_by(step)
        .flat_map(|&i| {
            let line = &lines[i as usize];
            [Some(&line.begin), line.end.as_ref()].into_iter().flatten()
        })
        .filter(|b| inside(b))
        .collect();
    // An open user has a breakpoint inside, so the first of the sample has.
    let middle = sample.len() / 2;
    sample.select_nth_unstable_by(middle, |a, b| a.compare(b)).1.clone()
}
