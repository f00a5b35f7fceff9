//! What the site's own Slurm bills a job: `TRESBillingWeights` of its partition, `PriorityFlags=MAX_TRES`, and `UsageFactor` of its QOS.
//!
//! slurm.conf(5): without weights a job is billed its CPUs. With weights it is billed the sum of its amounts times their
//! weights; with MAX_TRES the largest of those of nodes (CPUs, memory, GRES) plus the others; with MAX_TRES_GRES (24.05) the
//! larger of CPUs and memory plus all others. Slurm charges this to usage as it is (`_apply_new_usage` of
//! priority/multifactor), times the UsageFactor of the job's QOS; only `billing=` of AllocTRES is cut to a whole number.

use evenhand_model::{Quantity, Rational, Resource, ResourceQuantity, queue_names};

use crate::billing::{Billing, BillingRule, JobBilling};
use crate::{PolicyContext, PolicyError, SiteConfiguration};

/// The expected form of `TRESBillingWeights`, for errors.
pub const BILLING_WEIGHTS: &str = "weights such as CPU=1.0,Mem=0.25G,GRES/gpu=2.0";

/// A weight of `TRESBillingWeights`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TresWeight {
    /// The trackable resource as written: `Mem`, `GRES/gpu`.
    pub name: String,
    /// The weight as written, with its suffix.
    pub text: String,
    /// For one unit: a processor, a mebibyte of memory, a GPU.
    pub weight: Rational,
}

impl TresWeight {
    /// Parses the value of a partition's `TRESBillingWeights`; `None` if it is malformed.
    ///
    /// A suffix stands for powers of 1024. The base unit of memory and burst buffers is a mebibyte, for which M, and K as
    /// in Slurm's program, change nothing.
    ///
    /// ```
    /// use evenhand_policies::TresWeight;
    /// let found = TresWeight::parse_list("CPU=1.0,Mem=0.25G").unwrap();
    /// assert_eq!((found[1].name.as_str(), found[1].weight.to_string()), ("Mem", "1/4096".to_string()));
    /// ```
    pub fn parse_list(text: &str) -> Option<Vec<TresWeight>> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(TresWeight::parse).collect()
    }

    fn parse(part: &str) -> Option<TresWeight> {
        let (name, text) = part.split_once('=')?;
        let (name, text) = (name.trim(), text.trim());
        let kind = name.split('/').next().unwrap_or_default().to_ascii_lowercase();
        let base = u32::from(["mem", "vmem", "bb"].contains(&kind.as_str())) * 2;
        let (number, power) = match text.char_indices().next_back() {
            Some((at, unit)) if unit.is_ascii_alphabetic() => {
                (&text[..at], "KMGTP".find(unit.to_ascii_uppercase())? as u32 + 1)
            }
            _ => (text, 0),
        };
        let (is_negative, size) = number.strip_prefix('-').map_or((false, number), |size| (true, size));
        // Numbers with units of their own are none of Slurm's.
        let is_number = size.chars().all(|c| c.is_ascii_digit() || ['.', 'e', 'E', '-', '+'].contains(&c));
        let size = Quantity::parse(size).ok().filter(|_| is_number)?;
        let units = Rational::from(1u64 << (10 * power.saturating_sub(base)));
        let weight = size.exact() / units;
        let weight = if is_negative { -weight } else { weight };
        Some(TresWeight { name: name.to_string(), text: text.to_string(), weight })
    }

    /// Returns whether jobs of a workload are charged by it: it is of processors, memory or GPUs, and not negative.
    pub fn is_followed(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        ["cpu", "mem", "gres/gpu"].contains(&name.as_str()) && self.weight >= Rational::ZERO
    }

    fn is_of(&self, resource: &Resource) -> bool {
        let name = self.name.to_ascii_lowercase();
        self.is_followed() && name.strip_prefix("gres/").unwrap_or(&name) == resource.name
    }

    /// The charge for one of the workload's own units.
    fn per_unit(&self, resource: &Resource) -> Rational {
        // An amount without a unit is in Slurm's.
        if resource.name != "mem" || resource.unit.is_empty() {
            return self.weight.clone();
        }
        match ResourceQuantity::parse("1MiB") {
            Ok(mebibyte) => &self.weight / mebibyte.in_unit(&resource.unit),
            Err(_) => self.weight.clone(),
        }
    }
}

