//! `evenhand site`

use crate::test_folder::{SWF, TestFolder};

const CONF: &str = "ClusterName=lab\nSchedulerType=sched/backfill\nSchedulerParameters=bf_window=4320,\\\nbf_interval=60\n\
    PriorityType=priority/multifactor\nPriorityMaxAge=14-0\nPriorityWeightAge=1000\nPriorityWeightFairshare=10000\n\
    PrioritWeightQOS=5\ninclude nodes.conf\nPartitionName=main Nodes=n[1-3] Default=YES MaxTime=1-0\n\
    PartitionName=gpu Nodes=g1 PriorityTier=2 PriorityJobFactor=3 AllowAccounts=physics\n";
const NODES: &str =
    "NodeName=n[1-3] Sockets=2 CoresPerSocket=4 RealMemory=1000\nNodeName=g1 CPUs=4 RealMemory=2000 Gres=gpu:2\n";
const DUMP: &str = "Cluster - 'lab':Fairshare=1\nParent - 'root'\nAccount - 'physics':Fairshare=10:GrpTRES=cpu=8\n\
    Parent - 'physics'\nUser - 'user1':DefaultAccount='physics':Fairshare=3\n";
const QOS: &str = "Name|Priority|MaxTRESPU|\nnormal|0||\nlong|0|cpu=8|\n";

/// One run under Slurm's scheduler.
const STUDY: [&str; 12] =
    ["study", "sacct.txt", "--site", "lab", "--scheduler", "slurm", "--policy", "fifo", "--repeat", "1", "--out", "r"];

fn folder() -> TestFolder {
    let folder = TestFolder::with("slurm.conf", CONF);
    for (name, text) in [("nodes.conf", NODES), ("lab.cfg", DUMP), ("qos.txt", QOS), ("log.swf", SWF)] {
        folder.write(name, text);
    }
    folder
}

#[test]
fn a_site_is_read_from_its_files_and_replayed_on() {
    let folder = folder();
    let import =
        ["site", "import", "--slurm-conf", "slurm.conf", "--sacctmgr-dump", "lab.cfg", "--qos", "qos.txt", "-o", "lab"];
    let output = folder.run(&import).assert_succeeds();
    for line in [
        "  SchedulerParameters: bf_window=4320,bf_interval=60 (slurm.conf:3:21); used only by --scheduler",
        "    slurm; other schedulers backfill at every event or keep strict order",
        "  PartitionName AllowAccounts: gpu=physics (slurm.conf:12:77); every account may use it",
        "  QOS MaxTRESPU: long=cpu=8 (qos.txt:3); it limits no job",
        "  association GrpTRES: physics=cpu=8 (lab.cfg:3); it limits no job",
    ] {
        assert!(output.stdout.lines().any(|found| found == line), "{line}\n{}", output.stdout);
    }
    let unknown = "slurm.conf:9:18: PrioritWeightQOS is no parameter of slurm.conf(5) and is ignored";
    assert!(output.stderr.contains(unknown), "{}", output.stderr);
    let read = |name: &str| folder.read(&format!("lab/{name}"));
    let settings = read("policy-settings.toml");
    assert!(
        settings.contains("max_age = \"1209600s\"")
            && settings.contains("age = 1000, association = 0, fairshare = 10000"),
        "{settings}"
    );
    assert!(settings.contains("\"main\" = 1, \"gpu\" = 3"), "{settings}");
    assert!(read("cluster.toml").contains("max_wall = \"1d\""), "{}", read("cluster.toml"));
    assert!(read("accounts.toml").contains("shares = 10"));
    let study = ["study", "log.swf", "--site", "lab", "--policy", "multifactor,sdrf", "--out", "report"];
    let output = folder.run(&study).assert_succeeds();
    assert!(output.stdout.contains("n[1-3]"), "{}", output.stdout);
    assert_eq!(folder.json("report/summary.json")["runs"][0]["policy"], "multifactor");
    folder.run(&["study", "log.swf", "--site", "absent"]).assert_fails(2, &["--site: absent has no cluster.toml"]);
}

