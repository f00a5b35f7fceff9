//! What running jobs may hold together: all jobs of a queue, an account, a user or a QOS, or those of each user by itself.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use evenhand_model::{Detail, Resource, Span, UserId, Workload};

use super::job_arrays::{JobArrays, RunningTasks};
use super::licences::JobLicences;
use super::prepared_jobs::{Rejection, ZeroLimit};
use super::queue_choices::QueueChoices;
use super::site::{NO_LIMIT, Site};

/// A limit, in steps of a workload's resources.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limit {
    /// What it is, for people: `the limit "optics"`.
    pub(crate) name: String,
    /// What the site's file calls `most`: `max` or, of each user of a queue, `max_user`.
    pub(crate) key: &'static str,
    /// The names whose jobs it limits; empty for all.
    pub(crate) queues: Vec<String>,
    pub(crate) accounts: Vec<String>,
    pub(crate) users: Vec<String>,
    pub(crate) qos: Vec<String>,
    /// Those whose jobs it does not limit.
    pub(crate) except_qos: Vec<String>,
    /// Whether each user has it by itself.
    pub(crate) each_user: bool,
    /// What they may hold, by resource, and as one more how many they may be.
    pub(crate) most: Vec<u64>,
    /// How many of them may wait or run.
    pub(crate) max_submitted: Option<u32>,
    /// What one of them may hold.
    pub(crate) max_job: Vec<u64>,
    /// The longest wall time that one of them can request.
    pub(crate) max_wall: Option<Span>,
}

/// The limits of the jobs of a workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobLimits {
    limits: Vec<Limit>,
    /// By row: the number of its set of limits; empty if there are none.
    set: Vec<u32>,
    /// Indices of limits.
    sets: Vec<Vec<u32>>,
    /// Whether any of them is 0.
    have_zeros: bool,
    pub(crate) licences: JobLicences,
    pub(crate) arrays: JobArrays,
}

impl JobLimits {
    /// Finds the limits of each row.
    ///
    /// A job that names several queues has the limits of the first of its choice.
    pub(crate) fn new(workload: &Workload, site: &Site, choices: &QueueChoices) -> JobLimits {
        let limits = site.limits.as_slice();
        let licences = JobLicences::new(workload, site);
        let arrays = if site.is_pool { JobArrays::default() } else { JobArrays::new(workload) };
        if limits.is_empty() {
            return JobLimits { licences, arrays, ..JobLimits::default() };
        }
        let columns = workload.columns();
        let named = |names: &[String], name: Option<&str>| {
            names.is_empty() || name.is_some_and(|name| names.iter().any(|n| n == name))
        };
        let have_zeros = limits.iter().any(|limit| {
            limit.max_submitted == Some(0) || limit.most.iter().chain(&limit.max_job).any(|most| *most == 0)
        });
        let mut found = JobLimits { limits: limits.to_vec(), have_zeros, licences, arrays, ..JobLimits::default() };
        let mut numbers: HashMap<Names, u32> = HashMap::new();
        for row in 0..workload.len() {
            let queue = columns.queue.as_ref().map(|c| c[row]);
            let account = columns.account.as_ref().map(|c| c[row]);
            let user = columns.user[row];
            let (choice, queues) = choices.of(workload, row);
            let qos = workload.detail_id(Detail::Qos, row);
            let number = *numbers.entry(Names { queue, choice, account, user, qos }).or_insert_with(|| {
                let first = queues.first().map(|q| site.queues[usize::from(*q)].name.as_str());
                let queue = first.or_else(|| workload.queue(row));
                let account = account.and_then(|a| workload.accounts().get(a as usize)).map(String::as_str);
                // A user of several accounts counts as one for each, with the account in the name.
                let user = workload.users().get(user.index()).map(|name| {
                    let plain = account.and_then(|account| name.strip_suffix(account)?.strip_suffix('@'));
                    plain.unwrap_or(name)
                });
                let qos = workload.detail(Detail::Qos, row);
                let holds = |limit: &Limit| {
                    named(&limit.queues, queue)
                        && named(&limit.accounts, account)
                        && named(&limit.users, user)
                        && named(&limit.qos, qos)
                        && !qos.is_some_and(|qos| limit.except_qos.iter().any(|name| name == qos))
                };
                let set = (0u32..).zip(limits).filter(|(_, limit)| holds(limit)).map(|(at, _)| at).collect();
                found.sets.push(set);
                found.sets.len() as u32 - 1
            });
            found.set.push(number);
        }
        found
    }

