//! Division from one event to the next.

use evenhand_mechanisms::{Allocation, Mechanism, MechanismOptions, Number, Problem, User};

use crate::{Scenario, TimelineError, TimelineOptions};

/// User who is present.
#[derive(Clone, Debug)]
pub(crate) struct PresentUser<N> {
    pub(crate) user: usize,
    pub(crate) phase: usize,
    /// Work left in this phase, in task-seconds; `None` if the phase has no work to complete.
    pub(crate) work: Option<N>,
}

/// Part of the time between two events.
#[derive(Clone, Debug)]
pub(crate) struct Segment<N> {
    /// Duration in seconds; `None` if it does not end.
    pub(crate) length: Option<N>,
    /// Tasks of the users who are present, in their order.
    pub(crate) tasks: Vec<N>,
    pub(crate) loads: Vec<N>,
    pub(crate) level: Option<N>,
    pub(crate) levels: Vec<Option<N>>,
    pub(crate) commitments: Vec<N>,
    /// Where tasks change within the segment: tasks, loads and level at its end.
    pub(crate) ending: Option<(Vec<N>, Vec<N>, Option<N>)>,
}

/// Division until the next event, or until a user's work is complete.
#[derive(Clone, Debug)]
pub(crate) struct Period<N> {
    pub(crate) segments: Vec<Segment<N>>,
    /// Work left for each user who is present; 0 if complete.
    pub(crate) left: Vec<Option<N>>,
    /// Whether the period lasts to the event rather than to the completion of some work.
    pub(crate) reached: bool,
}

impl<N: Number> Period<N> {
    /// Creates a period during which one division stands.
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

/// Rule that divides from one event to the next.
pub(crate) trait Divider<N> {
    /// Divides among `present` from second `from` on for at most `length` seconds (`None`: without end), or until a
    /// user's work is complete.
    ///
    /// # Errors
    /// Returns an error if the mechanism refuses the problem.
    fn divide_until_event(
        &mut self,
        present: &[PresentUser<N>],
        from: &N,
        length: Option<&N>,
    ) -> Result<Period<N>, TimelineError>;
}

/// Returns when the first user completes its work at these rates, if within `length`, and the work left for each user
/// then.
pub(crate) fn until_done<N: Number>(
    present: &[PresentUser<N>],
    tasks: &[N],
    length: Option<&N>,
) -> (Option<N>, Vec<Option<N>>) {
    let needs = |p: &PresentUser<N>, x: &N| p.work.as_ref().filter(|_| x.is_positive()).map(|w| w.clone() / x);
    let mut first = length.cloned();
    for need in present.iter().zip(tasks).filter_map(|(p, x)| needs(p, x)) {
        first = Some(match first {
            Some(first) => first.smaller(need),
            None => need,
        });
    }
    let left = present.iter().zip(tasks).map(|(p, x)| {
        let (work, length) = (p.work.as_ref()?, first.as_ref()?);
        // Complete, whatever residue rounding leaves.
        let is_done = needs(p, x).is_some_and(|need| need <= length.clone() * (N::one() + N::rounding()));
        Some(if is_done { N::zero() } else { work.clone() - x.clone() * length })
    });
    (first.clone(), left.collect())
}

/// Mechanism without state: every interval is divided independently.
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

/// Returns the problem of the users who are present, and its division.
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
        // Only sdrf has commitments.
        let users =
            present.iter().map(|p| User { commitment: Vec::new(), ..self.scenario.user_in_phase(p.user, p.phase) });
        let (problem, allocation) = divide_now(self.scenario, present, users, self.mechanism, &self.options, from)?;
        Ok(Period::constant(present, &problem, allocation, length))
    }
}
