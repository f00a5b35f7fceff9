//! The section `[multifactor]`.

use std::collections::HashMap;

use evenhand_documents::{DocumentError, Node, did_you_mean};
use evenhand_model::{Rational, Resource, Span, queue_names};

use super::of_site::factor_of;
use super::{Fairshare, NoNormal, Settings};
use crate::billing::{BILLING_KEY, BillingRule, BillingSettings, JobBilling};
use crate::settings::{ReadSettings, Section, SettingKey};
use crate::{PolicyContext, PolicyError};

const WEIGHTS: [&str; 6] = ["age", "association", "fairshare", "job_size", "partition", "qos"];
/// The largest PriorityJobFactor, by slurm.conf(5).
const LARGEST_PARTITION: u32 = 65_533;

/// The settings of `multifactor`. What the section does not have is as the site's own Slurm has it, if its
/// configuration is known; else as Slurm has it where nothing is set. Without a section and without a site: the example
/// of Slurm's documentation.
///
/// ```toml
/// [multifactor]
/// max_age = "14d"                  # PriorityMaxAge
/// fairshare = "fair-tree"          # or "classic", "depth-oblivious" (PriorityFlags)
/// damping = 1                      # FairShareDampeningFactor
/// favor_small = false              # PriorityFavorSmall
/// small_relative_to_time = false   # PriorityFlags=SMALL_RELATIVE_TO_TIME
/// no_normal = ["qos", "tres"]      # PriorityFlags=NO_NORMAL_QOS,NO_NORMAL_TRES
/// nodes = 64                       # of the site: half of a job's size is its part of them
///
/// [multifactor.weights]            # PriorityWeight…
/// age = 1000
/// association = 100
/// fairshare = 10000
/// job_size = 1000
/// partition = 1000
/// qos = 500
///
/// [multifactor.tres]               # PriorityWeightTRES, by the workload's resources
/// cpu = 1000
/// mem = -50
///
/// [multifactor.partitions]         # PriorityJobFactor, by the workload's queues
/// short = 10
///
/// [multifactor.qos]                # Priority of sacctmgr, by the workload's QOS
/// urgent = 100
/// ```
#[derive(Debug)]
pub(crate) struct MultifactorSection {
    pub(crate) settings: Settings,
    pub(crate) billing: JobBilling,
    pub(crate) unknown: Unknown,
}

/// What the settings name and the workload does not have: it is without effect.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Unknown {
    queues: Vec<String>,
    resources: Vec<String>,
}

/// Resources that a site may weight though a workload has none of them, such as a log of processors alone.
const RESOURCES_OF_SITES: [&str; 3] = ["cpu", "mem", "gpu"];

