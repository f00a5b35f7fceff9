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
        "  SchedulerParameters: bf_window=4320,bf_interval=60; EASY backfilling at every event, or strict",
        "    order, but under --scheduler slurm",
        "  PartitionName AllowAccounts: gpu=physics; every account may use it",
        "  QOS MaxTRESPU: long=cpu=8; only the QOS of a partition has limits",
        "  association GrpTRES: physics=cpu=8; it limits no job",
    ] {
        assert!(output.stdout.lines().any(|found| found == line), "{line}\n{}", output.stdout);
    }
    let unknown = "slurm.conf:9:18: PrioritWeightQOS is no parameter of slurm.conf(5) and is ignored";
    assert!(output.stderr.contains(unknown), "{}", output.stderr);
    let read = |name: &str| folder.read(&format!("lab/{name}"));
    let settings = read("policy-settings.toml");
    assert!(
        settings.contains("max_age = \"1209600s\"") && settings.contains("age = 1000, fairshare = 10000"),
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
        ("", "found no limit, expected max, max_jobs, max_job or max_wall"),
        ("queues = [\"absent\"]\nmax_jobs = 1\n", "no queue has the name \"absent\""),
        ("max = { gpus = 8 }\n", "no machine has \"gpus\""),
        ("max_jobs = 0\n", "a whole number, at least 1"),
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
    let note = "2 of 3 jobs became eligible after their submission";
    assert!(notes.contains(note), "{notes}");
    // The first at a pass over the whole queue, the others at the first whole second after they became eligible.
    assert_eq!(rows, [(0.0, 0.0), (308.0, 1.0), (909.0, 1.0)]);
    let (rows, notes) = starts(&["--scheduler", "slurm", "--release", "submit"]);
    assert!(!notes.contains(note) && rows[2].0 < 60.0, "{rows:?} {notes}");
    let (rows, _) = starts(&["--scheduler", "easy", "--release", "eligible"]);
    assert_eq!(rows, [(0.0, 0.0), (307.0, 0.0), (908.0, 0.0)]);
    let (rows, _) = starts(&["--scheduler", "easy"]);
    assert_eq!(rows[1..], [(1.0, 0.0), (2.0, 0.0)]);
}
