//! Packs the intervals of a lane into rows, and reduces each row to the blocks that are visible.

/// A period in which a client uses a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval<T> {
    /// Index of the client.
    pub client: usize,
    /// Beginning.
    pub from: T,
    /// End (exclusive).
    pub until: T,
}

/// Packs intervals into the minimum number of rows without overlap (one row per server of a resource), each row in
/// order of time.
///
/// Adjacent intervals of one client in a row merge. Empty and reversed intervals are omitted. An interval goes to the
/// free row whose last interval it continues, else to the first free row. Takes O(n log n + n rows) time.
pub fn pack_intervals<T: PartialOrd + Copy>(intervals: &[Interval<T>]) -> Vec<Vec<Interval<T>>> {
    let mut sorted: Vec<Interval<T>> = intervals.iter().filter(|i| i.from < i.until).copied().collect();
    let compare = |a: &T, b: &T| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal);
    sorted.sort_by(|a, b| {
        compare(&a.from, &b.from).then(a.client.cmp(&b.client)).then_with(|| compare(&a.until, &b.until))
    });
    let mut rows: Vec<Vec<Interval<T>>> = Vec::new();
    for interval in sorted {
        let meets =
            |last: &&mut Interval<T>| last.client == interval.client && compare(&last.until, &interval.from).is_eq();
        if let Some(last) = rows.iter_mut().filter_map(|row| row.last_mut()).find(meets) {
            last.until = interval.until;
            continue;
        }
        match rows.iter_mut().find(|row| row.last().is_none_or(|last| last.until <= interval.from)) {
            Some(row) => row.push(interval),
            None => rows.push(vec![interval]),
        }
    }
    rows
}

/// A rectangle of a drawn row: horizontal position in pixels, vertical position in fractions of the row's height from
/// the bottom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) client: usize,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Intervals narrower than this many pixels cannot be distinguished.
const NARROW: f64 = 1.0;
/// Width in pixels of the columns in which narrow intervals are summed.
const COLUMN: f64 = 2.0;

/// Returns the blocks that draw a row of intervals without overlap within `0..width` pixels.
///
/// An interval is a block as high as the row. A column with two or more intervals narrower than a pixel is divided by
/// height in proportion to the clients' use of that time. So the area of a client is proportional to its use at any
/// scale, and the width bounds the number of blocks, however many intervals there are.
pub(super) fn visible_blocks(row: &[Interval<f64>], width: f64) -> Vec<Block> {
    let count = (width / COLUMN).ceil().max(1.0) as usize;
    let column = |x: f64| ((x / COLUMN).max(0.0) as usize).min(count - 1);
    // An interval that ends at the edge of a column does not reach the next column.
    let last_column = |i: &Interval<f64>| column((i.until / COLUMN).ceil() * COLUMN - COLUMN).max(column(i.from));
    let mut narrow = vec![0u32; count];
    for interval in row.iter().filter(|i| i.until - i.from < NARROW) {
        narrow[column(interval.from)..=last_column(interval)].iter_mut().for_each(|n| *n += 1);
    }
    let dense = |c: usize| narrow[c] >= 2;
    let mut blocks = Vec::new();
    let mut used = Used { column: 0, by_client: Vec::new() };
    for interval in row {
        let &Interval { client, from, until } = interval;
        let (first, last) = (column(from), last_column(interval));
        let mut whole_from = from;
        for c in first..=last {
            let (begin, end) = (c as f64 * COLUMN, if c == last { until } else { (c + 1) as f64 * COLUMN });
            if dense(c) {
                if whole_from < begin {
                    blocks.push(Block { client, left: whole_from, right: begin, low: 0.0, high: 1.0 });
                }
                if used.column != c {
                    used.stack(&mut blocks, width);
                    used.column = c;
                }
                used.add(client, end - begin.max(from));
                whole_from = end;
            }
        }
        if whole_from < until {
            blocks.push(Block { client, left: whole_from, right: until, low: 0.0, high: 1.0 });
        }
    }
    used.stack(&mut blocks, width);
    blocks
}

/// The use of one column by each client, in pixels.
struct Used {
    column: usize,
    by_client: Vec<(usize, f64)>,
}

impl Used {
    fn add(&mut self, client: usize, part: f64) {
        match self.by_client.iter_mut().find(|(c, _)| *c == client) {
            Some((_, sum)) => *sum += part,
            None => self.by_client.push((client, part)),
        }
    }

