//! The integral controller alone: its control law, its limits, its level against a reference model, and what it rejects.
#![allow(clippy::unwrap_used)]

use evenhand_heaviness::controller::{ControllerError, IntegralController, IntegralSettings, gain_limit};
use proptest::prelude::*;

fn bare() -> IntegralSettings {
    let limits = IntegralSettings { slew: f64::INFINITY, idle_margin: f64::INFINITY, ..IntegralSettings::default() };
    IntegralSettings { dead_band: 0.0, min_weight: 0.01, max_weight: 100.0, ..limits }
}

fn with(settings: IntegralSettings, weights: &[f64]) -> IntegralController {
    let mut controller = IntegralController::new(settings).unwrap();
    for (i, weight) in weights.iter().enumerate() {
        assert_eq!(controller.add(), i);
        controller.set_weight(i, *weight);
    }
    controller
}

fn logs(controller: &IntegralController) -> Vec<f64> {
    controller.weights().map(f64::ln).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * (1.0 + b.abs())
}

#[test]
fn the_control_law_equals_an_update_worked_out_by_hand() {
    let mut controller = with(bare(), &[1.0, 1.0, 2.0]);
    controller.update(&[1.0, 2.0, 6.0], &[1.0; 3]).unwrap();
    let expected = [0.3 * 2.0, 0.3, 2.0_f64.ln() - 0.3 * 3.0];
    assert!(logs(&controller).iter().zip(expected).all(|(a, b)| close(*a, b)), "{:?}", logs(&controller));
    // With the level weighted by activity it is 5, on which the first workload has no influence.
    let mut controller = with(bare(), &[1.0, 1.0, 1.0]);
    controller.update(&[1.0, 2.0, 6.0], &[0.0, 1.0, 3.0]).unwrap();
    assert!(logs(&controller).iter().zip([1.2, 0.9, -0.3]).all(|(a, b)| close(*a, b)), "{:?}", logs(&controller));
}

#[test]
fn damping_the_dead_band_and_the_slew_limit_act_on_errors_and_steps() {
    let mut controller = with(IntegralSettings { damping: 0.75, ..bare() }, &[1.0, 1.0]);
    for expected in [0.25, 0.25 + 0.4375] {
        controller.update(&[0.0, 2.0], &[1.0; 2]).unwrap();
        assert!(close(logs(&controller)[0], 0.3 * expected), "{:?}", logs(&controller));
    }
    let mut controller =
        with(IntegralSettings { dead_band: 0.5, slew: 0.1, ..IntegralSettings::default() }, &[1.0, 1.0, 3.0]);
    controller.update(&[1.0, 2.0, 1.5], &[1.0; 3]).unwrap();
    assert!(logs(&controller)[..2] == [0.0, 0.0]);
    controller.update(&[1.0, 7.0, 4.0], &[1.0; 3]).unwrap();
    let expected = [0.1, -0.1, 3.0_f64.ln()];
    assert!(logs(&controller).iter().zip(expected).all(|(a, b)| close(*a, b)), "{:?}", logs(&controller));
}

/// At an end of the range a workload that is pushed outwards takes no part in the level. It leaves the end at once when it
/// is pushed inwards (no windup).
#[test]
fn workloads_at_an_end_of_the_range_do_not_wind_up() {
    let mut controller = with(bare(), &[100.0, 1.0, 1.0]);
    controller.update(&[-50.0, 1.0, 3.0], &[1.0; 3]).unwrap();
    let expected = [100.0_f64.ln(), 0.3, -0.3];
    assert!(logs(&controller).iter().zip(expected).all(|(a, b)| close(*a, b)), "{:?}", logs(&controller));
    for _ in 0..100 {
        controller.update(&[-50.0, 1.0, 1.0], &[1.0; 3]).unwrap();
    }
    controller.update(&[4.0, 1.0, 1.0], &[1.0; 3]).unwrap();
    assert!(close(logs(&controller)[0], 100.0_f64.ln() - 0.6));
    // All are at the ends where they belong: an equilibrium.
    let mut controller = with(bare(), &[100.0, 100.0, 0.01]);
    let before = logs(&controller);
    controller.update(&[1.0, 2.0, 3.0], &[1.0; 3]).unwrap();
    assert_eq!(logs(&controller), before);
}

