//! `evenhand sweep`

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenhand_model::counted;
use evenhand_model::files::FolderLock;
use evenhand_model::memory::MemoryLimit;
use evenhand_policies::Registry;
use evenhand_study::sweep::record::SweepRecord;
use evenhand_study::sweep::slurm_arrays::{self, LostPoint, SlurmError, Status, quoted};
use evenhand_study::sweep::{
    Folder, Grid, MemoryNeed, Point, PointFailure, SweepError, Watch, layout, local, summarize,
};
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::arguments::{Common, Engine, SweepArgs, SweepTaskArgs, SweepVerb};
use crate::failure::Failure;
use crate::inputs::memory::parse_size_of;
use crate::output::console::Console;
use crate::output::numbers::rounded;
use crate::output::table::{Table, printable};
use crate::output::write_files::lock_folder;

const LOCAL: &str = "{prefix} {wide_bar} {percent:>3} %  {msg}  ETA {eta}";
const SLURM: &str = "{prefix} {wide_bar} {pos}/{len} points  {msg}  ETA {eta}";
/// Largest number of rows of the table.
const MAX_ROWS: usize = 200;

pub(crate) fn run(args: &SweepArgs, common: &Common, registry: &Registry, console: &Console) -> Result<(), Failure> {
    match &args.verb {
        Some(SweepVerb::Status(folder)) => status(&folder.dir, registry, console),
        Some(SweepVerb::Cancel(folder)) => cancel(&folder.dir, console),
        Some(SweepVerb::Gather(folder)) => {
            let opened = Folder::open(&folder.dir).map_err(sweep_failure)?;
            let _lock = lock_folder(&folder.dir)?;
            let sweep = Sweep::planned(opened, registry)?;
            let record = sweep.summarize()?;
            report(&sweep, &record, &folder.dir, console)?;
            sweep.check_complete(&record, &[])
        }
        None => start(args, common, registry, console),
    }
}

/// Runs one task of a job array.
pub(crate) fn run_task(args: &SweepTaskArgs, registry: &Registry, console: &Console) -> Result<(), Failure> {
    let folder = Folder::open(&args.dir).map_err(sweep_failure)?;
    let watch = Arc::new(Watch::default());
    stop_on_interrupt(&watch, console)?;
    let failures = slurm_arrays::run_chunk(&folder, registry, args.chunk, threads(), &watch).map_err(sweep_failure)?;
    match failures.as_slice() {
        [] if watch.is_cancelled() => Err(Failure::Environment("interrupted".into())),
        [] => Ok(()),
        failures => Err(point_failures(failures)),
    }
}

/// Sweep whose plan is in its folder.
struct Sweep {
    grid: Grid,
    points: Vec<Point>,
    digests: Vec<String>,
    folder: Folder,
}

impl Sweep {
    /// Reads the plan in the folder.
    fn planned(folder: Folder, registry: &Registry) -> Result<Sweep, Failure> {
        let (grid, points, digests) = folder.planned(registry).map_err(sweep_failure)?;
        Ok(Sweep { grid, points, digests, folder })
    }

    /// Writes the summary files and the page.
    fn summarize(&self) -> Result<SweepRecord, Failure> {
        let record = summarize(&self.grid, &self.points, &self.digests, &self.folder).map_err(sweep_failure)?;
        evenhand_report::write_sweep_report(self.folder.dir(), &self.grid, &self.points, &record)
            .map_err(|e| Failure::Environment(e.to_string()))?;
        Ok(record)
    }

    /// Returns a failure that lists the points without a result, if there are any.
    fn check_complete(&self, record: &SweepRecord, failures: &[PointFailure]) -> Result<(), Failure> {
        if !failures.is_empty() {
            return Err(point_failures(failures));
        }
        if record.missing.is_empty() {
            return Ok(());
        }
        let lost = LostPoint::all(&self.folder, &self.grid, &self.points, &self.digests).map_err(sweep_failure)?;
        Err(Failure::Environment(format!(
            "{} of {} points have no result. Run the same command again for them.\n{}",
            lost.len(),
            self.points.len(),
            lost_lines(&lost)
        )))
    }
}

