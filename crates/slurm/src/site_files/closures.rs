//! Reservations and outages: texts of `scontrol show reservation`, `sacctmgr show reservation`, `sacctmgr show event` and
//! `sinfo -R`. Times without a zone are taken as UTC, as those of jobs.

use evenhand_model::calendar::parse_date_time;
use evenhand_model::{Time, expand_hostlist};

use super::slurm_conf::HOSTS;
use crate::error::TextError;
use crate::parse_key_values::records;
use crate::parse_table::{Field, Table};

/// A reservation, or an outage of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteClosure {
    /// The line of the text, counted from 1.
    pub line: usize,
    /// The name of the reservation, or the reason of the outage.
    pub name: String,
    /// The nodes.
    pub nodes: Vec<String>,
    /// When it begins.
    pub from: Time,
    /// When it is over; `None` if that is not known yet.
    pub to: Option<Time>,
    /// Whether Slurm lets it overlap others (`MAINT`, `OVERLAP`).
    pub may_overlap: bool,
}

/// States of nodes in which they take no jobs.
const CLOSED_STATES: [&str; 5] = ["DOWN", "DRAIN", "DRNG", "FAIL", "ERROR"];
/// Flags of a reservation that may overlap others.
const OVERLAPPING: [&str; 2] = ["MAINT", "OVERLAP"];

/// Parses the output of `scontrol show reservation` or `sacctmgr -P show reservation`. Reservations of no nodes, such as
/// those of licences, are left out.
///
/// # Errors
/// Returns an error if the text has neither form, a value is malformed, or a reservation ends before it begins.
pub fn parse_reservations(text: &str) -> Result<Vec<SiteClosure>, TextError> {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if first.trim_start().starts_with("No reservations") {
        return Ok(Vec::new());
    }
    if !first.trim_start().starts_with("ReservationName=") {
        return reservation_table(text);
    }
    let mut found = Vec::new();
    for record in records("scontrol show reservation", text, "ReservationName") {
        let Some(name) = record.get("ReservationName") else { continue };
        let Some(nodes) = record.get("Nodes") else { continue };
        let of = |key| record.get(key).ok_or_else(|| name.error(&format!("a reservation with {key}")));
        found.push(closure(Parts {
            name: Some(name),
            nodes,
            from: of("StartTime")?,
            to: Some(of("EndTime")?),
            flags: record.get("Flags"),
        })?);
    }
    Ok(found)
}

fn reservation_table(text: &str) -> Result<Vec<SiteClosure>, TextError> {
    let table = Table::of("sacctmgr show reservation", text, &["Name", "NodeNames"])?;
    let mut found = Vec::new();
    for row in table.rows() {
        let row = row?;
        let name = row.required("Name", "the name of a reservation")?;
        let Some(nodes) = row.get("NodeNames") else { continue };
        let of = |names: [&str; 2]| names.into_iter().find_map(|name| row.get(name));
        let from = of(["TimeStart", "Start"]).ok_or_else(|| name.error("a reservation with a column TimeStart"))?;
        found.push(closure(Parts {
            name: Some(name),
            nodes,
            from,
            to: of(["TimeEnd", "End"]),
            flags: row.get("Flags"),
        })?);
    }
    Ok(found)
}

/// Parses the output of `sacctmgr -P show event` or `sinfo -R`. Events of the cluster as a whole, and those in which nodes
/// still take jobs, are left out.
///
/// # Errors
/// Returns an error if the text has neither form, a value is malformed, or an event ends before it begins.
pub fn parse_events(text: &str) -> Result<Vec<SiteClosure>, TextError> {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if first.trim_start().starts_with("REASON") && !first.contains('|') {
        return reasons(text);
    }
    let table = Table::of("sacctmgr show event", text, &["NodeName"])?;
    let mut found = Vec::new();
    for row in table.rows() {
        let row = row?;
        let Some(nodes) = row.get("NodeName") else { continue };
        let state = row.get("State").map(|state| state.text.to_ascii_uppercase());
        if state.is_some_and(|state| !CLOSED_STATES.iter().any(|closed| state.contains(closed))) {
            continue;
        }
        let of = |names: [&str; 2]| names.into_iter().find_map(|name| row.get(name));
        let from = of(["TimeStart", "Start"]).ok_or_else(|| nodes.error("an event with a column TimeStart"))?;
        let to = of(["TimeEnd", "End"]);
        // A node that is down and back within a second has such an event; it closed nothing.
        if to.is_some_and(|to| to.text == from.text) {
            continue;
        }
        found.push(closure(Parts { name: row.get("Reason"), nodes, from, to, flags: None })?);
    }
    Ok(found)
}

