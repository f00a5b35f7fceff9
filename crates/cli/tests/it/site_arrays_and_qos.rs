//! Studies on a Slurm site whose log has arrays with a throttle, and jobs of QOS with priorities.

use crate::test_folder::TestFolder;

/// One node of four processors.
const CONF: &str = "ClusterName=lab\nPriorityType=priority/multifactor\nPriorityWeightQOS=1000\nPriorityWeightJobSize=10\n\
    NodeName=n1 CPUs=4 RealMemory=1000\nPartitionName=main Nodes=n1 Default=YES MaxTime=1-0\n";

fn waits(folder: &TestFolder, scheduler: &str, policy: &str) -> (Vec<f64>, String) {
    let study = format!(
        "study sacct.txt --site lab --scheduler {scheduler} --policy {policy} --tasks-csv --repeat 1 --out {scheduler}"
    );
    let output = folder.run(&study.split(' ').collect::<Vec<&str>>()).assert_succeeds();
    let prefix = format!("{scheduler}/tasks-{policy}");
    let file = folder.files().into_iter().find(|path| path.to_string_lossy().starts_with(&prefix)).unwrap();
    let text = folder.read(&file.to_string_lossy());
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    let at = lines.next().unwrap().iter().position(|name| *name == "wait_s").unwrap();
    let waits = lines.map(|row| row[at].parse::<f64>().unwrap()).collect();
    (waits, output.stderr.replace("\n       ", " "))
}

#[test]
fn no_more_tasks_of_an_array_run_than_its_throttle_allows() {
    let folder = TestFolder::with("slurm.conf", CONF);
    folder.run(&["site", "import", "--slurm-conf", "slurm.conf", "-o", "lab"]).assert_succeeds();
    // Slurm states as eligible times of the later tasks when the throttle let them go.
    let row = |task: u32, eligible: &str, line: &str| {
        format!(
            "100_{task}|ann|main|COMPLETED|2026-01-05T08:00:01|2026-01-05T{eligible}|2026-01-05T08:30:00|2026-01-05T08:31:40|\
             100|20|cpu=1,node=1|{line}\n"
        )
    };
    let header = "JobID|User|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES|SubmitLine\n";
    let rows = |line: &str| -> String {
        let eligible = ["08:00:01", "08:00:01", "08:05:00", "08:05:00"];
        (0..4).map(|task| row(task, eligible[task as usize], line)).collect()
    };
    folder.write("sacct.txt", [header, &rows("sbatch --array=0-3%2 run.sh")].concat());
    let (slurm, notes) = waits(&folder, "slurm", "fifo");
    assert_eq!(slurm, [1.0, 1.0, 102.0, 102.0]);
    let note =
        "4 jobs are tasks of arrays with a throttle (sbatch --array=0-99%5): no more tasks of an array run at once";
    assert!(notes.contains(note), "{notes}");
    assert_eq!(waits(&folder, "easy", "fifo").0, [0.0, 0.0, 100.0, 100.0]);
    assert_eq!(waits(&folder, "strict", "fifo").0, [0.0, 0.0, 100.0, 100.0]);
    let (conservative, notes) = waits(&folder, "conservative", "fifo");
    assert_eq!(conservative, [0.0; 4]);
    assert!(notes.contains("with a throttle (sbatch --array=0-99%5), which is ignored here"), "{notes}");
    let pool = "study sacct.txt --capacity cpu=4,mem=1GiB --policy fifo --repeat 1 --out pool";
    let notes = folder.run(&pool.split(' ').collect::<Vec<&str>>()).assert_succeeds().stderr.replace("\n       ", " ");
    assert!(notes.contains("with a throttle (sbatch --array=0-99%5), which is ignored here"), "{notes}");
    // Without the throttle the later tasks wait from their eligible times.
    folder.write("sacct.txt", [header, &rows("sbatch --array=0-3 run.sh")].concat());
    assert_eq!(waits(&folder, "easy", "fifo").0, [0.0; 4]);
}

