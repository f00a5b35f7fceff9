//! The clock as a line: how commitments decay.

use evenhand_model::{Quantity, Rational, Span, Time};
use thiserror::Error;

use crate::extended_precision::ExtendedFloat;

/// The decay of Eq. 6 of Sadok et al. (2021): after t seconds a commitment keeps e^(-t / tau) of its distance
/// to the present overuse, tau = -1 s / ln(delta).
///
/// ```
/// use evenhand_model::Quantity;
/// use evenhand_policies::Decay;
/// let d = Decay::from_delta(&Quantity::parse("0.999999").unwrap()).unwrap();
/// assert!((d.tau_s() - 999_999.5).abs() < 1e-6);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decay {
    /// Half-lives a nanosecond: 1 / H. Times are turned into half-lives by one multiplication.
    per_nanosecond: ExtendedFloat,
    /// ln 2 / H
    rate: ExtendedFloat,
    delta: f64,
    tau_s: f64,
}

/// Why a decay is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecayError {
    /// delta is not strictly between 0 and 1.
    #[error(
        "delta is {found}, expected a number greater than 0 and less than 1 (the nearer to 1, the longer the memory)"
    )]
    Delta {
        /// What was given.
        found: String,
    },
    /// The half-life is zero.
    #[error("the half-life is 0, expected a time greater than 0 (for no memory at all use the policy drf)")]
    HalfLife,
}

impl Decay {
    /// The discount factor a second where none is chosen; Sadok et al. (2021) find it best at every load.
    pub const DEFAULT_DELTA: &'static str = "0.999999";

    /// From the discount factor a second.
    ///
    /// From the decimal text, not from its `f64`: at 1 - 1e-7 the latter is off by 5e-10.
    ///
    /// # Errors
    /// If delta is not strictly between 0 and 1.
    pub fn from_delta(delta: &Quantity) -> Result<Decay, DecayError> {
        if delta.is_zero() || *delta.exact() >= Rational::ONE {
            return Err(DecayError::Delta { found: delta.to_string() });
        }
        let rate_per_s = ExtendedFloat::minus_ln(delta.exact());
        let per_nanosecond = rate_per_s * ExtendedFloat::LOG2_E * one_over(1_000_000_000);
        let rate = rate_per_s * one_over(1_000_000_000);
        Ok(Decay { per_nanosecond, rate, delta: delta.to_f64(), tau_s: 1.0 / rate_per_s.to_f64() })
    }

    /// From the time after which half of a commitment is forgotten.
    ///
    /// # Errors
    /// If it is zero.
    pub fn from_half_life(half_life: Span) -> Result<Decay, DecayError> {
        if half_life == Span::ZERO {
            return Err(DecayError::HalfLife);
        }
        let tau_s = half_life.secs_f64() / std::f64::consts::LN_2;
        let per_nanosecond = one_over(half_life.nanos());
        let rate = per_nanosecond * ExtendedFloat::LN_2;
        Ok(Decay { per_nanosecond, rate, delta: libm::exp(-1.0 / tau_s), tau_s })
    }

    /// Returns what remains of 1 after `span`: e^(-span / tau), to an `f64`'s digits.
    pub fn kept(&self, span: Span) -> f64 {
        self.over(span).kept.to_f64()
    }

    /// What is kept and lost over `span`.
    #[inline]
    pub(crate) fn over(&self, span: Span) -> Kept {
        let x = ExtendedFloat::from_whole(span.nanos()) * self.rate;
        if x.is_below_half() {
            let lost = x.one_minus_exp();
            return Kept { kept: lost.one_minus(), lost, error: 0.0 };
        }
        self.over_half_lives(span)
    }

    fn over_half_lives(&self, span: Span) -> Kept {
        let (halvings, part) = half_lives(span, self.per_nanosecond);
        let lost_of_part = (part * ExtendedFloat::LN_2).one_minus_exp();
        let kept = (ExtendedFloat::ONE - lost_of_part).halved(halvings);
        // Not 1 - kept where nearly all is kept: that has no digits left.
        let lost = if halvings == 0 { lost_of_part } else { ExtendedFloat::ONE - kept };
        Kept { kept, lost, error: 2.0 * halvings as f64 }
    }

