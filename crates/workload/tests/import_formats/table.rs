//! Any table, by the definition of its columns.

use super::*;

const TABLE: &str = "\
name,\"who, and why\",created,begun,done,milli,ram
a,ann,10,20,80.5,1500,4
b,\"bob \"\"b\"\"\",1970-01-01 00:00:10,1970-01-01T00:00:30Z,1970-01-01T00:01:00,250,
c,ann,10,,,1000,1
d,,,20,30,1000,1
";

fn table_options(columns: &str) -> ImportOptions {
    ImportOptions { csv_columns: Some(columns.parse().unwrap()), ..ImportOptions::default() }
}

const TABLE_COLUMNS: &str = "submit=created,start=begun,end=done,cpu=milli*0.001,mem:GiB=ram*0.5";

#[test]
fn any_table_is_read_by_the_definition_of_its_columns() {
    let source = |text: &str| Source::Bytes { name: "trace".into(), data: text.as_bytes().to_vec() };
    let found = import(&[source(TABLE)], &table_options(TABLE_COLUMNS)).unwrap();
    let expected = ["10 20 60.5 - unknown - - cpu=1.5 mem=2", "10 30 30 - unknown - - cpu=0.25 mem=0"];
    assert_eq!(rows(&found), expected);
    assert_eq!(found.workload.resources()[1].unit, "GiB");
    let summary = found.summary.to_string();
    assert!(summary.contains("Dropped: never started (1); no submit time (1)."), "{summary}");
    assert!(summary.contains("2 rows have no user") && summary.contains("1 amount is missing"), "{summary}");
    // Quoted names, a duration, counts, and times that are multiplied: milliseconds.
    let text = "at,took,who,n,cores\n1000,500,\"b \"\"x\"\", y\",3,2\n2000,1500,c,1,1\n";
    let columns = "submit=at*0.001,duration=took*0.001,user=who,count=n,cpu=cores";
    let found = import(&[source(text)], &table_options(columns)).unwrap();
    assert_eq!((found.workload.tasks(), found.workload.users()), (4, &["b \"x\", y".to_string(), "c".into()][..]));
    assert_eq!(rows(&found)[1], "2 - 1.5 - c - - cpu=1");
}

#[test]
fn errors_in_tables_name_the_place() {
    for (from, to, message) in [
        (
            "20,80.5",
            "2O,80.5",
            "trace:2:10: found \"2O\", expected a time: seconds, or a date such as 2023-08-31T12:29:47",
        ),
        ("80.5", "8.5", "trace:2:13: found an end 11.5 s before the start"),
        ("20,80.5", "5,80.5", "trace:2:10: found a start 5 s before submission"),
        ("1500,4", "-1500,4", "trace:2:18: found \"-1500\", expected an amount of cpu"),
        ("1500,4", "1500", "trace:2:22: found 6 columns, expected 7 columns, as the header has"),
        ("milli", "mill", "trace: found the header"),
    ] {
        assert!(TABLE.contains(from), "{from}");
        let found = refused(&table_options(TABLE_COLUMNS), TABLE.replacen(from, to, 1));
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let found = refused(&options(Format::Csv), TABLE);
    assert!(found.contains("pass --csv-columns submit=COLUMN"), "{found}");
    for (columns, message) in [
        ("submit", "found \"submit\", expected NAME=COLUMN"),
        ("duration=a,cpu=b", "expected submit=COLUMN among them"),
        ("submit=a,end=b,cpu=c", "expected duration=COLUMN, or end=COLUMN with"),
        ("submit=a,duration=b", "expected a resource among them"),
        ("submit=a,submit=b,duration=c,cpu=d", "found \"submit=b\", expected each name once"),
        ("submit=a,duration=b,cpu=c*0", "found \"cpu=c*0\", expected a number above 0"),
        ("submit=a,duration=b,user=c*2,cpu=d", "expected a column of names, which cannot be multiplied"),
    ] {
        let error = columns.parse::<CsvColumns>().unwrap_err().to_string();
        assert!(error.contains(message), "{error}\n{message}");
    }
}
