//! What there is to say of a past, in sentences.

use super::{Against, Level, PartyWeek, PastRecord};
use crate::format::{percent, three_digits};

/// How many weeks are told of.
const TOLD: usize = 6;

impl PastRecord {
    /// What to tell first, a sentence each: the weeks in which a party got less than it both was entitled to and
    /// wanted, those with most unmet first; then whose over-use ran meanwhile. Of accounts, if there are any.
    pub fn sentences(&self) -> Vec<String> {
        let Some(level) = self.levels.first() else { return Vec::new() };
        let mut short: Vec<(f64, &PartyWeek, usize)> = Vec::new();
        for week in &level.weeks {
            for (r, u) in week.uses.iter().enumerate() {
                let unmet = self.part(r, u.unmet, self.weeks[week.week].hours());
                // What reads as 0.0 % is not worth a sentence.
                let less = self.part(r, u.short(), self.weeks[week.week].hours());
                if unmet >= 0.0005 && less >= 0.0005 {
                    short.push((unmet, week, r));
                }
            }
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
            sentences.push(format!(
                "There are {} more such weeks of {}s and resources.",
                short.len() - TOLD,
                level.kind
            ));
        }
        (0..self.resources.len()).for_each(|r| sentences.extend(self.most(level, r)));
        sentences
    }

    fn week(&self, level: &Level, week: &PartyWeek, r: usize) -> String {
        let (u, w) = (&week.uses[r], &self.weeks[week.week]);
        let part = |amount: f64| percent(self.part(r, amount, w.hours()));
        let name = &level.parties[week.party].name;
        let resource = &self.resources[r].name;
        let when = if w.from.is_some() { format!("the week of {}", w.label) } else { w.label.clone() };
        let all = match (u.entitled - u.entitled_among_active).abs() <= 1e-12 * u.entitled {
            true => String::new(),
            false => format!(" ({} of the capacity among all)", part(u.entitled)),
        };
        let against = self.against(level, &u.against, r);
        let while_ran = if against.is_empty() { String::new() } else { format!(", while over-use ran of {against}") };
        format!(
            "In {when} {name} was entitled to {} of {resource} among those who wanted any{all}, wanted {}, got {}: {} \
             of its own did not come while it waited{while_ran}.",
            part(u.entitled_among_active),
            part(u.wanted),
            part(u.got),
            self.amount(r, u.unmet),
        )
    }

    /// Whose over-use of a resource ran most while others waited.
    fn most(&self, level: &Level, r: usize) -> Option<String> {
        let mut by_holder = vec![0.0; level.parties.len()];
        level.pairs.iter().for_each(|pair| by_holder[pair.holder] += pair.over[r]);
        let sum: f64 = by_holder.iter().sum();
        let (holder, over) =
            by_holder.iter().enumerate().fold((0, 0.0), |best, (h, &x)| if x > best.1 { (h, x) } else { best });
        (self.part(r, sum, self.hours()) >= 0.0005).then(|| {
            format!(
                "Of {} of {} over-use that ran while others waited for their own, {} was {}'s ({}).",
                self.amount(r, sum),
                self.resources[r].name,
                self.amount(r, over),
                level.parties[holder].name,
                percent(over / sum)
            )
        })
    }

    /// Names with amounts.
    pub fn against(&self, level: &Level, against: &[Against], r: usize) -> String {
        let one = |a: &Against| format!("{} ({})", level.parties[a.party].name, self.amount(r, a.over));
        against.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// An amount of a resource times hours, in the unit that suits it.
    pub fn amount(&self, r: usize, amount: f64) -> String {
        let resource = &self.resources[r];
        let (size, prefix) = match resource.unit.as_str() {
            // Bytes are many.
            "B" => binary(amount, 0),
            "KB" => binary(amount, 1),
            "MB" => binary(amount, 2),
            _ => (1.0, ""),
        };
        let unit = match (prefix, resource.unit.as_str()) {
            ("", "") => resource.name.as_str(),
            ("", unit) => unit,
            (prefix, _) => prefix,
        };
        format!("{}\u{a0}{unit}-hours", three_digits(amount / size))
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
