//! A site whose silence is reported on standard error, where the service's log has it.

use evenhand_model::Time;
use evenhand_serve::{SiteReader, Snapshot};
use evenhand_slurm::ReadError;

use crate::output::console::Console;

/// Reads a site, and reports once when it ceases to answer, and once when it answers again.
pub(super) struct ReportedSite<S> {
    site: S,
    console: Console,
    /// Whether the last question was answered; at the beginning an answer is expected.
    answers: bool,
}

impl<S> ReportedSite<S> {
    pub(super) fn new(site: S, console: Console) -> ReportedSite<S> {
        ReportedSite { site, console, answers: true }
    }
}

impl<S: SiteReader> SiteReader for ReportedSite<S> {
    fn read(&mut self, now: Time) -> Result<Snapshot, ReadError> {
        let read = self.site.read(now);
        match &read {
            Err(error) if self.answers => {
                let text = format!("Slurm does not answer: {error}. Pages show the last answer; it is asked again.");
                self.console.error(&text);
            }
            Ok(_) if !self.answers => self.console.note("Slurm answers again."),
            _ => {}
        }
        self.answers = read.is_ok();
        read
    }
}
