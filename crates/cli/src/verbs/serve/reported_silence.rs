//! Slurm's and the agent's silence, reported on standard error, where the service's log has it.

use evenhand_model::Time;
use evenhand_serve::{SiteReader, Snapshot};
use evenhand_slurm::ReadError;

use crate::output::console::Console;

/// Reports once when a program ceases to answer, and once when it answers again.
pub(super) struct Silence {
    /// As a sentence begins: `Slurm`.
    who: &'static str,
    console: Console,
    /// Whether the last question was answered; at the beginning an answer is expected.
    answers: bool,
}

impl Silence {
    pub(super) fn new(who: &'static str, console: Console) -> Silence {
        Silence { who, console, answers: true }
    }

    /// Takes how a question ended: why it failed, if it did.
    pub(super) fn asked(&mut self, failure: Option<&str>) {
        match failure {
            Some(why) if self.answers => {
                let stop = if why.ends_with(['.', '?']) { "" } else { "." };
                let text =
                    format!("{} does not answer: {why}{stop} Pages show the last answer; it is asked again.", self.who);
                self.console.error(&text);
            }
            None if !self.answers => self.console.note(&format!("{} answers again.", self.who)),
            _ => {}
        }
        self.answers = failure.is_none();
    }
}

/// A site whose silence is reported.
pub(super) struct ReportedSite<S> {
    site: S,
    silence: Silence,
}

impl<S> ReportedSite<S> {
    pub(super) fn new(site: S, console: Console) -> ReportedSite<S> {
        ReportedSite { site, silence: Silence::new("Slurm", console) }
    }
}

impl<S: SiteReader> SiteReader for ReportedSite<S> {
    fn read(&mut self, now: Time) -> Result<Snapshot, ReadError> {
        let read = self.site.read(now);
        self.silence.asked(read.as_ref().err().map(ToString::to_string).as_deref());
        read
    }
}
