//! The figures of a described workload: tasks by user, run times, and use over time.

use std::path::{Path, PathBuf};

use evenhand_workload::describe::{Description, DescriptionPlots};

use evenhand_documents::{Cell, Csv};

use crate::ReportError;
use crate::chart::{Axis, Caption, Figure, Line, LineChart, Scale, Shape, Unit};
use crate::write_file::{create_folder, write_file};

/// Draws a described workload into `folder`: tasks of users by rank, run times, and the use of each resource over
/// time, each as `NAME.svg` with its data as `NAME.csv`. Returns the paths of the drawings.
///
/// # Errors
/// Returns an error if the folder or a file cannot be written.
pub fn write_description_figures(
    folder: &Path,
    description: &Description,
    plots: &DescriptionPlots,
) -> Result<Vec<PathBuf>, ReportError> {
    create_folder(folder)?;
    let mut drawn = vec![tasks_by_rank(plots), durations(plots)];
    for (r, resource) in description.resources.iter().enumerate() {
        drawn.push(use_over_time(r, &resource.name, &resource.unit, plots));
    }
    drawn
        .into_iter()
        .map(|(figure, csv)| {
            let path = folder.join(format!("{}.svg", figure.name()));
            write_file(&path.with_extension("csv"), &csv)?;
            write_file(&path, &figure.standalone())?;
            Ok(path)
        })
        .collect()
}

fn tasks_by_rank(plots: &DescriptionPlots) -> (Figure, String) {
    let mut csv = Csv::new(&["rank", "tasks"]);
    plots.tasks_by_rank.iter().for_each(|&(rank, tasks)| csv.row(&[Cell::Count(rank), Cell::Count(tasks)]));
    let points: Vec<_> = plots.tasks_by_rank.iter().map(|&(rank, tasks)| (rank as f64, Some(tasks as f64))).collect();
    let scale = |values: &mut dyn Iterator<Item = f64>| Scale::log_with_zero(values, Unit::Number);
    let chart = LineChart {
        caption: Caption {
            name: "tasks-by-rank".into(),
            title: "Tasks of each user, by rank".into(),
            description: "A straight line that falls on logarithmic axes is a heavy tail: few users submit most tasks."
                .into(),
        },
        x: Axis { title: "rank of the user".into(), unit: Unit::Number, scale: scale(&mut points.iter().map(|p| p.0)) },
        y: Axis { title: "tasks".into(), unit: Unit::Number, scale: scale(&mut points.iter().filter_map(|p| p.1)) },
        lines: vec![Line { label: "users".into(), series: 0, shape: Shape::Points(&points) }],
    };
    (chart.draw(), csv.finish())
}

fn durations(plots: &DescriptionPlots) -> (Figure, String) {
    let mut csv = Csv::new(&["duration_s", "share_of_tasks"]);
    let cdf = &plots.duration_cdf;
    cdf.iter().for_each(|&(s, share)| csv.row(&[Cell::Number(Some(s)), Cell::Number(Some(share))]));
    let points: Vec<_> = cdf.iter().map(|&(s, share)| (s, Some(share))).collect();
    let chart = LineChart {
        caption: Caption {
            name: "durations".into(),
            title: "Run times".into(),
            description: "The share of tasks whose run time is at most the value on the horizontal axis.".into(),
        },
        x: Axis {
            title: "run time".into(),
            unit: Unit::Seconds,
            scale: Scale::log_with_zero(points.iter().map(|p| p.0), Unit::Seconds),
        },
        y: Axis { title: "share of tasks".into(), unit: Unit::Percent, scale: Scale::fixed(0.0, 1.0, Unit::Percent) },
        lines: vec![Line { label: "tasks".into(), series: 0, shape: Shape::Points(&points) }],
    };
    (chart.draw(), csv.finish())
}

fn use_over_time(r: usize, name: &str, unit: &str, plots: &DescriptionPlots) -> (Figure, String) {
    let levels: Vec<Option<f64>> = plots.use_over_time[r].iter().copied().map(Some).collect();
    let mut csv = Csv::new(&["time_s", "held"]);
    for (bin, level) in levels.iter().enumerate() {
        csv.row(&[Cell::Number(Some(plots.use_start_s + bin as f64 * plots.use_bin_s)), Cell::Number(*level)]);
    }
    let end = plots.use_bin_s * levels.len() as f64;
    // Resource names are untrusted input; file names take only letters, digits and `_`.
    let file: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let title = if unit.is_empty() { format!("{name} held") } else { format!("{name} held ({unit})") };
    let chart = LineChart {
        caption: Caption {
            name: format!("use-over-time-{file}"),
            title: format!("Use of {name} over time"),
            description: "The amount that running tasks hold, by their original start and finish times; its mean over \
                          time is R."
                .into(),
        },
        x: Axis {
            title: "time since the first start".into(),
            unit: Unit::Seconds,
            scale: Scale::fixed(0.0, end, Unit::Seconds),
        },
        y: Axis {
            title,
            unit: Unit::Number,
            scale: Scale::linear(levels.iter().copied().flatten(), true, Unit::Number),
        },
        lines: vec![Line {
            label: name.to_string(),
            series: 0,
            shape: Shape::Steps { start: 0.0, width: plots.use_bin_s, levels: &levels },
        }],
    };
    (chart.draw(), csv.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_workload::describe::{describe, describe_plots};
    use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};

    #[test]
    fn every_figure_has_a_data_file_of_the_same_name() {
        let options = GenerateOptions { model: TraceModel::MetaCentrum, tasks: 500, users: 9, days: 3.0, seed: 1 };
        let w = generate(&options).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let written = write_description_figures(folder.path(), &describe(&w), &describe_plots(&w)).unwrap();
        let names: Vec<_> = written.iter().map(|p| p.file_stem().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["tasks-by-rank", "durations", "use-over-time-cpu", "use-over-time-mem"]);
        for path in written {
            let svg = std::fs::read_to_string(&path).unwrap();
            assert!(svg.contains("<path class=\"line") && !svg.contains("NaN"), "{}", path.display());
            assert!(std::fs::read_to_string(path.with_extension("csv")).unwrap().lines().count() > 2);
        }
    }
}
