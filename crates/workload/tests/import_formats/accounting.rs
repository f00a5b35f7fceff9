//! Accounting logs of batch systems, and job lists like them.

use super::*;

/// Jobs of `sacct --json`: as 24.11 prints them, and as 22.05 does; one waits, one runs.
const SACCT_JSON: &str = r#"{"meta": {"Slurm": {"version": {"major": 24}}}, "jobs": [
{"job_id": 8, "user": "ann", "account": "phys", "partition": "gpu", "allocation_nodes": 2, "state": {"current": ["COMPLETED"]},
 "time": {"submission": 100, "start": 110, "end": 170, "elapsed": 60, "limit": {"set": true, "infinite": false, "number": 5}},
 "tres": {"allocated": [{"type": "cpu", "name": "", "count": 4}, {"type": "mem", "name": "", "count": 2048},
  {"type": "energy", "name": "", "count": -2}, {"type": "gres", "name": "gpu:a100", "count": 2}], "requested": []}},
{"job_id": 9, "user": "", "allocation_nodes": 0, "association": {"user": "bob"}, "account": "bio", "partition": "cpu", "state": {"current": "TIMEOUT"},
 "time": {"submission": 101, "start": 111, "end": 171, "limit": {"set": false, "infinite": true, "number": 0}},
 "tres": {"allocated": [{"type": "cpu", "name": null, "count": {"set": true, "infinite": false, "number": 2}}]},
 "required": {"CPUs": 2, "memory_per_cpu": {"set": true, "infinite": false, "number": 100}}},
{"job_id": 10, "user": "ann", "state": {"current": ["RUNNING"]}, "time": {"submission": 1, "start": 2, "end": 0},
 "tres": {"allocated": [{"type": "cpu", "name": "", "count": 4}]}},
{"job_id": 11, "user": "ann", "state": {"current": ["PENDING"]}, "time": {"submission": 1, "start": 0, "end": 0},
 "tres": {"allocated": []}, "required": {"CPUs": 4}},
{"job_id": 12, "user": "ann", "state": {"current": ["CANCELLED"]}, "time": {"submission": 1, "start": 9, "end": 9},
 "tres": {"allocated": []}, "required": {"CPUs": 4}}
]}"#;