    /// Whether jobs are limited in what they hold together, except of licences and by throttles of arrays.
    pub(crate) fn hold_back(&self) -> bool {
        self.limits.iter().any(|limit| limit.most.iter().any(|most| *most != NO_LIMIT))
    }

    /// Whether anything can hold a job back that fits.
    pub(crate) fn is_any(&self) -> bool {
        !self.limits.is_empty() || self.licences.is_any() || self.arrays.have_throttles()
    }

    /// Whether jobs of one user and queue can have different limits.
    pub(crate) fn differ_within_users(&self) -> bool {
        let names = |limit: &Limit| limit.accounts.len() + limit.qos.len() + limit.except_qos.len();
        self.licences.is_any() || self.arrays.have_throttles() || self.limits.iter().any(|limit| names(limit) > 0)
    }

    /// The number of a row's set of limits, in which it differs from all sets of other users; `None` if there are no limits.
    pub(crate) fn set_of(&self, row: usize) -> Option<u32> {
        self.set.get(row).copied()
    }

    /// Whether what a row holds of limits, licences and throttles counts for jobs of its user alone.
    pub(crate) fn are_of_user(&self, workload: &Workload, row: u32) -> bool {
        self.of(row as usize).all(|(_, limit)| limit.each_user)
            && self.licences.of(workload, row as usize).is_empty()
            && self.arrays.throttled(workload, row).is_none()
    }

    fn of(&self, row: usize) -> impl Iterator<Item = (usize, &Limit)> {
        let set = self.set.get(row).map_or(&[][..], |set| &self.sets[*set as usize]);
        set.iter().map(|at| (*at as usize, &self.limits[*at as usize]))
    }

    /// The limit of 0 that holds a job, if there is one. As in Slurm, 0 is a limit, not the absence of one.
    pub(crate) fn zero(&self, row: usize, amounts: impl Iterator<Item = u64> + Clone) -> Option<Rejection> {
        if !self.have_zeros {
            return None;
        }
        let nothing_of = |most: &[u64]| {
            let resource = amounts.clone().zip(most).position(|(amount, most)| amount > 0 && *most == 0);
            resource.map(|resource| resource.min(255) as u8)
        };
        self.of(row).find_map(|(at, limit)| {
            let what = match () {
                () if limit.most.last() == Some(&0) => Some(ZeroLimit::Jobs),
                () if limit.max_submitted == Some(0) => Some(ZeroLimit::Submitted),
                () => nothing_of(&limit.most)
                    .map(ZeroLimit::Amount)
                    .or_else(|| nothing_of(&limit.max_job).map(ZeroLimit::JobAmount)),
            };
            Some(Rejection::Held(at as u32, what?))
        })
    }

    /// Describes a limit of 0 that holds jobs, and what to do about it.
    pub(crate) fn describe_zero(&self, limit: u32, zero: ZeroLimit, resources: &[Resource]) -> String {
        let resource = |r: u8| resources.get(usize::from(r)).map_or("a resource", |r| r.name.as_str());
        let (name, key) = self.limits.get(limit as usize).map_or(("a limit", "max"), |limit| (&*limit.name, limit.key));
        let what = match zero {
            ZeroLimit::Jobs => format!("{key}_jobs = 0"),
            ZeroLimit::Submitted => "max_submitted = 0".to_string(),
            ZeroLimit::Amount(r) => format!("{key} = {{ {} = 0 }}", resource(r)),
            ZeroLimit::JobAmount(r) => format!("max_job = {{ {} = 0 }}", resource(r)),
        };
        format!("held by {what} of {name}: raise it, or leave it out if it was not there when the jobs ran")
    }

