//! Each format by example: what a row becomes, what is dropped, what is refused and how.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::num::NonZeroUsize;

use evenhand_workload::Source;
use evenhand_workload::import::{
    CsvColumns, Format, ImportError, ImportOptions, Imported, MemoryPer, MemoryUnit, import, import_with_progress,
};

fn bytes(data: impl Into<Vec<u8>>) -> [Source; 1] {
    [Source::Bytes { name: "trace".to_string(), data: data.into() }]
}

fn options(format: Format) -> ImportOptions {
    ImportOptions { format, ..ImportOptions::default() }
}

fn read(format: Format, text: &str) -> Imported {
    import(&bytes(text), &options(format)).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Every row on a line: submit, start, length, requested, user, account, queue, amounts.
fn rows(imported: &Imported) -> Vec<String> {
    let w = &imported.workload;
    let text = |t: Option<String>| t.unwrap_or_else(|| "-".to_string());
    (0..w.len())
        .map(|row| {
            let c = w.columns();
            let mut line = format!("{} {}", c.submit[row], text(w.start(row).map(|t| t.to_string())));
            write!(line, " {} {}", c.duration[row], text(w.requested(row).map(|t| t.to_string()))).unwrap();
            write!(line, " {}", w.users()[c.user[row].index()]).unwrap();
            write!(line, " {}", text(w.account(row).map(str::to_string))).unwrap();
            write!(line, " {}", text(w.queue(row).map(str::to_string))).unwrap();
            for (resource, amount) in w.resources().iter().zip(w.amounts(row)) {
                write!(line, " {}={}", resource.name, resource.format(*amount)).unwrap();
            }
            line
        })
        .collect()
}

fn dropped(imported: &Imported) -> Vec<(&str, u64)> {
    imported.summary.dropped.iter().map(|(reason, n)| (reason.as_str(), *n)).collect()
}

/// The message of a failing import; leniently it must only fail for want of tasks.
fn refused(options: &ImportOptions, text: impl Into<Vec<u8>>) -> String {
    let text = text.into();
    let error = import(&bytes(text.clone()), options).unwrap_err();
    assert!(!error.is_environment(), "{error}");
    let lenient = import(&bytes(text), &ImportOptions { lenient: true, ..options.clone() });
    if matches!(error, ImportError::Row(_)) {
        match lenient {
            Ok(imported) => assert!(imported.summary.dropped.iter().any(|(r, _)| r.starts_with("malformed"))),
            Err(lenient) => assert!(matches!(lenient, ImportError::NothingLeft(_)), "{lenient}"),
        }
    } else {
        assert!(lenient.is_err());
    }
    error.to_string()
}

const LOG: &str = "\
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
            "trace:1:7: found \"99999999999999",
        ),
        (
            "1 0 0 1 4 -1 -1 1 1 900000000000000000 1 1 1 1 1 1 1 1\n",
            "trace:1:21: found \"900000000000000000\", expected less than 10^18 in total",
        ),
        ("1 0 0 1 4 - -1 1 1 9 1 1 1 1 1 1 1 1\n", "trace:1:11: found \"-\", expected the mean CPU time"),
        ("1 0 0 1 4 \u{e9} -1 1 1 9 1 1 1 1 1 1 1 1\n", "trace:1:11: found \"\\xc3\\xa9\""),
    ] {
        let found = refused(&relaxed, log);
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let nodes = ImportOptions { swf_memory_per: MemoryPer::Node, ..relaxed };
    let found = refused(&nodes, "1 0 0 1 4 -1 -1 1 1 9 1 1 1 1 1 1 1 1 {} q 0:ppn=2\n");
    assert!(found.contains("found \"0:ppn=2\", expected nodes like 2:ppn=8 in column 21"), "{found}");
}

/// One job's tasks 0.. with a story each; times are 1, 2, 3 … seconds after 600 s.
fn google(events: &[(u32, u32)]) -> String {
    let row = |(i, (task, code)): (usize, &(u32, u32))| {
        format!("{},,77,{task},5,{code},us/er=,2,0,0.0125,1.5e-2,0.0004,0\n", 600_000_000 + i * 1_000_000)
    };
    events.iter().enumerate().map(row).collect()
}

