//! A node without peers.

use std::net::SocketAddr;
use std::time::Duration;

use crate::exchange::{NodeState, NodeStatus, Record, Totals};

use crate::transport::{Peers, Traffic};

/// A cloud of one node, by choice: no socket, and nothing ages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Peers for Alone {
    fn round(&mut self, own: Record) -> Totals {
        let status = NodeStatus { name: own.node, age: Duration::ZERO, state: NodeState::Fresh };
        let (supply, users) = (own.supply, own.users);
        Totals { largest: supply.clone(), supply, users, nodes: vec![status], alone_since: None }
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        None
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}
