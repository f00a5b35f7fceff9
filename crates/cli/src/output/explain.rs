//! Explains the columns of printed tables, for `--explain`.

use crate::output::fold_lines::{COLUMNS, fold_lines};

/// A column: the first column of its table, or nothing where that does not matter; its header, which may begin or end in
/// `…` for any text; what it means.
type Entry = (&'static str, &'static str, &'static str);

/// Of several entries that fit, the first counts.
const GLOSSARY: &[Entry] = &[
    // Studies and sweeps.
    ("", "capacity", "the pool of the run; R is the log's own mean use"),
    ("", "mean wait s", "mean over tasks of the time from submission to start, in seconds"),
    ("", "mean wait", "mean over tasks of the time from submission to start"),
    ("", "users' mean s", "mean over users of their mean waits, in seconds: each user counts once"),
    ("", "users' mean against…", "change of the users' mean wait against that policy"),
    ("", "users' mean", "mean over users of their mean waits: each user counts once, however many tasks"),
    ("", "utilisation", "share of the capacity that was held on average until the last task ended"),
    ("", "Jain", "Jain's index of the users' mean waits: 1 if all wait equally long"),
    ("", "better", "users who wait less than under the first policy, or under that of --against"),
    ("", "worse", "users who wait longer than under the first policy, or under that of --against"),
    ("", "noise", "users whose difference is within the noise of the repetitions"),
    ("", "completed", "tasks that ended in the run"),
    ("", "M tasks/s", "millions of tasks that the simulator processed in a second"),
    ("", "class", "a kind of users or tasks, compared across policies"),
    ("", "95 % of repeats", "the interval that holds 95 % of the repetitions"),
    ("", "slowdown", "mean of (wait + run time) / run time, of which short run times count as 10 s"),
    ("", "NUWT/…", "mean over users of waits / (run time x processors)"),
    ("", "spread", "standard deviation over users"),
    ("", "F", "fairness of the waits among users: their sum of squared deviations; 0 is equal"),
    ("", "idle for want of another", "share of a resource that was free while tasks waited for another"),
    ("", "tasks a day", "tasks that users completed in a day, submitting as their earlier tasks end"),
    ("", "change", "against the first policy, or that of --against"),
    ("", "work", "processor time completed, against the compared policy"),
    ("", "users' finish", "mean over users of when their last task ended"),
    ("", "earlier", "users who finish earlier than under the compared policy"),
    ("", "later", "users who finish later than under the compared policy"),
    ("workload", "points", "combinations of the grid on this workload"),
    ("workload", "loaded", "the time that reading the workload took"),
    ("workload", "each run", "the mean time of a simulation"),
    // Slurm and waiting jobs.
    ("job", "place", "position in the order of the policy"),
    ("job", "Slurm's", "position in Slurm's own order"),
    ("job", "tasks before", "tasks of the same user that come first"),
    ("job", "key", "the number by which the policy sorts: the smallest first"),
    ("job", "waits for", "why Slurm does not start it"),
    ("job", "not in the order", "why the policy does not place it"),
    ("job", "starts in", "median forecast of the time until the start"),
    ("job", "80 % interval", "the start is as often before it as after it, in one of ten cases each"),
    ("job", "median start", "the start that is as likely to be too early as too late"),
    ("before it", "part", "of the CPUs of all that stand before the job"),
    ("before it", "CPUs", "CPUs that its jobs before this one request"),
    ("factor of its priority", "points", "what the factor adds to the job's priority by its weight (sprio)"),
    ("if it asked for", "planned start", "when Slurm plans to start such a job now"),
    ("if it asked for", "in", "from now on"),
    ("waited for", "how long", "how long that was what the job waited for"),
    ("waited for", "part", "of the whole wait"),
    ("ran meanwhile", "jobs", "jobs of this user that ran while the job waited"),
    ("ran meanwhile", "part of what was held", "of the resources that were held meanwhile"),
    ("if submitted with", "it would start", "the start in a simulation of the same log with this change"),
    ("forecast", "pinball s", "mean loss of the forecast quantiles, in seconds: less is better"),
    ("forecast", "ratio", "against the forecast that is compared"),
    ("median forecast", "in interval", "jobs whose start was in the 80 % interval"),
    ("machines", "out", "machines that are down, drained or failing"),
    ("machines", "held", "the part before it that jobs hold"),
    ("partition", "tier", "PriorityTier: jobs of higher tiers are considered first"),
    ("partition", "longest h", "MaxTime in hours"),
    ("user", "held", "jobs that the user or an administrator holds"),
    ("user", "dependent", "jobs that wait for other jobs"),
    ("account", "entitled", "the part of the site that the shares give"),
    ("account", "used", "the part of the decayed use"),
    ("account", "fair share", "Slurm's factor: 1 is unused, 0.5 exactly its share, 0 far above it"),
    // The agent.
    ("resource", "supply", "what the node has of it"),
    ("resource", "in use", "what workloads use of it now"),
    ("resource", "divided by", "what the kernel divides it by where there is too little"),
    ("resource", "works", "whether the agent can divide this resource here"),
    ("resource", "by", "the interface of the kernel that it uses"),
    ("resource", "found", "what the agent found on this node"),
    ("resource", "part", "in use, of the supply"),
    ("user", "heaviness", "load on all nodes beyond what the user is due: above 0 is too much"),
    ("user", "…has/due %", "share that the user has, and that it is due"),
    ("workload", "h_p", "heaviness of the workload: its part of its user's, on this node"),
    ("workload", "weight", "the relative weight that follows from it"),
    ("workload", "written", "what the agent wrote to the kernel"),
    // Prices.
    ("machines", "speed", "relative to the slowest machine"),
    ("machines", "processors", "processor equivalents that the job costs on these machines; * is the cheapest"),
    ("machines", "why", "the resource that decides the price"),
    ("--combine", "this job", "processor equivalents of the job by that rule"),
    ("--combine", "one …", "processor equivalents of one unit on those machines"),
    // Audits.
    ("", "entitled %", "part of the capacity that the shares give"),
    ("", "among active %", "the same among those who wanted something at the time"),
    ("", "demanded %", "part of the capacity that was asked for"),
    ("", "received %", "part of the capacity that was held"),
    ("", "unmet %", "part of the entitlement that was demanded and not received"),
    ("", "overuse %", "part of the capacity received beyond the entitlement"),
    ("", "complaints", "intervals in which a justified complaint held"),
    ("who", "property", "the fairness property that did not hold"),
    ("who", "against", "whose allocation the complaint is about"),
    ("who", "on", "the resource"),
    ("who", "hours", "how long it did not hold, in all"),
    ("who", "intervals", "in how many intervals of the history"),
    ("who", "longest h", "the longest of them, in hours"),
    ("who", "share-hours", "harm: the missing share times how long it was missing"),
    ("who", "first…", "when it began not to hold for the first time"),
    ("property", "findings", "pairs of users and resources for which it did not hold"),
    ("property", "user-hours", "hours in which it did not hold, added over users"),
    ("property", "of waiting", "these hours as a part of all that users waited"),
    ("user-hours", "recorded", "user-hours of complaint in what happened; beside it, under each policy"),
    ("", "wanted", "tasks that the user declares"),
    ("", "gets tasks", "true tasks that the user can run"),
    // Allocations.
    ("user", "dominant share", "the largest part that the user holds of any resource"),
    ("user", "all wanted", "whether the user has all tasks it wants"),
    ("user", "tasks", "tasks that run at once; may be fractional"),
    ("", "level…", "the share at which users are equal"),
    ("resource", "price of all", "the price of the whole capacity at the equilibrium"),
    ("resource", "used", "what users hold of it"),
    ("", "from s", "begin of the interval, in seconds"),
    ("", "until s", "end of the interval, in seconds"),
    // Processes.
    ("", "finish s", "when the process ends, in seconds; mean over the runs"),
    ("process", "entitlement", "the part of each resource that the process is due"),
    ("process", "waited s", "time in which it waited for a resource"),
    ("process", "off line", "the share by the off-line division"),
    // Workloads.
    ("resource", "mean (R)", "mean use over time, by the original starts"),
    ("resource", "peak", "the largest use at one time"),
    ("resource", "dominant for tasks", "tasks that hold a larger part of it than of others"),
    ("resource", "for users", "users whose tasks in all hold a larger part of it than of others"),
    ("users' shares of", "Gini", "inequality of the users' shares: 0 if equal, near 1 if one has all"),
    ("users' shares of", "largest…", "part of the largest user, or of the largest users together"),
    ("", "…5 %", "quantile: so many of the values are smaller"),
    ("", "…0 %", "quantile: so many of the values are smaller"),
    ("", "99 %", "quantile: so many of the values are smaller"),
];

fn fits(pattern: &str, header: &str) -> bool {
    match (pattern.strip_prefix('…'), pattern.strip_suffix('…')) {
        (Some(end), _) => header.ends_with(end),
        (None, Some(start)) => header.starts_with(start),
        (None, None) => pattern == header,
    }
}

fn meaning(first: &str, header: &str) -> Option<&'static str> {
    let entry =
        GLOSSARY.iter().find(|(table, pattern, _)| (table.is_empty() || *table == first) && fits(pattern, header));
    entry.map(|(_, _, meaning)| *meaning)
}

