//! Qualities of service: `sacctmgr -P show qos`.

use std::collections::VecDeque;

use evenhand_model::{Quantity, Rational};

use crate::associations::parse_priority;
use crate::error::{ReadError, TextError};
use crate::parse_table::{Field, Table};
use crate::parse_values::{Limit, is_no_limit};
use crate::run_commands::{Call, Commands};
use crate::tres::Tres;

/// A quality of service and what is set for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qos {
    /// The name.
    pub name: String,
    /// The line of the text, counted from 1.
    pub line: usize,
    /// Columns that have a value, by their names, such as `("MaxTRESPU", "cpu=64")`.
    pub settings: Vec<(String, String)>,
}

/// Values of columns in a QOS that sets nothing.
const UNSET: [(&str, &str); 4] =
    [("Priority", "0"), ("GraceTime", "00:00:00"), ("PreemptMode", "cluster"), ("UsageFactor", "1.000000")];

impl Qos {
    /// Returns what it adds to the priority of its jobs.
    pub fn priority(&self) -> u32 {
        let value = self.settings.iter().find(|(column, _)| column.eq_ignore_ascii_case("Priority"));
        value.and_then(|(_, value)| parse_priority(value)).unwrap_or(0)
    }

    /// Returns by what the usage of its jobs is multiplied, as the site's fairshare counts it; `None`: 1, as for negative
    /// factors, which slurmctld does not apply.
    pub fn usage_factor(&self) -> Option<Rational> {
        let value = self.settings.iter().find(|(column, _)| column.eq_ignore_ascii_case("UsageFactor"));
        value.and_then(|(_, value)| Quantity::parse(value).ok()).map(|factor| factor.exact().clone())
    }

    /// Returns the command that prints the qualities of service.
    pub fn call() -> Call {
        Call::new("sacctmgr", ["--parsable2", "show", "qos"].map(String::from))
    }

    /// Reads the qualities of service of this site.
    ///
    /// # Errors
    /// Returns an error if `sacctmgr` fails or its output is not understood.
    pub fn read(commands: &dyn Commands) -> Result<Vec<Qos>, ReadError> {
        Ok(parse_qos(&commands.run(&Qos::call())?)?)
    }
}

/// Parses the output of `sacctmgr -P show qos` with a header line.
///
/// # Errors
/// Returns an error if there is no header with `Name`, a line has another number of columns, or a limit is malformed.
pub fn parse_qos(text: &str) -> Result<Vec<Qos>, TextError> {
    refuse_padded(text)?;
    let table = Table::of("sacctmgr show qos", text, &["Name"])?;
    let mut all = Vec::new();
    for row in table.rows() {
        let row = row?;
        let field = row.required("Name", "the name of a QOS")?;
        let (name, line) = (field.text.to_string(), field.line);
        let columns = table.headers().iter().filter(|header| !header.eq_ignore_ascii_case("Name"));
        let mut settings = Vec::new();
        for header in columns {
            let Some(field) = row.get(header).filter(|field| !is_no_limit(header, field.text)) else { continue };
            check(header, field)?;
            let is_unset = UNSET.iter().any(|(h, v)| h.eq_ignore_ascii_case(header) && *v == field.text);
            if !is_unset {
                settings.push((header.to_string(), field.text.to_string()));
            }
        }
        all.push(Qos { name, line, settings });
    }
    Ok(all)
}

/// Refuses columns that are padded with blanks, in which long values are cut off (`sacctmgr show qos` without `-P`).
fn refuse_padded(text: &str) -> Result<(), TextError> {
    let header = text.lines().enumerate().find(|(_, line)| !line.trim().is_empty());
    let Some((at, header)) = header.filter(|(_, line)| !line.contains('|')) else { return Ok(()) };
    let mut names = header.split_whitespace();
    if !names.any(|name| name.eq_ignore_ascii_case("Name")) || header.split_whitespace().count() < 2 {
        return Ok(());
    }
    Err(TextError {
        source_name: "sacctmgr show qos",
        line: at + 1,
        column: 1,
        found: "columns that are padded with blanks".into(),
        expected: "columns with | between them; produce them with sacctmgr -P show qos".into(),
    })
}

