//! The wire format of records and ring messages.
//!
//! One byte of version, then the fields in order. Unsigned numbers are LEB128 (groups of seven bits, the lowest first);
//! signed numbers have their sign in the lowest bit (zigzag). User names ascend; each is encoded as the length of the
//! prefix that it shares with the previous one, and the rest. The encoding is canonical: decoding and encoding again
//! gives the same bytes, except for numbers with redundant zero groups.

use std::collections::BTreeMap;

use crate::exchange::record::MAX_NAME_LEN;
use crate::exchange::{Fixed, MAX_TERMS, MAX_USERS, Record, UserSums};

/// Why bytes cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The version of the protocol is unknown, or the bytes are of another format.
    #[error("unknown version {0}")]
    Version(u8),
    /// The bytes end too early.
    #[error("the bytes end too early")]
    Short,
    /// There are bytes after the end.
    #[error("{0} bytes too many")]
    Trailing(usize),
    /// A list is longer than allowed.
    #[error("{claimed} {items}; at limit {limit}")]
    TooMany {
        /// The items, in words.
        items: &'static str,
        /// The length of the list.
        claimed: u64,
        /// The limit.
        limit: u64,
    },
    /// A number is too large for its type.
    #[error("a number is too large")]
    Number,
    /// A name is not UTF-8.
    #[error("a name is not UTF-8")]
    Text,
    /// The names of users do not ascend.
    #[error("user names do not ascend")]
    Order,
    /// The kind of a message, or a flag, is unknown.
    #[error("unknown kind {0}")]
    Kind(u8),
}

const VERSION: u8 = 1;

impl Record {
    /// Encodes the record.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.record(self);
        out.bytes
    }

    /// Decodes a record from bytes of any origin. It never panics, and uses no more memory than a small multiple of their
    /// length.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a record of this version, or a limit is exceeded.
    pub fn decode(bytes: &[u8]) -> Result<Record, DecodeError> {
        let mut from = Reader::new(bytes)?;
        let record = from.record()?;
        from.end()?;
        Ok(record)
    }
}

pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer { bytes: vec![VERSION] }
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(crate) fn number(&mut self, number: impl Into<u128>) {
        let mut number = number.into();
        while number >= 0x80 {
            self.bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    pub(crate) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn fixed(&mut self, numbers: &[Fixed]) {
        self.count(numbers.len());
        for number in numbers {
            let units = number.units();
            self.number(((units << 1) ^ (units >> 127)) as u128);
        }
    }

    pub(crate) fn users(&mut self, users: &BTreeMap<String, UserSums>) {
        self.count(users.len());
        let mut before: &[u8] = &[];
        for (name, sums) in users {
            let name = name.as_bytes();
            let shared = name.iter().zip(before).take_while(|(a, b)| a == b).count();
            self.count(shared);
            self.count(name.len() - shared);
            self.bytes.extend_from_slice(&name[shared..]);
            self.number(sums.workloads);
            self.fixed(&sums.terms);
            before = name;
        }
    }

    pub(crate) fn record(&mut self, record: &Record) {
        self.text(&record.node);
        self.number(record.incarnation);
        self.number(record.sequence);
        self.number(record.digest);
        self.fixed(&record.supply);
        self.users(&record.users);
    }
}

pub(crate) struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Reader<'a>, DecodeError> {
        match bytes.split_first() {
            Some((&VERSION, left)) => Ok(Reader { left }),
            Some((version, _)) => Err(DecodeError::Version(*version)),
            None => Err(DecodeError::Short),
        }
    }

    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        if self.left.is_empty() { Ok(()) } else { Err(DecodeError::Trailing(self.left.len())) }
    }

    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        let (byte, left) = self.left.split_first().ok_or(DecodeError::Short)?;
        self.left = left;
        Ok(*byte)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, left) = self.left.split_at_checked(length).ok_or(DecodeError::Short)?;
        self.left = left;
        Ok(taken)
    }

    fn wide(&mut self) -> Result<u128, DecodeError> {
        let mut number = 0u128;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            let group = u128::from(byte & 0x7f);
            // The last group has only two bits.
            if shift == 126 && byte > 3 {
                return Err(DecodeError::Number);
            }
            number |= group << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DecodeError::Number)
    }

    pub(crate) fn number(&mut self) -> Result<u64, DecodeError> {
        u64::try_from(self.wide()?).map_err(|_| DecodeError::Number)
    }

    pub(crate) fn count(&mut self, items: &'static str, limit: usize) -> Result<usize, DecodeError> {
        let (claimed, limit) = (self.number()?, limit as u64);
        if claimed > limit {
            return Err(DecodeError::TooMany { items, claimed, limit });
        }
        Ok(claimed as usize)
    }

    pub(crate) fn text(&mut self) -> Result<String, DecodeError> {
        let length = self.count("bytes of a name", MAX_NAME_LEN)?;
        String::from_utf8(self.take(length)?.to_vec()).map_err(|_| DecodeError::Text)
    }

    pub(crate) fn fixed(&mut self) -> Result<Vec<Fixed>, DecodeError> {
        let count = self.count("numbers", MAX_TERMS)?;
        let number = |_| {
            let zigzag = self.wide()?;
            Ok(Fixed::from_units((zigzag >> 1) as i128 ^ -((zigzag & 1) as i128)))
        };
        (0..count).map(number).collect()
    }

    pub(crate) fn users(&mut self) -> Result<BTreeMap<String, UserSums>, DecodeError> {
        let count = self.count("users", MAX_USERS)?;
        // A user takes at least four bytes, so a false length allocates no memory.
        let mut users: Vec<(String, UserSums)> = Vec::with_capacity(count.min(self.left.len() / 4));
        for _ in 0..count {
            let before = users.last().map_or(&[][..], |(name, _)| name.as_bytes());
            let shared = self.count("bytes of a name", before.len())?;
            let rest = self.count("bytes of a name", MAX_NAME_LEN - shared)?;
            let mut name = Vec::with_capacity(shared + rest);
            name.extend_from_slice(&before[..shared]);
            name.extend_from_slice(self.take(rest)?);
            if !users.is_empty() && name.as_slice() <= before {
                return Err(DecodeError::Order);
            }
            let name = String::from_utf8(name).map_err(|_| DecodeError::Text)?;
            let workloads = u32::try_from(self.number()?).map_err(|_| DecodeError::Number)?;
            users.push((name, UserSums { workloads, terms: self.fixed()? }));
        }
        Ok(users.into_iter().collect())
    }

    pub(crate) fn record(&mut self) -> Result<Record, DecodeError> {
        Ok(Record {
            node: self.text()?,
            incarnation: self.number()?,
            sequence: self.number()?,
            digest: self.number()?,
            supply: self.fixed()?,
            users: self.users()?,
        })
    }
}
