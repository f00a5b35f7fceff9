//! Progress of a study's runs: bars on standard error, or counts for a host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenhand_study::{Live, RunState};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::host::Host;
use crate::output::console::Console;

const OVERALL: &str = "{prefix:>16} {wide_bar} {percent:>3} %  {per_sec}  ETA {eta}";
const REPEATS: &str = "{prefix:>16} {bar:24} {human_pos}/{human_len}";
const RUN: &str = "{prefix:>16} {bar:24} {human_pos}/{human_len} tasks  {msg}";

/// Shows the progress of `live` while `work` runs, if somebody sees it; returns what `work` returns.
pub(crate) fn run_with_progress<T: Send>(
    live: &Live,
    tasks: u64,
    console: &Console,
    work: impl FnOnce() -> T + Send,
) -> T {
    let done = AtomicBool::new(false);
    let show = || match console.host() {
        Some(host) => count(live, tasks, host, &done),
        None => draw(live, tasks, &done),
    };
    if console.host().is_none() && !console.shows_progress() {
        return work();
    }
    std::thread::scope(|scope| {
        let shown = scope.spawn(show);
        // A guard, because the scope waits for the thread to end even if the work panics.
        let end = SetOnDrop(&done);
        let result = work();
        drop(end);
        shown.thread().unpark();
        result
    })
}

/// Counts the tasks for a host until `done`.
fn count(live: &Live, tasks: u64, host: &Host, done: &AtomicBool) {
    loop {
        let is_done = done.load(Ordering::Relaxed);
        let simulated = live.runs.iter().map(|run| run.progress.tasks.load(Ordering::Relaxed)).sum();
        host.set_progress(simulated, tasks * live.runs.len() as u64);
        if is_done {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Guard that sets a flag when dropped, also during a panic.
pub(crate) struct SetOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn draw(live: &Live, tasks: u64, done: &AtomicBool) {
    let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
    // A test checks that the templates are valid.
    let style = |template| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let overall = all.add(ProgressBar::new(tasks * live.runs.len() as u64).with_style(style(OVERALL)));
    overall.set_prefix("all runs, tasks");
    let mut bars: Vec<Option<ProgressBar>> = vec![None; live.runs.len()];
    let mut repeats: Option<ProgressBar> = None;
    while !done.load(Ordering::Relaxed) {
        let planned = live.repeats.planned.load(Ordering::Relaxed);
        if planned > 0 {
            let bar = repeats.get_or_insert_with(|| {
                let new = all.add(ProgressBar::new(planned).with_style(style(REPEATS)));
                new.set_prefix("repeats");
                new
            });
            bar.set_position(live.repeats.done.load(Ordering::Relaxed));
        }
        let mut total = 0;
        for (run, bar) in live.runs.iter().zip(&mut bars) {
            let now = run.progress.tasks.load(Ordering::Relaxed);
            total += now;
            match run.state() {
                RunState::Waiting => {}
                RunState::Running => {
                    let bar = bar.get_or_insert_with(|| {
                        let new = all.add(ProgressBar::new(tasks).with_style(style(RUN)));
                        new.set_prefix(run.id.clone());
                        new
                    });
                    bar.set_position(now);
                    bar.set_message(format!("{:.1} M/s", bar.per_sec() / 1e6));
                }
                RunState::Done | RunState::Reused => {
                    if let Some(bar) = bar.take() {
                        bar.finish_and_clear();
                    }
                }
            }
        }
        overall.set_position(total);
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = all.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_valid() {
        for template in [OVERALL, REPEATS, RUN] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }
}
