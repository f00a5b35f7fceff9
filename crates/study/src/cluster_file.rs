//! The cluster file: machines and queues in TOML.

use std::path::Path;

use evenhand_documents::{Document, DocumentError, Node, Table, nearest};
use evenhand_model::{Cluster, Limit, MachineGroup, Queue, Rational, ResourceQuantity, Span, expand_hostlist};

use crate::{cluster_closures, cluster_licences, cluster_qos};

const MACHINE: [&str; 6] = ["name", "count", "speed", "weight", "properties", "hosts"];
const QUEUE: [&str; 13] = [
    "name",
    "price",
    "priority",
    "max_wall",
    "max_job",
    "max_user",
    "max_user_jobs",
    "max",
    "max_jobs",
    "properties",
    "whole_machines",
    "preempt_mode",
    "grace_time",
];
const LIMIT: [&str; 12] = [
    "name",
    "queues",
    "accounts",
    "users",
    "qos",
    "except_qos",
    "each_user",
    "max",
    "max_jobs",
    "max_submitted",
    "max_job",
    "max_wall",
];

/// Reads the machines and queues of a cluster file; `None` if it has no `[[machines]]`.
///
/// ```toml
/// [[machines]]
/// name = "fat"
/// count = 4
/// cpu = 64
/// mem = "512GiB"   # a size is bytes, a plain number the workload's own unit
/// gpu = 2
/// speed = 1.25     # default 1
/// properties = ["infiniband"]
///
/// [[queues]]
/// name = "long"
/// price = 2        # default 1
/// priority = 10    # default 0
/// max_wall = "7d"
/// max_job = { cpu = 64 }
/// max_user = { cpu = 256 }
/// max_user_jobs = 8
/// max = { cpu = 1024 }
/// max_jobs = 100
/// whole_machines = true # default false: jobs share machines
///
/// [[limits]]       # jobs of these queues, accounts, users and QOS; each may be left out
/// name = "physics, a user"
/// queues = ["long"]
/// accounts = ["physics", "optics"]
/// users = ["ann"]
/// qos = ["normal"]
/// except_qos = ["long"]
/// each_user = true # default false: all together
/// max = { cpu = 64 }
/// max_jobs = 4
/// max_submitted = 100
/// max_job = { cpu = 32 }
/// max_wall = "2d"
///
/// [[qos]]          # what preempts, and is preempted
/// name = "urgent"
/// priority = 10
/// preempts = ["normal"]
/// preempt_mode = "requeue"
/// preempt_exempt_time = "10m"
/// grace_time = "30s"
///
/// [[reservations]] # only the jobs of the reservation run there then
/// name = "course"
/// machines = ["fat"]
/// from = "2026-01-31T08:00" # in UTC, or seconds of the log
/// to = "2026-01-31T18:00"
/// may_overlap = false       # default
///
/// [[outages]]      # no job starts there then
/// name = "power supply"
/// machines = ["fat"]
/// from = "2026-02-03T11:20"
/// to = "2026-02-04"         # default: it never ends
/// ```
///
/// Keys of a machine other than `name`, `count`, `speed`, `properties` and `hosts` are resources. A `[pool]`
/// beside them is left to [`read_pool`](crate::read_pool).
///
/// # Errors
/// Returns an error, with line and column, if the file cannot be read or does not have this format.
pub fn read_cluster(path: &Path) -> Result<Option<Cluster>, DocumentError> {
    let document = Document::read_toml(path)?;
    cluster_of(&document)
}

