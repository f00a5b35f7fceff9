//! Programs and scenario files: what is read, and the errors of invalid ones.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use evenhand_documents::{Document, DocumentError, Format};
use evenhand_model::{Span, Time};
use evenhand_processes::{Program, Reading, Scenario, TieBreak, read_scenario};

const FIGURE_1: &str =
    "# Priority:\n34\n# Requests:\nloop 1\nCPU_CS 2 0 NORM\nloop 40\nDISK_CS 0.1 0.05 NORM\nCPU_CS 0.1 0.05 NORM\n";

/// Returns line, column and problem of the error.
fn rejected(text: &str) -> (usize, usize, String) {
    match Program::parse("p.prog", text).unwrap_err() {
        DocumentError::Content(e) => (e.line(), e.column(), e.problem().to_string()),
        other => panic!("{other}"),
    }
}

#[test]
fn the_papers_program_parses_with_comments_and_other_line_ends() {
    let plain = Program::parse("p", FIGURE_1).unwrap();
    assert_eq!(plain.phases.len(), 2);
    assert_eq!(plain.phases[1].iterations, 40);
    assert_eq!(plain.phases[1].steps[0].width, Span::from_nanos(50_000_000));
    let commented = FIGURE_1.replace("# Requests:", "# twice\n\n#Requests: ").replace("loop 40", "  loop 40 # times");
    assert_eq!(Program::parse("p", &commented).unwrap(), plain);
    assert_eq!(Program::parse("p", &FIGURE_1.replace('\n', "\r\n")).unwrap(), plain);
    assert_eq!(Program::parse("p", &format!("\u{feff}{FIGURE_1}")).unwrap(), plain);
    assert_eq!(Program::parse("p", FIGURE_1.trim_end()).unwrap(), plain);
}

#[test]
fn errors_name_position_found_and_expected() {
    let with = |from: &str, to: &str| rejected(&FIGURE_1.replacen(from, to, 1));
    let expect = |(line, column, problem): (usize, usize, String), at: (usize, usize), words: &[&str]| {
        assert_eq!((line, column), at, "{problem}");
        assert!(words.iter().all(|w| problem.contains(w)), "{problem}");
    };
    expect(with("# Priority:", "# Priorty:"), (2, 1), &["found \"34\"", "\"# Priority:\""]);
    expect(with("34", "0"), (2, 1), &["greater than 0"]);
    expect(with("34", "much"), (2, 1), &["found \"much\""]);
    expect(with("# Requests:\n", ""), (3, 1), &["found \"loop 1\"", "# Requests:"]);
    expect(with("loop 1", "lop 1"), (4, 1), &["found \"lop\"", "did you mean \"loop\""]);
    expect(with("loop 40", "loop"), (6, 5), &["the end of the line", "whole number"]);
    expect(with("loop 40", "loop -1"), (6, 6), &["found \"-1\""]);
    expect(with("loop 40", "loop 40 50"), (6, 9), &["found \"50\"", "end of the line"]);
    expect(with("loop 1\nCPU_CS 2 0 NORM\n", "loop 1\n"), (4, 1), &["loop without requests"]);
    expect(with("CPU_CS 2 0 NORM", "CPU_CS 2 0 Norm"), (5, 12), &["found \"Norm\"", "did you mean \"NORM\""]);
    expect(with("CPU_CS 2 0 NORM", "CPU_CS 2 NORM"), (5, 10), &["found \"NORM\"", "width"]);
    expect(with("CPU_CS 2 0 NORM", "CPU_CS -2 0 NORM"), (5, 8), &["found \"-2\"", "mean"]);
    expect(with("CPU_CS 2 0 NORM", "CPU_CS 1e20 0 NORM"), (5, 8), &["found \"1e20\""]);
    expect(rejected(""), (1, 1), &["found the end", "# Priority:"]);
    expect(rejected("# Priority:\n1\n# Requests:\n"), (3, 12), &["found the end", "loop COUNT"]);
    let error = Program::parse("p.prog", &FIGURE_1.replace("2 0 NORM", "2 0 NROM")).unwrap_err().to_string();
    assert!(error.starts_with("p.prog:5:12: ") && error.contains("^^^^"), "{error}");
}

