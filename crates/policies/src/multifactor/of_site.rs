//! The settings of the policy from the configuration of the site's own Slurm.

use std::str::FromStr;

use evenhand_model::{Quantity, Rational, Resource, Span, queue_names};

use super::{Fairshare, NoNormal, Settings};
use crate::{PolicyError, SiteConfiguration};

impl Settings {
    /// Returns the settings of a site's own Slurm, from its configuration, its partitions and its QOS, for a workload with
    /// these resources, queues and QOS.
    ///
    /// # Errors
    /// Returns an error if a setting is malformed.
    pub fn of_site(
        site: &SiteConfiguration,
        resources: &[Resource],
        queues: &[String],
        qos: &[String],
    ) -> Result<Settings, PolicyError> {
        let mut settings = Settings::unset();
        let wrong = |setting: &str, found: &str, expected: &'static str| PolicyError::Site {
            setting: setting.to_string(),
            found: found.to_string(),
            expected,
        };
        let weights = &mut settings.weights;
        for (name, weight) in [
            ("PriorityWeightAge", &mut weights.age),
            ("PriorityWeightAssoc", &mut weights.association),
            ("PriorityWeightFairShare", &mut weights.fairshare),
            ("PriorityWeightJobSize", &mut weights.job_size),
            ("PriorityWeightPartition", &mut weights.partition),
            ("PriorityWeightQOS", &mut weights.qos),
        ] {
            if let Some(text) = site.get(name) {
                *weight = u32::from_str(text).map_err(|_| wrong(name, text, "a whole number"))?;
            }
        }
        weights.tres = vec![Rational::ZERO; resources.len()];
        if let Some(text) = site.get("PriorityWeightTRES") {
            for part in text.split(',') {
                let expected = "weights such as CPU=1000,Mem=2000,GRES/gpu=3000";
                let (name, weight) = part.split_once('=').ok_or_else(|| wrong("PriorityWeightTRES", text, expected))?;
                let (negative, size) = weight.strip_prefix('-').map_or((false, weight), |size| (true, size));
                let weight = Quantity::parse(size).map_err(|_| wrong("PriorityWeightTRES", text, expected))?;
                let weight = weight.exact().clone();
                let name = name.to_ascii_lowercase();
                let name = name.strip_prefix("gres/").unwrap_or(&name);
                if let Some(r) = resources.iter().position(|resource| resource.name == name) {
                    weights.tres[r] = if negative { -weight } else { weight };
                }
            }
        }
        if let Some(text) = site.get("PriorityMaxAge") {
            settings.max_age =
                days_and_time(text).ok_or_else(|| wrong("PriorityMaxAge", text, "a time such as 7-00:00:00"))?;
        }
        if let Some(text) = site.get("FairShareDampeningFactor") {
            let damping = Quantity::parse(text).ok().filter(|damping| !damping.is_zero());
            let damping = damping.ok_or_else(|| wrong("FairShareDampeningFactor", text, "a number greater than 0"))?;
            settings.damping = damping.exact().clone();
        }
        let is_yes = |text: &str| ["yes", "true", "1"].contains(&text.to_ascii_lowercase().as_str());
        settings.favor_small = site.get("PriorityFavorSmall").is_some_and(is_yes);
        let has = |flag: &str| site.has_priority_flag(flag);
        settings.small_relative_to_time = has("SMALL_RELATIVE_TO_TIME");
        settings.fairshare = match (has("DEPTH_OBLIVIOUS"), has("NO_FAIR_TREE")) {
            (true, _) => Fairshare::DepthOblivious,
            (false, true) => Fairshare::Classic,
            (false, false) => Fairshare::FairTree,
        };
        let is_plain = |factor: &str| has("NO_NORMAL_ALL") || has(&format!("NO_NORMAL_{factor}"));
        settings.no_normal = NoNormal {
            association: is_plain("ASSOC"),
            partition: is_plain("PART"),
            qos: is_plain("QOS"),
            tres: is_plain("TRES"),
        };
        let factors = &site.partition_factors;
        settings.partitions =
            queues.iter().map(|queue| factor_of(queue, |name| factors.get(name).copied()).unwrap_or(1)).collect();
        settings.highest_partition = factors.values().copied().max().unwrap_or(1);
        let priorities = &site.qos_priorities;
        settings.qos = qos.iter().map(|name| priorities.get(name).copied().unwrap_or(0)).collect();
        settings.highest_qos = priorities.values().copied().max().unwrap_or(0);
        settings.nodes = site.nodes;
        Ok(settings)
    }
}

/// A time as `scontrol` prints it: `7-00:00:00`, `12:00:00`.
pub(crate) fn days_and_time(text: &str) -> Option<Span> {
    let (days, time) = text.split_once('-').unwrap_or(("0", text));
    let parts: Vec<u64> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = parts.try_into().ok()?;
    let hours = days.parse::<u64>().ok()?.checked_mul(24)?.checked_add(hours)?;
    Some(Span::from_secs(hours.checked_mul(3600)?.checked_add(minutes * 60 + seconds)?))
}

/// The factor of a queue of a workload; of a list of partitions the highest, which Slurm tries first.
pub(super) fn factor_of(queue: &str, of: impl Fn(&str) -> Option<u32>) -> Option<u32> {
    of(queue).or_else(|| queue_names(queue).filter_map(of).max())
}
