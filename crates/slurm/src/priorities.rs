//! The priority factors of waiting jobs: `sprio`, the only source of site factors.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{ReadError, TextError};
use crate::parse_table::{Row, SEPARATOR, Table};
use crate::parse_values::{number, signed};
use crate::run_commands::{Call, Commands};

/// The priority of a waiting job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priority {
    /// The total priority.
    pub priority: Option<u64>,
    /// The site factor, set by an administrator or a plugin.
    pub site_factor: i64,
    /// What each factor adds to the priority, apart from the site factor; empty where only that was read.
    pub factors: Vec<FactorRecord>,
}

/// What a factor of priority/multifactor adds to a job's priority, by its weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FactorRecord {
    /// `age`, `association`, `fairshare`, `job_size`, `partition`, `qos`, `nice`, or `tres_` and a resource.
    pub factor: String,
    /// The points; what `nice` takes away is below zero.
    pub points: i64,
}

/// The factors by column of `sprio`, with the letter of its format; that of `NICE` is subtracted.
const FACTORS: [(&str, char, &str); 7] = [
    ("AGE", 'A', "age"),
    ("ASSOC", 'B', "association"),
    ("FAIRSHARE", 'F', "fairshare"),
    ("JOBSIZE", 'J', "job_size"),
    ("PARTITION", 'P', "partition"),
    ("QOS", 'Q', "qos"),
    ("NICE", 'N', "nice"),
];

/// Priorities by job id (for arrays the array's). Jobs that are held or not yet eligible are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Priorities {
    /// A job in several partitions has a priority in each; this is the first.
    pub jobs: BTreeMap<u64, Priority>,
}

impl Priorities {
    /// Returns the command that prints all priorities.
    pub fn call() -> Call {
        Call::new("sprio", [format!("--format=%i{SEPARATOR}%Y{SEPARATOR}%S")])
    }

    /// Returns the command that prints all priorities with what each factor adds.
    pub fn call_with_factors() -> Call {
        let letters = FACTORS.iter().map(|(_, letter, _)| *letter).chain(['T']);
        let format: Vec<String> =
            ['i', 'Y', 'S'].into_iter().chain(letters).map(|letter| format!("%{letter}")).collect();
        Call::new("sprio", [format!("--format={}", format.join(&SEPARATOR.to_string()))])
    }

    /// Reads the priorities with what each factor adds.
    ///
    /// # Errors
    /// Returns an error if `sprio` fails (as with priority/basic) or its output is not understood.
    pub fn read_with_factors(commands: &dyn Commands) -> Result<Priorities, ReadError> {
        Ok(Priorities::parse(&commands.run(&Priorities::call_with_factors())?)?)
    }

    /// Reads the priorities.
    ///
    /// # Errors
    /// Returns an error if `sprio` fails (as with priority/basic) or its output is not understood.
    pub fn read(commands: &dyn Commands) -> Result<Priorities, ReadError> {
        Ok(Priorities::parse(&commands.run(&Priorities::call())?)?)
    }

    /// Parses the output of `sprio` with a header line.
    ///
    /// # Errors
    /// Returns an error if there is no header, or a number is malformed.
    pub fn parse(text: &str) -> Result<Priorities, TextError> {
        let table = Table::of("sprio", text, &["JOBID", "SITE"])?;
        let mut jobs = BTreeMap::new();
        for row in table.rows() {
            let row = row?;
            let Some(id) = row.get("JOBID") else { continue };
            // Components of heterogeneous jobs (8+1) have no id of their own here.
            let Some(id) = number(id.text) else { continue };
            let site_factor = row.required("SITE", "a whole number")?.read("a whole number", signed)?;
            let priority = row.get("PRIORITY").map(|field| field.read("a number", number)).transpose()?;
            let factors = factors(&row)?;
            jobs.entry(id).or_insert(Priority { priority, site_factor, factors });
        }
        Ok(Priorities { jobs })
    }
}

/// Returns what the factors of a row add, without those that add nothing.
fn factors(row: &Row<'_, '_>) -> Result<Vec<FactorRecord>, TextError> {
    let mut factors = Vec::new();
    for (column, _, factor) in FACTORS {
        let Some(field) = row.get(column) else { continue };
        let points = field.read("a whole number", signed)?;
        let points = if factor == "nice" { points.saturating_neg() } else { points };
        factors.push(FactorRecord { factor: factor.into(), points });
    }
    // As cpu=100,mem=20.
    if let Some(field) = row.get("TRES") {
        for part in field.text.split(',').filter(|part| !part.is_empty()) {
            let named = part.split_once('=').and_then(|(name, points)| Some((name, signed(points)?)));
            let (name, points) = named.ok_or_else(|| field.error("resources with whole numbers, as cpu=100,mem=20"))?;
            factors.push(FactorRecord { factor: format!("tres_{name}"), points });
        }
    }
    factors.retain(|factor| factor.points != 0);
    Ok(factors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_factors_are_read() {
        let text = "          JOBID|SITE|PRIORITY\n 6|-5|1\n 9|7|12\n9|8|12\n8+1|0|1\n";
        let priorities = Priorities::parse(text).unwrap();
        assert_eq!(priorities.jobs.len(), 2);
        assert_eq!(priorities.jobs[&6], Priority { priority: Some(1), site_factor: -5, factors: Vec::new() });
        assert_eq!(priorities.jobs[&9].site_factor, 7);
        assert_eq!(
            Priorities::parse("JOBID|SITE\n1|x\n").unwrap_err().to_string(),
            "sprio:2:3: found \"x\", expected a whole number"
        );
    }

    #[test]
    fn factors_are_read() {
        let text = "JOBID|PRIORITY|SITE|AGE|ASSOC|FAIRSHARE|JOBSIZE|PARTITION|QOS|NICE|TRES\n\
                    7|1490|3|500|0|1000|0|0|0|20|cpu=5,mem=2\n8|0|0|0|0|0|0|0|0|-10|\n";
        let priorities = Priorities::parse(text).unwrap();
        let points = |id: u64| -> Vec<(&str, i64)> {
            priorities.jobs[&id].factors.iter().map(|f| (f.factor.as_str(), f.points)).collect()
        };
        assert_eq!(points(7), [("age", 500), ("fairshare", 1000), ("nice", -20), ("tres_cpu", 5), ("tres_mem", 2)]);
        assert_eq!(points(8), [("nice", 10)]);
        let all: i64 = points(7).iter().map(|(_, points)| points).sum();
        assert_eq!(all + priorities.jobs[&7].site_factor, 1490);
        let wrong = Priorities::parse(&text.replace("cpu=5,mem=2", "cpu"));
        let message = "sprio:2:30: found \"cpu\", expected resources with whole numbers, as cpu=100,mem=20";
        assert_eq!(wrong.unwrap_err().to_string(), message);
    }
}
