//! slurm.conf: settings, nodes and partitions.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::statements::{Setting, Statement, read_statements};
use super::{Position, SiteFileError};
use crate::cluster_from_site::shortened;
use crate::configuration::Configuration;
use crate::nodes::Node;
use crate::parse_values::{Limit, expected_number, number};
use crate::partitions::{DefaultMemory, Partition};
use evenhand_model::{Amount, expand_hostlist};
use evenhand_policies::{BILLING_WEIGHTS, TresWeight};
use evenhand_workload::slurm_notation::parse_gres;

/// What slurm.conf says.
#[derive(Clone, Debug, Default)]
pub struct SlurmConf {
    /// The file and those that it includes, in the order in which they are read.
    pub files: Vec<PathBuf>,
    /// The settings of the site as a whole.
    pub configuration: Configuration,
    /// The nodes in their order, with their partitions.
    pub nodes: Vec<Node>,
    /// The partitions in their order.
    pub partitions: Vec<Partition>,
    /// Settings that slurm.conf(5) does not have, with their places.
    pub unknown: Vec<(String, Position)>,
    /// Options of nodes and partitions, by name: `PartitionName AllowAccounts`.
    pub options: BTreeMap<String, Vec<String>>,
    /// Where the values of `options` stand, in the same order.
    pub option_places: BTreeMap<String, Vec<Position>>,
    /// Where the values of settings of the site as a whole stand, by their names in lower case.
    pub places: BTreeMap<String, Position>,
    /// Where the QOS of a partition stands, by the name of the partition.
    pub qos_places: BTreeMap<String, Position>,
    /// Options of nodes and partitions that slurm.conf(5) does not have, with their places.
    pub unknown_options: Vec<(String, Position)>,
    /// Definitions of partitions that stand behind another one of the same name, as Slurm ignores them.
    pub repeated_partitions: Vec<(String, Position)>,
    /// The nodes of a line that no partition has, and their place.
    pub without_partition: Vec<(String, Position)>,
}

impl SlurmConf {
    /// Returns where the value of a setting of the site as a whole stands; an empty text if that is not known.
    pub fn place_of(&self, name: &str) -> String {
        self.places.get(&name.to_ascii_lowercase()).map_or(String::new(), Position::to_string)
    }

    /// The same of a value of an option, by its place in `options`.
    pub(super) fn place_of_option(&self, option: &str, at: usize) -> String {
        self.option_places.get(option).and_then(|places| places.get(at)).map_or(String::new(), Position::to_string)
    }
}

/// Statements that are neither a node nor a partition and do not set something for the site as a whole.
const OTHER_STATEMENTS: [&str; 4] = ["DownNodes", "FrontendName", "SwitchName", "NodeSet"];

/// The parameters of slurm.conf(5), releases 22.05 to 26.05, a line each; a few are older.
const NAMES: &str = include_str!("slurm_conf_names.txt");

/// Options of nodes and partitions that are no parameters of the site as a whole.
const OPTION_NAMES: [&str; 12] = [
    "Alternate",
    "CpuBind",
    "ExclusiveTopo",
    "JobDefaults",
    "LLN",
    "MaxCPUsPerSocket",
    "Parameters",
    "PowerDownOnIdle",
    "Priority",
    "QOS",
    "RestrictedCoresPerGPU",
    "Topology",
];

/// The most memory of a node, in megabytes, so that its bytes are an amount.
const MOST_MEGABYTES: u64 = Amount::MAX.0 >> 20;

/// What is expected in place of a text that is no list of hosts.
pub(super) const HOSTS: &str = "names of nodes such as n[1-4],g1, at most 1048576 of them";

/// Returns an option of nodes and partitions, in any case, as slurm.conf(5) spells it.
fn option_name(name: &str) -> Option<&'static str> {
    NAMES.lines().chain(OPTION_NAMES).find(|known| known.eq_ignore_ascii_case(name))
}

fn is_known(name: &str) -> bool {
    NAMES.lines().any(|known| known.eq_ignore_ascii_case(name))
}

/// Settings that are times, of which a simulation reads the values only with the policy that they are for.
const TIMES: [&str; 2] = ["PriorityDecayHalfLife", "PriorityMaxAge"];