#[test]
fn slurm_jobs_as_json_require_the_types_of_gpus_that_they_requested() {
    let requires = |text: &str| {
        let found = read(Format::SlurmJson, text);
        let notes = found.summary.assumptions.iter().filter(|sentence| sentence.contains("type of GPUs")).count();
        (found.workload.detail(Detail::Requires, 0).map(str::to_string), notes)
    };
    let gres = |name: &str| format!(r#"{{"type": "gres", "name": "{name}", "count": 2}}"#);
    let of = |requested: &str| {
        let requested = format!(r#""requested": [{{"type": "cpu", "name": "", "count": 4}}{requested}]"#);
        requires(&SACCT_JSON.replacen("\"requested\": []", &requested, 1))
    };
    let typed = format!(", {}, {}", gres("gpu"), gres("gpu:A100"));
    assert_eq!(of(&typed), (Some("gpu:a100".into()), 0));
    assert_eq!(of(&format!(", {}", gres("gpu:a100"))), (Some("gpu:a100".into()), 1));
    assert_eq!(of(&format!(", {}", gres("gpu"))), (None, 0));
    assert_eq!(requires(SACCT_JSON), (None, 1));
    // The queue also has the request itself, which names types where the site does not account for them.
    let of = |more: &str| requires(&SQUEUE_JSON.replacen("\"job_id\": 1,", &format!("\"job_id\": 1, {more},"), 1));
    assert_eq!(of(r#""tres_per_node": "gres/gpu:h100:1", "tres_per_task": """#), (Some("gpu:h100".into()), 0));
    assert_eq!(of(r#""tres_per_node": "gres:gpu:1""#), (None, 0));
}

/// Jobs of `squeue --json`: one that runs until its limit, one that waits.
const SQUEUE_JSON: &str = r#"{"jobs": [
{"job_id": 1, "user_name": "ann", "account": "phys", "partition": "cpu", "job_state": ["RUNNING"],
 "submit_time": {"set": true, "infinite": false, "number": 100}, "start_time": {"set": true, "infinite": false, "number": 110},
 "end_time": {"set": true, "infinite": false, "number": 3710}, "time_limit": {"set": true, "infinite": false, "number": 60},
 "tres_alloc_str": "cpu=8,mem=1G,node=1,gres/gpu=1", "tres_req_str": "cpu=8,mem=1G,node=1,gres/gpu=1"},
{"job_id": 2, "user_name": "bob", "account": "bio", "partition": "cpu", "job_state": "PENDING",
 "submit_time": 120, "start_time": 9999, "end_time": 0, "time_limit": 30, "node_count": {"set": true, "infinite": false, "number": 2}, "tres_req_str": "cpu=2,mem=512M"},
{"job_id": 3, "user_name": "bob", "job_state": ["PENDING"], "submit_time": 121, "start_time": 0, "cpus": 2,
 "time_limit": {"set": false, "infinite": true, "number": 0}}
]}"#;

#[test]
fn slurm_jobs_as_json() {
    let found = read(Format::Auto, SACCT_JSON);
    let expected = [
        "100 110 60 300 ann phys gpu cpu=4 mem=2147483648 gpu=2",
        "101 111 60 - bob bio cpu cpu=2 mem=209715200 gpu=0",
    ];
    assert_eq!((rows(&found), found.summary.format), (expected.map(str::to_string).to_vec(), Format::SlurmJson));
    assert_eq!(dropped(&found), [("still running", 1), ("never started", 2)]);
    assert_eq!(nodes(&found), [Some(2), None]);
    let assumed = found.summary.assumptions.join(" ");
    assert!(assumed.contains("1 job has a type of GPUs in AllocTRES and no known request"), "{assumed}");
    let component =
        r#""het": {"job_id": {"set": true, "number": 10}, "job_offset": {"set": true, "number": 1}}, "job_id""#;
    let component = read(Format::SlurmJson, &SACCT_JSON.replacen("\"job_id\"", component, 1));
    let assumed = component.summary.assumptions.join(" ");
    assert!(assumed.contains("1 job has the id of a component of a heterogeneous job"), "{assumed}");
    assert_eq!(found.workload.rows_with_requested_amounts(), 0);
    let asked = SACCT_JSON.replacen(
        "\"requested\": []",
        r#""requested": [{"type": "cpu", "name": "", "count": 3}, {"type": "mem", "name": "", "count": 1024}]"#,
        1,
    );
    let both = read(Format::SlurmJson, &asked).workload;
    let requested = ImportOptions { processors: Processors::Requested, ..options(Format::SlurmJson) };
    let requested = import(&bytes(asked.as_str()), &requested).unwrap();
    assert_eq!(rows(&requested)[0], "100 110 60 300 ann phys gpu cpu=3 mem=1073741824");
    assert_eq!(rows(&requested)[1], "101 111 60 - bob bio cpu cpu=2 mem=209715200");
    assert_eq!(both.with_requested_amounts().unwrap(), requested.workload);
    // Four processors with two GPUs; then five without.
    let requires = |text: String| read(Format::SlurmJson, &text).workload.detail(Detail::Requires, 0).map(String::from);
    let on_any = asked.replacen(
        r#"{"type": "cpu", "name": "", "count": 3}"#,
        r#"{"type": "cpu", "name": "", "count": 5}, {"type": "node", "name": "", "count": 1}"#,
        1,
    );
    assert_eq!(requires(on_any.clone()), None);
    let on_any = on_any.replacen("gpu:a100", "fpga", 1);
    assert_eq!(requires(on_any.clone()).as_deref(), Some("#tasks=1"), "{on_any}");
    let with_command =
        |command: &str| on_any.replacen("\"job_id\"", &format!("\"submit_line\": \"{command}\", \"job_id\""), 1);
    assert_eq!(requires(with_command("sbatch -n5 -N2 a")).as_deref(), Some("#tasks-on-nodes=1"));
    assert_eq!(requires(with_command("sbatch -n5 -N1-2 a")), None);
    assert_eq!(requires(with_command("sbatch --exclusive a")).as_deref(), Some("#excl"));

    let found = read(Format::Auto, SQUEUE_JSON);
    let expected = [
        "100 110 3600 3600 ann phys cpu cpu=8 mem=1073741824 gpu=1",
        "120 - 1800 1800 bob bio cpu cpu=2 mem=536870912 gpu=0",
    ];
    assert_eq!(rows(&found), expected);
    assert_eq!(dropped(&found), [("unfinished, without a time limit", 1)]);
    assert_eq!(nodes(&found), [None, Some(2)]);
    let assumed = found.summary.assumptions.join(" ");
    assert!(assumed.contains("2 jobs have not ended; the run time is taken to be the time limit"), "{assumed}");
}

#[test]
fn errors_in_json_name_the_job() {
    let found = refused(&options(Format::SlurmJson), SACCT_JSON.replace("\"end\": 170", "\"end\": 17"));
    assert!(found.starts_with("trace:2:1: found an end 93 s before the start"), "{found}");
    // Inside Slurm, 2^32 - 2 means that there is no value.
    let cancelled = SACCT_JSON.replace("\"start\": 110", "\"start\": 4294967294");
    assert_ne!(cancelled, SACCT_JSON);
    assert_eq!(dropped(&read(Format::SlurmJson, &cancelled)), [("never started", 3), ("still running", 1)]);
    let found = refused(&options(Format::SlurmJson), &SACCT_JSON[..200]);
    assert!(found.contains("found invalid JSON"), "{found}");
    // The wrong format is named, not the first thing that is wrong with it.
    let found = refused(&options(Format::Batsim), SACCT_JSON);
    assert_eq!(
        found,
        "trace: found a file that looks like jobs of Slurm as JSON, expected a Batsim workload; pass --from slurm-json"
    );
    let found = refused(&options(Format::Swf), PBS);
    assert!(found.ends_with("expected a log in the Standard Workload Format; pass --from pbs"), "{found}");
}

/// The records of two jobs, of OpenPBS and of TORQUE, and of one that was deleted while it waited.
const PBS: &str = "\
# a collection
12/21/2024 17:58:09;Q;1.s;user=ann group=meta queue=workq
12/21/2024 17:58:09;S;1.s;user=ann group=meta queue=workq ctime=100 start=110
12/21/2024 18:28:15;E;1.s;user=ann group=meta project=_pbs_project_default account=\"my lab\" jobname=it's queue=workq ctime=100 \
qtime=100 etime=100 start=110 exec_host=t2/0+t2/1 Resource_List.mem=600mb Resource_List.ncpus=2 Resource_List.ngpus=1 \
Resource_List.walltime=02:00:00 session=1 end=1910 Exit_status=0 resources_used.diag_messages='{}' resources_used.walltime=00:30:01
10/22/2017 22:47:00;E;2.m;user=bob group=bio jobname=HR queue=batch ctime=200 qtime=200 etime=200 start=320 owner=bob@gw \
exec_host=c8/0-15 Resource_List.neednodes=1:ppn=16 Resource_List.nodes=1:ppn=16 Resource_List.vmem=2gb \
Resource_List.walltime=3600 total_execution_slots=16 end=330
10/22/2017 22:48:00;D;3.m;requestor=bob@gw
";

#[test]
fn pbs_accounting() {
    let found = read(Format::Auto, PBS);
    let expected = [
        "100 110 1800 7200 ann my lab workq cpu=2 mem=629145600 gpu=1",
        "200 320 10 3600 bob bio batch cpu=16 mem=2147483648 gpu=0",
    ];
    assert_eq!((rows(&found), found.summary.format), (expected.map(str::to_string).to_vec(), Format::Pbs));
    assert_eq!(nodes(&found), [Some(1), Some(1)]);
    assert_eq!(dropped(&found), [("records of other events than a job's end", 3)]);
    let assumed = found.summary.assumptions.join(" ");
    assert!(assumed.contains("1 job has a request of virtual memory only"), "{assumed}");
    for (from, to, message) in [
        ("start=110 exec", "start=x exec", "found \"x\", expected start: seconds since 1970"),
        ("end=330", "end=30", "trace:5:1: found an end 290 s before the start"),
        ("10/22/2017 22:48", "10/22/17 22:48", "expected MM/DD/YYYY HH:MM:SS;T;id;key=value"),
    ] {
        let found = refused(&options(Format::Pbs), PBS.replacen(from, to, 1));
        assert!(found.contains(message), "{found}\n{message}");
    }
    // An optional field that is malformed does not cost the job.
    let lenient = ImportOptions { lenient: true, ..ImportOptions::default() };
    let text = PBS.replace("walltime=02:00:00", "walltime=soon");
    let strict = import(&bytes(text.clone()), &options(Format::Pbs)).unwrap_err().to_string();
    assert!(strict.contains("\"soon\", expected Resource_List.walltime: a duration"), "{strict}");
    let found = import(&bytes(text), &lenient).unwrap();
    assert_eq!(rows(&found)[0], "100 110 1800 - ann my lab workq cpu=2 mem=629145600 gpu=1");
}

/// Records of SGE and of Univa, whose times are in milliseconds; a job's name with colons; a task of a parallel job; a
/// job that failed before it began.
const GRID_ENGINE: &str = "\
# Version: 6.2u5
q1:h1:grp:ann:a:b:22947:sge:0:1310761621:1311095354:1311095414:0:0:60:60.05:0.08:104188.0:0:0:0:0:28001:0:0:0.0:24:0:0:0:41:549:\
NONE:defaultdepartment:mype:4:0:60.13:7.33:0.00:-l h_rt=36000,h_vmem=2G -pe mype 4:0.0:NONE:189153280.0:0:0
q1:h2:grp:ann:a:22947:sge:0:0:1311095354:1311095414:0:0:60:60.05:0.08:104188.0:0:0:0:0:28001:0:0:0.0:24:0:0:0:41:549:\
NONE:defaultdepartment:mype:4:0:60.13:7.33:0.00:NONE:0.0:1.h2:189153280.0:0:0
q1:h1:grp:ann:c:22948:sge:0:1310761621:0:0:26:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:\
physics:defaultdepartment:NONE:1:0:0:0:0:NONE:0.0:NONE:0:0:0
gpuq:g1:grp:bob:gpujob:4437956:sge:0:1652111621288:1652111622875:1652124460193:0:0:12837.318:198688.2:102.1:648376:0:0:0:0:3023988:\
0:0:0:8:0:0:0:656204:268918:NONE:dep:threads:16:0:198790.3:1680849.5:0.49:-u bob -l gpu=1,m_mem_free=1.000G -pe threads 16:\
0.0:NONE:9323855872:0:0:NONE:NONE:668106752:638583808:dev1:X:qsub x.sh
";

#[test]
fn grid_engine_accounting() {
    let found = read(Format::Auto, GRID_ENGINE);
    let expected = [
        "1310761621 1311095354 60 36000 ann grp q1 cpu=4 mem=8589934592 gpu=0",
        "1652111621.288 1652111622.875 12837.318 - bob dep gpuq cpu=16 mem=17179869184 gpu=1",
    ];
    assert_eq!((rows(&found), found.summary.format), (expected.map(str::to_string).to_vec(), Format::GridEngine));
    let reasons = [("tasks of a parallel job, which its own record counts", 1), ("never started", 1)];
    assert_eq!(dropped(&found), reasons);
    let found = refused(&options(Format::GridEngine), "q:h:g:o:n\n");
    assert!(found.starts_with("trace:1:1: found 5 fields, expected a record of Grid Engine"), "{found}");
    // The field that is malformed is named, also behind a name with a colon.
    for (from, to, message) in [
        ("1311095414:", "abc:", "found \"abc\", expected field 11 (end_time): a whole number; "),
        (
            "1311095414:",
            "99999999999999999999:",
            "expected field 11 (end_time): a whole number, at most 18446744073709551615",
        ),
    ] {
        assert!(GRID_ENGINE.contains(from), "{GRID_ENGINE}");
        let found = refused(&options(Format::GridEngine), GRID_ENGINE.replacen(from, to, 1));
        assert!(found.contains(message), "{found}");
    }
}

/// A record of LSF 10.1 with two hosts and two GPUs on each, an old one that ends early, and another event.
const LSF: &str = r#""JOB_FINISH" "10.1" 1739925001 83630 2406 38076851 4 1739924216 0 0 1739924226 "ann" "gpu" " rusage[mem=6000]" "" "" "login1" "" "" "%J.out" "%J.err" "1739924216.83630" 0 2 "2*host1" "2*host2" 64 12.5 "a ""b"" c" "x" 10.07 1.04 114324 0 -1 0 0 121077 42 0 112 376 -1 0 0 0 4071 259 -1 "ann@example.com" "proj" 14 2 "" "" 0 102400 0 "" "" "" "" 0 "" 14 "" -1 "/p/ann" "" "" "" -1 "" "" 6160 "" 1739924216 "" "" 2 1058 1 1042 "num=2" 1 "host1" 1 2 3 4 1 "x" 28800 0 100352 "select[type == local] rusage[mem=6000.00,ngpus_physical=2.00] " ""
"JOB_START" "10.1" 1739924226 83630
"JOB_FINISH" "5.1" 1000 7 0 0 1 900 0 0 0 "bob" "normal" "" "" "" "h" "" "" "" "" "x" 0 0 32 1.0 "n" "c" 0 0
"JOB_FINISH" "5.1" 1000 8 0 0 3 900 0 0 940 "bob" "normal" "" "" "" "h" "" "" "" "" "x" 0 0 32 1.0 "n" "c" 0 0
"#;

#[test]
fn lsf_accounting() {
    let found = read(Format::Auto, LSF);
    let expected = [
        "900 940 60 - bob - normal cpu=3 mem=0 gpu=0",
        "1739924216 1739924226 775 28800 ann proj gpu cpu=4 mem=6291456000 gpu=4",
    ];
    assert_eq!((rows(&found), found.summary.format), (expected.map(str::to_string).to_vec(), Format::Lsf));
    // Two hosts, in the order of the submissions after a job whose host is not known.
    assert_eq!(nodes(&found), [None, Some(2)]);
    assert_eq!(dropped(&found), [("records of other events than a job's end", 1), ("never started", 1)]);
    // Two tasks of an array, which started in the same second.
    let first = LSF.lines().next().unwrap();
    let task = |index: u32| first.replacen("14 2 \"\" \"\" 0 102400", &format!("14 2 \"\" \"\" {index} 102400"), 1);
    let found = read(Format::Auto, &format!("{}\n{}\n", task(1), task(2)));
    assert!(!found.summary.to_string().contains("repeat"), "{}", found.summary);
    assert_eq!([0, 1].map(|row| found.workload.detail(Detail::Array, row)), [Some("83630"); 2]);
    let cut = refused(&options(Format::Lsf), &LSF[..120]);
    assert!(cut.contains("found 14 fields") || cut.contains("quotation mark"), "{cut}");
}

/// The history file of HTCondor: a job that ran, one of a scheduler's universe, one that was removed while it waited, and
/// the same as JSON.
const HTCONDOR: &str = "\
ClusterId = 12\nProcId = 0\nOwner = \"ann\"\nAcctGroup = \"group_physics\"\nQDate = 100\nJobStartDate = 110\n\
JobCurrentStartDate = 120\nNumJobStarts = 2\nCompletionDate = 180\nJobStatus = 4\nJobUniverse = 5\nRequestCpus = 1\n\
CpusProvisioned = 2\nRequestMemory = 1024\nRequestGPUs = 1\nRequirements = (Arch == \"X86_64\")\n\
*** Offset = 0 ClusterId = 12 ProcId = 0 Owner = \"ann\" CompletionDate = 180\n\
ClusterId = 13\nQDate = 100\nJobUniverse = 7\nJobStatus = 4\n\
*** Offset = 400 ClusterId = 13\n\
ClusterId = 14\nowner = \"bob\"\nQDate = 101\nJobStatus = 3\nEnteredCurrentStatus = 150\nRequestCpus = ifthenelse(x, 1, 2)\n";

#[test]
fn htcondor_history() {
    let found = read(Format::Auto, HTCONDOR);
    let expected = ["100 120 60 - ann group_physics - cpu=2 mem=1073741824 gpu=1"];
    assert_eq!((rows(&found), found.summary.format), (expected.map(str::to_string).to_vec(), Format::HtCondor));
    assert_eq!(nodes(&found), [Some(1)]);
    let reasons = [("jobs of the scheduler or local universe, which hold no machine", 1), ("never started", 1)];
    assert_eq!(dropped(&found), reasons);
    let assumed = found.summary.assumptions.join(" ");
    assert!(assumed.contains("1 job has started more than once"), "{assumed}");
    let json = r#"[{"ClusterId": 12, "Owner": "ann", "AccountingGroup": "group_physics.ann", "QDate": 100,
        "JobCurrentStartDate": 120, "CompletionDate": 180, "JobStatus": 4, "RequestCpus": "x + 1", "RequestMemory": 1024}]"#;
    let found = read(Format::Auto, json);
    assert_eq!(rows(&found), ["100 120 60 - ann group_physics - cpu=1 mem=1073741824"]);
    assert!(found.summary.assumptions.join(" ").contains("1 job has no number of processors, or an expression"));
    let lines = json.trim_matches(['[', ']']).replace('\n', " ");
    assert_eq!(read(Format::Auto, &format!("{lines}\n{lines}\n")).workload.tasks(), 2);
    let found = refused(&options(Format::HtCondor), "ClusterId = 1\n12 = x\n");
    assert!(found.starts_with("trace:2:1: found \"12 = x\", expected Attribute = value"), "{found}");
}

#[test]
fn oar_and_flux_jobs() {
    let oar = r#"{"36627": {"Job_Id": 36627, "owner": "ann", "project": "default", "queue": "besteffort", "state": "Terminated",
        "submissionTime": "100", "startTime": 110, "stopTime": 170, "walltime": 3600, "assigned_resources": [419, 420, 421],
        "assigned_network_address": ["n1", "n2"]},
        "36628": {"owner": "ann", "submissionTime": 100, "startTime": 0, "stopTime": 0, "assigned_resources": []}}"#;
    let found = read(Format::Auto, oar);
    assert_eq!(
        (rows(&found), found.summary.format),
        (vec!["100 110 60 3600 ann default besteffort cpu=3".to_string()], Format::Oar)
    );
    assert_eq!(nodes(&found), [Some(2)]);
    assert_eq!(dropped(&found), [("never started", 1)]);
    let flux = r#"{"jobs": [{"id": 1, "userid": 1234, "t_submit": 100.25, "t_run": 110.5, "t_cleanup": 170.5, "t_inactive": 171,
        "state": 64, "ntasks": 1, "ncores": 8, "nnodes": 2, "duration": 0.0, "queue": "batch", "bank": "lab"},
        {"id": 2, "userid": 1234, "t_submit": 100.5, "ntasks": 6, "duration": 60.0}]}"#;
    let found = read(Format::Auto, flux);
    assert_eq!(
        (rows(&found), found.summary.format),
        (vec!["100.25 110.5 60 - 1234 lab batch cpu=8".to_string()], Format::Flux)
    );
    assert_eq!(nodes(&found), [Some(2)]);
    assert_eq!(dropped(&found), [("never started", 1)]);
}

