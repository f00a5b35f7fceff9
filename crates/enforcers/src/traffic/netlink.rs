//! Netlink messages and attributes as bytes: encoded, and decoded from a buffer with arbitrary content.
//!
//! Both families used here (rtnetlink and nf_tables) have the same framing (netlink(7)): a header of 16 bytes, a
//! fixed part of the family's own, and attributes with a length, a kind and a value, each padded to 4 bytes.

/// `NLM_F_REQUEST`.
pub(crate) const REQUEST: u16 = 0x1;
/// `NLM_F_ACK`.
pub(crate) const ACK: u16 = 0x4;
/// `NLM_F_DUMP`.
pub(crate) const DUMP: u16 = 0x300;
/// `NLM_F_REPLACE`.
pub(crate) const REPLACE: u16 = 0x100;
/// `NLM_F_EXCL`.
pub(crate) const EXCLUSIVE: u16 = 0x200;
/// `NLM_F_CREATE`.
pub(crate) const CREATE: u16 = 0x400;
/// `NLM_F_APPEND`.
pub(crate) const APPEND: u16 = 0x800;

/// `NLMSG_ERROR`: also acknowledges success, with error 0.
pub(crate) const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump.
pub(crate) const DONE: u16 = 3;

const HEADER: usize = 16;
const NESTED: u16 = 0x8000;
/// Masks the flags for nested attributes and network byte order.
const KIND: u16 = 0x3fff;

/// Messages that are sent to the kernel in one piece.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    bytes: Vec<u8>,
    begun: usize,
}

impl Messages {
    /// Begins a message; `fixed` is the family's own part between the header and the attributes.
    pub(crate) fn begin(&mut self, kind: u16, flags: u16, sequence: u32, fixed: &[u8]) {
        self.begun = self.bytes.len();
        self.bytes.extend(0_u32.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((flags | REQUEST).to_ne_bytes());
        self.bytes.extend(sequence.to_ne_bytes());
        self.bytes.extend(0_u32.to_ne_bytes());
        self.bytes.extend(fixed);
        self.end();
    }

    /// Adds an attribute to the last message.
    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = (4 + value.len()) as u16;
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.end();
    }

    /// Adds a text attribute with a terminating 0, as names have.
    pub(crate) fn text(&mut self, kind: u16, value: &str) {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes);
    }

    /// Adds an attribute that contains attributes.
    pub(crate) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Messages)) {
        let at = self.bytes.len();
        self.attribute(kind | NESTED, &[]);
        fill(self);
        let length = (self.bytes.len() - at) as u16;
        self.bytes[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        self.end();
    }

    /// Pads the last message and updates its length.
    fn end(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let length = (self.bytes.len() - self.begun) as u32;
        self.bytes[self.begun..self.begun + 4].copy_from_slice(&length.to_ne_bytes());
    }

    /// Requests an acknowledgement of the last message, also if it succeeds.
    pub(crate) fn acknowledged(&mut self) {
        if let Some(flags) = self.bytes.get_mut(self.begun + 6..self.begun + 8) {
            let with = u16::from_ne_bytes([flags[0], flags[1]]) | ACK;
            flags.copy_from_slice(&with.to_ne_bytes());
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) sequence: u32,
    /// The content after the header.
    pub(crate) payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Splits the payload into the fixed part and the attributes. Returns `None` if it is shorter than the fixed
    /// part.
    pub(crate) fn split(&self, fixed: usize) -> Option<(&'a [u8], Attributes<'a>)> {
        let (head, rest) = self.payload.split_at_checked(fixed)?;
        Some((head, Attributes(rest)))
    }
}

/// Iterates over the received messages, up to the first malformed one.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = number32(bytes)? as usize;
        let whole = bytes.get(..length).filter(|whole| whole.len() >= HEADER)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(Message {
            kind: number16(whole.get(4..)?)?,
            sequence: number32(whole.get(8..)?)?,
            payload: whole.get(HEADER..)?,
        })
    })
}

/// A sequence of attributes, up to the first malformed one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'a>(pub(crate) &'a [u8]);

impl<'a> Attributes<'a> {
    /// Returns the value of the first attribute of this kind.
    pub(crate) fn find(mut self, kind: u16) -> Option<&'a [u8]> {
        Iterator::find(&mut self, |(k, _)| *k == kind).map(|(_, value)| value)
    }

    /// Returns the attributes nested in the first attribute of this kind.
    pub(crate) fn within(self, kind: u16) -> Option<Attributes<'a>> {
        self.find(kind).map(Attributes)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let length = usize::from(number16(self.0)?);
        let kind = number16(self.0.get(2..)?)? & KIND;
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    }
}

/// Decodes the first two bytes in host byte order.
pub(crate) fn number16(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

/// Decodes the first four bytes in host byte order.
pub(crate) fn number32(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

/// Decodes the first eight bytes in host byte order.
pub(crate) fn number64(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|b| u64::from_ne_bytes(*b))
}

/// Decodes a text up to its terminating 0 or the end. Invalid UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn encoded_messages_are_decoded_back() {
        let mut out = Messages::default();
        out.begin(20, ACK, 7, &[9; 8]);
        out.text(1, "htb");
        out.nest(2, |out| {
            out.attribute(3, &5_u32.to_ne_bytes());
            out.attribute(4, &[1]);
        });
        out.begin(21, 0, 8, &[]);
        let all: Vec<_> = messages(out.bytes()).collect();
        assert_eq!(all.iter().map(|m| (m.kind, m.sequence)).collect::<Vec<_>>(), [(20, 7), (21, 8)]);
        let (fixed, attributes) = all[0].split(8).unwrap();
        assert_eq!(fixed, [9; 8]);
        assert_eq!(attributes.find(1).map(text), Some("htb".into()));
        let inner = attributes.within(2).unwrap();
        assert_eq!(inner.collect::<Vec<_>>(), [(3, &5_u32.to_ne_bytes()[..]), (4, &[1][..])]);
        assert_eq!(inner.find(9), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn messages_are_encoded_as_netlink_requires() {
        let mut out = Messages::default();
        out.begin(0x28, CREATE, 0x0102_0304, &[0xaa; 4]);
        out.text(1, "htb");
        out.nest(2, |out| out.attribute(6, &[7]));
        out.acknowledged();
        #[rustfmt::skip]
        let expected = [
            40, 0, 0, 0, 0x28, 0, 0x05, 0x04, 4, 3, 2, 1, 0, 0, 0, 0, // Length, kind, flags, sequence, port.
            0xaa, 0xaa, 0xaa, 0xaa,
            8, 0, 1, 0, b'h', b't', b'b', 0,
            12, 0, 2, 0x80, 5, 0, 6, 0, 7, 0, 0, 0, // The padding of the inner one belongs to the outer one.
        ];
        assert_eq!(out.bytes(), expected);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_decoded_without_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for message in messages(&bytes) {
                if let Some((_, attributes)) = message.split(4) {
                    attributes.count();
                }
            }
            Attributes(&bytes).count();
            text(&bytes);
        }

        #[test]
        fn arbitrary_lengths_are_decoded_without_panics(at in 0..40_usize, value in any::<u8>()) {
            let mut out = Messages::default();
            out.begin(20, 0, 1, &[0; 4]);
            out.nest(2, |out| out.attribute(3, &[1, 2, 3, 4]));
            out.text(1, "name");
            let mut bytes = out.bytes().to_vec();
            bytes[at % out.bytes().len()] = value;
            for message in messages(&bytes) {
                for (_, inner) in message.split(4).into_iter().flat_map(|(_, attributes)| attributes) {
                    Attributes(inner).count();
                }
            }
        }
    }
}