/// Reads the machines and queues of a document; `None` if it has no `machines`.
///
/// # Errors
/// See [`read_cluster`].
pub fn cluster_of(document: &Document) -> Result<Option<Cluster>, DocumentError> {
    let root = document.root()?;
    let Some(machines) = root.get("machines") else {
        return match root.get("queues") {
            Some(queues) if root.get("pool").is_none() => {
                Err(queues.error("found queues but no [[machines]], expected both"))
            }
            _ => Ok(None),
        };
    };
    root.deny_unknown(&["machines", "queues", "limits", "qos", "licences", "reservations", "outages", "pool"])?;
    let mut cluster = Cluster::default();
    for group in machines.with_label("[[machines]]").list()? {
        machine(&group.table()?, &mut cluster)?;
    }
    if cluster.groups.is_empty() {
        return Err(root.error("found an empty list of machines, expected at least one [[machines]]"));
    }
    if let Some(queues) = root.get("queues") {
        for node in queues.with_label("[[queues]]").list()? {
            let queue = queue(&node.table()?, &mut cluster)?;
            cluster.queues.push(queue);
        }
    }
    if let Some(limits) = root.get("limits") {
        for node in limits.with_label("[[limits]]").list()? {
            let limit = limit(&node.table()?, &cluster)?;
            cluster.limits.push(limit);
        }
    }
    cluster_qos::read(&root, &mut cluster)?;
    cluster_licences::read(&root, &mut cluster)?;
    cluster_closures::read(&root, &mut cluster)?;
    Ok(Some(cluster))
}

fn limit(table: &Table<'_>, cluster: &Cluster) -> Result<Limit, DocumentError> {
    table.deny_unknown(&LIMIT)?;
    let names = |key: &str| match table.get(key) {
        Some(node) => {
            node.list()?.map(|name| Ok(name.text()?.to_string())).collect::<Result<Vec<String>, DocumentError>>()
        }
        None => Ok(Vec::new()),
    };
    let found = Limit {
        name: table.required("name", "a name in quotation marks")?.text()?.to_string(),
        queues: names("queues")?,
        accounts: names("accounts")?,
        users: names("users")?,
        qos: names("qos")?,
        except_qos: names("except_qos")?,
        each_user: flag(table, "each_user")?,
        max: limits(table, "max", cluster)?,
        max_jobs: number_of_jobs(table, "max_jobs")?,
        max_submitted: number_of_jobs(table, "max_submitted")?,
        max_job: limits(table, "max_job", cluster)?,
        max_wall: time(table, "max_wall")?,
    };
    if let Some(unknown) = found.queues.iter().position(|name| !cluster.queues.iter().any(|q| q.name == *name)) {
        let node = table.required("queues", "a list")?.list()?.nth(unknown);
        let problem = format!("no queue has the name {:?}", found.queues[unknown]);
        return Err(node.map_or_else(|| table.error(&problem), |n| n.error(&problem)));
    }
    match found.is_empty() {
        true => Err(table.error("found no limit, expected max, max_jobs, max_submitted, max_job or max_wall")),
        false => Ok(found),
    }
}

/// A length of time.
pub(crate) fn time(table: &Table<'_>, key: &str) -> Result<Option<Span>, DocumentError> {
    let parse = |time: Node<'_>| Span::parse(time.written()?).map_err(|e| time.error(e.to_string()));
    table.get(key).map(parse).transpose()
}

fn number_of_jobs(table: &Table<'_>, key: &str) -> Result<Option<u32>, DocumentError> {
    match table.get(key) {
        Some(node) => {
            let expected = "a whole number, at least 0 (0 holds all the jobs; without a limit, leave the key out)";
            whole(&node, 0, i64::from(u32::MAX), expected).map(|n| Some(n as u32))
        }
        None => Ok(None),
    }
}

