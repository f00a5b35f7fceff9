//! The services of the packages, as systemd sees them.

use std::collections::BTreeMap;

use super::{Finding, answer};

const UNITS: [&str; 3] = ["evenhand-agent.service", "evenhand-slurm.service", "evenhand-serve.service"];
const PROPERTIES: &str =
    "--property=LoadState,LoadError,UnitFileState,ActiveState,SubState,Result,NRestarts,MainPID,NeedDaemonReload";

/// What is found about a unit that is not there.
const ABSENT: &str = "not installed";

/// Whether a service of these findings calls Slurm's commands.
pub(super) fn need_slurm(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| UNITS[1..].contains(&finding.subject.as_str()) && finding.found != ABSENT)
}

/// Examines each unit.
pub(super) fn check() -> Vec<Finding> {
    let mut findings = Vec::new();
    for unit in UNITS {
        match answer("systemctl", &["show", unit, PROPERTIES]) {
            Ok(text) => findings.extend(judge(unit, &properties(&text))),
            // The others have no answer either.
            Err(error) => {
                findings.push(Finding::note("services", error, "without systemd, services are started in other ways"));
                break;
            }
        }
    }
    findings
}

fn properties(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once('=')).collect()
}

/// Judges a unit by its properties.
fn judge(unit: &str, properties: &BTreeMap<&str, &str>) -> Vec<Finding> {
    let of = |name: &str| properties.get(name).copied().unwrap_or_default();
    let journal = format!("journalctl -u {unit} -n 50");
    let mut findings = Vec::new();
    match of("LoadState") {
        "loaded" => {}
        "not-found" | "" => return vec![Finding::fine(unit, ABSENT)],
        "masked" => return vec![Finding::note(unit, "masked", format!("systemctl unmask {unit}, if it should run"))],
        state => {
            let found = format!("systemd cannot load it: {state} {}", of("LoadError"));
            return vec![Finding::problem(unit, found.trim_end(), format!("systemd-analyze verify {unit}"))];
        }
    }
    if of("NeedDaemonReload") == "yes" {
        let remedy = format!("systemctl daemon-reload && systemctl try-restart {unit}");
        findings.push(Finding::problem(unit, "its files changed since systemd read them", remedy));
    }
    let restarts: u64 = of("NRestarts").parse().unwrap_or(0);
    let restarted = if restarts == 1 { "1 restart".to_owned() } else { format!("{restarts} restarts") };
    let enabled = matches!(of("UnitFileState"), "enabled" | "enabled-runtime");
    findings.push(match (of("ActiveState"), of("SubState")) {
        ("active", _) if restarts > 0 => Finding::note(unit, format!("runs, after {restarted}"), journal),
        ("active", _) => Finding::fine(unit, "runs"),
        ("failed", _) => Finding::problem(unit, format!("failed: {}, after {restarted}", of("Result")), journal),
        (_, "auto-restart") => Finding::problem(unit, format!("does not stay up: {restarted}"), journal),
        (state, _) if enabled => {
            Finding::problem(unit, format!("enabled, but {state}"), format!("systemctl start {unit}"))
        }
        _ => Finding::fine(unit, "installed, not enabled"),
    });
    if of("ActiveState") == "active" && runs_a_replaced_program(of("MainPID")) {
        let found = "runs a program that was replaced since its start";
        findings.push(Finding::problem(unit, found, format!("systemctl restart {unit}")));
    }
    findings
}

/// Whether the file of a process's program is gone. Only root sees that of services.
fn runs_a_replaced_program(process: &str) -> bool {
    let link = std::fs::read_link(format!("/proc/{process}/exe"));
    link.is_ok_and(|path| path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)"))
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    const UNIT: &str = "evenhand-agent.service";

    fn judged(text: &str) -> Vec<(State, String)> {
        judge(UNIT, &properties(text)).into_iter().map(|finding| (finding.state, finding.found)).collect()
    }

    #[test]
    fn a_unit_is_judged_by_what_systemd_says() {
        let cases = [
            ("LoadState=not-found\nActiveState=inactive", State::Fine, "not installed"),
            ("LoadState=masked", State::Note, "masked"),
            ("LoadState=bad-setting\nLoadError=Invalid", State::Problem, "systemd cannot load it: bad-setting Invalid"),
            ("LoadState=loaded\nActiveState=active\nNRestarts=0", State::Fine, "runs"),
            ("LoadState=loaded\nActiveState=active\nNRestarts=1", State::Note, "runs, after 1 restart"),
            (
                "LoadState=loaded\nActiveState=failed\nResult=exit-code\nNRestarts=5",
                State::Problem,
                "failed: exit-code, after 5 restarts",
            ),
            (
                "LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nNRestarts=3",
                State::Problem,
                "does not stay up: 3 restarts",
            ),
            ("LoadState=loaded\nActiveState=inactive\nUnitFileState=enabled", State::Problem, "enabled, but inactive"),
            ("LoadState=loaded\nActiveState=inactive\nUnitFileState=disabled", State::Fine, "installed, not enabled"),
        ];
        for (text, state, found) in cases {
            assert_eq!(judged(text), [(state, found.to_owned())], "{text}");
        }
    }

    #[test]
    fn changed_files_and_a_replaced_program_are_problems_of_a_unit_that_runs() {
        let found = judged("LoadState=loaded\nActiveState=active\nNeedDaemonReload=yes");
        assert_eq!(found[0], (State::Problem, "its files changed since systemd read them".to_owned()));
        assert_eq!(found[1], (State::Fine, "runs".to_owned()));
        assert!(!runs_a_replaced_program(&std::process::id().to_string()));
        assert!(!runs_a_replaced_program("0"));
    }
}
