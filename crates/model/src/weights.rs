//! Users' weights and entitlements.

use thiserror::Error;

use crate::{Quantity, Rational};

/// The exact weight of every user. The entitlement of user i is w_i / sum w.
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

/// An error in weights.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WeightsError {
    /// A weight of 0, which would divide by zero.
    #[error(
        "the weight of user {user} is 0; a weight must be greater than 0 (leave a user out of the workload instead)"
    )]
    Zero {
        /// The user's index.
        user: usize,
    },
}

impl Weights {
    /// Creates weights, one per user.
    ///
    /// # Errors
    /// Returns an error if a weight is 0.
    pub fn new(weights: impl IntoIterator<Item = Quantity>) -> Result<Weights, WeightsError> {
        let exact: Vec<Rational> = weights.into_iter().map(|q| q.exact().clone()).collect();
        if let Some(user) = exact.iter().position(Rational::is_zero) {
            return Err(WeightsError::Zero { user });
        }
        Ok(Weights::of_positive(exact))
    }

    /// Creates weights from numbers that are known to be greater than 0.
    pub(crate) fn of_positive(exact: Vec<Rational>) -> Weights {
        let sum = exact.iter().fold(Rational::ZERO, |a, w| a + w);
        Weights { exact, sum }
    }

    /// Creates weights of 1 for `n` users.
    pub fn equal(n: usize) -> Weights {
        Weights { exact: vec![Rational::ONE; n], sum: Rational::from(n as u64) }
    }

    /// Returns the number of users.
    pub fn len(&self) -> usize {
        self.exact.len()
    }

    /// Returns whether there is no user.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty()
    }

    /// Returns the exact weight of a user.
    ///
    /// # Panics
    /// Panics if the user does not exist, as do all methods that take a user.
    pub fn exact(&self, user: usize) -> &Rational {
        &self.exact[user]
    }

    /// Returns the exact entitlement of a user: w_i / sum w.
    pub fn entitlement(&self, user: usize) -> Rational {
        &self.exact[user] / &self.sum
    }

    /// Returns the weight over the mean weight; 1 if all weights are equal.
    pub fn over_mean(&self, user: usize) -> f64 {
        crate::to_f64(&self.exact_over_mean(user))
    }

    /// Returns the weight over the mean weight, exactly.
    pub fn exact_over_mean(&self, user: usize) -> Rational {
        &self.exact[user] * Rational::from(self.exact.len() as u64) / &self.sum
    }
}
