//! How large a gain may be.

/// The gain below which a loop settles: 2 (1 + damping) / ((1 - damping) `loop_gain`).
///
/// Near its rest a loop moves by x' = x - gain x e, e' = damping x e + (1 - damping) x `loop_gain` x x, in each
/// of its modes; `loop_gain` is that of the steepest mode. z^2 - (1 + damping - (1 - damping) gain
/// `loop_gain`) z + damping has both roots within the unit circle exactly below this limit.
pub fn gain_limit(loop_gain: f64, damping: f64) -> f64 {
    2.0 * (1.0 + damping) / ((1.0 - damping) * loop_gain)
}

/// No loop of guests under proportional sharing has a larger gain than this.
///
/// * `steepest`: how much h_v rises with a load that weighs 1 more (beta of the metrics `deviation` and
///   `greediness`).
/// * `most_guests`: of one user, in the whole cloud.
/// * `heaviest_node`: what all of a node's supply weighs, sum_r n_r C_r; of the heaviest node. With equal nodes:
///   users over nodes.
///
/// A guest that is not satisfied gets u_i = C p_i with p_i = W_i / sum W, so du/dlog W = C (diag p - p p^T), of
/// norm at most C/2. h_p = (I + A) h_v, where A links guests of one user: of norm at most 1 +
/// `most_guests`. So (1 + g) x steepest x K / 2. If all slopes are equal the modes are real and the bound
/// is proved; with slopes between gamma and beta it is held by the tests on random clouds.
pub fn loop_gain_bound(steepest: f64, most_guests: usize, heaviest_node: f64) -> f64 {
    (1.0 + most_guests as f64) * steepest * heaviest_node / 2.0
}
