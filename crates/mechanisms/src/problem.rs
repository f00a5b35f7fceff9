//! Problems: users with demands, weights and limits who share the capacity of several resources.

use evenhand_model::Rational;
use thiserror::Error;

use crate::Number;
use crate::account_tree::AccountTree;

/// User of a problem; amounts are shares of capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct User<N> {
    /// Weight, greater than 0.
    pub weight: N,
    /// Share of each resource's capacity that one task takes, d_ir / C_r; at least one is above 0.
    pub demand: Vec<N>,
    /// Largest number of tasks wanted (X_i); `None` for no limit.
    pub limit: Option<N>,
    /// Share of each resource's capacity that the user's past overuse committed (Sadok et al., 2021, Eq. 3); empty if
    /// none.
    pub commitment: Vec<N>,
}

impl<N: Number> User<N> {
    /// Creates a user of weight 1 without limit or commitment.
    pub fn new(demand: impl Into<Vec<N>>) -> User<N> {
        User { weight: N::one(), demand: demand.into(), limit: None, commitment: Vec::new() }
    }

    /// Sets the weight.
    #[must_use]
    pub fn weight(self, weight: N) -> User<N> {
        User { weight, ..self }
    }

    /// Sets the largest number of tasks wanted.
    #[must_use]
    pub fn limit(self, limit: N) -> User<N> {
        User { limit: Some(limit), ..self }
    }

    /// Sets the commitment of each resource.
    #[must_use]
    pub fn commitment(self, commitment: impl Into<Vec<N>>) -> User<N> {
        User { commitment: commitment.into(), ..self }
    }
}

/// Users with their demands, among whom every resource is divided at one instant.
///
/// Every resource has capacity 1, and a demand is the share of capacity that one task takes. Neither units nor the
/// names of users and resources can therefore influence a mechanism. A user who gets `x` tasks holds `x * demand[r]` of
/// every resource r and no more (Leontief preferences, no waste). Users and resources are numbered from 0.
///
/// ```
/// use evenhand_mechanisms::{Drf, Mechanism, MechanismOptions, Problem, User};
/// // The example of Ghodsi et al.: 9 CPUs and 18 GB; A's tasks take (1, 4), B's (3, 1).
/// let problem = Problem::new(2, [User::new([1.0 / 9.0, 4.0 / 18.0]), User::new([3.0 / 9.0, 1.0 / 18.0])]).unwrap();
/// let x = Drf.divide(&problem, &MechanismOptions::default()).unwrap().tasks;
/// assert!((x[0] - 3.0).abs() < 1e-12 && (x[1] - 2.0).abs() < 1e-12);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Problem<N> {
    /// Number of resources.
    width: usize,
    weights: Vec<N>,
    /// User-major: `demands[user * width + resource]`.
    demands: Vec<N>,
    limits: Vec<Option<N>>,
    has_limits: bool,
    /// User-major; empty if no user has any.
    commitments: Vec<N>,
    weight_sum: N,
    tree: Option<AccountTree<N>>,
    /// Entitlement per unit of weight, under the root and in each account; empty without a tree.
    entitlements: Vec<N>,
}

/// Reason why users do not form a valid problem. Users and resources are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProblemError {
    /// There is no resource to divide.
    #[error("a problem needs at least one resource")]
    NoResource,
    /// A user has demands or commitments for more or fewer resources than there are.
    #[error("user {user} has {found} quantities, expected one for each of {expected} resources")]
    WrongLength {
        /// The user.
        user: usize,
        /// Length of its demands or commitments.
        found: usize,
        /// Number of resources.
        expected: usize,
    },
    /// A number is negative, infinite or not a number.
    #[error("{what} of user {user} must be a finite number that is not negative")]
    InvalidNumber {
        /// The user.
        user: usize,
        /// Which number.
        what: &'static str,
    },
    /// A weight is 0.
    #[error("the weight of user {user} is 0, expected more")]
    ZeroWeight {
        /// The user.
        user: usize,
    },
    /// A user demands nothing, so that its number of tasks would be unbounded.
    #[error("user {user} demands no resource, expected a demand above 0 for at least one")]
    NoDemand {
        /// The user.
        user: usize,
    },
    /// The accounts are inconsistent, or do not fit the users.
    #[error("the account tree does not fit the problem: {0}")]
    Accounts(&'static str),
}