#[test]
fn an_attempt_of_google_counts_if_it_ended_by_itself() {
    let kept = |events: &[(u32, u32)]| match import(&bytes(google(events)), &options(Format::Google2011)) {
        Ok(found) => (rows(&found), dropped(&found).iter().map(|(r, n)| format!("{n} {r}")).collect::<Vec<_>>()),
        Err(ImportError::NothingLeft(s)) => (vec![], s.dropped.iter().map(|(r, n)| format!("{n} {r}")).collect()),
        Err(e) => panic!("{e}"),
    };
    let task =
        |submit: u32, start: u32, length: u32| format!("{submit} {start} {length} - us/er= - - cpu=0.0125 mem=0.015");
    for (events, rows, dropped) in [
        (&[(0, 0), (0, 1), (0, 4)][..], vec![task(600, 601, 1)], vec![]),
        (&[(0, 0), (0, 1), (0, 8), (0, 7), (0, 3)], vec![task(600, 601, 3)], vec![]),
        (&[(0, 0), (0, 1), (0, 2), (0, 0), (0, 1), (0, 4)], vec![task(603, 604, 1)], vec!["1 evicted"]),
        (&[(0, 0), (0, 1), (0, 3), (0, 0), (0, 1), (0, 4)], vec![task(600, 601, 1), task(603, 604, 1)], vec![]),
        (&[(0, 0), (0, 1), (0, 5)], vec![], vec!["1 killed"]),
        (&[(0, 0), (0, 1), (0, 6)], vec![], vec!["1 lost"]),
        (&[(0, 0), (0, 3)], vec![], vec!["1 ended without being scheduled"]),
        (&[(0, 1), (0, 4)], vec![], vec!["1 submitted before the first row of this part of the trace"]),
        (&[(0, 0), (1, 0), (1, 1)], vec![], vec!["1 still waiting at the end", "1 still running at the end"]),
    ] {
        assert_eq!(kept(events), (rows, dropped.iter().map(|d| d.to_string()).collect()), "{events:?}");
    }
    let story = google(&[(0, 0), (0, 1), (0, 4)]);
    for (from, to, reason) in [
        ("600000000,", "0,", "submitted at time 0, before the trace began (1)"),
        ("601000000,,", "601000000,1,", "missing information (1)"),
        ("0.0125", "0", "no CPU or memory request (1)"),
        ("1.5e-2", "", "no CPU or memory request (1)"),
        ("602000000,", "9223372036854775807,", "still running at the end (1)"),
    ] {
        let error = refused(&options(Format::Auto), story.replace(from, to));
        assert!(error.starts_with("no task of this trace is left.") && error.contains(reason), "{error}");
    }
}