impl ReadSettings for MultifactorSection {
    const KEYS: &'static [SettingKey] = &[
        SettingKey {
            name: "max_age",
            kind: "time (\"14d\")",
            default: "\"7d\"",
            help: "PriorityMaxAge: the age at which the age factor is 1",
        },
        SettingKey {
            name: "fairshare",
            kind: "\"fair-tree\", \"classic\" or \"depth-oblivious\"",
            default: "\"fair-tree\"",
            help: "the fair-share factor (PriorityFlags)",
        },
        SettingKey {
            name: "damping",
            kind: "number > 0",
            default: "1",
            help: "FairShareDampeningFactor, of the classic and the depth-oblivious factor",
        },
        SettingKey {
            name: "favor_small",
            kind: "true or false",
            default: "false",
            help: "PriorityFavorSmall: small jobs have the larger size factor",
        },
        SettingKey {
            name: "small_relative_to_time",
            kind: "true or false",
            default: "false",
            help: "PriorityFlags=SMALL_RELATIVE_TO_TIME: the size factor is size over time limit",
        },
        SettingKey {
            name: "nodes",
            kind: "whole number",
            default: "0",
            help: "the site's nodes, of which a job's part is half of its size factor; 0: its processors alone count",
        },
        SettingKey {
            name: "no_normal",
            kind: "list of \"association\", \"partition\", \"qos\", \"tres\"",
            default: "[]",
            help: "PriorityFlags=NO_NORMAL_…: these factors are plain numbers, not parts of the highest",
        },
        SettingKey { name: "weights.age", kind: "whole number", default: "0", help: "PriorityWeightAge" },
        SettingKey {
            name: "weights.association",
            kind: "whole number",
            default: "0",
            help: "PriorityWeightAssoc; the priorities are those of the accounts file",
        },
        SettingKey { name: "weights.fairshare", kind: "whole number", default: "0", help: "PriorityWeightFairShare" },
        SettingKey { name: "weights.job_size", kind: "whole number", default: "0", help: "PriorityWeightJobSize" },
        SettingKey { name: "weights.partition", kind: "whole number", default: "0", help: "PriorityWeightPartition" },
        SettingKey { name: "weights.qos", kind: "whole number", default: "0", help: "PriorityWeightQOS" },
        SettingKey {
            name: "tres.RESOURCE",
            kind: "number",
            default: "0",
            help: "PriorityWeightTRES, by the workload's resources",
        },
        SettingKey {
            name: "partitions.QUEUE",
            kind: "whole number",
            default: "1",
            help: "PriorityJobFactor, by the workload's queues",
        },
        SettingKey {
            name: "qos.QOS",
            kind: "whole number",
            default: "0",
            help: "Priority of a QOS (sacctmgr), by the workload's",
        },
        BILLING_KEY,
    ];

    fn read(section: &Section<'_>, context: &PolicyContext<'_>) -> Result<MultifactorSection, PolicyError> {
        let base = match context.site {
            Some(site) => Settings::of_site(site, context.resources, context.queues, context.qos)?,
            // Another billing alone does not choose other weights.
            None if section.is_absent() || section.is_only("billing") => Settings::default(),
            None => Settings::unset(),
        };
        let billing = match (BillingSettings::read(section, context)?, context.site) {
            (BillingSettings { billing: None }, Some(site)) => site.billing(context)?,
            (settings, _) => settings.or_shares(BillingRule::Largest).into(),
        };
        let (settings, unknown) = over(base, section, context)?;
        Ok(MultifactorSection { settings, billing, unknown })
    }

    fn notes(&self) -> Vec<String> {
        let kinds = [("queue", &self.unknown.queues), ("resource", &self.unknown.resources)];
        let named = kinds.into_iter().filter(|(_, names)| !names.is_empty());
        named.map(|(kind, names)| format!("no {kind} of the workload: {}", names.join(", "))).collect()
    }
}

impl Settings {
    /// Returns the settings as a file of policy settings, for a workload with these resources, queues and QOS.
    pub fn to_file(&self, resources: &[Resource], queues: &[String], qos: &[String]) -> String {
        format!("[{}]\n{}", super::REGISTRATION.name, self.to_toml(resources, queues, qos))
    }

    /// Returns the settings as the contents of a section `[multifactor]`, for a workload with these resources, queues and
    /// QOS.
    ///
    /// ```
    /// use evenhand_policies::multifactor::Settings;
    /// let text = Settings::default().to_toml(&[], &[], &[]);
    /// assert!(text.contains("max_age = \"1209600s\"") && text.contains("weights = { age = 1000,"));
    /// ```
    pub fn to_toml(&self, resources: &[Resource], queues: &[String], qos: &[String]) -> String {
        let w = &self.weights;
        let (seconds, nanos) = (self.max_age.nanos() / 1_000_000_000, self.max_age.nanos() % 1_000_000_000);
        let part = if nanos == 0 { String::new() } else { format!(".{nanos:09}") };
        let mut text = format!(
            "max_age = \"{seconds}{part}s\"\nfairshare = \"{}\"\ndamping = \"{}\"\nfavor_small = {}\nsmall_relative_to_time = {}\n",
            self.fairshare, self.damping, self.favor_small, self.small_relative_to_time
        );
        let plain = self.no_normal.names();
        if !plain.is_empty() {
            text += &format!("no_normal = {plain:?}\n");
        }
        if self.nodes > 0 {
            text += &format!("nodes = {}\n", self.nodes);
        }
        text += &format!(
            "weights = {{ age = {}, association = {}, fairshare = {}, job_size = {}, partition = {}, qos = {} }}\n",
            w.age, w.association, w.fairshare, w.job_size, w.partition, w.qos
        );
        let tres = resources.iter().zip(&w.tres).map(|(r, weight)| format!("{:?} = \"{weight}\"", r.name));
        text += &format!("tres = {{ {} }}\n", tres.collect::<Vec<_>>().join(", "));
        let mut factors: Vec<String> =
            queues.iter().zip(&self.partitions).map(|(queue, factor)| format!("{queue:?} = {factor}")).collect();
        // A partition of the site in which no job of the workload is.
        if self.partitions.iter().copied().max().unwrap_or(1) < self.highest_partition {
            factors.push(format!("\"highest of the site\" = {}", self.highest_partition));
        }
        text += &format!("partitions = {{ {} }}\n", factors.join(", "));
        let mut priorities: Vec<String> =
            qos.iter().zip(&self.qos).map(|(name, priority)| format!("{name:?} = {priority}")).collect();
        if self.qos.iter().copied().max().unwrap_or(0) < self.highest_qos {
            priorities.push(format!("\"highest of the site\" = {}", self.highest_qos));
        }
        text += &format!("qos = {{ {} }}\n", priorities.join(", "));
        text
    }
}

