use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::Instant;

use evenhand_model::{Span, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::parse_values::Limit;
use crate::queue::{Heterogeneous, Hold, Job};
use crate::run_commands::RecordedOutput;

fn queue(jobs: Value) -> Result<Queue, RestError> {
    let text = jobs_as_squeue_table::table(
        json!({ "jobs": jobs, "errors": [], "meta": { "x": [1, 2] } }).to_string().as_bytes(),
    )?;
    Ok(Queue::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// The forms of numbers and states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// v0.0.38
    Plain,
    /// v0.0.39
    Objects,
    /// v0.0.40
    Lists,
    /// v0.0.41, where nodes are an object
    Nodes,
    /// v0.0.41+complex
    Complex,
}

const SHAPES: [Shape; 5] = [Shape::Plain, Shape::Objects, Shape::Lists, Shape::Nodes, Shape::Complex];

impl Shape {
    fn number(self, value: Option<i64>) -> Value {
        match self {
            Shape::Plain | Shape::Complex => value.map_or(Value::Null, Value::from),
            _ => json!({ "set": value.is_some(), "infinite": false, "number": value.unwrap_or(0) }),
        }
    }

    fn infinite(self) -> Value {
        match self {
            Shape::Plain => Value::Null,
            Shape::Complex => "Infinity".into(),
            _ => json!({ "set": false, "infinite": true, "number": 0 }),
        }
    }

    fn states(self, words: &[&str]) -> Value {
        match self {
            Shape::Plain | Shape::Objects => words[words.len() - 1].into(),
            _ => words.into(),
        }
    }

    fn nice(self, nice: i64) -> Value {
        match self {
            Shape::Plain if nice == 0 => Value::Null,
            Shape::Plain => (nice as i32 as u32).into(),
            _ => nice.into(),
        }
    }

    fn nodes(self, nodes: &str) -> Value {
        if self == Shape::Nodes { json!({ "count": 2, "list": nodes }) } else { nodes.into() }
    }

    /// A waiting job array.
    fn array(self) -> Value {
        json!({
            "job_id": 6, "array_job_id": self.number(Some(6)), "array_task_id": self.number(None),
            "array_task_string": "1-1000%5", "het_job_id": self.number(Some(0)), "het_job_offset": self.number(Some(0)),
            "user_name": "ann", "user_id": 7, "account": "art", "partition": "main,fast", "qos": "normal",
            "job_state": self.states(&["PENDING"]), "state_reason": "Priority", "state_description": "",
            "submit_time": self.number(Some(1_795_289_080)), "eligible_time": self.number(Some(1_795_289_090)),
            "start_time": self.number(Some(0)), "end_time": self.number(Some(0)), "time_limit": self.number(Some(2890)),
            "priority": self.number(Some(4_294_901_755)), "nice": self.nice(-50), "dependency": "afterok:3(unfulfilled)",
            "node_count": self.number(Some(2)), "cpus": self.number(Some(8)), "tasks": self.number(Some(4)),
            "memory_per_cpu": self.number(Some(500)), "memory_per_node": self.number(None),
            "tres_req_str": "cpu=8,mem=4000M,node=2,billing=8", "tres_alloc_str": "", "tres_per_node": "gres:gpu:2",
            "tres_per_job": "", "tres_per_socket": "", "tres_per_task": "gres/gpu:l4:1", "features": "a|b", "resv_name": "week",
            "nodes": self.nodes(""), "restart_cnt": 3, "licenses": "matlab:1", "flags": ["JOB_MEM_SET"], "hold": null
        })
    }
}

#[test]
fn all_versions_give_the_same_job() {
    for shape in SHAPES {
        let queue = queue(json!([shape.array()])).unwrap();
        let job = &queue.jobs[0];
        let array = job.array.as_ref().map(|a| (a.job, a.tasks.to_string()));
        assert_eq!((job.id, array), (6, Some((6, "1-1000%5".into()))), "{shape:?}");
        assert_eq!((job.tasks(), job.heterogeneous, job.held()), (1000, None, None));
        assert_eq!(
            (job.user.as_str(), job.account.as_deref(), job.qos.as_deref()),
            ("ann", Some("art"), Some("normal"))
        );
        assert_eq!((job.partitions.join(" ").as_str(), job.state.name()), ("main fast", "PENDING"));
        assert_eq!(
            (job.submit, job.eligible),
            ((Time::checked_from_secs(1_795_289_080)), Time::checked_from_secs(1_795_289_090))
        );
        assert_eq!((job.start, job.end), (None, None));
        assert_eq!((job.limit.to_string().as_str(), job.nice), ("2-00:10:00", Some(-50)), "{shape:?}");
        assert_eq!(
            (job.priority, job.nodes, job.cpus, job.processes),
            (Some(4_294_901_755), Some(2), Some(8), Some(4))
        );
        assert_eq!(job.min_memory, Some((500u128 << 20) * 1_000_000_000));
        assert_eq!((job.requested.cpus(), job.requested.bytes(), job.requested.nodes()), (8, 4000 << 20, Some(2)));
        assert_eq!((job.per_node[0].count, job.per_task[0].kind.as_deref(), job.per_job.len()), (2, Some("l4"), 0));
        assert_eq!((job.features.as_deref(), job.reservation.as_deref()), (Some("a|b"), Some("week")));
        assert_eq!((job.node_list.as_deref(), job.restarts, job.licences.as_deref()), (None, 3, Some("matlab:1")));
        assert_eq!(job.dependency.as_deref(), Some("afterok:3(unfulfilled)"));
    }
}

/// Returns the array with other values.
fn with(shape: Shape, changes: Value) -> Value {
    let mut job = shape.array();
    for (name, value) in changes.as_object().unwrap() {
        job[name] = value.clone();
    }
    job
}

#[test]
fn components_holds_and_running_jobs_equal_those_of_squeue() {
    for shape in SHAPES {
        let part = json!({
            "job_id": 11, "array_job_id": shape.number(Some(0)), "array_task_string": "", "het_job_id": shape.number(Some(10)),
            "het_job_offset": shape.number(Some(1)), "job_state": shape.states(&["RUNNING", "CONFIGURING"]),
            "nodes": shape.nodes("n[2-3]"), "time_limit": shape.infinite(), "end_time": shape.number(Some(1_826_831_776)),
            "tres_alloc_str": "cpu=2,node=1", "nice": shape.nice(0), "state_reason": "None"
        });
        let task = json!({ "job_id": 3, "array_job_id": shape.number(Some(2)), "array_task_id": shape.number(Some(0)), "array_task_string": "" });
        let held = json!({
            "job_id": 9, "array_job_id": shape.number(Some(0)), "array_task_string": "", "priority": shape.number(Some(0)),
            "state_reason": "JobHeldUser", "memory_per_cpu": shape.number(None)
        });
        let ended = json!({ "job_id": 4, "job_state": shape.states(&["COMPLETED"]) });
        let queue =
            queue(json!([with(shape, part), with(shape, held), with(shape, ended), with(shape, task)])).unwrap();
        let ids: Vec<u64> = queue.jobs.iter().map(|job| job.id).collect();
        assert_eq!(ids, [3, 9, 11], "in the order of ids, without jobs that have ended");
        let [task, held, part] = &queue.jobs[..] else { panic!("three") };
        assert_eq!(task.array.as_ref().map(|a| (a.job, a.tasks.first(), a.tasks.count())), Some((2, Some(0), 1)));
        assert_eq!((held.held(), held.array.as_ref(), held.min_memory), (Some(Hold::User), None, Some(0)));
        assert_eq!(part.heterogeneous, Some(Heterogeneous { job: 10, offset: 1 }));
        assert_eq!((part.state.name(), part.limit, part.end), ("CONFIGURING", Limit::None, None), "{shape:?}");
        assert_eq!((part.node_list.as_deref(), part.nice), (Some("n[2-3]"), Some(0)));
        assert_eq!((part.requested.cpus(), part.reason.as_deref()), (2, None));
    }
    let ends = |words: Value| {
        let job = with(Shape::Lists, json!({ "job_state": words }));
        queue(json!([job])).unwrap().jobs.first().map(|job| job.state.name().to_string())
    };
    assert_eq!(ends(json!(["COMPLETED", "COMPLETING"])).as_deref(), Some("COMPLETING"));
    assert_eq!(ends(json!(["RUNNING", "SIGNALING", "RESIZING"])).as_deref(), Some("RESIZING"));
    assert_eq!(ends(json!(["PENDING", "LAUNCH_WELL"])).as_deref(), Some("LAUNCH_WELL"), "unknown states are kept");
    assert_eq!((ends(json!(["PENDING", "REVOKED"])), ends(json!("TIMEOUT"))), (None, None));
}

#[test]
fn an_unexpected_form_is_reported_with_its_path() {
    let error_of =
        |changes: Value| queue(json!([Shape::Plain.array(), with(Shape::Lists, changes)])).unwrap_err().to_string();
    let ends = "; this version of its API is not understood";
    assert_eq!(
        error_of(json!({ "cpus": "many" })),
        format!("slurmrestd: jobs[1].cpus: found \"\\\"many\\\"\", expected a number{ends}")
    );
    assert!(
        error_of(json!({ "time_limit": { "set": true, "number": "x" } })).contains("jobs[1].time_limit.number: found")
    );
    assert!(
        error_of(json!({ "priority": { "number": 1 } }))
            .contains("jobs[1].priority.set: found nothing, expected true or false")
    );
    assert!(error_of(json!({ "nodes": { "names": [] } })).contains("jobs[1].nodes.list: found nothing"));
    assert!(error_of(json!({ "job_id": null })).contains("jobs[1].job_id: found nothing, expected a job's number"));
    assert!(error_of(json!({ "job_state": [] })).contains("jobs[1].job_state"));
    assert!(error_of(json!({ "job_state": [7] })).contains("expected a text, or a list of texts"));
    assert!(
        error_of(json!({ "array_task_string": "1,3,5,...%2" }))
            .contains("(jobs[1].array_task_string): start it with SLURM_BITSTR_LEN=0")
    );
    let error = |body: &str| jobs_as_squeue_table::table(body.as_bytes()).unwrap_err().to_string();
    assert!(error("<html>").contains("is not JSON"));
    assert!(error("{\"jobs\": [{\"job_id\": 1}").contains("is not JSON"));
    assert!(error("{\"jobs\": [7]}").contains("line 1, column 11: found"), "{}", error("{\"jobs\": [7]}"));
    assert!(error("{\"jobs\": {}}").contains("expected jobs as a list of objects"));
    assert!(error("{}").contains("jobs: found nothing, expected a list"));
    let reported =
        error("{\"jobs\": [], \"errors\": [{\"description\": \"no jobs\", \"error\": \"Access/permission denied\"}]}");
    assert!(
        reported.contains("no jobs: Access/permission denied (status 200); request only what you may see"),
        "{reported}"
    );
    assert!(queue(json!([])).unwrap().jobs.is_empty());
}

/// Starts a daemon that sends the responses in turn, and returns the requests.
fn daemon(socket: &Path, answers: Vec<String>) -> thread::JoinHandle<Vec<String>> {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut text, mut byte) = (Vec::new(), [0]);
            while !text.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
                text.push(byte[0]);
            }
            requests.push(String::from_utf8(text).unwrap().lines().next().unwrap().to_string());
            stream.write_all(answer.as_bytes()).unwrap();
        }
        requests
    })
}

