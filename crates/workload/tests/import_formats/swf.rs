//! The Standard Workload Format.

use proptest::prelude::*;

use super::*;

pub(crate) const LOG: &str = "\
; Version: 2.2
; MaxProcs: 64
; Note: first line
;       second line
; UnixStartTime: 1000
    1   10    5  100    4 99.5   -1    8   200   -1  1   7   3  -1  2 -1 -1 -1
    2   20   -1   50   -1   -1   -1    8    -1   -1  1  -1  -1  -1 -1  6 -1 -1
    3   30    0   -1    4   -1   -1    8    -1   -1  0   7   3  -1  2 -1 -1 -1
    4   40    0   10   -1   -1   -1   -1    -1   -1  0   7   3  -1  2 -1 -1 -1
    5   50    0    0    1   -1   -1   -1    -1   -1  5   7   3  -1  2 -1 -1 -1
";

#[test]
fn a_standard_workload_log() {
    let found = read(Format::Auto, LOG);
    assert_eq!(rows(&found), ["10 15 100 200 7 3 2 cpu=4", "20 - 50 - unknown - 6 cpu=8", "50 50 0 - 7 3 2 cpu=1"]);
    assert_eq!(dropped(&found), [("unknown run time", 1), ("unknown number of processors", 1)]);
    let header: Vec<(&str, &str)> = found.workload.header().iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let note = ("Note", "first line second line");
    assert_eq!(header, [("Version", "2.2"), ("MaxProcs", "64"), note, ("UnixStartTime", "1000")]);
    assert_eq!(found.workload.resources()[0].unit, "processors");
    let summary = found.summary.to_string();
    assert!(
        summary
            .starts_with("Read 5 rows of swf from 1 file; kept 3 tasks. Dropped: unknown run time (1); unknown number"),
        "{summary}"
    );
    assert!(summary.contains("1 job has no queue"), "{summary}");
}

