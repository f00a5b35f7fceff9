//! Divides the traffic that groups send in proportion to their weights.
//!
//! [`TrafficEnforcer`] is the [`Enforcer`](crate::cgroups::Enforcer) of the network, [`TrafficMeter`]
//! its [`Meter`](crate::cgroups::Meter), and [`probe`] checks whether they can work on this machine. All
//! of them use netlink; no program is run.
//!
//! # How it works
//!
//! *Classes.* The device through which the machine sends gets an HTB queueing discipline with a class for each group.
//! Each class is guaranteed next to nothing (8 kbit/s) and may borrow the whole link. HTB distributes what is not
//! guaranteed in turns, and the length of a class's turn is its [`quantum`] in bytes: so the classes that have
//! something to send share the link in proportion to their quanta, and a class alone gets all of it. Changing a
//! weight is one message about one class. Packets that belong to no group share a class of weight 1.
//!
//! *Rules.* nf_tables marks each packet with the number of its class: by the sender's cgroup v2 for processes of this
//! machine, by the device through which it arrives for virtual machines behind a bridge. Rules change when groups
//! come and go, not when weights change.
//!
//! # What changes on the machine, and when it is removed
//!
//! The queueing discipline has the handle `4548:`, the rules are in the tables `evenhand` of the families `inet` and
//! `netdev`. Both are created when the first group gets a weight. They are removed when the last group is restored,
//! or by [`TrafficEnforcer::remove_all`]. If the process dies, the kernel removes the tables at once, and the
//! remaining queueing discipline treats all packets alike; [`TrafficEnforcer::remove_leftovers`], and every
//! [`TrafficEnforcer::open`], removes that. A second process is refused while the first one lives.
//!
//! A queueing discipline that another program configured is left alone unless [`Settings::force`] is set. Those that
//! the kernel installs itself (`noqueue`, `mq`, `pfifo_fast`, `fq_codel`) have no handle, and the kernel installs
//! them again.
//!
//! # Limits
//!
//! - Only outgoing traffic is divided. Incoming packets have crossed the link already.
//! - [`Settings::link`] must not exceed the real speed of the link, or packets queue where no weights apply.
//! - Shares are exact within some percent for weights between 1/4 and 4; see [`quantum`].
//! - A round of all classes takes (sum of quanta) / link, and a group that starts to send waits for its turn: 50 busy
//!   groups of weight 1 take 11 ms on 10 Gbit/s, 106 ms on 1 Gbit/s, and over a second on 100 Mbit/s.
//! - Virtual machines whose packets this machine *routes* (libvirt's NAT network) cannot be classified by device,
//!   because routing resets the packet's priority. Behind a bridge they can.
//! - Processes in a network namespace of their own (containers) cannot be classified by cgroup from here; list the
//!   host end of their veth pair in [`Group::devices`](crate::cgroups::Group::devices).
//! - HTB has one lock for each device: it replaces the per-CPU queues (`mq`) of fast network cards.
//! - Classification by cgroup needs Linux 5.13; tables that disappear with their process need 5.12.
mod class_numbers;
mod dry_run;
mod enforcer;
mod error;
mod htb;
mod leftovers;
mod link;
mod meter;
mod netlink;
mod nft;
mod probe;
mod rules;
mod settings;
mod socket;

pub use dry_run::TrafficDryRun;
pub use enforcer::TrafficEnforcer;
pub use error::TrafficError;
pub use leftovers::TrafficLeftovers;
pub use meter::TrafficMeter;
pub use probe::{Check, probe};
pub use settings::{NEUTRAL, Settings, quantum};
