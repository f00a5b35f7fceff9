//! Trackable resources (TRES): `cpu=4,mem=8G,node=1,billing=4,gres/gpu=2,gres/gpu:a100=2`.

use std::collections::BTreeMap;
use std::fmt;

use evenhand_model::Nano;
use evenhand_workload::slurm_notation::{TresError, count, for_each_tres, memory};

/// Billionths in 1.
const NANO: Nano = 1_000_000_000;

/// Amounts of trackable resources by Slurm's names, in billionths; memory (`mem`, `vmem`) in billionths of a byte.
///
/// ```
/// use evenhand_slurm::Tres;
/// let tres = Tres::parse("cpu=4,mem=4.50G,node=1,gres/gpu:a100=1,gres/gpu:l4=2").unwrap();
/// assert_eq!((tres.cpus(), tres.bytes(), tres.gpus()), (4, 9 << 29, 3));
/// assert_eq!(tres.to_string(), "cpu=4,mem=4608M,node=1,gres/gpu:a100=1,gres/gpu:l4=2");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tres {
    amounts: BTreeMap<String, Nano>,
}

fn is_memory(name: &str) -> bool {
    name == "mem" || name == "vmem"
}

impl Tres {
    /// Parses a list; an empty one and `(null)` contain nothing. Unknown names are kept if their value is a number.
    ///
    /// # Errors
    /// Returns the malformed part, and where it begins.
    pub fn parse(text: &str) -> Result<Tres, TresError<'_>> {
        let mut tres = Tres::default();
        if ["", "(null)", "N/A"].contains(&text) {
            return Ok(tres);
        }
        for_each_tres(text.as_bytes(), |name, value| {
            let name = std::str::from_utf8(name).ok()?;
            let known = is_memory(name) || ["cpu", "node"].contains(&name) || name.starts_with("gres/");
            let amount = if is_memory(name) { memory(value) } else { count(value) };
            match amount {
                Some(amount) => {
                    tres.amounts.insert(name.to_string(), amount);
                }
                None if known => return None,
                None => {}
            }
            Some(())
        })?;
        Ok(tres)
    }

    /// Returns the amount of one resource in billionths; `None` if it is missing.
    pub fn get(&self, name: &str) -> Option<Nano> {
        self.amounts.get(name).copied()
    }

    /// Returns all names and amounts, by name.
    pub fn amounts(&self) -> impl Iterator<Item = (&str, Nano)> {
        self.amounts.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Returns whether it contains nothing.
    pub fn is_empty(&self) -> bool {
        self.amounts.is_empty()
    }

    fn whole(&self, name: &str) -> u64 {
        u64::try_from(self.get(name).unwrap_or(0) / NANO).unwrap_or(u64::MAX)
    }

    /// Returns the number of whole CPUs.
    pub fn cpus(&self) -> u64 {
        self.whole("cpu")
    }

    /// Returns the memory in whole bytes.
    pub fn bytes(&self) -> u64 {
        self.whole("mem")
    }

    /// Returns the number of nodes, if given.
    pub fn nodes(&self) -> Option<u64> {
        self.get("node").map(|_| self.whole("node"))
    }

    /// Returns the number of GPUs of all types: `gres/gpu`, or without it the sum of the types.
    pub fn gpus(&self) -> u64 {
        match self.get("gres/gpu") {
            Some(_) => self.whole("gres/gpu"),
            None => self.gpu_types().fold(0, |sum, (_, n)| sum.saturating_add(n)),
        }
    }

    /// Returns the number of GPUs by type, where types are given.
    pub fn gpu_types(&self) -> impl Iterator<Item = (&str, u64)> {
        self.amounts().filter_map(|(name, n)| {
            Some((name.strip_prefix("gres/gpu:")?, u64::try_from(n / NANO).unwrap_or(u64::MAX)))
        })
    }

    /// Returns the demand of a task in a workload: CPUs, bytes of memory and GPUs, in billionths.
    pub fn demand(&self) -> [Nano; 3] {
        [self.get("cpu").unwrap_or(0), self.get("mem").unwrap_or(0), Nano::from(self.gpus()) * NANO]
    }
}

impl fmt::Display for Tres {
    /// Writes the list as Slurm does: `cpu`, `mem`, `node` first, memory in megabytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = ["cpu", "mem", "node"];
        let head = first.iter().filter_map(|name| Some((*name, self.get(name)?)));
        let rest = self.amounts().filter(|(name, _)| !first.contains(name));
        for (at, (name, amount)) in head.chain(rest).enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{name}={}", Amount(amount, is_memory(name)))?;
        }
        Ok(())
    }
}

/// An amount, written so that Slurm reads exactly the same.
struct Amount(Nano, bool);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Amount(nano, is_memory) = *self;
        // The largest unit that represents it with nine decimals.
        let units: &[(u32, &str)] = if is_memory { &[(20, "M"), (10, "K")] } else { &[(0, "")] };
        let exact = units.iter().find(|(shift, _)| nano.trailing_zeros() >= *shift || nano == 0);
        // Smaller fractions of a kilobyte are rounded up to a billionth.
        let (shift, unit) = exact.copied().unwrap_or((10, "K"));
        let scaled = nano >> shift;
        let (whole, part) = (scaled / NANO, scaled % NANO);
        if part == 0 {
            return write!(f, "{whole}{unit}");
        }
        let digits = format!("{part:09}");
        write!(f, "{whole}.{}{unit}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_malformed_part_is_the_error() {
        assert_eq!(Tres::parse("cpu=8,mem"), Err(TresError { at: 6, found: b"mem" }));
        assert_eq!(Tres::parse("cpu=8,gres/gpu=x"), Err(TresError { at: 6, found: b"gres/gpu=x" }));
        assert_eq!(Tres::parse("(null)").map(|t| t.is_empty()), Ok(true));
        // Values of unknown resources may have any form.
        assert_eq!(Tres::parse("cpu=1,new/thing=much").map(|t| t.to_string()), Ok("cpu=1".to_string()));
        let billed = Tres::parse("billing=1,fs/disk=0,cpu=2,mem=3K").unwrap();
        assert_eq!(billed.to_string(), "cpu=2,mem=3K,billing=1,fs/disk=0");
        assert_eq!(billed.demand(), [2 * NANO, 3072 * NANO, 0]);
    }

    proptest! {
        #[test]
        fn a_list_parses_to_itself(
            cpu in 0u64..10_000, mem in 0u64..1 << 40, kilobytes: bool, gpus in prop::option::of(0u64..64), nano in 1u64..1 << 40
        ) {
            let mut tres = Tres::default();
            tres.amounts.insert("cpu".into(), Nano::from(cpu) * NANO);
            tres.amounts.insert("mem".into(), Nano::from(mem) * if kilobytes { 1 << 10 } else { 1 << 20 } * NANO);
            tres.amounts.insert("license/x".into(), Nano::from(nano));
            gpus.map(|n| tres.amounts.insert("gres/gpu:a100".into(), Nano::from(n) * NANO));
            let text = tres.to_string();
            prop_assert_eq!(Tres::parse(&text), Ok(tres.clone()));
        }

        #[test]
        fn no_text_causes_a_panic(text in "\\PC{0,30}|([a-z/]{0,5}=[0-9.]{0,40}[KMGTP]?,?){0,4}") {
            if let Ok(tres) = Tres::parse(&text) {
                let _ = (tres.cpus(), tres.gpus(), tres.to_string());
            }
        }
    }
}
