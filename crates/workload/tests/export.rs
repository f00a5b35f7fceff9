//! Parses exports with independent small parsers and compares them with the workload.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use evenhand_model::{Detail, Details, Nano, Resource, Span, Task, Time, Workload, WorkloadBuilder};
use evenhand_workload::export::{ExportError, ExportFormat, Exported, export, export_file};
use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};
use proptest::prelude::*;

const ONE: Nano = 1_000_000_000;

/// Submission, wait, run time, user, count, cpu, mem; times in `unit_ns`.
type Line = (u64, Option<u64>, u64, u8, u32, u32, u32);

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let line = (0..500u64, proptest::option::of(0..200u64), 0..200u64, 0..5u8, 1..4u32, 0..9u32, 0..9u32);
    proptest::collection::vec(line, 1..50)
}

fn build(lines: &[Line], unit_ns: u64, cpu_step: Nano) -> Workload {
    let mut b = WorkloadBuilder::new([Resource::new("mem", "MB"), Resource::new("cpu", "")]);
    b.add_header("Computer", "a machine\nwith a line break");
    for &(submit, wait, run, user, count, cpu, mem) in lines {
        b.push(&Task {
            submit: Time::from_nanos(submit * unit_ns),
            start: wait.map(|w| Time::from_nanos((submit + w) * unit_ns)),
            duration: Span::from_nanos(run * unit_ns),
            requested: (cpu % 2 == 0).then(|| Span::from_nanos(run * 2 * unit_ns)),
            user: &format!("user, {user}"),
            account: (mem % 2 == 0).then_some("account"),
            queue: (mem % 3 == 0).then_some("queue"),
            amounts: &[Nano::from(mem) * ONE / 2, Nano::from(cpu) * cpu_step],
            count,
            ..Task::default()
        });
    }
    b.finish().unwrap()
}

fn written(w: &Workload, format: ExportFormat) -> (String, Exported) {
    let mut out = Vec::new();
    let done = export(w, format, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), done)
}

fn row_of_each_task(w: &Workload) -> Vec<usize> {
    (0..w.len()).flat_map(|row| std::iter::repeat_n(row, w.count(row) as usize)).collect()
}

