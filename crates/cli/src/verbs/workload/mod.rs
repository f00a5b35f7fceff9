//! `evenhand workload`

mod description_table;

use std::io::{self, Write};
use std::path::Path;

use evenhand_model::counted;
use evenhand_workload::Source;
use evenhand_workload::describe::{describe, describe_plots};
use evenhand_workload::export::{ExportError, export, export_file};
use evenhand_workload::generate::{GenerateError, GenerateOptions, generate};
use evenhand_workload::import::Format;
use evenhand_workload::store;

use self::description_table::description_table;
use crate::arguments::{Common, DescribeArgs, ExportArgs, GenerateArgs, ImportArgs, WorkloadVerb};
use crate::failure::Failure;
use crate::inputs::memory::{check_generated, memory_limit};
use crate::inputs::workloads::{import_to, read_workload, store_workload};
use crate::output::console::Console;
use crate::output::fold_lines::{COLUMNS, fold_lines};
use crate::output::table::Table;
use crate::output::write_files::lock_folder;

pub(crate) fn run(verb: WorkloadVerb, common: &Common, console: &Console) -> Result<(), Failure> {
    match verb {
        WorkloadVerb::Import(args) => import_verb(&args, common, console),
        WorkloadVerb::Describe(args) => describe_verb(&args, common, console),
        WorkloadVerb::Generate(args) => generate_verb(&args, common, console),
        WorkloadVerb::Export(args) => export_verb(&args, common, console),
        WorkloadVerb::Formats => formats_verb(console),
    }
}

fn import_verb(args: &ImportArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let summary = import_to(&args.output, &args.inputs, &args.trace, common, console)?;
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
    let summary = fold_lines(&summary.to_string(), COLUMNS, "  ");
    console.result(&format!("{summary}\nWritten: {}", args.output.display()))
}

fn formats_verb(console: &Console) -> Result<(), Failure> {
    let formats = || Format::ALL.iter().filter(|format| **format != Format::Auto);
    if console.is_json() {
        let list: Vec<_> =
            formats().map(|f| serde_json::json!({ "name": f.name(), "description": f.description() })).collect();
        return console.json(&list);
    }
    let mut table = Table::new(2, ["--from", "what"]);
    formats().for_each(|f| table.row(vec![f.name().to_string(), f.description().to_string()]));
    console.result(&table.render())
}

fn describe_verb(args: &DescribeArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    console.refuse_table_options(&[("--seconds", args.seconds)])?;
    let workload = read_workload(&args.workload, &args.trace, common, console)?;
    let description = describe(&workload);
    if let Some(folder) = &args.plot {
        let _lock = lock_folder(folder)?;
        let plots = describe_plots(&workload);
        let written = evenhand_report::write_description_figures(folder, &description, &plots)
            .map_err(|e| Failure::Environment(e.to_string()))?;
        console.note(&format!("{} figures with their data in {}", written.len(), folder.display()));
    }
    if console.is_json() {
        return console.json(&description);
    }
    console.result(&description_table(&description, args.seconds))
}

fn generate_verb(args: &GenerateArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let options = GenerateOptions {
        model: args.like,
        tasks: args.tasks,
        users: args.users,
        days: args.days,
        seed: common.seed(),
    };
    check_generated("--tasks", options.tasks, memory_limit(args.memory))?;
    store::check_is_built(&args.output).map_err(Failure::input)?;
    let workload = generate(&options).map_err(|error| {
        let option = match error {
            GenerateError::Unknown { .. } => "--like",
            GenerateError::NoTasks | GenerateError::TooManyTasks { .. } => "--tasks",
            GenerateError::NoUsers | GenerateError::TooManyUsers { .. } => "--users",
            GenerateError::Days { .. } => "--days",
        };
        Failure::Input(format!("{option}: {error}"))
    })?;
    store_workload(&args.output, &workload)?;
    if console.is_json() {
        return console.json(&serde_json::json!({
            "like": options.model.to_string(),
            "tasks": options.tasks,
            "users": options.users,
            "days": options.days,
            "seed": options.seed,
            "written": args.output,
        }));
    }
    console.result(&format!(
        "Generated like {}: {} of {} over {}, seed {}.\nWritten: {}",
        options.model,
        counted(options.tasks, "task", "tasks"),
        counted(options.users, "user", "users"),
        counted(options.days, "day", "days"),
        options.seed,
        args.output.display()
    ))
}

fn export_verb(args: &ExportArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let output = Some(args.output.as_path()).filter(|path| *path != Path::new("-"));
    if let Some(output) = output {
        Source::from_argument(&args.workload).check_output(output, args.trace.from).map_err(Failure::input)?;
    }
    let workload = read_workload(&args.workload, &args.trace, common, console)?;
    let exported = match output {
        Some(path) => export_file(&workload, args.to, path),
        // The host takes it whole.
        None if console.host().is_some() => {
            let mut out = Vec::new();
            match export(&workload, args.to, &mut out) {
                Ok(done) => console.result_bytes(&out).map(|()| Ok(done))?,
                Err(error) => Err(error),
            }
        }
        None => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            export(&workload, args.to, &mut out).and_then(|done| Ok(out.flush().map(|()| done)?))
        }
    };
    let exported = match exported {
        // A reader that closes the pipe early (`| head`) is no error.
        Err(ExportError::Io { path: None, source }) if source.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
        other => other.map_err(|e| Failure::new(&e, matches!(e, ExportError::Io { .. })))?,
    };
    for sentence in &exported.losses {
        console.note(sentence);
    }
    match output {
        None => Ok(()),
        Some(path) if console.is_json() => console.json(&serde_json::json!({
            "format": args.to.name(),
            "tasks": exported.tasks,
            "losses": exported.losses,
            "written": path,
        })),
        Some(path) => console.result(&format!(
            "{} as {}\nWritten: {}",
            counted(exported.tasks, "task", "tasks"),
            args.to,
            path.display()
        )),
    }
}
