//! What a job is billed, against Slurm's documentation.

#![allow(clippy::unwrap_used)]

use evenhand_model::{Amount, Capacity, Quantity, Rational, Resource};
use evenhand_policies::{Billing, BillingRule};
use proptest::prelude::*;

fn exact(text: &str) -> Rational {
    Quantity::parse(text).unwrap().exact().clone()
}

/// A site whose memory is counted in GB.
fn billing(rule: BillingRule, weights: &[&str], global: &[usize]) -> Billing {
    Billing { rule, weights: Some(weights.iter().map(|w| exact(w)).collect()), global: global.to_vec() }
}

fn charge(billing: &Billing, demand: &[u64]) -> Rational {
    let names = ["cpu", "mem", "gpu", "license"];
    let resources: Vec<Resource> = names[..demand.len()].iter().map(|r| Resource::new(*r, "")).collect();
    let pool = Capacity::new(&resources, vec![Rational::from(1000); demand.len()]).unwrap();
    let demand: Vec<Amount> = demand.iter().map(|d| Amount(*d)).collect();
    billing.charge(&demand, &pool)
}

/// priority_multifactor.html: TRESBillingWeights=CPU=1.0,Mem=0.25G on nodes of 16 CPUs and 64 GB.
#[test]
fn the_jobs_of_the_priority_page() {
    let sum = billing(BillingRule::Sum, &["1", "0.25"], &[]);
    assert_eq!(charge(&sum, &[1, 60]), exact("16"));
    assert_eq!(charge(&sum, &[16, 1]), exact("16.25"));
    assert_eq!(charge(&sum, &[16, 60]), exact("31"));
    let max = billing(BillingRule::Largest, &["1", "0.25"], &[]);
    assert_eq!(charge(&max, &[1, 60]), exact("15"));
    // The page prints 15 for the second job, and in the formula that it has 15 CPUs.
    assert_eq!(charge(&max, &[15, 1]), exact("15"));
    assert_eq!(charge(&max, &[16, 1]), exact("16"));
    assert_eq!(charge(&max, &[16, 64]), exact("16"));
}

/// slurm.conf(5), TRESBillingWeights: CPU=1.0,Mem=0.25G,GRES/gpu=2.0, a job with 1 CPU and 8 GB.
#[test]
fn the_job_of_the_manual() {
    let weights = ["1", "0.25", "2"];
    assert_eq!(charge(&billing(BillingRule::Sum, &weights, &[]), &[1, 8, 0]), exact("3"));
    assert_eq!(charge(&billing(BillingRule::Largest, &weights, &[]), &[1, 8, 0]), exact("2"));
    // Its formula has the GPUs outside of the maximum, "MAX(1*1.0, 8*0.25) + (0*2.0)"; its text has them
    // inside, as something of a node ("e.g. cpus, mem, gres"). The setting of global resources decides.
    assert_eq!(charge(&billing(BillingRule::Largest, &weights, &[2]), &[1, 8, 3]), exact("8"));
    assert_eq!(charge(&billing(BillingRule::Largest, &weights, &[]), &[1, 8, 3]), exact("6"));
}

/// "a memory weight of mem=.25 on a job allocated 8GB will be billed 2048 (8192MB * .25) units".
#[test]
fn a_weight_is_for_a_unit_whatever_that_is() {
    let resources = [Resource::new("mem", "MB")];
    let pool = Capacity::new(&resources, vec![Rational::from(65_536)]).unwrap();
    let per = |weight: &str| billing(BillingRule::Sum, &[weight], &[]).charge(&[Amount(8192)], &pool);
    assert_eq!(per("0.25"), exact("2048"));
    assert_eq!(per("1/4096"), exact("2"));
}

#[test]
fn licences_are_added() {
    let max = billing(BillingRule::Largest, &["1", "0.25", "2", "10"], &[3]);
    assert_eq!(charge(&max, &[4, 8, 1, 0]), exact("4"));
    assert_eq!(charge(&max, &[4, 8, 1, 2]), exact("24"));
    assert_eq!(charge(&max, &[0, 0, 0, 2]), exact("20"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// MAX over nodes + SUM over global, and the sum, by their definitions.
    #[test]
    fn billing_is_its_definition(
        demand in prop::array::uniform4(0u64..1000),
        weights in prop::array::uniform4(prop::sample::select(vec!["0", "1", "0.25", "1/3", "7", "0.0001"])),
        global in prop::array::uniform4(any::<bool>()),
    ) {
        let of = |r: usize| Rational::from(demand[r]) * exact(weights[r]);
        let named: Vec<usize> = (0..4).filter(|r| global[*r]).collect();
        let nodes = (0..4).filter(|r| !global[*r]).map(of).max().unwrap_or(Rational::ZERO);
        let added = named.iter().fold(Rational::ZERO, |sum, r| sum + of(*r));
        prop_assert_eq!(charge(&billing(BillingRule::Largest, &weights, &named), &demand), nodes + added);
        let all = (0..4).map(of).fold(Rational::ZERO, |a, b| a + b);
        prop_assert_eq!(charge(&billing(BillingRule::Sum, &weights, &named), &demand), all);
    }
}