fn machine(table: &Table<'_>, cluster: &mut Cluster) -> Result<(), DocumentError> {
    let named = name(table, cluster.groups.iter().map(|g| g.name.as_str()))?;
    let count = match table.get("count") {
        Some(node) => whole(&node, 1, 10_000_000, "a whole number from 1 to 10000000")? as u32,
        None => 1,
    };
    let speed = match table.get("speed") {
        Some(node) => node.positive()?.exact().clone(),
        None => Rational::ONE,
    };
    let weight = match table.get("weight") {
        Some(node) => whole(&node, 0, i64::from(u32::MAX), "a whole number from 0 to 4294967295")? as u32,
        None => 1,
    };
    let mut has = vec![ResourceQuantity::ZERO; cluster.resources.len()];
    for (key, node) in table.entries().filter(|(key, _)| !MACHINE.contains(&key.name())) {
        // A misspelt `count` would otherwise become a resource that no task uses.
        if let Some(meant) = nearest(key.name(), MACHINE).filter(|_| key.name().len() > 3) {
            return Err(key.error(format!("unknown field {:?}; did you mean {meant:?}?", key.name())));
        }
        let amount = quantity(&node)?;
        let at = cluster.resources.iter().position(|r| r == key.name()).unwrap_or_else(|| {
            cluster.resources.push(key.name().to_string());
            cluster.groups.iter_mut().for_each(|g| g.capacity.push(ResourceQuantity::ZERO));
            has.push(ResourceQuantity::ZERO);
            has.len() - 1
        });
        has[at] = amount;
    }
    if has.iter().all(|s| s.exact.is_zero()) {
        return Err(table.error("found no resource, expected at least one, such as cpu = 16"));
    }
    let hosts = match table.get("hosts") {
        Some(node) => hosts(&node, count)?,
        None => Vec::new(),
    };
    let properties = properties(table)?;
    cluster.groups.push(MachineGroup { name: named, count, capacity: has, speed, weight, properties, hosts });
    Ok(())
}

/// The names of a group's machines.
fn hosts(node: &Node<'_>, count: u32) -> Result<Vec<String>, DocumentError> {
    let text = node.text()?;
    let names = expand_hostlist(text).filter(|names| !names.is_empty());
    let names =
        names.ok_or_else(|| node.error(format!("found {text:?}, expected a list of hosts such as \"n[1-4],g1\"")))?;
    match names.len() == count as usize {
        true => Ok(names),
        false => {
            let hosts = if names.len() == 1 { "host" } else { "hosts" };
            Err(node.error(format!("found {} {hosts}, expected as many as count says: {count}", names.len())))
        }
    }
}

/// Returns the value of a key that is true or false; false where it is missing.
pub(crate) fn flag(table: &Table<'_>, name: &str) -> Result<bool, DocumentError> {
    Ok(table.get(name).map(|node| node.flag()).transpose()?.unwrap_or(false))
}

fn queue(table: &Table<'_>, cluster: &mut Cluster) -> Result<Queue, DocumentError> {
    table.deny_unknown(&QUEUE)?;
    let mut queue = Queue::new(name(table, cluster.queues.iter().map(|q| q.name.as_str()))?);
    if let Some(price) = table.get("price") {
        queue.price = price.quantity()?.exact().clone();
    }
    if let Some(priority) = table.get("priority") {
        let limit = i64::from(i32::MAX);
        queue.priority = whole(&priority, -limit, limit, "a whole number")? as i32;
    }
    queue.max_wall = time(table, "max_wall")?;
    queue.max_job = limits(table, "max_job", cluster)?;
    queue.max_user = limits(table, "max_user", cluster)?;
    queue.max = limits(table, "max", cluster)?;
    queue.max_user_jobs = number_of_jobs(table, "max_user_jobs")?;
    queue.max_jobs = number_of_jobs(table, "max_jobs")?;
    queue.properties = properties(table)?;
    queue.whole_machines = flag(table, "whole_machines")?;
    queue.preempt_mode = cluster_qos::preempt_mode(table)?;
    queue.grace_time = time(table, "grace_time")?.unwrap_or_default();
    for (at, property) in queue.properties.iter().enumerate() {
        if !cluster.groups.iter().any(|g| g.properties.contains(property)) {
            // The name of a group is a property of its machines, as it is for jobs.
            if let Some(group) = cluster.groups.iter_mut().find(|group| group.name == *property) {
                group.properties.push(property.clone());
                continue;
            }
            let node = table.required("properties", "a list")?.list()?.nth(at);
            let problem = format!(
                "no group of machines has the name or the property {property:?}, so no job of this queue could run"
            );
            return Err(node.map_or_else(|| table.error(&problem), |n| n.error(&problem)));
        }
    }
    Ok(queue)
}

