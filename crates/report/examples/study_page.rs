//! Writes the report of the record in a `summary.json`, or of a generated study.
//!
//! `cargo run -p evenhand-report --example study_page -- FOLDER [SUMMARY.json | USERS POLICIES CAPACITIES]`

use std::path::PathBuf;
use std::time::Instant;

use evenhand_report::write_study_report;
use evenhand_study::record::StudyRecord;

#[path = "../tests/generated/study_record.rs"]
mod study_record;

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = PathBuf::from(arguments.first().ok_or("expected a folder as the first argument")?);
    let record: StudyRecord = match &arguments[1..] {
        [] => study_record::study(&study_record::StudyShape { repeats: true, ..study_record::StudyShape::default() }),
        [file] => serde_json::from_reader(std::fs::File::open(file)?)?,
        [users, policies, capacities, rest @ ..] => study_record::study(&study_record::StudyShape {
            users: users.parse()?,
            policies: policies.parse()?,
            capacities: capacities.parse()?,
            incomplete: rest.is_empty(),
            ..study_record::StudyShape::default()
        }),
        _ => return Err("expected FOLDER [SUMMARY.json | USERS POLICIES CAPACITIES]".into()),
    };
    let start = Instant::now();
    let written = write_study_report(&folder, &record)?;
    println!("{} figures and data files, {} bytes, {:?}", written.figures.len(), written.bytes, start.elapsed());
    Ok(())
}
