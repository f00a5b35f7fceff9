//! The sections `[heaviness]` and `[control]`: how heaviness is computed, and how weights follow from it.

use std::time::Duration;

use evenhand_documents::DocumentError;
use evenhand_enforcers::cgroups::Resource;
use evenhand_heaviness::controller::{ControllerError, IntegralController, IntegralSettings};
use evenhand_heaviness::{Endowment, METRICS, Metric, Parameters, metric_named};

use super::fields::{choice, number, span};
use super::section::Section;

/// How heaviness is computed.
#[derive(Debug)]
pub struct HeavinessSection {
    /// The name of the metric.
    pub name: &'static str,
    /// The metric.
    pub metric: Box<dyn Metric<f64>>,
    /// The metric and its parameters as text, by which nodes check that they use the same.
    pub canonical: String,
    /// How endowments follow from sizes.
    pub endowment: Endowment,
    /// The resources that are counted, in the order of [`Resource::ALL`]. The same on all nodes.
    pub resources: Vec<Resource>,
}

impl HeavinessSection {
    pub(super) fn read(table: &Section<'_>) -> Result<HeavinessSection, DocumentError> {
        table.deny_unknown(&["metric", "k", "beta", "gamma", "saturation", "endowment", "resources"])?;
        let names: Vec<(&str, &str)> = METRICS.iter().map(|m| (m.name, m.name)).collect();
        let name = table.get("metric").map(|node| choice(&node, &names)).transpose()?.unwrap_or("deviation");
        let exact = |key| table.get(key).map(|node| node.quantity().map(|q| q.exact().clone())).transpose();
        let parameters = Parameters {
            k: exact("k")?,
            beta: exact("beta")?,
            gamma: exact("gamma")?,
            saturation: exact("saturation")?,
        };
        let registration = metric_named(name).unwrap_or(METRICS[0]);
        let metric = (registration.build)(&parameters).map_err(|e| table.error(e.to_string()))?;
        let rules = [("proportional", Endowment::Proportional), ("capped", Endowment::CappedProportional)];
        let endowment = table.get("endowment").map(|node| choice(&node, &rules)).transpose()?.unwrap_or_default();
        let resources = match table.get("resources") {
            None => Resource::ALL.to_vec(),
            Some(node) => resource_list(&node)?,
        };
        let canonical = format!("{name} {parameters:?} {endowment:?}");
        Ok(HeavinessSection { name: registration.name, metric, canonical, endowment, resources })
    }
}

/// How weights follow from heaviness.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlSection {
    /// The time from one update to the next.
    pub interval: Duration,
    /// The law.
    pub law: Law,
    /// The resources of which weights are written. Those that are only counted make their users heavier.
    pub controls: Vec<Resource>,
    /// The part of the machine's memory, in [0, 1), that is protected for workloads by weight. 0: memory is not changed.
    pub protected: f64,
    /// The smoothing factor of loads, in [0, 1): the part of the last load that is kept in the next.
    pub smoothing: f64,
}

/// How weights follow from heaviness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// An integral controller: weights change until contending workloads are equally heavy.
    Integral(IntegralSettings),
    /// The linear map of Poullie et al. (2016): a weight is a function of the present heaviness, which oscillates under
    /// contention.
    Linear,
}

impl ControlSection {
    pub(super) fn read(table: &Section<'_>) -> Result<ControlSection, DocumentError> {
        const INTEGRAL: [&str; 7] = ["gain", "damping", "dead_band", "slew", "idle", "least", "most"];
        let known = ["interval", "law", "controls", "protected", "smoothing"];
        table.deny_unknown(&[&known[..], &INTEGRAL[..]].concat())?;
        let linear = [("integral", false), ("linear", true)];
        let linear = table.get("law").map(|node| choice(&node, &linear)).transpose()?.unwrap_or(false);
        let law = if linear {
            if let Some(node) = INTEGRAL.iter().find_map(|key| table.get(key)) {
                return Err(node.error("law = \"linear\" has no such setting"));
            }
            Law::Linear
        } else {
            let any = |key, default| number(table, key, default, "a number", |_| true);
            let standard = IntegralSettings::default();
            let settings = IntegralSettings {
                gain: any("gain", standard.gain)?,
                damping: any("damping", standard.damping)?,
                dead_band: any("dead_band", standard.dead_band)?,
                slew: any("slew", standard.slew)?,
                idle_margin: any("idle", standard.idle_margin)?,
                min_weight: any("least", standard.min_weight)?,
                max_weight: any("most", standard.max_weight)?,
            };
            IntegralController::new(settings).map_err(|e| setting_error(table, &e))?;
            Law::Integral(settings)
        };
        let part = "a number of at least 0 and less than 1";
        let below_one = |n: f64| (0.0..1.0).contains(&n);
        Ok(ControlSection {
            interval: span(table, "interval", Duration::from_secs(10), Duration::from_millis(100))?,
            law,
            controls: table.get("controls").map_or_else(|| Ok(Resource::ALL.to_vec()), |node| resource_list(&node))?,
            protected: number(table, "protected", 0.5, part, below_one)?,
            smoothing: number(table, "smoothing", 0.0, part, below_one)?,
        })
    }
}

/// Locates an error of the integral law at the key that has the value, and names the key.
fn setting_error(table: &Section<'_>, error: &ControllerError) -> DocumentError {
    let ControllerError::InvalidSetting { setting, found, expected } = error else {
        return table.error(error.to_string());
    };
    let key = match *setting {
        "idle margin" => "idle",
        "smallest weight" => "least",
        "largest weight" => "most",
        "dead band" => "dead_band",
        "slew limit" => "slew",
        other => other,
    };
    let problem = format!("found {found}, expected {expected}");
    table.get(key).map_or_else(|| table.error(format!("{key}: {problem}")), |node| node.error(&problem))
}

/// Parses a list of resources, and sorts it in the order of [`Resource::ALL`].
fn resource_list(node: &evenhand_documents::Node<'_>) -> Result<Vec<Resource>, DocumentError> {
    let names = Resource::ALL.map(|resource| (resource.name(), resource));
    let mut found = Vec::new();
    for entry in node.list()? {
        let resource = choice(&entry, &names)?;
        if found.contains(&resource) {
            return Err(entry.error(format!("found {resource} a second time, expected once")));
        }
        found.push(resource);
    }
    if found.is_empty() {
        return Err(node.error("expected at least one resource"));
    }
    found.sort();
    Ok(found)
}
