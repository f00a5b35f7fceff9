//! The scenario of Figures 1b and 2b: a greedy user, a sporadic user, and a peak of demand.

use evenhand_mechanisms::mechanism_named;
use evenhand_model::{Quantity, Rational};
use evenhand_policies::Decay;
use evenhand_report::chart::Caption;
use evenhand_report::{StackedShare, draw_timeline};
use evenhand_timeline::{Interval, Participant, Phase, Scenario, Timeline, TimelineOptions, divide_over_time};

use crate::{FigureWithData, ReproduceError};

pub(super) const SETTING: &str = "One resource, two users of equal weight. A always demands all of it; B arrives on day 10 \
     with work that takes the whole resource two days, and leaves when it is done. The paper gives \
     neither times nor amounts; its delta of 1 - 10^-6 a second (footnote 2) is kept.";

const DAY: u32 = 86_400;
/// The arrival of B, B's work (as time on the whole resource), and the end of the scenario; in seconds.
const B_ARRIVES: u32 = 10 * DAY;
const B_WORK: u32 = 2 * DAY;
const END: u32 = 18 * DAY;

/// The division of the resource over time between A and B under a mechanism.
pub(super) struct Peak {
    scenario: Scenario,
    pub(super) timeline: Timeline<f64>,
}

pub(super) fn peak(mechanism: &'static str) -> Result<Peak, ReproduceError> {
    let setup = |e: &dyn std::fmt::Display| ReproduceError::Setup(e.to_string());
    let all = || [Rational::ONE];
    let greedy = Participant::new([Phase::new(Rational::ZERO, all())]);
    let sporadic = Participant::new([Phase::new(B_ARRIVES.into(), all()).work(B_WORK.into())]);
    let scenario = Scenario::new(1, [greedy, sporadic])?;
    let delta = Quantity::parse("0.999999").map_err(|e| setup(&e))?;
    let options = TimelineOptions {
        decay: Some(Decay::from_delta(&delta).map_err(|e| setup(&e))?),
        until: Some(END.into()),
        resolution_s: Some(3600.0),
        ..TimelineOptions::default()
    };
    let mechanism = mechanism_named(mechanism).ok_or_else(|| setup(&"no such mechanism"))?;
    let timeline = divide_over_time(&scenario, mechanism, &options)?;
    Ok(Peak { scenario, timeline })
}

impl Peak {
    /// Returns the time at which B is done, in seconds.
    pub(super) fn done(&self) -> f64 {
        self.timeline.left[1].unwrap_or(f64::INFINITY)
    }

    /// Returns the shares of A and B at the start and the end of each interval in which B is present.
    pub(super) fn meanwhile(&self) -> Vec<[f64; 2]> {
        let with_b = self.timeline.intervals.iter().filter(|i| i.users[1].is_some());
        with_b
            .flat_map(|i| {
                [[0, 1].map(|u| i.held(&self.scenario, u)[0]), [0, 1].map(|u| i.held_at_end(&self.scenario, u)[0])]
            })
            .collect()
    }

    /// Returns the share of A after B has left.
    pub(super) fn afterwards(&self) -> f64 {
        self.timeline.intervals.last().map_or(0.0, |i| i.held(&self.scenario, 0)[0])
    }

    /// Returns the amount that A has received up to `second`, in days of the whole resource. Within the hourly
    /// intervals shares are interpolated linearly, with a negligible error.
    pub(super) fn had_by(&self, second: f64) -> f64 {
        let of = |i: &Interval<f64>| {
            let length = i.length()?;
            let part = ((second - i.from) / length).clamp(0.0, 1.0);
            let [first, last] = [i.held(&self.scenario, 0)[0], i.held_at_end(&self.scenario, 0)[0]];
            Some((first + part * (last - first) / 2.0) * part * length)
        };
        self.timeline.intervals.iter().filter_map(of).sum::<f64>() / f64::from(DAY)
    }

    pub(super) fn draw(&self, caption: Caption) -> FigureWithData {
        let users = ["A, greedy".to_string(), "B, sporadic".to_string()];
        let (figure, csv) = draw_timeline(&self.scenario, &self.timeline, &users, StackedShare::Resource(0), caption);
        FigureWithData { figure, csv }
    }
}

/// Formats the time since the arrival of B, in days.
pub(super) fn days(second: f64) -> String {
    format!("{:.2} days", (second - f64::from(B_ARRIVES)) / f64::from(DAY))
}
