//! Figure 2: two processes with different priorities contending for a resource.

use super::process_scenarios::{Process, paper, process, scenario};
use super::recorded_runs::{Run, near, percents};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-2",
    title: "two processes, one resource: the second arrives after 5 s",
    setting: "As printed: red, entitlement 33, needs 10 s of the CPU; blue, 67, is idle for 5 s and needs 5 s. Deterministic. \
              Priorities are recomputed every quantum. The text recomputes them at intervals of seconds, but then one \
              process would hold the CPU for a whole interval, which the figure does not show.",
    run,
};

const PROCESSES: [Process; 2] =
    [process("red", "33", "loop 1; CPU_CS 10 0 NORM"), process("blue", "67", "loop 1; idle 5 0 NORM; CPU_CS 5 0 NORM")];

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let run = Run::of(scenario(&PROCESSES, paper(settings.seed))?);
    let (red, blue) = (run.finish("red"), run.finish("blue"));
    let alone = run.share("red", "CPU_CS", 0.0..5.0);
    let shared = ["red", "blue"].map(|c| run.share(c, "CPU_CS", 5.0..blue));
    let quanta: Vec<bool> = run
        .services("CPU_CS")
        .filter(|s| (5.0..blue).contains(&s.from.secs_f64()))
        .map(|s| run.is_of(s, "blue"))
        .collect();
    // 67 to 33 is slightly more than 2 to 1: occasionally blue has one quantum more.
    let runs: Vec<(bool, usize)> = quanta.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
    let stated = runs.iter().filter(|(blue, length)| *length == if *blue { 2 } else { 1 }).count();
    let pattern: String = quanta.iter().take(12).map(|blue| if *blue { 'b' } else { 'r' }).collect();
    let first_red = quanta.iter().position(|blue| !blue).unwrap_or(quanta.len());
    let first_blue = quanta.iter().position(|blue| *blue).unwrap_or(quanta.len());
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "initially only the red process runs, and gets full use of the CPU",
                format!("it receives {} of the first 5 s", percents(&[alone])),
                alone == 1.0,
            ),
            Verdict::new(
                "then their shares become governed by their priorities (33, 67)",
                format!("red and blue receive {} until blue is done", percents(&shared)),
                near(&shared, &[0.33, 0.67], 0.01),
            ),
            Verdict::new(
                "by giving the blue process two quanta each time, while the red process only receives one",
                format!("the sequence of quanta is {pattern}…; {stated} of {} turns have this length", runs.len()),
                stated * 10 >= runs.len() * 9,
            ),
            Verdict::new(
                "the transition is smooth: both start from an equal footing",
                format!("red's first quantum is number {} after 5 s, blue's number {}", first_red + 1, first_blue + 1),
                first_red.max(first_blue) <= 2,
            ),
            Verdict::new(
                "blue terminates first, again leaving the CPU exclusively to red",
                format!("blue finishes at {blue} s, red at {red} s"),
                blue < red && near(&[run.share("red", "CPU_CS", blue..red)], &[1.0], 1e-9),
            ),
        ],
        figures: vec![
            run.gantt("figure-2", "Two processes, one resource")?,
            run.cumulative("figure-2", "Two processes, one resource", None)?,
        ],
        notes: Vec::new(),
    })
}
