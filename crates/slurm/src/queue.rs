//! The queue: `squeue -O`.

use evenhand_model::{Nano, Time};
use evenhand_workload::slurm_notation::{Gres, memory, parse_gres};

use crate::array_task_ids::ArrayTaskIds;
use crate::error::{ReadError, TextError};
use crate::parse_table::{Field, Row, SEPARATOR, Table};
use crate::parse_values::{Limit, number, signed, time};
use crate::run_commands::{Call, Commands};
use crate::tres::Tres;

/// The fields to request, in the order in which they are printed. Their names in the header differ, see [`job`]. Fields
/// that a release does not know stay empty.
const FIELDS: [&str; 33] = [
    "JobID",
    "ArrayJobID",
    "ArrayTaskID",
    "HetJobID",
    "HetJobOffset",
    "UserName",
    "Account",
    "Partition",
    "QOS",
    "State",
    "Reason",
    "SubmitTime",
    "EligibleTime",
    "StartTime",
    "EndTime",
    "TimeLimit",
    "PriorityLong",
    "Nice",
    "Dependency",
    "NumNodes",
    "NumCPUs",
    "NumTasks",
    "MinMemory",
    "tres-alloc",
    "tres-per-node",
    "tres-per-job",
    "tres-per-socket",
    "tres-per-task",
    "Feature",
    "Reservation",
    "NodeList",
    "RestartCnt",
    "Licenses",
];

/// The jobs of a site that have not ended and that the user may see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue {
    /// In the order of `squeue`.
    pub jobs: Vec<Job>,
}

/// A record of the queue: a job, a component of a heterogeneous job, a task of a job array, or all tasks of an array
/// that have no record of their own yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The job id of this record.
    pub id: u64,
    /// The job array, if it belongs to one.
    pub array: Option<Array>,
    /// The heterogeneous job, if it is a component of one. All components start together.
    pub heterogeneous: Option<Heterogeneous>,
    /// The user.
    pub user: String,
    /// The account that is charged.
    pub account: Option<String>,
    /// The partitions; several if the job may run in any of them.
    pub partitions: Vec<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// The state.
    pub state: JobState,
    /// The reason for waiting, as printed by Slurm.
    pub reason: Option<String>,
    /// The time of submission, or of the last requeue.
    pub submit: Option<Time>,
    /// The time at which it became or becomes eligible; unknown while it is held or has an unfulfilled dependency.
    pub eligible: Option<Time>,
    /// The time at which it started or is expected to start.
    pub start: Option<Time>,
    /// The latest or expected end.
    pub end: Option<Time>,
    /// The time limit.
    pub limit: Limit,
    /// Slurm's priority, 0 while it is held.
    pub priority: Option<u64>,
    /// The nice value, which is subtracted from the priority.
    pub nice: Option<i64>,
    /// The dependencies as printed: `afterok:7(unfulfilled)`.
    pub dependency: Option<String>,
    /// The allocated or the minimum requested number of nodes.
    pub nodes: Option<u64>,
    /// The allocated or the minimum requested number of CPUs.
    pub cpus: Option<u64>,
    /// The number of Slurm tasks (processes) that it starts.
    pub processes: Option<u64>,
    /// The allocated or requested resources on all nodes; for an array those of each task.
    pub requested: Tres,
    /// The requested memory in billionths of a byte, per CPU or per node, which `squeue` does not distinguish; 0 for
    /// the whole memory of a node.
    pub min_memory: Option<Nano>,
    /// Generic resources requested per node.
    pub per_node: Vec<Gres>,
    /// Generic resources requested per job.
    pub per_job: Vec<Gres>,
    /// Generic resources requested per socket.
    pub per_socket: Vec<Gres>,
    /// Generic resources requested per Slurm task.
    pub per_task: Vec<Gres>,
    /// Required features of nodes: `gpu&ib`.
    pub features: Option<String>,
    /// The reservation.
    pub reservation: Option<String>,
    /// Required licences.
    pub licences: Option<String>,
    /// The allocated nodes, as a hostlist expression.
    pub node_list: Option<String>,
    /// The number of times it was requeued.
    pub restarts: u64,
}

