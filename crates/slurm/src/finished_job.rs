//! Finished jobs, one by one: `sacct`, for following a site continuously.
//!
//! [`History`](crate::History) imports the past as a workload; here each job keeps its id, so that a job read twice
//! counts once.

use evenhand_model::Time;
use evenhand_model::calendar::iso_8601;

use crate::error::{ReadError, TextError};
use crate::parse_table::{Row, SEPARATOR, Table};
use crate::parse_values::{Limit, number, time};
use crate::queue::{Job, Queue};
use crate::run_commands::{Call, Commands};
use crate::tres::Tres;

/// The fields that are asked of `sacct`, and those of [`FinishedJob::line`].
const COLUMNS: &str = "JobIDRaw,User,Account,Partition,Submit,Start,End,Timelimit,AllocTRES,NodeList,QOS";

/// A job, or a task of a job array, that ran and ended.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedJob {
    /// The job id; of each task of an array its own.
    pub id: u64,
    /// The user.
    pub user: String,
    /// The account that was charged.
    pub account: Option<String>,
    /// The partition in which it ran.
    pub partition: Option<String>,
    /// The time of submission.
    pub submit: Time,
    /// The time at which it started.
    pub start: Time,
    /// The time at which it ended.
    pub end: Time,
    /// The time limit.
    pub limit: Limit,
    /// The allocated resources (AllocTRES).
    pub held: Tres,
    /// The nodes on which it ran, as a hostlist expression.
    pub node_list: Option<String>,
    /// The QOS of which it was.
    pub qos: Option<String>,
}

impl FinishedJob {
    /// Returns the command for jobs that ran in a window and have ended; with `all_users` those of all users.
    pub fn call(from: Time, to: Time, all_users: bool) -> Call {
        let mut arguments: Vec<String> =
            ["--allocations", "--parsable2", "--duplicates", "--noconvert"].map(String::from).into();
        arguments.push(format!("--format={COLUMNS}"));
        if all_users {
            arguments.push("--allusers".into());
        }
        arguments.extend([format!("--starttime={}", iso_8601(from)), format!("--endtime={}", iso_8601(to))]);
        Call::new("sacct", arguments)
    }

    /// Reads the jobs. The time zone of the command must be UTC, as [`LocalCommands`](crate::LocalCommands) sets it.
    ///
    /// # Errors
    /// Returns an error if `sacct` fails or its output is not understood.
    pub fn read(commands: &dyn Commands, from: Time, to: Time, all_users: bool) -> Result<Vec<FinishedJob>, ReadError> {
        Ok(FinishedJob::parse(&commands.run(&FinishedJob::call(from, to, all_users))?)?)
    }

    /// Parses the output of `sacct -P` with a header line. Jobs that have not ended, or never started, are left out.
    ///
    /// # Errors
    /// Returns an error if there is no header, or a value is malformed.
    pub fn parse(text: &str) -> Result<Vec<FinishedJob>, TextError> {
        let table = Table::of("sacct", text, &["JobIDRaw", "User", "Start", "End", "AllocTRES"])?;
        table.rows().filter_map(|row| row.and_then(|row| ended(&row)).transpose()).collect()
    }

    /// Returns a job of the queue as one that has ended at this time.
    pub(crate) fn of_queue(job: &Job, end: Time) -> FinishedJob {
        let start = job.start.unwrap_or(end).min(end);
        FinishedJob {
            id: job.id,
            user: job.user.clone(),
            account: job.account.clone(),
            partition: job.partitions.first().cloned(),
            submit: job.submit.unwrap_or(start),
            start,
            end,
            limit: job.limit,
            held: job.requested.clone(),
            node_list: job.node_list.clone(),
            qos: job.qos.clone(),
        }
    }

    /// Returns the jobs of the queue that are being completed and that accounting, whose jobs are `listed`, does not have yet.
    pub(crate) fn not_listed(queue: &Queue, listed: &[FinishedJob], now: Time) -> Vec<FinishedJob> {
        // A requeued job has several runs, each with another start.
        let is_run_of = |finished: &FinishedJob, job: &Job| {
            finished.id == job.id && job.start.is_none_or(|start| start == finished.start)
        };
        let completing = queue.jobs.iter().filter_map(|job| Some((job, job.ended(now)?)));
        let missing = completing.filter(|(job, _)| !listed.iter().any(|finished| is_run_of(finished, job)));
        missing.map(|(job, end)| FinishedJob::of_queue(job, end)).collect()
    }
}

