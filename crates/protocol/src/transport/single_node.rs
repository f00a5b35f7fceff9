//! A cloud of one node.

use std::net::SocketAddr;
use std::time::Duration;

use crate::exchange::{NodeState, NodeStatus, Record, Totals};

use crate::transport::{Peers, Traffic};

/// A cloud of one node, without sockets; its record never ages.
#[derive(Clone, Copy, Debug, Default)]
pub struct SingleNode;

impl Peers for SingleNode {
    fn exchange(&mut self, record: Record) -> Totals {
        let status = NodeStatus { name: record.node, age: Duration::ZERO, state: NodeState::Fresh };
        let (supply, users) = (record.supply, record.users);
        Totals { largest: supply.clone(), supply, users, nodes: vec![status], isolated_since: None }
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        None
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}