#[test]
fn the_site_s_priority_has_the_factor_of_the_qos() {
    let folder = TestFolder::with("slurm.conf", CONF);
    folder.write("qos.txt", "Name|Priority\nnormal|0\nhigh|5\nurgent|10\n");
    let import = ["site", "import", "--slurm-conf", "slurm.conf", "--qos", "qos.txt", "-o", "lab"];
    let output = folder.run(&import).assert_succeeds();
    assert!(
        !output.stdout.contains("QOS Priority") && !output.stdout.contains("PriorityWeightQOS"),
        "{}",
        output.stdout
    );
    let cluster = folder.read("lab/cluster.toml");
    assert!(cluster.contains("name = \"urgent\"\npriority = 10\n"), "{cluster}");
    let settings = folder.read("lab/policy-settings.toml");
    assert!(settings.contains("qos = 1000 }") && settings.contains("\"high\" = 5, \"urgent\" = 10"), "{settings}");
    assert!(settings.contains("nodes = 1\n"), "{settings}");
    // The first job fills the node; of those behind it, each of which does, the one of the highest priority comes first.
    let row = |id: u32, qos: &str| {
        format!(
            "{id}|ann|main|{qos}|COMPLETED|2026-01-05T08:00:0{id}|2026-01-05T08:30:00|2026-01-05T08:31:40|100|2|cpu=4,node=1\n"
        )
    };
    let header = "JobID|User|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES\n";
    let rows = [row(1, "normal"), row(5, "normal"), row(6, "high"), row(7, "urgent")].concat();
    folder.write("sacct.txt", [header, &rows].concat());
    let (site, _) = waits(&folder, "slurm", "site");
    assert!(site[3] < site[2] && site[2] < site[1], "{site:?}");
    let (fifo, _) = waits(&folder, "slurm", "fifo");
    assert!(fifo[1] < fifo[2] && fifo[2] < fifo[3], "{fifo:?}");
}

/// With such settings a real Slurm 22.05.8 started the last job by its main scheduler within the second.
#[test]
fn the_site_s_priority_has_the_factors_of_associations_and_nice() {
    let conf = CONF.replace("PriorityWeightQOS=1000", "PriorityWeightAssoc=50");
    let folder = TestFolder::with("slurm.conf", conf);
    folder.write(
        "lab.cfg",
        "Cluster - 'lab':Fairshare=1\nParent - 'root'\nAccount - 'art':Fairshare=1:Priority=10\n\
         Account - 'oil':Fairshare=1\nParent - 'art'\nUser - 'ann':Fairshare=1\nUser - 'bob':Fairshare=1:Priority=100\n\
         Parent - 'oil'\nUser - 'cid':Fairshare=1\n",
    );
    let import = ["site", "import", "--slurm-conf", "slurm.conf", "--sacctmgr-dump", "lab.cfg", "-o", "lab"];
    let output = folder.run(&import).assert_succeeds();
    assert!(!output.stdout.contains("PriorityWeightAssoc"), "{}", output.stdout);
    assert!(folder.read("lab/policy-settings.toml").contains("association = 50,"));
    let accounts = folder.read("lab/accounts.toml");
    assert!(accounts.contains("[[association]]\naccount = \"art\"\npriority = 10\n"), "{accounts}");
    assert!(accounts.contains("account = \"art\"\nuser = \"bob\"\npriority = 100\n"), "{accounts}");
    let header = "JobID|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES|SubmitLine\n";
    let row = |id: u32, user: &str, account: &str, line: &str| {
        format!(
            "{id}|{user}|{account}|main|COMPLETED|2026-01-05T08:00:0{id}|2026-01-05T08:30:00|2026-01-05T08:31:40|100|2|\
             cpu=4,node=1|{line}\n"
        )
    };
    // The first job runs until 08:01:41. Then bob's association has 50, ann's 5, and cid's none.
    let text = |line: &str| {
        [
            header.to_string(),
            row(1, "cid", "oil", ""),
            row(2, "cid", "oil", ""),
            row(3, "ann", "art", ""),
            row(4, "bob", "art", line),
        ]
        .concat()
    };
    let order = |line: &str, policy: &str| {
        folder.write("sacct.txt", text(line));
        let waits = waits(&folder, "slurm", policy).0;
        let mut rows = vec![0, 1, 2, 3];
        rows.sort_by_key(|row| waits[*row] as usize + row);
        rows
    };
    assert_eq!(order("sbatch run.sh", "site"), [0, 3, 2, 1]);
    assert_eq!(order("sbatch run.sh", "multifactor"), [0, 3, 2, 1]);
    assert_eq!(order("sbatch --nice=48 run.sh", "site"), [0, 2, 3, 1]);
    assert_eq!(order("sbatch --nice run.sh", "multifactor"), [0, 2, 1, 3]);
}

