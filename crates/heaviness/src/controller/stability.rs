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

/// The gain below which a loop settles, without damping, whose measurements are `delay` updates old:
/// 2 sin(pi / (2 (2 `delay` + 1))) / `loop_gain`.
///
/// x' = x - gain x `loop_gain` x (x of `delay` updates ago): the characteristic polynomial z^(d+1) - z^d + k has all
/// roots within the unit circle exactly for 0 < k < 2 sin(pi / (2 (2 d + 1))) (Levin and May, 1976). Without
/// a delay that is [`gain_limit`] without damping.
pub fn delayed_gain_limit(loop_gain: f64, delay: u32) -> f64 {
    let half_angle = std::f64::consts::PI / (2.0 * (2.0 * f64::from(delay) + 1.0));
    2.0 * libm::sin(half_angle) / loop_gain
}

/// How much a part of something divided by weights moves with the logarithm of its weight, while the others stay:
/// p (1 - p).
///
/// For what moves by at most a doubling of the weight in the next update: of the part between `share` and twice
/// that for which it is largest.
pub fn elasticity(share: f64) -> f64 {
    let share = share.clamp(0.0, 1.0);
    let worst = if share >= 0.5 { share } else { (2.0 * share).min(0.5) };
    worst * (1.0 - worst)
}

/// No guest's h_p moves by more than this, in sum over all guests of the cloud whose log W moves by at most 1.
///
/// * `steepest`: how much h_v rises with a load that weighs 1 more.
/// * `guest`: what the guest's node supplies, weighed, times the [`elasticity`] of the guest's part in it;
///   summed over resources.
/// * `owner`: the same of all its owner's guests on a node taken as one, summed over nodes.
///
/// With u_i = C p_i the derivative of u_i by log W_k is C p_i (d_ik - p_k). A user's guests S on a node have P of it in
/// sum, and their sum of u moves by C p_k (1 - P) for k in S and by -C P p_k for others: absolutely C 2 P (1 - P)
/// in sum. The guest itself counts a second time in h_p: C 2 p (1 - p). So this is the sum of the absolute entries of
/// a row of the loop's matrix, the largest of which bounds all its eigenvalues. Rows may have gains of their
/// own: gain x `row_gain` at most 1 in each row bounds the whole.
///
/// With a thousand guests that are alike it is far below [`loop_gain_bound`], which knows no shares.
pub fn row_gain(steepest: f64, guest: f64, owner: f64) -> f64 {
    2.0 * steepest * (guest + owner)
}
