//! Stores workloads and reads them back; invalid files are reported.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenhand_model::{Detail, Details, NO_TIME, Nano, Resource, Span, Task, Time, UserId, Workload, WorkloadBuilder};
use evenhand_workload::store::{self, StoreError, TaskResults, TaskState};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Line {
    submit: u64,
    start: Option<u64>,
    duration: u64,
    requested: Option<u64>,
    user: String,
    account: Option<String>,
    queue: Option<String>,
    amounts: Vec<Nano>,
    requested_amounts: Option<Vec<Nano>>,
    count: u32,
    nodes: Option<u32>,
    eligible: Option<u64>,
    detail: Option<String>,
}

fn line(width: usize) -> impl Strategy<Value = Line> {
    const MAX: u64 = Time::MAX.nanos();
    let time = || prop_oneof![0..20u64, 0..=MAX, Just(MAX)];
    let name = || prop_oneof!["[a-c]{1}", "\\PC{0,12}"];
    // At most 18 digits at nine decimals, quantised on purpose so that vectors repeat.
    let amount = prop_oneof![
        (0..5u128).prop_map(|v| v * 12_500_000),
        (0..1_000_000u128).prop_map(|v| v * 1_000_000_000),
        0..1_000_000_000_000_000_000u128
    ];
    let amounts = proptest::collection::vec(amount, width);
    (
        time(),
        proptest::option::of(time()),
        time(),
        proptest::option::of(time()),
        name(),
        proptest::option::of(name()),
        proptest::option::of(name()),
        amounts.clone(),
        (
            prop_oneof![Just(1u32), 1..=u32::MAX],
            proptest::option::of(1..=u32::MAX),
            proptest::option::of(time()),
            proptest::option::of(name()),
            proptest::option::of(amounts),
        ),
    )
        .prop_map(|(submit, start, duration, requested, user, account, queue, amounts, others)| Line {
            submit,
            start,
            duration,
            requested,
            user,
            account,
            queue,
            amounts,
            count: others.0,
            nodes: others.1,
            eligible: others.2,
            detail: others.3,
            requested_amounts: others.4,
        })
}

fn workloads() -> impl Strategy<Value = Workload> {
    (1..4usize)
        .prop_flat_map(|width| {
            (
                proptest::collection::vec(line(width), 1..60),
                proptest::collection::vec("\\PC{0,4}", width),
                proptest::collection::vec(("\\PC{0,6}", "\\PC{0,6}"), 0..4),
                any::<[bool; 8 + Detail::ALL.len()]>(),
            )
        })
        .prop_map(|(lines, units, header, keep)| {
            let names = ["cpu", "mem, GiB", "mémoire"];
            let mut b = WorkloadBuilder::new(units.into_iter().zip(names).map(|(unit, n)| Resource::new(n, unit)));
            header.iter().for_each(|(k, v)| b.add_header(k, v));
            for l in &lines {
                b.push(&Task {
                    submit: Time::from_nanos(l.submit),
                    start: l.start.filter(|_| keep[0]).map(Time::from_nanos),
                    duration: Span::from_nanos(l.duration),
                    requested: l.requested.filter(|_| keep[1]).map(Span::from_nanos),
                    user: &l.user,
                    account: l.account.as_deref().filter(|_| keep[2]),
                    queue: l.queue.as_deref().filter(|_| keep[3]),
                    amounts: &l.amounts,
                    requested_amounts: l.requested_amounts.as_deref().filter(|_| keep[7 + Detail::ALL.len()]),
                    count: if keep[4] { l.count } else { 1 },
                    nodes: l.nodes.filter(|_| keep[5]),
                    eligible: l.eligible.filter(|_| keep[6]).map(Time::from_nanos),
                    details: Details::from_fn(|detail| l.detail.as_deref().filter(|_| keep[7 + detail as usize])),
                });
            }
            b.finish().unwrap()
        })
}

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.parquet");
    (folder, path)
}

