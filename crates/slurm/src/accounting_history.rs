//! The accounting history: `sacct`, imported as a workload.

use std::num::NonZeroUsize;

use evenhand_model::Time;
use evenhand_model::calendar::iso_8601;
use evenhand_workload::Source;
use evenhand_workload::import::{Format, ImportOptions, Imported, import};

use crate::error::ReadError;
use crate::run_commands::{Call, Commands};

/// The fields for an import. Without free text of users (names, comments), which may contain the separator.
const COLUMNS: &str = "--format=JobID,JobIDRaw,User,Account,Partition,QOS,State,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,ReqTRES,AllocTRES,Reservation,Constraints";

/// A time window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The start.
    pub from: Time,
    /// The end; `None` for now.
    pub to: Option<Time>,
}

/// The part of the accounting history to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// Jobs that waited or ran at any time in the window.
    pub window: Window,
    /// Whether to request the jobs of all users, as far as the user may see them. Otherwise `sacct` shows the user's
    /// own jobs, and to root all jobs.
    pub all_users: bool,
    /// Whether to skip and count malformed rows.
    pub lenient: bool,
    /// The number of threads for the import; by default the number of cores.
    pub threads: Option<NonZeroUsize>,
}

impl History {
    /// Returns the command: one row for each job (`-X`) and each run of a requeued job (`-D`), with exact amounts.
    pub fn call(&self) -> Call {
        let mut arguments: Vec<String> =
            ["--allocations", "--parsable2", "--duplicates", "--noconvert", COLUMNS].map(String::from).into();
        if self.all_users {
            arguments.push("--allusers".into());
        }
        arguments.push(format!("--starttime={}", iso_8601(self.window.from)));
        arguments.extend(self.window.to.map(|to| format!("--endtime={}", iso_8601(to))));
        Call::new("sacct", arguments)
    }

    /// Imports the history. The time zone of the command must be UTC, as [`LocalCommands`](crate::LocalCommands) sets
    /// it.
    ///
    /// slurmdbd answers, not slurmctld: 10,000 jobs in about 0.7 s.
    ///
    /// # Errors
    /// Returns an error if `sacct` fails, its output is not understood, or no job in the window has run and ended.
    pub fn read(&self, commands: &dyn Commands) -> Result<Imported, ReadError> {
        let text = commands.run(&self.call())?;
        let options = ImportOptions {
            format: Format::Sacct,
            lenient: self.lenient,
            threads: self.threads,
            ..ImportOptions::default()
        };
        Ok(import(&[Source::Bytes { name: "sacct".into(), data: text.into_bytes() }], &options)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordedOutput;

    fn history(all_users: bool, lenient: bool) -> History {
        let from = Time::from_secs(1_693_440_000);
        let to = Some(Time::from_secs(1_693_484_987));
        History { window: Window { from, to }, all_users, lenient, threads: None }
    }

    #[test]
    fn the_command_requests_the_window_and_the_users() {
        let arguments = history(true, false).call().arguments.join(" ");
        assert!(arguments.contains("--starttime=2023-08-31T00:00:00 --endtime=2023-08-31T12:29:47"), "{arguments}");
        assert!(arguments.contains("--allusers"));
        assert!(!history(false, false).call().arguments.join(" ").contains("--allusers"));
    }

    #[test]
    fn the_history_is_a_workload_and_a_malformed_row_is_reported_with_its_position() {
        let good = "JobID|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|AllocTRES\n\
            1|ann|phys|main|COMPLETED|2023-08-31T00:00:00|2023-08-31T00:00:05|2023-08-31T00:01:05|60|5|cpu=2|cpu=2,mem=512M,node=1\n\
            2_[3-9]|bob|phys|main|PENDING|2023-08-31T00:00:00|Unknown|Unknown|0|5|cpu=2|\n";
        let read = |text: &str, lenient| history(true, lenient).read(&RecordedOutput::default().with("sacct", text));
        let imported = read(good, false).unwrap();
        assert_eq!((imported.workload.users(), imported.summary.tasks), (&["ann".to_string()][..], 1));
        let bad =
            format!("{good}3|cid|phys|main|COMPLETED|x|2023-08-31T00:00:05|2023-08-31T00:01:05|60|5|cpu=2|cpu=2\n");
        assert!(read(&bad, false).unwrap_err().to_string().starts_with("sacct:4:27: found \"x\""));
        assert_eq!(read(&bad, true).unwrap().summary.tasks, 1);
        let empty = read("JobID|User|State|Submit|Start|End|AllocTRES\n", false).unwrap_err();
        assert!(!empty.is_environment());
        assert!(history(true, false).read(&RecordedOutput::default()).unwrap_err().is_environment());
    }
}
