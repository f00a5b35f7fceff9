//! A simulated slurmctld and accounting, which answer the driver's commands.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;

use evenhand_slurm::{Call, CommandError, Commands, FailureKind};

/// A job of the simulated controller.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) user: &'static str,
    pub(crate) cpus: u64,
    pub(crate) site_factor: i64,
    /// A priority that an administrator set.
    pub(crate) pinned: Option<u64>,
    pub(crate) held: bool,
    pub(crate) runs: bool,
    /// It runs no longer: it ended at this second, and its node is being cleaned up.
    pub(crate) completing_since: Option<u64>,
    /// It has ended, and can be requeued until the controller forgets it.
    pub(crate) ended: bool,
    /// The next look does not show it.
    pub(crate) hidden: bool,
}

impl Job {
    pub(crate) fn of(user: &'static str, cpus: u64) -> Job {
        Job {
            user,
            cpus,
            site_factor: 0,
            pinned: None,
            held: false,
            runs: false,
            completing_since: None,
            ended: false,
            hidden: false,
        }
    }

    pub(crate) fn waits(&self) -> bool {
        !self.runs && !self.ended
    }

    pub(crate) fn priority(&self) -> u64 {
        match (self.held, self.pinned) {
            (true, _) => 0,
            (_, Some(priority)) => priority,
            _ => self.site_factor.max(1) as u64,
        }
    }
}

#[derive(Default)]
pub(crate) struct Slurm {
    pub(crate) jobs: RefCell<BTreeMap<u64, Job>>,
    /// Crashes the process at this command, before or after it takes effect.
    pub(crate) dies_at: Cell<Option<(usize, bool)>>,
    pub(crate) commands_run: Cell<usize>,
    pub(crate) updates: Cell<usize>,
    pub(crate) denied: Cell<bool>,
    /// Queries hang until they are given up; writes work.
    pub(crate) is_silent: Cell<bool>,
    pub(crate) accounting: Cell<bool>,
    /// From when on accounting was asked for last.
    pub(crate) asked_from: RefCell<String>,
    pub(crate) ended: RefCell<String>,
    /// How often associations were asked for.
    pub(crate) associations_asked: Cell<usize>,
    /// What `sacctmgr` prints of them, if it responds.
    pub(crate) associations: RefCell<Option<String>>,
}

impl Slurm {
    pub(crate) fn with(jobs: impl IntoIterator<Item = Job>) -> Slurm {
        let slurm = Slurm::default();
        slurm.jobs.borrow_mut().extend((1..).zip(jobs));
        slurm
    }

    pub(crate) fn factors(&self) -> Vec<i64> {
        self.jobs.borrow().values().map(|j| j.site_factor).collect()
    }

    /// Returns the waiting jobs by decreasing priority.
    pub(crate) fn order(&self) -> Vec<u64> {
        let jobs = self.jobs.borrow();
        let mut waiting: Vec<u64> = jobs.iter().filter(|(_, j)| j.waits() && !j.held).map(|(id, _)| *id).collect();
        waiting.sort_by_key(|id| (std::cmp::Reverse(jobs[id].priority()), *id));
        waiting
    }

