//! What every reader must keep, whatever the bytes.

use evenhand_documents::{Document, DocumentError};
use evenhand_mechanisms::{
    Arithmetic,
    problem_files::{AllocationFile, ProblemFile, ScenarioFile},
};
use evenhand_processes::Program;
use evenhand_protocol::exchange::Record;
use evenhand_protocol::exchange::ring::Message;
use evenhand_slurm::{
    Accounts, ClusterOptions, Configuration, Nodes, Partitions, Priorities, Queue, ShareTable, cluster,
};
use evenhand_workload::Source;
use evenhand_workload::import::{Format, ImportError, ImportOptions, Imported, MemoryPer, import};

const COLUMNS: &str = "submit=at,start=begun,end=done,wait=w,count=n,user=who,queue=q,cpu=milli*0.001,mem:B=ram";

/// Imports `data` strictly and leniently, with and without the relaxations, and holds the results
/// against each other: no panic; where strict succeeds, lenient gives the same; where strict
/// fails on a row, lenient fails only for want of tasks.
pub fn check(format: Format, data: &[u8]) {
    for relaxed in [false, true] {
        let options = ImportOptions {
            format,
            relaxed,
            swf_memory_per: if relaxed { MemoryPer::Node } else { MemoryPer::Processor },
            csv_columns: (format == Format::Csv).then(|| COLUMNS.parse().expect("columns")),
            ..ImportOptions::default()
        };
        let strict = read(data, &options);
        let lenient = read(data, &ImportOptions { lenient: true, ..options.clone() });
        match (strict, lenient) {
            (Ok(strict), Ok(lenient)) => assert_eq!(strict, lenient),
            (Ok(strict), Err(lenient)) => panic!("strict read {}; lenient failed: {lenient}", strict.summary),
            (Err(ImportError::Row(_)), Err(lenient)) => match lenient {
                // Amounts of single rows may be fine and their decimals still not fit together.
                ImportError::NothingLeft { .. } | ImportError::Workload { .. } => {}
                // Errors that strict did not reach, such as a JSON document that breaks off behind the row.
                ImportError::LongLine { .. } | ImportError::Compression { .. } | ImportError::Shape { .. } => {}
                other => panic!("lenient failed on a row: {other}"),
            },
            (Err(strict), _) => {
                assert!(!strict.is_environment());
                assert!(!strict.to_string().is_empty());
            }
        }
    }
}

fn read(data: &[u8], options: &ImportOptions) -> Result<Imported, ImportError> {
    import(&[Source::Bytes { name: "fuzz".to_string(), data: data.to_vec() }], options)
}

/// Reads `data` as a problem, a scenario and an allocation: no panic; an error has a place in the text
/// and shows it; what is read for 64-bit numbers fits them, and is the same exactly; a problem is a
/// scenario in which all users are present from the start.
pub fn check_problem(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let document = match Document::parse("fuzz", text, None) {
        Ok(document) => document,
        Err(error) => return check_error(text, error),
    };
    let exact = ProblemFile::read(&document, Arithmetic::Exact);
    match (ProblemFile::read(&document, Arithmetic::Float), exact) {
        (Ok(float), Ok(exact)) => {
            assert_eq!(float, exact);
            let problem = exact.problem().expect("what was read is a problem");
            assert!(problem.to_f64().is_some());
            let scenario = ScenarioFile::read(&document, Arithmetic::Float).expect("a problem is a scenario");
            let phases = scenario.users.iter().map(|user| match user.phases.as_slice() {
                [only] if only.from.is_zero() && only.until.is_none() => (&only.demand, &only.tasks),
                phases => panic!("{phases:?}"),
            });
            assert!(phases.eq(exact.users.iter().map(|user| (&user.demand, &user.tasks))));
            if let Err(error) = AllocationFile::read(&document, &exact, None) {
                check_error(text, error);
            }
        }
        (Ok(_), Err(error)) => panic!("read for 64-bit numbers, but not exactly: {error}"),
        (Err(float), exact) => {
            check_error(text, float);
            exact.map_or_else(|error| check_error(text, error), |exact| drop(exact.problem().expect("a problem")));
        }
    }
    match ScenarioFile::read(&document, Arithmetic::Exact) {
        Ok(scenario) => drop(scenario.account_tree().expect("accounts of a file form a tree")),
        Err(error) => check_error(text, error),
    }
}

fn check_error(text: &str, error: DocumentError) {
    let DocumentError::Content(error) = error else { panic!("nothing was read: {error}") };
    assert!(error.line() >= 1 && error.line() <= text.matches('\n').count() + 1, "{error}");
    assert!(!error.problem().is_empty());
    // However long the line is.
    assert!(error.render(true).len() < 20_000, "{error}");
}

/// Reads `data` as a program of a process: no panic; what is read can be explained, and written it reads as the same.
pub fn check_program(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(program) = Program::parse("program", text) {
        assert!(!program.explain().is_empty());
        assert_eq!(Program::parse("program", &program.to_string()).ok(), Some(program));
    }
}

/// Reads `data` as what each of Slurm's commands prints: no panic; an error has a place in the text; machines and
/// partitions that are read make a cluster, and associations a tree.
pub fn check_slurm(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines = text.lines().count().max(1);
    let place =
        |error: evenhand_slurm::TextError| assert!((1..=lines).contains(&error.line) && error.column >= 1, "{error}");
    let nodes = Nodes::parse(text).map_err(place);
    let partitions = Partitions::parse(text).map_err(place);
    if let (Ok(nodes), Ok(partitions)) = (nodes, partitions) {
        let described = cluster(&nodes.nodes, &partitions.partitions, &ClusterOptions::default());
        assert_eq!(described.cluster.groups.len(), described.members.len());
    }
    match Queue::parse(text) {
        Ok(queue) => queue.jobs.iter().for_each(|job| {
            let _ =
                (job.tasks(), job.held(), job.requested_per_node(), job.requested.to_string(), job.limit.to_string());
        }),
        Err(error) => place(error),
    }
    match Accounts::parse(text) {
        Ok(accounts) => drop(accounts.association_tree().expect("associations make a tree")),
        Err(error) => place(error),
    }
    let _ = ShareTable::parse(text).map_err(place);
    let _ = Priorities::parse(text).map_err(place);
    let _ = Configuration::parse(text).map_err(place);
}

/// Reads `data` as what another node says: no panic; what is read is written as it was, or at least read again
/// as the same.
pub fn check_exchange(data: &[u8]) {
    match Record::decode(data) {
        Ok(record) => assert_eq!(Record::decode(&record.encode()).as_ref(), Ok(&record)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match Message::decode(data) {
        Ok(message) => assert_eq!(Message::decode(&message.encode()).as_ref(), Ok(&message)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
