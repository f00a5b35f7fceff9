//! What every mechanism looks like from outside, and the list of all of them.

use evenhand_model::Rational;
use thiserror::Error;

use crate::{Number, Problem};

/// What a mechanism gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation<N> {
    /// How many tasks each user gets; possibly a fraction.
    pub tasks: Vec<N>,
    /// The water level at which filling stopped for the last time, in the mechanism's own measure (`drf`:
    /// dominant share over weight). `None` if everybody got all that was wanted, or if the mechanism
    /// has no single level.
    pub level: Option<N>,
    /// A level for each resource, of mechanisms that have one (`bmf`, `baa`); `None` for a resource that
    /// decides nobody's share.
    pub levels: Vec<Option<N>>,
    /// What a unit of each resource's capacity would cost, of mechanisms that are markets (`ceei`).
    pub prices: Vec<N>,
    /// An upper bound on how far the objective is from its optimum, of mechanisms solved by iteration:
    /// how far sum e_i log x_i can lie below its maximum.
    pub duality_gap: Option<f64>,
}

impl<N: Number> Allocation<N> {
    /// With these tasks and nothing to say about them.
    pub fn new(tasks: Vec<N>) -> Allocation<N> {
        Allocation { tasks, level: None, levels: Vec::new(), prices: Vec::new(), duality_gap: None }
    }
}

/// What can be chosen about some mechanisms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MechanismOptions {
    /// `baa`: whether nobody may get less than an equal split of everything. Unless said, it is
    /// demanded for three resources and more, and holds by itself for two.
    pub sharing_incentive: Option<bool>,
}

/// Why a mechanism gives nothing.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MechanismError {
    /// `max-min` with several resources.
    #[error("{mechanism} divides one resource, found {found}; drf is its generalisation to several")]
    SingleResourceOnly {
        /// Which one.
        mechanism: &'static str,
        /// How many resources there are.
        found: usize,
    },
    /// An exact answer that may be irrational.
    #[error("the answer of {mechanism} can be irrational, so there is no exact one; {instead}")]
    IrrationalAnswer {
        /// Which one.
        mechanism: &'static str,
        /// What can be done.
        instead: &'static str,
    },
    /// Accounts where the mechanism knows none.
    #[error("{mechanism} knows no accounts, found some; drf and max-min divide by accounts")]
    AccountsUnsupported {
        /// Which one.
        mechanism: &'static str,
    },
    /// An iteration that did not arrive, or whose result its checker refused.
    #[error("{mechanism} did not arrive at an answer that its checker accepts: {why}")]
    NotCertified {
        /// Which one.
        mechanism: &'static str,
        /// What was reached.
        why: String,
    },
    /// A problem whose numbers f64 does not hold apart.
    #[error("{mechanism} cannot be computed in 64-bit numbers: {why}")]
    OutOfRange {
        /// Which one.
        mechanism: &'static str,
        /// Which numbers.
        why: &'static str,
    },
}

/// A rule that divides every resource among users at one instant.
///
/// The answer depends on nothing but the problem: the same problem gives the same bits.
pub trait Mechanism: Sync {
    /// What users type.
    fn name(&self) -> &'static str;

    /// What it does, in one line.
    fn about(&self) -> &'static str;

    /// Divides in `f64`.
    ///
    /// # Errors
    /// If the mechanism does not apply to the problem, or reached no certified answer.
    fn divide(&self, problem: &Problem<f64>, options: &MechanismOptions) -> Result<Allocation<f64>, MechanismError>;

    /// Divides exactly.
    ///
    /// # Errors
    /// Likewise; and if the answer can be irrational.
    fn divide_exact(
        &self,
        problem: &Problem<Rational>,
        options: &MechanismOptions,
    ) -> Result<Allocation<Rational>, MechanismError>;
}

/// Gives [`Mechanism`] to a type whose `fn solve<N: Number>(&Problem<N>, &MechanismOptions)` does both kinds.
macro_rules! mechanism {
    ($type:ident, $name:literal, $about:literal) => {
        impl $crate::Mechanism for $type {
            fn name(&self) -> &'static str {
                $name
            }
            fn about(&self) -> &'static str {
                $about
            }
            fn divide(
                &self,
                problem: &$crate::Problem<f64>,
                options: &$crate::MechanismOptions,
            ) -> Result<$crate::Allocation<f64>, $crate::MechanismError> {
                $type::solve(problem, options)
            }
            fn divide_exact(
                &self,
                problem: &$crate::Problem<evenhand_model::Rational>,
                options: &$crate::MechanismOptions,
            ) -> Result<$crate::Allocation<evenhand_model::Rational>, $crate::MechanismError> {
                $type::solve(problem, options)
            }
        }
    };
}
pub(crate) use mechanism;

/// Every mechanism, in the order in which they are explained. A new one is a file and a line here.
pub static MECHANISMS: &[&dyn Mechanism] = &[
    &crate::max_min::MaxMin,
    &crate::drf::Drf,
    &crate::sdrf::Sdrf,
    &crate::asset::Asset,
    &crate::ceei::Ceei,
    &crate::bbf::Bbf,
    &crate::bmf::Bmf,
    &crate::baa::Baa,
];

/// The mechanism of that name.
pub fn mechanism_named(name: &str) -> Option<&'static dyn Mechanism> {
    MECHANISMS.iter().copied().find(|m| m.name() == name)
}