/// The section's values over `settings`, and the partitions that are no queue of the workload.
fn over(
    mut settings: Settings,
    root: &Section<'_>,
    context: &PolicyContext<'_>,
) -> Result<(Settings, Unknown), DocumentError> {
    let mut unknown = Unknown::default();
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
    if let Some(list) = root.get("no_normal") {
        settings.no_normal = NoNormal::default();
        for node in list.list()? {
            let name = node.text()?;
            let Some(flag) = settings.no_normal.flag(name) else {
                let problem = format!("found {name:?}, expected one of: {}", NoNormal::NAMES.join(", "));
                return Err(node.error(problem));
            };
            *flag = true;
        }
    }
    if let Some(nodes) = root.get("nodes") {
        settings.nodes = whole(&nodes, u32::MAX)?;
    }
    let weights = &mut settings.weights;
    if let Some(table) = root.get("weights") {
        let table = table.with_label("[weights]").table()?;
        table.deny_unknown(&WEIGHTS)?;
        for (key, weight) in [
            ("age", &mut weights.age),
            ("association", &mut weights.association),
            ("fairshare", &mut weights.fairshare),
            ("job_size", &mut weights.job_size),
            ("partition", &mut weights.partition),
            ("qos", &mut weights.qos),
        ] {
            if let Some(node) = table.get(key) {
                *weight = whole(&node.with_label(format!("weight of {key}")), u32::MAX)?;
            }
        }
    }
    let resources = context.resources;
    weights.tres.resize(resources.len(), Rational::ZERO);
    if let Some(table) = root.get("tres") {
        for (key, weight) in table.with_label("[tres]").table()?.entries() {
            let weight = weight.with_label(format!("weight of {}", key.name())).exact()?;
            let Some(r) = resources.iter().position(|r| r.name == key.name()) else {
                if RESOURCES_OF_SITES.contains(&key.name()) {
                    unknown.resources.push(key.name().to_string());
                    continue;
                }
                let names = || resources.iter().map(|r| r.name.as_str());
                let (known, hint) = (names().collect::<Vec<_>>().join(", "), did_you_mean(key.name(), names()));
                let found = key.name();
                return Err(key.error(format!("found {found:?}, expected one of the resources {known}{hint}")));
            };
            weights.tres[r] = weight;
        }
    }
    settings.partitions.resize(context.queues.len(), 1);
    if let Some(table) = root.get("partitions") {
        let mut factors = HashMap::new();
        for (key, factor) in table.with_label("[partitions]").table()?.entries() {
            let factor = whole(&factor.with_label(format!("factor of {:?}", key.name())), LARGEST_PARTITION)?;
            // It is a partition of the site, whether or not a job of the workload is in it.
            settings.highest_partition = settings.highest_partition.max(factor);
            if !context.queues.iter().any(|queue| names(queue, key.name())) {
                unknown.queues.push(key.name().to_string());
            }
            factors.insert(key.name().to_string(), factor);
        }
        for (queue, of_queue) in context.queues.iter().zip(&mut settings.partitions) {
            *of_queue = factor_of(queue, |name| factors.get(name).copied()).unwrap_or(*of_queue);
        }
    }
    settings.qos.resize(context.qos.len(), 0);
    if let Some(table) = root.get("qos") {
        for (key, priority) in table.with_label("[qos]").table()?.entries() {
            let priority = whole(&priority.with_label(format!("priority of {:?}", key.name())), u32::MAX)?;
            // It is a QOS of the site, whether or not a job of the workload has it.
            settings.highest_qos = settings.highest_qos.max(priority);
            if let Some(at) = context.qos.iter().position(|name| name == key.name()) {
                settings.qos[at] = priority;
            }
        }
    }
    Ok((settings, unknown))
}

/// Whether a queue of a workload is a partition, or a list that has it.
fn names(queue: &str, partition: &str) -> bool {
    queue == partition || queue_names(queue).any(|name| name == partition)
}

