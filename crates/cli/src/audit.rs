//! `evenhand audit`

use std::path::Path;

use evenhand_documents::Document;
use evenhand_mechanisms::problem_files::{AllocationFile, ProblemFile};
use evenhand_mechanisms::{
    Arithmetic, Computation, Finding, Measure, Number, PROPERTIES, Problem, Property, property_named,
};
use evenhand_model::{Quantity, Rational};
use evenhand_policies::Registry;
use serde::Serialize;

use crate::args::{AuditArgs, Common};
use crate::console::{Console, json};
use crate::division::{convert, out_of_range, read_problem};
use crate::failure::{Failure, Outcome};
use crate::figure::{Figure, Named, Scale, Shown};
use crate::table::plain;
use crate::{history, misreports};

pub(crate) fn run(
    args: &AuditArgs,
    common: &Common,
    registry: &Registry,
    console: &Console,
) -> Result<Outcome, Failure> {
    if let Some(path) = &args.past.history {
        return history::run(path, &args.past, &args.property, common, registry, console);
    }
    match &args.allocation {
        Some(path) => audit_allocation(args, path, console),
        // Without an allocation: --search-lies.
        None => misreports::run(args, common, console),
    }
}

fn audit_allocation(args: &AuditArgs, path: &Path, console: &Console) -> Result<Outcome, Failure> {
    let properties = properties(&args.property)?;
    let tolerance = Quantity::parse(&args.tolerance).ok().filter(|t| *t.exact() < Rational::ONE).ok_or_else(|| {
        Failure::Input(format!("--tolerance: found {:?}, expected a number from 0 to less than 1", args.tolerance))
    })?;
    if args.problem() == Path::new("-") && path == Path::new("-") {
        return Err(Failure::Input("found - for both files, expected standard input for one of them".into()));
    }
    let mechanism = match args.mechanism.as_slice() {
        [] => None,
        [one] => Some(one.as_str()),
        _ => return Err(Failure::Input("--mechanism: found several, expected the one whose allocation it is".into())),
    };
    let exact = tolerance.is_zero();
    let arithmetic = if exact { Arithmetic::Exact } else { Arithmetic::Float };
    let (file, problem) = read_problem(args.problem(), arithmetic)?;
    let document = Document::read(path).map_err(Failure::document)?;
    let allocation = AllocationFile::read(&document, &file, mechanism).map_err(Failure::document)?;
    let check = Check {
        properties: &properties,
        file: &file,
        problem: &problem,
        tasks: &allocation.tasks,
        tolerance: &tolerance,
    };
    let (held, records) = arithmetic.run(check)?;
    let text = if console.is_json() { json(&records)? } else { sentences(&file, &properties, &held, &records) };
    console.result(&text)?;
    Ok(if records.is_empty() { Outcome::Done } else { Outcome::DoesNotHold })
}

/// The properties of these names, or all.
fn properties(names: &[String]) -> Result<Vec<&'static dyn Property>, Failure> {
    if names.is_empty() {
        return Ok(PROPERTIES.to_vec());
    }
    let found = names.iter().map(|name| {
        property_named(name).ok_or_else(|| Failure::unknown("--property", name, PROPERTIES.iter().map(|p| p.name())))
    });
    found.collect()
}

/// One finding, with names and in the problem's units.
#[derive(Debug, Serialize)]
struct FindingRecord {
    property: &'static str,
    who: Option<String>,
    against: Option<String>,
    on: Option<String>,
    /// What `has`, `due` and `by` count.
    measure: &'static str,
    has: Figure,
    due: Figure,
    by: Figure,
    /// `by` in units of the resources it is about.
    amount: Named<Figure>,
    /// Whether there is too little: `due` is above `has`.
    #[serde(skip)]
    short: bool,
    /// `has` and `due` in units of the resource, where they are shares of it.
    #[serde(skip)]
    held: Option<(Figure, Figure)>,
}

/// Check of one allocation against properties.
struct Check<'a> {
    properties: &'a [&'static dyn Property],
    file: &'a ProblemFile,
    problem: &'a Problem<Rational>,
    tasks: &'a [Rational],
    tolerance: &'a Quantity,
}