fn http(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn the_newest_version_is_found_once_and_commands_serve_everything_else() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let body = json!({ "jobs": [Shape::Nodes.array()] }).to_string();
    let missing = || http(404, "no");
    let answers = vec![missing(), missing(), missing(), missing(), http(200, &body), http(200, &body)];
    let daemon = daemon(&socket, answers);
    let rest =
        Rest::new(&socket, None, RecordedOutput::default().with("scontrol", "by the command").with("squeue", "never"));
    assert_eq!(Queue::read(&rest).unwrap().jobs[0].tasks(), 1000);
    assert_eq!(Queue::read(&rest).unwrap().jobs[0].id, 6);
    assert_eq!(rest.run(&Call::new("scontrol", ["show", "config"])).unwrap(), "by the command");
    let requests = daemon.join().unwrap();
    let path = |version: u32| format!("GET /slurm/v0.0.{version}/jobs HTTP/1.1");
    assert_eq!(requests, [45, 44, 43, 42, 41, 41].map(path));
}

#[test]
fn each_failure_has_its_own_message() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let ask =
        |socket: &Path, version| Rest::new(socket, version, RecordedOutput::default()).queue().unwrap_err().to_string();
    let given = Some(ApiVersion(38));
    assert!(ask(&at("none"), None).contains("there is no socket"));
    drop(UnixListener::bind(at("silent")).unwrap());
    assert!(ask(&at("silent"), None).contains("no process listens"));
    fs::write(at("file"), "").unwrap();
    assert!(ask(&at("file"), None).contains("file"));
    let answered = |name: &str, answer: String| {
        let daemon = daemon(&at(name), vec![answer]);
        let error = ask(&at(name), given);
        daemon.join().unwrap();
        error
    };
    let error = answered("denied", http(401, "Authentication failure"));
    assert!(error.contains("rejects this user: Authentication failure; with rest_auth/local"), "{error}");
    let error = answered("old", http(404, "?"));
    assert!(error.contains("offers none of v0.0.38: start it with -s openapi/v0.0.38"), "{error}");
    let errors = json!({ "errors": [{ "error": "Unable to contact slurm controller" }], "jobs": [] }).to_string();
    let error = answered("dead", http(500, &errors));
    assert!(error.contains("Unable to contact slurm controller (status 500); the daemon does not respond"), "{error}");
    assert!(answered("words", http(500, "out of \n memory")).contains("slurmrestd: out of memory (status 500)"));
    assert!(answered("other", "SSH-2.0-OpenSSH\r\n".into()).contains("is not slurmrestd"));
    assert!(answered("page", http(200, "<html>")).contains("is not JSON"));

    let listener = UnixListener::bind(at("slow")).unwrap();
    let mut slow = Rest::new(at("slow"), given, RecordedOutput::default());
    slow.time_limit = Duration::from_millis(200);
    let begun = Instant::now();
    assert!(matches!(slow.queue(), Err(RestError::TimedOut { .. })), "a daemon that accepts nothing");
    let drip = thread::spawn(move || {
        drop(listener.accept());
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"A: b\r\n").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    assert!(matches!(slow.queue(), Err(RestError::TimedOut { .. })), "a daemon that sends byte after byte");
    drip.join().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(Queue::read(&slow).unwrap_err().is_environment());
}

