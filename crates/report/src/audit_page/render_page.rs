//! Renders the page of an audited history.

use minijinja::value::Serde;
use serde::Serialize;

use super::figures::{self, ResourceFigures};
use super::tables::{self, ComplaintRow, Matrix, PairRow, PartyRow};
use super::{EntitlementRecord, LevelRecord};
use crate::ReportError;
use crate::chart::{self, Figure};
use crate::file_names::FileNames;
use crate::template::{PAGE_STYLE, environment};

const TEMPLATE: &str = include_str!("../../assets/audit_page.html");
const AUDIT_PAGE_STYLE: &str = include_str!("../../assets/audit_page.css");

/// The template's variables. The template does not escape figures and styles.
#[derive(Serialize)]
struct Page<'a> {
    chart_style: &'static str,
    style: &'static str,
    audit_page_style: &'static str,
    source: &'a str,
    details: &'a [(String, String)],
    shares_are: &'a str,
    weeks_are: &'a str,
    capacity: String,
    several_resources: bool,
    /// The one number of the audit, and the sentence that follows it.
    headline: Option<(String, String)>,
    sentences: Vec<String>,
    levels: Vec<LevelText>,
}

/// The parties of one kind.
#[derive(Serialize)]
struct LevelText {
    kind: &'static str,
    /// Plural of `kind`, capitalized.
    title: &'static str,
    weeks: Vec<WeeksText>,
    tables: Vec<TableText>,
    matrices: Vec<Matrix>,
    pairs: Vec<PairRow>,
    lanes: Option<FigureText>,
    lanes_left_out: usize,
    complaints: Vec<ComplaintRow>,
    complaints_left_out: usize,
    complaints_in_all: usize,
    turned_by_a_tie: usize,
}

#[derive(Serialize)]
struct WeeksText {
    resource: String,
    figures: Vec<FigureText>,
    left_out: usize,
}

#[derive(Serialize)]
struct FigureText {
    title: String,
    svg: String,
}

#[derive(Serialize)]
struct TableText {
    resource: String,
    /// The unit of unmet claims and overuse.
    unit: String,
    rows: Vec<PartyRow>,
    left_out: usize,
}

/// Renders the page as HTML; also returns its figures.
pub(super) fn render(record: &EntitlementRecord) -> Result<(String, Vec<Figure>), ReportError> {
    let mut names = FileNames::default();
    let mut drawn = Vec::new();
    let levels = record.levels.iter().enumerate().map(|(at, level)| {
        // Only the first level has figures: beside accounts, users are too many.
        let weeks = if at == 0 { figures::weeks(record, level, &mut names) } else { Vec::new() };
        let lanes = figures::complaints(record, level, &mut names);
        let text = level_text(record, level, &weeks, lanes.as_ref());
        drawn.extend(weeks.into_iter().flat_map(|weeks| weeks.figures).chain(lanes.map(|lanes| lanes.0)));
        text
    });
    let levels = levels.collect();
    let page = Page {
        chart_style: chart::style(),
        style: PAGE_STYLE,
        audit_page_style: AUDIT_PAGE_STYLE,
        source: &record.source,
        details: &record.details,
        shares_are: &record.shares_are,
        weeks_are: &record.weeks_are,
        capacity: record.capacity_sentence(),
        several_resources: record.resources.len() > 1,
        headline: record.headline(),
        sentences: record.summary_sentences(),
        levels,
    };
    let mut environment = environment()?;
    environment.add_template("audit_page.html", TEMPLATE)?;
    Ok((environment.get_template("audit_page.html")?.render(Serde(page))?, drawn))
}

fn level_text(
    record: &EntitlementRecord,
    level: &LevelRecord,
    weeks: &[ResourceFigures],
    lanes: Option<&(Figure, usize)>,
) -> LevelText {
    let resources = || 0..record.resources.len();
    let (complaints, complaints_left_out) = tables::complaints(record, level);
    let weeks = weeks.iter().map(|weeks| WeeksText {
        resource: record.resources[weeks.resource].name.clone(),
        figures: weeks.figures.iter().map(|f| FigureText { title: f.title().into(), svg: f.inline() }).collect(),
        left_out: weeks.left_out,
    });
    let table = |r: usize| {
        let (rows, unit, left_out) = tables::parties(record, level, r);
        TableText { resource: record.resources[r].name.clone(), unit, rows, left_out }
    };
    let matrices: Vec<Matrix> = resources().filter_map(|r| tables::matrix(record, level, r)).collect();
    let of_users = level.kind == "user";
    LevelText {
        kind: level.kind,
        title: if of_users { "Users" } else { "Accounts" },
        weeks: weeks.collect(),
        tables: resources().map(table).filter(|table| !table.rows.is_empty()).collect(),
        pairs: if of_users { tables::pairs(record, level) } else { Vec::new() },
        matrices: if of_users { Vec::new() } else { matrices },
        lanes: lanes.map(|(figure, _)| FigureText { title: figure.title().into(), svg: figure.inline() }),
        lanes_left_out: lanes.map_or(0, |(_, left_out)| *left_out),
        complaints,
        complaints_left_out,
        complaints_in_all: level.complaints.len(),
        turned_by_a_tie: level.turned_by_a_tie(),
    }
}
