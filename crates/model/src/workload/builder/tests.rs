use proptest::prelude::*;

use super::super::{Detail, Nano};
use super::*;
use crate::Amount;

fn task<'a>(submit: u64, user: &'a str, amounts: &'a [Nano]) -> Task<'a> {
    Task { submit: Time::from_secs(submit), duration: Span::from_secs(1), user, amounts, ..Task::default() }
}

#[test]
fn rows_are_sorted_stably_and_users_numbered_by_first_appearance() {
    let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
    b.push(&task(5, "late", &[1_000_000_000]));
    b.push(&task(1, "first", &[2_000_000_000]));
    b.push(&Task { queue: Some("q"), ..task(1, "second", &[500_000_000]) });
    let w = b.finish().unwrap();
    assert_eq!(w.users(), ["first", "second", "late"]);
    assert_eq!(w.columns().user, [0, 1, 2].map(UserId));
    assert_eq!((0..3).map(|r| w.queue(r)).collect::<Vec<_>>(), [None, Some("q"), None]);
    assert_eq!(w.resources()[0].decimals, 1);
    assert_eq!(w.amounts(2), [Amount(10)]);
    assert_eq!(w.columns().demand, [0, 1, 2].map(DemandId));
}

#[test]
fn appending_equals_pushing_each_task() {
    let tasks = [
        task(3, "a", &[1]),
        Task { account: Some("x"), start: Some(Time::from_secs(9)), ..task(2, "b", &[2]) },
        Task { count: 4, requested_amounts: Some(&[5]), ..task(1, "c", &[1]) },
        Task { account: Some("y"), ..task(1, "a", &[3]) },
    ];
    let build = |tasks: &[Task<'_>]| {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
        tasks.iter().for_each(|t| b.push(t));
        b
    };
    for cut in 0..=tasks.len() {
        let mut b = build(&tasks[..cut]);
        b.append(build(&tasks[cut..]));
        assert_eq!(b.finish().unwrap(), build(&tasks).finish().unwrap());
    }
}

proptest! {
    #[test]
    fn rows_on_disk_are_those_in_memory(
        rows in prop::collection::vec((0u64..50, 0u8..5, 0u8..9, 1u32..4), 1..6000),
        cuts in prop::collection::vec(0usize..6000, 0..4),
        max_rows in 1usize..3000,
        chunk in 1usize..5000,
    ) {
        let name = |n: u8| format!("n{n}");
        let build = |overflow: Option<Overflow>| {
            let new = || {
                let builder = WorkloadBuilder::new([Resource::new("cpu", "")]);
                match &overflow {
                    Some(overflow) => builder.with_overflow(overflow.clone()),
                    None => builder,
                }
            };
            // Parts, as those of several files, that are appended in their order.
            let mut parts = vec![new()];
            for (place, (submit, user, rest, count)) in rows.iter().enumerate() {
                if cuts.contains(&place) {
                    parts.last_mut().unwrap().rest();
                    parts.push(new());
                }
                let (user, account) = (name(*user), name(*rest));
                let asked = [Nano::from(*rest) + 2];
                parts.last_mut().unwrap().push(&Task {
                    requested_amounts: (*rest == 7).then_some(&asked),
                    account: (*rest > 2).then_some(account.as_str()),
                    start: (*rest == 4).then_some(Time::from_secs(place as u64)),
                    nodes: (*rest == 5).then_some(7),
                    eligible: (*rest == 6).then_some(Time::from_secs(place as u64)),
                    details: Details::from_fn(|detail| (*rest > 3 + detail as u8).then_some(account.as_str())),
                    count: *count,
                    duration: Span::from_secs(place as u64),
                    ..task(*submit, &user, &[Nano::from(*rest) + 1])
                });
            }
            let mut whole = parts.remove(0);
            parts.into_iter().for_each(|part| whole.append(part));
            whole
        };
        let folder = tempfile::tempdir().unwrap();
        let on_disk = build(Some(Overflow::new(folder.path(), max_rows)));
        prop_assert_eq!(on_disk.len(), rows.len());
        let in_memory = build(None).finish().unwrap();
        let mut large = on_disk.finish_large(1 << 16).unwrap().unwrap();
        prop_assert_eq!(large.rows(), rows.len() as u64);
        let mut row = 0;
        while let Some(some) = large.next_chunk(chunk).unwrap() {
            prop_assert_eq!(some.resources(), in_memory.resources());
            for i in 0..some.len() {
                let of = |w: &Workload, i: usize| {
                    let c = w.columns();
                    let start = c.start.as_ref().map(|c| c[i]);
                    let texts = (w.users()[c.user[i].index()].clone(), w.account(i).map(str::to_owned));
                    let asked = w.requested_amounts(i).map(<[Amount]>::to_vec);
                    let numbers = (w.count(i), w.nodes(i), w.amounts(i).to_vec(), asked);
                    let details = Details::from_fn(|detail| w.detail(detail, i).map(str::to_owned));
                    (c.submit[i], c.duration[i], (start, w.eligible(i)), texts, details, numbers)
                };
                prop_assert_eq!(of(some, i), of(&in_memory, row));
                row += 1;
            }
        }
        prop_assert_eq!(row, rows.len());
        // Nothing is left, as the file has no name.
        prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let overflow = Overflow::new(folder.path().join("none"), 10);
    let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]).with_overflow(overflow);
    (0..5000).for_each(|i| b.push(&task(i, "a", &[1])));
    assert!(b.finish_large(1 << 16).is_err());
}