/// Settings that are weights of the factors of a priority.
const WEIGHTS: [&str; 6] = [
    "PriorityWeightAge",
    "PriorityWeightAssoc",
    "PriorityWeightFairShare",
    "PriorityWeightJobSize",
    "PriorityWeightPartition",
    "PriorityWeightQOS",
];

/// Checks the value of a setting of the site as a whole as slurmctld does when it reads the file, whatever the policy.
fn check_value(setting: &Setting) -> Result<(), SiteFileError> {
    let is_any = |names: &[&str]| names.iter().any(|name| setting.is(name));
    if is_any(&TIMES) && Limit::parse_configured(&setting.value).is_none() {
        return Err(setting.error("a time such as 7-0 (days and hours), 12:00:00, or minutes"));
    }
    if is_any(&WEIGHTS) && setting.value.parse::<u32>().is_err() {
        return Err(setting.error(format!("a whole number, at most {}", u32::MAX)));
    }
    Ok(())
}

/// Returns the names of parameters of slurm.conf(5), to find one that an unknown name may mean.
pub fn slurm_conf_names() -> impl Iterator<Item = &'static str> {
    NAMES.lines()
}

/// Reads slurm.conf, and the files that it includes.
///
/// # Errors
/// Returns an error with file and line if a file cannot be read, a value is malformed, a node is defined twice, or a
/// partition names a node that is not defined.
pub fn read_slurm_conf(path: &Path) -> Result<SlurmConf, SiteFileError> {
    let (statements, files) = read_statements(path)?;
    let mut conf = SlurmConf { files, ..SlurmConf::default() };
    let mut settings = BTreeMap::new();
    let (mut node_defaults, mut partition_defaults) = (Statement::new(), Statement::new());
    let mut sets: HashMap<String, Statement> = HashMap::new();
    let mut members: Vec<Option<Setting>> = Vec::new();
    // Where nodes are defined, by name.
    let mut defined: HashMap<String, Position> = HashMap::new();
    for statement in statements {
        let first = statement[0].clone();
        if first.is("NodeName") {
            conf.note_options("NodeName", &statement);
            if first.value == "DEFAULT" {
                node_defaults = over(&node_defaults, &statement);
            } else {
                let nodes = nodes(&first, &over(&node_defaults, &statement))?;
                for node in &nodes {
                    if let Some(before) = defined.insert(node.name.clone(), first.place.clone()) {
                        return Err(
                            first.error(format!("nodes with names of their own; {} is defined at {before}", node.name))
                        );
                    }
                }
                conf.nodes.extend(nodes);
            }
        } else if first.is("PartitionName") {
            conf.note_options("PartitionName", &statement);
            if first.value == "DEFAULT" {
                partition_defaults = over(&partition_defaults, &statement);
            } else {
                if conf.partitions.iter().any(|partition| partition.name == first.value) {
                    conf.repeated_partitions.push((first.value, first.place));
                    continue;
                }
                let all = over(&partition_defaults, &statement);
                if let Some(qos) = find(&all, "QOS") {
                    conf.qos_places.insert(first.value.clone(), qos.place.clone());
                }
                members.push(find(&all, "Nodes").cloned());
                conf.partitions.push(partition(&first, &all)?);
            }
        } else if first.is("NodeSet") {
            sets.insert(first.value.clone(), statement);
        } else if let Some(name) = OTHER_STATEMENTS.iter().find(|name| first.is(name)) {
            conf.option_places.entry(name.to_string()).or_default().push(first.place.clone());
            conf.options.entry(name.to_string()).or_default().push(first.value.clone());
        } else {
            for setting in statement {
                check_value(&setting)?;
                if !is_known(&setting.name) {
                    conf.unknown.push((setting.name.clone(), setting.place.clone()));
                }
                // Names are read in any case; of several values of one the last counts.
                let name = setting.name.to_ascii_lowercase();
                conf.places.insert(name.clone(), setting.place);
                settings.insert(name, setting.value);
            }
        }
    }
    let text: String = settings.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    conf.configuration = Configuration::parse(&text).unwrap_or_default();
    conf.put_nodes_in_partitions(&members, &sets)?;
    conf.note_nodes_without_partition(&defined);
    Ok(conf)
}

/// `settings` over `defaults`.
fn over(defaults: &Statement, settings: &Statement) -> Statement {
    let is_set = |d: &&Setting| !settings.iter().any(|s| s.is(&d.name));
    settings.iter().chain(defaults.iter().filter(is_set)).cloned().collect()
}