#[test]
fn limits_of_associations_hold_jobs_back_where_slurm_enforces_them() {
    let folder = folder();
    folder.write("slurm.conf", CONF.replace("PriorityType", "AccountingStorageEnforce=limits,qos\nPriorityType"));
    let import = ["site", "import", "--slurm-conf", "slurm.conf", "--sacctmgr-dump", "lab.cfg", "-o", "lab"];
    let output = folder.run(&import).assert_succeeds();
    assert!(!output.stdout.contains("association GrpTRES"), "{}", output.stdout);
    let cluster = folder.read("lab/cluster.toml");
    let limit = "[[limits]]\nname = \"physics\"\naccounts = [\"physics\"]\nmax = { cpu = 8 }\n";
    assert!(cluster.contains(limit), "{cluster}");
    // The mistakes that a person makes who writes such limits.
    let wrong = |with: &str| folder.write("wrong.toml", cluster.replace("max = { cpu = 8 }\n", with));
    let study = ["study", "log.swf", "--capacity", "wrong.toml", "--out", "wrong"];
    for (with, problem) in [
        ("", "found no limit, expected max, max_jobs, max_submitted, max_job or max_wall"),
        ("queues = [\"absent\"]\nmax_jobs = 1\n", "no queue has the name \"absent\""),
        ("max = { gpus = 8 }\n", "no machine has \"gpus\""),
        ("max_jobs = -1\n", "a whole number, at least 0 (0 holds all the jobs; without a limit, leave the key out)"),
        (
            "max_submitted = -1\n",
            "a whole number, at least 0 (0 holds all the jobs; without a limit, leave the key out)",
        ),
        ("max = { cpu = -1 }\n", "expected"),
    ] {
        wrong(with);
        folder.run(&study).assert_fails(2, &["wrong.toml:", problem]);
    }
}

#[test]
fn slurm_s_scheduler_replays_a_log_under_the_site_s_own_rule() {
    let folder = folder();
    let import = ["site", "import", "--slurm-conf", "slurm.conf", "-o", "lab"];
    let output = folder.run(&import).assert_succeeds();
    assert!(output.stdout.contains("--site lab --policy logged,site,sdrf --scheduler slurm"), "{}", output.stdout);
    let study = ["study", "log.swf", "--site", "lab", "--scheduler", "slurm", "--out", "report"];
    let output = folder.run(&study).assert_succeeds();
    assert!(output.stdout.contains("by the main scheduler"), "{}", output.stdout);
    assert!(output.stderr.contains("does not set SelectType"), "{}", output.stderr);
    let summary = folder.json("report/summary.json");
    let run = summary["runs"].as_array().unwrap().iter().find(|run| run["policy"] == "site").unwrap();
    assert_eq!(run["scheduler"], "slurm");
    let by = &run["jobs"]["started_by"];
    let count = |name: &str| by[name].as_u64().unwrap();
    let started = count("submit") + count("main") + count("backfill");
    assert_eq!(Some(started), run["totals"]["started"].as_u64(), "{run}");
    assert!(started > 0 && run["jobs"]["ended_by_limit"].is_u64());

    folder.write("other.conf", "SelectType=select/linear\nSchedulerParameters=bf_intervall=3,bf_window=1\n");
    let with = |file, more: &'static [&str]| {
        let study = ["study", "log.swf", "--site", "lab", "--slurm-conf", file, "--scheduler", "slurm", "--out", "r"];
        folder.run(&[&study[..], more].concat())
    };
    let output = with("other.conf", &["--policy", "fifo"]).assert_succeeds();
    assert!(output.stderr.contains("other.conf:2:21: bf_intervall is no option"), "{}", output.stderr);
    folder.write("bad.conf", "SchedulerParameters=bf_window=day\n");
    with("bad.conf", &[]).assert_fails(2, &["bad.conf:1:21: found \"bf_window=day\", expected"]);
    with("other.conf", &["--placement", "best-fit"]).assert_fails(2, &["--placement: Slurm chooses nodes"]);
    let pool = ["study", "log.swf", "--capacity", "cpu=8", "--scheduler", "slurm"];
    folder.run(&pool).assert_fails(2, &["--scheduler slurm: it plans whole nodes"]);
}

