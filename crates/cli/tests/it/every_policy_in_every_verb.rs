//! Every policy with every setting through every verb: study, sweep, audit, `slurm plan` and the order of a queue.

use std::collections::BTreeMap;

use evenhand_model::{
    Account, AccountTree, Amount, Capacity, NO_TIME, Quantity, Rational, Resource, Span, Task, Time, UserId, Weights,
    Workload, WorkloadBuilder,
};
use evenhand_policies::equivalents::Equivalents;
use evenhand_policies::queue_order::{PendingJob, StartedJob, order};
use evenhand_policies::{Decay, LogPlace, PolicyContext, PolicySettings, Registration, Registry};
use evenhand_simulator::Progress;
use evenhand_slurm::{Accounts, Configuration, Nodes, Partitions, Plan as QueuePlan, PlanOptions, Queue, SiteSnapshot};
use evenhand_study::record::{MethodRecord, RunRecord};
use evenhand_study::sweep::{Folder, Grid, Watch, local, summarize};
use evenhand_study::{
    JobRules, Live, Plan, Point, PolicyInputs, Prepared, RequestedCapacity, StudyRequest, TaskFormat, starts_under,
};

/// For each key of each policy, sample lines of its section. A key without an entry fails the test.
const SAMPLES: &[(&str, &[&str])] = &[
    ("sdrf.key", &["key = \"per-resource\"", "key = \"sum\"", "key = \"dominant\""]),
    ("sdrf-window.window", &["window = \"20s\""]),
    ("fair-tree.billing", &["billing = \"sum\"", "billing = \"max:cpu=1\""]),
    ("half-life.billing", &["billing = \"sum\"", "billing = \"max:cpu=1\""]),
    ("usage-weighted.billing", &["billing = \"max\"", "billing = \"sum:mem=2,+cpu=1\""]),
    ("usage-weighted.sampling_interval", &["sampling_interval = \"7s\"", "sampling_interval = \"0s\""]),
    ("penalty.combine", &["combine = \"max\"", "combine = \"sum\""]),
    ("multifactor.max_age", &["max_age = \"30s\""]),
    (
        "multifactor.fairshare",
        &[
            "weights.fairshare = 100000\nfairshare = \"classic\"",
            "weights.fairshare = 100000\nfairshare = \"depth-oblivious\"",
        ],
    ),
    ("multifactor.damping", &["weights.fairshare = 100000\nfairshare = \"classic\"\ndamping = 3"]),
    ("multifactor.favor_small", &["weights.job_size = 100000\nfavor_small = true"]),
    ("multifactor.small_relative_to_time", &["weights.job_size = 100000\nsmall_relative_to_time = true"]),
    ("multifactor.nodes", &["weights.job_size = 100000\nnodes = 7"]),
    (
        "multifactor.no_normal",
        &[
            "weights.partition = 100\npartitions.short = 7\nno_normal = [\"partition\", \"association\", \"qos\", \"tres\"]",
        ],
    ),
    ("multifactor.weights.association", &["weights.association = 100000"]),
    ("multifactor.weights.age", &["weights.age = 100000"]),
    ("multifactor.weights.fairshare", &["weights.fairshare = 100000"]),
    ("multifactor.weights.job_size", &["weights.job_size = 100000"]),
    ("multifactor.weights.partition", &["weights.partition = 100000\npartitions.short = 7"]),
    ("multifactor.tres.RESOURCE", &["tres.cpu = 100000\ntres.mem = -30000"]),
    ("multifactor.partitions.QUEUE", &["weights.partition = 100000\npartitions.short = 7\npartitions.long = 2"]),
    ("multifactor.weights.qos", &["weights.qos = 100000\nqos.high = 7"]),
    ("multifactor.qos.QOS", &["weights.qos = 100000\nqos.high = 7\nqos.normal = 2"]),
    ("multifactor.billing", &["weights.fairshare = 100000\nbilling = \"sum\""]),
];

