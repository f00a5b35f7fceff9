//! From heaviness to weights: how much of a node the kernel should give to each of its guests.
//!
//! [`LinearMap`] is what paper 003 does: a weight is a function of the guest's heaviness now. With that the
//! loop from weights to use to heaviness to weights flips from one end to the other. [`Integral`] moves
//! weights by a factor a step instead, until guests that contend are equally heavy. The functions beside them
//! turn a weight, which is a ratio, into numbers that a kernel takes.
//!
//! ```
//! use evenhand_heaviness::controller::{Integral, Settings, cgroup_weight, loop_gain_bound};
//!
//! // Two guests on a node whose supply weighs 2, one each of two users, beta 4/3.
//! let settings = Settings::default().bounded(loop_gain_bound(4.0 / 3.0, 1, 2.0));
//! let mut controller = Integral::new(settings)?;
//! let (heavy, light) = (controller.add(), controller.add());
//! controller.update(&[1.5, 0.5], &[1.0, 1.0])?;
//! assert_eq!((cgroup_weight(controller.weight(heavy)), cgroup_weight(controller.weight(light))), (86, 116));
//! # Ok::<(), evenhand_heaviness::controller::ControllerError>(())
//! ```
//!
//! This room does not know what heaviness is, nor which kernel it is for; it reads and writes nothing. So
//! it stands apart from `heaviness`: a metric can be used to look at a cloud without changing any weight, and
//! a controller is tested against any loop.
mod integral;
mod kernel;
mod linear;
mod stability;

pub use integral::{ControllerError, Integral, Settings};
pub use kernel::{
    SharesConversion, bfq_weight, cgroup_weight, cpu_shares, protections, rates, systemd_bfq_weight, systemd_io_weight,
};
pub use linear::{LinearMap, Range, points};
pub use stability::{delayed_gain_limit, elasticity, gain_limit, loop_gain_bound, row_gain};