    /// The discount factor a second.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// The half-life in whole nanoseconds.
    pub(crate) fn half_life_ns(&self) -> u64 {
        (1.0 / self.per_nanosecond.to_f64() + 0.5) as u64
    }

    /// The time constant in seconds.
    pub fn tau_s(&self) -> f64 {
        self.tau_s
    }
}

/// e^(-t / tau) over some time, and what it lacks to 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) kept: ExtendedFloat,
    pub(crate) lost: ExtendedFloat,
    /// What the number of half-lives, which has 128 digits whole and rest together, makes `kept` be
    /// off, in units of its last digit.
    pub(crate) error: f64,
}

/// The clock s(t) = 2^-(half-lives since the epoch). With one decay every commitment is a straight line in s
/// (docs/src/explanation/DESIGN.md), so priorities are compared without an exponential.
///
/// ```
/// use evenhand_model::{Span, Time};
/// use evenhand_policies::{Clock, Decay};
/// let mut clock = Clock::new(Decay::from_half_life(Span::from_secs(10)).unwrap());
/// assert_eq!(clock.s(Time::from_secs(5), |_| ()), 1.0); // the first instant is the epoch
/// assert_eq!(clock.s(Time::from_secs(25), |_| ()), 0.25);
/// ```
///
/// Time is cut into stretches of a 2,048th of a half-life; s at the start of one is computed once
/// with care, and within it by five terms of the exponential's series, which are exact to an f64.
#[derive(Clone, Debug)]
pub struct Clock {
    decay: Decay,
    origin: Option<Time>,
    /// Whole half-lives by which the epoch lies after the origin.
    epoch: u64,
    /// The length of a stretch in nanoseconds.
    stretch: u64,
    /// The present stretch: its start after the origin, in nanoseconds, and s there.
    start: u64,
    s_at_start: f64,
    /// ln 2 / H: decay a nanosecond.
    rate: f64,
}

/// s never falls below 2^-this: past it the epoch moves on. Lines grow as 2^(half-lives), and 32
/// leaves all of an f64's digits to what is worth remembering.
const HALF_LIVES_AN_EPOCH: u64 = 32;

impl Clock {
    /// Returns a clock whose epoch begins at the first instant it is asked for.
    pub fn new(decay: Decay) -> Clock {
        let per_nanosecond = decay.per_nanosecond.to_f64();
        let stretch = ((1.0 / per_nanosecond + 0.5) as u64 / 2048).max(1);
        let rate = std::f64::consts::LN_2 * per_nanosecond;
        Clock { decay, origin: None, epoch: 0, stretch, start: 0, s_at_start: 1.0, rate }
    }

    /// Returns s at `now`, in (2^-33, 1]. If the epoch moves, calls `rebase` first, with the power of two by which
    /// every line's slope must be multiplied: a whole power, so that no comparison changes. `now` never decreases.
    #[inline]
    pub fn s(&mut self, now: Time, rebase: impl FnMut(f64)) -> f64 {
        let origin = *self.origin.get_or_insert(now);
        let since_origin = (now - origin).nanos();
        if since_origin.wrapping_sub(self.start) >= self.stretch {
            self.begin_stretch(since_origin, rebase);
        }
        let x = self.rate * (since_origin - self.start) as f64;
        // e^-x for x below 4e-4; the next term is below 1e-19.
        self.s_at_start * (1.0 - x * (1.0 - x * (1.0 / 2.0) * (1.0 - x * (1.0 / 3.0) * (1.0 - x * (1.0 / 4.0)))))
    }

    /// Whole half-lives from the first instant to the epoch: the sum of all powers passed to `rebase`.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    fn begin_stretch(&mut self, since_origin: u64, mut rebase: impl FnMut(f64)) {
        self.start = since_origin - since_origin % self.stretch;
        let (whole, part) = half_lives(Span::from_nanos(self.start), self.decay.per_nanosecond);
        let mut since_epoch = whole - self.epoch;
        if since_epoch > HALF_LIVES_AN_EPOCH {
            self.epoch = whole;
            rebase(two_to_minus(since_epoch));
            since_epoch = 0;
        }
        self.s_at_start = libm::exp2(-part.to_f64()) * two_to_minus(since_epoch);
    }
}

