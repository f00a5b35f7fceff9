//! `evenhand slurm when`, `why` and `plan` on the answers of a Slurm 22.05.8 with two nodes, in which jobs wait for what CPUs do
//! not show.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::test_folder::{ProgramOutput, TestFolder};

/// Stand-ins for Slurm's commands that print files. Of `squeue` the times are seconds from now.
struct Site(TestFolder);

/// Job 4 holds both GPUs and most memory of n1 for 2 h; jobs of the past used a twentieth of their limits. The others wait, 16 for a
/// certain node.
const QUEUE: &str = "\
JOBID|ARRAY_JOB_ID|ARRAY_TASK_ID|USER|ACCOUNT|PARTITION|STATE|REASON|SUBMIT_TIME|ELIGIBLE_TIME|START_TIME|TIME_LIMIT|PRIORITY|NODES|CPUS|TRES_ALLOC|NODELIST
4|4|N/A|ann|all|main|RUNNING|None|{-100}|{-100}|{-100}|2:00:00|1|1|1|cpu=1,mem=6000M,node=1,gres/gpu=2|n1
5|5|N/A|ann|all|main|PENDING|Resources|{-90}|{-90}|{7100}|1:00:00|9|1|1|cpu=1,mem=100M,node=1,gres/gpu=1|
6|6|N/A|ann|all|main|PENDING|Resources|{-90}|{-90}|N/A|30:00|8|2|2|cpu=2,mem=200M,node=2|
8|8|N/A|ann|all|main|PENDING|BeginTime|{-80}|{7200}|{7200}|30:00|7|1|1|cpu=1,mem=100M,node=1|
9|9|N/A|ann|all|express|PENDING|PartitionTimeLimit|{-80}|{-80}|N/A|3:00:00|6|1|1|cpu=1,mem=100M,node=1|
10|10|3-50%2|bob|all|main|PENDING|JobArrayTaskLimit|{-70}|N/A|N/A|30:00|5|1|1|cpu=1,mem=100M,node=1|
12|10|1|bob|all|main|RUNNING|None|{-70}|{-70}|{-60}|30:00|5|1|1|cpu=1,mem=100M,node=1|n1
13|10|2|bob|all|main|RUNNING|None|{-70}|{-70}|{-60}|30:00|5|1|1|cpu=1,mem=100M,node=1|n1
14|14|N/A|bob|all|main|PENDING|ReqNodeNotAvail, UnavailableNodes:n2|{-60}|{-60}|N/A|30:00|4|1|1|cpu=1,mem=100M,node=1|
15|15|N/A|bob|all|main|PENDING|Priority|{-50}|{-50}|{7100}|30:00|3|1|1|cpu=1,mem=100M,node=1,gres/gpu=1|
16|16|N/A|bob|all|main|PENDING|Resources|{-40}|{-40}|{7100}|30:00|2|1|1|cpu=1,mem=100M,node=1|
";

const NODES: &str = "\
NodeName=n1 CPUAlloc=3 CPUTot=8 Gres=gpu:2 RealMemory=8000 AllocMem=6200 Partitions=main,express State=MIXED CfgTRES=cpu=8,mem=8000M,gres/gpu=2 AllocTRES=cpu=3,mem=6200M,gres/gpu=2
NodeName=n2 CPUAlloc=0 CPUTot=8 RealMemory=8000 AllocMem=0 Partitions=main,express State=IDLE+DRAIN CfgTRES=cpu=8,mem=8000M
";

const PARTITIONS: &str = "\
PartitionName=main Default=YES DefaultTime=00:10:00 MaxNodes=UNLIMITED MaxTime=UNLIMITED Nodes=n[1-2] State=UP
PartitionName=express Default=NO DefaultTime=00:10:00 MaxNodes=UNLIMITED MaxTime=01:00:00 Nodes=n[1-2] State=UP
";

impl Site {
    fn new() -> Site {
        let site = Site(TestFolder::new());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        let mut queue = String::new();
        for (at, part) in QUEUE.split(['{', '}']).enumerate() {
            match at % 2 {
                0 => queue += part,
                _ => queue += &(now + part.parse::<i64>().unwrap()).to_string(),
            }
        }
        let mut ended = "JobIDRaw|User|Account|Partition|Submit|Start|End|Timelimit|AllocTRES|NodeList\n".to_string();
        for n in 0..50 {
            let at = now - 60_000 + 1000 * n;
            ended += &format!("{}|ann|all|main|{at}|{at}|{}|00:20:00|cpu=1,mem=100M,node=1|n1\n", 1000 + n, at + 60);
        }
        for (name, text) in [
            ("queue", queue.as_str()),
            ("nodes", NODES),
            ("partitions", PARTITIONS),
            ("ended", ended.as_str()),
            ("config", "ClusterName = lab\n"),
        ] {
            site.0.write(name, text);
        }
        site.script("squeue", "exec cat queue");
        site.script("sacct", "exec cat ended");
        site.script(
            "scontrol",
            "case \"$*\" in *node*) exec cat nodes ;; *partition*) exec cat partitions ;; *config*) exec cat config ;; esac\nexit 1",
        );
        for name in ["sprio", "sacctmgr", "sshare"] {
            site.script(name, "echo none here >&2; exit 1");
        }
        site
    }

