//! Entitlements as integers.

use evenhand_model::{Capacity, IBig, Rational, UBig, Weights};

use crate::PastError;

/// Weights as whole numbers, and how much of each resource a user's weight stands for.
///
/// `o <= e_i C` is `o W <= w_i C`, with `W` the sum of the active users' weights. The left side is an
/// integer, so it may be held against the floor of the right one, which is worked out once a user.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    weights: Vec<u64>,
    /// floor(w_i C_r), user by user; cut to the largest u128.
    limits: Vec<u128>,
    /// floor(C_r).
    fits: Vec<u128>,
}

impl Scale {
    pub(crate) fn new(capacity: &Capacity, weights: &Weights) -> Result<Scale, PastError> {
        let n = weights.len();
        // What is left of the denominators after multiplication is what the common one still lacks.
        let mut common = UBig::ONE;
        for i in 0..n {
            let lacking = (weights.exact(i) * Rational::from(common.clone())).into_parts().1;
            common *= lacking;
        }
        let common = Rational::from(common);
        let whole: Option<Vec<u64>> =
            (0..n).map(|i| u64::try_from(floor(&(weights.exact(i) * &common))).ok()).collect();
        let weights = whole.ok_or(PastError::Weights)?;
        // So that no sum of active weights reaches u64::MAX, which stands for any sum.
        let sum = weights.iter().try_fold(0u64, |sum, w| sum.checked_add(*w)).filter(|&sum| sum < 1 << 63);
        sum.ok_or(PastError::Weights)?;
        let resources = 0..capacity.width();
        let limit = |w: u64, r: usize| saturated(&(capacity.exact_steps(r) * Rational::from(IBig::from(w))));
        let limits = weights.iter().flat_map(|&w| resources.clone().map(move |r| limit(w, r))).collect();
        let fits = resources.map(|r| saturated(capacity.exact_steps(r))).collect();
        Ok(Scale { weights, limits, fits })
    }

    pub(crate) fn width(&self) -> usize {
        self.fits.len()
    }

    pub(crate) fn weight(&self, user: usize) -> u64 {
        self.weights[user]
    }

    /// Whether `total` of resource `r` is at most what there is.
    #[inline]
    pub(crate) fn fits(&self, r: usize, total: u64) -> bool {
        u128::from(total) <= self.fits[r]
    }

    /// What is left of resource `r` if `total` is held; 0 if that is too much already.
    pub(crate) fn free(&self, r: usize, total: u64) -> u64 {
        saturated_u64(self.fits[r].saturating_sub(total.into()))
    }

    /// The largest sum of active weights at which `amount` of resource `r` is within `user`'s entitlement.
    ///
    /// `o W <= w C` for a whole W exactly if `W <= floor(floor(w C) / o)`.
    pub(crate) fn most_weight(&self, user: usize, r: usize, amount: u64) -> u64 {
        let limit = self.limits[user * self.fits.len() + r];
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
