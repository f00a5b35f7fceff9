//! The integral controller alone: its law, its limits, its level against a slow twin, and what it refuses.
#![allow(clippy::unwrap_used)]

use evenhand_heaviness::controller::{ControllerError, Integral, Settings, gain_limit};
use proptest::prelude::*;

fn bare() -> Settings {
    let limits = Settings { slew: f64::INFINITY, idle: f64::INFINITY, ..Settings::default() };
    Settings { dead_band: 0.0, least: 0.01, most: 100.0, ..limits }
}

fn with(settings: Settings, weights: &[f64]) -> Integral {
    let mut controller = Integral::new(settings).unwrap();
    for (i, weight) in weights.iter().enumerate() {
        assert_eq!(controller.add(), i);
        controller.set_weight(i, *weight);
    }
    controller
}

fn logs(controller: &Integral) -> Vec<f64> {
    controller.weights().map(f64::ln).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * (1.0 + b.abs())
}

#[test]
fn the_law_by_hand() {
    let mut controller = with(bare(), &[1.0, 1.0, 2.0]);
    controller.update(&[1.0, 2.0, 6.0], &[1.0; 3]).unwrap();
    let expected = [0.3 * 2.0, 0.3, 2.0_f64.ln() - 0.3 * 3.0];
    assert!(logs(&controller).iter().zip(expected).all(|(a, b)| close(*a, b)), "{:?}", logs(&controller));
    // By activity: a level of 5, of which the first knows nothing.
    let mut controller = with(bare(), &[1.0, 1.0, 1.0]);
    controller.update(&[1.0, 2.0, 6.0], &[0.0, 1.0, 3.0]).unwrap();
    assert!(logs(&controller).iter().zip([1.2, 0.9, -0.3]).all(|(a, b)| close(*a, b)), "{:?}", logs(&controller));
}

#[test]
fn damping_dead_band_and_slew() {
    let mut controller = with(Settings { damping: 0.75, ..bare() }, &[1.0, 1.0]);
    for expected in [0.25, 0.25 + 0.4375] {
        controller.update(&[0.0, 2.0], &[1.0; 2]).unwrap();
        assert!(close(logs(&controller)[0], 0.3 * expected), "{:?}", logs(&controller));
    }
    let mut controller = with(Settings { dead_band: 0.5, slew: 0.1, ..Settings::default() }, &[1.0, 1.0, 3.0]);
    controller.update(&[1.0, 2.0, 1.5], &[1.0; 3]).unwrap();
    assert!(logs(&controller)[..2] == [0.0, 0.0]);
    controller.update(&[1.0, 7.0, 4.0], &[1.0; 3]).unwrap();
    let expected = [0.1, -0.1, 3.0_f64.ln()];
    assert!(logs(&controller).iter().zip(expected).all(|(a, b)| close(*a, b)), "{:?}", logs(&controller));
}

/// At an end a guest that is pushed further out takes no part in the level, and comes back at once when it is pushed
/// inwards: nothing winds up.
#[test]
fn guests_at_an_end() {
    let mut controller = with(bare(), &[100.0, 1.0, 1.0]);
    controller.update(&[-50.0, 1.0, 3.0], &[1.0; 3]).unwrap();
    let expected = [100.0_f64.ln(), 0.3, -0.3];
    assert!(logs(&controller).iter().zip(expected).all(|(a, b)| close(*a, b)), "{:?}", logs(&controller));
    for _ in 0..100 {
        controller.update(&[-50.0, 1.0, 1.0], &[1.0; 3]).unwrap();
    }
    controller.update(&[4.0, 1.0, 1.0], &[1.0; 3]).unwrap();
    assert!(close(logs(&controller)[0], 100.0_f64.ln() - 0.6));
    // All at ends, and each where it belongs: a rest.
    let mut controller = with(bare(), &[100.0, 100.0, 0.01]);
    let before = logs(&controller);
    controller.update(&[1.0, 2.0, 3.0], &[1.0; 3]).unwrap();
    assert_eq!(logs(&controller), before);
}

#[test]
fn guests_come_and_go() {
    let mut controller = with(Settings::default(), &[0.5, 2.0, 4.0]);
    controller.remove(1);
    controller.remove(7);
    assert_eq!((controller.guests(), controller.add()), (2, 2));
    assert!(controller.weights().zip([0.5, 4.0, 1.0]).all(|(a, b)| close(a, b)));
    assert_eq!(controller.weight(9), 1.0);
    controller.age(0.5);
    assert!(controller.weights().zip([0.5_f64.sqrt(), 2.0, 1.0]).all(|(a, b)| close(a, b)));
    controller.age(f64::NAN);
    assert!(controller.weights().all(|w| w == 1.0));
    for odd in [0.0, -1.0, f64::NAN] {
        controller.set_weight(0, odd);
        assert_eq!(controller.weight(0), 1.0);
    }
    controller.set_weight(0, f64::INFINITY);
    assert!(close(controller.weight(0), 10.0) && controller.weight(0) <= 10.0);
    let mut none = Integral::new(Settings::default()).unwrap();
    none.update(&[], &[]).unwrap();
}

