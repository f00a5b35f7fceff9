//! `evenhand audit --search-lies`

use evenhand_documents::did_you_mean;
use evenhand_mechanisms::problem_files::{Arithmetic, ProblemFile};
use evenhand_mechanisms::{Lie, LieSearch, Problem, search_lies};
use evenhand_model::{Rational, to_f64};
use serde::Serialize;

use crate::args::{AuditArgs, Common};
use crate::bars::percent;
use crate::console::{Console, json};
use crate::division::{in_floats, mechanisms, options, read_problem, refusal};
use crate::failure::{Failure, Outcome};
use crate::figure::{Named, short};
use crate::table::{Table, plain};

/// What a search under one mechanism found.
#[derive(Debug, Serialize)]
struct SearchRecord {
    mechanism: &'static str,
    /// How many false declarations were tried.
    tried: u64,
    /// How many of them the mechanism did not divide.
    refused: u64,
    best: Option<LieRecord>,
}

/// A false declaration in the problem's units.
#[derive(Debug, Serialize)]
struct LieRecord {
    user: String,
    declared_demand: Named<f64>,
    declared_tasks: Option<f64>,
    truthful_tasks: f64,
    lying_tasks: f64,
    /// Of the true tasks; `null` if the truth gives none.
    gain: f64,
}

pub(crate) fn run(args: &AuditArgs, common: &Common, console: &Console) -> Result<Outcome, Failure> {
    let mechanisms = mechanisms(&args.mechanism)?;
    let (file, exact) = read_problem(args.problem(), Arithmetic::Float)?;
    let problem = in_floats(&exact)?;
    let only = args.user.as_deref().map(|name| user_named(name, &file)).transpose()?;
    let tries = args.tries.unwrap_or_else(|| default_tries(if only.is_some() { 1 } else { file.users.len() }));
    let mut records = Vec::new();
    for mechanism in mechanisms {
        let search = search_lies(mechanism, &problem, &options(&args.options), common.seed(), tries, only);
        let LieSearch { tried, refused, best } = search.map_err(|e| refusal(&e))?;
        let best = best.map(|lie| (record(&lie, &file), lie.user));
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
                best: best.map(|(lie, _)| lie),
            })
            .collect();
        json(&records)?
    } else {
        let said = records.iter().map(|(mechanism, tried, refused, best)| {
            let refused = if *refused > 0 { format!(", {refused} of them not divided") } else { String::new() };
            match best {
                None => format!("{mechanism}: none of {tried} false declarations pays{refused}"),
                Some((lie, user)) => {
                    format!(
                        "{}\n({tried} false declarations tried{refused})",
                        sentences(mechanism, lie, *user, &file, &exact)
                    )
                }
            }
        });
        said.collect::<Vec<_>>().join("\n\n")
    };
    console.result(&text)?;
    Ok(if found { Outcome::DoesNotHold } else { Outcome::Done })
}

/// As many as are done in seconds.
fn default_tries(users: usize) -> u64 {
    const MOST: u64 = 1000;
    const ALL: u64 = 100_000;
    const LEAST: u64 = 20;
    (ALL / users.max(1) as u64).clamp(LEAST, MOST)
}

fn user_named(name: &str, file: &ProblemFile) -> Result<usize, Failure> {
    file.users.iter().position(|user| user.name == name).ok_or_else(|| {
        let hint = did_you_mean(name, file.users.iter().map(|user| user.name.as_str()));
        Failure::Input(format!("--user: found {name:?}, expected a user of the problem{hint}"))
    })
}

fn record(lie: &Lie, file: &ProblemFile) -> LieRecord {
    let demand = lie.demand.iter().zip(&file.capacity).map(|(share, capacity)| share * to_f64(capacity));
    LieRecord {
        user: file.users[lie.user].name.clone(),
        declared_demand: Named::new(&file.resources, demand),
        declared_tasks: lie.limit,
        truthful_tasks: lie.truthful_tasks,
        lying_tasks: lie.lying_tasks,
        gain: lie.gain(),
    }
}

fn sentences(mechanism: &str, lie: &LieRecord, user: usize, file: &ProblemFile, problem: &Problem<Rational>) -> String {
    let gain = if lie.gain.is_finite() { percent(lie.gain) } else { "everything".to_string() };
    let mut header = vec![plain(&lie.user)];
    header.extend(file.resources.iter().map(|name| plain(name)));
    header.extend(["wanted", "gets tasks"].map(String::from));
    let mut table = Table::new(1, header);
    let limit = |most: Option<f64>| most.map_or("no limit".to_string(), short);
    let mut row = |what: &str, demand: Vec<f64>, most: Option<f64>, tasks: f64| {
        let mut cells = vec![what.to_string()];
        cells.extend(demand.into_iter().map(short));
        cells.extend([limit(most), short(tasks)]);
        table.row(cells);
    };
    let truth = file.users[user].demand.iter().map(to_f64).collect();
    row("truth", truth, problem.limit(user).map(to_f64), lie.truthful_tasks);
    let declared = lie.declared_demand.0.iter().map(|(_, d)| *d).collect();
    row("lie", declared, lie.declared_tasks, lie.lying_tasks);
    let name = plain(&lie.user);
    format!("{mechanism}: {name} gains {gain} by declaring something else\n\n{}\n", table.render())
}
