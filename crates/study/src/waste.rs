//! Resource waste as a study records it.

use evenhand_model::{Capacity, Rational, Span, Workload, to_f64};
use evenhand_simulator::{IdleWhileWaiting, Simulated, Site};
use serde::{Deserialize, Serialize};

use crate::machines::OnSite;
use crate::plan::per_resource;
use crate::record::PerResource;

/// What lay idle while tasks waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WasteRecord {
    /// How long at least one accepted task waited.
    pub queued_s: f64,
    /// What was free meanwhile, whatever else was free: over capacity times the whole time from the first
    /// submission to the end, as utilisation is.
    pub idle_while_queued: PerResource,
    /// For every ordered pair of resources what was free of one beyond what goes with the other.
    pub stranded: Vec<StrandedRecord>,
}

/// What lay idle of a resource for want of another, while tasks waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StrandedRecord {
    /// What lay idle.
    pub resource: String,
    /// What was gone.
    pub lacking: String,
    /// How much, in the resource's unit, times seconds.
    pub amount_s: f64,
    /// The same over capacity times the whole time.
    pub share: f64,
}

pub(crate) fn waste_record(
    workload: &Workload,
    capacity: &Capacity,
    on_site: Option<&OnSite>,
    run: &Simulated,
) -> WasteRecord {
    let waste = match on_site {
        Some(on) => IdleWhileWaiting::measure(workload, &on.site, Some(&on.jobs), run),
        None => IdleWhileWaiting::measure(workload, &Site::pool(capacity), None, run),
    };
    let resources = workload.resources();
    let span = run.end - workload.columns().submit.first().copied().unwrap_or_default();
    // Both in steps and nanoseconds.
    let share = |r: usize, area: &Rational| match span {
        Span::ZERO => 0.0,
        span => to_f64(&(area / (capacity.exact_steps(r) * Rational::from(span.nanos())))),
    };
    let pairs = (0..resources.len()).flat_map(|a| (0..resources.len()).map(move |b| (a, b)));
    let stranded = pairs.filter(|(a, b)| a != b).map(|(a, b)| {
        let area = &waste.stranded[a][b];
        let second = Rational::from(resources[a].steps()) * Rational::from(1_000_000_000u64);
        StrandedRecord {
            resource: resources[a].name.clone(),
            lacking: resources[b].name.clone(),
            amount_s: to_f64(&(area / second)),
            share: share(a, area),
        }
    });
    WasteRecord {
        queued_s: waste.queued.secs_f64(),
        idle_while_queued: per_resource(workload, |r| share(r, &waste.idle[r])),
        stranded: stranded.collect(),
    }
}
