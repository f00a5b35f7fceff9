//! Converts the jobs in a response of slurmrestd to the table that `squeue` prints.
//!
//! A number is plain in v0.0.38 (null if unset), an object of `set`, `infinite` and `number` from v0.0.39 on, and plain or
//! the word "Infinity" in the forms with `+complex`. The state is a word, from v0.0.40 on a list of words.

use serde::Deserialize;
use serde_json::Value;

use super::RestError;
use crate::error::quoted;
use crate::parse_table::SEPARATOR;
use crate::run_commands::FailureKind;

/// A response; other fields are ignored.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answered {
    jobs: Option<Vec<Record>>,
    errors: Value,
}

macro_rules! record {
    ($($name:ident),+) => {
        /// A job in a response.
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Record {
            $($name: Value,)+
        }

        impl Record {
            fn get(&self, name: &str) -> &Value {
                match name {
                    $(stringify!($name) => &self.$name,)+
                    _ => &Value::Null,
                }
            }
        }
    };
}

record!(
    job_id,
    array_job_id,
    array_task_id,
    array_task_string,
    het_job_id,
    het_job_offset,
    user_name,
    user_id,
    account,
    partition,
    qos,
    job_state,
    state_reason,
    state_description,
    submit_time,
    eligible_time,
    start_time,
    end_time,
    time_limit,
    priority,
    nice,
    dependency,
    node_count,
    cpus,
    tasks,
    memory_per_cpu,
    memory_per_node,
    tres_req_str,
    tres_alloc_str,
    tres_per_node,
    tres_per_job,
    tres_per_socket,
    tres_per_task,
    features,
    resv_name,
    nodes,
    restart_cnt,
    licenses
);

/// The names in the header line of `squeue`, for the fields of [`Place::row`].
const HEADER: [&str; 33] = [
    "JOBID",
    "ARRAY_JOB_ID",
    "ARRAY_TASK_ID",
    "HET_JOB_ID",
    "HET_JOB_OFFSET",
    "USER",
    "ACCOUNT",
    "PARTITION",
    "QOS",
    "STATE",
    "REASON",
    "SUBMIT_TIME",
    "ELIGIBLE_TIME",
    "START_TIME",
    "END_TIME",
    "TIME_LIMIT",
    "PRIORITY",
    "NICE",
    "DEPENDENCY",
    "NODES",
    "CPUS",
    "TASKS",
    "MIN_MEMORY",
    "TRES_ALLOC",
    "TRES_PER_NODE",
    "TRES_PER_JOB",
    "TRES_PER_SOCKET",
    "TRES_PER_TASK",
    "FEATURES",
    "RESERVATION",
    "NODELIST",
    "RESTART_COUNT",
    "LICENSES",
];

/// The notation of `squeue` for a missing value.
const NOTHING: &str = "N/A";

/// Returns the table that `squeue` prints. Like there, jobs that have ended are left out.
pub(super) fn table(body: &[u8]) -> Result<String, RestError> {
    let answered: Answered = serde_json::from_slice(body).map_err(|source| {
        if source.is_data() {
            let path = format!("line {}, column {}", source.line(), source.column());
            let expected = "jobs as a list of objects".to_string();
            RestError::Shape { path, found: source.to_string(), expected }
        } else {
            RestError::NotJson { source }
        }
    })?;
    let Some(jobs) = answered.jobs else {
        return Err(RestError::Shape { path: "jobs".into(), found: "nothing".into(), expected: "a list".into() });
    };
    // An error with an empty list is not an empty queue.
    if let Some(message) = error_message(&answered.errors).filter(|_| jobs.is_empty()) {
        return Err(RestError::Reported { status: 200, kind: FailureKind::of(&message), message });
    }
    let mut rows = Vec::with_capacity(jobs.len());
    for (at, record) in jobs.iter().enumerate() {
        rows.extend(Place { at, record }.row()?);
    }
    // The order of the daemon changes when the controller restarts.
    rows.sort_by_key(|(id, _)| *id);
    let lines = rows.into_iter().map(|(_, row)| row);
    let mut text = String::new();
    for line in std::iter::once(HEADER.map(String::from)).chain(lines) {
        for field in &line {
            text.extend(field.chars().map(|c| if c.is_control() { ' ' } else { c }));
            text.push(SEPARATOR);
        }
        text.push('\n');
    }
    Ok(text)
}

