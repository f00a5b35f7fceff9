//! The page: a template, and what it shows.

mod accounts;
mod answer;
mod data;
mod normalized;
mod tables;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use crate::ReportError;
use crate::chart;
use crate::figures::{Drawn, Figures, all_complete};
use crate::format::{duration_and_seconds, grouped};
use crate::view::{Capacity, Policy, View};

const TEMPLATE: &str = include_str!("../../assets/report.html");
pub(crate) const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");

/// All that the template shows. Figures, styles, script and data are text that it does not escape.
#[derive(Serialize)]
struct Page<'a> {
    chart_style: &'static str,
    style: &'static str,
    script: &'static str,
    data: String,
    source: &'a str,
    digest: &'a str,
    asked: String,
    tasks: String,
    users: String,
    span: String,
    mean_use: Vec<(&'a str, String)>,
    policies: Vec<Choice<'a>>,
    capacities: Vec<Choice<'a>>,
    base: &'a str,
    shown_capacity: usize,
    shown_policy: usize,
    missing: &'a [String],
    wanted: usize,
    overview: Vec<String>,
    answers: Vec<answer::Answer>,
    reductions: Vec<FigureText<'a>>,
    waits: Option<FigureText<'a>>,
    completion: Option<FigureText<'a>>,
    completion_note: String,
    all_complete: bool,
    user_table: tables::UserTable,
    account_table: accounts::AccountTable,
    over_time: Vec<Vec<FigureText<'a>>>,
    fairness: Vec<tables::FairnessGroup>,
    normalized: Vec<normalized::Group<normalized::NormalizedRow>>,
    waste: Option<normalized::WasteTable>,
    resources: Vec<&'a str>,
    simulations: Vec<tables::Simulation>,
    command: &'a str,
    version: &'a str,
    parameters: &'a [(String, String)],
}

/// A figure as the page shows it.
#[derive(Serialize)]
struct FigureText<'a> {
    svg: String,
    explanation: &'a str,
    name: &'a str,
}

impl<'a> From<&'a Drawn> for FigureText<'a> {
    fn from(drawn: &'a Drawn) -> FigureText<'a> {
        FigureText { svg: drawn.figure.inline(), explanation: &drawn.explanation, name: drawn.figure.name() }
    }
}

/// A policy or a capacity among others.
#[derive(Serialize)]
struct Choice<'a> {
    label: &'a str,
    details: String,
}

/// What all templates of this crate share: lines with nothing but a block leave nothing, and what is not
/// there is a mistake.
pub(crate) fn environment() -> Result<Environment<'static>, ReportError> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    Ok(environment)
}

/// The page as text.
pub(crate) fn render(view: &View<'_>, figures: &Figures) -> Result<String, ReportError> {
    let mut environment = environment()?;
    environment.add_template("report.html", TEMPLATE)?;
    let (capacity, policy) = view.shown_first();
    let shown = figures.pairs.iter().find(|pair| (pair.capacity, pair.policy) == (capacity, policy));
    let (workload, method) = (&view.record.workload, &view.record.method);
    let mean_use = workload.mean_use.iter();
    let tree = accounts::Tree::of(view);
    let page = Page {
        chart_style: chart::style(),
        style: STYLE,
        script: SCRIPT,
        data: data::json(view, figures, &tree)?,
        source: &workload.source,
        digest: &workload.digest,
        asked: answer::asked(view),
        tasks: grouped(workload.tasks),
        users: grouped(workload.users),
        span: duration_and_seconds(workload.span_s),
        mean_use: mean_use.map(|(resource, &mean)| (resource.as_str(), view.amount(resource, mean))).collect(),
        policies: policies(view),
        capacities: capacities(view),
        base: view.base(),
        shown_capacity: capacity,
        shown_policy: policy,
        missing: &view.record.missing,
        wanted: view.record.runs.len() + view.record.missing.len(),
        overview: answer::overview(view),
        answers: answer::answers(view),
        reductions: figures.reductions.iter().map(FigureText::from).collect(),
        waits: shown.map(|pair| FigureText::from(&pair.waits)),
        completion: shown.and_then(|pair| pair.completion.as_ref()).map(FigureText::from),
        completion_note: answer::completion_note(view, capacity, policy),
        all_complete: view.record.runs.iter().all(all_complete),
        user_table: tables::user_table(view, capacity, policy),
        account_table: accounts::account_table(view, &tree, capacity, policy),
        over_time: figures.over_time.iter().map(|drawn| drawn.iter().map(FigureText::from).collect()).collect(),
        fairness: tables::fairness(view),
        normalized: normalized::normalized(view),
        waste: normalized::waste(view),
        resources: view.resources(),
        simulations: tables::simulations(view),
        command: &method.command,
        version: &method.version,
        parameters: &method.parameters,
    };
    Ok(environment.get_template("report.html")?.render(Serde(page))?)
}

fn policies<'a>(view: &'a View<'_>) -> Vec<Choice<'a>> {
    let choice =
        |policy: &'a Policy| Choice { label: &policy.label, details: policy.discount.clone().unwrap_or_default() };
    view.policies.iter().map(choice).collect()
}

fn capacities<'a>(view: &'a View<'_>) -> Vec<Choice<'a>> {
    let choice = |capacity: &'a Capacity<'_>| {
        let amounts = capacity.amounts.iter().map(|(name, &number)| format!("{name} {}", view.amount(name, number)));
        Choice { label: &capacity.label, details: amounts.collect::<Vec<_>>().join(", ") }
    };
    view.capacities.iter().map(choice).collect()
}