/// 2^-n; 0 below the normal `f64`: what is older than 1,022 half-lives is gone.
#[inline]
pub(crate) fn two_to_minus(n: u64) -> f64 {
    f64::from_bits(1023u64.saturating_sub(n) << 52)
}

/// `span` in half-lives, as a whole number and a rest in [0, 1).
///
/// In more digits than an `f64` has: at delta = 0.9 a month has 400,000 half-lives, and what is kept
/// of the rest decides ties.
fn half_lives(span: Span, per_nanosecond: ExtendedFloat) -> (u64, ExtendedFloat) {
    (ExtendedFloat::from_whole(span.nanos()) * per_nanosecond).split()
}

fn one_over(n: u64) -> ExtendedFloat {
    ExtendedFloat::from_rational(&(Rational::ONE / Rational::from(n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tau_is_that_of_the_reference() {
        // tau = -1 s / ln(1 - 10^-k), to ten digits.
        for (k, tau) in [(1, 9.491221581), (2, 99.49916247), (4, 9999.49999), (6, 999999.5), (7, 9999999.505)] {
            let delta = Rational::ONE - Rational::from_parts(1.into(), evenhand_model::UBig::from(10u8).pow(k));
            let d = Decay::from_delta(&Quantity::from(delta)).unwrap();
            assert!((d.tau_s() / tau - 1.0).abs() < 1e-8, "{k}: {}", d.tau_s());
        }
    }

    #[test]
    fn delta_outside_zero_and_one_is_refused() {
        for bad in ["0", "1", "1.5"] {
            assert!(Decay::from_delta(&Quantity::parse(bad).unwrap()).is_err(), "{bad}");
        }
        assert_eq!(Decay::from_half_life(Span::ZERO), Err(DecayError::HalfLife));
    }

    #[test]
    fn s_halves_every_half_life_across_epochs() {
        let mut clock = Clock::new(Decay::from_half_life(Span::from_secs(16)).unwrap());
        let mut factor = 1.0;
        assert_eq!(clock.s(Time::from_secs(5), |_| ()), 1.0);
        for half_lives in 1..200u64 {
            let s = clock.s(Time::from_secs(5 + 16 * half_lives), |f| factor *= f);
            assert_eq!(s * factor * 2f64.powi(half_lives as i32), 1.0, "{half_lives}");
        }
        assert!(factor < 2f64.powi(-100));
    }

    #[test]
    fn s_is_the_exponential_between_stretches_too() {
        for half_life_ns in [1, 2047, 4096, 1_000_003, 691_200_000_000_000] {
            let mut clock = Clock::new(Decay::from_half_life(Span::from_nanos(half_life_ns)).unwrap());
            clock.s(Time::ZERO, |_| ());
            for i in 0..2_000u64 {
                let now = (i * half_life_ns / 99).min(20 * half_life_ns) + i % 7;
                let s = clock.s(Time::from_nanos(now.min(30 * half_life_ns)), |_| panic!("one epoch"));
                let expected = libm::exp2(-(now.min(30 * half_life_ns) as f64 / half_life_ns as f64));
                assert!((s / expected - 1.0).abs() < 1e-14, "{half_life_ns} {i}: {s} {expected}");
            }
        }
    }

    #[test]
    fn many_half_lives_keep_their_digits() {
        // 400,000.25 half-lives of 8 ns, whose inverse is exact.
        let (whole, part) = half_lives(Span::from_nanos(400_000 * 8 + 2), one_over(8));
        assert_eq!((whole, part.to_f64()), (400_000, 0.25));
        let (whole, part) = half_lives(Span::from_nanos((1 << 61) + 3), one_over(1024));
        assert_eq!((whole, part.to_f64()), (1 << 51, 3.0 / 1024.0));
    }
}
