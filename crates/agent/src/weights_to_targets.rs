//! Computes the targets of an enforcer from weights.

use evenhand_enforcers::cgroups::{Resource, Targets};
use evenhand_heaviness::controller::WeightRange;

/// A workload's claim to protected memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MemoryClaim {
    /// Its weight.
    pub(crate) weight: f64,
    /// The bytes for which it was sized; `None`: unknown.
    pub(crate) size: Option<f64>,
}

/// Divides `total` bytes of protected memory in proportion to weights, with at most its size for each workload; what these
/// leave is divided among the others.
///
/// The results are rounded down to multiples of about a 256th of the total, so that a small change of a weight does not
/// change all values; their sum is at most the total. Takes O(n²) time in the worst case, O(n) for each round in which
/// some workload reaches its size.
pub(crate) fn protected_memory(total: f64, claims: &[MemoryClaim]) -> Vec<u64> {
    let mut given = vec![0.0; claims.len()];
    let mut open: Vec<usize> = (0..claims.len()).filter(|i| claims[*i].weight > 0.0).collect();
    let mut left = total.max(0.0);
    loop {
        let sum: f64 = open.iter().map(|i| claims[*i].weight).sum();
        let part = |i: usize| left * claims[i].weight / sum;
        let (full, rest): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|i| claims[**i].size.is_some_and(|size| size <= part(**i)));
        if full.is_empty() {
            open.iter().for_each(|i| given[*i] = part(*i));
            break;
        }
        for i in full {
            given[i] = claims[i].size.unwrap_or(0.0);
            left = (left - given[i]).max(0.0);
        }
        open = rest;
    }
    let step = ((total / 256.0).max(1.0) as u64).next_power_of_two().max(1 << 20);
    given.into_iter().map(|bytes| bytes as u64 / step * step).collect()
}

/// Requests the same weight for CPU, disk and network, as far as they are among `resources`.
pub(crate) fn weight_targets(weight: f64, resources: &[Resource]) -> Targets {
    Targets::from_fn(|resource| (resource != Resource::Memory && resources.contains(&resource)).then_some(weight))
}

/// Requests the values of the linear map of Poullie et al. (2016), converted to weights with the ratios of the paper's
/// ranges. Memory needs the workload's size.
pub(crate) fn linear_targets(value: impl Fn(WeightRange) -> u64, size: Option<f64>, resources: &[Resource]) -> Targets {
    Targets::from_fn(|resource| {
        if !resources.contains(&resource) {
            return None;
        }
        match resource {
            Resource::Cpu => Some(value(WeightRange::CPU_SHARES) as f64 / 100.0),
            Resource::Disk => Some(value(WeightRange::DISK_WEIGHT) as f64 / 100.0),
            Resource::Network => Some(value(WeightRange::TRAFFIC_CLASS) as f64 / 100.0),
            Resource::Memory => size.map(|size| value(WeightRange::memory(size as u64)) as f64),
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIB: f64 = (1_u64 << 30) as f64;

    #[test]
    fn memory_is_divided_in_proportion_to_weights_up_to_the_sizes() {
        let claim = |weight, size: Option<f64>| MemoryClaim { weight, size: size.map(|s| s * GIB) };
        let of = |claims: &[MemoryClaim]| -> Vec<f64> {
            protected_memory(8.0 * GIB, claims).into_iter().map(|b| b as f64 / GIB).collect()
        };
        assert_eq!(of(&[claim(1.0, None), claim(3.0, None)]), [2.0, 6.0]);
        assert_eq!(of(&[claim(1.0, None), claim(3.0, Some(1.0))]), [7.0, 1.0]);
        assert_eq!(of(&[claim(1.0, Some(1.0)), claim(3.0, Some(1.0))]), [1.0, 1.0]);
        assert_eq!(of(&[claim(1.0, None), claim(1.004, None)]), [3.96875, 4.0]);
        assert!(of(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn protected_memory_does_not_exceed_the_total_or_the_sizes(total in 0.0..1e12_f64, claims in prop::collection::vec((1e-2..1e2_f64, prop::option::of(0.0..1e12_f64)), 0..12)) {
            let claims: Vec<MemoryClaim> = claims.into_iter().map(|(weight, size)| MemoryClaim { weight, size }).collect();
            let given = protected_memory(total, &claims);
            prop_assert!(given.iter().sum::<u64>() as f64 <= total * (1.0 + 1e-9) + 1.0);
            for (given, claim) in given.iter().zip(&claims) {
                prop_assert!(claim.size.is_none_or(|size| *given as f64 <= size));
            }
        }
    }
}
