//! The secret key that all nodes share.

use std::io::Read;
use std::path::Path;

use base64::alphabet::{self, Alphabet};
use base64::engine::{DecodePaddingMode, Engine, GeneralPurpose, GeneralPurposeConfig};

/// The maximum number of keys in a file.
const MAX_KEYS: usize = 4;

/// Reads the key from a file: 32 raw bytes, 64 hexadecimal digits, or base64 of 43 characters (44 with padding).
/// `head -c 32 /dev/urandom | base64` creates one.
///
/// A file of text can have several keys, a line each: the first one encrypts, all of them decrypt. So a key is replaced
/// without an interruption: all nodes first get the new key as their second line, then as the first one, then alone.
///
/// # Errors
/// Returns an error if the file cannot be read, users other than its owner may read it, or it has another format.
pub fn read_keys(path: &Path) -> Result<Vec<[u8; 32]>, KeyError> {
    let file = std::fs::File::open(path).map_err(KeyError::Read)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata().map_err(KeyError::Read)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed { mode });
        }
    }
    let mut bytes = Vec::new();
    file.take(1024).read_to_end(&mut bytes).map_err(KeyError::Read)?;
    keys_from(&bytes)
}

fn keys_from(bytes: &[u8]) -> Result<Vec<[u8; 32]>, KeyError> {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let lines: Vec<&[u8]> = if bytes.len() == 32 { vec![bytes] } else { lines.collect() };
    match lines.len() {
        0 => Err(KeyError::Form { length: 0 }),
        1..=MAX_KEYS => lines.into_iter().map(key_from).collect(),
        number => Err(KeyError::Number { number }),
    }
}

fn key_from(bytes: &[u8]) -> Result<[u8; 32], KeyError> {
    let key = match bytes.try_into() {
        Ok(key) => key,
        Err(_) => {
            let text = std::str::from_utf8(bytes).map_err(|_| KeyError::Form { length: bytes.len() })?.trim();
            let decoded = if text.len() == 64 { hex(text) } else { decode_base64(text) };
            let form_error = || KeyError::Form { length: text.len() };
            decoded.ok_or_else(form_error)?.try_into().map_err(|_| form_error())?
        }
    };
    // An accident, such as a full disk or an empty variable.
    if key == [0; 32] { Err(KeyError::Zero) } else { Ok(key) }
}

/// Decodes either alphabet of RFC 4648, with or without padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let with = |alphabet: &Alphabet| {
        let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        GeneralPurpose::new(alphabet, config).decode(text).ok()
    };
    with(&alphabet::STANDARD).or_else(|| with(&alphabet::URL_SAFE))
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
    Some(digits?.chunks(2).map(|two| two.iter().fold(0, |byte, digit| byte << 4 | *digit as u8)).collect())
}

/// Why a key cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("the key cannot be read")]
    Read(#[source] std::io::Error),
    /// Users other than its owner may read the file.
    #[error("users other than its owner may read the key (mode {mode:03o}; set it to 600)")]
    Exposed {
        /// The permissions of the file.
        mode: u32,
    },
    /// The file has none of the formats.
    #[error("a key is 32 raw bytes, 64 hexadecimal digits, or base64 of 32 bytes; this has {length} characters")]
    Form {
        /// The length in characters.
        length: usize,
    },
    /// There are too many keys.
    #[error(
        "the file has {number} keys, expected at most {MAX_KEYS}: the present one first, then earlier or later ones"
    )]
    Number {
        /// Their number.
        number: usize,
    },
    /// All bytes are 0.
    #[error("all bytes of the key are 0")]
    Zero,
}

#[cfg(test)]
mod tests {
    use base64::prelude::BASE64_STANDARD_NO_PAD as STANDARD;

    use super::*;

    #[test]
    fn keys_are_raw_bytes_hexadecimal_digits_or_base64() {
        let key: [u8; 32] = std::array::from_fn(|i| i as u8 + 200);
        let digits: String = key.iter().map(|byte| format!("{byte:02X}")).collect();
        let letters = STANDARD.encode(key);
        for form in [key.to_vec(), digits.clone().into(), format!("{digits}\n").into(), letters.clone().into()] {
            assert_eq!(key_from(&form).unwrap(), key);
        }
        assert_eq!(key_from(format!("{letters}=\n").as_bytes()).unwrap(), key);
        assert_eq!(key_from(letters.replace('+', "-").replace('/', "_").as_bytes()).unwrap(), key);
        assert!(matches!(key_from(&digits.as_bytes()[1..]), Err(KeyError::Form { length: 63 })));
        assert!(matches!(key_from(&key[1..]), Err(KeyError::Form { length: 31 })));
        assert!(matches!(key_from(b"not a key"), Err(KeyError::Form { length: 9 })));
        assert!(matches!(key_from(&[0; 32]), Err(KeyError::Zero)));
        assert!(matches!(key_from(b""), Err(KeyError::Form { length: 0 })));
    }

    #[test]
    fn a_file_of_several_lines_has_several_keys() {
        let line = |byte: u8| STANDARD.encode([byte; 32]) + "\n";
        assert_eq!(keys_from(format!("{}\n{}", line(1), line(2)).as_bytes()).unwrap(), [[1; 32], [2; 32]]);
        assert!(matches!(keys_from((line(1) + "second\n").as_bytes()), Err(KeyError::Form { length: 6 })));
        assert!(matches!(keys_from(line(1).repeat(5).as_bytes()), Err(KeyError::Number { number: 5 })));
        assert!(matches!(keys_from(b"\n"), Err(KeyError::Form { length: 0 })));
        // Raw bytes may look like line ends.
        assert_eq!(keys_from(&[b'\n'; 32]).unwrap(), [[b'\n'; 32]]);
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_other_users_may_read_is_rejected() {
        use std::os::unix::fs::PermissionsExt;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 32]).unwrap();
        let allow = |mode| std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        allow(0o600);
        assert_eq!(read_keys(file.path()).unwrap(), [[7; 32]]);
        allow(0o640);
        assert!(matches!(read_keys(file.path()), Err(KeyError::Exposed { mode: 0o640 })));
        assert!(matches!(read_keys(Path::new("/nowhere")), Err(KeyError::Read(_))));
    }
}
