//! What the jobs of a trace state of their nodes, beside amounts.

use evenhand_model::{Detail, Details, Requirements, Workload, counted};

/// How many jobs, with how much use of the first resource, state on how many nodes they run.
#[derive(Default)]
pub(super) struct NodesStated {
    jobs: u64,
    hours: f64,
    resource: String,
    details: Details<u64>,
    whole_machines: u64,
    /// How many state chunks that are equal.
    equal_chunks: u64,
    other_request: u64,
}

impl NodesStated {
    /// Adds rows, in their order.
    pub(super) fn add(&mut self, workload: &Workload) {
        let Some(resource) = workload.resources().first() else { return };
        self.resource.clone_from(&resource.name);
        for row in (0..workload.len()).filter(|row| workload.nodes(*row).is_some()) {
            let of_row =
                resource.value(workload.amounts(row)[0]) * workload.columns().duration[row].secs_f64() / 3600.0;
            self.hours += of_row * f64::from(workload.count(row));
            self.jobs += 1;
        }
        self.other_request += workload.rows_with_requested_amounts() as u64;
        for (detail, jobs) in self.details.iter_mut() {
            *jobs += (0..workload.len()).filter(|row| workload.detail_id(detail, *row).is_some()).count() as u64;
        }
        let is_whole: Vec<bool> =
            workload.details(Detail::Requires).iter().map(|text| Requirements::parse(text).whole_machines).collect();
        let ids = (0..workload.len()).filter_map(|row| workload.detail_id(Detail::Requires, row));
        self.whole_machines += ids.filter(|id| is_whole[*id as usize]).count() as u64;
        let is_equal: Vec<bool> = workload.details(Detail::Chunks).iter().map(|text| !text.contains('+')).collect();
        let ids = (0..workload.len()).filter_map(|row| workload.detail_id(Detail::Chunks, row));
        self.equal_chunks += ids.filter(|id| is_equal[*id as usize]).count() as u64;
    }

    pub(super) fn sentences(&self) -> Vec<String> {
        let nodes = (self.jobs > 0).then(|| {
            let jobs = counted(self.jobs, "job has", "jobs have");
            format!("{jobs} a stated number of nodes ({:.0} {} hours).", self.hours, self.resource)
        });
        let with = |jobs: u64, one: &str, many: &str, what: &str| {
            (jobs > 0).then(|| format!("{} {what}.", counted(jobs, &format!("job {one}"), &format!("jobs {many}"))))
        };
        let states = |detail, what| with(self.details[detail], "states", "state", what);
        let details = [
            with(self.details[Detail::Chunks] - self.equal_chunks, "states", "state", "nodes of different sizes"),
            with(self.equal_chunks, "states", "state", "equal chunks"),
            states(Detail::Requires, "requirements on machines"),
            with(self.whole_machines, "requires", "require", "whole machines"),
            states(Detail::Machines, "the machines used"),
            with(
                self.other_request,
                "requests",
                "request",
                "other amounts than allocated; --processors requested takes those",
            ),
        ];
        nodes.into_iter().chain(details.into_iter().flatten()).collect()
    }
}
