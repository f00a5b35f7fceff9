//! A cluster of machines and its queues, as a site describes it.

use dashu_int::{IBig, UBig};
use thiserror::Error;

use crate::{Amount, Quantity, QuantityError, Rational, Resource, Span};

/// How much of a resource a description names: a number in the workload's own unit, or a size in
/// bytes.
///
/// ```
/// use evenhand_model::Stock;
/// let kb = Stock::parse("64GiB").unwrap().in_unit("KB");
/// assert_eq!(kb.to_string(), "67108864");
/// assert_eq!(Stock::parse("16").unwrap().in_unit("processors").to_string(), "16");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stock {
    /// The number as written.
    pub exact: Rational,
    /// Whether it counts bytes: it was written as a size (`64Gi`, `64GiB`, `500GB`).
    pub is_bytes: bool,
}

impl Stock {
    /// None of it.
    pub const ZERO: Stock = Stock { exact: Rational::ZERO, is_bytes: false };

    /// Reads a number (`16`, `0.5`) or a size in bytes (`64Gi`, `64GiB`, `500GB`: Gi is 2^30, G is
    /// 10^9).
    ///
    /// # Errors
    /// If the text is neither, or is negative.
    pub fn parse(text: &str) -> Result<Stock, QuantityError> {
        let trimmed = text.trim();
        let number = trimmed.strip_suffix('B').unwrap_or(trimmed);
        let quantity = Quantity::parse(number).map_err(|e| QuantityError { found: text.to_string(), ..e })?;
        // Thousandths (250m) are of CPUs, not of bytes.
        let is_size = number.ends_with(|c: char| c.is_ascii_alphabetic() && c != 'm');
        Ok(Stock { exact: quantity.exact().clone(), is_bytes: is_size || number.len() < trimmed.len() })
    }

    /// In a workload's own unit. A size is turned into units of bytes (`B`, `KB`, `MiB`, ...: steps
    /// of 1024, as in job logs); where the unit is no such unit, its bytes are taken as the number.
    pub fn in_unit(&self, unit: &str) -> Rational {
        match bytes_in(unit).filter(|_| self.is_bytes) {
            Some(bytes) => &self.exact / bytes,
            None => self.exact.clone(),
        }
    }
}

/// Bytes in a unit of memory as job logs name it.
fn bytes_in(unit: &str) -> Option<Rational> {
    let power = match unit {
        "B" | "bytes" => 0,
        "KB" | "kB" | "KiB" => 10,
        "MB" | "MiB" => 20,
        "GB" | "GiB" => 30,
        "TB" | "TiB" => 40,
        _ => return None,
    };
    Some(Rational::from(IBig::ONE << power))
}

/// Machines that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineGroup {
    /// What the site calls them; unique in a cluster.
    pub name: String,
    /// How many there are, at least 1.
    pub count: u32,
    /// What each has of every resource, in the order of [`Cluster::resources`].
    pub has: Vec<Stock>,
    /// How many times faster they run a job than the machine on which its run time was measured
    /// (SPEC over the reference's SPEC); above 0.
    pub speed: Rational,
    /// What jobs may ask for: `infiniband`, `ssd`.
    pub properties: Vec<String>,
}

/// A queue (partition) and what it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// As the workload calls it; unique in a cluster.
    pub name: String,
    /// By what a job's charge is multiplied; 1 unless said.
    pub price: Rational,
    /// Queues of a higher priority are served before those of a lower one.
    pub priority: i32,
    /// The longest wall time a job may ask for.
    pub max_wall: Option<Span>,
    /// The most a job may hold, by resource.
    pub max_job: Vec<(String, Stock)>,
    /// The most the jobs of a user in this queue may hold together, by resource.
    pub max_user: Vec<(String, Stock)>,
    /// Its jobs run only on machines with all of these properties.
    pub properties: Vec<String>,
}

impl Queue {
    /// A queue that allows everything, at price 1 and priority 0.
    pub fn new(name: impl Into<String>) -> Queue {
        Queue {
            name: name.into(),
            price: Rational::ONE,
            priority: 0,
            max_wall: None,
            max_job: Vec::new(),
            max_user: Vec::new(),
            properties: Vec::new(),
        }
    }
}

/// The machines and queues of a site.
///
/// Machines are numbered from 0: those of the first group, then those of the second, and so on.
/// Every tie between machines ends in the smallest number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The resources any machine has, in the order in which the description first names them.
    pub resources: Vec<String>,
    /// The machines, at least one group.
    pub groups: Vec<MachineGroup>,
    /// The queues; jobs of a queue that is not here have no limits.
    pub queues: Vec<Queue>,
}

