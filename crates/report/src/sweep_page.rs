//! The page of a sweep: its axes, and waits along them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use evenhand_documents::{Cell, Csv};
use evenhand_study::scheduler_text;
use evenhand_study::sweep::record::{PointRecord, SweepRecord};
use evenhand_study::sweep::{CapacityAxis, Grid, Point};

use crate::ReportError;
use crate::chart::{
    Axis, BarChart, BarSeries, Caption, Escaped, Figure, Line, LineChart, Mean, Scale, Shape, Unit, style,
};
use crate::write_file::{create_folder, write_file};

/// Maximum number of groups on the page; the data file holds all.
const MAX_GROUPS: usize = 24;

/// One group of figures: workloads that differ only in their seed, with index of the weights, whether the run ends
/// with the trace, whether tasks that do not fit are skipped, and index of the scheduler.
type Group = (String, usize, bool, bool, usize);
/// The values by (line, capacity), one per seed.
type Values = BTreeMap<(usize, usize), Vec<f64>>;

/// A quantity of a point, with the texts of its figure.
struct Quantity {
    name: &'static str,
    title: &'static str,
    axis: &'static str,
    unit: Unit,
    value: fn(&PointRecord) -> Option<f64>,
}

const QUANTITIES: [Quantity; 3] = [
    Quantity {
        name: "mean-wait",
        title: "Mean wait of tasks",
        axis: "mean wait",
        unit: Unit::Seconds,
        value: |p| p.mean_wait_s,
    },
    Quantity {
        name: "users-mean-wait",
        title: "Mean over users of their mean waits",
        axis: "users' mean wait",
        unit: Unit::Seconds,
        value: |p| p.users_mean_wait_s,
    },
    Quantity {
        name: "users-mean-wait-reduction",
        title: "Reduction of the users' mean wait compared with the first policy",
        axis: "reduction",
        unit: Unit::Percent,
        value: |p| p.against.as_ref().and_then(|a| a.users_mean_wait_reduction),
    },
];

const SWEEP_PAGE_STYLE: &str = "body { font: 15px/1.5 system-ui, sans-serif; max-width: 74rem; margin: 2rem auto; \
     padding: 0 1rem; background: var(--paper); color: var(--ink); } \
     h2 { margin-top: 3rem; border-top: 1px solid var(--rule); padding-top: 1rem; } \
     .figures { display: flex; flex-wrap: wrap; gap: 1.5rem; } figure { margin: 0; flex: 1 1 30rem; max-width: 35rem; } \
     figcaption { font-weight: bold; } table { border-collapse: collapse; margin: 1rem 0; } \
     td, th { text-align: left; vertical-align: top; padding: 0.3rem 0.8rem 0.3rem 0; border-bottom: 1px solid var(--rule); } \
     .soft { color: var(--soft); }";

