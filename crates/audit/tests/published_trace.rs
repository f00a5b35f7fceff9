//! The audit of a published trace, checked against independently computed waiting times. Skipped if the trace is absent.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::PathBuf;

use evenhand_audit::{History, Property, Window};
use evenhand_model::Weights;
use evenhand_workload::Source;
use evenhand_workload::import::{ImportOptions, import};

#[test]
fn no_user_of_cea_curie_complains_longer_than_the_user_waited() {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = shared.join("swf/CEA-Curie-2011-2.1-cln.swf.gz");
    if !path.exists() {
        eprintln!("skipped: no trace at {}", path.display());
        return;
    }
    let w = import(&[Source::Path(path)], &ImportOptions::default()).unwrap().workload;
    let history = History::original(&w).unwrap();
    let users = w.users().len();
    let capacity = history.peak_capacity().unwrap();
    let audit = history.audit(&capacity, &Weights::equal(users), &Property::ALL, Window::default()).unwrap();
    // The waiting time of each user: the union of the waits of the user's tasks.
    let mut waits = vec![0u64; users];
    let mut until = vec![0u64; users];
    for row in 0..w.len() {
        let (user, submit) = (w.columns().user[row].index(), w.columns().submit[row].nanos());
        let start = w.start(row).map_or(0, |t| t.nanos());
        // Rows are sorted by submission, so the new part of a wait lies after all earlier waits.
        waits[user] += start.saturating_sub(submit.max(until[user]));
        until[user] = until[user].max(start);
    }
    assert_eq!(audit.waiting_ns, waits.iter().map(|w| u128::from(*w)).sum());
    for f in &audit.findings {
        let waited = f.who.map(|user| waits[user.index()]);
        assert!(waited.is_none_or(|waited| f.duration.nanos() <= waited), "{f:?}");
        assert!(f.longest <= f.duration && f.share_hours.is_none_or(|h| h >= 0.0), "{f:?}");
    }
    // The history never exceeds its own peak.
    assert!(audit.findings.iter().all(|f| f.property != Property::Feasible));
    assert!(audit.summaries.iter().all(|s| s.share_of_waiting.is_none_or(|share| share <= 1.0)));
}
