//! What a site's files state of memory, GPUs and other resources, and how a study follows it.

use crate::test_folder::TestFolder;

const NODES: &str = "NodeName=n[1-2] CPUs=4\nPartitionName=main Nodes=ALL Default=YES\n";

/// Two jobs that ask for more memory than the 1 MB that slurm.conf(5) takes where RealMemory is not set.
const SACCT: &str = "JobID|User|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocTRES\n\
    1|ann|main|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:10|2026-01-01T00:01:10|60|5|1|cpu=4,mem=8G,node=1\n\
    2|bob|main|COMPLETED|2026-01-01T00:00:05|2026-01-01T00:00:20|2026-01-01T00:01:20|60|5|1|cpu=4,mem=8G,node=1\n";

const IMPORT: [&str; 6] = ["site", "import", "--slurm-conf", "slurm.conf", "-o", "lab"];

fn site(settings: &str) -> TestFolder {
    let folder = TestFolder::with("slurm.conf", format!("ClusterName=lab\n{settings}{NODES}"));
    folder.write("sacct.txt", SACCT);
    folder
}

#[test]
fn memory_holds_no_job_back_where_slurm_does_not_count_it() {
    for (settings, value) in [
        ("SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n", "CR_Core (slurm.conf:3:22)"),
        ("SelectType=select/linear\n", "not set"),
    ] {
        let folder = site(settings);
        let output = folder.run(&IMPORT).assert_succeeds();
        let line = format!("  SelectTypeParameters: {value}; Slurm does not count memory: a study");
        assert!(output.stdout.replace("\n    ", " ").contains(&line), "{}", output.stdout);
        assert!(output.stdout.lines().all(|line| line.chars().count() <= 100), "{}", output.stdout);
        for scheduler in ["slurm", "easy"] {
            let study = ["study", "sacct.txt", "--site", "lab", "--scheduler", scheduler, "--policy", "fifo"];
            let output = folder.run(&[&study[..], &["--repeat", "1", "--out", scheduler]].concat()).assert_succeeds();
            assert!(output.stderr.contains("This Slurm does not count memory"), "{}", output.stderr);
            assert!(!output.stderr.contains("so much mem"), "{}", output.stderr);
            let summary = folder.json(&format!("{scheduler}/summary.json"));
            assert!(!summary.to_string().contains("\"mem\""), "{summary}");
        }
    }
    let folder = site("SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\n");
    let output = folder.run(&IMPORT).assert_succeeds();
    assert!(!output.stdout.contains("count memory"), "{}", output.stdout);
    let study = ["study", "sacct.txt", "--site", "lab", "--scheduler", "slurm", "--policy", "fifo", "--out", "slurm"];
    let output = folder.run(&study);
    assert!(!output.stderr.contains("This Slurm does not count memory"), "{}", output.stderr);
}

#[test]
fn generic_resources_that_are_not_followed_are_listed() {
    let folder = TestFolder::with(
        "slurm.conf",
        "ClusterName=lab\nGresTypes=gpu,fpga\nNodeName=g1 CPUs=4 Gres=gpu:a100:1\nNodeName=g2 CPUs=4 Gres=gpu:h100:1,fpga:1\n\
         NodeName=g3 CPUs=4 Gres=gpu:1g.5gb:4,gpu:3g.20gb:1\nPartitionName=main Nodes=ALL\n",
    );
    let output = folder.run(&IMPORT).assert_succeeds().stdout.replace("\n    ", " ");
    for line in [
        "NodeName Gres: g3=gpu:1g.5gb:4,gpu:3g.20gb:1 (slurm.conf:5:25); jobs that name a type run on nodes that have it, but",
        "NodeName Gres: g2=gpu:h100:1,fpga:1 (slurm.conf:4:25); of generic resources only GPUs are counted",
    ] {
        assert!(output.contains(line), "{line}\n{output}");
    }
    assert_eq!(output.matches("NodeName Gres").count(), 2, "{output}");
    let sacct = SACCT.replacen("cpu=4,mem=8G,node=1", "cpu=4,gres/fpga=1", 1).replace("\n2|", "\n2+0|");
    folder.write("log.txt", sacct);
    let output = folder.run(&["workload", "import", "log.txt", "-o", "log.parquet"]).assert_succeeds();
    let text = format!("{}{}", output.stdout, output.stderr).replace("\n  ", " ");
    assert!(text.contains("1 job has a generic resource other than GPUs in TRES (gres/fpga)"), "{text}");
    assert!(text.contains("1 job has the id of a component of a heterogeneous job"), "{text}");
}

