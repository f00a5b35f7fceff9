//! A server with a recorded site behind it, asked over sockets as browsers and programs do.
#![allow(clippy::unwrap_used, reason = "tests")]

mod agent;
mod gpus;
mod open_connections;
mod socket_in_use;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use evenhand_model::{Span, Time};
use evenhand_serve::identity::{TrustedProxy, UserHeader};
use evenhand_serve::visibility::{Extent, VisibilityPolicy};
use evenhand_serve::{Listen, Options, Progress, Readers, ServeError, SlurmSite, Stop, StudyFiles, serve};
use evenhand_slurm::{Call, CommandError, Commands, RecordedOutput};

use self::agent::Agent;

const QUEUE: &str = "JOBID|USER|ACCOUNT|STATE|REASON|PARTITION|PRIORITY|SUBMIT_TIME|START_TIME|TIME_LIMIT|CPUS|TRES_ALLOC|DEPENDENCY|ARRAY_JOB_ID|ARRAY_TASK_ID\n\
    1|ann|art|RUNNING|None|main|9|99000|99500|20:00|6|cpu=6|(null)|1|N/A\n\
    2|ann|art|PENDING|Resources|main|8|99800|N/A|5:00|4|cpu=4|(null)|2|N/A\n\
    3|bob|bio|PENDING|Priority|main|7|99900|103600|5:00|2|cpu=2|(null)|3|N/A\n\
    4|bob|bio|PENDING|JobHeldUser|main|0|99900|N/A|5:00|2|cpu=2|(null)|4|N/A\n\
    5|bob|bio|PENDING|Priority|main|6|99900|N/A|5:00|2|cpu=2|(null)|5|1-9%2\n\
    6|<b>eve|bio|PENDING|<i>Odd|main|5|99900|N/A|5:00|2|cpu=2|(null)|6|N/A\n";
const NODE: &str =
    "NodeName=n1 CPUAlloc=6 CPUTot=8 RealMemory=1000 AllocMem=0 Partitions=main State=MIXED CfgTRES=cpu=8,mem=1000M\n";

/// Recorded output that counts its questions, and can be away.
struct Counted {
    site: RecordedOutput,
    queue_reads: Arc<AtomicUsize>,
    away: Arc<AtomicBool>,
}

impl Commands for Counted {
    fn run(&self, call: &Call) -> Result<String, CommandError> {
        if call.program == "squeue" {
            self.queue_reads.fetch_add(1, Ordering::SeqCst);
        }
        if self.away.load(Ordering::SeqCst) {
            return Err(CommandError::TimedOut { program: call.program, seconds: 60, message: "no answer".into() });
        }
        self.site.run(call)
    }
}

fn clock() -> Time {
    Time::from_secs(100_000)
}