#[test]
fn workloads_are_added_removed_and_decay_to_weight_1() {
    let mut controller = with(IntegralSettings::default(), &[0.5, 2.0, 4.0]);
    controller.remove(1);
    controller.remove(7);
    assert_eq!((controller.workloads(), controller.add()), (2, 2));
    assert!(controller.weights().zip([0.5, 4.0, 1.0]).all(|(a, b)| close(a, b)));
    assert_eq!(controller.weight(9), 1.0);
    controller.decay_weights(0.5);
    assert!(controller.weights().zip([0.5_f64.sqrt(), 2.0, 1.0]).all(|(a, b)| close(a, b)));
    controller.decay_weights(f64::NAN);
    assert!(controller.weights().all(|w| w == 1.0));
    for odd in [0.0, -1.0, f64::NAN] {
        controller.set_weight(0, odd);
        assert_eq!(controller.weight(0), 1.0);
    }
    controller.set_weight(0, f64::INFINITY);
    assert!(close(controller.weight(0), 10.0) && controller.weight(0) <= 10.0);
    let mut none = IntegralController::new(IntegralSettings::default()).unwrap();
    none.update(&[], &[]).unwrap();
}

#[test]
fn invalid_settings_and_measurements_are_rejected() {
    let is_rejected =
        |settings| matches!(IntegralController::new(settings), Err(ControllerError::InvalidSetting { .. }));
    let s = IntegralSettings::default();
    for bad in [f64::NAN, -1.0] {
        assert!(
            is_rejected(IntegralSettings { gain: bad, ..s }) && is_rejected(IntegralSettings { damping: bad, ..s })
        );
        assert!(
            is_rejected(IntegralSettings { dead_band: bad, ..s }) && is_rejected(IntegralSettings { slew: bad, ..s })
        );
        assert!(
            is_rejected(IntegralSettings { min_weight: bad, ..s })
                && is_rejected(IntegralSettings { max_weight: bad, ..s })
        );
    }
    assert!(is_rejected(IntegralSettings { gain: 0.0, ..s }) && is_rejected(IntegralSettings { damping: 1.0, ..s }));
    assert!(
        is_rejected(IntegralSettings { min_weight: 2.0, ..s })
            && is_rejected(IntegralSettings { max_weight: f64::INFINITY, ..s })
    );
    let mut controller = with(s, &[1.0, 2.0]);
    let before = controller.clone();
    assert!(matches!(
        controller.update(&[1.0], &[1.0; 2]),
        Err(ControllerError::Length { found: 1, workloads: 2, .. })
    ));
    for (h, a) in [([f64::NAN, 1.0], [1.0; 2]), ([f64::INFINITY, 1.0], [1.0; 2]), ([1.0; 2], [-1.0, 1.0])] {
        assert_eq!(
            controller.update(&h, &a).map_err(|e| matches!(e, ControllerError::InvalidNumber { workload: 0, .. })),
            Err(true)
        );
    }
    assert!(controller.set_gain(0.0).is_err());
    assert_eq!(controller, before);
    controller.set_gain(0.1).unwrap();
    assert_ne!(controller, before);
}

#[test]
fn a_stable_gain_is_half_the_limit() {
    let s = IntegralSettings { damping: 0.5, ..IntegralSettings::default() };
    assert_eq!(s.with_stable_gain(1.0).gain, 0.3);
    assert!(
        close(s.with_stable_gain(100.0).gain, gain_limit(100.0, 0.5) / 2.0)
            && close(s.with_stable_gain(100.0).gain, 0.03)
    );
}

/// The reference model of the level: among all sets of workloads that could move, those whose own mean confirms them.
fn levels(h: &[f64], a: &[f64], ends: &[i8]) -> Vec<f64> {
    let n = h.len();
    let mut found = Vec::new();
    for set in 1_u32..1 << n {
        let within = |i: usize| set >> i & 1 == 1;
        let total: f64 = (0..n).filter(|i| within(*i)).map(|i| a[i]).sum();
        if total == 0.0 {
            continue;
        }
        let level = (0..n).filter(|i| within(*i)).map(|i| a[i] * h[i]).sum::<f64>() / total;
        let fits = |i: usize| match ends[i] {
            1 => within(i) && h[i] >= level - 1e-9 || !within(i) && h[i] <= level + 1e-9,
            -1 => within(i) && h[i] <= level + 1e-9 || !within(i) && h[i] >= level - 1e-9,
            _ => within(i),
        };
        if (0..n).all(fits) {
            found.push(level);
        }
    }
    found
}

