//! HTB in netlink messages: the queueing discipline of a device, its classes, and their byte counters.
//!
//! HTB guarantees each class its rate, and lets classes borrow what is left from their parent. What is left is
//! distributed in turns of `quantum` bytes (deficit round robin), not in proportion to rates. So all classes get a
//! negligible rate and differ only in the quantum: the classes that have something to send share the link in
//! proportion to their quanta, and one class can be changed without a message about the others.

use crate::traffic::TrafficError;
use crate::traffic::netlink::{self, Message, Messages, number32, number64};
use crate::traffic::socket::{Socket, failed};

const NEW_QDISC: u16 = 36;
const DELETE_QDISC: u16 = 37;
const GET_QDISC: u16 = 38;
const NEW_CLASS: u16 = 40;
const DELETE_CLASS: u16 = 41;
const GET_CLASS: u16 = 42;

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;

/// The size of `struct tcmsg`.
const TC: usize = 20;
/// `TC_H_ROOT`.
const ROOT: u32 = 0xffff_ffff;
/// `TC_LINKLAYER_ETHERNET`: with it the kernel needs no tables of transmission times.
const ETHERNET: u8 = 1;

/// The major number of our queueing discipline, "EH", by which that of an earlier process is recognized.
pub(crate) const MAJOR: u16 = 0x4548;
/// The class from which the others borrow.
pub(crate) const TOP: u16 = 1;
/// The class of all packets that belong to no group.
pub(crate) const DEFAULT: u16 = 2;

/// The guaranteed rate of every class, in bytes per second: 8 kbit/s, which is negligible.
const GUARANTEED: u64 = 1_000;
/// A segmentation-offload packet, the largest that is sent in one piece, with its headers.
const PACKET: u64 = 66_000;
/// The length of the kernel's tick for queueing, in nanoseconds (`PSCHED_SHIFT` is 6).
const TICK: u64 = 64;

/// Returns the handle of a class: the major number of the queueing discipline in the upper half, the class's own in
/// the lower.
pub(crate) fn handle(minor: u16) -> u32 {
    u32::from(MAJOR) << 16 | u32::from(minor)
}

fn fixed(device: u32, handle: u32, parent: u32) -> [u8; TC] {
    let mut bytes = [0; TC];
    bytes[4..8].copy_from_slice(&device.to_ne_bytes());
    bytes[8..12].copy_from_slice(&handle.to_ne_bytes());
    bytes[12..16].copy_from_slice(&parent.to_ne_bytes());
    bytes
}

/// Creates our queueing discipline on a device. Without `replace` the kernel refuses if there is any but its own
/// default.
pub(crate) fn make_queue(out: &mut Messages, number: u32, device: u32, replace: bool) {
    let flags = netlink::CREATE | if replace { netlink::REPLACE } else { netlink::EXCLUSIVE };
    out.begin(NEW_QDISC, flags, number, &fixed(device, handle(0), ROOT));
    out.text(TCA_KIND, "htb");
    out.nest(TCA_OPTIONS, |out| {
        // struct tc_htb_glob: version, rate2quantum (unused: every class has its quantum), default class, two unused.
        let glob = [3, 10, u32::from(DEFAULT), 0, 0].map(u32::to_ne_bytes).concat();
        out.attribute(TCA_HTB_INIT, &glob);
    });
}

/// Deletes our queueing discipline with its classes; the kernel installs its default again.
pub(crate) fn delete_queue(out: &mut Messages, number: u32, device: u32) {
    out.begin(DELETE_QDISC, 0, number, &fixed(device, handle(0), ROOT));
}

/// Creates the class from which the others borrow: the link itself.
pub(crate) fn make_top(out: &mut Messages, number: u32, device: u32, link: u64) {
    class(out, netlink::CREATE, number, &fixed(device, handle(TOP), handle(0)), [link, link], PACKET as u32);
}

/// Creates a class with a quantum, or changes an existing one.
pub(crate) fn set_class(out: &mut Messages, number: u32, device: u32, minor: u16, link: u64, quantum: u32, make: bool) {
    let flags = if make { netlink::CREATE } else { 0 };
    class(out, flags, number, &fixed(device, handle(minor), handle(TOP)), [GUARANTEED, link], quantum);
}

/// Deletes a class with its queued packets.
pub(crate) fn delete_class(out: &mut Messages, number: u32, device: u32, minor: u16) {
    out.begin(DELETE_CLASS, 0, number, &fixed(device, handle(minor), 0));
}

