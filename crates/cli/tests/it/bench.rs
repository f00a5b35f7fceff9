//! A folder to work in and the program to run there.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Two users whose tasks overlap, in the seven-column CSV.
pub(crate) const CSV: &str = "\
0,0,10000000,ann,1,1,2
0,0,10000000,bob,2,2,1
1000000,5000000,9000000,ann,3,1,1
2000000,5000000,9000000,bob,4,1,1
";

/// Two jobs in the Standard Workload Format.
pub(crate) const SWF: &str = "\
; Version: 2.2
; MaxProcs: 8
; UnixStartTime: 0
1 0 1 10 2 -1 -1 2 10 -1 1 1 1 1 1 -1 -1 -1
2 5 1 10 4 -1 -1 4 10 -1 1 2 1 1 1 -1 -1 -1
";

/// What a run of the program left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Ran {
        Ran {
            // A signal has no code: -1 is no status the program may have.
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// It did what was asked.
    #[track_caller]
    pub(crate) fn done(self) -> Ran {
        assert_eq!(self.status, 0, "{self:?}");
        self
    }

    /// It refused with this status and a sentence that says all of this.
    #[track_caller]
    pub(crate) fn refused(self, status: i32, says: &[&str]) -> Ran {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.stdout.is_empty(), "a refusal prints no result: {self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        for part in says {
            assert!(self.stderr.contains(part), "{part:?} is not in: {}", self.stderr);
        }
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// A temporary folder in which the program runs.
pub(crate) struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench { dir: tempfile::tempdir().unwrap() }
    }

    /// With one file in it.
    pub(crate) fn with(name: &str, content: impl AsRef<[u8]>) -> Bench {
        let bench = Bench::new();
        bench.write(name, content);
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenhand"));
        command.current_dir(self.dir.path()).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// With `input` on standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A program that refuses early closes the pipe: not this side's business.
        let _ = stdin.write_all(input);
        drop(stdin);
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Runs what must be refused, and holds the folder against what it was before.
    #[track_caller]
    pub(crate) fn refuses(&self, args: &[&str], status: i32, says: &[&str]) -> Ran {
        let before = self.files();
        let ran = self.run(args).refused(status, says);
        assert_eq!(self.files(), before, "nothing is left behind");
        ran
    }

    /// Every file and folder, relative.
    pub(crate) fn files(&self) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        walk(self.dir.path(), self.dir.path(), &mut found);
        found
    }

    /// No temporary file of the program's is anywhere.
    #[track_caller]
    pub(crate) fn holds_nothing_half_written(&self) {
        let halves: Vec<PathBuf> = self.files().into_iter().filter(|p| p.to_string_lossy().contains(".tmp")).collect();
        assert!(halves.is_empty(), "{halves:?}");
    }
}

fn walk(root: &Path, dir: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        found.insert(path.strip_prefix(root).unwrap().to_path_buf());
        if path.is_dir() {
            walk(root, &path, found);
        }
    }
}

/// `content` packed by a tool of the system; `None` (and why, on stderr) if it is not there.
pub(crate) fn packed(tool: &str, content: &str) -> Option<Vec<u8>> {
    let child = Command::new(tool).arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: there is no {tool}");
        return None;
    };
    child.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
    Some(child.wait_with_output().unwrap().stdout)
}