fn find<'a>(statement: &'a Statement, name: &str) -> Option<&'a Setting> {
    statement.iter().find(|s| s.is(name))
}

fn whole(statement: &Statement, name: &str) -> Result<Option<u64>, SiteFileError> {
    find(statement, name).map(|s| number(&s.value).ok_or_else(|| s.error(expected_number(&s.value)))).transpose()
}

fn hosts(setting: &Setting) -> Result<Vec<String>, SiteFileError> {
    expand_hostlist(&setting.value).ok_or_else(|| setting.error(HOSTS))
}

fn list(statement: &Statement, names: &[&str]) -> Vec<String> {
    let found = names.iter().find_map(|name| find(statement, name));
    found.map_or(Vec::new(), |s| s.value.split(',').map(|f| f.trim().to_string()).filter(|f| !f.is_empty()).collect())
}

fn nodes(name: &Setting, statement: &Statement) -> Result<Vec<Node>, SiteFileError> {
    let or_one = |name| whole(statement, name).map(|n| n.unwrap_or(1));
    let cpus = match (whole(statement, "CPUs")?, whole(statement, "Procs")?) {
        (Some(cpus), _) | (None, Some(cpus)) => cpus,
        (None, None) => {
            let sockets = match (whole(statement, "Sockets")?, whole(statement, "SocketsPerBoard")?) {
                (Some(sockets), _) => sockets,
                (None, on_board) => or_one("Boards")?.saturating_mul(on_board.unwrap_or(1)),
            };
            sockets.saturating_mul(or_one("CoresPerSocket")?).saturating_mul(or_one("ThreadsPerCore")?)
        }
    };
    if cpus == 0 {
        return Err(name.error("a node with CPUs (CPUs, or Sockets, CoresPerSocket and ThreadsPerCore above 0)"));
    }
    let reserved = whole(statement, "MemSpecLimit")?.unwrap_or(0);
    let megabytes = whole(statement, "RealMemory")?.unwrap_or(1);
    if let Some(real) = find(statement, "RealMemory").filter(|_| megabytes > MOST_MEGABYTES) {
        return Err(real.error(format!("megabytes, at most {MOST_MEGABYTES}")));
    }
    let memory = megabytes.saturating_sub(reserved) << 20;
    let gres = match find(statement, "Gres").filter(|s| !s.value.is_empty() && s.value != "(null)") {
        Some(s) => parse_gres(&s.value).ok_or_else(|| s.error("generic resources like gpu:a100:4"))?,
        None => Vec::new(),
    };
    let state = find(statement, "State").map_or("UNKNOWN", |s| s.value.as_str()).to_ascii_uppercase();
    let node = Node {
        cpus,
        memory,
        gres,
        features: list(statement, &["Features", "Feature"]),
        state: vec![state],
        weight: whole(statement, "Weight")?.unwrap_or(1),
        ..Node::default()
    };
    Ok(hosts(name)?.into_iter().map(|name| Node { name, ..node.clone() }).collect())
}

fn partition(name: &Setting, statement: &Statement) -> Result<Partition, SiteFileError> {
    let limit = |name: &str| match find(statement, name) {
        Some(s) => {
            Limit::parse_configured(&s.value).ok_or_else(|| s.error("a time limit like 1-00:00:00, or UNLIMITED"))
        }
        None => Ok(Limit::None),
    };
    let text = |name: &str| find(statement, name).map(|s| s.value.clone());
    let max_nodes = match find(statement, "MaxNodes").filter(|s| !s.value.eq_ignore_ascii_case("UNLIMITED")) {
        Some(_) => whole(statement, "MaxNodes")?,
        None => None,
    };
    if let Some(weights) = find(statement, "TRESBillingWeights").filter(|s| TresWeight::parse_list(&s.value).is_none())
    {
        return Err(weights.error(BILLING_WEIGHTS));
    }
    // Priority sets both, as in releases before 16.05.
    let both = whole(statement, "Priority")?;
    Ok(Partition {
        name: name.value.clone(),
        is_default: text("Default").is_some_and(|t| t.eq_ignore_ascii_case("YES")),
        state: text("State").unwrap_or_else(|| "UP".into()).to_ascii_uppercase(),
        max_time: limit("MaxTime")?,
        default_time: limit("DefaultTime")?,
        priority_tier: whole(statement, "PriorityTier")?.or(both).unwrap_or(1),
        priority_job_factor: whole(statement, "PriorityJobFactor")?.or(both).unwrap_or(1),
        max_nodes,
        nodes: text("Nodes"),
        billing_weights: text("TRESBillingWeights"),
        preempt_mode: text("PreemptMode"),
        exclusive: text("OverSubscribe")
            .or_else(|| text("Shared"))
            .is_some_and(|t| t.eq_ignore_ascii_case("EXCLUSIVE")),
        grace_time: whole(statement, "GraceTime")?.unwrap_or(0),
        qos: text("QOS").filter(|name| name != "N/A"),
        default_memory: DefaultMemory::of(text),
        line: 0,
    })
}

