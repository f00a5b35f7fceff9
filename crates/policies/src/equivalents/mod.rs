//! What a job holds, in processors: processor equivalents on machines that differ (Klusáček & Rudová 2013).
//!
//! On machine i, which has a_ir of resource r, a chunk that wants q_r is worth
//!
//! PE_i = max_r (q_r / a_ir) a_i,cpu                                       (Eq. 2)
//!
//! processors: what is left of the machine's processors for others, if the scarcest resource decides.
//! a_ir is all that is installed, not what is free. The price of a chunk is the lowest PE_i over the
//! machines it fits on, whichever it runs on in the end; that of a job the sum over its chunks.
//!
//! **Other resources.** The paper leaves GPUs and the like to the future. [`Combine`] selects how they count;
//! by default a job pays for what it holds of them besides, at kappa_r = all processors / all of r a unit, so
//! that a job without any is charged the same whether or not there are GPUs (reference 6.2).
//!
//! Everything here is exact.

mod weakness;

use evenhand_model::{Cluster, Rational, Resource};
use thiserror::Error;
pub use weakness::Weakness;

/// How resources are joined in one price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combine {
    /// The largest part of the machine, of whatever resource, times its processors: one of two GPUs of a
    /// machine of 32 processors is worth 16.
    Max,
    /// The parts are added up, times the machine's processors, as MetaCentrum does today.
    Sum,
    /// The largest part of processors and memory, times the processors; the others besides, at a price of
    /// their own.
    #[default]
    MaxPlusOptional,
}

impl Combine {
    /// All, in the order of the reference.
    pub const ALL: [Combine; 3] = [Combine::Max, Combine::Sum, Combine::MaxPlusOptional];

    /// What users type.
    pub fn name(self) -> &'static str {
        match self {
            Combine::Max => "max",
            Combine::Sum => "sum",
            Combine::MaxPlusOptional => "max-plus-optional",
        }
    }
}

/// Names under which processors are known.
pub const PROCESSORS: [&str; 4] = ["cpu", "cpus", "cores", "processors"];
/// Names under which memory is known.
pub const MEMORY: [&str; 3] = ["mem", "memory", "ram"];

/// Why there are no prices.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EquivalentsError {
    /// Nothing to count in.
    #[error("processor equivalents need processors: no resource is called {}", PROCESSORS.join(", "))]
    NoProcessors,
}

/// Why a chunk does not fit a kind of machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLittle {
    /// The first resource of which the machine has less.
    pub resource: usize,
    /// What the chunk wants of it.
    pub wanted: Rational,
    /// What the machine has.
    pub has: Rational,
}

/// A price in processors, and how it came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivalent {
    /// Processors.
    pub processors: Rational,
    /// The resource whose part of the machine is largest among those that compete for the maximum (the
    /// first of equals); under [`Combine::Sum`] the one with the largest part.
    pub decides: usize,
    /// What of `processors` is paid besides, by resource.
    pub besides: Vec<Rational>,
}

/// Machines that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kind {
    count: u32,
    has: Vec<Rational>,
}

/// The prices of a cluster.
///
/// ```
/// use evenhand_model::{Rational, Resource};
/// use evenhand_policies::equivalents::{Combine, Equivalents};
/// // Machines of 16, 8 and 64 processors with 64, 256 and 512 GB.
/// let resources = [Resource::new("cpu", ""), Resource::new("mem", "GB")];
/// let kinds = [(1, [16, 64]), (1, [8, 256]), (1, [64, 512])];
/// let kinds = kinds.map(|(count, has)| (count, has.map(|x: u16| Rational::from(x)).to_vec()));
/// let prices = Equivalents::new(&resources, kinds, Combine::default()).unwrap();
///
/// // 1 processor with 32 GB takes half of the first machine, an eighth of the second, a 16th of the third.
/// let chunk = [1u16, 32].map(Rational::from);
/// let on: Vec<String> = (0..3).map(|k| prices.on(k, &chunk).unwrap().processors.to_string()).collect();
/// assert_eq!(on, ["8", "1", "4"]);
/// assert_eq!(prices.lowest(&chunk).unwrap().0, 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivalents {
    kinds: Vec<Kind>,
    processors: usize,
    /// Which resources are paid besides under [`Combine::MaxPlusOptional`].
    optional: Vec<bool>,
    /// kappa: what a unit of an optional resource is worth, in processors.
    besides: Vec<Rational>,
    combine: Combine,
}