/// Two users have run jobs at once: one with much memory on a partition that charges memory, one with more processors on one
/// that charges these alone. The user who was charged less has the better fair-share factor. A real Slurm 22.05.8 billed such
/// jobs 6 and 5, and started the job of the second user first.
#[test]
fn the_site_s_priority_charges_by_the_weights_of_partitions_and_the_factors_of_qos() {
    let conf = |flags: &str, weights: &str| {
        format!(
            "ClusterName=lab\nPriorityType=priority/multifactor\nPriorityWeightFairshare=1000\n{flags}\
             NodeName=n1 CPUs=8 RealMemory=8192\nPartitionName=plain Nodes=n1 MaxTime=1-0\n\
             PartitionName=fat Nodes=n1 MaxTime=1-0{weights}\n"
        )
    };
    let row = |id: u32, user: &str, partition: &str, second: u32, tres: &str| {
        format!(
            "{id}|{user}|{partition}|qos{id}|COMPLETED|2026-01-05T08:00:0{second}|2026-01-05T09:30:00|2026-01-05T09:40:00|600|20|{tres},node=1\n"
        )
    };
    let header = "JobID|User|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES\n";
    let rows = [
        row(1, "fay", "fat", 1, "cpu=2,mem=4G"),
        row(2, "pia", "plain", 1, "cpu=5,mem=1G"),
        row(3, "pia", "plain", 2, "cpu=8,mem=8G"),
        row(4, "fay", "plain", 3, "cpu=8,mem=8G"),
    ];
    let with_factor = |flags: &str, weights: &str, factor: &str, policy: &str| {
        let folder = TestFolder::with("slurm.conf", conf(flags, weights));
        folder.write("sacct.txt", [header, &rows.concat()].concat());
        folder.write("qos.txt", format!("Name|UsageFactor\nnormal|1.000000\nqos1|{factor}\n"));
        let import = ["site", "import", "--slurm-conf", "slurm.conf", "--qos", "qos.txt", "-o", "lab"];
        let import = folder.run(&import).assert_succeeds();
        let waits = waits(&folder, "slurm", policy).0;
        (if waits[3] < waits[2] { "fay first" } else { "pia first" }, import.stdout)
    };
    let order = |flags: &str, weights: &str, policy: &str| with_factor(flags, weights, "1.000000", policy);
    let weights = " TRESBillingWeights=\"CPU=1.0,Mem=1G,license/x=4\"";
    for policy in ["site", "multifactor"] {
        // Processors: 2 against 5.
        assert_eq!(order("", "", policy).0, "fay first");
        // 2 + 4 against 5.
        let (first, found) = order("", weights, policy);
        assert_eq!(first, "pia first");
        let listed = "PartitionName TRESBillingWeights: fat=license/x=4 (slurm.conf:6:";
        assert!(found.contains(listed) && !found.contains("Mem=1G"), "{found}");
        // The larger of 2 and 4 against 5.
        let (first, found) = order("PriorityFlags=MAX_TRES\n", weights, policy);
        assert!(first == "fay first" && !found.contains("MAX_TRES"), "{found}");
        // 2 x 3 against 5, and 6 x 0.5.
        let (first, found) = with_factor("", "", "3.000000", policy);
        assert!(first == "pia first" && !found.contains("UsageFactor"), "{found}");
        assert_eq!(with_factor("", weights, "0.500000", policy).0, "fay first");
    }
}