#[test]
fn what_is_refused() {
    let wrong = |settings| matches!(Integral::new(settings), Err(ControllerError::Setting { .. }));
    let s = Settings::default();
    for bad in [f64::NAN, -1.0] {
        assert!(wrong(Settings { gain: bad, ..s }) && wrong(Settings { damping: bad, ..s }));
        assert!(wrong(Settings { dead_band: bad, ..s }) && wrong(Settings { slew: bad, ..s }));
        assert!(wrong(Settings { least: bad, ..s }) && wrong(Settings { most: bad, ..s }));
    }
    assert!(wrong(Settings { gain: 0.0, ..s }) && wrong(Settings { damping: 1.0, ..s }));
    assert!(wrong(Settings { least: 2.0, ..s }) && wrong(Settings { most: f64::INFINITY, ..s }));
    let mut controller = with(s, &[1.0, 2.0]);
    let before = controller.clone();
    assert!(matches!(controller.update(&[1.0], &[1.0; 2]), Err(ControllerError::Guests { found: 1, guests: 2, .. })));
    for (h, a) in [([f64::NAN, 1.0], [1.0; 2]), ([f64::INFINITY, 1.0], [1.0; 2]), ([1.0; 2], [-1.0, 1.0])] {
        assert_eq!(
            controller.update(&h, &a).map_err(|e| matches!(e, ControllerError::NotANumber { guest: 0, .. })),
            Err(true)
        );
    }
    assert!(controller.set_gain(0.0).is_err());
    assert_eq!(controller, before);
    controller.set_gain(0.1).unwrap();
    assert_ne!(controller, before);
}

#[test]
fn bounded_is_half_the_limit() {
    let s = Settings { damping: 0.5, ..Settings::default() };
    assert_eq!(s.bounded(1.0).gain, 0.3);
    assert!(close(s.bounded(100.0).gain, gain_limit(100.0, 0.5) / 2.0) && close(s.bounded(100.0).gain, 0.03));
}

/// The level, slowly: of all sets of guests that could move, the one that its own mean confirms.
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
    /// H12, H11 and the level against its twin, with ties, guests at ends, and idle ones.
    #[test]
    fn the_level_is_the_twins(
        guests in prop::collection::vec((-6_i8..=6, 0_u8..=3, -1_i8..=1), 1..7),
    ) {
        let h: Vec<f64> = guests.iter().map(|(h, ..)| f64::from(*h) / 2.0).collect();
        let a: Vec<f64> = guests.iter().map(|(_, a, _)| f64::from(*a)).collect();
        let ends: Vec<i8> = guests.iter().map(|(.., end)| *end).collect();
        let start: Vec<f64> = ends.iter().map(|end| [0.01, 1.0, 100.0][(end + 1) as usize]).collect();
        let mut controller = with(Settings { gain: 0.01, ..bare() }, &start);
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

    /// Whatever is measured, weights stay in their range, move at most by the slew limit, and are the same for
    /// the same numbers.
    #[test]
    fn weights_stay_in_range(
        updates in prop::collection::vec(prop::collection::vec((prop::num::f64::NORMAL, 0.0_f64..1e300), 4), 1..30),
        damping in 0.0_f64..0.99,
    ) {
        let settings = Settings { damping, slew: 0.5, least: 0.25, most: 8.0, ..Settings::default() };
        let mut controller = with(settings, &[1.0; 4]);
        let mut twin = controller.clone();
        for update in updates {
            let (h, a): (Vec<f64>, Vec<f64>) = update.into_iter().unzip();
            let before = logs(&controller);
            controller.update(&h, &a).unwrap();
            twin.update(&h, &a).unwrap();
            prop_assert_eq!(&controller, &twin);
            prop_assert!(controller.weights().all(|w| (0.25..=8.0).contains(&w)));
            prop_assert!(before.iter().zip(logs(&controller)).all(|(a, b)| (a - b).abs() <= 0.5 + 1e-12));
        }
    }
}

/// The second does nothing and is lighter: it rises to twice what the busy one has, and no further; when it was
/// higher, it comes down to that. A heavier one falls freely.
#[test]
fn who_does_nothing_waits_just_above_those_who_are_busy() {
    let settings = Settings { dead_band: 0.0, ..Settings::default() };
    let mut controller = with(settings, &[0.5, 1.0, 1.0]);
    for _ in 0..100 {
        controller.update(&[1.0, 0.0, 2.0], &[1.0, 0.0, 0.0]).unwrap();
    }
    let busy = controller.weight(0);
    assert!(close(controller.weight(1), 2.0 * busy) && close(controller.weight(2), 0.1), "{controller:?}");
    let mut controller = with(settings, &[0.5, 8.0]);
    controller.update(&[1.0, 0.0], &[1.0, 0.02]).unwrap();
    // At most a halving an update; 0.02 of 1.02 is less than a twentieth of an equal part, 0.03 is not.
    assert!(controller.weight(1) < 8.0, "{controller:?}");
    let mut controller = with(settings, &[0.5, 8.0]);
    controller.update(&[1.0, 0.0], &[1.0, 0.03]).unwrap();
    assert!(controller.weight(1) > 8.0, "{controller:?}");
}
