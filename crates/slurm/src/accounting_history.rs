//! The accounting history: `sacct`, imported as a workload.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;

use evenhand_model::Time;
use evenhand_model::calendar::iso_8601;
use evenhand_workload::Source;
use evenhand_workload::import::{Format, ImportOptions, Imported, import};
use evenhand_workload::slurm_notation::array_of_task;

use crate::error::ReadError;
use crate::queue::Queue;
use crate::run_commands::{Call, Commands};

/// The fields for an import. NodeList shows jobs of whole nodes whose batch scripts have `#SBATCH --exclusive`: they held all
/// processors of their nodes and had requested fewer. Without free text of users (names, comments), which may contain the separator.
const COLUMNS: &str = "--format=JobID,JobIDRaw,User,Account,Partition,QOS,State,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,ReqTRES,AllocTRES,Reservation,Constraints,NodeList";

/// The commands that submitted the jobs, for throttles of arrays, nice values, types of GPUs and whole nodes: free text, which may contain
/// the separator and line ends.
const COMMANDS: &str = "--format=JobID,SubmitLine";

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
        self.call_for(COLUMNS)
    }

    fn call_for(&self, columns: &str) -> Call {
        let mut arguments: Vec<String> =
            ["--allocations", "--parsable2", "--duplicates", "--noconvert", columns].map(String::from).into();
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
        let mut unknown = Vec::new();
        let lines = commands.run(&self.call_for(COMMANDS)).unwrap_or_else(|error| {
            unknown.push(format!(
                "nice values, jobs of whole nodes, types of GPUs and throttles of arrays in commands are not known: {error}."
            ));
            String::new()
        });
        let throttles = match has_arrays(&text) {
            true => throttles(commands).unwrap_or_else(|error| {
                unknown.push(format!("throttles of arrays that still wait are not known: {error}."));
                HashMap::new()
            }),
            false => HashMap::new(),
        };
        let text = with_commands(&text, &lines, &throttles);
        let options = ImportOptions {
            format: Format::Sacct,
            lenient: self.lenient,
            threads: self.threads,
            ..ImportOptions::default()
        };
        let mut imported = import(&[Source::Bytes { name: "sacct".into(), data: text.into_bytes() }], &options)?;
        imported.summary.assumptions.extend(unknown);
        Ok(imported)
    }
}

/// The id of the job with which a row begins (`100_2`), and the rest.
fn job_of(row: &str) -> Option<(&str, &str)> {
    row.split_once('|').filter(|(id, _)| id.starts_with(|c: char| c.is_ascii_digit()))
}

fn has_arrays(table: &str) -> bool {
    table.lines().filter_map(job_of).any(|(id, _)| array_of_task(id).is_some())
}

/// The throttles of the arrays of which tasks wait, as they are now: `squeue` shows them, whether the command, the batch script or
/// an administrator set them; sacct has no row for what waits of an array that has begun.
fn throttles(commands: &dyn Commands) -> Result<HashMap<String, u64>, ReadError> {
    let queue = Queue::read(commands)?;
    let arrays = queue.jobs.iter().filter_map(|job| job.array.as_ref());
    Ok(arrays.filter_map(|array| Some((array.job.to_string(), array.tasks.max_running?))).collect())
}

