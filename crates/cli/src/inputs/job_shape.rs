//! The shape of a job on the command line: `4x16cpu,2h`.

use evenhand_model::Span;

use crate::failure::Failure;

/// Chunks of one resource, and a wall time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobShape {
    pub(crate) chunks: u32,
    pub(crate) per_chunk: u32,
    pub(crate) wall: Span,
}

impl JobShape {
    /// Parses `4x16cpu,2h`: chunks, how much of the resource each has, and a wall time. Without chunks it is one; the
    /// resource's name may be left out.
    pub(crate) fn parse(option: &str, text: &str, resource: &str) -> Result<JobShape, Failure> {
        let invalid = || {
            Failure::Input(format!(
                "{option}: found {text:?}, expected chunks, how much of {resource} each has, and a wall time, such as 4x16{resource},2h or \
                 64,90m"
            ))
        };
        let (amounts, wall) = text.split_once(',').ok_or_else(invalid)?;
        let (chunks, amount) = amounts.trim().split_once('x').unwrap_or(("1", amounts.trim()));
        let amount = amount.strip_suffix(resource).unwrap_or(amount);
        let positive =
            |text: &str| text.parse::<u32>().ok().filter(|n| (1..=1_000_000).contains(n)).ok_or_else(invalid);
        let wall = Span::parse(wall).ok().filter(|wall| *wall >= Span::from_secs(1)).ok_or_else(invalid)?;
        Ok(JobShape { chunks: positive(chunks)?, per_chunk: positive(amount)?, wall })
    }

    /// Returns how much it needs in total.
    pub(crate) fn total(&self) -> u64 {
        u64::from(self.chunks) * u64::from(self.per_chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_chunks_amounts_and_a_wall_time() {
        let parsed =
            |text| JobShape::parse("--shape", text, "cpu").ok().map(|s| (s.chunks, s.per_chunk, s.wall.secs_f64()));
        assert_eq!(parsed("4x16cpu,2h"), Some((4, 16, 7200.0)));
        assert_eq!(parsed("64,90m"), Some((1, 64, 5400.0)));
        assert_eq!(parsed("1x64, 1.5h"), Some((1, 64, 5400.0)));
        for bad in ["", "64", "x,2h", "4x,2h", "0x4,2h", "4x16gpu,2h", "64,2", "64,0s", "9999999,1h", "-4,1h"] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
