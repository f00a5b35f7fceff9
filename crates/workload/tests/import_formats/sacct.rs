//! Slurm's accounting, as sacct prints it.

use super::*;

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
    assert_eq!((0..3).map(|row| found.workload.nodes(row)).collect::<Vec<_>>(), [Some(1), None, Some(1)]);
    let requested = ImportOptions { processors: Processors::Requested, ..ImportOptions::default() };
    let requested = import(&bytes(SACCT), &requested).unwrap();
    assert_eq!(rows(&requested)[0], "10 20 60 1800 ann phys cpu cpu=1 mem=1073741824");
    // Both are kept where they differ: the second job was allocated a GPU and memory that it did not request.
    let apart: Vec<bool> = (0..3).map(|row| found.workload.requested_amounts(row).is_some()).collect();
    assert_eq!(apart, [true, true, false]);
    assert_eq!(Processors::Requested.of(found.workload.clone()).unwrap(), requested.workload);
    let malformed = SACCT.replace("cpu=1,mem=1G", "cpu=one");
    assert!(read(Format::Sacct, &malformed).workload.requested_amounts(0).is_none());
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
fn a_state_that_is_not_slurms_is_counted_and_its_end_unknown() {
    let row = |id: u32, state: &str| {
        format!("{id}|a|{state}|1970-01-01T00:00:10|1970-01-01T00:00:20|1970-01-01T00:00:50|cpu=1\n")
    };
    let states = ["COMPLETED", "FROBNICATED", "REQUEUED", "OUT_OF_ME+", "ODD"];
    let rows: String = (1..).zip(states).map(|(id, state)| row(id, state)).collect();
    let found = read(Format::Auto, &format!("JobID|User|State|Submit|Start|End|AllocTRES\n{rows}"));
    let ended: Vec<_> = (0..5).map(|row| found.workload.detail(Detail::Outcome, row)).collect();
    assert_eq!(ended, [Some("completed"), Some("unknown"), None, Some("failed"), Some("unknown")]);
    let summary = found.summary.to_string();
    let sentence = "2 jobs have a State that is none of Slurm's (\"FROBNICATED\"); how they ended is unknown.";
    assert!(summary.contains(sentence), "{summary}");
}

#[test]
fn whole_nodes_are_required_where_the_command_asks_for_them() {
    let row = |rest: &str| {
        format!("7|ann|COMPLETED|1970-01-01T00:00:10|1970-01-01T00:00:20|1970-01-01T00:01:20|cpu=4|{rest}\n")
    };
    let rows = ["ssd|sbatch --exclusive a.sh", "|sbatch --exclusive a.sh", "ssd|sbatch a.sh", "|sbatch a.sh"]
        .map(row)
        .concat();
    let found =
        read(Format::Auto, &format!("JobID|User|State|Submit|Start|End|AllocTRES|Constraints|SubmitLine\n{rows}"));
    let requires = (0..4).map(|row| found.workload.detail(Detail::Requires, row)).collect::<Vec<_>>();
    assert_eq!(requires, [Some("ssd,#excl"), Some("#excl"), Some("ssd"), None]);
}

/// Rows of a real 22.05.8, with fewer columns: ReqTRES has `node=1` where the command names no number of nodes.
#[test]
fn tasks_that_are_not_divided_evenly_are_known_by_requests_and_commands() {
    let row = |asked: &str, held: &str, rest: &str| {
        let times = "1970-01-01T00:00:10|1970-01-01T00:00:20|1970-01-01T00:01:20";
        format!("7|ann|COMPLETED|{times}|billing=10,{asked}|billing=10,{held}|{rest}\n")
    };
    let rows = [
        row("cpu=10,mem=100M,node=1", "cpu=10,node=3", "sbatch --wrap sleep 25 -t 5 -n 10"),
        row("cpu=10,mem=100M,node=1", "cpu=10,node=3", "sbatch -t 5 -n 5 -c 2 run.sh"),
        row("cpu=10,mem=100M,node=3", "cpu=10,node=3", "sbatch -t 5 -n 10 -N 3 run.sh"),
        row("cpu=10,mem=100M,node=1", "cpu=10,node=3", "sbatch run.sh"),
        row("cpu=9,mem=100M,node=1", "cpu=9,node=3", "sbatch run.sh"),
        row("cpu=10,node=1,gres/gpu=2", "cpu=10,node=3,gres/gpu=6", "sbatch -n 10 run.sh"),
    ];
    let found = read(
        Format::Auto,
        &format!("JobID|User|State|Submit|Start|End|ReqTRES|AllocTRES|SubmitLine\n{}", rows.concat()),
    );
    let requires = (0..6).map(|row| found.workload.detail(Detail::Requires, row)).collect::<Vec<_>>();
    assert_eq!(requires, [Some("#tasks=1"), Some("#tasks=2"), Some("#tasks-on-nodes=1"), Some("#tasks=1"), None, None]);
}

