//! How much of a site's resources a job needs, and how much of them is free.

/// How many resources are counted at most.
pub const RESOURCES: usize = 3;

/// An amount of each resource that is counted: for what a job holds, or for what is free. The first resource, such as CPUs, is always
/// counted; of those that are not, every job needs 0.
///
/// What is free may be negative: jobs run on nodes that are not counted any more, as those that are drained.
///
/// ```
/// use evenhand_forecast::Size;
/// let free = Size::new([8, 0, -2]);
/// assert!(Size::from(8).fits(free));
/// assert!(!Size::new([1, 0, 1]).fits(free));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Size([i64; RESOURCES]);

impl From<i64> for Size {
    /// Returns an amount of the first resource and nothing else.
    fn from(first: i64) -> Size {
        let mut size = Size::ZERO;
        size.0[0] = first;
        size
    }
}

impl Size {
    /// Nothing.
    pub const ZERO: Size = Size([0; RESOURCES]);

    /// More than any job needs.
    pub(crate) const MAX: Size = Size([i64::MAX; RESOURCES]);

    /// Takes an amount of each resource.
    pub const fn new(amounts: [i64; RESOURCES]) -> Size {
        Size(amounts)
    }

    /// Returns the amounts.
    pub const fn amounts(self) -> [i64; RESOURCES] {
        self.0
    }

    /// Returns the amount of the first resource.
    pub const fn first(self) -> i64 {
        self.0[0]
    }

    /// Returns whether a job that needs this much fits into what is free. Of a resource of which it needs nothing, less than nothing
    /// may be free.
    pub fn fits(self, free: Size) -> bool {
        // Without a branch for each resource: this is the innermost step of a replay.
        self.0.iter().zip(free.0).fold(true, |fits, (&needed, free)| fits & (needed <= 0 || needed <= free))
    }

    /// Returns the sum; an amount that is out of range becomes the nearest that is not.
    #[must_use]
    pub fn plus(self, other: Size) -> Size {
        self.with(other, i64::saturating_add)
    }

    /// Returns the difference; an amount that is out of range becomes the nearest that is not.
    #[must_use]
    pub fn minus(self, other: Size) -> Size {
        self.with(other, i64::saturating_sub)
    }

    /// Returns the larger amount of each resource.
    #[must_use]
    pub fn larger(self, other: Size) -> Size {
        self.with(other, i64::max)
    }

    /// Returns the smaller amount of each resource.
    #[must_use]
    pub fn smaller(self, other: Size) -> Size {
        self.with(other, i64::min)
    }

    fn with(self, other: Size, each: impl Fn(i64, i64) -> i64) -> Size {
        Size(std::array::from_fn(|r| each(self.0[r], other.0[r])))
    }

    /// Returns whether, if this is removed from amounts of which `least` is the smallest of each resource, the smallest may be larger. That of a
    /// resource of which this needs nothing stays 0, which keeps no job from starting.
    pub(crate) fn may_raise(self, least: Size) -> bool {
        self.0.iter().zip(least.0).any(|(&amount, least)| amount > 0 && amount == least)
    }

    /// Returns the resource of which this is the largest part of `capacity`, the first of those that are equal, and the amount of it.
    pub fn dominant(self, capacity: Size) -> (usize, i64) {
        let mut most = 0;
        for r in 1..RESOURCES {
            let part = |r: usize, of: usize| i128::from(self.0[r]) * i128::from(capacity.0[of].max(0));
            if self.0[r] > 0 && part(r, most) > part(most, r) {
                most = r;
            }
        }
        (most, self.0[most])
    }

    /// Returns the amount of the first resource that is the same part of `capacity` as the dominant amount, rounded down.
    pub(crate) fn as_first(self, capacity: Size) -> i64 {
        let (r, amount) = self.dominant(capacity);
        if r == 0 {
            return amount;
        }
        let scaled = i128::from(amount) * i128::from(capacity.0[0].max(0)) / i128::from(capacity.0[r].max(1));
        i64::try_from(scaled).unwrap_or(i64::MAX)
    }

    /// Returns the resources of which this needs some, with that amount; the first always.
    pub(crate) fn needed(self) -> impl Iterator<Item = (usize, i64)> {
        self.0.into_iter().enumerate().filter(|(r, amount)| *r == 0 || *amount > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_fits_if_enough_is_free_of_all_that_it_needs_and_of_nothing_else() {
        let free = Size::new([4, -100, 2]);
        assert!(Size::new([4, 0, 2]).fits(free));
        assert!(Size::from(1).fits(free), "it needs nothing of what a drained node lacks");
        for short in [Size::new([5, 0, 0]), Size::new([1, 1, 0]), Size::new([1, 0, 3])] {
            assert!(!short.fits(free), "{short:?}");
        }
        assert!(Size::ZERO.fits(Size::new([-1, -1, -1])));
    }

    #[test]
    fn sums_stay_in_range() {
        let most = Size::new([i64::MAX, 1, i64::MIN]);
        assert_eq!(most.plus(most), Size::new([i64::MAX, 2, i64::MIN]));
        assert_eq!(Size::ZERO.minus(most), Size::new([-i64::MAX, -1, i64::MAX]));
        let (a, b) = (Size::new([1, 5, 3]), Size::new([2, 4, 3]));
        assert_eq!((a.larger(b), a.smaller(b)), (Size::new([2, 5, 3]), Size::new([1, 4, 3])));
    }

    #[test]
    fn the_dominant_resource_is_that_of_the_largest_part_and_of_equal_ones_the_first() {
        let capacity = Size::new([100, 1000, 8]);
        assert_eq!(Size::new([10, 100, 0]).dominant(capacity), (0, 10));
        assert_eq!(Size::new([10, 101, 0]).dominant(capacity), (1, 101));
        assert_eq!(Size::new([1, 0, 4]).dominant(capacity), (2, 4));
        assert_eq!(Size::new([1, 0, 4]).as_first(capacity), 50);
        // What the site does not have is more than all that it has.
        assert_eq!(Size::new([100, 1000, 1]).dominant(Size::new([100, 1000, 0])), (2, 1));
        assert_eq!(Size::from(7).as_first(Size::from(3)), 7);
        let huge = Size::new([1, i64::MAX, 0]);
        assert_eq!(huge.as_first(Size::new([i64::MAX, 1, 0])), i64::MAX);
    }

    #[test]
    fn the_smallest_of_a_block_stays_where_none_is_needed() {
        let least = Size::new([2, 0, 0]);
        assert!(Size::new([2, 7, 1]).may_raise(least));
        assert!(!Size::new([3, 0, 0]).may_raise(least));
    }
}
