//! nf_tables in netlink messages: rules that classify packets by their sender.
//!
//! The rules, as `nft list ruleset` prints them:
//! ```text
//! table inet evenhand {            # sockets of processes in control groups
//!     flags owner
//!     map level2 { type cgroupsv2 : classid; elements = { "machine.slice/a.scope" : 4548:8 } }
//!     chain output {
//!         type filter hook output priority mangle; policy accept;
//!         meta priority set socket cgroupv2 level 2 map @level2
//!     }
//! }
//! table netdev evenhand {          # devices that carry the traffic of one virtual machine
//!     flags owner
//!     chain tap1 { type filter hook ingress device "tap1" priority 0; policy accept; meta priority set 4548:8 }
//! }
//! ```
//! There is one rule for each cgroup depth, however many groups there are: a packet costs a lookup, not a walk
//! through all groups. HTB takes a packet's priority as the number of its class.
//!
//! The tables are *owned* (Linux 5.12): the kernel removes them when the socket that created them is closed, also if
//! the process was killed, and `nft flush ruleset` of another process does not affect them.

use crate::traffic::TrafficError;
use crate::traffic::netlink::{self, Messages, number32};
use crate::traffic::socket::Socket;

/// The name of both tables.
pub(crate) const TABLE: &str = "evenhand";
const OUTPUT: &str = "output";

const INET: u8 = 1;
const NETDEV: u8 = 5;

const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NEW_TABLE: u16 = 0;
const GET_TABLE: u16 = 1;
const DELETE_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const DELETE_CHAIN: u16 = 5;
const NEW_RULE: u16 = 6;
const DELETE_RULE: u16 = 8;
const NEW_SET: u16 = 9;
const NEW_ELEMENT: u16 = 12;
const DELETE_ELEMENT: u16 = 14;

const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
const TABLE_OWNER: u16 = 7;
/// `NFT_TABLE_F_OWNER`.
const OWNED: u32 = 2;

/// `NFT_REG_1`, 16 bytes wide.
const REGISTER: u32 = 1;
/// The numbers by which `nft` names the types of a map's keys and values; the kernel only stores them.
const TYPE_CGROUP: u32 = 46;
const TYPE_CLASS: u32 = 23;

/// A group of cgroup v2, as rules match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Cgroup {
    /// The depth; 1 is a child of the root.
    pub(crate) level: u32,
    /// The cgroup id, which no later group of the same name has.
    pub(crate) id: u64,
}

/// A set of changes that take effect together or not at all.
#[derive(Debug)]
pub(crate) struct Transaction {
    messages: Messages,
    first: u32,
    last: u32,
}

impl Transaction {
    pub(crate) fn begin(socket: &mut Socket) -> Transaction {
        let first = socket.number();
        let mut messages = Messages::default();
        messages.begin(BATCH_BEGIN, 0, first, &[0, 0, 0, SUBSYSTEM as u8]);
        Transaction { messages, first, last: first }
    }

    fn add(&mut self, socket: &mut Socket, kind: u16, flags: u16, family: u8) -> &mut Messages {
        self.last = socket.number();
        // struct nfgenmsg: family, version, resource.
        self.messages.begin(SUBSYSTEM << 8 | kind, flags, self.last, &[family, 0, 0, 0]);
        &mut self.messages
    }

    /// Sends the transaction. Returns the first refusal, after which nothing has changed.
    pub(crate) fn commit(mut self, socket: &mut Socket) -> nix::Result<()> {
        if self.last == self.first {
            return Ok(());
        }
        self.messages.acknowledged();
        let end = socket.number();
        self.messages.begin(BATCH_END, 0, end, &[0, 0, 0, SUBSYSTEM as u8]);
        let refused = socket.transact(&self.messages, self.first, self.last)?;
        refused.first().map_or(Ok(()), |(_, errno)| Err(nix::errno::Errno::from_raw(*errno)))
    }

    /// Creates both tables, and the chain for sockets. Fails if they exist.
    pub(crate) fn make_tables(&mut self, socket: &mut Socket) {
        for family in [INET, NETDEV] {
            let out = self.add(socket, NEW_TABLE, netlink::CREATE | netlink::EXCLUSIVE, family);
            out.text(TABLE_NAME, TABLE);
            out.attribute(TABLE_FLAGS, &OWNED.to_be_bytes());
        }
        // NF_INET_LOCAL_OUT, at the priority called mangle.
        self.chain(socket, INET, OUTPUT, 3, -150, None);
    }

