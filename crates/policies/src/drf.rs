//! Dominant resource fairness: the user with the least dominant share of what it holds now.

use evenhand_model::Rational;

use crate::Registration;
use crate::share_order::{ShareKey, ShareOrder};

pub(crate) const REGISTRATION: Registration = Registration {
    name: "drf",
    summary: "least dominant share of what is held now, over weight",
    needs_decay: false,
    build: |setting| Box::new(ShareOrder::new(setting, DominantShare)),
};

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
