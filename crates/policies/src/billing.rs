//! The charge of a running task per second, for policies that record usage.

use evenhand_model::{Amount, Capacity, Quantity, Rational, Resource, UserId, to_f64};

use crate::settings::{Listed, ReadSettings, Section, SettingKey, SettingOption};
use crate::{Job, PolicyContext, PolicyError};

/// The option `--billing` of all policies that record usage.
pub const BILLING_OPTION: SettingOption = SettingOption {
    option: "billing",
    key: Some("billing"),
    value_name: "max|sum[:RESOURCE=NUMBER,…]",
    help: "What a task is charged a second, for policies that remember use: the largest or the sum of its \
           amounts, each times a weight per unit (cpu=1,mem=0.25) or over capacity; a resource with a plus \
           (+license=10) belongs to no machine and is added to the largest [default: each policy's own, over capacity]",
    values: &[],
    default: None,
    label: "billing of policies that remember use",
    listed: Listed::WhenGiven,
    words: &[],
};

/// The key `billing` in the section of a policy that records usage.
pub const BILLING_KEY: SettingKey = SettingKey {
    name: "billing",
    kind: "\"max\" or \"sum\", then perhaps weights: \"max:cpu=1,mem=0.25,+license=10\"",
    default: "the policy's own rule, each resource over capacity",
    help: "charge of a running task a second: the largest or the sum of amount times weight",
};

/// The setting `billing` of a policy that records usage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BillingSettings {
    /// `None`: the policy's default.
    pub billing: Option<Billing>,
}

impl BillingSettings {
    /// Returns the billing that is set, or else `rule` over shares of capacity.
    pub fn or_shares(self, rule: BillingRule) -> Billing {
        self.billing.unwrap_or_else(|| Billing::shares(rule))
    }
}

impl ReadSettings for BillingSettings {
    const KEYS: &'static [SettingKey] = &[BILLING_KEY];

    fn read(section: &Section<'_>, context: &PolicyContext<'_>) -> Result<BillingSettings, PolicyError> {
        Ok(BillingSettings { billing: section.parse("billing", |text| Billing::parse(text, context.resources))? })
    }
}

/// The rule that combines a task's amounts into its charge per second of run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BillingRule {
    /// The largest of amount times weight, plus those of [global](Billing::global) resources (Slurm's
    /// `MAX_TRES`; with the default weights the task's dominant share).
    Largest,
    /// The sum of amount times weight (Slurm's `TRESBillingWeights`, Kueue's `resourceWeights`).
    Sum,
}

/// The charge of a running task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Billing {
    /// Largest or sum.
    pub rule: BillingRule,
    /// The charge for one unit of each resource, in the workload's own units; `None`: 1 over
    /// capacity, so that a charge is a share.
    pub weights: Option<Vec<Rational>>,
    /// Resources that belong to the whole system and to no machine, such as licences and burst buffers: they
    /// are added whatever the rule.
    pub global: Vec<usize>,
}

impl Billing {
    /// Returns a billing with each resource weighted by 1 over capacity.
    pub fn shares(rule: BillingRule) -> Billing {
        Billing { rule, weights: None, global: Vec::new() }
    }

    /// Reads `max` or `sum`, then perhaps a colon and weights per unit: `max:cpu=1,mem=0.25,+license=10`. As in Slurm,
    /// a resource that is not named is free.
    ///
    /// # Errors
    /// Returns what was found and what was expected.
    pub fn parse(text: &str, resources: &[Resource]) -> Result<Billing, String> {
        let (rule, weights) = text.split_once(':').map_or((text, None), |(rule, weights)| (rule, Some(weights)));
        let rule = match rule {
            "max" => BillingRule::Largest,
            "sum" => BillingRule::Sum,
            _ => {
                let expected = "max or sum, then perhaps a colon and weights as in max:cpu=1,mem=0.25,+license=10";
                return Err(format!("found {rule:?}, expected {expected}"));
            }
        };
        let Some(weights) = weights else { return Ok(Billing::shares(rule)) };
        let mut per_unit = vec![Rational::ZERO; resources.len()];
        let mut global = Vec::new();
        for part in weights.split(',') {
            let (name, weight) = part.split_once('=').unwrap_or((part, ""));
            let (name, is_global) = name.strip_prefix('+').map_or((name, false), |name| (name, true));
            let resource = resources.iter().position(|r| r.name == name).ok_or_else(|| {
                let known = resources.iter().map(|r| r.name.as_str()).collect::<Vec<_>>().join(", ");
                format!("found {name:?}, expected one of the resources {known}")
            })?;
            let weight = Quantity::parse(weight).map_err(|e| format!("weight of {name}: {e}"))?;
            per_unit[resource] = weight.exact().clone();
            if is_global {
                global.push(resource);
            }
        }
        if per_unit.iter().all(Rational::is_zero) {
            return Err(format!("found {text:?}, expected a weight greater than 0"));
        }
        Ok(Billing { rule, weights: Some(per_unit), global })
    }

