//! The figures of a past: each party's weeks, and its complaints over time.

use super::{LevelRecord, EntitlementRecord};
use crate::chart::{
    Axis, BarChart, BarSeries, Caption, Figure, GanttChart, GanttClient, Interval, Lane, Line, LineChart, Scale, Shape,
    Unit,
};
use crate::file_names::FileNames;

/// How many parties have figures, for each resource.
const DRAWN: usize = 12;
/// How many weeks are drawn as bars; more are lines.
const BARS: usize = 8;
/// How many parties have a lane.
const LANES: usize = 16;

/// Entitled, wanted, got.
type Drawing<'a> = [(&'a str, usize, Vec<Option<f64>>); 3];

/// The figures of one resource, those of the parties with most unmet or got first.
pub(super) struct OfResource {
    pub(super) resource: usize,
    pub(super) figures: Vec<Figure>,
    /// How many parties that wanted any are left out.
    pub(super) left_out: usize,
}

/// Draws each party's weeks on each resource.
pub(super) fn weeks(record: &EntitlementRecord, level: &LevelRecord, names: &mut FileNames) -> Vec<OfResource> {
    let of_resource = |r: usize| {
        let mut parties: Vec<usize> =
            (0..level.parties.len()).filter(|&p| level.parties[p].uses[r].wanted > 0.0).collect();
        parties.sort_by(|&a, &b| {
            let of = |p: usize| &level.parties[p].uses[r];
            of(b).unmet.total_cmp(&of(a).unmet).then(of(b).got.total_cmp(&of(a).got))
        });
        let left_out = parties.len().saturating_sub(DRAWN);
        parties.truncate(DRAWN);
        (r, parties, left_out)
    };
    let drawn = (0..record.resources.len()).map(of_resource).filter(|(_, parties, _)| !parties.is_empty());
    let mut resources = Vec::new();
    for (resource, parties, left_out) in drawn {
        let figures = parties.iter().map(|&party| party_weeks(record, level, resource, party, names)).collect();
        resources.push(OfResource { resource, figures, left_out });
    }
    resources
}

fn party_weeks(record: &EntitlementRecord, level: &LevelRecord, r: usize, party: usize, names: &mut FileNames) -> Figure {
    let mut drawing: Drawing<'_> = [("entitled", 0), ("wanted", 5), ("got", 1)]
        .map(|(label, series)| (label, series, vec![None; record.weeks.len()]));
    for week in level.weeks.iter().filter(|week| week.party == party) {
        let (u, hours) = (&week.uses[r], record.weeks[week.week].hours());
        for ((_, _, values), amount) in drawing.iter_mut().zip([u.entitled_among_active, u.wanted, u.got]) {
            values[week.week] = Some(record.capacity_share(r, amount, hours));
        }
    }
    let (name, resource) = (&level.parties[party].name, &record.resources[r].name);
    let caption = Caption {
        name: names.take(&format!("weeks-{resource}-{name}")),
        title: format!("{name}: {resource}"),
        description: format!(
            "What {name} was entitled to of {resource} among those who wanted any, what it wanted and what it got, each \
             week, as a part of the capacity. Wanted beyond twice the others is cut off."
        ),
    };
    // Who queues a year's work wants a hundred machines; what it was entitled to and got would not be seen.
    let most = [0, 2].iter().flat_map(|&at| drawing[at].2.iter().flatten()).fold(0.0f64, |most, v| most.max(*v));
    let values = || drawing.iter().flat_map(|(_, _, values)| values.iter().flatten().map(|v| v.min(2.0 * most)));
    // Room for the labels of the highest bars.
    let room = values().fold(0.0, f64::max) * 1.08;
    let y = Axis {
        title: format!("part of {resource}"),
        unit: Unit::Percent,
        scale: Scale::linear([room], true, Unit::Percent),
    };
    if record.weeks.len() <= BARS {
        return BarChart {
            caption,
            groups_title: if record.weeks.iter().any(|w| w.from.is_some()) { "week of".into() } else { String::new() },
            groups: record.weeks.iter().map(|week| week.label.clone()).collect(),
            y,
            series: drawing
                .into_iter()
                .map(|(label, series, values)| BarSeries { label: label.into(), series, values })
                .collect(),
        }
        .draw();
    }
    let steps: Vec<Vec<(f64, Option<f64>)>> = drawing.iter().map(|(_, _, values)| levels(record, values)).collect();
    let line = |((label, series, _), points): (&(&str, usize, Vec<Option<f64>>), _)| Line {
        label: (*label).into(),
        series: *series,
        shape: Shape::Points(points),
    };
    let lines = drawing.iter().zip(steps.iter().map(Vec::as_slice)).map(line).collect();
    LineChart { caption, x: time(record), y, lines }.draw()
}

/// A level for each week, on the axis of time.
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

fn time(record: &EntitlementRecord) -> Axis {
    let end = record.weeks.last().map_or(1.0, |week| week.until_s);
    let since = record.weeks.first().and_then(|week| week.from.clone());
    Axis {
        title: since.map_or("time".into(), |since| format!("since {since}")),
        unit: Unit::Seconds,
        scale: Scale::fixed(0.0, end - begin(record), Unit::Seconds),
    }
}

/// Draws when each party had a justified complaint, those first of which most was unmet; and says how many parties
/// are left out.
pub(super) fn complaints(record: &EntitlementRecord, level: &LevelRecord, names: &mut FileNames) -> Option<(Figure, usize)> {
    let mut unmet = vec![0.0; level.parties.len()];
    for c in &level.complaints {
        unmet[c.party] += c.unmet / record.resources[c.resource].capacity;
    }
    let mut parties: Vec<usize> = (0..unmet.len()).filter(|&p| level.parties[p].complaints > 0).collect();
    parties.sort_by(|&a, &b| unmet[b].total_cmp(&unmet[a]));
    let left_out = parties.len().saturating_sub(LANES);
    parties.truncate(LANES);
    let begin = begin(record);
    let lane = |&party: &usize| {
        let own = level.complaints.iter().filter(|c| c.party == party);
        let interval =
            |c: &super::ComplaintRecord| Interval { client: c.resource, from: c.from_s - begin, until: c.until_s - begin };
        Lane { label: level.parties[party].name.clone(), intervals: own.map(interval).collect(), lines: Vec::new() }
    };
    let clients = record.resources.iter().enumerate();
    let chart = GanttChart {
        caption: Caption {
            name: names.take(&format!("complaints-{}s", level.kind)),
            title: format!("When {}s could rightly complain", level.kind),
            description: "A lane for each, in it the resources that stood in its way while it asked for no more than \
                          its own. The table has the longest."
                .into(),
        },
        x: time(record),
        clients: clients.map(|(r, resource)| GanttClient { label: resource.name.clone(), series: r + 1 }).collect(),
        lanes: parties.iter().map(lane).collect(),
        line_label: String::new(),
    };
    (!parties.is_empty()).then(|| (chart.draw(), left_out))
}
