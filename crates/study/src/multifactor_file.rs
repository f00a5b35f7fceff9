//! The settings of the policy `multifactor` in TOML.

use std::path::Path;

use evenhand_documents::{Document, DocumentError, Format, Node, Source, did_you_mean};
use evenhand_model::{Rational, Span, Workload};
use evenhand_policies::multifactor::{Fairshare, Settings};

const KEYS: [&str; 8] =
    ["max_age", "fairshare", "damping", "favor_small", "small_relative_to_time", "weights", "tres", "partitions"];
const WEIGHTS: [&str; 4] = ["age", "fairshare", "job_size", "partition"];
/// The largest PriorityJobFactor, by slurm.conf(5).
const LARGEST_PARTITION: u32 = 65_533;

/// Reads the settings of `multifactor` for a workload; the second value lists partitions that it has no queue for.
///
/// ```toml
/// max_age = "14d"                  # PriorityMaxAge: 7d unless said
/// fairshare = "fair-tree"          # or "classic", "depth-oblivious" (PriorityFlags)
/// damping = 1                      # FairShareDampeningFactor
/// favor_small = false              # PriorityFavorSmall
/// small_relative_to_time = false   # PriorityFlags=SMALL_RELATIVE_TO_TIME
///
/// [weights]                        # PriorityWeight…: 0 unless said
/// age = 1000
/// fairshare = 10000
/// job_size = 1000
/// partition = 1000
///
/// [tres]                           # PriorityWeightTRES, by the workload's resources
/// cpu = 1000
/// mem = -50
///
/// [partitions]                     # PriorityJobFactor, by the workload's queues: 1 unless said
/// short = 10
/// ```
///
/// # Errors
/// If the file cannot be read or something in it is not as above; with line and column.
pub fn read_multifactor(path: &Path, workload: &Workload) -> Result<(Settings, Vec<String>), DocumentError> {
    let format = Some(Format::of_path(path).unwrap_or(Format::Toml));
    settings_of(&Document::of(Source::read(path)?, format)?, workload)
}

fn settings_of(document: &Document, workload: &Workload) -> Result<(Settings, Vec<String>), DocumentError> {
    let root = document.root()?;
    root.deny_unknown(&KEYS)?;
    let mut settings = Settings::unset();
    if let Some(age) = root.get("max_age") {
        settings.max_age = Span::parse(age.written()?).map_err(|e| age.error(e.to_string()))?;
    }
    if let Some(kind) = root.get("fairshare") {
        settings.fairshare = kind.text()?.parse::<Fairshare>().map_err(|problem| kind.error(problem))?;
    }
    if let Some(damping) = root.get("damping") {
        settings.damping = damping.positive()?.exact().clone();
    }
    for (key, flag) in
        [("favor_small", &mut settings.favor_small), ("small_relative_to_time", &mut settings.small_relative_to_time)]
    {
        if let Some(node) = root.get(key) {
            *flag = node.flag()?;
        }
    }
    let weights = &mut settings.weights;
    if let Some(table) = root.get("weights") {
        let table = table.with_label("[weights]").table()?;
        if let Some((key, _)) = table.entries().find(|(key, _)| ["qos", "association"].contains(&key.name())) {
            let problem = format!(
                "found {}, of which a workload says nothing: it would count the same for every job",
                key.name()
            );
            return Err(key.error(problem));
        }
        table.deny_unknown(&WEIGHTS)?;
        for (key, weight) in [
            ("age", &mut weights.age),
            ("fairshare", &mut weights.fairshare),
            ("job_size", &mut weights.job_size),
            ("partition", &mut weights.partition),
        ] {
            if let Some(node) = table.get(key) {
                *weight = whole(&node.with_label(format!("weight of {key}")), u32::MAX)?;
            }
        }
    }
    let resources = workload.resources();
    weights.tres = vec![Rational::ZERO; resources.len()];
    if let Some(table) = root.get("tres") {
        for (key, weight) in table.with_label("[tres]").table()?.entries() {
            let Some(r) = resources.iter().position(|r| r.name == key.name()) else {
                let names = || resources.iter().map(|r| r.name.as_str());
                let (known, hint) = (names().collect::<Vec<_>>().join(", "), did_you_mean(key.name(), names()));
                let found = key.name();
                return Err(key.error(format!("found {found:?}, expected one of the resources {known}{hint}")));
            };
            weights.tres[r] = weight.with_label(format!("weight of {}", key.name())).exact()?;
        }
    }
    let mut unknown = Vec::new();
    settings.partitions = vec![1; workload.queues().len()];
    if let Some(table) = root.get("partitions") {
        for (key, factor) in table.with_label("[partitions]").table()?.entries() {
            let factor = whole(&factor.with_label(format!("factor of {:?}", key.name())), LARGEST_PARTITION)?;
            // It is a partition of the site, whether or not a job of the workload is in it.
            settings.highest_partition = settings.highest_partition.max(factor);
            match workload.queues().iter().position(|q| q == key.name()) {
                Some(queue) => settings.partitions[queue] = factor,
                None => unknown.push(key.name().to_string()),
            }
        }
    }
    Ok((settings, unknown))
}

