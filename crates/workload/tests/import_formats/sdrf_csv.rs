//! The SDRF authors' CSV.

use super::*;

#[test]
fn the_seven_columns_of_the_sdrf_authors() {
    let text =
        "submit,start,finish,user,task,cpu,mem\n5,6,1000009,bob,7-1,0.0125,3.815e-05\n1,2,2,eve,x,0.1234567891,2\r\n";
    let found = read(Format::Auto, text);
    let expected = [
        "0.000001 0.000002 0 - eve - - cpu=0.123456789 mem=2",
        "0.000005 0.000006 1.000003 - bob - - cpu=0.0125 mem=0.00003815",
    ];
    assert_eq!(rows(&found), expected);
    assert_eq!(found.summary.assumptions.len(), 2);
    assert!(found.summary.assumptions[1].starts_with("1 row has amounts with more than nine decimals"));
    for (text, message) in [
        ("1,2,3,u,t,1\n", "trace:1:12: found 6 columns, expected 7 columns: submit,start,finish,user,task,cpu,mem;"),
        ("1,9,3,u,t,1,1\n", "trace:1:5: found finish 0.000003 s before start 0.000009 s, expected a finish"),
        ("-1,2,3,u,t,1,1\n", "trace:1:1: found \"-1\", expected the submit time, whole microseconds"),
        ("1,2.5,3,u,t,1,1\n", "trace:1:3: found \"2.5\", expected the start time"),
        ("1,2,99999999999999999,u,t,1,1\n", "trace:1:5: found \"99999999999999999\", expected the finish time"),
        ("1,2,3,u,t,-1,1\n", "trace:1:11: found \"-1\", expected the cpu amount"),
        ("1,2,3,u,t,1,1e30\n", "trace:1:13: found \"1e30\", expected the mem amount"),
        ("1,2,3,u,t,1,1\nh,2,3,u,t,1,1\n", "trace:2:1: found \"h\", expected the submit time"),
    ] {
        let found = refused(&options(Format::SdrfCsv), text);
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let found = refused(&options(Format::SdrfCsv), b"1,2,3,a\xffb,t,1,1\n");
    assert!(found.starts_with("trace:1:8: found \"a\\xffb\", expected a user's name in UTF-8"), "{found}");
}