#[test]
fn counts_expand_to_single_rows() {
    let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
    b.push(&Task { count: 3, ..task(1, "a", &[1]) });
    b.push(&task(2, "b", &[1]));
    let w = b.finish().unwrap();
    assert_eq!((w.len(), w.tasks()), (2, 4));
    let w = w.expanded();
    assert_eq!((w.len(), w.tasks()), (4, 4));
    assert_eq!(w.columns().user, [0, 0, 0, 1].map(UserId));
}

#[test]
fn a_resource_that_no_task_holds_can_be_removed() {
    let builder = |mem: Nano| {
        let mut b = WorkloadBuilder::new(["cpu", "mem", "gpu"].map(|name| Resource::new(name, "")));
        b.push(&task(1, "a", &[3, mem, 5]));
        b.push(&task(2, "a", &[4, 0, 6]));
        ["mem", "gpu", "disk"].iter().for_each(|name| b.remove_unused(name));
        // The index of demand vectors follows.
        b.push(&task(3, "a", if mem == 0 { &[3, 5] } else { &[3, 7, 5] }));
        b.finish().unwrap()
    };
    let names = |w: &Workload| w.resources().iter().map(|r| r.name.clone()).collect::<Vec<_>>();
    let (with, without) = (builder(7), builder(0));
    assert_eq!(
        (names(&with), names(&without)),
        (vec!["cpu".into(), "mem".into(), "gpu".into()], vec!["cpu".into(), "gpu".into()])
    );
    assert_eq!((with.demands().len(), without.demands().len()), (2, 2));
    assert_eq!(
        (with.amounts(1), without.amounts(1)),
        (&[Amount(4), Amount(0), Amount(6)][..], &[Amount(4), Amount(6)][..])
    );
}

#[test]
fn amounts_that_do_not_fit_name_their_resource() {
    let mut b = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    let (large, too_large) = ([1, 10u128.pow(18)], [1, 10u128.pow(28)]);
    b.push(&task(1, "a", &large));
    assert!(b.clone().finish().is_ok());
    b.push(&task(1, "a", &too_large));
    assert_eq!(b.clone().finish(), Err(WorkloadError::TooLarge { resource: "mem".into() }));
    assert_eq!(WorkloadBuilder::new([Resource::new("cpu", "")]).finish(), Err(WorkloadError::Empty));
}

