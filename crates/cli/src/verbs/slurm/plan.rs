//! `evenhand slurm plan`

use std::collections::BTreeMap;

use evenhand_model::{Nano, Time};
use evenhand_policies::Registry;
use evenhand_slurm::{
    Accounts, Configuration, FinishedJob, Hold, Job, Lacks, Nodes, Partitions, Place, Plan, PlanError, Qos, Queue,
    SiteSnapshot, Unranked, explain_reason,
};
use serde::Serialize;

use super::show::or_note;
use super::{parse_time, plan_options, read_failure, slurm_commands};
use crate::arguments::PlanArgs;
use crate::arguments::policy_settings::policy_failure;
use crate::failure::{Failure, Outcome};
use crate::output::console::Console;
use crate::output::numbers::rounded;
use crate::output::table::{Table, printable};

/// What `slurm plan` prints as JSON.
#[derive(Debug, Serialize)]
struct Record {
    policy: String,
    at_s: f64,
    places: Vec<PlaceRecord>,
    unranked: Vec<UnrankedRecord>,
    users: Vec<UserRecord>,
    capacity: BTreeMap<String, f64>,
}

#[derive(Debug, Serialize)]
struct PlaceRecord {
    place: usize,
    job: u64,
    tasks: u64,
    user: String,
    account: Option<String>,
    /// Key of the policy's order: the lowest is first.
    key: f64,
    /// Shares of the capacity that the user holds when the job's turn comes.
    shares: BTreeMap<String, f64>,
    commitments: BTreeMap<String, f64>,
    /// Number of tasks that would start before the job's.
    before: u64,
    waits_for: String,
    /// Slurm's reason, where that is what it waits for.
    #[serde(skip)]
    slurm_reason: Option<String>,
    /// Place in Slurm's own order of these jobs.
    slurm_place: usize,
    slurm_priority: Option<u64>,
}

#[derive(Debug, Serialize)]
struct UnrankedRecord {
    job: u64,
    user: String,
    why: String,
}

#[derive(Debug, Serialize)]
struct UserRecord {
    user: String,
    account: Option<String>,
    entitlement: f64,
}

pub(super) fn run(args: &PlanArgs, registry: &Registry, console: &Console) -> Result<Outcome, Failure> {
    let (options, memory) = plan_options::plan_options(&args.order, registry, args.depth)?;
    let slurm = slurm_commands(&args.queue, console);
    let slurm = slurm.as_ref();
    let now = parse_time::now();
    let configuration = Configuration::read(slurm).map_err(read_failure)?;
    let nodes = Nodes::read(slurm).map_err(read_failure)?.nodes;
    let partitions = Partitions::read(slurm).map_err(read_failure)?.partitions;
    let mut notes = Vec::new();
    let accounts = or_note(
        Accounts::read(slurm, configuration.cluster()),
        "Without accounts, all users have the same share",
        &mut notes,
    )?;
    let accounts = accounts.filter(|a| !a.associations.is_empty());
    let mut ended = None;
    if options.decay.is_some() {
        let read = FinishedJob::read(slurm, now.saturating_sub(memory), now, true);
        ended = or_note(read, "Without accounting, finished jobs do not count", &mut notes)?;
    }
    let mut qos = None;
    if configuration.counts_qos() {
        qos = or_note(
            Qos::read(slurm),
            "Without QOS, their factor of the priority is 0 and that of usage 1",
            &mut notes,
        )?;
    }
    notes.iter().for_each(|note| console.note(note));
    let queue = Queue::read(slurm).map_err(read_failure)?;
    let site = SiteSnapshot {
        nodes: &nodes,
        partitions: &partitions,
        accounts: accounts.as_ref(),
        queue: &queue,
        qos: qos.as_deref().unwrap_or_default(),
        ended: ended.as_deref().unwrap_or_default(),
        configuration: Some(&configuration),
    };
    let plan = Plan::new(&site, &options, now).map_err(|error| match error {
        PlanError::Policy(error) => policy_failure(error),
        error => Failure::Environment(error.to_string()),
    })?;
    if let Some(job) = args.why {
        return console.result(&explanation(&plan, &queue, job, &options.policy)?).map(|()| Outcome::Done);
    }
    let record = Record::new(&plan, &queue, &options.policy, now);
    if console.is_json() {
        console.json(&record)?
    } else {
        console.result(&table(&record))?
    }
    Ok(Outcome::Done)
}

/// Returns the places of the plan's jobs in Slurm's own order: by priority, then submission, then number.
fn slurm_order(plan: &Plan, queue: &Queue) -> BTreeMap<usize, usize> {
    let mut jobs: Vec<usize> = plan.places.iter().map(|p| p.job).collect();
    jobs.sort_by_key(|at| {
        let job = &queue.jobs[*at];
        (std::cmp::Reverse(job.priority), job.submit, job.id)
    });
    jobs.into_iter().zip(1..).collect()
}

