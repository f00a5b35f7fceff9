//! Job arrays: many tasks of one submission, of which only so many may run at once.

use std::fmt;

/// The job array of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobArray<'a> {
    /// The name that all tasks of the array share.
    pub name: &'a str,
    /// How many tasks of the array may run at once, if that is limited.
    pub throttle: Option<u32>,
}

impl JobArray<'_> {
    /// Parses the name of an array, with its throttle after `%` as sbatch(1) writes it. A throttle of 0 is none.
    ///
    /// ```
    /// use evenhand_model::JobArray;
    /// assert_eq!(JobArray::parse("100%5"), JobArray { name: "100", throttle: Some(5) });
    /// assert_eq!(JobArray::parse("100"), JobArray { name: "100", throttle: None });
    /// assert_eq!(JobArray::parse("100%0"), JobArray { name: "100", throttle: None });
    /// assert_eq!(["100%5", "100"].map(|text| JobArray::parse(text).to_string()), ["100%5", "100"]);
    /// ```
    pub fn parse(text: &str) -> JobArray<'_> {
        let parts = text.rsplit_once('%');
        match parts.and_then(|(name, throttle)| Some((name, throttle.parse::<u32>().ok()?))) {
            Some((name, throttle)) => JobArray { name, throttle: Some(throttle).filter(|most| *most > 0) },
            None => JobArray { name: text, throttle: None },
        }
    }
}

impl fmt::Display for JobArray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.throttle {
            Some(most) => write!(f, "{}%{most}", self.name),
            None => f.write_str(self.name),
        }
    }
}
