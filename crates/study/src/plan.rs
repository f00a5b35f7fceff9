//! The grid of a study.

use std::sync::Arc;

use evenhand_model::{
    Capacity, CapacityError, Cluster, MeanUse, Quantity, Rational, Time, Workload, mean_use, peak_use,
};
use evenhand_policies::equivalents::{Combine, Equivalents};
use evenhand_policies::{Decay, PolicyError, Registration};
use evenhand_simulator::{LayoutRule, PoolOptions, Reactions, SiteError};
use thiserror::Error;

use crate::digest::{Digest, workload_digest};
use crate::jobs_on_site::{JobRules, OnSite, layout_records, note_of_throttles};
use crate::logged::{self, LOGGED, has_starts};
use crate::point::workload_record;
use crate::policy_inputs::PolicyInputs;
use crate::record::{PerResource, WorkloadRecord};
use crate::repeat::{RepeatError, Repeats};
use crate::site_question;

/// Changes when the same inputs give other results, or more of them, so that older runs are not taken for new ones.
const SIMULATION: &str = "pool 5";

/// The request for a study: policies, capacities and rules.
#[derive(Clone, Debug)]
pub struct StudyRequest {
    /// Policies by name, and [`LOGGED`] for what happened.
    pub policies: Vec<String>,
    /// The one of `policies` with which the others are compared; `None`: the first.
    pub against: Option<String>,
    /// Capacities, in the order in which they are reported.
    pub capacities: Vec<RequestedCapacity>,
    /// Decays, each with the text that named it (`0.999999`, `8d`), for policies that need one.
    pub decays: Vec<(String, Decay)>,
    /// The inputs from which policies are built.
    pub inputs: PolicyInputs,
    /// Whether a task that does not fit stops all scheduling.
    pub blocking: bool,
    /// Whether a run stops at the last original event.
    pub until_trace_end: bool,
    /// Placement on machines, and backfilling.
    pub jobs: JobRules,
}

/// A capacity as the user gave it.
#[derive(Clone, Debug)]
pub enum RequestedCapacity {
    /// A multiple of R, with the text that named it.
    Multiple(String, Quantity),
    /// An absolute pool in the workload's own units, with its name.
    Pool(String, Vec<Rational>),
    /// Machines, with their name.
    Machines(String, Cluster),
}

/// One run of the grid.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// Unique in the study and fit for a file name.
    pub id: String,
    /// The policy as the user named it.
    pub policy: String,
    pub(crate) starts: Starts,
    pub(crate) decay: Option<Decay>,
    /// The half-life as typed, if the decay was given as one.
    pub(crate) half_life: Option<String>,
    pub(crate) capacity: Capacity,
    pub(crate) capacity_name: String,
    pub(crate) capacity_factor: Option<f64>,
    /// The name of the scheduler, of a simulated run.
    pub(crate) scheduler: Option<String>,
    /// Whether use never exceeds the capacity, as in every simulated run.
    pub(crate) fits: bool,
    /// The site of a job simulation: machines, or a pool with backfilling.
    pub(crate) on_site: Option<Arc<OnSite>>,
    /// Processor equivalents of jobs, if a resource is processors.
    pub(crate) equivalents: Option<Equivalents>,
    pub(crate) digest: String,
}

/// Where the starts of a run come from.
#[derive(Clone, Debug)]
pub(crate) enum Starts {
    /// The log.
    Logged,
    /// A simulation under a policy.
    Under(Registration),
}

/// A study ready to run.
#[derive(Debug)]
pub struct Plan {
    pub(crate) workload: Workload,
    pub(crate) inputs: PolicyInputs,
    pub(crate) options: PoolOptions,
    notes: Vec<String>,
    /// The policy with which the others are compared.
    pub(crate) against: String,
    pub(crate) repeats: Option<Repeats>,
    /// What submissions react to; `None`: they are those of the log.
    pub(crate) reactions: Option<Reactions>,
    pub(crate) mean_use: MeanUse,
    pub(crate) digest: String,
    /// The runs: for each capacity each policy, each in the order asked.
    pub runs: Vec<RunPlan>,
    /// Whether `summary.json` lists all users, however many there are ([`StudyRecord::summary`](crate::record::StudyRecord::summary)).
    pub list_all_users: bool,
}

