//! Imports real traces and compares them with known counts. Skipped where the traces are absent.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use evenhand_model::Detail;
use evenhand_workload::Source;
use evenhand_workload::import::{Format, ImportError, ImportOptions, Imported, MemoryPer, MemoryUnit, import};

fn data(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path);
    if !path.exists() {
        eprintln!("skipped: no trace at {}", path.display());
        return None;
    }
    Some(path)
}

fn read(path: &Path, options: &ImportOptions) -> Imported {
    import(&[Source::Path(path.to_path_buf())], options).unwrap_or_else(|e| panic!("{e}"))
}

fn text(path: &Path) -> String {
    let mut text = String::new();
    let mut file = std::fs::File::open(path).unwrap();
    match path.extension().and_then(|e| e.to_str()) {
        Some("zst") => zstd::Decoder::new(file).unwrap().read_to_string(&mut text),
        _ => file.read_to_string(&mut text),
    }
    .unwrap();
    text
}

/// The authors' filter, row for row: submit, start, length, user, cpu, mem as a multiset.
fn is_the_authors_filter(shards: impl Iterator<Item = u32>, expected: &str, tasks: u64) {
    let Some(expected) = data(expected) else { return };
    let users = text(&data("google2011/derived/users.csv").unwrap());
    let users: HashMap<&str, &str> = users.lines().filter_map(|l| l.split_once(',')).collect();
    let name = |k: u32| format!("google2011/task_events/part-{k:05}-of-00500.csv.gz");
    let mut sources: Vec<Source> = shards.map(|k| Source::Path(data(&name(k)).unwrap())).collect();
    // In any order: the import sorts them by time.
    sources.reverse();
    let found = import(&sources, &ImportOptions::default()).unwrap();
    eprintln!("{}", found.summary);
    assert_eq!((found.summary.format, found.summary.tasks), (Format::Google2011, tasks));

    let derived = read(&expected, &ImportOptions::default());
    // It has a header line, which the summary reports.
    assert_eq!(derived.summary.assumptions.len(), 1, "{}", derived.summary);
    let rows = |imported: &Imported, user: &dyn Fn(&str) -> String| {
        let w = &imported.workload;
        let mut rows: Vec<_> = (0..w.len())
            .map(|row| {
                let amounts: Vec<String> =
                    w.resources().iter().zip(w.amounts(row)).map(|(r, a)| r.format(*a)).collect();
                let c = w.columns();
                (c.submit[row], w.start(row), c.duration[row], user(&w.users()[c.user[row].index()]), amounts)
            })
            .collect();
        rows.sort();
        rows
    };
    let found = rows(&found, &|u| u.to_string());
    let derived = rows(&derived, &|u| users[u].to_string());
    assert_eq!(found.len(), derived.len());
    for (found, derived) in found.iter().zip(&derived) {
        assert_eq!(found, derived);
    }
}

#[test]
fn google_window_a_is_the_authors_filter() {
    is_the_authors_filter(0..14, "google2011/derived/sdrf_input_A.csv.zst", 336_680);
}

#[test]
fn google_window_b_is_the_authors_filter() {
    is_the_authors_filter(15..18, "google2011/derived/sdrf_input_B.csv.zst", 82_165);
}

#[test]
fn standard_logs_are_read_without_relaxed() {
    // The users of jobs with a run time and processors, by awk.
    for (log, rows, users) in [
        ("CEA-Curie-2011-2.1-cln.swf.gz", 312_826, 582),
        ("SDSC-SP2-1998-4.2-cln.swf.gz", 59_715, 428),
        ("ANL-Intrepid-2009-1.swf.gz", 68_936, 236),
        ("OSC-Clust-2000-3.1-cln.swf.zst", 36_097, 253),
        ("SDSC-Par-1996-3.1-cln.swf.zst", 32_135, 60),
        ("NASA-iPSC-1993-3.1-cln.swf.gz", 18_239, 69),
        ("LCG-2005-1.swf.gz", 188_041, 216),
        ("HPC2N-2002-alea-excerpt.swf.zst", 3_170, 17),
    ] {
        let Some(path) = data(&format!("swf/{log}")) else { return };
        let found = read(&path, &ImportOptions::default());
        eprintln!("{log}: {}", found.summary);
        assert_eq!((found.summary.format, found.summary.rows_read), (Format::Swf, rows), "{log}");
        assert_eq!(found.workload.users().len(), users, "{log}");
        let dropped: u64 = found.summary.dropped.iter().map(|(_, n)| n).sum();
        assert_eq!(found.summary.tasks + dropped, rows, "{log}");
        assert!(found.workload.header().iter().any(|(k, _)| k == "MaxProcs" || k == "MaxNodes"), "{log}");
    }
}

