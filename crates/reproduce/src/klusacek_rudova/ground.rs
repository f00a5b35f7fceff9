//! What the experiments share: a site, its jobs, runs on it, and what each run charges.

use std::sync::Arc;

use evenhand_model::{Amount, Cluster, MachineGroup, NO_TIME, Rational, ResourceQuantity, Span, Weights, Workload};
use evenhand_policies::Decay;
use evenhand_policies::equivalents::{Combine, Equivalents};
use evenhand_simulator::{Backfill, JobOptions, Jobs, Placement, Progress, Simulated, Site, TaskProcessors, UserTasks};
use evenhand_study::{PolicyInputs, ReplayOn, replay};
use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};

use crate::{ReproduceError, Settings};

/// Past use counts half after so long: as in the authors' simulator.
pub(super) const HALF_LIFE: Span = Span::from_secs(72 * 3600);

/// A group of machines: name, how many, what each has (`80`, `512Gi`), speed.
pub(super) type Machines<'a> = (&'a str, u32, &'a [&'a str], &'a str);

/// The two clusters of the log of CERIT-SC (server wagap): the machine file beside the log.
pub(super) const WAGAP: [Machines<'static>; 2] =
    [("zewura", 20, &["80", "529426432Ki"], "1"), ("zegox", 48, &["12", "94035968Ki"], "1")];

/// Machines with these resources.
pub(super) fn cluster(resources: &[&str], groups: &[Machines<'_>]) -> Result<Cluster, ReproduceError> {
    let stock = |text: &str| ResourceQuantity::parse(text).map_err(|e| ReproduceError::Setup(e.to_string()));
    let group = |(name, count, has, speed): &Machines<'_>| {
        Ok(MachineGroup {
            name: (*name).into(),
            count: *count,
            capacity: has.iter().map(|text| stock(text)).collect::<Result<_, ReproduceError>>()?,
            speed: stock(speed)?.exact,
            properties: Vec::new(),
        })
    };
    Ok(Cluster {
        resources: resources.iter().map(|r| (*r).to_string()).collect(),
        groups: groups.iter().map(group).collect::<Result<_, ReproduceError>>()?,
        queues: Vec::new(),
    })
}

/// A workload on the machines of a cluster.
pub(super) struct Ground {
    /// `generated log` or `trace`
    pub(super) name: &'static str,
    pub(super) workload: Arc<Workload>,
    tasks: UserTasks,
    pub(super) site: Site,
    pub(super) jobs: Jobs,
    cluster: Cluster,
}

/// How a run differs from another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) policy: &'static str,
    pub(super) placement: Placement,
    pub(super) combine: Combine,
}

impl Rules {
    pub(super) fn of(policy: &'static str) -> Rules {
        Rules { policy, placement: Placement::default(), combine: Combine::default() }
    }
}

impl Ground {
    pub(super) fn new(name: &'static str, workload: Arc<Workload>, cluster: Cluster) -> Result<Ground, ReproduceError> {
        let site = Site::machines(&cluster, workload.resources()).map_err(|e| ReproduceError::Setup(e.to_string()))?;
        let (tasks, jobs) = (UserTasks::new(&workload), Jobs::new(&workload, &site));
        Ok(Ground { name, workload, tasks, site, jobs, cluster })
    }

    /// A log like MetaCentrum's, generated, and the trace given, each on the machines of that log.
    pub(super) fn metacentrum(settings: &Settings) -> Result<Vec<Ground>, ReproduceError> {
        Ground::metacentrum_on(settings, &WAGAP)
    }