/// Why a study cannot be planned.
#[derive(Debug, Error)]
pub enum PlanError {
    /// There is no such policy, or it cannot be built.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The workload has no original starts.
    #[error("{LOGGED}: the workload has no original starts, so what happened is not known; leave {LOGGED} out")]
    NoStarts,
    /// What the others are compared with is not among the policies.
    #[error("--against: found {found:?}, expected one of the policies: {expected}")]
    Against {
        /// The name.
        found: String,
        /// The policies.
        expected: String,
    },
    /// A policy or capacity is named twice.
    #[error("{what} {name} is named twice")]
    Twice {
        /// `policy` or `capacity`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A capacity is refused.
    #[error("capacity {name}: {source}")]
    Capacity {
        /// The capacity as named.
        name: String,
        /// Why.
        source: CapacityError,
    },
    /// The machines do not go with the workload.
    #[error("{name}: {source}")]
    Site {
        /// The capacity as named.
        name: String,
        /// Why.
        source: SiteError,
    },
}

impl Plan {
    /// Lays out the grid of `request` over `workload`.
    ///
    /// # Errors
    /// Returns an error if a policy is unknown or cannot be built, a policy or capacity is named twice, or a capacity is
    /// refused.
    pub fn new(workload: Workload, request: &StudyRequest) -> Result<Plan, PlanError> {
        let workload = workload.expanded();
        let mean_use = mean_use(&workload);
        let digest = workload_digest(&workload);
        let until = request.until_trace_end.then(|| last_event(&workload, &mean_use));
        let options = PoolOptions { blocking: request.blocking, until };
        let inputs = &request.inputs;
        let mut runs: Vec<RunPlan> = Vec::new();
        let mut notes = Vec::new();
        let against = request.against()?;
        let peak = request.policies.iter().any(|policy| policy == LOGGED).then(|| peak_use(&workload));
        if peak.is_some() {
            if !has_starts(&workload) {
                return Err(PlanError::NoStarts);
            }
            notes.extend(logged::notes(&workload));
        }
        for asked in &request.capacities {
            let run_site = asked.run_site(&workload, &mean_use, request.jobs);
            let RunSite { name, factor, capacity, on_site, equivalents } =
                run_site.map_err(|(name, source)| match source {
                    SiteError::Capacity(source) => PlanError::Capacity { name, source },
                    source => PlanError::Site { name, source },
                })?;
            if runs.is_empty() {
                let context = inputs.context(&workload, &capacity, equivalents.as_ref(), None);
                notes.extend(inputs.registry.check(&context)?);
            }
            if let Some(peak) = peak.as_ref().filter(|_| factor.is_none() && name != site_question::SITE) {
                let units: Vec<Rational> = (0..capacity.width()).map(|r| capacity.exact_units(r).clone()).collect();
                notes.extend(site_question::above_capacity(&workload, peak, &name, &units));
            }
            for policy in &request.policies {
                let starts = match policy.as_str() {
                    LOGGED => Starts::Logged,
                    name => Starts::Under(*inputs.registry.get(name)?),
                };
                let decays: Vec<Option<&(String, Decay)>> = match starts {
                    Starts::Under(Registration { needs_decay: true, .. }) => request.decays.iter().map(Some).collect(),
                    _ => vec![None],
                };
                let units = (0..capacity.width()).map(|r| capacity.exact_units(r).clone());
                let (fits, simulated) = match (&starts, &peak) {
                    (Starts::Logged, Some(peak)) => (logged::fits(peak, units), false),
                    _ => (true, true),
                };
                for decay in decays {
                    let several = request.decays.len() > 1;
                    let suffix = decay.filter(|_| several).map_or(String::new(), |(text, _)| format!("-{text}"));
                    let mut run = RunPlan {
                        id: file_name(&format!("{policy}-{name}{suffix}")),
                        policy: policy.clone(),
                        starts: starts.clone(),
                        scheduler: simulated.then(|| request.jobs.scheduler_name()),
                        fits,
                        decay: decay.map(|(_, d)| *d),
                        half_life: decay.map(|(text, _)| text.clone()).filter(|text| Quantity::parse(text).is_err()),
                        capacity: capacity.clone(),
                        capacity_name: name.clone(),
                        capacity_factor: factor,
                        // The log's jobs are not placed on machines here.
                        on_site: on_site.clone().filter(|_| simulated),
                        equivalents: equivalents.clone(),
                        digest: String::new(),
                    };
                    run.digest = run_digest(&run, &digest, request, options)?;
                    if runs.iter().any(|r| r.id == run.id) {
                        let twice = runs.iter().any(|r| r.policy == run.policy && r.capacity_name == run.capacity_name);
                        return Err(match twice && request.policies.iter().filter(|p| *p == policy).count() > 1 {
                            true => PlanError::Twice { what: "policy", name: policy.clone() },
                            false => PlanError::Twice { what: "capacity", name },
                        });
                    }
                    runs.push(run);
                }
            }
        }
        Ok(Plan {
            workload,
            inputs: inputs.clone(),
            options,
            notes,
            against,
            repeats: None,
            reactions: None,
            mean_use,
            digest,
            runs,
            list_all_users: false,
        })
    }