/// A record's part of a job array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// The job id of the array, by which all of it is modified at once.
    pub job: u64,
    /// The tasks in this record.
    pub tasks: ArrayTaskIds,
}

/// A record's part of a heterogeneous job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heterogeneous {
    /// The id of the job: that of its first component.
    pub job: u64,
    /// The index of this component, from 0.
    pub offset: u64,
}

/// By whom a job is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The job's user, or a coordinator of the account.
    User,
    /// An administrator, or Slurm after a failed launch.
    Administrator,
}

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $word:literal),+) => {
        /// The state of a job (JOB STATE CODES of squeue(1)). Unknown states are kept.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum JobState {
            $($(#[$doc])* $name,)+
            /// A state of another release, as printed.
            Other(String),
        }

        impl JobState {
            /// The states in long form, as Slurm prints them.
            pub const NAMES: &'static [&'static str] = &[$($word),+];

            /// Parses a state in long form.
            pub fn parse(text: &str) -> JobState {
                match text {
                    $($word => JobState::$name,)+
                    other => JobState::Other(other.to_string()),
                }
            }

            /// Returns the state as printed by Slurm.
            pub fn name(&self) -> &str {
                match self {
                    $(JobState::$name => $word,)+
                    JobState::Other(word) => word,
                }
            }
        }
    };
}

states!(
    /// It waits.
    Pending = "PENDING",
    /// Its nodes are being prepared.
    Configuring = "CONFIGURING",
    /// It runs.
    Running = "RUNNING",
    /// It holds its nodes but does not run.
    Suspended = "SUSPENDED",
    /// It has ended, and its nodes are being cleaned up.
    Completing = "COMPLETING",
    /// It is stopped and keeps its CPUs.
    Stopped = "STOPPED",
    /// Its size is changing.
    Resizing = "RESIZING",
    /// It is being signalled.
    Signaling = "SIGNALING",
    /// Its output files are being staged out.
    StageOut = "STAGE_OUT",
    /// It is being requeued.
    Requeued = "REQUEUED",
    /// It is being requeued and held.
    RequeueHold = "REQUEUE_HOLD",
    /// It is requeued after a special exit.
    SpecialExit = "SPECIAL_EXIT"
);

impl JobState {
    /// Returns whether it holds resources now.
    pub fn holds_resources(&self) -> bool {
        use JobState::*;
        matches!(self, Configuring | Running | Completing | Stopped | Resizing | Signaling | StageOut)
    }
}

impl Job {
    /// Returns the number of tasks in this record: 1, or the number of array tasks without a record of their own.
    pub fn tasks(&self) -> u64 {
        self.array.as_ref().map_or(1, |array| array.tasks.count())
    }

    /// Returns whether it runs, or is about to: it holds resources and has not ended.
    pub fn runs(&self) -> bool {
        self.state.holds_resources() && self.state != JobState::Completing
    }

    /// Returns when it ended, if it has and its nodes are still being cleaned up, as by an epilog. Slurm shows the time at which
    /// such a job ended, whatever its limit is; accounting may have it already.
    pub fn ended(&self, now: Time) -> Option<Time> {
        (self.state == JobState::Completing).then(|| self.end.unwrap_or(now).min(now))
    }

    /// Returns by whom it is held, if it is.
    pub fn held(&self) -> Option<Hold> {
        if self.state != JobState::Pending {
            return None;
        }
        match self.reason.as_deref() {
            Some("JobHeldUser") => Some(Hold::User),
            Some("JobHeldAdmin" | "launch_failed_requeued_held" | "launch failed requeued held") => {
                Some(Hold::Administrator)
            }
            // Held, but with another reason.
            _ if self.priority == Some(0) => Some(Hold::Administrator),
            _ => None,
        }
    }

    /// Returns the dependencies for which it waits, if it does: what is left of its dependencies may be fulfilled.
    pub fn waits_for(&self) -> Option<&str> {
        let on = self.dependency.as_deref().filter(|_| self.state == JobState::Pending)?;
        (self.reason().starts_with("Dependency") || on.contains("unfulfilled")).then_some(on)
    }

