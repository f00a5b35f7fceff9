//! What divides from one event to the next.

use evenhand_mechanisms::{Allocation, Mechanism, MechanismOptions, Number, Problem, User};

use crate::{Scenario, TimelineError, TimelineOptions};

/// One user who is there.
#[derive(Clone, Debug)]
pub(crate) struct PresentUser<N> {
    pub(crate) user: usize,
    pub(crate) phase: usize,
    /// Task-seconds still to be done in this phase.
    pub(crate) work: Option<N>,
}

/// A part of the time between two events.
#[derive(Clone, Debug)]
pub(crate) struct Segment<N> {
    /// How long it lasts; `None` for ever.
    pub(crate) length: Option<N>,
    /// Tasks of those present, in their order.
    pub(crate) tasks: Vec<N>,
    pub(crate) loads: Vec<N>,
    pub(crate) level: Option<N>,
    pub(crate) levels: Vec<Option<N>>,
    pub(crate) commitments: Vec<N>,
    /// If tasks move: tasks of those present, loads and level at the end.
    pub(crate) ending: Option<(Vec<N>, Vec<N>, Option<N>)>,
}

/// What there was until the next event, or until somebody's work was done.
#[derive(Clone, Debug)]
pub(crate) struct Period<N> {
    pub(crate) segments: Vec<Segment<N>>,
    /// Work of each of those present that is left; 0 of those who are done.
    pub(crate) left: Vec<Option<N>>,
    /// Whether it lasts to the end that was given, rather than to the end of somebody's work.
    pub(crate) reached: bool,
}

impl<N: Number> Period<N> {
    /// One division that stands until the next event or until somebody is done.
    pub(crate) fn constant(
        present: &[PresentUser<N>],
        problem: &Problem<N>,
        allocation: Allocation<N>,
        length: Option<&N>,
    ) -> Period<N> {
        let (lasts, left) = until_done(present, &allocation.tasks, length);
        let reached = lasts.as_ref() == length;
        let loads = problem.loads(&allocation.tasks);
        let Allocation { tasks, level, levels, .. } = allocation;
        let segment = Segment { length: lasts, tasks, loads, level, levels, commitments: Vec::new(), ending: None };
        Period { segments: vec![segment], left, reached }
    }
}

/// Divides from one event to the next.
pub(crate) trait Divider<N> {
    /// Divides among `present` from second `from` for at most `length` seconds (`None`: for ever), less if
    /// somebody's work is done before.
    fn divide_until_event(
        &mut self,
        present: &[PresentUser<N>],
        from: &N,
        length: Option<&N>,
    ) -> Result<Period<N>, TimelineError>;
}

/// When the first of them is done with his work at these rates, if before `length`; and what is left of
/// everybody's work then.
pub(crate) fn until_done<N: Number>(
    present: &[PresentUser<N>],
    tasks: &[N],
    length: Option<&N>,
) -> (Option<N>, Vec<Option<N>>) {
    let needs = |p: &PresentUser<N>, x: &N| p.work.as_ref().filter(|_| x.is_positive()).map(|w| w.clone() / x);
    let mut least = length.cloned();
    for need in present.iter().zip(tasks).filter_map(|(p, x)| needs(p, x)) {
        least = Some(match least {
            Some(least) => least.smaller(need),
            None => need,
        });
    }
    let left = present.iter().zip(tasks).map(|(p, x)| {
        let (work, length) = (p.work.as_ref()?, least.as_ref()?);
        // Who needs that long is done, whatever rounding leaves.
        let is_done = needs(p, x).is_some_and(|need| need <= length.clone() * (N::one() + N::rounding()));
        Some(if is_done { N::zero() } else { work.clone() - x.clone() * length })
    });
    (least.clone(), left.collect())
}

/// A mechanism without a past: every interval for itself.
pub(crate) struct Memoryless<'a> {
    scenario: &'a Scenario,
    mechanism: &'static dyn Mechanism,
    options: MechanismOptions,
}

impl<'a> Memoryless<'a> {
    pub(crate) fn new(scenario: &'a Scenario, mechanism: &'static dyn Mechanism, options: &TimelineOptions) -> Self {
        Memoryless { scenario, mechanism, options: options.mechanism }
    }
}

/// The problem of those present, and its division by a mechanism of the registry.
pub(crate) fn divide_now<N: Number>(
    scenario: &Scenario,
    present: &[PresentUser<N>],
    users: impl Iterator<Item = User<N>>,
    mechanism: &dyn Mechanism,
    options: &MechanismOptions,
    from: &N,
) -> Result<(Problem<N>, Allocation<N>), TimelineError> {
    let from = from.to_f64();
    let refused = |source| TimelineError::Problem { from, source };
    let mut problem = Problem::new(scenario.resource_count(), users).map_err(refused)?;
    if problem.users() == 0 {
        return Ok((problem, Allocation::new(Vec::new())));
    }
    if let Some(tree) = scenario.tree(present.iter().map(|p| p.user)) {
        problem = tree.and_then(|tree| problem.with_accounts(tree)).map_err(refused)?;
    }
    let allocation =
        N::divide(mechanism, &problem, options).map_err(|source| TimelineError::Mechanism { from, source })?;
    Ok((problem, allocation))
}

impl<N: Number> Divider<N> for Memoryless<'_> {
    fn divide_until_event(
        &mut self,
        present: &[PresentUser<N>],
        from: &N,
        length: Option<&N>,
    ) -> Result<Period<N>, TimelineError> {
        // Mechanisms without a past get none: commitments are sdrf's.
        let users =
            present.iter().map(|p| User { commitment: Vec::new(), ..self.scenario.user_in_phase(p.user, p.phase) });
        let (problem, allocation) = divide_now(self.scenario, present, users, self.mechanism, &self.options, from)?;
        Ok(Period::constant(present, &problem, allocation, length))
    }
}
