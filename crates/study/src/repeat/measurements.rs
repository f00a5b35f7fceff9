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
    /// Tasks that end in the time of the log's submissions; only where users react.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_in_window: Option<u64>,
    /// By user, in the workload's order: when it has finished; empty where submissions are those of the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finishes: Vec<Option<f64>>,
    /// By class of users and tasks, in the order of the record: the mean wait, and the mean bounded slowdown. A class
    /// without started tasks has neither.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<[Option<f64>; 2]>,
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
            tasks_in_window: run.work.as_ref().map(|work| work.tasks_in_window),
            finishes: run.work.iter().flat_map(|_| run.users.iter().map(|user| user.finish_s)).collect(),
            classes: run.classes.iter().map(|class| [class.mean_wait_s, class.mean_bounded_slowdown]).collect(),
            waits: run.users.iter().map(|user| user.mean_wait_s).collect(),
        }
    }
}
