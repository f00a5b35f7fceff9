//! The policy inputs of a command, from which the context of each run is made.

use evenhand_model::{AccountTree, Capacity, Weights, Workload};
use evenhand_policies::equivalents::Equivalents;
use evenhand_policies::{Decay, Order, PolicyContext, PolicySettings, Registry, SiteConfiguration};

/// The policy inputs of a command: the part of a [`PolicyContext`] that is the same for all runs.
#[derive(Clone, Debug)]
pub struct PolicyInputs {
    /// The available policies.
    pub registry: Registry,
    /// One weight per user.
    pub weights: Weights,
    /// The users' accounts, for policies that use them.
    pub accounts: Option<AccountTree>,
    /// The settings of all policies.
    pub settings: PolicySettings,
    /// The structure that keeps users ordered: only the count of order events depends on it.
    pub order: Order,
    /// The configuration of the site's own scheduler, if it is known.
    pub site: Option<SiteConfiguration>,
}

impl PolicyInputs {
    /// Returns inputs with these weights, the built-in policies, and no accounts or settings.
    pub fn new(weights: Weights) -> PolicyInputs {
        PolicyInputs {
            registry: Registry::built_in(),
            weights,
            accounts: None,
            settings: PolicySettings::default(),
            order: Order::Auto,
            site: None,
        }
    }

    /// Returns the context of a run on a pool or site of this capacity.
    pub fn context<'a>(
        &'a self,
        workload: &'a Workload,
        capacity: &'a Capacity,
        equivalents: Option<&'a Equivalents>,
        decay: Option<Decay>,
    ) -> PolicyContext<'a> {
        PolicyContext::new(capacity, &self.weights)
            .workload(workload)
            .decay(decay)
            .order(self.order)
            .accounts(self.accounts.as_ref())
            .equivalents(equivalents)
            .settings(&self.settings)
            .site(self.site.as_ref())
    }
}
