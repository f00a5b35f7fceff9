//! How jobs lie on machines: in how many chunks, of what size.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// The option that lays jobs out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// As the source says, in equal chunks, one a node. A job whose source says nothing is one chunk if it fits on one
    /// machine that it may use, else single processors.
    #[default]
    Auto,
    /// Each job is one chunk.
    Single,
    /// Each job is single processors.
    Packed,
    /// Each job has whole machines; for a site of [`Site::whole_machines`](crate::Site::whole_machines).
    Whole,
    /// Chunks of so many processors.
    Chunks(NonZeroU32),
}

/// A text that is no layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected one of: auto, single, packed, whole, chunk=K with a whole number K of processors")]
pub struct LayoutError;

impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Layout, LayoutError> {
        match (text, text.strip_prefix("chunk=")) {
            ("auto", _) => Ok(Layout::Auto),
            ("single", _) => Ok(Layout::Single),
            ("packed", _) => Ok(Layout::Packed),
            ("whole", _) => Ok(Layout::Whole),
            (_, Some(processors)) => processors.parse().map(Layout::Chunks).map_err(|_| LayoutError),
            _ => Err(LayoutError),
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Auto => f.write_str("auto"),
            Layout::Single => f.write_str("single"),
            Layout::Packed => f.write_str("packed"),
            Layout::Whole => f.write_str("whole"),
            Layout::Chunks(processors) => write!(f, "chunk={processors}"),
        }
    }
}

/// The rule by which a job was laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LayoutRule {
    /// The nodes that the source states.
    Source,
    /// One chunk.
    Single,
    /// Single processors.
    Packed,
    /// Whole machines.
    Whole,
    /// The nodes that the source states, each a whole machine, as the job requires.
    Exclusive,
    /// Chunks of a given number of processors.
    Chunks,
    /// Otherwise than the source says, since no machines hold that: in one chunk, or in single processors.
    Otherwise,
    /// On no machines, but in a pool.
    Pool,
}

impl LayoutRule {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            LayoutRule::Source => "source",
            LayoutRule::Single => "single",
            LayoutRule::Packed => "packed",
            LayoutRule::Whole => "whole",
            LayoutRule::Exclusive => "exclusive",
            LayoutRule::Chunks => "chunk",
            LayoutRule::Otherwise => "otherwise",
            LayoutRule::Pool => "pool",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_written_as_they_are_read() {
        for text in ["auto", "single", "packed", "whole", "chunk=16"] {
            assert_eq!(text.parse::<Layout>().unwrap().to_string(), text);
        }
        for text in ["", "chunk", "chunk=0", "chunk=x", "Auto"] {
            assert_eq!(text.parse::<Layout>(), Err(LayoutError), "{text:?}");
        }
    }
}
