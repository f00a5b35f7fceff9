//! Commands that hang, print without end, leave descendants behind, or do not read their input.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use evenhand_child_process::{Finished, Limits, RunError, STDERR_LIMIT, StopFlag, run};

fn shell(script: &str, input: Option<&[u8]>, limits: &Limits) -> Result<Finished, RunError> {
    run(Command::new("sh").args(["-c", script]), input, limits)
}

/// Limits whose time no test reaches.
fn long() -> Limits {
    Limits { time: Duration::from_secs(600), ..Limits::default() }
}

/// Waits until no process has this argument.
fn until_gone(argument: &str) {
    loop {
        let cmdlines = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
        // A zombie has no arguments.
        if !cmdlines.filter_map(|path| std::fs::read(path).ok()).any(|line| {
            let words = line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect::<Vec<_>>();
            words.contains(&argument.as_bytes().to_vec())
        }) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn output_error_and_status_are_returned() {
    let finished = shell("echo out; echo err >&2; exit 3", None, &long()).unwrap();
    assert_eq!((finished.stdout.as_slice(), finished.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!(finished.status.code(), Some(3));
    let absent = "evenhand-no-such-program";
    let missing = run(&mut Command::new(absent), None, &long()).unwrap_err();
    assert!(matches!(missing, RunError::Start(error) if error.kind() == std::io::ErrorKind::NotFound));
}

#[test]
fn more_input_and_output_than_pipes_hold_pass_at_the_same_time() {
    let input = vec![b'a'; 3_000_000];
    let finished = shell("tr a b; head -c 3000000 /dev/zero >&2", Some(&input), &long()).unwrap();
    assert_eq!(finished.stdout, vec![b'b'; 3_000_000]);
    assert_eq!(finished.stderr.len(), STDERR_LIMIT);
}

#[test]
fn a_command_that_does_not_read_its_input_ends_all_the_same() {
    let finished = shell("exec <&-; echo done", Some(&vec![b'a'; 3_000_000]), &long()).unwrap();
    assert_eq!(finished.stdout, b"done\n");
    assert!(shell("cat; echo end", Some(b""), &long()).unwrap().stdout.starts_with(b"end"));
}

#[test]
fn a_hung_command_is_killed_with_its_descendants_and_what_it_printed_is_kept() {
    let limits = Limits { time: Duration::from_millis(300), ..Limits::default() };
    // The shell waits for a pipe of a child and of a grandchild.
    let script = "echo waiting >&2; (sleep 59871 & sleep 59871) | cat";
    match shell(script, None, &limits).unwrap_err() {
        RunError::TimedOut { stderr, .. } => assert_eq!(stderr, b"waiting\n"),
        error => panic!("{error}"),
    }
    until_gone("59871");
}

#[test]
fn output_without_end_is_refused_and_does_not_fill_memory() {
    let limits = Limits { output: 100_000, ..long() };
    let error = shell("cat /dev/zero", None, &limits).unwrap_err();
    assert!(matches!(error, RunError::TooLarge { limit: 100_000 }), "{error}");
    // Exactly the limit is not too much; an endless error output is dropped.
    assert_eq!(shell("head -c 100000 /dev/zero", None, &limits).unwrap().stdout.len(), 100_000);
    let limits = Limits { time: Duration::from_millis(300), ..Limits::default() };
    match shell("cat /dev/zero >&2", None, &limits).unwrap_err() {
        RunError::TimedOut { stderr, .. } => assert!(stderr.len() <= STDERR_LIMIT),
        error => panic!("{error}"),
    }
}

#[test]
fn a_stop_flag_ends_a_command_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let stop = StopFlag::default();
    let limits = Limits { stop: stop.clone(), ..long() };
    let (sender, result) = channel();
    let script = format!("trap '' TERM; echo >{}; sleep 59872; sleep 59872", begun.display());
    thread::spawn(move || sender.send(shell(&script, None, &limits)));
    while !Path::new(&begun).exists() {
        thread::sleep(Duration::from_millis(1));
    }
    stop.set();
    assert!(matches!(result.recv().unwrap().unwrap_err(), RunError::Stopped));
    until_gone("59872");
}

#[test]
fn a_descendant_that_keeps_the_pipes_does_not_delay_the_result_beyond_a_grace() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // The descendant ends when this test opens the pipe, which is after the result.
    let finished = shell(&format!("echo out; cat {} & exit 1", pipe.display()), None, &long()).unwrap();
    assert_eq!((finished.status.code(), finished.stdout.as_slice()), (Some(1), &b"out\n"[..]));
    drop(std::fs::OpenOptions::new().write(true).open(&pipe).unwrap());
}
