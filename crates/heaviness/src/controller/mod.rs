//! Controllers that turn heaviness into kernel weights.
//!
//! [`LinearMap`] is the map of Poullie et al. (2016): a weight is a function of the workload's present heaviness. The loop
//! from weights to use to heaviness to weights then oscillates between the ends of the range. [`IntegralController`]
//! multiplies each weight by a factor in every update instead, until contending workloads are equally heavy.
//! [`cgroup_weight`] and the functions beside it convert a weight, which is a ratio around 1, into the values that the
//! kernel's interfaces take; [`row_gain`] and [`gain_limit`] bound the gain at which the loop is stable.
//!
//! ```
//! use evenhand_heaviness::controller::{IntegralController, IntegralSettings, cgroup_weight, loop_gain_bound};
//!
//! // Two workloads of two users on a node whose normalized supply is 2, with beta = 4/3.
//! let settings = IntegralSettings::default().with_stable_gain(loop_gain_bound(4.0 / 3.0, 1, 2.0));
//! let mut controller = IntegralController::new(settings)?;
//! let (heavy, light) = (controller.add(), controller.add());
//! controller.update(&[1.5, 0.5], &[1.0, 1.0])?;
//! assert_eq!((cgroup_weight(controller.weight(heavy)), cgroup_weight(controller.weight(light))), (86, 116));
//! # Ok::<(), evenhand_heaviness::controller::ControllerError>(())
//! ```
//!
//! This module depends neither on how heaviness is defined nor on the kernel interface, and does no I/O. A metric can
//! therefore be used without changing any weight, and a controller can be tested against any loop.
mod gain_limits;
mod integral_controller;
mod kernel_weights;
mod linear_map;

pub use gain_limits::{delayed_gain_limit, elasticity, gain_limit, loop_gain_bound, row_gain};
pub use integral_controller::{ControllerError, IntegralController, IntegralSettings};
pub use kernel_weights::{bfq_weight, cgroup_weight, cpu_shares, systemd_io_weight};
pub use linear_map::{LinearMap, WeightRange, points};