impl<N: Number> Problem<N> {
    /// Creates a problem of `width` resources.
    ///
    /// # Errors
    /// Returns an error if a number is negative, infinite or not a number, if a weight is 0, if all demands of a user
    /// are 0, or if a user has other than `width` demands (or commitments, unless it has none).
    pub fn new(width: usize, users: impl IntoIterator<Item = User<N>>) -> Result<Problem<N>, ProblemError> {
        if width == 0 {
            return Err(ProblemError::NoResource);
        }
        let users = users.into_iter();
        let expected = users.size_hint().0;
        let mut p = Problem {
            width,
            weights: Vec::with_capacity(expected),
            demands: Vec::with_capacity(expected * width),
            limits: Vec::with_capacity(expected),
            has_limits: false,
            commitments: Vec::new(),
            weight_sum: N::zero(),
            tree: None,
            entitlements: Vec::new(),
        };
        for (i, user) in users.enumerate() {
            p.push(i, user)?;
        }
        if !p.commitments.is_empty() {
            p.commitments.resize(p.weights.len() * width, N::zero());
        }
        Ok(p)
    }

    fn push(&mut self, i: usize, user: User<N>) -> Result<(), ProblemError> {
        let quantity = |n: &N, what| {
            // A NaN is not at least 0; infinity minus infinity is a NaN.
            if *n >= N::zero() && (n.clone() - n).is_zero() {
                Ok(())
            } else {
                Err(ProblemError::InvalidNumber { user: i, what })
            }
        };
        for (row, what) in [(&user.demand, "a demand"), (&user.commitment, "a commitment")] {
            if row.len() != self.width && !(what == "a commitment" && row.is_empty()) {
                return Err(ProblemError::WrongLength { user: i, found: row.len(), expected: self.width });
            }
            row.iter().try_for_each(|n| quantity(n, what))?;
        }
        quantity(&user.weight, "the weight")?;
        user.limit.iter().try_for_each(|n| quantity(n, "the limit of tasks"))?;
        if user.weight.is_zero() {
            return Err(ProblemError::ZeroWeight { user: i });
        }
        if user.demand.iter().all(N::is_zero) {
            return Err(ProblemError::NoDemand { user: i });
        }
        if user.commitment.iter().any(|c| !c.is_zero()) {
            self.commitments.resize(i * self.width, N::zero());
            self.commitments.extend(user.commitment);
        } else if !self.commitments.is_empty() {
            self.commitments.resize((i + 1) * self.width, N::zero());
        }
        self.weight_sum += &user.weight;
        self.weights.push(user.weight);
        self.demands.extend(user.demand);
        self.has_limits |= user.limit.is_some();
        self.limits.push(user.limit);
        Ok(())
    }

    /// Places the users in accounts.
    ///
    /// # Errors
    /// Returns an error if the tree is for another number of users.
    pub fn with_accounts(mut self, tree: AccountTree<N>) -> Result<Problem<N>, ProblemError> {
        if tree.users() != self.users() {
            return Err(ProblemError::Accounts("its number of users differs"));
        }
        self.entitlements = tree.entitlements(&self.weights);
        self.tree = Some(tree);
        Ok(self)
    }

    /// Returns the number of users.
    pub fn users(&self) -> usize {
        self.weights.len()
    }

    /// Returns the number of resources.
    pub fn resource_count(&self) -> usize {
        self.width
    }

    /// Returns a user's weight.
    ///
    /// # Panics
    /// This and the other methods that take a user panic if there is no such user.
    pub fn weight(&self, user: usize) -> &N {
        &self.weights[user]
    }

    /// Returns the share of each resource's capacity that one task of the user takes.
    #[inline]
    pub fn demand(&self, user: usize) -> &[N] {
        &self.demands[user * self.width..][..self.width]
    }

    /// Returns the demands of all users, user-major.
    pub(crate) fn demands(&self) -> &[N] {
        &self.demands
    }

    /// Returns the largest number of tasks the user wants; `None` for no limit.
    #[inline]
    pub fn limit(&self, user: usize) -> Option<&N> {
        self.limits[user].as_ref()
    }

    /// Returns whether any user has a limit.
    pub fn has_limits(&self) -> bool {
        self.has_limits
    }

    /// Returns all weights, and all demands user-major, for loops over many users.
    pub(crate) fn rows(&self) -> (&[N], &[N]) {
        (&self.weights, &self.demands)
    }

    /// Returns the user's commitment of each resource; `None` if no user has any.
    pub fn commitment(&self, user: usize) -> Option<&[N]> {
        (!self.commitments.is_empty()).then(|| &self.commitments[user * self.width..][..self.width])
    }

    /// Returns the tree of accounts, if there is one.
    pub fn account_tree(&self) -> Option<&AccountTree<N>> {
        self.tree.as_ref()
    }

