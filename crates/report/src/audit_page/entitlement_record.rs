//! The record of entitlements, the input of the page and the `entitlements` part of the JSON output.
//!
//! Amounts of a resource are in its unit times hours (CPU-hours, byte-hours). A *party* is an account or a user.
//! Parties, resources and weeks refer to each other by index, counted from 0.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// Maximum number of complaints of a level in its JSON; the CSV file holds all.
const MAX_JSON_COMPLAINTS: usize = 1000;

/// Entitlement, demand and use of a history's accounts and users.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EntitlementRecord {
    /// Name of the file that was audited.
    #[serde(skip)]
    pub source: String,
    /// Rows (name, value) of the page's table about the history.
    #[serde(skip)]
    pub details: Vec<(String, String)>,
    /// Source of the shares, as a sentence.
    pub shares_are: String,
    /// Limits of the weeks, as a sentence.
    pub weeks_are: String,
    /// Source of the capacity, as the end of a sentence.
    pub capacity_is: String,
    /// The resources.
    pub resources: Vec<ResourceRecord>,
    /// The weeks, in order.
    pub weeks: Vec<WeekRecord>,
    /// The time in which the history shows the machine as it was: neither before it fills nor after the last submission.
    /// `None` if nearly all of the history lies there, or too little.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyRecord>,
    /// Accounts, then users; only users if there are no accounts.
    pub levels: Vec<LevelRecord>,
}

/// The part of a history without its edges, in seconds of the workload's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SteadyRecord {
    /// When use first reaches its mean: a history that begins with an empty machine has no job that ran before.
    pub from_s: f64,
    /// The last submission: after it the machine only runs empty.
    pub until_s: f64,
}

/// A resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ResourceRecord {
    /// Name.
    pub name: String,
    /// Unit of its amounts; empty for plain numbers.
    pub unit: String,
    /// Capacity in that unit.
    pub capacity: f64,
}

/// A week, or the part of it that lies in the audited period.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WeekRecord {
    /// Date of its Monday; `week N` if the workload has no dates.
    pub label: String,
    /// Beginning, in seconds of the workload's clock.
    pub from_s: f64,
    /// End, in seconds of the workload's clock.
    pub until_s: f64,
    /// Beginning as date and time, if the workload has dates.
    pub from: Option<String>,
    /// End as date and time, if the workload has dates.
    pub until: Option<String>,
}

impl WeekRecord {
    /// Returns the length in hours.
    pub fn hours(&self) -> f64 {
        (self.until_s - self.from_s) / 3600.0
    }
}

/// The parties of one kind: all accounts, or all users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelRecord {
    /// `account` or `user`.
    pub kind: &'static str,
    /// Whether the JSON contains the weeks; it omits the weeks of users if there are accounts.
    pub weeks_in_json: bool,
    /// The parties, in order of first appearance.
    pub parties: Vec<PartyRecord>,
    /// The weeks of the parties, ordered by week, then by party.
    pub weeks: Vec<PartyWeekRecord>,
    /// Overuse while others waited, ordered by victim, then by holder.
    pub pairs: Vec<OverusePairRecord>,
    /// Justified complaints, ordered by their beginning.
    pub complaints: Vec<ComplaintRecord>,
}

/// An account or a user, over all weeks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PartyRecord {
    /// Name.
    pub name: String,
    /// Its fraction of the capacity if all parties are active.
    pub share: f64,
    /// Use of each resource, summed over the weeks.
    pub uses: Vec<UseRecord>,
    /// Number of intervals with a justified complaint, on any resource.
    pub complaints: usize,
}

/// One week of one party.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PartyWeekRecord {
    /// Index of the week in [`EntitlementRecord::weeks`].
    pub week: usize,
    /// Index of the party in [`LevelRecord::parties`].
    pub party: usize,
    /// Its fraction of the capacity among the parties with a running or waiting task in this week.
    pub share: f64,
    /// Use of each resource.
    pub uses: Vec<UseRecord>,
}

/// Entitlement, demand and use of one resource by one party, in resource units times hours.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UseRecord {
    /// Entitlement if all parties are active.
    pub entitled: f64,
    /// Entitlement among the parties that are active in the week; 0 if the party is not.
    pub entitled_among_active: f64,
    /// Demand: the amounts of running and waiting tasks.
    pub wanted: f64,
    /// Use: the amounts of running tasks.
    pub got: f64,
    /// Unmet claim: the part of the entitlement that the party did not hold although its waiting tasks asked for it.
    pub unmet: f64,
    /// Overuse: the amount held beyond the entitlement.
    pub over: f64,
    /// The parties with the largest overuse during the unmet claim. Filled for weeks only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<OveruseRecord>,
}