/// Returns what is inconsistent among qualities of service, in sentences with the lines: names that occur twice or that are
/// preempted and do not exist, and qualities of service that preempt themselves, directly or through others.
pub fn inconsistent_qos(all: &[Qos]) -> Vec<(usize, String)> {
    let at = |name: &str| all.iter().position(|q| q.name.eq_ignore_ascii_case(name));
    let preempts = |qos: &Qos| {
        let column = qos.settings.iter().find(|(column, _)| column.eq_ignore_ascii_case("Preempt"));
        let names = column.map_or("", |(_, value)| value.as_str()).split(',').map(str::trim);
        names.filter(|name| !name.is_empty()).map(String::from).collect::<Vec<String>>()
    };
    let mut found = Vec::new();
    let mut below: Vec<Vec<usize>> = Vec::new();
    for (number, qos) in all.iter().enumerate() {
        if let Some(before) = at(&qos.name).filter(|first| *first < number) {
            let first = all[before].line;
            found.push((
                qos.line,
                format!("the QOS {} is also that of line {first}, and the settings of both count", qos.name),
            ));
        }
        let mut known = Vec::new();
        for name in preempts(qos) {
            match at(&name) {
                Some(number) => known.push(number),
                None => found.push((
                    qos.line,
                    format!(
                        "the QOS {} preempts {name}, which no line defines; the simulation ignores this preemption",
                        qos.name
                    ),
                )),
            }
        }
        below.push(known);
    }
    for (number, qos) in all.iter().enumerate() {
        // The shortest way back, found breadth first; a circle is reported at the first of its lines.
        let mut from: Vec<Option<usize>> = vec![None; all.len()];
        let mut open = VecDeque::from([number]);
        let mut last = None;
        while let Some(here) = open.pop_front() {
            if below[here].contains(&number) {
                last = Some(here);
                break;
            }
            for &next in below[here].iter().filter(|next| **next > number) {
                if from[next].is_none() {
                    from[next] = Some(here);
                    open.push_back(next);
                }
            }
        }
        let Some(mut here) = last else { continue };
        let mut names = vec![qos.name.as_str()];
        while here != number {
            names.push(&all[here].name);
            here = from[here].unwrap_or(number);
        }
        names.push(&qos.name);
        names.reverse();
        found.push((
            qos.line,
            format!(
                "these QOS preempt each other in a cycle: {}; the simulation ignores this preemption",
                names.join(" preempts ")
            ),
        ));
    }
    found.sort();
    found
}

/// Checks the value of a limit.
fn check(column: &str, field: Field<'_>) -> Result<(), TextError> {
    let is = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(column));
    if is(&["GrpTRES", "MaxTRES", "MaxTRESPU"]) {
        field.read("amounts of resources like cpu=64,mem=1T", |text| Tres::parse(text).ok())?;
    } else if is(&["GrpJobs", "MaxJobsPU", "GrpSubmit", "MaxSubmitPU"]) {
        field.whole()?;
    } else if is(&["UsageFactor"]) {
        let is_number = |text: &str| Quantity::parse(text.strip_prefix('-').unwrap_or(text)).ok();
        field.read("a number such as 0.5", is_number)?;
    } else if is(&["MaxWall"]) {
        field.read("a time limit like 1-00:00:00", Limit::parse)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_qos_sets_is_kept() {
        let text = "Name|Priority|GraceTime|Preempt|UsageFactor|MaxTRESPU|MaxWall|\n\
            normal|0|00:00:00||1.000000|||\nlong|10|00:00:00||1.000000|cpu=64|7-00:00:00|\n";
        let all = parse_qos(text).unwrap();
        assert_eq!(all[0], Qos { name: "normal".into(), line: 2, settings: vec![] });
        let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
        assert_eq!(
            all[1].settings,
            [pair("Priority", "10"), pair("MaxTRESPU", "cpu=64"), pair("MaxWall", "7-00:00:00")]
        );
        let error = parse_qos("Name|MaxTRESPU\nlong|cpu=x\n").unwrap_err().to_string();
        assert_eq!(error, "sacctmgr show qos:2:6: found \"cpu=x\", expected amounts of resources like cpu=64,mem=1T");
        let error = parse_qos("Name|UsageFactor\nlong|half\n").unwrap_err().to_string();
        assert_eq!(error, "sacctmgr show qos:2:6: found \"half\", expected a number such as 0.5");
        let factors = parse_qos("Name|UsageFactor\na|1.000000\nb|0.500000\nc|0.000000\nd|-1.000000\ne|\n").unwrap();
        let factors: Vec<Option<String>> = factors.iter().map(|qos| Some(qos.usage_factor()?.to_string())).collect();
        assert_eq!(factors, [None, Some("1/2".into()), Some("0".into()), None, None]);
        let padded =
            "      Name   Priority  GraceTime \n---------- ---------- ---------- \n    normal          0   00:00:00 \n";
        let error = parse_qos(padded).unwrap_err().to_string();
        assert_eq!(
            error,
            "sacctmgr show qos:1:1: found columns that are padded with blanks, expected columns with | between them; produce them \
             with sacctmgr -P show qos"
        );
        let error = parse_qos("Name|Priority\nnormal\n").unwrap_err().to_string();
        assert_eq!(error, "sacctmgr show qos:2:7: found 1 columns, expected 2 as in the header");
    }

    #[test]
    fn circles_and_unknown_names_are_found_with_their_lines() {
        let text = "Name|Preempt\na|b,c\nb|c\nc|a\nself|self,nobody\nend|\nA|\n";
        let found = inconsistent_qos(&parse_qos(text).unwrap());
        let expected = [
            (
                2,
                "these QOS preempt each other in a cycle: a preempts c preempts a; the simulation ignores this preemption",
            ),
            (5, "the QOS self preempts nobody, which no line defines; the simulation ignores this preemption"),
            (5, "these QOS preempt each other in a cycle: self preempts self; the simulation ignores this preemption"),
            (7, "the QOS A is also that of line 2, and the settings of both count"),
        ];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_string())));
        assert_eq!(inconsistent_qos(&parse_qos("Name|Preempt\na|b\nb|\n").unwrap()), []);
    }
}
