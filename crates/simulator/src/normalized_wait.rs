//! Waits relative to resource use: the fairness metrics of Klusáček and Rudová.
//!
//! For a user, an account or any other set of tasks:
//!
//! - TUWT, total user wait time: the sum of the waits;
//! - TUSA, total user squashed area: the sum of run time times CPUs, or, for several resources, of run time
//!   times processor equivalent;
//! - NUWT, normalized user wait time: TUWT / max(1, TUSA).
//!
//! Klusáček and Rudová, "Performance and fairness for users in parallel job scheduling" (JSSPP 2012); Klusáček and
//! Rudová (2013) add the processor equivalent. All sums are over started tasks, each with its run time in the
//! simulation.

use evenhand_model::{Amount, Capacity, Cluster, NO_TIME, Rational, Span, Time, Workload, to_f64};
use evenhand_policies::equivalents::{Combine, Equivalents};
use serde::{Deserialize, Serialize};

use crate::jobs::Kind;
use crate::metrics::{bounded_slowdown, mean_s};
use crate::{Jobs, Simulated, Totals};

/// Processor equivalents of the tasks of a workload.
#[derive(Clone, Debug)]
pub struct TaskProcessors<'a> {
    workload: &'a Workload,
    processors: usize,
    /// The kind of each row's job, where jobs differ by more than their demand.
    kinds: Option<&'a [u32]>,
    /// Processor equivalent, by kind of job or by demand.
    equivalents: Vec<f64>,
}

impl<'a> TaskProcessors<'a> {
    /// For a pool: the equivalent of a task is Maui's (Klusáček and Rudová 2013, Eq. 1), with the pool as one machine.
    /// `None` if no resource is processors.
    pub fn in_pool(workload: &'a Workload, capacity: &Capacity) -> Option<TaskProcessors<'a>> {
        let resources = workload.resources();
        let prices = Equivalents::of_pool(resources, capacity).ok()?;
        let of_demand =
            |steps: &[Amount]| to_f64(&prices.of_totals(&units(workload, steps.iter().map(|a| a.0))).processors);
        let equivalents = workload.demands().rows().map(|(_, demand)| of_demand(demand)).collect();
        Some(TaskProcessors { workload, processors: prices.processors(), kinds: None, equivalents })
    }

    /// For machines: the equivalent of a job is the sum over its chunks of the minimum on any group of machines
    /// it may use (min-PE, Eq. 3), resources joined as `combine` says. `None` if no resource is processors.
    pub fn on_machines(
        workload: &'a Workload,
        cluster: &Cluster,
        jobs: &'a Jobs,
        combine: Combine,
    ) -> Option<TaskProcessors<'a>> {
        let prices = Equivalents::of_cluster(cluster, workload.resources(), combine).ok()?;
        let of_kind = |kind: &Kind| {
            let chunk = units(workload, kind.chunk.iter().copied());
            let lowest = prices.lowest_of(&chunk, |group| kind.groups.iter().any(|g| usize::from(*g) == group));
            // A job that fits on no machine never runs.
            lowest.map_or(0.0, |(_, e)| to_f64(&(e.processors * Rational::from(kind.copies))))
        };
        let equivalents = jobs.kinds.iter().map(of_kind).collect();
        Some(TaskProcessors { workload, processors: prices.processors(), kinds: Some(&jobs.kind), equivalents })
    }

    /// The number of the resource that is processors.
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// The processor equivalent of the task of a row.
    #[inline]
    pub fn equivalent(&self, row: usize) -> f64 {
        let kind = self.kinds.map_or_else(|| self.workload.columns().demand[row].index(), |kinds| kinds[row] as usize);
        self.equivalents[kind]
    }
}

fn units(workload: &Workload, steps: impl Iterator<Item = u64>) -> Vec<Rational> {
    steps.zip(workload.resources()).map(|(s, r)| Rational::from_parts(s.into(), r.steps().into())).collect()
}

/// Sums over started tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Counts of tasks.
    pub totals: Totals,
    /// Of waits, in nanoseconds.
    pub(crate) wait_ns: u128,
    /// Of bounded slowdowns.
    pub(crate) slowdown: f64,
    /// Of processors times run time, in steps times nanoseconds.
    pub(crate) cpu: u128,
    /// Of processor equivalents times run time, in seconds.
    pub(crate) equivalent_s: f64,
}

/// A task that was accepted.
#[derive(Clone, Copy)]
pub(crate) struct AcceptedTask {
    pub(crate) submit: Time,
    /// `None` if it was still pending at the end.
    pub(crate) start: Option<Time>,
    pub(crate) duration: Span,
}