/// Why a cluster does not go with a workload.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClusterError {
    /// No machine has any of a resource.
    #[error(
        "no machine has any {resource}, which the workload's tasks hold, but only {}; give at least one group some", has.join(", ")
    )]
    Missing {
        /// The resource's name.
        resource: String,
        /// What machines have.
        has: Vec<String>,
    },
}

impl Cluster {
    /// How many machines there are.
    pub fn machines(&self) -> u64 {
        self.groups.iter().map(|g| u64::from(g.count)).sum()
    }

    /// The queue called `name`.
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.iter().find(|q| q.name == name)
    }

    /// What each machine of a group has of each of `resources`, in their own units, exactly; 0 of
    /// what the group does not name.
    pub fn units(&self, group: &MachineGroup, resources: &[Resource]) -> Vec<Rational> {
        let of = |r: &Resource| {
            let at = self.resources.iter().position(|name| *name == r.name);
            at.map_or(Rational::ZERO, |i| group.has[i].in_unit(&r.unit))
        };
        resources.iter().map(of).collect()
    }

    /// What all machines together have of each of `resources`, in their own units, exactly.
    ///
    /// # Errors
    /// If no machine has any of one.
    pub fn total(&self, resources: &[Resource]) -> Result<Vec<Rational>, ClusterError> {
        let mut total = vec![Rational::ZERO; resources.len()];
        for group in &self.groups {
            for (sum, each) in total.iter_mut().zip(self.units(group, resources)) {
                *sum += each * Rational::from(group.count);
            }
        }
        match total.iter().position(Rational::is_zero) {
            Some(r) => Err(ClusterError::Missing { resource: resources[r].name.clone(), has: self.resources.clone() }),
            None => Ok(total),
        }
    }
}

/// The largest amount of a resource that is at most so many units: whole steps, rounded down, as
/// whatever is held is whole steps too.
pub fn whole_steps(units: &Rational, resource: &Resource) -> Amount {
    let floor = (units * Rational::from(IBig::from(resource.steps()))).floor();
    let floor = UBig::try_from(floor).unwrap_or(UBig::ZERO);
    // Everything that can be held at once fits i64, so a larger machine is as good as this one.
    Amount(u64::try_from(floor.min(UBig::from(i64::MAX as u64))).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, count: u32, has: &[&str]) -> MachineGroup {
        let has = has.iter().map(|t| Stock::parse(t).unwrap()).collect();
        MachineGroup { name: name.into(), count, has, speed: Rational::ONE, properties: Vec::new() }
    }

    #[test]
    fn sizes_are_bytes_and_numbers_are_the_workload_s_own() {
        let text = |t: &str, unit: &str| Stock::parse(t).unwrap().in_unit(unit).to_string();
        assert_eq!(text("1Gi", "KB"), "1048576");
        assert_eq!(text("1GiB", "MiB"), "1024");
        assert_eq!(text("1GB", "B"), "1000000000");
        assert_eq!(text("2048B", "KB"), "2");
        assert_eq!(text("64", "KB"), "64");
        assert_eq!(text("250m", "KB"), "1/4");
        // A workload whose memory has no unit: the number itself.
        assert_eq!(text("1Ki", ""), "1024");
        assert!(Stock::parse("-1").is_err());
        assert!(Stock::parse("GiB").is_err());
        assert_eq!(Stock::parse("x").unwrap_err().found, "x");
    }

    #[test]
    fn a_cluster_is_the_sum_of_its_machines() {
        let cluster = Cluster {
            resources: vec!["cpu".into(), "mem".into()],
            groups: vec![group("a", 2, &["16", "64GiB"]), group("b", 3, &["4", "0"])],
            queues: vec![Queue::new("long")],
        };
        let resources = [Resource::new("mem", "GB"), Resource::new("cpu", "")];
        let total = cluster.total(&resources).unwrap();
        assert_eq!(total.iter().map(Rational::to_string).collect::<Vec<_>>(), ["128", "44"]);
        assert_eq!((cluster.machines(), cluster.queue("long").map(|q| q.priority)), (5, Some(0)));
        let gpu = [Resource::new("gpu", "")];
        assert_eq!(
            cluster.total(&gpu),
            Err(ClusterError::Missing { resource: "gpu".into(), has: vec!["cpu".into(), "mem".into()] })
        );
    }

    #[test]
    fn steps_are_rounded_down_and_capped() {
        let resource = Resource { decimals: 1, ..Resource::new("cpu", "") };
        let half = Quantity::parse("0.57").unwrap();
        assert_eq!(whole_steps(half.exact(), &resource), Amount(5));
        assert_eq!(whole_steps(Quantity::parse("1e30").unwrap().exact(), &resource), Amount(i64::MAX as u64));
    }
}