#[test]
fn logs_that_deviate_from_the_standard_need_relaxed() {
    for (log, rows) in [
        ("metacentrum-cerit-wagap-2013.swf.zst", 17_900),
        ("theta_2023_feb_dec.swf.zst", 26_671),
        ("cqgym_train.swf.zst", 3_000),
    ] {
        let Some(path) = data(&format!("swf/{log}")) else { return };
        let strict = import(&[Source::Path(path.clone())], &ImportOptions::default()).unwrap_err().to_string();
        eprintln!("{strict}");
        assert!(strict.contains("columns") && strict.ends_with("pass --relaxed to accept"), "{strict}");
        let found = read(&path, &ImportOptions { relaxed: true, ..ImportOptions::default() });
        eprintln!("{log}: {}", found.summary);
        assert_eq!(found.summary.rows_read, rows);
        assert!(found.summary.assumptions.iter().any(|a| a.contains("more than 18 columns")));
    }
}

#[test]
fn memory_of_the_wagap_log_is_in_bytes_per_node() {
    let Some(path) = data("swf/metacentrum-cerit-wagap-2013.swf.zst") else { return };
    let options = ImportOptions {
        relaxed: true,
        swf_memory_unit: MemoryUnit::B,
        swf_memory_per: MemoryPer::Node,
        ..ImportOptions::default()
    };
    let found = read(&path, &options);
    eprintln!("{}", found.summary);
    let w = &found.workload;
    assert_eq!(w.resources()[1].unit, "B");
    // The first two rows of the log: 64 GiB and 85 GiB, on one node each.
    let memory: Vec<u64> = (0..2).map(|row| w.amounts(row)[1].0).collect();
    assert_eq!(memory, [68_719_476_736, 91_268_055_040]);
    // Requested memory is on every row (two have no run time), so the dummy used memory is never read.
    assert!(found.summary.assumptions.iter().any(|a| a.contains("for 17898 jobs, used (field 7) for 0 jobs")));
}

/// Tables without a reader of their own: Alibaba's GPU traces of 2023 and 2025.
#[test]
fn tables_of_gpu_clusters_are_read() {
    let pods = "submit=creation_time,start=scheduled_time,end=deletion_time,user=qos,cpu=cpu_milli*0.001,mem:MiB=memory_mib,\
        gpu=num_gpu";
    let instances = "submit=creation_time,start=scheduled_time,end=deletion_time,user=app_name,cpu=cpu_request,\
        gpu=gpu_request,mem:GiB=memory_request";
    for (file, columns, rows) in [
        ("alibaba/gpu-v2023/openb_pod_list_default.csv.zst", pods, 8152),
        ("alibaba/gpu-v2025/disaggregated_DLRM_trace.csv.zst", instances, 23_871),
    ] {
        let Some(path) = data(file) else { return };
        let options = ImportOptions { csv_columns: Some(columns.parse().unwrap()), ..ImportOptions::default() };
        let found = read(&path, &options);
        eprintln!("{file}: {}", found.summary);
        let dropped: u64 = found.summary.dropped.iter().map(|(_, n)| n).sum();
        assert_eq!((found.summary.rows_read, found.summary.tasks + dropped), (rows, rows), "{file}");
        assert_eq!(found.workload.resources().len(), 3);
    }
}

/// Public traces are recognised by their columns.
#[test]
fn public_traces_are_recognised() {
    for (file, format, rows) in [
        ("alibaba/gpu-v2023/openb_pod_list_default.csv.zst", Format::AlibabaGpu2023, 8152),
        ("alibaba/gpu-v2025/disaggregated_DLRM_trace.csv.zst", Format::AlibabaGpu2025, 23_871),
        ("slurm/nrel-eagle/sample_eagle_data.json.zst", Format::Eagle, 1000),
    ] {
        let Some(path) = data(file) else { return };
        let found = read(&path, &ImportOptions::default());
        eprintln!("{file}: {}", found.summary);
        assert_eq!((found.summary.format, found.summary.rows_read), (format, rows), "{file}");
        assert!(found.summary.tasks > rows / 2, "{file}");
    }
    let Some(path) = data("alibaba/gpu-v2023/openb_pod_list_gpuspec20.csv.zst") else { return };
    let found = read(&path, &ImportOptions::default()).workload;
    let typed = (0..found.len()).filter_map(|row| found.detail(Detail::Requires, row));
    // Of 95 such rows 85 have a scheduled_time.
    assert_eq!(typed.clone().filter(|words| *words == "gpu:v100m16|gpu:v100m32").count(), 85);
    assert!(typed.count() > 1000);
}

/// The sample of Google's trace of 2019 has single events of many attempts; few attempts are whole.
#[test]
fn few_attempts_of_the_sample_of_google_2019_are_whole() {
    let Some(path) = data("google2019/borg2019_sample_instances.csv.zst") else { return };
    let found = read(&path, &ImportOptions::default());
    eprintln!("{}", found.summary);
    assert_eq!((found.summary.format, found.summary.rows_read), (Format::Google2019, 354_179));
    assert_eq!(found.summary.tasks, 36);
    assert!(found.summary.assumptions.iter().any(|a| a.contains("the input is a sample")), "{}", found.summary);
}