#[test]
fn what_is_not_modelled_is_also_for_programs() {
    let folder = folder();
    let import = ["site", "import", "--slurm-conf", "slurm.conf", "-o", "lab", "--format", "json"];
    let record = folder.run(&import).assert_succeeds().json();
    assert_eq!((record["machines"].as_u64(), record["partitions"].as_u64()), (Some(4), Some(2)));
    let names: Vec<&str> =
        record["not_modelled"].as_array().unwrap().iter().map(|n| n["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["SchedulerParameters", "PartitionName AllowAccounts"]);
}

#[test]
fn invalid_files_are_refused_with_their_place() {
    let folder = folder();
    let refused = |file: &str, text: &str| {
        folder.write(file, text);
        let output = folder.run(&["site", "import", "--slurm-conf", file, "-o", "lab"]);
        assert_eq!(output.status, 2, "{output:?}");
        output.stderr
    };
    let missing = refused("a.conf", "ClusterName=x\ninclude absent.conf\n");
    assert!(missing.contains("a.conf:2:9: cannot read absent.conf: "), "{missing}");
    let node = refused("b.conf", "NodeName=n1 CPUs=1\nPartitionName=p Nodes=n[1-2]\n");
    assert!(
        node.contains("b.conf:2:23: found \"n[1-2]\", expected defined nodes; no NodeName or NodeSet defines n2"),
        "{node}"
    );
    let nothing = refused("c.conf", "ClusterName=x\n");
    assert!(nothing.contains("no machine: give --slurm-conf with nodes and partitions"), "{nothing}");
    let dump =
        folder.run(&["site", "import", "--slurm-conf", "slurm.conf", "--sacctmgr-dump", "slurm.conf", "-o", "lab"]);
    assert_eq!(dump.status, 2);
    assert!(
        dump.stderr.contains("slurm.conf:1:1: found \"ClusterName=lab\", expected a line such as Account"),
        "{}",
        dump.stderr
    );
}

/// sacct's rows of three jobs on one node; the second depends on the first, the third was held until second 900.
const DEPENDENT: &str = "JobIDRaw|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NCPUS|ReqTRES|AllocTRES\n\
    1|user1|physics|main|COMPLETED|2026-01-05T08:00:00|2026-01-05T08:00:00|2026-01-05T08:00:00|2026-01-05T08:05:00|300|10|1|8|cpu=8,node=1|cpu=8,node=1\n\
    2|user1|physics|main|COMPLETED|2026-01-05T08:00:01|2026-01-05T08:05:07|2026-01-05T08:05:09|2026-01-05T08:06:02|60|10|1|1|cpu=1,node=1|cpu=1,node=1\n\
    3|user2|physics|main|COMPLETED|2026-01-05T08:00:02|2026-01-05T08:15:08|2026-01-05T08:15:11|2026-01-05T08:16:03|60|10|1|1|cpu=1,node=1|cpu=1,node=1\n";

#[test]
fn jobs_are_not_considered_before_they_were_eligible() {
    let folder = folder();
    folder.write("sacct.txt", DEPENDENT);
    folder.run(&["site", "import", "--slurm-conf", "slurm.conf", "-o", "lab"]).assert_succeeds();
    let starts = |more: &[&str]| {
        let words =
            ["study", "sacct.txt", "--site", "lab", "--policy", "fifo", "--tasks-csv", "--repeat", "1", "--out", "r"];
        let output = folder.run(&[&words[..], more].concat()).assert_succeeds();
        let file = folder.files().into_iter().find(|path| path.to_string_lossy().starts_with("r/tasks-fifo"));
        let text = folder.read(&file.unwrap().to_string_lossy());
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        let of = |line: &str, name: &str| {
            let at = header.iter().position(|h| *h == name).unwrap();
            line.split(',').nth(at).unwrap().parse::<f64>().unwrap()
        };
        let first = text.lines().nth(1).map(|line| of(line, "submit_s")).unwrap();
        let rows: Vec<(f64, f64)> = lines.map(|line| (of(line, "start_s") - first, of(line, "wait_s"))).collect();
        std::fs::remove_dir_all(folder.path("r")).unwrap();
        (rows, output.stderr)
    };
    let (rows, notes) = starts(&["--scheduler", "slurm"]);
    let note = "2 of 3 jobs became eligible after the submission";
    assert!(notes.contains(note), "{notes}");
    // Each at the first whole second after it became eligible.
    assert_eq!(rows, [(1.0, 1.0), (308.0, 1.0), (909.0, 1.0)]);
    let (rows, notes) = starts(&["--scheduler", "slurm", "--release", "submit"]);
    assert!(!notes.contains(note) && rows[2].0 < 60.0, "{rows:?} {notes}");
    let (rows, _) = starts(&["--scheduler", "easy", "--release", "eligible"]);
    assert_eq!(rows, [(0.0, 0.0), (307.0, 0.0), (908.0, 0.0)]);
    let (rows, notes) = starts(&["--scheduler", "easy"]);
    assert_eq!(rows[1..], [(1.0, 0.0), (2.0, 0.0)]);
    // What was not asked for is stated.
    let words = notes.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "2 of 3 jobs became eligible after the submission (dependencies, holds, begin times); their waits count from the \
                submission. --release eligible counts from when they became eligible.";
    assert!(words.contains(note), "{notes}");
    let (_, notes) = starts(&["--scheduler", "easy", "--release", "submit"]);
    assert!(!notes.contains("became eligible"), "{notes}");
}

const RESERVATIONS: &str = "ReservationName=course StartTime=2026-01-05T08:10:00 EndTime=2026-01-05T08:20:00\n   Nodes=n[1-3],x9 Flags=SPEC_NODES\n\
    ReservationName=second StartTime=2026-01-05T08:15:00 EndTime=2026-01-05T08:16:00\n   Nodes=n1 Flags=SPEC_NODES\n";
const EVENTS: &str = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n\
    lab|n1|2026-01-05T07:00:00|2026-01-05T08:04:00|DOWN|power|root\nlab|n2|2026-01-05T07:00:00|2026-01-05T08:04:00|DRAIN|fan|root\n\
    lab|n3|2026-01-05T07:00:00|2026-01-05T08:04:00|DOWN|power|root\n";

/// Jobs of ten minutes' limit: one submitted while all nodes are down, one of another user whose limit reaches into the
/// reservation, and one of the reservation.
const AROUND: &str = "JobIDRaw|User|Account|Partition|Reservation|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|ReqTRES|AllocTRES\n\
    1|user1|physics|main||COMPLETED|2026-01-05T08:00:03|2026-01-05T08:04:01|2026-01-05T08:05:01|60|5|1|cpu=1,node=1|cpu=1,node=1\n\
    2|user2|physics|main||COMPLETED|2026-01-05T08:00:04|2026-01-05T08:20:01|2026-01-05T08:21:01|60|10|1|cpu=1,node=1|cpu=1,node=1\n\
    3|user2|physics|main|course|COMPLETED|2026-01-05T08:00:05|2026-01-05T08:10:01|2026-01-05T08:11:01|60|5|1|cpu=1,node=1|cpu=1,node=1\n";

#[test]
fn reservations_and_outages_close_nodes() {
    let folder = folder();
    folder.write("sacct.txt", AROUND);
    folder.write("reservations.txt", RESERVATIONS);
    folder.write("events.txt", EVENTS);
    let import = [
        "site",
        "import",
        "--slurm-conf",
        "slurm.conf",
        "--reservations",
        "reservations.txt",
        "--events",
        "events.txt",
        "-o",
        "lab",
    ];
    let output = folder.run(&import).assert_succeeds();
    let found = "Found: 2 reservations and 3 outages (down or drained), which --scheduler slurm follows.";
    assert!(output.stdout.contains(found), "{}", output.stdout);
    for note in [
        "reservations.txt:2: node x9 is not a machine of the site and is ignored.",
        "reservations.txt:4: the reservation second overlaps course of line 2 on n1",
    ] {
        assert!(output.stderr.contains(note), "{}", output.stderr);
    }
    let json = folder.run(&[&import[..], &["--format", "json"]].concat()).assert_succeeds().json();
    assert_eq!((&json["reservations"], &json["outages"]), (&2.into(), &3.into()));
    let study =
        ["study", "sacct.txt", "--site", "lab", "--policy", "fifo", "--tasks-csv", "--repeat", "1", "--out", "r"];
    folder.run(&[&study[..], &["--scheduler", "slurm"]].concat()).assert_succeeds();
    let waits = waits(&folder, "r/tasks-fifo");
    // To the end of the outages, the end of the reservation, and its begin: each is at a full minute, when a pass is.
    assert_eq!(waits, [237.0, 1196.0, 595.0]);
    let output = folder.run(&[&study[..], &["--scheduler", "easy"]].concat()).assert_succeeds();
    let note =
        "easy ignores the 2 reservations and the 3 outages of the cluster file; only --scheduler slurm follows them.";
    assert!(output.stderr.replace("\n       ", " ").contains(note), "{}", output.stderr);
    for (name, text, problem) in [
        (
            "reservations.txt",
            RESERVATIONS.replace("08:20:00", "08:10:00"),
            "reservations.txt:1:62: found \"2026-01-05T08:10:00\", expected a time after its start",
        ),
        ("events.txt", EVENTS.replace("08:04:00|DRAIN", "soon|DRAIN"), "events.txt:3:28: found "),
    ] {
        let before = folder.read(name);
        folder.write(name, text);
        folder.run(&import).assert_fails(2, &[problem]);
        folder.write(name, before);
    }
    folder.run(&[&import[..5], &["absent.txt", "-o", "lab"]].concat()).assert_fails(2, &["cannot read absent.txt"]);
}

#[test]
fn what_is_odd_in_a_site_s_files_is_reported_with_its_line() {
    let folder = folder();
    folder.write(
        "odd.conf",
        "SelectType=select/cons_tres\nPriorityType=priority/basic\nSchedulerParameters=bf_windw=10\n\
         NodeName=n[1-3] CPUs=4 Gress=gpu:1\nNodeName=lone CPUs=4\n\
         PartitionName=main Nodes=n[1-3] QOS=nosuch MaxTim=5\nPartitionName=main Nodes=ALL\n",
    );
    folder.write("qos.txt", "Name|Preempt\na|b\nb|a\nself|self\nx|nobody\n");
    let import = ["site", "import", "--slurm-conf", "odd.conf", "--qos", "qos.txt", "-o", "lab"];
    let notes = folder.run(&import).assert_succeeds().stderr.replace("\n       ", " ");
    for note in [
        "odd.conf:3:21: bf_windw is no option of SchedulerParameters in slurm.conf(5); the scheduler is simulated as if it were not there.",
        "odd.conf:4:30: Gress is no option of NodeName in slurm.conf(5) and is ignored; did you mean \"Gres\"?",
        "odd.conf:6:51: MaxTim is no option of PartitionName in slurm.conf(5) and is ignored; did you mean \"MaxTime\"?",
        "odd.conf:7:15: the partition main is defined before; this line is ignored, as by Slurm.",
        "odd.conf:5:10: no partition has lone.",
        "odd.conf:6:37: the partition main has the QOS nosuch, which qos.txt does not define; the partition has no limits of it.",
        "qos.txt:2: these QOS preempt each other in a cycle: a preempts b preempts a; the simulation ignores this preemption.",
        "qos.txt:4: these QOS preempt each other in a cycle: self preempts self",
        "qos.txt:5: the QOS x preempts nobody, which no line defines; the simulation ignores this preemption.",
    ] {
        assert!(notes.contains(note), "{note}\n{notes}");
    }
    // The log has a partition that the site does not have.
    folder.write(
        "sacct.txt",
        DEPENDENT
            .replace("|physics|main|COMPLETED|2026-01-05T08:00:02", "|physics|ghost|COMPLETED|2026-01-05T08:00:02"),
    );
    let notes = folder.run(&STUDY).assert_succeeds().stderr.replace("\n       ", " ");
    let note = "1 job is in a queue that the cluster file does not define (ghost); such jobs may use all machines, without limits.";
    assert!(notes.contains(note), "{notes}");
    let refused = |name: &str, text: &str, problem: &str| {
        folder.write(name, text);
        folder.run(&["site", "import", "--slurm-conf", name, "-o", "lab"]).assert_fails(2, &[problem]);
    };
    refused(
        "twice.conf",
        "NodeName=n[1-3]\nNodeName=n2\n",
        "twice.conf:2:10: found \"n2\", expected nodes with names of their own; n2 is defined at twice.conf:1:10",
    );
    refused(
        "value.conf",
        "NodeName=n1\nPartitionName=p Nodes=n1\nSchedulerParameters=bf_interval=x\n",
        "value.conf:3:21: found \"bf_interval=x\", expected bf_interval= and a number of seconds",
    );
}

#[test]
fn jobs_have_the_limits_of_the_qos_that_they_name() {
    let folder = folder();
    folder.write("slurm.conf", CONF.replace("PriorityType", "AccountingStorageEnforce=limits,qos\nPriorityType"));
    folder.write("qos.txt", "Name|Priority|MaxWall|MaxJobsPU|MaxSubmitPU\nnormal|0|||\nlong|5|1-00:00:00|1|1\n");
    let import = ["site", "import", "--slurm-conf", "slurm.conf", "--qos", "qos.txt", "-o", "lab"];
    let output = folder.run(&import).assert_succeeds();
    assert!(
        !output.stdout.contains("MaxSubmitPU")
            && !output.stdout.contains("MaxJobsPU")
            && !output.stdout.contains("MaxWall"),
        "{}",
        output.stdout
    );
    // Of the same user: two jobs of the QOS long, one at a time, and one of the QOS normal.
    let row = |id: u32, qos: &str, second: u32| {
        format!(
            "{id}|user1|physics|main|{qos}|COMPLETED|2026-01-05T08:00:0{second}|2026-01-05T08:01:00|2026-01-05T08:11:00|600|20|1|\
             cpu=1,node=1|cpu=1,node=1\n"
        )
    };
    let header =
        "JobIDRaw|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|ReqTRES|AllocTRES\n";
    folder.write("sacct.txt", [header, &row(1, "long", 1), &row(2, "long", 2), &row(3, "normal", 3)].concat());
    for (scheduler, expected) in [("slurm", [1.0, 601.0, 2.0]), ("easy", [0.0, 599.0, 0.0])] {
        let study = [
            "study",
            "sacct.txt",
            "--site",
            "lab",
            "--policy",
            "fifo",
            "--tasks-csv",
            "--repeat",
            "1",
            "--out",
            scheduler,
        ];
        let output = folder.run(&[&study[..], &["--scheduler", scheduler]].concat()).assert_succeeds();
        assert_eq!(waits(&folder, &format!("{scheduler}/tasks-fifo")), expected, "{scheduler}");
        // By the log's own times too the second job of the QOS was submitted while the first ran.
        let note = "1 of the log's jobs was submitted beyond a limit of submissions";
        assert!(output.stderr.replace("\n       ", " ").contains(note), "{}", output.stderr);
        let record: serde_json::Value =
            serde_json::from_str(&folder.read(&format!("{scheduler}/summary.json"))).unwrap();
        let run = record["runs"].as_array().unwrap().iter().find(|run| run["policy"] == "fifo").unwrap();
        let beyond = if scheduler == "slurm" { 1.into() } else { serde_json::Value::Null };
        assert_eq!(run["jobs"]["beyond_submit_limits"], beyond);
    }
}

#[test]
fn a_job_that_waits_for_machines_that_do_not_come_back_ends_the_run() {
    let folder = folder();
    let machines = "[[machines]]\nname = \"a\"\ncount = 1\ncpu = 16\n[[machines]]\nname = \"b\"\ncount = 1\ncpu = 16\n";
    let outage = "[[outages]]\nname = \"fire\"\nmachines = [\"b\"]\nfrom = 5\n";
    folder.write("cluster.toml", format!("{machines}{outage}"));
    let row = |id: u32, submit: u32, cpus: u32| {
        format!("{id} {submit} 0 100 {cpus} -1 -1 {cpus} 200 -1 1 {id} 1 1 1 1 -1 -1\n")
    };
    folder.write("log.swf", [row(1, 0, 16), row(2, 10, 32), row(3, 20, 16)].concat());
    let study = "study log.swf --capacity cluster.toml --scheduler slurm --policy fifo --repeat 1 --out out";
    let output = folder.run(&study.split(' ').collect::<Vec<&str>>()).assert_succeeds();
    let warning = "warning: 1 job never starts: nothing runs, and the machines that could take more do not come back";
    assert!(output.stdout.replace("\n  ", " ").contains(warning), "{}", output.stdout);
    let record: serde_json::Value = serde_json::from_str(&folder.read("out/summary.json")).unwrap();
    let run = record["runs"].as_array().unwrap().iter().find(|run| run["policy"] == "fifo").unwrap();
    assert_eq!((&run["jobs"]["never_started"], &run["totals"]["completed"]), (&1.into(), &2.into()));
}

#[test]
fn jobs_of_a_qos_preempt_those_of_another() {
    let folder = folder();
    folder.write(
        "slurm.conf",
        CONF.replace("PriorityType", "PreemptType=preempt/qos\nPreemptMode=REQUEUE\nPriorityType"),
    );
    folder.write("qos.txt", "Name|Priority|Preempt\nlow|0|\nurgent|9|low\n");
    let import = ["site", "import", "--slurm-conf", "slurm.conf", "--qos", "qos.txt", "-o", "lab"];
    let output = folder.run(&import).assert_succeeds();
    assert!(!output.stdout.contains("QOS Preempt"), "{}", output.stdout);
    // Three jobs fill the nodes; a fourth preempts the first.
    let row = |id: u32, user: &str, qos: &str, second: u32, run: u32| {
        format!(
            "{id}|{user}|physics|main|{qos}|COMPLETED|2026-01-05T08:00:{second:02}|2026-01-05T08:01:00|2026-01-05T08:11:00|{run}|20|1|\
             cpu=8,node=1|cpu=8,node=1\n"
        )
    };
    let header =
        "JobIDRaw|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|ReqTRES|AllocTRES\n";
    let low = (1..4).map(|id| row(id, "user1", "low", 1, 600)).collect::<String>();
    folder.write("sacct.txt", [header, &low, &row(4, "user2", "urgent", 50, 60)].concat());
    let output = folder.run(&[&STUDY[..], &["--tasks-csv"]].concat()).assert_succeeds();
    // It is requeued at 51 s, and can start again 121 s later; the pass after its end is 3 s after the one before.
    assert_eq!(waits(&folder, "r/tasks-fifo"), [172.0, 1.0, 1.0, 4.0]);
    let record = folder.json("r/summary.json");
    let run = record["runs"].as_array().unwrap().iter().find(|run| run["policy"] == "fifo").unwrap();
    assert_eq!(run["jobs"]["preempted"], serde_json::json!({ "requeued": 1, "cancelled": 0, "suspended": 0 }));
    assert!(output.stdout.contains("preempted: 1 requeued, 0 cancelled"), "{}", output.stdout);
}

/// The waits of a run's tasks, in the order of submission.
fn waits(folder: &TestFolder, prefix: &str) -> Vec<f64> {
    let file = folder.files().into_iter().find(|path| path.to_string_lossy().starts_with(prefix));
    let text = folder.read(&file.unwrap().to_string_lossy());
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    let at = lines.next().unwrap().iter().position(|h| *h == "wait_s").unwrap();
    lines.map(|row| row[at].parse::<f64>().unwrap()).collect()
}

/// Two jobs of one processor in each of two partitions of a node, all submitted at once.
const BESIDE: &str = "JobIDRaw|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|ReqTRES|AllocTRES\n\
    1|user1|physics|alone|COMPLETED|2026-01-05T08:00:00|2026-01-05T08:00:01|2026-01-05T08:10:01|600|10|1|cpu=1,node=1|cpu=1,node=1\n\
    2|user1|physics|alone|COMPLETED|2026-01-05T08:00:00|2026-01-05T08:00:01|2026-01-05T08:10:01|600|10|1|cpu=1,node=1|cpu=1,node=1\n\
    3|user2|physics|shared|COMPLETED|2026-01-05T08:00:00|2026-01-05T08:00:01|2026-01-05T08:10:01|600|10|1|cpu=1,node=1|cpu=1,node=1\n\
    4|user2|physics|shared|COMPLETED|2026-01-05T08:00:00|2026-01-05T08:00:01|2026-01-05T08:10:01|600|10|1|cpu=1,node=1|cpu=1,node=1\n";

#[test]
fn jobs_of_an_exclusive_partition_have_whole_nodes() {
    let conf = "ClusterName=lab\nSelectType=select/cons_tres\nNodeName=n[1-2] CPUs=4\n\
        PartitionName=alone Nodes=n1 OverSubscribe=EXCLUSIVE\nPartitionName=shared Nodes=n2\n";
    let folder = TestFolder::with("slurm.conf", conf);
    folder.write("sacct.txt", BESIDE);
    let output = folder.run(&["site", "import", "--slurm-conf", "slurm.conf", "-o", "lab"]).assert_succeeds();
    assert!(!output.stdout.contains("OverSubscribe"), "{}", output.stdout);
    let cluster = folder.read("lab/cluster.toml");
    assert_eq!(cluster.matches("whole_machines = true").count(), 1, "{cluster}");
    for scheduler in ["easy", "conservative", "slurm"] {
        let out = format!("with-{scheduler}");
        let study = ["study", "sacct.txt", "--site", "lab", "--policy", "fifo", "--tasks-csv", "--repeat", "1"];
        folder.run(&[&study[..], &["--scheduler", scheduler, "--out", &out]].concat()).assert_succeeds();
        let waits = waits(&folder, &format!("{out}/tasks-fifo"));
        let has_waited: Vec<bool> = waits.iter().map(|wait| *wait >= 600.0).collect();
        assert_eq!(has_waited, [false, true, false, false], "{scheduler}: {waits:?}");
    }
}

#[test]
fn files_of_an_earlier_import_are_not_followed_after_the_next_one() {
    let folder = folder();
    let first =
        ["site", "import", "--slurm-conf", "slurm.conf", "--sacctmgr-dump", "lab.cfg", "--qos", "qos.txt", "-o", "lab"];
    folder.run(&first).assert_succeeds();
    folder.write("nodes.txt", "NodeName=a1 CPUTot=4 RealMemory=1000 Partitions=main State=IDLE\n");
    folder.write("parts.txt", "PartitionName=main Nodes=a1 State=UP\n");
    let second = ["site", "import", "--nodes", "nodes.txt", "--partitions", "parts.txt", "-o", "lab"];
    let output = folder.run(&second).assert_succeeds().stdout;
    for name in ["accounts.toml", "policy-settings.toml", "slurm.conf"] {
        let line = format!("Moved aside, since it is of an earlier import: lab/{name} to lab/{name}.old");
        assert!(output.replace("\n  ", " ").contains(&line), "{line}\n{output}");
        assert!(!folder.path(&format!("lab/{name}")).exists(), "{name}");
        assert!(!folder.read(&format!("lab/{name}.old")).is_empty());
    }
    let again = folder.run(&[&second[..], &["--format", "json"]].concat()).assert_succeeds().json();
    assert_eq!(again["moved_aside"], serde_json::json!([]));
    // What no import wrote is not replaced, nor moved: neither what is in the way nor what a study follows.
    folder.write("lab/accounts.toml", "own = 1\n");
    folder.write("lab/policy-settings.toml.old", "own = 2\n");
    let output = folder.run(&second).assert_succeeds();
    assert!(
        output.stderr.contains("lab/accounts.toml: no import wrote it, so it stays; a study on this folder follows it")
    );
    folder.run(&first).assert_fails(2, &["lab/accounts.toml: found a file that evenhand did not write"]);
    std::fs::remove_file(folder.path("lab/accounts.toml")).unwrap();
    folder.run(&first).assert_succeeds();
    folder.run(&second).assert_succeeds();
    assert_eq!(folder.read("lab/policy-settings.toml.old"), "own = 2\n");
    assert!(folder.path("lab/policy-settings.toml.old2").exists());
    let cluster = folder.read("lab/cluster.toml").split_once('\n').unwrap().1.to_string();
    folder.write("lab/cluster.toml", &cluster);
    folder
        .run(&second)
        .assert_fails(2, &["lab/cluster.toml: found a file that evenhand did not write", "name another folder"]);
    assert_eq!(folder.read("lab/cluster.toml"), cluster);
    std::fs::remove_file(folder.path("lab/cluster.toml")).unwrap();
    // A slurm.conf that no import wrote may be the site's own.
    folder.write("lab/slurm.conf", CONF);
    let output = folder.run(&second).assert_succeeds();
    assert_eq!(folder.read("lab/slurm.conf"), CONF);
    assert!(output.stderr.contains("lab/slurm.conf: no import wrote it, so it stays"), "{}", output.stderr);
}

#[test]
fn states_of_nodes_and_partitions_of_root_are_listed_with_their_places() {
    let folder = folder();
    folder.write(
        "odd.conf",
        "ClusterName=lab\nSelectType=select/cons_tres\nPriorityType=priority/multifactor\nPriorityFlags=NO_NORMAL_QOS,INCR_ONLY\nPriorityWeightAssoc=5\n\
         NodeName=n1 CPUs=4 State=UNKNOWN\nNodeName=n2 CPUs=4 State=DRAIN\nNodeName=c[1-2] CPUs=4 State=CLOUD\n\
         PartitionName=main Nodes=ALL\nPartitionName=admin Nodes=n1 RootOnly=YES Hidden=YES\n",
    );
    let import = ["site", "import", "--slurm-conf", "odd.conf", "-o", "lab"];
    let output = folder.run(&import).assert_succeeds().stdout.replace("\n    ", " ");
    for line in [
        "NodeName State: n2=DRAIN (odd.conf:7:26), c[1-2]=CLOUD (odd.conf:8:30); the node takes jobs all the time",
        "PriorityFlags: INCR_ONLY (odd.conf:4:15); priorities also fall",
        "PriorityWeightAssoc: 5 (odd.conf:5:21); the factor is 0 for every job: no association of --assoc",
        "PartitionName RootOnly: admin=YES (odd.conf:10:39); every user may use it",
        "PartitionName Hidden: admin=YES (odd.conf:10:50); it takes jobs as other partitions do",
    ] {
        assert!(output.contains(line), "{line}\n{output}");
    }
    let json = folder.run(&[&import[..], &["--format", "json"]].concat()).assert_succeeds().json();
    let listed = json["not_modelled"].as_array().unwrap();
    let state = listed.iter().find(|one| one["name"] == "NodeName State").unwrap();
    assert_eq!(state["places"], serde_json::json!(["odd.conf:7:26", "odd.conf:8:30"]));
}
