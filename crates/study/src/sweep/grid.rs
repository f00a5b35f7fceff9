//! The grid file: the axes of a sweep.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::{AccountsFile, Backfill, parse_scheduler, read_pool, read_weights, scheduler_text};
use evenhand_documents::{Document, DocumentError, Format, Node, Source, did_you_mean};
use evenhand_model::{Quantity, Span};
use evenhand_policies::{Decay, Listed, Order, PolicySettings, Registration, Registry, SettingOption};

use crate::sweep::workload_axis::{WorkloadAxis, read_workloads};

/// The axes of a sweep, each in the order of the file.
#[derive(Debug)]
pub struct Grid {
    /// Name of the file in errors and results.
    pub name: String,
    /// The text of the file.
    pub text: String,
    /// The folder that relative paths in it start from.
    pub base: PathBuf,
    /// Files as written, then generated workloads, table by table and seed by seed.
    pub workloads: Vec<WorkloadAxis>,
    /// The policies; the others are compared with the first.
    pub policies: Vec<Registration>,
    /// The available policies.
    pub registry: Registry,
    /// Each policy with each of its settings and decays, in the order of the points.
    pub variants: Vec<Variant>,
    /// Users' accounts: a file, as written and as found.
    pub accounts: Option<(String, PathBuf)>,
    /// Options of policies that the grid sets, and those that are listed in every sweep.
    pub setting_axes: Vec<SettingAxis>,
    /// Multiples of R or files with a pool.
    pub capacities: Vec<CapacityAxis>,
    /// For policies that need one.
    pub decays: Vec<DecayAxis>,
    /// Equal ones, or files.
    pub weights: Vec<WeightsAxis>,
    /// Whether a task that does not fit is passed over.
    pub no_blocking: Vec<bool>,
    /// Schedulers: strict order, or backfilling with its settings.
    pub schedulers: Vec<Backfill>,
    /// Whether runs stop at the end of the trace.
    pub until_trace_end: Vec<bool>,
    /// Which structure keeps users of stateful policies ordered: one for all points, since results do not depend on it.
    pub order: Order,
    /// Digests of files, so that each is read once.
    pub(crate) digests: Mutex<BTreeMap<PathBuf, String>>,
}

/// One capacity.
#[derive(Clone, Debug, PartialEq)]
pub enum CapacityAxis {
    /// A multiple of R, with its text.
    Multiple(String, Quantity),
    /// A file with a `[pool]`, as written and as found.
    File(String, PathBuf),
}

impl CapacityAxis {
    /// Returns the capacity or file as written.
    pub fn name(&self) -> &str {
        match self {
            CapacityAxis::Multiple(name, _) | CapacityAxis::File(name, _) => name,
        }
    }
}

/// One decay of policies that remember.
#[derive(Clone, Debug)]
pub struct DecayAxis {
    /// As written: `0.999999`, or `8d` for a half-life.
    pub name: String,
    /// The decay.
    pub decay: Decay,
}

/// Users' weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WeightsAxis {
    /// 1 each, written `equal`.
    Equal,
    /// A file, as written and as found.
    File(String, PathBuf),
}

impl WeightsAxis {
    /// Returns the capacity or file as written.
    pub fn name(&self) -> &str {
        match self {
            WeightsAxis::Equal => EQUAL,
            WeightsAxis::File(name, _) => name,
        }
    }
}

/// An option of policies as an axis: the same values that it has on a command line.
#[derive(Clone, Debug)]
pub struct SettingAxis {
    /// The option.
    pub option: &'static SettingOption,
    /// The values as written; one without a value if the grid does not set the option.
    pub values: Vec<Option<String>>,
}

impl SettingAxis {
    /// Returns the values in words; the default of an option that is not set.
    pub fn names(&self) -> Vec<String> {
        let name = |value: &Option<String>| value.as_deref().or(self.option.default).unwrap_or("default").to_string();
        self.values.iter().map(name).collect()
    }
}

/// A policy with one value of each of its settings, and one decay.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Place in [`Grid::policies`].
    pub policy: usize,
    /// The settings of all policies, with those of this variant.
    pub settings: PolicySettings,
    /// By place in [`Grid::setting_axes`]: the value in words, of options that the policy has.
    pub values: Vec<Option<String>>,
    /// Place in [`Grid::decays`], of policies that need a decay.
    pub decay: Option<usize>,
}

