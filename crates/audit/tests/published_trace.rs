//! A real past, against what can be known of it without the walk. Skipped where the trace is absent.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::PathBuf;

use evenhand_audit::{Past, Property, Window};
use evenhand_model::Weights;
use evenhand_workload::Source;
use evenhand_workload::import::{ImportOptions, import};

#[test]
fn nobody_complains_longer_than_he_waited_in_cea_curie() {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = shared.join("swf/CEA-Curie-2011-2.1-cln.swf.gz");
    if !path.exists() {
        eprintln!("skipped: no trace at {}", path.display());
        return;
    }
    let w = import(&[Source::Path(path)], &ImportOptions::default()).unwrap().workload;
    let past = Past::original(&w).unwrap();
    let users = w.users().len();
    let capacity = past.peak_capacity().unwrap();
    let audit = past.audit(&capacity, &Weights::equal(users), &Property::ALL, Window::default()).unwrap();
    // Each user's waiting time by itself: the union of his tasks' waits.
    let mut waits = vec![0u64; users];
    let mut until = vec![0u64; users];
    for row in 0..w.len() {
        let (user, submit) = (w.columns().user[row].index(), w.columns().submit[row].nanos());
        let start = w.start(row).map_or(0, |t| t.nanos());
        // Rows come by submission, so what is new of a wait is what lies after all earlier ones.
        waits[user] += start.saturating_sub(submit.max(until[user]));
        until[user] = until[user].max(start);
    }
    assert_eq!(audit.waiting_ns, waits.iter().map(|w| u128::from(*w)).sum());
    for f in &audit.findings {
        let waited = f.who.map(|user| waits[user.index()]);
        assert!(waited.is_none_or(|waited| f.duration.nanos() <= waited), "{f:?}");
        assert!(f.longest <= f.duration && f.share_hours.is_none_or(|h| h >= 0.0), "{f:?}");
    }
    // Its own peak is never exceeded.
    assert!(audit.findings.iter().all(|f| f.property != Property::Feasible));
    assert!(audit.summaries.iter().all(|s| s.share_of_waiting.is_none_or(|share| share <= 1.0)));
}
