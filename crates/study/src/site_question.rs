//! The question of a site about its own log: on our machines, under the rules of today, who would win or lose?

use std::path::{Path, PathBuf};

use evenhand_model::duration_text::duration;
use evenhand_model::{PeakUse, Rational, Resource, Span, Time, Workload, counted, peak_use, to_f64};
use evenhand_policies::equivalents::PROCESSORS;
use evenhand_simulator::Backfill;

use crate::logged::{LOGGED, has_starts};

/// The name of a capacity that comes from the log itself.
pub(crate) const SITE: &str = "site";
/// The key with which generators mark the header of a workload.
const GENERATOR: &str = "Generator";

/// Ten years. Larger times count from 1970, smaller ones from the trace's own start.
const TEN_YEARS_S: u64 = 315_532_800;

/// The capacity of the machine on which a log was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteCapacity {
    /// The name of the capacity in results.
    pub name: String,
    /// One number per resource, in the workload's own units.
    pub units: Vec<Rational>,
    /// Where each number comes from, and what contradicts it, in sentences.
    pub notes: Vec<String>,
}

/// Returns whether a workload was generated, so that there is no site to ask about.
pub fn is_generated(workload: &Workload) -> bool {
    workload.header().iter().any(|(key, _)| key == GENERATOR)
}

/// Returns the path at which the cluster file of a log is looked for: `NAME.cluster.toml` beside the log
/// `NAME.swf.gz`, and `cluster.toml` beside the `workload.parquet` of a site's folder. `None` if there is no such file.
pub fn cluster_file_of(log: &Path) -> Option<PathBuf> {
    let name = log.file_name()?.to_str()?;
    let unpacked = [".gz", ".zst"].iter().find_map(|extension| name.strip_suffix(extension)).unwrap_or(name);
    let stem = unpacked.rsplit_once('.').map_or(unpacked, |(stem, _)| stem);
    let beside = |name: String| Some(log.with_file_name(name)).filter(|path| path.is_file());
    match name {
        "workload.parquet" => beside("cluster.toml".to_string()),
        _ => beside(format!("{stem}.cluster.toml")),
    }
}

/// Returns the capacity that a log states or shows: processors from the header (`MaxProcs`, else `MaxNodes`), all other
/// resources, and processors without a header, from the peak of use.
pub fn site_capacity(workload: &Workload) -> SiteCapacity {
    let PeakUse { units: peak, at } = peak_use(workload);
    let mut notes: Vec<String> = unreadable_processors(workload).collect();
    let first = workload.columns().submit.first().copied().unwrap_or_default();
    let mut units = Vec::new();
    for (r, ((resource, peak), at)) in workload.resources().iter().zip(&peak).zip(at).enumerate() {
        let name = &resource.name;
        // Jobs without duration are in no peak; a capacity is never 0.
        let largest = workload.demands().rows().map(|(_, amounts)| amounts[r]).max().unwrap_or_default();
        let peak = &peak.clone().max(resource.exact(largest));
        let peak = if peak.is_zero() { &Rational::ONE } else { peak };
        let stated = if PROCESSORS.contains(&name.as_str()) { stated_processors(workload) } else { None };
        let Some((key, processors)) = stated else {
            notes.push(format!(
                "Capacity: {} of {name}, the peak of use, since the log states none{}.",
                amount(peak, resource),
                left_out(workload)
            ));
            units.push(peak.clone());
            continue;
        };
        let of_nodes = if key == MAX_NODES { ", where a node counts as one processor" } else { "" };
        notes.push(format!("Capacity: {processors} of {name}, {key} of the log's header{of_nodes}."));
        notes.extend(excess(workload, name, peak, (key, processors), at.max(first) - first).map(|e| e.warning()));
        units.push(Rational::from(processors));
    }
    SiteCapacity { name: SITE.to_string(), units, notes }
}