/// The columns of a site whose AccountingStorageTRES has gres/gpu and some of its types, and of one of Slurm 19.05.
#[test]
fn types_of_gpus_are_required_where_they_were_requested() {
    let times = "1970-01-01T00:00:10|1970-01-01T00:00:20|1970-01-01T00:01:20";
    let of = |columns: &str, rows: &[&str]| {
        let rows: String = rows.iter().map(|row| format!("7|ann|COMPLETED|{times}|{row}\n")).collect();
        let found = read(Format::Auto, &format!("JobID|User|State|Submit|Start|End|{columns}\n{rows}"));
        let words = (0..found.workload.len()).map(|row| found.workload.detail(Detail::Requires, row).unwrap_or("-"));
        (words.collect::<Vec<_>>().join(" "), found.summary.assumptions.join(" "))
    };
    let (words, notes) = of(
        "ReqTRES|AllocTRES|Constraints",
        &[
            "cpu=4,gres/gpu=2,gres/gpu:h100=2|cpu=4,gres/gpu=2,gres/gpu:h100=2|ssd",
            "cpu=4,gres/gpu=2|cpu=4,gres/gpu=2,gres/gpu:h100=2|ssd",
            "cpu=4,gres/gpu=2,gres/gpu:A100=1,gres/gpu:h100=1|cpu=4|",
            "cpu=4,gres/fpga=1|cpu=4|",
        ],
    );
    assert_eq!(words, "ssd,gpu:h100 ssd gpu:a100,gpu:h100 -");
    assert!(notes.contains("1 job has a generic resource other than GPUs in TRES"), "{notes}");
    assert!(!notes.contains("type of GPUs"), "{notes}");
    let (words, notes) = of("AllocTRES|ReqGRES", &["cpu=4,gres/gpu:v100=2|gpu:v100:2", "cpu=4,gres/gpu:v100=2|"]);
    assert_eq!(words, "gpu:v100 -");
    assert!(notes.contains("1 job has a type of GPUs in AllocTRES and no known request"), "{notes}");
    let (words, notes) = of("ReqTRES|SubmitLine", &["cpu=4,gres/gpu:a=1|sbatch x", "cpu=4,gres/gpu:a=1|sbatch -G 1 x"]);
    assert_eq!(words, "gpu:a -");
    assert!(notes.contains("1 job has a type of GPUs without gres/gpu in ReqTRES"), "{notes}");
}

#[test]
fn alternatives_of_features_may_hold_the_delimiter() {
    // As `sacct -P` of 22.05 prints them for `sbatch -C`.
    let of = |constraints: &str, more: (&str, &str)| {
        let times = "1970-01-01T00:00:10|1970-01-01T00:00:20|1970-01-01T00:01:20";
        let header = format!("JobID|User|State|Submit|Start|End|AllocTRES|Constraints|NodeList{}\n", more.0);
        format!("{header}1|ann|COMPLETED|{times}|cpu=1|{constraints}|n1{}\n", more.1)
    };
    let requires = |text: &str| {
        let found = read(Format::Sacct, text).workload;
        let id = found.detail_id(Detail::Requires, 0).unwrap();
        (found.details(Detail::Requires)[id as usize].clone(), found.detail_id(Detail::Machines, 0).is_some())
    };
    for constraints in ["old|new", "(ssd&new)|old|fast"] {
        let with_another =
            of(constraints, ("", "")).replace('|', ";").replace(&constraints.replace('|', ";"), constraints);
        assert_eq!(requires(&of(constraints, ("", ""))), requires(&with_another), "{constraints}");
    }
    // Beside free text nobody can tell whose the delimiter is.
    let text = of("old|new", ("|JobName", "|a"));
    let error = import(&bytes(text.as_str()), &options(Format::Sacct)).unwrap_err().to_string();
    assert!(error.contains("found 11 columns, expected 10") && error.contains("--delimiter"), "{error}");
}

