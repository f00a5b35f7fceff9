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
pub struct EntitlementRecord {
    /// The file it was read from.
    #[serde(skip)]
    pub source: String,
    /// What is to be known of it: what, and its value. For the page.
    #[serde(skip)]
    pub details: Vec<(String, String)>,
    /// Whose shares these are, in a sentence.
    pub shares_are: String,
    /// Where weeks begin, in a sentence.
    pub weeks_are: String,
    /// Where the capacity is from, in a sentence.
    pub capacity_is: String,
    /// The resources.
    pub resources: Vec<ResourceRecord>,
    /// The weeks, in order.
    pub weeks: Vec<WeekRecord>,
    /// Accounts, then users; users alone if there are no accounts.
    pub levels: Vec<LevelRecord>,
}

/// A resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ResourceRecord {
    /// Its name.
    pub name: String,
    /// What its amounts are counted in, if that has a name.
    pub unit: String,
    /// How much there is.
    pub capacity: f64,
}

/// A week, or the part of it that is looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WeekRecord {
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

impl WeekRecord {
    /// How long it is.
    pub fn hours(&self) -> f64 {
        (self.until_s - self.from_s) / 3600.0
    }
}

/// Parties of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelRecord {
    /// `account` or `user`.
    pub kind: &'static str,
    /// Whether its JSON has weeks: that of users has not if there are accounts.
    pub weeks_in_json: bool,
    /// The parties, in order of first appearance.
    pub parties: Vec<PartyRecord>,
    /// By week, then by party.
    pub weeks: Vec<PartyWeekRecord>,
    /// By victim, then by holder.
    pub pairs: Vec<OverusePairRecord>,
    /// By their beginning.
    pub complaints: Vec<ComplaintRecord>,
}

/// An account or a user, over all weeks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PartyRecord {
    /// What it is called.
    pub name: String,
    /// Its part of the whole among all.
    pub share: f64,
    /// One entry a resource, summed over weeks.
    pub uses: Vec<UseRecord>,
    /// In how many intervals it had a justified complaint, on whatever resource.
    pub complaints: usize,
}

/// A party's week.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PartyWeekRecord {
    /// The week's number in [`EntitlementRecord::weeks`].
    pub week: usize,
    /// The party's number in [`LevelRecord::parties`].
    pub party: usize,
    /// Its part of the whole among those of whom something ran or waited in this week.
    pub share: f64,
    /// One entry a resource.
    pub uses: Vec<UseRecord>,
}

/// What became of a party's claim on a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UseRecord {
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
    pub against: Vec<OveruseRecord>,
}

impl UseRecord {
    /// What it got less than it both wanted and was entitled to among those who were there; not below 0.
    pub fn shortfall(&self) -> f64 {
        (self.entitled_among_active.min(self.wanted) - self.got).max(0.0)
    }
}

/// Over-use of a party.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OveruseRecord {
    /// The party's number in [`LevelRecord::parties`].
    pub party: usize,
    /// How much.
    pub over: f64,
}

/// Over-use of one party that ran while another waited for what it was entitled to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OverusePairRecord {
    /// Who waited, by number.
    pub victim: usize,
    /// Whose over-use ran, by number.
    pub holder: usize,
    /// One entry a resource.
    pub over: Vec<f64>,
}

/// An interval in which a party had a justified complaint on a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComplaintRecord {
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
    pub against: Vec<OveruseRecord>,
}

impl EntitlementRecord {
    /// How long it is, in hours.
    pub fn hours(&self) -> f64 {
        self.weeks.iter().map(WeekRecord::hours).sum()
    }

    /// An amount of resource `r` over `hours` as a part of its capacity.
    pub fn capacity_share(&self, r: usize, amount: f64, hours: f64) -> f64 {
        if hours > 0.0 { amount / (self.resources[r].capacity * hours) } else { 0.0 }
    }

    /// The complaints of a level, those first in which the largest part of a capacity was unmet for longest; of equal
    /// ones the earlier.
    pub fn worst_complaints<'a>(&self, level: &'a LevelRecord) -> Vec<&'a ComplaintRecord> {
        let mut worst: Vec<&ComplaintRecord> = level.complaints.iter().collect();
        worst.sort_by(|a, b| {
            let of = |c: &ComplaintRecord| c.unmet / self.resources[c.resource].capacity;
            of(b).partial_cmp(&of(a)).unwrap_or(Ordering::Equal)
        });
        worst
    }
}

impl Serialize for LevelRecord {
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
        let mut longest: Vec<&ComplaintRecord> = self.complaints.iter().collect();
        longest.sort_by(|a, b| (b.until_s - b.from_s).total_cmp(&(a.until_s - a.from_s)));
        longest.truncate(COMPLAINTS_IN_JSON);
        longest.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
        level.serialize_field("complaints", &longest)?;
        level.end()
    }
}