/// Formats an amount of a resource for people, with the unit where it is not that of things counted.
fn amount(units: &Rational, resource: &Resource) -> String {
    let units = to_f64(units);
    match resource.unit.as_str() {
        unit if unit.is_empty() || PROCESSORS.contains(&unit) => units.to_string(),
        unit => format!("{units} {unit}"),
    }
}

/// Processors that a log's jobs hold at once beyond those that its header states.
#[derive(Clone, Debug, PartialEq)]
pub struct HeaderExcess {
    resource: String,
    peak: Rational,
    key: &'static str,
    stated: u64,
    /// From the first submission to the peak.
    after: Span,
    left_out: String,
}

impl HeaderExcess {
    /// Returns the comparison of both numbers: `the log's jobs hold 104 of cpu at once, more than MaxProcs of its header (100)`.
    pub fn comparison(&self) -> String {
        let HeaderExcess { resource, peak, key, stated, .. } = self;
        let peak = to_f64(peak);
        format!("the log's jobs hold {peak} of {resource} at once, more than {key} of its header ({stated})")
    }

    /// Returns the warning that a capacity taken from the header is too small.
    pub fn warning(&self) -> String {
        format!(
            "Warning: {}, {} after the first submission{}. Give the true capacity with --capacity.",
            self.comparison(),
            duration(self.after.secs_f64()),
            self.left_out
        )
    }
}

/// Returns by how much the log's jobs exceed the processors that its header states, if they do.
pub fn peak_above_stated(workload: &Workload) -> Option<HeaderExcess> {
    let r = workload.resources().iter().position(|r| PROCESSORS.contains(&r.name.as_str()))?;
    let stated = stated_processors(workload)?;
    let PeakUse { units, at } = peak_use(workload);
    let first = workload.columns().submit.first().copied().unwrap_or_default();
    excess(workload, &workload.resources()[r].name, &units[r], stated, at[r].max(first) - first)
}

fn excess(
    workload: &Workload,
    resource: &str,
    peak: &Rational,
    (key, stated): (&'static str, u64),
    after: Span,
) -> Option<HeaderExcess> {
    (*peak > Rational::from(stated)).then(|| HeaderExcess {
        resource: resource.to_owned(),
        peak: peak.clone(),
        key,
        stated,
        after,
        left_out: left_out(workload),
    })
}

/// States how many jobs without a start are left out of the peak of use.
fn left_out(workload: &Workload) -> String {
    let absent = (0..workload.len()).filter(|row| workload.start(*row).is_none()).count();
    match has_starts(workload) && absent > 0 {
        true => format!(" ({} left out)", counted(absent, "job without a start is", "jobs without a start are")),
        false => String::new(),
    }
}

/// Returns a warning for each resource of which a log's jobs hold more at once than a given capacity, of this name.
pub(crate) fn above_capacity(workload: &Workload, peak: &PeakUse, name: &str, units: &[Rational]) -> Vec<String> {
    let first = workload.columns().submit.first().copied().unwrap_or_default();
    let resources = workload.resources().iter().zip(units).zip(peak.units.iter().zip(&peak.at));
    let exceeds = resources.filter(|((_, there), (held, _))| held > there);
    let warning = |((resource, there), (held, at)): ((&Resource, &Rational), (&Rational, &Time))| {
        format!(
            "Warning: the log's jobs hold {held} of {} at once, more than the capacity {name} has ({there}), {} after \
             the first submission{}. So the row {LOGGED} is of a larger machine than the others. Give the capacity that the log had.",
            resource.name,
            duration(((*at).max(first) - first).secs_f64()),
            left_out(workload)
        )
    };
    exceeds.map(warning).collect()
}

/// Returns the processors that a header states, with the key. By the Standard Workload Format MaxProcs is there where a
/// node has several processors, so without it a node is a processor.
pub fn stated_processors(workload: &Workload) -> Option<(&'static str, u64)> {
    [MAX_PROCS, MAX_NODES].into_iter().find_map(|key| Some((key, whole_number(header_value(workload, key)?)?)))
}

/// The keys of a header that state processors.
const MAX_PROCS: &str = "MaxProcs";
const MAX_NODES: &str = "MaxNodes";

fn header_value<'w>(workload: &'w Workload, key: &str) -> Option<&'w str> {
    workload.header().iter().find(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, value)| value.as_str())
}

