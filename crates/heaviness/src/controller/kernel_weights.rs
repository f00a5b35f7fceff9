//! Weights in the units of the kernel's interfaces.

/// Returns a weight as `cpu.weight` or `io.weight` of cgroup v2: round(100 W), from 1 to 10000. NaN becomes 100, the
/// kernel's default.
pub fn cgroup_weight(weight: f64) -> u16 {
    if weight.is_nan() { 100 } else { (100.0 * weight).round().clamp(1.0, 10_000.0) as u16 }
}

/// Returns a weight as `io.bfq.weight` or `blkio.bfq.weight`: round(100 W), from 1 to 1000. Ratios are kept up to W = 10.
/// NaN becomes 100, the kernel's default.
pub fn bfq_weight(weight: f64) -> u16 {
    if weight.is_nan() { 100 } else { (100.0 * weight).round().clamp(1.0, 1000.0) as u16 }
}

/// Returns the `IOWeight` that systemd converts to [`bfq_weight`].
///
/// For disks with the BFQ scheduler systemd keeps an `IOWeight` of up to 100 and maps 100 to 10000 linearly to 100 to
/// 1000 (`BFQ_WEIGHT` in systemd's cgroup.c), which distorts ratios: 179 : 102 becomes 107 : 100. This is the inverse.
pub fn systemd_io_weight(weight: f64) -> u16 {
    let bfq = bfq_weight(weight);
    if bfq <= 100 { bfq } else { 100 + (bfq - 100) * 11 }
}

/// Returns a weight as `cpu.shares` of cgroup v1: round(1024 W), from 2 to 262144. NaN becomes 1024, the kernel's default.
pub fn cpu_shares(weight: f64) -> u32 {
    if weight.is_nan() { 1024 } else { (1024.0 * weight).round().clamp(2.0, 262_144.0) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// systemd's own conversion.
    fn systemd_bfq_weight(io_weight: u16) -> u16 {
        let io_weight = u32::from(io_weight.clamp(1, 10_000));
        let bfq = if io_weight <= 100 { io_weight } else { 100 + (io_weight - 100) * 900 / 9900 };
        bfq as u16
    }

    #[test]
    fn weights_stay_in_the_ranges_of_the_kernel() {
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
    fn cpu_shares_stay_in_the_range_of_the_kernel() {
        for (weight, shares) in
            [(0.0, 2), (0.001, 2), (0.25, 256), (1.0, 1024), (4.0, 4096), (256.0, 262_144), (1e9, 262_144), (-1.0, 2)]
        {
            assert_eq!(cpu_shares(weight), shares, "{weight}");
        }
        assert_eq!(cpu_shares(f64::NAN), 1024);
    }
}
