//! Draws the figures of runs: Gantt chart, cumulative use, mean cumulative use, priorities.

use evenhand_documents::{Cell, Csv};

use super::client_colours::series;
use super::{ProcessRun, ProcessRunError, seconds};
use crate::chart::{
    Axis, Caption, Figure, GanttChart, GanttClient, Interval, Lane, Line, LineChart, Mean, Scale, Shape, Unit,
    downsample_line,
};

/// Number of clients with a colour each in a Gantt chart, if not all fit; the others share one colour.
const MAX_SINGLE_COLOURS: usize = 7;
/// Number of columns to which long lines are downsampled: at least the pixels of a plot.
const COLUMNS: usize = 560;

/// Draws a Gantt chart of the resources, with a line under a resource while it is a bottleneck (Figures 2 to 14 of
/// Zeldes & Feitelson 2013), and returns the uses as CSV. Of more than eight clients, the seven with the largest use
/// have a colour each.
///
/// # Errors
/// Returns an error if an index or a time of the run is invalid.
pub fn draw_gantt(run: &ProcessRun, caption: Caption) -> Result<(Figure, String), ProcessRunError> {
    run.validate()?;
    let (clients, drawn_as) = gantt_clients(run);
    let mut csv = Csv::new(&["resource", "row", "client", "from_s", "until_s"]);
    let mut lanes = Vec::new();
    for (resource, name) in run.resources.iter().enumerate() {
        let mut intervals = Vec::new();
        for (row, uses) in run.rows(resource).iter().enumerate() {
            for u in uses {
                let (from, until) = (seconds(u.from), seconds(u.until));
                let client = Cell::Text(&run.clients[u.client]);
                let times = [from, until].map(|time| Cell::Number(Some(time)));
                let [from_cell, until_cell] = times;
                csv.row(&[Cell::Text(name), Cell::Count(row as u64), client, from_cell, until_cell]);
                intervals.push(Interval { client: drawn_as[u.client], from, until });
            }
        }
        let own = run.bottlenecks.iter().filter(|b| b.resource == resource);
        let lines = own.map(|b| (seconds(b.from_ns), seconds(b.until_ns))).collect();
        lanes.push(Lane { label: name.clone(), intervals, lines });
    }
    let chart = GanttChart { caption, x: time_axis(run.horizon_ns), clients, lanes, line_label: "bottleneck".into() };
    Ok((chart.draw(), csv.finish()))
}

/// Returns the clients of the chart, and for each client of the run its index among them.
fn gantt_clients(run: &ProcessRun) -> (Vec<GanttClient>, Vec<usize>) {
    let coloured = |labels: Vec<String>| -> Vec<GanttClient> {
        let series = series(&labels);
        labels.into_iter().zip(series).map(|(label, series)| GanttClient { label, series }).collect()
    };
    let count = run.clients.len();
    if count <= MAX_SINGLE_COLOURS + 1 {
        return (coloured(run.clients.clone()), (0..count).collect());
    }
    // Ties go to the lower index.
    let totals = run.totals();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&c| std::cmp::Reverse(totals[c].iter().map(|&ns| u128::from(ns)).sum::<u128>()));
    let mut own = order[..MAX_SINGLE_COLOURS].to_vec();
    own.sort_unstable();
    let mut labels: Vec<String> = own.iter().map(|&c| run.clients[c].clone()).collect();
    labels.push(format!("{} others", count - MAX_SINGLE_COLOURS));
    let drawn_as = (0..count).map(|c| own.iter().position(|&o| o == c).unwrap_or(MAX_SINGLE_COLOURS)).collect();
    (coloured(labels), drawn_as)
}

/// Draws the cumulative use of each client over time, of all resources together or of the one with the given index,
/// and returns the vertices of the lines as CSV.
///
/// # Errors
/// Returns an error if an index or a time of the run is invalid, or if there is no such resource.
pub fn draw_cumulative_use(
    run: &ProcessRun,
    resource: Option<usize>,
    caption: Caption,
) -> Result<(Figure, String), ProcessRunError> {
    run.validate()?;
    if let Some(resource) = resource.filter(|&r| r >= run.resources.len()) {
        let count = run.resources.len();
        return Err(ProcessRunError::Resource { what: "figure", position: 0, resource, count });
    }
    let mut csv = Csv::new(&["client", "time_s", "use_s"]);
    let mut lines = Vec::new();
    for (client, name) in run.clients.iter().enumerate() {
        let points = cumulative(run, client, resource);
        for (time, value) in &points {
            csv.row(&[Cell::Text(name), Cell::Number(Some(*time)), Cell::Number(*value)]);
        }
        lines.push(downsample_line(&points, COLUMNS));
    }
    let title = resource.map_or("use of all resources".into(), |r| format!("use of {}", run.resources[r]));
    Ok((draw_lines(caption, &run.clients, &lines, run.horizon_ns, title), csv.finish()))
}