/// Returns the number above 0 with which a text begins, whose digits may be in groups: `1,024`. A remark may follow:
/// `400 (48 interactive, 352 batch)`.
fn whole_number(text: &str) -> Option<u64> {
    let word =
        text.split(|c: char| c.is_whitespace() || c == '(' || c == ';').next()?.trim_end_matches([',', '.', ':']);
    let mut groups = word.split(',');
    let (first, others) = (groups.next()?, groups.collect::<Vec<&str>>());
    let is_grouped = others.is_empty() || (first.len() <= 3 && others.iter().all(|group| group.len() == 3));
    let digits: String = word.chars().filter(|c| *c != ',').collect();
    let is_number = is_grouped && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten().filter(|number| *number > 0)
}

/// Returns what a header states of processors that is no number, with the key.
fn unreadable_processors(workload: &Workload) -> impl Iterator<Item = String> + '_ {
    [MAX_PROCS, MAX_NODES].into_iter().filter_map(|key| {
        let value = header_value(workload, key)?;
        let is_unknown = matches!(value.trim(), "" | "-1" | "0") || value.trim().eq_ignore_ascii_case("unknown");
        (!is_unknown && whole_number(value).is_none()).then(|| {
            format!("Warning: {key} of the log's header is {value:?}, expected a whole number; it is left out.")
        })
    })
}

/// Returns time zero of a workload in seconds since 1970: `UnixStartTime` of an SWF header, or 0 if the times themselves
/// count from 1970. `None` if the workload has no dates.
pub fn unix_origin(workload: &Workload) -> Option<u64> {
    let start = workload.header().iter().find(|(key, _)| key.eq_ignore_ascii_case("UnixStartTime"));
    let start = start.and_then(|(_, value)| value.split_whitespace().next()?.parse().ok()).filter(|s| *s > 0);
    let first = workload.columns().submit.first().map_or(0, |t| t.nanos() / 1_000_000_000);
    start.or((first >= TEN_YEARS_S).then_some(0))
}

