//! Arranges the runs of a study record as a grid of capacities and policies.

use std::collections::BTreeMap;

use evenhand_study::record::{ComparisonRecord, RunRecord, StudyRecord};
use evenhand_study::{LOGGED, most_affected_users};

use crate::ReportError;
use crate::format_numbers::{amount, duration, size_unit, three_digits};

/// The name of a capacity that comes from the log itself.
pub(crate) const SITE: &str = "site";

/// Maximum number of users that the page lists and draws one by one, those whose waits differ most. More fit neither
/// a page nor a figure.
const MAX_USERS: usize = 2000;

/// A study as a grid of capacities and policies; the cell of a missing run is empty.
pub(crate) struct StudyGrid<'a> {
    pub(crate) record: &'a StudyRecord,
    /// In the order of the request; the first is the baseline with which the others are compared.
    pub(crate) policies: Vec<Policy>,
    /// In the order of the request.
    pub(crate) capacities: Vec<Capacity<'a>>,
    /// Runs indexed by capacity, then by policy.
    runs: Vec<Vec<Option<&'a RunRecord>>>,
    comparisons: BTreeMap<&'a str, &'a ComparisonRecord>,
}

/// A policy with its discount; the same policy with another discount is another column.
pub(crate) struct Policy {
    pub(crate) label: String,
    /// The half-life as typed, or the discount with its half-life, if the policy has one.
    pub(crate) discount: Option<String>,
}

/// One capacity of the study.
pub(crate) struct Capacity<'a> {
    /// The name on the command line.
    pub(crate) name: &'a str,
    /// `0.5 R` (with a no-break space), the name of a file, or `the site's own capacity`.
    pub(crate) label: String,
    /// The amount of each resource.
    pub(crate) amounts: &'a BTreeMap<String, f64>,
}

/// A run and the baseline run with which it is compared.
pub(crate) struct RunPair<'a> {
    pub(crate) run: &'a RunRecord,
    pub(crate) baseline: &'a RunRecord,
    pub(crate) comparison: &'a ComparisonRecord,
}

impl<'a> StudyGrid<'a> {
    /// Arranges the runs of a record. Returns an error if they cannot belong to one study.
    pub(crate) fn new(record: &'a StudyRecord) -> Result<StudyGrid<'a>, ReportError> {
        let key = |run: &RunRecord| (run.policy.clone(), run.delta.map(f64::to_bits));
        let mut keys: Vec<(String, Option<u64>)> = Vec::new();
        let mut capacities: Vec<Capacity<'_>> = Vec::new();
        // The first run may be missing; the comparisons then name the baseline.
        let against = record.comparisons.first().map(|comparison| comparison.against.as_str());
        keys.extend(record.runs.iter().find(|run| Some(run.id.as_str()) == against).map(key));
        for run in &record.runs {
            check_users(run, &record.runs[0])?;
            if !keys.contains(&key(run)) {
                keys.push(key(run));
            }
            if !capacities.iter().any(|capacity| capacity.name == run.capacity_name) {
                let label = match (run.capacity_factor, run.capacity_name.as_str()) {
                    (Some(_), name) => format!("{name}\u{a0}R"),
                    (None, SITE) => "the site's own capacity".to_owned(),
                    (None, name) => name.to_owned(),
                };
                capacities.push(Capacity { name: &run.capacity_name, label, amounts: &run.capacity });
            }
        }
        let mut runs = vec![vec![None; keys.len()]; capacities.len()];
        for run in &record.runs {
            let row = capacities.iter().position(|capacity| capacity.name == run.capacity_name);
            let column = keys.iter().position(|other| *other == key(run));
            let (Some(row), Some(column)) = (row, column) else { continue };
            if let Some(first) = runs[row][column].replace(run) {
                return Err(ReportError::DuplicateRun { first: first.id.clone(), second: run.id.clone() });
            }
        }
        let policies = keys.iter().map(|key| policy(key, &keys, &record.runs)).collect();
        let comparisons = record.comparisons.iter().map(|comparison| (comparison.run.as_str(), comparison)).collect();
        Ok(StudyGrid { record, policies, capacities, runs, comparisons })
    }

    /// Returns the run of a policy at a capacity, or `None` if it is missing.
    pub(crate) fn run(&self, capacity: usize, policy: usize) -> Option<&'a RunRecord> {
        *self.runs.get(capacity)?.get(policy)?
    }

    /// Returns the runs at a capacity, each with the index of its policy.
    pub(crate) fn runs_at(&self, capacity: usize) -> impl Iterator<Item = (usize, &'a RunRecord)> {
        self.runs[capacity].iter().enumerate().filter_map(|(policy, run)| Some((policy, (*run)?)))
    }

