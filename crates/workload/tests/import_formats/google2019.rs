//! The events of Google's ClusterData2019.

use std::sync::Arc;

use parquet::data_type::{FloatType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;

/// An event of an instance: time in seconds, type, instance.
type Row = (u64, u32, u32);

/// Rows of one collection's instances.
const EVENTS: [Row; 12] = [
    (600, 0, 0),
    (600, 2, 0),
    (610, 3, 0),
    (700, 6, 0),
    // Evicted, and submitted again at the same time.
    (600, 0, 1),
    (620, 3, 1),
    (650, 4, 1),
    (650, 0, 1),
    (660, 3, 1),
    (690, 5, 1),
    (600, 0, 2),
    (605, 7, 2),
];

const KEPT: [&str; 2] = [
    "600 610 90 - ann - best-effort-batch cpu=0.0125 mem=0.015",
    "650 660 30 - ann - best-effort-batch cpu=0.0125 mem=0.015",
];

fn csv() -> String {
    let header =
        "time,type,collection_id,collection_type,priority,instance_index,resource_request.cpus,resource_request.memory";
    let row = |(s, kind, index): &Row| format!("{s}000000,{kind},77,0,103,{index},0.0125,0.015\n");
    // Published tables are in no order.
    format!("{header}\n{}", EVENTS.iter().rev().map(row).collect::<String>())
}

const COLLECTIONS: &str =
    "time,type,collection_id,priority,user,collection_logical_name\n0,0,77,103,ann,x\n0,3,77,103,ann,x\n";

fn source(name: &str, data: impl Into<Vec<u8>>) -> Source {
    Source::Bytes { name: name.to_string(), data: data.into() }
}

fn both(instances: impl Into<Vec<u8>>) -> Imported {
    let sources = [source("instance_events", instances), source("collection_events", COLLECTIONS)];
    import(&sources, &ImportOptions::default()).unwrap()
}

#[test]
fn attempts_are_found_in_unordered_events_and_users_in_the_table_of_collections() {
    let found = both(csv());
    assert_eq!((found.summary.format, rows(&found)), (Format::Google2019, KEPT.map(str::to_string).to_vec()));
    assert_eq!(dropped(&found), [("evicted", 1), ("killed", 1)]);
    // The other way round, and with events that a join with the table of usage repeats.
    let twice = csv() + csv().split_once('\n').unwrap().1;
    let found = import(&[source("c", COLLECTIONS), source("i", twice)], &options(Format::Google2019)).unwrap();
    assert_eq!(rows(&found), KEPT);
    let summary = found.summary.to_string();
    assert!(summary.contains("11 rows repeat an event") && !summary.contains("no user"), "{summary}");
    let detected = import(&[source("c", COLLECTIONS), source("i", csv())], &ImportOptions::default()).unwrap();
    assert_eq!((detected.summary.format, rows(&detected)), (Format::Google2019, KEPT.map(str::to_string).to_vec()));
    let found = read(Format::Auto, &csv());
    assert_eq!(found.workload.users(), ["unknown"]);
    assert!(found.summary.to_string().contains("2 tasks have no user, because collection_events was not read"));
}

#[test]
fn users_without_tasks_and_a_table_that_is_given_twice_are_errors() {
    let refused = |sources: &[Source]| import(sources, &ImportOptions::default()).unwrap_err().to_string();
    let found = refused(&[source("c", COLLECTIONS)]);
    assert_eq!(
        found,
        "c: found collection_events, which has only the users, expected instance_events, which has the tasks; name the table \
         instance_events too, before or after it"
    );
    for twice in [[source("i", csv()), source("j", csv())], [source("j", parquet()), source("i", parquet())]] {
        let found = refused(&twice);
        assert!(found.contains("found the same rows as in") && found.ends_with("name each file once"), "{found}");
    }
    // Parts of one table have the same header.
    let (header, events) = csv().split_once('\n').map(|(h, e)| (h.to_string(), e.to_string())).unwrap();
    let middle = events.lines().count() / 2;
    let part = |lines: Vec<&str>| format!("{header}\n{}\n", lines.join("\n"));
    let parts = [part(events.lines().skip(middle).collect()), part(events.lines().take(middle).collect())];
    let found = import(&parts.map(|part| source("part", part)), &ImportOptions::default()).unwrap();
    assert_eq!(found.workload.tasks(), KEPT.len() as u64);
}

#[test]
fn json_and_parquet_with_nested_requests_are_the_same_as_csv() {
    let json: String = EVENTS
        .iter()
        .map(|(s, kind, index)| {
            format!(
                "{{\"time\": \"{s}000000\", \"type\": {kind}, \"collection_id\": \"77\", \"priority\": 103, \
                 \"instance_index\": {index}, \"resource_request\": {{\"cpus\": 0.0125, \"memory\": 0.015}}}}\n"
            )
        })
        .collect();
    assert_eq!(rows(&both(json.clone())), KEPT);
    let names = json.replace("\"type\": 3", "\"type\": \"SCHEDULE\"").replace("\"type\": 5", "\"type\": \"FAIL\"");
    assert_eq!(rows(&both(names)), KEPT);
    assert_eq!(rows(&both(parquet())), KEPT);
}

/// The events as BigQuery exports them to Parquet, with a group for the request.
fn parquet() -> Vec<u8> {
    let schema = "message events { optional int64 time; optional int64 type; optional int64 collection_id; \
                  optional int64 priority; optional int64 instance_index; \
                  optional group resource_request { optional float cpus; optional float memory; } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let columns: [fn(&Row) -> i64; 5] =
        [|e| e.0 as i64 * 1_000_000, |e| i64::from(e.1), |_| 77, |_| 103, |e| i64::from(e.2)];
    for value in columns {
        let values: Vec<i64> = EVENTS.iter().map(value).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&values, Some(&[1; EVENTS.len()]), None).unwrap();
        column.close().unwrap();
    }
    for request in [0.0125, 0.015] {
        let mut column = group.next_column().unwrap().unwrap();
        // An update has no request: its whole group is absent.
        let known: Vec<i16> = EVENTS.iter().map(|e| if e.1 == 0 { 2 } else { 0 }).collect();
        let values = vec![request; known.iter().filter(|level| **level == 2).count()];
        column.typed::<FloatType>().write_batch(&values, Some(&known), None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    file
}

#[test]
fn alloc_sets_and_events_after_the_end_are_dropped_and_malformed_rows_are_errors() {
    let alloc = csv().replace(",77,0,103,0,", ",77,1,103,0,");
    assert_eq!(dropped(&both(alloc))[0], ("of an alloc set, not of a job", 4));
    let late = csv().replace("700000000,6", "9223372036854775808,6");
    let found = both(late);
    assert!(dropped(&found).contains(&("after the end of the trace", 1)), "{}", found.summary);
    assert!(dropped(&found).contains(&("still running at the end", 1)), "{}", found.summary);
    for (from, to, message) in [
        ("700000000,6", "700000000,11", "trace:10:11: found \"11\", expected a type of event: 0 to 10, or its name"),
        ("700000000,6", ",6", "trace:10:1: found nothing, expected a time in whole microseconds"),
        ("700000000,6,77", "700000000,6,-7", "trace:10:13: found \"-7\", expected the number of a collection"),
        ("resource_request.cpus", "cores", "expected a column \"resource_request.cpus or resource_request_cpus"),
    ] {
        let text = csv().replacen(from, to, 1);
        let error = import(&bytes(text), &options(Format::Google2019)).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
