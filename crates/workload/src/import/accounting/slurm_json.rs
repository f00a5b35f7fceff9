//! Reads Slurm's jobs as JSON: `sacct --json` and `squeue --json`, from Slurm 21.08 to 26.05.
//!
//! Numbers are plain in old versions and objects `{set, infinite, number}` since 23.02; states are a word in old ones
//! and a list of words since. A job of `sacct` holds its allocated TRES from start to end. A job of `squeue` that has
//! not ended runs until its time limit.

use std::borrow::Cow;

use evenhand_model::{Detail, Details, JobArray, Nano, Span, Time, expand_hostlist, parse_licences};
use serde_json::Value;

use super::{JobRecord, Jobs, Records, Unfinished, for_each_record, number, optional, text, time};
use crate::byte_source::{Meter, Shard};
use crate::import::error::FieldError;
use crate::import::parse_number::NANO;
use crate::import::sacct::{
    Asked, COMPONENT, COMPONENT_SENTENCE, GpuTypes, HELD_TYPE, HELD_TYPE_SENTENCE, OTHER_GRES, OTHER_GRES_SENTENCE,
    TYPE_ALONE, TYPE_ALONE_SENTENCE, with_layout,
};
use crate::import::summary::Tally;
use crate::import::{ImportError, ImportOptions, Part};
use crate::outcome;
use crate::slurm_notation::{self, NamedGres};

/// From this number on, a number of 32 bits means that there is no value.
const NO_VALUE: u64 = u32::MAX as u64 - 1;

const REQUESTED: &str = "requested amounts";
pub(in crate::import) const ASSUMED: &[(&str, &str)] = &[
    (REQUESTED, "no allocated TRES; the requested amounts are taken."),
    (HELD_TYPE, HELD_TYPE_SENTENCE),
    (TYPE_ALONE, TYPE_ALONE_SENTENCE),
    (OTHER_GRES, OTHER_GRES_SENTENCE),
    (COMPONENT, COMPONENT_SENTENCE),
];

pub(in crate::import) fn read(
    shard: Shard,
    options: &ImportOptions,
    meter: &Meter<'_>,
    tally: Tally,
) -> Result<Part, ImportError> {
    let mut jobs = Jobs::new(options);
    jobs.tally = tally;
    // `jq -c '.jobs[]'` prints the jobs one after the other, without the object around them.
    let records = Records::UnderOrEach { list: "jobs", of_each: "job_id" };
    for_each_record(shard, options, meter, records, &mut jobs, row)?;
    Ok(jobs.finish())
}

/// Returns the id of a job as squeue prints it: `100_2` of a task of an array, `200+1` of a component.
fn id(job: &Value) -> Option<String> {
    let whole = |value: &Value| number(value).map(|nano| nano / NANO);
    let nested = |outer: &str, key: &str, flat: &str| whole(&job[outer][key]).or_else(|| whole(&job[flat]));
    let of = |outer: &str, key: &str, flat: &str, part: Option<Nano>, mark: char| {
        let whole_job = nested(outer, key, flat).filter(|n| *n > 0)?;
        Some(format!("{whole_job}{mark}{}", part?))
    };
    let task = nested("array", "task_id", "array_task_id").filter(|n| *n < Nano::from(u32::MAX - 1));
    let component = nested("het", "job_offset", "het_job_offset");
    of("array", "job_id", "array_job_id", task, '_')
        .or_else(|| of("het", "job_id", "het_job_id", component, '+'))
        .or_else(|| whole(&job["job_id"]).map(|n| n.to_string()))
}

