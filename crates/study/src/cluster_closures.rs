//! The reservations and outages of a cluster file.

use evenhand_documents::{DocumentError, Node, Table};
use evenhand_model::calendar::parse_date_time;
use evenhand_model::{Closure, Cluster, MachineNames, SiteTime};

use crate::cluster_file::flag;

const RESERVATION: [&str; 5] = ["name", "machines", "from", "to", "may_overlap"];
const OUTAGE: [&str; 4] = ["name", "machines", "from", "to"];

/// Reads the reservations and outages of a cluster, whose machines are known.
pub(crate) fn read(root: &Table<'_>, cluster: &mut Cluster) -> Result<(), DocumentError> {
    let names = cluster.machine_names();
    if let Some(reservations) = root.get("reservations") {
        for node in reservations.with_label("[[reservations]]").list()? {
            let table = node.table()?;
            table.deny_unknown(&RESERVATION)?;
            let reservation = closure(&table, &names)?;
            if reservation.to.is_none() {
                return Err(table.error("found no to, expected the time at which the reservation ends"));
            }
            if let Some(other) = cluster.reservations.iter().find(|other| overlap(&names, &reservation, other)) {
                let problem = format!(
                    "overlaps the reservation {:?} of one of its machines; end that one before, or set may_overlap = true",
                    other.name
                );
                return Err(table.required("from", "a time")?.error(problem));
            }
            cluster.reservations.push(reservation);
        }
    }
    if let Some(outages) = root.get("outages") {
        for node in outages.with_label("[[outages]]").list()? {
            let table = node.table()?;
            table.deny_unknown(&OUTAGE)?;
            let outage = closure(&table, &names)?;
            cluster.outages.push(outage);
        }
    }
    Ok(())
}

fn closure(table: &Table<'_>, names: &MachineNames) -> Result<Closure, DocumentError> {
    let mut machines = Vec::new();
    for node in table.required("machines", "a list of hosts or groups, such as [\"n[1-4]\"]")?.list()? {
        let text = node.text()?;
        names.numbers(text).map_err(|name| {
            node.error(format!(
                "no machine has the name {name:?}; name a group, or hosts of a group with hosts = \"n[1-4]\""
            ))
        })?;
        machines.push(text.to_string());
    }
    if machines.is_empty() {
        return Err(table.error("found no machines, expected at least one"));
    }
    let from = time(&table.required("from", "a time")?)?;
    let to = table.get("to").map(|node| Ok::<_, DocumentError>((time(&node)?, node))).transpose()?;
    if let Some((_, node)) = to.as_ref().filter(|(to, _)| from.is_before(*to) == Some(false)) {
        return Err(node.error(format!("found {:?}, expected a time after from", node.written()?)));
    }
    Ok(Closure {
        name: table.required("name", "a name in quotation marks")?.text()?.to_string(),
        machines,
        from,
        to: to.map(|(to, _)| to),
        may_overlap: flag(table, "may_overlap")?,
    })
}

fn time(node: &Node<'_>) -> Result<SiteTime, DocumentError> {
    let text = node.written()?;
    if let Ok(seconds) = text.parse() {
        return Ok(SiteTime::OfLog(seconds));
    }
    let with_seconds = match text.len() {
        10 => format!("{text}T00:00:00"),
        16 => format!("{text}:00"),
        _ => text.to_string(),
    };
    parse_date_time(with_seconds.as_bytes()).map(SiteTime::Date).ok_or_else(|| {
        node.error(format!(
            "found {text:?}, expected a date or time in UTC in quotation marks (\"2026-01-31\", \"2026-01-31T12:00\"), or seconds of the log"
        ))
    })
}

/// Whether two reservations have a machine in common at one time, and neither may.
fn overlap(names: &MachineNames, one: &Closure, other: &Closure) -> bool {
    let before = |a: &Closure, b: &Closure| a.to.is_some_and(|to| b.from.is_before(to) == Some(false));
    let is_known = one.from.is_before(other.from).is_some();
    if one.may_overlap || other.may_overlap || !is_known || before(one, other) || before(other, one) {
        return false;
    }
    let numbers =
        |of: &Closure| of.machines.iter().flat_map(|m| names.numbers(m).unwrap_or_default()).collect::<Vec<u32>>();
    let machines = numbers(one);
    numbers(other).iter().any(|machine| machines.contains(machine))
}

