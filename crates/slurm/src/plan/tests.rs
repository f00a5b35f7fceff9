use super::*;
use crate::{Limit, Nodes, Partitions};
use evenhand_model::Span;

const NODES: &str = "NodeName=n1 CPUTot=16 RealMemory=32000 CPUAlloc=6 AllocMem=4000 Partitions=main State=MIXED\n\
    NodeName=n2 CPUTot=16 RealMemory=32000 Partitions=main State=IDLE\n";
const PARTITIONS: &str = "PartitionName=main MaxTime=1-00:00:00 Default=YES\n";
const HEADER: &str = "JOBID|ARRAY_JOB_ID|ARRAY_TASK_ID|USER|ACCOUNT|PARTITION|STATE|REASON|SUBMIT_TIME|ELIGIBLE_TIME|START_TIME|\
     TIME_LIMIT|PRIORITY|NICE|DEPENDENCY|RESERVATION|NODES|TRES_ALLOC";
const QUEUE: &str = "1|1|N/A|ann|art|main|RUNNING|None|100|100|110|1:00:00|5|0|(null)|(null)|1|cpu=6,mem=4000M,node=1\n\
    2|2|N/A|ann|art|main|PENDING|Priority|120|120|N/A|1:00:00|5|0|(null)|(null)|1|cpu=2,mem=1000M,node=1\n\
    3|3|0-9|bob|art|main|PENDING|Resources|130|130|N/A|1:00:00|5|0|(null)|(null)|1|cpu=1,mem=1000M,node=1\n\
    4|4|N/A|cid|lab|main|PENDING|Resources|140|140|N/A|1:00:00|5|0|(null)|(null)|1|cpu=20,mem=1000M,node=1\n\
    5|5|N/A|cid|lab|main|PENDING|JobHeldUser|140|140|N/A|1:00:00|0|0|(null)|(null)|1|cpu=1,node=1\n\
    6|6|N/A|cid|lab|main|PENDING|Dependency|140|N/A|N/A|1:00:00|5|0|afterok:1(unfulfilled)|(null)|1|cpu=1,node=1\n\
    7|7|N/A|cid|lab|main|PENDING|Resources|140|140|N/A|1:00:00|5|0|(null)|class|1|cpu=1,node=1\n\
    8|8|N/A|cid|lab|main|PENDING|QOSMaxJobsPerUserLimit|140|140|N/A|1:00:00|5|0|(null)|(null)|1|cpu=1,node=1\n\
    9|9|N/A|ann|art|main|PENDING|Priority|90|90|N/A|1:00:00|5|5|(null)|(null)|1|cpu=1,node=1\n";
const ACCOUNTS: &str =
    "Account|ParentName|User|Share\nroot|||1\nart|root||3\nart||ann|1\nart||bob|1\nlab|root||1\nlab||cid|1\n";

fn options(policy: &str, half_life_s: u64, depth: usize) -> PlanOptions {
    PlanOptions {
        registry: Registry::built_in(),
        policy: policy.into(),
        settings: PolicySettings::default(),
        decay: Some(Decay::from_half_life(Span::from_secs(half_life_s)).unwrap()),
        prices: BTreeMap::new(),
        speed_feature: None,
        depth,
    }
}

fn plan(policy: &str, depth: usize, accounts: bool, ended: &[FinishedJob]) -> Plan {
    let (nodes, partitions) = (Nodes::parse(NODES).unwrap(), Partitions::parse(PARTITIONS).unwrap());
    let queue = Queue::parse(&format!("{HEADER}\n{QUEUE}")).unwrap();
    let accounts = accounts.then(|| Accounts::parse(ACCOUNTS).unwrap());
    let site = SiteSnapshot {
        accounts: accounts.as_ref(),
        ended,
        ..SiteSnapshot::new(&nodes.nodes, &partitions.partitions, &queue)
    };
    let options = PlanOptions { speed_feature: Some("spec_".into()), ..options(policy, 1000, depth) };
    Plan::new(&site, &options, Time::from_secs(1000)).unwrap()
}

fn ids(plan: &Plan) -> Vec<usize> {
    plan.places.iter().map(|p| p.job + 1).collect()
}

#[test]
fn the_order_is_the_policy_s_and_says_why() {
    let drf = plan("drf", 10, false, &[]);
    // Bob holds nothing and came first, then Cid; an array of one has its place once. Ann's own order is by nice.
    assert_eq!(ids(&drf), [3, 4, 2, 9]);
    assert_eq!(drf.places[2].standing.shares[0], 6.0 / 32.0);
    assert_eq!(drf.places[0].before, 0);
    assert_eq!(drf.places[0].lacks, Lacks::Nothing);
    assert_eq!(drf.places[1].lacks, Lacks::OnMachines, "20 processors are free, but not on one machine");
    let why: Vec<(usize, &Unranked)> = drf.unranked.iter().map(|(job, why)| (job + 1, why)).collect();
    assert_eq!(
        why,
        [
            (5, &Unranked::Held(Hold::User)),
            (6, &Unranked::Depends("afterok:1(unfulfilled)".into())),
            (7, &Unranked::Reservation("class".into())),
            (8, &Unranked::NotEligible("QOSMaxJobsPerUserLimit".into())),
        ]
    );
    assert_eq!(ids(&plan("fifo", 10, false, &[])), [2, 9, 3, 4], "by each user's first");
    let short = plan("drf", 2, false, &[]);
    assert_eq!(ids(&short), [3, 4]);
    assert!(short.unranked.contains(&(1, Unranked::Behind)));
}