proptest! {
    #[test]
    fn what_is_stored_is_read_back_equal(w in workloads()) {
        let (_folder, path) = scratch();
        store::write(&path, &w).unwrap();
        prop_assert!(store::is_parquet(&path));
        let read = store::read(&path).unwrap();
        prop_assert_eq!(&read, &w);
        prop_assert_eq!(read.with_requested_amounts(), w.with_requested_amounts());
    }

    #[test]
    fn a_damaged_file_is_an_error_or_another_workload_but_never_a_panic(
        w in workloads(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let (_folder, path) = scratch();
        store::write(&path, &w).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&path, bytes).unwrap();
        let _ = store::read(&path);
    }
}

/// Files of formats 1 and 2 have no details: what has the name of one is a resource.
#[test]
fn columns_of_a_later_format_are_resources_in_an_older_file() {
    let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
    let details = Details::from_fn(|detail| (detail == Detail::Machines).then_some("n1"));
    b.push(&Task { user: "a", amounts: &[1], details, ..Task::default() });
    let w = b.finish().unwrap();
    let (_folder, path) = scratch();
    store::write(&path, &w).unwrap();
    assert_eq!(store::read(&path).unwrap().detail(Detail::Machines, 0), Some("n1"));
    let schema = "message m { required int64 submit_ns; required int64 duration_ns; required binary user (STRING); required int64 machines; }";
    let version = vec![KeyValue::new("evenhand.version".to_string(), "0.1.0".to_string())];
    let (_folder, path) = foreign_with(schema, Some(version), |g| {
        int64(g, &[5], None);
        int64(g, &[7], None);
        text(g, &["a"], None);
        int64(g, &[3], None);
    });
    let w = store::read(&path).unwrap();
    assert_eq!(
        (w.resources()[0].name.as_str(), w.amounts(0)[0].0, w.detail(Detail::Machines, 0)),
        ("machines", 3, None)
    );
    // Which later formats cannot store.
    assert!(matches!(store::write(&path, &w), Err(StoreError::Name { name, .. }) if name == "machines"));
}

/// A detail is stored and read, and in a file of an earlier format its column is one of a resource.
fn is_a_column_of_names_since(detail: Detail, value: &'static str, format: u32) {
    let details = Details::from_fn(|other| (other == detail).then_some(value));
    let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
    b.push(&Task { user: "a", amounts: &[1], details, ..Task::default() });
    let (_folder, path) = scratch();
    store::write(&path, &b.finish().unwrap()).unwrap();
    assert_eq!(store::read(&path).unwrap().detail(detail, 0), Some(value));
    let name = detail.name();
    let schema = format!(
        "message m {{ required int64 submit_ns; required int64 duration_ns; required binary user (STRING); required int64 {name}; }}"
    );
    let metadata = vec![KeyValue::new("evenhand.format".to_string(), (format - 1).to_string())];
    let (_folder, path) = foreign_with(&schema, Some(metadata), |g| {
        int64(g, &[5], None);
        int64(g, &[7], None);
        text(g, &["a"], None);
        int64(g, &[3], None);
    });
    let w = store::read(&path).unwrap();
    assert_eq!((w.resources()[0].name.as_str(), w.amounts(0)[0].0), (name, 3));
}

#[test]
fn licences_are_columns_of_names_since_format_5() {
    is_a_column_of_names_since(Detail::Licences, "matlab:2", 5);
}

#[test]
fn arrays_are_columns_of_names_since_format_6() {
    is_a_column_of_names_since(Detail::Array, "100%5", 6);
}

#[test]
fn nice_values_are_columns_of_names_since_format_7() {
    is_a_column_of_names_since(Detail::Nice, "-5", 7);
}

