//! Keeping a queue in a policy's order: ranks as site factors, written so that they can be taken back.

mod driver;
mod ranks;
mod store;

pub use driver::{DriveError, DriveOptions, Driver, Released, Tick};
pub use ranks::{Assigned, Ranks, assign};
pub use store::{Store, StoreError, Written};
