//! What a report on a past shows: who was entitled to what, wanted and got, week by week.
//!
//! Amounts of a resource are in its own unit, times hours (CPU-hours, byte-hours).

use std::cmp::Ordering;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// The most complaints of a level that its JSON has; the CSV has all.
const COMPLAINTS_IN_JSON: usize = 1000;

/// A past, as its report shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PastRecord {
    /// The file it was read from.
    #[serde(skip)]
    pub source: String,
    /// What is to be known of it: what, and its value. For the page.
    #[serde(skip)]
    pub facts: Vec<(String, String)>,
    /// Whose shares these are, in a sentence.
    pub shares_are: String,
    /// Where weeks begin, in a sentence.
    pub weeks_are: String,
    /// Where the capacity is from, in a sentence.
    pub capacity_is: String,
    /// The resources.
    pub resources: Vec<PastResource>,
    /// The weeks, in order.
    pub weeks: Vec<PastWeek>,
    /// Accounts, then users; users alone if there are no accounts.
    pub levels: Vec<Level>,
}

/// A resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PastResource {
    /// Its name.
    pub name: String,
    /// What its amounts are counted in, if that has a name.
    pub unit: String,
    /// How much there is.
    pub capacity: f64,
}

/// A week, or the part of it that is looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PastWeek {
    /// The date of its Monday, or its number.
    pub label: String,
    /// Its beginning in the workload's seconds.
    pub from_s: f64,
    /// Its end.
    pub until_s: f64,
    /// Its beginning as date and time, if the workload knows.
    pub from: Option<String>,
    /// Its end.
    pub until: Option<String>,
}

impl PastWeek {
    /// How long it is.
    pub fn hours(&self) -> f64 {
        (self.until_s - self.from_s) / 3600.0
    }
}

/// Parties of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Level {
    /// `account` or `user`.
    pub kind: &'static str,
    /// Whether its JSON has weeks: that of users has not if there are accounts.
    pub weeks_in_json: bool,
    /// The parties, in order of first appearance.
    pub parties: Vec<Party>,
    /// By week, then by party.
    pub weeks: Vec<PartyWeek>,
    /// By victim, then by holder.
    pub pairs: Vec<PairOf>,
    /// By their beginning.
    pub complaints: Vec<ComplaintOf>,
}

/// An account or a user, over all weeks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Party {
    /// What it is called.
    pub name: String,
    /// Its part of the whole among all.
    pub share: f64,
    /// One entry a resource, summed over weeks.
    pub uses: Vec<UseOf>,
    /// In how many intervals it had a justified complaint, on whatever resource.
    pub complaints: usize,
}

/// A party's week.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PartyWeek {
    /// The week's number in [`PastRecord::weeks`].
    pub week: usize,
    /// The party's number in [`Level::parties`].
    pub party: usize,
    /// Its part of the whole among those of whom something ran or waited in this week.
    pub share: f64,
    /// One entry a resource.
    pub uses: Vec<UseOf>,
}

/// What became of a party's claim on a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UseOf {
    /// Its part among all, of the capacity.
    pub entitled: f64,
    /// Its part among those of whom something ran or waited in the week; 0 if nothing of its own did.
    pub entitled_among_active: f64,
    /// What it held and waited for.
    pub wanted: f64,
    /// What it held.
    pub got: f64,
    /// What it was below its entitlement while it waited for at least as much.
    pub unmet: f64,
    /// What it held beyond its entitlement.
    pub over: f64,
    /// Whose over-use ran while this was unmet; the parties with most. Of a week only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Against>,
}

impl UseOf {
    /// What it got less than it both wanted and was entitled to among those who were there; not below 0.
    pub fn short(&self) -> f64 {
        (self.entitled_among_active.min(self.wanted) - self.got).max(0.0)
    }
}

/// Over-use of a party.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Against {
    /// The party's number in [`Level::parties`].
    pub party: usize,
    /// How much.
    pub over: f64,
}

/// Over-use of one party that ran while another waited for what it was entitled to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PairOf {
    /// Who waited, by number.
    pub victim: usize,
    /// Whose over-use ran, by number.
    pub holder: usize,
    /// One entry a resource.
    pub over: Vec<f64>,
}

/// An interval in which a party had a justified complaint on a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComplaintOf {
    /// Who, by number.
    pub party: usize,
    /// On which resource, by number.
    pub resource: usize,
    /// From when, in the workload's seconds.
    pub from_s: f64,
    /// Until when.
    pub until_s: f64,
    /// From when as date and time, if the workload knows.
    pub from: Option<String>,
    /// Until when.
    pub until: Option<String>,
    /// What was unmet meanwhile.
    pub unmet: f64,
    /// Whose over-use ran meanwhile; the parties with most.
    pub against: Vec<Against>,
}

impl PastRecord {
    /// How long it is, in hours.
    pub fn hours(&self) -> f64 {
        self.weeks.iter().map(PastWeek::hours).sum()
    }

    /// An amount of resource `r` over `hours` as a part of its capacity.
    pub fn part(&self, r: usize, amount: f64, hours: f64) -> f64 {
        if hours > 0.0 { amount / (self.resources[r].capacity * hours) } else { 0.0 }
    }

    /// The complaints of a level, those first in which the largest part of a capacity was unmet for longest; of equal
    /// ones the earlier.
    pub fn worst_complaints<'a>(&self, level: &'a Level) -> Vec<&'a ComplaintOf> {
        let mut worst: Vec<&ComplaintOf> = level.complaints.iter().collect();
        worst.sort_by(|a, b| {
            let of = |c: &ComplaintOf| c.unmet / self.resources[c.resource].capacity;
            of(b).partial_cmp(&of(a)).unwrap_or(Ordering::Equal)
        });
        worst
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut level = serializer.serialize_struct("Level", 6)?;
        level.serialize_field("kind", self.kind)?;
        level.serialize_field("parties", &self.parties)?;
        match self.weeks_in_json {
            true => level.serialize_field("weeks", &self.weeks)?,
            false => level.skip_field("weeks")?,
        }
        level.serialize_field("waited_while", &self.pairs)?;
        level.serialize_field("complaints_in_all", &self.complaints.len())?;
        // The longest, in order of time.
        let mut longest: Vec<&ComplaintOf> = self.complaints.iter().collect();
        longest.sort_by(|a, b| (b.until_s - b.from_s).total_cmp(&(a.until_s - a.from_s)));
        longest.truncate(COMPLAINTS_IN_JSON);
        longest.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
        level.serialize_field("complaints", &longest)?;
        level.end()
    }
}
