//! Options of mechanisms.

use clap::Args;

/// Options of mechanisms.
#[derive(Args, Debug)]
pub(crate) struct MechanismArgs {
    /// baa: whether to guarantee every user at least an equal split [default: true for 3 resources and more]
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) sharing_incentive: Option<bool>,
}