    /// Returns the comparison of a policy with the baseline at a capacity, or `None` if a run is missing.
    pub(crate) fn pair(&self, capacity: usize, policy: usize) -> Option<RunPair<'a>> {
        let run = self.run(capacity, policy)?;
        let baseline = self.run(capacity, 0)?;
        let comparison = *self.comparisons.get(run.id.as_str())?;
        (policy > 0 && comparison.against == baseline.id).then_some(RunPair { run, baseline, comparison })
    }

    /// Returns all pairs as (capacity, policy, pair).
    pub(crate) fn pairs(&self) -> Vec<(usize, usize, RunPair<'a>)> {
        let cells =
            (0..self.capacities.len()).flat_map(|row| (1..self.policies.len()).map(move |column| (row, column)));
        cells.filter_map(|(row, column)| Some((row, column, self.pair(row, column)?))).collect()
    }

    /// Returns the capacity and policy that the page shows first: those of the first pair, else of the first run.
    pub(crate) fn initial_choice(&self) -> (usize, usize) {
        let run = || {
            let rows = 0..self.capacities.len();
            rows.into_iter().find_map(|capacity| Some((capacity, self.runs_at(capacity).next()?.0)))
        };
        self.pairs().first().map(|(capacity, policy, _)| (*capacity, *policy)).or_else(run).unwrap_or((0, 0))
    }

    /// Returns the users to list, by decreasing number of tasks, ties in the workload's order.
    pub(crate) fn listed_users(&self) -> Vec<usize> {
        let Some(first) = self.record.runs.first() else { return Vec::new() };
        let mut users: Vec<usize> = match first.users.len() {
            all @ 0..=MAX_USERS => (0..all).collect(),
            _ => most_affected_users(self.record, MAX_USERS),
        };
        users.sort_by_key(|&user| (std::cmp::Reverse(first.users[user].totals.submitted), user));
        users
    }

    /// Returns the label of the baseline policy.
    pub(crate) fn baseline(&self) -> &str {
        self.policies.first().map_or("", |policy| &policy.label)
    }

    /// Returns the baseline after a verb: `under fifo`, and `as logged` where the others are compared with the log.
    pub(crate) fn under_baseline(&self) -> String {
        match self.baseline() {
            LOGGED => format!("as {LOGGED}"),
            policy => format!("under {policy}"),
        }
    }

    /// Returns the names of the resources.
    pub(crate) fn resources(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = self.record.workload.mean_use.keys().map(String::as_str).collect();
        for name in self.record.runs.iter().flat_map(|run| run.capacity.keys()) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Formats an amount of a resource with its unit; a size in the unit that suits the largest capacity, so that all
    /// amounts of the resource have the same.
    pub(crate) fn amount(&self, resource: &str, number: f64) -> String {
        let unit = self.record.workload.units.get(resource).map_or("", String::as_str);
        let capacities = self.capacities.iter().filter_map(|capacity| capacity.amounts.get(resource));
        let (size, unit) = size_unit(unit, capacities.fold(number.abs(), |most, &amount| most.max(amount)));
        // Digits beyond the fourth say nothing of a mean.
        let text = if size == 1.0 && number.fract() == 0.0 { amount(number) } else { three_digits(number / size) };
        format!("{text}\u{a0}{unit}").trim_end().to_owned()
    }
}

fn policy(key: &(String, Option<u64>), keys: &[(String, Option<u64>)], runs: &[RunRecord]) -> Policy {
    let (name, bits) = key;
    let delta = bits.map(f64::from_bits);
    let run = runs.iter().find(|run| run.policy == *name && run.delta == delta);
    let typed = run.and_then(|run| run.half_life.as_deref());
    let discount = delta.map(|delta| match (typed, run.and_then(|run| run.tau_s)) {
        (Some(half_life), _) => format!("half-life {half_life}"),
        (None, Some(tau)) => {
            format!("discount {delta} a second, half-life {}", duration(tau * std::f64::consts::LN_2))
        }
        (None, None) => format!("discount {delta} a second"),
    });
    let alone = keys.iter().filter(|(other, _)| other == name).count() == 1;
    let label = match (typed, delta) {
        (Some(half_life), _) if !alone => format!("{name} {half_life}"),
        (None, Some(delta)) if !alone => format!("{name} {delta}"),
        _ => name.clone(),
    };
    Policy { label, discount }
}

/// Checks that a run has the same users as the first run: users are compared by position.
fn check_users(run: &RunRecord, first: &RunRecord) -> Result<(), ReportError> {
    let names = |run: &RunRecord| run.users.iter().map(|user| user.name.clone()).collect::<Vec<_>>();
    if run.users.iter().map(|user| &user.name).eq(first.users.iter().map(|user| &user.name)) {
        return Ok(());
    }
    let (expected, found) = (names(first), names(run));
    let position = (0..).find(|&index| expected.get(index) != found.get(index)).unwrap_or_default();
    let name = |names: &[String]| names.get(position).map_or("missing".into(), |name| format!("{name:?}"));
    Err(ReportError::UsersDiffer {
        run: run.id.clone(),
        first: first.id.clone(),
        position,
        expected: name(&expected),
        found: name(&found),
    })
}
