//! What visitors are answered: records made of a snapshot and of what the visitor sees of it. Times are seconds since
//! 1970; pages and the API show the same records.

use std::borrow::Cow;
use std::collections::BTreeMap;

use evenhand_forecast::StartRecord;
use evenhand_model::Time;
use evenhand_slurm::{Job, JobState, NotWaiting, Queue, WaitingJob, WhyRecord, explain_reason};
use serde::Serialize;

use crate::latest::Forecasts;
use crate::queries::check_state;
use crate::snapshot::{NodeCounts, Snapshot, WEEK, cpus_of, waiting_by_reason};
use crate::visibility::{Extent, Sight};

/// How many jobs a page of the queue has.
pub(crate) const PAGE: usize = 200;

/// The whole site in few numbers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StatusRecord {
    pub(crate) cluster: Option<String>,
    pub(crate) running: u64,
    pub(crate) waiting: u64,
    pub(crate) by_reason: Vec<ReasonRecord>,
    pub(crate) partitions: Vec<PartitionRecord>,
    /// None where the site hides its nodes.
    pub(crate) nodes: Option<NodeCounts>,
    pub(crate) hidden: Option<&'static str>,
    pub(crate) notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReasonRecord {
    pub(crate) reason: String,
    pub(crate) kind: &'static str,
    pub(crate) means: &'static str,
    pub(crate) jobs: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct PartitionRecord {
    pub(crate) partition: String,
    pub(crate) running: u64,
    pub(crate) waiting: u64,
}

/// A part of the queue.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct QueueRecord {
    pub(crate) matched: usize,
    pub(crate) page: usize,
    pub(crate) pages: usize,
    pub(crate) jobs: Vec<JobRecord>,
    pub(crate) hidden: Option<&'static str>,
}

/// A record of the queue.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JobRecord {
    pub(crate) id: u64,
    /// As users write it: `7`, `7_[1-9]`.
    pub(crate) job: String,
    pub(crate) tasks: u64,
    pub(crate) user: String,
    pub(crate) account: Option<String>,
    pub(crate) partitions: Vec<String>,
    pub(crate) qos: Option<String>,
    pub(crate) state: String,
    pub(crate) reason: Option<String>,
    pub(crate) reason_means: Option<&'static str>,
    pub(crate) nodes: Option<u64>,
    pub(crate) cpus: u64,
    pub(crate) limit_s: Option<f64>,
    pub(crate) submit_s: Option<f64>,
    pub(crate) start_s: Option<f64>,
    pub(crate) priority: Option<u64>,
}

/// Which jobs of the queue are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueFilter {
    pub(crate) user: Option<String>,
    pub(crate) account: Option<String>,
    pub(crate) partition: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) page: usize,
}

/// A user in an account beside what it is entitled to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ShareRecord {
    pub(crate) account: String,
    /// None for the account itself.
    pub(crate) user: Option<String>,
    /// The part of the whole that the shares of all accounts give.
    pub(crate) entitled: Option<f64>,
    /// CPU seconds of the last seven days.
    pub(crate) week_cpu_s: f64,
    /// The part of all that was used.
    pub(crate) week_share: Option<f64>,
    /// What was received for each unit of entitlement.
    pub(crate) received_of_entitled: Option<f64>,
    /// Slurm's own numbers, as are the next two.
    pub(crate) effective_usage: Option<f64>,
    pub(crate) fair_share: Option<f64>,
    pub(crate) decayed_usage: Option<u64>,
}

/// What was used in the last week.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WeekRecord {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) accounts: Vec<ShareRecord>,
    pub(crate) users: Vec<ShareRecord>,
    pub(crate) hidden: bool,
}

/// A user or an account: jobs, standing, its use day by day, and how its usage fades.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PartyRecord {
    pub(crate) name: String,
    pub(crate) running: u64,
    pub(crate) waiting: u64,
    pub(crate) cpus_running: u64,
    pub(crate) jobs: Vec<JobRecord>,
    pub(crate) shares: Vec<ShareRecord>,
    pub(crate) days: Vec<DayRecord>,
    pub(crate) half_life_s: Option<f64>,
    pub(crate) fading: Vec<FadingRecord>,
    pub(crate) hidden: Option<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct DayRecord {
    pub(crate) from_s: f64,
    pub(crate) cpu_s: f64,
}

