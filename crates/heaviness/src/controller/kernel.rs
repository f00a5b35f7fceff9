//! A weight as the kernel's interfaces take it.

/// As `cpu.weight` or `io.weight` of cgroup v2: round(100 W), from 1 to 10000. Never 0. What is not a number is
/// 100, the kernel's own default.
pub fn cgroup_weight(weight: f64) -> u16 {
    if weight.is_nan() { 100 } else { (100.0 * weight).round().clamp(1.0, 10_000.0) as u16 }
}

/// As `io.bfq.weight` or `blkio.bfq.weight`: round(100 W), from 1 to 1000. So ratios stay what they are, up to 10.
/// What is not a number is 100.
pub fn bfq_weight(weight: f64) -> u16 {
    if weight.is_nan() { 100 } else { (100.0 * weight).round().clamp(1.0, 1000.0) as u16 }
}

/// What systemd makes of its `IOWeight` for disks with BFQ: up to 100 as it is, above in proportion, so that
/// 10000 becomes 1000. It bends ratios: 179 : 102 becomes 107 : 100.
pub fn systemd_bfq_weight(io_weight: u16) -> u16 {
    let io_weight = u32::from(io_weight.clamp(1, 10_000));
    let bfq = if io_weight <= 100 { io_weight } else { 100 + (io_weight - 100) * 900 / 9900 };
    bfq as u16
}

/// The `IOWeight` of which systemd makes [`bfq_weight`].
pub fn systemd_io_weight(weight: f64) -> u16 {
    let bfq = bfq_weight(weight);
    if bfq <= 100 { bfq } else { 100 + (bfq - 100) * 11 }
}

/// As `cpu.shares` of cgroup v1: round(1024 W), from 2 to 262144. What is not a number is 1024, the kernel's own
/// default.
pub fn cpu_shares(weight: f64) -> u32 {
    if weight.is_nan() { 1024 } else { (1024.0 * weight).round().clamp(2.0, 262_144.0) as u32 }
}

/// How software that speaks of `cpu.shares` turns them into `cpu.weight` of cgroup v2. They do not agree: what
/// one calls the default is less than half of another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharesConversion {
    /// In proportion, so that 1024 is 100.
    Systemd,
    /// A straight line from (2, 1) to (262144, 10000), so that 1024 is 39: the OCI runtimes until 2025.
    Line,
    /// A parabola of logarithms through (2, 1), (1024, 100) and (262144, 10000): runc and crun since.
    Curve,
}

impl SharesConversion {
    /// The `cpu.weight`, from 1 to 10000. Shares beyond the kernel's range are taken for its ends.
    pub fn weight(self, shares: u64) -> u16 {
        let shares = shares.clamp(2, 262_144);
        let weight = match self {
            SharesConversion::Systemd => (shares * 100 / 1024).clamp(1, 10_000),
            SharesConversion::Line => 1 + (shares - 2) * 9_999 / 262_142,
            SharesConversion::Curve => {
                let l = libm::log2(shares as f64);
                // One fraction: at the default it is 2 without rounding, where the ceiling would show it.
                libm::pow(10.0, (l * l + 125.0 * l - 126.0) / 612.0).ceil().clamp(1.0, 10_000.0) as u64
            }
        };
        weight as u16
    }
}

/// Guaranteed rates of traffic classes: `total` in proportion to weights, none below `minimum`, their sum
/// at most `total`. `None` if even the minimum is too much for all, or a weight is not above 0 and finite.
///
/// Who would get less than the minimum gets that, and the others divide the rest.
pub fn rates(total: u64, minimum: u64, weights: &[f64]) -> Option<Vec<u64>> {
    let valid = weights.iter().all(|w| *w > 0.0 && w.is_finite());
    let fits = u128::from(minimum) * weights.len() as u128 <= u128::from(total);
    if !valid || !fits {
        return None;
    }
    let largest = weights.iter().fold(0.0_f64, |most, w| most.max(*w));
    let mut rates = vec![minimum; weights.len()];
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_unstable_by(|a, b| weights[*a].total_cmp(&weights[*b]).then(a.cmp(b)));
    // From the lightest on: once one has more than the minimum, so have all after it.
    let (mut left, mut sum) = (total, weights.iter().map(|w| w / largest).sum::<f64>());
    for (done, &i) in order.iter().enumerate() {
        let others = minimum * (weights.len() - 1 - done) as u64;
        let weight = weights[i] / largest;
        let part = if done + 1 == weights.len() { 1.0 } else { (weight / sum).clamp(0.0, 1.0) };
        rates[i] = ((left as f64 * part) as u64).clamp(minimum, left - others);
        left -= rates[i];
        sum -= weight;
    }
    Some(rates)
}

