//! What a study asks: policies, capacities and the scheduler, as given or by default.
//!
//! A log is asked the question of its site (who would win or lose on this machine?), a generated workload that of the
//! papers (which policy is better where capacity is scarce?).

use std::path::Path;

use evenhand_model::Workload;
use evenhand_policies::{COMPARED_POLICIES, Registry, SITE_POLICIES, SITE_RULE};
use evenhand_study::{
    Backfill, LOGGED, Layout, RequestedCapacity, cluster_file_of, has_starts, is_generated, site_capacity,
    site_scheduler,
};

use super::options_without_effect::note_options_without_effect;
use super::site_folder::cluster_file;
use crate::arguments::StudyArgs;
use crate::arguments::policy_settings::policies_of;
use crate::failure::Failure;
use crate::inputs::capacity::{CapacityArgument, parse_capacities, read_capacity, read_file};
use crate::output::console::Console;

/// The multiples of mean use at which a generated workload is studied.
const MULTIPLES: [&str; 3] = ["0.5", "0.75", "1.0"];

/// The parts of the question that were given, checked before the workload is read.
pub(super) struct GivenQuestion {
    capacities: Vec<CapacityArgument>,
    scheduler: Option<Backfill>,
}

/// The whole question.
pub(super) struct Question {
    /// Policies, and [`LOGGED`].
    pub(super) policies: Vec<String>,
    /// Capacities.
    pub(super) capacities: Vec<RequestedCapacity>,
    /// Capacities as the user or the default names them.
    pub(super) capacity_names: Vec<String>,
    /// The scheduler.
    pub(super) scheduler: Backfill,
}

impl GivenQuestion {
    /// Checks the options.
    pub(super) fn parse(args: &StudyArgs, registry: &Registry) -> Result<GivenQuestion, Failure> {
        if args.policy.iter().any(|name| name == SITE_RULE.name) && registry.get(SITE_RULE.name).is_err() {
            let name = SITE_RULE.name;
            let problem = format!(
                "--policy: {name} is the rule of the site's own Slurm, whose slurm.conf is not known; give --site FOLDER or --slurm-conf FILE"
            );
            return Err(Failure::Input(problem));
        }
        policies_of("--policy", registry, &simulated(&args.policy), &[LOGGED])?;
        refuse_unknown_comparison(args)?;
        let scheduler = args.scheduler.or(args.backfill);
        if args.no_blocking && scheduler.is_some_and(|s| s != Backfill::None) {
            let problem = "--no-blocking: backfilling (--scheduler) already lets tasks start before one that does not fit; give only one of the two";
            return Err(Failure::Input(problem.into()));
        }
        // Which default policies are compared depends on the workload, which is not read yet.
        let defaults = || SITE_POLICIES.split(',').chain(COMPARED_POLICIES.split(',')).map(String::from).collect();
        let policies = if args.policy.is_empty() { defaults() } else { args.policy.clone() };
        args.policies.refuse_unused(registry, &policies)?;
        let capacities = parse_capacities(&args.capacity)?;
        if !capacities.is_empty() && !capacities.iter().any(CapacityArgument::may_be_machines) {
            refuse_machine_options(args)?;
        }
        Ok(GivenQuestion { capacities, scheduler })
    }

    /// Completes the question for a workload, and prints what was assumed.
    pub(super) fn complete(
        self,
        args: &StudyArgs,
        registry: &Registry,
        workload: &Workload,
        console: &Console,
    ) -> Result<Question, Failure> {
        let asks_site = args.site.is_some() || !is_generated(workload);
        let log = args.workload.as_deref().filter(|_| self.capacities.is_empty() && asks_site);
        let question = match log {
            Some(log) => self.of_site(args, log, registry, workload, console)?,
            None => self.of_papers(args, workload, console)?,
        };
        args.policies.refuse_unused(registry, &question.policies)?;
        note_options_without_effect(args, &question.policies, registry, console);
        Ok(question)
    }