/// Returns the policy's sections: none, then one with each sample of each key.
fn sections(registration: &Registration) -> Vec<String> {
    let mut sections = vec![String::new()];
    for key in registration.keys() {
        let name = format!("{}.{}", registration.name, key.name);
        let samples = SAMPLES.iter().find(|(known, _)| *known == name);
        let (_, samples) = samples.unwrap_or_else(|| panic!("the setting {name} has no sample in this test"));
        sections.extend(samples.iter().map(|lines| format!("[{}]\n{lines}\n", registration.name)));
    }
    sections
}

fn settings(text: &str) -> PolicySettings {
    let document = evenhand_documents::Document::parse("settings.toml", text, Some(evenhand_documents::Format::Toml));
    PolicySettings::of_document(document.unwrap(), &Registry::built_in()).unwrap()
}

const USERS: [&str; 4] = ["ann", "bob", "cid", "dan"];

fn workload() -> Workload {
    let mut b = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    for i in 0..120u64 {
        let unit = 1_000_000_000u128;
        b.push(&Task {
            submit: Time::from_secs(i * i % 37),
            duration: Span::from_secs(3 + i * 7 % 11),
            requested: Some(Span::from_secs(20 + i % 5 * 60)),
            user: USERS[(i * 5 % 7 % 4) as usize],
            account: Some(["art", "lab"][(i * 5 % 7 % 2) as usize]),
            queue: Some(["short", "long"][(i % 3 / 2) as usize]),
            amounts: &[unit * u128::from(1 + i % 3), unit * u128::from(1 + i * 3 % 4)],
            ..Task::default()
        });
    }
    b.finish().unwrap()
}

/// Returns accounts art with ann and bob, and lab with cid and dan, in the order of their first tasks.
fn accounts(workload: &Workload) -> AccountTree {
    let account = |name: &str, shares: u64| Account { name: name.into(), parent: None, shares: Rational::from(shares) };
    let homes = workload.users().iter().map(|user| Some(usize::from(user == "cid" || user == "dan"))).collect();
    let shares = (1..=workload.users().len()).map(Rational::from).collect();
    let priorities = workload.users().iter().map(|user| priority(user)).collect();
    AccountTree::new(vec![account("art", 3), account("lab", 1)], homes, shares).unwrap().with_priorities(priorities, 9)
}

/// The priorities of the users' associations, as in [`ACCOUNTS`].
fn priority(user: &str) -> u32 {
    [("ann", 2), ("bob", 6), ("dan", 9)].iter().find(|(name, _)| *name == user).map_or(0, |(_, priority)| *priority)
}

fn decay() -> Decay {
    Decay::from_half_life(Span::from_secs(30)).unwrap()
}

/// Returns each user's mean wait for these start times.
fn mean_waits(workload: &Workload, starts: &[u64]) -> Vec<f64> {
    let columns = workload.columns();
    let mut sums = vec![(0.0, 0.0); workload.users().len()];
    for (row, start) in starts.iter().enumerate().filter(|(_, start)| **start != NO_TIME) {
        let sum = &mut sums[columns.user[row].index()];
        sum.0 += (start - columns.submit[row].nanos()) as f64 * 1e-9;
        sum.1 += 1.0;
    }
    sums.into_iter().map(|(sum, count)| sum / count).collect()
}