fn whole(node: &Node<'_>, largest: u32) -> Result<u32, DocumentError> {
    let text = node.written()?;
    let number = text.replace('_', "").parse::<u32>().ok().filter(|n| *n <= largest);
    number.ok_or_else(|| node.error(format!("found {text:?}, expected a whole number from 0 to {largest}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::{Resource, Task, WorkloadBuilder};

    fn workload() -> Workload {
        let mut b = WorkloadBuilder::new(["cpu", "mem"].map(|r| Resource::new(r, "")));
        for queue in ["long", "short"] {
            b.push(&Task { user: "a", queue: Some(queue), amounts: &[1, 1], ..Task::default() });
        }
        b.finish().unwrap()
    }

    fn read(text: &str) -> Result<(Settings, Vec<String>), String> {
        let document = Document::parse("m.toml", text, Some(Format::Toml)).map_err(|e| e.to_string())?;
        settings_of(&document, &workload()).map_err(|e| e.to_string().trim_start_matches("m.toml").to_string())
    }

    #[test]
    fn what_is_not_said_is_as_in_slurm() {
        let (settings, unknown) = read("").unwrap();
        assert_eq!(settings.weights.tres, [Rational::ZERO, Rational::ZERO]);
        assert_eq!(settings.partitions, [1, 1]);
        let same = Settings { partitions: vec![], ..settings };
        let same = Settings { weights: Default::default(), ..same };
        assert_eq!((same, unknown), (Settings::unset(), vec![]));
    }

    #[test]
    fn every_setting_is_read() {
        let text = "max_age = \"1.5h\"\nfairshare = \"classic\"\ndamping = 2.5\nfavor_small = true\n\
            small_relative_to_time = true\n[weights]\nage = 1_000\nfairshare = 4294967295\njob_size = 3\npartition = 4\n\
            [tres]\nmem = -0.5\n[partitions]\nshort = 10\nnight = 40\n";
        let (settings, unknown) = read(text).unwrap();
        let w = &settings.weights;
        assert_eq!((w.age, w.fairshare, w.job_size, w.partition), (1000, u32::MAX, 3, 4));
        assert_eq!(w.tres, [Rational::ZERO, Rational::from_parts((-1).into(), 2u8.into())]);
        assert_eq!(settings.max_age, Span::from_secs(5400));
        assert_eq!(settings.fairshare, Fairshare::Classic);
        assert_eq!(settings.damping.to_string(), "5/2");
        assert!(settings.favor_small && settings.small_relative_to_time);
        assert_eq!((settings.partitions, settings.highest_partition), (vec![1, 10], 40));
        assert_eq!(unknown, ["night"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let wrong = |text: &str| read(text).unwrap_err();
        assert!(wrong("max_ages = \"1d\"\n").starts_with(":1:1: unknown field \"max_ages\""));
        assert!(wrong("max_age = 3\n").starts_with(":1:11: max_age: "));
        assert!(
            wrong("\nfairshare = \"fair\"\n")
                .starts_with(":2:13: fairshare: found \"fair\", expected one of: fair-tree")
        );
        assert!(wrong("damping = 0\n").starts_with(":1:11: damping: "));
        assert!(wrong("favor_small = \"yes\"\n").starts_with(":1:15: favor_small: "));
        assert!(
            wrong("[weights]\nage = -1\n").starts_with(":2:7: weight of age: found \"-1\", expected a whole number")
        );
        assert!(wrong("[weights]\nage = 4294967296\n").starts_with(":2:7: weight of age"));
        assert!(wrong("[weights]\nqos = 5\n").starts_with(":2:1: found qos"));
        assert!(wrong("[weights]\nsize = 5\n").starts_with(":2:1: unknown field \"size\""));
        assert!(wrong("[tres]\ngpu = 5\n").starts_with(":2:1: found \"gpu\", expected one of the resources cpu, mem"));
        assert!(wrong("[tres]\ncpu = \"x\"\n").starts_with(":2:7: weight of cpu: "));
        assert!(wrong("[partitions]\nlong = 65534\n").starts_with(":2:8: factor of \"long\": "));
        assert!(wrong("weights = 3\n").starts_with(":1:11: "));
    }
}