impl Computation for Check<'_> {
    /// The names of the properties that hold, and the findings against the others.
    type Output = Result<(Vec<&'static str>, Vec<FindingRecord>), Failure>;

    fn run<N: Number>(self) -> Self::Output {
        let problem = convert::<N>(self.problem)?;
        let tasks: Vec<N> = self.tasks.iter().map(N::from_exact).collect();
        if !N::EXACT && !tasks.iter().all(|x| x.to_f64().is_finite()) {
            return Err(out_of_range("the allocation"));
        }
        let tolerance = N::from_exact(self.tolerance.exact());
        let (mut held, mut records) = (Vec::new(), Vec::new());
        for property in self.properties {
            let findings = N::findings(*property, &problem, &tasks, &tolerance);
            if findings.is_empty() {
                held.push(property.name());
            }
            records.extend(findings.iter().map(|finding| record(finding, self.file)));
        }
        Ok((held, records))
    }
}

fn record<N: Number>(finding: &Finding<N>, file: &ProblemFile) -> FindingRecord {
    let user = |u: Option<usize>| u.map(|u| file.users[u].name.clone());
    let by = finding.amount();
    // A share per weight is reported as what the user would hold.
    let unit = finding.on.map(|r| {
        let capacity = N::from_exact(&file.capacity[r]);
        match (finding.measure, finding.who) {
            (Measure::SharePerWeight, Some(who)) => capacity * N::from_exact(&file.users[who].weight),
            _ => capacity,
        }
    });
    let units = |n: &N| unit.as_ref().map(|unit| (n.clone() * unit).figure());
    let (measure, amount, held) = match (finding.measure, finding.who) {
        (Measure::Tasks, Some(who)) => {
            let demand = file.resources.iter().zip(&file.users[who].demand).filter(|(_, d)| !d.is_zero());
            let amount = demand.map(|(name, d)| (name.clone(), (by.clone() * N::from_exact(d)).figure()));
            ("tasks", amount.collect(), None)
        }
        (Measure::Tasks, None) => ("tasks", Vec::new(), None),
        (measure, _) => {
            let name = finding.on.map(|r| file.resources[r].clone());
            let amount = name.zip(units(&by)).into_iter().collect();
            let measure = if measure == Measure::Share { "share" } else { "share_for_weight" };
            (measure, amount, units(&finding.has).zip(units(&finding.due)))
        }
    };
    FindingRecord {
        property: finding.property,
        who: user(finding.who),
        against: user(finding.against),
        on: finding.on.map(|r| file.resources[r].clone()),
        measure,
        has: finding.has.figure(),
        due: finding.due.figure(),
        by: by.figure(),
        amount: Named(amount),
        short: finding.due >= finding.has,
        held,
    }
}

/// One finding a line, then what was checked.
fn sentences(
    file: &ProblemFile,
    properties: &[&'static dyn Property],
    held: &[&str],
    records: &[FindingRecord],
) -> String {
    let mut lines: Vec<String> = records.iter().map(|record| sentence(file, record)).collect();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    for property in properties {
        lines.push(match held.contains(&property.name()) {
            true => format!("{} holds: {}", property.name(), property.about()),
            false => format!("{} violated: {}", property.name(), property.violation()),
        });
    }
    lines.join("\n")
}

fn sentence(file: &ProblemFile, record: &FindingRecord) -> String {
    let mut place = Vec::new();
    place.extend(record.who.clone());
    place.extend(record.against.as_ref().map(|name| format!("against {name}")));
    // A finding about a resource alone begins with its name.
    place.extend(record.on.as_ref().map(|name| if place.is_empty() { name.clone() } else { format!("on {name}") }));
    let scale = |name: &String| {
        let resource = file.resources.iter().position(|known| known == name);
        resource.map_or(Scale::of(&Rational::ZERO), |r| Scale::of(&file.capacity[r]))
    };
    let shown = record.amount.0.iter().map(|(name, amount)| format!("{} {name}", scale(name).short(amount)));
    let shown: Vec<String> = shown.collect();
    let amount = shown.join(", ");
    let wrong = if record.short { "short by" } else { "over by" };
    let what = match &record.held {
        Some((has, due)) => {
            let scale = record.on.as_ref().map_or(Scale::of(&Rational::ZERO), scale);
            format!("has {}, due {}; {wrong} {amount}", scale.short(has), scale.short(due))
        }
        None => {
            let (has, due, by) = (record.has.short(), record.due.short(), record.by.short());
            format!("has {has} tasks, due {due}; {wrong} {by} ({amount})")
        }
    };
    plain(&format!("{}: {}: {what}", record.property, place.join(" ")))
}
