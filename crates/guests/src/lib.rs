//! Which guests run on this machine, whose they are, and how large they were sized.
//!
//! A [`Source`] knows one way of finding that out; each is a file of its own and one line in [`SOURCES`].
//! What it needs to know comes from a table of the agent's configuration, which it reads itself.
//!
//! This room changes nothing on the machine.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod guest;
mod source;

pub use guest::{Guest, GuestError};
pub use source::{Build, Registration, SOURCES, Source, source_named};
