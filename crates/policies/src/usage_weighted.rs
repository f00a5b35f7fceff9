//! Usage-weighted fair sharing, as Kueue's admission fair sharing: the user whose decayed usage over
//! weight is lowest goes first.
//!
//! From its documentation (kueue.sigs.k8s.io/docs/concepts/admission_fair_sharing): usage of each local
//! queue is averaged with a half-life (`usageHalfLifeTime`), summed over resources with `resourceWeights`,
//! divided by the queue's weight ("2" counts as half the usage), and the lowest is admitted first; an
//! *entry penalty* is added at once for each admitted workload, since usage is only sampled every
//! `usageSamplingInterval` and a queue could admit a hundred workloads before it shows.
//!
//! Here a local queue is a user and usage is exact at every instant. Amounts count as shares of the pool
//! (Kueue weights raw quantities: cores and bytes), unless the setting `billing` gives other weights.

use evenhand_model::Span;

use crate::billing::{BILLING_KEY, BILLING_OPTION, BillingRule, BillingSettings};
use crate::settings::{ReadSettings, Section, SettingKey};
use crate::usage_order::UsageOrder;
use crate::{PolicyContext, PolicyError, Registration};

/// Kueue's example, and its suggestion for clusters.
const SAMPLING_INTERVAL: Span = Span::from_secs(300);

const NAME: &str = "usage-weighted";

pub(crate) const REGISTRATION: Registration = Registration::new(
    NAME,
    "lowest decayed usage over weight, with an entry penalty (Kueue's admission fair sharing)",
    |context| {
        let settings: UsageWeightedSettings = context.read_settings(NAME)?;
        let billing = settings.billing.or_shares(BillingRule::Sum).into();
        Ok(Box::new(UsageOrder::new(context, &billing, settings.sampling_interval)))
    },
)
.needing_decay()
.with_settings::<UsageWeightedSettings>()
.with_options(&[&BILLING_OPTION]);

struct UsageWeightedSettings {
    billing: BillingSettings,
    /// `None`: no entry penalty.
    sampling_interval: Option<Span>,
}

impl ReadSettings for UsageWeightedSettings {
    const KEYS: &'static [SettingKey] = &[
        BILLING_KEY,
        SettingKey {
            name: "sampling_interval",
            kind: "time (\"5m\")",
            default: "\"5m\"",
            help: "Kueue's usageSamplingInterval: for how long a start counts in advance; 0: no entry penalty",
        },
    ];

    fn read(section: &Section<'_>, context: &PolicyContext<'_>) -> Result<UsageWeightedSettings, PolicyError> {
        let read = |text: &str| Span::parse(text).map_err(|e| e.to_string());
        let interval = section.parse("sampling_interval", read)?.unwrap_or(SAMPLING_INTERVAL);
        Ok(UsageWeightedSettings {
            billing: BillingSettings::read(section, context)?,
            sampling_interval: (interval != Span::ZERO).then_some(interval),
        })
    }
}