const EQUAL: &str = "equal";
/// As for a study.
const DEFAULT_DELTA: &str = Decay::DEFAULT_DELTA;
const FIELDS: [&str; 13] = [
    "workload",
    "generate",
    "policy",
    "capacity",
    "delta",
    "half-life",
    "weights",
    "accounts",
    "policy-settings",
    "no-blocking",
    "scheduler",
    "until",
    "order",
];

impl Grid {
    /// Reads a grid. Paths in it are relative to its folder. Files that it names are read, too, so that what is
    /// wrong is reported before anything runs.
    ///
    /// # Errors
    /// Returns an error if the file or one that it names cannot be read, or a value in it is wrong.
    pub fn read(path: &Path, seed: u64, registry: &Registry) -> Result<Grid, DocumentError> {
        let source = Source::read(path)?;
        // Absolute: a job on another machine starts in another folder.
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let base = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        Grid::parse(source.name(), source.text(), &base, seed, registry)
    }

    /// Reads a grid from a text, as [`Grid::read`] does. `seed` is for generated workloads without seeds of their own.
    ///
    /// # Errors
    /// Returns an error as [`Grid::read`] does.
    pub fn parse(name: &str, text: &str, base: &Path, seed: u64, registry: &Registry) -> Result<Grid, DocumentError> {
        let format = Format::of_path(Path::new(name)).unwrap_or(Format::Toml);
        let document = Document::parse(name, text, Some(format))?;
        let root = document.root()?;
        let options = registry.options();
        let fields: Vec<&str> = FIELDS.into_iter().chain(options.iter().map(|option| option.option)).collect();
        root.deny_unknown(&fields)?;
        let workloads = read_workloads(&root, base, seed)?;
        let policies = match axis(&root, "policy")? {
            Some(nodes) => distinct(nodes, |node| policy(node, registry), |p| p.name.to_string())?,
            None => return Err(root.error("found no policy, expected a list of names such as [\"fifo\", \"drf\"]")),
        };
        let Some(nodes) = axis(&root, "capacity")? else {
            return Err(root.error("found no capacity, expected a list such as [0.5, 1, \"pool.toml\"]"));
        };
        let capacities = distinct(nodes, |node| capacity(node, base), |c| c.name().to_string())?;
        let decays = decays(&root)?;
        let weights = match axis(&root, "weights")? {
            Some(nodes) => distinct(nodes, |node| weights(node, base), |w| w.name().to_string())?,
            None => vec![WeightsAxis::Equal],
        };
        let accounts = root.get("accounts").map(|node| accounts(&node, base, &weights)).transpose()?;
        let settings = match root.get("policy-settings") {
            Some(node) => PolicySettings::read(&file(&node, base)?.1, registry)?,
            None => PolicySettings::default(),
        };
        let setting_axes = options.into_iter().filter_map(|option| setting_axis(&root, option).transpose());
        let setting_axes: Vec<SettingAxis> = setting_axes.collect::<Result<_, DocumentError>>()?;
        let variants = variants(&policies, &setting_axes, decays.len(), &settings, registry, base)?;
        let no_blocking = match axis(&root, "no-blocking")? {
            Some(nodes) => distinct(nodes, |node| node.flag(), bool::to_string)?,
            None => vec![false],
        };
        let schedulers = match axis(&root, "scheduler")? {
            Some(nodes) => distinct(nodes, |node| scheduler(node, &no_blocking), |s| scheduler_text(*s))?,
            None => vec![Backfill::None],
        };
        let until_trace_end = match axis(&root, "until")? {
            Some(nodes) => {
                distinct(nodes, |node| choice(node, &[("finished", false), ("trace-end", true)]), bool::to_string)?
            }
            None => vec![false],
        };
        let order = match root.get("order") {
            Some(node) => {
                let found: Result<Order, _> = node.text()?.parse();
                found.map_err(|e| node.error(e.to_string()))?
            }
            None => Order::Auto,
        };
        Ok(Grid {
            name: name.to_string(),
            text: text.to_string(),
            base: base.to_path_buf(),
            workloads,
            policies,
            capacities,
            decays,
            weights,
            registry: registry.clone(),
            variants,
            accounts,
            setting_axes,
            no_blocking,
            schedulers,
            until_trace_end,
            order,
            digests: Mutex::default(),
        })
    }
}

