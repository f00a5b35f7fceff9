//! The encoding of ring messages: messages decode to themselves, and any other bytes are an error.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenhand_protocol::exchange::ring::{
    Acknowledged, Input, Member, Message, Output, Ring, RingSettings, RoundSums, Token, ViewId,
};
use evenhand_protocol::exchange::{Ageing, Fixed, Record, RecordLimits, UserSums};
use proptest::prelude::*;

prop_compose! {
    fn view()(epoch in any::<u64>(), leader in "\\PC{0,6}", incarnation in any::<u64>()) -> ViewId {
        ViewId { epoch, leader, incarnation }
    }
}

prop_compose! {
    fn member()(node in "[a-d]{1,2}", incarnation in 0u64..3, address in "\\PC{0,9}") -> Member {
        Member { node, incarnation, address }
    }
}

prop_compose! {
    fn sums()(
        view in view(), round in any::<u64>(), digest in any::<u64>(), count in any::<u64>(),
        supply in prop::collection::vec(any::<i128>().prop_map(Fixed::from_units), 0..3),
        users in prop::collection::btree_map("[ab]{0,4}", (any::<i128>(), any::<u32>()), 0..5),
        missing in prop::collection::vec("[a-d]{1,2}", 0..3),
        excluded in prop::collection::vec(("[a-d]{1,2}", any::<Option<u64>>()), 0..3),
    ) -> RoundSums {
        let user = |(name, (term, workloads))| (name, UserSums { terms: vec![Fixed::from_units(term)], workloads });
        let users = users.into_iter().map(user).collect();
        RoundSums { view, round, digest, count, largest: supply.clone(), supply, users, missing, excluded }
    }
}

prop_compose! {
    fn token()(
        view in view(), round in any::<u64>(), to in "[a-d]{1,2}", collect in sums(),
        members in prop::option::of(prop::collection::vec(member(), 0..4)), distribute in prop::option::of(sums()),
    ) -> Message {
        let (members, distribute) = (members.map(Arc::new), distribute.map(Arc::new));
        Message::Token(Token { view, round, to, members, collect, distribute })
    }
}

fn message() -> impl Strategy<Value = Message> {
    let of = prop_oneof![any::<u64>().prop_map(Acknowledged::Token), "[a-d]{1,2}".prop_map(Acknowledged::Election)];
    prop_oneof![
        token(),
        (view(), of, "[a-d]{1,2}").prop_map(|(view, of, from)| Message::Ack { view, of, from }),
        (view(), "[a-d]{1,2}", member(), "[a-d]{1,2}", prop::collection::vec("[a-d]{1,2}", 0..4)).prop_map(
            |(view, to, from, candidate, suspects)| Message::Election { view, to, from, candidate, suspects }
        ),
        (view(), member()).prop_map(|(view, leader)| Message::Probe { view, leader }),
        (view(), member(), member()).prop_map(|(view, leader, from)| Message::Hint { view, leader, from }),
        (view(), prop::collection::vec(member(), 0..4), any::<u8>()).prop_map(|(view, members, hops)| Message::Join {
            view,
            members,
            hops
        }),
    ]
}

proptest! {
    #[test]
    fn a_message_decodes_to_itself(message in message()) {
        let bytes = message.encode();
        prop_assert_eq!(&Message::decode(&bytes).unwrap(), &message);
        for end in 0..bytes.len() {
            prop_assert!(Message::decode(&bytes[..end]).is_err());
        }
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(kind in 0u8..7, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes: Vec<u8> = [1, kind].into_iter().chain(bytes).collect();
        if let Ok(message) = Message::decode(&bytes) {
            prop_assert_eq!(Message::decode(&message.encode()).unwrap(), message);
        }
    }

    /// Whatever messages a member receives, it neither panics nor leaves its own view, and it sends only a few for each.
    #[test]
    fn a_member_stays_consistent_for_any_messages(messages in prop::collection::vec((message(), 0u64..3000), 1..40)) {
        let one = Fixed::from_f64(1.0).unwrap();
        let ageing = Ageing::new(Duration::from_secs(1));
        let seeds = vec!["a".to_owned(), "b".to_owned()];
        let mut ring = Ring::new(RingSettings::new(ageing, RecordLimits::by_factor(one), seeds), "b", 1, "b");
        let own = Record { node: "b".into(), digest: 7, supply: vec![one], users: BTreeMap::new(), ..Record::default() };
        ring.step(Duration::ZERO, Input::LocalRecord(own));
        let mut now = Duration::ZERO;
        for (message, wait) in messages {
            now += Duration::from_millis(wait);
            let mut out = ring.step(now, Input::Tick);
            out.extend(ring.step(now, Input::Message { from: "x".into(), message }));
            let sent = out.iter().filter(|output| matches!(output, Output::Send { .. })).count();
            prop_assert!(sent <= 8, "{sent}");
            prop_assert!(ring.view().members.iter().any(|member| member.node == "b"));
            let totals = ring.totals(now);
            prop_assert!(totals.nodes.is_sorted_by(|a, b| a.name < b.name));
        }
    }
}