/// Lines of `REASON USER TIMESTAMP NODELIST`, in which only the reason may have blanks.
fn reasons(text: &str) -> Result<Vec<SiteClosure>, TextError> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let field = |text: &str| {
            let column = (text.as_ptr() as usize).saturating_sub(line.as_ptr() as usize) + 1;
            Field { source: "sinfo -R", line: at + 1, column, text: "" }
        };
        let mut words = line.split_whitespace().rev();
        let (Some(nodes), Some(from)) = (words.next(), words.next()) else {
            if line.trim().is_empty() {
                continue;
            }
            return Err(Field { text: line, ..field(line) }.error("REASON, USER, TIMESTAMP and NODELIST"));
        };
        if line.trim_start().starts_with("REASON") || from == "Unknown" {
            continue;
        }
        let before = line[..field(from).column - 1].trim();
        let reason = before.rsplit_once(char::is_whitespace).map_or("", |(reason, _user)| reason.trim());
        found.push(closure(Parts {
            name: Some(Field { text: reason, ..field(line) }),
            nodes: Field { text: nodes, ..field(nodes) },
            from: Field { text: from, ..field(from) },
            to: None,
            flags: None,
        })?);
    }
    Ok(found)
}

struct Parts<'a> {
    name: Option<Field<'a>>,
    nodes: Field<'a>,
    from: Field<'a>,
    to: Option<Field<'a>>,
    flags: Option<Field<'a>>,
}

