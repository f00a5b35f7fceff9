//! The figures and the interactive page of a run of processes that alternate between time-shared resources, as in
//! Zeldes & Feitelson (2013).

mod client_colours;
mod figures;
mod from_simulation;
mod render_page;
mod script_data;

pub use figures::{draw_cumulative_use, draw_gantt, draw_mean_cumulative_use, draw_priorities};
pub use from_simulation::{mean_use_curves, recorded_priorities};
pub use render_page::render_processes_page;

use crate::chart::{Interval, pack_intervals};

/// One run of processes. Times are nanoseconds since the beginning of the run; clients and resources are indices
/// into `clients` and `resources`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessRun {
    /// Title of the run.
    pub title: String,
    /// Names of the clients. A client named after a colour, such as `red`, is drawn in that colour.
    pub clients: Vec<String>,
    /// Names of the resources.
    pub resources: Vec<String>,
    /// End of the run; no time is later.
    pub horizon_ns: u64,
    /// The uses of resources, in any order. Uses of one resource may overlap if it has several servers.
    pub uses: Vec<ResourceUse>,
    /// The periods in which resources are bottlenecks, in any order.
    pub bottlenecks: Vec<Bottleneck>,
    /// Events to mark, such as the end of a client.
    pub marks: Vec<Mark>,
    /// Rows (name, value) of the page's table about the run.
    pub details: Vec<(String, String)>,
}

/// An uninterrupted use of a resource by a client. A use of zero length is allowed and invisible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceUse {
    /// Index of the client.
    pub client: usize,
    /// Index of the resource.
    pub resource: usize,
    /// Beginning.
    pub from_ns: u64,
    /// End (exclusive).
    pub until_ns: u64,
}

/// A period in which a resource is a bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bottleneck {
    /// Index of the resource.
    pub resource: usize,
    /// Beginning.
    pub from_ns: u64,
    /// End (exclusive).
    pub until_ns: u64,
}

/// An event to mark on the time axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Time of the event.
    pub at_ns: u64,
    /// Index of the client that the event concerns, if any.
    pub client: Option<usize>,
    /// What happens.
    pub label: String,
}

/// An inconsistency in a [`ProcessRun`]. Positions count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProcessRunError {
    /// A client's index is not less than the number of clients.
    #[error("{what} {position} refers to client {client}, but there are only {count} clients, numbered from 0")]
    Client {
        /// `use` or `mark`.
        what: &'static str,
        /// Position in its list.
        position: usize,
        /// Index of the client.
        client: usize,
        /// Number of clients.
        count: usize,
    },
    /// A resource's index is not less than the number of resources.
    #[error("{what} {position} refers to resource {resource}, but there are only {count} resources, numbered from 0")]
    Resource {
        /// `use`, `bottleneck` or `figure`.
        what: &'static str,
        /// Position in its list.
        position: usize,
        /// Index of the resource.
        resource: usize,
        /// Number of resources.
        count: usize,
    },
    /// A period ends before it begins, or after the run.
    #[error(
        "{what} {position} lasts from {from_ns} to {until_ns} ns, which is not in order or not within {horizon_ns} ns"
    )]
    Times {
        /// `use`, `bottleneck` or `mark`.
        what: &'static str,
        /// Position in its list.
        position: usize,
        /// Beginning.
        from_ns: u64,
        /// End.
        until_ns: u64,
        /// End of the run.
        horizon_ns: u64,
    },
}