/// The events of the README of the Slurm simulator, one of them with GPUs.
const EVENTS: &str = "\
-dt 0 -e submit_batch_job | -J jobid_1001 -sim-walltime 0 --uid=user5 -t 00:01:00 -n 12 --ntasks-per-node=12 -A account2 -p normal -q normal pseudo.job
-dt 1 -e submit_batch_job | -J jobid_1002 -sim-walltime -1 --uid=user1 -t 00:01:00 -n 1 --ntasks-per-node=1 -A account1 -p normal pseudo.job
-dt 16 -e submit_batch_job | -J jobid_1004 -sim-walltime 21 --uid=user3 -t 2 -n 24 --ntasks-per-node=12 --mem=500 --gres=gpu:2 -p normal pseudo.job
-dt 99 -e cancel_job | -J jobid_1001
";

#[test]
fn events_of_the_slurm_simulator() {
    let found = read(Format::Auto, EVENTS);
    let expected = [
        "0 - 0 60 user5 account2 normal cpu=12 mem=0 gpu=0",
        "1 - 60 60 user1 account1 normal cpu=1 mem=0 gpu=0",
        "16 - 21 120 user3 - normal cpu=24 mem=1048576000 gpu=4",
    ];
    assert_eq!((rows(&found), found.summary.format), (expected.map(str::to_string).to_vec(), Format::SlurmSimulator));
    assert_eq!(nodes(&found), [Some(1), Some(1), Some(2)]);
    let typed = read(Format::Auto, &EVENTS.replace("gpu:2", "gpu:H100:2")).workload;
    assert_eq!([1, 2].map(|row| typed.detail(Detail::Requires, row)), [None, Some("gpu:h100")]);
    assert_eq!(dropped(&found), [("records of other events than a job's end", 1)]);
    let found = refused(&options(Format::SlurmSimulator), EVENTS.replace("-n 24", "-n x"));
    assert!(found.starts_with("trace:3:") && found.contains("found \"x\", expected a whole number"), "{found}");
}

