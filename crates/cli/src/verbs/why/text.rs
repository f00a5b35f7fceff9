//! The explanation for people: a paragraph and tables.

use evenhand_model::counted;

use super::{Asked, WhyRecord};
use crate::inputs::site_log::SiteLog;
use crate::output::human_units;
use crate::output::numbers::{four_digits, percent};
use crate::output::table::{Table, printable};

/// How many users are listed.
const LISTED: usize = 8;

pub(super) fn text(record: &WhyRecord, asked: &Asked, site: &SiteLog) -> String {
    let mut blocks = vec![paragraph(record, asked, site)];
    if record.waited_s > 0 {
        blocks.push(obstacles(record));
        if !record.before.is_empty() {
            blocks.push(before(record));
        }
    }
    blocks.push(what_if(record, site));
    blocks.join("\n\n")
}

fn paragraph(record: &WhyRecord, asked: &Asked, site: &SiteLog) -> String {
    let user = printable(&record.user);
    let waited = duration(record.waited_s);
    let mut text = match (&record.job_id, asked.jobs.as_slice()) {
        (Some(id), [job, ..]) => {
            let limit = site.log.requested_limit(*job).map_or("no wall time".to_owned(), duration);
            let job = site.log.jobs()[*job];
            format!(
                "Job {} of user {user} waited {waited}, from {} to {}. It needs {} {} and asked for {limit}.",
                printable(id),
                site.clock.show(record.submit_s),
                site.clock.show(record.start_s),
                four_digits(job.size.first() as f64 / site.log.size_of(1) as f64),
                site.workload.resources()[0].name,
            )
        }
        _ if record.jobs == 1 => format!("1 job of user {user} waited {waited}."),
        _ => format!("{} jobs of user {user} waited {waited} in total.", record.jobs),
    };
    let s = &record.standing;
    let when = if record.job.is_some() { "When it was submitted" } else { "At the last submission" };
    text += &format!(
        " {when}, {} of {} waited before it; {} of the user's own jobs ran and {} waited.",
        counted(s.jobs_before, "job", "jobs"),
        counted(s.users_before, "user", "users"),
        s.jobs_running,
        s.jobs_waiting
    );
    text += &format!(
        " The user's part of the use until then, of which half fades within {}, was {}; an equal part of the users active in the four weeks \
         before would be {}.",
        duration(s.usage_half_life_s),
        percent(s.usage_share),
        percent(s.equal_share)
    );
    match record.overtaken_by {
        0 => text += " No job that was submitted later started earlier.",
        1 => text += " One job that was submitted later started earlier.",
        n => text += &format!(" {n} jobs that were submitted later started earlier."),
    }
    text
}

fn obstacles(record: &WhyRecord) -> String {
    let mut table = Table::new(1, ["waited for", "how long", "part"]);
    for blocked in &record.blocked_by {
        let name = match blocked.kind {
            "resource" => format!("{}: too little was free", printable(&blocked.on)),
            "not-eligible" => format!("not eligible yet ({})", blocked.on),
            "earlier-jobs" => "jobs submitted before, for which too little was free".to_string(),
            _ => blocked.on.clone(),
        };
        table.row(vec![name, duration(blocked.s), percent(blocked.s as f64 / record.waited_s as f64)]);
    }
    table.render()
}

fn before(record: &WhyRecord) -> String {
    let mut table = Table::new(1, ["ran meanwhile", "jobs", "part of what was held"]);
    for before in record.before.iter().take(LISTED) {
        table.row(vec![printable(&before.user), before.jobs.to_string(), percent(before.share)]);
    }
    let mut text = table.render();
    if let Some(others) = record.before.get(LISTED..).filter(|others| !others.is_empty()) {
        let share: f64 = others.iter().map(|o| o.share).sum();
        text += &format!("\nand {} with {}", counted(others.len(), "more user", "more users"), percent(share));
    }
    text
}

fn what_if(record: &WhyRecord, site: &SiteLog) -> String {
    let of = record
        .what_if_job_id
        .as_ref()
        .map_or(String::new(), |job| format!(" of job {}, which waited longest,", printable(job)));
    if record.what_if.is_empty() {
        return format!(
            "Changes{of} are not simulated, since it is larger than the site: {} {} ({}). Give the true capacity with --capacity.",
            four_digits(record.capacity),
            site.workload.resources()[0].name,
            record.capacity_from,
        );
    }
    let mut table = Table::new(1, ["if submitted with", "it would start"]);
    for what_if in &record.what_if {
        let start = what_if.start.map_or("not within four years".to_string(), |start| site.clock.show(start));
        table.row(vec![printable(&what_if.change), start]);
    }
    let warning = match record.what_if_miss_s {
        _ if !record.what_if_misses => String::new(),
        None => {
            "\n\nWithout a change the simulation does not start the job at all, so the other starts are weak evidence."
                .into()
        }
        Some(miss_s) => format!(
            "\n\nWithout a change the simulation starts the job {} {} than the log, so the other starts are weak evidence.",
            duration(miss_s.abs()),
            if miss_s < 0 { "earlier" } else { "later" },
        ),
    };
    format!(
        "Changes{of} simulated first come first served with EASY backfilling on {} {} ({}):\n\n{}{warning}",
        four_digits(record.capacity),
        site.workload.resources()[0].name,
        record.capacity_from,
        table.render()
    )
}

fn duration(seconds: i64) -> String {
    human_units::duration(seconds as f64)
}