/// Returns the headers of the tables in a text, each with the first one of its table.
fn headers(text: &str) -> Vec<(&str, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |line: &str| line.len() >= 3 && line.bytes().all(|byte| byte == b'-');
    let tables = lines.windows(2).filter(|pair| is_rule(pair[1]) && !pair[0].is_empty()).map(|pair| pair[0]);
    let mut found = Vec::new();
    for line in tables {
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        found.extend(cells.iter().map(|cell| (cells[0], *cell)));
    }
    found
}

/// Returns what the columns of the tables in a text mean, a line each; nothing if there is no table.
pub(crate) fn explanation(text: &str) -> String {
    let mut known: Vec<(&str, &str)> = Vec::new();
    for (first, header) in headers(text) {
        let found = meaning(first, header).map(|meaning| (header, meaning));
        known.extend(found.filter(|entry| !known.contains(entry)));
    }
    let width = known.iter().map(|(header, _)| header.chars().count()).max().unwrap_or(0);
    let lines = known
        .iter()
        .map(|(header, meaning)| fold_lines(&format!("{header:<width$}  {meaning}"), COLUMNS, &" ".repeat(width + 2)));
    lines.map(|line| format!("\n{line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_explained_by_the_table_they_are_in() {
        let text = "title\n\nwaited for   how long  part\n---------------------\na   1  2\n\nbefore it  account  part\n-----\nb  c  3";
        let found = explanation(text);
        assert_eq!(
            found,
            "\nhow long  how long that was what the job waited for\npart      of the whole wait\n\
             part      of the CPUs of all that stand before the job"
        );
        assert_eq!(explanation("no table\n"), "");
        let study = explanation("capacity  policy  mean wait  users' mean against fifo\n-------\n");
        assert!(study.contains("\nmean wait ") && study.contains("change of the users' mean wait against"), "{study}");
    }

    #[test]
    fn no_entry_is_hidden_by_one_before_it() {
        for (at, (table, header, _)) in GLOSSARY.iter().enumerate() {
            let first = if table.is_empty() { "x" } else { table };
            let example = header.replace('…', "y");
            let found = GLOSSARY.iter().position(|(t, h, _)| (t.is_empty() || *t == first) && fits(h, &example));
            assert_eq!(found, Some(at), "{header} of {first}");
        }
    }
}
