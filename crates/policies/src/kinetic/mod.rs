//! Structures that keep users ordered by priority.
//!
//! Two kinds, because priorities are of two kinds:
//!
//! * [`WinnerTree`]: priorities that change only when their user is touched (fifo, drf, asset).
//! * [`LineOrder`]: priorities that are maxima of straight lines in s and so change all the time
//!   (everything stateful).
//!
//! | structure | knows | best for |
//! |---|---|---|
//! | [`Scan`] | nothing: it looks at all users, in vectors | up to about 3,000 waiting users |
//! | [`Tournament`] | who is lowest, and until when | more |
//! | [`LiveLines`] | the whole order, as Sadok et al. (2021) keeps it | counting order changes |
//!
//! [`Order`] names them; how they compare is measured in docs/src/explanation/performance.md. Beneath the last is
//! [`LiveTree`], which keeps anything in order whose priorities move in a known way.

mod lines;
mod live_lines;
mod live_tree;
mod order;
mod scan;
mod tournament;
mod winner_tree;

pub use live_lines::LiveLines;
pub use live_tree::{LiveTree, Priority};
pub use order::{Order, OrderError};
pub use scan::Scan;
pub use tournament::Tournament;
pub use winner_tree::WinnerTree;

/// Users ordered by max_r (a_r + b_r s), where s falls as time goes on.
pub trait LineOrder: Send {
    /// Puts `user` in, or gives it new lines: `a` and `b` have one entry a branch.
    fn set(&mut self, user: u32, a: &[f64], b: &[f64]);

    /// Takes `user` out; nothing happens if it is not in.
    fn remove(&mut self, user: u32);

    /// Puts into `near` (emptied first), in any order, every user whose priority at `s` is at most
    /// lowest + |lowest| * `relative` + `absolute`, all in `f64`. `s` is above 0 and never rises between
    /// calls but for [`rebase`](LineOrder::rebase).
    fn lowest(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>);

    /// Multiplies every `b` by `factor`, a power of two or 0: the epoch of s moved, no order changes.
    fn rebase(&mut self, factor: f64);

    /// What the passing of time alone changed in the order so far: for [`LiveLines`] as Sadok et al. (2021)
    /// counts it; other structures document their own count.
    fn order_events(&self) -> u64;
}

/// Up to which priority users are near the lowest.
#[inline]
fn limit(lowest: f64, relative: f64, absolute: f64) -> f64 {
    lowest + (lowest.abs() * relative + absolute)
}

/// By how much two priorities near `value` may be in another order in `f64` than exactly, if no slope
/// is steeper than `steepest`. A product and a sum round each of them; this is twice that and more, below the normal numbers
/// too.
#[inline]
fn may_be_off(value: f64, steepest: f64, s: f64) -> f64 {
    8.0 * f64::EPSILON * (value.abs() + steepest * s) + f64::MIN_POSITIVE
}