fn row(job: &Value, jobs: &mut Jobs) -> Result<(), Box<FieldError>> {
    // Only accounting nests the times.
    let times = &job["time"];
    let of_queue = !times.is_object();
    let states = states(job);
    let is = |name: &str| states.iter().any(|s| s == name);
    let named = |key: &str, nested: &str| if of_queue { &job[key] } else { &times[nested] };
    // Some versions write the numbers that mean "no value" and "infinite" inside Slurm.
    let known = |time: Option<Time>| time.filter(|t| t.nanos() / 1_000_000_000 < NO_VALUE);
    let submit = known(time(named("submit_time", "submission"), "the submit time")?);
    let mut start = known(time(named("start_time", "start"), "the start time")?);
    let mut end = known(time(named("end_time", "end"), "the end time")?);
    let elapsed = if of_queue { None } else { number(&times["elapsed"]).and_then(Span::checked_from_nanos) };
    // Accounting has a row of its own for each run of a job that was requeued: its state is REQUEUED, with or without
    // PENDING, and its times are those of the run.
    let has_run =
        !of_queue && start.is_some() && end.is_some_and(|end| elapsed.map_or(start < Some(end), |e| e.nanos() > 0));
    let waiting = !has_run && (is("PENDING") || is("REQUEUED") || is("REQUEUE_HOLD"));
    let running =
        ["RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "STOPPED", "SIGNALING", "STAGE_OUT"];
    if waiting {
        // Of a job that waits, these are the planned times.
        (start, end) = (None, None);
    } else if running.iter().any(|s| is(s)) {
        // Of a job that runs, the end is the latest one possible.
        end = None;
    }
    let limit = optional(limit(if of_queue { &job["time_limit"] } else { &times["limit"] }), jobs)?;
    let held = tres(job, of_queue, "allocated", "tres_alloc_str")?;
    // What a job that was cancelled while it waited records as its start is its end.
    if is("CANCELLED") && held.is_none() && (!of_queue || start == end) {
        start = None;
    }
    let requested = tres(job, of_queue, "requested", "tres_req_str")?;
    if held.is_none() && start.is_some() {
        jobs.tally.adjust(REQUESTED);
    }
    let req_gres = named_gres(job, of_queue, "requested", "tres_req_str");
    let held_gres = named_gres(job, of_queue, "allocated", "tres_alloc_str");
    if start.is_some() && req_gres.as_ref().or(held_gres.as_ref()).is_some_and(|named| named.has_others) {
        jobs.tally.adjust(OTHER_GRES);
    }
    let id = id(job);
    if start.is_some() && id.as_deref().is_some_and(|id| id.contains('+')) {
        jobs.tally.adjust(COMPONENT);
    }
    let least_nodes = requested.and_then(|requested| requested.node);
    let asked = held.and(requested);
    let amounts = held.or(requested).unwrap_or_default();
    let positive = |value: &Value| number(value).filter(|n| *n > 0);
    let cpu = amounts.cpu.or_else(|| positive(&job["cpus"])).or_else(|| positive(&job["required"]["CPUs"]));
    let memory_of = |cpu| memory(job, of_queue, cpu);
    let memory = amounts.mem.or_else(|| memory_of(cpu));
    let asked = asked.map(|asked| [asked.cpu, asked.mem.or_else(|| memory_of(asked.cpu)), asked.gpu]);
    let command = text(&job["submit_line"]);
    let whole = |nano: Nano| u64::try_from(nano / NANO).ok();
    let of_command = Asked {
        command: command.as_deref(),
        processors: asked.and_then(|asked| asked[0]).or(cpu).and_then(whole).unwrap_or_default(),
        least_nodes: least_nodes.and_then(whole),
        nodes: nodes(job).and_then(whole),
    };
    let features = text(&job["constraints"]).or_else(|| text(&job["features"]));
    let features = features.and_then(|features| slurm_notation::parse_constraints(&features));
    let lists = ["tres_per_node", "tres_per_job", "tres_per_socket", "tres_per_task"].map(|key| text(&job[key]));
    let gpu_types = GpuTypes {
        requested: req_gres.as_ref(),
        held: held_gres.as_ref(),
        gres: &lists.iter().flatten().map(|list| list.as_ref()).collect::<Vec<_>>(),
        command: command.as_deref(),
    };
    // Jobs that never started are dropped, and not counted.
    let mut of_dropped = Tally::default();
    let gpu_types = gpu_types.words(if start.is_some() { &mut jobs.tally } else { &mut of_dropped });
    let requires = with_layout(features, gpu_types, of_command, amounts.gpu.is_some_and(|gpus| gpus > 0));
    let user = [&job["user"], &job["user_name"], &job["association"]["user"], &job["user_id"]];
    jobs.push(&JobRecord {
        id: id.map(Cow::Owned),
        submit,
        start,
        end,
        nodes: nodes(job).and_then(|n| u64::try_from(n / NANO).ok()),
        elapsed: elapsed_of_run(start, end, elapsed, &times["suspended"]),
        requested: limit,
        user: user.into_iter().find_map(text),
        account: text(&job["account"]).or_else(|| text(&job["association"]["account"])),
        queue: text(&job["partition"]),
        cpu,
        mem: memory,
        gpu: amounts.gpu,
        asked: asked.map(|amounts| amounts.map(Option::unwrap_or_default)),
        eligible: known(time(named("eligible_time", "eligible"), "the eligible time")?),
        details: Details::from_fn(|detail| match detail {
            Detail::Chunks => None,
            Detail::Requires => requires.as_deref().map(Cow::Borrowed),
            Detail::Qos => text(&job["qos"]),
            Detail::Machines => text(&job["nodes"])
                .filter(|list| start.is_some() && !list.contains(' ') && expand_hostlist(list).is_some()),
            Detail::Licences => {
                text(&job["licenses"]).filter(|text| parse_licences(text).is_some_and(|all| !all.is_empty()))
            }
            Detail::Array => array(job).map(Cow::Owned),
            Detail::Nice => nice(job).map(Cow::Owned),
            Detail::Reservation => text(&job["reservation"]["name"]).or_else(|| text(&job["resv_name"])),
            Detail::Outcome => end.and_then(|_| states.iter().find_map(|s| outcome::of_slurm(s))).map(Cow::Borrowed),
        }),
        unfinished: if of_queue { Unfinished::UntilLimit } else { Unfinished::Drop },
    })
}

/// Returns the run time of a job of accounting that has ended: `time.elapsed`, which is without the time in which the job was
/// suspended, as ElapsedRaw of the text is. Where it is absent, or 0 without a reason, the end minus the start and the time
/// suspended is the same; `None` leaves it to the end minus the start.
fn elapsed_of_run(start: Option<Time>, end: Option<Time>, elapsed: Option<Span>, suspended: &Value) -> Option<Span> {
    let whole = end.filter(|end| Some(*end) >= start)?.since(start?);
    if elapsed.is_some_and(|elapsed| elapsed.nanos() > 0) {
        return elapsed;
    }
    let suspended = number(suspended).and_then(Span::checked_from_nanos).filter(|suspended| *suspended <= whole)?;
    Some(Span::from_nanos(whole.nanos() - suspended.nanos()))
}

/// Returns the nice value of a job of the queue; accounting has none.
fn nice(job: &Value) -> Option<String> {
    let nice = job["nice"].as_i64().or_else(|| job["nice"]["number"].as_i64())?;
    // Unsigned in v0.0.38.
    let nice = u32::try_from(nice).map_or(nice, |bits| i64::from(bits.cast_signed()));
    (nice != 0).then(|| nice.to_string())
}

/// Returns the array of a task, with its throttle: `array.limits.max.running.tasks` of accounting, `array_max_tasks` of the
/// queue.
fn array(job: &Value) -> Option<String> {
    let id = id(job)?;
    let name = slurm_notation::array_of_task(&id)?;
    let limits = [&job["array"]["limits"]["max"]["running"]["tasks"], &job["array_max_tasks"]];
    let most = limits.into_iter().find_map(number).and_then(|nano| u32::try_from(nano / NANO).ok());
    let throttle = most.filter(|most| *most > 0 && u64::from(*most) < NO_VALUE);
    Some(JobArray { name, throttle }.to_string())
}

/// Returns the words of the state: a list, a word, or a word with a reason (`CANCELLED by 7`).
fn states(job: &Value) -> Vec<String> {
    let state = if job["job_state"].is_null() { &job["state"] } else { &job["job_state"] };
    let state = if state.is_object() { &state["current"] } else { state };
    let words = match state {
        Value::Array(words) => words.iter().filter_map(text).collect(),
        other => Vec::from_iter(text(other)),
    };
    words.iter().filter_map(|word: &Cow<'_, str>| word.split_whitespace().next()).map(str::to_uppercase).collect()
}

/// Returns a time limit in minutes; none for an infinite one, and for a partition's.
fn limit(value: &Value) -> Result<Option<Span>, Box<FieldError>> {
    if let Value::String(text) = value {
        let limit = slurm_notation::limit(text.trim().as_bytes(), false);
        return limit.ok_or_else(|| FieldError::new(0, text.as_bytes(), "a time limit in minutes"));
    }
    Ok(number(value).and_then(|minutes| minutes.checked_mul(60)).and_then(Span::checked_from_nanos))
}

/// Returns the TRES of one kind: a list of objects in accounting, a text in the queue. `None` if there are none.
fn tres(
    job: &Value,
    of_queue: bool,
    kind: &str,
    text_key: &str,
) -> Result<Option<slurm_notation::Amounts>, Box<FieldError>> {
    if of_queue {
        let Some(list) = text(&job[text_key]) else { return Ok(None) };
        let amounts = slurm_notation::tres(list.as_bytes());
        return amounts.map(Some).map_err(|e| FieldError::new(0, e.found, "TRES such as cpu=8,mem=125000M,gres/gpu=1"));
    }
    let Some(list) = job["tres"][kind].as_array().filter(|list| !list.is_empty()) else { return Ok(None) };
    let mut amounts = slurm_notation::Amounts::default();
    let mut typed: Option<Nano> = None;
    for one in list {
        let Some(count) = number(&one["count"]) else { continue };
        match (one["type"].as_str().unwrap_or_default(), one["name"].as_str().unwrap_or_default()) {
            ("cpu", _) => amounts.cpu = Some(count),
            ("mem", _) => amounts.mem = count.checked_mul(1 << 20),
            ("gres", "gpu") => amounts.gpu = Some(count),
            ("node", _) => amounts.node = Some(count),
            // Jobs have both the sum and the types, or, at some sites, the types alone.
            ("gres", name) if name.starts_with("gpu:") => typed = Some(typed.unwrap_or(0).saturating_add(count)),
            _ => {}
        }
    }
    amounts.gpu = amounts.gpu.or(typed);
    Ok(Some(amounts).filter(|a| a.cpu.is_some() || a.gpu.is_some()))
}

/// Returns what the TRES of one kind name beside processors and memory; `None` if there are none.
fn named_gres(job: &Value, of_queue: bool, kind: &str, text_key: &str) -> Option<NamedGres> {
    if of_queue {
        return text(&job[text_key]).map(|list| NamedGres::of_text(list.as_bytes()));
    }
    let list = job["tres"][kind].as_array().filter(|list| !list.is_empty())?;
    let mut named = NamedGres::default();
    for one in list.iter().filter(|one| one["type"] == "gres" && number(&one["count"]) > Some(0)) {
        named.add(one["name"].as_str().unwrap_or_default());
    }
    Some(named)
}

/// Returns the number of nodes that a job had or, of one that waits, requests; a job that never had any has 0 of them in
/// accounting.
fn nodes(job: &Value) -> Option<Nano> {
    let counts = [&job["node_count"], &job["allocation_nodes"]];
    counts.into_iter().filter_map(number).find(|n| *n > 0)
}

/// Returns the memory from the request for each CPU or node, which is in MiB.
fn memory(job: &Value, of_queue: bool, cpu: Option<Nano>) -> Option<Nano> {
    let request = if of_queue { job } else { &job["required"] };
    let positive = |key: &str| number(&request[key]).filter(|n| *n > 0);
    let mebibytes = match (positive("memory_per_cpu"), positive("memory_per_node")) {
        (Some(each), _) => each.checked_mul(cpu?)? / NANO,
        (None, Some(each)) => each.checked_mul(nodes(job).unwrap_or(NANO))? / NANO,
        (None, None) => return None,
    };
    mebibytes.checked_mul(1 << 20)
}
