//! From weights to what an enforcer is asked for.

use evenhand_enforcers::cgroups::{Control, Levels};
use evenhand_heaviness::controller::WeightRange;

/// A guest as memory is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Claim {
    /// Its weight.
    pub(crate) weight: f64,
    /// Bytes it was sized for; `None`: nobody said.
    pub(crate) size: Option<f64>,
}

/// Bytes that are protected for each guest: `total` in proportion to weights, nobody more than its size, and what
/// is left over by those to the others.
///
/// In whole steps of about a 256th of the total, so that a weight which moves a little does not rewrite
/// everything; rounded down, so that the sum is at most the total.
pub(crate) fn protections(total: f64, claims: &[Claim]) -> Vec<u64> {
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

/// What a weight asks of everything that is shared in time and may be written.
pub(crate) fn of_weight(weight: f64, controls: &[Control]) -> Levels {
    let may = |control| controls.contains(&control).then_some(weight);
    Levels { cpu: may(Control::Cpu), disk: may(Control::Disk), network: may(Control::Network), memory: None }
}

/// The values of the paper's map as weights: so that their ratios are those of the paper's ranges.
pub(crate) fn of_points(value: impl Fn(WeightRange) -> u64, size: Option<f64>, controls: &[Control]) -> Levels {
    let may = |control: Control, range: WeightRange| controls.contains(&control).then(|| value(range) as f64 / 100.0);
    let memory =
        size.filter(|_| controls.contains(&Control::Memory)).map(|size| value(WeightRange::memory(size as u64)));
    Levels {
        cpu: may(Control::Cpu, WeightRange::CPU_SHARES),
        disk: may(Control::Disk, WeightRange::DISK_WEIGHT),
        network: may(Control::Network, WeightRange::TRAFFIC_CLASS),
        memory,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIB: f64 = (1_u64 << 30) as f64;

    #[test]
    fn memory_goes_by_weight_up_to_sizes() {
        let claim = |weight, size: Option<f64>| Claim { weight, size: size.map(|s| s * GIB) };
        let of = |claims: &[Claim]| -> Vec<f64> {
            protections(8.0 * GIB, claims).into_iter().map(|b| b as f64 / GIB).collect()
        };
        assert_eq!(of(&[claim(1.0, None), claim(3.0, None)]), [2.0, 6.0]);
        assert_eq!(of(&[claim(1.0, None), claim(3.0, Some(1.0))]), [7.0, 1.0]);
        assert_eq!(of(&[claim(1.0, Some(1.0)), claim(3.0, Some(1.0))]), [1.0, 1.0]);
        assert_eq!(of(&[claim(1.0, None), claim(1.004, None)]), [3.96875, 4.0]);
        assert!(of(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn no_more_is_protected_than_there_is(total in 0.0..1e12_f64, claims in prop::collection::vec((1e-2..1e2_f64, prop::option::of(0.0..1e12_f64)), 0..12)) {
            let claims: Vec<Claim> = claims.into_iter().map(|(weight, size)| Claim { weight, size }).collect();
            let given = protections(total, &claims);
            prop_assert!(given.iter().sum::<u64>() as f64 <= total * (1.0 + 1e-9) + 1.0);
            for (given, claim) in given.iter().zip(&claims) {
                prop_assert!(claim.size.is_none_or(|size| *given as f64 <= size));
            }
        }
    }
}
