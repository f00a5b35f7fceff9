//! What a peer may claim.

use std::fmt;
use std::sync::Arc;

use crate::exchange::record::{MOST_NAME, MOST_TERMS};
use crate::exchange::{Fixed, MOST_USERS, Record, UserSums};

/// From a supply by resource to the most that the absolute values of each term may sum up to over users.
pub type Bounds = Arc<dyn Fn(&[Fixed]) -> Vec<Fixed> + Send + Sync>;

/// What a node may claim. A node that lies within these shifts heaviness by no more than what it supplies
/// allows: without them one node could make any user infinitely heavy.
#[derive(Clone)]
pub struct Limits {
    /// The most that one node has of each resource. `None`: unknown, the supply of a node is believed.
    pub supply: Option<Vec<Fixed>>,
    /// The most of each term, from the supply. It must grow with it, and the bound of a sum of supplies be at
    /// least the sum of their bounds: then it holds for totals too.
    pub terms: Bounds,
    /// The most users of a record and of totals. At most [`MOST_USERS`].
    pub users: usize,
}

impl Limits {
    /// One term a resource, of which the absolute values sum up to at most `factor` times the supply.
    ///
    /// For the metric `deviation` (and `greediness`): endowments sum up to at most the supply, and so do
    /// loads; a term e + beta (u - e)+ - gamma (e - u)+ with beta > 1 > gamma lies between 0 and
    /// e + beta u, so 1 + beta does. Leave a margin: loads are measured, and a meter may show a little more
    /// than there is.
    #[must_use]
    pub fn by_factor(factor: Fixed) -> Limits {
        let terms = move |supply: &[Fixed]| supply.iter().map(|supply| product(*supply, factor)).collect();
        Limits { supply: None, terms: Arc::new(terms), users: MOST_USERS }
    }

    /// Whether a record keeps within.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self, record: &Record) -> Result<(), Refusal> {
        if record.node.is_empty() || record.node.len() > MOST_NAME {
            return Err(Refusal::Name);
        }
        if record.supply.len() > MOST_TERMS {
            return Err(Refusal::Resources { claimed: record.supply.len() });
        }
        for (resource, supply) in record.supply.iter().enumerate() {
            let most = match &self.supply {
                Some(most) => most.get(resource).copied().ok_or(Refusal::Resources { claimed: record.supply.len() })?,
                None => Fixed::MAX,
            };
            if *supply < Fixed::ZERO || *supply > most.min(Fixed::MAX) {
                return Err(Refusal::Supply { resource, claimed: *supply, most });
            }
        }
        if record.users.values().any(|sums| sums.terms.iter().any(|term| !term.is_in_range())) {
            return Err(Refusal::Range);
        }
        if record.users.keys().any(|user| user.len() > MOST_NAME) {
            return Err(Refusal::Name);
        }
        self.check_sums(&record.supply, record.users.values(), record.users.len())
    }

    /// Whether sums over a supply keep within: a node's, or those of all.
    pub(crate) fn check_sums<'a>(
        &self,
        supply: &[Fixed],
        users: impl Iterator<Item = &'a UserSums>,
        count: usize,
    ) -> Result<(), Refusal> {
        if count > self.users.min(MOST_USERS) {
            return Err(Refusal::Users { claimed: count, most: self.users.min(MOST_USERS) });
        }
        let bounds = (self.terms)(supply);
        let mut sums = vec![Fixed::ZERO; bounds.len()];
        for user in users {
            if user.terms.len() != bounds.len() {
                return Err(Refusal::Terms { claimed: user.terms.len(), expected: bounds.len() });
            }
            sums.iter_mut().zip(&user.terms).for_each(|(sum, term)| *sum += term.abs());
        }
        match sums.iter().zip(&bounds).position(|(sum, bound)| sum > bound) {
            Some(term) => Err(Refusal::Sum { term, claimed: sums[term], most: bounds[term] }),
            None => Ok(()),
        }
    }
}

/// Rounded up, so that what is exactly at a bound is within; the end of the range beyond it.
fn product(a: Fixed, b: Fixed) -> Fixed {
    match a.units().checked_mul(b.units()) {
        Some(units) => Fixed::from_units((units >> 40) + i128::from(units & ((1 << 40) - 1) != 0)),
        // Too large for an exact product of 80 fraction bits: floats are near enough for a bound.
        None => Fixed::from_f64(a.to_f64() * b.to_f64()).unwrap_or(Fixed::MAX),
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits").field("supply", &self.supply).field("users", &self.users).finish_non_exhaustive()
    }
}

/// Why a node does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It says things about other settings.
    #[error("its metric, resources or quotas are others (digest {theirs:016x}, here {ours:016x})")]
    Digest {
        /// What it has.
        theirs: u64,
        /// What this node has.
        ours: u64,
    },
    /// Another program says that it is this node.
    #[error("it has the name of this node")]
    OwnName,
    /// A name that is empty or longer than [`MOST_NAME`].
    #[error("a name in it is empty or too long")]
    Name,
    /// A number beyond [`Fixed::MAX`].
    #[error("a number in it is out of range")]
    Range,
    /// Not the resources that there are.
    #[error("it claims {claimed} resources")]
    Resources {
        /// How many.
        claimed: usize,
    },
    /// More than one node can have.
    #[error("it claims {claimed} of resource {resource}; a node has at most {most}")]
    Supply {
        /// Which, by index.
        resource: usize,
        /// So much.
        claimed: Fixed,
        /// The limit.
        most: Fixed,
    },
    /// Not as many terms as the metric has.
    #[error("it has {claimed} sums a user, the metric {expected}")]
    Terms {
        /// So many.
        claimed: usize,
        /// So many there should be.
        expected: usize,
    },
    /// More than what it supplies allows.
    #[error("term {term} of its users sums up to {claimed}; its supply allows {most}")]
    Sum {
        /// Which, by index.
        term: usize,
        /// So much.
        claimed: Fixed,
        /// The limit.
        most: Fixed,
    },
    /// Too many users.
    #[error("it has {claimed} users; at most {most}")]
    Users {
        /// So many.
        claimed: usize,
        /// The limit.
        most: usize,
    },
}
