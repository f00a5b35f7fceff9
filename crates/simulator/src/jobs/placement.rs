//! On which of the machines on which it fits a chunk is put.

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
