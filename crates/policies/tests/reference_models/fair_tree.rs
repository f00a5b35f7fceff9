//! Without accounts Fair Tree has one level, and orders users as half-life does; with accounts its model is in
//! `slurm_documents.rs`.

use super::{ReferenceModel, World, half_life};

pub(super) fn model(world: &World) -> Box<dyn ReferenceModel> {
    half_life::model(world)
}