impl Record {
    fn new(plan: &Plan, queue: &Queue, policy: &str, now: Time) -> Record {
        let slurm_places = slurm_order(plan, queue);
        let named = |values: &[f64]| {
            let names = plan.resources.iter().map(|r| r.name.clone());
            names.zip(values.iter().copied()).collect::<BTreeMap<_, _>>()
        };
        let place = |(at, place): (usize, &Place)| {
            let (job, party) = (&queue.jobs[place.job], &plan.parties[place.party]);
            PlaceRecord {
                place: at + 1,
                job: job.id,
                tasks: job.tasks(),
                user: party.user.clone(),
                account: party.account.clone(),
                key: place.standing.key,
                shares: named(&place.standing.shares),
                commitments: named(&place.standing.commitments),
                before: place.before,
                waits_for: waits_for(plan, place, job),
                slurm_reason: has_come(place).then(|| job.reason().to_string()),
                slurm_place: slurm_places.get(&place.job).copied().unwrap_or(0),
                slurm_priority: job.priority,
            }
        };
        let unranked = plan.unranked.iter().map(|(at, why)| UnrankedRecord {
            job: queue.jobs[*at].id,
            user: queue.jobs[*at].user.clone(),
            why: reason(why),
        });
        let users = plan.parties.iter().map(|p| UserRecord {
            user: p.user.clone(),
            account: p.account.clone(),
            entitlement: p.entitlement,
        });
        Record {
            policy: policy.to_string(),
            at_s: now.secs_f64(),
            places: plan.places.iter().enumerate().map(place).collect(),
            unranked: unranked.collect(),
            users: users.collect(),
            capacity: named(&plan.capacity),
        }
    }
}

/// Returns why a job has no place in the order.
fn reason(why: &Unranked) -> String {
    match why {
        Unranked::Held(Hold::User) => "held by its owner".into(),
        Unranked::Held(Hold::Administrator) => "held by an administrator".into(),
        Unranked::Depends(on) => format!("depends on {on}"),
        Unranked::NotEligible(reason) => format!("not eligible: {reason}"),
        Unranked::Reservation(name) => format!("in the reservation {name}"),
        Unranked::Behind => "after the last place to compute (--depth)".into(),
    }
}

/// Returns whether nothing is missing for a job and no task is before it. Then what it waits for is Slurm's own reason: a turn that
/// has come explains nothing.
fn has_come(place: &Place) -> bool {
    place.lacks == Lacks::Nothing && place.before == 0
}

/// Returns what a job waits for.
fn waits_for(plan: &Plan, place: &Place, job: &Job) -> String {
    match &place.lacks {
        Lacks::Nothing if has_come(place) => {
            format!("Slurm's reason is {}: {}", job.reason(), explain_reason(job.reason()).1)
        }
        Lacks::Nothing => "its turn".into(),
        Lacks::OnMachines => "enough free capacity on one machine".into(),
        Lacks::AtSite(lacking) => {
            let one = |(resource, asks, free): &(usize, Nano, Nano)| {
                let amount = |nano: Nano| match plan.resources[*resource].name.as_str() {
                    "mem" => format!("{} GiB", rounded(nano as f64 / 1e9 / f64::from(1 << 30))),
                    _ => (nano as f64 / 1e9).to_string(),
                };
                format!("{} {}, {} free", amount(*asks), plan.resources[*resource].name, amount(*free))
            };
            lacking.iter().map(one).collect::<Vec<_>>().join("; ")
        }
    }
}

fn table(record: &Record) -> String {
    let mut table = Table::new(3, ["job", "user", "account", "place", "Slurm's", "tasks before", "key", "waits for"]);
    for place in &record.places {
        let array = if place.tasks > 1 { format!(" x {}", place.tasks) } else { String::new() };
        table.row(vec![
            format!("{}{array}", place.job),
            printable(&place.user),
            printable(place.account.as_deref().unwrap_or("-")),
            place.place.to_string(),
            place.slurm_place.to_string(),
            place.before.to_string(),
            format!("{:.4}", place.key),
            // In words below the table, which would be too wide.
            place
                .slurm_reason
                .as_ref()
                .map_or(place.waits_for.clone(), |reason| printable(&format!("Slurm: {reason}"))),
        ]);
    }
    let mut text = format!("{}\n\nThe order of {}; the lowest key is first.", table.render(), record.policy);
    for place in record.places.iter().filter(|place| place.slurm_reason.is_some()) {
        text.push_str(&format!(
            "\nJob {}: nodes of the site have free what it asks for, and no task is before it. {}.",
            place.job,
            printable(&place.waits_for)
        ));
    }
    let behind = reason(&Unranked::Behind);
    let named: Vec<&UnrankedRecord> = record.unranked.iter().filter(|job| job.why != behind).collect();
    if record.unranked.len() > named.len() {
        text.push_str(&format!("\n{} more are {behind}.", record.unranked.len() - named.len()));
    }
    if !named.is_empty() {
        let mut table = Table::new(3, ["job", "user", "not in the order"]);
        for job in named {
            table.row(vec![job.job.to_string(), printable(&job.user), printable(&job.why)]);
        }
        text.push_str(&format!("\n\n{}", table.render()));
    }
    text
}