    /// Deletes a table with all its content.
    fn delete_table(&mut self, socket: &mut Socket, family: u8) {
        self.add(socket, DELETE_TABLE, 0, family).text(TABLE_NAME, TABLE);
    }

    fn chain(&mut self, socket: &mut Socket, family: u8, name: &str, hook: u32, priority: i32, device: Option<&str>) {
        let out = self.add(socket, NEW_CHAIN, netlink::CREATE | netlink::EXCLUSIVE, family);
        out.text(1, TABLE);
        out.text(3, name);
        out.nest(4, |out| {
            out.attribute(1, &hook.to_be_bytes());
            out.attribute(2, &priority.to_be_bytes());
            if let Some(device) = device {
                out.text(3, device);
            }
        });
        // NF_ACCEPT.
        out.attribute(5, &1_u32.to_be_bytes());
        out.text(7, "filter");
    }

    /// Creates an empty map from the control groups of one depth to classes.
    pub(crate) fn make_level(&mut self, socket: &mut Socket, level: u32) {
        let out = self.add(socket, NEW_SET, netlink::CREATE | netlink::EXCLUSIVE, INET);
        out.text(1, TABLE);
        out.text(2, &map(level));
        // Flags (NFT_SET_MAP), types and sizes of keys and values, an id within the transaction.
        for (kind, value) in [(3, 8), (4, TYPE_CGROUP), (5, 8), (6, TYPE_CLASS), (7, 4), (10, level)] {
            out.attribute(kind, &u32::to_be_bytes(value));
        }
        // For `nft list ruleset`: notes of 4 bytes for keys and values (0 and 1) that the byte order is the host's
        // (1). Without them nft prints the bytes reversed, and no paths.
        let [a, b, c, d] = 1_u32.to_ne_bytes();
        out.attribute(13, &[0, 4, a, b, c, d, 1, 4, a, b, c, d]);
    }

    /// Replaces the rules of the chain for sockets: one for each depth, the deepest last, because the last match
    /// counts: a group within a group has its own class.
    pub(crate) fn set_levels(&mut self, socket: &mut Socket, levels: impl Iterator<Item = u32>) {
        let out = self.add(socket, DELETE_RULE, 0, INET);
        out.text(1, TABLE);
        out.text(2, OUTPUT);
        for level in levels {
            self.rule(socket, INET, OUTPUT, |out| {
                // NFT_SOCKET_CGROUPV2.
                expression(out, "socket", &[(1, 3), (2, REGISTER), (3, level)]);
                out.nest(1, |out| {
                    out.text(1, "lookup");
                    out.nest(2, |out| {
                        out.text(1, &map(level));
                        out.attribute(2, &REGISTER.to_be_bytes());
                        out.attribute(3, &REGISTER.to_be_bytes());
                    });
                });
            });
        }
    }

    /// Adds a rule that sets the priority to the value that `fill` leaves in the register.
    fn rule(&mut self, socket: &mut Socket, family: u8, chain: &str, fill: impl FnOnce(&mut Messages)) {
        let out = self.add(socket, NEW_RULE, netlink::CREATE | netlink::APPEND, family);
        out.text(1, TABLE);
        out.text(2, chain);
        out.nest(4, |out| {
            fill(out);
            // NFT_META_PRIORITY.
            expression(out, "meta", &[(2, 2), (3, REGISTER)]);
        });
    }

    /// Assigns what the sockets in a control group send to this class.
    pub(crate) fn add_cgroup(&mut self, socket: &mut Socket, cgroup: Cgroup, class: u32) {
        self.element(socket, NEW_ELEMENT, cgroup, Some(class));
    }

    pub(crate) fn remove_cgroup(&mut self, socket: &mut Socket, cgroup: Cgroup) {
        self.element(socket, DELETE_ELEMENT, cgroup, None);
    }

    fn element(&mut self, socket: &mut Socket, kind: u16, cgroup: Cgroup, class: Option<u32>) {
        let flags = if class.is_some() { netlink::CREATE | netlink::EXCLUSIVE } else { 0 };
        let out = self.add(socket, kind, flags, INET);
        out.text(1, TABLE);
        out.text(2, &map(cgroup.level));
        out.nest(3, |out| {
            out.nest(1, |out| {
                out.nest(1, |out| out.attribute(1, &cgroup.id.to_ne_bytes()));
                if let Some(class) = class {
                    out.nest(2, |out| out.attribute(1, &class.to_ne_bytes()));
                }
            });
        });
    }