impl SiteConfiguration {
    /// Returns the charge of jobs by the context's queues; of a list of partitions that of the first that the site has.
    ///
    /// # Errors
    /// Returns an error if the weights of a partition are malformed.
    pub(crate) fn billing(&self, context: &PolicyContext<'_>) -> Result<JobBilling, PolicyError> {
        let resources = context.resources;
        let default = Billing::parse("sum:cpu=1", resources).unwrap_or_else(|_| Billing::shares(BillingRule::Largest));
        let of_queue = |queue: &String| {
            let partition = std::iter::once(queue.as_str()).chain(queue_names(queue));
            let partition = partition.into_iter().find(|name| self.partition_factors.contains_key(*name));
            let weights = partition.and_then(|name| self.billing_weights.get(name));
            weights.map_or(Ok(default.clone()), |text| self.billing_by(text, resources))
        };
        let queues = context.queues.iter().map(of_queue).collect::<Result<_, _>>()?;
        let factor = |qos: &String| self.usage_factors.get(qos).cloned().unwrap_or(Rational::ONE);
        Ok(JobBilling { default, queues, usage_factors: context.qos.iter().map(factor).collect() })
    }

    fn billing_by(&self, text: &str, resources: &[Resource]) -> Result<Billing, PolicyError> {
        let weights = TresWeight::parse_list(text).ok_or_else(|| PolicyError::Site {
            setting: "TRESBillingWeights".to_string(),
            found: text.to_string(),
            expected: BILLING_WEIGHTS,
        })?;
        let per_unit = |resource: &Resource| {
            // The last of several, as in Slurm.
            let weight = weights.iter().rev().find(|weight| weight.is_of(resource));
            weight.map_or(Rational::ZERO, |weight| weight.per_unit(resource))
        };
        let (max, max_gres) = (self.has_priority_flag("MAX_TRES"), self.has_priority_flag("MAX_TRES_GRES"));
        let is_gres = |r: &usize| !["cpu", "mem"].contains(&resources[*r].name.as_str());
        Ok(Billing {
            rule: if max || max_gres { BillingRule::Largest } else { BillingRule::Sum },
            weights: Some(resources.iter().map(per_unit).collect()),
            global: if max { Vec::new() } else { (0..resources.len()).filter(is_gres).collect() },
        })
    }
}

#[cfg(test)]
mod tests {
    use evenhand_model::{Amount, Capacity, Weights};

    use super::*;

    /// What jobs of the queues are charged a second, on a pool of processors, memory of this unit and GPUs.
    fn charges(flags: &str, weights: &[(&str, &str)], queues: &[&str], unit: &str, demand: [u64; 3]) -> Vec<String> {
        let resources = [Resource::new("cpu", ""), Resource::new("mem", unit), Resource::new("gpu", "")];
        let capacity = Capacity::new(&resources, vec![Rational::from(1u64 << 40); 3]).unwrap();
        let site = SiteConfiguration {
            settings: [("priorityflags".to_string(), flags.to_string())].into(),
            partition_factors: ["main", "gpu", "cheap"].map(|name| (name.to_string(), 1)).into(),
            billing_weights: weights.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect(),
            ..SiteConfiguration::default()
        };
        let (all, queues) = (Weights::equal(1), queues.iter().map(|q| q.to_string()).collect::<Vec<_>>());
        let context = PolicyContext::new(&capacity, &all).resources(&resources).queues(&queues);
        let billing = site.billing(&context).unwrap();
        let of = [&billing.default].into_iter().chain(&billing.queues);
        of.map(|billing| billing.charge(&demand.map(Amount), &capacity).to_string()).collect()
    }

    const MANUAL: &str = "CPU=1.0,Mem=0.25G,GRES/gpu=2.0";

    /// slurm.conf(5), TRESBillingWeights: a job with 1 CPU and 8 GB.
    #[test]
    fn the_job_of_the_manual_is_billed_as_there() {
        let of =
            |flags: &str, gpus: u64| charges(flags, &[("main", MANUAL)], &["main"], "B", [1, 8 << 30, gpus])[1].clone();
        assert_eq!([of("", 0), of("MAX_TRES", 0)], ["3", "2"]);
        // With GPUs: "MAX of individual TRES' on a node (e.g. cpus, mem, gres)".
        assert_eq!([of("", 3), of("INCR_ONLY,max_tres", 3), of("MAX_TRES_GRES", 3)], ["9", "6", "8"]);
        assert_eq!(of("MAX_TRES,MAX_TRES_GRES", 3), "6");
    }