/// Explains the place of one job in sentences.
fn explanation(plan: &Plan, queue: &Queue, id: u64, policy: &str) -> Result<String, Failure> {
    let is = |job: &Job| job.id == id || job.array.as_ref().is_some_and(|a| a.job == id);
    let at = queue.jobs.iter().position(is);
    let at = at.ok_or_else(|| Failure::Input(format!("--why: there is no job {id} in the queue")))?;
    let job = &queue.jobs[at];
    if let Some((_, why)) = plan.unranked.iter().find(|(job, _)| *job == at) {
        return Ok(format!("Job {id} of {} has no place in the order: {}.", printable(&job.user), reason(why)));
    }
    let Some(number) = plan.places.iter().position(|p| p.job == at) else {
        return Ok(format!("Job {id} of {} does not wait: {}.", printable(&job.user), job.state.name()));
    };
    let place = &plan.places[number];
    let party = &plan.parties[place.party];
    let percent = |x: f64| format!("{:.1} %", 100.0 * x);
    let each = |values: &[f64]| {
        let one = |(r, x): (usize, &f64)| format!("{} {}", plan.resources[r].name, percent(*x));
        values.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
    };
    let account = party.account.as_ref().map_or(String::new(), |a| format!(" in {}", printable(a)));
    let mut sentences = vec![
        format!(
            "Job {id} of {}{account} has place {} of {} under {policy} (key {:.4}), and place {} by Slurm's own priority ({}).",
            printable(&party.user),
            number + 1,
            plan.places.len(),
            place.standing.key,
            slurm_order(plan, queue).get(&at).copied().unwrap_or(0),
            job.priority.map_or("unknown".into(), |p| p.to_string()),
        ),
        format!("Its owner is entitled to {} of the capacity.", percent(party.entitlement)),
    ];
    if !place.standing.shares.is_empty() {
        sentences.push(format!(
            "When its turn comes, the owner holds these shares of the capacity: {}.",
            each(&place.standing.shares)
        ));
    }
    if place.standing.commitments.iter().any(|c| *c > 0.0) {
        sentences.push(format!("Past overuse that counts against the owner: {}.", each(&place.standing.commitments)));
    }
    let mut ahead: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
    for other in &plan.places[..number] {
        let entry = ahead.entry(other.party).or_insert((0, other.standing.key));
        entry.0 += 1;
        entry.1 = other.standing.key;
    }
    if ahead.is_empty() {
        sentences.push("No job is before it.".into());
    } else {
        let mut users: Vec<(usize, (usize, f64))> = ahead.into_iter().collect();
        users.sort_by(|a, b| b.1.0.cmp(&a.1.0).then(a.0.cmp(&b.0)));
        let one = |(party, (jobs, key)): &(usize, (usize, f64))| {
            let name = printable(&plan.parties[*party].user);
            let same = if *party == place.party { " (the same user)" } else { "" };
            format!("{name}{same}: {jobs}, the last with key {}", rounded(*key))
        };
        let listed: Vec<String> = users.iter().take(8).map(one).collect();
        let rest = users.len().saturating_sub(8);
        let rest = if rest > 0 { format!("; and {rest} more users") } else { String::new() };
        sentences.push(format!("Jobs before it, by user: {}{rest}.", listed.join("; ")));
    }
    sentences.push(match has_come(place) {
        true => format!("Nodes of the site have free what it asks for. {}.", waits_for(plan, place, job)),
        false => format!("It waits for {}.", waits_for(plan, place, job)),
    });
    Ok(sentences.join("\n"))
}

#[cfg(test)]
mod tests {
    use evenhand_policies::Standing;

    use super::*;

    #[test]
    fn the_first_job_waits_for_slurm_s_own_reason_where_nothing_is_missing() {
        let text =
            "JOBID|USER|STATE|REASON\n7|ann|PENDING|ReqNodeNotAvail, UnavailableNodes:n2\n8|ann|PENDING|Resources\n";
        let queue = Queue::parse(text).unwrap();
        let plan = Plan {
            resources: Vec::new(),
            capacity: Vec::new(),
            parties: Vec::new(),
            places: Vec::new(),
            unranked: Vec::new(),
        };
        let place = |before| Place { job: 0, party: 0, standing: Standing::default(), before, lacks: Lacks::Nothing };
        let waits = |before, at: usize| waits_for(&plan, &place(before), &queue.jobs[at]);
        assert_eq!(
            waits(0, 0),
            "Slurm's reason is ReqNodeNotAvail, UnavailableNodes:n2: nodes that it needs are down, drained or reserved for something else"
        );
        assert!(waits(0, 1).starts_with("Slurm's reason is Resources: it waits until"));
        assert_eq!(waits(3, 1), "its turn");
    }
}
