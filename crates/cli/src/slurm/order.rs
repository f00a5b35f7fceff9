//! What `plan` and `run` share: the policy as typed.

use std::collections::BTreeMap;

use evenhand_model::{Quantity, Rational, Span};
use evenhand_policies::Registry;
use evenhand_slurm::PlanOptions;

use super::args::OrderArgs;
use crate::decay;
use crate::failure::Failure;
use crate::policy_args::named_policies;

/// The options, and how far back what ended counts.
pub(super) fn options(args: &OrderArgs, registry: &Registry, depth: usize) -> Result<(PlanOptions, Span), Failure> {
    let names = [args.policy.clone()];
    let policies = named_policies(registry, &names)?;
    args.policies.refuse_unused(registry, &names)?;
    let settings = args.policies.settings(registry)?;
    let needs_decay = policies.iter().any(|policy| policy.needs_decay);
    let decay = decay::of_either(args.delta.as_deref(), args.half_life.as_deref())?;
    let memory = match &args.memory {
        Some(text) => Span::parse(text).map_err(|e| Failure::Input(format!("--memory: {e}")))?,
        None => {
            // What is older than ten half-lives counts less than a thousandth of what it did.
            let ten = 10.0 * decay.tau_s() * std::f64::consts::LN_2;
            Span::from_secs(ten.min(60.0 * 86_400.0).ceil() as u64)
        }
    };
    let decay = needs_decay.then_some(decay);
    let memory = if decay.is_some() { memory } else { Span::ZERO };
    let prices = args.price.iter().map(|text| price(text)).collect::<Result<BTreeMap<_, _>, _>>()?;
    let speed_feature = args.speed_feature.clone();
    let (registry, policy) = (registry.clone(), args.policy.clone());
    Ok((PlanOptions { registry, policy, settings, decay, prices, speed_feature, depth }, memory))
}

fn price(text: &str) -> Result<(String, Rational), Failure> {
    let wrong = || Failure::Input(format!("--price: found {text:?}, expected PARTITION=NUMBER, such as fast=2"));
    let (partition, price) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
    let price = Quantity::parse(price).map_err(|_| wrong())?;
    Ok((partition.to_string(), price.exact().clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_read() {
        assert_eq!(price("fast=3/2").ok().map(|(p, x)| (p, x.to_string())), Some(("fast".into(), "3/2".into())));
        for bad in ["fast", "=2", "fast=much", "fast=-1"] {
            assert!(price(bad).is_err(), "{bad}");
        }
    }
}