    /// Assigns what arrives through a device to this class, whatever device it leaves by.
    pub(crate) fn add_device(&mut self, socket: &mut Socket, device: &str, class: u32) {
        // NF_NETDEV_INGRESS.
        self.chain(socket, NETDEV, device, 0, 0, Some(device));
        self.rule(socket, NETDEV, device, |out| {
            out.nest(1, |out| {
                out.text(1, "immediate");
                out.nest(2, |out| {
                    out.attribute(1, &REGISTER.to_be_bytes());
                    out.nest(2, |out| out.attribute(1, &class.to_ne_bytes()));
                });
            });
        });
    }

    pub(crate) fn remove_device(&mut self, socket: &mut Socket, device: &str) {
        let out = self.add(socket, DELETE_CHAIN, 0, NETDEV);
        out.text(1, TABLE);
        out.text(3, device);
    }
}

fn map(level: u32) -> String {
    format!("level{level}")
}

fn expression(out: &mut Messages, name: &str, values: &[(u16, u32)]) {
    out.nest(1, |out| {
        out.text(1, name);
        out.nest(2, |out| {
            for (kind, value) in values {
                out.attribute(*kind, &value.to_be_bytes());
            }
        });
    });
}

/// Removes both tables if they exist.
pub(crate) fn remove_tables(socket: &mut Socket) -> Result<(), TrafficError> {
    for family in [INET, NETDEV] {
        let mut transaction = Transaction::begin(socket);
        transaction.delete_table(socket, family);
        match transaction.commit(socket) {
            // EOPNOTSUPP: a kernel without this family has none of our tables.
            Ok(()) | Err(nix::Error::ENOENT | nix::Error::EOPNOTSUPP | nix::Error::EAFNOSUPPORT) => {}
            Err(errno) => return Err(crate::traffic::socket::failed("removing the rules")(errno)),
        }
    }
    Ok(())
}

/// Checks that no other process owns our tables.
pub(crate) fn check_owner(socket: &mut Socket) -> Result<(), TrafficError> {
    for family in [INET, NETDEV] {
        let mut request = Messages::default();
        request.begin(SUBSYSTEM << 8 | GET_TABLE, netlink::ACK, socket.number(), &[family, 0, 0, 0]);
        request.text(TABLE_NAME, TABLE);
        let mut owner = None;
        let answer = socket.request(&request, |message| {
            let port = message.split(4).and_then(|(_, attributes)| attributes.find(TABLE_OWNER)).and_then(number32);
            owner = port.map(u32::from_be).or(owner);
        });
        match answer {
            Ok(()) | Err(nix::Error::ENOENT | nix::Error::EOPNOTSUPP | nix::Error::EAFNOSUPPORT) => {}
            Err(errno) => return Err(crate::traffic::socket::failed("looking for the rules")(errno)),
        }
        if let Some(port) = owner.filter(|port| *port != socket.port()) {
            return Err(TrafficError::Taken { table: TABLE, port });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn a_transaction_is_encoded_as_expected() {
        let mut socket = Socket::filter().unwrap();
        let mut transaction = Transaction::begin(&mut socket);
        transaction.add_cgroup(&mut socket, Cgroup { level: 2, id: 0x0102_0304 }, 0x4548_0008);
        #[rustfmt::skip]
        let expected = [
            20, 0, 0, 0, 16, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10,
            // NFT_MSG_NEWSETELEM of nf_tables; family inet.
            84, 0, 0, 0, 12, 10, 0x01, 0x06, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
            13, 0, 1, 0, b'e', b'v', b'e', b'n', b'h', b'a', b'n', b'd', 0, 0, 0, 0,
            11, 0, 2, 0, b'l', b'e', b'v', b'e', b'l', b'2', 0, 0,
            36, 0, 3, 0x80, 32, 0, 1, 0x80,
            16, 0, 1, 0x80, 12, 0, 1, 0, 4, 3, 2, 1, 0, 0, 0, 0,
            12, 0, 2, 0x80, 8, 0, 1, 0, 8, 0, 0x48, 0x45,
        ];
        assert_eq!(transaction.messages.bytes(), expected);
    }

    #[test]
    fn an_empty_transaction_is_not_sent() {
        let mut socket = Socket::filter().unwrap();
        assert!(Transaction::begin(&mut socket).commit(&mut socket).is_ok());
    }
}
