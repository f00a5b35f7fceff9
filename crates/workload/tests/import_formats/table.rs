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
fn a_table_may_state_nodes_or_how_much_a_node_has_of_the_job() {
    let source = |text: &str| Source::Bytes { name: "trace".into(), data: text.as_bytes().to_vec() };
    let text = "at,took,cores,n,each\n0,5,32,2,\n1,5,17,,8\n2,5,4,,\n";
    let both = "submit=at,duration=took,cpu=cores,nodes=n,per_node=each";
    let found = import(&[source(text)], &table_options(both)).unwrap();
    assert_eq!((0..3).map(|row| found.workload.nodes(row)).collect::<Vec<_>>(), [Some(2), Some(3), None]);
    let wrong = import(&[source(&text.replace("32,2", "32,1.5"))], &table_options(both)).unwrap_err().to_string();
    assert!(wrong.contains("trace:2:8: found \"1.5\", expected a number of nodes"), "{wrong}");
}

/// What rows hold and what they request, where that differs.
fn both(found: &Imported) -> Vec<(String, Option<String>)> {
    let w = &found.workload;
    let text = |amounts: &[evenhand_model::Amount]| {
        let each = w.resources().iter().zip(amounts).map(|(resource, amount)| resource.format(*amount));
        each.collect::<Vec<_>>().join(" ")
    };
    (0..w.len()).map(|row| (text(w.amounts(row)), w.requested_amounts(row).map(text))).collect()
}

