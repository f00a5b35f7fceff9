//! A run of processes that alternate between time-shared resources: its figures, and a page to look into it.

mod colours;
mod encode;
mod figures;
mod page;
mod simulated;

pub use figures::{draw_gantt, draw_mean_use, draw_priorities, draw_use};
pub use page::process_page;
pub use simulated::{means, priorities};

use crate::chart::{Interval, rows};

/// One run, as its figures and its page show it. Times are nanoseconds since the run's beginning; clients
/// and resources are numbers in the lists of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessRun {
    /// What the run is called.
    pub title: String,
    /// The names of the clients. One named like a colour (paper 000: red, blue, green) is drawn in it.
    pub clients: Vec<String>,
    /// The names of the resources.
    pub resources: Vec<String>,
    /// When the run ends; nothing is later.
    pub horizon_ns: u64,
    /// Who uses what when, in any order. Uses of one resource may overlap if it has several servers.
    pub uses: Vec<Use>,
    /// When resources are bottlenecks, in any order.
    pub bottlenecks: Vec<Bottleneck>,
    /// What happens at an instant, such as a client's end.
    pub marks: Vec<Mark>,
    /// What is to be known of the run: what, and its value. For the page.
    pub facts: Vec<(String, String)>,
}

/// An uninterrupted use of a resource by a client. It may be of no length, and is then not to be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Whose.
    pub client: usize,
    /// Of which resource.
    pub resource: usize,
    /// From when.
    pub from_ns: u64,
    /// Until when.
    pub until_ns: u64,
}

/// A time in which a resource is a bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bottleneck {
    /// Which resource.
    pub resource: usize,
    /// From when.
    pub from_ns: u64,
    /// Until when.
    pub until_ns: u64,
}

/// Something that happens at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at_ns: u64,
    /// To which client, if to one.
    pub client: Option<usize>,
    /// What.
    pub label: String,
}

/// Why a run cannot be shown. Positions count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A client's number is not less than the number of clients.
    #[error("{what} {position} is of client {client}, but there are {count}, numbered from 0")]
    Client {
        /// A use or a mark.
        what: &'static str,
        /// Its position in its list.
        position: usize,
        /// The client.
        client: usize,
        /// How many there are.
        count: usize,
    },
    /// A resource's number is not less than the number of resources.
    #[error("{what} {position} is of resource {resource}, but there are {count}, numbered from 0")]
    Resource {
        /// A use or a bottleneck.
        what: &'static str,
        /// Its position in its list.
        position: usize,
        /// The resource.
        resource: usize,
        /// How many there are.
        count: usize,
    },
    /// Something ends before it begins, or after the run.
    #[error(
        "{what} {position} is from {from_ns} to {until_ns} ns, which is not in order or not within {horizon_ns} ns"
    )]
    Times {
        /// A use, a bottleneck or a mark.
        what: &'static str,
        /// Its position in its list.
        position: usize,
        /// Its beginning.
        from_ns: u64,
        /// Its end.
        until_ns: u64,
        /// The end of the run.
        horizon_ns: u64,
    },
}

impl ProcessRun {
    /// Checks that all numbers and times are of this run.
    ///
    /// # Errors
    /// Names the first thing that is not.
    pub fn check(&self) -> Result<(), RunError> {
        let clients = |what, position, client| {
            let count = self.clients.len();
            if client < count { Ok(()) } else { Err(RunError::Client { what, position, client, count }) }
        };
        let resources = |what, position, resource| {
            let count = self.resources.len();
            if resource < count { Ok(()) } else { Err(RunError::Resource { what, position, resource, count }) }
        };
        let times = |what, position, from_ns, until_ns| {
            let horizon_ns = self.horizon_ns;
            let fits = from_ns <= until_ns && until_ns <= horizon_ns;
            if fits { Ok(()) } else { Err(RunError::Times { what, position, from_ns, until_ns, horizon_ns }) }
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

    /// The uses of a resource in as few rows as hold them without overlap; what meets is merged.
    fn rows(&self, resource: usize) -> Vec<Vec<Interval<u64>>> {
        let own = self.uses.iter().filter(|u| u.resource == resource);
        let interval = |u: &Use| Interval { client: u.client, from: u.from_ns, until: u.until_ns };
        rows(&own.map(interval).collect::<Vec<_>>())
    }

    /// The use of each client of each resource, in nanoseconds, by client. Where a client uses several
    /// servers at once, each counts.
    fn totals(&self) -> Vec<Vec<u64>> {
        let mut totals = vec![vec![0u64; self.resources.len()]; self.clients.len()];
        for u in &self.uses {
            let sum = &mut totals[u.client][u.resource];
            *sum = sum.saturating_add(u.until_ns - u.from_ns);
        }
        totals
    }
}

/// Seconds: the number nearest to so many nanoseconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two clients on two resources, one of them with a name that is not to be trusted.
    pub(crate) fn small() -> ProcessRun {
        let used = |client, resource, from: u64, until: u64| Use {
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
            facts: vec![("quantum".into(), "0.1 s".into())],
        }
    }

    #[test]
    fn what_is_not_of_the_run_is_named() {
        assert_eq!(small().check(), Ok(()));
        let mut run = small();
        run.uses[1].client = 2;
        assert_eq!(run.check(), Err(RunError::Client { what: "use", position: 1, client: 2, count: 2 }));
        run = small();
        run.bottlenecks[0].resource = 9;
        assert!(matches!(run.check(), Err(RunError::Resource { what: "bottleneck", resource: 9, .. })));
        run = small();
        run.uses[4].until_ns += 1;
        assert!(matches!(run.check(), Err(RunError::Times { what: "use", position: 4, .. })));
        run = small();
        run.marks[0].client = Some(2);
        assert!(matches!(run.check(), Err(RunError::Client { what: "mark", .. })));
        run = small();
        run.bottlenecks[0].from_ns = 1_500_000_000;
        assert!(run.check().unwrap_err().to_string().contains("not in order"));
    }

    #[test]
    fn totals_are_by_client_and_resource() {
        assert_eq!(small().totals(), [[900_000_000, 0], [100_000_000, 1_400_000_000]]);
    }
}
