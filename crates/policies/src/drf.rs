//! Dominant resource fairness: the user with the lowest dominant share of its current holdings.

use evenhand_model::Rational;

use crate::Registration;
use crate::share_order::{ShareKey, ShareOrder};

pub(crate) const REGISTRATION: Registration =
    Registration::new("drf", "lowest dominant share of current holdings, over weight", |context| {
        Ok(Box::new(ShareOrder::new(context, DominantShare)))
    });

/// max_r o_r
struct DominantShare;

impl ShareKey for DominantShare {
    fn approximate(&self, shares: impl Iterator<Item = f64>) -> f64 {
        shares.fold(0.0, f64::max)
    }

    fn exact(&self, shares: impl Iterator<Item = Rational>) -> Rational {
        shares.max().unwrap_or(Rational::ZERO)
    }
}
