//! Commands that another program runs in its own process: it stops them, sees how far they are, and gets what they print.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// What a host holds of a command that runs: the way to stop it, and its progress. Clones are of the same command.
///
/// ```
/// let host = evenhand::Host::default();
/// let arguments = ["evenhand", "policies", "--format", "json"].map(Into::into);
/// let captured = evenhand::cli().run_captured(arguments, &host);
/// assert_eq!(captured.status, 0);
/// assert!(captured.output.starts_with(b"["));
/// ```
#[derive(Clone, Default)]
pub struct Host {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    interrupt: Mutex<Interrupt>,
    done: AtomicU64,
    total: AtomicU64,
    around: OnceLock<Box<AroundThread>>,
    files: Mutex<Vec<HostFile>>,
    /// Threads of studies that have not ended.
    threads: Mutex<usize>,
    ended: Condvar,
}

/// Calls what it gets, which is all that a thread does.
type AroundThread = dyn Fn(&mut (dyn FnMut() + Send)) + Send + Sync;

#[derive(Default)]
struct Interrupt {
    raised: bool,
    stops: Vec<Box<dyn Fn() + Send + Sync>>,
}

/// A file that a host writes for a command and removes later: records state what it holds in place of its path, so that
/// the same call gives the same record, and the record can be understood.
///
/// ```
/// use evenhand::HostFile;
/// let file = HostFile {
///     path: "/tmp/x1/weights.toml".into(),
///     argument: "weights.toml".into(),
///     contents: "ann = 2, bob = 1".into(),
///     made_by: None,
/// };
/// evenhand::Host::default().add_file(file);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFile {
    /// Its path, as in the arguments of the command.
    pub path: String,
    /// What the recorded command line has in place of the path.
    pub argument: String,
    /// What it holds, in words.
    pub contents: String,
    /// The command line that makes it, called `argument`, if there is one.
    pub made_by: Option<String>,
}

/// What a command printed, and its exit status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The exit status that the program `evenhand` would have.
    pub status: u8,
    /// Standard output.
    pub output: Vec<u8>,
    /// The notes that the program prints on standard error, without the error.
    pub notes: Vec<String>,
    /// The sentence that says why the command failed.
    pub error: Option<String>,
}

impl Host {
    /// Stops the command soon, as Ctrl-C does; returns whether it can stop. One that cannot runs on.
    pub fn interrupt(&self) -> bool {
        let mut interrupt = self.shared.interrupt.lock().unwrap_or_else(PoisonError::into_inner);
        interrupt.raised = true;
        interrupt.stops.iter().for_each(|stop| stop());
        !interrupt.stops.is_empty()
    }

    /// Lets `around` run every thread that simulates for a study: it gets all that the thread does, and calls it once. A host
    /// whose policies need something of each thread, such as an interpreter's state, has it once a thread instead of once
    /// a decision. The command returns after all of these threads have ended. Only the first `around` of a host counts.
    pub fn around_threads(&self, around: impl Fn(&mut (dyn FnMut() + Send)) + Send + Sync + 'static) {
        let _ = self.shared.around.set(Box::new(around));
    }

    /// States what a file of the command holds that the host writes and removes.
    pub fn add_file(&self, file: HostFile) {
        self.shared.files.lock().unwrap_or_else(PoisonError::into_inner).push(file);
    }

