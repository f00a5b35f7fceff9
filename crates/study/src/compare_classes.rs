//! Compares the classes of two runs: whom a policy serves better, sporadic users or heavy ones.

use serde::{Deserialize, Serialize};

use crate::class_results::BY_USE;
use crate::compare_runs::{Change, change};
use crate::record::RunRecord;

/// A class in one run against the same class in the run of the policy that all are compared with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassComparison {
    /// What separates the class from its counterpart: `use`, `size` or `length`.
    pub by: String,
    /// Its name.
    pub class: String,
    /// 1 - mean wait / mean wait in the other run; `None` if no task of it waits there.
    pub mean_wait_reduction: Option<f64>,
    /// The interval in which this reduction lies with 95 % probability in another repeat; absent without repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_wait_reduction_interval: Option<[f64; 2]>,
    /// Its users whose mean wait is lower. Only of classes by use: a user has tasks of several sizes and lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_better: Option<u64>,
    /// Its users whose mean wait is higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_worse: Option<u64>,
    /// Those of `users_better` that are beyond the noise; absent without repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_better_beyond_noise: Option<u64>,
    /// Those of `users_worse` that are beyond the noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_worse_beyond_noise: Option<u64>,
}

/// Returns the reduction of a wait; `None` if there is none to reduce.
pub(crate) fn reduction(wait: f64, base_wait: f64) -> Option<f64> {
    (base_wait > 0.0).then(|| 1.0 - wait / base_wait)
}

/// Compares each class of `run` with that of `base`. `heavy`: by user, whether it is in the class of heavy users.
pub(crate) fn compare_classes(run: &RunRecord, base: &RunRecord, heavy: &[bool]) -> Vec<ClassComparison> {
    let compared = run.classes.iter().filter_map(|class| {
        let other = base.classes.iter().find(|other| (&other.by, &other.class) == (&class.by, &class.class))?;
        let counts = (class.by == BY_USE).then(|| {
            let users = run.users.iter().zip(&base.users).zip(heavy);
            let of_class = users.filter(|(_, heavy)| **heavy == (class.class == "heavy"));
            let changes = of_class.filter_map(|((user, other), _)| Some(change(user.mean_wait_s?, other.mean_wait_s?)));
            changes.fold([0, 0], |[better, worse], change| match change {
                Change::Better => [better + 1, worse],
                Change::Worse => [better, worse + 1],
                Change::Same => [better, worse],
            })
        });
        Some(ClassComparison {
            by: class.by.clone(),
            class: class.class.clone(),
            mean_wait_reduction: class.mean_wait_s.zip(other.mean_wait_s).and_then(|(a, b)| reduction(a, b)),
            users_better: counts.map(|[better, _]| better),
            users_worse: counts.map(|[_, worse]| worse),
            ..ClassComparison::default()
        })
    });
    compared.collect()
}
