//! Jobs without their memory, for sites whose Slurm does not count it.

use evenhand_model::Workload;

use crate::failure::Failure;
use crate::output::console::Console;

/// The resource that Slurm counts only where SelectTypeParameters has `_Memory`.
const MEMORY: &str = "mem";

/// Leaves the memory of jobs out, and prints a note that says so. A workload without memory, or of nothing else, stays as it is.
pub(super) fn leave_memory_out(workload: Workload, console: &Console) -> Result<Workload, Failure> {
    let memory = workload.resources().iter().position(|resource| resource.name == MEMORY);
    let Some(memory) = memory.filter(|_| workload.resources().len() > 1) else {
        return Ok(workload);
    };
    console.note(
        "This Slurm does not count memory (SelectTypeParameters without _Memory): the memory of jobs is left out, and holds no \
         job back.",
    );
    workload.without_resource(memory).map_err(Failure::input)
}