impl ProcessRun {
    /// Checks that all indices and times are valid.
    ///
    /// # Errors
    /// Returns an error that names the first invalid entry.
    pub fn validate(&self) -> Result<(), ProcessRunError> {
        let clients = |what, position, client| {
            let count = self.clients.len();
            if client < count { Ok(()) } else { Err(ProcessRunError::Client { what, position, client, count }) }
        };
        let resources = |what, position, resource| {
            let count = self.resources.len();
            if resource < count { Ok(()) } else { Err(ProcessRunError::Resource { what, position, resource, count }) }
        };
        let times = |what, position, from_ns, until_ns| {
            let horizon_ns = self.horizon_ns;
            let fits = from_ns <= until_ns && until_ns <= horizon_ns;
            if fits { Ok(()) } else { Err(ProcessRunError::Times { what, position, from_ns, until_ns, horizon_ns }) }
        };
        for (position, u) in self.uses.iter().enumerate() {
            clients("use", position, u.client)?;
            resources("use", position, u.resource)?;
            times("use", position, u.from_ns, u.until_ns)?;
        }
        for (position, b) in self.bottlenecks.iter().enumerate() {
            resources("bottleneck", position, b.resource)?;
            times("bottleneck", position, b.from_ns, b.until_ns)?;
        }
        for (position, mark) in self.marks.iter().enumerate() {
            mark.client.map_or(Ok(()), |client| clients("mark", position, client))?;
            times("mark", position, mark.at_ns, mark.at_ns)?;
        }
        Ok(())
    }

    /// Packs the uses of a resource into the minimum number of rows without overlap; adjacent uses merge.
    fn rows(&self, resource: usize) -> Vec<Vec<Interval<u64>>> {
        let own = self.uses.iter().filter(|u| u.resource == resource);
        let interval = |u: &ResourceUse| Interval { client: u.client, from: u.from_ns, until: u.until_ns };
        pack_intervals(&own.map(interval).collect::<Vec<_>>())
    }

    /// Returns the total use in nanoseconds as `[client][resource]`. Simultaneous uses of several servers each count.
    fn totals(&self) -> Vec<Vec<u64>> {
        let mut totals = vec![vec![0u64; self.resources.len()]; self.clients.len()];
        for u in &self.uses {
            let sum = &mut totals[u.client][u.resource];
            *sum = sum.saturating_add(u.until_ns - u.from_ns);
        }
        totals
    }
}

/// Converts nanoseconds to seconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a run of two clients on two resources; the name of one client contains HTML.
    pub(crate) fn small_run() -> ProcessRun {
        let used = |client, resource, from: u64, until: u64| ResourceUse {
            client,
            resource,
            from_ns: from * 100_000_000,
            until_ns: until * 100_000_000,
        };
        ProcessRun {
            title: "Two & two".into(),
            clients: vec!["</script><b>red".into(), "blue".into()],
            resources: vec!["CPU_CS".into(), "DISK_CS".into()],
            horizon_ns: 2_000_000_000,
            uses: vec![used(0, 0, 0, 5), used(1, 0, 5, 6), used(0, 0, 6, 8), used(0, 0, 8, 10), used(1, 1, 6, 20)],
            bottlenecks: vec![Bottleneck { resource: 0, from_ns: 900_000_000, until_ns: 1_000_000_000 }],
            marks: vec![Mark { at_ns: 1_000_000_000, client: Some(0), label: "ends".into() }],
            details: vec![("quantum".into(), "0.1 s".into())],
        }
    }

    #[test]
    fn invalid_indices_and_times_are_reported() {
        assert_eq!(small_run().validate(), Ok(()));
        let mut run = small_run();
        run.uses[1].client = 2;
        assert_eq!(run.validate(), Err(ProcessRunError::Client { what: "use", position: 1, client: 2, count: 2 }));
        run = small_run();
        run.bottlenecks[0].resource = 9;
        assert!(matches!(run.validate(), Err(ProcessRunError::Resource { what: "bottleneck", resource: 9, .. })));
        run = small_run();
        run.uses[4].until_ns += 1;
        assert!(matches!(run.validate(), Err(ProcessRunError::Times { what: "use", position: 4, .. })));
        run = small_run();
        run.marks[0].client = Some(2);
        assert!(matches!(run.validate(), Err(ProcessRunError::Client { what: "mark", .. })));
        run = small_run();
        run.bottlenecks[0].from_ns = 1_500_000_000;
        assert!(run.validate().unwrap_err().to_string().contains("not in order"));
    }

    #[test]
    fn totals_are_indexed_by_client_and_resource() {
        assert_eq!(small_run().totals(), [[900_000_000, 0], [100_000_000, 1_400_000_000]]);
    }
}