fn class(out: &mut Messages, flags: u16, number: u32, fixed: &[u8; TC], [rate, ceil]: [u64; 2], quantum: u32) {
    out.begin(NEW_CLASS, flags, number, fixed);
    out.text(TCA_KIND, "htb");
    out.nest(TCA_OPTIONS, |out| {
        // struct tc_htb_opt: two tc_ratespec, then buffer, cbuffer, quantum, level, prio.
        let mut options = Vec::with_capacity(44);
        for speed in [rate, ceil] {
            // struct tc_ratespec: cell_log, linklayer, overhead, cell_align, mpu (two bytes each), rate.
            options.extend([0, ETHERNET, 0, 0, 0, 0, 0, 0]);
            options.extend(u32::try_from(speed).unwrap_or(u32::MAX).to_ne_bytes());
        }
        // At its guaranteed rate a class may send one small packet at once, or it would often exceed the rate.
        let burst_bytes = if rate == GUARANTEED { 1_600 } else { PACKET };
        let numbers = [burst(rate, burst_bytes), burst(ceil, PACKET), quantum, 0, 0];
        options.extend(numbers.map(u32::to_ne_bytes).concat());
        out.attribute(TCA_HTB_PARMS, &options);
        // 32 bits suffice for 34 Gbit/s.
        for (kind, speed) in [(TCA_HTB_RATE64, rate), (TCA_HTB_CEIL64, ceil)] {
            if speed > u64::from(u32::MAX) {
                out.attribute(kind, &speed.to_ne_bytes());
            }
        }
    });
}

/// Returns the ticks in which a link of this speed sends `minimum` bytes, or those of a millisecond if they are more:
/// how late a timer may be without loss.
fn burst(speed: u64, minimum: u64) -> u32 {
    let bytes = u128::from(minimum.max(speed / 1_000));
    let ticks = (bytes * 1_000_000_000).div_ceil(u128::from(speed.max(1)) * u128::from(TICK));
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

/// A queueing discipline at the root of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) kind: String,
    pub(crate) major: u16,
}

impl Queue {
    /// Returns whether the kernel installed it itself: then it has no major number; what `tc` installs always has
    /// one.
    pub(crate) fn is_default(&self) -> bool {
        self.major == 0
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.major == MAJOR && self.kind == "htb"
    }
}

impl std::fmt::Display for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:x}:", self.kind, self.major)
    }
}

/// Returns the queueing discipline at the root of a device, or `None` if the kernel reports none.
pub(crate) fn root(socket: &mut Socket, device: u32) -> Result<Option<Queue>, TrafficError> {
    let mut request = Messages::default();
    request.begin(GET_QDISC, netlink::DUMP, socket.number(), &fixed(device, 0, 0));
    let mut found = None;
    // Kernels without strict checking of requests send those of all devices.
    socket
        .request(&request, |message| {
            if let Some((at, ROOT, queue)) = decode_queue(message)
                && at == device
            {
                found = Some(queue);
            }
        })
        .map_err(failed("reading the queueing discipline of a device"))?;
    Ok(found)
}

/// Returns the device, the parent and the queueing discipline.
fn decode_queue(message: &Message<'_>) -> Option<(u32, u32, Queue)> {
    let (fixed, attributes) = message.split(TC)?;
    let number = |at: usize| number32(fixed.get(at..)?);
    let kind = netlink::text(attributes.find(TCA_KIND)?);
    Some((number(4)?, number(12)?, Queue { kind, major: (number(8)? >> 16) as u16 }))
}

/// One of our classes, as the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) minor: u16,
    pub(crate) quantum: u32,
    /// Bytes sent since it was created.
    pub(crate) sent: u64,
}

/// Reads our classes on a device, sorted by number.
pub(crate) fn classes(socket: &mut Socket, device: u32, into: &mut Vec<Class>) -> Result<(), TrafficError> {
    let mut request = Messages::default();
    request.begin(GET_CLASS, netlink::DUMP, socket.number(), &fixed(device, 0, 0));
    into.clear();
    socket
        .request(&request, |message| into.extend(decode_class(message)))
        .map_err(failed("reading the classes of a device"))?;
    into.sort_unstable_by_key(|class| class.minor);
    Ok(())
}

