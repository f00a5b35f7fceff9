//! Processor equivalents: the size of a job in processors on heterogeneous machines (Klusáček & Rudová 2013).
//!
//! On machine i, which has a_ir of resource r, a chunk that demands q_r has a price of
//!
//! PE_i = max_r (q_r / a_ir) a_i,cpu                                       (Eq. 2)
//!
//! processors: those that other jobs cannot use, if the scarcest resource decides. a_ir is the installed amount, not
//! the free one. The price of a chunk is the minimum PE_i over the machines on which it fits, whichever machine runs
//! it; the price of a job is the sum over its chunks.
//!
//! **Other resources.** The paper leaves GPUs and other resources to future work. [`Combine`] selects how they count.
//! By default a job pays for them separately, at kappa_r = all processors / total of r per unit, so that a job without
//! GPUs is charged the same whether or not some machines have GPUs (reference 6.2).
//!
//! All computations are exact.

mod weakness;

use evenhand_model::{Capacity, Cluster, Rational, Resource};
use thiserror::Error;
pub use weakness::Weakness;

/// The rule that combines resources in one price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combine {
    /// The largest fraction of the machine, over all resources, times its processors: one of two GPUs of a machine of
    /// 32 processors costs 16.
    Max,
    /// The sum of the fractions, times the machine's processors, as MetaCentrum does today.
    Sum,
    /// The larger fraction of processors and memory, times the processors; other resources are added at a price of
    /// their own.
    #[default]
    MaxPlusOptional,
}

impl Combine {
    /// All rules, in the order of the reference.
    pub const ALL: [Combine; 3] = [Combine::Max, Combine::Sum, Combine::MaxPlusOptional];

    /// Returns the name, as in the options.
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

/// An error for resources without prices.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EquivalentsError {
    /// No resource is processors.
    #[error("processor equivalents need processors: no resource is called {}", PROCESSORS.join(", "))]
    NoProcessors,
}

/// The reason why a chunk does not fit a kind of machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLittle {
    /// The first resource of which the machine has less.
    pub resource: usize,
    /// The chunk's demand for it.
    pub wanted: Rational,
    /// The machine's capacity of it.
    pub has: Rational,
}

/// A price in processors, and its composition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivalent {
    /// Processors.
    pub processors: Rational,
    /// The resource whose part of the machine is largest among those that compete for the maximum (the
    /// first of equals); under [`Combine::Sum`] the one with the largest part.
    pub decides: usize,
    /// The part of `processors` for optional resources, by resource.
    pub besides: Vec<Rational>,
}

/// Identical machines.
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
    /// Whether a resource is charged separately under [`Combine::MaxPlusOptional`].
    optional: Vec<bool>,
    /// kappa: the price of a unit of an optional resource, in processors.
    besides: Vec<Rational>,
    combine: Combine,
}

impl Equivalents {
    /// Computes prices on kinds of machines, each given by the number of machines and the capacity of one of them for
    /// each of `resources`, in their own units. Resources other than processors and memory are optional.
    ///
    /// # Errors
    /// Returns an error if no resource is processors.
    ///
    /// # Panics
    /// Panics if a machine's row is not as long as `resources`.
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

    /// Computes prices on a pool, which counts as one machine.
    ///
    /// # Errors
    /// See [`new`](Equivalents::new).
    ///
    /// # Panics
    /// Panics if the capacity is not of these resources.
    pub fn of_pool(resources: &[Resource], capacity: &Capacity) -> Result<Equivalents, EquivalentsError> {
        let all = (0..capacity.width()).map(|r| capacity.exact_units(r).clone()).collect();
        Equivalents::new(resources, [(1, all)], Combine::default())
    }

    /// Computes prices on the machines of a cluster, with one kind for each of its groups.
    ///
    /// # Errors
    /// See [`new`](Equivalents::new).
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

    /// Returns the number of kinds of machines.
    pub fn kinds(&self) -> usize {
        self.kinds.len()
    }

    /// Returns the index of the resource that is processors.
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// Returns the price of a chunk on machines of a kind.
    ///
    /// # Errors
    /// Returns an error if it does not fit on an empty machine.
    pub fn on(&self, kind: usize, chunk: &[Rational]) -> Result<Equivalent, TooLittle> {
        let has = &self.kinds[kind].has;
        for (resource, (wanted, has)) in chunk.iter().zip(has).enumerate() {
            if wanted > has {
                return Err(TooLittle { resource, wanted: wanted.clone(), has: has.clone() });
            }
        }
        Ok(self.part(has, chunk))
    }

    /// Returns the kind of machine with the lowest price of a chunk (the first of equal ones) and the price; `None` if
    /// it fits on none.
    pub fn lowest(&self, chunk: &[Rational]) -> Option<(usize, Equivalent)> {
        self.lowest_of(chunk, |_| true)
    }

    /// Like [`lowest`](Equivalents::lowest), among some kinds: those with the properties that a job requests.
    pub fn lowest_of(&self, chunk: &[Rational], suits: impl Fn(usize) -> bool) -> Option<(usize, Equivalent)> {
        let kinds = (0..self.kinds.len()).filter(|k| suits(*k));
        let fitting = kinds.filter_map(|k| self.on(k, chunk).ok().map(|e| (k, e)));
        fitting.reduce(|lowest, next| if next.1.processors < lowest.1.processors { next } else { lowest })
    }

    /// Returns Maui's PE (Eq. 1), which treats the whole cluster as one machine and does not consider where the job
    /// fits.
    pub fn of_totals(&self, chunk: &[Rational]) -> Equivalent {
        let totals: Vec<Rational> = (0..chunk.len()).map(|r| total(&self.kinds, r)).collect();
        self.part(&totals, chunk)
    }

    /// Returns the price of a chunk that fits.
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

/// Returns the total of a resource over all machines.
fn total(kinds: &[Kind], resource: usize) -> Rational {
    kinds.iter().fold(Rational::ZERO, |sum, k| sum + &k.has[resource] * Rational::from(k.count))
}
