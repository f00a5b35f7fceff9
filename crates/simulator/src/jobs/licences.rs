//! Licences that running jobs hold, of which there are so many and which no machine has.

use evenhand_model::{Detail, Workload, parse_licences};

use super::site::Site;

/// The licences of the jobs of a workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobLicences {
    /// How many there are, by licence.
    counts: Vec<u64>,
    /// By text of the workload: the licences and how many; what the site lacks is left out.
    texts: Vec<Vec<(usize, u64)>>,
    /// By text: whether it names one that the site does not have.
    has_unknown: Vec<bool>,
}

impl JobLicences {
    pub(crate) fn new(workload: &Workload, site: &Site) -> JobLicences {
        let mut found = JobLicences {
            counts: site.licences.iter().map(|licence| licence.count).collect(),
            ..JobLicences::default()
        };
        if site.is_pool {
            return found;
        }
        for text in workload.details(Detail::Licences) {
            let asked = parse_licences(text);
            let number = |name: &str| site.licences.iter().position(|licence| licence.name == name);
            let known = asked.iter().flatten().filter_map(|one| Some((number(&one.name)?, one.count)));
            let known: Vec<(usize, u64)> = known.collect();
            found.has_unknown.push(asked.is_none_or(|asked| known.len() < asked.len()));
            found.texts.push(known);
        }
        found
    }

    /// Whether any job asks for licences that the site has.
    pub(crate) fn is_any(&self) -> bool {
        self.texts.iter().any(|text| !text.is_empty())
    }

    /// Whether a row asks for licences that the site does not have.
    pub(crate) fn has_unknown(&self, workload: &Workload, row: usize) -> bool {
        let text = workload.detail_id(Detail::Licences, row);
        text.is_some_and(|text| self.has_unknown.get(text as usize).copied().unwrap_or(false))
    }

    /// Whether a row asks for more than there are.
    pub(crate) fn exceed(&self, workload: &Workload, row: usize) -> bool {
        self.of(workload, row).iter().any(|(licence, count)| *count > self.counts[*licence])
    }

    /// The text of a row, if it asks for licences that the site has.
    pub(super) fn text_of(&self, workload: &Workload, row: usize) -> Option<u32> {
        let text = workload.detail_id(Detail::Licences, row);
        text.filter(|text| self.texts.get(*text as usize).is_some_and(|asked| !asked.is_empty()))
    }

    /// How many a text asks for of each licence of the site.
    pub(super) fn counts_of(&self, text: u32) -> Vec<u64> {
        let mut counts = vec![0; self.counts.len()];
        let asked = self.texts.get(text as usize);
        asked.into_iter().flatten().for_each(|(licence, count)| counts[*licence] = *count);
        counts
    }

    /// How many there are of each.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The licences of a row, and how many.
    pub(crate) fn of(&self, workload: &Workload, row: usize) -> &[(usize, u64)] {
        if self.texts.is_empty() {
            return &[];
        }
        workload.detail_id(Detail::Licences, row).map_or(&[], |text| &self.texts[text as usize])
    }
}
