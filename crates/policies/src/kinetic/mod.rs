//! Structures that keep users ordered by priority.
//!
//! Two kinds, because priorities are of two kinds:
//!
//! * [`WinnerTree`]: priorities that change only when their user is touched (fifo, drf, asset).
//! * [`LineOrder`]: priorities that are maxima of straight lines in s and so change all the time
//!   (everything stateful). [`Scan`] is the plain one: below about a thousand waiting users a
//!   branch-free scan beats every tree (docs/simulation.md). Other structures for more
//!   users implement the same trait.

mod scan;
mod winner_tree;

pub use scan::Scan;
pub use winner_tree::WinnerTree;

/// Users ordered by max_r (a_r + b_r s), where s falls as time goes on.
pub trait LineOrder: Send {
    /// Puts `user` in, or gives it new lines: `a` and `b` have one entry a branch.
    fn set(&mut self, user: u32, a: &[f64], b: &[f64]);

    /// Takes `user` out; nothing happens if it is not in.
    fn remove(&mut self, user: u32);

    /// Puts into `near` (emptied first), in any order, every user whose priority at `s` is at most
    /// least + least * `relative` + `absolute`. `s` never rises between calls but for
    /// [`rebase`](LineOrder::rebase).
    fn least(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>);

    /// Multiplies every `b` by `factor`, a power of two: the epoch of s moved, no order changes.
    fn rebase(&mut self, factor: f64);

    /// Order changes so far, as paper 001 counts them.
    fn order_events(&self) -> u64;
}
