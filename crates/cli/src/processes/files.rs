//! The folder that `evenhand processes --out` leaves: a page for one run, figures and their data.

use std::path::Path;

use evenhand_documents::{Cell, Csv};
use evenhand_processes::Recording;
use evenhand_report::chart::{Caption, Figure};
use evenhand_report::processes_page::{
    ProcessRun, draw_cumulative_use, draw_gantt, draw_mean_cumulative_use, draw_priorities, mean_use_curves,
    recorded_priorities, render_processes_page,
};

use super::Ran;
use crate::failure::Failure;
use crate::outputs::{file_name, make_folder, write_file};

/// One scheduler's files into the folder; of several, each into a folder of its own.
pub(crate) fn write(folder: &Path, all: &[Ran]) -> Result<(), Failure> {
    for ran in all {
        match all {
            [_] => write_one(folder, ran)?,
            _ => write_one(&folder.join(ran.scheduler.name), ran)?,
        }
    }
    Ok(())
}

/// The page last: if it is there, so is all else.
fn write_one(folder: &Path, ran: &Ran) -> Result<(), Failure> {
    make_folder(folder)?;
    let file = |name: String, text: &str| write_file(&folder.join(name), text);
    let run = shown(ran);
    for (figure, csv) in figures(ran, &run)? {
        file(format!("{}.csv", figure.name()), &csv)?;
        file(format!("{}.svg", figure.name()), &figure.standalone())?;
    }
    file("intervals.csv".into(), &intervals(ran, &ran.recording))?;
    file("index.html".into(), &render_processes_page(&run).map_err(mistake)?)
}

/// What is drawn comes from here, so that it fits.
fn mistake(error: impl std::fmt::Display) -> Failure {
    Failure::Environment(error.to_string())
}

/// The first run, with what is to be known of it.
fn shown(ran: &Ran) -> ProcessRun {
    let parameters = ran.scenario.parameters();
    let runs = ran.ensemble.outcomes.len();
    let fact = |what: &str, value: String| (what.to_string(), value);
    let mut facts = vec![
        fact("scheduler", format!("{}: {}", ran.scheduler.name, ran.scheduler.about)),
        fact("window T", format!("{} s", parameters.window)),
        fact("bottleneck", format!("busy for more than {} of the window", parameters.threshold)),
        fact("grace", format!("{} s", parameters.grace)),
        fact("priorities recalculated every", format!("{} s", parameters.recalculation())),
        fact("seed", parameters.seed.to_string()),
    ];
    if ran.scheduler.name == "bottleneck" {
        facts.push(fact("reading", parameters.reading.name().to_string()));
        facts.push(fact("ties", parameters.ties.name().to_string()));
    }
    if runs > 1 {
        facts.push(fact("runs", format!("{runs}, of which this is the first")));
    }
    for client in ran.scenario.clients() {
        let programs: Vec<String> = client.threads.iter().map(|t| t.explain().replace('\n', "; ")).collect();
        facts.push((client.name.clone(), programs.join("; beside it ")));
    }
    let title = format!("Processes under {}", ran.scheduler.name);
    ProcessRun { details: facts, ..ProcessRun::from_recording(title, &ran.scenario, &ran.first, &ran.recording) }
}

fn figures(ran: &Ran, run: &ProcessRun) -> Result<Vec<(Figure, String)>, Failure> {
    let under = ran.scheduler.name;
    let caption = |name: &str, title: String, description: &str| Caption {
        name: name.into(),
        title: format!("{title}, {under}"),
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
        .map_err(mistake)?,
        draw_cumulative_use(run, None, caption("use", "Cumulative use of all resources".into(), a_line))
            .map_err(mistake)?,
    ];
    for (number, name) in run.resources.iter().enumerate() {
        let file = format!("use-{}-{}", number + 1, file_name(name));
        figures.push(
            draw_cumulative_use(run, Some(number), caption(&file, format!("Cumulative use of {name}"), a_line))
                .map_err(mistake)?,
        );
    }
    if !ran.recording.priorities.is_empty() {
        let text = "Entitlement minus consumption of each process, on the bottleneck where that is minimal; interrupted where \
                    it uses none.";
        let known = recorded_priorities(&ran.recording);
        figures.push(draw_priorities(
            &run.clients,
            &known,
            run.horizon_ns,
            caption("priorities", "Priority over time".into(), text),
        ));
    }
    if let Some(curves) = &ran.ensemble.curves {
        let runs = ran.ensemble.outcomes.len();
        let bars = "Mean cumulative use of each process; error bars are a standard deviation to each side.";
        let title = |of: &str| format!("Mean use of {of} over {runs} runs");
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

/// Every service and every time in which a resource counted as a bottleneck, exactly.
fn intervals(ran: &Ran, recording: &Recording) -> String {
    let mut csv = Csv::new(&["what", "resource", "server", "process", "thread", "from_s", "until_s"]);
    let name = |resource: u32| Cell::Text(&ran.scenario.resources()[resource as usize].name);
    for s in &recording.services {
        csv.row(&[
            Cell::Text("service"),
            name(s.resource),
            Cell::Count(u64::from(s.server)),
            Cell::Text(&ran.scenario.clients()[s.client as usize].name),
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