proptest! {
    /// The reference model pushes the requested amounts as those that are held.
    #[test]
    fn taking_requested_amounts_equals_pushing_them(
        rows in prop::collection::vec((0u64..9, 0u8..4, [0u128..4, 0u128..4], prop::option::of([0u128..4, 0u128..4])), 1..40),
        steps in [0u32..10, 0u32..10],
    ) {
        let scaled = |amounts: [Nano; 2]| [amounts[0] * 10u128.pow(steps[0]), amounts[1] * 10u128.pow(steps[1])];
        let asked_otherwise = rows.iter().filter(|(_, _, held, asked)| asked.is_some_and(|asked| asked != *held)).count();
        let build = |takes_requested: bool| {
            let mut b = WorkloadBuilder::new(["cpu", "mem"].map(|name| Resource::new(name, "")));
            for (submit, user, held, asked) in &rows {
                let (held, asked) = (scaled(*held), asked.map(scaled));
                let user = user.to_string();
                match (takes_requested, &asked) {
                    (true, Some(asked)) => b.push(&task(*submit, &user, asked)),
                    (true, None) => b.push(&task(*submit, &user, &held)),
                    (false, asked) => {
                        let requested_amounts = asked.as_ref().map(<[Nano; 2]>::as_slice);
                        b.push(&Task { requested_amounts, ..task(*submit, &user, &held) });
                    }
                }
            }
            if takes_requested && asked_otherwise > 0 {
                ["mem", "cpu"].iter().for_each(|name| b.remove_unused(name));
            }
            b.finish().unwrap()
        };
        let both = build(false);
        prop_assert_eq!(both.rows_with_requested_amounts(), asked_otherwise);
        let taken = both.with_requested_amounts().unwrap();
        prop_assert_eq!(taken.rows_with_requested_amounts(), 0);
        prop_assert_eq!(taken, build(true));
    }
}

#[test]
fn chunks_of_what_a_task_held_are_not_those_of_what_it_requested() {
    let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
    let mut details = Details::default();
    details[Detail::Chunks] = Some("1:cpu=1+1:cpu=2");
    let (three, four) = ([3_000_000_000], [4_000_000_000]);
    b.push(&Task { details, requested_amounts: Some(&four), ..task(1, "a", &three) });
    b.push(&Task { details, requested_amounts: Some(&three), ..task(2, "a", &three) });
    let w = b.finish().unwrap();
    assert_eq!(w.rows_with_requested_amounts(), 1);
    let w = w.with_requested_amounts().unwrap();
    assert_eq!([0, 1].map(|row| w.detail(Detail::Chunks, row)), [None, details[Detail::Chunks]]);
}

/// The log's schedule decided when the later tasks of an array with a throttle became eligible.
#[test]
fn tasks_of_an_array_with_a_throttle_are_released_with_its_first_one() {
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", "")]);
    let s = Time::from_secs;
    for (array, eligible) in [("7%2", 5), ("7%2", 40), ("8", 50), ("7%1", 60)] {
        let details = Details::from_fn(|detail| (detail == Detail::Array).then_some(array));
        let times = Task { submit: s(1), eligible: Some(s(eligible)), start: Some(s(90)), ..Task::default() };
        builder.push(&Task { user: "ann", amounts: &[1], details, ..times });
    }
    let workload = builder.finish().unwrap();
    assert_eq!(workload.throttled_tasks(), 3);
    let (workload, moved) = workload.submitted_when_eligible();
    assert_eq!((moved, &workload.columns().submit[..]), (4, &[s(5), s(5), s(5), s(50)][..]));
    let arrays: Vec<Option<&str>> = (0..4).map(|row| workload.detail(Detail::Array, row)).collect();
    assert_eq!(arrays, [Some("7%2"), Some("7%2"), Some("7%1"), Some("8")]);
}