#[test]
fn study_sweep_and_audit_start_the_same_tasks_at_the_same_times() {
    let workload = workload();
    let tree = accounts(&workload);
    let prepared = Prepared::new(workload.clone());
    let capacity = RequestedCapacity::Pool("pool".into(), vec![Rational::from(6), Rational::from(7)]);
    let pool = Capacity::new(workload.resources(), vec![Rational::from(6), Rational::from(7)]).unwrap();
    let mut results: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
    for registration in Registry::built_in().policies() {
        for text in sections(registration) {
            let inputs = PolicyInputs {
                accounts: Some(tree.clone()),
                settings: settings(&text),
                ..PolicyInputs::new(tree.weights())
            };
            let request = StudyRequest {
                against: None,
                policies: vec![registration.name.into()],
                capacities: vec![capacity.clone()],
                decays: vec![("30s".into(), decay())],
                inputs: inputs.clone(),
                blocking: true,
                until_trace_end: false,
                jobs: JobRules::default(),
            };
            let plan = Plan::new(workload.clone(), &request).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let live = Live::new(&plan);
            let study = plan.run(dir.path(), "", MethodRecord::default(), TaskFormat::None, &live).unwrap();
            let studied = &study.runs[0];

            let decay = registration.needs_decay.then_some(decay());
            let point = Point {
                policy: registration.name,
                decay,
                capacity: &capacity,
                inputs: &inputs,
                blocking: true,
                until_trace_end: false,
                jobs: JobRules::default(),
            };
            let swept = prepared.run(&point, &Progress::default()).unwrap();
            let waits = |run: &RunRecord| run.users.iter().map(|user| user.mean_wait_s.unwrap()).collect::<Vec<_>>();
            assert_eq!(waits(&swept), waits(studied), "{} {text}", registration.name);
            assert_eq!(swept.decisions, studied.decisions);

            let audited = starts_under(&workload, &pool, &inputs, registration.name, decay).unwrap();
            let audited = mean_waits(&workload, &audited);
            for (a, b) in audited.iter().zip(waits(studied)) {
                assert!((a - b).abs() < 1e-9, "{} {text}: {a} {b}", registration.name);
            }
            results.entry(registration.name.into()).or_default().push(waits(studied));
        }
    }
    // The settings do something: most policies that have any give several results.
    let several = results.values().filter(|waits| waits.len() > 1 && waits.iter().any(|w| *w != waits[0])).count();
    assert!(several >= 5, "{several} policies change with their settings");
}

#[test]
fn a_grid_file_takes_accounts_and_settings_as_a_study_does() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let rows: String = (0..60u64)
        .map(|i| format!("{},{},{},{},{}\n", i / 2, 3 + i * 7 % 11, USERS[(i % 4) as usize], 1 + i % 3, 1 + i % 2))
        .collect();
    write("w.csv", &format!("submit,duration,user,cpu,mem\n{rows}"));
    write("pool.toml", "[pool]\ncpu = 4\nmem = 4\n");
    write("accounts.toml", "[[account]]\nname = \"art\"\nshares = 3\n[[user]]\nname = \"ann\"\naccount = \"art\"\n");
    write(
        "settings.toml",
        "[multifactor]\nweights = { fairshare = 100000 }\nfairshare = \"classic\"\n[half-life]\nbilling = \"sum\"\n",
    );
    let grid = |more: &str| {
        let text = format!(
            "workload = {{ file = \"w.csv\", csv-columns = \"submit=submit,duration=duration,user=user,cpu=cpu,mem=mem\" }}\n\
             policy = [\"half-life\", \"multifactor\"]\ncapacity = \"pool.toml\"\nhalf-life = \"30s\"\n{more}"
        );
        write("grid.toml", &text);
        Grid::read(&dir.path().join("grid.toml"), 1, &Registry::built_in()).unwrap()
    };
    let run = |grid: &Grid, out: &str| {
        let folder = Folder::create(&dir.path().join(out)).unwrap();
        let (points, digests) = folder.plan(grid, 1).unwrap();
        let numbers: Vec<usize> = (0..points.len()).collect();
        let options = local::Options { threads: std::num::NonZeroUsize::MIN, memory: u64::MAX };
        let failures = local::run(grid, &points, &digests, &numbers, &folder, options, &Watch::default()).unwrap();
        assert!(failures.is_empty(), "{failures:?}");
        summarize(grid, &points, &digests, &folder).unwrap()
    };
    let plain = run(&grid(""), "plain");
    let set = run(&grid("accounts = \"accounts.toml\"\npolicy-settings = \"settings.toml\"\n"), "set");
    assert_eq!((plain.points.len(), set.points.len()), (2, 2));
    for (a, b) in plain.points.iter().zip(&set.points) {
        assert_ne!(a.users_mean_wait_s, b.users_mean_wait_s, "{}", a.axes.policy);
    }
    let axis = run(&grid("billing = [\"max\", \"sum\"]\n"), "axis");
    assert_eq!(axis.points.len(), 4);
    assert_eq!(axis.points[1].axes.settings["billing"], "sum");
    let csv = std::fs::read_to_string(dir.path().join("axis/results.csv")).unwrap();
    assert!(csv.lines().next().unwrap().ends_with(",billing"), "{csv}");
}