/// Returns the values of an axis: a list that is not empty, or one value.
pub(crate) fn axis<'d>(
    table: &evenhand_documents::Table<'d>,
    key: &str,
) -> Result<Option<Vec<Node<'d>>>, DocumentError> {
    let Some(node) = table.get(key) else { return Ok(None) };
    if !node.is_list() {
        return Ok(Some(vec![node]));
    }
    let nodes: Vec<Node<'d>> = node.list()?.collect();
    if nodes.is_empty() {
        return Err(node.error("found an empty list, expected one value or more"));
    }
    Ok(Some(nodes))
}

/// Reads the values of an axis, each of which may occur once.
pub(crate) fn distinct<'d, T>(
    nodes: Vec<Node<'d>>,
    mut read: impl FnMut(&Node<'d>) -> Result<T, DocumentError>,
    name: impl Fn(&T) -> String,
) -> Result<Vec<T>, DocumentError> {
    let mut values: Vec<T> = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let value = read(node)?;
        if let Some(first) = values.iter().position(|v| name(v) == name(&value)) {
            let problem = format!("found {} a second time, expected each value once", name(&value));
            return Err(nodes[at].error_against(problem, &nodes[first], "first here"));
        }
        values.push(value);
    }
    Ok(values)
}

fn choice<T: Copy>(node: &Node<'_>, choices: &[(&str, T)]) -> Result<T, DocumentError> {
    let found = node.text()?;
    choices.iter().find(|(name, _)| *name == found).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        node.error(format!("found {found:?}, expected {}{}", known.join(" or "), did_you_mean(found, known.clone())))
    })
}

fn scheduler(node: &Node<'_>, no_blocking: &[bool]) -> Result<Backfill, DocumentError> {
    let found = node.text()?;
    match parse_scheduler(found).map_err(|problem| node.error(problem))? {
        Backfill::Slurm => Err(node.error("found slurm, which needs machines; expected strict, easy or conservative")),
        backfill if backfill != Backfill::None && no_blocking.contains(&true) => Err(node.error(
            "backfilling already lets tasks start before one that does not fit; leave out no-blocking or this scheduler",
        )),
        backfill => Ok(backfill),
    }
}

fn policy(node: &Node<'_>, registry: &Registry) -> Result<Registration, DocumentError> {
    let found = node.text()?;
    registry.get(found).copied().map_err(|_| {
        let known: Vec<&str> = registry.names().collect();
        let near = did_you_mean(found, known.iter().copied());
        node.error(format!("found {found:?}, expected one of: {}{near}", known.join(", ")))
    })
}

/// The values of an option; `None` if the grid does not set it and it need not be listed.
fn setting_axis(
    root: &evenhand_documents::Table<'_>,
    option: &'static SettingOption,
) -> Result<Option<SettingAxis>, DocumentError> {
    let Some(nodes) = axis(root, option.option)? else {
        let listed = option.listed == Listed::Always;
        return Ok(listed.then(|| SettingAxis { option, values: vec![None] }));
    };
    let value = |node: &Node<'_>| {
        let choices: Vec<(&str, &str)> = option.values.iter().map(|value| (*value, *value)).collect();
        if choices.is_empty() { node.text() } else { choice(node, &choices) }.map(|value| Some(value.to_string()))
    };
    let values = distinct(nodes, value, |value| value.clone().unwrap_or_default())?;
    Ok(Some(SettingAxis { option, values }))
}

/// Policies with their settings and decays.
fn variants(
    policies: &[Registration],
    axes: &[SettingAxis],
    decays: usize,
    settings: &PolicySettings,
    registry: &Registry,
    base: &Path,
) -> Result<Vec<Variant>, DocumentError> {
    let mut variants = Vec::new();
    for (policy, registration) in policies.iter().enumerate() {
        let mut chosen = vec![(settings.clone(), Vec::new())];
        for axis in axes {
            let has = registration.options.iter().any(|option| option.option == axis.option.option);
            let values = if has { &axis.values[..] } else { &[None] };
            let mut longer = Vec::new();
            for (settings, names) in &chosen {
                for value in values {
                    let (mut settings, mut names): (PolicySettings, Vec<Option<String>>) =
                        (settings.clone(), names.clone());
                    if let Some(value) = value {
                        let is_file = axis.option.key.is_none();
                        let path = base.join(value).display().to_string();
                        settings.set_option(registry, axis.option.option, if is_file { &path } else { value })?;
                    }
                    let in_force = match (value, axis.option.key) {
                        (None, Some(key)) => settings.section(registration.name)?.get(key),
                        _ => None,
                    };
                    let in_force = in_force.map(|node| node.written().map(String::from)).transpose()?;
                    let name = value.clone().or(in_force).or(axis.option.default.map(String::from));
                    names.push(name.filter(|_| has));
                    longer.push((settings, names));
                }
            }
            chosen = longer;
        }
        for (settings, values) in chosen {
            let of_policy: Vec<Option<usize>> =
                if registration.needs_decay { (0..decays).map(Some).collect() } else { vec![None] };
            for decay in of_policy {
                variants.push(Variant { policy, settings: settings.clone(), values: values.clone(), decay });
            }
        }
    }
    Ok(variants)
}

