//! The testbed of these experiments: a workload on a cluster's machines, simulated runs, and the charges of each run.

use std::sync::Arc;

use evenhand_model::{Amount, Cluster, MachineGroup, NO_TIME, Rational, ResourceQuantity, Span, Weights, Workload};
use evenhand_policies::Decay;
use evenhand_policies::equivalents::{Combine, Equivalents};
use evenhand_simulator::{
    Backfill, JobOptions, Jobs, Layout, Placement, Progress, Simulated, Site, TaskProcessors, UserTasks,
};
use evenhand_study::{PolicyInputs, ReplayOn, replay};
use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};

use crate::{ReproduceError, Settings};

/// The half-life of past use, as in the authors' simulator.
pub(super) const HALF_LIFE: Span = Span::from_secs(72 * 3600);

/// A group of machines: name, number, capacity of each (`80`, `512Gi`), speed.
pub(super) type Machines<'a> = (&'a str, u32, &'a [&'a str], &'a str);

/// The two clusters of the log of CERIT-SC (server wagap), from the machine file that accompanies the log.
pub(super) const WAGAP: [Machines<'static>; 2] =
    [("zewura", 20, &["80", "529426432Ki"], "1"), ("zegox", 48, &["12", "94035968Ki"], "1")];

/// Builds a cluster of these groups, with these resources.
pub(super) fn cluster(resources: &[&str], groups: &[Machines<'_>]) -> Result<Cluster, ReproduceError> {
    let quantity = |text: &str| ResourceQuantity::parse(text).map_err(|e| ReproduceError::Setup(e.to_string()));
    let group = |(name, count, capacity, speed): &Machines<'_>| {
        Ok(MachineGroup {
            hosts: Vec::new(),
            name: (*name).into(),
            count: *count,
            capacity: capacity.iter().map(|text| quantity(text)).collect::<Result<_, ReproduceError>>()?,
            speed: quantity(speed)?.exact,
            weight: 1,
            properties: Vec::new(),
        })
    };
    Ok(Cluster {
        resources: resources.iter().map(|r| (*r).to_string()).collect(),
        groups: groups.iter().map(group).collect::<Result<_, ReproduceError>>()?,
        queues: Vec::new(),
        ..Cluster::default()
    })
}

/// A workload on the machines of a cluster.
pub(super) struct Testbed {
    /// `generated log` or `trace`
    pub(super) name: &'static str,
    pub(super) workload: Arc<Workload>,
    tasks: UserTasks,
    pub(super) site: Site,
    pub(super) jobs: Jobs,
    cluster: Cluster,
}

/// The options in which runs differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunOptions {
    pub(super) policy: &'static str,
    pub(super) placement: Placement,
    pub(super) combine: Combine,
}

impl RunOptions {
    pub(super) fn of(policy: &'static str) -> RunOptions {
        RunOptions { policy, placement: Placement::default(), combine: Combine::default() }
    }
}

impl Testbed {
    pub(super) fn new(
        name: &'static str,
        workload: Arc<Workload>,
        cluster: Cluster,
    ) -> Result<Testbed, ReproduceError> {
        let site = Site::machines(&cluster, workload.resources()).map_err(|e| ReproduceError::Setup(e.to_string()))?;
        let (tasks, jobs) = (UserTasks::new(&workload), Jobs::new(&workload, &site, Layout::Auto));
        Ok(Testbed { name, workload, tasks, site, jobs, cluster })
    }

    /// Returns testbeds for a generated log like MetaCentrum's and for the trace of `settings`, if it has cpu and mem
    /// alone; both on the machines of MetaCentrum's log.
    pub(super) fn metacentrum(settings: &Settings) -> Result<Vec<Testbed>, ReproduceError> {
        Testbed::metacentrum_on(settings, &WAGAP)
    }

