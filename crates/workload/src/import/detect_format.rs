//! Detects the format of a trace from its first lines.

use super::accounting::{grid_engine, htcondor, lsf, pbs, slurm_simulator};
use super::csv::{self, Preset};
use super::error::quoted;
use super::google2019;
use super::lines::BYTE_ORDER_MARK;
use super::other_files::{self, OtherFile};
use super::parse_number::decimal;
use super::public_traces::alibaba_gpu_2020;
use super::sacct;
use super::trace_parts;
use super::{Format, ImportError, ImportOptions};

/// Whether a line is a record of a format.
type IsRecord = fn(&[u8]) -> bool;

/// Returns the format of the stream that starts with `head`.
pub(super) fn detect(file: &str, head: &[u8], options: &ImportOptions) -> Result<Format, ImportError> {
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).filter(|l| !l.is_empty());
    let Some(first) = lines.next() else {
        return Err(match head.is_empty() {
            true => ImportError::EmptyFile { file: file.to_string() },
            false => unknown_format(file, b""),
        });
    };
    if matches!(first[0], b'{' | b'[') {
        return of_json(file, head);
    }
    if let Some(format) = of_columns(&csv::header_of(first)) {
        return Ok(format);
    }
    if ["time_submit", "tres_alloc"].iter().all(|name| memchr::memmem::find(first, name.as_bytes()).is_some()) {
        return Ok(Format::Supercloud);
    }
    // Comments may precede the records of an accounting log.
    let is_comment = |line: &&[u8]| matches!(line[0], b';' | b'#');
    let record = std::iter::once(first).chain(lines.clone()).find(|line| !is_comment(line));
    if let Some(record) = record {
        let known: [(IsRecord, Format); 4] = [
            (pbs::is_record, Format::Pbs),
            (lsf::is_record, Format::Lsf),
            (slurm_simulator::is_record, Format::SlurmSimulator),
            (grid_engine::is_record, Format::GridEngine),
        ];
        if let Some((_, format)) = known.iter().find(|(is_record, _)| is_record(record)) {
            return Ok(*format);
        }
        if let Some(other) = other_files::text(record) {
            return Err(not_a_trace(file, other));
        }
    }
    if record.is_some_and(|line| line.starts_with(b"1 ") && memchr::memmem::find(line, b" frontier:").is_some()) {
        return Ok(Format::Frontier);
    }
    if first[0] == b';' || is_swf(first) {
        return Ok(Format::Swf);
    }
    if options.columns.is_none() && alibaba_gpu_2020::is_row(first) {
        return Ok(Format::AlibabaGpu2020);
    }
    let commas = |line: &[u8]| line.iter().filter(|&&b| b == b',').count();
    let starts_with_number = |line: &[u8]| decimal(line.split(|&b| b == b',').next().unwrap_or_default()).is_some();
    if commas(first) == 12 && starts_with_number(first) {
        return Ok(Format::Google2011);
    }
    let is_sdrf = |line: &[u8]| commas(line) == 6 && starts_with_number(line);
    // The first line may be a header; then the second line decides.
    if is_sdrf(first) || commas(first) == 6 && lines.clone().next().is_some_and(is_sdrf) {
        return Ok(Format::SdrfCsv);
    }
    let mut words = first.split(|b| !b.is_ascii_alphanumeric());
    if words.any(|w| w.eq_ignore_ascii_case(b"JobID") || w.eq_ignore_ascii_case(b"JobIDRaw")) {
        return Ok(Format::Sacct);
    }
    if options.columns.is_some() || sacct::looks_headerless(first) {
        return Ok(Format::Sacct);
    }
    let attributes = [&b"ClusterId"[..], b"QDate", b"GlobalJobId", b"MyType"];
    if htcondor::is_attribute(first) && attributes.iter().any(|name| memchr::memmem::find(head, name).is_some()) {
        return Ok(Format::HtCondor);
    }
    if let Some(part) = trace_parts::part_without_jobs(head) {
        return Err(not_a_trace(file, OtherFile { found: part.found.to_string(), remedy: part.remedy() }));
    }
    match record.and_then(other_files::list_or_table) {
        Some(other) => Err(not_a_trace(file, other)),
        // Its reader names the line and the field that are malformed.
        None if is_named_swf(file) => Ok(Format::Swf),
        None => Err(unknown_format(file, first)),
    }
}

/// Returns whether a file's name says that it is a log in the Standard Workload Format, packed or not.
fn is_named_swf(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split('.').skip(1).any(|extension| extension.eq_ignore_ascii_case("swf"))
}

fn not_a_trace(file: &str, OtherFile { found, remedy }: OtherFile) -> ImportError {
    ImportError::NotATrace { file: file.to_string(), found, remedy }
}

/// Returns the public trace whose columns a table has.
pub(super) fn of_columns(names: &[String]) -> Option<Format> {
    match Preset::of_table(names) {
        Some(preset) => Some(preset.format),
        None => google2019::is_table(names).then_some(Format::Google2019),
    }
}