/// A job of OpenPBS with this request; the rest is as PBS writes it.
fn pbs_with(request: &str) -> String {
    format!(
        "12/21/2024 18:28:15;E;1.s;user=ann group=meta queue=workq ctime=100 qtime=100 etime=100 start=110 \
         exec_host=n1/0*4+n2/0*20 {request} Resource_List.walltime=02:00:00 end=1910 Exit_status=0\n"
    )
}

#[test]
fn chunks_of_pbs_are_those_of_select() {
    let with = |request: &str| {
        let found = read(Format::Pbs, &pbs_with(request));
        let details = [Detail::Chunks, Detail::Requires].map(|d| found.workload.detail(d, 0).map(str::to_string));
        (rows(&found)[0].split_once("workq ").unwrap().1.to_string(), details, found.summary.assumptions.join(" "))
    };
    let two = "Resource_List.select=2:ncpus=4:mem=8gb:ssd=True+1:ncpus=16:mem=1gb:ngpus=2:ssd=True";
    // The server sums up what is requested; without the sums they are those of the chunks.
    let sums =
        format!("Resource_List.ncpus=24 Resource_List.mem=17gb Resource_List.ngpus=2 Resource_List.place=excl {two}");
    for (request, requires) in [(sums.as_str(), "ssd,#excl"), (two, "ssd")] {
        let (amounts, details, assumed) = with(request);
        assert_eq!(amounts, "cpu=24 mem=18253611008 gpu=2");
        let chunks = "2:cpu=4:mem=8589934592+1:cpu=16:mem=1073741824:gpu=2".to_string();
        assert_eq!(details, [Some(chunks), Some(requires.to_string())]);
        assert!(!assumed.contains("Resource_List"), "{assumed}");
    }
    // Chunks on one host are one.
    let packed = with("Resource_List.ncpus=8 Resource_List.select=2:ncpus=4 Resource_List.place=pack");
    assert_eq!((packed.0.as_str(), packed.1), ("cpu=8", [None, None]));
    let spread = with("Resource_List.ncpus=8 Resource_List.select=2:ncpus=4 Resource_List.place=scatter");
    assert_eq!(spread.1, [Some("2:cpu=4".to_string()), Some("#scatter".to_string())]);
    // A job that was altered.
    let altered = with("Resource_List.ncpus=9 Resource_List.select=2:ncpus=4");
    assert_eq!((altered.0.as_str(), altered.1), ("cpu=9", [None, None]));
    assert!(
        altered.2.contains("1 job has a Resource_List.select whose processors are not the job's ncpus"),
        "{}",
        altered.2
    );
    let nodes = with("Resource_List.nodes=2:ppn=x Resource_List.ncpus=8");
    assert!(nodes.2.contains("1 job has a Resource_List.nodes that is no list such as 2:ppn=8+1:ppn=4"), "{}", nodes.2);
}