#[test]
fn an_array_is_one_record_of_the_queue() {
    let conf = "ClusterName=lab\nPriorityType=priority/basic\n\
        SchedulerParameters=default_queue_depth=2,sched_interval=150,bf_interval=150,batch_sched_delay=1\n\
        NodeName=n[1-2] CPUs=4 RealMemory=1000\nPartitionName=left Nodes=n1\nPartitionName=right Nodes=n2\n";
    let folder = TestFolder::with("slurm.conf", conf);
    folder.run(&["site", "import", "--slurm-conf", "slurm.conf", "-o", "lab"]).assert_succeeds();
    let row = |id: &str, partition: &str, second: u32, cpus: u32| {
        format!(
            "{id}|ann|{partition}|COMPLETED|2026-01-05T08:00:{second:02}|2026-01-05T08:30:00|2026-01-05T08:30:30|30|5|cpu={cpus},node=1\n"
        )
    };
    let header = "JobID|User|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES\n";
    let array: String = (1..=20).map(|task| row(&format!("3_{task}"), "left", 4, 4)).collect();
    folder.write("sacct.txt", [header, &row("2", "left", 1, 4), &array, &row("4", "right", 7, 1)].concat());
    let (waits, _) = waits(&folder, "slurm", "site");
    assert_eq!((waits.len(), waits[0], waits[21]), (22, 1.0, 1.0), "{waits:?}");
    assert!(waits[1] > 20.0, "{waits:?}");
}

#[test]
fn users_of_an_account_with_fairshare_parent_share_with_those_of_the_account_above() {
    let folder = TestFolder::with("slurm.conf", CONF);
    folder.write(
        "lab.cfg",
        "Cluster - 'lab':Fairshare=1\nParent - 'root'\nAccount - 'physics':Fairshare=3\nAccount - 'art':Fairshare=1\n\
         Parent - 'physics'\nUser - 'ann':Fairshare=1\nAccount - 'optics':Fairshare=parent\n\
         Parent - 'optics'\nUser - 'bob':Fairshare=1\nParent - 'art'\nUser - 'cid':Fairshare=1\nUser - 'bob':Fairshare=4\n",
    );
    let import = ["site", "import", "--slurm-conf", "slurm.conf", "--sacctmgr-dump", "lab.cfg", "-o", "lab"];
    folder.run(&import).assert_succeeds();
    let header = "JobID|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES\n";
    let rows: String = [("ann", "physics"), ("bob", "optics"), ("cid", "art"), ("bob", "art")]
        .iter()
        .enumerate()
        .map(|(i, (user, account))| {
            format!(
                "{i}|{user}|{account}|main|COMPLETED|2026-01-05T08:00:00|2026-01-05T08:30:00|2026-01-05T08:31:40|100|2|\
                 cpu=4,node=1\n"
            )
        })
        .collect();
    folder.write("sacct.txt", [header, &rows].concat());
    let study = "study sacct.txt --site lab --scheduler easy --policy fair-tree --repeat 1 --out study";
    let output = folder.run(&study.split(' ').collect::<Vec<&str>>()).assert_succeeds();
    assert!(!output.stderr.contains("optics"), "{}", output.stderr);
    let accounts = folder.read("study/accounts.csv");
    // Of physics ann and bob have half each; of art cid has one part of five.
    for row in ["physics,,ann,0.375,", "physics,,bob@optics,0.375,", "art,,cid,0.05,", "art,,bob@art,0.2,"] {
        assert!(accounts.contains(row), "{row}:\n{accounts}");
    }
}