fn start(args: &SweepArgs, common: &Common, registry: &Registry, console: &Console) -> Result<(), Failure> {
    let Some(path) = &args.grid else {
        return Err(Failure::Input("no grid; expected evenhand sweep GRID.toml".into()));
    };
    reject_options_of_slurm(args)?;
    let memory = args.memory.as_deref().map(|text| parse_size_of("--memory", text)).transpose()?;
    let grid = Grid::read(path, common.seed(), registry).map_err(Failure::document)?;
    if args.check {
        return check(&grid, &args.out, console);
    }
    let lock = lock_folder(&args.out)?;
    let folder = Folder::create(&args.out).map_err(sweep_failure)?;
    if args.engine == Engine::Slurm {
        // Queued and running tasks need the plan that is in the folder.
        slurm_arrays::ensure_not_queued(&folder).map_err(slurm_failure)?;
    }
    let (points, digests) = folder.plan(&grid, common.seed()).map_err(sweep_failure)?;
    let sweep = Sweep { grid, points, digests, folder };
    for path in sweep.folder.damaged(&sweep.digests) {
        console.note(&format!("{} is damaged, edited or of another version; its point is run again.", path.display()));
    }
    match args.engine {
        Engine::Local => start_local(&sweep, &args.out, memory, console),
        Engine::Slurm => start_slurm(&sweep, args, lock, memory, console),
    }
}

/// Rejects the options of job arrays where there are none.
fn reject_options_of_slurm(args: &SweepArgs) -> Result<(), Failure> {
    let given = [
        ("--partition", args.partition.is_some()),
        ("--account", args.account.is_some()),
        ("--time-limit", args.time_limit.is_some()),
        ("--chunk", args.chunk.is_some()),
        ("--at-a-time", args.at_a_time.is_some()),
        ("--wait", args.wait),
    ];
    match given.iter().find(|(_, given)| *given && args.engine == Engine::Local) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::Input(format!(
            "{option}: has an effect on job arrays only; add --engine slurm, or leave it out"
        ))),
    }
}

/// Prints how large the sweep is. The grid is valid, since it was read.
fn check(grid: &Grid, out: &Path, console: &Console) -> Result<(), Failure> {
    let points = layout(grid);
    let mut table = Table::new(1, ["workload", "seed", "points", "tasks", "loaded", "each run"]);
    let (mut workloads, mut total) = (Vec::new(), 0u64);
    for (at, workload) in grid.workloads.iter().enumerate() {
        let size = workload
            .size()
            .map_err(|e| Failure::new(format!("{}: {e}", workload.name()), e.kind() != std::io::ErrorKind::NotFound))?;
        let count = points.iter().filter(|p| p.workload == at).count();
        let need = MemoryNeed::of_tasks(size.tasks);
        total = total.saturating_add(size.tasks.saturating_mul(count as u64));
        let seed = workload.seed();
        table.row(vec![
            printable(&workload.name()),
            seed.map_or("-".into(), |s| s.to_string()),
            count.to_string(),
            format!("{}{}", if size.exact { "" } else { "under " }, HumanCount(size.tasks)),
            mebibytes(need.workload),
            mebibytes(need.run),
        ]);
        workloads.push(json!({
            "workload": workload.name(), "seed": seed, "points": count, "tasks": size.tasks,
            "tasks_exact": size.exact, "workload_bytes": need.workload, "run_bytes": need.run,
        }));
    }
    // A folder that does not exist has no results.
    let done = match Folder::open(out) {
        Err(_) => 0,
        Ok(folder) => {
            let digests: Result<Vec<String>, _> = points.iter().map(|p| grid.digest(p)).collect();
            let digests = digests.map_err(|(path, e)| Failure::Environment(format!("{}: {e}", path.display())))?;
            points.len() - folder.missing(&digests).len()
        }
    };
    if console.is_json() {
        let record = json!({ "points": points.len(), "done": done, "tasks": total, "workloads": workloads });
        return console.json(&record);
    }
    console.result(&format!(
        "{}\n\n{}, {} {} to simulate in all; {done} done in {}",
        table.render(),
        counted(points.len(), "point", "points"),
        HumanCount(total),
        if total == 1 { "task" } else { "tasks" },
        out.display()
    ))
}

