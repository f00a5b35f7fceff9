//! The rule that the site's own Slurm has configured.

use evenhand_model::Span;

use crate::fifo::Fifo;
use crate::multifactor::{Settings, days_and_time, policy_of_site};
use crate::{Decay, PolicyError, Registration, SiteConfiguration};

const NAME: &str = "site";
/// PriorityDecayHalfLife where slurm.conf does not set it.
const HALF_LIFE: Span = Span::from_secs(7 * 86_400);

/// The policy that orders jobs as the site's own Slurm does: by its multifactor priority with all its settings, or with
/// priority/basic by submission.
///
/// It needs [`PolicyContext::site`](crate::PolicyContext::site), and is therefore no policy of
/// [`Registry::built_in`](crate::Registry::built_in): a program that knows the site adds it.
pub const SITE_RULE: Registration =
    Registration::new(NAME, "the rule of the site's own Slurm, as its slurm.conf has it", |context| {
        let Some(site) = context.site else {
            let reason = "the site's configuration is not known".to_string();
            return Err(PolicyError::Refused { policy: NAME, reason });
        };
        if !site.has_multifactor_priority() {
            return Ok(Box::new(Fifo::new(context)));
        }
        let settings = Settings::of_site(site, context.resources, context.queues, context.qos)?;
        let context = context.decay(Some(decay(site)?));
        Ok(policy_of_site(&context, &site.billing(&context)?, &settings))
    });

/// The decay of past use; without one past use is kept for ever.
fn decay(site: &SiteConfiguration) -> Result<Decay, PolicyError> {
    let half_life = match site.get("PriorityDecayHalfLife") {
        None => HALF_LIFE,
        Some(text) => days_and_time(text).ok_or_else(|| PolicyError::Site {
            setting: "PriorityDecayHalfLife".to_string(),
            found: text.to_string(),
            expected: "a time such as 7-00:00:00",
        })?,
    };
    let half_life = if half_life == Span::ZERO { Span::MAX } else { half_life };
    Decay::from_half_life(half_life).map_err(|error| PolicyError::Refused { policy: NAME, reason: error.to_string() })
}

impl SiteConfiguration {
    /// Returns whether jobs have a multifactor priority; otherwise they are in the order of submission.
    pub fn has_multifactor_priority(&self) -> bool {
        self.get("PriorityType").is_some_and(|kind| kind.ends_with("/multifactor"))
    }
}

#[cfg(test)]
mod tests {
    use evenhand_model::{Amount, Capacity, Rational, Resource, Time, UserId, Weights};

    use super::*;
    use crate::{Job, PolicyContext, Registry};

    /// The priority of a job of 3 of 4 processors under a slurm.conf.
    fn priority(conf: &[(&str, &str)]) -> Result<Option<u32>, String> {
        let resources = [Resource::new("cpu", "")];
        let capacity = Capacity::new(&resources, vec![Rational::from(4)]).unwrap();
        let weights = Weights::equal(1);
        let settings = conf.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.to_string())).collect();
        let site = SiteConfiguration { settings, ..SiteConfiguration::default() };
        let registry = Registry::built_in().with(SITE_RULE).unwrap();
        let context = PolicyContext::new(&capacity, &weights).resources(&resources).site(Some(&site));
        let mut policy = registry.build(NAME, &context).map_err(|error| error.to_string())?;
        let demand = [Amount(3)];
        let job = Job::new(UserId(0), &demand);
        Ok(policy.job_priorities().map(|p| p.priority(Time::from_secs(43_200), &job)))
    }

    #[test]
    fn the_priority_is_that_of_slurm_conf() {
        let multifactor = ("PriorityType", "priority/multifactor");
        let age = [multifactor, ("PriorityWeightAge", "1000"), ("PriorityMaxAge", "1-00:00:00")];
        assert_eq!(priority(&age), Ok(Some(500)));
        assert_eq!(priority(&[("PriorityType", "priority/basic")]), Ok(None));
        assert_eq!(priority(&[]), Ok(None));
        let error = priority(&[multifactor, ("PriorityDecayHalfLife", "soon")]).unwrap_err();
        assert!(error.contains("PriorityDecayHalfLife = \"soon\", expected a time such as 7-00:00:00"), "{error}");
    }

    #[test]
    fn without_a_site_there_is_no_rule() {
        let resources = [Resource::new("cpu", "")];
        let capacity = Capacity::new(&resources, vec![Rational::from(4)]).unwrap();
        let weights = Weights::equal(1);
        let error = SITE_RULE.build(&PolicyContext::new(&capacity, &weights)).err().unwrap();
        assert_eq!(error.to_string(), "the policy site: the site's configuration is not known");
    }
}