/// Returns the vertices of a client's cumulative use, in seconds, from 0 to the horizon. Overlapping uses each count:
/// the slope of the line is their number.
fn cumulative(run: &ProcessRun, client: usize, resource: Option<usize>) -> Vec<(f64, Option<f64>)> {
    let own = run.uses.iter().filter(|u| u.client == client && resource.is_none_or(|r| r == u.resource));
    // At one instant, beginnings come before ends, so that adjacent uses keep one slope.
    let mut changes: Vec<(u64, bool)> = own.flat_map(|u| [(u.from_ns, false), (u.until_ns, true)]).collect();
    changes.sort_unstable();
    let mut points = vec![(0.0, Some(0.0))];
    let (mut running, mut sum, mut at) = (0u64, 0u128, 0u64);
    for instant in changes.chunk_by(|a, b| a.0 == b.0) {
        let time = instant[0].0;
        sum += u128::from(running) * u128::from(time - at);
        at = time;
        let before = running;
        for (_, is_end) in instant {
            running = if *is_end { running - 1 } else { running + 1 };
        }
        if running != before && time > 0 {
            points.push((seconds(time), Some(sum as f64 / 1e9)));
        }
    }
    if at < run.horizon_ns || points.len() == 1 {
        points.push((seconds(run.horizon_ns), Some(sum as f64 / 1e9)));
    }
    points
}

/// Draws each client's mean cumulative use over several runs, with error bars of one standard deviation, and returns
/// the same numbers as CSV. `means` holds one curve per client, all in seconds
/// ([`mean_use_curves`](super::mean_use_curves)); `use_of` is the title of the vertical axis. Clients without means
/// are omitted. Error bars end at 0.
pub fn draw_mean_cumulative_use(
    clients: &[String],
    means: &[Vec<Mean>],
    use_of: &str,
    caption: Caption,
) -> (Figure, String) {
    let mut csv = Csv::new(&["client", "time_s", "mean_use_s", "standard_deviation_s"]);
    for (name, means) in clients.iter().zip(means) {
        for Mean { at, mean, deviation } in means {
            let numbers = [Some(*at), *mean, Some(*deviation)].map(Cell::Number);
            let [at, mean, deviation] = numbers;
            csv.row(&[Cell::Text(name), at, mean, deviation]);
        }
    }
    let all = || means.iter().flatten();
    // Use is never negative, even if the deviation exceeds the mean.
    let ends = all().filter_map(|m| m.mean.map(|mean| mean + m.deviation.max(0.0)));
    let last = all().map(|m| m.at).filter(|at| at.is_finite()).fold(0.0, f64::max);
    let named = clients.iter().zip(means).zip(series(clients));
    let chart = LineChart {
        caption,
        x: Axis { title: "time".into(), unit: Unit::Seconds, scale: Scale::fixed(0.0, last, Unit::Seconds) },
        y: Axis { title: use_of.into(), unit: Unit::Seconds, scale: Scale::linear(ends, true, Unit::Seconds) },
        lines: named
            .filter(|((_, means), _)| !means.is_empty())
            .map(|((name, means), series)| Line { label: name.clone(), series, shape: Shape::Means(means) })
            .collect(),
    };
    (chart.draw(), csv.finish())
}

/// Draws the clients' priorities over time and returns them as CSV. `priorities` holds, for each recalculation, its
/// time and the priority of each client until the next one, all in nanoseconds. `None` is an infinite priority (the
/// client uses no bottleneck): the line is broken there.
pub fn draw_priorities(
    clients: &[String],
    priorities: &[(u64, Vec<Option<i64>>)],
    horizon_ns: u64,
    caption: Caption,
) -> (Figure, String) {
    let mut csv = Csv::new(&["client", "time_s", "priority_s"]);
    let mut lines = Vec::new();
    for (client, name) in clients.iter().enumerate() {
        let mut steps: Vec<(f64, Option<f64>)> = Vec::new();
        for (k, (at, all)) in priorities.iter().enumerate().filter(|(_, (at, _))| *at <= horizon_ns) {
            let value = all.get(client).copied().flatten().map(|ns| ns as f64 / 1e9);
            let next = priorities.get(k + 1).map_or(horizon_ns, |(next, _)| *next).min(horizon_ns);
            csv.row(&[Cell::Text(name), Cell::Number(Some(seconds(*at))), Cell::Number(value)]);
            steps.extend([(seconds(*at), value), (seconds(next), value)]);
        }
        lines.push(downsample_line(&steps, COLUMNS));
    }
    (draw_lines(caption, clients, &lines, horizon_ns, "priority".into()), csv.finish())
}

fn draw_lines(
    caption: Caption,
    clients: &[String],
    lines: &[Vec<(f64, Option<f64>)>],
    horizon_ns: u64,
    title: String,
) -> Figure {
    let values = lines.iter().flatten().filter_map(|point| point.1);
    let y = Axis { title, unit: Unit::Seconds, scale: Scale::linear(values, true, Unit::Seconds) };
    let named = clients.iter().zip(lines).zip(series(clients));
    let line = named.map(|((name, points), series)| Line { label: name.clone(), series, shape: Shape::Points(points) });
    let chart = LineChart { caption, x: time_axis(horizon_ns), y, lines: line.collect() };
    chart.draw()
}

