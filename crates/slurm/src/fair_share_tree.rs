//! The fair-share tree with usage as Slurm computes it: `sshare`.

use crate::error::{ReadError, TextError};
use crate::parse_table::{Field, Row, Table};
use crate::parse_values::float;
use crate::run_commands::{Call, Commands};
use crate::tres::Tres;

/// The fair-share tree with its usage. It comes from slurmctld, so it exists without slurmdbd too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareTable {
    /// In depth-first order: an account before its children.
    pub rows: Vec<ShareRow>,
}

/// An account, or a user in an account.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareRow {
    /// The account.
    pub account: String,
    /// The user; `None` for the account itself.
    pub user: Option<String>,
    /// The depth in the tree; 0 for root.
    pub depth: usize,
    /// The configured shares: a number or `parent`.
    pub raw_shares: Option<String>,
    /// The normalized shares, by the definition of this release.
    pub norm_shares: Option<f64>,
    /// The decayed usage in billing seconds (RawUsage).
    pub raw_usage: Option<u64>,
    /// The effective usage, as a fraction of all usage.
    pub effective_usage: Option<f64>,
    /// The fair-share factor of a user, from 0 to 1.
    pub fair_share: Option<f64>,
    /// Shares over usage among siblings (LevelFS of Fair Tree): above 1 for usage below the entitlement.
    pub level_fs: Option<f64>,
    /// The resources reserved for running jobs, in resource minutes (TRESRunMins).
    pub running_minutes: Tres,
}

impl ShareTable {
    /// Returns the command that prints the tree; with `all` also other users.
    pub fn call(all: bool) -> Call {
        let arguments = ["--parsable2", "--long"].into_iter().chain(all.then_some("--all"));
        Call::new("sshare", arguments)
    }

    /// Reads the tree.
    ///
    /// # Errors
    /// Returns an error if `sshare` fails or its output is not understood.
    pub fn read(commands: &dyn Commands, all: bool) -> Result<ShareTable, ReadError> {
        Ok(ShareTable::parse(&commands.run(&ShareTable::call(all))?)?)
    }

    /// Parses the output of `sshare -P -l` with a header line.
    ///
    /// # Errors
    /// Returns an error if there is no header, or a number is malformed.
    pub fn parse(text: &str) -> Result<ShareTable, TextError> {
        let table = Table::of("sshare", text, &["Account", "User"])?;
        Ok(ShareTable { rows: table.rows().map(|row| share(&row?)).collect::<Result<_, _>>()? })
    }
}

fn share(row: &Row<'_, '_>) -> Result<ShareRow, TextError> {
    let part = |name: &str| row.get(name).map(|field| field.read("a number", float)).transpose();
    let account = row.required("Account", "an account's name")?;
    // Indented by one blank for each level.
    let depth = row.raw("Account").map_or(0, |f| f.text.len() - f.text.trim_start().len());
    let running = row.get("TRESRunMins");
    Ok(ShareRow {
        account: account.text.to_string(),
        user: row.get("User").map(|f| f.text.to_string()),
        depth,
        raw_shares: row.get("RawShares").map(|f| f.text.to_string()),
        norm_shares: part("NormShares")?,
        raw_usage: row.get("RawUsage").map(Field::whole).transpose()?,
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
    fn indentation_is_the_depth_in_the_tree() {
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
