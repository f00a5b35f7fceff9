//! The water-filling diagrams of Figures 1a and 2a: four users of one resource, as tanks.

use evenhand_documents::{Cell, Csv};
use evenhand_mechanisms::{Allocation, MechanismOptions, Problem, User, mechanism_named};
use evenhand_model::{Rational, to_f64};
use evenhand_report::chart::{Axis, Caption, Scale, Tank, Unit, WaterFillingChart};

use crate::{FigureWithData, ReproduceError};

pub(super) const SETTING: &str = "One resource and four users. The text gives no numbers but states whose demand is \
     met; demands of 1/2, 3/20, 1/5 and 3/5 of the resource agree with it. Computed exactly.";

/// Returns each user's demand for the resource.
pub(super) fn demands() -> [Rational; 4] {
    [(1, 2), (3, 20), (1, 5), (3, 5)].map(|(n, d): (i32, u8)| Rational::from_parts(n.into(), d.into()))
}

/// The division of the resource: the users' allocations and the water level.
pub(super) struct Filled {
    pub(super) held: Vec<Rational>,
    pub(super) level: Option<Rational>,
}

/// Divides the resource among the users of [`demands`] with these commitments, exactly.
pub(super) fn fill(mechanism: &'static str, commitments: &[Rational; 4]) -> Result<Filled, ReproduceError> {
    let users = demands()
        .into_iter()
        .zip(commitments)
        .map(|(demand, commitment)| User::new([demand]).limit(Rational::ONE).commitment([commitment.clone()]));
    let problem = Problem::new(1, users)?;
    let mechanism = mechanism_named(mechanism).ok_or_else(|| ReproduceError::Setup(format!("no {mechanism}")))?;
    let Allocation { tasks, level, .. } = mechanism.divide_exact(&problem, &MechanismOptions::default())?;
    Ok(Filled { held: tasks.into_iter().zip(demands()).map(|(x, d)| x * d).collect(), level })
}

/// Draws the water-filling diagram.
pub(super) fn draw(caption: Caption, filled: &Filled, commitments: &[Rational; 4]) -> FigureWithData {
    let mut csv = Csv::new(&["user", "commitment", "demand", "allocation", "level"]);
    let level = filled.level.as_ref().map(to_f64);
    let mut tanks = Vec::new();
    for (i, ((demand, held), commitment)) in demands().iter().zip(&filled.held).zip(commitments).enumerate() {
        let [base, height, water] = [commitment, demand, held].map(to_f64);
        let label = (i + 1).to_string();
        csv.row(&[
            Cell::Text(&label),
            Cell::Number(Some(base)),
            Cell::Number(Some(height)),
            Cell::Number(Some(water)),
            Cell::Number(level),
        ]);
        tanks.push(Tank { label, base, height, water });
    }
    let chart = WaterFillingChart {
        caption,
        tanks_title: "user".into(),
        y: Axis {
            title: "share of the resource".into(),
            unit: Unit::Percent,
            scale: Scale::linear(tanks.iter().map(|t| t.base + t.height), true, Unit::Percent),
        },
        tanks,
        level: filled.level.as_ref().map(|level| (to_f64(level), format!("x = {level}"))),
        water_label: "allocated".into(),
        tank_label: "demand".into(),
        base_label: "commitment".into(),
    };
    FigureWithData { figure: chart.draw(), csv: csv.finish() }
}

/// Formats numbers: `13/40, 3/20, …`.
pub(super) fn list(numbers: &[Rational]) -> String {
    numbers.iter().map(Rational::to_string).collect::<Vec<_>>().join(", ")
}
