//! Google's ClusterData2011_2 task events.

use super::*;

/// One job's tasks 0.. with a story each; times are 1, 2, 3 … seconds after 600 s.
pub(crate) fn google(events: &[(u32, u32)]) -> String {
    let row = |(i, (task, code)): (usize, &(u32, u32))| {
        format!("{},,77,{task},5,{code},us/er=,2,0,0.0125,1.5e-2,0.0004,0\n", 600_000_000 + i * 1_000_000)
    };
    events.iter().enumerate().map(row).collect()
}

#[test]
fn an_attempt_of_google_counts_if_it_ended_by_itself() {
    let kept = |events: &[(u32, u32)]| match import(&bytes(google(events)), &options(Format::Google2011)) {
        Ok(found) => (rows(&found), dropped(&found).iter().map(|(r, n)| format!("{n} {r}")).collect::<Vec<_>>()),
        Err(ImportError::NothingLeft { summary: s, .. }) => {
            (vec![], s.dropped.iter().map(|(r, n)| format!("{n} {r}")).collect())
        }
        Err(e) => panic!("{e}"),
    };
    let task =
        |submit: u32, start: u32, length: u32| format!("{submit} {start} {length} - us/er= - - cpu=0.0125 mem=0.015");
    for (events, rows, dropped) in [
        (&[(0, 0), (0, 1), (0, 4)][..], vec![task(600, 601, 1)], vec![]),
        (&[(0, 0), (0, 1), (0, 8), (0, 7), (0, 3)], vec![task(600, 601, 3)], vec![]),
        (&[(0, 0), (0, 1), (0, 2), (0, 0), (0, 1), (0, 4)], vec![task(603, 604, 1)], vec!["1 evicted"]),
        (&[(0, 0), (0, 1), (0, 3), (0, 0), (0, 1), (0, 4)], vec![task(600, 601, 1), task(603, 604, 1)], vec![]),
        (&[(0, 0), (0, 1), (0, 5)], vec![], vec!["1 killed"]),
        (&[(0, 0), (0, 1), (0, 6)], vec![], vec!["1 lost"]),
        (&[(0, 0), (0, 3)], vec![], vec!["1 ended without being scheduled"]),
        (&[(0, 1), (0, 4)], vec![], vec!["1 submitted before the first row of this part of the trace"]),
        (&[(0, 0), (1, 0), (1, 1)], vec![], vec!["1 still waiting at the end", "1 still running at the end"]),
    ] {
        assert_eq!(kept(events), (rows, dropped.iter().map(|d| d.to_string()).collect()), "{events:?}");
    }
    let story = google(&[(0, 0), (0, 1), (0, 4)]);
    for (from, to, reason) in [
        ("600000000,", "0,", "submitted at time 0, before the trace began (1)"),
        ("601000000,,", "601000000,1,", "missing information (1)"),
        ("0.0125", "0", "no CPU or memory request (1)"),
        ("1.5e-2", "", "no CPU or memory request (1)"),
        ("602000000,", "9223372036854775807,", "still running at the end (1)"),
    ] {
        let error = refused(&options(Format::Auto), story.replace(from, to));
        assert!(error.contains(": no task is left.") && error.contains(reason), "{error}");
    }
}

#[test]
fn shards_of_google_are_put_in_the_order_of_their_times() {
    let text = google(&[(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (1, 3), (2, 1), (0, 4), (2, 4)]);
    let whole = read(Format::Google2011, &text);
    let lines: Vec<&str> = text.lines().collect();
    let shard = |k: usize, lines: &[&str]| Source::Bytes { name: format!("s{k}"), data: lines.join("\n").into_bytes() };
    let shards: Vec<Source> = lines.chunks(2).enumerate().map(|(k, l)| shard(k, l)).rev().collect();
    let parts = import(&shards, &ImportOptions::default()).unwrap();
    assert_eq!(parts.workload, whole.workload);
    assert_eq!((parts.summary.files, parts.summary.rows_read), (5, 9));

    // The same shard twice, or rows that go back.
    let twice = import(&[shard(0, &lines), shard(1, &lines)], &ImportOptions::default()).unwrap_err().to_string();
    let expected = "s1:1:1: found time 600000000 in this file after time 608000000 in the one before, \
                    expected files in the order of their times; give each shard once";
    assert!(twice.starts_with(expected), "{twice}");
    let back = [lines[1], lines[0]].join("\n");
    let back = refused(&options(Format::Google2011), back);
    assert!(
        back.starts_with("trace:2:1: found time 600000000 after time 601000000, expected rows in the order"),
        "{back}"
    );
}

#[test]
fn a_malformed_row_of_google_names_the_place() {
    let good = google(&[(0, 0), (0, 1), (0, 4)]);
    for (from, to, message) in [
        (",0.0125,1.5e-2,0.0004,0\n601", "\n601", "trace:1:31: found 9 columns, expected 13 columns"),
        (",0\n601", ",0,\n601", "trace:1:54: found 14 columns, expected 13 columns"),
        ("601000000", "601x", "trace:2:1: found \"601x\", expected a time in whole microseconds (column 1)"),
        ("601000000", "5000000000000000", "trace:2:1: found 5000000000000000, expected a time below 4.6e15"),
        (",,77,0,5,1", ",,77,0,5,9", "trace:2:19: found \"9\", expected an event type from 0 to 8 (column 6)"),
        (",,77,0,5,1", ",,77,4294967296,5,1", "trace:2:15: found \"4294967296\", expected a task index"),
        (",,77,0,5,1", ",,-7,0,5,1", "trace:2:12: found \"-7\", expected a job number (column 3)"),
        ("0.0125", "0.01.25", "trace:1:32: found \"0.01.25\", expected a CPU request"),
        ("0.0125", "-1", "trace:1:32: found \"-1\", expected a CPU request"),
        ("0.0125", "1e11", "trace:1:32: found \"1e11\", expected a CPU request"),
    ] {
        assert!(good.contains(from), "{from}");
        let found = refused(&options(Format::Google2011), good.replacen(from, to, 1));
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let mut not_utf8 = good.into_bytes();
    let at = not_utf8.iter().position(|&b| b == b'/').unwrap();
    not_utf8[at] = 0xff;
    let found = refused(&options(Format::Google2011), not_utf8);
    assert!(found.starts_with("trace:1:23: found \"us\\xffer=\", expected a user's name in UTF-8"), "{found}");
}
