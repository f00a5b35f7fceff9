//! Without accounts sdrf-tree is sdrf; with accounts its model is in `account_trees.rs`.

use super::{ReferenceModel, World, sdrf};

pub(super) fn model(world: &World) -> Box<dyn ReferenceModel> {
    sdrf::model(world)
}
