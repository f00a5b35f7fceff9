//! `evenhand audit --search-lies`

use evenhand_documents::did_you_mean;
use evenhand_mechanisms::problem_files::ProblemFile;
use evenhand_mechanisms::{Arithmetic, Misreport, MisreportSearch, Problem, search_misreports};
use evenhand_model::{Rational, to_f64};
use serde::Serialize;

use crate::arguments::{AuditArgs, Common};
use crate::failure::{Failure, Outcome};
use crate::inputs::problems::{convert, mechanism_failure, mechanism_options, mechanisms_named, read_problem};
use crate::output::console::{Console, to_json};
use crate::output::named_values::NamedValues;
use crate::output::numbers::four_digits;
use crate::output::numbers::percent;
use crate::output::table::{Table, printable};

/// Result of the search under one mechanism.
#[derive(Debug, Serialize)]
struct SearchRecord {
    mechanism: &'static str,
    /// Number of misreports tried.
    tried: u64,
    /// Number of them that the mechanism refused.
    refused: u64,
    best: Option<MisreportRecord>,
}

/// Misreport in the units of the problem file.
#[derive(Debug, Serialize)]
struct MisreportRecord {
    user: String,
    declared_demand: NamedValues<f64>,
    declared_tasks: Option<f64>,
    truthful_tasks: f64,
    #[serde(rename = "lying_tasks")]
    misreport_tasks: f64,
    /// Relative to the truthful tasks; `null` if those are 0.
    gain: f64,
}

pub(super) fn run(args: &AuditArgs, common: &Common, console: &Console) -> Result<Outcome, Failure> {
    let mechanisms = mechanisms_named(&args.mechanism)?;
    let options = mechanism_options(&args.options, &mechanisms, console);
    let (file, exact) = read_problem(args.problem(), Arithmetic::Float)?;
    let problem = convert(&exact)?;
    let only = args.user.as_deref().map(|name| user_named(name, &file)).transpose()?;
    let tries = args.tries.unwrap_or_else(|| default_tries(if only.is_some() { 1 } else { file.users.len() }));
    let mut records = Vec::new();
    for mechanism in mechanisms {
        let search = search_misreports(mechanism, &problem, &options, common.seed(), tries, only);
        let MisreportSearch { tried, refused, best } = search.map_err(|e| mechanism_failure(&e))?;
        let best = best.map(|misreport| (record(&misreport, &file), misreport.user));
        records.push((mechanism.name(), tried, refused, best));
    }
    let found = records.iter().any(|(.., best)| best.is_some());
    let text = if console.is_json() {
        let records: Vec<SearchRecord> = records
            .into_iter()
            .map(|(mechanism, tried, refused, best)| SearchRecord {
                mechanism,
                tried,
                refused,
                best: best.map(|(misreport, _)| misreport),
            })
            .collect();
        to_json(&records)?
    } else {
        let results = records.iter().map(|(mechanism, tried, refused, best)| {
            let refused = if *refused > 0 { format!(", {refused} of them refused") } else { String::new() };
            match best {
                None => format!("{mechanism}: none of {tried} misreports is profitable{refused}"),
                Some((misreport, user)) => {
                    format!(
                        "{}\n({tried} misreports tried{refused})",
                        sentences(mechanism, misreport, *user, &file, &exact)
                    )
                }
            }
        });
        results.collect::<Vec<_>>().join("\n\n")
    };
    console.result(&text)?;
    Ok(if found { Outcome::DoesNotHold } else { Outcome::Done })
}

/// Number of misreports per user that keeps the search within seconds.
fn default_tries(users: usize) -> u64 {
    const MAXIMUM: u64 = 1000;
    const TOTAL: u64 = 100_000;
    const MINIMUM: u64 = 20;
    (TOTAL / users.max(1) as u64).clamp(MINIMUM, MAXIMUM)
}

fn user_named(name: &str, file: &ProblemFile) -> Result<usize, Failure> {
    file.users.iter().position(|user| user.name == name).ok_or_else(|| {
        let hint = did_you_mean(name, file.users.iter().map(|user| user.name.as_str()));
        Failure::Input(format!("--user: found {name:?}, expected a user of the problem{hint}"))
    })
}

fn record(misreport: &Misreport, file: &ProblemFile) -> MisreportRecord {
    let demand = misreport.demand.iter().zip(&file.capacity).map(|(share, capacity)| share * to_f64(capacity));
    MisreportRecord {
        user: file.users[misreport.user].name.clone(),
        declared_demand: NamedValues::new(&file.resources, demand),
        declared_tasks: misreport.limit,
        truthful_tasks: misreport.truthful_tasks,
        misreport_tasks: misreport.misreport_tasks,
        gain: misreport.gain(),
    }
}

fn sentences(
    mechanism: &str,
    misreport: &MisreportRecord,
    user: usize,
    file: &ProblemFile,
    problem: &Problem<Rational>,
) -> String {
    let gain = if misreport.gain.is_finite() { percent(misreport.gain) } else { "everything".to_string() };
    let mut header = vec![printable(&misreport.user)];
    header.extend(file.resources.iter().map(|name| printable(name)));
    header.extend(["wanted", "gets tasks"].map(String::from));
    let mut table = Table::new(1, header);
    let limit = |limit: Option<f64>| limit.map_or("no limit".to_string(), four_digits);
    let mut row = |what: &str, demand: Vec<f64>, demand_limit: Option<f64>, tasks: f64| {
        let mut cells = vec![what.to_string()];
        cells.extend(demand.into_iter().map(four_digits));
        cells.extend([limit(demand_limit), four_digits(tasks)]);
        table.row(cells);
    };
    let truth = file.users[user].demand.iter().map(to_f64).collect();
    row("truth", truth, problem.limit(user).map(to_f64), misreport.truthful_tasks);
    let declared = misreport.declared_demand.0.iter().map(|(_, d)| *d).collect();
    row("misreport", declared, misreport.declared_tasks, misreport.misreport_tasks);
    let name = printable(&misreport.user);
    format!("{mechanism}: {name} gains {gain} by misreporting\n\n{}\n", table.render())
}