proptest! {
    #[test]
    fn sdrf_csv_holds_times_users_and_amounts(l in lines()) {
        let w = build(&l, 1000, ONE / 80);
        let (text, done) = written(&w, ExportFormat::SdrfCsv);
        prop_assert_eq!(done.tasks, w.tasks());
        prop_assert!(!done.losses.iter().any(|l| l.contains("rounded")));
        // What a reader of the format makes of it is the workload without names.
        let mut again = WorkloadBuilder::new([Resource::new("mem", "MB"), Resource::new("cpu", "")]);
        let mut tasks = Vec::new();
        for line in text.lines() {
            let fields: Vec<&str> = line.split(',').collect();
            let [submit, start, finish, user, task, cpu, mem] = fields[..] else { panic!("{line}") };
            let us = |t: &str| t.parse::<u64>().unwrap();
            let nano = |t: &str| evenhand_model::Quantity::parse(t).unwrap().nano().unwrap();
            tasks.push(us(task));
            again.push(&Task {
                submit: Time::checked_from_micros(us(submit)).unwrap(),
                start: Time::checked_from_micros(us(start)),
                duration: Span::checked_from_micros(us(finish) - us(start)).unwrap(),
                user: &w.users()[user.parse::<usize>().unwrap()],
                amounts: &[nano(mem), nano(cpu)],
                ..Task::default()
            });
        }
        prop_assert_eq!(tasks, (0..w.tasks()).collect::<Vec<_>>());
        let again = again.finish().unwrap();
        let rows = row_of_each_task(&w);
        prop_assert_eq!(again.len(), rows.len());
        for (i, &row) in rows.iter().enumerate() {
            let (a, b) = (again.columns(), w.columns());
            prop_assert_eq!((a.submit[i], a.duration[i], a.user[i]), (b.submit[row], b.duration[row], b.user[row]));
            prop_assert_eq!(again.start(i), Some(w.start(row).unwrap_or(b.submit[row])));
            let exact = |w: &Workload, row: usize| -> Vec<_> {
                w.resources().iter().zip(w.amounts(row)).map(|(r, &a)| r.exact(a)).collect()
            };
            prop_assert_eq!(exact(&again, i), exact(&w, row));
        }
    }

    #[test]
    fn swf_has_eighteen_fields_that_say_the_same(l in lines()) {
        let w = build(&l, 1_000_000_000, ONE);
        let (text, done) = written(&w, ExportFormat::Swf);
        let (comments, jobs): (Vec<&str>, Vec<&str>) = text.lines().partition(|l| l.starts_with(';'));
        prop_assert!(comments.contains(&"; Version: 2.2") && comments.contains(&"; Computer: a machine with a line break"));
        let rows = row_of_each_task(&w);
        prop_assert_eq!((jobs.len(), done.tasks), (rows.len(), rows.len() as u64));
        for (i, (line, &row)) in jobs.iter().zip(&rows).enumerate() {
            let f: Vec<i64> = line.split(' ').map(|f| f.parse().unwrap()).collect();
            prop_assert_eq!(f.len(), 18);
            let c = w.columns();
            let s = |ns: u64| (ns / 1_000_000_000) as i64;
            prop_assert_eq!((f[0], f[1], f[3]), (i as i64 + 1, s(c.submit[row].nanos()), s(c.duration[row].nanos())));
            prop_assert_eq!(f[2], w.start(row).map_or(-1, |t| s((t - c.submit[row]).nanos())));
            let processors = (w.amounts(row)[1].0 as i64).max(1);
            prop_assert_eq!((f[4], f[7]), (processors, processors));
            prop_assert_eq!(f[8], w.requested(row).map_or(-1, |t| s(t.nanos())));
            // Memory comes in MB per task and goes in KB per processor, up to less than one too many.
            let kb = w.resources()[0].value(w.amounts(row)[0]) * 1024.0;
            prop_assert!(f[9] as f64 * processors as f64 >= kb && ((f[9] - 1) * processors) as f64 <= kb);
            prop_assert_eq!(f[11], i64::from(c.user[row].0) + 1);
            prop_assert_eq!(f[12], if w.account(row).is_some() { 1 } else { -1 });
            prop_assert_eq!(f[14], if w.queue(row).is_some() { 1 } else { -1 });
        }
    }

    #[test]
    fn evalys_csv_never_puts_two_tasks_on_one_processor(l in lines(), halves in any::<bool>()) {
        let w = build(&l, 7, if halves { ONE / 2 } else { ONE });
        let (text, done) = written(&w, ExportFormat::EvalysCsv);
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        prop_assert_eq!(header.len(), 17);
        let column = |name: &str| header.iter().position(|h| *h == name).unwrap();
        let jobs: Vec<Vec<&str>> = lines.map(|l| l.split(',').collect()).collect();
        prop_assert_eq!((jobs.len() as u64, done.tasks), (w.tasks(), w.tasks()));
        let ns = |job: &[&str], name: &str| job[column(name)].replace('.', "").parse::<u64>().unwrap();
        let mut taken: Vec<(u64, u64, BTreeSet<u64>)> = Vec::new();
        for (job, &row) in jobs.iter().zip(&row_of_each_task(&w)) {
            let (submit, start, finish) = (ns(job, "submission_time"), ns(job, "starting_time"), ns(job, "finish_time"));
            prop_assert_eq!(submit, w.columns().submit[row].nanos());
            prop_assert_eq!(start, w.start(row).unwrap_or(w.columns().submit[row]).nanos());
            prop_assert_eq!(finish - start, w.columns().duration[row].nanos());
            prop_assert_eq!((ns(job, "waiting_time"), ns(job, "turnaround_time")), (start - submit, finish - submit));
            let set: BTreeSet<u64> = job[column("allocated_resources")]
                .split(' ')
                .flat_map(|i| {
                    let (a, b) = i.split_once('-').unwrap_or((i, i));
                    a.parse::<u64>().unwrap()..=b.parse().unwrap()
                })
                .collect();
            prop_assert_eq!(set.len().to_string(), job[column("requested_number_of_resources")]);
            for (s, f, other) in &taken {
                prop_assert!(*f <= start || finish <= *s || other.is_disjoint(&set));
            }
            if start < finish {
                taken.push((start, finish, set));
            }
        }
        // No more processors than the most that run (or pass in no time) at once.
        let highest = taken.iter().flat_map(|t| &t.2).max().copied().unwrap_or(0);
        let width = |t: &(u64, u64, BTreeSet<u64>)| t.2.len() as u64;
        let peak = taken.iter().map(|at| taken.iter().filter(|t| t.0 <= at.0 && at.0 < t.1).map(width).sum::<u64>()).max();
        let instant = |row: usize| w.columns().duration[row] == Span::ZERO;
        if !(0..w.len()).any(instant) {
            prop_assert_eq!(highest + 1, peak.unwrap_or(1));
        }
    }
}

