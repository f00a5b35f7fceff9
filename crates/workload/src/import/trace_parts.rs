//! Public traces of several files: recognises the files beside the jobs, in whatever order the files are named, and refuses a
//! file that is given twice.

use super::csv;
use super::parse_number::decimal;
use super::public_traces::alibaba_gpu_2020;
use super::{Format, ImportError};
use crate::byte_source::Shard;

/// A table that is published with the jobs of traces and says nothing about single jobs that a workload can hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartWithoutJobs {
    /// What it is: `machine events of Google's trace of 2011`.
    pub(super) found: &'static str,
    /// The traces with which it is published.
    of: &'static [Format],
    /// What has their jobs.
    jobs: &'static str,
}

impl PartWithoutJobs {
    /// Returns what to pass in its place.
    pub(super) fn remedy(self) -> String {
        format!("pass {}", self.jobs)
    }
}

const fn part(found: &'static str, of: &'static [Format], jobs: &'static str) -> PartWithoutJobs {
    PartWithoutJobs { found, of, jobs }
}

/// The formats of a trace, and what of it has the jobs.
type Trace = (&'static [Format], &'static str);

const GOOGLE_2011: Trace = (&[Format::Google2011], "the folder task_events");
const GOOGLE_2019: Trace = (&[Format::Google2019], "instance_events, and collection_events for the users");
const PAI: Trace = (&[Format::AlibabaGpu2020], "pai_task_table.csv, and pai_job_table.csv for the users");
const OPENB: Trace = (&[Format::AlibabaGpu2023], "a list of pods, such as openb_pod_list_default.csv");
const PHILLY: Trace = (&[Format::Philly], "cluster_job_log");
const HELIOS: Trace = (&[Format::Helios], "cluster_log.csv");

/// Tables with a header, each with names that only it has.
const WITH_HEADER: [(&[&str], &str, Trace); 14] = [
    (
        &["start_time", "collection_id", "instance_index", "average_usage"],
        "the use of Google's trace of 2019",
        GOOGLE_2019,
    ),
    (
        &["start_time", "collection_id", "instance_index", "average_usage.cpus"],
        "the use of Google's trace of 2019",
        GOOGLE_2019,
    ),
    (&["machine_id", "switch_id", "platform_id"], "machine events of Google's trace of 2019", GOOGLE_2019),
    (&["machine_id", "name", "value", "deleted"], "attributes of machines of Google's trace of 2019", GOOGLE_2019),
    (&["job_name", "task_name", "inst_name", "worker_name"], "instances of Alibaba's GPU trace of 2020", PAI),
    (&["worker_name", "inst_id", "gpu_name", "gpu_wrk_util"], "sensors of Alibaba's GPU trace of 2020", PAI),
    (&["inst_id", "gpu_type_spec", "group", "workload"], "groups of Alibaba's GPU trace of 2020", PAI),
    (&["machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"], "machines of Alibaba's GPU trace of 2020", PAI),
    (&["worker_name", "machine", "machine_cpu", "machine_gpu"], "use of machines of Alibaba's GPU trace of 2020", PAI),
    (&["sn", "cpu_milli", "memory_mib", "gpu", "model"], "nodes of Alibaba's GPU trace of 2023", OPENB),
    (&["machineId", "number of GPUs"], "machines of Philly", PHILLY),
    (&["time", "machineId", "gpu0_util"], "use of the GPUs of Philly", PHILLY),
    (&["time", "machine_id", "cpu_util"], "use of the CPUs of Philly", PHILLY),
    (&["time", "machine_id", "mem_total", "mem_free"], "use of the memory of Philly", PHILLY),
];

/// Recognises a table without jobs of a public trace by its header or, of those that are published without one, by its first
/// row.
pub(super) fn part_without_jobs(head: &[u8]) -> Option<PartWithoutJobs> {
    let first = head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty())?;
    let names = csv::header_of(first);
    let has = |name: &&str| names.iter().any(|found| found == name);
    if let Some((_, found, (of, jobs))) = WITH_HEADER.iter().find(|(needed, ..)| needed.iter().all(has)) {
        return Some(part(found, of, jobs));
    }
    if names.len() > 2 && names[..2] == ["date", "total"] {
        return Some(part("numbers of GPUs of Helios", HELIOS.0, HELIOS.1));
    }
    without_header(first).map(|(found, (of, jobs))| part(found, of, jobs))
}