/// Writes `figures/*.svg`, `figures/*.csv` and, last, `index.html` into `folder`; returns the path of the page.
///
/// `points` are the points of `grid`, to which the records in `record` refer by index.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn write_sweep_report(
    folder: &Path,
    grid: &Grid,
    points: &[Point],
    record: &SweepRecord,
) -> Result<PathBuf, ReportError> {
    create_folder(&folder.join("figures"))?;
    let mut page = head(grid, points, record);
    let mut groups: Vec<Group> = Vec::new();
    for point in &record.points {
        let group = group(grid, &points[point.axes.point]);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for (at, key) in groups.iter().take(MAX_GROUPS).enumerate() {
        let _ = writeln!(page, "<h2>{}</h2>\n<div class=\"figures\">", Escaped(&heading(grid, key)));
        let members: Vec<&PointRecord> =
            record.points.iter().filter(|p| group(grid, &points[p.axes.point]) == *key).collect();
        for quantity in &QUANTITIES {
            let Some((figure, csv)) = draw(grid, points, &members, quantity, at) else { continue };
            let file = figure.name().to_string();
            write_file(&folder.join(format!("figures/{file}.svg")), &figure.standalone())?;
            write_file(&folder.join(format!("figures/{file}.csv")), &csv)?;
            let (title, inline) = (Escaped(figure.title()), figure.inline());
            let _ = writeln!(
                page,
                "<figure><figcaption>{title}</figcaption>\n{inline}<a href=\"figures/{file}.svg\">SVG</a> \
                 <a href=\"figures/{file}.csv\">data</a></figure>"
            );
        }
        page.push_str("</div>\n");
    }
    if groups.len() > MAX_GROUPS {
        let more = groups.len() - MAX_GROUPS;
        let _ = writeln!(page, "<p class=\"soft\">results.csv holds {more} more groups.</p>");
    }
    page.push_str("</body></html>\n");
    let index = folder.join("index.html");
    write_file(&index, &page)?;
    Ok(index)
}

/// Returns the beginning of the page: its title, the missing points and the axes. Writing to a string cannot fail.
fn head(grid: &Grid, points: &[Point], record: &SweepRecord) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Sweep of {} points</title>\n\
         <style>{}\n{SWEEP_PAGE_STYLE}</style></head><body>\n<h1>Sweep of {} points</h1>\n",
        points.len(),
        style(),
        points.len()
    );
    if !record.missing.is_empty() {
        let names: Vec<String> = record.missing.iter().take(50).map(|m| points[m.point].describe(grid)).collect();
        let more = record.missing.len() - names.len();
        let _ = writeln!(
            page,
            "<p><strong>{} points have no result:</strong> {}{}</p>",
            record.missing.len(),
            Escaped(&names.join("; ")),
            if more > 0 { format!("; and {more} more") } else { String::new() }
        );
    }
    page.push_str("<p>Each point is a row of <a href=\"results.csv\">results.csv</a>.</p>\n<table>\n");
    let mut row = |axis: &str, values: Vec<String>| {
        let _ = writeln!(page, "<tr><th>{axis}</th><td>{}</td></tr>", Escaped(&values.join("; ")));
    };
    let workloads = grid.workloads.iter().map(|w| match w.seed() {
        Some(seed) => format!("{}, seed {seed}", w.name()),
        None => w.name(),
    });
    row("workload", workloads.collect());
    row("policy", grid.policies.iter().map(|p| p.name.to_string()).collect());
    row("capacity", grid.capacities.iter().map(|c| c.name().to_string()).collect());
    row("decay", grid.decays.iter().map(|d| d.name.clone()).collect());
    row("weights", grid.weights.iter().map(|w| w.name().to_string()).collect());
    for axis in &grid.setting_axes {
        row(axis.option.label, axis.names());
    }
    page.push_str("</table>\n");
    page
}

fn group(grid: &Grid, point: &Point) -> Group {
    (grid.workloads[point.workload].name(), point.weights, point.until_trace_end, point.no_blocking, point.scheduler)
}

fn heading(grid: &Grid, (workload, weights, until, no_blocking, scheduler): &Group) -> String {
    let mut words = vec![workload.clone()];
    if grid.weights.len() > 1 {
        words.push(format!("weights {}", grid.weights[*weights].name()));
    }
    if grid.until_trace_end.len() > 1 {
        words.push(if *until { "until the end of the trace" } else { "until all tasks have finished" }.into());
    }
    if grid.no_blocking.len() > 1 {
        words.push(
            if *no_blocking {
                "tasks that do not fit are skipped"
            } else {
                "a task that does not fit blocks the queue"
            }
            .into(),
        );
    }
    if grid.schedulers.len() > 1 {
        words.push(format!("scheduler {}", scheduler_text(grid.schedulers[*scheduler])));
    }
    words.join("; ")
}

