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
    /// Which factors are plain numbers (`PriorityFlags=NO_NORMAL_…`).
    pub no_normal: NoNormal,
    /// The number of nodes, of which a job's part is half of its size; 0: the size is that of the processors alone.
    pub nodes: u32,
}

/// Factors that are the plain number instead of its part of the highest (of all for TRES): `PriorityFlags=NO_NORMAL_ASSOC` and so on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoNormal {
    /// The association's priority.
    pub association: bool,
    /// The partition's `PriorityJobFactor`.
    pub partition: bool,
    /// The quality of service's priority.
    pub qos: bool,
    /// What a job asks of each resource, in Slurm's units: processors, mebibytes.
    pub tres: bool,
}

impl NoNormal {
    /// The names of the factors, as in the settings.
    pub const NAMES: [&str; 4] = ["association", "partition", "qos", "tres"];

    /// Returns the flag of a factor by its name.
    pub fn flag(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "association" => &mut self.association,
            "partition" => &mut self.partition,
            "qos" => &mut self.qos,
            "tres" => &mut self.tres,
            _ => return None,
        })
    }

    /// Returns the names of the factors that are plain.
    pub fn names(mut self) -> Vec<&'static str> {
        NoNormal::NAMES.into_iter().filter(|name| self.flag(name).is_some_and(|flag| *flag)).collect()
    }
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
            no_normal: NoNormal::default(),
            nodes: 0,
        }
    }

    /// What jobs of an association get: its `Priority` over the highest, or that alone.
    pub(crate) fn association(&self, priority: u32, highest: u32) -> Rational {
        factor(self.no_normal.association, priority, highest)
    }

    /// What a partition's jobs get: its `PriorityJobFactor` over the highest, or that alone.
    pub(crate) fn partition(&self, queue: Option<u32>) -> Rational {
        let of_queue = queue.and_then(|q| self.partitions.get(q as usize)).copied().unwrap_or(1);
        factor(self.no_normal.partition, of_queue, self.highest_partition)
    }

    /// What jobs of a quality of service get: its `Priority` over the highest, or that alone.
    pub(crate) fn qos(&self, qos: Option<u32>) -> Rational {
        let of_qos = qos.and_then(|q| self.qos.get(q as usize)).copied().unwrap_or(0);
        factor(self.no_normal.qos, of_qos, self.highest_qos)
    }

    /// A job's part of the nodes; `None` where they are not counted. A job that names no number asks for one.
    pub(crate) fn part_of_nodes(&self, nodes: Option<u32>) -> Option<Rational> {
        (self.nodes > 0).then(|| super::normalised(nodes.unwrap_or(1), self.nodes))
    }
}

fn factor(plain: bool, priority: u32, highest: u32) -> Rational {
    if plain { priority.into() } else { super::normalised(priority, highest) }
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