fn limits(table: &Table<'_>, key: &str, cluster: &Cluster) -> Result<Vec<(String, ResourceQuantity)>, DocumentError> {
    let Some(limits) = table.get(key) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (resource, node) in limits.table()?.entries() {
        if !cluster.resources.iter().any(|r| r == resource.name()) {
            let known = cluster.resources.join(", ");
            return Err(resource.error(format!("no machine has {:?}, expected one of: {known}", resource.name())));
        }
        found.push((resource.name().to_string(), quantity(&node)?));
    }
    Ok(found)
}

pub(crate) fn name<'a>(table: &Table<'_>, mut before: impl Iterator<Item = &'a str>) -> Result<String, DocumentError> {
    let node = table.required("name", "a name of its own")?;
    let text = node.written()?;
    if before.any(|b| b == text) {
        return Err(node.error(format!("found {text:?} a second time, expected a name of its own")));
    }
    Ok(text.to_string())
}

fn properties(table: &Table<'_>) -> Result<Vec<String>, DocumentError> {
    let Some(node) = table.get("properties") else { return Ok(Vec::new()) };
    node.list()?.map(|p| Ok(p.text()?.to_string())).collect()
}

pub(crate) fn quantity(node: &Node<'_>) -> Result<ResourceQuantity, DocumentError> {
    match ResourceQuantity::parse(node.written()?) {
        Ok(quantity) => Ok(quantity),
        // With the error of other numbers, except that those do not accept a size in bytes.
        Err(_) => Err(match node.quantity() {
            Err(error) => error,
            Ok(_) => node.error("expected a number or a size"),
        }),
    }
}