/// Returns the format of a JSON document by the names that only its jobs have.
fn of_json(file: &str, head: &[u8]) -> Result<Format, ImportError> {
    let has = |name: &str| memchr::memmem::find(head, format!("\"{name}\"").as_bytes()).is_some();
    if let Some(format) = of_columns(&csv::header_of(head.trim_ascii_start())) {
        return Ok(format);
    }
    if has("vc") && has("attempts") && has("submitted_time") {
        return Ok(Format::Philly);
    }
    let known: [(&[&str], Format); 6] = [
        (&["nb_res", "profiles", "subtime"], Format::Batsim),
        (&["QDate", "ClusterId", "GlobalJobId"], Format::HtCondor),
        (&["t_submit"], Format::Flux),
        (&["submissionTime", "assigned_resources", "cpuset_name"], Format::Oar),
        (
            &["allocation_nodes", "job_state", "tres_req_str", "derived_exit_code", "array_job_id", "accrue_time"],
            Format::SlurmJson,
        ),
        // Without jobs in the first kilobytes, the object around them decides.
        (&["data_parser", "association", "submission"], Format::SlurmJson),
    ];
    if let Some(other) = other_files::json(head) {
        return Err(not_a_trace(file, other));
    }
    if let Some((_, format)) = known.iter().find(|(names, _)| names.iter().any(|name| has(name))) {
        return Ok(*format);
    }
    let object_with_jobs = has("jobs") && head.trim_ascii_start().starts_with(b"{");
    if object_with_jobs {
        return Ok(Format::SlurmJson);
    }
    match other_files::table(&csv::header_of(head.trim_ascii_start())) {
        Some(other) => Err(not_a_trace(file, other)),
        None => Err(unknown_format(file, first_line(head))),
    }
}

fn first_line(head: &[u8]) -> &[u8] {
    head.split(|b| *b == b'\n').next().unwrap_or_default().trim_ascii()
}

fn is_swf(line: &[u8]) -> bool {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty());
    let number = |field: &[u8]| decimal(field.strip_prefix(b"-").unwrap_or(field)).is_some();
    (0..18).all(|_| fields.next().is_some_and(number))
}

fn unknown_format(file: &str, first: &[u8]) -> ImportError {
    let expected: Vec<&str> = Format::ALL.iter().filter(|f| **f != Format::Auto).map(|f| f.name()).collect();
    ImportError::UnclearFormat { file: file.to_string(), found: quoted(first), expected: expected.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(head: &str) -> Result<Format, ImportError> {
        detect("f", head.as_bytes(), &ImportOptions::default())
    }

    #[test]
    fn formats_are_detected_from_their_first_lines() {
        let swf = "1 0 5 10 4 -1 -1 4 60 -1 1 3 1 -1 1 -1 -1 -1\n";
        let pbs = "; UnixStartTime: 1\n;\n12/21/2024 17:58:09;Q;1.s;user=a\n";
        let cases = [
            ("; Version: 2.2\n", Some(Format::Swf)),
            (swf, Some(Format::Swf)),
            ("0 1 0 1 64 1.5 -1 64 86400 -1 1 62 1 1 -1 1 1 1 {1241} q_2w 1:ppn=12\n", Some(Format::Swf)),
            ("0,2,3418309,0,4155527081,0,70s=,3,9,,,,\n", Some(Format::Google2011)),
            ("1,2,3,u,t,0.5,0.25\n", Some(Format::SdrfCsv)),
            ("\u{feff}submit,start,finish,user,task,cpu,mem\n1,2,3,u,t,0.5,0.25\n", Some(Format::SdrfCsv)),
            ("submit,start,finish,user,task,cpu,mem\n", None),
            ("Account|JobID|User\n", Some(Format::Sacct)),
            ("JobIDRaw☃User\n", Some(Format::Sacct)),
            ("\n  {\"nb_res\": 4}", Some(Format::Batsim)),
            ("{\"meta\": {}, \"jobs\": [{\"allocation_nodes\": 1}]}", Some(Format::SlurmJson)),
            ("{\"jobs\": []}", Some(Format::SlurmJson)),
            ("{\"jobs\": [{\"id\": 1, \"t_submit\": 1.5}]}", Some(Format::Flux)),
            ("{\"7\": {\"submissionTime\": 1}}", Some(Format::Oar)),
            ("[\n{\"ClusterId\": 1}]", Some(Format::HtCondor)),
            ("ProcId = 0\nClusterId = 12\n", Some(Format::HtCondor)),
            ("\"JOB_FINISH\" \"10.1\" 17 1\n", Some(Format::Lsf)),
            ("-dt 0 -e submit_batch_job | -J j\n", Some(Format::SlurmSimulator)),
            (pbs, Some(Format::Pbs)),
            ("1 2 3 4 5\n", None),
            ("\n\n", None),
            ("", None),
        ];
        for (head, expected) in cases {
            let found = detected(head);
            assert_eq!(found.as_ref().ok().copied(), expected, "{head:?}");
        }
        assert_eq!(detect("logs/a.b.swf.gz", b"1 0 0 x 1\n", &ImportOptions::default()).ok(), Some(Format::Swf));
        let message = detected("hello").unwrap_err().to_string();
        assert!(
            message.contains("\"hello\"")
                && message.contains("swf, google2011, google-2019, sdrf-csv")
                && message.contains("--from")
        );
    }

    #[test]
    fn other_files_of_batch_systems_are_named() {
        for (head, named) in [
            ("# slurm.conf\nClusterName=a\n", "Slurm's configuration"),
            ("{\"meta\": {}, \"sinfo\": [{}]}", "sinfo --json"),
            ("{\"shares\": {}}", "sshare --json"),
            ("JobId=12 JobName=a\n", "scontrol show job"),
        ] {
            let message = detected(head).unwrap_err().to_string();
            assert!(message.contains(named) && message.contains("sacct"), "{message}");
        }
    }
}
