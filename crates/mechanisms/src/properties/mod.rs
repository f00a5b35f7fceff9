//! Fairness properties, each in a file of its own, as functions from an allocation to findings.

mod baa_local_rules;
pub(crate) mod bottleneck_max_fair;
mod envy_free;
pub(crate) mod feasible;
mod no_justified_complaint;
mod pareto_efficient;
mod sharing_incentive;

use evenhand_model::Rational;

pub use baa_local_rules::BaaLocalRules;
pub use bottleneck_max_fair::BottleneckMaxFair;
pub use envy_free::EnvyFree;
pub use feasible::Feasible;
pub use no_justified_complaint::NoJustifiedComplaint;
pub use pareto_efficient::ParetoEfficient;
pub use sharing_incentive::SharingIncentive;

use crate::{Number, Problem};

/// Violation of a property: which user, in comparison with whom, of which resource, by how much.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding<N> {
    /// Name of the property that is violated.
    pub property: &'static str,
    /// User who is worse off than the property allows; `None` if the finding concerns a resource only.
    pub who: Option<usize>,
    /// User who has what `who` lacks, if the property compares users.
    pub against: Option<usize>,
    /// Resource concerned, if there is one.
    pub on: Option<usize>,
    /// Actual value, in `measure`.
    pub has: N,
    /// Value that the property requires, in `measure`.
    pub due: N,
    /// Measure of `has` and `due`.
    pub measure: Measure,
}

/// Measure of the `has` and `due` of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Number of the user's tasks.
    Tasks,
    /// Share of a resource's capacity, in [0, 1].
    Share,
    /// Share of a resource's capacity over the user's weight.
    SharePerWeight,
}

impl<N: Number> Finding<N> {
    /// Returns the absolute difference between `due` and `has`.
    pub fn amount(&self) -> N {
        if self.due >= self.has { self.due.clone() - &self.has } else { self.has.clone() - &self.due }
    }
}

/// Fairness property of allocations.
///
/// `tolerance` is the largest difference at which two quantities still count as equal (absolute for shares of capacity,
/// relative for tasks): 0 for exact allocations, about 1e-9 for computed ones. `tasks` has one number per user.
pub trait Property: Sync {
    /// Returns the name that users type.
    fn name(&self) -> &'static str;

    /// Returns what the property requires, in one line.
    fn about(&self) -> &'static str;

    /// Returns what is the case where the property is violated, in one line.
    fn violation(&self) -> &'static str;

    /// Returns all violations, by user (the worst one for each user), then by resource; empty if the property holds.
    fn findings(&self, problem: &Problem<f64>, tasks: &[f64], tolerance: f64) -> Vec<Finding<f64>>;

    /// Returns all violations, computed in exact numbers.
    fn findings_exact(
        &self,
        problem: &Problem<Rational>,
        tasks: &[Rational],
        tolerance: &Rational,
    ) -> Vec<Finding<Rational>>;
}

/// Implements [`Property`] for a type by its `fn check<N: Number>(&Problem<N>, &[N], &N) -> Vec<Finding<N>>`.
macro_rules! property {
    ($type:ident, $name:literal, $about:literal, $violation:literal) => {
        impl $type {
            pub(crate) const NAME: &'static str = $name;
        }

        impl $crate::Property for $type {
            fn name(&self) -> &'static str {
                $type::NAME
            }
            fn about(&self) -> &'static str {
                $about
            }
            fn violation(&self) -> &'static str {
                $violation
            }
            fn findings(
                &self,
                problem: &$crate::Problem<f64>,
                tasks: &[f64],
                tolerance: f64,
            ) -> Vec<$crate::Finding<f64>> {
                $type::check(problem, tasks, &tolerance)
            }
            fn findings_exact(
                &self,
                problem: &$crate::Problem<evenhand_model::Rational>,
                tasks: &[evenhand_model::Rational],
                tolerance: &evenhand_model::Rational,
            ) -> Vec<$crate::Finding<evenhand_model::Rational>> {
                $type::check(problem, tasks, tolerance)
            }
        }
    };
}
pub(crate) use property;

/// All properties, in the order in which they are reported. A new property is a file and a line here.
pub static PROPERTIES: &[&dyn Property] = &[
    &feasible::Feasible,
    &pareto_efficient::ParetoEfficient,
    &sharing_incentive::SharingIncentive,
    &envy_free::EnvyFree,
    &no_justified_complaint::NoJustifiedComplaint,
    &bottleneck_max_fair::BottleneckMaxFair,
    &baa_local_rules::BaaLocalRules,
];

/// Returns the property of that name.
pub fn property_named(name: &str) -> Option<&'static dyn Property> {
    PROPERTIES.iter().copied().find(|p| p.name() == name)
}

/// Returns whether `tasks` is all that the user wants, within the tolerance.
pub(crate) fn has_all_wanted<N: Number>(problem: &Problem<N>, user: usize, tasks: &N, tolerance: &N) -> bool {
    problem.limit(user).is_some_and(|limit| *tasks >= limit.clone() * (N::one() - tolerance))
}

/// Returns whether `more` exceeds `less` by more than the tolerance, relative to `more`.
pub(crate) fn exceeds<N: Number>(more: &N, less: &N, tolerance: &N) -> bool {
    more.clone() * (N::one() - tolerance) > *less
}
