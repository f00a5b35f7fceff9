//! Options of `plan` and `run`, from the command line.

use std::collections::BTreeMap;

use evenhand_model::{Quantity, Rational, Span};
use evenhand_policies::Registry;
use evenhand_slurm::PlanOptions;

use crate::arguments::policy_settings::policies_of;
use crate::arguments::{OrderArgs, decay};
use crate::failure::Failure;

/// Returns the options, and how far back finished jobs count.
pub(super) fn plan_options(
    args: &OrderArgs,
    registry: &Registry,
    depth: usize,
) -> Result<(PlanOptions, Span), Failure> {
    let names = [args.policy.clone()];
    let policies = policies_of("--policy", registry, &names, &[])?;
    args.policies.refuse_unused(registry, &names)?;
    let settings = args.policies.settings(registry)?;
    let needs_decay = policies.iter().any(|policy| policy.needs_decay);
    let decay = decay::parse_decay(args.delta.as_deref(), args.half_life.as_deref())?;
    let memory = match &args.memory {
        Some(text) => Span::parse(text).map_err(|e| Failure::Input(format!("--memory: {e}")))?,
        None => {
            // Use older than ten half-lives counts less than a thousandth.
            let ten_half_lives_s = 10.0 * decay.tau_s() * std::f64::consts::LN_2;
            Span::from_secs(ten_half_lives_s.min(60.0 * 86_400.0).ceil() as u64)
        }
    };
    let decay = needs_decay.then_some(decay);
    let memory = if decay.is_some() { memory } else { Span::ZERO };
    let prices = args.price.iter().map(|text| parse_price(text)).collect::<Result<BTreeMap<_, _>, _>>()?;
    let speed_feature = args.speed_feature.clone();
    let (registry, policy) = (registry.clone(), args.policy.clone());
    Ok((PlanOptions { registry, policy, settings, decay, prices, speed_feature, depth }, memory))
}

/// Parses one entry of `--price`.
fn parse_price(text: &str) -> Result<(String, Rational), Failure> {
    let invalid = || Failure::Input(format!("--price: found {text:?}, expected PARTITION=NUMBER, such as fast=2"));
    let (partition, price) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(invalid)?;
    let price = Quantity::parse(price).map_err(|_| invalid())?;
    Ok((partition.to_string(), price.exact().clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_parsed_and_other_texts_are_rejected() {
        assert_eq!(parse_price("fast=3/2").ok().map(|(p, x)| (p, x.to_string())), Some(("fast".into(), "3/2".into())));
        for invalid in ["fast", "=2", "fast=much", "fast=-1"] {
            assert!(parse_price(invalid).is_err(), "{invalid}");
        }
    }
}