    /// Returns the charge per second of a task with this demand on a pool: a weighted amount, not truncated to a whole
    /// number.
    ///
    /// ```
    /// use evenhand_model::{Amount, Capacity, Rational, Resource};
    /// use evenhand_policies::{Billing, BillingRule};
    /// // CPU=1.0,Mem=0.25 (a GB): a CPU and 8 GB are billed 3, with MAX_TRES 2.
    /// let (resources, one) = (["cpu", "mem"].map(|r| Resource::new(r, "")), Rational::ONE);
    /// let pool = Capacity::new(&resources, vec![Rational::from(16), Rational::from(64)]).unwrap();
    /// let weights = Some(vec![one, Rational::from_parts(1.into(), 4u8.into())]);
    /// let sum = Billing { rule: BillingRule::Sum, weights, global: vec![] };
    /// assert_eq!(sum.charge(&[Amount(1), Amount(8)], &pool), Rational::from(3));
    /// let max = Billing { rule: BillingRule::Largest, ..sum };
    /// assert_eq!(max.charge(&[Amount(1), Amount(8)], &pool), Rational::from(2));
    /// ```
    pub fn charge(&self, demand: &[Amount], pool: &Capacity) -> Rational {
        Charges::new(&JobBilling::from(self.clone()), pool).charge(&Job::new(UserId(0), demand))
    }
}

/// The charge of a running task by its queue and its QOS, as `TRESBillingWeights` of Slurm's partitions and `UsageFactor` of QOS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobBilling {
    /// Of tasks in no queue, and in queues past the end of `queues`.
    pub(crate) default: Billing,
    /// By queue.
    pub(crate) queues: Vec<Billing>,
    /// By what the charge of a task is multiplied, by its QOS; 1 for tasks of none, and of those past the end.
    pub(crate) usage_factors: Vec<Rational>,
}

impl From<Billing> for JobBilling {
    /// The same in every queue and QOS.
    fn from(default: Billing) -> JobBilling {
        JobBilling { default, queues: Vec::new(), usage_factors: Vec::new() }
    }
}

/// Billing prepared for a pool.
///
/// Under either rule the charge of many tasks is a weighted sum of whole steps, since under [`BillingRule::Largest`] a
/// task counts only with its most expensive resource and the global ones. So whole steps are accumulated, and charges
/// are derived from them. They stand in columns: one for each resource of each of the different billings, times each of the
/// different usage factors.
#[derive(Clone, Debug)]
pub(crate) struct Charges {
    /// The different billings; the first is the default.
    billings: Vec<OnPool>,
    /// By queue: its billing.
    of_queue: Vec<usize>,
    /// By QOS: its usage factor, among the different ones; the first is 1.
    of_qos: Vec<usize>,
    /// The charge for one step, by column.
    exact: Vec<Rational>,
    approximate: Vec<f64>,
}

/// What a billing is on a pool, besides its charges for steps.
#[derive(Clone, Debug)]
struct OnPool {
    rule: BillingRule,
    /// Whether a resource is added whatever the rule.
    global: Vec<bool>,
}

/// Products of two `f64` nearer than this, relatively, are compared exactly.
const NEAR: f64 = 8.0 * f64::EPSILON;

impl Charges {
    pub(crate) fn new(billing: &JobBilling, capacity: &Capacity) -> Charges {
        let mut different = vec![&billing.default];
        let of_queue = billing.queues.iter().map(|of| place_among(&mut different, of)).collect();
        let one = Rational::ONE;
        let mut factors = vec![&one];
        let of_qos = billing.usage_factors.iter().map(|of| place_among(&mut factors, of)).collect();
        let width = capacity.width();
        let per_step = |billing: &Billing, r: usize| match &billing.weights {
            None => Rational::ONE / capacity.exact_steps(r),
            // units / steps: one step in units.
            Some(weights) => &weights[r] * capacity.exact_units(r) / capacity.exact_steps(r),
        };
        let once: Vec<Rational> =
            different.iter().flat_map(|billing| (0..width).map(move |r| per_step(billing, r))).collect();
        let exact: Vec<Rational> =
            factors.iter().flat_map(|factor| once.iter().map(move |price| *factor * price)).collect();
        let on_pool = |billing: &&Billing| OnPool {
            rule: billing.rule,
            global: (0..width).map(|r| billing.global.contains(&r)).collect(),
        };
        Charges {
            billings: different.iter().map(on_pool).collect(),
            of_queue,
            of_qos,
            approximate: exact.iter().map(to_f64).collect(),
            exact,
        }
    }

    /// The charge for one step, by column.
    pub(crate) fn per_step(&self) -> &[Rational] {
        &self.exact
    }

