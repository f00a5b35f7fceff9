//! The qualities of service of a cluster file: their priorities, what they charge, and what preempts what.

use evenhand_documents::{DocumentError, Table};
use evenhand_model::{Cluster, PreemptMode, QualityOfService, preempted_by_themselves};

use crate::cluster_file::{flag, name, time, whole};

const QOS: [&str; 8] = [
    "name",
    "priority",
    "usage_factor",
    "preempts",
    "preempts_within",
    "preempt_mode",
    "preempt_exempt_time",
    "grace_time",
];

/// Reads the qualities of service of a cluster.
pub(crate) fn read(root: &Table<'_>, cluster: &mut Cluster) -> Result<(), DocumentError> {
    let Some(all) = root.get("qos") else { return Ok(()) };
    let all = all.with_label("[[qos]]");
    for node in all.list()? {
        let table = node.table()?;
        table.deny_unknown(&QOS)?;
        let priority = match table.get("priority") {
            Some(node) => whole(&node, 0, i64::from(u32::MAX), "a whole number, at least 0")? as u32,
            None => 0,
        };
        let preempts = match table.get("preempts") {
            Some(node) => {
                node.list()?.map(|name| Ok(name.text()?.to_string())).collect::<Result<_, DocumentError>>()?
            }
            None => Vec::new(),
        };
        let qos = QualityOfService {
            name: name(&table, cluster.qos.iter().map(|qos| qos.name.as_str()))?,
            priority,
            usage_factor: table.get("usage_factor").map(|node| node.exact()).transpose()?,
            preempts,
            preempts_within: flag(&table, "preempts_within")?,
            preempt_mode: preempt_mode(&table)?,
            preempt_exempt_time: time(&table, "preempt_exempt_time")?,
            grace_time: time(&table, "grace_time")?.unwrap_or_default(),
        };
        cluster.qos.push(qos);
    }
    for (node, qos) in all.list()?.zip(&cluster.qos) {
        let unknown = qos.preempts.iter().position(|name| !cluster.qos.iter().any(|other| other.name == *name));
        if let Some(at) = unknown {
            let table = node.table()?;
            let place = table.required("preempts", "a list")?.list()?.nth(at);
            let problem = format!("no [[qos]] has the name {:?}", qos.preempts[at]);
            return Err(place.map_or_else(|| table.error(&problem), |node| node.error(&problem)));
        }
        if preempted_by_themselves(&cluster.qos).contains(&qos.name) {
            let problem = format!(
                "the QOS {:?} preempts itself, or one that preempts it through others: such jobs would preempt each other \
                 for ever; remove one of these names",
                qos.name
            );
            return Err(node.table()?.required("preempts", "a list")?.error(problem));
        }
    }
    Ok(())
}

/// What becomes of jobs that are preempted.
pub(crate) fn preempt_mode(table: &Table<'_>) -> Result<Option<PreemptMode>, DocumentError> {
    let Some(node) = table.get("preempt_mode") else { return Ok(None) };
    let text = node.text()?;
    let names = PreemptMode::ALL.map(PreemptMode::name).join(", ");
    PreemptMode::of_name(text).map(Some).ok_or_else(|| node.error(format!("found {text:?}, expected one of: {names}")))
}

#[cfg(test)]
mod tests {
    use evenhand_documents::{Document, Format};

    use crate::cluster_file::cluster_of;
    use crate::cluster_text;

    const MACHINES: &str = "[[machines]]\nname = \"m\"\ncpu = 4\n";

    fn parse(text: &str) -> Result<evenhand_model::Cluster, String> {
        let document = Document::parse("c.toml", &format!("{MACHINES}{text}"), Some(Format::Toml)).unwrap();
        let cluster = cluster_of(&document).map_err(|e| e.to_string().trim_start_matches("c.toml").to_string());
        Ok(cluster?.unwrap())
    }

    #[test]
    fn what_preempts_what_reads_back_as_it_is_written() {
        let text = "[[queues]]\nname = \"low\"\npreempt_mode = \"off\"\ngrace_time = \"1m\"\n\
            [[qos]]\nname = \"urgent\"\npriority = 10\npreempts = [\"normal\"]\npreempts_within = true\n\
            [[qos]]\nname = \"normal\"\npreempt_mode = \"requeue\"\npreempt_exempt_time = \"10m\"\ngrace_time = \"30s\"\n";
        let cluster = parse(text).unwrap();
        assert_eq!((cluster.qos.len(), cluster.qos[0].priority), (2, 10));
        let document = Document::parse("c.toml", &cluster_text(&cluster), Some(Format::Toml)).unwrap();
        assert_eq!(cluster_of(&document).unwrap().unwrap(), cluster);
    }

    #[test]
    fn wrong_qualities_of_service_have_line_and_column() {
        let qos = |name: &str, preempts: &str| format!("[[qos]]\nname = \"{name}\"\npreempts = {preempts}\n");
        let wrong = |text: &str| parse(text).unwrap_err();
        let error = wrong(&qos("a", "[\"b\"]"));
        assert!(error.starts_with(":6:13: ") && error.contains("no [[qos]] has the name \"b\""), "{error}");
        let error = wrong(&(qos("a", "[\"b\"]") + &qos("b", "[\"c\"]") + &qos("c", "[\"a\"]")));
        assert!(error.starts_with(":6:12: ") && error.contains("for ever"), "{error}");
        assert!(wrong(&qos("a", "[\"a\"]")).contains("preempts itself"));
        let error = wrong("[[qos]]\nname = \"a\"\npreempt_mode = \"stop\"\n");
        assert!(error.starts_with(":6:16: ") && error.contains("off, cancel, requeue, suspend"), "{error}");
        assert!(parse(&(qos("a", "[\"b\", \"c\"]") + &qos("b", "[\"c\"]") + &qos("c", "[]"))).is_ok());
    }
}