fn start_local(sweep: &Sweep, out: &Path, memory: Option<u64>, console: &Console) -> Result<(), Failure> {
    let memory = memory.unwrap_or_else(|| MemoryLimit::of_this_process().bytes);
    let watch = Arc::new(Watch::default());
    stop_on_interrupt(&watch, console)?;
    let options = local::Options { threads: threads(), memory };
    let all: Vec<usize> = (0..sweep.points.len()).collect();
    let failures = with_bar(&watch, console, || {
        local::run(&sweep.grid, &sweep.points, &sweep.digests, &all, &sweep.folder, options, &watch)
    })
    .map_err(sweep_failure)?;
    let record = sweep.summarize()?;
    report(sweep, &record, out, console)?;
    if watch.is_cancelled() && failures.is_empty() {
        let done = record.points.len();
        return Err(Failure::Environment(format!(
            "interrupted; {done} of {} points have a result. Run the same command again to finish: finished points are kept",
            sweep.points.len()
        )));
    }
    sweep.check_complete(&record, &failures)
}

fn start_slurm(
    sweep: &Sweep,
    args: &SweepArgs,
    lock: FolderLock,
    memory: Option<u64>,
    console: &Console,
) -> Result<(), Failure> {
    let options = slurm_arrays::Options {
        partition: args.partition.clone(),
        account: args.account.clone(),
        time_limit: args.time_limit.clone(),
        memory,
        at_a_time: args.at_a_time,
        chunk: args.chunk,
    };
    let program = std::env::current_exe()
        .map_err(|e| Failure::Environment(format!("cannot find the path of this program: {e}")))?;
    let submitted = slurm_arrays::submit(&sweep.grid, &sweep.points, &sweep.digests, &sweep.folder, &options, &program)
        .map_err(slurm_failure)?;
    let dir = quoted(&args.out.display().to_string());
    // The array's last job summarises the folder itself, perhaps while this process waits.
    drop(lock);
    match submitted {
        None => console.note("Every point has a result already; nothing is submitted."),
        Some(submission) => {
            let arrays: Vec<String> = submission.arrays.iter().map(|a| a.job.to_string()).collect();
            let points: usize = submission.chunks.iter().map(Vec::len).sum();
            let text = format!(
                "Submitted {points} points: {} task{} of job array {}, and job {} to gather.\n\
                 Follow: evenhand sweep status {dir}\nStop: evenhand sweep cancel {dir}",
                submission.chunks.len(),
                if submission.chunks.len() == 1 { "" } else { "s" },
                arrays.join(", "),
                submission.gather.map_or("-".into(), |job| job.to_string())
            );
            if !args.wait {
                if console.is_json() {
                    let record = json!({
                        "points": points, "tasks": submission.chunks.len(), "gather": submission.gather,
                        "arrays": submission.arrays.iter().map(|a| a.job).collect::<Vec<_>>(),
                    });
                    return console.json(&record);
                }
                return console.result(&text);
            }
            console.note(&text);
            follow(sweep, &dir, console)?;
        }
    }
    let record = sweep.summarize()?;
    report(sweep, &record, &args.out, console)?;
    sweep.check_complete(&record, &[])
}

/// Waits until the queue has no job of the sweep.
fn follow(sweep: &Sweep, dir: &str, console: &Console) -> Result<(), Failure> {
    let stopped = console.stop_on_interrupt(|| {})?;
    let bar = bar(SLURM, sweep.points.len() as u64, console);
    bar.set_prefix("points");
    let mut failed = 0;
    loop {
        match slurm_arrays::status(&sweep.folder, &sweep.digests) {
            Ok(status) => {
                failed = 0;
                bar.set_position(status.done as u64);
                bar.set_message(state(&status));
                if !status.is_queued() {
                    break;
                }
            }
            // The Slurm controller may be unreachable for a moment.
            Err(error) => {
                failed += 1;
                if failed > 10 {
                    bar.finish_and_clear();
                    return Err(slurm_failure(error));
                }
            }
        }
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(100));
            if stopped.is_set() {
                bar.finish_and_clear();
                return Err(Failure::Environment(format!(
                    "interrupted; the jobs continue. Follow: evenhand sweep status {dir}. Stop: evenhand sweep cancel {dir}"
                )));
            }
        }
    }
    bar.finish_and_clear();
    Ok(())
}