fn closure(parts: Parts<'_>) -> Result<SiteClosure, TextError> {
    let time =
        |field: Field<'_>| field.read("a time like 2026-01-31T12:00:00", |text| parse_date_time(text.as_bytes()));
    let nodes = parts.nodes.read(HOSTS, |text| expand_hostlist(text).filter(|names| !names.is_empty()))?;
    let from = time(parts.from)?;
    let to = parts.to.map(|field| Ok((time(field)?, field))).transpose()?;
    if let Some((_, field)) = to.filter(|(to, _)| *to <= from) {
        return Err(field.error(&format!("a time after its start, {}", parts.from.text)));
    }
    let is = |flag: &str| OVERLAPPING.iter().any(|name| flag.trim().eq_ignore_ascii_case(name));
    Ok(SiteClosure {
        line: parts.nodes.line,
        name: parts.name.map_or("unknown", |name| name.text).to_string(),
        nodes,
        from,
        to: to.map(|(to, _)| to),
        may_overlap: parts.flags.is_some_and(|flags| flags.text.split(',').any(is)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(found: Vec<SiteClosure>) -> Vec<String> {
        let show = |c: SiteClosure| {
            let seconds = |time: Time| time.nanos() / 1_000_000_000 - 1_769_817_600;
            let to = c.to.map_or("-".into(), |to| seconds(to).to_string());
            format!(
                "{} {} {} {}-{to}{}",
                c.line,
                c.name,
                c.nodes.join("+"),
                seconds(c.from),
                if c.may_overlap { " may" } else { "" }
            )
        };
        found.into_iter().map(show).collect()
    }

    #[test]
    fn reservations_of_scontrol_and_of_sacctmgr_are_read() {
        let scontrol = "ReservationName=course StartTime=2026-01-31T00:00:00 EndTime=2026-01-31T02:00:00 Duration=02:00:00\n   \
            Nodes=n[1-2] NodeCnt=2 CoreCnt=16 Features=(null) PartitionName=main Flags=SPEC_NODES\n   TRES=cpu=16\n\n\
            ReservationName=matlab StartTime=2026-01-31T00:00:00 EndTime=2026-01-31T02:00:00\n   Nodes=(null) Flags=ANY_NODES\n\
            ReservationName=root_1 StartTime=2026-01-31T00:00:10 EndTime=2026-01-31T01:00:00 Nodes=n1 Flags=IGNORE_JOBS,MAINT\n";
        assert_eq!(shown(parse_reservations(scontrol).unwrap()), ["2 course n1+n2 0-7200", "7 root_1 n1 10-3600 may"]);
        let sacctmgr = "Cluster|Name|TimeStart|TimeEnd|NodeNames|Flags\nlab|course|2026-01-31T00:00:00|2026-01-31T02:00:00|n[1-2]|SPEC_NODES\n\
            lab|open|2026-01-31T00:00:00|Unknown|g1|\n";
        assert_eq!(shown(parse_reservations(sacctmgr).unwrap()), ["2 course n1+n2 0-7200", "3 open g1 0--"]);
        assert_eq!(parse_reservations("No reservations in the system\n").unwrap(), []);
    }

    #[test]
    fn nodes_that_are_down_or_drained_are_read() {
        let events = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n\
            lab||2026-01-30T00:00:00|2026-01-31T00:00:00||Cluster Registered TRES|root\n\
            lab|n1|2026-01-31T00:00:00|2026-01-31T01:00:00|DOWN*|Not responding|slurm(64030)\n\
            lab|n2|2026-01-31T00:00:00|2026-01-31T01:00:00|PLANNED||\nlab|n3|2026-01-31T00:00:01|Unknown|DRAIN||root\n\
            lab|n4|2026-01-31T00:00:01|2026-01-31T00:00:01|DOWN|over in a second|root\n";
        assert_eq!(shown(parse_events(events).unwrap()), ["3 Not responding n1 0-3600", "5 unknown n3 1--"]);
        let sinfo = "REASON               USER      TIMESTAMP           NODELIST\n\
            Kill task failed     root      2026-01-31T00:00:05 n[1-2]\nbad disk             ann       Unknown             n4\n";
        assert_eq!(shown(parse_events(sinfo).unwrap()), ["2 Kill task failed n1+n2 5--"]);
    }

    #[test]
    fn what_is_wrong_has_its_line_and_column() {
        let reservation = |text: &str| parse_reservations(text).unwrap_err().to_string();
        assert_eq!(
            reservation("ReservationName=a StartTime=2026-01-31T02:00:00 EndTime=2026-01-31T01:00:00\n Nodes=n1\n"),
            "scontrol show reservation:1:57: found \"2026-01-31T01:00:00\", expected a time after its start, 2026-01-31T02:00:00"
        );
        assert_eq!(
            reservation("ReservationName=a StartTime=soon EndTime=2026-01-31T01:00:00\n Nodes=n1\n"),
            "scontrol show reservation:1:29: found \"soon\", expected a time like 2026-01-31T12:00:00"
        );
        assert_eq!(
            reservation("ReservationName=a StartTime=2026-01-31T02:00:00\n Nodes=n1\n"),
            "scontrol show reservation:1:17: found \"a\", expected a reservation with EndTime"
        );
        assert!(reservation("words\n").contains("a header line with Name, NodeNames"));
        let event = |text: &str| parse_events(text).unwrap_err().to_string();
        assert_eq!(
            event("NodeName|TimeStart|TimeEnd\nn[1-|2026-01-31T02:00:00|\n"),
            "sacctmgr show event:2:1: found \"n[1-\", expected names of nodes such as n[1-4],g1, at most 1048576 of them"
        );
        assert_eq!(
            event("REASON USER TIMESTAMP NODELIST\nfan root yesterday n1\n"),
            "sinfo -R:2:10: found \"yesterday\", expected a time like 2026-01-31T12:00:00"
        );
        assert!(
            event("REASON USER TIMESTAMP NODELIST\nfan\n").contains("expected REASON, USER, TIMESTAMP and NODELIST")
        );
    }
}