/// What is left of today's decayed usage if nothing runs until then.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FadingRecord {
    pub(crate) after_s: f64,
    pub(crate) left: f64,
}

/// Why there is no answer to a question about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The address is not understood, for example because it has no job number.
    BadRequest(String),
    /// There is no such job, or the visitor does not see it: which of the two is not shown.
    NotFound(String),
    /// The job does not wait for its turn.
    Conflict(String),
    /// The forecast is not made yet, or there is nothing to forecast from.
    NotYet(String),
}

impl From<NotWaiting> for NoAnswer {
    fn from(error: NotWaiting) -> NoAnswer {
        let text = error.to_string();
        match error {
            NotWaiting::NoNumber { .. } => NoAnswer::BadRequest(text),
            NotWaiting::NotSeen { .. } | NotWaiting::NoPart { .. } => NoAnswer::NotFound(text),
            NotWaiting::Other { .. } => NoAnswer::Conflict(text),
        }
    }
}

/// A snapshot as one visitor sees it.
pub(crate) struct View<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) sight: Sight,
}

impl View<'_> {
    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.snapshot.queue.jobs.iter().filter(|job| self.sight.sees_job(job))
    }

    pub(crate) fn status(&self) -> StatusRecord {
        let mut partitions: BTreeMap<&str, PartitionRecord> = BTreeMap::new();
        let (mut running, mut waiting) = (0, 0);
        for job in self.jobs() {
            let waits = job.state == JobState::Pending;
            if waits {
                waiting += job.tasks();
            } else if job.state.holds_resources() {
                running += 1;
            }
            for name in &job.partitions {
                let partition = partitions.entry(name.as_str()).or_default();
                partition.partition.clone_from(name);
                if waits {
                    partition.waiting += job.tasks();
                } else if job.state.holds_resources() {
                    partition.running += 1;
                }
            }
        }
        let mut by_reason: Vec<ReasonRecord> = waiting_by_reason(self.jobs())
            .into_iter()
            .map(|(reason, jobs)| {
                let (kind, means) = explain_reason(reason);
                ReasonRecord { reason: reason.to_string(), kind: kind.name(), means, jobs }
            })
            .collect();
        by_reason.sort_by_key(|record| std::cmp::Reverse(record.jobs));
        let nodes = self.sight.nodes.then(|| self.snapshot.node_counts());
        StatusRecord {
            cluster: self.snapshot.setting("ClusterName").map(String::from),
            running,
            waiting,
            by_reason,
            partitions: partitions.into_values().collect(),
            nodes,
            hidden: self.sight.hidden(),
            notes: self.snapshot.slow.notes.iter().chain(&self.snapshot.notes).cloned().collect(),
        }
    }

    pub(crate) fn queue(&self, filter: &QueueFilter) -> Result<QueueRecord, NoAnswer> {
        check_state(filter.state.as_deref(), self.jobs().map(|job| job.state.name()))?;
        let is = |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
        let mut found: Vec<&Job> = self
            .jobs()
            .filter(|job| {
                is(&filter.user, Some(&job.user))
                    && is(&filter.account, job.account.as_deref())
                    && filter.partition.as_ref().is_none_or(|wanted| job.partitions.contains(wanted))
                    && filter.state.as_ref().is_none_or(|wanted| job.state.name().eq_ignore_ascii_case(wanted))
            })
            .collect();
        // Those that wait first, in the order in which Slurm looks at them.
        found.sort_by_key(|job| (job.state != JobState::Pending, std::cmp::Reverse(job.priority), job.submit, job.id));
        let pages = found.len().div_ceil(PAGE).max(1);
        let page = filter.page;
        if !(1..=pages).contains(&page) {
            let text =
                format!("There is no page {page}, expected one from 1 to {pages}: {} records match.", found.len());
            return Err(NoAnswer::NotFound(text));
        }
        let jobs = found.iter().skip((page - 1) * PAGE).take(PAGE).map(|job| JobRecord::new(job)).collect();
        Ok(QueueRecord { matched: found.len(), page, pages, jobs, hidden: self.sight.hidden() })
    }

    /// Returns the records of a job by its number as users write it.
    pub(crate) fn job(&self, text: &str) -> Result<Vec<JobRecord>, NoAnswer> {
        let (queue, seen) = self.seen_queue();
        let records = queue.records_of(text)?;
        Ok(records.into_iter().map(|at| JobRecord::new(&self.snapshot.queue.jobs[seen[at]])).collect())
    }

    /// Returns why a job waits. Who stands before it is taken from what the visitor sees; the plan counts everyone, as
    /// Slurm's own expected start does.
    pub(crate) fn why(&self, text: &str) -> Result<WhyRecord, NoAnswer> {
        match self.sight.jobs {
            Extent::All => self.snapshot.why(text, || self.compute_why(text)),
            _ => self.compute_why(text),
        }
    }

    fn compute_why(&self, text: &str) -> Result<WhyRecord, NoAnswer> {
        let (queue, seen) = self.seen_queue();
        let at = queue.find_waiting(text)?;
        let (nodes, now) = (&self.snapshot.nodes, self.snapshot.read_at);
        let priority = self.snapshot.priorities.jobs.get(&queue.jobs[at].id);
        let notes = self.sight.hidden().map(String::from).into_iter().collect();
        let counted = self.snapshot.counted();
        let waiting = WaitingJob::new(&queue, nodes, counted, at, now);
        let all = WaitingJob::new(&self.snapshot.queue, nodes, counted, seen[at], now);
        Ok(WhyRecord::new(&queue, &waiting, &all, priority, now, notes))
    }

    /// Returns when a job starts.
    pub(crate) fn when(&self, text: &str, forecasts: &Forecasts) -> Result<StartRecord, NoAnswer> {
        let (queue, _) = self.seen_queue();
        let job = &queue.jobs[queue.find_waiting(text)?];
        if let Some(no_turn) = job.no_turn() {
            return Err(NoAnswer::Conflict(format!(
                "job {} {}, so that its start cannot be forecast; {}",
                job.id, no_turn.why, no_turn.remedy
            )));
        }
        if let Some(reason) = forecasts.not_planned.get(&job.id) {
            return Err(NoAnswer::NotYet(reason.to_string()));
        }
        forecasts.starts.get(&job.id).cloned().ok_or_else(|| {
            NoAnswer::NotYet(match (&forecasts.failure, forecasts.read_at) {
                (Some(failure), _) => format!("the start of job {} cannot be forecast: {failure}", job.id),
                (None, None) => "no start has been forecast yet; ask again in a minute".to_string(),
                (None, Some(_)) => format!(
                    "the start of job {} is not forecast yet: it is new, or hundreds of jobs wait before it",
                    job.id
                ),
            })
        })
    }

    /// Returns the jobs that the visitor sees, with their indexes in the whole queue.
    fn seen_queue(&self) -> (Cow<'_, Queue>, Vec<usize>) {
        let all = &self.snapshot.queue.jobs;
        let seen: Vec<usize> = (0..all.len()).filter(|&at| self.sight.sees_job(&all[at])).collect();
        if seen.len() == all.len() {
            return (Cow::Borrowed(&self.snapshot.queue), seen);
        }
        (Cow::Owned(Queue { jobs: seen.iter().map(|&at| all[at].clone()).collect() }), seen)
    }

    pub(crate) fn week(&self) -> WeekRecord {
        let to = self.snapshot.read_at;
        let mut users = self.user_shares();
        let mut accounts = self.account_shares(&users);
        let all = users.len();
        users.retain(|share| self.sight.sees_usage(share.user.as_deref().unwrap_or_default(), &share.account));
        accounts.retain(|share| self.sees_account(&share.account));
        let most = |share: &ShareRecord| std::cmp::Reverse(share.week_cpu_s as u64);
        users.sort_by_key(most);
        accounts.sort_by_key(most);
        WeekRecord {
            from_s: to.saturating_sub(WEEK).secs_f64(),
            to_s: to.secs_f64(),
            accounts,
            hidden: users.len() < all,
            users,
        }
    }

    /// An account's sums are shown to those who see all in it: from the sum and one's own part those of others follow.
    fn sees_account(&self, account: &str) -> bool {
        self.sight.sees_usage("", account)
    }

    /// Returns a user; none if the visitor sees nothing of it.
    pub(crate) fn user(&self, name: &str) -> Option<PartyRecord> {
        let mut shares = self.user_shares();
        shares.retain(|s| s.user.as_deref() == Some(name) && self.sight.sees_usage(name, &s.account));
        let jobs: Vec<&Job> = self.jobs().filter(|job| job.user == name).collect();
        let own = self.sight.user() == Some(name);
        (own || !jobs.is_empty() || !shares.is_empty()).then(|| {
            let seen = |user: &str, account: &str| user == name && self.sight.sees_usage(user, account);
            self.party(name, &jobs, shares, seen)
        })
    }

    /// Returns an account; none if the visitor sees nothing of it.
    pub(crate) fn account(&self, name: &str) -> Option<PartyRecord> {
        let users = self.user_shares();
        let mut shares = self.account_shares(&users);
        shares.retain(|share| share.account == name && self.sees_account(name));
        let within =
            |s: &ShareRecord| s.account == name && self.sight.sees_usage(s.user.as_deref().unwrap_or_default(), name);
        shares.extend(users.into_iter().filter(within));
        let jobs: Vec<&Job> = self.jobs().filter(|job| job.account.as_deref() == Some(name)).collect();
        let seen = |user: &str, account: &str| account == name && self.sight.sees_usage(user, account);
        (!jobs.is_empty() || !shares.is_empty()).then(|| self.party(name, &jobs, shares, seen))
    }

    fn party(
        &self,
        name: &str,
        jobs: &[&Job],
        shares: Vec<ShareRecord>,
        seen: impl Fn(&str, &str) -> bool,
    ) -> PartyRecord {
        let days = self.snapshot.recent_use().days.iter().map(|(from, used)| {
            let cpu_s = used.iter().filter(|((account, user), _)| seen(user, account)).map(|(_, s)| s).sum();
            DayRecord { from_s: from.secs_f64(), cpu_s }
        });
        let half_life_s = self.snapshot.setting("PriorityDecayHalfLife").and_then(half_life).filter(|s| *s > 0.0);
        let days: Vec<DayRecord> = days.collect();
        let fading = half_life_s.into_iter().flat_map(|half_life| {
            [1.0, 3.0, 7.0, 14.0, 30.0].map(|days| {
                let after_s = days * 86_400.0;
                FadingRecord { after_s, left: (-after_s / half_life).exp2() }
            })
        });
        let fading = fading.collect();
        let (running, waiting): (Vec<&Job>, Vec<&Job>) =
            jobs.iter().copied().partition(|job| job.state.holds_resources());
        let mut ordered = jobs.to_vec();
        ordered.sort_by_key(|job| (job.state != JobState::Pending, std::cmp::Reverse(job.priority), job.id));
        PartyRecord {
            name: name.to_string(),
            running: running.len() as u64,
            waiting: waiting.iter().filter(|job| job.state == JobState::Pending).map(|job| job.tasks()).sum(),
            cpus_running: running.iter().map(|job| cpus_of(job)).sum(),
            jobs: ordered.iter().take(PAGE).map(|job| JobRecord::new(job)).collect(),
            shares,
            days,
            half_life_s,
            fading,
            hidden: self.sight.hidden(),
        }
    }

    /// Each user in each account, of the associations and of those who used something this week.
    fn user_shares(&self) -> Vec<ShareRecord> {
        let used = &self.snapshot.recent_use().week;
        let total: f64 = used.values().sum();
        let rows: BTreeMap<(&str, &str), _> = self
            .snapshot
            .shares
            .rows
            .iter()
            .filter_map(|row| Some(((row.account.as_str(), row.user.as_deref()?), row)))
            .collect();
        let entitlements = &self.snapshot.slow.entitlements;
        let mut keys: Vec<(String, String)> = entitlements.keys().chain(used.keys()).cloned().collect();
        keys.extend(rows.keys().map(|(account, user)| (account.to_string(), user.to_string())));
        keys.sort_unstable();
        keys.dedup();
        let share = |key: (String, String)| {
            let row = rows.get(&(key.0.as_str(), key.1.as_str()));
            ShareRecord {
                effective_usage: row.and_then(|row| row.effective_usage),
                fair_share: row.and_then(|row| row.fair_share),
                decayed_usage: row.and_then(|row| row.raw_usage),
                ..ShareRecord::of(&key.0, Some(&key.1), entitlements.get(&key).copied(), used.get(&key).copied(), total)
            }
        };
        keys.into_iter().map(share).collect()
    }

    fn account_shares(&self, users: &[ShareRecord]) -> Vec<ShareRecord> {
        let total: f64 = users.iter().map(|share| share.week_cpu_s).sum();
        let mut sums: BTreeMap<&str, (Option<f64>, f64)> = BTreeMap::new();
        for share in users {
            let (entitled, used) = sums.entry(share.account.as_str()).or_default();
            *entitled = share.entitled.map(|part| part + entitled.unwrap_or(0.0)).or(*entitled);
            *used += share.week_cpu_s;
        }
        let rows = self.snapshot.shares.rows.iter().filter(|row| row.user.is_none());
        let rows: BTreeMap<&str, _> = rows.map(|row| (row.account.as_str(), row)).collect();
        sums.into_iter()
            .map(|(account, (entitled, used))| {
                let row = rows.get(account);
                ShareRecord {
                    effective_usage: row.and_then(|row| row.effective_usage),
                    fair_share: row.and_then(|row| row.fair_share),
                    decayed_usage: row.and_then(|row| row.raw_usage),
                    ..ShareRecord::of(account, None, entitled, Some(used), total)
                }
            })
            .collect()
    }
}