/// Two nodes of each type. Each job takes all GPUs of a node for 100 s.
#[test]
fn jobs_wait_for_gpus_of_the_type_that_they_requested() {
    let folder = TestFolder::with(
        "slurm.conf",
        "ClusterName=lab\nGresTypes=gpu\nNodeName=a[1-2] CPUs=8 Gres=gpu:a100:4\nNodeName=h[1-2] CPUs=8 Gres=gpu:H100:4 Weight=2\n\
         PartitionName=main Nodes=ALL Default=YES MaxTime=1:00:00\n",
    );
    folder.run(&IMPORT).assert_succeeds();
    let cluster = folder.read("lab/cluster.toml");
    assert!(cluster.contains(r#"properties = ["gpu:a100", "main"]"#), "{cluster}");
    assert!(cluster.contains(r#"properties = ["gpu:h100", "main"]"#), "{cluster}");
    let row = |id: u32, asked: &str| {
        let times = "2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T00:01:40|100|5";
        let held = "cpu=2,node=1,gres/gpu=4,gres/gpu:h100=4";
        format!("{id}|u{id}|main|COMPLETED|{times}|cpu=2,node=1,gres/gpu=4{asked}|{held}\n")
    };
    let header = "JobID|User|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|AllocTRES\n";
    // Three jobs request H100s, of which there are enough for two, one A100s, and two any GPUs. All were allocated H100s.
    let asked = [",gres/gpu:h100=4", ",gres/gpu:h100=4", ",gres/gpu:h100=4", ",gres/gpu:a100=4", "", ""];
    let rows: String = (1..).zip(asked).map(|(id, asked)| row(id, asked)).collect();
    folder.write("sacct.txt", format!("{header}{rows}"));
    let waits = |log: &str, scheduler: &str| -> Vec<f64> {
        let study = ["study", log, "--site", "lab", "--scheduler", scheduler, "--policy", "fifo", "--repeat", "1"];
        let output = folder.run(&[&study[..], &["--tasks-csv", "--out", scheduler]].concat()).assert_succeeds();
        assert!(!output.stderr.contains("requirements are ignored"), "{}", output.stderr);
        let table = folder.read(&format!("{scheduler}/tasks-fifo-cluster.csv"));
        let mut rows = table.lines();
        let wait = rows.next().and_then(|header| header.split(',').position(|name| name == "wait_s")).unwrap();
        rows.map(|row| row.split(',').nth(wait).and_then(|text| text.parse().ok()).unwrap()).collect()
    };
    // The third waits while all A100s are free, and at the head of a strict queue it holds up all others.
    assert_eq!(waits("sacct.txt", "strict"), [0.0, 0.0, 100.0, 100.0, 100.0, 100.0]);
    for scheduler in ["easy", "conservative"] {
        assert_eq!(waits("sacct.txt", scheduler), [0.0, 0.0, 100.0, 0.0, 0.0, 100.0], "{scheduler}");
    }
    let slurm = waits("sacct.txt", "slurm");
    assert!(slurm[2] >= 100.0 && slurm[3] < 60.0 && slurm[4] < 60.0 && slurm[5] >= 100.0, "{slurm:?}");
    // Without types in the requests any four jobs start at once.
    folder.write("untyped.txt", format!("{header}{}", (1..7).map(|id| row(id, "")).collect::<String>()));
    assert_eq!(waits("untyped.txt", "easy"), [0.0, 0.0, 0.0, 0.0, 100.0, 100.0]);
    // A type that no node has is reported.
    folder.write("other.txt", format!("{header}{}", row(1, ",gres/gpu:b200=4")));
    let study = ["study", "other.txt", "--site", "lab", "--scheduler", "slurm", "--policy", "fifo", "--out", "other"];
    let output = folder.run(&study).assert_succeeds();
    assert!(output.stderr.contains("1 job requires a property that no machine"), "{}", output.stderr);
}

#[test]
fn texts_of_scontrol_are_listed_as_slurm_conf_is() {
    let folder = TestFolder::new();
    folder
        .write("nodes.txt", "NodeName=n1 CPUTot=4 RealMemory=1000 CoreSpecCount=1 State=IDLE+DRAIN Partitions=main\n");
    folder.write("parts.txt", "PartitionName=main AllowAccounts=physics QoS=pq MaxNodes=1 State=INACTIVE Nodes=n1\n");
    let import = ["site", "import", "--nodes", "nodes.txt", "--partitions", "parts.txt", "-o", "lab"];
    let output = folder.run(&import).assert_succeeds().stdout.replace("\n    ", " ");
    for line in [
        "NodeName CoreSpecCount: n1=1 (nodes.txt:1:52); all processors are for jobs",
        "NodeName State: n1=IDLE+DRAIN (nodes.txt:1:60); the node takes jobs all the time",
        "PartitionName AllowAccounts: main=physics (parts.txt:1:34); every account may use it",
        "PartitionName MaxNodes: main=1 (parts.txt:1:58); jobs may use any number of machines",
        "PartitionName QOS: main=pq (parts.txt:1:46); its limits are in no file of --qos",
        "PartitionName State: main=INACTIVE (parts.txt:1:66); it takes jobs",
    ] {
        assert!(output.contains(line), "{line}\n{output}");
    }
}

#[test]
fn a_slurm_conf_in_the_place_of_machines_is_recognised() {
    let folder = site("");
    let study = ["study", "sacct.txt", "--capacity", "slurm.conf", "--out", "r"];
    let words = "slurm.conf:1:1: found Slurm's configuration or a list of its nodes, expected a file with [pool] or [[machines]]";
    folder.run(&study).assert_fails(2, &[words, "evenhand site import --slurm-conf slurm.conf -o SITE"]);
}
