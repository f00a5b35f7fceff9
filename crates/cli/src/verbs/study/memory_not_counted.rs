//! Jobs without their memory, for sites whose Slurm does not count it.

use evenhand_model::{Amount, Detail, Details, Nano, Resource, Task, Workload, WorkloadBuilder, WorkloadError};

use crate::failure::Failure;
use crate::output::console::Console;

/// The resource that Slurm counts only where SelectTypeParameters has `_Memory`.
const MEMORY: &str = "mem";

/// The decimals of the amounts that a builder takes.
const DECIMALS: u32 = 9;

/// Leaves the memory of jobs out, and prints a note that says so. A workload without memory, or of nothing else, stays as it is.
pub(super) fn leave_memory_out(workload: Workload, console: &Console) -> Result<Workload, Failure> {
    let Some(memory) = workload.resources().iter().position(|resource| resource.name == MEMORY) else {
        return Ok(workload);
    };
    if workload.resources().len() == 1 {
        return Ok(workload);
    }
    console.note(
        "This Slurm does not count memory (SelectTypeParameters without _Memory): the memory of jobs is left out, and holds no \
         job back.",
    );
    without(&workload, memory).map_err(Failure::input)
}

/// The workload without one of its resources.
fn without(workload: &Workload, left_out: usize) -> Result<Workload, WorkloadError> {
    let kept: Vec<usize> = (0..workload.resources().len()).filter(|r| *r != left_out).collect();
    let name = workload.resources()[left_out].name.as_str();
    let resource = |r: &usize| Resource::new(&workload.resources()[*r].name, &workload.resources()[*r].unit);
    let mut builder = WorkloadBuilder::new(kept.iter().map(resource));
    for (key, value) in workload.header() {
        builder.add_header(key, value);
    }
    let held_decimals: Vec<u8> = workload.resources().iter().map(|resource| resource.decimals).collect();
    let amounts = |all: &[Amount], decimals: &[u8]| -> Vec<Nano> {
        let nano = |r: &usize| Nano::from(all[*r].0) * Nano::from(10_u32).pow(DECIMALS - u32::from(decimals[*r]));
        kept.iter().map(nano).collect()
    };
    let c = workload.columns();
    for row in 0..workload.len() {
        let chunks = workload.detail(Detail::Chunks, row).map(|text| chunks_without(text, name));
        let held = amounts(workload.amounts(row), &held_decimals);
        let requested = workload.requested_amounts(row).map(|all| amounts(all, workload.requested_decimals()));
        let mut details = Details::from_fn(|detail| workload.detail(detail, row));
        details[Detail::Chunks] = chunks.as_deref();
        builder.push(&Task {
            submit: c.submit[row],
            start: workload.start(row),
            duration: c.duration[row],
            eligible: workload.eligible(row),
            requested: workload.requested(row),
            user: &workload.users()[c.user[row].index()],
            account: workload.account(row),
            queue: workload.queue(row),
            amounts: &held,
            requested_amounts: requested.as_deref(),
            count: workload.count(row),
            nodes: workload.nodes(row),
            details,
        });
    }
    builder.finish()
}

/// Chunks, in the notation of [`evenhand_model::Chunk::parse_all`], without a resource.
fn chunks_without(text: &str, name: &str) -> String {
    let is_kept = |field: &&str| field.split('=').next().is_none_or(|key| key.trim() != name);
    let chunk = |chunk: &str| chunk.split([':', ',']).filter(is_kept).collect::<Vec<_>>().join(":");
    text.split('+').map(chunk).collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::{Span, Time};

    #[test]
    fn everything_but_the_resource_is_kept() {
        let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "MiB")]);
        let nano = |cpu: Nano, mem: Nano| [cpu, mem * 1_000_000_000];
        let (half, two) = (nano(500_000_000, 7), nano(2_000_000_000, 9));
        let mut details = Details::default();
        details[Detail::Chunks] = Some("2:cpu=1:mem=4+cpu=2,mem=8");
        details[Detail::Qos] = Some("long");
        let task = Task {
            submit: Time::from_secs(5),
            start: Some(Time::from_secs(9)),
            duration: Span::from_secs(60),
            requested: Some(Span::from_secs(90)),
            user: "ann",
            account: Some("art"),
            queue: Some("main"),
            amounts: &two,
            requested_amounts: Some(&half),
            nodes: Some(3),
            details,
            ..Task::default()
        };
        builder.push(&task);
        builder.push(&Task { amounts: &half, requested_amounts: None, details: Details::default(), ..task });
        builder.add_header("UnixStartTime", "100");
        let all = builder.finish().unwrap();
        let kept = without(&all, 1).unwrap();
        assert_eq!(kept.resources().iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["cpu"]);
        assert_eq!((kept.amounts(0), kept.amounts(1)), (&all.amounts(0)[..1], &all.amounts(1)[..1]));
        assert_eq!(kept.requested_amounts(0), all.requested_amounts(0).map(|amounts| &amounts[..1]));
        assert_eq!(kept.detail(Detail::Chunks, 0), Some("2:cpu=1+cpu=2"));
        assert_eq!((kept.detail(Detail::Qos, 0), kept.header(), kept.nodes(0)), (Some("long"), all.header(), Some(3)));
        let (a, b) = (kept.columns(), all.columns());
        assert_eq!((&a.submit, &a.start, &a.duration, &a.requested), (&b.submit, &b.start, &b.duration, &b.requested));
        assert_eq!((kept.account(0), kept.queue(0), kept.users()), (Some("art"), Some("main"), all.users()));
    }
}