fn decode_class(message: &Message<'_>) -> Option<Class> {
    let (fixed, attributes) = message.split(TC)?;
    let id = number32(fixed.get(8..)?)?;
    let options = attributes.within(TCA_OPTIONS)?.find(TCA_HTB_PARMS)?;
    let sent = attributes.within(TCA_STATS2).and_then(|stats| stats.find(TCA_STATS_BASIC)).and_then(number64);
    ((id >> 16) as u16 == MAJOR).then_some(())?;
    Some(Class { minor: id as u16, quantum: number32(options.get(32..)?)?, sent: sent.unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The numbers are those that `tc -d class show` prints for a class created by `tc class add dev x parent 4548:1
    /// classid 4548:8 htb rate 8kbit ceil 100mbit quantum 264000`, apart from bursts.
    #[test]
    #[cfg(target_endian = "little")]
    fn a_class_is_encoded_as_expected() {
        let mut out = Messages::default();
        set_class(&mut out, 5, 9, 8, 12_500_000, 264_000, true);
        #[rustfmt::skip]
        let expected = [
            96, 0, 0, 0, 40, 0, 0x01, 0x04, 5, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 9, 0, 0, 0, 8, 0, 0x48, 0x45, 1, 0, 0x48, 0x45, 0, 0, 0, 0,
            8, 0, 1, 0, b'h', b't', b'b', 0,
            52, 0, 2, 0x80, 48, 0, 1, 0,
            0, 1, 0, 0, 0, 0, 0, 0, 0xe8, 0x03, 0, 0,
            0, 1, 0, 0, 0, 0, 0, 0, 0x20, 0xbc, 0xbe, 0,
            // 1.6 s at 1,000 bytes a second, 5.28 ms at 12.5 MB/s, in ticks of 64 ns.
            0x40, 0x78, 0x7d, 0x01, 0x44, 0x42, 0x01, 0, 0x40, 0x07, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(out.bytes(), expected);
        let class = decode_class(&netlink::messages(out.bytes()).next().unwrap()).unwrap();
        assert_eq!(class, Class { minor: 8, quantum: 264_000, sent: 0 });
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_queueing_discipline_is_encoded_as_expected() {
        let mut out = Messages::default();
        make_queue(&mut out, 1, 9, false);
        #[rustfmt::skip]
        let expected = [
            72, 0, 0, 0, 36, 0, 0x01, 0x06, 1, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0x48, 0x45, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0,
            8, 0, 1, 0, b'h', b't', b'b', 0,
            28, 0, 2, 0x80, 24, 0, 2, 0, 3, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(out.bytes(), expected);
        let (device, parent, queue) = decode_queue(&netlink::messages(out.bytes()).next().unwrap()).unwrap();
        assert_eq!((device, parent, queue.is_ours(), queue.is_default()), (9, ROOT, true, false));
        assert_eq!(queue.to_string(), "htb 4548:");
    }

    #[test]
    fn speeds_above_34_gigabits_are_encoded_in_64_bits() {
        let speed = 12_500_000_000_u64;
        let mut out = Messages::default();
        make_top(&mut out, 1, 9, speed);
        let (_, attributes) = netlink::messages(out.bytes()).next().unwrap().split(TC).unwrap();
        let options = attributes.within(TCA_OPTIONS).unwrap();
        for kind in [TCA_HTB_RATE64, TCA_HTB_CEIL64] {
            assert_eq!(options.find(kind).and_then(number64), Some(speed));
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_decoded_without_panics(payload in proptest::collection::vec(any::<u8>(), 0..160)) {
            let message = Message { kind: 40, sequence: 0, payload: &payload };
            decode_queue(&message);
            decode_class(&message);
        }

        #[test]
        fn a_truncated_class_is_rejected(cut in 0..80_usize, quantum in any::<u32>(), minor in any::<u16>()) {
            let mut out = Messages::default();
            set_class(&mut out, 5, 9, minor, 12_500_000, quantum, false);
            let whole = netlink::messages(out.bytes()).next().unwrap();
            let message = Message { payload: &whole.payload[..cut.min(whole.payload.len() - 1)], ..whole };
            prop_assert_eq!(decode_class(&message), None);
            prop_assert_eq!(decode_class(&whole), Some(Class { minor, quantum, sent: 0 }));
        }

        #[test]
        fn bursts_cover_a_packet_and_a_millisecond(speed in 1_000_u64..1_000_000_000_000) {
            let ticks = u128::from(burst(speed, PACKET));
            let bytes = ticks * u128::from(TICK) * u128::from(speed) / 1_000_000_000;
            prop_assert!(bytes >= u128::from(PACKET) && bytes >= u128::from(speed / 1_000));
        }
    }
}
