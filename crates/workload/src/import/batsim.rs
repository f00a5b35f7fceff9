//! Reads the JSON workloads of Batsim, whose jobs refer to profiles by name.
//!
//! Only delay profiles define a run time (`"delay"` in Batsim 4, `"DelayProfile"` in 5); the others depend on a
//! platform and are errors. Times are parsed from their decimal digits, not through binary floating point. Batsim has
//! no users; the `user_id` or `user` of a job is used if it is there.

use std::collections::HashMap;

use evenhand_model::{Resource, Span, Task, Time, WorkloadBuilder};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::{FieldError, quoted};
use super::lines::{BYTE_ORDER_MARK, malformed};
use super::parse_number::{NANO, decimal, fits};
use super::summary::{Tally, UNKNOWN_USER};
use super::{ImportError, ImportOptions, Part, counted};
use crate::byte_source::{Meter, Shard};

const NO_USER: &str = "no user";

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    jobs: Vec<&'a RawValue>,
    #[serde(borrow)]
    profiles: HashMap<String, &'a RawValue>,
}

#[derive(Deserialize)]
struct Job<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    subtime: &'a RawValue,
    #[serde(borrow)]
    res: &'a RawValue,
    profile: String,
    #[serde(borrow, default)]
    walltime: Option<&'a RawValue>,
    #[serde(borrow, default)]
    user_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    user: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Profile<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow, default)]
    delay: Option<&'a RawValue>,
}

pub(super) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let file = shard.name.clone();
    let text = shard.open()?.rest(meter)?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
    if text.trim_ascii().is_empty() {
        return Err(ImportError::EmptyFile { file });
    }
    let document: Document<'_> = serde_json::from_slice(text).map_err(|e| ImportError::Shape {
        file: file.clone(),
        found: format!("a document that is not a Batsim workload ({e})"),
        expected: "a JSON object with \"jobs\" and \"profiles\"".to_string(),
        remedy: "check that the file is complete and holds a workload, not a platform".to_string(),
    })?;
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", "")]);
    let mut tally = Tally::default();
    let mut profiles = Profiles { raw: &document.profiles, known: HashMap::new() };
    for raw in &document.jobs {
        tally.rows_read += 1;
        if let Err(error) = job(raw, &mut profiles, &mut builder, &mut tally) {
            if !options.lenient {
                let (line, column) = place(text, raw);
                let mut row_error = error.located(&file, line);
                row_error.column = column;
                return Err(row_error.into());
            }
            malformed(&mut tally, &error);
        }
    }
    Ok(Part { builder, tally })
}

/// Returns the line and column of a job in its document; both count from 1.
fn place(text: &[u8], raw: &RawValue) -> (u64, u64) {
    let at = (raw.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
    let before = &text[..at];
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |i| i + 1);
    (memchr::memchr_iter(b'\n', before).count() as u64 + 1, (at - line_start) as u64 + 1)
}

/// The delays of the profiles, each parsed once.
struct Profiles<'a> {
    raw: &'a HashMap<String, &'a RawValue>,
    known: HashMap<&'a str, Result<Span, (String, String)>>,
}

impl<'a> Profiles<'a> {
    fn delay(&mut self, name: &str) -> Result<Span, Box<FieldError>> {
        let Some((name, raw)) = self.raw.get_key_value(name) else {
            let found = format!("the profile {}", quoted(name.as_bytes()));
            return Err(FieldError::described(0, found, "a profile that is in \"profiles\""));
        };
        let known = self.known.entry(name).or_insert_with(|| delay(name, raw));
        known.clone().map_err(|(found, expected)| FieldError::described(0, found, expected))
    }
}

fn delay(name: &str, raw: &RawValue) -> Result<Span, (String, String)> {
    let named = quoted(name.as_bytes());
    let profile: Profile<'_> = serde_json::from_str(raw.get()).map_err(|e| {
        (format!("the invalid profile {named} ({})", unplaced(&e)), "a profile with a \"type\"".to_string())
    })?;
    if !matches!(profile.kind.as_str(), "delay" | "DelayProfile") {
        let found = format!("the profile {named} of type {}", quoted(profile.kind.as_bytes()));
        return Err((found, "a profile of type \"delay\" or \"DelayProfile\"".to_string()));
    }
    let text = profile.delay.map_or("", RawValue::get);
    let span = decimal(text.as_bytes()).and_then(|d| Span::checked_from_nanos(d.nano));
    span.ok_or_else(|| {
        let found = format!("the delay {} of the profile {named}", quoted(text.as_bytes()));
        (found, "seconds, not negative, below 146 years".to_string())
    })
}

/// Returns the message of serde without its place, which counts from the fragment.
fn unplaced(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_string()
}

fn job(
    raw: &RawValue,
    profiles: &mut Profiles<'_>,
    builder: &mut WorkloadBuilder,
    tally: &mut Tally,
) -> Result<(), Box<FieldError>> {
    let job: Job<'_> = serde_json::from_str(raw.get()).map_err(|e| {
        let found = format!("an invalid job ({})", unplaced(&e));
        FieldError::described(0, found, "a job with \"id\", \"subtime\", \"res\" and \"profile\"")
    })?;
    let of_job = |what: &str, value: &RawValue| {
        format!("the {what} {} of job {}", quoted(value.get().as_bytes()), quoted(job.id.get().as_bytes()))
    };
    let seconds = |what: &'static str, value: &RawValue| {
        let nano = decimal(value.get().as_bytes()).map(|d| d.nano);
        let expected = "seconds, not negative, below 146 years";
        nano.and_then(Time::checked_from_nanos).ok_or_else(|| FieldError::described(0, of_job(what, value), expected))
    };
    let submit = seconds("subtime", job.subtime)?;
    let processors = decimal(job.res.get().as_bytes()).map(|d| d.nano);
    let processors = processors.filter(|n| *n > 0 && n % NANO == 0 && fits(*n));
    let processors = processors
        .ok_or_else(|| FieldError::described(0, of_job("res", job.res), "a whole number of resources, at least 1"))?;
    // Batsim writes -1 for a job without a limit.
    let limit = job.walltime.filter(|w| !matches!(w.get(), "-1" | "-1.0" | "null"));
    let requested = limit.map(|w| seconds("walltime", w)).transpose()?.map(|t| Span::from_nanos(t.nanos()));
    let duration = profiles.delay(&job.profile)?;
    let user = [job.user_id, job.user].into_iter().flatten().find(|u| u.get() != "null");
    let user = user
        .map(|u| name(u).ok_or_else(|| FieldError::described(0, of_job("user", u), "a name or a number")))
        .transpose()?;
    if user.is_none() {
        tally.adjust(NO_USER);
    }
    builder.push(&Task {
        submit,
        duration,
        requested,
        user: user.as_deref().unwrap_or("unknown"),
        amounts: &[processors],
        ..Task::default()
    });
    Ok(())
}

/// Returns a string, or the digits of a number.
fn name(raw: &RawValue) -> Option<String> {
    let text = raw.get();
    match text.as_bytes().first()? {
        b'"' => serde_json::from_str(text).ok(),
        b'-' | b'0'..=b'9' => Some(text.to_string()),
        _ => None,
    }
}

pub(super) fn assumptions(tally: &Tally) -> Vec<String> {
    let mut sentences = vec!["A job runs for the delay of its profile; original starts are unknown.".to_string()];
    let n = tally.adjusted.of(NO_USER);
    if n > 0 {
        sentences.push(format!("{} {UNKNOWN_USER}", counted(n, "job has", "jobs have")));
    }
    sentences
}
