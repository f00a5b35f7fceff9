//! The priority factors of waiting jobs: `sprio`, the only source of site factors.

use std::collections::BTreeMap;

use crate::error::{ReadError, TextError};
use crate::parse_table::{SEPARATOR, Table};
use crate::parse_values::{number, signed};
use crate::run_commands::{Call, Commands};

/// The priority of a waiting job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// The total priority.
    pub priority: Option<u64>,
    /// The site factor, set by an administrator or a plugin.
    pub site_factor: i64,
}

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
            jobs.entry(id).or_insert(Priority { priority, site_factor });
        }
        Ok(Priorities { jobs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_factors_are_read() {
        let text = "          JOBID|SITE|PRIORITY\n 6|-5|1\n 9|7|12\n9|8|12\n8+1|0|1\n";
        let priorities = Priorities::parse(text).unwrap();
        assert_eq!(priorities.jobs.len(), 2);
        assert_eq!(priorities.jobs[&6], Priority { priority: Some(1), site_factor: -5 });
        assert_eq!(priorities.jobs[&9].site_factor, 7);
        assert_eq!(
            Priorities::parse("JOBID|SITE\n1|x\n").unwrap_err().to_string(),
            "sprio:2:3: found \"x\", expected a whole number"
        );
    }
}
