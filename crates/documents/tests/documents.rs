//! Parses documents and checks the errors of invalid ones.
#![allow(clippy::unwrap_used)]

use evenhand_documents::{Document, DocumentError, Format, Node};
use proptest::prelude::*;

fn toml(text: &str) -> Result<Document, String> {
    Document::parse("f.toml", text, Some(Format::Toml)).map_err(|e| e.to_string())
}

fn json(text: &str) -> Result<Document, String> {
    Document::parse("f.json", text, Some(Format::Json)).map_err(|e| e.to_string())
}

/// The whole tree of a document, in one line.
fn flat(node: &Node<'_>) -> String {
    if let Ok(table) = node.table() {
        let entries: Vec<String> = table.entries().map(|(k, v)| format!("{}={}", k.name(), flat(&v))).collect();
        return format!("{{{}}}", entries.join(" "));
    }
    if let Ok(list) = node.list() {
        return format!("[{}]", list.map(|v| flat(&v)).collect::<Vec<_>>().join(" "));
    }
    node.written().map(String::from).or_else(|_| node.flag().map(|f| f.to_string())).unwrap_or_else(|_| "?".into())
}

#[test]
fn both_formats_give_the_same_tree_in_the_order_of_the_file() {
    let a = toml(
        "z = 0.1\n[cap]\nmem = 1_000\ncpu = 0x1F\n'a b' = \"54/13\"\n[[user]]\nn = [1, -2.50e1]\n[[user]]\nok = true\n",
    );
    let b = json(r#" {"z":0.1,"cap":{"mem":1000,"cpu":31,"a b":"54/13"},"user":[{"n":[1,-2.50e1]},{"ok":true}]} "#);
    let expected = "{z=0.1 cap={mem=1000 cpu=31 a b=54/13} user=[{n=[1 -2.50e1]} {ok=true}]}";
    assert_eq!(flat(&a.unwrap().node()), expected);
    assert_eq!(flat(&b.unwrap().node()), expected);
}

#[test]
fn numbers_are_exact_and_bounded() {
    let document = toml("a = 0.1\nb = \"18Gi\"\nc = 1e999999999\nd = inf\ne = \"0/0\"\nf = true\ng = -0.0\n").unwrap();
    let root = document.root().unwrap();
    let quantity = |key: &str| root.required(key, "a number").unwrap().quantity().map_err(|e| e.to_string());
    assert_eq!(quantity("a").unwrap().to_string(), "1/10");
    assert_eq!(quantity("b").unwrap().to_string(), (18u64 << 30).to_string());
    assert!(
        quantity("c").unwrap_err().starts_with("f.toml:3:5: c: found \"1e999999999\", which is too long or too large")
    );
    assert!(quantity("d").unwrap_err().starts_with("f.toml:4:5: d: found \"inf\", expected a finite number"));
    assert!(quantity("e").unwrap_err().starts_with("f.toml:5:5: e: found \"0/0\", a division by 0"));
    assert!(quantity("f").unwrap_err().starts_with("f.toml:6:5: f: found true or false, expected a number"));
    assert!(quantity("g").unwrap().is_zero());
}

#[test]
fn an_error_prints_the_line() {
    let document = toml("[capacity]\ncpu = 9\nmem = -18\n").unwrap();
    let capacity = document.root().unwrap().required("capacity", "").unwrap().table().unwrap();
    let error = capacity.get("mem").unwrap().quantity().unwrap_err();
    let expected = "\
f.toml:3:7: mem: found \"-18\", expected a number that is not negative
  |
3 | mem = -18
  |       ^^^";
    assert_eq!(error.to_string(), expected);
    assert!(error.render(true).contains("\u{1b}["));
    let error = capacity.required("gpu", "a quantity").unwrap_err().to_string();
    assert!(error.starts_with("f.toml:1:1: capacity: found no gpu, expected a quantity\n"), "{error}");
    let error = capacity.deny_unknown(&["cpu", "memory"]).unwrap_err().to_string();
    assert!(
        error.contains("f.toml:3:1: unknown field \"mem\", expected one of: cpu, memory; did you mean \"memory\"?")
    );
}

#[test]
fn columns_count_characters() {
    let document = toml("s = { 'über' = 1, x = [] }\n").unwrap();
    let table = document.root().unwrap().get("s").unwrap().table().unwrap();
    let error = table.get("x").unwrap().quantity().unwrap_err().to_string();
    assert!(error.starts_with("f.toml:1:23: x: found a list, expected a number\n"), "{error}");
}

#[test]
fn a_long_line_does_not_flood_the_terminal() {
    let text = format!("{{\"a\":\"{}\",\"b\":[],\"c\":\"{}\"}}", "ä".repeat(1_000_000), "ü".repeat(1_000_000));
    let document = json(&text).unwrap();
    let error = document.root().unwrap().get("b").unwrap().quantity().unwrap_err().to_string();
    assert!(error.starts_with("f.json:1:1000013: b: found a list"), "{}", &error[..200]);
    assert!(error.chars().count() < 600, "{error}");
    let printed = error.lines().nth(2).unwrap();
    assert!(printed.contains("ä\",\"b\":[],\"c\":\"ü"), "{printed}");
    let column = |line: &str, mark: &str| line.find(mark).map(|at| line[..at].chars().count());
    assert_eq!(column(printed, "[]"), column(error.lines().nth(3).unwrap(), "^^"));
    // A long value likewise.
    let error = document.root().unwrap().get("a").unwrap().quantity().unwrap_err().to_string();
    assert!(error.chars().count() < 800, "{error}");
}

#[test]
fn control_characters_of_a_file_are_not_printed() {
    let document = json("{\"\\u001b[2J\": \"\u{7f}\u{9b}2J\"}");
    let error = document.unwrap().root().unwrap().get("\u{1b}[2J").unwrap().quantity().unwrap_err().to_string();
    assert!(error.contains("\\x1b[2J: found"), "{error}");
    assert!(error.chars().all(|c| c == '\n' || !c.is_control()), "{error:?}");
}

#[test]
fn a_duplicate_key_names_both_places() {
    let error = json("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}").unwrap_err();
    let expected = "\
f.json:3:2: \"a\" occurs a second time, expected once
  |
1 | {\"a\": 1,
  |  --- first here
  |
 :::
3 |  \"a\": 3}
  |  ^^^";
    assert_eq!(error, expected);
    // Keys are compared without escapes.
    assert!(json(r#"{"a": 1, "\u0061": 3}"#).unwrap_err().starts_with("f.json:1:10: \"a\" occurs a second time"));
    let twice = |text: &str, second: &str, first: &str| {
        let error = toml(text).unwrap_err();
        assert!(error.starts_with(&format!("f.toml:{second}: ")), "{error}");
        assert!(error.contains("occurs a second time"), "{error}");
        let line = error.lines().position(|l| l.contains("first here")).unwrap_or_else(|| panic!("{error}"));
        assert!(error.lines().nth(line - 1).unwrap().starts_with(first), "{error}");
    };
    twice("[c]\na = 1\nb = 2\na = 3\n", "4:1", "2 |");
    twice("[c]\na = 1\n[d]\na = 2\n[c]\nb = 3\n", "5:2", "1 |");
    twice("a = 0\n[[u]]\na = 1\n[[u]]\na = 2\nd = { a = 3 }\na = 4\n", "7:1", "5 |");
    twice("[[u]]\na = 1\nd = { a = 1, b = 2, a = 3 }\n", "3:21", "3 |");
    twice("[[u]]\na = 1\nd = [{ a = 1 }, { b = 2 }]\na = 3\n", "4:1", "2 |");
    twice("a = 1\n'a' = 2\n", "2:1", "1 |");
    twice("[a]\n[[a]]\n", "2:3", "1 |");
    twice("c = 1\n[a.c]\n[x]\nc = 1\n[a.c]\n", "5:4", "2 |");
}

#[test]
fn invalid_documents_are_reported_with_their_place() {
    assert!(toml("[capacity\ncpu = 1\n").unwrap_err().starts_with("f.toml:1:10: "));
    assert!(toml("cpu = \n").unwrap_err().starts_with("f.toml:1:"));
    assert!(json("{\"a\": 1,\n \"b\" 2}").unwrap_err().starts_with("f.json:2:6: invalid JSON: expected `:`"));
    assert!(json("").unwrap_err().starts_with("f.json:1:1: invalid JSON: EOF"));
    assert!(json("{\"a\": 1} x").unwrap_err().starts_with("f.json:1:10: invalid JSON: trailing characters"));
    assert!(json("{\"a\": [1, \"\\ud800\"]}").unwrap_err().starts_with("f.json:1:"));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(json(&deep).unwrap_err().contains("levels of brackets") || json(&deep).unwrap_err().contains("recursion"));
    assert!(toml(&format!("a = {deep}")).unwrap_err().contains("recursion"));
}

#[test]
fn the_format_is_detected_from_the_text() {
    for (text, format) in [
        ("[capacity]\ncpu = 1", Format::Toml),
        ("[[user]]\n", Format::Toml),
        ("  \n# x\n", Format::Toml),
        ("", Format::Toml),
        ("\n { }", Format::Json),
        ("[ {\"mechanism\": 1}]", Format::Json),
        ("[\n]", Format::Json),
    ] {
        assert_eq!(Format::of_text(text), format, "{text:?}");
        Document::parse("x", text, None).unwrap();
    }
    assert_eq!(Format::of_path("a/B.TOML".as_ref()), Some(Format::Toml));
    assert_eq!(Format::of_path("a.json".as_ref()), Some(Format::Json));
    assert_eq!(Format::of_path("toml".as_ref()), None);
    Document::parse("x", "\u{feff}{\"a\": 1}", None).unwrap();
}

#[test]
fn files_that_cannot_be_read_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let missing = Document::read(&dir.path().join("none.toml")).unwrap_err();
    assert!(matches!(missing, DocumentError::Read { .. }) && !missing.is_environment());
    assert!(missing.to_string().contains("none.toml: No such file"));
    assert!(!Document::read(dir.path()).unwrap_err().is_environment());
    let path = dir.path().join("latin.toml");
    std::fs::write(&path, b"a = 1\nb = \"\xe9t\xe9\"\n").unwrap();
    let error = Document::read(&path).unwrap_err().to_string();
    assert!(error.contains("latin.toml:2:6: found the byte 0xe9, expected text in UTF-8\n"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// No text whatsoever makes either parser panic, and every error has a place in the text.
    #[test]
    fn any_text_is_parsed_or_rejected(
        text in prop_oneof![
            "[\\[\\]{}\",:=a-c0-9.\\n\\\\eäé \u{301}\t\r#'-]{0,60}",
            "\\PC{0,40}",
            "(\\{\"[ab]\": ){0,50}",
        ],
    ) {
        for format in [Format::Toml, Format::Json] {
            match Document::parse("f", &text, Some(format)) {
                Ok(document) => { flat(&document.node()); }
                Err(DocumentError::Content(e)) => {
                    prop_assert!(e.line() >= 1 && e.line() <= text.matches('\n').count() + 1);
                    prop_assert!(e.column() >= 1 && e.column() <= text.chars().count() + 1);
                    prop_assert!(!e.render(true).is_empty());
                }
                Err(e) => prop_assert!(false, "{}", e),
            }
        }
    }
}
