//! The policy `blend`: between dominant resource fairness and asset fairness.
//!
//! DRF compares users by the largest share that they hold of any resource, asset fairness by the sum of their shares.
//! This policy's key is a weighted mean of the two,
//!
//! (1 - b) max_r o_r + b sum_r o_r,
//!
//! over the user's weight, where o_r is what the user holds of resource r over capacity, and b in [0, 1] is the policy's
//! only setting:
//!
//! ```toml
//! [blend]
//! asset_part = 0.5
//! ```

use evenhand_model::{Rational, to_f64};
use evenhand_policies::{
    PolicyContext, PolicyError, ReadSettings, Registration, Section, SettingKey, ShareKey, ShareOrder,
};

const NAME: &str = "blend";

/// What the command line needs to know of the policy.
pub const REGISTRATION: Registration =
    Registration::new(NAME, "lowest mean of dominant share and sum of shares, over weight", |context| {
        let settings: BlendSettings = context.read_settings(NAME)?;
        Ok(Box::new(ShareOrder::new(context, Blend::new(settings))))
    })
    .with_settings::<BlendSettings>();

/// The settings of the section `[blend]`.
#[derive(Clone, Debug, PartialEq)]
pub struct BlendSettings {
    /// b: 0 is DRF, 1 is asset fairness.
    pub asset_part: Rational,
}

impl ReadSettings for BlendSettings {
    const KEYS: &'static [SettingKey] = &[SettingKey {
        name: "asset_part",
        kind: "number from 0 to 1",
        default: "0.5",
        help: "part of the sum of shares in the key; 0 is drf, 1 is asset",
    }];

    fn read(section: &Section<'_>, _: &PolicyContext<'_>) -> Result<BlendSettings, PolicyError> {
        let Some(node) = section.get("asset_part") else {
            return Ok(BlendSettings { asset_part: Rational::from_parts(1.into(), 2u8.into()) });
        };
        // A number as written: 0.1 is exactly 1/10. What is wrong is reported with file, line and column.
        let asset_part = node.quantity()?.exact().clone();
        if asset_part > Rational::ONE {
            return Err(node.error(format!("found {asset_part}, expected a number from 0 to 1")).into());
        }
        Ok(BlendSettings { asset_part })
    }
}

/// The key, as a number with rounding and as an exact one: [`ShareOrder`] compares keys that are nearer than rounding
/// exactly, so that a tie is a tie.
struct Blend {
    asset_part: Rational,
    approximate: f64,
}

impl Blend {
    fn new(settings: BlendSettings) -> Blend {
        Blend { approximate: to_f64(&settings.asset_part), asset_part: settings.asset_part }
    }
}

impl ShareKey for Blend {
    fn approximate(&self, shares: impl Iterator<Item = f64>) -> f64 {
        let (largest, sum) = shares.fold((0.0, 0.0), |(largest, sum), share| (f64::max(largest, share), sum + share));
        (1.0 - self.approximate) * largest + self.approximate * sum
    }

    fn exact(&self, shares: impl Iterator<Item = Rational>) -> Rational {
        let (mut largest, mut sum) = (Rational::ZERO, Rational::ZERO);
        for share in shares {
            sum += &share;
            largest = largest.max(share);
        }
        (Rational::ONE - &self.asset_part) * largest + &self.asset_part * sum
    }
}