#[test]
fn memory_of_a_standard_workload_log() {
    let log = "\
1 0 0 9 4 -1 10.5 -1 -1 2000 1 1 1 1 1 1 -1 -1
2 0 0 9 4 -1 10.5 -1 -1 -1 1 1 1 1 1 1 -1 -1
3 0 0 9 4 -1 -1 -1 -1 0 1 1 1 1 1 1 -1 -1
";
    let memory = |log: &str, unit, per, relaxed| {
        let options = ImportOptions { swf_memory_unit: unit, swf_memory_per: per, relaxed, ..options(Format::Swf) };
        let found = import(&bytes(log), &options).unwrap();
        assert_eq!(found.workload.resources()[1].unit, unit.name());
        let sentence = found.summary.assumptions.iter().find(|a| a.starts_with("Memory")).unwrap();
        assert!(sentence.contains(&format!("in {unit} per {per}")), "{sentence}");
        rows(&found).iter().map(|r| r.split("mem=").nth(1).unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(memory(log, MemoryUnit::KB, MemoryPer::Processor, false), ["8000", "42", "0"]);
    assert_eq!(memory(log, MemoryUnit::MB, MemoryPer::Job, false), ["2000", "10.5", "0"]);
    assert_eq!(memory(log, MemoryUnit::B, MemoryPer::Node, false), ["2000", "10.5", "0"]);
    for (nodes, total) in
        [("2:ppn=8", "4000"), ("3", "6000"), ("host1.cz:ppn=12:brno", "2000"), ("2:ppn=8+host1", "6000")]
    {
        let extra = format!("1 0 0 9 16 -1 1024 -1 -1 2000 1 1 1 1 1 1 -1 -1 {{5,6}} q_2w {nodes}\n");
        assert_eq!(memory(&extra, MemoryUnit::B, MemoryPer::Node, true), [total]);
    }
}

#[test]
fn memory_that_no_machine_has_per_processor_is_noted() {
    // 68,719,476,736 bytes per node, as in MetaCentrum's logs: 64 GiB for 64 processors.
    let log = "1 0 0 9 64 1 1024 64 9 68719476736 1 62 1 1 -1 1 1 1\n2 0 0 9 1 -1 -1 1 9 100 1 62 1 1 -1 1 1 1\n";
    let notes = |log: &str, unit, per| {
        let options = ImportOptions { swf_memory_unit: unit, swf_memory_per: per, ..options(Format::Swf) };
        let summary = import(&bytes(log), &options).unwrap().summary;
        summary.assumptions.iter().filter(|a| a.contains("1 TiB of memory per processor")).count()
    };
    let one = log.lines().next().unwrap();
    assert_eq!(notes(one, MemoryUnit::KB, MemoryPer::Processor), 1);
    assert_eq!(notes(one, MemoryUnit::KB, MemoryPer::Job), 0, "1 TiB is not more than 1 TiB");
    assert_eq!(notes(one, MemoryUnit::B, MemoryPer::Node), 0);
    assert_eq!(notes(log, MemoryUnit::KB, MemoryPer::Processor), 0, "one of two jobs");
}

#[test]
fn column_21_gives_the_number_of_nodes() {
    let relaxed = ImportOptions { relaxed: true, ..options(Format::Swf) };
    for (spec, nodes) in
        [("2:ppn=8", Some(2)), ("2:ppn=4:prop+1:ppn=8#excl", Some(3)), ("host1.cz:ppn=16", Some(1)), ("?", None)]
    {
        let log = format!("1 0 0 9 16 -1 1024 -1 -1 2000 1 1 1 1 1 1 -1 -1 {{5,6}} q_2w {spec}\n");
        let found = import(&bytes(log.as_str()), &relaxed).unwrap();
        assert_eq!(found.workload.nodes(0), nodes, "{spec}");
        let is_counted = found.summary.assumptions.iter().any(|a| a.contains("a stated number of nodes"));
        assert_eq!(is_counted, nodes.is_some(), "{}", found.summary);
    }
}

#[test]
fn the_queue_is_that_of_column_20_where_field_15_has_none() {
    let relaxed = ImportOptions { relaxed: true, ..options(Format::Swf) };
    let queue = |queue: &str, extra: &str| {
        let log = format!("1 0 0 9 16 -1 1024 -1 -1 2000 1 1 1 1 {queue} 7 -1 -1 {extra}\n");
        let found = import(&bytes(log.as_str()), &relaxed).unwrap();
        let states = |what: &str| found.summary.assumptions.iter().any(|a| a.contains(what));
        let stated = (states("the name in column 20 is used"), states("the partition (field 16) is used"));
        (found.workload.queue(0).map(str::to_string), stated)
    };
    assert_eq!(queue("-1", "{5,6} q_2w 2:ppn=8"), (Some("q_2w".into()), (true, false)));
    assert_eq!(queue("3", "{5,6} q_2w 2:ppn=8"), (Some("3".into()), (false, false)));
    // Columns of another meaning, or without a name.
    for extra in ["{5,6} q_2w", "{5,6} q_2w ?", "{5,6} -1 2:ppn=8", "{5,6} - 2:ppn=8"] {
        assert_eq!(queue("-1", extra), (Some("7".into()), (false, true)), "{extra}");
    }
}

#[test]
fn columns_19_and_21_give_chunks_requirements_and_machines() {
    let options = ImportOptions { relaxed: true, swf_memory_per: MemoryPer::Node, ..options(Format::Swf) };
    let row = |spec: &str| format!("1 0 0 9 16 -1 1024 -1 -1 2000 1 1 1 1 1 1 -1 -1 {{n6,n5,n6}} q_2w {spec}\n");
    let details = |spec: &str| {
        let found = import(&bytes(row(spec)), &options).unwrap();
        let w = found.workload;
        let text = |detail| w.detail(detail, 0).unwrap_or_default().to_string();
        [Detail::Chunks, Detail::Requires, Detail::Machines, Detail::Outcome].map(text)
    };
    let different = "2:ppn=4:nfs4:x+1:ppn=8:nfs4#excl";
    let chunks = "2:cpu=4:mem=2000+1:cpu=8:mem=2000";
    assert_eq!(details(different), [chunks, "nfs4,#excl,#scatter", "n5,n6", "completed"]);
    // Sizes that do not make up the job's 16 processors say nothing.
    assert_eq!(details("2:ppn=4+1:ppn=4:cl_a"), ["", "", "n5,n6", "completed"]);
    assert_eq!(details("1:ppn=16:cl_a:^n7"), ["", "cl_a,^n7", "n5,n6", "completed"]);
    let found = import(&bytes(row(different)), &options).unwrap().summary.to_string();
    for expected in [
        "1 job has a stated number of nodes",
        "1 job states nodes of different sizes.",
        "1 job states requirements on machines.",
        "1 job requires whole machines.",
        "1 job states the machines used.",
    ] {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn requested_processors_can_count_instead_of_allocated_ones() {
    let log = "1 0 0 9 4 -1 -1 6 -1 -1 1 1 1 1 1 1 -1 -1\n2 0 0 9 4 -1 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1\n";
    let cpus = |processors| {
        let found = import(&bytes(log), &ImportOptions { processors, ..options(Format::Swf) }).unwrap();
        rows(&found).iter().map(|r| r.split("cpu=").nth(1).unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(cpus(Processors::Allocated), ["4", "4"]);
    assert_eq!(cpus(Processors::Requested), ["6", "4"]);
    let both = import(&bytes(log), &options(Format::Swf)).unwrap();
    let requested = both.workload.requested_amounts(0).map(|amounts| amounts[0].0);
    assert_eq!((requested, both.workload.requested_amounts(1)), (Some(6), None));
    let sentence = "1 job requests other amounts than allocated; --processors requested takes those.";
    assert!(both.summary.assumptions.contains(&sentence.to_string()), "{:?}", both.summary.assumptions);
}

proptest! {
    /// To choose the requested amounts after an import is to choose them for it, whatever memory refers to.
    #[test]
    fn requested_processors_can_be_chosen_after_the_import(
        jobs in prop::collection::vec((-1i64..4, -1i64..4, -1i64..3, -1i64..3), 1..20),
        per in prop::sample::select(vec![MemoryPer::Processor, MemoryPer::Node, MemoryPer::Job]),
    ) {
        let line = |(i, (held, asked, mem, used)): (usize, &(i64, i64, i64, i64))| {
            format!("{} {i} 0 9 {held} -1 {used} {asked} -1 {mem} 1 1 1 1 1 1 -1 -1\n", i + 1)
        };
        let log: String = jobs.iter().enumerate().map(line).collect();
        let read = |processors| {
            import(&bytes(log.clone()), &ImportOptions { processors, swf_memory_per: per, ..options(Format::Swf) })
        };
        match (read(Processors::Allocated), read(Processors::Requested)) {
            (Ok(both), Ok(requested)) => {
                prop_assert_eq!(Processors::Requested.of(both.workload.clone()).unwrap(), requested.workload);
                prop_assert_eq!(Processors::Allocated.of(both.workload.clone()).unwrap(), both.workload);
            }
            // No task is left; what was assumed of processors differs.
            (Err(_), Err(_)) => {}
            (a, b) => prop_assert!(false, "{a:?}, {b:?}"),
        }
    }
}

#[test]
fn a_log_that_deviates_from_the_standard_needs_relaxed() {
    let tail = "-1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1";
    for (log, found, row) in [
        (format!("1 0.25 0 9 4 {tail}\n"), "trace:1:3: found \"0.25\"", "0.25 0.25 9 - 1 1 1 cpu=4"),
        (format!("1 0 0 9.000000001 4 {tail}\n"), "trace:1:7: found \"9.000000001\"", "0 0 9.000000001 - 1 1 1 cpu=4"),
        (format!("1 0 0 9 4 {tail} 0.97\n"), "trace:1:43: found 19 columns", "0 0 9 - 1 1 1 cpu=4"),
        (format!("2 5 0 9 4 {tail}\n1 0 0 9 4 {tail}\n"), "trace:2:1: found job 1 after job 2", "0 0 9 - 1 1 1 cpu=4"),
        (format!("1 0 -7 9 4 {tail}\n"), "trace:1:5: found \"-7\"", "0 - 9 - 1 1 1 cpu=4"),
        (
            "1 0 0 9 4 -1 -1 4 -1 -1 1 1.9 1 1 1 1 -1 -1\n".to_string(),
            "trace:1:27: found \"1.9\"",
            "0 0 9 - 1 1 1 cpu=4",
        ),
    ] {
        let strict = refused(&options(Format::Swf), log.clone());
        assert!(strict.starts_with(found) && strict.ends_with("pass --relaxed to accept"), "{strict}");
        let relaxed = ImportOptions { relaxed: true, ..options(Format::Swf) };
        let relaxed_import = import(&bytes(log.clone()), &relaxed).unwrap();
        assert_eq!(rows(&relaxed_import)[0], row, "{log}");
        assert_eq!(relaxed_import.summary.assumptions.len(), 3, "{:?}", relaxed_import.summary.assumptions);
    }
}

#[test]
fn a_malformed_log_names_the_place_and_the_remedy() {
    let relaxed = ImportOptions { relaxed: true, ..options(Format::Swf) };
    for (log, message) in [
        (
            "1 2 3\n",
            "trace:1:6: found 3 columns, expected 18 columns of the Standard Workload Format; correct the row, or pass --lenient to skip such rows",
        ),
        (
            "; c\n1 x 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18\n",
            "trace:2:3: found \"x\", expected the submit time (field 2): a whole number, or -1 for unknown; correct",
        ),
        (
            "1 0 0 99999999999 1 -1 -1 1 1 1 1 1 1 1 1 1 1 1\n",
            "trace:1:7: found 99999999999 s, expected a time below 146 years",
        ),
        (
            "1 0 0 99999999999999999999999999999999999999 1 -1 -1 1 1 1 1 1 1 1 1 1 1 1\n",
            "trace:1:7: found \"99999999999999999999999999999999999999\", expected the run time (field 4): a whole number, or -1 \
             for unknown, at most 9223372036854775807",
        ),
        (
            "1 0 0 1 4 -1 -1 1 1 900000000000000000 1 1 1 1 1 1 1 1\n",
            "trace:1:21: found \"900000000000000000\", expected the requested memory (field 10), less than 10^18 KB in total; correct",
        ),
        (
            "1 0 0 1 4 -1 900000000000000000 1 1 -1 1 1 1 1 1 1 1 1\n",
            "trace:1:14: found \"900000000000000000\", expected the used memory (field 7), less than 10^18 KB in total; correct",
        ),
        (
            "1 0 0 1 900000000000000000 -1 5 1 1 -1 1 1 1 1 1 1 1 1\n",
            "trace:1:9: found \"900000000000000000\", expected the allocated processors (field 5), less than 10^18 KB of their \
             memory in total; correct",
        ),
        (
            "1 0 0 1 -1 -1 -1 5000000000000000000 1 -1 1 1 1 1 1 1 1 1\n",
            "trace:1:18: found \"5000000000000000000\", expected the requested processors (field 8), at most 999999999999999999; correct",
        ),
        ("1 0 0 1 4 - -1 1 1 9 1 1 1 1 1 1 1 1\n", "trace:1:11: found \"-\", expected the mean CPU time"),
        ("1 0 0 1 4 \u{e9} -1 1 1 9 1 1 1 1 1 1 1 1\n", "trace:1:11: found \"é\""),
    ] {
        let found = refused(&relaxed, log);
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let nodes = ImportOptions { swf_memory_per: MemoryPer::Node, ..relaxed };
    let found = refused(&nodes, "1 0 0 1 4 -1 -1 1 1 9 1 1 1 1 1 1 1 1 {} q 0:ppn=2\n");
    assert!(found.contains("found \"0:ppn=2\", expected nodes like 2:ppn=8 in column 21"), "{found}");
}

#[test]
fn names_in_place_of_numbers_need_relaxed_and_lenient_keeps_rows_with_malformed_optional_fields() {
    let log = "1 0 5 10 4 -1 -1 4 60 -1 1 user_A phys 1 -1 long -1 -1\n2 0 5 10 4 - -1 4 1h -1 ok - 7 1 - -1 x -1\n";
    let strict = import(&bytes(log), &options(Format::Swf)).unwrap_err().to_string();
    assert!(strict.starts_with("trace:1:28: found \"user_A\", expected the user (field 12)"), "{strict}");
    assert!(strict.ends_with("pass --relaxed to accept"), "{strict}");
    let lenient = ImportOptions { lenient: true, ..options(Format::Swf) };
    let found = import(&bytes(log), &lenient).unwrap();
    assert_eq!(rows(&found), ["0 5 10 60 user_A phys long cpu=4", "0 5 10 - unknown 7 - cpu=4"]);
    assert!(found.summary.dropped.is_empty());
    let summary = found.summary.to_string();
    assert!(summary.contains("1 job has names where the standard has numbers"), "{summary}");
    assert!(summary.contains("1 job has a malformed optional field, which is taken as unknown"), "{summary}");
    let relaxed = ImportOptions { relaxed: true, ..options(Format::Swf) };
    let first = log.lines().next().unwrap();
    assert_eq!(rows(&import(&bytes(first), &relaxed).unwrap()), ["0 5 10 60 user_A phys long cpu=4"]);
}