struct Serving {
    place: String,
    queue_reads: Arc<AtomicUsize>,
    away: Arc<AtomicBool>,
    stop: Stop,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Serving {
    fn start(private_data: &str, change: impl FnOnce(&mut Options)) -> Serving {
        Serving::start_by(clock, private_data, change)
    }

    fn start_by(clock: fn() -> Time, private_data: &str, change: impl FnOnce(&mut Options)) -> Serving {
        Serving::start_site([QUEUE, NODE], clock, private_data, change)
    }

    fn start_site(
        [queue, nodes]: [&str; 2],
        clock: fn() -> Time,
        private_data: &str,
        change: impl FnOnce(&mut Options),
    ) -> Serving {
        let mut sacct = "JobIDRaw|User|Account|Partition|Submit|Start|End|Timelimit|AllocTRES|NodeList\n".to_string();
        for n in 0..50 {
            let at = 40_000 + 1000 * n;
            sacct += &format!("{}|ann|art|main|{at}|{}|{}|00:20:00|cpu=8|n1\n", 100 + n, at + 1, at + 601);
        }
        let config = format!(
            "ClusterName = lab\nSlurmUser = slurm(64030)\nPriorityDecayHalfLife = 7-00:00:00\nPrivateData = {private_data}\n"
        );
        let site = RecordedOutput::default()
            .with("squeue", queue)
            .with("scontrol show node", nodes)
            .with("scontrol show config", config)
            .with("sprio", "JOBID|SITE|PRIORITY|AGE|NICE\n2|3|8|10|5\n")
            .with("sacctmgr", "Cluster|Account|ParentName|User|Partition|Share\nlab|root||||1\nlab|art|root|||1\nlab|art||ann||1\nlab|bio|root|||3\nlab|bio||bob||1\n")
            .with("sshare", "Account|User|RawShares|RawUsage|EffectvUsage|FairShare\nroot|||100|1.0|\n art||1|90|0.9|\n  art|ann|1|90|0.9|0.25\n")
            .with("sacct", sacct);
        let (queue_reads, away) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let commands = Counted { site, queue_reads: Arc::clone(&queue_reads), away: Arc::clone(&away) };
        let site = Box::new(SlurmSite::new(Box::new(commands), Span::from_secs(28 * 86_400)));
        let readers = Readers { site, agent: Some(Box::new(Agent::default())) };
        let mut options = Options {
            user_header: Some(UserHeader::new("X-User", TrustedProxy::parse("127.0.0.1").unwrap()).unwrap()),
            interval: Duration::from_secs(3600),
            rate: 1000,
            ..options(Listen::Tcp("127.0.0.1:0".parse().unwrap()))
        };
        change(&mut options);
        let (stop, (sender, ready)) = (Stop::default(), mpsc::channel());
        let stopping = stop.clone();
        let thread = std::thread::spawn(move || {
            let ready = |place: &str| sender.send(place.to_string()).unwrap();
            serve(options, Arc::default(), readers, clock, &stopping, ready, (&Progress::default(), &|| ()))
        });
        let place = ready.recv().unwrap();
        Serving { place, queue_reads, away, stop, thread: Some(thread) }
    }

    fn address(&self) -> &str {
        self.place.trim_start_matches("http://").trim_end_matches('/')
    }

    /// Returns the status, the header and the body.
    fn ask(&self, request: &str) -> (u16, String, String) {
        exchange(TcpStream::connect(self.address()).unwrap(), request)
    }

    fn get_as(&self, user: &str, path: &str) -> (u16, String, String) {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nX-User: {user}\r\nConnection: close\r\n\r\n"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

fn exchange(mut stream: impl Read + Write, request: &str) -> (u16, String, String) {
    // A refusal may come, and the connection may close, before all of the request is read.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase(), body.to_string())
}

#[test]
fn many_visitors_are_answered_from_one_question() {
    let site = Serving::start("none", |_| ());
    for n in 0..200 {
        let path = ["/", "/queue", "/week", "/jobs/2", "/api/v1/queue", "/api/v1/jobs/2/why"][n % 6];
        assert_eq!(site.get_as(&format!("user{n}"), path).0, 200, "{path}");
    }
    assert_eq!(site.queue_reads.load(Ordering::SeqCst), 1);
}

#[test]
fn every_question_has_its_status() {
    let site = Serving::start("none", |_| ());
    let table = [
        ("/", 200, "Waiting jobs"),
        ("/queue?user=bob&state=pending&page=", 200, "3 records"),
        ("/queue?page=two", 400, "Found page=two, expected a whole number, at least 1."),
        ("/api/v1/queue?page=0", 400, "Found page=0, expected a whole number, at least 1."),
        ("/api/v1/queue?user=ann&user=bob", 400, "The address has a field twice"),
        ("/queue?user=bob&account=&state=pending", 200, "3 records"),
        ("/api/v1/queue?state=completing", 200, "\"matched\": 0"),
        (
            "/api/v1/queue?usr=nobody",
            400,
            "Found the field \\\"usr\\\", expected one of: user, account, partition, state, page; did you mean \\\"user\\\"?",
        ),
        ("/queue?usr=nobody", 400, "did you mean &quot;user&quot;?"),
        ("/api/v1/queue?state=RUNING", 400, "Found state=RUNING, expected one of: PENDING, CONFIGURING, RUNNING, "),
        ("/queue?state=runing", 400, "did you mean &quot;RUNNING&quot;?"),
        ("/api/v1/status?user=ann", 400, "Found the query \\\"user=ann\\\", expected none"),
        ("/api/v1/jobs/2/why?", 200, "\"site_factor\": 3"),
        ("/api/v1/nothing?user=ann", 404, "There is no such page."),
        ("/week?from=portal", 200, "Received per entitlement"),
        ("/queue?page=999", 404, "There is no page 999, expected one from 1 to 1: 6 records match."),
        ("/api/v1/queue?page=2", 404, "There is no page 2, expected one from 1 to 1: 6 records match."),
        ("/api/v1/queue?page=1&user=nobody", 200, "\"matched\": 0"),
        ("/jobs/2", 200, "Slurm’s reason is Resources"),
        ("/jobs/1", 200, "Slurm calls it RUNNING"),
        ("/jobs/4", 200, "is held, so that its start cannot be forecast"),
        ("/jobs/5_%5B1-9%5D", 200, "5_[1-9%2]"),
        ("/jobs/77", 404, "squeue shows no job 77"),
        ("/jobs/seven", 400, "expected a job&#x27;s number"),
        ("/jobs/%ff", 400, "bytes that are no UTF-8"),
        ("/users/ann", 200, "Standing"),
        ("/users/nobody", 404, "Nothing is known of user nobody"),
        ("/accounts/bio", 200, "Account bio"),
        ("/week", 200, "Received per entitlement"),
        ("/nothing", 404, "no such page"),
        ("/study/index.html", 404, "stored study"),
        ("/style.css", 200, "prefers-color-scheme: dark"),
        ("/healthz", 200, "ok"),
        ("/api/v1/jobs/1", 200, "\"state\": \"RUNNING\""),
        ("/api/v1/jobs/1/why", 409, "\"status\": 409"),
        ("/api/v1/jobs/2/why", 200, "\"site_factor\": 3"),
        ("/api/v1/jobs/2/why", 200, "\"factor\": \"age\""),
        ("/jobs/2", 200, "Its priority by factor"),
        ("/api/v1/jobs/4/when", 409, "is held"),
        ("/api/v1/jobs/77/why", 404, "squeue shows no job 77"),
        ("/api/v1/jobs/x/why", 400, "expected a job's number"),
        ("/api/v1/users/ann", 200, "\"fading\""),
        ("/api/v1/accounts/none", 404, "Nothing is known"),
        ("/api/v1/week", 200, "\"received_of_entitled\""),
        ("/api/v1/nothing", 404, "\"message\""),
    ];
    for (path, status, text) in table {
        let (found, head, body) = site.get_as("ann", path);
        assert_eq!(found, status, "{path}: {body}");
        assert!(body.contains(text), "{path}: no {text:?} in {body}");
        assert!(head.contains("content-security-policy: default-src 'none'"), "{path}: {head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{path}: {head}");
        assert_eq!(path.starts_with("/api/"), head.contains("content-type: application/json"), "{path}: {head}");
    }
    let (status, head, _) = site.get_as("ann", "/me");
    assert!(status == 303 && head.contains("location: users/ann"), "{head}");
}

#[test]
fn names_of_the_site_are_escaped() {
    let site = Serving::start("none", |_| ());
    for path in ["/", "/queue", "/jobs/6", "/users/%3Cb%3Eeve", "/accounts/bio", "/jobs/3"] {
        let (status, _, body) = site.get_as("<i>me", path);
        assert_eq!(status, 200, "{path}");
        assert!(!body.contains("<b>") && !body.contains("<i>"), "{path}: {body}");
    }
}

#[test]
fn each_sees_what_the_site_allows() {
    let site = Serving::start("jobs,usage", |_| ());
    assert_eq!(site.get_as("ann", "/jobs/2").0, 200);
    // Another's job is answered as one that is not there.
    let (status, _, hidden) = site.get_as("ann", "/jobs/3");
    assert!(status == 404 && hidden.contains("squeue shows no job 3"), "{hidden}");
    assert!(!site.get_as("ann", "/queue").2.contains("bob"));
    assert!(!site.get_as("ann", "/week").2.contains("bob"));
    assert!(!site.get_as("bob", "/jobs/3").2.contains("users/ann"), "who stands before it is hidden");
    assert_eq!(site.get_as("ann", "/users/bob").0, 404);
    assert_eq!(site.get_as("", "/jobs/2").0, 404);
    assert_eq!(site.get_as("", "/me").0, 403);
    assert!(site.get_as("slurm", "/queue").2.contains("bob"));
}

#[test]
fn an_answer_that_is_kept_for_those_who_see_all_is_not_given_to_others() {
    let site = Serving::start("jobs", |_| ());
    let why = "/api/v1/jobs/3/why";
    let before = site.get_as("bob", why).2;
    assert!(!before.contains("\"ann\""), "{before}");
    let whole = site.get_as("slurm", why).2;
    assert!(whole.contains("\"ann\""), "{whole}");
    assert_eq!(site.get_as("root", why).2, whole, "from what was kept");
    assert_eq!(site.get_as("bob", why).2, before);
    assert_eq!(site.get_as("ann", why).0, 404);
}

#[test]
fn a_policy_narrows_what_the_site_shows() {
    let site = Serving::start("none", |options| {
        options.policy.users = Extent::Own;
        options.policy.anonymous = Extent::Nothing;
        options.policy.administrators.insert("zoe".into());
    });
    assert!(!site.get_as("ann", "/api/v1/queue").2.contains("bob"));
    assert!(site.get_as("zoe", "/api/v1/queue").2.contains("bob"));
    assert!(site.get_as("", "/api/v1/queue").2.contains("\"matched\": 0"));
}

#[test]
fn a_name_from_elsewhere_is_not_believed() {
    let elsewhere = TrustedProxy::parse("192.0.2.1").unwrap();
    let site =
        Serving::start("jobs", |options| options.user_header = Some(UserHeader::new("X-User", elsewhere).unwrap()));
    assert_eq!(site.get_as("ann", "/jobs/2").0, 404);
    let site = Serving::start("jobs", |_| ());
    let twice = "GET / HTTP/1.1\r\nHost: x\r\nX-User: ann\r\nX-User: root\r\nConnection: close\r\n\r\n";
    assert_eq!(site.ask(twice).0, 400);
}

#[test]
fn the_unix_socket_knows_its_visitors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let site = Serving::start("none", |options| {
        (options.listen, options.user_header) = (Listen::Unix(path.clone()), None);
    });
    let request = "GET /me HTTP/1.1\r\nHost: x\r\nX-User: ann\r\nConnection: close\r\n\r\n";
    let (status, head, _) = exchange(UnixStream::connect(&path).unwrap(), request);
    let own = nix::unistd::User::from_uid(nix::unistd::getuid()).unwrap().unwrap().name;
    assert!(status == 303 && head.contains(&format!("location: users/{own}")), "{head}");
    drop(site);
    assert!(!path.exists(), "the socket goes with its server");
}

#[test]
fn what_is_no_plain_question_is_refused() {
    let site = Serving::start("none", |_| ());
    let (status, head, _) = site.ask("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(status == 405 && head.contains("allow: get, head"), "{head}");
    let with_body = "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    assert_eq!(site.ask(with_body).0, 413);
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\nConnection: close\r\n\r\n", "x".repeat(40_000));
    assert_eq!(site.ask(&long).0, 431);
    assert_eq!(site.ask("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").2, "");
    assert_eq!(site.get_as("ann", "/").0, 200);
}

#[test]
fn a_client_that_asks_too_often_gets_the_time_to_come_back() {
    let site = Serving::start("none", |options| options.rate = 1);
    let statuses: Vec<u16> = (0..20).map(|_| site.get_as("ann", "/style.css").0).collect();
    assert!(statuses[..5].iter().all(|status| *status == 200), "{statuses:?}");
    assert!(statuses.contains(&429), "{statuses:?}");
    let (status, head, _) = (0..20).map(|_| site.get_as("ann", "/")).find(|answer| answer.0 == 429).unwrap();
    assert!(status == 429 && head.contains("retry-after: "), "{head}");
    assert_eq!(site.get_as("bob", "/").0, 200);
    // A monitor is answered however many requests come from its address.
    assert!((0..20).all(|_| site.get_as("ann", "/healthz").0 == 200));
}

/// A server's options without identities.
fn options(listen: Listen) -> Options {
    Options {
        listen,
        user_header: None,
        interval: Duration::from_secs(15),
        policy: VisibilityPolicy::default(),
        study: None,
        rate: 20,
        seed: 1,
    }
}

/// Slurm's commands that do not end until the other side of the channel is gone; then they are absent.
struct Hanging(mpsc::Receiver<()>);

impl Commands for Hanging {
    fn run(&self, call: &Call) -> Result<String, CommandError> {
        let _ = self.0.recv();
        Err(CommandError::Absent { program: call.program })
    }
}

#[test]
fn visitors_are_answered_while_the_first_question_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let (hangs, hanging) = mpsc::channel();
    let site = Box::new(SlurmSite::new(Box::new(Hanging(hanging)), Span::ZERO));
    let options = options(Listen::Unix(socket.clone()));
    let server = std::thread::spawn(move || {
        let readers = Readers { site, agent: None };
        serve(options, Arc::default(), readers, clock, &Stop::default(), |_| (), (&Progress::default(), &|| ()))
    });
    let connect = || {
        (0..1000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            UnixStream::connect(&socket).ok()
        })
    };
    let get = |path: &str| {
        exchange(connect().unwrap(), &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
    };
    assert_eq!(get("/healthz").0, 200);
    for path in ["/", "/queue", "/api/v1/status", "/api/v1/jobs/1/why"] {
        let (status, head, body) = get(path);
        assert!(status == 503 && head.contains("retry-after: 5"), "{path}: {head}");
        assert!(body.contains("Slurm has not answered yet: the first question to it is open."), "{path}: {body}");
    }
    // A machine without Slurm's commands ends the server, and takes its socket away.
    drop(hangs);
    let ended = server.join().unwrap();
    assert!(matches!(ended, Err(ServeError::NoSlurm(_))), "{ended:?}");
    assert!(!socket.exists());
}

#[test]
fn with_the_controller_away_the_last_answer_stays() {
    let site = Serving::start("none", |options| options.interval = Duration::from_millis(20));
    assert!(site.get_as("ann", "/").2.contains("Waiting jobs"));
    site.away.store(true, Ordering::SeqCst);
    let away = loop {
        let page = site.get_as("ann", "/queue").2;
        if page.contains("did not answer") {
            break page;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(away.contains("squeue did not end") && away.contains("6 records"), "{away}");
    assert!(site.get_as("ann", "/api/v1/status").2.contains("\"failure\": \"squeue"));
    site.away.store(false, Ordering::SeqCst);
    while site.get_as("ann", "/").2.contains("did not answer") {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn starts_are_forecast_in_the_background() {
    let site = Serving::start("none", |_| ());
    let start = loop {
        let (status, _, body) = site.get_as("ann", "/api/v1/jobs/2/when");
        if status == 200 {
            break body;
        }
        assert_eq!(status, 503, "{body}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(start.contains("\"interval_80_s\"") && start.contains("\"user\": \"ann\""), "{start}");
    assert!(site.get_as("ann", "/jobs/2").2.contains("by the median"));
    // CPUs are free for job 3, but Slurm plans it in an hour.
    let planned = site.get_as("bob", "/api/v1/jobs/3/when").2;
    assert!(planned.contains("\"planned_by\": \"slurm\"") && planned.contains("\"start_s\": 103600"), "{planned}");
    let page = site.get_as("bob", "/jobs/3").2;
    assert!(page.contains("at the latest") && page.contains("Slurm found that it cannot"), "{page}");
}

#[test]
fn a_stored_study_is_for_those_who_see_all() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "<p>ann gains</p>").unwrap();
    let files = StudyFiles::list(folder.path()).unwrap();
    let site = Serving::start("usage", |options| options.study = Some(files));
    assert_eq!(site.get_as("ann", "/study/index.html").0, 404);
    let (status, head, body) = site.get_as("slurm", "/study/index.html");
    assert!(status == 200 && body == "<p>ann gains</p>" && head.contains("sandbox"), "{head}");
    assert_eq!(site.get_as("slurm", "/study/..%2f..%2fetc%2fpasswd").0, 404);
}

/// Returns why a server with these options does not start.
fn refusal(listen: Listen, proxy: Option<&str>) -> String {
    let site = Box::new(SlurmSite::new(Box::new(RecordedOutput::default()), Span::ZERO));
    let readers = Readers { site, agent: None };
    let header = |proxy| UserHeader::new("X-User", TrustedProxy::parse(proxy).unwrap()).unwrap();
    let options = Options { user_header: proxy.map(header), ..options(listen) };
    let error =
        serve(options, Arc::default(), readers, clock, &Stop::default(), |_| (), (&Progress::default(), &|| ()))
            .unwrap_err();
    assert!(!error.is_environment());
    error.to_string()
}

#[test]
fn options_with_which_no_visitor_would_be_known_are_refused() {
    let address = |text: &str| Listen::Tcp(text.parse().unwrap());
    let error = refusal(address("0.0.0.0:0"), None);
    assert!(error.starts_with("--listen: 0.0.0.0 is open to other machines"), "{error}");
    for listen in ["0.0.0.0:0", "127.0.0.1:0"] {
        let error = refusal(address(listen), Some("user:root"));
        assert!(error.starts_with("--trusted-proxy: found user:NAME") && error.contains("--socket PATH"), "{error}");
    }
    let error = refusal(Listen::Unix("/nonexistent/socket".into()), Some("127.0.0.1"));
    assert!(error.contains("found the address 127.0.0.1") && error.contains("user:www-data"), "{error}");
}

#[test]
fn open_requests_do_not_keep_the_server_from_its_end() {
    let site = Serving::start("none", |_| ());
    let idle = TcpStream::connect(site.address()).unwrap();
    let mut begun = TcpStream::connect(site.address()).unwrap();
    begun.write_all(b"GET / HTTP/1.1\r\nHost:").unwrap();
    // Ends although two clients have not sent a request.
    drop(site);
    drop((idle, begun));
}
