//! What another node may claim to have where the configuration does not tell.
//!
//! The sums that a record may contain are bounded by the supply that it claims, so the bound holds only if the claim is
//! bounded: a node that claimed a thousand million processors could erase the order among heavy users. Nodes of a cloud
//! differ, but not without limit.

use evenhand_enforcers::cgroups::{PerResource, Resource};

/// How many times this node's own supply another node may have.
const TIMES_OWN: f64 = 16.0;
/// What any node may have, so that a small node does not refuse large ones: processors, bytes, and bytes per second.
const ANY_NODE: PerResource<f64> =
    PerResource { cpu: 1024.0, memory: (16u64 << 40) as f64, disk: 100e9, network: 100e9 };

/// Returns the largest supply that a record may claim: as configured, or else the larger of 16 times this node's own, in
/// units of the reference node, and 1,024 processors, 16 TiB, 100 GB/s of disks and 100 GB/s of network.
pub(crate) fn largest_node(configured: &PerResource<Option<f64>>, own: &PerResource<f64>) -> PerResource<f64> {
    let default = |resource: Resource| (TIMES_OWN * own[resource]).max(ANY_NODE[resource]);
    PerResource::from_fn(|resource| configured[resource].unwrap_or_else(|| default(resource)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_bounded_by_configuration_own_supply_or_a_constant() {
        let own = PerResource { cpu: 256.0, memory: 64e9, disk: 0.0, network: 10e9 };
        let configured = PerResource { memory: Some(1e12), ..PerResource::default() };
        let largest = largest_node(&configured, &own);
        assert_eq!(largest, PerResource { cpu: 4096.0, memory: 1e12, disk: 100e9, network: 160e9 });
    }
}
