//! Exact comparison of amounts with entitlements in integer arithmetic.

use evenhand_model::{Capacity, IBig, Rational, UBig, Weights};

use crate::AuditError;

/// Weights as integers, and for each user and resource the product of weight and capacity.
///
/// `o <= e_i C` is equivalent to `o W <= w_i C`, with `W` the sum of the active users' weights. The left side is an
/// integer, so it can be compared with the floor of the right side, which is computed once per user.
#[derive(Clone, Debug)]
pub(crate) struct ExactEntitlements {
    weights: Vec<u64>,
    /// floor(w_i C_r) as `[user][resource]`, saturated at the largest u128.
    weighted_capacity: Vec<u128>,
    /// floor(C_r).
    capacity: Vec<u128>,
}

impl ExactEntitlements {
    /// Converts capacity and weights.
    ///
    /// # Errors
    /// Returns an error if the weights' common multiple makes their sum too large.
    pub(crate) fn new(capacity: &Capacity, weights: &Weights) -> Result<ExactEntitlements, AuditError> {
        let n = weights.len();
        // The denominator that remains after multiplication is the factor that the common multiple still lacks.
        let mut common = UBig::ONE;
        for i in 0..n {
            let lacking = (weights.exact(i) * Rational::from(common.clone())).into_parts().1;
            common *= lacking;
        }
        let common = Rational::from(common);
        let whole: Option<Vec<u64>> =
            (0..n).map(|i| u64::try_from(floor(&(weights.exact(i) * &common))).ok()).collect();
        let weights = whole.ok_or(AuditError::Weights)?;
        // No sum of active weights may reach u64::MAX, which stands for any sum.
        let sum = weights.iter().try_fold(0u64, |sum, w| sum.checked_add(*w)).filter(|&sum| sum < 1 << 63);
        sum.ok_or(AuditError::Weights)?;
        let resources = 0..capacity.width();
        let limit = |w: u64, r: usize| saturated(&(capacity.exact_steps(r) * Rational::from(IBig::from(w))));
        let weighted_capacity = weights.iter().flat_map(|&w| resources.clone().map(move |r| limit(w, r))).collect();
        let capacity_floor = resources.map(|r| saturated(capacity.exact_steps(r))).collect();
        Ok(ExactEntitlements { weights, weighted_capacity, capacity: capacity_floor })
    }

    /// Returns the number of resources.
    pub(crate) fn width(&self) -> usize {
        self.capacity.len()
    }

    /// Returns a user's weight as an integer; weights have a common factor.
    pub(crate) fn weight(&self, user: usize) -> u64 {
        self.weights[user]
    }

    /// Returns whether `total` of resource `r` is at most the capacity.
    #[inline]
    pub(crate) fn fits(&self, r: usize, total: u64) -> bool {
        u128::from(total) <= self.capacity[r]
    }

    /// Returns the free amount of resource `r` if `total` is held; 0 if that exceeds the capacity.
    pub(crate) fn free(&self, r: usize, total: u64) -> u64 {
        saturated_u64(self.capacity[r].saturating_sub(total.into()))
    }

    /// Returns the largest sum of active weights at which `amount` of resource `r` is within `user`'s entitlement.
    ///
    /// For an integer W, `o W <= w C` holds if and only if `W <= floor(floor(w C) / o)`.
    pub(crate) fn max_active_weight(&self, user: usize, r: usize, amount: u64) -> u64 {
        let limit = self.weighted_capacity[user * self.capacity.len() + r];
        limit.checked_div(amount.into()).map_or(u64::MAX, saturated_u64)
    }
}

fn saturated_u64(x: u128) -> u64 {
    u64::try_from(x).unwrap_or(u64::MAX)
}

fn floor(x: &Rational) -> UBig {
    UBig::try_from(x.floor()).unwrap_or(UBig::ZERO)
}

fn saturated(x: &Rational) -> u128 {
    u128::try_from(floor(x)).unwrap_or(u128::MAX)
}