/// Memory protections whose sum is at most the parent's: as wanted if they fit, else in proportion, rounded
/// down.
pub fn protections(parent: u64, wanted: &[u64]) -> Vec<u64> {
    let sum: u128 = wanted.iter().map(|w| u128::from(*w)).sum();
    if sum <= u128::from(parent) {
        return wanted.to_vec();
    }
    wanted.iter().map(|w| (u128::from(*w) * u128::from(parent) / sum) as u64).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn weights_stay_in_the_kernels_ranges() {
        let cases = [(0.0, 1), (0.004, 1), (0.015, 2), (1.0, 100), (99.999, 10_000), (1e9, 10_000), (f64::NAN, 100)];
        cases.into_iter().for_each(|(w, expected)| assert_eq!(cgroup_weight(w), expected, "{w}"));
        let cases =
            [(0, 1), (1, 1), (100, 100), (111, 101), (200, 109), (5_050, 550), (10_000, 1000), (u16::MAX, 1000)];
        cases.into_iter().for_each(|(w, expected)| assert_eq!(systemd_bfq_weight(w), expected, "{w}"));
        let cases = [(0.0, 1), (0.5, 50), (1.79, 179), (10.0, 1000), (50.0, 1000), (f64::NAN, 100)];
        cases.into_iter().for_each(|(w, expected)| assert_eq!(bfq_weight(w), expected, "{w}"));
        for w in (1..=1100).map(|w| f64::from(w) / 100.0) {
            assert_eq!(systemd_bfq_weight(systemd_io_weight(w)), bfq_weight(w), "{w}");
        }
    }

    #[test]
    fn shares_stay_in_the_kernels_range() {
        for (weight, shares) in
            [(0.0, 2), (0.001, 2), (0.25, 256), (1.0, 1024), (4.0, 4096), (256.0, 262_144), (1e9, 262_144), (-1.0, 2)]
        {
            assert_eq!(cpu_shares(weight), shares, "{weight}");
        }
        assert_eq!(cpu_shares(f64::NAN), 1024);
    }

    #[test]
    fn shares_as_weights() {
        use SharesConversion::{Curve, Line, Systemd};
        for (shares, systemd, line, curve) in [
            (0, 1, 1, 1),
            (2, 1, 1, 1),
            (100, 9, 4, 17),
            (512, 50, 20, 59),
            (1024, 100, 39, 100),
            (2048, 200, 79, 174),
            (10_240, 1000, 391, 639),
            (262_144, 10_000, 10_000, 10_000),
            (u64::MAX, 10_000, 10_000, 10_000),
        ] {
            assert_eq!([Systemd, Line, Curve].map(|c| c.weight(shares)), [systemd, line, curve], "{shares}");
        }
        for conversion in [Systemd, Line, Curve] {
            let all: Vec<u16> = (2..=262_144).map(|s| conversion.weight(s)).collect();
            assert!(all.is_sorted() && all[0] == 1, "{conversion:?}");
        }
    }

    #[test]
    fn rates_by_hand() {
        assert_eq!(rates(1000, 1, &[1.0, 3.0]), Some(vec![250, 750]));
        assert_eq!(rates(1000, 100, &[1.0, 99.0, 100.0]), Some(vec![100, 447, 453]));
        // Equal weights are equal classes, as the authors' code does not have it.
        assert_eq!(rates(90, 1, &[2.0, 2.0, 2.0]), Some(vec![30, 30, 30]));
        assert_eq!(rates(5, 2, &[1.0, 1.0, 1.0]), None);
        assert_eq!(rates(5, 0, &[0.0, 1.0]), None);
        assert_eq!(rates(5, 0, &[]), Some(vec![]));
    }

    #[test]
    fn protections_fit_the_parent() {
        assert_eq!(protections(100, &[40, 60]), [40, 60]);
        assert_eq!(protections(100, &[300, 100]), [75, 25]);
        assert_eq!(protections(u64::MAX, &[u64::MAX, u64::MAX]), [u64::MAX / 2, u64::MAX / 2]);
        assert_eq!(protections(0, &[1, 0]), [0, 0]);
    }

    proptest! {
        #[test]
        fn rates_add_up(total in 0_u64..1 << 40, minimum in 0_u64..1 << 20, weights in prop::collection::vec(0.01_f64..100.0, 1..20)) {
            let fits = minimum * weights.len() as u64 <= total;
            let rates = rates(total, minimum, &weights);
            prop_assert_eq!(rates.is_some(), fits);
            let Some(rates) = rates else { return Ok(()) };
            prop_assert!(rates.iter().sum::<u64>() <= total);
            prop_assert!(rates.iter().all(|r| *r >= minimum));
            for (a, wa) in rates.iter().zip(&weights) {
                for (b, wb) in rates.iter().zip(&weights) {
                    prop_assert!(wa > wb || a <= &(b + weights.len() as u64), "{wa} gets {a}, {wb} gets {b}");
                    // In proportion, but for the minimum and whole units.
                    let apart = (*a as f64 / wa - *b as f64 / wb) * wa.min(*wb);
                    let above = *a > minimum && *b > minimum;
                    prop_assert!(!above || apart.abs() <= 1e-9 * total as f64 + weights.len() as f64 * 100.0);
                }
            }
        }
    }
}
