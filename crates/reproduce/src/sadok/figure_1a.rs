//! Figure 1a: max-min fairness as progressive filling.

use evenhand_model::Rational;
use evenhand_report::chart::Caption;

use super::filling_diagram::{SETTING, demands, draw, fill, list};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "sadok",
    figure: "figure-1a",
    title: "max-min fairness: filling diagram",
    setting: SETTING,
    run,
};

fn run(_: &Settings) -> Result<Outcome, ReproduceError> {
    let nothing = [const { Rational::ZERO }; 4];
    let filled = fill("max-min", &nothing)?;
    let satisfied: Vec<usize> = (0..4).filter(|i| filled.held[*i] == demands()[*i]).map(|i| i + 1).collect();
    let used = filled.held.iter().fold(Rational::ZERO, |a, b| a + b);
    let caption = Caption {
        name: "sadok-figure-1a".into(),
        title: "Max-min fairness by progressive filling".into(),
        description:
            "Four tanks filled to a common level; the demands of users 2 and 3 are met, those of 1 and 4 are not."
                .into(),
    };
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "users 2 and 3 have their demands met completely, users 1 and 4 do not",
                format!("allocations {}; met completely: {satisfied:?}", list(&filled.held)),
                satisfied == [2, 3],
            ),
            Verdict::new(
                "the tanks fill until the resource is exhausted",
                format!("{used} of it is allocated"),
                used == Rational::ONE,
            ),
            Verdict::new(
                "when a demand is met the other tanks continue to fill: users whose demand is not met are at the level",
                format!("users 1 and 4 receive {} and {}", filled.held[0], filled.held[3]),
                filled.level.as_ref().is_some_and(|x| filled.held[0] == *x && filled.held[3] == *x),
            ),
        ],
        figures: vec![draw(caption, &filled, &nothing)],
        notes: Vec::new(),
    })
}
