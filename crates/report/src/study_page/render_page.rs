//! Renders the template of the study page.

use evenhand_study::record::RepeatsRecord;
use minijinja::value::Serde;
use serde::Serialize;

use super::figures::{FigureWithData, Figures, all_complete};
use super::grid::{Capacity, Policy, StudyGrid};
use super::{
    account_table, answer_sentences, class_table, machine_tables, nuwt_and_idle_tables, script_data, trust_section,
    user_and_fairness_tables, work_table,
};
use crate::format_numbers::{duration_and_seconds, grouped};
use crate::template::{PAGE_STYLE, environment};
use crate::{ReportError, chart};

const TEMPLATE: &str = include_str!("../../assets/study_page.html");
const SCRIPT: &str = include_str!("../../assets/study_page.js");

/// The template's variables. The template does not escape figures, styles, script and data.
#[derive(Serialize)]
struct Page<'a> {
    chart_style: &'static str,
    style: &'static str,
    script: &'static str,
    data: String,
    source: &'a str,
    digest: &'a str,
    question: String,
    tasks: String,
    users: String,
    span: String,
    mean_use: Vec<(&'a str, String)>,
    policies: Vec<Choice<'a>>,
    capacities: Vec<Choice<'a>>,
    baseline: &'a str,
    initial_capacity: usize,
    initial_policy: usize,
    missing: &'a [String],
    requested_runs: usize,
    overview: Vec<String>,
    answers: Vec<answer_sentences::Answer>,
    reductions: Vec<FigureText<'a>>,
    waits: Option<FigureText<'a>>,
    completion: Option<FigureText<'a>>,
    completion_note: String,
    all_complete: bool,
    user_table: user_and_fairness_tables::UserTable,
    account_table: account_table::AccountTable,
    over_time: Vec<Vec<FigureText<'a>>>,
    fairness: Vec<user_and_fairness_tables::FairnessGroup>,
    normalized: Vec<nuwt_and_idle_tables::Group<nuwt_and_idle_tables::NormalizedRow>>,
    waste: Option<nuwt_and_idle_tables::WasteTable>,
    /// Jobs on machines.
    machines: Option<machine_tables::MachineTables>,
    not_modelled: Vec<(&'static str, &'static str)>,
    work: Option<work_table::WorkTable>,
    classes: Vec<class_table::ClassGroup>,
    class_figures: Vec<FigureText<'a>>,
    trust: Option<trust_section::TrustSection>,
    /// How a repeated study was repeated.
    repeats: Option<&'a RepeatsRecord>,
    resources: Vec<&'a str>,
    simulations: Vec<user_and_fairness_tables::Simulation>,
    command: &'a str,
    version: &'a str,
    parameters: &'a [(String, String)],
}

/// A figure with its explanation and the name of its files.
#[derive(Serialize)]
struct FigureText<'a> {
    svg: String,
    title: &'a str,
    explanation: &'a str,
    name: &'a str,
}

impl<'a> From<&'a FigureWithData> for FigureText<'a> {
    fn from(drawn: &'a FigureWithData) -> FigureText<'a> {
        let title = drawn.figure.title();
        FigureText { svg: drawn.figure.inline(), title, explanation: &drawn.explanation, name: drawn.figure.name() }
    }
}

/// An entry of a list of policies or capacities.
#[derive(Serialize)]
struct Choice<'a> {
    label: &'a str,
    details: String,
}

/// Renders the page as HTML.
pub(super) fn render(grid: &StudyGrid<'_>, figures: &Figures) -> Result<String, ReportError> {
    let mut environment = environment()?;
    environment.add_template("study_page.html", TEMPLATE)?;
    let (capacity, policy) = grid.initial_choice();
    let initial = figures.pairs.iter().find(|pair| (pair.capacity, pair.policy) == (capacity, policy));
    let (workload, method) = (&grid.record.workload, &grid.record.method);
    let mean_use = workload.mean_use.iter();
    let tree = account_table::Tree::of(grid);
    let page = Page {
        chart_style: chart::style(),
        style: PAGE_STYLE,
        script: SCRIPT,
        data: script_data::to_json(grid, figures, &tree)?,
        source: &workload.source,
        digest: &workload.digest,
        question: answer_sentences::question(grid),
        tasks: grouped(workload.tasks),
        users: grouped(workload.users),
        span: duration_and_seconds(workload.span_s),
        mean_use: mean_use.map(|(resource, &mean)| (resource.as_str(), grid.amount(resource, mean))).collect(),
        policies: policies(grid),
        capacities: capacities(grid),
        baseline: grid.baseline(),
        initial_capacity: capacity,
        initial_policy: policy,
        missing: &grid.record.missing,
        requested_runs: grid.record.runs.len() + grid.record.missing.len(),
        overview: answer_sentences::overview(grid),
        answers: answer_sentences::answers(grid),
        reductions: figures.reductions.iter().map(FigureText::from).collect(),
        waits: initial.map(|pair| FigureText::from(&pair.waits)),
        completion: initial.and_then(|pair| pair.completion.as_ref()).map(FigureText::from),
        completion_note: answer_sentences::completion_note(grid, capacity, policy),
        all_complete: grid.record.runs.iter().all(all_complete),
        user_table: user_and_fairness_tables::user_table(grid, capacity, policy),
        account_table: account_table::account_table(grid, &tree, capacity, policy),
        over_time: figures.over_time.iter().map(|drawn| drawn.iter().map(FigureText::from).collect()).collect(),
        fairness: user_and_fairness_tables::fairness(grid),
        normalized: nuwt_and_idle_tables::normalized(grid),
        waste: nuwt_and_idle_tables::waste(grid),
        machines: machine_tables::machine_tables(grid),
        not_modelled: machine_tables::not_modelled(grid.record),
        work: work_table::work(grid),
        classes: class_table::classes(grid),
        class_figures: figures.classes.iter().map(FigureText::from).collect(),
        trust: trust_section::trust_section(grid.record),
        repeats: grid.record.repeats.as_ref(),
        resources: grid.resources(),
        simulations: user_and_fairness_tables::simulations(grid),
        command: &method.command,
        version: &method.version,
        parameters: &method.parameters,
    };
    Ok(environment.get_template("study_page.html")?.render(Serde(page))?)
}

fn policies<'a>(grid: &'a StudyGrid<'_>) -> Vec<Choice<'a>> {
    let choice =
        |policy: &'a Policy| Choice { label: &policy.label, details: policy.discount.clone().unwrap_or_default() };
    grid.policies.iter().map(choice).collect()
}

fn capacities<'a>(grid: &'a StudyGrid<'_>) -> Vec<Choice<'a>> {
    let choice = |capacity: &'a Capacity<'_>| {
        let amounts = capacity.amounts.iter().map(|(name, &number)| format!("{name} {}", grid.amount(name, number)));
        Choice { label: &capacity.label, details: amounts.collect::<Vec<_>>().join(", ") }
    };
    grid.capacities.iter().map(choice).collect()
}