/// Slurm outputs were saved without their header lines, which are put back here.
#[test]
fn accounting_of_real_sites_is_read() {
    let habrok = "JobID☃JobName☃User☃Partition☃NodeList☃NNodes☃NCPUS☃NTasks☃State☃Submit☃Start☃End☃Timelimit☃Elapsed☃\
        TotalCPU☃CPUTime☃UserCPU☃SystemCPU☃ReqMem☃MaxRSS☃TRESUsageInTot☃ReqTRES☃AllocTRES☃";
    let peregrine = "JobID☃JobName☃User☃Partition☃NodeList☃NNodes☃NCPUS☃NTasks☃State☃Submit☃Start☃End☃Timelimit☃Elapsed☃\
        TotalCPU☃UserCPU☃SystemCPU☃ReqMem☃";
    let sonar = "JobID|JobIDRaw|User|Account|State|Start|End|c8|c9|c10|c11|c12|ElapsedRaw|c14|c15|c16|c17|c18|ReqCPUS|ReqMem|\
        ReqNodes|c22|Submit|c24|c25|TimelimitRaw|c27|NodeList|Partition|AllocTRES|c31|c32";
    let mut seen = 0;
    for (file, header, columns) in [
        ("slurm/habrok-jobinfo/sacct.txt", habrok, 38),
        ("slurm/peregrine-jobinfo/sacct.txt", peregrine, 28),
        ("slurm/sonar/sacct_output.txt", sonar, 32),
        ("slurm/gcm/sample-sacct-output.txt", "", 0),
    ] {
        let Some(path) = data(file) else { return };
        let mut text = text(&path);
        if columns > 0 {
            let delimiter = header.chars().find(|c| !c.is_ascii_alphanumeric()).unwrap();
            let named = header.trim_end_matches(delimiter);
            let unnamed = columns - named.split(delimiter).count();
            let rest: String = (0..unnamed).map(|i| format!("{delimiter}x{i}")).collect();
            text = format!("{named}{rest}\n{text}");
        }
        let rows = text.lines().count() as u64 - 1;
        let sources = [Source::Bytes { name: file.to_string(), data: text.into_bytes() }];
        match import(&sources, &ImportOptions::default()) {
            Ok(found) => {
                eprintln!("{file}: {}", found.summary);
                let dropped: u64 = found.summary.dropped.iter().map(|(_, n)| n).sum();
                assert_eq!((found.summary.format, found.summary.rows_read), (Format::Sacct, rows), "{file}");
                assert_eq!(found.summary.tasks + dropped, rows, "{file}");
                seen += found.summary.tasks;
            }
            // This one holds steps only.
            Err(ImportError::NothingLeft { summary, .. }) => {
                assert_eq!(summary.dropped, [("job steps, which sacct -X omits".to_string(), rows)], "{file}");
            }
            Err(e) => panic!("{file}: {e}"),
        }
    }
    assert!(seen > 50);
}

/// As `jq -c '.jobs[]'` prints them; they have the field `stdout` of Slurm 25.05.
#[test]
fn jobs_of_a_real_site_as_json_lines_are_those_of_its_list() {
    let Some(path) = data("slurm/sarc/mila_1706227200.json") else { return };
    let document: serde_json::Value = serde_json::from_str(&text(&path)).unwrap();
    let jobs = document["jobs"].as_array().unwrap();
    let lines: String = jobs.iter().map(|job| format!("{job}\n")).collect();
    let sources = [Source::Bytes { name: "jobs.jsonl".to_string(), data: lines.into_bytes() }];
    let found = import(&sources, &ImportOptions::default()).unwrap();
    assert_eq!(found.workload, read(&path, &ImportOptions::default()).workload);
}

/// Jobs of real sites as JSON, from Slurm 21.08 to 25.05, and the logs of PBS.
#[test]
fn json_and_accounting_logs_of_real_sites_are_read() {
    for (file, format, rows, tasks) in [
        ("slurm/slurmdog/sacct.json", Format::SlurmJson, 1, 1),
        ("slurm/sarc/mila_1708819200.json", Format::SlurmJson, 7, 5),
        ("slurm/firecrest/slurm_get_allusers_jobs_from_db.json", Format::SlurmJson, 2, 2),
        ("slurm/slurminal/squeue.json.zst", Format::SlurmJson, 2, 2),
        ("pbs/cesnet-openpbs-demo-2024-12.log.zst", Format::Pbs, 654, 200),
        ("pbs/IU-Mason-2017-Oct-Dec-pbs-accounting.tbz", Format::Pbs, 51_891, 16_221),
    ] {
        let Some(path) = data(file) else { return };
        let found = read(&path, &ImportOptions::default());
        eprintln!("{file}: {}", found.summary);
        assert_eq!(
            (found.summary.format, found.summary.rows_read, found.summary.tasks),
            (format, rows, tasks),
            "{file}"
        );
    }
}
