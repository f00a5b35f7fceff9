//! The policy `site` on a site whose partitions bill by different weights and QOS by different factors, against the definitions in exact rationals.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use evenhand_model::{AccountTree, Amount, Capacity, Rational, Resource, Time, UserId, Weights};
use evenhand_policies::{Job, PolicyContext, Registry, SITE_RULE, SiteConfiguration};
use proptest::prelude::*;

const HALF_LIFE_S: u64 = 3600;

/// The weights of a partition, of a processor, a mebibyte and a GPU.
type Partition = Option<[Rational; 3]>;

/// A job that has run for a half-life: its user, its partition, its QOS and its amounts.
type Ran = (usize, usize, usize, [u64; 3]);

fn quarters(number: u64) -> Rational {
    Rational::from_parts(number.into(), 4u8.into())
}

fn by_hand(flags: &str, partition: &Partition, [cpu, mem, gpu]: [u64; 3]) -> Rational {
    let Some([of_cpu, of_mem, of_gpu]) = partition else { return Rational::from(cpu) };
    let (cpu, mem, gpu) = (Rational::from(cpu) * of_cpu, Rational::from(mem) * of_mem, Rational::from(gpu) * of_gpu);
    match flags {
        "MAX_TRES" => cpu.max(mem).max(gpu),
        "MAX_TRES_GRES" => cpu.max(mem) + gpu,
        _ => cpu + mem + gpu,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn users_are_ranked_by_what_their_partitions_and_qos_bill(
        partitions in prop::collection::vec(prop::option::weighted(0.7, prop::array::uniform3(0u64..5)), 1..4),
        ran in prop::collection::vec((0usize..4, 0usize..5, 0usize..4, (0u64..5, 0u64..5, 0u64..3)), 0..10),
        running in prop::collection::vec((0usize..4, 0usize..5, 0usize..4, (0u64..5, 0u64..5, 0u64..3)), 0..4),
        factors in prop::collection::vec(prop::option::weighted(0.7, 0u64..9), 0..4),
        flags in prop::sample::select(vec!["", "MAX_TRES", "MAX_TRES_GRES"]),
        unit in prop::sample::select(vec![("MB", 1u64), ("B", 1 << 20)]),
    ) {
        let users = 4;
        let (unit, mebibyte) = unit;
        let resources = [Resource::new("cpu", ""), Resource::new("mem", unit), Resource::new("gpu", "")];
        // Powers of two, so that what ties in fractions ties in 64 bits.
        let sizes = [64, 1024 * mebibyte, 16].map(Rational::from).to_vec();
        let capacity = Capacity::new(&resources, sizes).unwrap();
        let weights = Weights::equal(users);
        let names: Vec<String> = (0..partitions.len()).map(|at| format!("p{at}")).collect();
        let mut site = SiteConfiguration {
            settings: [
                ("PriorityType", "priority/multifactor"),
                ("PriorityWeightFairShare", "1000"),
                ("PriorityDecayHalfLife", "0-01:00:00"),
                ("PriorityFlags", flags),
            ]
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_string()))
            .into(),
            partition_factors: names.iter().map(|name| (name.clone(), 1)).collect(),
            billing_weights: BTreeMap::new(),
            usage_factors: BTreeMap::new(),
            ..SiteConfiguration::default()
        };
        let partitions: Vec<Partition> = partitions.into_iter().map(|p| p.map(|w| w.map(quarters))).collect();
        for (name, partition) in names.iter().zip(&partitions) {
            if let Some(weights) = partition {
                let [cpu, mem, gpu] = weights.each_ref().map(evenhand_model::to_f64);
                site.billing_weights.insert(name.clone(), format!("CPU={cpu},Mem={}G,GRES/gpu={gpu}", mem * 1024.0));
            }
        }
        let qos: Vec<String> = (0..factors.len()).map(|at| format!("q{at}")).collect();
        for (name, factor) in qos.iter().zip(&factors) {
            factor.iter().for_each(|factor| drop(site.usage_factors.insert(name.clone(), quarters(*factor))));
        }
        let tree = AccountTree::new(Vec::new(), vec![None; users], vec![Rational::ONE; users]).unwrap();
        let registry = Registry::built_in().with(SITE_RULE).unwrap();
        let context = PolicyContext::new(&capacity, &weights).resources(&resources).queues(&names).qos(&qos);
        let mut policy = registry.build("site", &context.site(Some(&site)).accounts(Some(&tree))).unwrap();
        let flat = |(user, partition, qos, (cpu, mem, gpu)): &(usize, usize, usize, (u64, u64, u64))| -> Ran {
            (*user, *partition, *qos, [*cpu, *mem, *gpu])
        };
        // Half of what ran for a half-life is left, and of what has run since as much again.
        let mut usage = vec![Rational::ZERO; users];
        let mut charge = |(user, partition, qos, amounts): Ran, part: u64| {
            let weights = partitions.get(partition).unwrap_or(&None);
            let factor = factors.get(qos).copied().flatten().map_or(Rational::ONE, quarters);
            usage[user] += factor * by_hand(flags, weights, amounts) * Rational::from_parts(1.into(), part.into());
        };
        let jobs: Vec<(Ran, u64)> = ran.iter().map(|job| (flat(job), 4)).chain(running.iter().map(|job| (flat(job), 2))).collect();
        let demands: Vec<[Amount; 3]> = jobs.iter().map(|((.., [c, m, g]), _)| [*c, *m * mebibyte, *g].map(Amount)).collect();
        let job = |at: usize| {
            let (user, partition, qos, _) = jobs[at].0;
            Job { queue: Some(partition as u32), qos: Some(qos as u32), ..Job::new(UserId(user as u32), &demands[at]) }
        };
        for (at, (of, part)) in jobs.iter().enumerate().filter(|(_, (_, part))| *part == 4) {
            charge(*of, *part);
            policy.started(Time::ZERO, &job(at));
        }
        let middle = Time::from_secs(HALF_LIFE_S);
        for (at, (of, part)) in jobs.iter().enumerate() {
            match part {
                4 => policy.finished(middle, &job(at)),
                _ => {
                    charge(*of, *part);
                    policy.started(middle, &job(at));
                }
            }
        }
        let now = Time::from_secs(2 * HALF_LIFE_S);
        let nothing = [Amount(0); 3];
        for user in 0..users {
            let better = usage.iter().filter(|other| **other < usage[user]).count() as u32;
            let waits = Job::new(UserId(user as u32), &nothing);
            let priorities = policy.job_priorities().unwrap();
            priorities.update(now);
            // Of the fair-share factor alone: the rank over the number of users.
            let expected = (1000 * (users as u32 - better) / users as u32).max(1);
            prop_assert_eq!(priorities.priority(now, &waits), expected, "{} of {:?}", user, usage);
        }
    }
}