#[test]
fn what_ended_counts_by_its_times_and_accounts_entitle() {
    let held = crate::Tres::parse("cpu=32,mem=1000M,node=2").unwrap();
    let job = |user: &str, account: &str| FinishedJob {
        id: 77,
        user: user.into(),
        account: Some(account.into()),
        partition: Some("main".into()),
        submit: Time::from_secs(0),
        start: Time::from_secs(10),
        end: Time::from_secs(900),
        limit: Limit::None,
        held: held.clone(),
        node_list: Some("n[1-2]".into()),
        qos: None,
    };
    // Bob had everything until a moment ago.
    assert_eq!(ids(&plan("sdrf", 10, false, &[job("bob", "art")]))[..2], [4, 2]);
    // Some 20,000 processor-seconds are left of either; Ann is charged the hour she asked for, 21,600.
    let penalty = plan("penalty", 10, false, &[job("bob", "art"), job("cid", "lab")]);
    assert_eq!(ids(&penalty)[..2], [3, 4]);
    assert_eq!(penalty.places[0].standing.key.round(), penalty.places[1].standing.key.round());
    let with = plan("fair-tree", 10, true, &[job("cid", "lab")]);
    let entitled: Vec<(&str, f64)> = with.parties.iter().map(|p| (p.user.as_str(), p.entitlement)).collect();
    assert_eq!(entitled, [("cid", 0.25), ("ann", 0.375), ("bob", 0.375)]);
    // The account that used nothing goes first, in it the user who holds nothing.
    assert_eq!(ids(&with)[0], 3);
}

#[test]
fn what_is_being_completed_counts_as_what_it_was_and_once() {
    let row = |state: &str, id: u64, user: &str| {
        format!(
            "{id}|{id}|N/A|{user}|art|main|{state}|None|100|100|110|1:00:00|5|0|(null)|(null)|1|cpu=6,mem=4000M,node=1|150\n"
        )
    };
    let rest = "20|20|N/A|ann|art|main|PENDING|Priority|120|120|N/A|1:00:00|5|0|(null)|(null)|1|cpu=1,node=1|N/A\n";
    let rest = format!("{rest}{}", rest.replace("20|20", "21|21").replace("ann", "bob"));
    let (nodes, partitions) = (Nodes::parse(NODES).unwrap(), Partitions::parse(PARTITIONS).unwrap());
    let keys = |policy: &str, queue: &str, ended: &[FinishedJob]| {
        let queue = Queue::parse(&format!("{HEADER}|END_TIME\n{queue}{rest}")).unwrap();
        let site = SiteSnapshot { ended, ..SiteSnapshot::new(&nodes.nodes, &partitions.partitions, &queue) };
        let options = self::options(policy, 1_000_000, 4);
        let plan = Plan::new(&site, &options, Time::from_secs(200)).unwrap();
        let key = |user: &str| {
            plan.places.iter().find(|place| plan.parties[place.party].user == user).unwrap().standing.clone()
        };
        (key("ann"), key("bob"))
    };
    let finished = |id: u64, user: &str| {
        let queue = Queue::parse(&format!("{HEADER}|END_TIME\n{}", row("RUNNING", id, user))).unwrap();
        FinishedJob::of_queue(&queue.jobs[0], Time::from_secs(150))
    };
    // Ann's and Bob's jobs were the same: hers is being completed, and accounting has it or not; his is gone.
    for ended in [vec![finished(2, "bob")], vec![finished(1, "ann"), finished(2, "bob")]] {
        let (ann, bob) = keys("cpu-time", &row("COMPLETING", 1, "ann"), &ended);
        assert!(bob.key > 0.0 && ann.key == bob.key, "{ann:?} {bob:?}");
        let (ann, bob) = keys("drf", &row("COMPLETING", 1, "ann"), &ended);
        assert_eq!((ann.shares[0], bob.shares[0]), (0.0, 0.0));
    }
    // One that runs is charged the hour that it requested.
    let (ann, bob) = keys("cpu-time", &row("RUNNING", 1, "ann"), &[finished(2, "bob")]);
    assert!(ann.key > 10.0 * bob.key, "{ann:?} {bob:?}");
}

