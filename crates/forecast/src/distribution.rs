//! A distribution of waits: seconds and how much each counts.

/// A wait of a similar job: how long, whether it is over, and how much it counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    /// Seconds.
    pub(crate) wait: i64,
    /// Whether the job has started; else it has waited so long and waits on.
    pub(crate) over: bool,
    pub(crate) weight: f64,
}

/// A distribution of waits, by length; the weights add to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Distribution(Vec<(i64, f64)>);

/// A wait that is longer than all that are over is taken to last this much longer than it lasted so far.
const LONGER: f64 = 1.5;

impl Distribution {
    /// Takes values that count alike, in any order.
    pub(crate) fn of(values: impl IntoIterator<Item = i64>) -> Distribution {
        let mut points: Vec<(i64, f64)> = values.into_iter().map(|value| (value, 1.0)).collect();
        points.sort_by_key(|p| p.0);
        Distribution(points).normalized()
    }

    /// Estimates the distribution of waits of which some are not over (Kaplan and Meier 1958): what such a wait counts
    /// passes to the longer ones.
    pub(crate) fn of_seen(seen: &mut [Seen]) -> Distribution {
        seen.sort_by_key(|s| (s.wait, !s.over));
        let mut left: f64 = seen.iter().map(|s| s.weight).sum();
        let mut remaining = 1.0;
        let mut points = Vec::with_capacity(seen.len() + 1);
        for s in seen.iter() {
            if s.over && left > 0.0 {
                let part = (s.weight / left).min(1.0) * remaining;
                points.push((s.wait, part));
                remaining -= part;
            }
            left -= s.weight;
        }
        if let Some(last) = seen.last().filter(|_| remaining > 1e-9) {
            points.push(((last.wait as f64 * LONGER) as i64, remaining));
        }
        Distribution(points).normalized()
    }

    /// Mixes distributions, each with its weight.
    pub(crate) fn mix<'a>(parts: impl IntoIterator<Item = (&'a Distribution, f64)>) -> Distribution {
        let weighted = |(d, weight): (&'a Distribution, f64)| d.0.iter().map(move |(value, w)| (*value, w * weight));
        let mut points: Vec<(i64, f64)> = parts.into_iter().flat_map(weighted).filter(|p| p.1 > 0.0).collect();
        points.sort_by_key(|p| p.0);
        Distribution(points).normalized()
    }

    /// Returns the distribution of those that are longer than `elapsed`, and the part that they are.
    pub(crate) fn longer_than(&self, elapsed: i64) -> (Distribution, f64) {
        let longer: Vec<(i64, f64)> = self.0.iter().copied().filter(|p| p.0 > elapsed).collect();
        let part = longer.iter().map(|p| p.1).sum();
        (Distribution(longer).normalized(), part)
    }

    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn normalized(mut self) -> Distribution {
        let sum: f64 = self.0.iter().map(|p| p.1).sum();
        self.0.iter_mut().for_each(|p| p.1 /= sum);
        self
    }

    /// Whether there is no value.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the least wait that at least the part `level` does not exceed; 0 without any value.
    pub(crate) fn quantile(&self, level: f64) -> i64 {
        let mut sum = 0.0;
        let reached = self.0.iter().find(|p| {
            sum += p.1;
            sum >= level - 1e-9
        });
        reached.or(self.0.last()).map_or(0, |p| p.0)
    }

    /// Returns the interval that holds at least the part `level` and is the shortest on the scale log(1 + wait); of
    /// equally short ones the earliest.
    pub(crate) fn shortest(&self, level: f64) -> (i64, i64) {
        let log = |wait: i64| libm::log1p(wait.max(0) as f64);
        let mut best: Option<(f64, i64, i64)> = None;
        let (mut held, mut next) = (0.0, 0);
        for (first, &(low, weight)) in self.0.iter().enumerate() {
            while held < level - 1e-9 && next < self.0.len() {
                held += self.0[next].1;
                next += 1;
            }
            if held < level - 1e-9 || next == 0 {
                break;
            }
            let high = self.0[next.max(first + 1) - 1].0;
            let width = log(high) - log(low);
            if best.is_none_or(|b| width < b.0 - 1e-12) {
                best = Some((width, low, high));
            }
            held -= weight;
        }
        best.map_or_else(|| (self.quantile(0.0), self.quantile(1.0)), |(_, low, high)| (low, high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(wait: i64, over: bool) -> Seen {
        Seen { wait, over, weight: 1.0 }
    }

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let d = Distribution::of([5, 1, 4, 2, 3]);
        assert_eq!([0.0, 0.1, 0.2, 0.21, 0.5, 0.9, 1.0].map(|q| d.quantile(q)), [1, 1, 1, 2, 3, 5, 5]);
        assert_eq!(Distribution::default().quantile(0.5), 0);
    }

    #[test]
    fn waits_that_go_on_pass_their_weight_to_longer_ones() {
        // The textbook case: 1 over, 2 goes on, 3 over, 4 over. Survival 3/4 after 1, then 3/8, then 0.
        let d = Distribution::of_seen(&mut [seen(3, true), seen(1, true), seen(2, false), seen(4, true)]);
        let weights: Vec<(i64, f64)> = d.0.iter().map(|p| (p.0, (p.1 * 1e6).round() / 1e6)).collect();
        assert_eq!(weights, [(1, 0.25), (3, 0.375), (4, 0.375)]);
        // The longest goes on: half of the weight lies beyond it.
        let d = Distribution::of_seen(&mut [seen(10, true), seen(20, false)]);
        assert_eq!((d.quantile(0.5), d.quantile(0.51)), (10, 30));
        assert!(Distribution::of_seen(&mut []).is_empty());
    }

    #[test]
    fn the_shortest_interval_leaves_out_the_far_ends() {
        let d = Distribution::of([0, 100, 101, 102, 103, 104, 105, 106, 107, 90_000]);
        assert_eq!(d.shortest(0.8), (100, 107));
        assert_eq!(d.shortest(1.0), (0, 90_000));
        // Zeros are an interval of their own.
        let d = Distribution::of([0, 0, 0, 0, 0, 0, 0, 0, 50, 60]);
        assert_eq!(d.shortest(0.8), (0, 0));
        assert_eq!(Distribution::of([7]).shortest(0.8), (7, 7));
    }

    #[test]
    fn mixtures_and_conditions_keep_the_weights_at_one() {
        let mixed = Distribution::mix([(&Distribution::of([1, 2]), 0.5), (&Distribution::of([3]), 0.5)]);
        assert_eq!((mixed.quantile(0.5), mixed.quantile(0.51)), (2, 3));
        let (longer, part) = mixed.longer_than(1);
        assert_eq!((longer.quantile(0.3), part), (2, 0.75));
        assert!(mixed.longer_than(3).0.is_empty());
    }
}