#[test]
fn a_job_set_of_evalys_is_read_as_it_was_written() {
    use evenhand_workload::Source;
    use evenhand_workload::import::{Format, ImportOptions, import};

    let read = |text: &str| {
        let source = Source::Bytes { name: "jobs.csv".into(), data: text.as_bytes().to_vec() };
        import(&[source], &ImportOptions::default()).unwrap()
    };
    let resources = [Resource::new("cpu", "")];
    let mut b = WorkloadBuilder::new(resources);
    let second = |s: u64| Span::from_nanos(s * 1_000_000_000);
    for (submit, wait, requested, user, cpu, outcome) in
        [(5, 2, Some(60), "ann", 4, "limit"), (9, 0, None, "b,ob", 1, "completed")]
    {
        let submit = Time::from_secs(submit);
        let (start, requested) = (Some(submit + second(wait)), requested.map(second));
        let amounts = &[cpu * ONE];
        let mut details = Details::default();
        details[Detail::Outcome] = Some(outcome);
        b.push(&Task { submit, start, duration: second(3), requested, user, amounts, details, ..Task::default() });
    }
    let w = b.finish().unwrap();
    let (text, done) = written(&w, ExportFormat::EvalysCsv);
    assert_eq!(done.losses.len(), 1, "{:?}", done.losses);
    let again = read(&text);
    assert_eq!((again.summary.format, &again.workload), (Format::EvalysCsv, &w));

    // What evalys writes: no users, numbers of its own, and a job that Batsim rejected.
    let of_evalys = "jobID,submission_time,requested_number_of_resources,requested_time,success,starting_time,\
                     execution_time,finish_time,waiting_time,allocated_resources,proc_alloc\n\
                     a,1.000000,8,100.000000,1,2.500000,10.000000,12.500000,1.500000,0-3,4\n\
                     b,2.000000,99,100.000000,0,-1.000000,-1.000000,-1.000000,-1.000000,,0\n";
    let imported = read(of_evalys);
    assert_eq!(imported.summary.dropped, [("never started".to_string(), 1)]);
    let w = imported.workload;
    assert_eq!((w.len(), w.users()), (1, &["unknown".to_string()][..]));
    assert_eq!((w.start(0), w.amounts(0)[0].0), (Some(Time::from_nanos(2_500_000_000)), 4));
}

