//! Prints a description as a table.

use std::fmt;

use super::{Concentration, Description, Distribution};

/// Formats a number with five significant digits, without trailing zeros, and without an exponent at usual sizes.
fn number(v: f64) -> String {
    if v == 0.0 || !v.is_finite() {
        return v.to_string();
    }
    let magnitude = v.abs().log10().floor() as i32;
    if !(-7..15).contains(&magnitude) {
        return format!("{v:.3e}");
    }
    let text = format!("{v:.*}", (4 - magnitude).max(0) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

struct Row<'a>(&'a str, [String; 9]);

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {:<24}", self.0)?;
        self.1.iter().try_for_each(|cell| write!(f, " {cell:>11}"))?;
        writeln!(f)
    }
}

fn row<'a>(title: &'a str, d: &Distribution) -> Row<'a> {
    Row(title, [d.q05, d.q25, d.q50, d.q75, d.q90, d.q95, d.q99, d.max, d.mean].map(number))
}

fn shares(f: &mut fmt::Formatter<'_>, title: &str, c: &Concentration) -> fmt::Result {
    let [top1, top5, top10, top50] = [c.top1, c.top5, c.top10, c.top50].map(percent);
    writeln!(f, "  {title:<24} Gini {:.3}, top 1/5/10/50 users {top1} / {top5} / {top10} / {top50}", c.gini)
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tasks", self.tasks)?;
        if self.rows != self.tasks {
            write!(f, " in {} rows", self.rows)?;
        }
        write!(f, " of {} users", self.users)?;
        for (n, what) in [(self.accounts, "accounts"), (self.queues, "queues")] {
            if n > 0 {
                write!(f, ", {n} {what}")?;
            }
        }
        writeln!(f, ", {} distinct demand vectors", self.demand_vectors)?;
        let days = number(self.span_s / 86_400.0);
        writeln!(
            f,
            "first submission at {} s, span {} s ({days} days)",
            number(self.first_submit_s),
            number(self.span_s)
        )?;
        let how = if self.starts_known { "by original starts" } else { "as if started when submitted" };
        writeln!(f, "\nUse over time, {how}")?;
        for r in &self.resources {
            let unit = if r.unit.is_empty() { String::new() } else { format!(" {}", r.unit) };
            writeln!(
                f,
                "  {:<24} mean (R) {}{unit}, peak {}{unit}; dominant for {} of tasks, {} of users",
                r.name,
                number(r.mean_use),
                number(r.peak_use),
                percent(r.dominant_tasks),
                percent(r.dominant_users)
            )?;
        }
        writeln!(f, "\nDistributions")?;
        Row("", ["5 %", "25 %", "50 %", "75 %", "90 %", "95 %", "99 %", "max", "mean"].map(String::from)).fmt(f)?;
        row("tasks per user", &self.tasks_per_user.distribution).fmt(f)?;
        row("tasks per burst", &self.bursts.tasks).fmt(f)?;
        for r in &self.resources {
            row(&format!("{} demand", r.name), &r.demand).fmt(f)?;
        }
        row("run time, s", &self.duration_s).fmt(f)?;
        for (title, d) in [("wait, s", &self.wait_s), ("requested time, s", &self.requested_s)] {
            d.iter().try_for_each(|d| row(title, d).fmt(f))?;
        }
        writeln!(f, "\nUsers")?;
        shares(f, "shares of tasks", &self.task_shares)?;
        shares(f, "shares of use", &self.use_shares)?;
        let tail = [
            ("log-log rank slope", self.tasks_per_user.rank_slope),
            ("Hill index, top 10 %", self.tasks_per_user.hill),
        ];
        for (title, value) in tail {
            value.iter().try_for_each(|v| writeln!(f, "  {title:<24} {v:.2}"))?;
        }
        writeln!(f, "\nArrivals")?;
        let arrivals = [("tasks", self.task_interarrival), ("bursts", self.bursts.interarrival)];
        for (title, gaps) in arrivals {
            let Some(g) = gaps else { continue };
            writeln!(f, "  {title:<24} {} s apart on average, variation {}", number(g.mean_s), number(g.variation))?;
        }
        writeln!(f, "  {:<24} {}, {} of one task", "bursts", self.bursts.bursts, percent(self.bursts.single))?;
        writeln!(f, "\nMost common demands")?;
        for v in &self.common_vectors {
            let names = self.resources.iter().zip(&v.amounts);
            let vector: Vec<String> = names.map(|(r, a)| format!("{} {}", r.name, number(*a))).collect();
            writeln!(f, "  {:>7}  {}", percent(v.share), vector.join(", "))?;
        }
        self.demand_correlation.iter().try_for_each(|c| {
            let names: Vec<&str> = self.resources.iter().take(2).map(|r| r.name.as_str()).collect();
            writeln!(f, "  rank correlation of {}: {c:.2}", names.join(" and "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (v, text) in [
            (0.0, "0"),
            (0.0125, "0.0125"),
            (28.000_01, "28"),
            (13_981.4, "13981"),
            (3.0, "3"),
            (1e-9, "1.000e-9"),
            (1_234_567.8, "1234568"),
        ] {
            assert_eq!(number(v), text);
        }
    }
}
