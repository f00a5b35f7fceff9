//! Users' weights and the entitlements they give.

use thiserror::Error;

use crate::{Quantity, Rational};

/// The weight of every user, exactly; entitlement of user i is w_i / sum w.
///
/// ```
/// use evenhand_model::{Quantity, Weights, to_f64};
/// let w = Weights::new([1, 3].map(|w| Quantity::parse(&w.to_string()).unwrap())).unwrap();
/// assert_eq!(to_f64(&w.entitlement(1)), 0.75);
/// assert_eq!(w.over_mean(1), 1.5);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    exact: Vec<Rational>,
    sum: Rational,
}

/// Why weights are refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WeightsError {
    /// A weight of zero would divide by zero and put its user first or last for ever.
    #[error(
        "the weight of user {user} is 0; a weight must be greater than 0 (leave a user out of the workload instead)"
    )]
    Zero {
        /// The user's number.
        user: usize,
    },
}

impl Weights {
    /// One weight a user.
    ///
    /// # Errors
    /// If a weight is zero.
    pub fn new(weights: impl IntoIterator<Item = Quantity>) -> Result<Weights, WeightsError> {
        let exact: Vec<Rational> = weights.into_iter().map(|q| q.exact().clone()).collect();
        if let Some(user) = exact.iter().position(Rational::is_zero) {
            return Err(WeightsError::Zero { user });
        }
        Ok(Weights::of_positive(exact))
    }

    /// Of numbers known to be greater than 0.
    pub(crate) fn of_positive(exact: Vec<Rational>) -> Weights {
        let sum = exact.iter().fold(Rational::ZERO, |a, w| a + w);
        Weights { exact, sum }
    }

    /// `n` users of weight 1.
    pub fn equal(n: usize) -> Weights {
        Weights { exact: vec![Rational::ONE; n], sum: Rational::from(n as u64) }
    }

    /// How many users there are.
    pub fn len(&self) -> usize {
        self.exact.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty()
    }

    /// The weight of one user, exactly.
    pub fn exact(&self, user: usize) -> &Rational {
        &self.exact[user]
    }

    /// w_i / sum w, exactly.
    pub fn entitlement(&self, user: usize) -> Rational {
        &self.exact[user] / &self.sum
    }

    /// The weight over the mean weight (1 for equal users).
    pub fn over_mean(&self, user: usize) -> f64 {
        crate::to_f64(&self.exact_over_mean(user))
    }

    /// The weight over the mean weight, exactly.
    pub fn exact_over_mean(&self, user: usize) -> Rational {
        &self.exact[user] * Rational::from(self.exact.len() as u64) / &self.sum
    }

    /// Whether every user has the same weight.
    pub fn are_equal(&self) -> bool {
        self.exact.windows(2).all(|w| w[0] == w[1])
    }
}
