//! Figure 2a: stateful max-min fairness as progressive filling on bases.

use evenhand_model::Rational;
use evenhand_report::chart::Caption;

use super::filling_diagram::{demands, draw, fill, list};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "sadok",
    figure: "figure-2a",
    title: "stateful max-min fairness: filling diagram",
    setting: "The users of Figure 1a, with commitments as bases. The paper chooses commitments arbitrarily and gives no \
         numbers; here they are 1/10, 0, 1/4 and 0. Computed exactly.",
    run,
};

fn run(_: &Settings) -> Result<Outcome, ReproduceError> {
    let part = |n: i32, d: u8| Rational::from_parts(n.into(), d.into());
    let commitments = [part(1, 10), Rational::ZERO, part(1, 4), Rational::ZERO];
    let nothing = [const { Rational::ZERO }; 4];
    let (filled, plain, free) = (fill("sdrf", &commitments)?, fill("max-min", &nothing)?, fill("sdrf", &nothing)?);
    let at_level = |i: usize| {
        let full = filled.held[i] == demands()[i];
        full || filled.level.as_ref().is_some_and(|x| &filled.held[i] + &commitments[i] == *x)
    };
    let due = |i: usize| (part(1, 4) - &commitments[i]).max(Rational::ZERO).min(demands()[i].clone());
    let caption = Caption {
        name: "sadok-figure-2a".into(),
        title: "Stateful max-min fairness by progressive filling".into(),
        description: "The tanks of Figure 1a on bases of the height of commitments, filled to a common level.".into(),
    };
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "tanks stand on their commitments: allocation and commitment together reach the level, unless the \
                 demand is met (Eq. 4)",
                format!("level {}, allocations {}", filled.level.clone().unwrap_or_default(), list(&filled.held)),
                (0..4).all(at_level),
            ),
            Verdict::new(
                "a user entitled to 3 CPUs with 1 committed receives at least 2: each user receives at least entitlement minus \
                 commitment, or its demand if that is less",
                format!("allocations {}, due {}", list(&filled.held), list(&(0..4).map(due).collect::<Vec<_>>())),
                (0..4).all(|i| filled.held[i] >= due(i)),
            ),
            Verdict::new(
                "without commitments it equals max-min fairness",
                format!("{} against {}", list(&free.held), list(&plain.held)),
                free.held == plain.held,
            ),
        ],
        figures: vec![draw(caption, &filled, &commitments)],
        notes: Vec::new(),
    })
}