/// Draws one quantity of a group by capacity, one line per policy; over several seeds the mean with its standard
/// deviation. Returns `None` if no point has a value.
fn draw(
    grid: &Grid,
    points: &[Point],
    members: &[&PointRecord],
    quantity: &Quantity,
    at: usize,
) -> Option<(Figure, String)> {
    let mut lines: Vec<String> = Vec::new();
    let mut values: Values = BTreeMap::new();
    for member in members {
        let point = &points[member.axes.point];
        let variant = point.variant_in_words(grid);
        let line = lines.iter().position(|l| *l == variant).unwrap_or_else(|| {
            lines.push(variant);
            lines.len() - 1
        });
        if let Some(value) = (quantity.value)(member).filter(|v| v.is_finite()) {
            values.entry((line, point.capacity)).or_default().push(value);
        }
    }
    if values.is_empty() {
        return None;
    }
    let seeds = values.values().map(Vec::len).max().unwrap_or(1);
    let mut csv = Csv::new(&["policy", "capacity", "mean", "standard_deviation", "runs"]);
    let mut means: BTreeMap<(usize, usize), (f64, f64)> = BTreeMap::new();
    for ((line, capacity), all) in &values {
        let (mean, deviation) = mean_and_deviation(all);
        means.insert((*line, *capacity), (mean, deviation));
        let name = grid.capacities[*capacity].name();
        let numbers = [mean, deviation].map(|n| Cell::Number(Some(n)));
        let [mean, deviation] = numbers;
        csv.row(&[Cell::Text(&lines[*line]), Cell::Text(name), mean, deviation, Cell::Count(all.len() as u64)]);
    }
    let over = if seeds > 1 { format!(", mean of {seeds} seeds") } else { String::new() };
    let caption = Caption {
        name: format!("{}-{at}", quantity.name),
        title: format!("{}{over}", quantity.title),
        description: format!("{} at each capacity, for each policy.", quantity.title),
    };
    let reaches = means.values().flat_map(|(mean, deviation)| [mean - deviation, mean + deviation]);
    let y =
        Axis { title: quantity.axis.into(), unit: quantity.unit, scale: Scale::linear(reaches, true, quantity.unit) };
    let factors: Option<Vec<f64>> = grid.capacities.iter().map(factor).collect();
    let figure = match factors.filter(|f| f.len() > 1) {
        Some(factors) => by_factor(&lines, &means, &factors, caption, y),
        None => by_name(grid, &lines, &means, caption, y),
    };
    Some((figure, csv.finish()))
}

fn factor(capacity: &CapacityAxis) -> Option<f64> {
    match capacity {
        CapacityAxis::Multiple(_, factor) => Some(factor.to_f64()),
        CapacityAxis::File(..) => None,
    }
}

fn by_factor(
    lines: &[String],
    means: &BTreeMap<(usize, usize), (f64, f64)>,
    factors: &[f64],
    caption: Caption,
    y: Axis,
) -> Figure {
    let mut order: Vec<usize> = (0..factors.len()).collect();
    order.sort_by(|a, b| factors[*a].total_cmp(&factors[*b]));
    let data: Vec<Vec<Mean>> = (0..lines.len())
        .map(|line| {
            let mean = |capacity: &usize| {
                let found = means.get(&(line, *capacity));
                let deviation = found.map_or(0.0, |(_, deviation)| *deviation);
                Mean { at: factors[*capacity], mean: found.map(|(mean, _)| *mean), deviation }
            };
            order.iter().map(mean).collect()
        })
        .collect();
    let shapes = data.iter().zip(lines).enumerate();
    let lines = shapes
        .map(|(series, (data, label))| Line { label: label.clone(), series, shape: Shape::Means(data) })
        .collect();
    let x = Axis {
        title: "capacity, as a multiple of R".into(),
        unit: Unit::Number,
        scale: Scale::linear(factors.iter().copied(), false, Unit::Number),
    };
    LineChart { caption, x, y, lines }.draw()
}

fn by_name(
    grid: &Grid,
    lines: &[String],
    means: &BTreeMap<(usize, usize), (f64, f64)>,
    caption: Caption,
    y: Axis,
) -> Figure {
    let series = lines.iter().enumerate().map(|(series, label)| BarSeries {
        label: label.clone(),
        series,
        values: (0..grid.capacities.len()).map(|c| means.get(&(series, c)).map(|(mean, _)| *mean)).collect(),
    });
    let groups = grid.capacities.iter().map(|c| c.name().to_string()).collect();
    BarChart { caption, groups_title: "capacity".into(), groups, y, series: series.collect() }.draw()
}

/// Returns the mean and the sample standard deviation.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 })
}
