//! Records the resources that were idle while tasks waited.

use evenhand_model::{Capacity, Rational, Span, Workload, to_f64};
use evenhand_simulator::{IdleWhileWaiting, Simulated, Site};
use serde::{Deserialize, Serialize};

use crate::jobs_on_site::OnSite;
use crate::plan::per_resource;
use crate::record::PerResource;

/// The resources that were idle while tasks waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WasteRecord {
    /// The time in which at least one accepted task waited, in seconds.
    pub queued_s: f64,
    /// By resource: the free capacity in that time, divided, like utilisation, by capacity times the whole time from
    /// the first submission to the end.
    pub idle_while_queued: PerResource,
    /// For each ordered pair of resources: the free capacity of the first that could not be used because the second was
    /// exhausted.
    pub stranded: Vec<StrandedRecord>,
}

/// The capacity of a resource that was idle for lack of another resource, while tasks waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StrandedRecord {
    /// The idle resource.
    pub resource: String,
    /// The exhausted resource.
    pub lacking: String,
    /// The idle amount times time, in the resource's unit times seconds.
    pub amount_s: f64,
    /// The same divided by capacity times the whole time.
    pub share: f64,
}

/// Measures the waste of a run and records it.
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
    // Numerator and denominator are in steps times nanoseconds.
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
