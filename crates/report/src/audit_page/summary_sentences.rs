//! Summarizes entitlements in sentences, and formats amounts of resources.

use super::{EntitlementRecord, LevelRecord, OveruseRecord, PartyWeekRecord, ResourceRecord};
use crate::format_numbers::{amount, duration, percent, size_unit, three_digits};

/// Maximum number of weeks in the summary.
const MAX_WEEKS: usize = 6;

impl EntitlementRecord {
    /// Returns the summary: first the weeks in which a party received less than it demanded and was entitled to, the
    /// largest unmet claims first, then for each resource the party with the largest overuse meanwhile. The summary
    /// is about accounts if there are any, else about users.
    pub fn summary_sentences(&self) -> Vec<String> {
        let Some(level) = self.levels.first() else { return Vec::new() };
        let mut short: Vec<(f64, &PartyWeekRecord, usize)> = Vec::new();
        for week in level.weeks.iter().filter(|week| !self.at_edge(week.week)) {
            let hours = self.weeks[week.week].hours();
            let uses = week.uses.iter().enumerate().filter(|(r, u)| self.falls_short(*r, u, hours));
            let parts = uses.map(|(r, u)| (u.unmet / self.resources[r].capacity, week, r));
            // The resource with the largest unmet claim; ties go to the first.
            short.extend(parts.reduce(|best, other| if other.0 > best.0 { other } else { best }));
        }
        // A stable sort: ties keep the order of weeks, parties and resources.
        short.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut sentences: Vec<String> =
            short.iter().take(MAX_WEEKS).map(|(_, w, r)| self.week_sentence(level, w, *r)).collect();
        if short.is_empty() {
            sentences.push(format!(
                "In no week did {} {} receive less of a resource than it demanded and was entitled to.",
                if level.kind == "account" { "an" } else { "a" },
                level.kind
            ));
        } else if short.len() > MAX_WEEKS {
            sentences.push(format!("There are {} more such weeks of {}s.", short.len() - MAX_WEEKS, level.kind));
        }
        (0..self.resources.len()).for_each(|r| sentences.extend(self.largest_overuse_sentence(level, r)));
        sentences.extend(self.edges_sentence());
        sentences
    }

    /// Returns the one number of the audit: the fraction of what parties were entitled to and asked for that did not come,
    /// of the resource where it is largest, and a sentence that follows it. `None` if nobody asked for anything.
    pub fn headline(&self) -> Option<(String, String)> {
        let level = self.levels.first()?;
        let of_resource = |r: usize| {
            let weeks = level.weeks.iter().filter(|week| !self.at_edge(week.week)).map(|week| &week.uses[r]);
            // What a party holds within its entitlement, and what it waits for within it.
            weeks.fold((0.0, 0.0), |(came, unmet), u| (came + (u.got - u.over).max(0.0), unmet + u.unmet))
        };
        let fractions =
            (0..self.resources.len()).map(|r| (r, of_resource(r))).filter(|(_, sums)| sums.0 + sums.1 > 0.0);
        let fraction = |sums: (f64, f64)| sums.1 / (sums.0 + sums.1);
        let (r, sums) =
            fractions.reduce(|best, other| if fraction(other.1) > fraction(best.1) { other } else { best })?;
        let (kind, resource) = (level.kind, &self.resources[r].name);
        let claimed = sums.0 + sums.1;
        Some((
            percent(fraction(sums)),
            format!(
                "of the {resource} that {kind}s were entitled to and asked for did not come when they asked for it: {} of {}.",
                self.format_amount_like(r, sums.1, claimed),
                self.format_amount(r, claimed),
            ),
        ))
    }

    /// Returns a sentence on the edges of the history that accuse nobody, if there are any.
    fn edges_sentence(&self) -> Option<String> {
        let steady = self.steady?;
        let (first, last) = (self.weeks.first()?, self.weeks.last()?);
        let mut edges = Vec::new();
        if steady.from_s > first.from_s {
            edges.push(format!("the first {}, until use reaches its mean", duration(steady.from_s - first.from_s)));
        }
        if last.until_s > steady.until_s {
            edges.push(format!("the last {}, after the last submission", duration(last.until_s - steady.until_s)));
        }
        (!edges.is_empty()).then(|| {
            format!(
                "Left out of this summary and of the listed complaints, since jobs are missing there: {}. The tables and data \
                 files hold all.",
                edges.join("; ")
            )
        })
    }

    fn week_sentence(&self, level: &LevelRecord, week: &PartyWeekRecord, r: usize) -> String {
        let (u, w) = (&week.uses[r], &self.weeks[week.week]);
        let part = |amount: f64| percent(self.capacity_share(r, amount, w.hours()));
        let name = &level.parties[week.party].name;
        let resource = &self.resources[r].name;
        let when = if w.from.is_some() { format!("the week of {}", w.label) } else { w.label.clone() };
        let against = self.format_holders(level, &u.against, r, u.unmet);
        let overuse = if against.is_empty() { String::new() } else { format!(" Overuse meanwhile: {against}.") };
        format!(
            "In {when} {kind} {name} received {} ({} of {resource}) less than it was entitled to and asked for at the time. Over \
             the week it demanded {} and received {}.{overuse}",
            self.format_amount(r, u.unmet),
            part(u.unmet),
            part(u.wanted),
            part(u.got),
            kind = level.kind,
        )
    }

