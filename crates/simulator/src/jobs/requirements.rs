//! Which machines of a site have what jobs require of them.

use evenhand_model::{Detail, JobTasks, Requirements, Workload};

use super::site::Site;

/// What a text of a log requires of machines, on a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SiteRequirements {
    /// By group of machines: whether they have all that is required.
    pub(super) allows: Vec<bool>,
    /// Whether jobs have their machines for themselves.
    pub(super) whole_machines: bool,
    /// Whether no two chunks of a job may be on one machine.
    pub(super) separate_machines: bool,
    /// The tasks of a job, if they are not divided evenly among its machines.
    pub(super) tasks: Option<JobTasks>,
    /// Whether a word is unknown on this site, and so without effect.
    pub(super) has_unknown: bool,
}

impl SiteRequirements {
    /// One for each text of the workload.
    pub(super) fn of_workload(site: &Site, workload: &Workload) -> Vec<SiteRequirements> {
        let texts = workload.details(Detail::Requires).iter();
        texts.map(|text| SiteRequirements::new(site, &Requirements::parse(text))).collect()
    }

    fn new(site: &Site, required: &Requirements) -> SiteRequirements {
        let with = |word: &str| -> Vec<bool> { site.groups.iter().map(|group| group.has_property(word)).collect() };
        let mut found = SiteRequirements {
            allows: vec![true; site.groups.len()],
            whole_machines: required.whole_machines,
            separate_machines: required.separate_machines,
            tasks: required.tasks,
            has_unknown: false,
        };
        for words in &required.wanted {
            let groups: Vec<Vec<bool>> = words.iter().map(|word| with(word)).collect();
            let any: Vec<bool> = (0..site.groups.len()).map(|g| groups.iter().any(|of_word| of_word[g])).collect();
            found.restrict(&any, |has| *has);
        }
        for word in &required.unwanted {
            found.restrict(&with(word), |has| !*has);
        }
        found
    }

    /// Takes out the groups of which a function of `with` does not hold; a word that no group has is without effect.
    fn restrict(&mut self, with: &[bool], may: impl Fn(&bool) -> bool) {
        if !with.contains(&true) {
            self.has_unknown = true;
            return;
        }
        self.allows.iter_mut().zip(with).for_each(|(allows, with)| *allows &= may(with));
    }
}