    /// Like [`Testbed::metacentrum`], on other machines.
    pub(super) fn metacentrum_on(settings: &Settings, groups: &[Machines<'_>]) -> Result<Vec<Testbed>, ReproduceError> {
        // The log has 17,900 jobs of 75 users in 89 days; fewer jobs at the same rate.
        let tasks = settings.tasks.min(18_000);
        let options = GenerateOptions {
            model: TraceModel::MetaCentrum,
            tasks,
            users: 75,
            days: 89.0 * tasks as f64 / 18_000.0,
            seed: settings.seed,
        };
        let generated = Arc::new(generate(&options)?.expanded());
        let mut testbeds = vec![Testbed::new("generated log", generated, cluster(&["cpu", "mem"], groups)?)?];
        if let Some(trace) = &settings.trace {
            let has = |name: &str| trace.resources().iter().any(|r| r.name == name);
            if has("cpu") && has("mem") && trace.resources().len() == 2 {
                testbeds.push(Testbed::new("trace", Arc::clone(trace), cluster(&["cpu", "mem"], groups)?)?);
            }
        }
        Ok(testbeds)
    }

    /// Describes the size of the testbed.
    pub(super) fn about(&self) -> String {
        let rejected = (0..self.workload.len()).filter(|row| self.jobs.rejection(*row).is_some()).count();
        format!(
            "{}: {} jobs of {} users on {} machines; {rejected} fit on no machine",
            self.name,
            self.workload.len(),
            self.workload.users().len(),
            self.site.len()
        )
    }

    pub(super) fn prices(&self, combine: Combine) -> Result<Equivalents, ReproduceError> {
        Equivalents::of_cluster(&self.cluster, self.workload.resources(), combine)
            .map_err(|e| ReproduceError::Setup(e.to_string()))
    }

    /// Simulates the workload with EASY backfilling and equal shares for all users.
    pub(super) fn run(&self, run: RunOptions) -> Result<Simulated, ReproduceError> {
        let weights = Weights::equal(self.workload.users().len());
        let decay = Decay::from_half_life(HALF_LIFE).map_err(|e| ReproduceError::Setup(e.to_string()))?;
        let equivalents = self.prices(run.combine)?;
        let inputs = PolicyInputs::new(weights);
        let context = inputs.context(&self.workload, self.site.total(), Some(&equivalents), Some(decay));
        let policy = inputs.registry.build(run.policy, &context);
        let mut policy = policy.map_err(|e| ReproduceError::Setup(e.to_string()))?;
        let options = JobOptions { placement: run.placement, backfill: Backfill::Easy, ..JobOptions::default() };
        let on = ReplayOn::Site { site: &self.site, jobs: &self.jobs, options };
        Ok(replay(&self.workload, &self.tasks, on, policy.as_mut(), &Progress::default())?)
    }

    /// Returns the index of a machine's group.
    pub(super) fn kind_of(&self, machine: u32) -> usize {
        let mut first = 0;
        let is_in = |count: u32| {
            first += count;
            machine < first
        };
        self.cluster.groups.iter().map(|g| g.count).position(is_in).unwrap_or(0)
    }

    /// Returns the amounts of one chunk of a row, in units.
    pub(super) fn chunk(&self, row: usize) -> Vec<Rational> {
        let copies = u64::from(self.jobs.chunks(row).max(1));
        let amounts = self.workload.amounts(row).iter().zip(self.workload.resources());
        amounts.map(|(a, resource)| resource.exact(Amount(a.0.div_ceil(copies)))).collect()
    }

    /// Returns the minimum processor equivalents of each row, over all its chunks; 0 if it fits on no machine.
    pub(super) fn equivalents(&self, combine: Combine) -> Result<Vec<f64>, ReproduceError> {
        let processors = TaskProcessors::on_machines(&self.workload, &self.cluster, &self.jobs, combine)
            .ok_or_else(|| ReproduceError::Setup("no resource is processors".into()))?;
        Ok((0..self.workload.len()).map(|row| processors.equivalent(row)).collect())
    }

    /// Returns the processors of each row.
    pub(super) fn processors(&self) -> Vec<f64> {
        let cpu = self.workload.resources().iter().position(|r| r.name == "cpu").unwrap_or(0);
        let resource = &self.workload.resources()[cpu];
        (0..self.workload.len()).map(|row| resource.value(self.workload.amounts(row)[cpu])).collect()
    }

    /// Returns by user the sum of `rate` times run time in seconds, over the rows that ran.
    pub(super) fn by_user(&self, run: &Simulated, rate: &[f64]) -> Vec<f64> {
        let columns = self.workload.columns();
        let mut sums = vec![0.0; self.workload.users().len()];
        for (row, rate) in rate.iter().enumerate().filter(|(row, _)| run.starts[*row] != NO_TIME) {
            sums[columns.user[row].index()] += rate * run.run_time(row, columns.duration[row]).secs_f64();
        }
        sums
    }

    /// Returns by user the sum of its jobs' run times between two instants, in seconds, at speed 1.
    pub(super) fn held_seconds(&self, run: &Simulated, [from, to]: [f64; 2]) -> Vec<f64> {
        let columns = self.workload.columns();
        let mut seconds = vec![0.0; self.workload.users().len()];
        for (row, &start) in run.starts.iter().enumerate().filter(|(_, start)| **start != NO_TIME) {
            let start = start as f64 * 1e-9;
            let end = start + columns.duration[row].secs_f64();
            seconds[columns.user[row].index()] += (end.min(to) - start.max(from)).max(0.0);
        }
        seconds
    }

    /// Returns by user the mean wait of its jobs, in seconds; `None` if no job started.
    pub(super) fn mean_waits(&self, run: &Simulated) -> Vec<Option<f64>> {
        let columns = self.workload.columns();
        let mut sums = vec![(0.0, 0u64); self.workload.users().len()];
        for row in (0..self.workload.len()).filter(|row| run.starts[*row] != NO_TIME) {
            let sum = &mut sums[columns.user[row].index()];
            sum.0 += (run.starts[row] - columns.submit[row].nanos()) as f64 * 1e-9;
            sum.1 += 1;
        }
        sums.into_iter().map(|(sum, n)| (n > 0).then(|| sum / n as f64)).collect()
    }
}

/// Returns the note that reports a missing or unsuitable trace, if so.
pub(super) fn skipped(settings: &Settings, testbeds: &[Testbed]) -> Option<String> {
    if settings.trace.is_some() {
        let other = "on the log of --data: skipped, because its resources are not exactly cpu and mem";
        return (testbeds.len() == 1).then(|| other.into());
    }
    let missing = "on a real log: skipped, because none was given (--data LOG; MetaCentrum's needs --relaxed \
                   --swf-memory-unit B --swf-memory-per node)";
    Some(missing.into())
}
