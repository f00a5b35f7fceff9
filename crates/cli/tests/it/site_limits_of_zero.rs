//! Limits of 0, which hold all jobs, as in Slurm.

use crate::test_folder::TestFolder;

const CONF: &str = "ClusterName=lab\nAccountingStorageEnforce=limits,qos\nSelectType=select/cons_tres\n\
    NodeName=n[1-2] CPUs=8 RealMemory=1000\nPartitionName=main Nodes=n[1-2] Default=YES MaxTime=1-0\n";
const DUMP: &str = "Cluster - 'lab':Fairshare=1\nParent - 'root'\nAccount - 'physics':Fairshare=1\n\
    Account - 'closed':Fairshare=1:GrpJobs=0\nParent - 'physics'\nUser - 'ann':Fairshare=1\n\
    User - 'bob':Fairshare=1:MaxSubmitJobs=0\nUser - 'dan':Fairshare=1:MaxJobs=-1\nParent - 'closed'\n\
    User - 'cat':Fairshare=1\n";
const QOS: &str = "Name|Priority|GrpTRES|MaxJobsPU\nnormal|0||\nstopped|0|cpu=0|\nnone|0||0\n";

/// A row of sacct: a job of a minute.
fn row(id: u32, user: &str, account: &str, qos: &str) -> String {
    format!(
        "{id}|{user}|{account}|main|{qos}|COMPLETED|2026-01-05T08:00:0{id}|2026-01-05T08:01:00|2026-01-05T08:02:00|60|20|1|\
         cpu=1,node=1|cpu=1,node=1\n"
    )
}

#[test]
fn limits_of_zero_hold_all_their_jobs_and_the_study_names_the_limit_and_the_remedy() {
    let folder = TestFolder::with("slurm.conf", CONF);
    folder.write("lab.cfg", DUMP);
    folder.write("qos.txt", QOS);
    let import =
        ["site", "import", "--slurm-conf", "slurm.conf", "--sacctmgr-dump", "lab.cfg", "--qos", "qos.txt", "-o", "lab"];
    let output = folder.run(&import).assert_succeeds();
    for limit in ["GrpJobs", "MaxSubmit", "MaxJobs", "GrpTRES"] {
        assert!(!output.stdout.contains(limit), "{limit} is followed: {}", output.stdout);
    }
    let cluster = folder.read("lab/cluster.toml");
    for text in ["max_jobs = 0", "max_submitted = 0", "max = { cpu = 0 }"] {
        assert!(cluster.contains(text), "{text}: {cluster}");
    }
    assert!(!cluster.contains("-1") && !cluster.contains("dan"), "-1 is no limit: {cluster}");
    let header =
        "JobIDRaw|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|ReqTRES|AllocTRES\n";
    let rows = [
        row(1, "ann", "physics", "normal"),
        row(2, "bob", "physics", "normal"),
        row(3, "cat", "closed", "normal"),
        row(4, "ann", "physics", "stopped"),
        row(5, "ann", "physics", "none"),
        row(6, "dan", "physics", "normal"),
    ];
    folder.write("sacct.txt", [header, &rows.concat()].concat());
    for scheduler in ["slurm", "easy", "strict"] {
        let study = ["study", "sacct.txt", "--site", "lab", "--policy", "fifo", "--repeat", "1", "--out", scheduler];
        let output = folder.run(&[&study[..], &["--scheduler", scheduler]].concat()).assert_succeeds();
        let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        let remedy = "raise it, or leave it out if it was not there when the jobs ran";
        for held in [
            "held by max_submitted = 0 of the limit \"bob in physics each\"",
            "held by max_jobs = 0 of the limit \"closed\"",
            "held by max = { cpu = 0 } of the limit \"QOS stopped\"",
            "held by max_jobs = 0 of the limit \"QOS none, a user\"",
        ] {
            let line = format!("refused: 1 job of 1 user: {held}: {remedy}");
            assert!(text.contains(&line), "{scheduler}: {line}\n{text}");
        }
        let summary = folder.json(&format!("{scheduler}/summary.json"));
        let run = summary["runs"].as_array().unwrap().iter().find(|run| run["policy"] == "fifo").unwrap();
        let totals = |name: &str| run["totals"][name].as_u64();
        assert_eq!((totals("rejected"), totals("started"), totals("completed")), (Some(4), Some(2), Some(2)));
        assert_eq!(run["jobs"]["refused"].as_array().map(Vec::len), Some(4), "{run}");
    }
}
