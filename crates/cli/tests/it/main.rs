//! Tests of the built program `evenhand`, each in a temporary folder.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod allocate;
mod audit;
mod audit_history;
mod command_line_page;
mod config;
mod crate_layers;
mod doctor;
mod every_policy_in_every_verb;
mod explain;
mod full_disk;
mod hostile_text;
mod interrupted_study;
mod invalid_input;
mod manual;
mod many_users;
mod memory;
mod output_files;
mod power_failure;
mod price;
mod processes;
mod publishing;
mod reproduce;
mod resumed_results;
mod service_units;
mod site;
mod stable_interfaces;
mod study;
mod study_of_a_log;
mod sweep;
mod test_folder;
mod threads;
mod timeline;
mod when;
mod why;
mod workload;