    /// Why a job alone exceeds one of its limits, if it does.
    pub(crate) fn rejection(&self, row: usize, amounts: &[u64], wall: Span) -> Option<Rejection> {
        let over = |most: &[u64]| amounts.iter().zip(most).position(|(a, most)| a > most);
        self.of(row).find_map(|(_, limit)| {
            let resource = over(&limit.max_job).or_else(|| over(&limit.most));
            let too_long = limit.max_wall.is_some_and(|most| wall > most);
            let resource = resource.map(|r| Rejection::LimitedAmount(r.min(255) as u8));
            resource.or_else(|| too_long.then_some(Rejection::LimitedWall))
        })
    }
}

/// What a job is called by, in which limits can tell jobs apart; ids of a workload and the number of a choice of queues.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Names {
    queue: Option<u32>,
    choice: usize,
    account: Option<u32>,
    user: UserId,
    qos: Option<u32>,
}

/// What running jobs hold of their limits.
#[derive(Clone, Debug)]
pub(super) struct HeldOfLimits<'a> {
    workload: &'a Workload,
    limits: &'a JobLimits,
    /// By limit: amounts by resource, and the number of jobs after them; one user after the other if each has it.
    held: Vec<Vec<u64>>,
    /// How many of each licence are free.
    licences: Vec<u64>,
    tasks: RunningTasks<'a>,
}

impl<'a> HeldOfLimits<'a> {
    pub(super) fn new(workload: &'a Workload, limits: &'a JobLimits) -> HeldOfLimits<'a> {
        let users = workload.users().len();
        let zeros = |limit: &Limit| vec![0; limit.most.len() * if limit.each_user { users } else { 1 }];
        let licences = limits.licences.counts().to_vec();
        let tasks = RunningTasks::new(workload, &limits.arrays);
        HeldOfLimits { workload, limits, held: limits.limits.iter().map(zeros).collect(), licences, tasks }
    }

    /// What a job counts: its amounts, and one job.
    fn counts(&self, row: u32) -> impl Iterator<Item = u64> + 'a {
        self.workload.amounts(row as usize).iter().map(|a| a.0).chain([1])
    }

    /// Where the counts of a limit begin that the job counts in.
    fn place(&self, limit: &Limit, row: u32) -> usize {
        let user = self.workload.columns().user[row as usize].index();
        if limit.each_user { user * limit.most.len() } else { 0 }
    }

    /// Returns whether the job cannot start now because of its limits or the throttle of its array, or because licences are
    /// missing.
    pub(super) fn is_over(&self, row: u32) -> bool {
        self.exceeds_limit(row) || self.lacks_licences(row) || self.is_throttled(row)
    }

    /// Returns whether the throttle of the job's array holds it back.
    pub(super) fn is_throttled(&self, row: u32) -> bool {
        self.tasks.are_enough(row)
    }

    /// Returns whether fewer licences are free than the job needs.
    pub(super) fn lacks_licences(&self, row: u32) -> bool {
        let needed = self.limits.licences.of(self.workload, row as usize);
        needed.iter().any(|(licence, count)| *count > self.licences[*licence])
    }

    /// Returns whether starting the job would exceed one of its limits.
    pub(super) fn exceeds_limit(&self, row: u32) -> bool {
        self.limits.of(row as usize).any(|(at, limit)| {
            let held = &self.held[at][self.place(limit, row)..];
            let sums = held.iter().zip(self.counts(row)).map(|(held, count)| held.saturating_add(count));
            limit.most.iter().zip(sums).any(|(most, sum)| sum > *most)
        })
    }

    /// Adds what a job holds, which starts.
    pub(super) fn add(&mut self, row: u32) {
        self.change(row, |held, count| *held += count);
        self.tasks.add(row);
        let held = self.limits.licences.of(self.workload, row as usize);
        held.iter().for_each(|(licence, count)| self.licences[*licence] -= count);
    }

    /// Removes what a job held, which has ended.
    pub(super) fn remove(&mut self, row: u32) {
        self.change(row, |held, count| *held -= count);
        self.tasks.remove(row);
        let held = self.limits.licences.of(self.workload, row as usize);
        held.iter().for_each(|(licence, count)| self.licences[*licence] += count);
    }

    fn change(&mut self, row: u32, change: impl Fn(&mut u64, u64)) {
        let limits = self.limits;
        for (at, limit) in limits.of(row as usize) {
            let (place, counts) = (self.place(limit, row), self.counts(row));
            let held = &mut self.held[at][place..];
            held.iter_mut().zip(counts).for_each(|(held, count)| change(held, count));
        }
    }
}

