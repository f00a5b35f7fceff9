//! Asset fairness: the user with the lowest sum of shares over all resources.

use evenhand_model::Rational;

use crate::Registration;
use crate::share_order::{ShareKey, ShareOrder};

pub(crate) const REGISTRATION: Registration =
    Registration::new("asset", "lowest sum of the shares of current holdings, over weight", |context| {
        Ok(Box::new(ShareOrder::new(context, SumOfShares)))
    });

/// sum_r o_r
struct SumOfShares;

impl ShareKey for SumOfShares {
    fn approximate(&self, shares: impl Iterator<Item = f64>) -> f64 {
        shares.sum()
    }

    fn exact(&self, shares: impl Iterator<Item = Rational>) -> Rational {
        shares.fold(Rational::ZERO, |sum, s| sum + s)
    }
}