const NODES: &str = "NodeName=n1 CPUTot=32 RealMemory=32000 Partitions=short,long State=MIXED\n";
const PARTITIONS: &str =
    "PartitionName=short MaxTime=1-00:00:00 PriorityJobFactor=5 Default=YES\nPartitionName=long MaxTime=5-00:00:00\n";
const ACCOUNTS: &str = "Account|ParentName|User|Share|Priority\nroot|||1|\nart|root||3|6\nart||ann|1|2\nart||bob|2|\nlab|root||1|\nlab||cid|1|\nlab||dan|1|9\n";
const HEADER: &str = "JOBID|ARRAY_JOB_ID|ARRAY_TASK_ID|USER|ACCOUNT|PARTITION|STATE|REASON|SUBMIT_TIME|ELIGIBLE_TIME|START_TIME|\
     TIME_LIMIT|PRIORITY|NICE|DEPENDENCY|RESERVATION|NODES|TRES_ALLOC";

/// User, submission, start if running, minutes, processors, MB and partition of each job.
type QueueJob = (usize, u64, Option<u64>, u64, u64, u64, usize);

fn queue_jobs() -> Vec<QueueJob> {
    let running =
        [(0, 100, Some(200), 60, 6, 1000, 0), (2, 120, Some(500), 90, 2, 8000, 1), (1, 130, Some(700), 20, 1, 500, 0)];
    let pending = (0..14u64).map(|i| {
        let user = (i * 5 % 7 % 4) as usize;
        (user, 600 + i * 11 % 29, None, 10 + i * 7 % 50, 1 + i % 4, 500 * (1 + i * 3 % 5), (i % 2) as usize)
    });
    running.into_iter().chain(pending).collect()
}