#[test]
fn ends_of_jobs_become_states_and_what_a_format_lacks_is_named() {
    let mut b = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "MB")]);
    let outcomes =
        [None, Some("completed"), Some("failed"), Some("cancelled"), Some("limit"), Some("node failure"), Some("?")];
    for outcome in outcomes {
        let mut details = Details::default();
        details[Detail::Outcome] = outcome;
        details[Detail::Qos] = Some("high");
        b.push(&Task { user: "a", amounts: &[ONE, ONE], details, nodes: Some(1), ..Task::default() });
    }
    let w = b.finish().unwrap();
    let (text, done) = written(&w, ExportFormat::Swf);
    let statuses = text.lines().filter(|line| !line.starts_with(';')).map(|line| line.split(' ').nth(10).unwrap());
    assert_eq!(statuses.collect::<Vec<_>>(), ["1", "1", "0", "5", "0", "0", "-1"]);
    let left_out = "not exported: names of users (numbers replace them), numbers of nodes, qos";
    assert_eq!(done.losses[0], left_out);
    let (text, done) = written(&w, ExportFormat::EvalysCsv);
    let states = text.lines().skip(1).map(|line| line.split(',').nth(7).unwrap());
    let ended = |how: &str| format!("COMPLETED_{how}");
    let expected =
        ["SUCCESSFULLY", "SUCCESSFULLY", "FAILED", "KILLED", "WALLTIME_REACHED", "FAILED", "SUCCESSFULLY"].map(ended);
    assert_eq!(states.collect::<Vec<_>>(), expected);
    let successes = text.lines().skip(1).map(|line| line.split(',').nth(6).unwrap());
    assert_eq!(successes.collect::<Vec<_>>(), ["1", "1", "0", "0", "0", "0", "1"]);
    assert_eq!(done.losses[0], "not exported: mem, numbers of nodes, qos");
    let unknown = "1 row ended in an unknown way and is written as completed".to_string();
    assert!(done.losses.contains(&unknown), "{:?}", done.losses);
    let (_, done) = written(&w, ExportFormat::SdrfCsv);
    assert_eq!(done.losses[0], "not exported: names of users (numbers replace them), numbers of nodes, qos, outcome");
}

#[test]
fn lost_fractions_of_a_microsecond_are_reported() {
    let (text, done) = written(&build(&[(1, Some(1), 3, 0, 1, 1, 1)], 500, ONE), ExportFormat::SdrfCsv);
    // 0.5 us and 1.5 us go to the next whole one.
    assert_eq!(text, "1,1,3,0,0,1,0.5\n");
    assert!(done.losses.contains(&"2 times are rounded to whole microseconds".to_string()), "{:?}", done.losses);
}

#[test]
fn a_resource_that_is_needed_and_missing_is_named() {
    let mut b = WorkloadBuilder::new([Resource::new("gpu", "")]);
    b.push(&Task { user: "a", amounts: &[ONE], ..Task::default() });
    let w = b.finish().unwrap();
    for (format, needed) in [
        (ExportFormat::SdrfCsv, "cpu and mem"),
        (ExportFormat::Swf, "a resource named cpu"),
        (ExportFormat::EvalysCsv, "a resource named cpu"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let error = export_file(&w, format, &folder.path().join("out")).unwrap_err();
        assert!(matches!(&error, ExportError::Resources { needed: n, .. } if n == needed), "{error}");
        assert!(error.to_string().contains("it has gpu"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    assert!(matches!("csv".parse::<ExportFormat>(), Err(ExportError::Unknown { .. })));
}

#[test]
fn a_generated_workload_exports_to_every_format() {
    let w = generate(&GenerateOptions { model: TraceModel::MetaCentrum, tasks: 2000, users: 20, days: 9.0, seed: 1 })
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    for format in ExportFormat::ALL {
        let path = folder.path().join(format.name());
        let done = export_file(&w, format, &path).unwrap();
        assert_eq!(done.tasks, 2000);
        let comments = |l: &&str| !l.starts_with([';', 'j']);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().filter(comments).count(), 2000);
    }
}
