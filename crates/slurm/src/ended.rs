//! Jobs that have ended, one by one: `sacct`, for those who follow a site.
//!
//! [`History`](crate::History) makes a workload of the past; here each job keeps its number, so that what is read
//! twice counts once.

use evenhand_model::Time;
use evenhand_model::calendar::iso_8601;

use crate::commands::{Call, Commands};
use crate::error::{ReadError, TextError};
use crate::table::{Row, SEPARATOR, Table};
use crate::tres::Tres;
use crate::value::{Limit, number, time};

const COLUMNS: &str = "--format=JobIDRaw,User,Account,Partition,Submit,Start,End,Timelimit,AllocTRES,NodeList";

/// A job, or a task of an array, that ran and ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Slurm's number of it, of an array each task's own.
    pub id: u64,
    /// Whose it was.
    pub user: String,
    /// Who was charged.
    pub account: Option<String>,
    /// Where it ran.
    pub partition: Option<String>,
    /// When it was submitted.
    pub submit: Time,
    /// When it started.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// How long it might have run.
    pub limit: Limit,
    /// What it held.
    pub held: Tres,
    /// Where it ran, as Slurm shortens it.
    pub node_list: Option<String>,
}

impl Ended {
    /// The call for jobs that ran in a window and have ended. `all_users` asks for everybody's.
    pub fn call(from: Time, to: Time, all_users: bool) -> Call {
        let mut arguments: Vec<String> =
            ["--allocations", "--parsable2", "--duplicates", "--noconvert", COLUMNS].map(String::from).into();
        if all_users {
            arguments.push("--allusers".into());
        }
        arguments.extend([format!("--starttime={}", iso_8601(from)), format!("--endtime={}", iso_8601(to))]);
        Call::new("sacct", arguments)
    }

    /// Reads them. The time zone must be UTC, as [`System`](crate::System) sees to.
    ///
    /// # Errors
    /// If `sacct` fails, or what it prints is not understood.
    pub fn read(commands: &dyn Commands, from: Time, to: Time, all_users: bool) -> Result<Vec<Ended>, ReadError> {
        Ok(Ended::parse(&commands.run(&Ended::call(from, to, all_users))?)?)
    }

    /// Reads what `sacct -P` prints with a header line. Who waits or runs is left out, and so is what never held
    /// anything.
    ///
    /// # Errors
    /// If there is no header, or a value is none.
    pub fn parse(text: &str) -> Result<Vec<Ended>, TextError> {
        let table = Table::of("sacct", text, &["JobIDRaw", "User", "Start", "End", "AllocTRES"])?;
        table.rows().filter_map(|row| row.and_then(|row| ended(&row)).transpose()).collect()
    }
}

/// The columns of [`Ended::line`].
const KEPT: &str = "JobIDRaw|User|Account|Partition|Submit|Start|End|Timelimit|AllocTRES|NodeList";

impl Ended {
    /// As one line of text, by which it is kept.
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
        ];
        fields.join(&SEPARATOR.to_string())
    }

    /// What [`line`](Ended::line) said; `None` of any other text.
    pub(crate) fn of_line(line: &str) -> Option<Ended> {
        let text = format!("{}\n{line}\n", KEPT.replace('|', &SEPARATOR.to_string()));
        Ended::parse(&text).ok()?.pop()
    }
}

fn ended(row: &Row<'_, '_>) -> Result<Option<Ended>, TextError> {
    let moment = |name: &str| row.get(name).map(|field| field.read("a time", time)).transpose();
    let (Some(start), Some(end)) = (moment("Start")?, moment("End")?) else { return Ok(None) };
    let Some(held) = row.get("AllocTRES") else { return Ok(None) };
    // Steps have none.
    let Some(user) = row.get("User") else { return Ok(None) };
    let text = |name: &str| row.get(name).map(|f| f.text.to_string());
    Ok(Some(Ended {
        id: row.needed("JobIDRaw", "a job's number")?.read("a job's number", number)?,
        user: user.text.to_string(),
        account: text("Account"),
        partition: text("Partition"),
        submit: moment("Submit")?.unwrap_or(start),
        start,
        end: end.max(start),
        limit: row.get("Timelimit").map_or(Ok(Limit::None), |f| f.read("a time limit", Limit::parse))?,
        held: held.read("TRES like cpu=8,mem=4G,gres/gpu=1", |t| Tres::parse(t).ok())?,
        node_list: text("NodeList"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "JobIDRaw|User|Account|Partition|Submit|Start|End|Timelimit|AllocTRES\n";

    #[test]
    fn what_ended_is_read_and_the_rest_left_out() {
        let text = format!(
            "{HEADER}7|ann|art|main|1795289080|1795289090|1795289100|01:00:00|billing=2,cpu=2,mem=1000M,node=1\n\
             8|ann|art|main|1795289080|1795289090|Unknown|01:00:00|cpu=2\n\
             9|bob||main|1795289080|Unknown|1795289090|UNLIMITED|\n"
        );
        let ended = Ended::parse(&text).unwrap();
        assert_eq!(ended.len(), 1);
        let job = &ended[0];
        assert_eq!((job.id, job.end.since(job.start).secs_f64(), job.held.cpus()), (7, 10.0, 2));
        assert_eq!(job.limit.to_string(), "01:00:00");
        let error = Ended::parse(&format!("{HEADER}7|a|b|c|1|2|3|x|cpu=1\n")).unwrap_err().to_string();
        assert_eq!(error, "sacct:2:15: found \"x\", expected a time limit");
        assert!(Ended::parse("JobID|User\n").is_err());
    }

    #[test]
    fn a_line_reads_back() {
        let text =
            format!("{HEADER}7|ann||main|1795289080|1795289090|1795289100|UNLIMITED|cpu=2,mem=1000M,gres/gpu=1\n");
        let job = Ended::parse(&text).unwrap().remove(0);
        assert_eq!(Ended::of_line(&job.line()), Some(job));
        assert_eq!(Ended::of_line("7|x"), None);
    }

    #[test]
    fn everybody_is_asked_for_by_name() {
        let call = Ended::call(Time::from_secs(1_693_440_000), Time::from_secs(1_693_484_987), true);
        let line = call.arguments.join(" ");
        assert!(line.contains("--allusers --starttime=2023-08-31T00:00:00 --endtime=2023-08-31T12:29:47"), "{line}");
    }
}