proptest! {
    /// H12, H11 and the level against the reference model, with ties, workloads at ends, and idle ones.
    #[test]
    fn the_level_equals_that_of_the_reference_model(
        workloads in prop::collection::vec((-6_i8..=6, 0_u8..=3, -1_i8..=1), 1..7),
    ) {
        let h: Vec<f64> = workloads.iter().map(|(h, ..)| f64::from(*h) / 2.0).collect();
        let a: Vec<f64> = workloads.iter().map(|(_, a, _)| f64::from(*a)).collect();
        let ends: Vec<i8> = workloads.iter().map(|(.., end)| *end).collect();
        let start: Vec<f64> = ends.iter().map(|end| [0.01, 1.0, 100.0][(end + 1) as usize]).collect();
        let mut controller = with(IntegralSettings { gain: 0.01, ..bare() }, &start);
        let before = logs(&controller);
        controller.update(&h, &a).unwrap();
        let after = logs(&controller);
        let all_idle = a.iter().all(|a| *a == 0.0);
        let equal = vec![1.0; a.len()];
        let levels = levels(&h, if all_idle { &equal } else { &a }, &ends);
        let fits = |level: f64| {
            (0..h.len()).all(|i| {
                let free = before[i] - 0.01 * (h[i] - level);
                (after[i] - free.clamp(0.01_f64.ln(), 100.0_f64.ln())).abs() < 1e-9
            })
        };
        prop_assert!(levels.iter().any(|l| fits(*l)), "{h:?} {a:?} {ends:?} {levels:?} {after:?}");
    }

    /// Weights stay in their range, move by at most the slew limit, and are equal for equal numbers, whatever the
    /// measurements.
    #[test]
    fn weights_stay_in_range_and_move_by_at_most_the_slew_limit(
        updates in prop::collection::vec(prop::collection::vec((prop::num::f64::NORMAL, 0.0_f64..1e300), 4), 1..30),
        damping in 0.0_f64..0.99,
    ) {
        let settings = IntegralSettings { damping, slew: 0.5, min_weight: 0.25, max_weight: 8.0, ..IntegralSettings::default() };
        let mut controller = with(settings, &[1.0; 4]);
        let mut copy = controller.clone();
        for update in updates {
            let (h, a): (Vec<f64>, Vec<f64>) = update.into_iter().unzip();
            let before = logs(&controller);
            controller.update(&h, &a).unwrap();
            copy.update(&h, &a).unwrap();
            prop_assert_eq!(&controller, &copy);
            prop_assert!(controller.weights().all(|w| (0.25..=8.0).contains(&w)));
            prop_assert!(before.iter().zip(logs(&controller)).all(|(a, b)| (a - b).abs() <= 0.5 + 1e-12));
        }
    }
}

/// The second workload is idle and lighter: it rises to twice the weight of the busy one, and comes down to that if it was
/// higher. A heavier one falls freely.
#[test]
fn an_idle_workload_rises_to_at_most_its_margin_above_the_busy_ones() {
    let settings = IntegralSettings { dead_band: 0.0, ..IntegralSettings::default() };
    let mut controller = with(settings, &[0.5, 1.0, 1.0]);
    for _ in 0..100 {
        controller.update(&[1.0, 0.0, 2.0], &[1.0, 0.0, 0.0]).unwrap();
    }
    let busy = controller.weight(0);
    assert!(close(controller.weight(1), 2.0 * busy) && close(controller.weight(2), 0.1), "{controller:?}");
    let mut controller = with(settings, &[0.5, 8.0]);
    controller.update(&[1.0, 0.0], &[1.0, 0.02]).unwrap();
    // At most a halving in one update. 0.02 of 1.02 is less than a twentieth of the mean activity, 0.03 is not.
    assert!(controller.weight(1) < 8.0, "{controller:?}");
    let mut controller = with(settings, &[0.5, 8.0]);
    controller.update(&[1.0, 0.0], &[1.0, 0.03]).unwrap();
    assert!(controller.weight(1) > 8.0, "{controller:?}");
}
