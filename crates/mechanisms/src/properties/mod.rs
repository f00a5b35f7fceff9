//! What can be held against an allocation: one file a property, each a function that returns findings.

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

/// One thing that is wrong with an allocation: who, against whom, on what, by how much.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding<N> {
    /// The property that does not hold.
    pub property: &'static str,
    /// The user who can complain; `None` if it is about a resource only.
    pub who: Option<usize>,
    /// The user who has what `who` misses, where there is one.
    pub against: Option<usize>,
    /// The resource it is about, where there is one.
    pub on: Option<usize>,
    /// What there is, in the measure of the property.
    pub has: N,
    /// What there should be, in the same measure.
    pub due: N,
    /// That measure.
    pub measure: Measure,
}

/// What `has` and `due` of a [`Finding`] count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Tasks of the user.
    Tasks,
    /// Share of a resource's capacity.
    Share,
    /// Share of a resource's capacity over the user's weight.
    SharePerWeight,
}

impl<N: Number> Finding<N> {
    /// By how much: `due - has` if too little, else `has - due`; never negative.
    pub fn amount(&self) -> N {
        if self.due >= self.has { self.due.clone() - &self.has } else { self.has.clone() - &self.due }
    }
}

/// A property of allocations.
///
/// `tolerance` says how far apart two quantities (shares of capacity; tasks relative to the larger) may
/// be and count as equal: 0 for exact allocations, about 1e-9 for computed ones.
pub trait Property: Sync {
    /// What users type.
    fn name(&self) -> &'static str;

    /// What it says, in one line.
    fn about(&self) -> &'static str;

    /// Everything that is wrong, ordered by user (of each, the worst finding only, where several users
    /// or resources give rise to one), then by resource. Empty if the property holds.
    fn findings(&self, problem: &Problem<f64>, tasks: &[f64], tolerance: f64) -> Vec<Finding<f64>>;

    /// Likewise, in exact numbers.
    fn findings_exact(
        &self,
        problem: &Problem<Rational>,
        tasks: &[Rational],
        tolerance: &Rational,
    ) -> Vec<Finding<Rational>>;
}

/// Gives [`Property`] to a type whose `fn check<N: Number>(&Problem<N>, &[N], &N) -> Vec<Finding<N>>` does
/// both kinds.
macro_rules! property {
    ($type:ident, $name:literal, $about:literal) => {
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

/// Every property, in the order in which they are reported. A new one is a file and a line here.
pub static PROPERTIES: &[&dyn Property] = &[
    &feasible::Feasible,
    &pareto_efficient::ParetoEfficient,
    &sharing_incentive::SharingIncentive,
    &envy_free::EnvyFree,
    &no_justified_complaint::NoJustifiedComplaint,
    &bottleneck_max_fair::BottleneckMaxFair,
    &baa_local_rules::BaaLocalRules,
];

/// The property of that name.
pub fn property_named(name: &str) -> Option<&'static dyn Property> {
    PROPERTIES.iter().copied().find(|p| p.name() == name)
}

/// Whether `tasks` is all the user wants, or so near that it counts.
pub(crate) fn has_all_wanted<N: Number>(problem: &Problem<N>, user: usize, tasks: &N, tolerance: &N) -> bool {
    problem.limit(user).is_some_and(|most| *tasks >= most.clone() * (N::one() - tolerance))
}

/// Whether `more` is above `less` by more than the tolerance, relative to `more`.
pub(crate) fn exceeds<N: Number>(more: &N, less: &N, tolerance: &N) -> bool {
    more.clone() * (N::one() - tolerance) > *less
}
