//! JSON files that show whether they are as they were written.
//!
//! A sealed document has a first field `check`: the digest of the document's own bytes, with zeros in place of the
//! digest. A truncated, damaged or edited file does not match it, whichever field was changed. The seal is no protection
//! from someone who computes it anew.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::digest::Digest;

/// Stands for the digest while it is computed, in as many digits.
const ZEROS: &str = "00000000000000000000000000000000";
/// The bytes of a document in which its `check` begins: `{\n  "check": "`, with or without blanks.
const BEGINNING: usize = 32;

#[derive(Serialize)]
struct Sealed<'a, T> {
    check: &'a str,
    #[serde(flatten)]
    value: &'a T,
}

/// Returns a value, which is a JSON object, as a sealed document with a final line end.
pub(crate) fn seal(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    sealed(serde_json::to_vec_pretty(&Sealed { check: ZEROS, value })?)
}

/// Does the same without blanks, for documents that nobody reads.
pub(crate) fn seal_compact(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    sealed(serde_json::to_vec(&Sealed { check: ZEROS, value })?)
}

fn sealed(mut text: Vec<u8>) -> serde_json::Result<Vec<u8>> {
    text.push(b'\n');
    let check = digest(&text);
    if let Some(at) = position_of(&text, ZEROS) {
        text[at..at + ZEROS.len()].copy_from_slice(check.as_bytes());
    }
    Ok(text)
}

/// Returns the value of a sealed document, or `None` if it is not as it was written, or is that of another version.
pub(crate) fn open<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    #[derive(serde::Deserialize)]
    struct Check {
        check: String,
    }
    let Check { check } = serde_json::from_slice(text).ok()?;
    let at = position_of(text, &check).filter(|_| check.len() == ZEROS.len())?;
    let mut unsealed = text.to_vec();
    unsealed[at..at + ZEROS.len()].copy_from_slice(ZEROS.as_bytes());
    if digest(&unsealed) != check {
        return None;
    }
    serde_json::from_slice(text).ok()
}

fn digest(text: &[u8]) -> String {
    Digest::new().bytes(text).hex()
}

fn position_of(text: &[u8], check: &str) -> Option<usize> {
    let beginning = &text[..text.len().min(BEGINNING + check.len())];
    beginning.windows(check.len().max(1)).position(|window| window == check.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Value = BTreeMap<String, Vec<f64>>;

    fn value() -> Value {
        [("a".to_string(), vec![0.1, 1e-300, 5e22]), ("check it".to_string(), vec![])].into()
    }

    #[test]
    fn a_sealed_document_reads_back() {
        #[derive(serde::Deserialize)]
        struct A {
            a: Vec<f64>,
        }
        for text in [seal(&value()).unwrap(), seal_compact(&value()).unwrap()] {
            assert!(text.ends_with(b"}\n"));
            let fields: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&text).unwrap();
            assert_eq!(fields["check"].as_str().unwrap().len(), 32);
            assert_eq!(open::<A>(&text).unwrap().a, value()["a"]);
        }
    }

    proptest! {
        #[test]
        fn any_change_breaks_the_seal(at in 0usize..1000, byte in any::<u8>(), cut in any::<bool>()) {
            let text = seal(&value()).unwrap();
            let at = at % text.len();
            let mut changed = text.clone();
            if cut { changed.truncate(at) } else { changed[at] = byte }
            prop_assert_eq!(open::<serde_json::Value>(&changed).is_some(), changed == text);
        }
    }

    #[test]
    fn what_is_no_sealed_document_is_not_opened() {
        for text in ["", "{", "{}", "{\"check\": \"\"}", "{\"check\": 1}", "[]", "{\"check\": \"00\"}"] {
            assert!(open::<serde_json::Value>(text.as_bytes()).is_none(), "{text}");
        }
    }
}
