//! Names that control terminals or are formulas of spreadsheets.

use crate::test_folder::TestFolder;

/// A trace whose users clear the screen, open a link, forge a line, hide text and reverse it.
const NAMES: [&str; 5] = [
    "\u{1b}[2J\u{1b}]0;owned\u{7}",
    "=HYPERLINK(\"http://example.org/\"&A1)",
    "ann\nroot",
    "\u{9b}8mhidden",
    "+1\u{202e}nna",
];

fn folder() -> TestFolder {
    let mut trace = "submit,duration,user,cpu\n".to_string();
    for (at, name) in NAMES.iter().enumerate().filter(|(_, name)| !name.contains('\n')) {
        trace += &format!("{at},10,\"{}\",1\n", name.replace('"', "\"\""));
    }
    TestFolder::with("t.csv", trace)
}

const COLUMNS: [&str; 2] = ["--csv-columns", "submit=submit,duration=duration,user=user,cpu=cpu"];

fn has_control(text: &str) -> bool {
    text.contains(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}'))
}

#[test]
fn names_are_printed_and_written_without_control_characters_and_formulas() {
    let folder = folder();
    let study = ["study", "t.csv", COLUMNS[0], COLUMNS[1], "--policy", "fifo,drf", "--capacity", "0.5", "--tasks-csv"];
    let out = folder.run(&[&study[..], &["--out", "out"]].concat()).assert_succeeds();
    assert!(!has_control(&out.stdout) && !has_control(&out.stderr), "{out:?}");
    for name in ["out/users.csv", "out/tasks-drf-0.5.csv"] {
        let text = folder.read(name);
        assert!(!has_control(&text), "{name}: {text}");
        for expected in ["\\x1b[2J\\x1b]0;owned\\x07,", ",\"'=HYPERLINK(", ",\\x9b8mhidden,", ",'+1\\u{202e}nna,"] {
            assert!(text.contains(expected), "{expected} is not in {name}: {text}");
        }
    }
    // Programs get the names as they are.
    folder.run(&[&study[..], &["--out", "raw", "--raw-csv"]].concat()).assert_succeeds();
    for name in ["raw/users.csv", "raw/tasks-drf-0.5.csv"] {
        let text = folder.read(name);
        assert!(text.contains(NAMES[0]) && text.contains(",\"=HYPERLINK(\"\"http"), "{name}: {text}");
    }
    assert_eq!(
        folder.json("out/summary.json")["runs"][0]["users"],
        folder.json("raw/summary.json")["runs"][0]["users"]
    );
}

#[test]
fn messages_and_json_show_control_characters_as_escapes() {
    let folder = folder();
    folder
        .write("p.toml", "[capacity]\ncpu = 1\n\n[[user]]\nname = \"a\\u001b[2J\\u009b\\nb\"\ndemand = { cpu = 1 }\n");
    let json = folder.run(&["allocate", "p.toml", "--format", "json"]).assert_succeeds();
    assert!(!has_control(&json.stdout), "{json:?}");
    assert!(json.json().to_string().contains("a\\u001b[2J\u{9b}\\nb"), "the name itself is unchanged: {json:?}");
    let failed =
        folder.run(&["workload", "describe", "no\u{1b}[2J\u{9b}file"]).assert_fails(2, &["no\\x1b[2J\\x9bfile"]);
    assert!(!has_control(&failed.stderr), "{failed:?}");
    let failed = folder.run(&["allocate", "no\u{1b}[2Jfile"]).assert_fails(2, &["no\\x1b[2Jfile"]);
    assert!(!has_control(&failed.stderr), "{failed:?}");
}