    pub(crate) fn answer(&self, call: &Call) -> Result<String, CommandError> {
        let jobs = self.jobs.borrow();
        let failed = |program, message: &str, kind| CommandError::Failed { program, message: message.into(), kind };
        if self.is_silent.get() && call.input.is_none() {
            return Err(CommandError::TimedOut { program: call.program, seconds: 3, message: String::new() });
        }
        let mut text = String::new();
        if call.program == "sacctmgr" {
            self.associations_asked.set(self.associations_asked.get() + 1);
        }
        match (call.program, call.arguments.join(" ").as_str()) {
            ("squeue", _) => {
                text += "JOBID|USER|ACCOUNT|PARTITION|STATE|REASON|SUBMIT_TIME|ELIGIBLE_TIME|START_TIME|END_TIME|TIME_LIMIT|PRIORITY|NICE|TRES_ALLOC\n";
                for (id, job) in jobs.iter().filter(|(_, j)| !j.ended && !j.hidden) {
                    let state = match job.completing_since {
                        Some(_) => "COMPLETING",
                        None if job.runs => "RUNNING",
                        None => "PENDING",
                    };
                    let end = job.completing_since.map_or("N/A".to_string(), |end| end.to_string());
                    let reason = if job.held { "JobHeldUser" } else { "Priority" };
                    let start = if job.runs { "900" } else { "N/A" };
                    writeln!(
                        text,
                        "{id}|{}|a|main|{state}|{reason}|{id}|{id}|{start}|{end}|1:00:00|{}|0|cpu={},mem=100M,node=1",
                        job.user,
                        job.priority(),
                        job.cpus
                    )
                    .unwrap();
                }
            }
            ("sprio", _) => {
                text += "JOBID|PRIORITY|SITE\n";
                for (id, job) in jobs.iter().filter(|(_, j)| j.waits() && !j.held && !j.hidden) {
                    writeln!(text, "{id}|{}|{}", job.priority(), job.site_factor).unwrap();
                }
            }
            ("sacct", words) if self.accounting.get() => {
                let time =
                    |name: &str| words.split(name).nth(1).and_then(|rest| rest.split(' ').next()).unwrap().to_owned();
                assert!(time("--starttime=") <= time("--endtime="), "sacct refuses that: {words}");
                *self.asked_from.borrow_mut() = time("--starttime=");
                text = format!(
                    "JobIDRaw|User|Account|Partition|Submit|Start|End|Timelimit|AllocTRES\n{}",
                    self.ended.borrow()
                );
            }
            ("sacctmgr", _) if self.associations.borrow().is_some() => {
                text = self.associations.borrow().clone().unwrap_or_default();
            }
            ("sacct" | "sacctmgr", _) => {
                return Err(failed("sacct", "Slurm accounting storage is disabled", FailureKind::NoAccounting));
            }
            ("scontrol", words) if words.contains("show node") => {
                text += "NodeName=n1 CPUTot=64 RealMemory=64000 Partitions=main State=IDLE\n";
            }
            ("scontrol", words) if words.contains("show partition") => {
                text += "PartitionName=main MaxTime=UNLIMITED\n";
            }
            ("scontrol", words) if words.starts_with("show job ") => {
                let id: u64 = words["show job ".len()..].parse().unwrap();
                if !jobs.contains_key(&id) {
                    return Err(failed(
                        "scontrol",
                        "slurm_load_jobs error: Invalid job id specified",
                        FailureKind::Other,
                    ));
                }
            }
            ("scontrol", "") => {
                drop(jobs);
                if self.denied.get() {
                    return Err(failed("scontrol", "Access/permission denied", FailureKind::Denied));
                }
                let mut message: Vec<String> = Vec::new();
                for line in call.input.as_deref().unwrap_or("").lines() {
                    let (id, value) = line.strip_prefix("update JobId=").unwrap().split_once(" SiteFactor=").unwrap();
                    self.updates.set(self.updates.get() + 1);
                    // As Slurm 22.05 does: waiting, held and running jobs take a site factor.
                    match self.jobs.borrow_mut().get_mut(&id.parse().unwrap()) {
                        Some(job) if job.ended => message.push(format!("Job has already finished for job {id}")),
                        Some(job) => job.site_factor = value.parse().unwrap(),
                        None => message.push(format!("Invalid job id specified for job {id}")),
                    }
                }
                if !message.is_empty() {
                    return Err(failed("scontrol", &message.join("; "), FailureKind::Other));
                }
            }
            other => panic!("unexpected command {other:?}"),
        }
        Ok(text)
    }
}

impl Commands for Slurm {
    fn run(&self, call: &Call) -> Result<String, CommandError> {
        let commands_run = self.commands_run.get();
        self.commands_run.set(commands_run + 1);
        let dead = || CommandError::Absent { program: "the crashed process" };
        match self.dies_at.get() {
            Some((at, false)) if commands_run >= at => Err(dead()),
            Some((at, true)) if commands_run == at => {
                let _ = self.answer(call);
                Err(dead())
            }
            Some((at, true)) if commands_run > at => Err(dead()),
            _ => self.answer(call),
        }
    }
}