/// Returns the scheduler of the site's question, and why: EASY where most jobs have a requested wall time.
pub fn site_scheduler(workload: &Workload) -> (Backfill, String) {
    // A request of zero means that none was recorded.
    let asked =
        (0..workload.len()).filter(|row| workload.requested(*row).is_some_and(|wall| wall > Span::ZERO)).count();
    let share = format!("{asked} of {} a requested wall time", counted(workload.len(), "job has", "jobs have"));
    match 2 * asked > workload.len() {
        true => (Backfill::Easy, format!("Scheduler: easy, since {share}.")),
        false => (Backfill::None, format!("Scheduler: strict, since only {share}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::{Nano, Task, WorkloadBuilder};

    const ONE: Nano = 1_000_000_000;

    fn log(header: &[(&str, &str)], requested: usize) -> Workload {
        log_of(4, header, requested)
    }

    fn log_of(jobs: usize, header: &[(&str, &str)], requested: usize) -> Workload {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "processors"), Resource::new("mem", "KB")]);
        for i in 0..jobs {
            b.push(&Task {
                submit: Time::from_secs(10 * i as u64),
                start: Some(Time::from_secs(50 + i as u64)),
                duration: Span::from_secs(60),
                requested: (i < requested).then_some(Span::from_secs(100)),
                user: "ann",
                amounts: &[2 * ONE, 7 * ONE],
                ..Task::default()
            });
        }
        header.iter().for_each(|(key, value)| b.add_header(key, value));
        b.finish().unwrap()
    }

    #[test]
    fn a_job_is_counted_in_the_singular() {
        let (scheduler, why) = site_scheduler(&log_of(1, &[], 0));
        assert_eq!(
            (scheduler, why.as_str()),
            (Backfill::None, "Scheduler: strict, since only 0 of 1 job has a requested wall time.")
        );
    }

    fn capacity(header: &[(&str, &str)]) -> (Vec<String>, String) {
        let found = site_capacity(&log(header, 0));
        (found.units.iter().map(|u| u.to_string()).collect(), found.notes.join(" "))
    }

    #[test]
    fn processors_come_from_the_header_and_the_rest_from_the_peak_of_use() {
        let (units, notes) = capacity(&[("MaxNodes", "8"), ("MaxProcs", "16")]);
        assert_eq!(units, ["16", "28"]);
        assert!(notes.contains("16 of cpu, MaxProcs") && notes.contains("28 KB of mem, the peak of use"), "{notes}");
        assert_eq!(capacity(&[("MaxNodes", "400 (48 interactive)")]).0, ["400", "28"]);
        assert_eq!(capacity(&[("MaxProcs", "unknown")]).0, ["8", "28"]);
        for (text, cpu) in [("1,024", "1024"), ("16 (2 of them old)", "16"), ("12,345,678", "12345678")] {
            assert_eq!(capacity(&[("maxprocs", text)]).0, [cpu, "28"], "{text}");
        }
        for text in ["many", "1e3", "16.5", "1,24", "1024,000", "99999999999999999999", "-5"] {
            let (units, notes) = capacity(&[("MaxProcs", text)]);
            assert_eq!(units, ["8", "28"], "{text}");
            assert!(notes.contains(&format!("MaxProcs of the log's header is {text:?}")), "{notes}");
        }
        let (units, notes) = capacity(&[("MaxProcs", "6")]);
        assert_eq!(units, ["6", "28"]);
        assert!(notes.contains("hold 8 of cpu at once, more than MaxProcs"), "{notes}");
    }

    #[test]
    fn what_is_above_a_given_capacity_is_said_with_jobs_that_are_left_out() {
        let w = log(&[], 0);
        let above = |cpu: u64| above_capacity(&w, &peak_use(&w), "cpu=6", &[cpu.into(), 28.into()]).join(" ");
        assert!(above(6).contains("hold 8 of cpu at once, more than the capacity cpu=6 has (6)"), "{}", above(6));
        assert_eq!(above(8), "");
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
        for start in [Some(Time::ZERO), None] {
            b.push(&Task { start, duration: Span::from_secs(9), user: "a", amounts: &[ONE], ..Task::default() });
        }
        let found = site_capacity(&b.finish().unwrap());
        assert_eq!(found.units, [Rational::ONE]);
        assert!(found.notes[0].contains("states none (1 job without a start is left out)."), "{:?}", found.notes);
    }

    #[test]
    fn easy_needs_wall_times_of_most_jobs() {
        let of = |requested| site_scheduler(&log(&[], requested)).0;
        assert_eq!([2, 3].map(of), [Backfill::None, Backfill::Easy]);
    }

    #[test]
    fn a_cluster_file_stands_beside_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        assert_eq!(cluster_file_of(&path("kth.swf.gz")), None);
        std::fs::write(path("kth.cluster.toml"), "").unwrap();
        std::fs::write(path("cluster.toml"), "").unwrap();
        for log in ["kth.swf.gz", "kth.swf", "kth.parquet"] {
            assert_eq!(cluster_file_of(&path(log)), Some(path("kth.cluster.toml")), "{log}");
        }
        assert_eq!(cluster_file_of(&path("workload.parquet")), Some(path("cluster.toml")));
        assert_eq!(cluster_file_of(&path("sdsc.swf")), None);
    }
}