/// Whether a field is an anonymised name of Alibaba's traces, in hexadecimal digits.
fn is_hash(field: &[u8]) -> bool {
    field.len() >= 12 && field.iter().all(u8::is_ascii_hexdigit)
}

fn without_header(line: &[u8]) -> Option<(&'static str, Trace)> {
    let fields: Vec<&[u8]> = line.split(|b| *b == b',').collect();
    let is_number = |at: usize| decimal(fields[at]).is_some();
    let are_numbers = |places: &[usize]| places.iter().all(|at| is_number(*at));
    let is_number_or_empty = |at: &usize| fields[*at].is_empty() || is_number(*at);
    let is_name_of_google = |at: usize| fields[at].len() == 44 && decimal(fields[at]).is_none();
    match fields.len() {
        5 if is_number(0) && is_number(1) && is_name_of_google(2) => {
            Some(("attributes of machines of Google's trace of 2011", GOOGLE_2011))
        }
        6 if are_numbers(&[0, 1, 2]) && is_name_of_google(3) => {
            Some(("machine events of Google's trace of 2011", GOOGLE_2011))
        }
        6 if are_numbers(&[0, 1, 2]) && is_name_of_google(4) => {
            Some(("constraints of tasks of Google's trace of 2011", GOOGLE_2011))
        }
        8 if are_numbers(&[0, 2, 3]) && is_name_of_google(4) => {
            Some(("job events of Google's trace of 2011", GOOGLE_2011))
        }
        5 if is_hash(fields[0]) && !is_hash(fields[1]) && are_numbers(&[2, 3, 4]) => {
            Some(("machines of Alibaba's GPU trace of 2020", PAI))
        }
        5 if is_hash(fields[0]) && fields[0].len() > 40 && is_hash(fields[1]) => {
            Some(("groups of Alibaba's GPU trace of 2020", PAI))
        }
        9 if is_hash(fields[0]) && alibaba_gpu_2020::is_status(fields[5]) => {
            Some(("instances of Alibaba's GPU trace of 2020", PAI))
        }
        12 if is_hash(fields[0]) && is_hash(fields[1]) && (2..12).all(|at| is_number_or_empty(&at)) => {
            Some(("use of machines of Alibaba's GPU trace of 2020", PAI))
        }
        16 if is_hash(fields[0]) && (6..16).all(|at| is_number_or_empty(&at)) => {
            Some(("sensors of Alibaba's GPU trace of 2020", PAI))
        }
        _ => None,
    }
}

/// Takes those of several streams out that have no jobs, unless none is left. A stream whose beginning cannot be read stays,
/// so that its reader reports why.
pub(super) fn set_aside(shards: &mut Vec<Shard>) -> Vec<(String, PartWithoutJobs)> {
    if shards.len() < 2 {
        return Vec::new();
    }
    let parts: Vec<_> =
        shards.iter_mut().map(|shard| shard.head().ok().and_then(|head| part_without_jobs(&head))).collect();
    if parts.iter().all(Option::is_some) {
        return Vec::new();
    }
    let mut aside = Vec::new();
    let mut parts = parts.into_iter();
    shards.retain(|shard| match parts.next().flatten() {
        Some(part) => {
            aside.push((shard.name.clone(), part));
            false
        }
        None => true,
    });
    aside
}

/// Returns a sentence about each table that was set aside.
///
/// # Errors
/// Returns an error about the first that belongs to another trace than that of `format`.
pub(super) fn sentences(aside: Vec<(String, PartWithoutJobs)>, format: Format) -> Result<Vec<String>, ImportError> {
    let sentence = |(file, part): (String, PartWithoutJobs)| match part.of.contains(&format) {
        true => {
            Ok(format!("{} has {}, not jobs, and is not read.", file.rsplit('/').next().unwrap_or(&file), part.found))
        }
        false => Err(ImportError::NotATrace {
            file,
            found: format!("{} beside {}", part.found, format.description()),
            remedy: "leave it out".to_string(),
        }),
    };
    aside.into_iter().map(sentence).collect()
}

