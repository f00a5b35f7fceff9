//! Draws the figures of the audit page: each party's weeks, and complaints over time.

use evenhand_model::calendar::parse_date_time;

use super::{EntitlementRecord, LevelRecord};
use crate::chart::{
    Axis, BarChart, BarSeries, Caption, DensityChart, Figure, Line, LineChart, Scale, Shape, Strip, Unit,
};
use crate::file_names::FileNames;

/// Maximum number of parties with a figure, for each resource.
const MAX_FIGURES: usize = 12;
/// Maximum number of weeks drawn as bars; more weeks are drawn as lines.
const MAX_BAR_WEEKS: usize = 8;
/// Maximum number of parties with a lane.
const MAX_LANES: usize = 16;

/// Label, series and values by week of entitlement, demand and use.
type WeekSeries<'a> = [(&'a str, usize, Vec<Option<f64>>); 3];

/// The figures of one resource, sorted by decreasing unmet claim, then by decreasing use.
pub(super) struct ResourceFigures {
    pub(super) resource: usize,
    pub(super) figures: Vec<Figure>,
    /// Number of parties with a demand for the resource but without a figure.
    pub(super) left_out: usize,
}

/// Draws each party's weeks on each resource.
pub(super) fn weeks(record: &EntitlementRecord, level: &LevelRecord, names: &mut FileNames) -> Vec<ResourceFigures> {
    let of_resource = |r: usize| {
        let mut parties: Vec<usize> =
            (0..level.parties.len()).filter(|&p| level.parties[p].uses[r].wanted > 0.0).collect();
        parties.sort_by(|&a, &b| {
            let of = |p: usize| &level.parties[p].uses[r];
            of(b).unmet.total_cmp(&of(a).unmet).then(of(b).got.total_cmp(&of(a).got))
        });
        let left_out = parties.len().saturating_sub(MAX_FIGURES);
        parties.truncate(MAX_FIGURES);
        (r, parties, left_out)
    };
    let drawn = (0..record.resources.len()).map(of_resource).filter(|(_, parties, _)| !parties.is_empty());
    let mut resources = Vec::new();
    for (resource, parties, left_out) in drawn {
        let top = highest(record, level, resource, &parties);
        let figures = parties.iter().map(|&party| party_weeks(record, level, (resource, top), party, names)).collect();
        resources.push(ResourceFigures { resource, figures, left_out });
    }
    resources
}

/// Returns the end of the axis that all parties' figures on resource `r` have: above the largest entitlement and use. A
/// long queue may demand a hundred times the machine, which would hide both, so that demand may go on beyond it.
fn highest(record: &EntitlementRecord, level: &LevelRecord, r: usize, parties: &[usize]) -> f64 {
    let of_week = |week: &super::PartyWeekRecord| {
        let (u, hours) = (&week.uses[r], record.weeks[week.week].hours());
        let [entitled, wanted, got] =
            [u.entitled_among_active, u.wanted, u.got].map(|amount| record.capacity_share(r, amount, hours));
        (entitled.max(got), wanted)
    };
    let weeks = level.weeks.iter().filter(|week| parties.contains(&week.party)).map(of_week);
    let (shown, wanted) = weeks.fold((0.0f64, 0.0f64), |most, of| (most.0.max(of.0), most.1.max(of.1)));
    (1.1 * shown).min(1.1 * shown.max(wanted))
}

