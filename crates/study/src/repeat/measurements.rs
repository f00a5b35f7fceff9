//! What is measured of each repeat of a run.

use serde::{Deserialize, Serialize};

use crate::record::RunRecord;

/// The measurements of one repeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Mean wait over all started tasks.
    pub mean_wait_s: Option<f64>,
    /// Mean over users of their mean waits.
    pub users_mean_wait_s: Option<f64>,
    /// Mean bounded slowdown over all started tasks.
    pub mean_bounded_slowdown: Option<f64>,
    /// Jain's index over users' mean waits.
    pub jain_wait: Option<f64>,
    /// By user, in the workload's order: the mean wait.
    pub waits: Vec<Option<f64>>,
}

impl Measured {
    /// Takes the measurements from the record of a run.
    pub fn of(run: &RunRecord) -> Measured {
        Measured {
            mean_wait_s: run.mean_wait_s,
            users_mean_wait_s: run.users_mean_wait_s,
            mean_bounded_slowdown: run.mean_bounded_slowdown,
            jain_wait: run.jain_wait,
            waits: run.users.iter().map(|user| user.mean_wait_s).collect(),
        }
    }
}
