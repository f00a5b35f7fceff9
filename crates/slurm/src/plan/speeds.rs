//! Speeds of the machines on which jobs ran.

use std::collections::HashMap;

use evenhand_model::{Rational, to_f64};

use crate::cluster_from_site::SiteCluster;
use crate::nodes::Node;
use evenhand_model::expand_hostlist;

/// Speeds of the machines whose speed is not 1, by name.
pub(super) struct Speeds(HashMap<String, f64>);

impl Speeds {
    pub(super) fn of(described: &SiteCluster, nodes: &[Node]) -> Speeds {
        let groups = described.cluster.groups.iter().zip(&described.members);
        let fast = groups.filter(|(group, _)| group.speed != Rational::ONE);
        let each = fast.flat_map(|(group, members)| {
            let speed = to_f64(&group.speed);
            members.iter().map(move |at| (nodes[*at].name.clone(), speed))
        });
        Speeds(each.collect())
    }

    /// Returns the mean speed of the machines of a list; 1 for jobs without machines yet.
    pub(super) fn mean(&self, list: Option<&str>) -> f64 {
        if self.0.is_empty() {
            return 1.0;
        }
        let names = list.and_then(expand_hostlist).unwrap_or_default();
        let sum: f64 = names.iter().map(|name| self.0.get(name).copied().unwrap_or(1.0)).sum();
        if names.is_empty() { 1.0 } else { sum / names.len() as f64 }
    }
}
