//! Usage-weighted fair sharing, as Kueue's admission fair sharing: the user whose decayed usage over
//! weight is least goes first.
//!
//! From its documentation (kueue.sigs.k8s.io/docs/concepts/admission_fair_sharing): usage of each local
//! queue is averaged with a half-life (`usageHalfLifeTime`), summed over resources with `resourceWeights`,
//! divided by the queue's weight ("2" counts as half the usage), and the least is admitted first; an
//! *entry penalty* is added at once for each admitted workload, since usage is only sampled every
//! `usageSamplingInterval` and a queue could admit a hundred workloads before it shows.
//!
//! Here a local queue is a user and usage is exact at every instant. Amounts count as shares of the pool
//! (Kueue weighs raw quantities: cores and bytes), unless `Setting::billing` weighs them otherwise.

use evenhand_model::Span;

use crate::Registration;
use crate::billing::BillingRule;
use crate::usage_order::UsageOrder;

/// Kueue's example, and its suggestion for clusters.
const SAMPLING_INTERVAL: Span = Span::from_secs(300);

pub(crate) const REGISTRATION: Registration = Registration {
    name: "usage-weighted",
    summary: "least decayed usage over weight, with an entry penalty (Kueue's admission fair sharing)",
    needs_decay: true,
    build: |setting| Box::new(UsageOrder::new(setting, BillingRule::Sum, Some(SAMPLING_INTERVAL))),
};