#[derive(Clone, Debug)]
struct Made {
    id: i64,
    task: Option<i64>,
    het: Option<(i64, i64)>,
    times: [i64; 3],
    limit: Option<i64>,
    priority: i64,
    nice: i64,
    counts: [i64; 4],
    memory: Option<(bool, i64)>,
    texts: [String; 6],
    state: &'static str,
}

fn made() -> impl Strategy<Value = Made> {
    let text = || prop_oneof![Just(String::new()), "[a-z0-9_&|*()\"\\\\ /é\u{1f}\n-]{1,9}"];
    let first = (
        1i64..1 << 32,
        prop::option::of(0i64..4000),
        prop::option::of((1i64..1 << 32, 0i64..9)),
        prop::array::uniform3(0i64..4_000_000_000),
    );
    let second = (
        prop::option::of(0i64..1 << 26),
        0i64..1 << 32,
        -2_147_483_645i64..2_147_483_645,
        prop::array::uniform4(0i64..1 << 31),
    );
    let third = (prop::option::of((any::<bool>(), 1i64..1 << 40)), prop::array::uniform6(text()));
    let state = prop::sample::select(vec!["PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "NEW_STATE"]);
    (first, second, third, state).prop_map(|(first, second, third, state)| Made {
        id: first.0,
        task: first.1,
        het: first.2,
        times: first.3,
        limit: second.0,
        priority: second.1,
        nice: second.2,
        counts: second.3,
        memory: third.0,
        texts: third.1,
        state,
    })
}

fn written(made: &Made, shape: Shape) -> Value {
    let number = |n: i64| shape.number(Some(n));
    let [submit, start, end] = made.times.map(number);
    let [nodes, cpus, tasks, restarts] = made.counts;
    let [account, qos, dependency, features, node_list, licences] = made.texts.clone();
    let memory = |per_cpu: bool| shape.number(made.memory.filter(|m| m.0 == per_cpu).map(|m| m.1));
    json!({
        "job_id": made.id, "array_job_id": number(made.task.map_or(0, |_| 77)), "array_task_id": shape.number(made.task),
        "array_task_string": "", "het_job_id": number(made.het.map_or(0, |h| h.0)),
        "het_job_offset": number(made.het.map_or(0, |h| h.1)), "user_name": "ann", "account": account, "qos": qos,
        "job_state": shape.states(&[made.state]), "submit_time": submit, "start_time": start, "end_time": end,
        "time_limit": made.limit.map_or(shape.infinite(), number), "priority": number(made.priority),
        "nice": shape.nice(made.nice), "dependency": dependency, "node_count": number(nodes), "cpus": number(cpus),
        "tasks": number(tasks), "memory_per_cpu": memory(true), "memory_per_node": memory(false),
        "features": features, "nodes": shape.nodes(&node_list), "licenses": licences, "restart_cnt": restarts
    })
}

/// Returns the value of a text field after it was in a table: without control characters, trimmed.
fn meant(text: &str) -> Option<String> {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

fn same(job: &Job, made: &Made) -> Result<(), TestCaseError> {
    let n = |value: i64| u64::try_from(value).unwrap();
    let moment = |at: i64| Time::checked_from_secs(n(at)).filter(|_| at > 0);
    prop_assert_eq!(job.id, n(made.id));
    prop_assert_eq!(job.array.as_ref().map(|a| (a.job, a.tasks.first())), made.task.map(|task| (77, Some(n(task)))));
    prop_assert_eq!(job.heterogeneous, made.het.map(|(job, offset)| Heterogeneous { job: n(job), offset: n(offset) }));
    prop_assert_eq!([job.submit, job.start], [made.times[0], made.times[1]].map(moment));
    prop_assert_eq!(job.end, made.limit.and_then(|_| moment(made.times[2])));
    prop_assert_eq!(job.limit, made.limit.map_or(Limit::None, |m| Limit::Span(Span::from_secs(60 * n(m)))));
    prop_assert_eq!((job.priority, job.nice), (Some(n(made.priority)), Some(made.nice)));
    let counts = [job.nodes, job.cpus, job.processes, Some(job.restarts)];
    prop_assert_eq!(counts, made.counts.map(|count| Some(n(count))));
    let bytes = made.memory.map_or(0, |(_, megabytes)| u128::from(n(megabytes)) << 20);
    prop_assert_eq!(job.min_memory, Some(bytes * 1_000_000_000));
    let texts = [&job.account, &job.qos, &job.dependency, &job.features, &job.node_list, &job.licences];
    prop_assert_eq!(texts.map(Clone::clone), made.texts.clone().map(|text| meant(&text)));
    prop_assert_eq!(job.state.name(), made.state);
    Ok(())
}

proptest! {
    #[test]
    fn a_job_reads_back_in_every_version(list in prop::collection::vec(made(), 1..5)) {
        let mut list = list;
        list.sort_by_key(|made| made.id);
        list.dedup_by_key(|made| made.id);
        for shape in SHAPES {
            let jobs: Vec<Value> = list.iter().rev().map(|made| written(made, shape)).collect();
            let queue = queue(Value::from(jobs)).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(queue.jobs.len(), list.len());
            for (job, made) in queue.jobs.iter().zip(&list) {
                same(job, made)?;
            }
        }
    }

    #[test]
    fn no_response_causes_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..80), text in "(HTTP/1.1 [0-9]{3} [A-Z]{0,3}\r\n)?([A-Za-z-]{0,9}: ?[a-z0-9]{0,4}\r\n){0,3}(\r\n)?[0-9a-f]{0,4}(\r\n)?[^\r]{0,9}",
        name in prop::sample::select(vec!["job_id", "job_state", "nice", "nodes", "time_limit", "array_task_string", "qos"]),
        value in "[0-9]{1,21}|-[0-9]{1,20}|[0-9.e]{1,6}|\"[a-z,.]{0,5}\"|\\[[0-9]?\\]|\\{\"set\": true, \"number\": -?[0-9]{1,20}\\}|null|true",
    ) {
        for bytes in [&bytes[..], text.as_bytes()] {
            let _ = (jobs_as_squeue_table::table(bytes), jobs_as_squeue_table::complaints(bytes));
        }
        let mut job = Shape::Plain.array();
        if let Ok(value) = serde_json::from_str(&value) {
            job[name] = value;
        }
        if let Ok(table) = jobs_as_squeue_table::table(json!({ "jobs": [job] }).to_string().as_bytes()) {
            let _ = Queue::parse(&table);
        }
    }
}
