//! Network devices: their indices, speeds and byte counters.

use std::fs;

use crate::traffic::TrafficError;
use crate::traffic::netlink::{self, Message, Messages, number32, number64};
use crate::traffic::socket::{Socket, failed};

const GET_LINK: u16 = 18;
const GET_STATS: u16 = 94;
const IFLA_IFNAME: u16 = 3;
const IFLA_STATS_LINK_64: u16 = 1;
/// The sizes of `struct ifinfomsg` and `struct if_stats_msg`.
const LINK: usize = 16;
const STATS: usize = 12;

/// Returns the index of a device. A new device of the same name has another index.
pub(crate) fn index(socket: &mut Socket, device: &str) -> Result<u32, TrafficError> {
    let none = || TrafficError::NoDevice(device.into());
    // IFNAMSIZ: the kernel would reject a longer name as a malformed message.
    if device.is_empty() || device.len() > 15 {
        return Err(none());
    }
    let mut request = Messages::default();
    request.begin(GET_LINK, netlink::ACK, socket.number(), &[0; LINK]);
    request.text(IFLA_IFNAME, device);
    let mut found = None;
    let answer = socket.request(&request, |message| found = found.or(decode_index(message)));
    match (answer, found) {
        (Ok(()), Some(index)) => Ok(index),
        (Ok(()) | Err(nix::Error::ENODEV), _) => Err(none()),
        (Err(errno), _) => Err(failed("finding a network device")(errno)),
    }
}

fn decode_index(message: &Message<'_>) -> Option<u32> {
    number32(message.split(LINK)?.0.get(4..)?)
}

/// Reads the bytes received and sent by every device, sorted by index.
pub(crate) fn counters(socket: &mut Socket, into: &mut Vec<(u32, u64)>) -> Result<(), TrafficError> {
    let mut fixed = [0; STATS];
    fixed[8..].copy_from_slice(&(1_u32 << (IFLA_STATS_LINK_64 - 1)).to_ne_bytes());
    let mut request = Messages::default();
    request.begin(GET_STATS, netlink::DUMP, socket.number(), &fixed);
    into.clear();
    socket
        .request(&request, |message| into.extend(decode_counters(message)))
        .map_err(failed("reading the counters of the network devices"))?;
    into.sort_unstable();
    Ok(())
}

/// Decodes `struct rtnl_link_stats64`: packets received and sent, then bytes received and sent.
fn decode_counters(message: &Message<'_>) -> Option<(u32, u64)> {
    let (fixed, attributes) = message.split(STATS)?;
    let stats = attributes.find(IFLA_STATS_LINK_64)?;
    let bytes = number64(stats.get(16..)?)?.wrapping_add(number64(stats.get(24..)?)?);
    Some((number32(fixed.get(4..)?)?, bytes))
}

/// Returns the speed that a device reports, in bytes per second.
pub(crate) fn speed(device: &str) -> Result<u64, TrafficError> {
    // A name with a slash would name another file. Virtual devices report -1, or their file cannot be read.
    let text = match device.contains('/') {
        true => None,
        false => fs::read_to_string(format!("/sys/class/net/{device}/speed")).ok(),
    };
    let megabits = text.and_then(|t| t.trim().parse::<u64>().ok()).filter(|speed| *speed > 0);
    megabits.map(|speed| speed.saturating_mul(125_000)).ok_or_else(|| TrafficError::NoSpeed(device.into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counters_are_the_sum_of_both_directions() {
        let mut out = Messages::default();
        let mut fixed = [0; STATS];
        fixed[4] = 7;
        out.begin(92, 0, 1, &fixed);
        let stats: Vec<u8> = [1_u64, 2, 300, 4000, 5].iter().flat_map(|n| n.to_ne_bytes()).collect();
        out.attribute(IFLA_STATS_LINK_64, &stats);
        let message = netlink::messages(out.bytes()).next().unwrap();
        assert_eq!(decode_counters(&message), Some((7, 4300)));
    }

    #[test]
    fn a_device_that_does_not_report_its_speed_is_an_error() {
        assert!(matches!(speed("nothing-here"), Err(TrafficError::NoSpeed(_))));
        assert!(matches!(speed("../../etc"), Err(TrafficError::NoSpeed(_))));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_decoded_without_panics(payload in proptest::collection::vec(any::<u8>(), 0..120)) {
            let message = Message { kind: 16, sequence: 0, payload: &payload };
            decode_index(&message);
            decode_counters(&message);
        }
    }
}