fn party_weeks(
    record: &EntitlementRecord,
    level: &LevelRecord,
    (r, top): (usize, f64),
    party: usize,
    names: &mut FileNames,
) -> Figure {
    let mut series: WeekSeries<'_> = [("entitled", 0), ("demanded", 5), ("received", 1)]
        .map(|(label, series)| (label, series, vec![None; record.weeks.len()]));
    for week in level.weeks.iter().filter(|week| week.party == party) {
        let (u, hours) = (&week.uses[r], record.weeks[week.week].hours());
        for ((_, _, values), amount) in series.iter_mut().zip([u.entitled_among_active, u.wanted, u.got]) {
            values[week.week] = Some(record.capacity_share(r, amount, hours));
        }
    }
    let (name, resource) = (&level.parties[party].name, &record.resources[r].name);
    let caption = Caption {
        name: names.take(&format!("weeks-{resource}-{name}")),
        title: format!("{} {name}: {resource}", capitalized(level.kind)),
        description: format!(
            "Entitlement (among active parties), demand and use of {resource} by {name} in each week, as a fraction of \
             the capacity. All figures of {resource} have the same axis; demand beyond it is marked."
        ),
    };
    let y = Axis {
        title: format!("fraction of {resource}"),
        unit: Unit::Percent,
        scale: Scale::linear([top], true, Unit::Percent),
    };
    if record.weeks.len() <= MAX_BAR_WEEKS {
        return BarChart {
            caption,
            groups_title: if record.weeks.iter().any(|w| w.from.is_some()) { "week of".into() } else { String::new() },
            groups: record.weeks.iter().map(|week| week.label.clone()).collect(),
            y,
            series: series
                .into_iter()
                .map(|(label, series, values)| BarSeries { label: label.into(), series, values })
                .collect(),
        }
        .draw();
    }
    let steps: Vec<Vec<(f64, Option<f64>)>> = series.iter().map(|(_, _, values)| levels(record, values)).collect();
    let line = |((label, series, _), points): (&(&str, usize, Vec<Option<f64>>), _)| Line {
        label: (*label).into(),
        series: *series,
        shape: Shape::Points(points),
    };
    let lines = series.iter().zip(steps.iter().map(Vec::as_slice)).map(line).collect();
    LineChart { caption, x: time_axis(record), y, lines }.draw()
}

/// Returns a line with a constant level in each week.
fn levels(record: &EntitlementRecord, values: &[Option<f64>]) -> Vec<(f64, Option<f64>)> {
    let begin = begin(record);
    let of = |(week, value): (&super::WeekRecord, &Option<f64>)| {
        [(week.from_s - begin, *value), (week.until_s - begin, *value)]
    };
    record.weeks.iter().zip(values).flat_map(of).collect()
}

fn begin(record: &EntitlementRecord) -> f64 {
    record.weeks.first().map_or(0.0, |week| week.from_s)
}

fn time_axis(record: &EntitlementRecord) -> Axis {
    let end = record.weeks.last().map_or(1.0, |week| week.until_s);
    let since = record.weeks.first().and_then(|week| unix_seconds(week.from.as_deref()?));
    let unit = since.map_or(Unit::Seconds, Unit::Dates);
    let title = if since.is_some() { "date" } else { "time" };
    Axis { title: title.into(), unit, scale: Scale::fixed(0.0, end - begin(record), unit) }
}

/// Returns the seconds since 1970 of a date and time of day as the record has them.
fn unix_seconds(text: &str) -> Option<u64> {
    let seconds = if text.len() == 16 { ":00" } else { "" };
    let iso = format!("{}{seconds}", text.replace(' ', "T"));
    parse_date_time(iso.as_bytes()).map(|time| time.nanos() / 1_000_000_000)
}

fn capitalized(kind: &str) -> &str {
    if kind == "account" { "Account" } else { "User" }
}

/// Draws the justified complaints of each party over time, the parties with the largest unmet claims first. Also returns
/// the number of parties that are left out; `None` if there are no complaints.
pub(super) fn complaints(
    record: &EntitlementRecord,
    level: &LevelRecord,
    names: &mut FileNames,
) -> Option<(Figure, usize)> {
    let mut unmet = vec![0.0; level.parties.len()];
    for c in &level.complaints {
        unmet[c.party] += c.unmet / record.resources[c.resource].capacity;
    }
    let mut parties: Vec<usize> = (0..unmet.len()).filter(|&p| level.parties[p].complaints > 0).collect();
    parties.sort_by(|&a, &b| unmet[b].total_cmp(&unmet[a]));
    let left_out = parties.len().saturating_sub(MAX_LANES);
    parties.truncate(MAX_LANES);
    let begin = begin(record);
    let strip = |&party: &usize| {
        let own = level.complaints.iter().filter(|c| c.party == party);
        Strip {
            label: level.parties[party].name.clone(),
            marked: own.map(|c| (c.from_s - begin, c.until_s - begin)).collect(),
        }
    };
    let chart = DensityChart {
        caption: Caption {
            name: names.take(&format!("complaints-{}s", level.kind)),
            title: format!("Justified complaints of {}s over time", level.kind),
            description: format!(
                "One strip per {0}. The darker a column, the longer within its time a full resource blocked a task that \
                 would have kept the {0} within its entitlement.",
                level.kind
            ),
        },
        x: time_axis(record),
        strips: parties.iter().map(strip).collect(),
        meaning: "of the time".into(),
    };
    (!parties.is_empty()).then(|| (chart.draw(), left_out))
}
