//! What each waiting job's priority is made of: `sprio`. Only the site factor cannot be had elsewhere.

use std::collections::BTreeMap;

use crate::commands::{Call, Commands};
use crate::error::{ReadError, TextError};
use crate::table::{SEPARATOR, Table};
use crate::value::{number, signed};

/// What one waiting job's priority is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// The sum.
    pub priority: Option<u64>,
    /// What an administrator or a plugin added.
    pub site_factor: i64,
}

/// By the job's number, of an array the array's. Held jobs, and those not eligible yet, are not here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Priorities {
    /// Jobs in several partitions have one of each; the first is here.
    pub jobs: BTreeMap<u64, Priority>,
}

impl Priorities {
    /// The call that shows all priorities.
    pub fn call() -> Call {
        Call::new("sprio", [format!("--format=%i{SEPARATOR}%Y{SEPARATOR}%S")])
    }

    /// Reads the priorities.
    ///
    /// # Errors
    /// If `sprio` fails (priority/basic has none), or what it prints is not understood.
    pub fn read(commands: &dyn Commands) -> Result<Priorities, ReadError> {
        Ok(Priorities::parse(&commands.run(&Priorities::call())?)?)
    }

    /// Reads what `sprio` prints with a header line.
    ///
    /// # Errors
    /// If there is no header, or a number is none.
    pub fn parse(text: &str) -> Result<Priorities, TextError> {
        let table = Table::of("sprio", text, &["JOBID", "SITE"])?;
        let mut jobs = BTreeMap::new();
        for row in table.rows() {
            let row = row?;
            let Some(id) = row.get("JOBID") else { continue };
            // 8+1 is a part of a heterogeneous job, which has no number of its own here.
            let Some(id) = number(id.text) else { continue };
            let site_factor = row.needed("SITE", "a whole number")?.read("a whole number", signed)?;
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