impl SlurmConf {
    fn note_options(&mut self, kind: &str, statement: &Statement) {
        for setting in &statement[1..] {
            let known = option_name(&setting.name);
            let option = format!("{kind} {}", known.unwrap_or(&setting.name));
            if known.is_none() {
                self.unknown_options.push((option.clone(), setting.place.clone()));
            }
            self.option_places.entry(option.clone()).or_default().push(setting.place.clone());
            self.options.entry(option).or_default().push(format!("{}={}", statement[0].value, setting.value));
        }
    }

    /// Finds the nodes that no partition has, of each line together.
    fn note_nodes_without_partition(&mut self, defined: &HashMap<String, Position>) {
        let mut lines: BTreeMap<&Position, Vec<&str>> = BTreeMap::new();
        for node in self.nodes.iter().filter(|node| node.partitions.is_empty() && !node.is_future()) {
            if let Some(place) = defined.get(&node.name) {
                lines.entry(place).or_default().push(&node.name);
            }
        }
        self.without_partition = lines.into_iter().map(|(place, names)| (shortened(&names), place.clone())).collect();
    }

    /// Fills each node's partitions; `members` are the `Nodes` settings of the partitions.
    fn put_nodes_in_partitions(
        &mut self,
        members: &[Option<Setting>],
        sets: &HashMap<String, Statement>,
    ) -> Result<(), SiteFileError> {
        let place: HashMap<String, usize> =
            self.nodes.iter().enumerate().map(|(at, node)| (node.name.clone(), at)).collect();
        for (partition, setting) in self.partitions.iter().zip(members) {
            let Some(setting) = setting else { continue };
            let mut numbers: HashSet<usize> = HashSet::new();
            if setting.value == "ALL" {
                numbers.extend(0..self.nodes.len());
            } else if setting.value != "(null)" {
                for name in hosts(setting)? {
                    match (place.get(&name), sets.get(&name)) {
                        (Some(at), _) => {
                            numbers.insert(*at);
                        }
                        (None, Some(set)) => numbers.extend(self.of_set(set, &place)?),
                        (None, None) => {
                            let expected = format!("defined nodes; no NodeName or NodeSet defines {name}");
                            return Err(setting.error(expected));
                        }
                    }
                }
            }
            for at in numbers {
                self.nodes[at].partitions.push(partition.name.clone());
            }
        }
        Ok(())
    }

    /// The nodes of a node set: those that it names, and those with its feature.
    fn of_set(&self, set: &Statement, place: &HashMap<String, usize>) -> Result<Vec<usize>, SiteFileError> {
        let mut numbers = Vec::new();
        if let Some(names) = find(set, "Nodes") {
            for name in hosts(names)? {
                let unknown = || names.error(format!("defined nodes; no NodeName defines {name}"));
                numbers.push(*place.get(&name).ok_or_else(unknown)?);
            }
        }
        let wanted = list(set, &["Feature"]);
        let has = |node: &Node| node.features.iter().any(|f| wanted.contains(f));
        numbers.extend(self.nodes.iter().enumerate().filter(|(_, node)| has(node)).map(|(at, _)| at));
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(files: &[(&str, &str)]) -> Result<SlurmConf, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let path = folder.path().join("slurm.conf");
        let prefix = format!("{}/", folder.path().display());
        read_slurm_conf(&path).map_err(|error| error.to_string().replace(&prefix, ""))
    }

