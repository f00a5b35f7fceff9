//! Asset fairness: the user whose shares of all resources sum to the least.

use evenhand_model::Rational;

use crate::Registration;
use crate::share_order::{ShareKey, ShareOrder};

pub(crate) const REGISTRATION: Registration = Registration {
    name: "asset",
    summary: "least sum of shares of what is held now, over weight",
    needs_decay: false,
    build: |setting| Box::new(ShareOrder::new(setting, SumOfShares)),
};

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