#[test]
fn slurm_plan_gives_the_same_order_as_the_policy_itself() {
    let jobs = queue_jobs();
    let line = |(at, (user, submit, start, minutes, cpus, mem, partition)): (usize, &QueueJob)| {
        let (state, start) = start.map_or(("PENDING", "N/A".to_string()), |start| ("RUNNING", start.to_string()));
        format!(
            "{id}|{id}|N/A|{}|{}|{}|{state}|Priority|{submit}|{submit}|{start}|{minutes}:00|5|0|(null)|(null)|1|cpu={cpus},mem={mem}M,node=1\n",
            USERS[*user],
            ["art", "art", "lab", "lab"][*user],
            ["short", "long"][*partition],
            id = at + 1,
        )
    };
    let text: String = jobs.iter().enumerate().map(line).collect();
    let queue = Queue::parse(&format!("{HEADER}\n{text}")).unwrap();
    let (nodes, partitions) = (Nodes::parse(NODES).unwrap(), Partitions::parse(PARTITIONS).unwrap());
    let slurm_accounts = Accounts::parse(ACCOUNTS).unwrap();
    let now = Time::from_secs(1000);

    // The same site by hand; users in the order of their first job.
    let mut users: Vec<usize> = Vec::new();
    jobs.iter().for_each(|job| {
        if !users.contains(&job.0) {
            users.push(job.0)
        }
    });
    let number = |user: usize| UserId(users.iter().position(|u| *u == user).unwrap() as u32);
    let resources = [Resource::new("cpu", ""), Resource::new("mem", "B")];
    let memory = 32_000u64 << 20;
    let capacity = Capacity::new(&resources, vec![Rational::from(32), Rational::from(memory)]).unwrap();
    let account = |name: &str, shares: u64| Account { name: name.into(), parent: None, shares: Rational::from(shares) };
    let homes = users.iter().map(|user| Some(user / 2)).collect();
    let shares = users.iter().map(|user| Rational::from([1u64, 2, 1, 1][*user])).collect();
    let priorities = users.iter().map(|user| priority(USERS[*user])).collect();
    let tree = AccountTree::new(vec![account("art", 3), account("lab", 1)], homes, shares).unwrap();
    let tree = tree.with_priorities(priorities, 9);
    let weights = tree.weights();
    let queues = ["short", "long"].map(String::from);
    let equivalents = Equivalents::of_pool(&resources, &capacity).ok();
    let pending_job = |at: usize, (user, submit, _, minutes, cpus, mem, partition): &QueueJob| PendingJob {
        place: LogPlace::new(Time::from_secs(*submit), at as u64),
        requested: Span::from_secs(60 * minutes),
        queue: Some(*partition as u32),
        ..PendingJob::new(number(*user), vec![Amount(*cpus), Amount(mem << 20)])
    };
    let started: Vec<StartedJob> = (jobs.iter().enumerate())
        .filter_map(|(at, job)| {
            Some(StartedJob { job: pending_job(at, job), started: Time::from_secs(job.2?), ended: None })
        })
        .collect();
    // Each user's own order is by submission.
    let mut pending: Vec<(usize, &QueueJob)> = jobs.iter().enumerate().filter(|(_, job)| job.2.is_none()).collect();
    pending.sort_by_key(|(at, job)| (job.1, *at));
    let pending_jobs: Vec<PendingJob> = pending.iter().map(|(at, job)| pending_job(*at, job)).collect();

    let mut orders = std::collections::BTreeSet::new();
    for registration in Registry::built_in().policies() {
        for text in sections(registration) {
            let (settings, decay) = (settings(&text), registration.needs_decay.then_some(decay()));
            let context = PolicyContext::new(&capacity, &weights)
                .resources(&resources)
                .queues(&queues)
                .decay(decay)
                .accounts(Some(&tree))
                .equivalents(equivalents.as_ref())
                .settings(&settings);
            let mut policy = registration.build(&context).unwrap();
            let ranks = order(policy.as_mut(), &started, &pending_jobs, now, 100);
            let expected: Vec<usize> = ranks.iter().map(|rank| pending[rank.job].0).collect();

            let site = SiteSnapshot {
                accounts: Some(&slurm_accounts),
                ..SiteSnapshot::new(&nodes.nodes, &partitions.partitions, &queue)
            };
            let options = PlanOptions {
                registry: Registry::built_in(),
                policy: registration.name.into(),
                settings,
                decay,
                prices: BTreeMap::new(),
                speed_feature: None,
                depth: 100,
            };
            let plan = QueuePlan::new(&site, &options, now).unwrap();
            let found: Vec<usize> = plan.places.iter().map(|place| place.job).collect();
            assert_eq!(found, expected, "{} {text}", registration.name);
            orders.insert(found);
        }
    }
    assert!(orders.len() > 8, "{} different orders", orders.len());
}

