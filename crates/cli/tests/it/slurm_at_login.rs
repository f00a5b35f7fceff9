//! `evenhand slurm why me --short`, which a login waits for.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::test_folder::{ProgramOutput, TestFolder};

#[test]
fn a_slurm_that_hangs_delays_a_login_by_seconds_only() {
    let folder = TestFolder::with("squeue", "#!/bin/sh\nexec sleep 60\n");
    std::fs::set_permissions(folder.path("squeue"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let begun = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_evenhand"))
        .args(["slurm", "why", "me", "--short"])
        .env("PATH", format!("{}:/usr/bin:/bin", folder.path("").display()))
        .output()
        .unwrap();
    let took = begun.elapsed();
    let output = ProgramOutput::of(output).assert_fails(3, &["squeue did not end within 5 s"]);
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    // Far below the 2 minutes of other questions, also on a busy machine.
    assert!(took < Duration::from_secs(40), "{took:?}");
}