impl Sums {
    /// Adds the task of a row. Returns `None` if it was never submitted, as after an early end, or was rejected.
    #[inline]
    pub(crate) fn task(
        &mut self,
        row: usize,
        workload: &Workload,
        run: &Simulated,
        processors: Option<&TaskProcessors<'_>>,
    ) -> Option<AcceptedTask> {
        let columns = workload.columns();
        let submit = columns.submit[row];
        if submit > run.end {
            return None;
        }
        self.totals.submitted += 1;
        if run.is_rejected(row) {
            self.totals.rejected += 1;
            return None;
        }
        let duration = run.run_time(row, columns.duration[row]);
        if run.starts[row] == NO_TIME {
            return Some(AcceptedTask { submit, start: None, duration });
        }
        let start = Time::from_nanos(run.starts[row]);
        let wait = start - submit;
        self.totals.started += 1;
        self.totals.completed += u64::from(start + duration <= run.end);
        self.wait_ns += u128::from(wait.nanos());
        self.slowdown += bounded_slowdown(wait, duration);
        if let Some(processors) = processors {
            let cpus = workload.amounts(row)[processors.processors].0;
            self.cpu = self.cpu.saturating_add(u128::from(cpus) * u128::from(duration.nanos()));
            self.equivalent_s += processors.equivalent(row) * duration.secs_f64();
        }
        Some(AcceptedTask { submit, start: Some(start), duration })
    }

    /// Adds the tasks of these rows, which are in order of submission.
    pub fn of(
        rows: impl IntoIterator<Item = usize>,
        workload: &Workload,
        run: &Simulated,
        processors: Option<&TaskProcessors<'_>>,
    ) -> Sums {
        let mut sums = Sums::default();
        rows.into_iter().for_each(|row| {
            sums.task(row, workload, run, processors);
        });
        sums
    }

    /// Adds the sums of other tasks.
    pub fn add(&mut self, other: &Sums) {
        self.totals.add(&other.totals);
        self.wait_ns += other.wait_ns;
        self.slowdown += other.slowdown;
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.equivalent_s += other.equivalent_s;
    }

    /// Mean wait of the started tasks in seconds.
    pub fn mean_wait_s(&self) -> Option<f64> {
        mean_s(self.wait_ns, self.totals.started)
    }

    /// completed / submitted.
    pub fn completion_ratio(&self) -> f64 {
        let Totals { submitted, completed, .. } = self.totals;
        if submitted == 0 { 0.0 } else { completed as f64 / submitted as f64 }
    }

    /// Mean bounded slowdown of the started tasks.
    pub fn mean_bounded_slowdown(&self) -> Option<f64> {
        (self.totals.started > 0).then(|| self.slowdown / self.totals.started as f64)
    }

    /// Returns the waits relative to the areas, if the workload has processors.
    pub fn normalized(&self, processors: Option<&TaskProcessors<'_>>) -> NormalizedWait {
        let total_wait_s = mean_s(self.wait_ns, 1).unwrap_or_default();
        let Some(processors) = processors else { return NormalizedWait { total_wait_s, ..NormalizedWait::default() } };
        let steps = processors.workload.resources()[processors.processors].steps();
        // Whole seconds apart, so that they stay whole.
        let second = u128::from(steps) * 1_000_000_000;
        let cpu_s = (self.cpu / second) as f64 + (self.cpu % second) as f64 / second as f64;
        let nuwt = |area: f64| (self.totals.started > 0).then(|| total_wait_s / area.max(1.0));
        NormalizedWait {
            total_wait_s,
            squashed_area_cpu_s: Some(cpu_s),
            squashed_area_pe_s: Some(self.equivalent_s),
            nuwt_per_cpu: nuwt(cpu_s),
            nuwt_per_pe: nuwt(self.equivalent_s),
        }
    }
}

/// Waits relative to use, of a user or an account. The areas are absent if no resource is processors,
/// the quotients also if no task started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NormalizedWait {
    /// TUWT: the sum of the waits of started tasks, in seconds.
    pub total_wait_s: f64,
    /// TUSA: the sum of run time times processors, in processor seconds.
    pub squashed_area_cpu_s: Option<f64>,
    /// The same with processor equivalents, in seconds of a processor.
    pub squashed_area_pe_s: Option<f64>,
    /// NUWT: total wait over max(1, squashed area), in seconds a processor second.
    pub nuwt_per_cpu: Option<f64>,
    /// The same over the area in processor equivalents.
    pub nuwt_per_pe: Option<f64>,
}