/// A file of accounts, which takes the place of weights.
fn accounts(node: &Node<'_>, base: &Path, weights: &[WeightsAxis]) -> Result<(String, PathBuf), DocumentError> {
    if weights.iter().any(|weights| *weights != WeightsAxis::Equal) {
        return Err(node.error("found accounts and weights, expected one of them: accounts have shares"));
    }
    let (name, path) = file(node, base)?;
    AccountsFile::read(&path)?;
    Ok((name, path))
}

/// Returns a file that a value names, as written and as found.
pub(crate) fn file(node: &Node<'_>, base: &Path) -> Result<(String, PathBuf), DocumentError> {
    let name = node.text()?;
    let path = base.join(name);
    if path.exists() {
        Ok((name.to_string(), path))
    } else {
        Err(node.error(format!("there is no {}", path.display())))
    }
}

fn capacity(node: &Node<'_>, base: &Path) -> Result<CapacityAxis, DocumentError> {
    let text = node.written()?;
    if Quantity::parse(text).is_ok() {
        return Ok(CapacityAxis::Multiple(text.to_string(), node.positive()?));
    }
    if !base.join(text).exists() {
        return Err(node.error(format!(
            "found {text:?}, expected a number greater than 0 (a multiple of the workload's mean use) or a file with a \
             [pool]; there is no {}",
            base.join(text).display()
        )));
    }
    let (name, path) = file(node, base)?;
    // The resources that it must have are those of the workload, which is not read yet.
    read_pool(&path, &[])?;
    Ok(CapacityAxis::File(name, path))
}

fn weights(node: &Node<'_>, base: &Path) -> Result<WeightsAxis, DocumentError> {
    if node.text()? == EQUAL {
        return Ok(WeightsAxis::Equal);
    }
    let (name, path) = file(node, base)?;
    read_weights(&path, &[String::new()])?;
    Ok(WeightsAxis::File(name, path))
}

fn decays(root: &evenhand_documents::Table<'_>) -> Result<Vec<DecayAxis>, DocumentError> {
    let axis_of = |nodes, read: fn(&Node<'_>) -> Result<Decay, DocumentError>| {
        let named = |node: &Node<'_>| Ok(DecayAxis { name: node.written()?.to_string(), decay: read(node)? });
        distinct(nodes, named, |d| d.name.clone())
    };
    match (axis(root, "delta")?, axis(root, "half-life")?) {
        (Some(delta), Some(half_life)) => {
            let problem = "found both, expected delta or half-life: they are two forms of one setting";
            Err(half_life[0].error_against(problem, &delta[0], "delta is here"))
        }
        (Some(nodes), None) => axis_of(nodes, delta),
        (None, Some(nodes)) => axis_of(nodes, half_life),
        (None, None) => {
            let decay = Quantity::parse(DEFAULT_DELTA).ok().and_then(|d| Decay::from_delta(&d).ok());
            Ok(decay.map(|decay| DecayAxis { name: DEFAULT_DELTA.to_string(), decay }).into_iter().collect())
        }
    }
}

fn delta(node: &Node<'_>) -> Result<Decay, DocumentError> {
    Decay::from_delta(&node.positive()?).map_err(|e| node.error(e.to_string()))
}

fn half_life(node: &Node<'_>) -> Result<Decay, DocumentError> {
    let span = Span::parse(node.text()?).map_err(|e| node.error(e.to_string()))?;
    Decay::from_half_life(span).map_err(|e| node.error(e.to_string()))
}
