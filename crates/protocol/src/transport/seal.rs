//! One direction of a connection, sealed.
//!
//! XChaCha20-Poly1305 under the shared key. The nonce is a random salt of 16 bytes that the sender draws anew for each
//! connection, and a counter: it never repeats, nor does it across restarts. The receiver's random challenge
//! goes into every seal, so that nothing that was sent on another connection, however long ago, opens on this one. On
//! the same connection the counter is the place in the stream: what is repeated, left out or put elsewhere does
//! not open either.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};

pub(crate) const CHALLENGE: usize = 32;
pub(crate) const SALT: usize = 16;
/// By how much what is sealed is longer.
pub(crate) const TAG: usize = 16;

/// Seals, or opens, what goes one way.
pub(crate) struct Seal {
    cipher: XChaCha20Poly1305,
    challenge: [u8; CHALLENGE],
    nonce: [u8; SALT + 8],
    count: u64,
}

/// It was not sealed with this key, for this connection, at this place.
#[derive(Debug)]
pub(crate) struct NotSealed;

impl Seal {
    pub(crate) fn new(key: &[u8; 32], challenge: [u8; CHALLENGE], salt: [u8; SALT]) -> Seal {
        let mut nonce = [0; SALT + 8];
        nonce[..SALT].copy_from_slice(&salt);
        Seal { cipher: XChaCha20Poly1305::new(&Key::from(*key)), challenge, nonce, count: 0 }
    }

    fn next(&mut self) -> Result<XNonce, NotSealed> {
        self.nonce[SALT..].copy_from_slice(&self.count.to_be_bytes());
        // 2^64 messages: a connection does not live so long.
        self.count = self.count.checked_add(1).ok_or(NotSealed)?;
        Ok(XNonce::from(self.nonce))
    }

    pub(crate) fn seal(&mut self, bytes: &mut Vec<u8>) -> Result<(), NotSealed> {
        let nonce = self.next()?;
        self.cipher.encrypt_in_place(&nonce, &self.challenge, bytes).map_err(|_| NotSealed)
    }

    pub(crate) fn open(&mut self, bytes: &mut Vec<u8>) -> Result<(), NotSealed> {
        let nonce = self.next()?;
        self.cipher.decrypt_in_place(&nonce, &self.challenge, bytes).map_err(|_| NotSealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_in_its_place_only() {
        let (key, challenge, salt) = ([1; 32], [2; CHALLENGE], [3; SALT]);
        let mut seal = Seal::new(&key, challenge, salt);
        let sealed: Vec<Vec<u8>> = ["first", "second"]
            .iter()
            .map(|text| {
                let mut bytes = text.as_bytes().to_vec();
                seal.seal(&mut bytes).unwrap();
                assert_eq!(bytes.len(), text.len() + TAG);
                bytes
            })
            .collect();
        let opens = |mut with: Seal, which: &[usize]| {
            which.iter().map(|i| with.open(&mut sealed[*i].clone()).is_ok()).collect::<Vec<_>>()
        };
        assert_eq!(opens(Seal::new(&key, challenge, salt), &[0, 1]), [true, true]);
        assert_eq!(opens(Seal::new(&key, challenge, salt), &[1]), [false]);
        assert_eq!(opens(Seal::new(&key, challenge, salt), &[0, 0]), [true, false]);
        assert_eq!(opens(Seal::new(&[9; 32], challenge, salt), &[0]), [false]);
        assert_eq!(opens(Seal::new(&key, [9; CHALLENGE], salt), &[0]), [false]);
        assert_eq!(opens(Seal::new(&key, challenge, [9; SALT]), &[0]), [false]);
        let mut changed = sealed[0].clone();
        changed[0] ^= 1;
        assert!(Seal::new(&key, challenge, salt).open(&mut changed).is_err());
    }
}