fn whole(node: &Node<'_>, largest: u32) -> Result<u32, DocumentError> {
    let text = node.written()?;
    let number = text.replace('_', "").parse::<u32>().ok().filter(|n| *n <= largest);
    number.ok_or_else(|| node.error(format!("found {text:?}, expected a whole number from 0 to {largest}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolicySettings, Registry, SiteConfiguration};
    use evenhand_documents::{Document, Format};
    use evenhand_model::{Capacity, Weights};

    fn read_on(site: Option<&SiteConfiguration>, text: Option<&str>) -> Result<(Settings, Unknown), String> {
        let resources = ["cpu", "mem"].map(|r| Resource::new(r, ""));
        let queues = ["long", "short"].map(String::from);
        let qos = ["normal", "unknown"].map(String::from);
        let capacity = Capacity::new(&resources, vec![Rational::ONE; 2]).unwrap();
        let weights = Weights::equal(1);
        let place = |e: String| e.trim_start_matches("m.toml").to_string();
        let mut settings = PolicySettings::default();
        if let Some(text) = text {
            let document = Document::parse("m.toml", text, Some(Format::Toml)).map_err(|e| place(e.to_string()))?;
            let set = settings.set_section(&Registry::built_in(), "multifactor", document);
            set.map_err(|e| place(e.to_string()))?;
        }
        let context = PolicyContext::new(&capacity, &weights).resources(&resources).queues(&queues).qos(&qos);
        let section: Result<MultifactorSection, PolicyError> =
            context.settings(&settings).site(site).read_settings("multifactor");
        section.map(|found| (found.settings, found.unknown)).map_err(|e| place(e.to_string()))
    }

    fn read(text: &str) -> Result<(Settings, Unknown), String> {
        read_on(None, Some(text))
    }

    #[test]
    fn the_site_s_own_settings_hold_where_the_section_has_none() {
        let shown = [
            ("PriorityWeightAge", "1000"),
            ("PriorityWeightFairShare", "20000"),
            ("PriorityWeightQOS", "300"),
            ("PriorityWeightTRES", "CPU=10,Mem=-2.5,GRES/gpu=3"),
            ("PriorityMaxAge", "1-12:00:00"),
            ("PriorityFavorSmall", "Yes"),
            ("PriorityFlags", "NO_FAIR_TREE,SMALL_RELATIVE_TO_TIME,NO_NORMAL_ASSOC,NO_NORMAL_TRES"),
            ("PriorityWeightAssoc", "6"),
            ("FairShareDampeningFactor", "3"),
        ];
        let site = SiteConfiguration {
            settings: shown.map(|(name, value)| (name.to_ascii_lowercase(), value.to_string())).into(),
            partition_factors: [("short".to_string(), 10), ("night".to_string(), 40)].into(),
            billing_weights: [("short".to_string(), "mem=2G".to_string())].into(),
            qos_priorities: [("normal".to_string(), 5), ("urgent".to_string(), 20)].into(),
            nodes: 64,
            ..SiteConfiguration::default()
        };
        let (settings, unknown) = read_on(Some(&site), None).unwrap();
        let w = &settings.weights;
        assert_eq!((w.association, settings.no_normal.names()), (6, vec!["association", "tres"]));
        assert_eq!((w.age, w.fairshare, w.job_size, w.partition), (1000, 20_000, 0, 0));
        assert_eq!(w.tres, [Rational::from(10), Rational::from_parts((-5).into(), 2u8.into())]);
        assert_eq!((settings.max_age, settings.fairshare), (Span::from_secs(36 * 3600), Fairshare::Classic));
        assert!(settings.favor_small && settings.small_relative_to_time);
        assert_eq!(settings.damping, Rational::from(3));
        assert_eq!((&settings.partitions[..], settings.highest_partition), (&[1, 10][..], 40));
        assert_eq!((w.qos, &settings.qos[..], settings.highest_qos, settings.nodes), (300, &[5, 0][..], 20, 64));
        assert_eq!(unknown, Unknown::default());
        let (settings, _) = read_on(Some(&site), Some("fairshare = \"fair-tree\"\n[weights]\nage = 7\n")).unwrap();
        assert_eq!((settings.weights.age, settings.weights.fairshare), (7, 20_000));
        assert_eq!(settings.fairshare, Fairshare::FairTree);
        let wrong = SiteConfiguration { settings: [("priorityweightage".into(), "x".into())].into(), ..site };
        let error = read_on(Some(&wrong), None).unwrap_err();
        assert_eq!(error, "the site's configuration: PriorityWeightAge = \"x\", expected a whole number");
    }

    #[test]
    fn without_a_section_and_a_site_the_example_of_the_documentation_holds() {
        let (settings, _) = read_on(None, None).unwrap();
        assert_eq!(settings.weights.fairshare, Settings::default().weights.fairshare);
        let (settings, _) = read_on(None, Some("billing = \"sum\"\n")).unwrap();
        assert_eq!(settings.weights.fairshare, Settings::default().weights.fairshare);
    }

    #[test]
    fn what_is_not_set_is_as_in_slurm() {
        let (settings, unknown) = read("").unwrap();
        assert_eq!(settings.weights.tres, [Rational::ZERO, Rational::ZERO]);
        assert_eq!(settings.partitions, [1, 1]);
        let same = Settings { partitions: vec![], qos: vec![], ..settings };
        let same = Settings { weights: Default::default(), ..same };
        assert_eq!((same, unknown), (Settings::unset(), Unknown::default()));
    }

    #[test]
    fn every_setting_is_read() {
        let text = "max_age = \"1.5h\"\nfairshare = \"classic\"\ndamping = 2.5\nfavor_small = true\n\
            small_relative_to_time = true\nnodes = 7\nno_normal = [\"tres\", \"association\"]\n[weights]\nage = 1_000\nfairshare = 4294967295\njob_size = 3\npartition = 4\nqos = 5\nassociation = 6\n\
            [tres]\nmem = -0.5\n[partitions]\nshort = 10\nnight = 40\n\
            [qos]\nnormal = 3\nurgent = 9\n";
        let (settings, unknown) = read(text).unwrap();
        let w = &settings.weights;
        assert_eq!((w.association, settings.no_normal.names()), (6, vec!["association", "tres"]));
        assert_eq!((w.age, w.fairshare, w.job_size, w.partition), (1000, u32::MAX, 3, 4));
        assert_eq!(w.tres, [Rational::ZERO, Rational::from_parts((-1).into(), 2u8.into())]);
        assert_eq!(settings.max_age, Span::from_secs(5400));
        assert_eq!(settings.fairshare, Fairshare::Classic);
        assert_eq!(settings.damping.to_string(), "5/2");
        assert!(settings.favor_small && settings.small_relative_to_time);
        assert_eq!((settings.partitions, settings.highest_partition), (vec![1, 10], 40));
        assert_eq!((settings.weights.qos, settings.qos, settings.highest_qos, settings.nodes), (5, vec![3, 0], 9, 7));
        assert_eq!(unknown.queues, ["night"]);
        // A site with GPUs, and a log of jobs without.
        let (settings, unknown) = read("[tres]\ncpu = 5\ngpu = 7\n").unwrap();
        assert_eq!((settings.weights.tres[0].clone(), unknown.resources), (Rational::from(5), vec!["gpu".to_string()]));
    }

    #[test]
    fn a_list_of_partitions_has_the_highest_factor() {
        let of = |names: &[&str]| {
            let factors = HashMap::from([("short".to_string(), 10u32), ("long".to_string(), 30)]);
            names.iter().map(|queue| factor_of(queue, |name| factors.get(name).copied())).collect::<Vec<_>>()
        };
        assert_eq!(of(&["short", "short,long", "night,short", "night"]), [Some(10), Some(30), Some(10), None]);
        assert!(names("long,short", "short") && names("a,b", "a,b") && !names("shorter", "short"));
    }

    #[test]
    fn errors_have_line_and_column() {
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
        let error = wrong("no_normal = [\"qos\", \"size\"]\n");
        assert!(
            error.starts_with(":1:21: ") && error.contains("found \"size\", expected one of: association"),
            "{error}"
        );
        assert!(wrong("[weights]\nsize = 5\n").starts_with(":2:1: unknown field \"size\""));
        assert!(
            wrong("[tres]\nfpga = 5\n").starts_with(":2:1: found \"fpga\", expected one of the resources cpu, mem")
        );
        assert!(wrong("[tres]\ngpu = \"x\"\n").contains("weight of gpu"));
        assert!(wrong("[tres]\ncpu = \"x\"\n").starts_with(":2:7: weight of cpu: "));
        assert!(wrong("[partitions]\nlong = 65534\n").starts_with(":2:8: factor of \"long\": "));
        assert!(wrong("weights = 3\n").starts_with(":1:11: "));
    }
}