    fn of_site(
        self,
        args: &StudyArgs,
        log: &Path,
        registry: &Registry,
        workload: &Workload,
        console: &Console,
    ) -> Result<Question, Failure> {
        let capacity = match (cluster_file(args), cluster_file_of(log)) {
            (Some(path), _) => read_file(&path, workload, console)?,
            (None, Some(path)) => {
                console.note(&format!("Capacity: the machines of {}, which stands beside the log.", path.display()));
                read_file(&path, workload, console)?
            }
            (None, None) => {
                let site = site_capacity(workload);
                site.notes.iter().for_each(|note| console.note(note));
                RequestedCapacity::Pool(site.name, site.units)
            }
        };
        let scheduler = match (self.scheduler, args.no_blocking) {
            (Some(scheduler), _) => scheduler,
            (None, true) => Backfill::None,
            (None, false) => {
                let (scheduler, why) = site_scheduler(workload);
                console.note(&why);
                scheduler
            }
        };
        let logged = has_starts(workload).then_some(LOGGED);
        let policies = match args.policy.is_empty() {
            true => {
                // Under Slurm's scheduler the site's own rule comes first, where it is known.
                let known = registry.get(SITE_RULE.name).ok().filter(|_| scheduler == Backfill::Slurm);
                let rule = known.map(|rule| rule.name);
                logged.into_iter().chain(rule).chain(SITE_POLICIES.split(',')).map(String::from).collect()
            }
            false => args.policy.clone(),
        };
        let name = match &capacity {
            RequestedCapacity::Multiple(name, _)
            | RequestedCapacity::Pool(name, _)
            | RequestedCapacity::Machines(name, _) => name.clone(),
        };
        Ok(Question { policies, capacities: vec![capacity], capacity_names: vec![name], scheduler })
    }

    fn of_papers(self, args: &StudyArgs, workload: &Workload, console: &Console) -> Result<Question, Failure> {
        let (capacities, capacity_names) = match self.capacities.is_empty() {
            true => (parse_capacities(&MULTIPLES.map(String::from))?, MULTIPLES.map(String::from).to_vec()),
            false => (self.capacities, args.capacity.clone()),
        };
        let policies = match args.policy.is_empty() {
            true => COMPARED_POLICIES.split(',').map(String::from).collect(),
            false => args.policy.clone(),
        };
        let capacities =
            capacities.into_iter().map(|c| read_capacity(c, workload, console)).collect::<Result<_, _>>()?;
        let (of_site, _) = site_scheduler(workload);
        if self.scheduler.is_none() && !is_generated(workload) && of_site != Backfill::None {
            console.note(
                "Scheduler: strict, the default with --capacity, where nothing starts before the head of the queue. If the \
                 site backfills, give --scheduler easy.",
            );
        }
        Ok(Question { policies, capacities, capacity_names, scheduler: self.scheduler.unwrap_or_default() })
    }
}

/// Rejects a policy that is named twice, and a comparison with one that is not named.
fn refuse_unknown_comparison(args: &StudyArgs) -> Result<(), Failure> {
    let policies = &args.policy;
    if let Some((_, name)) = policies.iter().enumerate().find(|(n, name)| policies[..*n].contains(name)) {
        return Err(Failure::Input(format!("--policy: {name} is named twice, expected each once")));
    }
    match &args.against {
        Some(found) if !policies.is_empty() && !policies.contains(found) => {
            Err(Failure::unknown("--against", found, policies.iter().map(String::as_str)))
        }
        _ => Ok(()),
    }
}

/// Rejects options on machines, of a study on pools.
pub(super) fn refuse_machine_options(args: &StudyArgs) -> Result<(), Failure> {
    let option = match (args.placement, args.layout) {
        (Some(_), _) => "--placement",
        (None, layout) if layout != Layout::Auto => "--layout",
        _ => return Ok(()),
    };
    let problem =
        format!("{option} needs machines, but the capacity is a pool; give --capacity a file with [[machines]]");
    Err(Failure::Input(problem))
}

/// Returns the policies that are simulated.
pub(super) fn simulated(policies: &[String]) -> Vec<String> {
    policies.iter().filter(|name| *name != LOGGED).cloned().collect()
}