pub(crate) fn whole(node: &Node<'_>, from: i64, to: i64, expected: &str) -> Result<i64, DocumentError> {
    let text = node.written()?;
    match text.replace('_', "").parse::<i64>() {
        Ok(n) if (from..=to).contains(&n) => Ok(n),
        _ => Err(node.error(format!("found {text:?}, expected {expected}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_documents::Format;

    fn parse(text: &str) -> Result<Option<Cluster>, String> {
        let document = Document::parse("c.toml", text, Some(Format::Toml)).unwrap();
        cluster_of(&document).map_err(|e| e.to_string().trim_start_matches("c.toml").to_string())
    }

    const TWO: &str = "[[machines]]\nname = \"a\"\ncpu = 4\n[[machines]]\nname = \"b\"\ncount = 3\ncpu = 16\n\
        mem = \"64GiB\"\nspeed = 1.5\nproperties = [\"ssd\"]\n";

    #[test]
    fn a_queue_may_require_a_group_by_its_name() {
        let queue = |property: &str| parse(&format!("{TWO}[[queues]]\nname = \"q\"\nproperties = [\"{property}\"]\n"));
        let cluster = queue("a").unwrap().unwrap();
        assert_eq!(
            (&cluster.groups[0].properties[..], &cluster.queues[0].properties[..]),
            (&["a".into()][..], &["a".into()][..])
        );
        assert_eq!(cluster.groups[1].properties, ["ssd"]);
        let wrong = queue("thin").unwrap_err();
        assert!(wrong.contains("no group of machines has the name or the property \"thin\""), "{wrong}");
    }

    #[test]
    fn machines_and_queues_are_read() {
        let queues = "[[queues]]\nname = 1\nprice = \"1/2\"\npriority = -3\nmax_wall = \"12h\"\n\
            max_job = { mem = \"8Gi\" }\nmax_user = { cpu = 20 }\nmax_user_jobs = 3\nmax = { cpu = 30 }\nmax_jobs = 9\n\
            properties = [\"ssd\"]\nwhole_machines = true\n";
        let cluster = parse(&format!("{TWO}{queues}[pool]\ncpu = 1\n")).unwrap().unwrap();
        assert_eq!(cluster.resources, ["cpu", "mem"]);
        assert_eq!((cluster.machines(), cluster.groups[0].capacity.len()), (4, 2));
        assert_eq!(cluster.groups[0].capacity[1], ResourceQuantity::ZERO);
        assert_eq!(cluster.groups[1].speed.to_string(), "3/2");
        let queue = cluster.queue("1").unwrap();
        assert_eq!((queue.price.to_string(), queue.priority), ("1/2".to_string(), -3));
        assert_eq!(queue.max_wall, Some(Span::from_secs(12 * 3600)));
        assert_eq!(queue.max_job, [("mem".to_string(), ResourceQuantity::parse("8Gi").unwrap())]);
        assert_eq!(queue.max, [("cpu".to_string(), ResourceQuantity::parse("30").unwrap())]);
        assert_eq!((queue.max_user_jobs, queue.max_jobs), (Some(3), Some(9)));
        assert!(queue.whole_machines);
        assert_eq!(parse("[pool]\ncpu = 3\n"), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let wrong = |text: &str| parse(text).unwrap_err();
        assert!(wrong("[[machines]]\ncpu = 3\n").starts_with(":1:1: [[machines]]: found no name"));
        assert!(wrong("[[machines]]\nname = \"a\"\n").contains("found no resource"));
        assert!(wrong("[[machines]]\nname = \"a\"\ncpu = 0\n").contains("found no resource"));
        assert!(wrong("[[machines]]\nname = \"a\"\ncpu = -1\n").starts_with(":3:7: cpu: found \"-1\""));
        assert!(wrong("[[machines]]\nname = \"a\"\ncuont = 2\ncpu = 1\n").starts_with(":3:1: unknown field \"cuont\""));
        assert!(wrong("[[machines]]\nname = \"a\"\ncount = 0\ncpu = 1\n").starts_with(":3:9: count: found \"0\""));
        assert!(wrong("[[machines]]\nname = \"a\"\ncount = 1.5\ncpu = 1\n").starts_with(":3:9: count: found \"1.5\""));
        assert!(wrong("[[machines]]\nname = \"a\"\nspeed = 0\ncpu = 1\n").starts_with(":3:9: speed: found \"0\""));
        assert!(wrong("machines = []\n").contains("an empty list"));
        assert!(wrong("machines = 3\n").starts_with(":1:12: "));
        assert!(wrong("[[queues]]\nname = \"q\"\n").contains("no [[machines]]"));
        let queue = |text: &str| wrong(&format!("{TWO}[[queues]]\nname = \"q\"\n{text}\n"));
        assert!(queue("max_wall = 3").starts_with(":13:12: max_wall: "));
        assert!(queue("max_wal = 3").starts_with(":13:1: unknown field \"max_wal\""));
        assert!(
            queue("max_jobs = -1").starts_with(
                ":13:12: max_jobs: found \"-1\", expected a whole number, at least 0 (0 holds all the jobs; without a limit, \
                 leave the key out)"
            )
        );
        assert!(queue("whole_machines = 1").starts_with(":13:18: whole_machines: "));
        assert!(queue("max_job = { gpu = 1 }").starts_with(":13:13: no machine has \"gpu\""));
        assert!(queue("properties = [\"ssd\", \"ib\"]").starts_with(":13:22: "));
        assert!(queue("[[queues]]\nname = \"q\"").starts_with(":14:8: name: found \"q\" a second time"));
        assert!(wrong(&format!("{TWO}[[machines]]\nname = \"a\"\ncpu = 1\n")).contains("a second time"));
        assert!(wrong(&format!("{TWO}[cluster]\nx = 1\n")).contains("unknown field \"cluster\""));
    }
}
