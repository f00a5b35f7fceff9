//! On which of the machines on which it fits a chunk is put.

use std::ops::RangeInclusive;

use super::site::Site;

/// The rule by which a chunk is put on a machine. Ties go to the machine of the smallest number.
///
/// The scores are integers, so that a tie is a tie. Amounts are compared across resources as parts
/// of L_r, the maximum amount of resource r on any machine of the site: x_r is floor(2^32 amount_r / L_r).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The machine of the smallest number.
    #[default]
    FirstFit,
    /// The machine with the smallest free amount: the minimum sum over r of x_r of what is free.
    BestFit,
    /// The machine with the largest free amount: the maximum such sum.
    WorstFit,
    /// The machine whose free amounts resemble the chunk most in shape: the minimum sum over r of
    /// |d_r - f_r|, where d and f are x of the chunk and of what is free, each over its own largest
    /// entry (floor(2^32 x_r / max x)). After the best-fit heuristic of DRFH (Wang, Li, Liang:
    /// Dominant Resource Fairness in Cloud Computing Systems with Heterogeneous Servers, INFOCOM
    /// 2014), which divides by the first resource; this variant also covers a chunk that holds none of it.
    Dominant,
}

/// Every rule and its name.
pub const PLACEMENTS: [(&str, Placement); 4] = [
    ("first-fit", Placement::FirstFit),
    ("best-fit", Placement::BestFit),
    ("worst-fit", Placement::WorstFit),
    ("dominant", Placement::Dominant),
];

/// A [`Placement`] on one site.
#[derive(Clone, Debug)]
pub(crate) struct Scores {
    pub(crate) rule: Placement,
    largest: Vec<u64>,
    shape: Vec<u64>,
    other: Vec<u64>,
}

impl Scores {
    pub(crate) fn new(rule: Placement, site: &Site, width: usize) -> Scores {
        let largest = |r: usize| site.groups.iter().map(|g| g.has[r]).max().unwrap_or(0);
        Scores { rule, largest: (0..width).map(largest).collect(), shape: vec![0; width], other: vec![0; width] }
    }

    /// For the scores of one chunk to come.
    pub(crate) fn of_chunk(&mut self, chunk: &[u64]) {
        if self.rule == Placement::Dominant {
            shape(&self.largest, chunk, &mut self.shape);
        }
    }

    /// Returns the score of a machine; the machine with the minimum is chosen.
    #[inline]
    pub(crate) fn score(&mut self, free: &[u64]) -> u64 {
        match self.rule {
            Placement::FirstFit => 0,
            Placement::BestFit => self.size(free),
            Placement::WorstFit => u64::MAX - self.size(free),
            Placement::Dominant => {
                shape(&self.largest, free, &mut self.other);
                self.distance(&self.other)
            }
        }
    }

    /// The part of a score that does not depend on the chunk: all of it, but for [`Placement::Dominant`].
    pub(crate) fn of_free(&self, free: &[u64]) -> u64 {
        match self.rule {
            Placement::FirstFit | Placement::Dominant => 0,
            Placement::BestFit => self.size(free),
            Placement::WorstFit => u64::MAX - self.size(free),
        }
    }

    /// Appends the shape of what is free to `shapes` if the rule compares shapes.
    pub(crate) fn push_shape(&self, free: &[u64], shapes: &mut Vec<u64>) {
        if self.rule == Placement::Dominant {
            let from = shapes.len();
            shapes.resize(from + free.len(), 0);
            shape(&self.largest, free, &mut shapes[from..]);
        }
    }

    /// The score of machines given [its part](Scores::of_free) that does not depend on the chunk and their shape,
    /// which stands at place `class` among `shapes`.
    pub(crate) fn of_class(&self, of_free: u64, shapes: &[u64], class: usize) -> u64 {
        match self.rule {
            Placement::Dominant => self.distance(&shapes[class * self.shape.len()..][..self.shape.len()]),
            _ => of_free,
        }
    }

