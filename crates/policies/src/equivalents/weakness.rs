//! Detects cases in which the lowest price misleads (reference 6.1), for a given job and cluster.

use evenhand_model::Rational;

use super::Equivalents;

/// A case in which the lowest price misleads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// Few unusual machines determine the price: they make their abundant resource cheap for all users, wherever the
    /// job runs.
    OddMachines {
        /// The kind that is cheapest.
        kind: usize,
        /// Its part of all processors.
        part: Rational,
        /// The price without that kind.
        without: Rational,
    },
    /// In smaller pieces, which fit on other machines than the whole, the job would cost less.
    Split {
        /// The number of equal pieces.
        pieces: u32,
        /// Their price together.
        together: Rational,
    },
}

/// A kind with at most this part of all processors is odd if the price without it is higher by [`DEARER`].
const FEW: (u32, u32) = (1, 10);
const DEARER: (u32, u32) = (5, 4);
/// The numbers of pieces that are tested for a lower price.
const MOST_PIECES: u32 = 64;

impl Equivalents {
    /// Returns the cases in which the lowest price of a chunk misleads, among the kinds on which it may run; none if it
    /// fits on none.
    ///
    /// A chunk is cut into pieces of whole processors only.
    pub fn weaknesses(&self, chunk: &[Rational], suits: impl Fn(usize) -> bool) -> Vec<Weakness> {
        let mut found = Vec::new();
        let Some((kind, price)) = self.lowest_of(chunk, &suits) else { return found };
        let all = super::total(&self.kinds, self.processors);
        let part = match all.is_zero() {
            true => Rational::ONE,
            false => super::total(&self.kinds[kind..=kind], self.processors) / all,
        };
        if let Some((_, without)) = self.lowest_of(chunk, |k| k != kind && suits(k)) {
            let is_dearer = without.processors > &price.processors * ratio(DEARER);
            if part <= ratio(FEW) && is_dearer {
                found.push(Weakness::OddMachines { kind, part, without: without.processors });
            }
        }
        let cut = |pieces: u32| {
            let piece: Vec<Rational> = chunk.iter().map(|x| x / Rational::from(pieces)).collect();
            let whole = piece[self.processors].is_int();
            let (_, one) = self.lowest_of(&piece, &suits).filter(|_| whole)?;
            Some((one.processors * Rational::from(pieces), pieces))
        };
        let cheapest = (2..=MOST_PIECES).filter_map(cut).min();
        if let Some((together, pieces)) = cheapest.filter(|(together, _)| *together < price.processors) {
            found.push(Weakness::Split { pieces, together });
        }
        found
    }
}

fn ratio((n, d): (u32, u32)) -> Rational {
    Rational::from(n) / Rational::from(d)
}