    const CONF: &str = "ClusterName=lab # the name\n\
        SchedulerType=sched/backfill SchedulerParameters=bf_interval=10,\\\nbf_continue\n\
        PriorityType=priority/multifactor\nPriorityWeightAge=1000\nBfInterval=3\n\
        include nodes.conf\n\
        PartitionName=DEFAULT MaxTime=1-0 State=UP\n\
        PartitionName=main Nodes=n[1-3] Default=YES AllowAccounts=physics\n\
        PartitionName=gpu Nodes=fast MaxTime=60 PriorityTier=5 Priority=7\nPartitionName=all Nodes=ALL MaxTime=UNLIMITED\n";
    const NODES: &str = "NodeName=DEFAULT Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=1000\n\
        NodeName=n[1-3] Weight=2 MemSpecLimit=200\nNodeName=g1 CPUs=4 Gres=gpu:a100:2 Feature=fast State=DOWN\n\
        NodeSet=fast Feature=fast\n";

    #[test]
    fn settings_nodes_and_partitions_are_read_through_includes_defaults_and_continuations() {
        let conf = read(&[("slurm.conf", CONF), ("nodes.conf", NODES)]).unwrap();
        let c = &conf.configuration;
        assert_eq!((c.cluster(), c.backfills()), (Some("lab"), true));
        assert_eq!(c.get("PriorityWeightAge"), Some("1000"));
        assert_eq!(c.get("SchedulerParameters"), Some("bf_interval=10,bf_continue"));
        let nodes: Vec<(&str, u64, u64, u64, String)> = conf
            .nodes
            .iter()
            .map(|n| (n.name.as_str(), n.cpus, n.memory >> 20, n.weight, n.partitions.join(" ")))
            .collect();
        let three = |name| (name, 16, 800, 2, "main all".to_string());
        assert_eq!(nodes, [three("n1"), three("n2"), three("n3"), ("g1", 4, 1000, 1, "gpu all".to_string())]);
        assert_eq!((conf.nodes[3].gpus(), conf.nodes[3].is_unavailable()), (2, true));
        let partitions: Vec<(&str, String, u64, u64)> = conf
            .partitions
            .iter()
            .map(|p| (p.name.as_str(), p.max_time.to_string(), p.priority_tier, p.priority_job_factor))
            .collect();
        assert_eq!(
            partitions,
            [
                ("main", "1-00:00:00".to_string(), 1, 1),
                ("gpu", "01:00:00".to_string(), 5, 7),
                ("all", "UNLIMITED".to_string(), 1, 1)
            ]
        );
        assert_eq!(
            conf.unknown.iter().map(|u| (u.0.as_str(), u.1.line, u.1.column)).collect::<Vec<_>>(),
            [("BfInterval", 6, 12)]
        );
        assert_eq!(conf.options["PartitionName AllowAccounts"], ["main=physics"]);
    }

    #[test]
    fn names_are_read_in_any_case() {
        let text = "clustername=lab\nSchedulerType=sched/backfill\nschedulertype=sched/builtin\n\
            NODENAME=DEFAULT cpus=4 REALMEMORY=100\nnodename=n[1-2] weight=3\nnodeset=fast NODES=n1\n\
            partitionname=main nodes=fast maxtime=60 ALLOWACCOUNTS=art\nPartitionName=all Nodes=ALL AllowAccounts=lab\n\
            downnodes=n2 state=DOWN\n";
        let conf = read(&[("slurm.conf", text)]).unwrap();
        assert_eq!(
            (conf.configuration.cluster(), conf.configuration.backfills()),
            (Some("lab"), false),
            "the last counts"
        );
        assert_eq!(conf.place_of("SchedulerType").rsplit('/').next(), Some("slurm.conf:3:15"));
        let [n1, n2] = conf.nodes.as_slice() else { panic!("{:?}", conf.nodes) };
        assert_eq!((n1.cpus, n1.memory >> 20, n1.weight), (4, 100, 3));
        assert_eq!((n1.partitions.join(" "), n2.partitions.join(" ")), ("main all".into(), "all".into()));
        assert_eq!(conf.partitions[0].max_time.to_string(), "01:00:00");
        // One option, however it is spelled.
        assert_eq!(conf.options["PartitionName AllowAccounts"], ["main=art", "all=lab"]);
        assert_eq!(conf.options["DownNodes"], ["n2"]);
        assert!(conf.unknown.is_empty() && conf.unknown_options.is_empty());
    }