/// How far users' normalized waits lie apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NuwtSpread {
    /// How many users there are: those with a started task.
    pub users: u64,
    /// Mean of their NUWT.
    pub mean: f64,
    /// Its standard deviation over those users: the root of the variance.
    pub standard_deviation: f64,
    /// The mean of (NUWT - mean)^2.
    pub variance: f64,
    /// F, the sum of (1 + mean - NUWT)^2, as in the authors' simulator: with n users it is n (1 + variance),
    /// so that smaller is better, but only between runs with the same number of users.
    pub fairness: f64,
}

impl NuwtSpread {
    /// Computes the spread of these NUWT values; `None` if there are none.
    pub fn of(nuwt: &[f64]) -> Option<NuwtSpread> {
        if nuwt.is_empty() {
            return None;
        }
        let n = nuwt.len() as f64;
        let mean = nuwt.iter().sum::<f64>() / n;
        let variance = nuwt.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let fairness = nuwt.iter().map(|x| (1.0 + mean - x).powi(2)).sum();
        Some(NuwtSpread { users: nuwt.len() as u64, mean, standard_deviation: variance.sqrt(), variance, fairness })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Site};
    use evenhand_model::{MachineGroup, Resource, ResourceQuantity, Task, WorkloadBuilder};

    fn workload(demands: &[[u128; 2]]) -> Workload {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
        for demand in demands {
            b.push(&Task { user: "a", amounts: &demand.map(|d| d * 1_000_000_000), ..Task::default() });
        }
        b.finish().unwrap()
    }

    #[test]
    fn on_machines_a_job_is_worth_the_least_of_each_of_its_chunks() {
        // The reference's machines.
        let group = |(name, has): (&str, [&str; 2])| MachineGroup {
            hosts: Vec::new(),
            name: name.into(),
            count: 1,
            capacity: has.map(|n| ResourceQuantity::parse(n).unwrap()).to_vec(),
            speed: Rational::ONE,
            weight: 1,
            properties: vec![],
        };
        let groups = [("a", ["16", "64"]), ("b", ["8", "256"]), ("c", ["64", "512"])].map(group).to_vec();
        let cluster =
            Cluster { resources: vec!["cpu".into(), "mem".into()], groups, queues: vec![], ..Cluster::default() };
        // 80 CPUs are on no machine: 80 chunks of a CPU and a unit of memory, each worth 1. What is beyond all
        // machines never runs.
        let w = workload(&[[1, 32], [4, 4], [16, 64], [2, 200], [80, 40], [1, 1000]]);
        let site = Site::machines(&cluster, w.resources()).unwrap();
        let jobs = Jobs::new(&w, &site, Layout::Auto);
        assert_eq!(jobs.chunks(4), 80);
        let worth = TaskProcessors::on_machines(&w, &cluster, &jobs, Combine::default()).unwrap();
        let all: Vec<f64> = (0..w.len()).map(|row| worth.equivalent(row)).collect();
        assert_eq!(all, [1.0, 4.0, 16.0, 6.25, 80.0, 0.0]);
        let pool = TaskProcessors::in_pool(&w, site.total()).unwrap();
        assert_eq!(pool.equivalent(0), 44.0 / 13.0, "Maui's");
    }

    #[test]
    fn without_processors_there_are_no_areas() {
        let mut b = WorkloadBuilder::new([Resource::new("slots", "")]);
        b.push(&Task { user: "a", amounts: &[1_000_000_000], ..Task::default() });
        let w = b.finish().unwrap();
        let capacity = Capacity::new(w.resources(), vec![Rational::ONE]).unwrap();
        assert!(TaskProcessors::in_pool(&w, &capacity).is_none());
        let sums = Sums { wait_ns: 5_000_000_000, ..Sums::default() };
        assert_eq!(sums.normalized(None), NormalizedWait { total_wait_s: 5.0, ..NormalizedWait::default() });
    }

    #[test]
    fn f_is_the_number_of_users_times_one_more_than_the_variance() {
        // By hand: mean 3, deviations -2, -1, 3; terms (1+2)^2, (1+1)^2, (1-3)^2.
        let spread = NuwtSpread::of(&[1.0, 2.0, 6.0]).unwrap();
        assert_eq!((spread.mean, spread.fairness), (3.0, 17.0));
        assert!((spread.variance - 14.0 / 3.0).abs() < 1e-15);
        assert_eq!(NuwtSpread::of(&[]), None);
    }
}
