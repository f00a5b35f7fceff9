//! The encoding of records, and the state of a record store after records in any order.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use evenhand_protocol::exchange::{
    Ageing, DecodeError, Fixed, MAX_USERS, NodeState, ReceiveOutcome, Record, RecordError, RecordLimits, RecordStore,
    UserSums,
};
use proptest::prelude::*;

fn fixed() -> impl Strategy<Value = Fixed> {
    prop_oneof![any::<f64>().prop_filter_map("a number", Fixed::from_f64), Just(Fixed::MIN), Just(Fixed::ZERO)]
}

fn sums() -> impl Strategy<Value = UserSums> {
    (prop::collection::vec(fixed(), 0..4), any::<u32>()).prop_map(|(terms, workloads)| UserSums { terms, workloads })
}

prop_compose! {
    fn record()(
        node in "\\PC{0,12}", incarnation in any::<u64>(), sequence in any::<u64>(), digest in any::<u64>(),
        supply in prop::collection::vec(fixed(), 0..5), users in prop::collection::btree_map("[aäb]{0,5}", sums(), 0..8),
    ) -> Record {
        Record { node, incarnation, sequence, digest, supply, users }
    }
}

proptest! {
    #[test]
    fn a_record_decodes_to_itself(record in record()) {
        let bytes = record.encode();
        prop_assert_eq!(&Record::decode(&bytes).unwrap(), &record);
        for end in 0..bytes.len() {
            prop_assert!(Record::decode(&bytes[..end]).is_err());
        }
        let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
        prop_assert_eq!(Record::decode(&longer), Err(DecodeError::Trailing(1)));
    }

    #[test]
    fn any_bytes_are_a_record_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Record::decode(&bytes);
        let behind: Vec<u8> = [1, 1, b'n', 0, 0, 0, 0].into_iter().chain(bytes).collect();
        if let Ok(record) = Record::decode(&behind) {
            prop_assert_eq!(Record::decode(&record.encode()).unwrap(), record);
        }
    }

    #[test]
    fn a_record_with_a_changed_byte_is_a_record_or_an_error(record in record(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut bytes = record.encode();
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(record) = Record::decode(&bytes) {
            prop_assert_eq!(Record::decode(&record.encode()).unwrap(), record);
        }
    }
}

fn one(node: &str, sequence: u64, term: f64) -> Record {
    let number = |n| Fixed::from_f64(n).unwrap();
    let sums = UserSums { terms: vec![number(term)], workloads: 1 };
    let users = BTreeMap::from([("ada".to_owned(), sums)]);
    Record { node: node.into(), incarnation: 1, sequence, digest: 7, supply: vec![number(10.0)], users }
}

