//! The program as a new user meets it: the built binary, in a folder of its own.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod allocate;
mod audit;
mod bad_input;
mod bench;
mod command_line;
mod disk;
mod history;
mod interrupt;
mod layers;
mod policies;
mod price;
mod processes;
mod reproduce;
mod study;
mod sweep;
mod timeline;
mod workload;
