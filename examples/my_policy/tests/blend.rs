//! The policy on the command line, and in the queue of a recorded Slurm site.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use evenhand_model::{Amount, Capacity, Rational, Resource, Time, UserId, Weights};
use evenhand_policies::{Job, PolicyContext, PolicySettings, Registry};
use evenhand_slurm::{Nodes, Partitions, Plan, PlanOptions, Queue, SiteSnapshot};

fn registry() -> Registry {
    Registry::built_in().with(my_policy::REGISTRATION).unwrap()
}

fn settings(text: &str) -> PolicySettings {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("settings-{}.toml", text.len()));
    std::fs::write(&path, text).unwrap();
    PolicySettings::read(&path, &registry()).unwrap()
}

/// Which of two users goes first: one holds much of one resource, the other a bit less of both.
fn first(settings: &PolicySettings) -> UserId {
    let resources = ["cpu", "mem"].map(|name| Resource::new(name, ""));
    let capacity = Capacity::new(&resources, vec![Rational::from(10); 2]).unwrap();
    let weights = Weights::equal(2);
    let context = PolicyContext::new(&capacity, &weights).resources(&resources).settings(settings);
    let mut policy = registry().build("blend", &context).unwrap();
    let demands = [[6, 0], [4, 4]].map(|demand| demand.map(Amount));
    for (user, demand) in (0..).map(UserId).zip(&demands) {
        policy.started(Time::ZERO, &Job::new(user, demand));
        policy.set_first_pending(user, Some(&Job::new(user, demand)));
    }
    policy.next(Time::ZERO).unwrap()
}

#[test]
fn the_setting_moves_the_policy_from_drf_to_asset_fairness() {
    let (of_one_resource, of_both) = (UserId(0), UserId(1));
    assert_eq!(first(&settings("[blend]\nasset_part = 0\n")), of_both, "0.4 against 0.6");
    assert_eq!(first(&settings("[blend]\nasset_part = 1.0\n")), of_one_resource, "0.6 against 0.8");
    // b = 1/2: 0.6 against 0.6, a tie, which the smaller number wins.
    assert_eq!(first(&settings("")), of_one_resource);
}

fn my_evenhand(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_my-evenhand")).args(arguments).output().unwrap();
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    }
    output
}

fn file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name).display().to_string()
}

#[test]
fn the_command_line_studies_a_trace_under_the_policy() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("study");
    let (trace, pool, out) = (file("trace.csv"), file("pool.toml"), out.display().to_string());
    let settings = file("blend.toml");
    let arguments = ["study", &trace, "--csv-columns", "submit=submit,duration=duration,user=user,cpu=cpu,mem=mem"];
    let rest = ["--policy", "drf,blend", "--policy-settings", &settings, "--capacity", &pool, "--out", &out];
    let studied = my_evenhand(&[&arguments[..], &rest[..]].concat());
    assert!(studied.status.success());
    let table = String::from_utf8(studied.stdout).unwrap();
    assert!(table.contains("blend"), "{table}");
    let listed = my_evenhand(&["policies", "blend"]);
    assert!(String::from_utf8(listed.stdout).unwrap().contains("asset_part"));
}

#[test]
fn a_wrong_setting_is_reported_with_its_place() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("wrong.toml");
    std::fs::write(&path, "[blend]\nasset_part = 2\n").unwrap();
    let (trace, pool, path) = (file("trace.csv"), file("pool.toml"), path.display().to_string());
    let columns = "submit=submit,duration=duration,user=user,cpu=cpu,mem=mem";
    let refused = my_evenhand(&[
        "study", &trace, "--csv-columns", columns, "--policy", "blend", "--policy-settings", &path, "--capacity", &pool,
    ]);
    assert_eq!(refused.status.code(), Some(2));
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("wrong.toml:2:14: asset_part: found 2, expected a number from 0 to 1"), "{error}");
}

const NODES: &str = "NodeName=n1 CPUTot=16 RealMemory=32000 CPUAlloc=12 AllocMem=4000 Partitions=main State=MIXED\n";
const PARTITIONS: &str = "PartitionName=main MaxTime=1-00:00:00 Default=YES\n";
const QUEUE: &str = "\
JOBID|ARRAY_JOB_ID|ARRAY_TASK_ID|USER|ACCOUNT|PARTITION|STATE|REASON|SUBMIT_TIME|ELIGIBLE_TIME|START_TIME|TIME_LIMIT|PRIORITY|NICE|DEPENDENCY|RESERVATION|NODES|TRES_ALLOC
1|1|N/A|ann|a|main|RUNNING|None|100|100|110|1:00:00|5|0|(null)|(null)|1|cpu=12,mem=1000M,node=1
2|2|N/A|ann|a|main|PENDING|Resources|120|120|N/A|1:00:00|5|0|(null)|(null)|1|cpu=2,mem=1000M,node=1
3|3|N/A|bob|a|main|PENDING|Resources|130|130|N/A|1:00:00|5|0|(null)|(null)|1|cpu=2,mem=1000M,node=1
4|4|N/A|bob|a|main|PENDING|Resources|140|140|N/A|1:00:00|5|0|(null)|(null)|1|cpu=2,mem=1000M,node=1
";

#[test]
fn a_slurm_queue_gets_the_order_of_the_policy() {
    let (nodes, partitions) = (Nodes::parse(NODES).unwrap(), Partitions::parse(PARTITIONS).unwrap());
    let queue = Queue::parse(QUEUE).unwrap();
    let site = SiteSnapshot::new(&nodes.nodes, &partitions.partitions, &queue);
    let options = PlanOptions {
        registry: registry(),
        policy: "blend".into(),
        settings: settings("[blend]\nasset_part = 0.25\n"),
        decay: None,
        prices: BTreeMap::new(),
        speed_feature: None,
        depth: 10,
    };
    let plan = Plan::new(&site, &options, Time::from_secs(1000)).unwrap();
    let ids: Vec<u64> = plan.places.iter().map(|place| queue.jobs[place.job].id).collect();
    // Bob holds nothing; Ann holds 12 of 16 processors.
    assert_eq!(ids, [3, 4, 2]);
}