    /// Returns the files that the host writes and removes.
    pub(crate) fn files(&self) -> Vec<HostFile> {
        self.shared.files.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the threads that simulate for a study.
    pub(crate) fn thread_pool(&self, threads: usize) -> Result<ThreadPool, ThreadPoolBuildError> {
        let spawn = |thread: rayon::ThreadBuilder| {
            let running = RunningThread::new(&self.shared);
            std::thread::Builder::new().spawn(move || {
                let mut thread = Some(thread);
                let mut run = || {
                    if let Some(thread) = thread.take() {
                        thread.run();
                    }
                };
                match running.0.around.get() {
                    Some(around) => around(&mut run),
                    None => run(),
                }
            })?;
            Ok(())
        };
        ThreadPoolBuilder::new().num_threads(threads).spawn_handler(spawn).build()
    }

    /// Waits until the threads of studies have ended.
    pub(crate) fn wait_for_threads(&self) {
        let threads = self.shared.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = self.shared.ended.wait_while(threads, |threads| *threads > 0);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the tasks that a study has simulated, of all runs together, and how many there are; 0 of 0 before it begins.
    pub fn progress(&self) -> (u64, u64) {
        (self.shared.done.load(Ordering::Relaxed), self.shared.total.load(Ordering::Relaxed))
    }

    pub(crate) fn set_progress(&self, done: u64, total: u64) {
        self.shared.total.store(total, Ordering::Relaxed);
        self.shared.done.store(done, Ordering::Relaxed);
    }

    /// Calls `stop` at an interrupt, at once if there was one already.
    pub(crate) fn on_interrupt(&self, stop: impl Fn() + Send + Sync + 'static) {
        let mut interrupt = self.shared.interrupt.lock().unwrap_or_else(PoisonError::into_inner);
        if interrupt.raised {
            stop();
        }
        interrupt.stops.push(Box::new(stop));
    }
}

/// A thread that counts until this is dropped, at its end or when it could not be started.
struct RunningThread(Arc<Shared>);

impl RunningThread {
    fn new(shared: &Arc<Shared>) -> RunningThread {
        *shared.threads.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        RunningThread(shared.clone())
    }
}

impl Drop for RunningThread {
    fn drop(&mut self) {
        *self.0.threads.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.ended.notify_all();
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::ffi::OsString;

    fn run(host: &Host, arguments: &[&str]) -> Captured {
        crate::cli().run_captured(arguments.iter().map(OsString::from), host)
    }

    #[test]
    fn a_captured_command_returns_status_output_notes_and_error() {
        let help = run(&Host::default(), &["evenhand", "--help"]);
        assert_eq!((help.status, help.error), (0, None));
        assert!(String::from_utf8(help.output).unwrap().contains("Usage: evenhand"));

        let typo = run(&Host::default(), &["evenhand", "stduy"]);
        assert_eq!((typo.status, typo.output.len()), (2, 0));
        assert!(typo.error.unwrap().contains("unrecognized subcommand 'stduy'"));

        let missing = run(&Host::default(), &["evenhand", "workload", "describe", "not-there.swf"]);
        assert_eq!(missing.status, 2);
        assert!(missing.error.unwrap().starts_with("error: "));
    }

    #[test]
    fn an_interrupted_study_keeps_the_folder_and_says_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::default();
        // Before the study begins: it stops at the first run.
        assert!(!host.interrupt());
        let out = folder.path().to_str().unwrap();
        let study = run(&host, &["evenhand", "study", "--policy", "fifo", "--capacity", "0.5", "--out", out]);
        assert_eq!(study.status, 3);
        assert!(study.error.unwrap().contains("without fifo-0.5"));
        assert!(study.notes.iter().any(|note| note.starts_with("No workload given")));
        assert!(folder.path().join("summary.json").exists());
    }

    #[test]
    fn a_host_is_around_every_thread_of_a_study_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let counts = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let host = Host::default();
        let its_counts = counts.clone();
        host.around_threads(move |run| {
            its_counts.0.fetch_add(1, Ordering::SeqCst);
            run();
            its_counts.1.fetch_add(1, Ordering::SeqCst);
        });
        let scenario = ["study", "--policy", "fifo,drf", "--capacity", "0.5", "--no-tasks", "--threads", "2"];
        let out = ["--out", folder.path().to_str().unwrap()];
        let study = run(&host, &[&["evenhand"], &scenario[..], &out[..]].concat());
        assert_eq!((study.status, study.error), (0, None));
        assert_eq!((counts.0.load(Ordering::SeqCst), counts.1.load(Ordering::SeqCst)), (2, 2));
    }

    #[test]
    fn a_hosted_study_reports_progress_and_its_own_command_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        let host = Host::default();
        let arguments =
            ["workload", "generate", "--tasks", "300", "--users", "5", "--days", "1", "-o", &path("w.parquet")];
        assert_eq!(run(&host, &[&["evenhand"], &arguments[..]].concat()).status, 0);
        // The number of threads may differ from call to call.
        for threads in ["1", "2"] {
            let (w, out) = (path("w.parquet"), path(threads));
            let study = [
                "evenhand",
                "study",
                &w,
                "--policy",
                "fifo,drf",
                "--capacity",
                "0.5",
                "--threads",
                threads,
                "--out",
                &out,
            ];
            let study = run(&host, &study);
            assert_eq!((study.status, study.error), (0, None));
            assert_eq!(host.progress(), (600, 600));
            let summary = std::fs::read_to_string(folder.path().join(threads).join("summary.json")).unwrap();
            assert!(
                summary.contains(&format!("--policy fifo,drf --capacity 0.5 --threads {threads} --out")),
                "{summary}"
            );
        }
    }
}
