//! What was: `sacct`, imported as a workload.

use std::num::NonZeroUsize;

use evenhand_model::Time;
use evenhand_model::calendar::iso_8601;
use evenhand_workload::Source;
use evenhand_workload::import::{Format, ImportOptions, Imported, import};

use crate::commands::{Call, Commands};
use crate::error::ReadError;

/// What an import reads. No text of users' own (names, comments), which can hold the separator.
const COLUMNS: &str = "--format=JobID,JobIDRaw,User,Account,Partition,QOS,State,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,ReqTRES,AllocTRES";

/// A window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// From then.
    pub from: Time,
    /// Until then; `None`: now.
    pub to: Option<Time>,
}

/// Which past to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// Jobs that waited or ran at any instant of it.
    pub window: Window,
    /// The jobs of all users, as far as the user may see them; else those `sacct` shows without asking for more: the
    /// user's own, to root everybody's.
    pub all_users: bool,
    /// Skip rows that are malformed, and count them.
    pub lenient: bool,
    /// Threads to import with; as many as there are cores when absent.
    pub threads: Option<NonZeroUsize>,
}

impl History {
    /// The call: one row a job (`-X`), a row for each time a requeued job ran (`-D`), amounts as they are counted.
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

    /// Reads the past. The commands' time zone must be UTC, as [`System`](crate::System) sees to.
    ///
    /// slurmdbd answers, not the controller: 10,000 jobs in some 0.7 s.
    ///
    /// # Errors
    /// If `sacct` fails, prints what is not understood, or no job of the window has run and ended.
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
    use crate::Recorded;

    fn history(all_users: bool, lenient: bool) -> History {
        let from = Time::from_secs(1_693_440_000);
        let to = Some(Time::from_secs(1_693_484_987));
        History { window: Window { from, to }, all_users, lenient, threads: None }
    }

    #[test]
    fn the_window_and_the_users_are_asked_for() {
        let arguments = history(true, false).call().arguments.join(" ");
        assert!(arguments.contains("--starttime=2023-08-31T00:00:00 --endtime=2023-08-31T12:29:47"), "{arguments}");
        assert!(arguments.contains("--allusers"));
        assert!(!history(false, false).call().arguments.join(" ").contains("--allusers"));
    }

    #[test]
    fn the_past_is_a_workload_and_a_bad_row_has_a_place() {
        let good = "JobID|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|AllocTRES\n\
            1|ann|phys|main|COMPLETED|2023-08-31T00:00:00|2023-08-31T00:00:05|2023-08-31T00:01:05|60|5|cpu=2|cpu=2,mem=512M,node=1\n\
            2_[3-9]|bob|phys|main|PENDING|2023-08-31T00:00:00|Unknown|Unknown|0|5|cpu=2|\n";
        let read = |text: &str, lenient| history(true, lenient).read(&Recorded::default().with("sacct", text));
        let imported = read(good, false).unwrap();
        assert_eq!((imported.workload.users(), imported.summary.tasks), (&["ann".to_string()][..], 1));
        let bad =
            format!("{good}3|cid|phys|main|COMPLETED|x|2023-08-31T00:00:05|2023-08-31T00:01:05|60|5|cpu=2|cpu=2\n");
        assert!(read(&bad, false).unwrap_err().to_string().starts_with("sacct:4:27: found \"x\""));
        assert_eq!(read(&bad, true).unwrap().summary.tasks, 1);
        let empty = read("JobID|User|State|Submit|Start|End|AllocTRES\n", false).unwrap_err();
        assert!(!empty.is_environment());
        assert!(history(true, false).read(&Recorded::default()).unwrap_err().is_environment());
    }
}