/// Returns a table with one more column, SubmitLine: the commands that submitted the jobs, without the separator, and before them
/// the throttles of arrays that still wait.
///
/// A line that does not begin with the id of a job of the table continues a command.
fn with_commands(table: &str, commands: &str, throttles: &HashMap<String, u64>) -> String {
    let known: HashSet<&str> = table.lines().filter_map(job_of).map(|(id, _)| id).collect();
    let commands: HashMap<&str, &str> =
        commands.lines().filter_map(job_of).filter(|(id, _)| known.contains(id)).collect();
    let mut rows = table.lines();
    let Some(header) = rows.next() else { return String::new() };
    let width = header.split('|').count();
    let constraints = header.split('|').position(|name| name == "Constraints");
    let has_alternatives = constraints.is_some() && rows.clone().any(|row| row.split('|').count() > width);
    let separator = if has_alternatives { UNIT_SEPARATOR } else { "|" };
    let mut text = format!("{}{separator}SubmitLine\n", header.replace('|', separator));
    for row in rows {
        let id = job_of(row).map_or("", |(id, _)| id);
        let throttle = array_of_task(id).and_then(|array| throttles.get(array));
        let throttle = throttle.map_or(String::new(), |most| format!("--array=0%{most} "));
        let command = commands.get(id).copied().unwrap_or_default();
        let mut fields: Vec<String> = row.split('|').map(str::to_string).collect();
        if let Some(at) = constraints.filter(|_| fields.len() > width) {
            let end = at + fields.len() - width;
            let whole = fields[at..=end].join("|");
            fields.splice(at..=end, [whole]);
        }
        text += &format!("{}{separator}{throttle}{}\n", fields.join(separator), command.replace('|', " "));
    }
    text
}

/// Separates the columns of a table in which constraints name alternatives (`-C a|b`), which sacct prints as they are.
const UNIT_SEPARATOR: &str = "\u{1f}";

#[cfg(test)]
mod tests {
    use evenhand_model::Detail;

