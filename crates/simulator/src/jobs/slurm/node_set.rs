//! A set of nodes as a bit map.

use smallvec::SmallVec;

/// Numbers of nodes below a bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeSet {
    words: Vec<u64>,
}

impl NodeSet {
    pub(super) fn empty(nodes: usize) -> NodeSet {
        NodeSet { words: vec![0; nodes.div_ceil(64)] }
    }

    pub(super) fn all(nodes: usize) -> NodeSet {
        let mut set = NodeSet::empty(nodes);
        (0..nodes as u32).for_each(|node| set.insert(node));
        set
    }

    /// A number that is seldom equal for sets that differ.
    pub(super) fn fingerprint(&self) -> u64 {
        // Four chains of products, as one would wait for each product.
        let mut sums = [0; 4];
        let (fours, rest) = self.words.as_chunks::<4>();
        for four in fours {
            sums.iter_mut().zip(four).for_each(|(sum, word)| *sum = mix(*sum, *word));
        }
        sums.iter().chain(rest).fold(0, |hash, word| mix(hash, *word))
    }

    /// Removes all.
    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    #[inline]
    pub(super) fn insert(&mut self, node: u32) {
        self.words[node as usize / 64] |= 1 << (node % 64);
    }

    #[inline]
    pub(super) fn contains(&self, node: u32) -> bool {
        self.words[node as usize / 64] >> (node % 64) & 1 == 1
    }

    pub(super) fn remove(&mut self, node: u32) {
        self.words[node as usize / 64] &= !(1 << (node % 64));
    }

    /// Inserts or removes a node.
    pub(super) fn set(&mut self, node: u32, has: bool) {
        match has {
            true => self.insert(node),
            false => self.remove(node),
        }
    }

    /// Makes this set equal to another of the same bound.
    pub(super) fn copy_from(&mut self, other: &NodeSet) {
        self.words.copy_from_slice(&other.words);
    }

    /// Makes this set what two others of the same bound have both.
    pub(super) fn set_to_both(&mut self, a: &NodeSet, b: &NodeSet) {
        self.words.clear();
        self.words.extend(a.words.iter().zip(&b.words).map(|(a, b)| a & b));
    }

    /// Keeps only what the other set has too.
    pub(super) fn keep(&mut self, other: &NodeSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= b);
    }

    /// Returns whether it has all of a sparse set.
    pub(super) fn has_all(&self, nodes: &SparseNodes) -> bool {
        nodes.words.iter().all(|(at, word)| word & !self.words[*at as usize] == 0)
    }

    /// Removes what a sparse set has. Returns how many these were.
    pub(super) fn remove_sparse(&mut self, nodes: &SparseNodes) -> usize {
        let mut removed = 0;
        for (at, word) in &nodes.words {
            let own = &mut self.words[*at as usize];
            removed += (*own & word).count_ones() as usize;
            *own &= !word;
        }
        removed
    }

    /// Adds what the other set has.
    pub(super) fn add_all(&mut self, other: &NodeSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
    }

    /// Removes what the other set has.
    pub(super) fn remove_all(&mut self, other: &NodeSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= !b);
    }

    /// Returns whether it has so many nodes or more.
    pub(super) fn has(&self, nodes: usize) -> bool {
        let mut counted = 0;
        nodes == 0
            || self.words.iter().filter(|word| **word != 0).any(|word| {
                counted += word.count_ones() as usize;
                counted >= nodes
            })
    }

    /// Returns whether the other set has all of this one.
    pub(super) fn is_in(&self, other: &NodeSet) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    /// Returns whether it has one of some nodes that the other set has not.
    pub(super) fn gains_on(&self, other: &NodeSet, nodes: &NodeSet) -> bool {
        let words = self.words.iter().zip(&other.words).zip(&nodes.words);
        words.into_iter().any(|((own, other), nodes)| own & !other & nodes != 0)
    }

    pub(super) fn meets(&self, other: &NodeSet) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// How many numbers it has from `from` up to `to`, without `to`.
    pub(super) fn len_in(&self, from: u32, to: u32) -> usize {
        let bits = |word: usize| {
            let start = word as u32 * 64;
            let above =
                |bound: u32| if bound <= start { u64::MAX } else { u64::MAX.checked_shl(bound - start).unwrap_or(0) };
            (self.words[word] & above(from) & !above(to)).count_ones() as usize
        };
        (from as usize / 64..(to as usize).div_ceil(64)).map(bits).sum()
    }

    /// Inserts what a sparse set has.
    pub(super) fn insert_all(&mut self, nodes: &SparseNodes) {
        nodes.words.iter().for_each(|(at, word)| self.words[*at as usize] |= word);
    }

    /// In ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| bits(at, *word))
    }

    /// The nodes that are in both sets, in ascending order.
    pub(super) fn iter_both<'s>(&'s self, other: &'s NodeSet) -> impl Iterator<Item = u32> + 's {
        self.words.iter().zip(&other.words).enumerate().flat_map(|(at, (a, b))| bits(at, a & b))
    }
}

/// Puts another word into a fingerprint.
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The words of bit maps of equal size, for what is computed of whole words.
pub(super) fn words<const N: usize>(sets: [&NodeSet; N]) -> impl Iterator<Item = [u64; N]> {
    let len = sets.first().map_or(0, |set| set.words.len());
    (0..len).map(move |at| sets.map(|set| set.words[at]))
}

/// A set of few nodes, or of nodes close to one another: the words of a bit map that are not zero.
#[derive(Clone, Debug, Default)]
pub(super) struct SparseNodes {
    words: SmallVec<[(u32, u64); 2]>,
}

impl SparseNodes {
    /// Fastest for ascending nodes.
    pub(super) fn new(nodes: impl Iterator<Item = u32>) -> SparseNodes {
        let mut set = SparseNodes::default();
        set.set(nodes);
        set
    }

    /// Makes it the set of these nodes. Fastest for ascending ones.
    pub(super) fn set(&mut self, nodes: impl Iterator<Item = u32>) {
        self.words.clear();
        for node in nodes {
            let (at, bit) = (node / 64, 1 << (node % 64));
            match self.words.last_mut() {
                Some(last) if last.0 == at => last.1 |= bit,
                _ => self.words.push((at, bit)),
            }
        }
    }

    /// Its words, as far as another set has their nodes, each with its place and the word of a third set.
    pub(super) fn words_of<'s>(
        &'s self,
        other: &'s NodeSet,
        third: &'s NodeSet,
    ) -> impl Iterator<Item = (usize, u64, u64)> + 's {
        let words = self.words.iter().map(|&(at, word)| (at as usize, word));
        let both = words.map(|(at, word)| (at, word & other.words[at], third.words[at]));
        both.filter(|(_, word, _)| *word != 0)
    }
}

/// The numbers of a word's bits.
pub(super) fn bits(word: usize, mut rest: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            word as u32 * 64 + bit
        })
    })
}
