//! What can be wrong with what this room is given.

use thiserror::Error;

/// Why numbers do not describe a node or a cloud. Guests, users and resources by number, from 0.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeavinessError {
    /// There is nothing to be burdened.
    #[error("at least one resource is needed")]
    NoResource,
    /// More or fewer numbers than resources.
    #[error("{what} has {found} numbers, expected one for each of {expected} resources")]
    Width {
        /// Whose.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many resources there are.
        expected: usize,
    },
    /// A number that is negative, infinite or none at all.
    #[error("{what} (number {index}, resource {resource}) must be a finite number that is not negative")]
    NotAQuantity {
        /// Which number.
        what: &'static str,
        /// Of which guest or user; 0 of a node.
        index: usize,
        /// Of which resource.
        resource: usize,
    },
    /// A node that does nothing in any time.
    #[error("the speed factor of resource {resource} is 0, expected more")]
    ZeroSpeed {
        /// Of which resource.
        resource: usize,
    },
    /// A guest whose owner the cloud does not know.
    #[error("guest {guest} belongs to user {owner}, but there are {users} users")]
    UnknownUser {
        /// Which guest.
        guest: usize,
        /// Its owner.
        owner: usize,
        /// How many users there are.
        users: usize,
    },
    /// A guest that is not there.
    #[error("there is no guest {guest}; the node has {guests}")]
    UnknownGuest {
        /// Which.
        guest: usize,
        /// How many there are.
        guests: usize,
    },
}

/// Why a metric cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MetricError {
    /// A parameter that this metric does not have.
    #[error("the metric {metric} has no parameter {parameter}")]
    UnknownParameter {
        /// Which metric.
        metric: &'static str,
        /// Which parameter.
        parameter: &'static str,
    },
    /// A parameter out of its range.
    #[error("{parameter} of the metric {metric} must be {expected}")]
    OutOfRange {
        /// Which metric.
        metric: &'static str,
        /// Which parameter.
        parameter: &'static str,
        /// What it may be.
        expected: &'static str,
    },
}