/// The jobs of each limit of submissions that wait or run.
///
/// The jobs of a log were accepted, so that all are accepted again; how many Slurm would have refused is counted.
#[derive(Clone, Debug)]
pub(super) struct Submitted<'a> {
    workload: &'a Workload,
    limits: &'a JobLimits,
    /// By limit of submissions: the number of jobs; one user after the other if each has it. Empty for other limits.
    jobs: Vec<Vec<u32>>,
    beyond: u64,
}

impl<'a> Submitted<'a> {
    pub(super) fn new(workload: &'a Workload, limits: &'a JobLimits) -> Submitted<'a> {
        let zeros = |limit: &Limit| match limit.max_submitted {
            Some(_) if limit.each_user => vec![0; workload.users().len()],
            Some(_) => vec![0],
            None => Vec::new(),
        };
        Submitted { workload, limits, jobs: limits.limits.iter().map(zeros).collect(), beyond: 0 }
    }

    /// How many jobs were submitted beyond a limit; `None` without such limits.
    pub(super) fn beyond(&self) -> Option<u64> {
        self.jobs.iter().any(|jobs| !jobs.is_empty()).then_some(self.beyond)
    }

    /// Adds a job, which is submitted.
    pub(super) fn submit(&mut self, row: u32) {
        let mut is_beyond = false;
        self.each(row, |jobs, most| {
            is_beyond |= *jobs >= most;
            *jobs += 1;
        });
        self.beyond += u64::from(is_beyond);
    }

    /// Removes a job, which has ended.
    pub(super) fn end(&mut self, row: u32) {
        self.each(row, |jobs, _| *jobs -= 1);
    }

    fn each(&mut self, row: u32, mut change: impl FnMut(&mut u32, u32)) {
        let user = self.workload.columns().user[row as usize].index();
        let limits = self.limits;
        for (at, limit) in limits.of(row as usize) {
            if let Some(most) = limit.max_submitted {
                change(&mut self.jobs[at][if limit.each_user { user } else { 0 }], most);
            }
        }
    }
}

/// Returns how many jobs of a log were submitted beyond a limit of submissions while others waited or ran; `None` without
/// such limits. `ends` are the ends of rows in nanoseconds, none of rows that did not run.
///
/// At one instant jobs end before others are submitted.
pub(crate) fn beyond_submit_limits(
    workload: &Workload,
    limits: &JobLimits,
    ends: impl Fn(usize) -> Option<u64>,
) -> Option<u64> {
    let mut submitted = Submitted::new(workload, limits);
    submitted.beyond()?;
    let mut running: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    for (row, submit) in workload.columns().submit.iter().enumerate() {
        let Some(end) = ends(row) else { continue };
        while let Some(Reverse((_, ended))) = running.peek().copied().filter(|first| first.0.0 <= submit.nanos()) {
            running.pop();
            submitted.end(ended);
        }
        submitted.submit(row as u32);
        running.push(Reverse((end, row as u32)));
    }
    submitted.beyond()
}