/// Returns the errors in a response, if it is JSON and has any.
pub(super) fn complaints(body: &[u8]) -> Option<String> {
    error_message(&serde_json::from_slice::<Answered>(body).ok()?.errors)
}

fn error_message(errors: &Value) -> Option<String> {
    let mut messages: Vec<String> = Vec::new();
    for error in errors.as_array()? {
        let word = |name: &str| error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let one = [word("description"), word("error")].into_iter().flatten().collect::<Vec<_>>().join(": ");
        if !one.is_empty() && !messages.contains(&one) {
            messages.push(one);
        }
    }
    (!messages.is_empty()).then(|| messages.join("; "))
}

/// A number as Slurm represents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Unset,
    Infinite,
    Is(i64),
}

impl Number {
    /// Returns its digits, or `otherwise` if there is none.
    fn or(self, otherwise: &str) -> String {
        match self {
            Number::Is(n) => n.to_string(),
            _ => otherwise.to_string(),
        }
    }

    /// Treats 0, which is no job id and no time, as unset.
    fn unless_zero(self) -> Number {
        if self == Number::Is(0) { Number::Unset } else { self }
    }
}

/// A job and its position in the list.
struct Place<'a> {
    at: usize,
    record: &'a Record,
}

impl Place<'_> {
    fn path(&self, name: &str) -> String {
        format!("jobs[{}].{name}", self.at)
    }

    fn shape(&self, name: &str, found: &Value, expected: &str) -> RestError {
        let found = if found.is_null() { "nothing".into() } else { quoted(&found.to_string()) };
        RestError::Shape { path: self.path(name), found, expected: expected.into() }
    }

    fn number(&self, name: &str) -> Result<Number, RestError> {
        let value = self.record.get(name);
        let plain = |value: &Value| value.as_i64().map(Number::Is);
        let form_error = || self.shape(name, value, "a number");
        match value {
            Value::Null => Ok(Number::Unset),
            Value::Number(_) => plain(value).ok_or_else(form_error),
            Value::String(word) if word == "Infinity" => Ok(Number::Infinite),
            Value::Object(parts) => {
                let is = |part: &str| parts.get(part).and_then(Value::as_bool);
                let Some(set) = is("set") else {
                    return Err(self.shape(
                        &format!("{name}.set"),
                        parts.get("set").unwrap_or(&Value::Null),
                        "true or false",
                    ));
                };
                let number = parts.get("number").unwrap_or(&Value::Null);
                match (is("infinite"), set) {
                    (Some(true), _) => Ok(Number::Infinite),
                    (_, false) => Ok(Number::Unset),
                    _ => plain(number).ok_or_else(|| self.shape(&format!("{name}.number"), number, "a whole number")),
                }
            }
            _ => Err(form_error()),
        }
    }

    /// Returns a word, or words separated by commas.
    fn text(&self, name: &str) -> Result<String, RestError> {
        match self.record.get(name) {
            Value::Null => Ok(String::new()),
            Value::String(text) => Ok(text.clone()),
            value => self.words(name, value).map(|words| words.join(",")),
        }
    }

    fn words<'v>(&self, name: &str, value: &'v Value) -> Result<Vec<&'v str>, RestError> {
        let list = match value {
            Value::String(word) => Some(vec![word.as_str()]),
            Value::Array(list) => list.iter().map(Value::as_str).collect(),
            _ => None,
        };
        list.ok_or_else(|| self.shape(name, value, "a text, or a list of texts"))
    }

    /// Returns the names of its nodes: a text, or a field of an object.
    fn nodes(&self) -> Result<String, RestError> {
        match &self.record.nodes {
            Value::Object(parts) => {
                let list = parts.get("list").unwrap_or(&Value::Null);
                list.as_str().map(String::from).ok_or_else(|| self.shape("nodes.list", list, "a text"))
            }
            _ => self.text("nodes"),
        }
    }

    /// Returns the one word that `squeue` prints for the state; `None` if the job has ended.
    fn state(&self) -> Result<Option<String>, RestError> {
        const ENDED: [&str; 9] = [
            "COMPLETED",
            "CANCELLED",
            "FAILED",
            "TIMEOUT",
            "NODE_FAIL",
            "PREEMPTED",
            "BOOT_FAIL",
            "DEADLINE",
            "OUT_OF_MEMORY",
        ];
        const BASE: [&str; 3] = ["PENDING", "RUNNING", "SUSPENDED"];
        // Like job_state_string of slurm_protocol_defs.c, the first of several flags.
        const FLAGS: [&str; 9] = [
            "COMPLETING",
            "STAGE_OUT",
            "CONFIGURING",
            "RESIZING",
            "REQUEUED",
            "REQUEUE_HOLD",
            "SPECIAL_EXIT",
            "STOPPED",
            "SIGNALING",
        ];
        let words = self.words("job_state", &self.record.job_state)?;
        if words.is_empty() {
            return Err(self.shape("job_state", &self.record.job_state, "a state"));
        }
        let has = |word: &str| words.contains(&word);
        // A revoked job of a federation runs on another cluster.
        if has("REVOKED") || (words.iter().any(|word| ENDED.contains(word)) && !has("COMPLETING")) {
            return Ok(None);
        }
        let known = FLAGS.into_iter().find(|flag| has(flag));
        let other = words.iter().find(|word| !BASE.contains(word) && !ENDED.contains(word)).copied();
        Ok(Some(known.or(other).unwrap_or(words[0]).to_string()))
    }

    /// Returns the job id and the row that `squeue` prints.
    fn row(&self) -> Result<Option<(i64, [String; 33])>, RestError> {
        let Number::Is(id) = self.number("job_id")? else {
            return Err(self.shape("job_id", &self.record.job_id, "a job's number"));
        };
        let Some(state) = self.state()? else { return Ok(None) };
        let number = |name: &str| Ok(self.number(name)?.or(NOTHING));
        let moment = |name: &str| Ok(self.number(name)?.unless_zero().or(NOTHING));
        let or = |text: String, otherwise: String| if text.is_empty() { otherwise } else { text };
        let array = self.number("array_job_id")?.unless_zero();
        let tasks = self.text("array_task_string")?;
        if tasks.contains("...") {
            return Err(RestError::Shortened { path: self.path("array_task_string") });
        }
        let tasks = if tasks.is_empty() { number("array_task_id")? } else { tasks };
        let het = self.number("het_job_id")?.unless_zero();
        let user = or(self.text("user_name")?, number("user_id")?);
        // In minutes. squeue prints no end either if there is no limit.
        let (limit, end) = match self.number("time_limit")? {
            Number::Is(minutes) => {
                let (hours, minutes) = (minutes.div_euclid(60), minutes.rem_euclid(60));
                (format!("{}-{:02}:{minutes:02}:00", hours / 24, hours % 24), moment("end_time")?)
            }
            _ => ("UNLIMITED".into(), NOTHING.into()),
        };
        // Unsigned in v0.0.38, and null for 0.
        let nice = match self.number("nice")? {
            Number::Is(n) => u32::try_from(n).map_or(n, |bits| i64::from(bits.cast_signed())),
            _ => 0,
        };
        // Mebibytes.
        let memory = match (self.number("memory_per_cpu")?, self.number("memory_per_node")?) {
            (Number::Is(megabytes), _) | (_, Number::Is(megabytes)) => format!("{megabytes}M"),
            _ => "0".into(),
        };
        Ok(Some((
            id,
            [
                id.to_string(),
                array.or(&id.to_string()),
                tasks,
                het.or(NOTHING),
                if het == Number::Unset { NOTHING.into() } else { number("het_job_offset")? },
                user,
                self.text("account")?,
                self.text("partition")?,
                self.text("qos")?,
                state,
                or(self.text("state_description")?, self.text("state_reason")?),
                moment("submit_time")?,
                moment("eligible_time")?,
                moment("start_time")?,
                end,
                limit,
                number("priority")?,
                nice.to_string(),
                self.text("dependency")?,
                number("node_count")?,
                number("cpus")?,
                number("tasks")?,
                memory,
                or(self.text("tres_alloc_str")?, self.text("tres_req_str")?),
                self.text("tres_per_node")?,
                self.text("tres_per_job")?,
                self.text("tres_per_socket")?,
                self.text("tres_per_task")?,
                self.text("features")?,
                self.text("resv_name")?,
                self.nodes()?,
                number("restart_cnt")?,
                self.text("licenses")?,
            ],
        )))
    }
}