/// Refuses a file of a trace of several tables that is among the streams twice: its rows would count twice.
///
/// Other formats keep both, and report how many jobs occur twice.
pub(super) fn refuse_repeated(shards: &mut [Shard], format: Format) -> Result<(), ImportError> {
    if shards.len() < 2 || !matches!(format, Format::AlibabaGpu2020 | Format::Google2019) {
        return Ok(());
    }
    let mut before: Vec<(Vec<u8>, Option<u64>, String)> = Vec::with_capacity(shards.len());
    for shard in shards {
        let Ok(head) = shard.head() else { continue };
        let lines = head.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
        // Parts of one table can have the same header, which those of Alibaba's trace lack, and Parquet begins with what describes
        // its pages.
        let is_parquet = head.starts_with(b"PAR1");
        let size = if is_parquet { shard.size() } else { None };
        let is_header_alone = lines < 2 && (format != Format::AlibabaGpu2020 || head.starts_with(b"job_name"));
        if is_header_alone && !is_parquet {
            continue;
        }
        if let Some((.., other)) = before.iter().find(|(begin, bytes, _)| *begin == head && *bytes == size) {
            return Err(ImportError::Shape {
                file: shard.name.clone(),
                found: format!("the same rows as in {other}"),
                expected: "each table of the trace once".to_string(),
                remedy: "name each file once".to_string(),
            });
        }
        before.push((head, size, shard.name.clone()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_without_jobs_are_recognised_by_their_header_or_their_first_row() {
        let hash = "0d39aa867a79c16eff67daa8f6248f09af8346b177c9e3e23645c48354a8";
        let short = "471dda9ed84965451e042145";
        let google = "HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=";
        for (head, found, format) in [
            (format!("0,5,0,{google},0.5,0.2493\n"), "machine events", Format::Google2011),
            (format!("0,,3418309,0,{google},3,{google},{google}\n"), "job events", Format::Google2011),
            (
                format!("{short},worker,{hash},{hash},{hash},Terminated,2081336.0,2083889.0,{short}\n"),
                "instances",
                Format::AlibabaGpu2020,
            ),
            (format!("{short},T4,96,512,2\n"), "machines", Format::AlibabaGpu2020),
            (format!("{hash},d2d3b77d342e,,fab1,bert\n"), "groups", Format::AlibabaGpu2020),
            (format!("{hash},{short},1,2,0.1,1,2,3,4,,1,9\n"), "use of machines", Format::AlibabaGpu2020),
            (
                format!("{short},worker,{hash},{hash},{short},/dev/nvidia0,140.1,16,1.4,2.3,1.2,2.3,2,1,2,3\n"),
                "sensors",
                Format::AlibabaGpu2020,
            ),
            ("machine,gpu_type,cap_cpu,cap_mem,cap_gpu\n".into(), "machines", Format::AlibabaGpu2020),
            (
                "sn,cpu_milli,memory_mib,gpu,model\nopenb-node-0000,64000,262144,2,P100\n".into(),
                "nodes",
                Format::AlibabaGpu2023,
            ),
            ("machineId, number of GPUs, single GPU mem\n".into(), "machines", Format::Philly),
            ("time,machine_id,type,switch_id,capacity.cpus,platform_id\n".into(), "machine events", Format::Google2019),
        ] {
            let part = part_without_jobs(head.as_bytes()).map(|part| (part.found, part.of));
            assert!(part.is_some_and(|(text, of)| text.contains(found) && of == [format]), "{head} {part:?}");
        }
        for jobs in [
            "1 0 5 10 4 -1 -1 4 60 -1 1 3 1 -1 1 -1 -1 -1\n".to_string(),
            format!("{short},{hash},58540f191766,Terminated,4550879.0,4551416.0\n"),
            format!("{short},tensorflow,1.0,Terminated,1739162.0,1739200.0,600.0,29.296875,50.0,MISC\n"),
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time\n".to_string(),
            "1,2,3,u,t,0.5,0.25\n".to_string(),
        ] {
            assert!(part_without_jobs(jobs.as_bytes()).is_none(), "{jobs}");
        }
    }
}
