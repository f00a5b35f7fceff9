//! Settings of a site's own priority, for the policy that computes it.

use evenhand_policies::SiteConfiguration;

use crate::configuration::Configuration;
use crate::parse_values::Limit;
use crate::partitions::Partition;

/// Settings that are times.
const TIMES: [&str; 2] = ["prioritymaxage", "prioritydecayhalflife"];

/// Returns the settings of Slurm's own priority; `None` if it has no multifactor priority.
pub fn site_priority(configuration: &Configuration, partitions: &[Partition]) -> Option<SiteConfiguration> {
    Some(site_configuration(configuration, partitions)).filter(SiteConfiguration::has_multifactor_priority)
}

/// Returns the settings of a site, for policies that take defaults from them.
pub fn site_configuration(configuration: &Configuration, partitions: &[Partition]) -> SiteConfiguration {
    // slurm.conf has 14-0 where scontrol prints 14-00:00:00.
    let as_printed = |name: &str, value: &str| match Limit::parse_configured(value) {
        Some(Limit::Span(limit)) if TIMES.contains(&name) => Limit::Span(limit).to_string(),
        _ => value.to_string(),
    };
    let factor = |partition: &Partition| {
        (partition.name.clone(), u32::try_from(partition.priority_job_factor).unwrap_or(u32::MAX))
    };
    let weights =
        |partition: &Partition| partition.billing_weights.clone().map(|weights| (partition.name.clone(), weights));
    SiteConfiguration {
        settings: configuration.settings().map(|(name, value)| (name.to_string(), as_printed(name, value))).collect(),
        partition_factors: partitions.iter().map(factor).collect(),
        billing_weights: partitions.iter().filter_map(weights).collect(),
        ..SiteConfiguration::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partitions::Partitions;

    #[test]
    fn ages_are_as_scontrol_prints_them_and_weights_those_of_partitions() {
        let read = |text: &str| site_priority(&Configuration::parse(text).unwrap(), &[]);
        let site = read("PriorityType=priority/multifactor\nPriorityMaxAge=14-0\nPriorityWeightAge=10\n").unwrap();
        assert_eq!((site.get("PriorityMaxAge"), site.get("PriorityWeightAge")), (Some("14-00:00:00"), Some("10")));
        assert_eq!(read("PriorityType=priority/basic\n"), None);
        let text = "PartitionName=main\nPartitionName=fat TRESBillingWeights=CPU=1,Mem=0.25G\n";
        let site = site_configuration(&Configuration::default(), &Partitions::parse(text).unwrap().partitions);
        assert_eq!(site.billing_weights, [("fat".to_string(), "CPU=1,Mem=0.25G".to_string())].into());
    }
}
