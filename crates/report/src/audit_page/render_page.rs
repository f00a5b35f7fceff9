//! The page of a past.

use minijinja::value::Serde;
use serde::Serialize;

use super::figures::{self, OfResource};
use super::tables::{self, ComplaintRow, Matrix, PairRow, Row};
use super::{LevelRecord, EntitlementRecord};
use crate::ReportError;
use crate::chart::{self, Figure};
use crate::file_names::FileNames;
use crate::template::{PAGE_STYLE, environment};

const TEMPLATE: &str = include_str!("../../assets/past.html");
const PAST_STYLE: &str = include_str!("../../assets/past.css");

/// All that the template shows. Figures and styles are text that it does not escape.
#[derive(Serialize)]
struct Page<'a> {
    chart_style: &'static str,
    style: &'static str,
    past_style: &'static str,
    source: &'a str,
    details: &'a [(String, String)],
    shares_are: &'a str,
    weeks_are: &'a str,
    capacity: String,
    several_resources: bool,
    sentences: Vec<String>,
    levels: Vec<LevelText>,
}

/// One kind of parties.
#[derive(Serialize)]
struct LevelText {
    kind: &'static str,
    /// With a capital.
    title: &'static str,
    weeks: Vec<WeeksText>,
    tables: Vec<TableText>,
    matrices: Vec<Matrix>,
    pairs: Vec<PairRow>,
    lanes: Option<String>,
    lanes_left_out: usize,
    complaints: Vec<ComplaintRow>,
    complaints_left_out: usize,
    complaints_in_all: usize,
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
    rows: Vec<Row>,
    left_out: usize,
}

/// The page as text, and the figures it shows.
pub(super) fn render(record: &EntitlementRecord) -> Result<(String, Vec<Figure>), ReportError> {
    let mut names = FileNames::default();
    let mut drawn = Vec::new();
    let levels = record.levels.iter().enumerate().map(|(at, level)| {
        // Of users there are too many for figures, if there are accounts.
        let weeks = if at == 0 { figures::weeks(record, level, &mut names) } else { Vec::new() };
        let lanes = figures::complaints(record, level, &mut names);
        let text = level_text(record, level, &weeks, lanes.as_ref());
        drawn.extend(weeks.into_iter().flat_map(|weeks| weeks.figures).chain(lanes.map(|lanes| lanes.0)));
        text
    });
    let levels = levels.collect();
    let page = Page {
        chart_style: chart::style(),
        style: STYLE,
        past_style: PAST_STYLE,
        source: &record.source,
        details: &record.details,
        shares_are: &record.shares_are,
        weeks_are: &record.weeks_are,
        capacity: record.capacity_sentence(),
        several_resources: record.resources.len() > 1,
        sentences: record.summary_sentences(),
        levels,
    };
    let mut environment = environment()?;
    environment.add_template("past.html", TEMPLATE)?;
    Ok((environment.get_template("past.html")?.render(Serde(page))?, drawn))
}

fn level_text(record: &EntitlementRecord, level: &LevelRecord, weeks: &[OfResource], lanes: Option<&(Figure, usize)>) -> LevelText {
    let resources = || 0..record.resources.len();
    let (complaints, complaints_left_out) = tables::complaints(record, level);
    let weeks = weeks.iter().map(|weeks| WeeksText {
        resource: record.resources[weeks.resource].name.clone(),
        figures: weeks.figures.iter().map(|f| FigureText { title: f.title().into(), svg: f.inline() }).collect(),
        left_out: weeks.left_out,
    });
    let table = |r: usize| {
        let (rows, left_out) = tables::parties(record, level, r);
        TableText { resource: record.resources[r].name.clone(), rows, left_out }
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
        lanes: lanes.map(|(figure, _)| figure.inline()),
        lanes_left_out: lanes.map_or(0, |(_, left_out)| *left_out),
        complaints,
        complaints_left_out,
        complaints_in_all: level.complaints.len(),
    }
}
