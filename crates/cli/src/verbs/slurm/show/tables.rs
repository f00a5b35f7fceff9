//! Tables of `slurm show`.

use super::record::SiteRecord;
use crate::output::numbers::rounded;
use crate::output::table::{Table, printable};

impl SiteRecord {
    /// Formats the priority settings, then machines, partitions, users and accounts.
    pub(super) fn tables(&self) -> String {
        let mut parts = vec![self.heading(), self.machines(), self.partitions()];
        if !self.users.is_empty() {
            parts.push(self.users());
        }
        if !self.accounts.is_empty() {
            parts.push(self.accounts());
        }
        if !self.notes.is_empty() {
            parts.push(self.notes.join("\n"));
        }
        printable_lines(&parts.join("\n\n"))
    }

    fn heading(&self) -> String {
        let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".into());
        let weights: Vec<String> =
            self.priority_weights.iter().map(|(name, weight)| format!("{name} {weight}")).collect();
        let mut lines = vec![format!("Cluster {}, Slurm {}", or(&self.cluster), or(&self.release))];
        let weights = if weights.is_empty() { "no weights".to_string() } else { weights.join(", ") };
        lines.push(format!(
            "Priorities: {} ({weights}), half-life {}",
            or(&self.priority_type),
            or(&self.decay_half_life)
        ));
        lines.push(format!(
            "Scheduling: {}, {} {}",
            or(&self.scheduler),
            or(&self.select),
            self.select_parameters.as_deref().unwrap_or("")
        ));
        if !self.private_data.is_empty() {
            lines.push(format!("Hidden from other users: {}", self.private_data.join(", ")));
        }
        lines.join("\n")
    }

    fn machines(&self) -> String {
        let mut table =
            Table::new(1, ["machines", "count", "out", "cpu", "held", "mem GiB", "held", "gpu", "held", "partitions"]);
        for m in &self.machines {
            let count = m.machines as u64;
            table.row(vec![
                m.name.clone(),
                count.to_string(),
                m.out.to_string(),
                (m.each.cpu * count).to_string(),
                m.held.cpu.to_string(),
                gib(m.each.mem_bytes.saturating_mul(count)),
                gib(m.held.mem_bytes),
                (m.each.gpu * count).to_string(),
                m.held.gpu.to_string(),
                m.partitions.join(","),
            ]);
        }
        table.render()
    }

    fn partitions(&self) -> String {
        let mut table = Table::new(1, ["partition", "state", "tier", "longest h", "machines", "running", "waiting"]);
        for p in &self.partitions {
            table.row(vec![
                if p.is_default { format!("{}*", p.name) } else { p.name.clone() },
                p.state.clone(),
                p.priority_tier.to_string(),
                p.max_time_s.map_or("-".into(), |s| rounded(s / 3600.0)),
                p.machines.to_string(),
                p.running.to_string(),
                p.waiting.to_string(),
            ]);
        }
        table.render()
    }

    fn users(&self) -> String {
        let header = ["user", "account", "running", "cpu", "mem GiB", "gpu", "waiting", "held", "dependent"];
        let mut table = Table::new(2, header);
        for u in &self.users {
            table.row(vec![
                u.user.clone(),
                u.account.clone().unwrap_or_else(|| "-".into()),
                u.running.to_string(),
                u.held.cpu.to_string(),
                gib(u.held.mem_bytes),
                u.held.gpu.to_string(),
                u.waiting.to_string(),
                (u.held_by_user + u.held_by_administrator).to_string(),
                u.dependent.to_string(),
            ]);
        }
        table.render()
    }

    fn accounts(&self) -> String {
        let mut table = Table::new(2, ["account", "user", "entitled", "used", "fair share"]);
        let percent = |part: f64| format!("{:.1} %", 100.0 * part);
        for a in &self.accounts {
            table.row(vec![
                a.account.clone(),
                a.user.clone(),
                percent(a.entitlement),
                a.effective_usage.map_or("-".into(), percent),
                a.fair_share.map_or("-".into(), |f| format!("{f:.3}")),
            ]);
        }
        table.render()
    }
}

fn gib(bytes: u64) -> String {
    rounded(bytes as f64 / (1u64 << 30) as f64)
}

/// Replaces control characters in each line.
fn printable_lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}
