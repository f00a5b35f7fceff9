//! What there is to say of a past, in sentences.

use super::{OveruseRecord, LevelRecord, PartyWeekRecord, EntitlementRecord, ResourceRecord};
use crate::format_numbers::{amount, percent, three_digits};

/// How many weeks are told of.
const TOLD: usize = 6;

impl EntitlementRecord {
    /// What to tell first, a sentence each: the weeks in which a party got less than it both was entitled to and
    /// wanted, those with most unmet first; then whose over-use ran meanwhile. Of accounts, if there are any.
    pub fn summary_sentences(&self) -> Vec<String> {
        let Some(level) = self.levels.first() else { return Vec::new() };
        let mut short: Vec<(f64, &PartyWeekRecord, usize)> = Vec::new();
        for week in &level.weeks {
            let hours = self.weeks[week.week].hours();
            // What reads as 0.0 % is not worth a sentence.
            let tells = |r: usize, amount: f64| self.capacity_share(r, amount, hours) >= 0.0005;
            let uses = week.uses.iter().enumerate().filter(|(r, u)| tells(*r, u.unmet) && tells(*r, u.shortfall()));
            let parts = uses.map(|(r, u)| (u.unmet / self.resources[r].capacity, week, r));
            // The resource of which most was unmet; of equal ones the first.
            short.extend(parts.reduce(|best, other| if other.0 > best.0 { other } else { best }));
        }
        // Stable: of equal ones the earlier week, then the first party and resource.
        short.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut sentences: Vec<String> = short.iter().take(TOLD).map(|(_, w, r)| self.week(level, w, *r)).collect();
        if short.is_empty() {
            sentences.push(format!(
                "In no week did {} {} get less of a resource than it wanted and was entitled to.",
                if level.kind == "account" { "an" } else { "a" },
                level.kind
            ));
        } else if short.len() > TOLD {
            sentences.push(format!("There are {} more such weeks of {}s.", short.len() - TOLD, level.kind));
        }
        (0..self.resources.len()).for_each(|r| sentences.extend(self.most(level, r)));
        sentences
    }

    fn week(&self, level: &LevelRecord, week: &PartyWeekRecord, r: usize) -> String {
        let (u, w) = (&week.uses[r], &self.weeks[week.week]);
        let part = |amount: f64| percent(self.capacity_share(r, amount, w.hours()));
        let name = &level.parties[week.party].name;
        let resource = &self.resources[r].name;
        let when = if w.from.is_some() { format!("the week of {}", w.label) } else { w.label.clone() };
        let all = match (u.entitled - u.entitled_among_active).abs() <= 1e-12 * u.entitled {
            true => String::new(),
            false => format!(" ({} of the capacity among all)", part(u.entitled)),
        };
        let against = self.format_holders(level, &u.against, r);
        let ran = if against.is_empty() { String::new() } else { format!(" Meanwhile over-use ran of {against}.") };
        format!(
            "In {when} {} {name} was entitled to {} of {resource} among those who wanted any{all}, wanted {}, got {}: {} \
             of its own did not come while it waited for at least as much.{ran}",
            level.kind,
            part(u.entitled_among_active),
            part(u.wanted),
            part(u.got),
            self.format_amount(r, u.unmet),
        )
    }

    /// Whose over-use of a resource ran most while others waited.
    fn most(&self, level: &LevelRecord, r: usize) -> Option<String> {
        let mut by_holder = vec![0.0; level.parties.len()];
        level.pairs.iter().for_each(|pair| by_holder[pair.holder] += pair.over[r]);
        let sum: f64 = by_holder.iter().sum();
        let (holder, over) =
            by_holder.iter().enumerate().fold((0, 0.0), |best, (h, &x)| if x > best.1 { (h, x) } else { best });
        (self.capacity_share(r, sum, self.hours()) >= 0.0005).then(|| {
            format!(
                "Of {} of {} over-use that ran while others waited for their own, {} was that of {} {} ({}).",
                self.format_amount(r, sum),
                self.resources[r].name,
                self.format_amount(r, over),
                level.kind,
                level.parties[holder].name,
                percent(over / sum)
            )
        })
    }

    /// The capacity of each resource, and where it is from.
    pub fn capacity_sentence(&self) -> String {
        let one = |resource: &ResourceRecord| {
            let (size, unit) = size(&resource.unit, resource.capacity);
            format!("{} {} {unit}", resource.name, amount(resource.capacity / size)).trim_end().to_string()
        };
        let amounts: Vec<String> = self.resources.iter().map(one).collect();
        format!("{}: {}", amounts.join(", "), self.capacity_is)
    }

    /// FileNames with amounts.
    pub fn format_holders(&self, level: &LevelRecord, against: &[OveruseRecord], r: usize) -> String {
        let one = |a: &OveruseRecord| format!("{} ({})", level.parties[a.party].name, self.format_amount(r, a.over));
        against.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// An amount of a resource times hours, in the unit that suits it.
    pub fn format_amount(&self, r: usize, amount: f64) -> String {
        if amount == 0.0 {
            return "0".into();
        }
        let resource = &self.resources[r];
        let (size, unit) = size(&resource.unit, amount);
        let unit = match unit {
            "" => resource.name.as_str(),
            // Processors, in processor-hours.
            unit => unit.strip_suffix('s').unwrap_or(unit),
        };
        format!("{}\u{a0}{unit}-hours", three_digits(amount / size))
    }
}

/// The unit that suits an amount, which is in `unit`: how large it is, and its name. Bytes are many.
fn size(unit: &str, amount: f64) -> (f64, &str) {
    match unit {
        "B" => binary(amount, 0),
        "KB" => binary(amount, 1),
        "MB" => binary(amount, 2),
        unit => (1.0, unit),
    }
}

/// The unit of sizes in which there is at least one, from 1024^`power` bytes on: its size, and its name.
fn binary(amount: f64, power: usize) -> (f64, &'static str) {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut size = 1.0;
    let mut at = power;
    while amount / size >= 1024.0 && at + 1 < UNITS.len() {
        size *= 1024.0;
        at += 1;
    }
    (size, UNITS[at])
}

#[cfg(test)]
mod tests {
    use super::super::tests::small;
    use super::*;

    fn plain(text: &str) -> String {
        text.replace(['\u{a0}', '\u{202f}'], " ")
    }

    #[test]
    fn the_worst_weeks_are_told_first() {
        let told: Vec<String> = small().summary_sentences().iter().map(|s| plain(s)).collect();
        assert_eq!(
            told,
            [
                "In the week of 2026-03-02 account <b>bio was entitled to 50.0 % of cpu among those who wanted any (25.0 % \
                 of the capacity among all), wanted 60.0 %, got 20.0 %: 403 cpu-hours of its own did not come while it \
                 waited for at least as much. Meanwhile over-use ran of chem (403 cpu-hours).",
                "Of 403 cpu-hours of cpu over-use that ran while others waited for their own, 403 cpu-hours was that of \
                 account chem (100.0 %).",
            ]
        );
        let mut calm = small();
        calm.levels[0].weeks.clear();
        calm.levels[0].pairs.clear();
        assert_eq!(
            calm.summary_sentences(),
            ["In no week did an account get less of a resource than it wanted and was entitled to."]
        );
        assert!(EntitlementRecord::default().summary_sentences().is_empty());
    }

    #[test]
    fn amounts_are_in_units_that_suit() {
        let mut record = small();
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