    /// Returns the charged steps of a task by column: all, or those of its most expensive resource and of the global ones.
    /// Ties go to the first resource; the choice does not affect the charge.
    pub(crate) fn charged(&self, job: &Job<'_>, mut charge: impl FnMut(usize, u64)) {
        let demand = job.demand;
        let place = |id: Option<u32>, places: &[usize]| id.and_then(|id| places.get(id as usize).copied()).unwrap_or(0);
        let billing = place(job.queue, &self.of_queue);
        let OnPool { rule, global } = &self.billings[billing];
        let first = (place(job.qos, &self.of_qos) * self.billings.len() + billing) * demand.len();
        let mut dearest = None;
        for (r, d) in demand.iter().enumerate() {
            if *rule == BillingRule::Sum || global[r] {
                charge(first + r, d.0);
            } else if dearest.is_none_or(|best| self.dearer(first, demand, r, best)) {
                dearest = Some(r);
            }
        }
        if let Some(r) = dearest {
            charge(first + r, demand[r].0);
        }
    }

    /// Returns the charge per second of a task, exactly.
    pub(crate) fn charge(&self, job: &Job<'_>) -> Rational {
        let mut sum = Rational::ZERO;
        self.charged(job, |column, steps| sum += Rational::from(steps) * &self.exact[column]);
        sum
    }

    /// Whether resource `a` of a demand costs more than `b`, by the charges from column `first` on.
    fn dearer(&self, first: usize, demand: &[Amount], a: usize, b: usize) -> bool {
        let price = |r: usize| demand[r].0 as f64 * self.approximate[first + r];
        let (x, y) = (price(a), price(b));
        if (x - y).abs() > NEAR * x.max(y) {
            return x > y;
        }
        let price = |r: usize| Rational::from(demand[r].0) * &self.exact[first + r];
        price(a) > price(b)
    }
}

/// Returns the place of a value among different ones, to which it is added if it is new.
fn place_among<'a, T: PartialEq>(different: &mut Vec<&'a T>, of: &'a T) -> usize {
    different.iter().position(|known| *known == of).unwrap_or_else(|| {
        different.push(of);
        different.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::Resource;

    fn steps(billing: &Billing, demand: [u64; 2]) -> Vec<(usize, u64)> {
        let resources = ["cpu", "mem"].map(|r| Resource::new(r, ""));
        let capacity = Capacity::new(&resources, vec![Rational::from(10), Rational::from(30)]).unwrap();
        let mut charged = Vec::new();
        let charges = Charges::new(&billing.clone().into(), &capacity);
        charges.charged(&Job::new(UserId(0), &demand.map(Amount)), |r, steps| charged.push((r, steps)));
        charged
    }

    #[test]
    fn queues_and_qos_have_columns_of_their_own_where_they_charge_otherwise() {
        let resources = ["cpu", "mem"].map(|r| Resource::new(r, ""));
        let capacity = Capacity::new(&resources, vec![Rational::from(10), Rational::from(30)]).unwrap();
        let of = |text: &str| Billing::parse(text, &resources).unwrap();
        let queues = ["sum:cpu=2,mem=3", "sum:cpu=1", "sum:cpu=2,mem=3", "max:cpu=2,mem=3"].map(of).to_vec();
        let usage_factors = [2u8, 1, 0, 2].map(Rational::from).to_vec();
        let charges = Charges::new(&JobBilling { default: of("sum:cpu=1"), queues, usage_factors }, &capacity);
        let per_step: Vec<u32> = charges.per_step().iter().map(|x| x.to_string().parse().unwrap()).collect();
        assert_eq!(per_step, [1, 0, 2, 3, 2, 3, 2, 0, 4, 6, 4, 6, 0, 0, 0, 0, 0, 0]);
        let demand = [Amount(4), Amount(5)];
        let charge = |queue, qos| charges.charge(&Job { queue, qos, ..Job::new(UserId(0), &demand) }).to_string();
        let queues = [None, Some(0), Some(1), Some(2), Some(3), Some(9)];
        assert_eq!(queues.map(|queue| charge(queue, None)), ["4", "23", "4", "23", "15", "4"]);
        let factors = [None, Some(0), Some(1), Some(2), Some(3), Some(9)];
        assert_eq!(factors.map(|qos| charge(Some(3), qos)), ["15", "30", "15", "0", "30", "15"]);
    }

    #[test]
    fn the_dearest_resource_or_all() {
        let largest = Billing::shares(BillingRule::Largest);
        assert_eq!(steps(&largest, [2, 5]), [(0, 2)], "2/10 against 5/30");
        assert_eq!(steps(&largest, [2, 7]), [(1, 7)]);
        assert_eq!(steps(&largest, [2, 6]), [(0, 2)], "a tie");
        let weighted = Billing { weights: Some(vec![Rational::ONE, Rational::ONE]), ..largest };
        assert_eq!(steps(&weighted, [2, 5]), [(1, 5)]);
        assert_eq!(steps(&Billing::shares(BillingRule::Sum), [2, 5]), [(0, 2), (1, 5)]);
        let global = Billing { global: vec![0], ..weighted };
        assert_eq!(steps(&global, [2, 5]), [(0, 2), (1, 5)], "one is added, the other is the largest of one");
        assert_eq!(steps(&Billing { global: vec![0, 1], ..global }, [2, 5]), [(0, 2), (1, 5)]);
    }
}