fn state(status: &Status) -> String {
    let mut words = vec![format!("{} running, {} waiting", status.running, status.waiting)];
    words.extend(status.reason.clone().filter(|r| status.waiting > 0 && r != "None").map(|r| format!("({r})")));
    words.extend(status.gather.clone().filter(|_| status.running + status.waiting == 0).map(|_| "gathering".into()));
    words.join(" ")
}

fn status(dir: &Path, registry: &Registry, console: &Console) -> Result<(), Failure> {
    let sweep = Sweep::planned(Folder::open(dir).map_err(sweep_failure)?, registry)?;
    let status = slurm_arrays::status(&sweep.folder, &sweep.digests).map_err(slurm_failure)?;
    let lost = match status.is_queued() {
        true => Vec::new(),
        false => LostPoint::all(&sweep.folder, &sweep.grid, &sweep.points, &sweep.digests).map_err(sweep_failure)?,
    };
    if console.is_json() {
        let missing: Vec<_> = lost
            .iter()
            .map(|l| json!({ "point": l.point, "axes": l.axes, "task": l.task, "message": l.message }))
            .collect();
        let record = json!({
            "points": status.points, "done": status.done, "jobs": status.jobs, "running_tasks": status.running,
            "waiting_tasks": status.waiting, "reason": status.reason, "gather": status.gather,
            "under_way": status.is_queued(), "missing": missing,
        });
        return console.json(&record);
    }
    let mut lines = vec![format!("{} of {} points have a result", status.done, status.points)];
    match (status.is_queued(), lost.is_empty()) {
        (true, _) => lines.push(format!("In the queue: tasks {}; job to gather {}", state(&status), {
            status.gather.as_deref().unwrap_or("gone").to_lowercase()
        })),
        (false, true) => lines.push(format!("Results: {}", dir.join("results.csv").display())),
        (false, false) => {
            lines.push("The queue has no job of this sweep. Run the same command again for the missing points:".into());
            lines.push(lost_lines(&lost));
        }
    }
    console.result(&lines.join("\n"))
}

fn cancel(dir: &Path, console: &Console) -> Result<(), Failure> {
    let folder = Folder::open(dir).map_err(sweep_failure)?;
    let jobs = slurm_arrays::cancel(&folder).map_err(slurm_failure)?;
    if console.is_json() {
        return console.json(&json!({ "cancelled": jobs }));
    }
    if jobs.is_empty() {
        return console.result("The queue has no job of this sweep.");
    }
    let jobs: Vec<String> = jobs.iter().map(u64::to_string).collect();
    console.result(&format!("Cancelled: {}. Results stay; the same command submits the rest.", jobs.join(", ")))
}

/// Lists at most twenty points without a result.
fn lost_lines(lost: &[LostPoint]) -> String {
    let line = |l: &LostPoint| {
        let task = l.task.as_ref().map_or(String::new(), |task| format!("  [task {task}]"));
        let error = l.message.as_ref().map_or(String::new(), |error| format!("  {}", printable(error)));
        format!("  point {}: {}{task}{error}", l.point, printable(&l.axes))
    };
    let mut lines: Vec<String> = lost.iter().take(20).map(line).collect();
    if lost.len() > 20 {
        lines.push(format!("  and {} more", lost.len() - 20));
    }
    lines.join("\n")
}

