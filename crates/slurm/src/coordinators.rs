//! The coordinators of accounts: `sacctmgr show user withcoord`.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{ReadError, TextError};
use crate::parse_table::Table;
use crate::run_commands::{Call, Commands};

const COLUMN: &str = "Coord Accounts";

/// Which accounts each user coordinates. Slurm shows a coordinator the jobs and the usage in these accounts, also where
/// `PrivateData` hides them from others (slurm.conf(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coordinators {
    accounts: BTreeMap<String, BTreeSet<String>>,
}

impl Coordinators {
    /// Returns the command that prints them.
    pub fn call() -> Call {
        let words = ["--parsable2", "show", "user", "withcoord", "format=User,Coordinators"];
        Call::new("sacctmgr", words.map(String::from))
    }

    /// Reads them.
    ///
    /// # Errors
    /// Returns an error if `sacctmgr` fails or its output is not understood.
    pub fn read(commands: &dyn Commands) -> Result<Coordinators, ReadError> {
        Ok(Coordinators::parse(&commands.run(&Coordinators::call())?)?)
    }

    /// Parses the output with its header line: `ann|physics,optics`. Slurm lists the accounts below a coordinated one too.
    ///
    /// ```
    /// use evenhand_slurm::Coordinators;
    /// let found = Coordinators::parse("User|Coord Accounts\nann|physics,optics\nbob|\n").unwrap();
    /// assert!(found.accounts_of("ann").any(|account| account == "optics"));
    /// assert_eq!(found.accounts_of("bob").count(), 0);
    /// ```
    ///
    /// # Errors
    /// Returns an error if there is no header, or a row has another number of columns.
    pub fn parse(text: &str) -> Result<Coordinators, TextError> {
        let table = Table::of("sacctmgr show user", text, &["User", COLUMN])?;
        let mut accounts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in table.rows() {
            let row = row?;
            let Some(coordinated) = row.get(COLUMN) else { continue };
            let user = row.required("User", "a user's name")?.text.to_string();
            accounts.entry(user).or_default().extend(coordinated.text.split(',').map(|name| name.trim().to_string()));
        }
        Ok(Coordinators { accounts })
    }

    /// Returns the accounts that a user coordinates, in the order of their names.
    pub fn accounts_of(&self, user: &str) -> impl Iterator<Item = &str> {
        self.accounts.get(user).into_iter().flatten().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_slurm_22_05_is_read_and_errors_have_a_place() {
        let found = Coordinators::parse("User|Coord Accounts\ndaemon|all,sub\ngames|\nroot|\n").unwrap();
        assert_eq!(found.accounts_of("daemon").collect::<Vec<_>>(), ["all", "sub"]);
        assert_eq!(found.accounts_of("games").count() + found.accounts_of("nobody").count(), 0);
        let error = Coordinators::parse("User|Coord Accounts\nann|a|b\n").unwrap_err().to_string();
        assert!(error.starts_with("sacctmgr show user:2:"), "{error}");
        let error = Coordinators::parse("User|Default\n").unwrap_err().to_string();
        assert!(error.contains("expected a header line with User, Coord Accounts"), "{error}");
    }
}
