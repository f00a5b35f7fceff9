//! Recognises files that are no traces: other output of a batch system, descriptions of machines, tables whose columns are
//! not known. The message names what the file looks like and what to pass instead.

use super::csv;
use super::error::quoted;
use super::parse_number::decimal;

/// What a file looks like, and what to pass instead.
pub(super) struct OtherFile {
    pub(super) found: String,
    pub(super) remedy: String,
}

const JOBS: &str = "export the jobs: sacct --json or sacct -X -P";
const NODES: &str = "export the jobs: sacct --json or sacct -X -P; evenhand site import reads nodes and partitions";
const NODES_AS_JSON: &str = "export the jobs: sacct --json or sacct -X -P; evenhand site import reads nodes and partitions \
    as text, not as JSON: scontrol -o show node, scontrol -o show part";

fn other(found: &str, remedy: &str) -> Option<OtherFile> {
    Some(OtherFile { found: found.to_string(), remedy: remedy.to_string() })
}

/// Returns the names of the outermost object of a JSON document, as far as its beginning goes, each with the first byte of
/// its value.
fn outer_keys(head: &[u8]) -> Vec<(String, u8)> {
    let (mut depth, mut keys, mut at) = (0usize, Vec::new(), 0);
    while at < head.len() {
        match head[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let start = at + 1;
                at = start;
                while at < head.len() && head[at] != b'"' {
                    at += if head[at] == b'\\' { 2 } else { 1 };
                }
                let Some(text) = head.get(start..at) else { break };
                let rest = head.get(at + 1..).unwrap_or_default().trim_ascii_start();
                if depth == 1
                    && let Some(value) = rest.strip_prefix(b":")
                {
                    let first = value.trim_ascii_start().first().copied().unwrap_or(b' ');
                    keys.push((String::from_utf8_lossy(text).into_owned(), first));
                }
            }
            _ => {}
        }
        at += 1;
    }
    keys
}

/// Recognises a JSON document without jobs by the names of its outermost object.
pub(super) fn json(head: &[u8]) -> Option<OtherFile> {
    let keys = outer_keys(head);
    let has = |name: &str| keys.iter().any(|(key, _)| key == name);
    let list = |name: &str| keys.iter().any(|(key, value)| key == name && matches!(value, b'[' | b'{'));
    if has("jobs") {
        return None;
    }
    let word = |text: &str| memchr::memmem::find(head, text.as_bytes()).is_some();
    match () {
        () if list("sinfo") => other("what sinfo --json prints", NODES_AS_JSON),
        () if list("nodes") => other("Slurm's nodes as JSON", NODES_AS_JSON),
        () if list("partitions") => other("Slurm's partitions as JSON", NODES_AS_JSON),
        () if list("shares") => other("what sshare --json prints", JOBS),
        () if list("statistics") => other("what sdiag --json prints", JOBS),
        // The records may lie behind the beginning of the file.
        () if word("\"sdiag\"") => other("what sdiag --json prints", JOBS),
        () if word("\"sinfo\"") => other("what sinfo --json prints", NODES_AS_JSON),
        // Jobs of Slurm have the paths of their output since 25.05.
        () if has("stdout") && !has("job_id") => other(
            "the record of a command with its output as text",
            "pass the output itself: jq -r .stdout FILE > jobs.json",
        ),
        () if word("\"producer\"") && word("\"sonar\"") => other(
            "what sonar reports of a Slurm site",
            "export the jobs with Slurm itself: sacct --json or sacct -X -P",
        ),
        () => None,
    }
}

/// Returns whether the first record of a text, which is no comment, is one of slurm.conf or of a list of nodes or partitions.
pub fn is_slurm_configuration(line: &[u8]) -> bool {
    let names = ["NodeName=", "PartitionName=", "ClusterName=", "SlurmctldHost="];
    names.iter().any(|name| line.starts_with(name.as_bytes()))
}