#[cfg(test)]
mod tests {
    use evenhand_documents::{Document, Format};

    use crate::cluster_file::cluster_of;
    use crate::cluster_text;

    const MACHINES: &str = "[[machines]]\nname = \"n[1-3]\"\ncount = 3\ncpu = 4\n\
        [[machines]]\nname = \"others\"\ncount = 2\nhosts = \"x,a7\"\ncpu = 4\n";

    fn parse(text: &str) -> Result<evenhand_model::Cluster, String> {
        let document = Document::parse("c.toml", &format!("{MACHINES}{text}"), Some(Format::Toml)).unwrap();
        let cluster = cluster_of(&document).map_err(|e| e.to_string().trim_start_matches("c.toml").to_string());
        Ok(cluster?.unwrap())
    }

    fn reservation(name: &str, machines: &str, times: &str) -> String {
        format!("[[reservations]]\nname = \"{name}\"\nmachines = {machines}\n{times}\n")
    }

    #[test]
    fn reservations_and_outages_read_back_as_they_are_written() {
        let two = reservation("course", "[\"n[1-2]\", \"a7\"]", "from = \"2026-01-31T08:00\"\nto = \"2026-02-01\"")
            + &reservation(
                "day",
                "[\"n2\"]",
                "from = \"2026-01-31\"\nto = \"2026-01-31T09:00:01\"\nmay_overlap = true",
            )
            + "[[outages]]\nname = \"fan\"\nmachines = [\"others\"]\nfrom = 3600\n";
        let cluster = parse(&two).unwrap();
        assert_eq!((cluster.reservations.len(), cluster.outages.len()), (2, 1));
        assert_eq!(cluster.reservations[0].from.in_log(1_769_846_400), 0, "date -u -d 2026-01-31T08:00 +%s");
        assert_eq!(cluster.outages[0].to, None);
        let document = Document::parse("c.toml", &cluster_text(&cluster), Some(Format::Toml)).unwrap();
        assert_eq!(cluster_of(&document).unwrap().unwrap(), cluster);
    }

    #[test]
    fn wrong_reservations_have_line_and_column() {
        let wrong = |machines: &str, times: &str| parse(&reservation("a", machines, times)).unwrap_err();
        let day = "from = \"2026-01-31\"\nto = \"2026-02-01\"";
        assert!(wrong("[\"n4\"]", day).starts_with(":12:13: "), "{}", wrong("[\"n4\"]", day));
        assert!(wrong("[\"n4\"]", day).contains("no machine has the name \"n4\""));
        assert!(wrong("[\"n[1-\"]", day).contains("\"n[1-\""));
        assert!(wrong("[]", day).contains("found no machines"));
        let end = wrong("[\"n1\"]", "from = \"2026-01-31\"\nto = \"2026-01-31\"");
        assert!(end.starts_with(":14:6: ") && end.contains("expected a time after from"), "{end}");
        assert!(wrong("[\"n1\"]", "from = 5").contains("found no to"));
        assert!(wrong("[\"n1\"]", "from = \"soon\"\nto = 9").starts_with(":13:8: "));
        assert!(wrong("[\"n1\"]", "from = 1\nto = 2\nuntil = 3").contains("unknown field \"until\""));
        let both = |times: &str| {
            parse(&(reservation("a", "[\"n[1-2]\"]", "from = 10\nto = 20") + &reservation("b", "[\"n[2-3]\"]", times)))
        };
        let error = both("from = 19\nto = 30").unwrap_err();
        assert!(error.starts_with(":18:8: ") && error.contains("overlaps the reservation \"a\""), "{error}");
        assert!(both("from = 20\nto = 30").is_ok() && both("from = 5\nto = 10").is_ok());
        let hosts = "[[machines]]\nname = \"k\"\ncount = 2\nhosts = \"k1\"\ncpu = 1\n";
        let error = parse(hosts).unwrap_err();
        assert!(error.starts_with(":13:9: ") && error.contains("1 host"), "{error}");
    }
}
