//! How long jobs run: drawn from what similar jobs used of their limits.

use std::collections::HashMap;

use evenhand_model::random::Stream;

use crate::log::Job;
use crate::size::Size;

/// How many of the latest jobs of a template count.
const KEPT: usize = 24;

/// A template that has seen n jobs is trusted with probability n / (n + `DOUBT`); else a more general one is asked.
const DOUBT: f64 = 1.0;

/// A run time and the limit under which it ran.
type Run = (i64, i64);

/// The latest run times of jobs that are alike.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latest {
    runs: Vec<Run>,
    next: usize,
}

impl Latest {
    fn push(&mut self, run: Run) {
        if self.runs.len() < KEPT {
            self.runs.push(run);
        } else {
            self.runs[self.next] = run;
        }
        self.next = (self.next + 1) % KEPT;
    }
}

/// The attributes of which the templates are made, from the most special to the most general.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Template {
    UserLimitSize(u32, i64, Size),
    UserLimit(u32, i64),
    User(u32),
    Account(u32),
    Limit(i64),
    All,
}

fn templates(job: &Job) -> [Template; 6] {
    [
        Template::UserLimitSize(job.user, job.limit, job.size),
        Template::UserLimit(job.user, job.limit),
        Template::User(job.user),
        Template::Account(job.account),
        Template::Limit(job.limit),
        Template::All,
    ]
}

/// The run times of the jobs that have ended so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunTimes(HashMap<Template, Latest>);

impl RunTimes {
    /// Learns from a job that has ended.
    pub(crate) fn ended(&mut self, job: &Job) {
        for template in templates(job) {
            self.0.entry(template).or_default().push((job.end - job.start, job.limit));
        }
    }

    /// What can be drawn for a job.
    pub(crate) fn law(&self, job: &Job) -> Law<'_> {
        Law { limit: job.limit, templates: templates(job).map(|t| self.0.get(&t)) }
    }
}

/// The distribution of a job's run time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law<'a> {
    limit: i64,
    templates: [Option<&'a Latest>; 6],
}

impl Law<'_> {
    /// Draws a run time longer than `elapsed`.
    pub(crate) fn draw(&self, elapsed: i64, random: &mut Stream) -> i64 {
        for latest in self.templates.into_iter().flatten() {
            let n = latest.runs.len();
            if random.uniform() * (n as f64 + DOUBT) > n as f64 {
                continue;
            }
            // Jobs of the past that ran longer than this one has so far.
            for _ in 0..4 {
                let (run, limit) = latest.runs[random.below(n as u64) as usize];
                let run =
                    if limit == self.limit { run } else { (run as f64 / limit as f64 * self.limit as f64) as i64 };
                if run > elapsed {
                    return run;
                }
            }
        }
        // Nothing is known: any part of what is left; a job past its limit goes on for a while.
        let left = (self.limit - elapsed).max(self.limit / 20).max(1);
        elapsed + 1 + (random.uniform() * left as f64) as i64
    }
}