#[test]
fn a_malformed_select_of_pbs_is_found_with_its_place() {
    for (request, message) in [
        (
            "Resource_List.select=2:ncpus=4+x",
            "found \"x\", expected Resource_List.select: a number of chunks from 1 on",
        ),
        (
            "Resource_List.select=2:ncpus=4:mem=8xb",
            "found \"mem=8xb\", expected Resource_List.select: a size such as 8gb",
        ),
        ("Resource_List.place=scattered", "found \"scattered\", expected Resource_List.place: free, pack,"),
    ] {
        let text = pbs_with(&format!("Resource_List.ncpus=8 {request}"));
        let found = refused(&options(Format::Pbs), text.clone());

        assert!(found.starts_with("trace:1:") && found.contains(message), "{found}\n{message}");
        let at: usize = found.split(':').nth(2).unwrap().parse().unwrap();
        let quoted = message.split('"').nth(1).unwrap();
        assert_eq!(at, text.find(request).unwrap() + request.rfind(quoted).unwrap() + 1, "{found}");
    }
}

#[test]
fn jobs_of_pbs_have_what_they_were_allocated_or_requested() {
    let with = |request: &str, processors: Processors| {
        let text = pbs_with(request);
        let found = import(&bytes(text.clone()), &ImportOptions { processors, ..options(Format::Pbs) }).unwrap();
        let asked = found.workload.rows_with_requested_amounts();
        if processors == Processors::Allocated {
            let requested = ImportOptions { processors: Processors::Requested, ..options(Format::Pbs) };
            let requested = import(&bytes(text), &requested).unwrap();
            let taken =
                Imported { workload: Processors::Requested.of(found.workload.clone()).unwrap(), ..found.clone() };
            assert_eq!(rows(&taken), rows(&requested), "{request}");
        }
        let chunks = found.workload.detail(Detail::Chunks, 0).map(str::to_string);
        let amounts = rows(&found)[0].split_once("workq ").unwrap().1.to_string();
        (amounts, asked, chunks, found.summary.assumptions.join(" "))
    };
    let both = |request: &str| [Processors::Allocated, Processors::Requested].map(|which| with(request, which));
    // OpenPBS: a server gave more than the job asked for.
    let more = "exec_vnode=(n1:ncpus=8:mem=16gb:ngpus=1)+(n2:ncpus=8:mem=16gb) Resource_List.ncpus=4 \
                Resource_List.mem=8gb Resource_List.select=2:ncpus=2:mem=4gb";
    let [held, asked] = both(more);
    assert_eq!((held.0.as_str(), held.1, held.2), ("cpu=16 mem=34359738368 gpu=1", 1, None));
    assert!(held.3.contains("1 job has the amounts that were allocated (exec_vnode)."), "{}", held.3);
    assert!(held.3.contains("1 job requests other amounts than allocated"), "{}", held.3);
    let chunks = Some("2:cpu=2:mem=4294967296".to_string());
    assert_eq!((asked.0.as_str(), asked.1, asked.2), ("cpu=4 mem=8589934592", 0, chunks));
    assert!(asked.3.contains("1 job has the amounts that were requested (Resource_List)."), "{}", asked.3);
    // What vnodes do not state is as requested.
    let [held, asked] =
        both("exec_vnode=(n1:ncpus=4) Resource_List.ncpus=4 Resource_List.mem=1kb Resource_List.ngpus=1");
    assert_eq!((held.0.as_str(), held.1), ("cpu=4 mem=1024 gpu=1", 0));
    assert_eq!(asked.0, held.0);
    // TORQUE: ncpus is a default beside nodes, and memory of each processor is of those that it has.
    let torque = "total_execution_slots=24 Resource_List.ncpus=1 Resource_List.nodes=2:ppn=8 Resource_List.pmem=1kb";
    let [held, asked] = both(torque);
    assert_eq!((held.0.as_str(), held.1), ("cpu=24 mem=24576", 1));
    assert!(held.3.contains("1 job has the processors that were allocated (total_execution_slots"), "{}", held.3);
    assert_eq!(asked.0, "cpu=16 mem=16384");
    // Without either it is what was requested, or what there is.
    let [held, asked] = both("Resource_List.ncpus=6");
    assert_eq!((held.0.as_str(), asked.0.as_str()), ("cpu=6", "cpu=6"));
    assert!(held.3.contains("1 job has no allocated amounts, so that the requested ones are taken."), "{}", held.3);
    let [held, asked] = both("x=1");
    assert_eq!((held.0.as_str(), asked.0.as_str()), ("cpu=24", "cpu=24"));
    assert!(asked.3.contains("1 job has no requested processors"), "{}", asked.3);
}