#[test]
fn a_table_may_state_requested_amounts_beside_allocated_ones() {
    let text = "at,took,held,asked,ram,asked_ram\n\
                0,5,16,6,32,32\n\
                1,5,4,4,8,NA\n\
                2,5,8,,8,4\n\
                3,5,,2,8,\n\
                4,5,3,,1,\n";
    let columns = "submit=at,duration=took,cpu_requested=asked,cpu=held,mem:GiB=ram,mem_requested:GiB=asked_ram";
    let options = table_options(columns);
    let found = import(&bytes(text), &options).unwrap();
    let held = ["16 32", "4 8", "8 8", "2 8", "3 1"].map(str::to_string);
    let asked = [Some("6 32"), None, Some("8 4"), None, None].map(|text| text.map(str::to_string));
    assert_eq!(both(&found), held.into_iter().zip(asked).collect::<Vec<_>>());
    let summary = found.summary.to_string();
    assert!(summary.contains("1 amount is not stated as allocated and taken as requested."), "{summary}");
    assert!(summary.contains("2 jobs request other amounts than allocated; --processors requested takes"), "{summary}");
    let requested = ImportOptions { processors: Processors::Requested, ..options.clone() };
    let asked = import(&bytes(text), &requested).unwrap();
    let amounts: Vec<String> = both(&asked).into_iter().map(|row| row.0).collect();
    assert_eq!(amounts, ["6 32", "4 8", "8 4", "2 8", "3 1"]);
    assert_eq!(Processors::Requested.of(found.workload).unwrap(), asked.workload);
    let summary = asked.summary.to_string();
    assert!(summary.contains("4 rows have the amounts that were requested, so far as the table states"), "{summary}");
    assert!(summary.contains("1 row states no requested amounts; the allocated ones are taken."), "{summary}");
    // A table that lacks an optional column has what it has.
    let optional = "submit=at,duration=took,cpu=held,cpu_requested=cores?";
    let found = import(&bytes(text), &table_options(optional)).unwrap();
    assert_eq!((found.workload.rows_with_requested_amounts(), found.workload.len()), (0, 5));
    for (from, to, message) in [
        ("16,6,32", "16,6x,32", "trace:2:8: found \"6x\", expected an amount of cpu, a number that is not negative"),
        ("8,4\n", "8,-4\n", "trace:4:10: found \"-4\", expected an amount of mem, a number that is not negative"),
        (
            "4,4,8",
            "4,9999999999999999999,8",
            "trace:3:7: found \"9999999999999999999\", expected an amount of cpu of at most",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let found = refused(&options, text.replacen(from, to, 1));
        assert!(found.starts_with(message), "{found}\n{message}");
    }
}

#[test]
fn processors_that_a_table_does_not_state_cannot_be_taken() {
    let options = ImportOptions { processors: Processors::Requested, ..table_options(TABLE_COLUMNS) };
    let found = import(&bytes(TABLE), &options).unwrap_err().to_string();
    assert!(found.contains("--processors") && found.contains("--csv-columns cpu=COLUMN,cpu_requested="), "{found}");
}

#[test]
fn a_type_of_gpus_is_required_of_machines() {
    let table = "at,took,gpus,type,needs\n0,5,1,V100M16| V100M32,ssd\n0,5,1,T4,\n0,5,1,,ssd\n0,5,1,,\n0,5,1,a|,\n";
    let columns = "submit=at,duration=took,gpu=gpus,gpu_type=type,requires=needs";
    let found = import(&bytes(table), &table_options(columns)).unwrap().workload;
    let words: Vec<_> = (0..5).map(|row| found.detail(Detail::Requires, row).unwrap_or("-")).collect();
    assert_eq!(words, ["ssd,gpu:v100m16|gpu:v100m32", "gpu:t4", "ssd", "-", "-"]);
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
        (
            "submit=a,duration=b,cpu_requested=c,mem=d",
            "found \"cpu_requested=c\", expected the allocated amount beside the requested one, as cpu=COLUMN",
        ),
        ("submit=a,duration=b,cpu=c,cpu_requested=d,cpu_requested=e", "expected each name once"),
        (
            "submit=a,duration=b,mem:GiB=c,mem_requested:MiB=d",
            "found \"mem_requested:MiB=d\", expected the unit of the allocated amount, or none; multiply the column",
        ),
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

#[test]
fn a_column_that_is_read_has_a_name_of_its_own() {
    let text = "at,took,cpu,note,note,cpu\n1,2,3,x,y,4\n";
    let found = refused(&table_options("submit=at,duration=took,cpu=cpu"), text);
    let expected =
        "trace:1:1: found the column \"cpu\" twice, expected columns with names of their own; correct the header";
    assert_eq!(found, expected);
    // Others may be alike.
    assert_eq!(rows(&import(&bytes(text), &table_options("submit=at,duration=took,mem=took")).unwrap()).len(), 1);
}

#[test]
fn a_file_that_is_not_readable_parquet_is_named_so() {
    let found = refused(&ImportOptions::default(), "PAR1 is no file");
    assert!(found.starts_with("trace: found a damaged Parquet file ("), "{found}");
    assert!(found.contains("expected a complete Parquet file"), "{found}");
}

#[test]
fn tables_hold_quantities_offsets_and_words_for_unknown_values() {
    let text = "at;end;who;cores;ram;team\n1970-01-01 08:00:10+08:00;1970-01-01T00:01:10.5Z;ann;500m;64Gi;NA\n\
        100;200;-;2;null;x\n-5;10;ann;1;1Gi;x\n";
    let columns = "submit=at,start=at,end=end,user=who|login,account=team?,queue=nothing?,cpu=cores,mem:GiB=ram";
    let found = import(&bytes(text), &table_options(columns)).unwrap();
    assert_eq!(rows(&found), ["10 10 60.5 - ann - - cpu=0.5 mem=64", "100 100 100 - unknown x - cpu=2 mem=0"]);
    assert_eq!(dropped(&found), [("submitted before the trace begins", 1)]);
    // Without a header, and multiplied by another column.
    let named = ImportOptions {
        columns: Some(["at", "took", "n", "part"].map(String::from).to_vec()),
        ..table_options("submit=at,duration=took,gpu=n*part*0.001")
    };
    let found = import(&bytes("1,00:01:00,2,500\n"), &named).unwrap();
    assert_eq!(rows(&found), ["1 - 60 - unknown - - gpu=1"]);
    // A malformed optional field does not cost the row if that is accepted.
    let lenient = ImportOptions { lenient: true, ..table_options("submit=at,duration=took,requested=limit,cpu=n") };
    let found = import(&bytes("at,took,limit,n\n1,2,soon,1\n"), &lenient).unwrap();
    assert_eq!(rows(&found), ["1 - 2 - unknown - - cpu=1"]);
    assert!(found.summary.assumptions.join(" ").contains("1 row has a malformed optional field"));
}

#[test]
fn tables_may_be_json() {
    let objects = r#"{"at": 1, "took": 2.5, "who": "ann", "job": {"cores": 4}}
        {"at": 2, "took": 3, "who": null, "job": {"cores": "500m"}}"#;
    let columns = "submit=at,duration=took,user=who?,cpu=job.cores";
    let found = import(&bytes(objects), &table_options(columns)).unwrap();
    assert_eq!(rows(&found), ["1 - 2.5 - ann - - cpu=4", "2 - 3 - unknown - - cpu=0.5"]);
    let found = refused(&table_options("submit=at,duration=took,cpu=cores"), objects);
    assert!(found.contains("found the header at,job,took,who, expected a column \"cores\""), "{found}");
    let found = refused(&table_options(columns), "[{\"at\": \"x\", \"took\": 1, \"job\": {\"cores\": 1}}]");
    assert!(found.starts_with("trace:1:2: found \"x\", expected a time"), "{found}");
}

/// A row of each public trace as its description has it.
#[test]
fn public_traces_are_recognised_by_their_columns() {
    let helios = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
        1,u1,vcA,8,64,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:01:00,2020-04-01 00:02:00,60,60\n";
    let acme = "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n\
        a,u1,1,8,64,Pretrain,COMPLETED,2023-03-01 00:00:00+08:00,2023-03-01 00:01:00+08:00,2023-03-01 00:02:00+08:00,60,60,480\n";
    let azure =
        "vmId,tenantId,priority,starttime,endtime,core,memory\n1,7,0,0.5,1.5,0.125,0.25\n2,7,0,-0.5,1,0.5,0.5\n";
    let philly = r#"[{"status": "Pass", "vc": "v", "jobid": "j", "user": "u", "submitted_time": "1970-01-01 00:00:10",
        "attempts": [{"start_time": "1970-01-01 00:00:20", "end_time": "1970-01-01 00:01:20",
        "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]},
        {"start_time": "1970-01-01 00:02:00", "end_time": "1970-01-01 00:02:10", "detail": [{"ip": "m", "gpus": ["gpu0"]}]}]},
        {"status": "Killed", "vc": "v", "user": "u", "submitted_time": "1970-01-01 00:00:10", "attempts": []}]"#;
    let supercloud = "id_job,id_user,account,partition,timelimit,time_submit,time_start,time_end,tres_alloc\n\
        1,1001,default,xeon,60,100,110,170,\"1=4,2=8000,4=1,5=4,1001=2,1002=2\"\n2,1001,default,xeon,60,100,0,0,\n";
    let frontier =
        "; UnixStartTime: 1\n1 100 10 60 2500 -1 -1 2500 120 -1 1 u7 3 -1 1 1 -1 -1 20000 90 frontier:excl:2500x112\n";
    let kestrel = "id,job_id,user_hash,account_hash,partition,qos,state_simple,submit_time,start_time,end_time,\
        wallclock_req,nodes_req,nodes_used,processors_req,processors_used,memory_req,gpus_requested\n\
        1,1,ab,cd,short,normal,COMPLETED,2024-01-01T00:00:00Z,2024-01-01T00:01:00Z,2024-01-01T00:02:00Z,\
        3600000000000,2,2,104,208,240G,0\n";
    let in2p3 = "jobid\tuser\taccount\tpartition\tstate\tsubmit\tstart\tend\telapsed\ttimelimit\talloccpus\tallocgpus\n\
        1\tu1\tatlas\thtc\tTIMEOUT\t100\t110\t170\t60\t3600\t8\t0\n\
        2\tu1\tatlas\thtc\tCANCELLED by 1000\t100\t0\t120\t0\tUNLIMITED\t0\t0\n\
        3\tu2\tatlas\thtc\tCANCELLED by 1000\t100\t110\t120\t10\tUNLIMITED\t1\t0\n";
    let pai = "j1,worker,2,Terminated,100,200,600,29.3,50,T4\n";
    for (text, format, first, dropped_rows) in [
        // Their column `queue` is a time.
        (helios, Format::Helios, "1585699200 1585699260 60 - u1 vcA - cpu=64 gpu=8", 0),
        (acme, Format::Acme, "1677600000 1677600060 60 - u1 Pretrain - cpu=64 gpu=8", 0),
        (azure, Format::AzurePacking, "43200 43200 86400 - 7 - 0 cpu=0.125 mem=0.25 ssd=0 nic=0", 1),
        (philly, Format::Philly, "10 20 70 - u v - gpu=2", 1),
        (supercloud, Format::Supercloud, "100 110 60 3600 1001 default xeon cpu=4 mem=8388608000 gpu=2", 1),
        (kestrel, Format::Kestrel, "1704067200 1704067260 60 3600 ab cd short cpu=208 mem=240 gpu=0", 0),
        (in2p3, Format::In2p3, "100 110 60 3600 u1 atlas htc cpu=8 gpu=0", 1),
        (frontier, Format::Frontier, "100 110 60 120 u7 3 1 cpu=280000 gpu=20000", 0),
    ] {
        let found = read(Format::Auto, text);
        assert_eq!((found.summary.format, rows(&found)[0].as_str()), (format, first));
        assert_eq!(found.summary.dropped.iter().map(|(_, n)| n).sum::<u64>(), dropped_rows, "{format}");
    }
    let eagle = "job_id,user,account,partition,qos,wallclock_req,nodes_req,processors_req,gpus_req,mem_req,submit_time,\
        start_time,end_time,state\n\
        1,u1,a1,short,high,3600,2,72,0,1000,1546332955000,1546332956000,1546332966000,TIMEOUT\n";
    for (text, format, nodes, qos, outcome) in [
        (eagle, Format::Eagle, 2, Some("high"), "limit"),
        (helios, Format::Helios, 1, None, "completed"),
        (acme, Format::Acme, 1, None, "completed"),
    ] {
        let found = read(Format::Auto, text);
        let detail = |detail| found.workload.detail(detail, 0);
        assert_eq!((found.summary.format, found.workload.nodes(0)), (format, Some(nodes)), "{format}");
        assert_eq!((detail(Detail::Qos), detail(Detail::Outcome)), (qos, Some(outcome)), "{format}");
    }
    let found = read(Format::Auto, in2p3);
    assert_eq!(rows(&found)[1], "100 110 10 - u2 atlas htc cpu=1 gpu=0");
    let outcomes: Vec<_> = (0..2).map(|job| found.workload.detail(Detail::Outcome, job)).collect();
    assert_eq!(outcomes, [Some("limit"), Some("cancelled")]);
    let found = read(Format::AlibabaGpu2020, &format!("{pai}j1,inst,ann,Terminated,90,210\n"));
    assert_eq!(rows(&found), ["100 100 100 - ann - T4 cpu=6 mem=29.3 gpu=0.5"]);
    assert_eq!(found.workload.tasks(), 2);
    let found = refused(&options(Format::Helios), helios.replace("gpu_num", "gpus"));
    assert!(found.contains("a column \"gpu_num\", which --from helios reads"), "{found}");
}