#[test]
fn slurm_plan_uses_the_sites_own_weights_unless_settings_override_them() {
    // Ann submitted first, in the partition with the lower factor.
    let text = "1|1|N/A|ann|art|long|PENDING|Priority|100|100|N/A|1:00|5|0|(null)|(null)|1|cpu=1,mem=10M,node=1\n\
        2|2|N/A|bob|art|short|PENDING|Priority|200|200|N/A|1:00|5|0|(null)|(null)|1|cpu=1,mem=10M,node=1\n";
    let queue = Queue::parse(&format!("{HEADER}\n{text}")).unwrap();
    let (nodes, partitions) = (Nodes::parse(NODES).unwrap(), Partitions::parse(PARTITIONS).unwrap());
    let first = |configuration: Option<&str>, text: &str| {
        let configuration = configuration.map(|text| Configuration::parse(text).unwrap());
        let site = SiteSnapshot {
            configuration: configuration.as_ref(),
            ..SiteSnapshot::new(&nodes.nodes, &partitions.partitions, &queue)
        };
        let options = PlanOptions {
            registry: Registry::built_in(),
            policy: "multifactor".into(),
            settings: settings(text),
            decay: Some(decay()),
            prices: BTreeMap::new(),
            speed_feature: None,
            depth: 100,
        };
        QueuePlan::new(&site, &options, Time::from_secs(1000)).map(|plan| plan.places[0].job + 1)
    };
    let by_age = "PriorityType = priority/multifactor\nPriorityWeightAge = 1000000\nPriorityMaxAge = 0-01:00:00\n";
    let by_partition =
        "PriorityType = priority/multifactor\nPriorityWeightPartition = 1000\nPriorityMaxAge = 7-00:00:00\n";
    assert_eq!(first(Some(by_age), "").unwrap(), 1);
    assert_eq!(first(Some(by_partition), "").unwrap(), 2);
    let settings = "[multifactor]\nweights = { age = 1000000, partition = 0 }\nmax_age = \"1h\"\n";
    assert_eq!(first(Some(by_partition), settings).unwrap(), 1, "settings take precedence");
    let invalid = "PriorityType = priority/multifactor\nPriorityWeightAge = much\n";
    let error = first(Some(invalid), "").unwrap_err().to_string();
    assert!(error.contains("PriorityWeightAge = \"much\", expected a whole number"), "{error}");
}

/// No source file outside `policies` contains a policy's name as a string. `reproduce` may, because its experiments are
/// about certain policies. Mechanisms, metrics of heaviness and schedulers of processes have names of their own.
#[test]
fn no_crate_but_policies_contains_a_policys_name() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let own_names = ["policies", "reproduce", "mechanisms", "heaviness", "processes"];
    // A default of an option that is no policy: the mechanism drf, of `allocate` and `timeline`; the name of a TOML key;
    // and the default policy of `slurm plan`.
    let allowed = |line: &str| {
        line.contains("default_value = \"drf\"")
            || line.contains("axis(root, \"half-life\")")
            || line.trim() == "\"half-life\","
            || line.contains("const STATEFUL: &str = \"sdrf\"")
            || line.contains("contains(\"multifactor\")")
    };
    let mut found = Vec::new();
    let mut folders: Vec<std::path::PathBuf> = std::fs::read_dir(crates).unwrap().map(|e| e.unwrap().path()).collect();
    folders.retain(|folder| !own_names.iter().any(|name| folder.ends_with(name)));
    let mut folders: Vec<std::path::PathBuf> = folders.into_iter().map(|folder| folder.join("src")).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|e| e != "rs") || path.ends_with("tests.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for (number, line) in product.lines().enumerate() {
                let is_comment = line.trim_start().starts_with("//");
                for name in Registry::built_in().names() {
                    if line.contains(&format!("\"{name}\"")) && !is_comment && !allowed(line) {
                        found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
                    }
                }
            }
        }
    }
    assert!(found.is_empty(), "a policy's name outside the crate policies:\n{}", found.join("\n"));
}

#[test]
fn errors_are_typed_and_name_what_is_wrong() {
    // What a setting assert_rejects is refused before anything runs, also of policies that are not used.
    let registry = Registry::built_in();
    let capacity =
        Capacity::new(&[Resource::new("cpu", "")], vec![Quantity::parse("4").unwrap().exact().clone()]).unwrap();
    let weights = Weights::equal(1);
    let refused = settings("[penalty]\ncombine = \"mix\"\n");
    let error = registry.check(&PolicyContext::new(&capacity, &weights).settings(&refused)).unwrap_err().to_string();
    assert!(error.starts_with("settings.toml:2:11: combine: found \"mix\", expected one of: max, sum"), "{error}");
    let no_decay = registry.build("sdrf", &PolicyContext::new(&capacity, &weights)).err().unwrap().to_string();
    assert!(no_decay.starts_with("the policy sdrf needs a decay"), "{no_decay}");
}