    /// Returns the resources needed on each node, if it requests the same on each: its request divided by the number of
    /// nodes, rounded up.
    pub fn requested_per_node(&self) -> [Nano; 3] {
        let nodes = Nano::from(self.requested.nodes().or(self.nodes).unwrap_or(1).max(1));
        self.requested.demand().map(|amount| amount.div_ceil(nodes))
    }
}

impl Queue {
    /// Returns the command that prints the whole queue, hidden partitions included.
    pub fn call() -> Call {
        let fields = FIELDS.map(|field| format!("{field}:{SEPARATOR}")).join(",");
        Call::new("squeue", ["--all".to_string(), format!("--Format={fields}")])
    }

    /// Reads the queue. This locks the controller's job list once: about 20 ms for 10,000 jobs.
    ///
    /// # Errors
    /// Returns an error if `squeue` fails or its output is not understood.
    pub fn read(commands: &dyn Commands) -> Result<Queue, ReadError> {
        Ok(Queue::parse(&commands.run(&Queue::call())?)?)
    }

    /// Parses the output of `squeue` with a header line, in columns separated by `|` or the separator of
    /// [`Queue::call`].
    ///
    /// # Errors
    /// Returns an error if there is no header, or a job has no id, user or state, or a malformed value.
    pub fn parse(text: &str) -> Result<Queue, TextError> {
        let table = Table::of("squeue", text, &["JOBID", "USER", "STATE"])?;
        let jobs = table.rows().map(|row| job(&row?)).collect::<Result<_, _>>()?;
        Ok(Queue { jobs })
    }

    /// Returns the waiting jobs.
    pub fn pending(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(|job| job.state == JobState::Pending)
    }

    /// Returns the jobs that hold resources.
    pub fn running(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(|job| job.state.holds_resources())
    }
}

fn job(row: &Row<'_, '_>) -> Result<Job, TextError> {
    let id = row.required("JOBID", "a job's number")?.read("a job's number", number)?;
    let of = |name: &str, expected: &str| optional(row.get(name), expected, number);
    let text = |name: &str| row.get(name).map(|field| field.text.to_string());
    let moment = |name: &str| optional(row.get(name), "a time", time);
    let gres =
        |name: &str| Ok(optional(row.get(name), "generic resources like gpu:2", parse_gres)?.unwrap_or_default());
    let tasks = optional(row.get("ARRAY_TASK_ID"), "indices like 0-5%2", ArrayTaskIds::parse)?;
    let array_job = of("ARRAY_JOB_ID", "a job's number")?;
    // 0 if the job is not heterogeneous; in other releases the largest number.
    let het_job = of("HET_JOB_ID", "a job's number")?.filter(|job| *job > 0);
    let het_offset = of("HET_JOB_OFFSET", "a number")?;
    let requested = match row.get("TRES_ALLOC").or(row.get("TRES")) {
        Some(field) => Tres::parse(field.text).map_err(|error| {
            let (at, part) = (error.at, error.found);
            let text = std::str::from_utf8(part).unwrap_or_default();
            Field { column: field.column + at, text, ..field }.error("TRES like cpu=8,mem=4G,gres/gpu=1")
        })?,
        None => Tres::default(),
    };
    Ok(Job {
        id,
        array: tasks.map(|tasks| Array { job: array_job.unwrap_or(id), tasks }),
        heterogeneous: het_job.map(|job| Heterogeneous { job, offset: het_offset.unwrap_or(0) }),
        user: row.required("USER", "a user's name")?.text.to_string(),
        account: text("ACCOUNT"),
        partitions: row.get("PARTITION").map_or(Vec::new(), |f| f.text.split(',').map(String::from).collect()),
        qos: text("QOS"),
        state: JobState::parse(row.required("STATE", "a state")?.text),
        reason: text("REASON"),
        submit: moment("SUBMIT_TIME")?,
        eligible: moment("ELIGIBLE_TIME")?,
        start: moment("START_TIME")?,
        end: moment("END_TIME")?,
        limit: optional(row.get("TIME_LIMIT"), "a time limit like 1-00:00:00", Limit::parse)?.unwrap_or_default(),
        priority: of("PRIORITY", "a number")?,
        nice: optional(row.get("NICE"), "a whole number", signed)?,
        dependency: text("DEPENDENCY"),
        // The minimum of a range such as 2-4.
        nodes: optional(row.get("NODES"), "a number of nodes", |t| number(t.split('-').next()?))?,
        cpus: of("CPUS", "a number of CPUs")?,
        processes: of("TASKS", "a number of tasks")?,
        requested,
        min_memory: optional(row.get("MIN_MEMORY"), "memory like 500M", min_memory)?,
        per_node: gres("TRES_PER_NODE")?,
        per_job: gres("TRES_PER_JOB")?,
        per_socket: gres("TRES_PER_SOCKET")?,
        per_task: gres("TRES_PER_TASK")?,
        features: text("FEATURES"),
        reservation: text("RESERVATION"),
        licences: text("LICENSES"),
        node_list: text("NODELIST"),
        restarts: of("RESTART_COUNT", "a number")?.unwrap_or(0),
    })
}