/// Other programs keep no metadata: pandas, polars and DuckDB drop it. A file of format 1 has the version of the program.
#[test]
fn a_file_without_metadata_has_the_columns_of_the_latest_format() {
    let schema = "message m { required int64 submit_ns; required int64 duration_ns; required binary user (STRING);
        required int64 eligible_ns; required int64 nice; required int64 cpu; required int64 cpu_requested; }";
    let read = |metadata: Option<Vec<KeyValue>>| {
        let (_folder, path) = foreign_with(schema, metadata, |g| {
            int64(g, &[5], None);
            int64(g, &[7], None);
            text(g, &["a"], None);
            (1..=4).for_each(|n| int64(g, &[n], None));
        });
        store::read(&path)
    };
    let names = |w: &Workload| w.resources().iter().map(|r| r.name.clone()).collect::<Vec<_>>();
    let version = vec![KeyValue::new("evenhand.version".to_string(), "0.1.0".to_string())];
    assert_eq!(names(&read(Some(version)).unwrap()), ["eligible_ns", "nice", "cpu", "cpu_requested"]);
    // A number where a detail holds texts is refused with its column, not taken for a resource.
    let error = read(None).unwrap_err().to_string();
    assert!(error.contains("column \"nice\""), "{error}");
}

/// In files before format 4, and where there is no resource of the name before, `_requested` is part of a resource's name.
#[test]
fn requested_amounts_are_columns_beside_those_of_their_resources() {
    const SCHEMA: &str =
        "message m { required int64 submit_ns; required int64 duration_ns; required byte_array user (UTF8);
        required int64 cpu; optional double cpu_requested; required int64 gpu_requested; }";
    let read = |format: &str| {
        let metadata = vec![KeyValue::new("evenhand.format".to_string(), format.to_string())];
        let (_folder, path) = foreign_with(SCHEMA, Some(metadata), |g| {
            int64(g, &[5, 6, 7], None);
            int64(g, &[7, 7, 7], None);
            text(g, &["a", "a", "b"], None);
            int64(g, &[4, 4, 4], None);
            let mut c = g.next_column().unwrap().unwrap();
            c.typed::<DoubleType>().write_batch(&[2.5, f64::NAN], Some(&[1, 0, 1]), None).unwrap();
            c.close().unwrap();
            int64(g, &[1, 0, 1], None);
        });
        store::read(&path)
    };
    let w = read("4").unwrap();
    assert_eq!(w.resources().iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["cpu", "gpu_requested"]);
    let asked: Vec<Option<Vec<u64>>> =
        (0..3).map(|row| w.requested_amounts(row).map(|amounts| amounts.iter().map(|a| a.0).collect())).collect();
    assert_eq!((asked, w.requested_decimals()), (vec![Some(vec![25, 1]), None, None], &[1, 0][..]));
    assert_eq!(w.amounts(0)[0].0, 4);
    let older = read("3").unwrap_err().to_string();
    assert!(older.contains("column \"cpu_requested\", row 1: found null"), "{older}");
    // Amounts under such a name cannot be stored beside the resource.
    let mut b = WorkloadBuilder::new(["cpu", "cpu_requested"].map(|name| Resource::new(name, "")));
    b.push(&Task { user: "a", amounts: &[1, 2], ..Task::default() });
    let (_folder, path) = scratch();
    let refused = store::write(&path, &b.finish().unwrap());
    assert!(matches!(refused, Err(StoreError::Name { name, .. }) if name == "cpu_requested"));
}

#[test]
fn several_row_groups_are_read_back_equal() {
    let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
    for i in 0..(1u64 << 20) + 7 {
        let user = if i % 3 == 0 { "a" } else { "b" };
        let amounts = [u128::from(i % 11) * 500_000_000];
        let start = (i % 5 == 0).then(|| Time::from_nanos(i + 3));
        b.push(&Task { submit: Time::from_nanos(i / 2), start, user, amounts: &amounts, ..Task::default() });
    }
    let w = b.finish().unwrap();
    let (_folder, path) = scratch();
    store::write(&path, &w).unwrap();
    assert!(store::read(&path).unwrap() == w);
}

