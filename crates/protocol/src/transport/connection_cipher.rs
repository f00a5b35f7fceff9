//! Authenticated encryption of one direction of a connection.
//!
//! XChaCha20-Poly1305 with the shared key. The nonce consists of a random salt of 16 bytes, which the sender draws for each
//! connection, and a message counter, so it never repeats, not even across restarts. The receiver's random challenge is
//! the associated data of every message: a message recorded on another connection, however old, is rejected. Within a
//! connection the counter rejects messages that are repeated, omitted or reordered.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};

pub(crate) const CHALLENGE: usize = 32;
pub(crate) const SALT: usize = 16;
/// The number of bytes by which encryption lengthens a message.
pub(crate) const TAG: usize = 16;

/// Encrypts or decrypts the messages of one direction.
pub(crate) struct ConnectionCipher {
    cipher: XChaCha20Poly1305,
    challenge: [u8; CHALLENGE],
    nonce: [u8; SALT + 8],
    count: u64,
}

/// The message was not encrypted with this key, for this connection, at this position.
#[derive(Debug)]
pub(crate) struct CipherError;

impl ConnectionCipher {
    pub(crate) fn new(key: &[u8; 32], challenge: [u8; CHALLENGE], salt: [u8; SALT]) -> ConnectionCipher {
        let mut nonce = [0; SALT + 8];
        nonce[..SALT].copy_from_slice(&salt);
        ConnectionCipher { cipher: XChaCha20Poly1305::new(&Key::from(*key)), challenge, nonce, count: 0 }
    }

    fn next(&mut self) -> Result<XNonce, CipherError> {
        self.nonce[SALT..].copy_from_slice(&self.count.to_be_bytes());
        // No connection lives for 2^64 messages.
        self.count = self.count.checked_add(1).ok_or(CipherError)?;
        Ok(XNonce::from(self.nonce))
    }

    pub(crate) fn seal(&mut self, bytes: &mut Vec<u8>) -> Result<(), CipherError> {
        let nonce = self.next()?;
        self.cipher.encrypt_in_place(&nonce, &self.challenge, bytes).map_err(|_| CipherError)
    }

    pub(crate) fn open(&mut self, bytes: &mut Vec<u8>) -> Result<(), CipherError> {
        let nonce = self.next()?;
        self.cipher.decrypt_in_place(&nonce, &self.challenge, bytes).map_err(|_| CipherError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_accepted_only_at_their_position_on_their_connection() {
        let (key, challenge, salt) = ([1; 32], [2; CHALLENGE], [3; SALT]);
        let mut seal = ConnectionCipher::new(&key, challenge, salt);
        let sealed: Vec<Vec<u8>> = ["first", "second"]
            .iter()
            .map(|text| {
                let mut bytes = text.as_bytes().to_vec();
                seal.seal(&mut bytes).unwrap();
                assert_eq!(bytes.len(), text.len() + TAG);
                bytes
            })
            .collect();
        let opens = |mut with: ConnectionCipher, which: &[usize]| {
            which.iter().map(|i| with.open(&mut sealed[*i].clone()).is_ok()).collect::<Vec<_>>()
        };
        assert_eq!(opens(ConnectionCipher::new(&key, challenge, salt), &[0, 1]), [true, true]);
        assert_eq!(opens(ConnectionCipher::new(&key, challenge, salt), &[1]), [false]);
        assert_eq!(opens(ConnectionCipher::new(&key, challenge, salt), &[0, 0]), [true, false]);
        assert_eq!(opens(ConnectionCipher::new(&[9; 32], challenge, salt), &[0]), [false]);
        assert_eq!(opens(ConnectionCipher::new(&key, [9; CHALLENGE], salt), &[0]), [false]);
        assert_eq!(opens(ConnectionCipher::new(&key, challenge, [9; SALT]), &[0]), [false]);
        let mut changed = sealed[0].clone();
        changed[0] ^= 1;
        assert!(ConnectionCipher::new(&key, challenge, salt).open(&mut changed).is_err());
    }
}