    /// Repeats every run, if `repeats` asks for more than one replay.
    ///
    /// # Errors
    /// Returns an error if the workload cannot be varied in this way.
    pub fn repeated(self, repeats: Repeats) -> Result<Plan, RepeatError> {
        if repeats.count < 2 {
            return Ok(self);
        }
        repeats.check(&self.workload, self.arrivals())?;
        Ok(Plan { repeats: Some(repeats), ..self })
    }

    /// Returns what had to be assumed about the workload, and what settings do not apply, in sentences.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if self.runs.iter().any(|run| run.on_site.is_none()) {
            notes.extend(note_of_throttles(&self.workload, false));
        }
        // Runs of several policies on one site assume the same.
        for on_site in self.runs.iter().filter_map(|run| run.on_site.as_ref()) {
            for note in on_site.notes(&self.workload) {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        notes
    }

    /// Returns the number of tasks of a run.
    pub fn tasks(&self) -> u64 {
        self.workload.tasks()
    }

    /// Returns the record of the workload; `source` describes where it came from.
    pub(crate) fn workload_record(&self, source: &str) -> WorkloadRecord {
        let layout = match self.runs.iter().find_map(|run| run.on_site.as_ref()) {
            Some(on_site) => on_site.layout(&self.workload),
            None => layout_records(&self.workload, |_| LayoutRule::Pool.name()),
        };
        WorkloadRecord { layout, ..workload_record(&self.workload, &self.mean_use, &self.digest, source) }
    }
}

impl StudyRequest {
    /// Returns the policy with which the others are compared.
    fn against(&self) -> Result<String, PlanError> {
        let first = self.policies.first().cloned().unwrap_or_default();
        let found = self.against.clone().unwrap_or(first);
        match self.policies.contains(&found) {
            true => Ok(found),
            false => Err(PlanError::Against { found, expected: self.policies.join(", ") }),
        }
    }
}

/// Returns one number per resource, by name.
pub(crate) fn per_resource(workload: &Workload, mut value: impl FnMut(usize) -> f64) -> PerResource {
    workload.resources().iter().enumerate().map(|(r, resource)| (resource.name.clone(), value(r))).collect()
}

/// Returns the last submission or original finish.
pub(crate) fn last_event(workload: &Workload, mean_use: &MeanUse) -> Time {
    workload.columns().submit.last().copied().unwrap_or_default().max(mean_use.last_finish)
}

/// The pool or site of a run, made from a capacity.
pub(crate) struct RunSite {
    pub(crate) name: String,
    pub(crate) factor: Option<f64>,
    pub(crate) capacity: Capacity,
    pub(crate) on_site: Option<Arc<OnSite>>,
    pub(crate) equivalents: Option<Equivalents>,
}

impl RequestedCapacity {
    /// Creates the pool, or the site if jobs are simulated. An error has the name of the capacity and the reason.
    pub(crate) fn run_site(&self, w: &Workload, r: &MeanUse, rules: JobRules) -> Result<RunSite, (String, SiteError)> {
        let (name, factor, capacity) = match self {
            RequestedCapacity::Multiple(name, factor) => {
                (name, Some(factor.to_f64()), Capacity::multiple(w.resources(), r, factor))
            }
            RequestedCapacity::Pool(name, units) => (name, None, Capacity::new(w.resources(), units.clone())),
            RequestedCapacity::Machines(name, cluster) => {
                let on_site = OnSite::machines(cluster, w, rules).map_err(|source| (name.clone(), source))?;
                let capacity = on_site.site.total().clone();
                let equivalents = Equivalents::of_cluster(cluster, w.resources(), Combine::default()).ok();
                return Ok(RunSite { name: name.clone(), factor: None, capacity, on_site: Some(on_site), equivalents });
            }
        };
        let capacity = capacity.map_err(|source| (name.clone(), source.into()))?;
        let on_site = OnSite::pool(&capacity, w, rules).map_err(|source| (name.clone(), source))?;
        let equivalents = Equivalents::of_pool(w.resources(), &capacity).ok();
        Ok(RunSite { name: name.clone(), factor, capacity, on_site, equivalents })
    }
}

/// Replaces characters that some file system does not accept.
fn file_name(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' }).collect()
}

/// Returns the digest of everything that the result of a run depends on.
fn run_digest(
    run: &RunPlan,
    workload: &str,
    request: &StudyRequest,
    options: PoolOptions,
) -> Result<String, PolicyError> {
    let weights = &request.inputs.weights;
    let mut d = Digest::new();
    let registration = match &run.starts {
        Starts::Logged => None,
        Starts::Under(registration) => Some(registration),
    };
    d.text(SIMULATION).text(workload).text(registration.map_or(LOGGED, |r| r.name));
    for r in 0..run.capacity.width() {
        d.text(&run.capacity.exact_units(r).to_string());
    }
    for user in 0..weights.len() {
        d.text(&weights.exact(user).to_string());
    }
    d.number(run.decay.map_or(0, |x| x.tau_s().to_bits()));
    if let Some(on_site) = &run.on_site {
        on_site.digest(&mut d);
    }
    if let Some(site) = &request.inputs.site {
        // Every field, exactly. The number changes when the site's own rule gives other priorities for the same fields.
        d.text("site 3").text(&format!("{site:?}"));
    }
    d.number(u64::from(options.blocking)).number(options.until.map_or(u64::MAX, Time::nanos));
    // Where priorities do not move no structure is chosen.
    if registration.is_some_and(|r| r.needs_decay) {
        d.text(request.inputs.order.name());
    }
    // Only where they are given, so that studies without them are found again.
    if let Some(tree) = &request.inputs.accounts {
        d.text("accounts").text(&format!("{tree:?}"));
    }
    let settings = registration.map(|r| request.inputs.settings.fingerprint(r.name)).transpose()?.unwrap_or_default();
    if !settings.is_empty() {
        d.text("settings").text(&settings);
    }
    Ok(d.hex())
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::{AccountTree, Resource, Span, Task, Weights, WorkloadBuilder};
    use evenhand_policies::{Order, Registry};

    fn workload() -> Workload {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
        let duration = Span::from_secs(5);
        b.push(&Task { duration, user: "a", amounts: &[1_000_000_000], ..Task::default() });
        b.finish().unwrap()
    }

    fn request(policies: &[&str], capacities: &[&str]) -> StudyRequest {
        let multiple = |c: &&str| RequestedCapacity::Multiple(c.to_string(), Quantity::parse(c).unwrap());
        let decay = |d: &str| (d.to_string(), Decay::from_delta(&Quantity::parse(d).unwrap()).unwrap());
        StudyRequest {
            policies: policies.iter().map(|p| p.to_string()).collect(),
            against: None,
            capacities: capacities.iter().map(multiple).collect(),
            decays: vec![decay("0.9"), decay("0.99")],
            inputs: PolicyInputs::new(Weights::equal(1)),
            blocking: true,
            until_trace_end: false,
            jobs: JobRules::default(),
        }
    }

    #[test]
    fn the_grid_is_capacities_by_policies_by_decays_where_they_matter() {
        let plan = Plan::new(workload(), &request(&["fifo", "sdrf"], &["0.5", "1"])).unwrap();
        let ids: Vec<&str> = plan.runs.iter().map(|r| r.id.as_str()).collect();
        assert_eq!(ids, ["fifo-0.5", "sdrf-0.5-0.9", "sdrf-0.5-0.99", "fifo-1", "sdrf-1-0.9", "sdrf-1-0.99"]);
        let mut digests: Vec<&str> = plan.runs.iter().map(|r| r.digest.as_str()).collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 6);
    }