    /// Returns a sentence on the party with the largest overuse of a resource while others waited.
    fn largest_overuse_sentence(&self, level: &LevelRecord, r: usize) -> Option<String> {
        let mut by_holder = vec![0.0; level.parties.len()];
        level.pairs.iter().for_each(|pair| by_holder[pair.holder] += pair.over[r]);
        let sum: f64 = by_holder.iter().sum();
        let (holder, over) =
            by_holder.iter().enumerate().fold((0, 0.0), |best, (h, &x)| if x > best.1 { (h, x) } else { best });
        (self.capacity_share(r, sum, self.hours()) >= 0.0005).then(|| {
            format!(
                "While other {kind}s waited for their share of {}, overuse amounted to {}; {kind} {} held {} of it ({}).",
                self.resources[r].name,
                self.format_amount(r, sum),
                level.parties[holder].name,
                self.format_amount_like(r, over, sum),
                percent(over / sum),
                kind = level.kind,
            )
        })
    }

    /// Returns the capacity of each resource and its source as a sentence.
    pub fn capacity_sentence(&self) -> String {
        let one = |resource: &ResourceRecord| {
            let (size, unit) = size_unit(&resource.unit, resource.capacity);
            format!("{} {} {unit}", resource.name, amount(resource.capacity / size)).trim_end().to_string()
        };
        let amounts: Vec<String> = self.resources.iter().map(one).collect();
        format!("{}: {}", amounts.join(", "), self.capacity_is)
    }

    /// Lists parties with their overuse of resource `r`, in a unit that suits `like`, with which they are compared.
    pub fn format_holders(&self, level: &LevelRecord, against: &[OveruseRecord], r: usize, like: f64) -> String {
        let one = |a: &OveruseRecord| {
            format!("{} ({})", level.parties[a.party].name, self.format_amount_like(r, a.over, like))
        };
        against.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// Formats an amount of resource `r` (in its unit times hours) in a unit that suits its size.
    pub fn format_amount(&self, r: usize, amount: f64) -> String {
        self.format_amount_like(r, amount, amount)
    }

    /// Formats an amount of resource `r` in the unit that suits the amount `like`.
    pub fn format_amount_like(&self, r: usize, amount: f64, like: f64) -> String {
        if amount == 0.0 {
            return "0".into();
        }
        let (size, unit) = self.unit_hours(r, like);
        format!("{}\u{a0}{unit}", three_digits(amount / size))
    }

    /// Returns the unit that suits an amount of resource `r`: its size, and its name (`GiB-hours`).
    pub(super) fn unit_hours(&self, r: usize, like: f64) -> (f64, String) {
        let resource = &self.resources[r];
        let (size, unit) = size_unit(&resource.unit, like);
        let unit = match unit {
            "" => resource.name.as_str(),
            // Singular: `processors` gives `processor-hours`.
            unit => unit.strip_suffix('s').unwrap_or(unit),
        };
        (size, format!("{unit}-hours"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_record;
    use super::*;

    fn plain(text: &str) -> String {
        text.replace(['\u{a0}', '\u{202f}'], " ")
    }

    #[test]
    fn the_summary_begins_with_the_weeks_with_the_largest_unmet_claims() {
        let sentences: Vec<String> = small_record().summary_sentences().iter().map(|s| plain(s)).collect();
        assert_eq!(
            sentences,
            [
                "In the week of 2026-03-02 account <b>bio received 403 cpu-hours (30.0 % of cpu) less than it was entitled to \
                 and asked for at the time. Over the week it demanded 60.0 % and received 20.0 %. Overuse meanwhile: chem \
                 (403 cpu-hours).",
                "While other accounts waited for their share of cpu, overuse amounted to 403 cpu-hours; account chem held \
                 403 cpu-hours of it (100.0 %).",
            ]
        );
        let mut calm = small_record();
        calm.levels[0].weeks.clear();
        calm.levels[0].pairs.clear();
        assert_eq!(
            calm.summary_sentences(),
            ["In no week did an account receive less of a resource than it demanded and was entitled to."]
        );
        assert!(EntitlementRecord::default().summary_sentences().is_empty());
    }

    #[test]
    fn a_claim_is_unmet_also_in_a_week_that_made_up_for_it_later() {
        // Of the whole week it has all that it was entitled to, but not when it asked for it.
        let mut record = small_record();
        let week = record.levels[0].weeks.iter_mut().find(|week| week.uses[0].unmet > 0.0).unwrap();
        week.uses[0].got = week.uses[0].entitled_among_active;
        let sentences = record.summary_sentences();
        assert!(plain(&sentences[0]).contains("received 403 cpu-hours (30.0 % of cpu) less than"), "{sentences:?}");
        assert!(record.headline().is_some_and(|(part, _)| part != "0.0\u{a0}%"));
    }

    #[test]
    fn amounts_are_formatted_in_a_unit_that_suits_their_size() {
        let mut record = small_record();
        let mut amount = |unit: &str, amount: f64| {
            record.resources[0].unit = unit.into();
            plain(&record.format_amount(0, amount))
        };
        assert_eq!((amount("", 12.0).as_str(), amount("B", 0.0).as_str()), ("12.0 cpu-hours", "0"));
        assert_eq!(amount("processors", 12.0), "12.0 processor-hours");
        assert_eq!(amount("B", 3.0 * 2f64.powi(40)), "3.00 TiB-hours");
        assert_eq!(amount("KB", 1536.0), "1.50 MiB-hours");
        assert_eq!(amount("MB", 0.5), "0.500 MiB-hours");
        record.resources[0] = ResourceRecord { name: "mem".into(), unit: "B".into(), capacity: 48.0 * 2f64.powi(30) };
        assert_eq!(plain(&record.capacity_sentence()), "mem 48 GiB: what the machine has.");
    }
}
