//! Bytes of records and of what the ring sends.
//!
//! One byte of version, then fields in order. Whole numbers are in groups of seven bits, the least first (LEB128);
//! signed ones with the sign in the lowest bit. Names of users ascend, each as the number of bytes it shares with
//! the one before and the rest. There is one way to write a thing: what is read and written again is
//! the same bytes, apart from numbers with needless zero groups.

use std::collections::BTreeMap;

use crate::exchange::record::MOST_NAME;
use crate::exchange::{Fixed, MOST_TERMS, MOST_USERS, Record, UserSums};

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Of another version of the protocol, or something else altogether.
    #[error("version {0} is not known here")]
    Version(u8),
    /// It ends too early.
    #[error("it ends too early")]
    Short,
    /// It goes on after its end.
    #[error("{0} bytes too many")]
    Trailing(usize),
    /// More of something than there may be.
    #[error("{claimed} {what}; at most {most}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// So many.
        claimed: u64,
        /// The limit.
        most: u64,
    },
    /// A number that does not fit.
    #[error("a number does not fit")]
    Number,
    /// A name that is not text.
    #[error("a name is not text")]
    Text,
    /// Users that do not ascend.
    #[error("users are not in order")]
    Order,
    /// A kind of message that there is not.
    #[error("kind {0} is not known here")]
    Kind(u8),
}

const VERSION: u8 = 1;

impl Record {
    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.record(self);
        out.bytes
    }

    /// From bytes of any origin. It never panics, and takes no more memory than a small multiple of
    /// their length.
    ///
    /// # Errors
    /// If they are not a record of this version, or one with more than there may be of anything.
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
            self.number(sums.guests);
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
            // The last group has two bits only.
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

    pub(crate) fn count(&mut self, what: &'static str, most: usize) -> Result<usize, DecodeError> {
        let (claimed, most) = (self.number()?, most as u64);
        if claimed > most {
            return Err(DecodeError::TooMany { what, claimed, most });
        }
        Ok(claimed as usize)
    }

    pub(crate) fn text(&mut self) -> Result<String, DecodeError> {
        let length = self.count("bytes of a name", MOST_NAME)?;
        String::from_utf8(self.take(length)?.to_vec()).map_err(|_| DecodeError::Text)
    }

    pub(crate) fn fixed(&mut self) -> Result<Vec<Fixed>, DecodeError> {
        let count = self.count("numbers", MOST_TERMS)?;
        let number = |_| {
            let zigzag = self.wide()?;
            Ok(Fixed::from_units((zigzag >> 1) as i128 ^ -((zigzag & 1) as i128)))
        };
        (0..count).map(number).collect()
    }

    pub(crate) fn users(&mut self) -> Result<BTreeMap<String, UserSums>, DecodeError> {
        let count = self.count("users", MOST_USERS)?;
        // A user takes four bytes at least: what is claimed and not there takes no memory.
        let mut users: Vec<(String, UserSums)> = Vec::with_capacity(count.min(self.left.len() / 4));
        for _ in 0..count {
            let before = users.last().map_or(&[][..], |(name, _)| name.as_bytes());
            let shared = self.count("bytes of a name", before.len())?;
            let rest = self.count("bytes of a name", MOST_NAME - shared)?;
            let mut name = Vec::with_capacity(shared + rest);
            name.extend_from_slice(&before[..shared]);
            name.extend_from_slice(self.take(rest)?);
            if !users.is_empty() && name.as_slice() <= before {
                return Err(DecodeError::Order);
            }
            let name = String::from_utf8(name).map_err(|_| DecodeError::Text)?;
            let guests = u32::try_from(self.number()?).map_err(|_| DecodeError::Number)?;
            users.push((name, UserSums { guests, terms: self.fixed()? }));
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
