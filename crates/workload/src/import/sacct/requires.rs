//! What a job requires of nodes: features, types of GPUs, and how it asked to lie on them.

use evenhand_model::{JobTasks, Requirements};

use super::tasks::{self, Asked};
use super::whole_nodes;

/// Returns features, the words of types of GPUs, and words for whole nodes, or for tasks that are not divided evenly among nodes, as
/// [`Requirements`](evenhand_model::Requirements). Jobs with GPUs, which are asked for by node, have no such tasks.
pub(in crate::import) fn with_layout(
    features: Option<String>,
    gpu_types: Vec<String>,
    asked: Asked<'_>,
    has_gpus: bool,
) -> Option<String> {
    let word = match asked.command.is_some_and(whole_nodes::are_asked_for) {
        true => Some(Requirements::WHOLE_MACHINES.to_string()),
        false => tasks::of_job(asked).filter(|_| !has_gpus).map(JobTasks::word),
    };
    let words: Vec<String> =
        features.into_iter().filter(|words| !words.is_empty()).chain(gpu_types).chain(word).collect();
    (!words.is_empty()).then(|| words.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_come_first() {
        let found = |features: Option<&str>, command: &str, has_gpus: bool| {
            let asked = Asked { command: Some(command), processors: 4, least_nodes: Some(1), nodes: Some(1) };
            let types = if has_gpus { vec!["gpu:l4".to_string()] } else { Vec::new() };
            with_layout(features.map(String::from), types, asked, has_gpus).unwrap_or_default()
        };
        assert_eq!(found(Some("ib,ssd"), "sbatch -n 4 a", false), "ib,ssd,#tasks=1");
        assert_eq!(found(Some("ib"), "sbatch -n 4 --exclusive a", false), "ib,#excl");
        assert_eq!(found(None, "sbatch -n 2 -c 2 a", false), "#tasks=2");
        assert_eq!([found(None, "sbatch -n 4 a", true), found(Some(""), "sbatch a", false)], ["gpu:l4", ""]);
        assert_eq!(found(Some("ib"), "sbatch --exclusive a", true), "ib,gpu:l4,#excl");
    }
}
