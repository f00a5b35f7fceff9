//! The papers experiments.
