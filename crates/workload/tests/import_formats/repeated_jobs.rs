//! Jobs that a trace has several times.

use evenhand_model::memory::MemoryLimit;
use evenhand_workload::import::import_to_file;

use super::*;

const HEADER: &str = "JobID|JobIDRaw|User|Submit|Start|End|ElapsedRaw|AllocTRES|State\n";

fn file(name: &str, text: String) -> Source {
    Source::Bytes { name: name.into(), data: text.into_bytes() }
}

/// A file of sacct as text.
fn month(name: &str, jobs: &[String]) -> Source {
    file(name, format!("{HEADER}{}", jobs.concat()))
}

/// A job that began in this second and ran for an hour.
fn job(id: &str, start: u32) -> String {
    format!(
        "{id}|{id}|ann|2024-01-31T00:00:00|2024-01-31T00:00:0{start}|2024-01-31T01:00:0{start}|3600|cpu=2|COMPLETED\n"
    )
}

#[test]
fn jobs_that_several_files_of_sacct_have_are_kept_once() {
    // A job that was requeued has the same id and another start. Job 9 ran at the end of the first month.
    let runs = "9|9|bob|2024-01-31T00:00:00|2024-01-31T00:00:05|Unknown|100|cpu=2|RUNNING\n".to_string();
    let months = [
        month("1.txt", &[job("7", 1), job("7", 2), job("8_1", 3), runs]),
        month("2.txt", &[job("7", 2), job("8_1", 3), job("8_2", 3), job("9", 5)]),
        month("3.txt", &[job("10", 6), job("9", 5)]),
    ];
    let found = import(&months, &options(Format::Sacct)).unwrap();
    assert_eq!(found.summary.tasks, 6);
    assert_eq!(dropped(&found), [("repeated in another file", 3), ("still running", 1)]);
    let ids: Vec<String> = found.job_ids.iter().map(ToString::to_string).collect();
    assert_eq!(ids, ["7", "7", "8_1", "8_2", "10", "9"]);
    let whole = "1706659200 1706659205 3600 - ann - - cpu=2";
    assert_eq!(rows(&found).iter().filter(|row| *row == whole).count(), 1);
    assert!(!found.summary.to_string().contains("another row"), "{}", found.summary);
    assert!(found.summary.to_string().contains("6 jobs have times without a time zone"), "{}", found.summary);
    for threads in [1, 2, 7] {
        let options = ImportOptions { threads: NonZeroUsize::new(threads), ..options(Format::Auto) };
        assert_eq!(import(&months, &options).unwrap(), found);
    }
    // Of one file given twice each job is kept once.
    let twice = import(&[months[0].clone(), months[0].clone()], &options(Format::Sacct)).unwrap();
    assert_eq!(twice.workload, import(&months[..1], &options(Format::Sacct)).unwrap().workload);
}

#[test]
fn jobs_that_one_file_repeats_are_kept_and_counted() {
    let found = import(&[month("1.txt", &[job("7", 1), job("7", 2), job("7", 2)])], &options(Format::Sacct)).unwrap();
    assert_eq!((found.summary.tasks, dropped(&found).len()), (3, 0));
    let sentence = "1 row repeats the job of another row (same id, submission and start); all are kept.";
    let note = found.summary.assumptions.iter().find(|text| text.starts_with(sentence)).unwrap();
    assert!(note.contains("overlaps its period") && note.contains("a file of its own"), "{note}");
    // The first of two files, whose row the second does not have.
    let files = [month("1.txt", &[job("7", 1), job("7", 1)]), month("2.txt", &[job("8", 1)])];
    let found = import(&files, &options(Format::Sacct)).unwrap();
    assert_eq!((found.summary.tasks, found.summary.to_string().contains(sentence)), (3, true));
}

#[test]
fn what_is_kept_of_several_files_does_not_depend_on_the_memory() {
    // More jobs than 1 MiB of tasks; every third job is in both files.
    let jobs = |of_file: u32| -> String {
        let rows = (1..=15_000u32).filter(|n| n % 3 == 0 || n % 3 == of_file).map(|n| {
            let at = format!("2024-01-{:02}T{:02}:{:02}:{:02}", 1 + n / 1000, n % 24, n % 60, n % 59);
            format!("{n}|{n}|u{}|{at}|{at}|{at}|{n}|cpu=2|COMPLETED\n", n % 7)
        });
        HEADER.to_string() + &rows.collect::<String>()
    };
    let files = [file("1.txt", jobs(1)), file("2.txt", jobs(2))];
    let folder = tempfile::tempdir().unwrap();
    let mut stored = Vec::new();
    for (memory, threads) in [(1 << 20, 1), (1 << 20, 3), (1 << 30, 2)] {
        let memory = Some(MemoryLimit::of_option(memory));
        let options = ImportOptions { memory, threads: NonZeroUsize::new(threads), ..options(Format::Sacct) };
        let path = folder.path().join("w.parquet");
        let summary = import_to_file(&files, &options, &path, &|_| {}).unwrap();
        assert_eq!((summary.tasks, summary.dropped.clone()), (15_000, vec![("repeated in another file".into(), 5000)]));
        assert!(!summary.to_string().contains("not known"), "{summary}");
        stored.push((evenhand_workload::store::read(&path).unwrap(), summary));
    }
    assert_eq!(stored[0], stored[1]);
    assert_eq!(stored[0], stored[2]);
}

#[test]
fn jobs_that_several_files_of_slurms_json_have_are_kept_once() {
    let job = |id: u32, state: &str, times: &str| {
        format!(
            r#"{{"job_id":{id},"user":"ann","state":{{"current":["{state}"]}},"time":{{"submission":1000,{times}}},
"tres":{{"allocated":[{{"type":"cpu","name":"","count":4}}]}}}}"#
        )
    };
    let list = |name: &str, jobs: &[String]| file(name, format!(r#"{{"jobs":[{}]}}"#, jobs.join(",")));
    let done = |id: u32| job(id, "COMPLETED", r#""start":1010,"end":2010,"elapsed":1000"#);
    let runs = job(9, "RUNNING", r#""start":1010,"end":0,"elapsed":500"#);
    let files = [list("1.json", &[done(7), runs]), list("2.json", &[done(9), done(7), done(8)])];
    let found = import(&files, &options(Format::Auto)).unwrap();
    assert_eq!(dropped(&found), [("repeated in another file", 1), ("still running", 1)]);
    let ids: Vec<String> = found.job_ids.iter().map(ToString::to_string).collect();
    assert_eq!(ids, ["9", "7", "8"]);
    // A job of the queue that runs until its limit, which the accounting has with its end.
    let queue = r#"{"jobs":[{"job_id":8,"user_name":"ann","job_state":["RUNNING"],"submit_time":1000,"start_time":1010,
"end_time":9999,"time_limit":600,"tres_alloc_str":"cpu=4"}]}"#;
    let files = [file("1.json", queue.to_string()), list("2.json", &[done(8)])];
    let found = import(&files, &options(Format::SlurmJson)).unwrap();
    assert_eq!(rows(&found), ["1000 1010 1000 - ann - - cpu=4"]);
}

#[test]
fn other_formats_keep_what_several_files_repeat() {
    let log = "; MaxProcs: 64\n1 0 5 10 4 -1 -1 4 60 -1 1 7 1 -1 1 -1 -1 -1\n";
    let files = [file("1.swf", log.to_string()), file("2.swf", log.to_string())];
    assert_eq!(import(&files, &options(Format::Swf)).unwrap().summary.tasks, 2);
}
