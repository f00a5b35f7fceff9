//! A job's layout over machines.

use thiserror::Error;

use crate::{Rational, ResourceQuantity};

/// Identical pieces of a job, each of which runs on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The number of pieces, at least 1.
    pub count: u32,
    /// The resources that each piece holds, by name; no name occurs twice.
    pub demand: Vec<(String, ResourceQuantity)>,
}

/// An error in the text of chunks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found {found:?} in {text:?}, expected {expected}")]
pub struct ChunkError {
    /// The whole text.
    pub text: String,
    /// The faulty part.
    pub found: String,
    /// What is expected in its place.
    pub expected: &'static str,
}

impl Chunk {
    /// Parses chunks in the notation of PBS: `2:cpu=4:mem=8Gi+cpu=1:gpu=2` is two chunks of 4 processors and 8 GiB
    /// each, and one of a processor and two GPUs. Commas and colons are equivalent.
    ///
    /// ```
    /// use evenhand_model::Chunk;
    /// let chunks = Chunk::parse_all("2:cpu=4:mem=8Gi+cpu=1,gpu=2").unwrap();
    /// assert_eq!((chunks[0].count, chunks[0].demand.len()), (2, 2));
    /// assert_eq!((chunks[1].count, chunks[1].demand[1].0.as_str()), (1, "gpu"));
    /// assert!(Chunk::parse_all("cpu=x").is_err());
    /// ```
    ///
    /// # Errors
    /// Returns an error if a chunk holds nothing, an amount is not a number, or a chunk names a resource twice.
    pub fn parse_all(text: &str) -> Result<Vec<Chunk>, ChunkError> {
        text.split('+').map(|part| Chunk::parse(text, part)).collect()
    }

    fn parse(text: &str, part: &str) -> Result<Chunk, ChunkError> {
        let error = |found: &str, expected| ChunkError { text: text.into(), found: found.into(), expected };
        let mut fields = part.split([':', ',']).map(str::trim).peekable();
        let mut count = 1;
        if let Some(first) = fields.next_if(|f| !f.is_empty() && f.bytes().all(|b| b.is_ascii_digit())) {
            let number = first.parse().ok().filter(|n| *n >= 1);
            count = number.ok_or_else(|| error(first, "a number of chunks, at least 1"))?;
        }
        let mut demand: Vec<(String, ResourceQuantity)> = Vec::new();
        for field in fields {
            let (name, value) = field
                .split_once('=')
                .filter(|(name, _)| !name.trim().is_empty())
                .ok_or_else(|| error(field, "resource=amount, such as cpu=4 or mem=8Gi"))?;
            let (name, value) = (name.trim(), value.trim());
            let quantity = ResourceQuantity::parse(value)
                .map_err(|_| error(field, "an amount: a number, or a size such as 8Gi"))?;
            if demand.iter().any(|(known, _)| known == name) {
                return Err(error(field, "each resource at most once per chunk"));
            }
            demand.push((name.to_string(), quantity));
        }
        if demand.iter().all(|(_, quantity)| quantity.exact == Rational::ZERO) {
            return Err(error(part, "a chunk that holds something, such as cpu=4:mem=8Gi"));
        }
        Ok(Chunk { count, demand })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_parsed_and_errors_quote_the_faulty_part() {
        let chunk = |text: &str| Chunk::parse_all(text).map_err(|e| e.to_string());
        let demand = |c: &Chunk| c.demand.iter().map(|(n, s)| format!("{n}={}", s.exact)).collect::<Vec<_>>();
        let two = chunk(" 3:cpu=4 , mem=1Ki + 0.5cpu=1").unwrap_or_default();
        assert_eq!((two.len(), two[0].count, demand(&two[0])), (2, 3, vec!["cpu=4".into(), "mem=1024".into()]));
        let error = |text: &str| chunk(text).unwrap_err();
        assert_eq!(error("0:cpu=4"), "found \"0\" in \"0:cpu=4\", expected a number of chunks, at least 1");
        assert!(error("cpu").starts_with("found \"cpu\" in \"cpu\", expected resource=amount"));
        assert!(error("").starts_with("found \"\" in \"\", expected resource=amount"));
        assert!(error("2").contains("expected a chunk that holds something"));
        assert!(error("cpu=0").contains("expected a chunk that holds something"));
        assert!(error("cpu=1:cpu=2").contains("expected each resource at most once"));
        assert!(error("cpu=-1").contains("expected an amount"));
        assert!(error("99999999999:cpu=1").contains("a number of chunks"));
    }
}