#[test]
fn licences_are_those_of_their_column_or_of_tres() {
    let header = "JobID|User|State|Submit|Start|End|ReqTRES|AllocTRES|Licenses\n";
    let row = |id: u32, asked: &str, held: &str, licences: &str| {
        let times = "1970-01-01T00:00:10|1970-01-01T00:00:20|1970-01-01T00:01:20";
        format!("{id}|ann|COMPLETED|{times}|cpu=1{asked}|cpu=1{held}|{licences}\n")
    };
    let text = [
        header.to_string(),
        row(1, "", "", "matlab:2;fluent"),
        row(2, ",license/matlab=1", "", ""),
        row(3, ",license/a=9", ",license/matlab=3,license/b=1", ""),
        row(4, "", "", "a*1"),
        row(5, "", "", "(null)"),
    ];
    let found = read(Format::Sacct, &text.concat());
    let licences: Vec<Option<&str>> = (0..5).map(|row| found.workload.detail(Detail::Licences, row)).collect();
    assert_eq!(licences, [Some("matlab:2,fluent"), Some("matlab:1"), Some("matlab:3,b:1"), None, None]);
    let assumed = found.summary.assumptions.join(" ");
    assert!(assumed.contains("1 job has Licenses of another form than name:count,name:count"), "{assumed}");
}

#[test]
fn arrays_are_those_of_job_ids_with_the_throttle_of_the_submission_which_has_nice_values_too() {
    let header = "JobID|JobIDRaw|User|State|Submit|Start|End|AllocTRES|SubmitLine\n";
    let row = |id: &str, raw: u32, line: &str| {
        let times = "1970-01-01T00:00:10|1970-01-01T00:00:20|1970-01-01T00:01:20";
        format!("{id}|{raw}|ann|COMPLETED|{times}|cpu=1|{line}\n")
    };
    let text = [
        header.to_string(),
        row("100_0", 101, "sbatch --array=0-9%3 run.sh"),
        row("200_7", 201, "sbatch -a 7 run.sh"),
        row("300", 300, "sbatch --nice run.sh --array=0-9%3"),
    ];
    let found = read(Format::Sacct, &text.concat()).workload;
    let arrays: Vec<Option<&str>> = (0..3).map(|row| found.detail(Detail::Array, row)).collect();
    assert_eq!(arrays, [Some("100%3"), Some("200"), None]);
    let nice: Vec<Option<&str>> = (0..3).map(|row| found.detail(Detail::Nice, row)).collect();
    assert_eq!(nice, [None, None, Some("100")]);
}

