//! Errors about nodes, clouds and metrics.

use thiserror::Error;

/// Why numbers do not describe a node or a cloud. Workloads, users and resources are numbered from 0.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeavinessError {
    /// There is no resource.
    #[error("at least one resource is needed")]
    NoResource,
    /// The number of values differs from the number of resources.
    #[error("{quantity} has {found} numbers, expected one for each of {expected} resources")]
    Length {
        /// The owner of the values, in words.
        quantity: &'static str,
        /// The number of values.
        found: usize,
        /// The expected number.
        expected: usize,
    },
    /// A number is negative or not finite.
    #[error("{quantity} (number {index}, resource {resource}) must be a finite number that is not negative")]
    InvalidQuantity {
        /// The quantity, in words.
        quantity: &'static str,
        /// The index of the workload or user; 0 for a node.
        index: usize,
        /// The index of the resource.
        resource: usize,
    },
    /// The speed factor of a node is 0.
    #[error("the speed factor of resource {resource} is 0, expected more")]
    ZeroSpeed {
        /// The index of the resource.
        resource: usize,
    },
    /// The owner of a workload is not a user of the cloud.
    #[error("workload {workload} belongs to user {owner}, but there are {users} users")]
    UnknownUser {
        /// The index of the workload.
        workload: usize,
        /// The index of its owner.
        owner: usize,
        /// The number of users.
        users: usize,
    },
    /// The index of a workload is out of range.
    #[error("there is no workload {workload}; the node has {workloads}")]
    UnknownWorkload {
        /// The index.
        workload: usize,
        /// The number of workloads.
        workloads: usize,
    },
}

/// Why a metric cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MetricError {
    /// The metric does not have this parameter.
    #[error("the metric {metric} has no parameter {parameter}")]
    UnknownParameter {
        /// The name of the metric.
        metric: &'static str,
        /// The name of the parameter.
        parameter: &'static str,
    },
    /// A parameter is out of range.
    #[error("{parameter} of the metric {metric} must be {expected}")]
    OutOfRange {
        /// The name of the metric.
        metric: &'static str,
        /// The name of the parameter.
        parameter: &'static str,
        /// The valid range, in words.
        expected: &'static str,
    },
}