    /// Returns e_i, the share of every resource that the user is entitled to: w_i / sum w, or with accounts the product
    /// of such fractions on the way down to the user. Accounts without users do not count, so all entitlements add up
    /// to 1.
    pub fn entitlement(&self, user: usize) -> N {
        match &self.tree {
            Some(tree) => {
                self.weights[user].clone() * &self.entitlements[tree.account_of(user).map_or(0, |account| account + 1)]
            }
            None => self.weights[user].clone() / &self.weight_sum,
        }
    }

    /// Returns the user's dominant resource: the one of which its tasks take the largest share, the first of several.
    pub fn dominant_resource(&self, user: usize) -> usize {
        let row = self.demand(user);
        (1..row.len()).fold(0, |best, r| if row[r] > row[best] { r } else { best })
    }

    /// Returns the share of the user's dominant resource that one task takes; above 0.
    pub fn dominant_demand(&self, user: usize) -> &N {
        let row = self.demand(user);
        row.iter().fold(&row[0], |largest, d| if d > largest { d } else { largest })
    }

    /// Returns the share of each resource that is allocated if user i has `tasks[i]` tasks. O(users × resources).
    pub fn loads(&self, tasks: &[N]) -> Vec<N> {
        let mut loads = vec![N::zero(); self.width];
        for (row, x) in self.demands.chunks_exact(self.width).zip(tasks) {
            for (load, d) in loads.iter_mut().zip(row) {
                // Most exact demands of large problems are zero.
                if !d.is_zero() {
                    *load += &(x.clone() * d);
                }
            }
        }
        loads
    }

    /// Returns whether the user has all the tasks it wants, within [`Number::rounding`].
    pub fn is_satisfied(&self, user: usize, tasks: &N) -> bool {
        self.limits[user].as_ref().is_some_and(|limit| *tasks >= limit.clone() * (N::one() - N::rounding()))
    }

    /// Returns a copy of the user.
    pub fn user(&self, user: usize) -> User<N> {
        User {
            weight: self.weights[user].clone(),
            demand: self.demand(user).to_vec(),
            limit: self.limits[user].clone(),
            commitment: self.commitment(user).map(<[N]>::to_vec).unwrap_or_default(),
        }
    }

    /// Returns the problem with one user replaced; `None` if the result is not valid (see [`new`](Self::new)).
    ///
    /// # Panics
    /// Panics if there is no such user.
    pub fn replace_user(&self, user: usize, declared: User<N>) -> Option<Problem<N>> {
        let mut users: Vec<User<N>> = (0..self.users()).map(|i| self.user(i)).collect();
        users[user] = declared;
        let replaced = Problem::new(self.width, users).ok()?;
        match &self.tree {
            Some(tree) => replaced.with_accounts(tree.clone()).ok(),
            None => Some(replaced),
        }
    }

    /// Converts every number of the problem and of its tree.
    fn map<M: Number>(&self, f: impl Fn(&N) -> Option<M>) -> Option<Problem<M>> {
        let row = |v: &[N]| v.iter().map(&f).collect::<Option<Vec<M>>>();
        let weights = row(&self.weights)?;
        let tree = match &self.tree {
            Some(tree) => Some(tree.map(&f)?),
            None => None,
        };
        Some(Problem {
            width: self.width,
            entitlements: tree.as_ref().map_or_else(Vec::new, |tree| tree.entitlements(&weights)),
            weights,
            demands: row(&self.demands)?,
            limits: self
                .limits
                .iter()
                .map(|l| l.as_ref().map(&f).map_or(Some(None), |l| l.map(Some)))
                .collect::<Option<_>>()?,
            has_limits: self.has_limits,
            commitments: row(&self.commitments)?,
            weight_sum: f(&self.weight_sum)?,
            tree,
        })
    }

    /// Converts the problem to exact numbers, without loss.
    pub fn to_exact(&self) -> Problem<Rational> {
        let exact = self.map(N::to_exact).expect("numbers of a problem are finite");
        let weight_sum = exact.weights.iter().fold(Rational::ZERO, |a, w| a + w);
        Problem { weight_sum, ..exact }
    }
}

impl Problem<Rational> {
    /// Returns the same problem in another arithmetic, every number rounded once, or `None` if a number above 0
    /// rounds to 0 or one is too large: in that arithmetic it would be another problem.
    pub fn convert<M: Number>(&self) -> Option<Problem<M>> {
        self.map(|exact| {
            let rounded = M::from_exact(exact);
            let is_in_range = M::EXACT || rounded.to_f64().is_finite();
            (is_in_range && rounded.is_zero() == exact.is_zero()).then_some(rounded)
        })
    }

    /// Returns the same problem in `f64`; see [`convert`](Self::convert).
    pub fn to_f64(&self) -> Option<Problem<f64>> {
        self.convert()
    }
}