#[test]
fn a_malformed_exec_vnode_is_found_with_its_place() {
    for (vnodes, found, expected) in [
        ("(n1:ncpus=four)", "ncpus=four", "a number of processors"),
        ("(n1:ncpus=4:mem=8xb)+(n2:ncpus=4)", "mem=8xb", "a size such as 8gb"),
        ("(n1:ncpus=4)+n2:ncpus=4", "n2:ncpus=4", "vnodes in parentheses, such as (n1:ncpus=4:mem=8gb)+(n2:ncpus=4)"),
    ] {
        let text = pbs_with(&format!("Resource_List.ncpus=8 exec_vnode={vnodes}"));
        let error = refused(&options(Format::Pbs), text.clone());
        let at = text.find("exec_vnode=").unwrap() + "exec_vnode=".len() + vnodes.rfind(found).unwrap() + 1;
        let expected = format!("trace:1:{at}: found \"{found}\", expected exec_vnode: {expected}");
        assert!(error.starts_with(&expected) && error.contains("--lenient"), "{error}\n{expected}");
    }
}

#[test]
fn jobs_keep_the_ids_of_their_logs() {
    let ids = |text: &str| read(Format::Auto, text).job_ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(ids(PBS), ["1.s", "2.m"]);
    assert_eq!(ids(GRID_ENGINE), ["22947", "4437956"]);
    // A task of an array.
    assert_eq!(
        ids(&GRID_ENGINE.replace(":mype:4:0:60.13:7.33:0.00:-l", ":mype:4:7:60.13:7.33:0.00:-l")),
        ["22947.7", "4437956"]
    );
    // In the order of the submissions.
    assert_eq!(ids(LSF), ["8", "83630"]);
    assert_eq!(ids(HTCONDOR), ["12.0"]);
    assert_eq!(ids(SACCT_JSON), ["8", "9"]);
    let task = r#""job_id": 8, "array": {"job_id": 7, "task_id": {"set": true, "infinite": false, "number": 3}},"#;
    assert_eq!(ids(&SACCT_JSON.replace("\"job_id\": 8,", task)), ["7_3", "9"]);
    let plain = r#""job_id": 8, "array": {"job_id": 0, "task_id": {"set": false, "infinite": false, "number": 0}},
        "het": {"job_id": 6, "job_offset": {"set": true, "infinite": false, "number": 1}},"#;
    assert_eq!(ids(&SACCT_JSON.replace("\"job_id\": 8,", plain)), ["6+1", "9"]);
    let array = |limit: &str| {
        let task = format!("\"job_id\": 8, \"array\": {{\"job_id\": 7, \"task_id\": 3 {limit}");
        read(Format::Auto, &SACCT_JSON.replace("\"job_id\": 8,", &task))
            .workload
            .detail(Detail::Array, 0)
            .map(str::to_string)
    };
    let limits = |most: &str| format!(", \"limits\": {{\"max\": {{\"running\": {{\"tasks\": {most}}}}}}}}},");
    assert_eq!(array(&limits("5")).as_deref(), Some("7%5"));
    assert_eq!(array(&limits(r#"{"set": true, "infinite": false, "number": 4}"#)).as_deref(), Some("7%4"));
    assert_eq!(array(&limits("0")).as_deref(), Some("7"));
    assert_eq!(
        array("}, \"array_max_tasks\": {\"set\": true, \"infinite\": false, \"number\": 2},").as_deref(),
        Some("7%2")
    );
    assert_eq!(read(Format::Auto, SACCT_JSON).workload.detail(Detail::Array, 0), None);
    let nice = |nice: &str| {
        let job = format!("\"job_id\": 8, \"nice\": {nice},");
        read(Format::Auto, &SACCT_JSON.replace("\"job_id\": 8,", &job))
            .workload
            .detail(Detail::Nice, 0)
            .map(str::to_string)
    };
    let values =
        ["100", "-50", "4294967246", r#"{"set": true, "infinite": false, "number": 7}"#, "0", "null"].map(nice);
    assert_eq!(
        values.each_ref().map(|nice| nice.as_deref()),
        [Some("100"), Some("-50"), Some("-50"), Some("7"), None, None]
    );
    assert_eq!(ids(SQUEUE_JSON)[0], "1");
    assert!(ids(EVENTS).is_empty(), "events of the simulator have no ids");
}