    #[test]
    fn what_cannot_be_asked_says_why() {
        let error = |p: &[&str], c: &[&str]| Plan::new(workload(), &request(p, c)).unwrap_err().to_string();
        assert!(error(&["fair"], &["1"]).starts_with("unknown policy \"fair\", expected one of: fifo, drf,"));
        assert_eq!(error(&["drf", "drf"], &["1"]), "policy drf is named twice");
        assert_eq!(error(&["drf"], &["1", "1"]), "capacity 1 is named twice");
        assert!(error(&["logged"], &["1"]).starts_with("logged: the workload has no original starts"));
        assert!(error(&["drf"], &["0"]).starts_with("capacity 0: the capacity of cpu is 0"));
    }

    #[test]
    fn a_digest_changes_with_everything_that_changes_a_result() {
        let digest = |q: &StudyRequest| Plan::new(workload(), q).unwrap().runs[0].digest.clone();
        let base = request(&["sdrf"], &["1"]);
        let with = |change: &dyn Fn(&mut PolicyInputs)| {
            let mut changed = base.clone();
            change(&mut changed.inputs);
            changed
        };
        let with_option = |policy: &str, option: &str, value: &str| {
            let mut changed = request(&[policy], &["1"]);
            changed.inputs.settings.set_option(&Registry::built_in(), option, value).unwrap();
            changed
        };
        let changed = [
            with_option("sdrf", "sdrf-key", "dominant"),
            StudyRequest { blocking: false, ..base.clone() },
            StudyRequest { until_trace_end: true, ..base.clone() },
            with(&|inputs| inputs.order = Order::LiveTree),
            with(&|inputs| inputs.accounts = AccountTree::new(vec![], vec![None], vec![Rational::ONE]).ok()),
            request(&["half-life"], &["1"]),
            with_option("half-life", "billing", "sum"),
            with_option("half-life", "billing", "max"),
            request(&["penalty"], &["1"]),
            with_option("penalty", "combine", "sum"),
            StudyRequest {
                jobs: JobRules { backfill: evenhand_simulator::Backfill::Easy, ..base.jobs },
                ..base.clone()
            },
            request(&["drf"], &["1"]),
            request(&["sdrf"], &["0.9"]),
        ];
        assert_eq!(digest(&base), digest(&base.clone()));
        let digests: std::collections::BTreeSet<String> = changed.iter().chain([&base]).map(digest).collect();
        assert_eq!(digests.len(), changed.len() + 1);
        let drf = request(&["drf"], &["1"]);
        let mut live_tree = drf.clone();
        live_tree.inputs.order = Order::LiveTree;
        assert_eq!(digest(&drf), digest(&live_tree), "drf has no such order");
        let unrelated = with_option("sdrf", "combine", "sum");
        assert_eq!(digest(&base), digest(&unrelated), "a setting of another policy changes nothing");
    }
}
