//! What accounts and users have used, as Slurm's own fair share counts it: `sshare`.

use crate::commands::{Call, Commands};
use crate::error::{ReadError, TextError};
use crate::table::{Row, Table};
use crate::tres::Tres;
use crate::value::{float, number};

/// The fair-share tree with its usage, from the controller: it is there without slurmdbd too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareTable {
    /// In the order of the tree: an account before what is in it.
    pub rows: Vec<ShareRow>,
}

/// An account, or a user in one.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareRow {
    /// The account.
    pub account: String,
    /// The user, if it is one.
    pub user: Option<String>,
    /// How deep in the tree, root 0.
    pub depth: usize,
    /// The shares as they were given: a number or `parent`.
    pub raw_shares: Option<String>,
    /// The part of its siblings' shares, as this release counts it.
    pub norm_shares: Option<f64>,
    /// What was used, in seconds of billing, halved every half-life.
    pub raw_usage: Option<u64>,
    /// The part of all use, as this release counts it.
    pub effective_usage: Option<f64>,
    /// Slurm's fair-share factor, 0 to 1; of users only.
    pub fair_share: Option<f64>,
    /// Shares over usage among siblings; more than 1 is owed something (Fair Tree).
    pub level_fs: Option<f64>,
    /// What is promised to jobs that run, in minutes of each resource.
    pub running_minutes: Tres,
}

impl ShareTable {
    /// The call that shows the tree; with `all` also other users.
    pub fn call(all: bool) -> Call {
        let arguments = ["--parsable2", "--long"].into_iter().chain(all.then_some("--all"));
        Call::new("sshare", arguments)
    }

    /// Reads the tree.
    ///
    /// # Errors
    /// If `sshare` fails, or what it prints is not understood.
    pub fn read(commands: &dyn Commands, all: bool) -> Result<ShareTable, ReadError> {
        Ok(ShareTable::parse(&commands.run(&ShareTable::call(all))?)?)
    }

    /// Reads what `sshare -P -l` prints with a header line.
    ///
    /// # Errors
    /// If there is no header, or a number is none.
    pub fn parse(text: &str) -> Result<ShareTable, TextError> {
        let table = Table::of("sshare", text, &["Account", "User"])?;
        Ok(ShareTable { rows: table.rows().map(|row| share(&row?)).collect::<Result<_, _>>()? })
    }
}

fn share(row: &Row<'_, '_>) -> Result<ShareRow, TextError> {
    let part = |name: &str| row.get(name).map(|field| field.read("a number", float)).transpose();
    let account = row.needed("Account", "an account's name")?;
    // One blank a level.
    let depth = row.raw("Account").map_or(0, |f| f.text.len() - f.text.trim_start().len());
    let running = row.get("TRESRunMins");
    Ok(ShareRow {
        account: account.text.to_string(),
        user: row.get("User").map(|f| f.text.to_string()),
        depth,
        raw_shares: row.get("RawShares").map(|f| f.text.to_string()),
        norm_shares: part("NormShares")?,
        raw_usage: row.get("RawUsage").map(|f| f.read("a whole number", number)).transpose()?,
        effective_usage: part("EffectvUsage")?,
        fair_share: part("FairShare")?,
        level_fs: part("LevelFS")?,
        running_minutes: match running {
            Some(field) => Tres::parse(field.text).map_err(|_| field.error("TRES like cpu=8,mem=4G"))?,
            None => Tres::default(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_in_the_blanks() {
        let text = "Account|User|RawShares|NormShares|RawUsage|NormUsage|EffectvUsage|FairShare|LevelFS|GrpTRESMins|TRESRunMins\n\
            root|||0.000000|575||1.000000||||cpu=0,mem=0\n root|root|1|0.166667|0|0.000000|0.000000|1.000000|inf||cpu=0\n \
            science||3|0.500000|575||1.000000||0.5||cpu=12,mem=4096\n  physics|ann|parent|1.000000|575||0.1|0.25|||\n";
        let rows = ShareTable::parse(text).unwrap().rows;
        assert_eq!(rows.iter().map(|r| r.depth).collect::<Vec<_>>(), [0, 1, 1, 2]);
        assert_eq!((rows[1].level_fs, rows[1].user.as_deref()), (Some(f64::INFINITY), Some("root")));
        assert_eq!((rows[2].running_minutes.cpus(), rows[2].raw_usage, rows[2].level_fs), (12, Some(575), Some(0.5)));
        assert_eq!((rows[3].raw_shares.as_deref(), rows[3].fair_share), (Some("parent"), Some(0.25)));
        let error = ShareTable::parse("Account|User|RawUsage\na|b|many\n").unwrap_err().to_string();
        assert_eq!(error, "sshare:2:5: found \"many\", expected a whole number");
    }
}