    use super::*;
    use crate::{CommandError, RecordedOutput};

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
        assert!(arguments.contains(",ReqTRES,AllocTRES,") && arguments.contains(",NodeList "), "{arguments}");
        assert!(!history(false, false).call().arguments.join(" ").contains("--allusers"));
    }

    /// Answers the two calls of sacct.
    struct Sacct {
        commands: Result<&'static str, ()>,
    }

    impl Commands for Sacct {
        fn run(&self, call: &Call) -> Result<String, CommandError> {
            if call.program == "squeue" {
                return Ok(
                    "JOBID|ARRAY_JOB_ID|ARRAY_TASK_ID|USER|STATE\n10|10|2-9%4|ann|PENDING\n12|8|1|ann|RUNNING\n".into(),
                );
            }
            let times = "2023-08-31T00:00:00|2023-08-31T00:00:05|2023-08-31T00:01:05";
            let row = |id: &str| format!("{id}|ann|COMPLETED|{times}|cpu=2\n");
            match call.arguments.iter().any(|argument| argument == COMMANDS) {
                false => {
                    let rows = ["7_1", "7_2", "8_1", "9", "10_1"].map(row).concat();
                    Ok(format!("JobID|User|State|Submit|Start|End|AllocTRES\n{rows}"))
                }
                true => self.commands.map(String::from).map_err(|()| CommandError::Absent { program: "sacct" }),
            }
        }
    }

    #[test]
    fn arrays_have_the_throttles_of_their_commands_or_of_what_waits_and_jobs_their_nice_values() {
        let of = |commands| {
            let found = history(true, false).read(&Sacct { commands }).unwrap();
            let of = |detail: Detail| {
                (0..5).map(|row| found.workload.detail(detail, row).map(str::to_string)).collect::<Vec<_>>()
            };
            (of(Detail::Array), of(Detail::Nice), found.summary.assumptions)
        };
        let lines = "JobID|SubmitLine\n7_1|sbatch -a 1-2%1 --wrap a|b\n7_2|sbatch -a 1-2%1 --wrap echo\n9|--array=0-9%3\n8_1|sbatch x\n9|y --nice=5\n10_1|sbatch a|b --nice\n";
        let named = |names: [&str; 5]| names.map(|name| (!name.is_empty()).then(|| name.to_string())).to_vec();
        let (arrays, nice, assumptions) = of(Ok(lines));
        assert_eq!(arrays, named(["7%1", "7%1", "8", "", "10%4"]));
        assert_eq!(nice, named(["", "", "", "5", "100"]));
        assert!(!assumptions.join(" ").contains("throttles"), "{assumptions:?}");
        let (arrays, nice, assumptions) = of(Err(()));
        assert_eq!((arrays, nice), (named(["7", "7", "8", "", "10%4"]), named([""; 5])));
        assert!(assumptions.join(" ").contains("in commands are not known: sacct is not installed"), "{assumptions:?}");
    }

    #[test]
    fn a_line_that_names_no_job_of_the_table_continues_a_command() {
        let table = "JobID|ReqTRES|AllocTRES\n1|cpu=1|cpu=4\n2|cpu=1|cpu=1\n";
        let text = with_commands(
            table,
            "JobID|SubmitLine\n1|sbatch --exclusive --wrap a|b\nc\n3|x\n2|sbatch d\n",
            &HashMap::new(),
        );
        assert_eq!(
            text,
            "JobID|ReqTRES|AllocTRES|SubmitLine\n1|cpu=1|cpu=4|sbatch --exclusive --wrap a b\n2|cpu=1|cpu=1|sbatch d\n"
        );
    }

    #[test]
    fn constraints_that_name_alternatives_are_one_column() {
        let table = "JobID|User|State|Submit|Start|End|AllocTRES|Constraints|NodeList\n\
            1|ann|COMPLETED|2023-08-31T00:00:00|2023-08-31T00:00:05|2023-08-31T00:01:05|cpu=2|a|b|c|n1\n\
            2|ann|COMPLETED|2023-08-31T00:00:00|2023-08-31T00:00:05|2023-08-31T00:01:05|cpu=2||n2\n";
        let found = history(true, false).read(&RecordedOutput::default().with("sacct", table)).unwrap().workload;
        let of = |detail: Detail, row: usize| found.detail(detail, row);
        assert_eq!((of(Detail::Machines, 0), of(Detail::Machines, 1)), (Some("n1"), Some("n2")));
        assert!(of(Detail::Requires, 0).is_some_and(|text| text.contains("a|b|c")), "{:?}", of(Detail::Requires, 0));
    }

    #[test]
    fn the_history_is_a_workload_and_a_malformed_row_is_reported_with_its_position() {
        let good = "JobID|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|AllocTRES\n\
            1|ann|phys|main|COMPLETED|2023-08-31T00:00:00|2023-08-31T00:00:05|2023-08-31T00:01:05|60|5|cpu=2|cpu=2,mem=512M,node=1\n\
            2_[3-9]|bob|phys|main|PENDING|2023-08-31T00:00:00|Unknown|Unknown|0|5|cpu=2|\n";
        let read = |text: &str, lenient| history(true, lenient).read(&RecordedOutput::default().with("sacct", text));
        let imported = read(good, false).unwrap();
        assert_eq!((imported.workload.users(), imported.summary.tasks), (&["ann".to_string()][..], 1));
        let with_nodes =
            good.replacen("AllocTRES\n", "AllocTRES|NodeList\n", 1).replacen("node=1\n", "node=1|n[1-2]\n", 1);
        let workload = read(&with_nodes.replacen("cpu=2|\n", "cpu=2||None assigned\n", 1), false).unwrap().workload;
        assert_eq!(workload.detail(Detail::Machines, 0), Some("n[1-2]"));
        let bad =
            format!("{good}3|cid|phys|main|COMPLETED|x|2023-08-31T00:00:05|2023-08-31T00:01:05|60|5|cpu=2|cpu=2\n");
        assert!(read(&bad, false).unwrap_err().to_string().starts_with("sacct:4:27: found \"x\""));
        assert_eq!(read(&bad, true).unwrap().summary.tasks, 1);
        let empty = read("JobID|User|State|Submit|Start|End|AllocTRES\n", false).unwrap_err();
        assert!(!empty.is_environment());
        assert!(history(true, false).read(&RecordedOutput::default()).unwrap_err().is_environment());
    }
}