    /// Stacks the clients in the order of their indices and clears the column.
    fn stack(&mut self, blocks: &mut Vec<Block>, width: f64) {
        let left = self.column as f64 * COLUMN;
        let right = (left + COLUMN).min(width);
        self.by_client.sort_unstable_by_key(|(client, _)| *client);
        let mut low = 0.0;
        for (client, part) in self.by_client.drain(..) {
            let high = (low + part / (right - left)).min(1.0);
            blocks.push(Block { client, left, right, low, high });
            low = high;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interval(client: usize, from: u64, until: u64) -> Interval<u64> {
        Interval { client, from, until }
    }

    #[test]
    fn adjacent_intervals_merge_and_overlapping_ones_take_separate_rows() {
        let intervals = [interval(0, 0, 2), interval(1, 1, 3), interval(0, 2, 5), interval(1, 6, 6), interval(1, 3, 4)];
        assert_eq!(pack_intervals(&intervals), [vec![interval(0, 0, 5)], vec![interval(1, 1, 4)]]);
        assert_eq!(pack_intervals::<u64>(&[]), Vec::<Vec<Interval<u64>>>::new());
    }

    proptest! {
        #[test]
        fn the_minimum_number_of_rows_holds_all_use_without_overlap(
            parts in prop::collection::vec((0..4usize, 0..60u64, 0..9u64), 0..60),
        ) {
            let all: Vec<_> = parts.iter().map(|&(client, from, length)| interval(client, from, from + length)).collect();
            let rows = pack_intervals(&all);
            for row in &rows {
                prop_assert!(row.windows(2).all(|pair| pair[0].until <= pair[1].from));
                prop_assert!(row.windows(2).all(|pair| pair[0].until < pair[1].from || pair[0].client != pair[1].client));
            }
            // At every instant each client has as many intervals as before, and every row is needed.
            let mut max_overlap = 0;
            for at in 0..70 {
                let running = |client| move |i: &&Interval<u64>| i.client == client && i.from <= at && at < i.until;
                for client in 0..4 {
                    let packed = rows.iter().flatten().filter(running(client)).count();
                    prop_assert_eq!(all.iter().filter(running(client)).count(), packed);
                }
                max_overlap = max_overlap.max(all.iter().filter(|i| i.from <= at && at < i.until).count());
            }
            prop_assert_eq!(rows.len(), max_overlap);
        }

        #[test]
        fn the_area_of_a_client_is_its_use_and_all_blocks_lie_within_the_row(
            parts in prop::collection::vec((0..3usize, prop_oneof![Just(0.0), 0.0..0.5, 0.0..9.0f64], prop_oneof![0.001..0.1f64, 0.1..1.5f64, 1.0..30.0f64]), 0..200),
            spare in 0.0..3.0f64,
        ) {
            let mut at = 0.0;
            let mut row = Vec::new();
            for (client, gap, length) in parts {
                let from = at + gap;
                at = from + length;
                row.push(Interval { client, from, until: at });
            }
            let width = at + spare + 0.5;
            let drawn = visible_blocks(&row, width);
            for client in 0..3 {
                let used: f64 = row.iter().filter(|i| i.client == client).map(|i| i.until - i.from).sum();
                let own = drawn.iter().filter(|p| p.client == client);
                let area: f64 = own.map(|p| (p.right - p.left) * (p.high - p.low)).sum();
                prop_assert!((used - area).abs() < 1e-6 * width, "{used} used, {area} drawn");
            }
            for block in &drawn {
                prop_assert!(0.0 <= block.left && block.left < block.right && block.right <= width);
                prop_assert!(0.0 <= block.low && block.low < block.high && block.high <= 1.0, "{block:?}");
            }
            // Wherever a client runs, it is drawn.
            for i in &row {
                let middle = (i.from + i.until) / 2.0;
                let there = |p: &Block| p.client == i.client && p.left <= middle && middle <= p.right;
                prop_assert!(drawn.iter().any(there), "{i:?}");
            }
            for (a, b) in drawn.iter().enumerate().flat_map(|(n, a)| drawn[n + 1..].iter().map(move |b| (a, b))) {
                let apart = a.right <= b.left || b.right <= a.left || a.high <= b.low || b.high <= a.low;
                prop_assert!(apart, "{a:?} {b:?}");
            }
            prop_assert!(drawn.len() as f64 <= 3.0 * width + 5.0, "{} blocks on {width} pixels", drawn.len());
        }
    }
}
