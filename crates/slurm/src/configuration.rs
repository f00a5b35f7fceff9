//! The configuration of a site: `scontrol show config`.

use std::collections::BTreeMap;

use crate::error::{ReadError, TextError, quoted};
use crate::run_commands::{Call, Commands};

/// The settings of a site by their names in slurm.conf. `scontrol` shows them to all users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    settings: BTreeMap<String, String>,
}

impl Configuration {
    /// Returns the command that prints the configuration.
    pub fn call() -> Call {
        Call::new("scontrol", ["show", "config"])
    }

    /// Reads the configuration.
    ///
    /// # Errors
    /// Returns an error if `scontrol` fails or prints no settings.
    pub fn read(commands: &dyn Commands) -> Result<Configuration, ReadError> {
        Ok(Configuration::parse(&commands.run(&Configuration::call())?)?)
    }

    /// Parses lines of `Name = value`; other lines are headings.
    ///
    /// # Errors
    /// Returns an error if there is no such line.
    pub fn parse(text: &str) -> Result<Configuration, TextError> {
        let mut settings = BTreeMap::new();
        for line in text.lines() {
            let Some((name, value)) = line.split_once('=') else { continue };
            let name = name.trim();
            if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_/".contains(c)) {
                settings.entry(name.to_ascii_lowercase()).or_insert_with(|| value.trim().to_string());
            }
        }
        if settings.is_empty() {
            return Err(TextError {
                source_name: "scontrol show config",
                line: 1,
                column: 1,
                found: quoted(text.lines().next().unwrap_or_default()),
                expected: "lines of Name = value".into(),
            });
        }
        Ok(Configuration { settings })
    }

    /// Returns a setting by its name, in any case; `None` if it is missing or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.settings.get(&name.to_ascii_lowercase())?.as_str();
        (!["", "(null)", "N/A", "none"].contains(&value)).then_some(value)
    }

    /// Returns all settings that have a value, by their names in lower case.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.keys().filter_map(|name| Some((name.as_str(), self.get(name)?)))
    }

    /// Returns the name of the cluster.
    pub fn cluster(&self) -> Option<&str> {
        self.get("ClusterName")
    }

    /// Returns the release of Slurm: `22.05.8`.
    pub fn release(&self) -> Option<&str> {
        self.get("SLURM_VERSION")
    }

    /// Returns the year and the month of the release of Slurm: 22 and 5 for `22.05.8`.
    pub fn release_month(&self) -> Option<(u32, u32)> {
        let mut parts = self.release()?.split('.').map(|part| part.parse().ok());
        Some((parts.next()??, parts.next()??))
    }

    /// Sets the release of Slurm, which slurm.conf does not say.
    pub fn set_release(&mut self, release: &str) {
        self.settings.insert("slurm_version".into(), release.into());
    }

    /// Returns the nonzero weights of the priority factors by name: `("FairShare", 1000)`.
    pub fn priority_weights(&self) -> Vec<(String, u64)> {
        const PARTS: [&str; 7] = ["Age", "Assoc", "FairShare", "JobSize", "Partition", "QOS", "Site"];
        let weight = |part: &&str| {
            let weight = self.get(&format!("PriorityWeight{part}"))?.parse().ok()?;
            (weight > 0).then(|| (part.to_string(), weight))
        };
        PARTS.iter().filter_map(weight).collect()
    }

    /// Returns whether priorities depend on the QOS of jobs: on their priorities, or by fairshare on their usage factors.
    pub fn counts_qos(&self) -> bool {
        let has_weight = |name: &str| self.get(name).is_some_and(|weight| weight != "0");
        has_weight("PriorityWeightQOS") || has_weight("PriorityWeightFairShare")
    }

    /// Returns whether Slurm holds jobs back at limits of QOS and associations (`AccountingStorageEnforce`).
    pub fn enforces_limits(&self) -> bool {
        let is_limits = |word: &str| ["limits", "safe", "all"].iter().any(|l| l.eq_ignore_ascii_case(word.trim()));
        self.get("AccountingStorageEnforce").unwrap_or_default().split(',').any(is_limits)
    }

    /// Returns whether jobs may start before a waiting job of higher priority (sched/backfill).
    pub fn backfills(&self) -> bool {
        self.get("SchedulerType").is_some_and(|t| t == "sched/backfill")
    }

    /// Returns whether memory is a consumable resource: SelectTypeParameters with `_Memory`, as `CR_Core_Memory`. Where the
    /// parameters are not set, select/cons_tres and select/cons_res take CR_Core_Memory (`select_p_node_init`), and
    /// select/linear, the default up to 22.05, counts no memory.
    pub fn counts_memory(&self) -> bool {
        let is_linear = || match self.get("SelectType") {
            Some(plugin) => plugin.to_ascii_lowercase().ends_with("linear"),
            None => self.release_month().is_some_and(|release| release <= (22, 5)),
        };
        match self.get("SelectTypeParameters") {
            Some(parameters) => parameters.to_ascii_uppercase().contains("MEMORY"),
            None => !is_linear(),
        }
    }

    /// Returns the kinds of data of other users that are hidden (PrivateData): `jobs,usage`.
    pub fn private_data(&self) -> Vec<&str> {
        self.get("PrivateData").map_or(Vec::new(), |text| text.split(',').map(str::trim).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_by_name() {
        let text = "Configuration data as of 2026\nClusterName             = lab\nSLURM_VERSION           = 22.05.8\n\
            PriorityWeightAge       = 10\nPriorityWeightQOS       = 0\nPriorityWeightTRES      = (null)\nPriorityWeightFairShare = 1000\n\
            PrivateData             = jobs,usage\nSchedulerType           = sched/backfill\nSelectTypeParameters    = CR_CPU\n\
            SchedulerParameters     = bf_interval=2,x\n\nSlurmctld(primary) at host is UP\n";
        let c = Configuration::parse(text).unwrap();
        assert_eq!((c.cluster(), c.release(), c.get("priorityweighttres")), (Some("lab"), Some("22.05.8"), None));
        assert_eq!(c.release_month(), Some((22, 5)));
        assert_eq!(c.priority_weights(), [("Age".to_string(), 10), ("FairShare".to_string(), 1000)]);
        assert_eq!(c.get("SchedulerParameters"), Some("bf_interval=2,x"));
        assert_eq!((c.backfills(), c.counts_memory(), c.private_data()), (true, false, vec!["jobs", "usage"]));
        assert!(Configuration::parse("nothing\n").is_err());
    }

    #[test]
    fn memory_counts_where_the_select_plugin_has_it_as_a_resource() {
        for (text, counts) in [
            ("SelectTypeParameters=CR_Core_Memory\n", true),
            ("SelectType=select/linear\nSelectTypeParameters=CR_Memory\n", true),
            ("SelectTypeParameters=CR_Core\n", false),
            ("SelectTypeParameters=CR_Socket,CR_LLN\n", false),
            ("SelectType=select/cons_tres\n", true),
            ("SelectType=select/linear\n", false),
            ("SLURM_VERSION=22.05.8\n", false),
            ("SLURM_VERSION=24.11.5\n", true),
        ] {
            assert_eq!(Configuration::parse(text).unwrap().counts_memory(), counts, "{text}");
        }
    }
}