fn report(sweep: &Sweep, record: &SweepRecord, out: &Path, console: &Console) -> Result<(), Failure> {
    if console.is_json() {
        return console.json(record);
    }
    let points = &record.points;
    if points.len() <= MAX_ROWS {
        let header =
            ["workload", "capacity", "policy", "mean wait s", "users' mean s", "Jain", "better", "worse", "completed"];
        let mut table = Table::new(3, header);
        for p in points {
            let a = &p.axes;
            let mut workload = vec![a.workload.clone()];
            workload.extend(a.seed.map(|s| format!("seed {s}")));
            let mut policy = vec![sweep.points[a.point].variant_in_words(&sweep.grid)];
            policy.extend((sweep.grid.weights.len() > 1).then(|| format!("weights {}", a.weights)));
            policy.extend((sweep.grid.until_trace_end.len() > 1).then(|| format!("until {}", a.until)));
            policy.extend((sweep.grid.no_blocking.len() > 1 && a.no_blocking).then(|| "no-blocking".to_string()));
            let scheduler = a.scheduler.clone().unwrap_or_else(|| "strict".into());
            policy.extend((sweep.grid.schedulers.len() > 1).then_some(scheduler));
            let against = |n: Option<u64>| n.map_or("-".into(), |n| n.to_string());
            table.row(vec![
                printable(&workload.join(", ")),
                printable(&a.capacity),
                printable(&policy.join(" ")),
                p.mean_wait_s.map_or("-".into(), rounded),
                p.users_mean_wait_s.map_or("-".into(), rounded),
                p.jain_wait.map_or("-".into(), |j| format!("{j:.3}")),
                against(p.against.as_ref().map(|x| x.users_better)),
                against(p.against.as_ref().map(|x| x.users_worse)),
                p.totals.completed.to_string(),
            ]);
        }
        console.result(&table.render())?;
    }
    console.result(&format!(
        "\n{} points: {}\nPage: {}",
        points.len(),
        out.join("results.csv").display(),
        out.join("index.html").display()
    ))
}

/// Draws the sweep's progress while `work` runs.
fn with_bar<T: Send>(watch: &Watch, console: &Console, work: impl FnOnce() -> T + Send) -> T {
    if !console.shows_progress() {
        return work();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let bar = bar(LOCAL, 0, console);
            bar.set_prefix("points");
            while !done.load(Ordering::Relaxed) {
                let ((points, finished), (tasks, simulated)) = (watch.points(), watch.tasks());
                bar.set_length(tasks);
                bar.set_position(simulated.min(tasks));
                bar.set_message(format!("{finished}/{points}"));
                std::thread::sleep(Duration::from_millis(100));
            }
            bar.finish_and_clear();
        });
        // A guard, because the scope waits for the drawing to end even if the work panics.
        let _end = crate::output::progress::SetOnDrop(&done);
        work()
    })
}

fn bar(template: &str, length: u64, console: &Console) -> ProgressBar {
    if !console.shows_progress() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr()).with_style(style)
}

/// Stops the running points at the first signal, and keeps finished ones.
fn stop_on_interrupt(watch: &Arc<Watch>, console: &Console) -> Result<(), Failure> {
    let watch = Arc::clone(watch);
    console.stop_on_interrupt(move || watch.cancel()).map(|_| ())
}

/// Returns the number of threads: that of `--threads`, or one per core.
fn threads() -> NonZeroUsize {
    NonZeroUsize::new(rayon::current_num_threads()).unwrap_or(NonZeroUsize::MIN)
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

fn point_failures(failures: &[PointFailure]) -> Failure {
    let line = |f: &PointFailure| {
        let points: Vec<String> = f.points.iter().take(10).map(usize::to_string).collect();
        let more = if f.points.len() > 10 { format!(" and {} more", f.points.len() - 10) } else { String::new() };
        format!("point {}{more}: {}", points.join(", "), f.sentence)
    };
    let lines: Vec<String> = failures.iter().take(20).map(line).collect();
    Failure::new(lines.join("\n"), failures.iter().any(|f| f.environment))
}

fn sweep_failure(error: SweepError) -> Failure {
    Failure::new(&error, error.is_environment())
}

fn slurm_failure(error: SlurmError) -> Failure {
    Failure::new(&error, error.is_environment())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_valid() {
        for template in [LOCAL, SLURM] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }
}