#[test]
fn shards_of_google_are_put_in_the_order_of_their_times() {
    let text = google(&[(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (1, 3), (2, 1), (0, 4), (2, 4)]);
    let whole = read(Format::Google2011, &text);
    let lines: Vec<&str> = text.lines().collect();
    let shard = |k: usize, lines: &[&str]| Source::Bytes { name: format!("s{k}"), data: lines.join("\n").into_bytes() };
    let shards: Vec<Source> = lines.chunks(2).enumerate().map(|(k, l)| shard(k, l)).rev().collect();
    let parts = import(&shards, &ImportOptions::default()).unwrap();
    assert_eq!(parts.workload, whole.workload);
    assert_eq!((parts.summary.files, parts.summary.rows_read), (5, 9));

    // The same shard twice, or rows that go back.
    let twice = import(&[shard(0, &lines), shard(1, &lines)], &ImportOptions::default()).unwrap_err().to_string();
    let expected = "s1:1:1: found time 600000000 in this file after time 608000000 in the one before, \
                    expected files in the order of their times; give each shard once";
    assert!(twice.starts_with(expected), "{twice}");
    let back = [lines[1], lines[0]].join("\n");
    let back = refused(&options(Format::Google2011), back);
    assert!(
        back.starts_with("trace:2:1: found time 600000000 after time 601000000, expected rows in the order"),
        "{back}"
    );
}

#[test]
fn a_malformed_row_of_google_names_the_place() {
    let good = google(&[(0, 0), (0, 1), (0, 4)]);
    for (from, to, message) in [
        (",0.0125,1.5e-2,0.0004,0\n601", "\n601", "trace:1:31: found 9 columns, expected 13 columns"),
        (",0\n601", ",0,\n601", "trace:1:54: found 14 columns, expected 13 columns"),
        ("601000000", "601x", "trace:2:1: found \"601x\", expected a time in whole microseconds (column 1)"),
        ("601000000", "5000000000000000", "trace:2:1: found 5000000000000000, expected a time below 4.6e15"),
        (",,77,0,5,1", ",,77,0,5,9", "trace:2:19: found \"9\", expected an event type from 0 to 8 (column 6)"),
        (",,77,0,5,1", ",,77,4294967296,5,1", "trace:2:15: found \"4294967296\", expected a task index"),
        (",,77,0,5,1", ",,-7,0,5,1", "trace:2:12: found \"-7\", expected a job number (column 3)"),
        ("0.0125", "0.01.25", "trace:1:32: found \"0.01.25\", expected a CPU request"),
        ("0.0125", "-1", "trace:1:32: found \"-1\", expected a CPU request"),
        ("0.0125", "1e11", "trace:1:32: found \"1e11\", expected a CPU request"),
    ] {
        assert!(good.contains(from), "{from}");
        let found = refused(&options(Format::Google2011), good.replacen(from, to, 1));
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let mut not_utf8 = good.into_bytes();
    let at = not_utf8.iter().position(|&b| b == b'/').unwrap();
    not_utf8[at] = 0xff;
    let found = refused(&options(Format::Google2011), not_utf8);
    assert!(found.starts_with("trace:1:23: found \"us\\xffer=\", expected a user's name in UTF-8"), "{found}");
}

#[test]
fn the_seven_columns_of_the_sdrf_authors() {
    let text =
        "submit,start,finish,user,task,cpu,mem\n5,6,1000009,bob,7-1,0.0125,3.815e-05\n1,2,2,eve,x,0.1234567891,2\r\n";
    let found = read(Format::Auto, text);
    let expected = [
        "0.000001 0.000002 0 - eve - - cpu=0.123456789 mem=2",
        "0.000005 0.000006 1.000003 - bob - - cpu=0.0125 mem=0.00003815",
    ];
    assert_eq!(rows(&found), expected);
    assert_eq!(found.summary.assumptions.len(), 2);
    assert!(found.summary.assumptions[1].starts_with("1 row has amounts with more than nine decimals"));
    for (text, message) in [
        ("1,2,3,u,t,1\n", "trace:1:12: found 6 columns, expected 7 columns: submit,start,finish,user,task,cpu,mem;"),
        ("1,9,3,u,t,1,1\n", "trace:1:5: found finish 0.000003 s before start 0.000009 s, expected a finish"),
        ("-1,2,3,u,t,1,1\n", "trace:1:1: found \"-1\", expected the submit time, whole microseconds"),
        ("1,2.5,3,u,t,1,1\n", "trace:1:3: found \"2.5\", expected the start time"),
        ("1,2,99999999999999999,u,t,1,1\n", "trace:1:5: found \"99999999999999999\", expected the finish time"),
        ("1,2,3,u,t,-1,1\n", "trace:1:11: found \"-1\", expected the cpu amount"),
        ("1,2,3,u,t,1,1e30\n", "trace:1:13: found \"1e30\", expected the mem amount"),
        ("1,2,3,u,t,1,1\nh,2,3,u,t,1,1\n", "trace:2:1: found \"h\", expected the submit time"),
    ] {
        let found = refused(&options(Format::SdrfCsv), text);
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let found = refused(&options(Format::SdrfCsv), b"1,2,3,a\xffb,t,1,1\n");
    assert!(found.starts_with("trace:1:8: found \"a\\xffb\", expected a user's name in UTF-8"), "{found}");
}

const SACCT: &str = "\
JobID|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|AllocTRES
12|ann|phys|cpu|normal|COMPLETED|1970-01-01T00:00:10|1970-01-01T00:00:20|1970-01-01T00:01:20|60|30|cpu=1,mem=1G|billing=4,cpu=4,mem=2G,node=1
12.batch||phys|||COMPLETED|1970-01-01T00:00:20|1970-01-01T00:00:20|1970-01-01T00:01:20|60|||cpu=4,mem=2G,node=1
13_4|bob|bio|gpu|normal|CANCELLED by 7|1970-01-01T00:00:11|1970-01-01T00:00:21|1970-01-01T00:00:31|10|UNLIMITED|cpu=2|cpu=2,gres/gpu:a100=1,gres/gpu=1,mem=125000M
13_[5-10%2]|bob|bio|gpu|normal|PENDING|1970-01-01T00:00:11|Unknown|Unknown|0|30|cpu=2,mem=1G|
14+0||bio|cpu|normal|TIMEOUT|1970-01-01T00:00:12|1970-01-01T00:00:22|1970-01-01T00:00:32|10|Partition_Limit|cpu=3|cpu=3,node=1
15|bob|bio|cpu|normal|RUNNING|1970-01-01T00:00:12|1970-01-01T00:00:22|Unknown|10|30|cpu=3|cpu=3,node=1
16|bob|bio|cpu|normal|CANCELLED by 7|1970-01-01T00:00:12|1970-01-01T00:00:22|1970-01-01T00:00:22|0|30|cpu=3,mem=1G|
17|bob|bio|cpu|normal|FAILED|1970-01-01T00:00:12|1970-01-01T00:00:22|1970-01-01T00:00:22|0|30|mem=1G|mem=1G
";

#[test]
fn slurm_accounting() {
    let expected = [
        "10 20 60 1800 ann phys cpu cpu=4 mem=2147483648 gpu=0",
        "11 21 10 - bob bio gpu cpu=2 mem=131072000000 gpu=1",
        "12 22 10 - unknown bio cpu cpu=3 mem=0 gpu=0",
    ];
    let found = read(Format::Auto, SACCT);
    assert_eq!(rows(&found), expected);
    let reasons =
        [("job steps, which sacct -X omits", 1), ("never started", 2), ("still running", 1), ("no number of CPUs", 1)];
    assert_eq!(dropped(&found), reasons);
    assert_eq!(found.workload.resources()[1].unit, "B");
    let assumed = found.summary.assumptions.join(" ");
    assert!(assumed.contains("taken as UTC") && assumed.contains("1 job has no user"), "{assumed}");
    // Another delimiter, a trailing one (-p), a repeated header, other platforms' line ends.
    let twice = format!("\u{feff}{SACCT}{}", SACCT.lines().next().unwrap());
    for text in [
        SACCT.replace('|', "☃"),
        SACCT.replace('|', "\t"),
        SACCT.replace('\n', "|\n"),
        twice,
        SACCT.replace('\n', "\r\n"),
    ] {
        assert_eq!(read(Format::Auto, &text), found, "{text}");
    }
}

#[test]
fn slurm_accounting_with_other_columns() {
    let text = "\
JobIDRaw|User|NCPUS|NNodes|ReqMem|Submit|Start|Elapsed|Timelimit
1|ann|4|2|100Mc|1970-01-01T00:00:10|1970-01-01T00:00:20|1-00:00:01.5|2-00:00:00
2|ann|4|2|1Gn|1970-01-01T00:00:10|1970-01-01T00:00:20|01:30|Partition_Limit
3|ann|4|2|1.50G|1970-01-01T00:00:10|1970-01-01T00:00:20|00:00:05|UNLIMITED
";
    let expected = [
        "10 20 86401.5 172800 ann - - cpu=4 mem=419430400",
        "10 20 90 - ann - - cpu=4 mem=2147483648",
        "10 20 5 - ann - - cpu=4 mem=1610612736",
    ];
    let found = read(Format::Sacct, text);
    assert_eq!(rows(&found), expected);
    let assumed = found.summary.assumptions.join(" ");
    assert!(assumed.contains("3 jobs have neither an end nor a state") && assumed.contains("ReqMem"), "{assumed}");
    // Without any memory or GPU, cpu is the only resource; the length is end minus start.
    let text =
        "JobID|User|AllocCPUS|Submit|Start|End\n1|a|2|1970-01-01T00:00:10|1970-01-01T00:00:20|1970-01-01T00:00:50\n";
    let found = read(Format::Sacct, text);
    assert_eq!(rows(&found), ["10 20 30 - a - - cpu=2"]);
}

const TABLE: &str = "\
name,\"who, and why\",created,begun,done,milli,ram
a,ann,10,20,80.5,1500,4
b,\"bob \"\"b\"\"\",1970-01-01 00:00:10,1970-01-01T00:00:30Z,1970-01-01T00:01:00,250,
c,ann,10,,,1000,1
d,,,20,30,1000,1
";

fn table_options(columns: &str) -> ImportOptions {
    ImportOptions { csv_columns: Some(columns.parse().unwrap()), ..ImportOptions::default() }
}

const TABLE_COLUMNS: &str = "submit=created,start=begun,end=done,cpu=milli*0.001,mem:GiB=ram*0.5";

#[test]
fn any_table_is_read_by_the_definition_of_its_columns() {
    let source = |text: &str| Source::Bytes { name: "trace".into(), data: text.as_bytes().to_vec() };
    let found = import(&[source(TABLE)], &table_options(TABLE_COLUMNS)).unwrap();
    let expected = ["10 20 60.5 - unknown - - cpu=1.5 mem=2", "10 30 30 - unknown - - cpu=0.25 mem=0"];
    assert_eq!(rows(&found), expected);
    assert_eq!(found.workload.resources()[1].unit, "GiB");
    let summary = found.summary.to_string();
    assert!(summary.contains("Dropped: never started (1); no submit time (1)."), "{summary}");
    assert!(summary.contains("2 rows have no user") && summary.contains("1 amount is missing"), "{summary}");
    // Quoted names, a duration, counts, and times that are multiplied: milliseconds.
    let text = "at,took,who,n,cores\n1000,500,\"b \"\"x\"\", y\",3,2\n2000,1500,c,1,1\n";
    let columns = "submit=at*0.001,duration=took*0.001,user=who,count=n,cpu=cores";
    let found = import(&[source(text)], &table_options(columns)).unwrap();
    assert_eq!((found.workload.tasks(), found.workload.users()), (4, &["b \"x\", y".to_string(), "c".into()][..]));
    assert_eq!(rows(&found)[1], "2 - 1.5 - c - - cpu=1");
}

#[test]
fn errors_in_tables_name_the_place() {
    for (from, to, message) in [
        (
            "20,80.5",
            "2O,80.5",
            "trace:2:10: found \"2O\", expected a time: seconds, or a date such as 2023-08-31T12:29:47",
        ),
        ("80.5", "8.5", "trace:2:13: found an end 11.5 s before the start"),
        ("20,80.5", "5,80.5", "trace:2:10: found a start 5 s before submission"),
        ("1500,4", "-1500,4", "trace:2:18: found \"-1500\", expected an amount of cpu"),
        ("1500,4", "1500", "trace:2:22: found 6 columns, expected 7 columns, as the header has"),
        ("milli", "mill", "trace: found the header"),
    ] {
        assert!(TABLE.contains(from), "{from}");
        let found = refused(&table_options(TABLE_COLUMNS), TABLE.replacen(from, to, 1));
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let found = refused(&options(Format::Csv), TABLE);
    assert!(found.contains("pass --csv-columns submit=COLUMN"), "{found}");
    for (columns, message) in [
        ("submit", "found \"submit\", expected NAME=COLUMN"),
        ("duration=a,cpu=b", "expected submit=COLUMN among them"),
        ("submit=a,end=b,cpu=c", "expected duration=COLUMN, or end=COLUMN with"),
        ("submit=a,duration=b", "expected a resource among them"),
        ("submit=a,submit=b,duration=c,cpu=d", "found \"submit=b\", expected each name once"),
        ("submit=a,duration=b,cpu=c*0", "found \"cpu=c*0\", expected a number above 0"),
        ("submit=a,duration=b,user=c*2,cpu=d", "expected a column of names, which cannot be multiplied"),
    ] {
        let error = columns.parse::<CsvColumns>().unwrap_err().to_string();
        assert!(error.contains(message), "{error}\n{message}");
    }
}

#[test]
fn errors_in_slurm_accounting_name_the_place() {
    for (from, to, message) in [
        (
            "JobID|User|",
            "JobID|Login|",
            "trace: found a header without User, expected the columns that define a task; produce it with: sacct -X -P --noconvert",
        ),
        ("JobID|User|Account", "12|ann|phys", "trace: found a header without JobID, User"),
        (
            "JobID|User|Account|",
            "JobID           User    Account ",
            "trace: found a header \"JobID           User    Account Partitio…\" that is padded with spaces",
        ),
        ("|cpu=1,mem=1G|", "|", "trace:2:129: found 12 columns, expected 13 columns, as the header has; omit"),
        (
            "00:00:20|1970",
            "00:00:20|197O",
            "trace:2:74: found \"197O-01-01T00:01:20\", expected a time such as 2023-08-31T12:29:47",
        ),
        ("|60|30|", "|-60|30|", "trace:2:94: found \"-60\", expected an elapsed time"),
        ("|60|30|", "|60|soon|", "trace:2:97: found \"soon\", expected a time limit"),
        ("mem=2G", "mem=2X", "trace:2:129: found \"mem=2X\", expected TRES such as cpu=8"),
        ("mem=2G", "mem=2000000P", "trace:2:113: found an amount of"),
    ] {
        assert!(SACCT.contains(from), "{from}");
        let found = refused(&options(Format::Sacct), SACCT.replacen(from, to, 1));
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let found = refused(
        &options(Format::Sacct),
        SACCT
            .replace("ann", "a\u{80}n")
            .replace('\u{80}', "\u{7f}")
            .into_bytes()
            .iter()
            .map(|&b| if b == 0x7f { 0xff } else { b })
            .collect::<Vec<u8>>(),
    );
    assert!(found.starts_with("trace:2:5: found \"a\\xffn\", expected a user's name in UTF-8"), "{found}");
    let earlier =
        "JobID|User|NCPUS|Submit|Start|End\n1|a|2|1970-01-01T00:00:10|1970-01-01T00:00:20|1970-01-01T00:00:10\n";
    let found = refused(&options(Format::Sacct), earlier);
    assert!(found.starts_with("trace:2:47: found an end 10 s before the start"), "{found}");
}

const BATSIM: &str = r#"{
  "nb_res": 4,
  "jobs": [
    {"id": 1, "subtime": 10.000000001, "walltime": 100, "res": 4, "profile": "a"},
    {"id": "w!2", "subtime": 0, "walltime": -1, "res": 1, "profile": "b", "user_id": 7},
    {"id": 3, "subtime": 1e1, "res": 2, "profile": "b", "user": "ann", "metadata": {}}
  ],
  "profiles": {
    "a": {"type": "delay", "delay": 12.5},
    "b": {"type": "DelayProfile", "delay": 3},
    "p": {"type": "parallel_homogeneous", "cpu": 5e6, "com": 1e6}
  }
}"#;

#[test]
fn a_batsim_workload() {
    let expected = ["0 - 3 - 7 - - cpu=1", "10 - 3 - ann - - cpu=2", "10.000000001 - 12.5 100 unknown - - cpu=4"];
    let found = read(Format::Auto, BATSIM);
    assert_eq!(rows(&found), expected);
    assert!(found.summary.to_string().contains("1 job has no user"));
    for (from, to, message) in [
        (
            "\"profile\": \"a\"",
            "\"profile\": \"p\"",
            "trace:4:5: found the profile \"p\" of type \"parallel_homogeneous\", expected a profile of type",
        ),
        (
            "\"profile\": \"a\"",
            "\"profile\": \"z\"",
            "trace:4:5: found the profile \"z\", expected a profile that is in",
        ),
        ("\"res\": 1", "\"res\": 0", "trace:5:5: found the res \"0\" of job \"\\\"w!2\\\"\", expected a whole number"),
        ("\"res\": 1", "\"rez\": 1", "trace:5:5: found an invalid job (missing field `res`), expected a job with"),
        ("\"subtime\": 0", "\"subtime\": -5", "trace:5:5: found the subtime \"-5\" of job"),
        ("12.5", "-2", "trace:4:5: found the delay \"-2\" of the profile \"a\", expected seconds"),
        ("12.5", "1e50", "trace:4:5: found the delay \"1e50\" of the profile \"a\", expected seconds"),
        ("7}", "[7]}", "trace:5:5: found the user \"[7]\" of job"),
        ("\"jobs\"", "\"tasks\"", "trace: found a document that is not a Batsim workload (missing field `jobs`"),
        ("}\n}", "}\n", "trace: found a document that is not a Batsim workload (EOF while parsing"),
    ] {
        assert!(BATSIM.contains(from), "{from}");
        let found = refused(&options(Format::Batsim), BATSIM.replacen(from, to, 1));
        assert!(found.starts_with(message), "{found}\n{message}");
    }
}

#[test]
fn compressed_and_plain_are_the_same() {
    let text = LOG.as_bytes().to_vec();
    let gzip = |data: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    };
    let zst = |data: &[u8]| zstd::encode_all(data, 3).unwrap();
    let plain = import(&bytes(text.clone()), &ImportOptions::default()).unwrap();
    let (a, b) = text.split_at(text.len() / 2);
    // Concatenated gzip members or zstd frames are one stream.
    for data in [gzip(&text), zst(&text), [gzip(a), gzip(b)].concat(), [zst(a), zst(b)].concat()] {
        assert_eq!(import(&bytes(data.clone()), &ImportOptions::default()).unwrap(), plain);
    }
    for (data, what) in [(gzip(&text), "gzip"), (zst(&text), "zstd")] {
        let cut = refused(&options(Format::Swf), &data[..data.len() - 5]);
        assert!(cut.starts_with(&format!("trace: found truncated {what} data")), "{cut}");
        let mut damaged = data.clone();
        let middle = damaged.len() / 2;
        damaged[middle..].iter_mut().for_each(|b| *b ^= 0x55);
        let damaged = refused(&options(Format::Swf), damaged);
        assert!(damaged.starts_with("trace: found ") && damaged.ends_with("fetch the file again"), "{damaged}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let mut swf = Vec::new();
    let mut google_shards = Vec::new();
    for k in 0..7u64 {
        let jobs: String = (1..200)
            .map(|j| {
                format!(
                    "{j} {} 3 {} 2 -1 -1 2 -1 -1 1 {} 1 1 {} 1 -1 -1\n",
                    (j * 7919 + k) % 1000,
                    j % 9,
                    j % (k + 3),
                    j % 4
                )
            })
            .collect();
        swf.push(Source::Bytes { name: format!("log{k}"), data: jobs.into_bytes() });
        let rows: String = (0..300u64)
            .map(|i| {
                let (task, code) = ((i + k) % 11, [0, 1, 4, 3, 2][((i + k) / 11 % 5) as usize]);
                format!("{},,5,{task},,{code},u{},2,0,0.5,0.25,0,0\n", k * 1000 + i + 1, task % 5)
            })
            .collect();
        google_shards.push(Source::Bytes { name: format!("part{k}"), data: rows.into_bytes() });
    }
    for sources in [swf, google_shards] {
        let with = |n| {
            let options = ImportOptions { threads: NonZeroUsize::new(n), ..ImportOptions::default() };
            import(&sources, &options).unwrap()
        };
        let one = with(1);
        assert!(one.workload.len() > 100);
        assert_eq!(with(2), one);
        assert_eq!(with(5), one);
    }
}

#[test]
fn folders_files_and_missing_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let log = |first: u32| format!("{first} {first} 0 5 1 -1 -1 1 -1 -1 1 {first} 1 1 1 1 -1 -1\n");
    let of_folder = |format| import(&[Source::from_argument(folder.path())], &options(format));
    let message = |r: Result<Imported, ImportError>| {
        let error = r.unwrap_err();
        (error.to_string().replace(&folder.path().display().to_string(), "DIR"), error.is_environment())
    };
    std::fs::write(path("README"), "not a trace").unwrap();
    std::fs::write(path(".hidden.swf"), "not a trace").unwrap();
    let none = "DIR: found no file to read in this folder, expected *.swf (also with .gz or .zst); name the files explicitly if they have other extensions";
    assert_eq!(message(of_folder(Format::Swf)), (none.to_string(), false));
    std::fs::write(path("b.swf"), log(2)).unwrap();
    std::fs::write(path("a.swf.zst"), zstd::encode_all(log(1).as_bytes(), 1).unwrap()).unwrap();
    let found = of_folder(Format::Auto).unwrap();
    assert_eq!(found.workload.users(), ["1", "2"]);
    assert_eq!(found.summary.files, 2);
    std::fs::write(path("c.swf"), "").unwrap();
    let empty = "DIR/c.swf: found an empty file, expected a trace; check that it was written completely";
    assert_eq!(message(of_folder(Format::Auto)), (empty.to_string(), false));

    let missing = message(import(&[Source::from_argument(path("d.swf"))], &options(Format::Swf)));
    assert_eq!(missing, ("DIR/d.swf: No such file or directory (os error 2); check the path".to_string(), false));
    let nothing = message(import(&[], &options(Format::Auto)));
    assert!(nothing.0.starts_with("found no input"), "{}", nothing.0);
    let unclear = message(import(&[Source::from_argument(path("README"))], &options(Format::Auto)));
    let expected = "DIR/README: found a first line \"not a trace\" of unknown format, expected one of swf, google2011, sdrf-csv, sacct, batsim, csv; name the format with --from";
    assert_eq!(unclear, (expected.to_string(), false));
    assert_eq!(Source::from_argument("-"), Source::Stdin);
}

/// A pipe can be read only once, although the import reads its head for the format and the order.
#[cfg(unix)]
#[test]
fn pipes_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = google(&[(0, 0), (0, 1), (1, 0), (1, 1), (0, 4), (1, 4)]);
    let (early, late) = text.split_at(text.match_indices('\n').nth(2).unwrap().0 + 1);
    let pipe = |name: &str, content: &str| {
        let (path, content) = (folder.path().join(name), content.to_string());
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let to = path.clone();
        std::thread::spawn(move || std::fs::write(to, content).unwrap());
        Source::Path(path)
    };
    let found = import(&[pipe("late", late), pipe("early", early)], &ImportOptions::default()).unwrap();
    assert_eq!(found.workload, read(Format::Google2011, &text).workload);
}

#[test]
fn a_refusal_of_the_system_is_the_environments_fault() {
    let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let error = ImportError::Io { file: "f".to_string(), source: denied };
    assert!(error.is_environment() && error.to_string().ends_with("make it readable for this user"), "{error}");
}

#[test]
fn nothing_left_says_why() {
    let error = refused(&options(Format::Swf), "1 0 0 -1 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n");
    let expected =
        "no task of this trace is left. Read 1 row of swf from 1 file; kept 0 tasks. Dropped: unknown run time (1).";
    assert!(error.starts_with(expected), "{error}");
    assert!(refused(&options(Format::Swf), "; only a header\n").contains("Read 0 rows"));
    assert!(refused(&options(Format::Swf), "").starts_with("trace: found an empty file"));
    assert!(refused(&options(Format::Batsim), "").starts_with("trace: found an empty file"));
    let endless = refused(&options(Format::Swf), vec![b'1'; 20 << 20]);
    assert!(endless.starts_with("trace: found more than 16777216 bytes without a line end"), "{endless}");
}

#[test]
fn lenient_skips_and_counts() {
    let text = "1,2,3,u,t,1,1\n1,2,3,u,t,1\n1,2,1,u,t,1,1\n1,2,3\n";
    let options = ImportOptions { lenient: true, ..options(Format::SdrfCsv) };
    let found = import(&bytes(text), &options).unwrap();
    assert_eq!((found.summary.rows_read, found.summary.tasks), (4, 1));
    let columns = "malformed, expected 7 columns: submit,start,finish,user,task,cpu,mem";
    let finish = "malformed, expected a finish that is not before the start";
    assert_eq!(dropped(&found), [(columns, 2), (finish, 1)]);
}

#[test]
fn progress_reaches_the_total() {
    use std::sync::Mutex;
    let latest = Mutex::new(None);
    let data = zstd::encode_all(LOG.as_bytes(), 1).unwrap();
    let size = data.len() as u64;
    import_with_progress(&bytes(data), &ImportOptions::default(), &|p| *latest.lock().unwrap() = Some(p)).unwrap();
    let latest = latest.lock().unwrap().unwrap();
    assert_eq!((latest.read, latest.total), (size, Some(size)));
}

#[test]
fn names_of_formats_and_options_are_read_back() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(*format));
    }
    let error = "pbs".parse::<Format>().unwrap_err().to_string();
    assert_eq!(error, "found format \"pbs\", expected one of auto, swf, google2011, sdrf-csv, sacct, batsim, csv");
    assert_eq!("MB".parse(), Ok(MemoryUnit::MB));
    assert_eq!("node".parse(), Ok(MemoryPer::Node));
}
