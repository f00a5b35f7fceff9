//! What groups of processes send, divided in the proportion of weights.
//!
//! [`Traffic`] is the [`Enforcer`](evenhand_enforcers::cgroups::Enforcer) of the network, [`TrafficMeter`] its
//! [`Meter`](evenhand_enforcers::cgroups::Meter), and [`probe`] says whether they can work on this machine. All of it talks
//! to the kernel by netlink; no program is run.
//!
//! # How it works
//!
//! *Classes.* The device that the machine sends by gets an HTB queue with a class for each group. All classes
//! are guaranteed next to nothing (8 kbit/s) and may use the whole link. HTB hands out what nobody is
//! guaranteed in turns, and a class's turn is its [`quantum`] in bytes: so those who have something to send
//! share the link in the proportion of their quanta, and a group alone has all of it. Changing a weight is one
//! message about one class. Packets of no group are in a class of weight 1 that they share.
//!
//! *Rules.* nf_tables marks each packet with the number of its class: by the sender's control group of version 2, for
//! processes of this machine, and by the device it comes in from, for guests behind a bridge. Rules change when
//! groups come and go, not when weights do.
//!
//! # What is changed on the machine, and when it goes away
//!
//! The queue has the handle `4548:`, the rules are in the tables `evenhand` of the families `inet` and `netdev`. Both
//! are made when the first group gets a weight. They go when the last group is restored, or by
//! [`Traffic::remove_all`]. If the process dies, the kernel removes the tables at once, and what is left of the
//! queue treats everybody alike; [`Traffic::remove_leftovers`], and every [`Traffic::open`], removes that.
//! A second process is refused for as long as the first one lives.
//!
//! A queue that somebody set up is left alone unless [`Settings::force`] is given. What the kernel puts on a device
//! by itself (`noqueue`, `mq`, `pfifo_fast`, `fq_codel`) has no handle, and comes back by itself.
//!
//! # Limits
//!
//! - Only sending is divided. What comes in has crossed the link already.
//! - [`Settings::link`] must not be more than the link carries, or packets wait where nobody weighs them.
//! - Shares are exact within some percent between weights 1/4 and 4; see [`quantum`].
//! - A turn of everybody takes (sum of quanta) / link, and a group that starts to send waits for its turn: 50 busy
//!   groups of weight 1 take 11 ms on 10 Gbit/s, 106 ms on 1 Gbit/s, and over a second on 100 Mbit/s.
//! - Guests whose packets this machine *routes* (libvirt's NAT network) are not told apart by device: routing sets
//!   the packet's priority anew. Behind a bridge they are.
//! - Processes in a network namespace of their own (containers) are not seen by control group from here;
//!   name their device (the host's end of their veth pair) in [`Group::devices`](evenhand_enforcers::cgroups::Group::devices).
//! - HTB has one lock for a device: it replaces the queues by processor (`mq`) of fast network cards.
//! - By control group needs Linux 5.13, and tables that go away with their process need 5.12.
mod fault;
mod htb;
mod link;
mod meter;
mod minors;
mod nft;
mod probe;
mod rules;
mod settings;
mod socket;
mod traffic;
mod wire;

pub use fault::TrafficError;
pub use meter::TrafficMeter;
pub use probe::{Finding, probe};
pub use settings::{NEUTRAL, Settings, quantum};
pub use traffic::Traffic;