impl FinishedJob {
    /// Returns the job as one line of text, in which it is saved.
    pub(crate) fn line(&self) -> String {
        let second = |time: Time| (time.nanos() / 1_000_000_000).to_string();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let fields = [
            self.id.to_string(),
            self.user.clone(),
            text(&self.account),
            text(&self.partition),
            second(self.submit),
            second(self.start),
            second(self.end),
            self.limit.to_string(),
            self.held.to_string(),
            text(&self.node_list),
            text(&self.qos),
        ];
        fields.join(&SEPARATOR.to_string())
    }

    /// Parses the output of [`line`](FinishedJob::line); `None` for any other text. Lines of earlier versions end before the
    /// QOS.
    pub(crate) fn of_line(line: &str) -> Option<FinishedJob> {
        let read = |columns: &str| {
            let header = columns.replace(',', &SEPARATOR.to_string());
            FinishedJob::parse(&format!("{header}\n{line}\n")).ok()?.pop()
        };
        read(COLUMNS).or_else(|| read(COLUMNS.strip_suffix(",QOS")?))
    }
}

fn ended(row: &Row<'_, '_>) -> Result<Option<FinishedJob>, TextError> {
    let moment = |name: &str| row.get(name).map(|field| field.read("a time", time)).transpose();
    let (Some(start), Some(end)) = (moment("Start")?, moment("End")?) else { return Ok(None) };
    let Some(held) = row.get("AllocTRES") else { return Ok(None) };
    // Job steps have no user.
    let Some(user) = row.get("User") else { return Ok(None) };
    let text = |name: &str| row.get(name).map(|f| f.text.to_string());
    Ok(Some(FinishedJob {
        id: row.required("JobIDRaw", "a job's number")?.read("a job's number", number)?,
        user: user.text.to_string(),
        account: text("Account"),
        partition: text("Partition"),
        submit: moment("Submit")?.unwrap_or(start),
        start,
        end: end.max(start),
        limit: row.get("Timelimit").map_or(Ok(Limit::None), |f| f.read("a time limit", Limit::parse))?,
        held: held.read("TRES like cpu=8,mem=4G,gres/gpu=1", |t| Tres::parse(t).ok())?,
        node_list: text("NodeList"),
        qos: text("QOS"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "JobIDRaw|User|Account|Partition|Submit|Start|End|Timelimit|AllocTRES\n";

    #[test]
    fn finished_jobs_are_read_and_others_are_left_out() {
        let text = format!(
            "{HEADER}7|ann|art|main|1795289080|1795289090|1795289100|01:00:00|billing=2,cpu=2,mem=1000M,node=1\n\
             8|ann|art|main|1795289080|1795289090|Unknown|01:00:00|cpu=2\n\
             9|bob||main|1795289080|Unknown|1795289090|UNLIMITED|\n"
        );
        let ended = FinishedJob::parse(&text).unwrap();
        assert_eq!(ended.len(), 1);
        let job = &ended[0];
        assert_eq!((job.id, job.end.since(job.start).secs_f64(), job.held.cpus()), (7, 10.0, 2));
        assert_eq!(job.limit.to_string(), "01:00:00");
        let error = FinishedJob::parse(&format!("{HEADER}7|a|b|c|1|2|3|x|cpu=1\n")).unwrap_err().to_string();
        assert_eq!(error, "sacct:2:15: found \"x\", expected a time limit");
        assert!(FinishedJob::parse("JobID|User\n").is_err());
    }

    #[test]
    fn a_line_parses_to_the_same_job() {
        let text =
            format!("{HEADER}7|ann||main|1795289080|1795289090|1795289100|UNLIMITED|cpu=2,mem=1000M,gres/gpu=1\n");
        let job = FinishedJob::parse(&text).unwrap().remove(0);
        assert_eq!(FinishedJob::of_line(&job.line()).as_ref(), Some(&job));
        // Earlier versions had no QOS.
        assert_eq!(FinishedJob::of_line(job.line().strip_suffix(SEPARATOR).unwrap()).as_ref(), Some(&job));
        let job = FinishedJob { qos: Some("long".into()), ..job };
        assert_eq!(FinishedJob::of_line(&job.line()), Some(job));
        assert_eq!(FinishedJob::of_line("7|x"), None);
    }

    #[test]
    fn the_jobs_of_all_users_are_requested_explicitly() {
        let call = FinishedJob::call(Time::from_secs(1_693_440_000), Time::from_secs(1_693_484_987), true);
        let line = call.arguments.join(" ");
        assert!(line.contains("--allusers --starttime=2023-08-31T00:00:00 --endtime=2023-08-31T12:29:47"), "{line}");
    }
}