fn read(text: &str) -> Result<Scenario, DocumentError> {
    read_scenario(&Document::parse("s.toml", text, Some(Format::Toml)).unwrap(), Path::new("/nonexistent"))
}

#[test]
fn scenarios_set_every_field() {
    let program = format!("'''\n{FIGURE_1}'''");
    let text = format!(
        "[parameters]\nwindow = \"6s\"\nthreshold = 0.8\ngrace = 0\nquantum = 0.2\nrecalculate = 1\n\
         reading = \"global\"\nties = \"fifo\"\nscheduler = \"stride\"\nseed = 7\nhorizon = 60\n\
         [[resource]]\nname = \"DISK_CS\"\nservers = 2\npreemptive = false\n\
         [[client]]\nname = \"one\"\nentitlement = \"1/3\"\nstart = 2.5\nthreads = [{program}, {program}]\n\
         asynchronous = {{ resources = [\"DISK_CS\"], depth = 3 }}\nsuspend = [{{ from = 3, until = 4 }}]\n\
         [[client]]\nname = \"two\"\nprogram = {program}\n"
    );
    let scenario = read(&text).unwrap();
    let p = scenario.parameters();
    assert_eq!((p.window, p.recalculation()), (Span::from_secs(6), Span::from_secs(1)));
    assert_eq!((p.reading, p.ties, p.scheduler.as_str(), p.seed), (Reading::Global, TieBreak::Fifo, "stride", 7));
    assert_eq!(p.horizon, Some(Time::from_secs(60)));
    let names: Vec<&str> = scenario.resources().iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["CPU_CS", "DISK_CS"]);
    let disk = &scenario.resources()[1];
    assert_eq!((disk.servers, disk.preemptive, disk.quantum), (2, false, Span::from_nanos(200_000_000)));
    let one = &scenario.clients()[0];
    assert_eq!((one.threads.len(), one.start), (2, Time::from_nanos(2_500_000_000)));
    assert_eq!(one.asynchronous.as_ref().unwrap().depth, 3);
    assert_eq!(one.suspensions, [(Time::from_secs(3), Time::from_secs(4))]);
    assert_eq!(scenario.clients()[1].entitlement.to_f64(), 34.0);
    assert_eq!(scenario.run().end, scenario.run().end);
}

#[test]
fn invalid_scenarios_are_rejected_with_their_position() {
    let client = format!("[[client]]\nname = \"a\"\nprogram = '''\n{FIGURE_1}'''\n");
    let refuse = |text: String, begins: &str, words: &[&str]| {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.starts_with(begins), "{error}");
        assert!(words.iter().all(|w| error.contains(w)), "{error}");
    };
    refuse(format!("[parameters]\nwindw = 3\n{client}"), "s.toml:2:1: ", &["window"]);
    refuse(format!("[parameters]\nreading = \"globl\"\n{client}"), "s.toml:2:11: ", &["did you mean \"global\""]);
    refuse(format!("[parameters]\nquantum = 0\n{client}"), "s.toml:", &["quantum: found 0 s"]);
    refuse(format!("[parameters]\nscheduler = \"strid\"\n{client}"), "s.toml:", &["did you mean \"stride\""]);
    refuse(format!("[parameters]\nthreshold = 2\n{client}"), "s.toml:", &["threshold"]);
    refuse(format!("{client}{client}"), "s.toml:", &["two clients are called \"a\""]);
    refuse("[[client]]\nname = \"a\"\n".into(), "s.toml:1:", &["found no program"]);
    refuse("[[client]]\nprogram = \"x.prog\"\n".into(), "/nonexistent/x.prog: ", &[]);
    refuse(client.replace("NORM", "NROM"), "s.toml, program of a client:", &["NORM, UNIF or EXP"]);
    refuse(format!("[[resource]]\nname = \"CPU_CS\"\nservers = 0\n{client}"), "s.toml:", &["servers"]);
    refuse(format!("{client}suspend = [{{ from = 4, until = 3 }}]\n"), "s.toml:", &["suspensions"]);
    refuse(format!("{client}asynchronous = {{ resources = [\"NET\"] }}\n"), "s.toml:", &["\"NET\""]);
}