/// Overuse by one party.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OveruseRecord {
    /// Index of the party in [`LevelRecord::parties`].
    pub party: usize,
    /// Amount, in resource units times hours.
    pub over: f64,
}

/// Overuse by one party while another party waited for what it was entitled to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OverusePairRecord {
    /// Index of the party that waited.
    pub victim: usize,
    /// Index of the party with the overuse.
    pub holder: usize,
    /// Overuse of each resource, in resource units times hours.
    pub over: Vec<f64>,
}

/// An interval in which a party had a justified complaint on a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComplaintRecord {
    /// Index of the party.
    pub party: usize,
    /// Index of the resource.
    pub resource: usize,
    /// Beginning, in seconds of the workload's clock.
    pub from_s: f64,
    /// End, in seconds of the workload's clock.
    pub until_s: f64,
    /// Beginning as date and time, if the workload has dates.
    pub from: Option<String>,
    /// End as date and time, if the workload has dates.
    pub until: Option<String>,
    /// Unmet claim during the interval, in resource units times hours.
    pub unmet: f64,
    /// The harm: that unmet claim as a fraction of the capacity, in hours. It compares complaints on all resources.
    pub share_hours: f64,
    /// The parties with the largest overuse during the interval.
    pub against: Vec<OveruseRecord>,
    /// Index of the party with whose task one tie decided the complaint; absent if no tie alone did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tie_with: Option<usize>,
}

impl EntitlementRecord {
    /// Returns the length of the audited period in hours.
    pub fn hours(&self) -> f64 {
        self.weeks.iter().map(WeekRecord::hours).sum()
    }

    /// Returns whether most of a week lies at an edge of the history, so that it accuses nobody.
    pub fn at_edge(&self, week: usize) -> bool {
        let week = &self.weeks[week];
        self.steady.is_some_and(|steady| {
            let within = week.until_s.min(steady.until_s) - week.from_s.max(steady.from_s);
            within < 0.5 * (week.until_s - week.from_s)
        })
    }

    /// Returns whether a complaint begins at an edge of the history.
    pub fn begins_at_edge(&self, complaint: &ComplaintRecord) -> bool {
        self.steady.is_some_and(|steady| !(steady.from_s..steady.until_s).contains(&complaint.from_s))
    }

    /// Returns an amount of resource `r` (in its unit times hours) as a fraction of its capacity over `hours`.
    pub fn capacity_share(&self, r: usize, amount: f64, hours: f64) -> f64 {
        if hours > 0.0 { amount / (self.resources[r].capacity * hours) } else { 0.0 }
    }

    /// Returns whether a party received visibly less of resource `r` than it was entitled to and demanded: whether its
    /// unmet claim over `hours` does not round to 0.0 % of the capacity. Sentences and tables agree on this.
    pub fn falls_short(&self, r: usize, of: &UseRecord, hours: f64) -> bool {
        self.capacity_share(r, of.unmet, hours) >= 0.0005
    }

    /// Returns the complaints of a level that do not begin at an edge of the history, by decreasing harm, equal ones by
    /// beginning.
    pub fn worst_complaints<'a>(&self, level: &'a LevelRecord) -> Vec<&'a ComplaintRecord> {
        let mut worst: Vec<&ComplaintRecord> = level.complaints.iter().filter(|c| !self.begins_at_edge(c)).collect();
        worst.sort_by(|a, b| b.share_hours.total_cmp(&a.share_hours));
        worst
    }
}

impl LevelRecord {
    /// Returns how many complaints one tie would have turned.
    pub fn turned_by_a_tie(&self) -> usize {
        self.complaints.iter().filter(|complaint| complaint.tie_with.is_some()).count()
    }
}

impl Serialize for LevelRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut level = serializer.serialize_struct("Level", 7)?;
        level.serialize_field("kind", self.kind)?;
        level.serialize_field("parties", &self.parties)?;
        match self.weeks_in_json {
            true => level.serialize_field("weeks", &self.weeks)?,
            false => level.skip_field("weeks")?,
        }
        level.serialize_field("waited_while", &self.pairs)?;
        level.serialize_field("complaints_in_all", &self.complaints.len())?;
        level.serialize_field("complaints_turned_by_a_tie", &self.turned_by_a_tie())?;
        // Those with the most harm, in order of time.
        let mut worst: Vec<&ComplaintRecord> = self.complaints.iter().collect();
        worst.sort_by(|a, b| b.share_hours.total_cmp(&a.share_hours));
        worst.truncate(MAX_JSON_COMPLAINTS);
        worst.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
        level.serialize_field("complaints", &worst)?;
        level.end()
    }
}
