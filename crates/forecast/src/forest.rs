//! A quantile regression forest (Meinshausen 2006) of extremely randomised trees (Geurts et al. 2006).
//!
//! A tree divides jobs by what was known at their submission; the leaves hold the jobs themselves, so that a forest answers with past
//! jobs that were alike, and how much each counts.

use evenhand_model::random::Stream;
use rayon::prelude::*;

/// What is known of a job at its submission, one number for each feature.
pub(crate) type Features = [f32; FEATURES];

/// The number of features.
pub(crate) const FEATURES: usize = 22;

const TREES: u64 = 32;
/// A node with fewer jobs is not divided.
const LEAF: usize = 4;
/// How many divisions are tried at each node.
const TRIED: usize = 16;
/// How many jobs, the latest, a leaf answers with.
const ANSWERS: usize = 40;

#[derive(Clone, Debug)]
enum Node {
    /// Below `at` goes left, to the next node; else to `right`.
    Split {
        feature: u8,
        at: f32,
        right: u32,
    },
    Leaf(Vec<u32>),
}

#[derive(Clone, Debug)]
struct Tree(Vec<Node>);

/// A forest over the rows of a table.
#[derive(Clone, Debug)]
pub(crate) struct Forest(Vec<Tree>);

impl Forest {
    /// Grows a forest over `rows`, whose features and values the tables hold.
    pub(crate) fn grow(rows: &[u32], features: &[Features], values: &[f32], seed: u64) -> Forest {
        let tree = |index| {
            let mut random = Stream::new(seed, "forest", index);
            // Each tree sees two thirds.
            let mut seen: Vec<u32> = rows.iter().copied().filter(|_| random.below(3) < 2).collect();
            let mut tree = Tree(Vec::new());
            tree.grow(&mut seen, features, values, &mut random);
            tree
        };
        Forest((0..TREES).into_par_iter().map(tree).collect())
    }

    /// Adds a row to the leaves where it belongs.
    pub(crate) fn insert(&mut self, row: u32, features: &Features) {
        for tree in &mut self.0 {
            let leaf = tree.leaf(features);
            if let Node::Leaf(rows) = &mut tree.0[leaf] {
                rows.push(row);
            }
        }
    }

    /// Calls `each` with the rows that are like `features`, and their weights, which add to 1.
    pub(crate) fn alike(&self, features: &Features, mut each: impl FnMut(u32, f64)) {
        for tree in &self.0 {
            let Node::Leaf(rows) = &tree.0[tree.leaf(features)] else { continue };
            let rows = &rows[rows.len().saturating_sub(ANSWERS)..];
            let weight = 1.0 / (rows.len() * self.0.len()) as f64;
            rows.iter().for_each(|&row| each(row, weight));
        }
    }
}

impl Tree {
    fn grow(&mut self, rows: &mut [u32], features: &[Features], values: &[f32], random: &mut Stream) {
        let node = self.0.len();
        let split = (rows.len() >= 2 * LEAF).then(|| best_split(rows, features, values, random)).flatten();
        let Some((feature, at)) = split else {
            let mut rows = rows.to_vec();
            rows.sort_unstable();
            self.0.push(Node::Leaf(rows));
            return;
        };
        self.0.push(Node::Split { feature: feature as u8, at, right: 0 });
        let mut left = 0;
        for i in 0..rows.len() {
            if features[rows[i] as usize][feature] < at {
                rows.swap(i, left);
                left += 1;
            }
        }
        let (below, above) = rows.split_at_mut(left);
        self.grow(below, features, values, random);
        let next = self.0.len() as u32;
        if let Node::Split { right, .. } = &mut self.0[node] {
            *right = next;
        }
        self.grow(above, features, values, random);
    }

    fn leaf(&self, features: &Features) -> usize {
        let mut node = 0;
        while let Node::Split { feature, at, right } = self.0[node] {
            node = if features[feature as usize] < at { node + 1 } else { right as usize };
        }
        node
    }
}

/// Tries divisions and returns the one after which the values vary least, if one leaves enough jobs on both sides.
fn best_split(rows: &[u32], features: &[Features], values: &[f32], random: &mut Stream) -> Option<(usize, f32)> {
    let mut best: Option<(f64, usize, f32)> = None;
    for _ in 0..TRIED {
        let feature = random.below(FEATURES as u64) as usize;
        let mut value = || features[rows[random.below(rows.len() as u64) as usize] as usize][feature];
        // Between two jobs, so that equal values stay together.
        let (a, b) = (value(), value());
        if a == b {
            continue;
        }
        let at = a.max(b);
        let (mut n, mut sum, mut all) = (0usize, 0.0, 0.0);
        for &row in rows {
            let value = f64::from(values[row as usize]);
            let below = features[row as usize][feature] < at;
            n += usize::from(below);
            sum += if below { value } else { 0.0 };
            all += value;
        }
        let rest = rows.len() - n;
        if n < LEAF / 2 || rest < LEAF / 2 {
            continue;
        }
        // The sum of squares between the two sides; the larger, the less is left within them.
        let between = sum * sum / n as f64 + (all - sum) * (all - sum) / rest as f64;
        if best.is_none_or(|(most, ..)| between > most) {
            best = Some((between, feature, at));
        }
    }
    best.map(|(_, feature, at)| (feature, at))
}