fn time_axis(horizon_ns: u64) -> Axis {
    Axis { title: "time".into(), unit: Unit::Seconds, scale: Scale::fixed(0.0, seconds(horizon_ns), Unit::Seconds) }
}

#[cfg(test)]
mod tests {
    use super::super::ResourceUse;
    use super::super::tests::small_run;
    use super::*;

    #[test]
    fn the_csv_of_a_gantt_chart_holds_merged_uses() {
        let (figure, csv) = draw_gantt(&small_run(), Caption::default()).unwrap();
        let expected = "resource,row,client,from_s,until_s\nCPU_CS,0,</script><b>red,0,0.5\nCPU_CS,0,blue,0.5,0.6\n\
                        CPU_CS,0,</script><b>red,0.6,1\nDISK_CS,0,blue,0.6,2\n";
        assert_eq!(csv, expected);
        let svg = figure.standalone();
        assert!(svg.contains("&lt;/script&gt;&lt;b&gt;red") && !svg.contains("<b>"));
        assert!(svg.contains("class=\"bottleneck\"") && svg.contains(">DISK_CS</text>"));
        assert_eq!(draw_gantt(&small_run(), Caption::default()).unwrap(), (figure, csv), "the same bytes");
    }

    #[test]
    fn clients_with_the_largest_use_have_a_colour_each() {
        let mut run = ProcessRun { horizon_ns: 100, resources: vec!["r".into()], ..ProcessRun::default() };
        run.clients = (0..10).map(|c| format!("c{c}")).collect();
        run.uses = (0..10u64)
            .map(|c| ResourceUse { client: c as usize, resource: 0, from_ns: 10 * c, until_ns: 10 * c + (c * 7) % 10 })
            .collect();
        let (clients, drawn_as) = gantt_clients(&run);
        let labels: Vec<&str> = clients.iter().map(|c| c.label.as_str()).collect();
        assert_eq!(labels, ["c1", "c2", "c4", "c5", "c7", "c8", "c9", "3 others"]);
        assert_eq!(drawn_as, [7, 0, 1, 7, 2, 3, 7, 4, 5, 6]);
    }

    #[test]
    fn cumulative_use_has_vertices_where_uses_begin_and_end() {
        let run = small_run();
        let at = |t: f64, v: f64| (t, Some(v));
        assert_eq!(cumulative(&run, 0, None), [at(0.0, 0.0), at(0.5, 0.5), at(0.6, 0.5), at(1.0, 0.9), at(2.0, 0.9)]);
        assert_eq!(cumulative(&run, 1, Some(1)), [at(0.0, 0.0), at(0.6, 0.0), at(2.0, 1.4)]);
        // From one resource to the other without a pause is one slope.
        assert_eq!(cumulative(&run, 1, None), [at(0.0, 0.0), at(0.5, 0.0), at(2.0, 1.5)]);
        let mut both = run.clone();
        both.uses.push(ResourceUse { client: 1, resource: 1, from_ns: 1_000_000_000, until_ns: 1_500_000_000 });
        let line = cumulative(&both, 1, Some(1));
        assert_eq!(line[1..], [at(0.6, 0.0), at(1.0, 0.4), at(1.5, 1.4), at(2.0, 1.9)]);
        let (figure, csv) = draw_cumulative_use(&run, Some(0), Caption::default()).unwrap();
        assert!(figure.inline().contains("use of CPU_CS (s)") && csv.contains("\nblue,0.6,0.1\n"), "{csv}");
        assert!(draw_cumulative_use(&run, Some(2), Caption::default()).is_err());
    }

    #[test]
    fn priorities_last_until_the_next_recalculation_and_infinite_ones_break_the_line() {
        let priorities = [(0, vec![Some(0)]), (100, vec![Some(-50)]), (200, vec![None]), (300, vec![Some(50)])];
        let (figure, csv) = draw_priorities(&["a".into()], &priorities, 400, Caption::default());
        assert_eq!(
            csv,
            "client,time_s,priority_s\na,0,0\na,0.0000001,-0.00000005\na,0.0000002,\na,0.0000003,0.00000005\n"
        );
        let svg = figure.inline();
        let path = svg.lines().find(|line| line.contains("<path class=\"line s1\"")).unwrap();
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 4), "{path}");
    }

    #[test]
    fn the_csv_holds_means_with_their_deviations() {
        let means = vec![vec![Mean { at: 1.0, mean: Some(0.5), deviation: 0.25 }], Vec::new()];
        let (figure, csv) =
            draw_mean_cumulative_use(&["a".into(), "b".into()], &means, "use of CPU", Caption::default());
        assert_eq!(csv, "client,time_s,mean_use_s,standard_deviation_s\na,1,0.5,0.25\n");
        let svg = figure.inline();
        assert!(svg.contains("whisker s1") && !svg.contains(">b</text>"));
    }
}