/// Reads `7-00:00:00`, as scontrol prints PriorityDecayHalfLife.
fn half_life(text: &str) -> Option<f64> {
    evenhand_slurm::Limit::parse(text)?.span().map(|span| span.secs_f64())
}

impl ShareRecord {
    fn of(account: &str, user: Option<&str>, entitled: Option<f64>, used: Option<f64>, total: f64) -> ShareRecord {
        let week_cpu_s = used.unwrap_or(0.0);
        let week_share = (total > 0.0).then(|| week_cpu_s / total);
        ShareRecord {
            account: account.to_string(),
            user: user.map(String::from),
            entitled,
            week_cpu_s,
            week_share,
            received_of_entitled: week_share.zip(entitled.filter(|part| *part > 0.0)).map(|(got, part)| got / part),
            effective_usage: None,
            fair_share: None,
            decayed_usage: None,
        }
    }
}

impl JobRecord {
    pub(crate) fn new(job: &Job) -> JobRecord {
        let seconds = |time: Option<Time>| time.map(Time::secs_f64);
        let waits = job.state == JobState::Pending;
        let name = match (&job.array, job.heterogeneous) {
            (Some(array), _) if job.tasks() > 1 => format!("{}_[{}]", array.job, array.tasks),
            (Some(array), _) => format!("{}_{}", array.job, array.tasks),
            (None, Some(part)) => format!("{}+{}", part.job, part.offset),
            (None, None) => job.id.to_string(),
        };
        JobRecord {
            id: job.id,
            job: name,
            tasks: job.tasks(),
            user: job.user.clone(),
            account: job.account.clone(),
            partitions: job.partitions.clone(),
            qos: job.qos.clone(),
            state: job.state.name().to_string(),
            reason: waits.then(|| job.reason().to_string()),
            reason_means: waits.then(|| explain_reason(job.reason()).1),
            nodes: job.nodes,
            cpus: cpus_of(job),
            limit_s: job.limit.span().map(|span| span.secs_f64()),
            submit_s: seconds(job.submit),
            start_s: seconds(job.start),
            priority: job.priority,
        }
    }
}
