//! `evenhand slurm why`: why a job of the queue waits.

use std::collections::BTreeMap;
use std::time::Duration;

use evenhand_model::calendar::date_and_time_of;
use evenhand_model::{Time, counted};
use evenhand_slurm::{Configuration, Counted, Hold, Job, JobState, Nodes, Priorities, Queue, WaitingJob, WhyRecord};

use super::find_job::{caller, waiting_record};
use super::show::or_note;
use super::{parse_time, read_failure, slurm_commands, slurm_commands_within};
use crate::arguments::SlurmWhyArgs;
use crate::failure::Failure;
use crate::output::console::Console;
use crate::output::human_units::duration;
use crate::output::numbers::percent;
use crate::output::table::{Table, printable};

/// The time in which Slurm has to answer for `--short`, which a login waits for.
const SHORT_LIMIT: Duration = Duration::from_secs(5);

pub(super) fn run(args: &SlurmWhyArgs, console: &Console) -> Result<(), Failure> {
    let slurm = match args.short {
        true => slurm_commands_within(SHORT_LIMIT, &args.queue),
        false => slurm_commands(&args.queue, console),
    };
    let slurm = slurm.as_ref();
    let now = parse_time::now();
    let queue = Queue::read(slurm).map_err(read_failure)?;
    let mut notes = Vec::new();
    let record = match args.who.chars().next() {
        Some(first) if first.is_ascii_digit() => Some(waiting_record(&queue, &args.who)?),
        _ => {
            let user = if args.who == "me" { caller("me", "give the name of a user")? } else { args.who.clone() };
            queue.first_waiting_of(&user)
        }
    };
    let Some(at) = record else {
        // Nothing waits: an answer, not an error.
        let text = format!("No job of {} waits, as far as squeue shows.", printable(&args.who));
        return if console.is_json() { console.json(&Vec::<WhyRecord>::new()) } else { console.result(&text) };
    };
    if args.short && !console.is_json() {
        return console.document(&short(&queue, &queue.jobs[at].user));
    }
    let nodes = Nodes::read(slurm).map_err(read_failure)?.nodes;
    let priorities = or_note(
        Priorities::read_with_factors(slurm),
        "Without sprio, the factors of its priority are not shown",
        &mut notes,
    )?;
    let configuration = or_note(
        Configuration::read(slurm),
        "It is not known what the site hides, and memory is not counted",
        &mut notes,
    )?;
    let hidden = configuration.as_ref().and_then(|c| c.get("PrivateData")).filter(|hidden| hidden.contains("jobs"));
    let hides_jobs = hidden.is_some();
    if hides_jobs {
        notes.push(
            "The site hides other users' jobs (PrivateData): they are counted neither before this job nor in the plan."
                .into(),
        );
    }
    let priorities = priorities.unwrap_or_default();
    let counted = Counted::of(&nodes, configuration.as_ref());
    let waiting = WaitingJob::new(&queue, &nodes, counted, at, now);
    let record = WhyRecord::new(&queue, &waiting, &waiting, priorities.jobs.get(&queue.jobs[at].id), now, notes);
    if console.is_json() { console.json(&record) } else { console.result(&text(&record, &queue.jobs[at], now)) }
}

/// One line about all waiting jobs of a user.
fn short(queue: &Queue, user: &str) -> String {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    let mut next: Option<Time> = None;
    for job in queue.jobs.iter().filter(|job| job.user == user && job.state == JobState::Pending) {
        *reasons.entry(job.reason()).or_default() += job.tasks();
        next = [next, job.start].into_iter().flatten().min();
    }
    let all: u64 = reasons.values().sum();
    let each: Vec<String> = reasons.iter().map(|(reason, n)| format!("{n} {}", printable(reason))).collect();
    let next =
        next.map_or(String::new(), |start| format!("; Slurm plans the next start at {}", date_and_time_of(start)));
    let jobs = counted(all, "job waits", "jobs wait");
    format!("{}: {jobs} ({}){next}.", printable(user), each.join(", "))
}

fn text(record: &WhyRecord, job: &Job, now: Time) -> String {
    let s = &record.standing;
    let account = record.account.as_deref().map_or(String::new(), |a| format!(", account {}", printable(a)));
    let waited = record.waited_s.map_or("an unknown time".to_string(), duration);
    let mut lead = format!(
        "Job {} of {}{account} has waited {waited} in {}. Slurm's reason is {}: {}.",
        record.job,
        printable(&record.user),
        printable(&record.partitions.join(", ")),
        printable(&record.reason),
        record.reason_means,
    );
    match job.held() {
        Some(Hold::User) => lead += " Until its user releases it, it has no start.",
        Some(Hold::Administrator) => lead += " Until an administrator releases it, it has no start.",
        None => {
            lead += &format!(" {} before it. {}", counted(s.jobs_before, "job stands", "jobs stand"), s.asks_for);
        }
    }
    let waiting = counted(s.jobs_waiting, "waiting job", "waiting jobs");
    lead += &format!(" The user has {} running and {waiting}.", s.jobs_running);
    if let Some(priority) = s.priority {
        lead += &format!(" Its priority is {priority}");
        let site = s.site_factor.filter(|factor| *factor != 0);
        lead += &site.map_or(".".to_string(), |factor| format!(", of which {factor} is the site factor."));
    }
    if let Some(start) = job.start.filter(|start| *start > now) {
        lead += &format!(" Slurm plans to start it at {}.", date_and_time_of(start));
    }
    let mut blocks = vec![lead];
    if !s.priority_factors.is_empty() {
        let mut table = Table::new(1, ["factor of its priority", "points"]);
        for f in &s.priority_factors {
            table.row(vec![f.factor.replace('_', " "), f.points.to_string()]);
        }
        blocks.push(table.render());
    }
    if !record.before.is_empty() {
        let has_gpus = record.before.iter().any(|before| before.gpus > 0);
        let gpus = |text: String| has_gpus.then_some(text);
        let columns = ["before it", "account", "jobs", "CPUs"].map(String::from).into_iter();
        let mut table = Table::new(2, columns.chain(gpus("GPUs".into())).chain(["part".into()]));
        for b in record.before.iter().take(8) {
            let account = b.account.as_deref().map_or("-".to_string(), printable);
            let row = [printable(&b.user), account, b.jobs.to_string(), b.cpus.to_string()].into_iter();
            table.row(row.chain(gpus(b.gpus.to_string())).chain([percent(b.share)]).collect());
        }
        blocks.push(table.render());
    }
    if !record.what_if.is_empty() {
        let mut table = Table::new(1, ["if it asked for", "planned start", "in"]);
        for w in &record.what_if {
            let row = match w.start {
                Some(start) => {
                    [date_and_time_of(Time::from_secs(start as u64)), duration((start - now.secs_f64()).max(0.0))]
                }
                None => ["never".to_string(), "-".to_string()],
            };
            let [start, left] = row;
            table.row(vec![w.change.clone(), start, left]);
        }
        blocks.push(format!("{}:\n\n{}", record.what_if_note.trim_end_matches('.'), table.render()));
    }
    blocks.extend(record.not_seen.iter().cloned());
    blocks.join("\n\n")
}