    /// "a memory weight of mem=.25 on a job allocated 8GB will be billed 2048 (8192MB *.25) units. [...] mem=.25G [...] 2".
    #[test]
    fn suffixes_scale_weights_and_memory_has_any_unit() {
        let of = |weight: &str, unit: &str, memory: u64| {
            charges("", &[("main", &format!("mem={weight}"))], &["main"], unit, [4, memory, 0])[1].clone()
        };
        for (unit, memory) in [("B", 8 << 30), ("KB", 8 << 20), ("MB", 8 << 10), ("GB", 8), ("", 8 << 10)] {
            assert_eq!(of(".25", unit, memory), "2048", "{unit}");
            assert_eq!([of(".25G", unit, memory), of("256T", unit, memory)], ["2", "2"], "{unit}");
            assert_eq!([of(".25M", unit, memory), of(".25K", unit, memory)], ["2048", "2048"], "{unit}");
        }
        let gpu =
            |weight: &str| charges("", &[("main", &format!("GRES/gpu={weight}"))], &["main"], "", [0, 0, 1])[1].clone();
        assert_eq!([gpu("2048"), gpu("2K"), gpu("2M")], ["2048", "1/512", "1/524288"]);
    }

    /// A real Slurm 22.05.8 printed `billing=` of 6 (9 without MAX_TRES), 256, 256, none, 5 and 3 for such jobs, and sshare usage of
    /// 659 (989), 28158, 28158, 76, 549 and 329 after 110 s: a billing of 0.7 is charged as that.
    #[test]
    fn jobs_are_billed_as_by_a_real_slurm() {
        let weights = [("main", MANUAL), ("gpu", "Mem=0.25K"), ("cheap", "CPU=0.7")];
        let of =
            |flags: &str, queue: &str, demand: [u64; 3]| charges(flags, &weights, &[queue], "MB", demand)[1].clone();
        assert_eq!([of("NO_NORMAL_QOS", "main", [1, 8192, 3]), of("MAX_TRES", "main", [1, 8192, 3])], ["9", "6"]);
        assert_eq!(
            [of("", "gpu", [1, 1024, 0]), of("", "cheap", [1, 100, 0]), of("", "plain", [3, 1024, 0])],
            ["256", "7/10", "3"]
        );
        let [mega, twice] = [("Mem=0.25M", [1, 1024, 0]), ("CPU=1,CPU=5", [1, 100, 0])]
            .map(|(weights, demand)| charges("", &[("main", weights)], &["main"], "MB", demand)[1].clone());
        assert_eq!([mega, twice], ["256", "5"]);
    }

    #[test]
    fn each_partition_has_its_weights_and_the_others_charge_processors() {
        let weights = [("gpu", MANUAL), ("cheap", "cpu=0.5")];
        let queues = ["main", "gpu", "cheap", "cheap,gpu", "old,gpu", "old"];
        let found = charges("MAX_TRES", &weights, &queues, "MB", [4, 8192, 3]);
        assert_eq!(found, ["4", "4", "6", "2", "2", "6", "4"]);
    }

    #[test]
    fn weights_of_other_resources_and_negative_ones_charge_nothing() {
        let found = charges(
            "",
            &[("main", "cpu=1,license/x=10,node=3,mem=-1,GRES/gpu:a100=9,energy=5")],
            &["main"],
            "MB",
            [4, 10, 2],
        );
        assert_eq!(found[1], "4");
        let listed = TresWeight::parse_list("CPU=1,license/x=10,Mem=-1G").unwrap();
        assert_eq!(listed.iter().map(TresWeight::is_followed).collect::<Vec<_>>(), [true, false, false]);
        for wrong in ["cpu", "cpu=", "cpu=x", "cpu=1Q", "cpu=1/2", "mem=2GB", "cpu=1;mem=2", "mem=G"] {
            assert_eq!(TresWeight::parse_list(wrong), None, "{wrong}");
        }
        let site = SiteConfiguration {
            partition_factors: [("main".to_string(), 1)].into(),
            billing_weights: [("main".to_string(), "cpu=much".to_string())].into(),
            ..SiteConfiguration::default()
        };
        let (resources, weights, queues) = ([Resource::new("cpu", "")], Weights::equal(1), ["main".to_string()]);
        let capacity = Capacity::new(&resources, vec![Rational::ONE]).unwrap();
        let context = PolicyContext::new(&capacity, &weights).resources(&resources).queues(&queues);
        let error = site.billing(&context).unwrap_err().to_string();
        assert!(error.contains(&format!("TRESBillingWeights = \"cpu=much\", expected {BILLING_WEIGHTS}")), "{error}");
    }
}
