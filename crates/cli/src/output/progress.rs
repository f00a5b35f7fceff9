//! Progress bars of a study's runs, on standard error.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenhand_study::{Live, RunState};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

const OVERALL: &str = "{prefix:>16} {wide_bar} {percent:>3} %  {per_sec}  ETA {eta}";
const RUN: &str = "{prefix:>16} {bar:24} {human_pos}/{human_len} tasks  {msg}";

/// Draws the progress of `live` while `work` runs, if `visible`; returns what `work` returns.
pub(crate) fn run_with_progress<T: Send>(live: &Live, tasks: u64, visible: bool, work: impl FnOnce() -> T + Send) -> T {
    if !visible {
        return work();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| draw(live, tasks, &done));
        // A guard, because the scope waits for the drawing to end even if the work panics.
        let _end = SetOnDrop(&done);
        work()
    })
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
    while !done.load(Ordering::Relaxed) {
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
        for template in [OVERALL, RUN] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }
}
