//! Limits on memory: what a workload needs is compared with them before it is allocated.

use evenhand_model::memory::{MemoryLimit, format_size, parse_size};
use evenhand_study::sweep::MemoryNeed;

use crate::failure::Failure;

/// Parses the size that an option gives.
pub(crate) fn parse_size_of(option: &str, text: &str) -> Result<u64, Failure> {
    let invalid = || Failure::Input(format!("{option}: found {text:?}, expected a size such as 8Gi"));
    parse_size(text).ok_or_else(invalid)
}

/// Returns the limit that `--memory` sets, or else what this process can get.
pub(crate) fn memory_limit(given: Option<u64>) -> MemoryLimit {
    given.map_or_else(MemoryLimit::of_this_process, MemoryLimit::of_option)
}

/// What makes a workload smaller that is read.
const IMPORT_LESS: &str = "import a part of the trace";

/// Checks that a workload with this number of tasks fits.
pub(crate) fn check_workload(name: &str, tasks: u64, limit: MemoryLimit) -> Result<(), Failure> {
    check(name, tasks, MemoryNeed::of_tasks(tasks).workload, "", (limit, IMPORT_LESS))
}

/// Checks that a workload fits that is generated with this number of tasks.
pub(crate) fn check_generated(option: &str, tasks: u64, limit: MemoryLimit) -> Result<(), Failure> {
    check(option, tasks, MemoryNeed::of_tasks(tasks).workload, "", (limit, "generate fewer tasks"))
}

/// Checks that a workload with this number of tasks fits with at least one run, and returns how many runs fit at a time.
pub(crate) fn runs_at_a_time(name: &str, tasks: u64, limit: MemoryLimit) -> Result<usize, Failure> {
    let need = MemoryNeed::of_tasks(tasks);
    check(name, tasks, need.minimum(), " with one run at a time", (limit, IMPORT_LESS))?;
    let runs = (limit.bytes - need.workload) / need.run.max(1);
    Ok(usize::try_from(runs).unwrap_or(usize::MAX).max(1))
}

/// `less`: what else makes it fit.
fn check(name: &str, tasks: u64, need: u64, with: &str, (limit, less): (MemoryLimit, &str)) -> Result<(), Failure> {
    if need <= limit.bytes {
        return Ok(());
    }
    Err(Failure::Environment(format!(
        "{name}: found {tasks} tasks, which need about {} of memory{with}; expected at most {} ({}). Pass a larger \
         --memory if there is more, use a machine that has more, or {less}",
        format_size(need),
        format_size(limit.bytes),
        limit.reason
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_runs_start_at_a_time_before_a_workload_is_refused() {
        let need = MemoryNeed::of_tasks(1_000_000);
        let runs = |bytes| runs_at_a_time("w", 1_000_000, MemoryLimit::of_option(bytes));
        assert_eq!(runs(need.minimum()).unwrap(), 1);
        assert_eq!(runs(need.workload + 5 * need.run).unwrap(), 5);
        let refused = runs(need.minimum() - 1).unwrap_err().to_string();
        assert!(refused.starts_with("w: found 1000000 tasks, which need about 84.3 MiB of memory"), "{refused}");
        assert!(check_workload("w", 1_000_000, MemoryLimit::of_option(need.workload)).is_ok());
    }
}