#[test]
fn a_start_before_the_submission_is_counted() {
    let found = read(Format::Sacct, &SACCT.replace("1970-01-01T00:00:10|", "1970-01-01T00:00:25|"));
    assert!(rows(&found).contains(&"20 20 60 1800 ann phys cpu cpu=4 mem=2147483648 gpu=0".to_string()));
    let assumed = found.summary.assumptions.join(" ");
    assert!(
        assumed.contains("1 job started before it was submitted; its start is taken as its submission."),
        "{assumed}"
    );
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

#[test]
fn errors_in_slurm_accounting_name_the_place() {
    for (from, to, message) in [
        (
            "|Submit|",
            "|Sent|",
            "trace: found a header without Submit, expected the columns that define a task; produce it with: sacct -X -P --noconvert",
        ),
        ("JobID|User|Account", "12|ann|phys", "trace: found a header without JobID"),
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

#[test]
fn headers_can_be_given_or_recognised() {
    let (header, rest) = SACCT.split_once('\n').unwrap();
    let expected = rows(&read(Format::Auto, SACCT));
    // The order of the columns that this program asks for.
    let found = read(Format::Auto, rest);
    assert_eq!(rows(&found), expected);
    let assumed = found.summary.assumptions.join(" ");
    assert!(
        assumed.starts_with("There is no header; the columns have the shape of the columns that evenhand"),
        "{assumed}"
    );
    // Another order: named, or an error that says how.
    let moved = rest.lines().map(|l| format!("x|{l}\n")).collect::<String>();
    let unnamed = refused(&ImportOptions::default(), moved.clone());
    assert!(
        unnamed.starts_with("trace: found rows of 14 columns without a header") && unnamed.contains("--columns JobID,")
    );
    let names: Vec<String> = std::iter::once("Extra").chain(header.split('|')).map(str::to_string).collect();
    let named = ImportOptions { columns: Some(names), ..ImportOptions::default() };
    assert_eq!(rows(&import(&bytes(moved.clone()), &named).unwrap()), expected);
    let few = ImportOptions { columns: named.columns.map(|c| c[1..].to_vec()), ..ImportOptions::default() };
    let found = refused(&few, moved);
    assert!(
        found.starts_with("trace: found a first row of 14 columns, expected 13 columns, as --columns names"),
        "{found}"
    );
}

#[test]
fn users_may_be_absent_and_optional_fields_malformed() {
    let text = "JobID|NCPUS|Submit|Start|End|State\n1|2|1970-01-01T00:00:10|1970-01-01T00:00:20|1970-01-01T00:00:50|COMPLETED\n\
        2|0|1970-01-01T00:00:10|1970-01-01T00:00:50|1970-01-01T00:00:50|CANCELLED by 7\n";
    let found = read(Format::Auto, text);
    assert_eq!(rows(&found), ["10 20 30 - unknown - - cpu=2"]);
    assert_eq!(dropped(&found), [("never started", 1)]);
    let lenient = ImportOptions { lenient: true, ..ImportOptions::default() };
    let found = import(&bytes(SACCT.replacen("|60|30|", "|60|soon|", 1)), &lenient).unwrap();
    assert_eq!(rows(&found)[0], "10 20 60 - ann phys cpu cpu=4 mem=2147483648 gpu=0");
}

#[test]
fn times_in_epoch_seconds_or_with_an_offset_are_exact() {
    let local = "JobID|User|State|Submit|Eligible|Start|End|ElapsedRaw|AllocTRES
7|ann|COMPLETED|2026-01-05T07:00:00|2026-01-05T07:00:01|2026-01-05T07:00:10|2026-01-05T07:01:10|60|cpu=2
8|ann|RUNNING|2026-01-05T07:00:00|2026-01-05T07:00:01|2026-01-05T07:00:10|Unknown|60|cpu=2
9|ann|PENDING|2026-01-05T07:00:00|2026-01-05T07:00:01|Unknown|Unknown|0|
";
    let expected = read(Format::Auto, local);
    assert!(expected.summary.to_string().contains("1 job has times without a time zone"), "{}", expected.summary);
    let epoch = local
        .replace("2026-01-05T07:00:00", "1767596400")
        .replace("2026-01-05T07:00:01", "1767596401")
        .replace("2026-01-05T07:00:10", "1767596410")
        .replace("2026-01-05T07:01:10", "1767596470");
    let offset = |hour: &str, zone: &str| {
        let text = local.replace("T07:", &format!("T{hour}:"));
        ["00|", "01|", "10|"]
            .iter()
            .fold(text, |text, end| text.replace(&format!(":{end}"), &format!(":{}{zone}|", &end[..2])))
    };
    for text in [
        epoch.replace("Unknown", "0"),
        epoch,
        offset("08", "+0100"),
        offset("08", "+01:00"),
        offset("03", "-0400"),
        offset("07", "Z"),
    ] {
        let found = read(Format::Auto, &text);
        assert_eq!((&found.workload, dropped(&found)), (&expected.workload, dropped(&expected)), "{text}");
        assert!(!found.summary.to_string().contains("time zone"), "{}", found.summary);
    }
    // Without a header, too.
    let columns = "7|ann|phys|cpu|normal|COMPLETED|1767596400|1767596410|1767596470|60|30|cpu=1|cpu=1\n";
    assert_eq!(rows(&read(Format::Auto, columns)), ["1767596400 1767596410 60 1800 ann phys cpu cpu=1"]);
    // What SLURM_TIME_FORMAT=relative prints.
    for relative in ["12:29:47", "Ystday 12:29", "Mon 12:29", "5 Jan", "Today"] {
        let found = refused(&options(Format::Sacct), local.replacen("2026-01-05T07:00:10", relative, 1));
        assert!(found.contains(":2:") && found.contains(&format!("{relative:?}")), "{found}");
        assert!(found.contains("unset SLURM_TIME_FORMAT") && found.contains("SLURM_TIME_FORMAT=%s"), "{found}");
    }
    for bad in ["2026-01-05T07:00:10 CET", "2026-01-05", "2026-01-05T07:00:10+1", "99999999999999"] {
        let found = refused(&options(Format::Sacct), local.replacen("2026-01-05T07:00:10", bad, 1));
        assert!(found.contains(&format!("{bad:?}")) && !found.contains("SLURM_TIME_FORMAT"), "{found}");
    }
}