fn store() -> RecordStore {
    RecordStore::new(Ageing::new(SECOND), RecordLimits::by_factor(Fixed::from_f64(2.0).unwrap()), "me")
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_record_of_ten_thousand_users_is_encoded_and_decoded_quickly() {
    let mut record = one("a", 1, 0.0);
    let sums = |i: usize| UserSums { terms: vec![Fixed::from_f64(0.0001 * i as f64).unwrap(); 4], workloads: 3 };
    record.users = (0..10_000).map(|i| (format!("user{i:05}"), sums(i))).collect();
    let begun = Instant::now();
    let bytes = record.encode();
    assert_eq!(Record::decode(&bytes).unwrap(), record);
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
    assert!(bytes.len() < 400_000, "{} bytes", bytes.len());
}

#[test]
fn false_lengths_allocate_no_memory() {
    let mut bytes = vec![1, 1, b'n', 0, 0, 0, 0];
    bytes.extend([0x80, 0x80, 0x08]);
    assert_eq!(Record::decode(&bytes), Err(DecodeError::Short));
    bytes.truncate(7);
    bytes.extend([0x81, 0x80, 0x08]);
    let limit = MAX_USERS as u64;
    assert_eq!(Record::decode(&bytes), Err(DecodeError::TooMany { items: "users", claimed: limit + 1, limit }));
    assert_eq!(Record::decode(&[2]), Err(DecodeError::Version(2)));
    assert_eq!(Record::decode(&[]), Err(DecodeError::Short));
    // Twenty groups of seven bits.
    let number: Vec<u8> = [1, 1, b'n'].into_iter().chain([0xff; 20]).collect();
    assert_eq!(Record::decode(&number), Err(DecodeError::Number));
}

#[test]
fn records_beyond_the_limits_are_rejected_and_the_last_valid_one_ages() {
    let mut store = store();
    store.publish(Duration::ZERO, one("me", 1, 1.0));
    assert_eq!(store.receive(Duration::ZERO, one("b", 1, -20.0)), ReceiveOutcome::Stored);
    let invalid = store.receive(SECOND, one("b", 2, 20.1));
    assert!(matches!(invalid, ReceiveOutcome::Rejected(RecordError::Sum { term: 0, .. })), "{invalid:?}");
    let totals = store.totals(SECOND);
    assert_eq!(totals.users["ada"].terms[0].to_f64(), -19.0);
    assert!(matches!(totals.state("b"), Some(NodeState::Rejected(RecordError::Sum { .. }))));
    assert_eq!(store.totals(SECOND * 4).isolated_since, Some(SECOND * 3));
    // The same invalid record again, and an older one: both are duplicates.
    assert_eq!(store.receive(SECOND * 4, one("b", 2, 20.1)), ReceiveOutcome::Duplicate);
    assert_eq!(store.receive(SECOND * 4, one("b", 1, -20.0)), ReceiveOutcome::Duplicate);
    assert_eq!(store.receive(SECOND * 4, one("b", 3, 5.0)), ReceiveOutcome::Stored);
    assert_eq!(store.totals(SECOND * 4).isolated_since, None);

    let error = |record: Record, limits: &RecordLimits| limits.check(&record).unwrap_err();
    let limits = RecordLimits {
        supply: Some(vec![Fixed::from_f64(9.0).unwrap()]),
        users: 1,
        ..RecordLimits::by_factor(Fixed::from_f64(2.0).unwrap())
    };
    assert!(matches!(error(one("b", 1, 1.0), &limits), RecordError::Supply { resource: 0, .. }));
    let mut small = one("b", 1, 1.0);
    small.supply = vec![Fixed::from_f64(9.0).unwrap()];
    limits.check(&small).unwrap();
    let mut two = small.clone();
    two.users.insert("bob".into(), UserSums { terms: vec![Fixed::ZERO], workloads: 0 });
    assert_eq!(error(two, &limits), RecordError::Users { claimed: 2, limit: 1 });
    let mut none = small.clone();
    none.supply = vec![Fixed::from_f64(-1.0).unwrap()];
    assert!(matches!(error(none, &limits), RecordError::Supply { .. }));
    let mut more = small.clone();
    more.supply.push(Fixed::ZERO);
    assert_eq!(error(more, &limits), RecordError::Resources { claimed: 2 });
    let mut terms = small.clone();
    terms.users.get_mut("ada").unwrap().terms.push(Fixed::ZERO);
    assert_eq!(error(terms, &limits), RecordError::Terms { claimed: 2, expected: 1 });
    let mut range = small.clone();
    range.users.get_mut("ada").unwrap().terms = vec![Fixed::from_units(i128::MIN)];
    assert_eq!(error(range, &limits), RecordError::Range);
    assert_eq!(error(Record { node: String::new(), ..small }, &limits), RecordError::Name);
}

#[test]
fn a_record_with_another_digest_is_reported_and_not_added() {
    let mut store = store();
    store.publish(Duration::ZERO, one("me", 1, 1.0));
    store.receive(Duration::ZERO, Record { digest: 8, ..one("b", 1, 1.0) });
    let totals = store.totals(Duration::ZERO);
    assert_eq!(totals.supply[0].to_f64(), 10.0);
    assert_eq!(totals.state("b"), Some(&NodeState::Rejected(RecordError::Digest { theirs: 8, ours: 7 })));
    // Once this node has these settings too, the record counts, without being received again.
    store.publish(Duration::ZERO, Record { digest: 8, ..one("me", 2, 1.0) });
    assert_eq!(store.totals(Duration::ZERO).supply[0].to_f64(), 20.0);
}

#[test]
fn records_age_by_halves_and_are_finally_lost() {
    let mut store = store();
    store.receive(Duration::ZERO, one("b", 1, 8.0));
    for (tenths, supply, state) in [
        (30, 10.0, NodeState::Fresh),
        (31, 5.0, NodeState::Ageing { halvings: 1 }),
        (40, 2.5, NodeState::Ageing { halvings: 2 }),
        (109, 10.0 / 256.0, NodeState::Ageing { halvings: 8 }),
    ] {
        let totals = store.totals(Duration::from_millis(100 * tenths));
        assert_eq!((totals.supply[0].to_f64(), totals.state("b")), (supply, Some(&state)));
    }
    let totals = store.totals(SECOND * 11);
    assert_eq!((totals.state("b"), totals.users.len(), totals.supply.len()), (Some(&NodeState::Lost), 0, 0));
    // An old record does not restore a lost node; a new one does.
    assert_eq!(store.receive(SECOND * 12, one("b", 1, 8.0)), ReceiveOutcome::Duplicate);
    assert_eq!(store.totals(SECOND * 2000).state("b"), None);
    assert_eq!(store.receive(SECOND * 2000, one("b", 1, 8.0)), ReceiveOutcome::Duplicate);
    assert_eq!(store.receive(SECOND * 2000, Record { incarnation: 2, ..one("b", 0, 8.0) }), ReceiveOutcome::Stored);
}

#[test]
fn a_relayed_record_keeps_its_age() {
    let (mut first, mut second) = (store(), store());
    first.receive(SECOND, one("b", 1, 8.0));
    let passed: Vec<(Record, Duration)> = first.records(SECOND * 6).map(|(r, age)| (r.clone(), age)).collect();
    assert_eq!(passed, [(one("b", 1, 8.0), SECOND * 5)]);
    // The clock of the second node started later.
    second.receive_aged(SECOND, passed[0].0.clone(), passed[0].1);
    assert_eq!(second.totals(SECOND).state("b"), Some(&NodeState::Ageing { halvings: 3 }));
    assert_eq!(second.totals(SECOND).isolated_since, Some(Duration::ZERO));
    assert_eq!(second.totals(SECOND * 7).state("b"), Some(&NodeState::Lost));
}

#[test]
fn a_second_node_of_the_same_name_is_reported() {
    let mut store = store();
    store.publish(Duration::ZERO, one("me", 5, 1.0));
    assert_eq!(store.receive(Duration::ZERO, one("me", 4, 3.0)), ReceiveOutcome::Duplicate);
    assert_eq!(store.receive(Duration::ZERO, one("me", 6, 3.0)), ReceiveOutcome::Rejected(RecordError::OwnName));
    assert_eq!(store.totals(Duration::ZERO).users["ada"].terms[0].to_f64(), 1.0);
}

proptest! {
    /// With duplicates, replays and any order, the newest record of each node counts once.
    #[test]
    fn order_and_repetition_do_not_matter(
        versions in prop::collection::vec((0usize..4, 0u64..3, 0u64..5), 1..40),
        turn in any::<prop::sample::Index>(),
    ) {
        let of = |&(node, incarnation, sequence): &(usize, u64, u64)| Record {
            incarnation,
            ..one(["a", "b", "c", "d"][node], sequence, (incarnation * 5 + sequence) as f64)
        };
        let mut newest: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        for &(node, incarnation, sequence) in &versions {
            let entry = newest.entry(node).or_default();
            *entry = (*entry).max((incarnation, sequence));
        }
        let expected: f64 = newest.values().map(|(incarnation, sequence)| (incarnation * 5 + sequence) as f64).sum();
        let (mut first, mut second) = (store(), store());
        versions.iter().for_each(|v| { first.receive(Duration::ZERO, of(v)); });
        let mut turned = versions.clone();
        turned.rotate_left(turn.index(versions.len()));
        turned.iter().chain(&versions).rev().for_each(|v| { second.receive(Duration::ZERO, of(v)); });
        prop_assert_eq!(first.totals(SECOND), second.totals(SECOND));
        prop_assert_eq!(first.totals(SECOND).users["ada"].terms[0].to_f64(), expected);
        prop_assert_eq!(first.totals(SECOND).supply[0].to_f64(), 10.0 * newest.len() as f64);
    }
}