#[test]
fn penalties_count_gpus_speed_and_the_partition_s_price() {
    let nodes = Nodes::parse(
        "NodeName=n1 CPUTot=16 RealMemory=32000 Partitions=main,fast State=IDLE ActiveFeatures=spec_100\n\
         NodeName=g1 CPUTot=16 RealMemory=32000 Gres=gpu:2 Partitions=main,fast State=IDLE ActiveFeatures=spec_150\n",
    )
    .unwrap();
    let partitions = Partitions::parse("PartitionName=main\nPartitionName=fast\n").unwrap();
    let pending = "2|2|N/A|USER|art|main|PENDING|Priority|120|120|N/A|1:00|5|0|(null)|(null)|1|cpu=1,node=1\n";
    let queue = ["ann", "bob", "cid", "dan"].map(|user| pending.replace("USER", user)).concat();
    let queue = Queue::parse(&format!("{HEADER}\n{queue}")).unwrap();
    let job = |user: &str, node: &str, partition: &str, held: &str| FinishedJob {
        id: 1,
        user: user.into(),
        account: None,
        partition: Some(partition.into()),
        submit: Time::from_secs(0),
        start: Time::from_secs(0),
        end: Time::from_secs(1000),
        limit: Limit::None,
        held: crate::Tres::parse(held).unwrap(),
        node_list: Some(node.into()),
        qos: None,
    };
    let ended = [
        job("ann", "n1", "main", "cpu=2,mem=1000M,node=1"),
        job("bob", "g1", "main", "cpu=2,mem=1000M,node=1"),
        job("cid", "n1", "fast", "cpu=2,mem=1000M,node=1"),
        job("dan", "n1", "main", "cpu=2,mem=1000M,node=1,gres/gpu=1"),
    ];
    let site = SiteSnapshot { ended: &ended, ..SiteSnapshot::new(&nodes.nodes, &partitions.partitions, &queue) };
    let options = PlanOptions {
        prices: BTreeMap::from([("fast".to_string(), Rational::from(3))]),
        speed_feature: Some("spec_".into()),
        ..options("penalty", 1_000_000, 4)
    };
    let plan = Plan::new(&site, &options, Time::from_secs(1000)).unwrap();
    let key = |user: &str| {
        let place = plan.places.iter().find(|p| plan.parties[p.party].user == user).unwrap();
        place.standing.key
    };
    // Two processors for 1000 s; half as fast again; three times as dear; and a GPU is 32 / 2 processors.
    for (user, times) in [("bob", 1.5), ("cid", 3.0), ("dan", 9.0)] {
        assert!((key(user) / key("ann") - times).abs() < 1e-9, "{user}: {}", key(user) / key("ann"));
    }
    assert_eq!(plan.places.iter().map(|p| p.job).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn priorities_have_the_factors_of_qos_nodes_associations_and_nice() {
    let (nodes, partitions) = (Nodes::parse(NODES).unwrap(), Partitions::parse(PARTITIONS).unwrap());
    let header = "JOBID|USER|ACCOUNT|PARTITION|QOS|STATE|REASON|SUBMIT_TIME|ELIGIBLE_TIME|TIME_LIMIT|PRIORITY|NICE|NODES|TRES_ALLOC";
    let text = "1|ann|art|main|normal|PENDING|Priority|100|100|1:00:00|5|0|2|cpu=2,mem=1000M,node=2\n\
        2|bob|art|main|urgent|PENDING|Priority|110|110|1:00:00|5|7|1|cpu=4,mem=1000M,node=1\n\
        3|cid|lab|main|normal|PENDING|JobArrayTaskLimit|110|110|1:00:00|5|0|1|cpu=4,mem=1000M,node=1\n";
    let queue = Queue::parse(&format!("{header}\n{text}")).unwrap();
    let qos = crate::parse_qos("Name|Priority\nnormal|30\nurgent|60\nnever|120\n").unwrap();
    let accounts = "Account|ParentName|User|Share|Priority\nroot|||1|\nart|root||1|10\nart||ann|1|\nart||bob|1|5\nlab|root||1|\nlab||cid|1|20\n";
    let accounts = Accounts::parse(accounts).unwrap();
    let keys = |setting: &str| {
        let configuration = format!("PriorityType=priority/multifactor\n{setting}=1000\n");
        let configuration = Configuration::parse(&configuration).unwrap();
        let site = SiteSnapshot {
            accounts: Some(&accounts),
            qos: &qos,
            configuration: Some(&configuration),
            ..SiteSnapshot::new(&nodes.nodes, &partitions.partitions, &queue)
        };
        let options = self::options("multifactor", 1000, 9);
        let plan = Plan::new(&site, &options, Time::from_secs(1000)).unwrap();
        assert_eq!(plan.unranked, [(2, Unranked::NotEligible("JobArrayTaskLimit".into()))], "its array's throttle");
        let key = |job: usize| plan.places.iter().find(|place| place.job == job).unwrap().standing.key;
        [key(0), key(1)]
    };
    assert_eq!(keys("PriorityWeightQOS"), [-250.0, -493.0]);
    // Two of two nodes and 2 of 32 processors; one node and 4 processors.
    assert_eq!(keys("PriorityWeightJobSize"), [-531.0, -305.0]);
    assert_eq!(keys("PriorityWeightAssoc"), [-500.0, -243.0]);
}
