//! `evenhand workload`

use std::io::{self, Write};
use std::path::Path;

use evenhand_model::Workload;
use evenhand_workload::Source;
use evenhand_workload::describe::{describe, describe_plots};
use evenhand_workload::export::{ExportError, export, export_file};
use evenhand_workload::generate::{GenerateOptions, generate};
use evenhand_workload::import::{ImportOptions, ImportSummary, import_with_progress};
use evenhand_workload::store;
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{Common, DescribeArgs, ExportArgs, GenerateArgs, ImportArgs, TraceArgs, WorkloadVerb};
use crate::console::Console;
use crate::failure::Failure;

pub(crate) fn run(verb: WorkloadVerb, common: &Common, console: &Console) -> Result<(), Failure> {
    match verb {
        WorkloadVerb::Import(args) => import_verb(&args, common, console),
        WorkloadVerb::Describe(args) => describe_verb(&args, common, console),
        WorkloadVerb::Generate(args) => generate_verb(&args, common, console),
        WorkloadVerb::Export(args) => export_verb(&args, common, console),
    }
}

/// Reads a stored workload, or imports a trace and says what was assumed.
pub(crate) fn load(path: &Path, trace: &TraceArgs, common: &Common, console: &Console) -> Result<Workload, Failure> {
    Ok(load_and_tell(path, trace, common, console)?.0)
}

/// The same, and what there is to say of the import if there was one.
pub(crate) fn load_and_tell(
    path: &Path,
    trace: &TraceArgs,
    common: &Common,
    console: &Console,
) -> Result<(Workload, Option<String>), Failure> {
    if store::is_parquet(path) {
        return Ok((read_store(path)?, None));
    }
    let (workload, summary) = import_all(std::slice::from_ref(&path.to_path_buf()), trace, common, console)?;
    console.note(&summary.to_string());
    Ok((workload, Some(summary.to_string())))
}

fn read_store(path: &Path) -> Result<Workload, Failure> {
    store::read(path).map_err(|e| {
        let environment =
            matches!(&e, store::StoreError::Io { source, .. } if source.kind() != io::ErrorKind::NotFound);
        Failure::new(&e, environment)
    })
}

fn import_all(
    inputs: &[std::path::PathBuf],
    trace: &TraceArgs,
    common: &Common,
    console: &Console,
) -> Result<(Workload, ImportSummary), Failure> {
    let sources: Vec<Source> = inputs.iter().map(Source::from_argument).collect();
    let options = ImportOptions {
        format: trace.from,
        lenient: trace.lenient,
        relaxed: trace.relaxed,
        swf_memory_unit: trace.swf_memory_unit,
        swf_memory_per: trace.swf_memory_per,
        csv_columns: trace.csv_columns.clone(),
        threads: common.threads,
    };
    let bar = if console.shows_progress() { ProgressBar::new(0) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} ETA {eta}") {
        bar.set_style(style);
    }
    let imported = import_with_progress(&sources, &options, &|progress| {
        bar.set_length(progress.total.unwrap_or(progress.read));
        bar.set_position(progress.read);
    });
    bar.finish_and_clear();
    let imported = imported.map_err(|e| Failure::new(&e, e.is_environment()))?;
    Ok((imported.workload, imported.summary))
}

pub(crate) fn write_store(path: &Path, workload: &Workload) -> Result<(), Failure> {
    store::write(path, workload).map_err(|e| Failure::new(&e, matches!(e, store::StoreError::Io { .. })))
}

fn import_verb(args: &ImportArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let (workload, summary) = import_all(&args.inputs, &args.trace, common, console)?;
    write_store(&args.output, &workload)?;
    if console.is_json() {
        let dropped: serde_json::Map<String, serde_json::Value> =
            summary.dropped.iter().map(|(reason, n)| (reason.clone(), (*n).into())).collect();
        return console.json(&serde_json::json!({
            "format": summary.format.name(),
            "files": summary.files,
            "rows_read": summary.rows_read,
            "tasks": summary.tasks,
            "dropped": dropped,
            "assumptions": summary.assumptions,
            "written": args.output,
        }));
    }
    console.result(&format!("{summary}\nWritten: {}", args.output.display()))
}

fn describe_verb(args: &DescribeArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let workload = load(&args.workload, &args.trace, common, console)?;
    let description = describe(&workload);
    if let Some(folder) = &args.plot {
        let plots = describe_plots(&workload);
        let written = evenhand_report::write_description_figures(folder, &description, &plots)
            .map_err(|e| Failure::Environment(e.to_string()))?;
        console.note(&format!("{} figures with their data in {}", written.len(), folder.display()));
    }
    if console.is_json() {
        return console.json(&description);
    }
    console.result(&description.to_string())
}

fn generate_verb(args: &GenerateArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let options = GenerateOptions {
        model: args.like,
        tasks: args.tasks,
        users: args.users,
        days: args.days,
        seed: common.seed(),
    };
    let workload = generate(&options).map_err(Failure::input)?;
    write_store(&args.output, &workload)?;
    console.result(&format!(
        "Generated like {}: {} tasks of {} users over {} days, seed {}.\nWritten: {}",
        options.model,
        options.tasks,
        options.users,
        options.days,
        options.seed,
        args.output.display()
    ))
}

fn export_verb(args: &ExportArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let workload = load(&args.workload, &args.trace, common, console)?;
    let exported = match &args.output {
        Some(path) => export_file(&workload, args.to, path),
        None => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            export(&workload, args.to, &mut out).and_then(|done| Ok(out.flush().map(|()| done)?))
        }
    };
    let exported = match exported {
        // A reader that went away (`| head`) is no error.
        Err(ExportError::Io { path: None, source }) if source.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
        other => other.map_err(|e| Failure::new(&e, matches!(e, ExportError::Io { .. })))?,
    };
    for sentence in &exported.losses {
        console.note(sentence);
    }
    match &args.output {
        None => Ok(()),
        Some(path) => console.result(&format!("{} tasks as {}\nWritten: {}", exported.tasks, args.to, path.display())),
    }
}
