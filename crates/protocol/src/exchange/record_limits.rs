//! Limits on what a node may report.

use std::fmt;
use std::sync::Arc;

use crate::exchange::record::{MAX_NAME_LEN, MAX_TERMS};
use crate::exchange::{Fixed, MAX_USERS, Record, UserSums};

/// Returns, for a supply by resource, the upper bound on the sum over users of each term's absolute values.
pub type TermBounds = Arc<dyn Fn(&[Fixed]) -> Vec<Fixed> + Send + Sync>;

/// Limits on what a node may report. Within them a faulty or malicious node can shift heaviness only as far as its supply
/// allows; without them it could make any user infinitely heavy.
#[derive(Clone)]
pub struct RecordLimits {
    /// The largest supply of one node by resource. `None`: unknown, any supply is accepted.
    pub supply: Option<Vec<Fixed>>,
    /// The bound on each term, as a function of the supply. It must increase with the supply and be superadditive (the
    /// bound of a sum is at least the sum of the bounds), so that it holds for totals too.
    pub terms: TermBounds,
    /// The largest number of users in a record and in totals, at limit [`MAX_USERS`].
    pub users: usize,
}

impl RecordLimits {
    /// Returns limits for one term for each resource, whose absolute values sum to at limit `factor` times the supply.
    ///
    /// For the metrics `deviation` and `greediness` 1 + beta suffices: endowments sum to at limit the supply, and so do loads,
    /// and a term e + beta (u - e)+ - gamma (e - u)+ with beta > 1 > gamma lies between 0 and e + beta u. Add a margin,
    /// since loads are measured and may slightly exceed the supply.
    #[must_use]
    pub fn by_factor(factor: Fixed) -> RecordLimits {
        let terms = move |supply: &[Fixed]| supply.iter().map(|supply| product(*supply, factor)).collect();
        RecordLimits { supply: None, terms: Arc::new(terms), users: MAX_USERS }
    }

    /// Checks a record.
    ///
    /// # Errors
    /// Returns the first violation.
    pub fn check(&self, record: &Record) -> Result<(), RecordError> {
        if record.node.is_empty() || record.node.len() > MAX_NAME_LEN {
            return Err(RecordError::Name);
        }
        if record.supply.len() > MAX_TERMS {
            return Err(RecordError::Resources { claimed: record.supply.len() });
        }
        for (resource, supply) in record.supply.iter().enumerate() {
            let limit = match &self.supply {
                Some(limit) => {
                    limit.get(resource).copied().ok_or(RecordError::Resources { claimed: record.supply.len() })?
                }
                None => Fixed::MAX,
            };
            if *supply < Fixed::ZERO || *supply > limit.min(Fixed::MAX) {
                return Err(RecordError::Supply { resource, claimed: *supply, limit });
            }
        }
        if record.users.values().any(|sums| sums.terms.iter().any(|term| !term.is_in_range())) {
            return Err(RecordError::Range);
        }
        if record.users.keys().any(|user| user.len() > MAX_NAME_LEN) {
            return Err(RecordError::Name);
        }
        self.check_sums(&record.supply, record.users.values(), record.users.len())
    }

    /// Checks the sums of users over a supply: those of one node, or totals.
    pub(crate) fn check_sums<'a>(
        &self,
        supply: &[Fixed],
        users: impl Iterator<Item = &'a UserSums>,
        count: usize,
    ) -> Result<(), RecordError> {
        if count > self.users.min(MAX_USERS) {
            return Err(RecordError::Users { claimed: count, limit: self.users.min(MAX_USERS) });
        }
        let bounds = (self.terms)(supply);
        let mut sums = vec![Fixed::ZERO; bounds.len()];
        for user in users {
            if user.terms.len() != bounds.len() {
                return Err(RecordError::Terms { claimed: user.terms.len(), expected: bounds.len() });
            }
            sums.iter_mut().zip(&user.terms).for_each(|(sum, term)| *sum += term.abs());
        }
        match sums.iter().zip(&bounds).position(|(sum, bound)| sum > bound) {
            Some(term) => Err(RecordError::Sum { term, claimed: sums[term], limit: bounds[term] }),
            None => Ok(()),
        }
    }
}

/// Returns the product, rounded up so that a number exactly at a bound is within it, and saturated at the range.
fn product(a: Fixed, b: Fixed) -> Fixed {
    match a.units().checked_mul(b.units()) {
        Some(units) => Fixed::from_units((units >> 40) + i128::from(units & ((1 << 40) - 1) != 0)),
        // Too large for an exact product with 80 fraction bits; a float is precise enough for a bound.
        None => Fixed::from_f64(a.to_f64() * b.to_f64()).unwrap_or(Fixed::MAX),
    }
}

impl fmt::Debug for RecordLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordLimits").field("supply", &self.supply).field("users", &self.users).finish_non_exhaustive()
    }
}

/// Why a node's record does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The record was computed with other settings.
    #[error("its metric, resources or quotas differ (digest {theirs:016x}, here {ours:016x})")]
    Digest {
        /// The digest in the record.
        theirs: u64,
        /// The digest of this node.
        ours: u64,
    },
    /// Another process uses this node's name.
    #[error("it has the name of this node")]
    OwnName,
    /// A name is empty or longer than [`MAX_NAME_LEN`].
    #[error("a name in it is empty or too long")]
    Name,
    /// A number exceeds [`Fixed::MAX`].
    #[error("a number in it is out of range")]
    Range,
    /// The number of resources is wrong.
    #[error("it claims {claimed} resources")]
    Resources {
        /// The number of resources in the record.
        claimed: usize,
    },
    /// The supply is larger than that of any node.
    #[error("it claims {claimed} of resource {resource}; a node has at limit {limit}")]
    Supply {
        /// The index of the resource.
        resource: usize,
        /// The supply in the record.
        claimed: Fixed,
        /// The limit.
        limit: Fixed,
    },
    /// The number of terms differs from the metric's.
    #[error("it has {claimed} sums for each user, the metric has {expected}")]
    Terms {
        /// The number of terms in the record.
        claimed: usize,
        /// The number of the metric's terms.
        expected: usize,
    },
    /// The sum of a term exceeds what the supply allows.
    #[error("term {term} of its users sums to {claimed}; its supply allows {limit}")]
    Sum {
        /// The index of the term.
        term: usize,
        /// The sum of its absolute values.
        claimed: Fixed,
        /// The limit.
        limit: Fixed,
    },
    /// The record has too many users.
    #[error("it has {claimed} users; at limit {limit}")]
    Users {
        /// The number of users.
        claimed: usize,
        /// The limit.
        limit: usize,
    },
}
