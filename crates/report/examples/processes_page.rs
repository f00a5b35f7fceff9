//! Writes the page of a generated run of processes, and its figures if a folder is given.
//!
//! `cargo run -p evenhand-report --example processes_page -- OUT.html [USES [CLIENTS [RESOURCES [FOLDER]]]]`

use std::path::Path;
use std::time::Instant;

use evenhand_report::chart::{Caption, Mean};
use evenhand_report::processes_page::{
    draw_cumulative_use, draw_gantt, draw_mean_cumulative_use, draw_priorities, render_processes_page,
};

#[path = "../tests/generated/process_run.rs"]
mod process_run;

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let out = arguments.first().ok_or("expected a file as the first argument")?;
    let number = |place: usize, otherwise: usize| arguments.get(place).map_or(Ok(otherwise), |text| text.parse());
    let run = process_run::generate(number(1, 100_000)?, number(2, 8)?, number(3, 4)?);
    let start = Instant::now();
    let page = render_processes_page(&run)?;
    println!("{} uses, {} bytes, {:?}", run.uses.len(), page.len(), start.elapsed());
    std::fs::write(out, page)?;
    let Some(folder) = arguments.get(4).map(Path::new) else { return Ok(()) };
    std::fs::create_dir_all(folder)?;
    let caption = |name: &str, title: &str| Caption { name: name.into(), title: title.into(), ..Caption::default() };
    let horizon = run.horizon_ns as f64 / 1e9;
    let means = |client: usize| -> Vec<Mean> {
        let mean = |k: u32| {
            let at = horizon * f64::from(k) / 100.0;
            Mean { at, mean: Some(at * (1.0 + client as f64) / 9.0), deviation: at.sqrt() / 3.0 }
        };
        (0..=100).map(mean).collect()
    };
    let all_means: Vec<Vec<Mean>> = (0..run.clients.len()).map(means).collect();
    let step = (run.horizon_ns / 1000).max(1);
    let priority = |k: u64, client: u64| {
        let turn = (k * (client + 3)) % 97;
        (turn > 10 || client > 0).then_some(turn as i64 * 20_000_000 - client as i64 * 100_000_000)
    };
    let all = |k: u64| (k * step, (0..run.clients.len() as u64).map(|client| priority(k, client)).collect());
    let priorities: Vec<(u64, Vec<Option<i64>>)> = (0..1000).map(all).collect();
    let figures = [
        draw_gantt(&run, caption("gantt", "Use of each resource over time"))?,
        draw_cumulative_use(&run, None, caption("use", "Cumulative use of all resources"))?,
        draw_cumulative_use(&run, Some(0), caption("use-of-one", "Cumulative use of one resource"))?,
        draw_mean_cumulative_use(
            &run.clients,
            &all_means,
            "use of CPU",
            caption("means", "Mean cumulative use over runs"),
        ),
        draw_priorities(&run.clients, &priorities, run.horizon_ns, caption("priorities", "Priorities over time")),
    ];
    for (figure, csv) in figures {
        let svg = figure.standalone();
        println!("{}: {} bytes, data {} bytes", figure.name(), svg.len(), csv.len());
        std::fs::write(folder.join(format!("{}.svg", figure.name())), svg)?;
        std::fs::write(folder.join(format!("{}.csv", figure.name())), csv)?;
    }
    Ok(())
}
