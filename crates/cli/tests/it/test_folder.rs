//! A temporary folder in which tests run the program, and assertions on its output.

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

/// Exit status and output of a run of the program.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ProgramOutput {
    pub(crate) fn of(output: Output) -> ProgramOutput {
        ProgramOutput {
            // A process that a signal ended has no code; the program never exits with -1.
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Asserts that the program exited with status 0.
    #[track_caller]
    pub(crate) fn assert_succeeds(self) -> ProgramOutput {
        assert_eq!(self.status, 0, "{self:?}");
        self
    }

    /// Asserts that the program exited with this status, without a result, and with an error that contains all parts.
    #[track_caller]
    pub(crate) fn assert_fails(self, status: i32, expected: &[&str]) -> ProgramOutput {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.stdout.is_empty(), "a failure prints no result: {self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        for part in expected {
            assert!(self.stderr.contains(part), "{part:?} is not in: {}", self.stderr);
        }
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// A temporary folder in which the program runs.
pub(crate) struct TestFolder {
    dir: tempfile::TempDir,
}

impl TestFolder {
    pub(crate) fn new() -> TestFolder {
        TestFolder { dir: tempfile::tempdir().unwrap() }
    }

    /// Returns a folder with one file in it.
    pub(crate) fn with(name: &str, content: impl AsRef<[u8]>) -> TestFolder {
        let folder = TestFolder::new();
        folder.write(name, content);
        folder
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

    pub(crate) fn run(&self, args: &[&str]) -> ProgramOutput {
        ProgramOutput::of(self.command(args).output().unwrap())
    }

    /// Runs the program with `input` on standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> ProgramOutput {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A program that fails early closes the pipe, which is no error of the test.
        let _ = stdin.write_all(input);
        drop(stdin);
        ProgramOutput::of(child.wait_with_output().unwrap())
    }

    /// Asserts that the program fails with this status and leaves the folder unchanged.
    #[track_caller]
    pub(crate) fn assert_rejects(&self, args: &[&str], status: i32, expected: &[&str]) -> ProgramOutput {
        let before = self.files();
        let output = self.run(args).assert_fails(status, expected);
        assert_eq!(self.files(), before, "the program changes no file");
        output
    }

    /// Returns the relative paths of all files and folders.
    pub(crate) fn files(&self) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        walk(self.dir.path(), self.dir.path(), &mut found);
        found
    }

    /// Asserts that the program left no temporary file.
    #[track_caller]
    pub(crate) fn assert_no_temporary_files(&self) {
        let temporary: Vec<PathBuf> =
            self.files().into_iter().filter(|p| p.to_string_lossy().contains(".partial")).collect();
        assert!(temporary.is_empty(), "{temporary:?}");
    }
}

/// Returns the relative paths of the files below a folder.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    walk(folder, folder, &mut found);
    found.into_iter().filter(|path| folder.join(path).is_file()).collect()
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

/// Compresses `content` with a program of the system; returns `None`, with a note on stderr, if it is not installed.
pub(crate) fn compressed(tool: &str, content: &str) -> Option<Vec<u8>> {
    let child = Command::new(tool).arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: {tool} is not installed");
        return None;
    };
    child.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
    Some(child.wait_with_output().unwrap().stdout)
}