    fn script(&self, name: &str, body: &str) {
        self.0.write(name, format!("#!/bin/sh\n{body}\n"));
        std::fs::set_permissions(self.0.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.command(&[&["slurm"], arguments].concat());
        command.env("PATH", format!("{}:/usr/bin:/bin", self.0.path("").display())).env("USER", "ann");
        command
    }

    fn run(&self, arguments: &[&str]) -> ProgramOutput {
        ProgramOutput::of(self.command(arguments).output().unwrap())
    }
}

/// The text with one space between words, as if no line were folded.
fn unfolded(output: &ProgramOutput) -> String {
    output.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn no_start_is_forecast_for_what_no_turn_brings_and_none_is_now_where_slurm_plans_a_later_one() {
    let site = Site::new();
    let when = |job: &str| site.run(&["when", job]);
    when("9").assert_fails(2, &["cannot start as it was submitted", "PartitionTimeLimit", "scontrol update"]);
    when("10").assert_fails(2, &["waits for a limit", "JobArrayTaskLimit"]);
    when("10_20").assert_fails(2, &["waits for a limit", "JobArrayTaskLimit"]);
    when("10_1").assert_fails(2, &["job 10 does not wait", "RUNNING"]);
    when("27+1").assert_fails(2, &["squeue shows no job 27"]);
    when("x").assert_fails(2, &["JOB: found \"x\", expected a job's number"]);
    when("14").assert_fails(2, &["waits for nodes that are not available", "sinfo --list-reasons"]);
    when("6").assert_fails(3, &["Slurm's reason is Resources", "has not planned its start yet"]);
    let start =
        |job: &str| site.run(&["when", job, "--format", "json"]).assert_succeeds().json()["forecasts"][0].clone();
    let counts = "The forecast counts the CPUs, memory and GPUs of the whole site: not types of GPUs, whole nodes";
    let caveat = |start: &serde_json::Value, at: usize| start["caveats"][at].as_str().unwrap().to_string();
    // The GPUs are free when job 4 has used a twentieth of its limit, by which Slurm plans.
    for job in ["5", "15"] {
        let gpus = start(job);
        assert_eq!(gpus["planned_by"], serde_json::Value::Null, "{gpus}");
        assert!((200..400).contains(&gpus["median_s"].as_i64().unwrap()), "{gpus}");
        assert!(caveat(&gpus, 0).starts_with(counts), "{gpus}");
        assert!(caveat(&gpus, 1).contains("which is later than the forecast"), "{gpus}");
        assert_eq!(gpus["slurm_start_s"].as_i64().unwrap() - gpus["start_s"].as_i64().unwrap(), 7100 - 260);
    }
    // What is not counted is Slurm's to plan.
    let node = start("16");
    assert_eq!(node["planned_by"], "slurm", "{node}");
    assert!(node["median_s"].as_i64().unwrap() > 7000, "{node}");
    assert_eq!(node["slurm_start_s"], node["start_s"]);
    assert!(caveat(&node, 0).starts_with(counts), "{node}");
    let text = unfolded(&when("16").assert_succeeds());
    assert!(text.contains("at most 2 h - ") && text.contains("Slurm found that it cannot"), "{text}");
    let later = start("8");
    assert!(later["median_s"].as_i64().unwrap() >= 7100 && later["begin_s"] == later["slurm_start_s"], "{later}");
}

#[test]
fn a_job_that_could_be_submitted_is_held_against_its_partition() {
    let site = Site::new();
    let shape = |arguments: &[&str]| site.run(&[&["when", "--shape"], arguments].concat());
    shape(&["1x2cpu,2h", "--partition", "nosuch"])
        .assert_fails(2, &["found the partition \"nosuch\"", "main, express"]);
    shape(&["1x2cpu,2h", "--partition", "man"]).assert_fails(2, &["did you mean \"main\"?"]);
    shape(&["1x2cpu,2h", "--partition", "express"]).assert_fails(2, &["02:00:00", "MaxTime of partition express"]);
    shape(&["1x9cpu,1h"]).assert_fails(2, &["9 CPUs", "at most 8 CPUs"]);
    shape(&["1x2cpu,30m", "--partition", "express"]).assert_succeeds();
    site.0.write("gpus.sh", "#!/bin/sh\n#SBATCH --gres=gpu:7 -t 10\n");
    site.run(&["when", "--script", "gpus.sh"]).assert_fails(2, &["gpus.sh: found", "7 GPUs a node"]);
    site.0.write("gpus.sh", "#!/bin/sh\n#SBATCH --gres=gpu:1 -t 10\n");
    let gpu = site.run(&["when", "--script", "gpus.sh", "--format", "json"]).assert_succeeds().json();
    // Behind two jobs for which the GPUs are free when job 4 ends.
    let forecast = &gpu["forecasts"][0];
    assert!((400..500).contains(&forecast["median_s"].as_i64().unwrap()), "{gpu}");
    assert!(forecast["caveats"][0].as_str().unwrap().starts_with("What it asks for is not free now."), "{gpu}");
    let mut nameless = site.command(&["when", "--shape", "1x2cpu,1h"]);
    let output = nameless.env_remove("USER").env_remove("LOGNAME").output().unwrap();
    ProgramOutput::of(output).assert_fails(2, &["--user: neither USER nor LOGNAME", "give --user NAME"]);
}

#[test]
fn the_reasons_of_slurm_decide_who_stands_before_and_what_is_planned() {
    let site = Site::new();
    let why = |job: &str| site.run(&["why", job, "--format", "json"]).assert_succeeds().json();
    // Jobs 5 and 6 wait for their turn; 8, 9, 10 and 14 do not.
    assert_eq!(why("15")["standing"]["jobs_before"], 2);
    let later = why("8");
    let begin = later["slurm_start_s"].as_f64().unwrap();
    let starts = later["what_if"].as_array().unwrap();
    assert!(!starts.is_empty() && starts.iter().all(|w| w["start"].as_f64().unwrap() >= begin - 1.0), "{later}");
    let throttled = why("10");
    assert_eq!(throttled["what_if"].as_array().unwrap().len(), 0);
    assert!(throttled["not_seen"].to_string().contains("No start is planned here"), "{throttled}");
    assert!(why("16")["not_seen"].to_string().contains("Slurm itself plans a later start"));
    // The plan counts GPUs, and so agrees with Slurm's.
    let gpus = why("5");
    assert!(!gpus["not_seen"].to_string().contains("Slurm itself plans"), "{gpus}");
    let planned = gpus["what_if"][0]["start"].as_f64().unwrap();
    assert!((planned - gpus["slurm_start_s"].as_f64().unwrap()).abs() < 2.0, "{gpus}");
    assert_eq!(gpus["blocked_by"][0]["on"], "1 GPU: 0 of 2 are free");
    let of_gpus = &gpus["standing"]["resources"][2];
    assert_eq!((&of_gpus["resource"], &of_gpus["free"], &of_gpus["has"]), (&"gpu".into(), &0.into(), &2.into()));
    let text = unfolded(&site.run(&["why", "5"]).assert_succeeds());
    assert!(!text.contains("at the head of its queue"), "{text}");
    assert!(
        text.contains("It asks for 1 CPU, 100 MiB of memory and 1 GPU. In its partitions 5 of 8 CPUs, 1.8 GiB of 7.8 GiB of memory and 0 of 2")
            && text.contains("GPUs are free: too few GPUs.")
            && text.contains("Planned by CPUs, memory and GPUs, with all jobs running to their limits"),
        "{text}"
    );
}

#[test]
fn the_first_job_of_a_plan_waits_for_slurm_s_reason() {
    let site = Site::new();
    let queue = site.0.read("queue");
    let kept: Vec<&str> = queue.lines().filter(|line| line.starts_with("JOBID") || line.starts_with("14|")).collect();
    site.0.write("queue", kept.join("\n") + "\n");
    let plan = site.run(&["plan", "--policy", "fifo", "--format", "json"]).assert_succeeds().json();
    let reason = "Slurm's reason is ReqNodeNotAvail, UnavailableNodes:n2: nodes that it needs are down, drained";
    assert!(plan["places"][0]["waits_for"].as_str().unwrap().starts_with(reason), "{plan}");
    let table = unfolded(&site.run(&["plan", "--policy", "fifo"]).assert_succeeds());
    assert!(
        table.contains("Slurm: ReqNodeNotAvail, UnavailableNodes:n2 The order") && table.contains(reason),
        "{table}"
    );
    let text = unfolded(&site.run(&["plan", "--policy", "fifo", "--why", "14"]).assert_succeeds());
    assert!(text.contains("No job is before it.") && text.contains(reason) && !text.contains("its turn."), "{text}");
}
