//! The settings of the policy, as an administrator sets them.

use evenhand_model::{Rational, Span};

use super::{FactorWeights, Fairshare};

/// The settings of the policy `multifactor`, in Slurm's terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `PriorityWeight…`, and `PriorityWeightTRES` by the workload's resources.
    pub weights: FactorWeights,
    /// `PriorityMaxAge`
    pub max_age: Span,
    /// The kind of fair-share factor (`PriorityFlags`).
    pub fairshare: Fairshare,
    /// `FairShareDampeningFactor`, for the classic and the depth-oblivious factor: greater than 0.
    pub damping: Rational,
    /// `PriorityFavorSmall`
    pub favor_small: bool,
    /// `PriorityFlags=SMALL_RELATIVE_TO_TIME`
    pub small_relative_to_time: bool,
    /// `PriorityJobFactor` of the partitions, by the workload's queues; one past the end has 1, as has the
    /// partition of jobs in no queue.
    pub partitions: Vec<u32>,
    /// The highest `PriorityJobFactor` of the site, which is that of some partition.
    pub highest_partition: u32,
    /// `Priority` of the qualities of service (sacctmgr), by the workload's; one past the end has 0, as has a job of none.
    pub qos: Vec<u32>,
    /// The highest `Priority` of the site.
    pub highest_qos: u32,
    /// The number of nodes, of which a job's part is half of its size; 0: the size is that of the processors alone.
    pub nodes: u32,
}

impl Settings {
    /// Returns the settings of a Slurm that sets none: weights 0, a maximal age of 7 days.
    pub fn unset() -> Settings {
        Settings {
            weights: FactorWeights::default(),
            max_age: Span::from_secs(7 * 86_400),
            fairshare: Fairshare::default(),
            damping: Rational::ONE,
            favor_small: false,
            small_relative_to_time: false,
            partitions: Vec::new(),
            highest_partition: 1,
            qos: Vec::new(),
            highest_qos: 0,
            nodes: 0,
        }
    }

    /// What a partition's jobs get: its `PriorityJobFactor` over the highest.
    pub(crate) fn partition(&self, queue: Option<u32>) -> Rational {
        let of_queue = queue.and_then(|q| self.partitions.get(q as usize)).copied().unwrap_or(1);
        super::normalised(of_queue, self.highest_partition)
    }

    /// What jobs of a quality of service get: its `Priority` over the highest.
    pub(crate) fn qos(&self, qos: Option<u32>) -> Rational {
        let of_qos = qos.and_then(|q| self.qos.get(q as usize)).copied().unwrap_or(0);
        super::normalised(of_qos, self.highest_qos)
    }

    /// A job's part of the nodes; `None` where they are not counted. A job that names no number asks for one.
    pub(crate) fn part_of_nodes(&self, nodes: Option<u32>) -> Option<Rational> {
        (self.nodes > 0).then(|| super::normalised(nodes.unwrap_or(1), self.nodes))
    }
}

impl Default for Settings {
    /// The configuration example of Slurm's documentation: weights age 1000, fairshare 10000, job size 1000 and
    /// partition 1000; a maximal age of 14 days; larger jobs first.
    fn default() -> Settings {
        let weights =
            FactorWeights { age: 1000, fairshare: 10_000, job_size: 1000, partition: 1000, ..FactorWeights::default() };
        Settings { weights, max_age: Span::from_secs(14 * 86_400), ..Settings::unset() }
    }
}
