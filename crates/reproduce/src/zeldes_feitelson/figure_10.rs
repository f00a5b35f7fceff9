//! Figure 10: variations of Figure 9.

use super::figure_9::{BODY, OTHERS, four};
use super::process_scenarios::{paper, scenario, until};
use super::recorded_runs::{RUNS, RandomizedRuns, percent};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static A: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-10a",
    title: "four processes, priorities less extreme",
    setting: "As Figure 9 with entitlements 40, 20, 20 and 20.",
    run: less_extreme,
};

pub(crate) static B: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-10b",
    title: "four processes, priorities inverted",
    setting: "As Figure 9 with entitlements 10, 30, 30 and 30; and once more with so many iterations that no process finishes within \
              100 s.",
    run: inverted,
};

const LONG: &str = "loop 1000; NET_CS 0.5 0.05 NORM; CPU_CS 1 0.1 NORM; DISK_CS 2 0.2 NORM";

fn less_extreme(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let many = RandomizedRuns::of(scenario(&four("40", "20", BODY), paper(settings.seed))?)?;
    let (purple, others) = (many.finish("purple"), OTHERS.map(|c| many.finish(c)));
    let used = (many.used_by("purple", 10.0), OTHERS.map(|c| many.used_by(c, 10.0)));
    let mean = used.1.iter().map(|o| o.0).sum::<f64>() / 3.0;
    let first = others.iter().map(|o| o.0).fold(f64::MAX, f64::min);
    let ratio = used.0.0 / mean;
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "on average the differences are clear: purple, 40 %, is ahead of the others, 20 % each",
                format!(
                    "purple finishes at {:.1} ± {:.1} s, the others at {:.1}, {:.1} and {:.1} s",
                    purple.0, purple.1, others[0].0, others[1].0, others[2].0
                ),
                purple.0 < 0.8 * first,
            ),
            Verdict::new(
                "by about their ratio of 2 to 1 while all are active",
                format!("after 10 s purple has used {:.1} s, the others {mean:.1} s: {ratio:.1} to 1", used.0.0),
                (1.6..=2.6).contains(&ratio),
            ),
        ],
        figures: vec![many.means("figure-10a", "Priorities 40, 20, 20, 20", None)],
        notes: Vec::new(),
    })
}

fn inverted(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let many = RandomizedRuns::of(scenario(&four("10", "30", BODY), paper(settings.seed))?)?;
    let long = RandomizedRuns::of(scenario(&four("10", "30", LONG), until(100, settings.seed))?)?;
    let ratio = |many: &RandomizedRuns, at: f64| {
        let others = OTHERS.map(|c| many.used_by(c, at).0).iter().sum::<f64>() / 3.0;
        many.used_by("purple", at).0 / others
    };
    let (short, longer) = (ratio(&many, 10.0), ratio(&long, 100.0));
    let noise = |many: &RandomizedRuns, at: f64| {
        let (mean, deviation) = many.used_by("blue", at);
        deviation / mean
    };
    let (noisy, calm) = (noise(&many, 10.0), noise(&long, 100.0));
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "purple appears to achieve more than 1/3 of the progress of the others",
                format!("after 10 s its use is {short:.2} of theirs, in the mean of {RUNS} runs"),
                short > 1.0 / 3.0,
            ),
            Verdict::new(
                "this can be seen more clearly in longer runs",
                format!("after 100 s its use is {longer:.2} of theirs"),
                longer > 1.0 / 3.0,
            ),
            Verdict::new(
                "where the noise becomes smaller in relative terms",
                format!(
                    "the standard deviation of blue's use is {} of its mean after 10 s and {} after 100 s",
                    percent(noisy),
                    percent(calm)
                ),
                calm < noisy,
            ),
        ],
        figures: vec![
            many.means("figure-10b", "Priorities 10, 30, 30, 30", None),
            long.means("figure-10b-long", "Priorities 10, 30, 30, 30, longer", None),
        ],
        notes: Vec::new(),
    })
}
