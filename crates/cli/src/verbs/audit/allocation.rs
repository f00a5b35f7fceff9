//! `evenhand audit PROBLEM ALLOCATION`

use std::path::Path;

use evenhand_documents::Document;
use evenhand_mechanisms::problem_files::{AllocationFile, ProblemFile};
use evenhand_mechanisms::{
    Arithmetic, Computation, Finding, Measure, Number, PROPERTIES, Problem, Property, property_named,
};
use evenhand_model::{Quantity, Rational};
use serde::Serialize;

use crate::arguments::AuditArgs;
use crate::failure::{Failure, Outcome};
use crate::inputs::problems::{convert, out_of_range, read_problem};
use crate::output::console::{Console, to_json};
use crate::output::named_values::NamedValues;
use crate::output::output_number::{AmountFormat, OutputNumber, ToOutputNumber};
use crate::output::table::printable;

/// Checks an allocation of the problem against the properties.
pub(super) fn run(args: &AuditArgs, path: &Path, console: &Console) -> Result<Outcome, Failure> {
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
        _ => {
            return Err(Failure::Input(
                "--mechanism: found several, expected one, whose allocation the file has".into(),
            ));
        }
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
    let (holding, records) = arithmetic.run(check)?;
    let text = if console.is_json() { to_json(&records)? } else { sentences(&file, &properties, &holding, &records) };
    console.result(&text)?;
    Ok(if records.is_empty() { Outcome::Done } else { Outcome::DoesNotHold })
}

/// Returns the properties of these names, or all.
fn properties(names: &[String]) -> Result<Vec<&'static dyn Property>, Failure> {
    if names.is_empty() {
        return Ok(PROPERTIES.to_vec());
    }
    let found = names.iter().map(|name| {
        property_named(name).ok_or_else(|| Failure::unknown("--property", name, PROPERTIES.iter().map(|p| p.name())))
    });
    found.collect()
}

/// One finding, with names instead of indices, and in the problem's units.
#[derive(Debug, Serialize)]
struct FindingRecord {
    property: &'static str,
    who: Option<String>,
    against: Option<String>,
    on: Option<String>,
    /// What `has`, `due` and `by` measure.
    measure: &'static str,
    has: OutputNumber,
    due: OutputNumber,
    by: OutputNumber,
    /// `by` in units of the resources concerned.
    amount: NamedValues<OutputNumber>,
    /// Whether `has` is less than `due`.
    #[serde(skip)]
    is_below: bool,
    /// `has` and `due` in units of the resource, if they are shares of it.
    #[serde(skip)]
    in_units: Option<(OutputNumber, OutputNumber)>,
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
        let (mut holding, mut records) = (Vec::new(), Vec::new());
        for property in self.properties {
            let findings = N::findings(*property, &problem, &tasks, &tolerance);
            if findings.is_empty() {
                holding.push(property.name());
            }
            records.extend(findings.iter().map(|finding| record(finding, self.file)));
        }
        Ok((holding, records))
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
    let units = |n: &N| unit.as_ref().map(|unit| (n.clone() * unit).output_number());
    let (measure, amount, in_units) = match (finding.measure, finding.who) {
        (Measure::Tasks, Some(who)) => {
            let demand = file.resources.iter().zip(&file.users[who].demand).filter(|(_, d)| !d.is_zero());
            let amount = demand.map(|(name, d)| (name.clone(), (by.clone() * N::from_exact(d)).output_number()));
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
        has: finding.has.output_number(),
        due: finding.due.output_number(),
        by: by.output_number(),
        amount: NamedValues(amount),
        is_below: finding.due >= finding.has,
        in_units,
    }
}

/// Formats a line for each finding, then a line for each property.
fn sentences(
    file: &ProblemFile,
    properties: &[&'static dyn Property],
    holding: &[&str],
    records: &[FindingRecord],
) -> String {
    let mut lines: Vec<String> = records.iter().map(|record| sentence(file, record)).collect();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    for property in properties {
        lines.push(match holding.contains(&property.name()) {
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
    // A finding about only a resource begins with its name.
    place.extend(record.on.as_ref().map(|name| if place.is_empty() { name.clone() } else { format!("on {name}") }));
    let format = |name: &String| {
        let resource = file.resources.iter().position(|known| known == name);
        resource.map_or(AmountFormat::for_capacity(&Rational::ZERO), |r| AmountFormat::for_capacity(&file.capacity[r]))
    };
    let amounts = record.amount.0.iter().map(|(name, amount)| format!("{} {name}", format(name).format(amount)));
    let amount = amounts.collect::<Vec<_>>().join(", ");
    let difference = if record.is_below { "short by" } else { "over by" };
    let what = match &record.in_units {
        Some((has, due)) => {
            let format = record.on.as_ref().map_or(AmountFormat::for_capacity(&Rational::ZERO), format);
            format!("has {}, due {}; {difference} {amount}", format.format(has), format.format(due))
        }
        None => {
            let (has, due, by) = (record.has.to_text(), record.due.to_text(), record.by.to_text());
            format!("has {has} tasks, due {due}; {difference} {by} ({amount})")
        }
    };
    printable(&format!("{}: {}: {what}", record.property, place.join(" ")))
}
