//! The trait that every mechanism implements, and the registry of mechanisms.

use evenhand_model::Rational;
use thiserror::Error;

use crate::{Number, Problem};

/// Result of a mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation<N> {
    /// Number of tasks of each user, possibly fractional.
    pub tasks: Vec<N>,
    /// Level at which progressive filling stopped for the last time, in the mechanism's own measure (`drf`: dominant
    /// share over weight). `None` if every user got all it wanted, or if the mechanism has no single level.
    pub level: Option<N>,
    /// Level of each resource, for mechanisms that have one per resource (`bmf`, `baa`), else empty; `None` for a
    /// resource that determines no user's share.
    pub levels: Vec<Option<N>>,
    /// Price of each resource's whole capacity, for mechanisms that are markets (`ceei`, `bbf`), else empty.
    pub prices: Vec<N>,
    /// Upper bound on how far sum e_i log x_i lies below its maximum, for mechanisms that are markets.
    pub duality_gap: Option<f64>,
}

impl<N: Number> Allocation<N> {
    /// Creates an allocation of these tasks without level, prices or gap.
    pub fn new(tasks: Vec<N>) -> Allocation<N> {
        Allocation { tasks, level: None, levels: Vec::new(), prices: Vec::new(), duality_gap: None }
    }
}

/// Options of the mechanisms that have any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MechanismOptions {
    /// `baa`: whether no user may get less than an equal split of every resource. The default is to require it for
    /// three resources and more; for two it always holds.
    pub sharing_incentive: Option<bool>,
}

/// Reason why a mechanism returns no allocation.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MechanismError {
    /// `max-min` applied to several resources.
    #[error("{mechanism} divides one resource, found {found}; its generalization to several is drf")]
    SingleResourceOnly {
        /// Name of the mechanism.
        mechanism: &'static str,
        /// Number of resources.
        found: usize,
    },
    /// The exact answer can be irrational.
    #[error("the answer of {mechanism} can be irrational, so it has no exact form; {instead}")]
    IrrationalAnswer {
        /// Name of the mechanism.
        mechanism: &'static str,
        /// What to use instead.
        instead: &'static str,
    },
    /// The problem has a tree of accounts, which the mechanism does not support.
    #[error("{mechanism} does not support accounts, found some; drf and max-min do")]
    AccountsUnsupported {
        /// Name of the mechanism.
        mechanism: &'static str,
    },
    /// An iteration did not converge, or its result failed the check.
    #[error("{mechanism} reached no answer that passes its check: {why}")]
    NotCertified {
        /// Name of the mechanism.
        mechanism: &'static str,
        /// State that was reached.
        why: String,
    },
    /// The problem has numbers that `f64` cannot distinguish from 0 or infinity.
    #[error("{mechanism} cannot be computed in 64-bit numbers: {why}")]
    OutOfRange {
        /// Name of the mechanism.
        mechanism: &'static str,
        /// Which numbers.
        why: &'static str,
    },
}

/// Rule that divides every resource among users at one instant.
///
/// The answer is a function of the problem and the options: equal input gives equal bits.
pub trait Mechanism: Sync {
    /// Returns the name that users type.
    fn name(&self) -> &'static str;

    /// Returns a one-line description.
    fn about(&self) -> &'static str;

    /// Divides in `f64`.
    ///
    /// # Errors
    /// Returns an error if the mechanism does not apply to the problem or reaches no certified answer.
    fn divide(&self, problem: &Problem<f64>, options: &MechanismOptions) -> Result<Allocation<f64>, MechanismError>;

    /// Divides exactly.
    ///
    /// # Errors
    /// Returns an error as [`divide`](Self::divide) does, and if the answer can be irrational.
    fn divide_exact(
        &self,
        problem: &Problem<Rational>,
        options: &MechanismOptions,
    ) -> Result<Allocation<Rational>, MechanismError>;
}

/// Implements [`Mechanism`] for a type by its `fn solve<N: Number>(&Problem<N>, &MechanismOptions)`.
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

/// All mechanisms, in the order in which they are explained. A new mechanism is a file and a line here.
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

/// Returns the mechanism of that name.
pub fn mechanism_named(name: &str) -> Option<&'static dyn Mechanism> {
    MECHANISMS.iter().copied().find(|m| m.name() == name)
}