    #[test]
    fn errors_have_file_and_line() {
        let error = |files: &[(&str, &str)]| read(files).unwrap_err();
        let missing = error(&[("slurm.conf", "ClusterName=x\ninclude other.conf\n")]);
        assert!(missing.starts_with("slurm.conf:2:9: cannot read other.conf: "), "{missing}");
        assert_eq!(
            error(&[
                ("slurm.conf", "include n.conf\nPartitionName=p Nodes=n[1-2],x\n"),
                ("n.conf", "NodeName=n[1-2]\n")
            ]),
            "slurm.conf:2:23: found \"n[1-2],x\", expected defined nodes; no NodeName or NodeSet defines x"
        );
        assert_eq!(
            error(&[("slurm.conf", "include n.conf\n"), ("n.conf", "\n NodeName=a CPUs=many\n")]),
            "n.conf:2:18: found \"many\", expected a whole number"
        );
        assert_eq!(
            error(&[("slurm.conf", "NodeName=a\nPartitionName=p TRESBillingWeights=\"CPU=1,Mem\"\n")]),
            "slurm.conf:2:36: found \"CPU=1,Mem\", expected weights such as CPU=1.0,Mem=0.25G,GRES/gpu=2.0"
        );
        for (text, expected) in [
            (
                "PriorityType=priority/basic\nPriorityDecayHalfLife=14x\n",
                "2:23: found \"14x\", expected a time such as 7-0 (days and hours), 12:00:00, or minutes",
            ),
            ("PriorityWeightQOS=-1\n", "1:19: found \"-1\", expected a whole number, at most 4294967295"),
            (
                "NodeName=a RealMemory=99999999999999999999\n",
                "1:23: found \"99999999999999999999\", expected a whole number, at most 18446744073709551615",
            ),
            (
                "NodeName=a RealMemory=9999999999999999999\n",
                "1:23: found \"9999999999999999999\", expected megabytes, at most 953674316406",
            ),
            (
                "NodeName=n[0001-9999999]\n",
                "1:10: found \"n[0001-9999999]\", expected names of nodes such as n[1-4],g1, at most 1048576 of them",
            ),
        ] {
            assert_eq!(error(&[("slurm.conf", text)]), format!("slurm.conf:{expected}"));
        }
        assert_eq!(
            error(&[("slurm.conf", "NodeName=a words\n")]),
            "slurm.conf:1:12: found \"words\", expected Name=value"
        );
        assert_eq!(
            error(&[("slurm.conf", "NodeName=n[1-3]\nNodeName=n3 CPUs=2\n")]),
            "slurm.conf:2:10: found \"n3\", expected nodes with names of their own; n3 is defined at slurm.conf:1:10"
        );
        let loops = error(&[("slurm.conf", "include slurm.conf\n")]);
        assert!(loops.contains("include one another at most"), "{loops}");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_name_and_the_files_are_listed() {
        let conf = read(&[("slurm.conf", "\u{feff}ClusterName=lab\ninclude n.conf\n"), ("n.conf", "")]).unwrap();
        assert_eq!((conf.configuration.cluster(), conf.unknown.len()), (Some("lab"), 0));
        let names: Vec<_> = conf.files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
        assert_eq!(names, ["slurm.conf", "n.conf"]);
        for time in ["0", "7-0", "1-12:30", "90", "14-00:00:00", "UNLIMITED"] {
            read(&[("slurm.conf", &format!("PriorityDecayHalfLife={time}\n"))]).unwrap();
        }
    }

    #[test]
    fn what_slurm_would_ignore_or_leave_idle_is_found_with_its_place() {
        let text = "NodeName=DEFAULT CPUs=4 Gress=gpu:1\nNodeName=n[1-3],x1\nNodeName=later State=FUTURE\n\
            PartitionName=p Nodes=n1 QOS=quick LLN=YES MaxTim=5\nPartitionName=p Nodes=ALL\n";
        let conf = read(&[("slurm.conf", text)]);
        let conf = conf.unwrap();
        let places = |found: &[(String, Position)]| {
            found.iter().map(|(name, at)| format!("{}:{} {name}", at.line, at.column)).collect::<Vec<String>>()
        };
        assert_eq!(places(&conf.unknown_options), ["1:31 NodeName Gress", "4:51 PartitionName MaxTim"]);
        assert_eq!(places(&conf.repeated_partitions), ["5:15 p"]);
        assert_eq!(places(&conf.without_partition), ["2:10 n2 and 2 more"]);
        assert_eq!((conf.partitions.len(), conf.qos_places["p"].line), (1, 4));
    }
}
