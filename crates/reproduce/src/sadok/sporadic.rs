//! What Figures 1b and 2b share: a greedy user, a sporadic one, and a peak.

use evenhand_mechanisms::mechanism_named;
use evenhand_model::{Quantity, Rational};
use evenhand_policies::Decay;
use evenhand_report::chart::Caption;
use evenhand_report::{StackedShare, draw_timeline};
use evenhand_timeline::{Interval, Participant, Phase, Scenario, Timeline, TimelineOptions, divide_over_time};

use crate::{Drawn, ReproduceError};

pub(super) const SETTING: &str = "One resource, two users of equal weight. A always wants all of it; B comes on day 10 \
     with work that takes the whole resource two days, and leaves when it is done. The paper gives \
     neither times nor amounts; its delta of 1 - 10^-6 a second (footnote 2) is kept.";

const DAY: u32 = 86_400;
/// When B comes, what he brings (days of the whole resource), and how long we look.
pub(super) const COMES: u32 = 10 * DAY;
const WORK: u32 = 2 * DAY;
const LOOK: u32 = 18 * DAY;

/// A greedy user and a sporadic one, under a mechanism.
pub(super) struct Peak {
    scenario: Scenario,
    pub(super) timeline: Timeline<f64>,
}

pub(super) fn peak(mechanism: &'static str) -> Result<Peak, ReproduceError> {
    let setup = |e: &dyn std::fmt::Display| ReproduceError::Setup(e.to_string());
    let all = || [Rational::ONE];
    let greedy = Participant::new([Phase::new(Rational::ZERO, all())]);
    let sporadic = Participant::new([Phase::new(COMES.into(), all()).work(WORK.into())]);
    let scenario = Scenario::new(1, [greedy, sporadic])?;
    let delta = Quantity::parse("0.999999").map_err(|e| setup(&e))?;
    let options = TimelineOptions {
        decay: Some(Decay::from_delta(&delta).map_err(|e| setup(&e))?),
        until: Some(LOOK.into()),
        resolution_s: Some(3600.0),
        ..TimelineOptions::default()
    };
    let mechanism = mechanism_named(mechanism).ok_or_else(|| setup(&"no such mechanism"))?;
    let timeline = divide_over_time(&scenario, mechanism, &options)?;
    Ok(Peak { scenario, timeline })
}

impl Peak {
    /// When B is done, in seconds.
    pub(super) fn done(&self) -> f64 {
        self.timeline.left[1].unwrap_or(f64::INFINITY)
    }

    /// At the begins and ends of the intervals in which B is there: what A and B hold.
    pub(super) fn meanwhile(&self) -> Vec<[f64; 2]> {
        let there = self.timeline.intervals.iter().filter(|i| i.users[1].is_some());
        there
            .flat_map(|i| {
                [[0, 1].map(|u| i.held(&self.scenario, u)[0]), [0, 1].map(|u| i.held_at_end(&self.scenario, u)[0])]
            })
            .collect()
    }

    /// What A holds once B has left.
    pub(super) fn afterwards(&self) -> f64 {
        self.timeline.intervals.last().map_or(0.0, |i| i.held(&self.scenario, 0)[0])
    }

    /// What A has had until some second, in days of the whole resource. Between the hourly begins of
    /// intervals shares are all but straight lines.
    pub(super) fn had_by(&self, second: f64) -> f64 {
        let of = |i: &Interval<f64>| {
            let length = i.length()?;
            let part = ((second - i.from) / length).clamp(0.0, 1.0);
            let [first, last] = [i.held(&self.scenario, 0)[0], i.held_at_end(&self.scenario, 0)[0]];
            Some((first + part * (last - first) / 2.0) * part * length)
        };
        self.timeline.intervals.iter().filter_map(of).sum::<f64>() / f64::from(DAY)
    }

    pub(super) fn draw(&self, caption: Caption) -> Drawn {
        let users = ["A, greedy".to_string(), "B, sporadic".to_string()];
        let (figure, csv) = draw_timeline(&self.scenario, &self.timeline, &users, StackedShare::Resource(0), caption);
        Drawn { figure, csv }
    }
}

/// Seconds after B came, in days.
pub(super) fn days(second: f64) -> String {
    format!("{:.2} days", (second - f64::from(COMES)) / f64::from(DAY))
}
