//! Everything a policy may be built from.

use std::collections::BTreeMap;

use evenhand_model::{AccountTree, Capacity, Cluster, Detail, Rational, Resource, Weights, Workload};

use crate::equivalents::Equivalents;
use crate::settings::PolicySettings;
use crate::{Decay, Order};

/// Everything a policy may be built from: the pool, the users' entitlements, and what an administrator sets.
///
/// Every verb builds one of these and passes it to [`Registry::build`](crate::Registry::build). A policy takes what it
/// needs and ignores the rest. Only `capacity` and `weights` are required; the other fields have defaults.
///
/// ```
/// use evenhand_model::{Capacity, Rational, Resource, Weights};
/// use evenhand_policies::{PolicyContext, Registry};
/// let resources = [Resource::new("cpu", "")];
/// let capacity = Capacity::new(&resources, vec![Rational::from(4)]).unwrap();
/// let weights = Weights::equal(2);
/// let context = PolicyContext::new(&capacity, &weights).resources(&resources);
/// assert!(Registry::built_in().build("drf", &context).is_ok());
/// let error = Registry::built_in().build("dfr", &context).err().unwrap();
/// assert!(error.to_string().ends_with("did you mean \"drf\"?"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PolicyContext<'a> {
    /// Capacity of the pool, by resource: what a share is a part of.
    pub capacity: &'a Capacity,
    /// One weight a user; users are numbered from 0.
    pub weights: &'a Weights,
    /// The resources in the order of `capacity`, for settings that name them; empty: no setting can name any.
    pub resources: &'a [Resource],
    /// The queues in the order of [`Job::queue`](crate::Job::queue), for settings that name them.
    pub queues: &'a [String],
    /// The qualities of service in the order of [`Job::qos`](crate::Job::qos), for settings that name them.
    pub qos: &'a [String],
    /// How fast the past is forgotten; required by policies with [`needs_decay`](crate::Registration::needs_decay).
    pub decay: Option<Decay>,
    /// The structure that keeps users ordered where priorities move; decisions do not depend on it.
    pub order: Order,
    /// The users' accounts, for policies that go by them; the others go by `weights`.
    pub accounts: Option<&'a AccountTree>,
    /// Processor equivalents of jobs on the site's machines; `None`: no resource is processors.
    pub equivalents: Option<&'a Equivalents>,
    /// The settings of all policies, by section.
    pub settings: &'a PolicySettings,
    /// Configuration of the site's own scheduler, from which a policy may take defaults; `None`: not known.
    pub site: Option<&'a SiteConfiguration>,
}

impl<'a> PolicyContext<'a> {
    /// Returns a context with the two fields that every policy needs, and defaults for the others.
    pub fn new(capacity: &'a Capacity, weights: &'a Weights) -> PolicyContext<'a> {
        PolicyContext {
            capacity,
            weights,
            resources: &[],
            queues: &[],
            qos: &[],
            decay: None,
            order: Order::Auto,
            accounts: None,
            equivalents: None,
            settings: PolicySettings::none(),
            site: None,
        }
    }

    /// Takes the names of resources, queues and qualities of service from a workload.
    pub fn workload(self, workload: &'a Workload) -> PolicyContext<'a> {
        let qos = workload.details(Detail::Qos);
        PolicyContext { resources: workload.resources(), queues: workload.queues(), qos, ..self }
    }

    /// Sets the resources, in the order of the capacity.
    pub fn resources(self, resources: &'a [Resource]) -> PolicyContext<'a> {
        PolicyContext { resources, ..self }
    }

    /// Sets the names of the queues.
    pub fn queues(self, queues: &'a [String]) -> PolicyContext<'a> {
        PolicyContext { queues, ..self }
    }

    /// Sets the names of the qualities of service.
    pub fn qos(self, qos: &'a [String]) -> PolicyContext<'a> {
        PolicyContext { qos, ..self }
    }

    /// Sets the decay, or removes it.
    pub fn decay(self, decay: Option<Decay>) -> PolicyContext<'a> {
        PolicyContext { decay, ..self }
    }

    /// Sets the ordering structure; the default chooses by the number of users.
    pub fn order(self, order: Order) -> PolicyContext<'a> {
        PolicyContext { order, ..self }
    }

    /// Sets the account tree, or removes it. It must have as many users as there are weights.
    pub fn accounts(self, accounts: Option<&'a AccountTree>) -> PolicyContext<'a> {
        PolicyContext { accounts, ..self }
    }

    /// Sets the processor equivalents, or removes them.
    pub fn equivalents(self, equivalents: Option<&'a Equivalents>) -> PolicyContext<'a> {
        PolicyContext { equivalents, ..self }
    }

    /// Sets the settings of the policies.
    pub fn settings(self, settings: &'a PolicySettings) -> PolicyContext<'a> {
        PolicyContext { settings, ..self }
    }

    /// Sets the configuration of the site's own scheduler, or removes it.
    pub fn site(self, site: Option<&'a SiteConfiguration>) -> PolicyContext<'a> {
        PolicyContext { site, ..self }
    }
}

/// Configuration of a site's own scheduler, as far as policies take defaults from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteConfiguration {
    /// Settings by their names in slurm.conf(5), in lower case, with the values that `scontrol show config` prints.
    /// Settings without a value are left out.
    pub settings: BTreeMap<String, String>,
    /// `PriorityJobFactor` of every partition, by name.
    pub partition_factors: BTreeMap<String, u32>,
    /// `TRESBillingWeights` of the partitions that have them, by name.
    pub billing_weights: BTreeMap<String, String>,
    /// `Priority` of every QOS, by name; empty: not known.
    pub qos_priorities: BTreeMap<String, u32>,
    /// `UsageFactor` of the QOS that have one, by name: by what the usage of their jobs is multiplied.
    pub usage_factors: BTreeMap<String, Rational>,
    /// How many nodes there are; 0: not known.
    pub nodes: u32,
}

impl SiteConfiguration {
    /// Takes the priorities and usage factors of QOS and the number of nodes from the description of the site's machines.
    #[must_use]
    pub fn with_cluster(self, cluster: &Cluster) -> SiteConfiguration {
        SiteConfiguration {
            qos_priorities: cluster.qos.iter().map(|qos| (qos.name.clone(), qos.priority)).collect(),
            usage_factors: cluster
                .qos
                .iter()
                .filter_map(|qos| Some((qos.name.clone(), qos.usage_factor.clone()?)))
                .collect(),
            nodes: u32::try_from(cluster.machines()).unwrap_or(u32::MAX),
            ..self
        }
    }

    /// Returns a setting by its name in slurm.conf(5), in any case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    /// Returns whether `PriorityFlags` has a flag.
    pub(crate) fn has_priority_flag(&self, flag: &str) -> bool {
        let flags = self.get("PriorityFlags").unwrap_or_default();
        flags.split(',').any(|found| found.trim().eq_ignore_ascii_case(flag))
    }
}
