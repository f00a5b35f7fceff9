//! Limits on the gain below which the control loop is stable.

/// Returns the gain below which the loop converges: 2 (1 + damping) / ((1 - damping) `loop_gain`).
///
/// Near equilibrium each mode of the loop follows x' = x - gain e, e' = damping e + (1 - damping) `loop_gain` x, where
/// `loop_gain` is that of the steepest mode. The characteristic polynomial
/// z^2 - (1 + damping - (1 - damping) gain `loop_gain`) z + damping has both roots inside the unit circle exactly below
/// this limit (Jury's criterion).
///
/// `damping` is in [0, 1); `loop_gain` is above 0.
pub fn gain_limit(loop_gain: f64, damping: f64) -> f64 {
    2.0 * (1.0 + damping) / ((1.0 - damping) * loop_gain)
}

/// Returns an upper bound on the gain of any loop of workloads under proportional sharing.
///
/// * `max_slope`: the increase of h_v for each unit of normalized load ([`Metric::max_slope`](crate::Metric::max_slope);
///   beta for the metrics `deviation` and `greediness`).
/// * `max_workloads`: the largest number of workloads of one user in the whole cloud.
/// * `largest_node`: the largest normalized supply of a node, sum_r n_r C_r. With equal nodes it is users over nodes.
///
/// An unsatisfied workload gets u_i = C p_i with p_i = W_i / sum W, so that du/dlog W = C (diag p - p p^T), whose norm is
/// at most C/2. h_p = (I + A) h_v, where A connects workloads of one user and has a norm of at most `max_workloads`. The
/// bound is therefore (1 + `max_workloads`) `max_slope` `largest_node` / 2. If all slopes are equal, the modes are real
/// and the bound is proved; with slopes between gamma and beta it is tested on random clouds.
pub fn loop_gain_bound(max_slope: f64, max_workloads: usize, largest_node: f64) -> f64 {
    (1.0 + max_workloads as f64) * max_slope * largest_node / 2.0
}

/// Returns the gain below which a loop without damping converges if its measurements are `delay` updates old:
/// 2 sin(pi / (2 (2 `delay` + 1))) / `loop_gain`.
///
/// x(t+1) = x(t) - gain `loop_gain` x(t-d): all roots of the characteristic polynomial z^(d+1) - z^d + k are inside the
/// unit circle exactly for 0 < k < 2 sin(pi / (2 (2 d + 1))) (Levin and May, 1976). Without a delay this equals
/// [`gain_limit`] without damping.
pub fn delayed_gain_limit(loop_gain: f64, delay: u32) -> f64 {
    let half_angle = std::f64::consts::PI / (2.0 * (2.0 * f64::from(delay) + 1.0));
    2.0 * libm::sin(half_angle) / loop_gain
}

/// Returns the derivative of a proportional share p with respect to the logarithm of its weight, p (1 - p), while the
/// other weights stay.
///
/// The weight may double until the next update, so the result is the maximum of p (1 - p) for p between `share` and twice
/// `share`. `share` is clamped to [0, 1].
pub fn elasticity(share: f64) -> f64 {
    let share = share.clamp(0.0, 1.0);
    let worst = if share >= 0.5 { share } else { (2.0 * share).min(0.5) };
    worst * (1.0 - worst)
}

/// Returns an upper bound on the change of a workload's h_p if every log W in the cloud moves by at most 1.
///
/// * `max_slope`: the increase of h_v for each unit of normalized load.
/// * `workload`: the normalized supply of the workload's node times the [`elasticity`] of the workload's share of it,
///   summed over resources.
/// * `owner`: the same for the total share of all the owner's workloads on a node, summed over nodes.
///
/// With u_i = C p_i the derivative of u_i by log W_k is C p_i (d_ik - p_k). If the workloads S of a user have a total share
/// P of a node, the sum of their u moves by C p_k (1 - P) for k in S and by -C P p_k for others, in absolute terms by
/// 2 C P (1 - P) altogether. The workload itself counts a second time in h_p, which adds 2 C p (1 - p). The result is the
/// sum of the absolute entries in one row of the loop's Jacobian; the largest such sum bounds all eigenvalues
/// (Gershgorin). Each row may have its own gain: if gain x `row_gain` is at most 1 in each row, the loop is stable.
///
/// For a thousand equal workloads this is far below [`loop_gain_bound`], which ignores shares.
pub fn row_gain(max_slope: f64, workload: f64, owner: f64) -> f64 {
    2.0 * max_slope * (workload + owner)
}
