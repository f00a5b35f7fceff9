//! What a job asks for, machine by machine.

use thiserror::Error;

use crate::{Rational, Stock};

/// Equal pieces of a job, each of which runs on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How many there are, at least 1.
    pub count: u32,
    /// What each holds, by resource, none twice.
    pub wants: Vec<(String, Stock)>,
}

/// Why a text names no chunks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found {found:?} in {text:?}, expected {expected}")]
pub struct ChunkError {
    /// The whole text.
    pub text: String,
    /// The part that is wrong.
    pub found: String,
    /// What should stand there.
    pub expected: &'static str,
}

impl Chunk {
    /// Reads chunks as PBS users write them: `2:cpu=4:mem=8Gi+cpu=1:gpu=2` is two of 4 processors and
    /// 8 GiB and one of a processor and two GPUs. Commas are as good as colons.
    ///
    /// ```
    /// use evenhand_model::Chunk;
    /// let chunks = Chunk::parse_all("2:cpu=4:mem=8Gi+cpu=1,gpu=2").unwrap();
    /// assert_eq!((chunks[0].count, chunks[0].wants.len()), (2, 2));
    /// assert_eq!((chunks[1].count, chunks[1].wants[1].0.as_str()), (1, "gpu"));
    /// assert!(Chunk::parse_all("cpu=x").is_err());
    /// ```
    ///
    /// # Errors
    /// If there is nothing to hold, a number is none, or a resource is named twice in a chunk.
    pub fn parse_all(text: &str) -> Result<Vec<Chunk>, ChunkError> {
        text.split('+').map(|part| Chunk::parse(text, part)).collect()
    }

    fn parse(text: &str, part: &str) -> Result<Chunk, ChunkError> {
        let wrong = |found: &str, expected| ChunkError { text: text.into(), found: found.into(), expected };
        let mut fields = part.split([':', ',']).map(str::trim).peekable();
        let mut count = 1;
        if let Some(first) = fields.next_if(|f| !f.is_empty() && f.bytes().all(|b| b.is_ascii_digit())) {
            let number = first.parse().ok().filter(|n| *n >= 1);
            count = number.ok_or_else(|| wrong(first, "how many such chunks, from 1 on"))?;
        }
        let mut wants: Vec<(String, Stock)> = Vec::new();
        for field in fields {
            let (name, value) = field
                .split_once('=')
                .filter(|(name, _)| !name.trim().is_empty())
                .ok_or_else(|| wrong(field, "resource=amount, such as cpu=4 or mem=8Gi"))?;
            let (name, value) = (name.trim(), value.trim());
            let stock = Stock::parse(value).map_err(|_| wrong(field, "an amount: a number, or a size such as 8Gi"))?;
            if wants.iter().any(|(known, _)| known == name) {
                return Err(wrong(field, "each resource once in a chunk"));
            }
            wants.push((name.to_string(), stock));
        }
        if wants.iter().all(|(_, stock)| stock.exact == Rational::ZERO) {
            return Err(wrong(part, "a chunk that holds something, such as cpu=4:mem=8Gi"));
        }
        Ok(Chunk { count, wants })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_read_and_what_is_wrong_is_named() {
        let chunk = |text: &str| Chunk::parse_all(text).map_err(|e| e.to_string());
        let wants = |c: &Chunk| c.wants.iter().map(|(n, s)| format!("{n}={}", s.exact)).collect::<Vec<_>>();
        let two = chunk(" 3:cpu=4 , mem=1Ki + 0.5cpu=1").unwrap_or_default();
        assert_eq!((two.len(), two[0].count, wants(&two[0])), (2, 3, vec!["cpu=4".into(), "mem=1024".into()]));
        let error = |text: &str| chunk(text).unwrap_err();
        assert_eq!(error("0:cpu=4"), "found \"0\" in \"0:cpu=4\", expected how many such chunks, from 1 on");
        assert!(error("cpu").starts_with("found \"cpu\" in \"cpu\", expected resource=amount"));
        assert!(error("").starts_with("found \"\" in \"\", expected resource=amount"));
        assert!(error("2").contains("expected a chunk that holds something"));
        assert!(error("cpu=0").contains("expected a chunk that holds something"));
        assert!(error("cpu=1:cpu=2").contains("expected each resource once"));
        assert!(error("cpu=-1").contains("expected an amount"));
        assert!(error("99999999999:cpu=1").contains("how many"));
    }
}