/// Parses memory such as `500M`, `4Gc` (per CPU) or `4Gn` (per node).
fn min_memory(text: &str) -> Option<Nano> {
    memory(text.strip_suffix(['c', 'n']).unwrap_or(text).as_bytes())
}

fn optional<'a, T>(
    field: Option<Field<'a>>,
    expected: &str,
    read: impl FnOnce(&'a str) -> Option<T>,
) -> Result<Option<T>, TextError> {
    field.map(|field| field.read(expected, read)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = "JOBID|ARRAY_JOB_ID|ARRAY_TASK_ID|HET_JOB_ID|HET_JOB_OFFSET|USER|ACCOUNT|PARTITION|QOS|STATE|\
        REASON|SUBMIT_TIME|ELIGIBLE_TIME|TIME_LIMIT|PRIORITY|NICE|DEPENDENCY|NODES|CPUS|MIN_MEMORY|TRES_ALLOC|TRES_PER_NODE";

    fn one(line: &str) -> Result<Job, String> {
        let queue = Queue::parse(&format!("{HEADER}\n{line}\n")).map_err(|e| e.to_string())?;
        Ok(queue.jobs[0].clone())
    }

    #[test]
    fn an_array_is_one_record_with_its_tasks() {
        let job = one(
            "6|6|1-1000%5|N/A|N/A|ann|art|main|normal|PENDING|Priority|1795289080|1795289080|10:00|1|100|(null)|1|8\
            |500M|cpu=8,mem=4000M,node=1,billing=8|gres:gpu:2",
        )
        .unwrap();
        assert_eq!((job.tasks(), job.array.as_ref().map(|a| (a.job, a.tasks.max_running))), (1000, Some((6, Some(5)))));
        assert_eq!((job.nice, job.priority, job.held(), job.heterogeneous), (Some(100), Some(1), None, None));
        assert_eq!(job.limit.to_string(), "00:10:00");
        assert_eq!(job.submit, Time::checked_from_secs(1_795_289_080));
        assert_eq!(job.per_node[0].count, 2);
        assert_eq!(job.requested.bytes(), 4000 << 20);
        assert_eq!(job.min_memory, Some((500 << 20) * 1_000_000_000));
    }

    #[test]
    fn holds_dependencies_and_heterogeneous_components_are_read() {
        let held =
            one("3|3|N/A|N/A|N/A|ann|a|main|normal|PENDING|JobHeldUser|1|N/A|UNLIMITED|0|0|(null)|1|1|0||N/A").unwrap();
        assert_eq!((held.held(), held.eligible, held.limit), (Some(Hold::User), None, Limit::None));
        assert_eq!(held.array, None);
        let admin =
            one("3|3|N/A|N/A|N/A|ann||main|q|PENDING|JobHeldAdmin|1|N/A|1:00|0|-5|afterok:1(unfulfilled)|2-4|1|4Gn||")
                .unwrap();
        assert_eq!((admin.held(), admin.nice, admin.nodes), (Some(Hold::Administrator), Some(-5), Some(2)));
        assert_eq!(admin.dependency.as_deref(), Some("afterok:1(unfulfilled)"));
        let part = one("9|9|N/A|8|1|ann|a|main,fast|q|RUNNING|None|1|1|1:00|5|0|(null)|3|7|1G|cpu=7,node=3|").unwrap();
        assert_eq!(part.heterogeneous, Some(Heterogeneous { job: 8, offset: 1 }));
        assert_eq!((part.partitions.len(), part.held(), part.requested_per_node()[0]), (2, None, 2_333_333_334));
        let new = one("9|9|N/A|0|0|ann|a|main|q|POWER_UP_NODE|None|1|1|1:00|5|0|(null)|1|1|1G||").unwrap();
        assert_eq!(new.state.name(), "POWER_UP_NODE");
    }

    #[test]
    fn a_malformed_value_is_reported_with_its_position() {
        let error = |line: &str| one(line).unwrap_err();
        assert_eq!(
            error("9|9|N/A|0|0|ann|a|main|q|RUNNING|None|1|1|1:00|5|0|(null)|1|1|1G|cpu=1,mem=x|"),
            "squeue:2:72: found \"mem=x\", expected TRES like cpu=8,mem=4G,gres/gpu=1"
        );
        assert!(
            error("x|||||ann||||PENDING||||||||||||").starts_with("squeue:2:1: found \"x\", expected a job's number")
        );
        assert!(error("1|||||||||PENDING||||||||||||").contains("expected a user's name"));
        assert!(error("1|||||ann||||PENDING").contains("found 10 columns, expected 22"));
        assert!(
            Queue::parse("JOBID|USER\n1|ann\n")
                .unwrap_err()
                .to_string()
                .contains("a header line with JOBID, USER, STATE")
        );
    }

    #[test]
    fn absent_columns_are_tolerated() {
        let queue = Queue::parse("STATE|USER|JOBID\nRUNNING|ann|7\n").unwrap();
        assert_eq!((queue.running().count(), queue.pending().count(), queue.jobs[0].tasks()), (1, 0, 1));
        assert_eq!(Queue::parse("STATE|USER|JOBID\n").unwrap().jobs.len(), 0);
    }

    proptest! {
        #[test]
        fn a_rendered_job_reads_back(
            id in 1u64..1 << 40, user in "[a-z_][a-z0-9_-]{0,8}", priority in 0u64..1 << 32, nice in -2_147_483_645i64..2_147_483_645,
            submit in 0u64..4_000_000_000, cpus in 1u64..5000, limit in prop::option::of(1u64..1 << 30), last in 1u64..2000,
            features in "[a-z&|*()]{1,12}", array: bool,
        ) {
            let limit = limit.map_or(Limit::None, |s| Limit::Span(evenhand_model::Span::from_secs(s)));
            let tasks = if array { format!("0-{last}") } else { "N/A".into() };
            let fields = ["JOBID", "USER", "STATE", "PRIORITY", "NICE", "SUBMIT_TIME", "CPUS", "TIME_LIMIT", "ARRAY_TASK_ID", "FEATURES", ""];
            let values = [id.to_string(), user.clone(), "PENDING".into(), priority.to_string(), nice.to_string(), submit.to_string(),
                cpus.to_string(), limit.to_string(), tasks, features.clone(), String::new()];
            let separator = SEPARATOR.to_string();
            let queue = Queue::parse(&format!("{}\n{}\n", fields.join(&separator), values.join(&separator))).unwrap();
            let job = &queue.jobs[0];
            prop_assert_eq!((job.id, &job.user, job.priority, job.nice), (id, &user, Some(priority), Some(nice)));
            prop_assert_eq!((job.submit, job.cpus, job.limit), (Time::checked_from_secs(submit), Some(cpus), limit));
            prop_assert_eq!(job.tasks(), if array { last + 1 } else { 1 });
            prop_assert_eq!(job.features.as_deref(), Some(features.as_str()));
            prop_assert_eq!(job.held().is_some(), priority == 0);
        }

        #[test]
        fn no_text_causes_a_panic(lines in prop::collection::vec("[^\n]{0,60}|([0-9a-zA-Z/%,:=.-]{0,9}\\|){21}[a-z:=0-9]{0,9}", 0..4)) {
            let _ = Queue::parse(&format!("{HEADER}\n{}", lines.join("\n")));
            let _ = Queue::parse(&lines.join("\n"));
        }
    }
}