/// Recognises a text by the beginning of its first record, which is no comment.
pub(super) fn text(line: &[u8]) -> Option<OtherFile> {
    let starts = |words: &[&str]| words.iter().any(|w| line.starts_with(w.as_bytes()));
    if is_slurm_configuration(line) {
        return other("Slurm's configuration or a list of its nodes", NODES);
    }
    if starts(&["JobId="]) {
        return other("what scontrol show job prints", JOBS);
    }
    if starts(&["Main schedule statistics", "sdiag output"]) {
        return other("what sdiag prints", JOBS);
    }
    if starts(&["Cluster - "]) {
        return other(
            "what sacctmgr dump writes",
            "pass it to evenhand site import --sacctmgr-dump; for jobs run sacct -X -P",
        );
    }
    if starts(&["SQLite format 3"]) {
        return other("an SQLite database", "export its table with a header: sqlite3 -header -csv FILE 'SELECT …'");
    }
    if starts(&["---", "apiVersion:", "kind:"]) {
        return other(
            "a YAML document",
            "pass a trace of jobs: a table of pods or jobs with a header and --csv-columns",
        );
    }
    if memchr::memmem::find(line, b"gpu:").is_some() && memchr::memmem::find(line, b"(IDX:").is_some() {
        return other("what sinfo prints of nodes and their GPUs", JOBS);
    }
    None
}

/// Recognises a list or a table that no reader knows.
pub(super) fn list_or_table(line: &[u8]) -> Option<OtherFile> {
    list(line).or_else(|| table(&csv::header_of(line)))
}

/// Recognises lists of numbers and names without a header.
fn list(line: &[u8]) -> Option<OtherFile> {
    let is_number = |field: &[u8]| decimal(field).is_some();
    let tabs: Vec<&[u8]> = line.split(|b| *b == b'\t').collect();
    if tabs.len() >= 6 && is_number(tabs[0]) && !is_number(tabs[1]) && tabs[2..4].iter().all(|f| is_number(f)) {
        return other(
            "a list of machines, as the simulator Alea has them",
            "describe machines in a cluster file, with [[machines]]; pass the log of jobs here",
        );
    }
    if tabs.len() == 4 && tabs[1].starts_with(b"cluster_") {
        return other("a list of failures, as the simulator Alea has them", "pass the log of jobs");
    }
    // `1800000 U1,|,U4,|,U3,U3`: the flavours that arrive in an interval, with a bar after each tenant's batch.
    let flavours = line.split(|b| *b == b' ').collect::<Vec<_>>();
    if let [time, batches] = flavours[..]
        && is_number(time)
        && batches.split(|b| *b == b',').all(|f| f == b"|" || f.first().is_some_and(u8::is_ascii_alphabetic))
    {
        return other(
            "batches of arriving virtual machines, as a predictor of Azure's first trace has them",
            "they have no run times; pass a table with a submission and a duration for each machine, and --csv-columns",
        );
    }
    None
}

/// The names that tables give to the fields of a task, for a proposal.
const NAMES: [(&str, &[&str]); 8] = [
    (
        "submit",
        &[
            "submit",
            "submit_time",
            "submitted",
            "timestamp",
            "creation_time",
            "created",
            "submit_us*0.000001",
            "queued_at",
        ],
    ),
    ("start", &["start", "start_time", "started", "schedule_us*0.000001", "begin", "started_at"]),
    ("end", &["end", "end_time", "finish", "finished", "end_us*0.000001", "completed_at", "deletion_time"]),
    ("duration", &["duration", "runtime", "run_time", "elapsed", "elapsed_s"]),
    ("user", &["user", "user_id", "owner", "username", "tenant", "user_idx"]),
    ("cpu", &["cpu", "cpus", "cores", "ncpus", "num_cpus", "cpu_milli*0.001"]),
    ("mem", &["mem", "memory", "ram", "mem_gb", "memory_mib"]),
    ("gpu", &["gpu", "gpus", "num_gpus", "num_gpu", "gpu_num", "ngpus"]),
];