    /// The same on other machines.
    pub(super) fn metacentrum_on(settings: &Settings, groups: &[Machines<'_>]) -> Result<Vec<Ground>, ReproduceError> {
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
        let mut grounds = vec![Ground::new("generated log", generated, cluster(&["cpu", "mem"], groups)?)?];
        if let Some(trace) = &settings.trace {
            let has = |name: &str| trace.resources().iter().any(|r| r.name == name);
            if has("cpu") && has("mem") && trace.resources().len() == 2 {
                grounds.push(Ground::new("trace", Arc::clone(trace), cluster(&["cpu", "mem"], groups)?)?);
            }
        }
        Ok(grounds)
    }

    /// In words.
    pub(super) fn about(&self) -> String {
        let refused = (0..self.workload.len()).filter(|row| self.jobs.rejection(*row).is_some()).count();
        format!(
            "{}: {} jobs of {} users on {} machines; {refused} fit on none",
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

    /// Who goes first by `rules`, with EASY backfilling, all users entitled to the same.
    pub(super) fn run(&self, rules: Rules) -> Result<Simulated, ReproduceError> {
        let weights = Weights::equal(self.workload.users().len());
        let decay = Decay::from_half_life(HALF_LIFE).map_err(|e| ReproduceError::Setup(e.to_string()))?;
        let equivalents = self.prices(rules.combine)?;
        let inputs = PolicyInputs::new(weights);
        let context = inputs.context(&self.workload, self.site.total(), Some(&equivalents), Some(decay));
        let policy = inputs.registry.build(rules.policy, &context);
        let mut policy = policy.map_err(|e| ReproduceError::Setup(e.to_string()))?;
        let options = JobOptions { placement: rules.placement, backfill: Backfill::Easy, ..JobOptions::default() };
        let on = ReplayOn::Site { site: &self.site, jobs: &self.jobs, options };
        Ok(replay(&self.workload, &self.tasks, on, policy.as_mut(), &Progress::default())?)
    }

    /// The kind of a machine: its group.
    pub(super) fn kind_of(&self, machine: u32) -> usize {
        let mut first = 0;
        let is_in = |count: u32| {
            first += count;
            machine < first
        };
        self.cluster.groups.iter().map(|g| g.count).position(is_in).unwrap_or(0)
    }

    /// What a chunk of a row holds, in units.
    pub(super) fn chunk(&self, row: usize) -> Vec<Rational> {
        let copies = u64::from(self.jobs.chunks(row).max(1));
        let amounts = self.workload.amounts(row).iter().zip(self.workload.resources());
        amounts.map(|(a, resource)| resource.exact(Amount(a.0.div_ceil(copies)))).collect()
    }

    /// Least processor equivalents of each row, over all chunks; 0 of those that fit nowhere.
    pub(super) fn equivalents(&self, combine: Combine) -> Result<Vec<f64>, ReproduceError> {
        let processors = TaskProcessors::on_machines(&self.workload, &self.cluster, &self.jobs, combine)
            .ok_or_else(|| ReproduceError::Setup("no resource is processors".into()))?;
        Ok((0..self.workload.len()).map(|row| processors.equivalent(row)).collect())
    }

    /// The processors of each row.
    pub(super) fn processors(&self) -> Vec<f64> {
        let cpu = self.workload.resources().iter().position(|r| r.name == "cpu").unwrap_or(0);
        let resource = &self.workload.resources()[cpu];
        (0..self.workload.len()).map(|row| resource.value(self.workload.amounts(row)[cpu])).collect()
    }

    /// By user: the sum over what ran of `rate` times seconds.
    pub(super) fn by_user(&self, run: &Simulated, rate: &[f64]) -> Vec<f64> {
        let columns = self.workload.columns();
        let mut sums = vec![0.0; self.workload.users().len()];
        for (row, rate) in rate.iter().enumerate().filter(|(row, _)| run.starts[*row] != NO_TIME) {
            sums[columns.user[row].index()] += rate * run.run_time(row, columns.duration[row]).secs_f64();
        }
        sums
    }

    /// By user: how long its jobs ran between two instants, in seconds, several at once counted each; at speed 1.
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

    /// By user: how long its jobs waited on average, in seconds.
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

/// What to say where there is no trace, or none with cpu and mem alone.
pub(super) fn skipped(settings: &Settings, grounds: &[Ground]) -> Option<String> {
    if settings.trace.is_some() {
        let other = "on the log given: skipped, since it has not just cpu and mem";
        return (grounds.len() == 1).then(|| other.into());
    }
    let none = "on a real log: skipped, since none was given (--data LOG; MetaCentrum's needs --relaxed \
                --swf-memory-unit B --swf-memory-per node)";
    Some(none.into())
}