/// Writes a file as other programs might, by the low-level writer.
fn foreign(
    schema: &str,
    write: impl FnOnce(&mut SerializedRowGroupWriter<'_, std::fs::File>),
) -> (tempfile::TempDir, PathBuf) {
    foreign_with(schema, None, write)
}

fn foreign_with(
    schema: &str,
    metadata: Option<Vec<KeyValue>>,
    write: impl FnOnce(&mut SerializedRowGroupWriter<'_, std::fs::File>),
) -> (tempfile::TempDir, PathBuf) {
    let (folder, path) = scratch();
    let file = std::fs::File::create(&path).unwrap();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_key_value_metadata(metadata).build();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    write(&mut group);
    group.close().unwrap();
    writer.close().unwrap();
    (folder, path)
}

fn int64(g: &mut SerializedRowGroupWriter<'_, std::fs::File>, values: &[i64], levels: Option<&[i16]>) {
    let mut c = g.next_column().unwrap().unwrap();
    c.typed::<Int64Type>().write_batch(values, levels, None).unwrap();
    c.close().unwrap();
}

fn double(g: &mut SerializedRowGroupWriter<'_, std::fs::File>, values: &[f64]) {
    let mut c = g.next_column().unwrap().unwrap();
    c.typed::<DoubleType>().write_batch(values, None, None).unwrap();
    c.close().unwrap();
}

fn text(g: &mut SerializedRowGroupWriter<'_, std::fs::File>, values: &[&str], levels: Option<&[i16]>) {
    let values: Vec<ByteArray> = values.iter().map(|v| ByteArray::from(*v)).collect();
    let mut c = g.next_column().unwrap().unwrap();
    c.typed::<ByteArrayType>().write_batch(&values, levels, None).unwrap();
    c.close().unwrap();
}

#[test]
fn a_file_edited_elsewhere_is_read() {
    // As pandas leaves it: every column nullable, starts as floats, decimals in 16 bytes, a label.
    let schema = "message m {
        optional int64 submit_ns; optional double start_ns; optional int64 duration_ns;
        optional byte_array user (UTF8); optional fixed_len_byte_array(16) cpu (DECIMAL(38,3));
        optional double mem; optional int64 __index_level_0__;
    }";
    let (_folder, path) = foreign(schema, |g| {
        let all: Option<&[i16]> = Some(&[1, 1]);
        int64(g, &[20, 10], all);
        let mut c = g.next_column().unwrap().unwrap();
        c.typed::<DoubleType>().write_batch(&[f64::NAN, 12.0], all, None).unwrap();
        c.close().unwrap();
        int64(g, &[1, 2], all);
        text(g, &["later", "sooner"], all);
        let mut c = g.next_column().unwrap().unwrap();
        let wide = |n: i128| FixedLenByteArray::from(n.to_be_bytes().to_vec());
        c.typed::<FixedLenByteArrayType>().write_batch(&[wide(2500), wide(1)], all, None).unwrap();
        c.close().unwrap();
        let mut c = g.next_column().unwrap().unwrap();
        c.typed::<DoubleType>().write_batch(&[0.0125, 3.0], all, None).unwrap();
        c.close().unwrap();
        int64(g, &[0, 1], all);
    });
    let mut b = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    let ns = Span::from_nanos;
    let sooner = [1_000_000, 3_000_000_000];
    let later = [2_500_000_000, 12_500_000];
    let start = Some(Time::from_nanos(12));
    b.push(&Task {
        submit: Time::from_nanos(10),
        start,
        duration: ns(2),
        user: "sooner",
        amounts: &sooner,
        ..Task::default()
    });
    b.push(&Task { submit: Time::from_nanos(20), duration: ns(1), user: "later", amounts: &later, ..Task::default() });
    assert_eq!(store::read(&path).unwrap(), b.finish().unwrap());
}

#[test]
fn a_file_of_a_later_format_is_refused_and_one_of_an_earlier_format_read() {
    let (_folder, path) = scratch();
    let with = |format: Option<&str>| {
        let schema = parse_message_type(
            "message m { required int64 submit_ns; required int64 duration_ns; required byte_array user (UTF8); required double cpu; }",
        );
        let metadata = format.map(|f| vec![KeyValue::new("evenhand.format".to_string(), f.to_string())]);
        let properties = WriterProperties::builder().set_key_value_metadata(metadata).build();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = SerializedFileWriter::new(file, Arc::new(schema.unwrap()), Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        int64(&mut group, &[1], None);
        int64(&mut group, &[2], None);
        text(&mut group, &["ann"], None);
        double(&mut group, &[3.0]);
        group.close().unwrap();
        writer.close().unwrap();
        store::read(&path)
    };
    // Format 1 had neither the key nor the column of nodes.
    for known in [None, Some("1"), Some("2"), Some("3"), Some("4"), Some("5"), Some("6"), Some("7")] {
        assert_eq!(with(known).unwrap().nodes(0), None);
    }
    let error = with(Some("8")).unwrap_err().to_string();
    assert!(error.contains("found format 8, expected at most 7; read it with a later version"), "{error}");
}

#[test]
fn what_cannot_be_read_names_file_column_and_row() {
    const PLAIN: &str = "message m { required int64 submit_ns; required int64 duration_ns; optional byte_array user (UTF8); required double cpu; }";
    let plain = |submit: &[i64; 2], duration: &[i64; 2], users: &[&str], levels: &[i16; 2], cpu: &[f64; 2]| {
        foreign(PLAIN, |g| {
            int64(g, submit, None);
            int64(g, duration, None);
            text(g, users, Some(levels));
            double(g, cpu);
        })
    };
    let both = ["a", "b"];
    let cases = [
        (plain(&[0, -5], &[1, 1], &both, &[1, 1], &[1.0; 2]), "column \"submit_ns\", row 1: found -5"),
        (plain(&[0, 0], &[-1, 1], &both, &[1, 1], &[1.0; 2]), "column \"duration_ns\", row 0: found -1"),
        (plain(&[0, 0], &[1, 1], &["a"], &[1, 0], &[1.0; 2]), "column \"user\", row 1: found null"),
        (plain(&[0, 0], &[1, 1], &both, &[1, 1], &[1.0, f64::NAN]), "column \"cpu\", row 1: found NaN"),
        (plain(&[0, 0], &[1, 1], &both, &[1, 1], &[1.0, 0.000_000_000_1]), "row 1: found 1e-10"),
        (plain(&[0, 0], &[1, 1], &both, &[1, 1], &[1.0, 1e19]), "row 1: found 1e19"),
        (
            foreign("message m { required int64 submit_ns; required int64 duration_ns; required double cpu; }", |g| {
                int64(g, &[0], None);
                int64(g, &[1], None);
                double(g, &[1.0]);
            }),
            "no column \"user\"",
        ),
        (
            foreign(
                "message m { required int64 submit_ns; required int64 duration_ns; required byte_array user (UTF8); }",
                |g| {
                    int64(g, &[0], None);
                    int64(g, &[1], None);
                    text(g, &["a"], None);
                },
            ),
            "at least one column of numbers",
        ),
        (
            foreign(
                "message m { required int64 submit_ns (TIMESTAMP(MILLIS,true)); required int64 duration_ns; required byte_array user (UTF8); required double cpu; }",
                |g| {
                    int64(g, &[0], None);
                    int64(g, &[1], None);
                    text(g, &["a"], None);
                    double(g, &[1.0]);
                },
            ),
            "column \"submit_ns\" holds INT64",
        ),
        (
            foreign(
                "message m { required int64 submit_ns; required int64 duration_ns; required byte_array user (UTF8); required byte_array job (UTF8); }",
                |g| {
                    int64(g, &[0], None);
                    int64(g, &[1], None);
                    text(g, &["a"], None);
                    text(g, &["x"], None);
                },
            ),
            "column \"job\" holds BYTE_ARRAY",
        ),
    ];
    for ((_folder, path), expected) in &cases {
        let error = store::read(path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} lacks {expected}");
        assert!(error.contains("w.parquet"), "{error}");
    }
    let (_folder, path) = scratch();
    assert!(matches!(store::read(&path), Err(StoreError::Io { .. })));
    std::fs::write(&path, "submit,start\n1,2\n").unwrap();
    assert!(matches!(store::read(&path), Err(StoreError::Parquet { .. })));
    assert!(!store::is_parquet(&path));
}

fn one_task(resources: &[&str]) -> Workload {
    let mut b = WorkloadBuilder::new(resources.iter().map(|r| Resource::new(*r, "")));
    b.push(&Task { user: "a", amounts: &vec![1; resources.len()], ..Task::default() });
    b.finish().unwrap()
}

fn entries(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_failure_leaves_the_folder_as_it_was() {
    let (folder, path) = scratch();
    for taken in [["cpu", "user"], ["cpu", "cpu"]] {
        let error = store::write(&path, &one_task(&taken)).unwrap_err();
        assert!(matches!(error, StoreError::Name { .. }), "{error}");
        assert!(entries(folder.path()).is_empty());
    }
    // A folder cannot be replaced by a file: the rename fails after everything was written.
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(store::write(&path, &one_task(&["cpu"])), Err(StoreError::Io { .. })));
    assert_eq!(entries(folder.path()), ["w.parquet"]);
}

fn results(write: impl FnOnce(&Path, &TaskResults<'_>)) -> Vec<u8> {
    let (folder, path) = scratch();
    let t = TaskResults {
        users: &["alice".into(), "b,ob".into()],
        row: &[0, 1, 5],
        user: &[UserId(0), UserId(1), UserId(0)],
        submit: &[Time::from_nanos(1), Time::from_secs(2), Time::from_secs(3)],
        start: &[500_000_001, NO_TIME, NO_TIME],
        duration: &[Span::from_nanos(1_500_000_000), Span::from_secs(7), Span::ZERO],
        state: &[TaskState::Completed, TaskState::Waiting, TaskState::Rejected],
        started_by: None,
    };
    write(&path, &t);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(entries(folder.path()), ["w.parquet"]);
    bytes
}

#[test]
fn what_started_a_task_is_a_column_where_it_is_known() {
    let csv = results(|path, t| {
        let by = TaskResults { started_by: Some(&["backfill", "", ""]), ..*t };
        store::write_task_results_csv(path, &by).unwrap();
    });
    assert_eq!(
        String::from_utf8(csv).unwrap(),
        "row,user,submit_s,start_s,duration_s,wait_s,state,started_by\n\
         0,alice,0.000000001,0.500000001,1.500000000,0.500000000,completed,backfill\n\
         1,\"b,ob\",2.000000000,,7.000000000,,waiting,\n\
         5,alice,3.000000000,,0.000000000,,rejected,\n"
    );
    results(|path, t| {
        let by = TaskResults { started_by: Some(&["backfill", "", ""]), ..*t };
        store::write_task_results(path, &by).unwrap();
        // A reader of the other columns is not disturbed.
        assert_eq!(store::read_task_results(path).unwrap().columns().row, t.row);
    });
}

#[test]
fn results_as_csv_are_exact() {
    let csv = results(|path, t| store::write_task_results_csv(path, t).unwrap());
    assert_eq!(
        String::from_utf8(csv).unwrap(),
        "row,user,submit_s,start_s,duration_s,wait_s,state\n\
         0,alice,0.000000001,0.500000001,1.500000000,0.500000000,completed\n\
         1,\"b,ob\",2.000000000,,7.000000000,,waiting\n\
         5,alice,3.000000000,,0.000000000,,rejected\n"
    );
}

#[test]
fn results_as_parquet_hold_the_same() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let (_folder, path) = scratch();
    std::fs::write(&path, results(|path, t| store::write_task_results(path, t).unwrap())).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let rows: Vec<String> = reader.get_row_iter(None).unwrap().map(|r| r.unwrap().to_string()).collect();
    assert_eq!(
        rows,
        [
            "{row: 0, user: \"alice\", submit_ns: 1, start_ns: 500000001, duration_ns: 1500000000, wait_ns: 500000000, state: \"completed\"}",
            "{row: 1, user: \"b,ob\", submit_ns: 2000000000, start_ns: null, duration_ns: 7000000000, wait_ns: null, state: \"waiting\"}",
            "{row: 5, user: \"alice\", submit_ns: 3000000000, start_ns: null, duration_ns: 0, wait_ns: null, state: \"rejected\"}",
        ]
    );
}