/// Recognises a table with a header of unknown names, and proposes what they may mean.
pub(super) fn table(names: &[String]) -> Option<OtherFile> {
    let is_name = |name: &String| {
        !name.is_empty()
            && decimal(name.as_bytes()).is_none()
            && name.chars().all(|c| c.is_alphanumeric() || "_-. :".contains(c))
    };
    if names.len() < 2 || !names.iter().all(is_name) {
        return None;
    }
    let found = format!("a table with the columns {}", quoted(names.join(",").as_bytes()));
    let column = |known: &[&'static str]| {
        let is = |c: &&str| names.iter().any(|n| n.eq_ignore_ascii_case(c.split('*').next().unwrap_or(c)));
        known.iter().copied().find(is)
    };
    // The names as the table spells them.
    let spelled = |known: &str| {
        let (name, times) = known.split_once('*').map_or((known, None), |(n, t)| (n, Some(t)));
        let own = names.iter().find(|n| n.eq_ignore_ascii_case(name)).map_or(name, String::as_str);
        times.map_or(own.to_string(), |times| format!("{own}*{times}"))
    };
    let mut proposal: Vec<(&str, String)> =
        NAMES.iter().filter_map(|(field, known)| Some((*field, spelled(column(known)?)))).collect();
    let has = |proposal: &[(&str, String)], field: &str| proposal.iter().any(|(f, _)| *f == field);
    if has(&proposal, "duration") && has(&proposal, "end") && !has(&proposal, "start") {
        proposal.retain(|(field, _)| *field != "end");
    }
    let length = has(&proposal, "duration") || has(&proposal, "end") && has(&proposal, "start");
    let resource = ["cpu", "mem", "gpu"].iter().any(|r| has(&proposal, r));
    let remedy = if has(&proposal, "submit") && length && resource {
        let pairs: Vec<String> = proposal.iter().map(|(field, column)| format!("{field}={column}")).collect();
        format!("if that is what they mean, pass --csv-columns {}", pairs.join(","))
    } else if has(&proposal, "submit") || length {
        "pass --csv-columns submit=COLUMN,duration=COLUMN,user=COLUMN,cpu=COLUMN,… with its columns".to_string()
    } else {
        "it has no submission and no duration that are known by name; if it lists jobs, pass \
         --csv-columns submit=COLUMN,duration=COLUMN,user=COLUMN,cpu=COLUMN,…"
            .to_string()
    };
    Some(OtherFile { found, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_proposed_its_own_columns() {
        let remedy = |header: &str| list_or_table(header.as_bytes()).map(|o| o.remedy).unwrap_or_default();
        let philly = remedy("timestamp,duration,num_gpus,gpu_time,cluster");
        assert_eq!(
            philly,
            "if that is what they mean, pass --csv-columns submit=timestamp,duration=duration,gpu=num_gpus"
        );
        let google = remedy("job,user_idx,submit_us,schedule_us,end_us,cpu,mem");
        assert!(
            google.ends_with(
                "submit=submit_us*0.000001,start=schedule_us*0.000001,end=end_us*0.000001,user=user_idx,cpu=cpu,mem=mem"
            ),
            "{google}"
        );
        assert!(remedy("Created;Duration;CPUs").ends_with("submit=Created,duration=Duration,cpu=CPUs"));
        assert!(remedy("sn,cpu_milli,memory_mib,gpu,model").contains("no submission"));
        assert!(list_or_table(b"0.5 1 2").is_none() && list_or_table(b"hello").is_none());
        // What is proposed is accepted.
        let columns = philly.rsplit(' ').next().map(str::parse::<csv::CsvColumns>);
        assert!(matches!(columns, Some(Ok(_))));
    }

    #[test]
    fn the_names_of_the_outermost_object_are_found_behind_nested_ones() {
        let head = br#"{"meta": {"plugins": {"jobs": [1, {"x": "}"}]}, "q\"": 2}, "statistics": {"parts_packed": 1"#;
        assert_eq!(outer_keys(head), [("meta".to_string(), b'{'), ("statistics".to_string(), b'{')]);
        assert_eq!(json(head).map(|o| o.found).as_deref(), Some("what sdiag --json prints"));
        assert!(json(br#"{"meta": {}, "jobs": []}"#).is_none());
    }

    #[test]
    fn files_of_other_kinds_are_named() {
        for (line, named) in [
            ("15\tadan\t61\t32\t1\t192\t5.9\t2", "machines"),
            ("1230768000\tcluster_12\t10753754\t0 1 2", "failures"),
            ("1800000 U1,|,U4,|,U3,U3", "virtual machines"),
            ("---", "YAML"),
            ("Main schedule statistics (microseconds):", "sdiag"),
        ] {
            let found = text(line.as_bytes()).or_else(|| list_or_table(line.as_bytes()));
            assert!(found.is_some_and(|o| o.found.contains(named)), "{line}");
        }
    }
}
