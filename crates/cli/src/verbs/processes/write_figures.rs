//! Files of `processes --out`: a page about the first run, figures and their data.

use std::path::Path;

use evenhand_documents::{Cell, Csv};
use evenhand_processes::Recording;
use evenhand_report::chart::{Caption, Figure};
use evenhand_report::processes_page::{
    ProcessRun, draw_cumulative_use, draw_gantt, draw_mean_cumulative_use, draw_priorities, mean_use_curves,
    recorded_priorities, render_processes_page,
};

use super::SchedulerRuns;
use crate::failure::Failure;
use crate::output::write_files::{file_name, lock_folder, write_file};

/// Writes the files of one scheduler into the folder; of several schedulers, each has its own folder in it.
pub(crate) fn write(folder: &Path, all: &[SchedulerRuns]) -> Result<(), Failure> {
    for runs in all {
        match all {
            [_] => write_one(folder, runs)?,
            _ => write_one(&folder.join(runs.scheduler.name), runs)?,
        }
    }
    Ok(())
}

/// Writes the files of one scheduler. The page is last: if it exists, the other files are complete.
fn write_one(folder: &Path, runs: &SchedulerRuns) -> Result<(), Failure> {
    let _lock = lock_folder(folder)?;
    let file = |name: String, text: &str| write_file(&folder.join(name), text);
    let run = process_run(runs);
    for (figure, csv) in figures(runs, &run)? {
        file(format!("{}.csv", figure.name()), &csv)?;
        file(format!("{}.svg", figure.name()), &figure.standalone())?;
    }
    file("intervals.csv".into(), &intervals(runs, &runs.recording))?;
    file("index.html".into(), &render_processes_page(&run).map_err(drawing_failure)?)
}

/// Returns the failure of a drawing, which cannot be the input's fault.
fn drawing_failure(error: impl std::fmt::Display) -> Failure {
    Failure::Environment(error.to_string())
}

/// Returns the first run and the details that its page lists.
fn process_run(runs: &SchedulerRuns) -> ProcessRun {
    let parameters = runs.scenario.parameters();
    let count = runs.ensemble.outcomes.len();
    let detail = |what: &str, value: String| (what.to_string(), value);
    let mut details = vec![
        detail("scheduler", format!("{}: {}", runs.scheduler.name, runs.scheduler.about)),
        detail("window T", format!("{} s", parameters.window)),
        detail("bottleneck", format!("busy for more than {} of the window", parameters.threshold)),
        detail("grace", format!("{} s", parameters.grace)),
        detail("priorities recalculated every", format!("{} s", parameters.recalculation())),
        detail("seed", parameters.seed.to_string()),
    ];
    if runs.scheduler.name == "bottleneck" {
        details.push(detail("reading", parameters.reading.name().to_string()));
        details.push(detail("ties", parameters.ties.name().to_string()));
    }
    if count > 1 {
        details.push(detail("runs", format!("{count}, of which this is the first")));
    }
    for client in runs.scenario.clients() {
        let programs: Vec<String> = client.threads.iter().map(|t| t.explain().replace('\n', "; ")).collect();
        details.push((client.name.clone(), programs.join("; beside it ")));
    }
    let title = format!("Processes under {}", runs.scheduler.name);
    ProcessRun { details, ..ProcessRun::from_recording(title, &runs.scenario, &runs.first, &runs.recording) }
}

fn figures(runs: &SchedulerRuns, run: &ProcessRun) -> Result<Vec<(Figure, String)>, Failure> {
    let scheduler = runs.scheduler.name;
    let caption = |name: &str, title: String, description: &str| Caption {
        name: name.into(),
        title: format!("{title}, {scheduler}"),
        description: description.into(),
    };
    let a_line = "A line for each process; the steeper, the faster its progress; horizontal while it waits.";
    let mut figures = vec![
        draw_gantt(
            run,
            caption(
                "gantt",
                "Processes served".into(),
                "A lane for each resource, coloured by the process served; lines mark bottlenecks.",
            ),
        )
        .map_err(drawing_failure)?,
        draw_cumulative_use(run, None, caption("use", "Cumulative use of all resources".into(), a_line))
            .map_err(drawing_failure)?,
    ];
    for (number, name) in run.resources.iter().enumerate() {
        let file = format!("use-{}-{}", number + 1, file_name(name));
        figures.push(
            draw_cumulative_use(run, Some(number), caption(&file, format!("Cumulative use of {name}"), a_line))
                .map_err(drawing_failure)?,
        );
    }
    if !runs.recording.priorities.is_empty() {
        let text = "Entitlement minus consumption of each process, on the bottleneck where that is minimal; interrupted where \
                    it uses none.";
        let known = recorded_priorities(&runs.recording);
        figures.push(draw_priorities(
            &run.clients,
            &known,
            run.horizon_ns,
            caption("priorities", "Priority over time".into(), text),
        ));
    }
    if let Some(curves) = &runs.ensemble.curves {
        let count = runs.ensemble.outcomes.len();
        let bars = "Mean cumulative use of each process; error bars are a standard deviation to each side.";
        let title = |of: &str| format!("Mean use of {of} over {count} runs");
        let mut mean = |file: &str, of: &str, resource| {
            let means = mean_use_curves(curves, resource);
            let caption = caption(file, title(of), bars);
            figures.push(draw_mean_cumulative_use(&run.clients, &means, &format!("use of {of}"), caption));
        };
        mean("mean", "all resources", None);
        for (number, name) in run.resources.iter().enumerate() {
            mean(&format!("mean-{}-{}", number + 1, file_name(name)), name, Some(number));
        }
    }
    Ok(figures)
}

/// Lists each service, and each time in which a resource was a bottleneck, as exact CSV.
fn intervals(runs: &SchedulerRuns, recording: &Recording) -> String {
    let mut csv = Csv::new(&["what", "resource", "server", "process", "thread", "from_s", "until_s"]);
    let name = |resource: u32| Cell::Text(&runs.scenario.resources()[resource as usize].name);
    for s in &recording.services {
        csv.row(&[
            Cell::Text("service"),
            name(s.resource),
            Cell::Count(u64::from(s.server)),
            Cell::Text(&runs.scenario.clients()[s.client as usize].name),
            Cell::Count(u64::from(s.thread)),
            Cell::Text(&s.from.to_string()),
            Cell::Text(&s.to.to_string()),
        ]);
    }
    for b in &recording.bottlenecks {
        let times = [b.from.to_string(), b.to.to_string()];
        let none = || Cell::Text("");
        csv.row(&[
            Cell::Text("bottleneck"),
            name(b.resource),
            none(),
            none(),
            none(),
            Cell::Text(&times[0]),
            Cell::Text(&times[1]),
        ]);
    }
    csv.finish()
}