    /// The range of the [keys](Scores::key) of machines that have `has` when they are empty.
    pub(crate) fn keys(&self, has: &[u64]) -> RangeInclusive<u64> {
        match self.rule {
            Placement::FirstFit => 0..=0,
            Placement::BestFit => 0..=self.size(has),
            Placement::WorstFit => u64::MAX - self.size(has)..=u64::MAX,
            Placement::Dominant => 0..=(has.len() as u64) << 32,
        }
    }

    /// A number for machines by which those are found that have low scores, given [the part of their
    /// score](Scores::of_free) that does not depend on the chunk and their shape.
    ///
    /// For [`Placement::Dominant`] the sum of the shape's entries with alternating signs, shifted to be positive: for two
    /// resources its difference is the distance of two shapes, for more at most that.
    pub(crate) fn key(&self, of_free: u64, shape: &[u64]) -> u64 {
        match self.rule {
            Placement::Dominant => {
                let entries = shape.iter().enumerate();
                entries.map(|(r, x)| if r % 2 == 0 { *x } else { (1 << 32) - x }).sum()
            }
            _ => of_free,
        }
    }

    /// The [key](Scores::key) from which to search for the least score of the chunk: a machine's score is no less than
    /// the distance of its key from this.
    pub(crate) fn key_of_chunk(&self) -> u64 {
        self.key(0, &self.shape)
    }

    /// The keys that machines may have on which a chunk fits.
    pub(crate) fn keys_that_fit(&self, chunk: &[u64]) -> RangeInclusive<u64> {
        match self.rule {
            Placement::FirstFit | Placement::Dominant => 0..=u64::MAX,
            Placement::BestFit => self.size(chunk)..=u64::MAX,
            Placement::WorstFit => 0..=u64::MAX - self.size(chunk),
        }
    }

    /// How far the chunk's shape is from another.
    fn distance(&self, other: &[u64]) -> u64 {
        self.shape.iter().zip(other).map(|(d, f)| d.abs_diff(*f)).sum()
    }

    fn size(&self, free: &[u64]) -> u64 {
        free.iter().zip(&self.largest).map(|(f, l)| part(*f, *l)).sum()
    }
}

/// floor(2^32 a / b), 0 if b is 0.
fn part(a: u64, b: u64) -> u64 {
    if b == 0 { 0 } else { ((u128::from(a) << 32) / u128::from(b)) as u64 }
}

fn shape(largest: &[u64], amounts: &[u64], out: &mut [u64]) {
    out.iter_mut().zip(amounts.iter().zip(largest)).for_each(|(x, (a, l))| *x = part(*a, *l));
    let largest = out.iter().copied().max().unwrap_or(0);
    out.iter_mut().for_each(|x| *x = part(*x, largest));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::kind::fits;
    use super::*;

    proptest! {
        /// A search that stops by the keys leaves out no machine with a lower score and none on which the chunk fits.
        #[test]
        fn a_score_is_no_less_than_the_distance_of_the_keys(
            (largest, chunk, free) in (1usize..5).prop_flat_map(|width| {
                let amounts = || prop::collection::vec(0u64..40, width);
                (prop::collection::vec(0u64..40, width), amounts(), amounts())
            }),
            (_, rule) in prop::sample::select(PLACEMENTS.to_vec()),
        ) {
            let within = |amounts: &[u64]| -> Vec<u64> { amounts.iter().zip(&largest).map(|(a, l)| *a.min(l)).collect() };
            let (chunk, free) = (within(&chunk), within(&free));
            let zeros = vec![0; largest.len()];
            let mut scores = Scores { rule, largest: largest.clone(), shape: zeros.clone(), other: zeros };
            scores.of_chunk(&chunk);
            let mut shape = Vec::new();
            scores.push_shape(&free, &mut shape);
            let key = scores.key(scores.of_free(&free), &shape);
            prop_assert!(scores.keys(&largest).contains(&key));
            prop_assert!(scores.score(&free) >= key.abs_diff(scores.key_of_chunk()));
            prop_assert!(!fits(&chunk, &free) || scores.keys_that_fit(&chunk).contains(&key));
        }
    }
}