impl Equivalents {
    /// Prices on kinds of machines: how many there are of each, and what one has of each of `resources` in
    /// their own units. Resources other than processors and memory are optional.
    ///
    /// # Errors
    /// If no resource is processors.
    ///
    /// # Panics
    /// If a machine's row is not as long as `resources`.
    pub fn new(
        resources: &[Resource],
        kinds: impl IntoIterator<Item = (u32, Vec<Rational>)>,
        combine: Combine,
    ) -> Result<Equivalents, EquivalentsError> {
        let is = |names: &[&str], r: &Resource| names.iter().any(|n| r.name.eq_ignore_ascii_case(n));
        let processors = resources.iter().position(|r| is(&PROCESSORS, r)).ok_or(EquivalentsError::NoProcessors)?;
        let optional: Vec<bool> = resources.iter().map(|r| !is(&PROCESSORS, r) && !is(&MEMORY, r)).collect();
        let kinds: Vec<Kind> = kinds.into_iter().map(|(count, has)| Kind { count, has }).collect();
        assert!(kinds.iter().all(|k| k.has.len() == resources.len()), "one amount a resource");
        let total = |r: usize| total(&kinds, r);
        let all = total(processors);
        let besides = (0..resources.len())
            .map(|r| match total(r) {
                of if optional[r] && !of.is_zero() => &all / of,
                _ => Rational::ZERO,
            })
            .collect();
        Ok(Equivalents { kinds, processors, optional, besides, combine })
    }

    /// Prices on the machines of a cluster, a kind for each of its groups.
    ///
    /// # Errors
    /// As [`new`](Equivalents::new).
    pub fn of_cluster(
        cluster: &Cluster,
        resources: &[Resource],
        combine: Combine,
    ) -> Result<Equivalents, EquivalentsError> {
        let kinds = cluster.groups.iter().map(|g| (g.count, cluster.units(g, resources)));
        Equivalents::new(resources, kinds, combine)
    }

    /// Returns the same machines with another rule for how resources count together.
    #[must_use]
    pub fn combined(self, combine: Combine) -> Equivalents {
        Equivalents { combine, ..self }
    }

    /// How many kinds of machines there are.
    pub fn kinds(&self) -> usize {
        self.kinds.len()
    }

    /// The number of the resource that is processors.
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// What a chunk is worth on machines of a kind.
    ///
    /// # Errors
    /// If it does not fit on an empty one.
    pub fn on(&self, kind: usize, chunk: &[Rational]) -> Result<Equivalent, TooLittle> {
        let has = &self.kinds[kind].has;
        for (resource, (wanted, has)) in chunk.iter().zip(has).enumerate() {
            if wanted > has {
                return Err(TooLittle { resource, wanted: wanted.clone(), has: has.clone() });
            }
        }
        Ok(self.part(has, chunk))
    }

    /// The kind of machine on which a chunk is worth lowest, the first of equals; `None` if it fits on none.
    pub fn lowest(&self, chunk: &[Rational]) -> Option<(usize, Equivalent)> {
        self.lowest_of(chunk, |_| true)
    }

    /// The same among some kinds: those with the properties a job asks for.
    pub fn lowest_of(&self, chunk: &[Rational], suits: impl Fn(usize) -> bool) -> Option<(usize, Equivalent)> {
        let kinds = (0..self.kinds.len()).filter(|k| suits(*k));
        let fitting = kinds.filter_map(|k| self.on(k, chunk).ok().map(|e| (k, e)));
        fitting.reduce(|lowest, next| if next.1.processors < lowest.1.processors { next } else { lowest })
    }

    /// Maui's PE (Eq. 1): the whole cluster taken for one machine. It does not look at what fits.
    pub fn of_totals(&self, chunk: &[Rational]) -> Equivalent {
        let totals: Vec<Rational> = (0..chunk.len()).map(|r| total(&self.kinds, r)).collect();
        self.part(&totals, chunk)
    }

    /// Of a chunk that fits.
    fn part(&self, has: &[Rational], chunk: &[Rational]) -> Equivalent {
        let part = |r: usize| if chunk[r].is_zero() { Rational::ZERO } else { &chunk[r] / &has[r] };
        let is_besides = |r: usize| self.combine == Combine::MaxPlusOptional && self.optional[r];
        let mut decides = self.processors;
        let (mut largest, mut sum) = (part(self.processors), Rational::ZERO);
        for r in 0..chunk.len() {
            let part = part(r);
            sum += &part;
            if !is_besides(r) && part > largest {
                (decides, largest) = (r, part);
            }
        }
        let shared = if self.combine == Combine::Sum { sum } else { largest };
        let besides: Vec<Rational> = (0..chunk.len())
            .map(|r| if is_besides(r) { &self.besides[r] * &chunk[r] } else { Rational::ZERO })
            .collect();
        let processors = besides.iter().fold(shared * &has[self.processors], |sum, b| sum + b);
        Equivalent { processors, decides, besides }
    }
}

/// What all machines have of a resource.
fn total(kinds: &[Kind], resource: usize) -> Rational {
    kinds.iter().fold(Rational::ZERO, |sum, k| sum + &k.has[resource] * Rational::from(k.count))
}
