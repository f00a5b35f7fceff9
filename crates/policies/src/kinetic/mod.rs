//! Structures that keep users ordered by priority.
//!
//! Two kinds, because priorities are of two kinds:
//!
//! * [`WinnerTree`]: priorities that change only by updates of their user (fifo, drf, asset).
//! * [`LineOrder`]: priorities that are maxima of straight lines in s and so change continuously (all stateful
//!   policies).
//!
//! | structure | keeps | best for |
//! |---|---|---|
//! | [`Scan`] | no order: evaluates users in blocks, with vector instructions | up to about 3,000 waiting users |
//! | [`Tournament`] | the lowest user, and until when it stays lowest | more users |
//! | [`LiveLines`] | the whole order, as in Sadok et al. (2021) | counting order changes |
//!
//! [`Order`] selects one by name; docs/src/explanation/performance.md compares them. [`LiveLines`] is based on
//! [`LiveTree`], which keeps any elements in order whose priorities change in a known way.

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

/// Users ordered by max_r (a_r + b_r s), where s decreases over time.
pub trait LineOrder: Send {
    /// Inserts `user`, or replaces its lines. `a` and `b` have one entry per branch.
    fn set(&mut self, user: u32, a: &[f64], b: &[f64]);

    /// Removes `user`; does nothing if it is absent.
    fn remove(&mut self, user: u32);

    /// Clears `near` and fills it, in any order, with all users whose priority at `s` is at most
    /// lowest + |lowest| * `relative` + `absolute`, all in `f64`. `s` must be above 0 and must not increase between
    /// calls, except after a [`rebase`](LineOrder::rebase).
    fn lowest(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>);

    /// Multiplies every `b` by `factor`, a power of two or 0, after a change of the epoch of s. The order does not
    /// change.
    fn rebase(&mut self, factor: f64);

    /// Returns the number of order changes so far by the passing of time alone: for [`LiveLines`] as in Sadok et al.
    /// (2021); other structures document their own count.
    fn order_events(&self) -> u64;
}

/// Returns the highest priority that counts as near the lowest.
#[inline]
fn limit(lowest: f64, relative: f64, absolute: f64) -> f64 {
    lowest + (lowest.abs() * relative + absolute)
}

/// Returns a bound on the difference of two priorities near `value` whose order in `f64` may differ from the exact
/// order, if no slope is steeper than `steepest`. Each priority is rounded in a product and a sum; the bound is more
/// than twice that error, and also holds for subnormal numbers.
#[inline]
fn rounding_bound(value: f64, steepest: f64, s: f64) -> f64 {
    8.0 * f64::EPSILON * (value.abs() + steepest * s) + f64::MIN_POSITIVE
}
