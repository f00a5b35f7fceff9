//! Batsim workloads.

use super::*;

const BATSIM: &str = r#"{
  "nb_res": 4,
  "jobs": [
    {"id": 1, "subtime": 10.000000001, "walltime": 100, "res": 4, "profile": "a"},
    {"id": "w!2", "subtime": 0, "walltime": -1, "res": 1, "profile": "b", "user_id": 7},
    {"id": 3, "subtime": 1e1, "res": 2, "profile": "b", "user": "ann", "metadata": {}}
  ],
  "profiles": {
    "a": {"type": "delay", "delay": 12.5},
    "b": {"type": "DelayProfile", "delay": 3},
    "p": {"type": "parallel_homogeneous", "cpu": 5e6, "com": 1e6}
  }
}"#;

#[test]
fn a_batsim_workload() {
    let expected = ["0 - 3 - 7 - - cpu=1", "10 - 3 - ann - - cpu=2", "10.000000001 - 12.5 100 unknown - - cpu=4"];
    let found = read(Format::Auto, BATSIM);
    assert_eq!(rows(&found), expected);
    assert!(found.summary.to_string().contains("1 job has no user"));
    for (from, to, message) in [
        (
            "\"profile\": \"a\"",
            "\"profile\": \"p\"",
            "trace:4:5: found the profile \"p\" of type \"parallel_homogeneous\", expected a profile of type",
        ),
        (
            "\"profile\": \"a\"",
            "\"profile\": \"z\"",
            "trace:4:5: found the profile \"z\", expected a profile that is in",
        ),
        ("\"res\": 1", "\"res\": 0", "trace:5:5: found the res \"0\" of job \"\\\"w!2\\\"\", expected a whole number"),
        ("\"res\": 1", "\"rez\": 1", "trace:5:5: found an invalid job (missing field `res`), expected a job with"),
        ("\"subtime\": 0", "\"subtime\": -5", "trace:5:5: found the subtime \"-5\" of job"),
        ("12.5", "-2", "trace:4:5: found the delay \"-2\" of the profile \"a\", expected seconds"),
        ("12.5", "1e50", "trace:4:5: found the delay \"1e50\" of the profile \"a\", expected seconds"),
        ("7}", "[7]}", "trace:5:5: found the user \"[7]\" of job"),
        ("\"jobs\"", "\"tasks\"", "trace: found a document that is not a Batsim workload (missing field `jobs`"),
        ("}\n}", "}\n", "trace: found a document that is not a Batsim workload (EOF while parsing"),
    ] {
        assert!(BATSIM.contains(from), "{from}");
        let found = refused(&options(Format::Batsim), BATSIM.replacen(from, to, 1));
        assert!(found.starts_with(message), "{found}\n{message}");
    }
}
