//! Combines several sources of running workloads.

use std::cmp::Ordering;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use evenhand_documents::{DocumentError, Table, did_you_mean};
use evenhand_enforcers::cgroups::{Hierarchies, ProtectedCgroups, is_group_path};

use crate::discovery::workload_cache::such_as;
use crate::trusted_files::{TrustError, check_trusted};

use crate::discovery::{RunningWorkload, SOURCES, WorkloadSource, source_named};

/// The workloads that run at one time, and the changes since the snapshot before.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// All workloads, sorted by the paths of their groups.
    pub workloads: Vec<Arc<RunningWorkload>>,
    /// The indices of the workloads that were not there before, by path and identity.
    pub added: Vec<usize>,
    /// The indices of the workloads that have another name, owner, size, unit or device than before.
    pub changed: Vec<usize>,
    /// The workloads that ended, sorted by path. A group that was created again under the same path is here with its old
    /// identity, and among the added ones with its new one.
    pub removed: Vec<Arc<RunningWorkload>>,
    /// The warnings for the operator. A warning that persists is repeated in each snapshot, in the same words.
    pub warnings: Vec<DiscoveryWarning>,
}

/// A problem that an operator should know of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiscoveryWarning {
    /// No hierarchy of control groups is mounted.
    NotMounted,
    /// The control groups of this process cannot be read; those read last stay protected.
    ProtectedUnknown {
        /// The error.
        why: String,
    },
    /// A source failed. The workloads that it found last are kept.
    SourceFailed {
        /// Its index in the configuration, from 0, and its name.
        source: (usize, String),
        /// The error.
        why: String,
    },
    /// A source has a warning.
    SourceWarning {
        /// As in [`SourceFailed`](DiscoveryWarning::SourceFailed).
        source: (usize, String),
        /// The warning.
        text: String,
    },
    /// A source found groups that are never workloads.
    Excluded {
        /// As in [`SourceFailed`](DiscoveryWarning::SourceFailed).
        source: (usize, String),
        /// The reason.
        reason: ExclusionReason,
        /// The number of groups.
        count: usize,
        /// The path of the first of them.
        first: String,
    },
}

/// Why a group is not a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExclusionReason {
    /// It is not the path of a group below the root.
    InvalidPath,
    /// It is the root, or a container of workloads such as `system.slice`.
    ContainsWorkloads,
    /// This process runs in it or in a group below it.
    Protected,
    /// It is part of another workload, which gets the weight.
    Nested,
    /// It is not below the group to which the discovery [is limited](Discovery::limit_to).
    Outside,
}

impl ExclusionReason {
    /// All reasons, in the order of their numbers.
    const ALL: [ExclusionReason; 5] = [
        ExclusionReason::InvalidPath,
        ExclusionReason::ContainsWorkloads,
        ExclusionReason::Protected,
        ExclusionReason::Nested,
        ExclusionReason::Outside,
    ];
}

impl fmt::Display for DiscoveryWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // People count from 1.
        let of = |(number, name): &(usize, String)| format!("source {} ({name})", number + 1);
        match self {
            DiscoveryWarning::NotMounted => f.write_str("no control groups are mounted: no workload is found"),
            DiscoveryWarning::ProtectedUnknown { why } => {
                write!(f, "the control groups of this process cannot be read: {why}")
            }
            DiscoveryWarning::SourceFailed { source, why } => {
                write!(f, "{}: {why}; the workloads found before are kept", of(source))
            }
            DiscoveryWarning::SourceWarning { source, text } => write!(f, "{}: {text}", of(source)),
            DiscoveryWarning::Excluded { source, reason, count, first } => {
                let reason = match reason {
                    ExclusionReason::InvalidPath => "not the path of a group below the root",
                    ExclusionReason::ContainsWorkloads => "a group that contains workloads of all users",
                    ExclusionReason::Protected => "this process itself runs there",
                    ExclusionReason::Nested => "part of another workload, which gets the weight",
                    ExclusionReason::Outside => "outside of the group that [node] under names",
                };
                write!(f, "{}: {} excluded: {reason}", of(source), such_as(*count, first))
            }
        }
    }
}

/// Groups that contain the workloads of all users.
const CONTAINERS: [&str; 6] = ["system.slice", "user.slice", "machine.slice", "machine", "init.scope", "-.slice"];

fn contains_workloads(path: &str) -> bool {
    path.is_empty() || CONTAINERS.contains(&path)
}

struct Entry {
    name: String,
    source: Box<dyn WorkloadSource>,
    last: Vec<Arc<RunningWorkload>>,
}

/// Finds the running workloads of all configured sources, each group at most once.
///
/// - A group that several sources find is the workload of the first of them.
/// - A group within a workload is not a workload; the outer one is kept, whichever source found it.
/// - The root, containers such as `system.slice`, and every group in which this process runs are never workloads.
/// - If a source fails, the workloads that it found last are kept, and the failure is a warning.
pub struct Discovery {
    entries: Vec<Entry>,
    protected: ProtectedCgroups,
    mounted: bool,
    /// Whether a file that another user could change is not used.
    trusted_only: bool,
    /// The group below which all workloads lie; empty: the root.
    under: String,
    snapshot: Snapshot,
}

impl Discovery {
    /// Creates the sources of a configuration's tables `[[guests]]`, in their order.
    ///
    /// # Errors
    /// Returns an error if a table names no known source, or if the source rejects it.
    pub fn read<'d>(
        tables: impl IntoIterator<Item = Table<'d>>,
        hierarchies: &Hierarchies,
        protected: ProtectedCgroups,
    ) -> Result<Discovery, DocumentError> {
        let names: Vec<&str> = SOURCES.iter().map(|source| source.name).collect();
        let mut sources = Vec::new();
        for table in tables {
            let from = table.required("from", "the name of a source")?;
            let name = from.text()?;
            let registration = source_named(name).ok_or_else(|| {
                let near = did_you_mean(name, names.iter().copied());
                from.error(format!("found {name:?}, expected one of: {}{near}", names.join(", ")))
            })?;
            sources.push((name.to_owned(), (registration.build)(&table, hierarchies)?));
        }
        let mut discovery = Discovery::new(sources, protected);
        discovery.mounted = hierarchies.main().is_some();
        Ok(discovery)
    }

    /// Combines these sources, each with its name for warnings.
    pub fn new(
        sources: impl IntoIterator<Item = (String, Box<dyn WorkloadSource>)>,
        protected: ProtectedCgroups,
    ) -> Discovery {
        let entry = |(name, source)| Entry { name, source, last: Vec::new() };
        let entries = sources.into_iter().map(entry).collect();
        Discovery {
            entries,
            protected,
            mounted: true,
            trusted_only: false,
            under: String::new(),
            snapshot: Snapshot::default(),
        }
    }

    /// Finds from now on only workloads below this group ("" is the root): others belong to nobody here, or to another agent.
    pub fn limit_to(&mut self, under: &str) {
        under.clone_into(&mut self.under);
    }

    /// Uses from now on only files of tables and owners that root or the user of this process alone can change: they decide
    /// what is written with the rights of this process.
    pub fn use_trusted_files_only(&mut self) {
        self.trusted_only = true;
    }

    /// Returns the files that the tables of all sources name.
    pub fn files(&self) -> Vec<&Path> {
        self.entries.iter().flat_map(|entry| entry.source.files()).collect()
    }

    /// Returns the last snapshot.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns, for a node without any workload, where each source looked; empty if there is a workload.
    pub fn why_nothing(&self) -> Vec<String> {
        if !self.snapshot.workloads.is_empty() {
            return Vec::new();
        }
        let sentence = |entry: &Entry| match entry.last.len() {
            0 => format!("{}: {}", entry.name, entry.source.looked_for()),
            n => format!("{}: found {n}, which are excluded or belong to this process", entry.name),
        };
        self.entries.iter().map(sentence).collect()
    }

    /// Lists the workloads that run now.
    pub fn refresh(&mut self) -> &Snapshot {
        let mut warnings = Vec::new();
        if !self.mounted {
            warnings.push(DiscoveryWarning::NotMounted);
        }
        if let Err(error) = self.protected.refresh() {
            warnings.push(DiscoveryWarning::ProtectedUnknown { why: error.to_string() });
        }
        for (number, entry) in self.entries.iter_mut().enumerate() {
            let source = || (number, entry.name.clone());
            let distrust = self.trusted_only.then(|| entry.source.files().into_iter().find_map(distrust)).flatten();
            let listed = match distrust {
                Some(error) => Err(error.to_string()),
                None => entry.source.list().map_err(|error| error.to_string()),
            };
            match listed {
                Ok(found) => entry.last = found,
                Err(why) => warnings.push(DiscoveryWarning::SourceFailed { source: source(), why }),
            }
            let texts = entry.source.warnings();
            warnings.extend(texts.into_iter().map(|text| DiscoveryWarning::SourceWarning { source: source(), text }));
        }
        let workloads = self.select(&mut warnings);
        let before = std::mem::take(&mut self.snapshot.workloads);
        self.snapshot = Snapshot { warnings, ..compare(before, workloads) };
        &self.snapshot
    }

    /// Returns all workloads that the sources found, each group once, without those that are excluded.
    fn select(&self, warnings: &mut Vec<DiscoveryWarning>) -> Vec<Arc<RunningWorkload>> {
        let all = self.entries.iter().enumerate().flat_map(|(entry, e)| e.last.iter().map(move |w| (entry, w)));
        let mut found: Vec<(usize, &Arc<RunningWorkload>)> = all.collect();
        // The sort is stable: of the same path, that of the first source comes first. Descendants follow their group.
        found.sort_by(|a, b| descendants_first(&a.1.group.path, &b.1.group.path));
        let mut excluded = vec![[(0_usize, ""); ExclusionReason::ALL.len()]; self.entries.len()];
        let mut kept: Vec<Arc<RunningWorkload>> = Vec::with_capacity(found.len());
        for (entry, workload) in found {
            let path = workload.group.path.as_str();
            let reason = if contains_workloads(path) {
                Some(ExclusionReason::ContainsWorkloads)
            } else if !is_group_path(path) {
                Some(ExclusionReason::InvalidPath)
            } else if !is_below(path, &self.under) {
                Some(ExclusionReason::Outside)
            } else if self.protected.contains(path) {
                Some(ExclusionReason::Protected)
            } else {
                let last = kept.last().and_then(|last| path.strip_prefix(last.group.path.as_str()));
                match last {
                    Some("") => continue,
                    Some(rest) if rest.starts_with('/') => Some(ExclusionReason::Nested),
                    _ => None,
                }
            };
            match reason {
                None => kept.push(Arc::clone(workload)),
                Some(reason) => {
                    let (count, first) = &mut excluded[entry][reason as usize];
                    if *count == 0 {
                        *first = path;
                    }
                    *count += 1;
                }
            }
        }
        for (number, counts) in excluded.iter().enumerate() {
            let counts = ExclusionReason::ALL.into_iter().zip(counts);
            for (reason, &(count, first)) in counts.filter(|(_, (count, _))| *count > 0) {
                let source = (number, self.entries[number].name.clone());
                warnings.push(DiscoveryWarning::Excluded { source, reason, count, first: first.to_owned() });
            }
        }
        kept.sort_by(|a, b| a.group.path.cmp(&b.group.path));
        kept
    }
}

/// Returns why a file is not trusted. One that cannot be examined cannot be read either, which its source reports.
fn distrust(file: &Path) -> Option<TrustError> {
    check_trusted(file).err().filter(|error| !matches!(error, TrustError::Read { .. }))
}

/// Returns whether a path is that of a group within `under`, not of `under` itself: its weight is relative to groups outside.
fn is_below(path: &str, under: &str) -> bool {
    under.is_empty() || path.strip_prefix(under).is_some_and(|rest| rest.starts_with('/'))
}

/// Orders paths so that the descendants of a group directly follow it: as if `/` were the smallest character.
fn descendants_first(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    match a.iter().zip(b).find(|(a, b)| a != b) {
        None => a.len().cmp(&b.len()),
        Some((b'/', _)) => Ordering::Less,
        Some((_, b'/')) => Ordering::Greater,
        Some((a, b)) => a.cmp(b),
    }
}

/// Computes the changes from `before` to `workloads`, both sorted by path.
fn compare(before: Vec<Arc<RunningWorkload>>, workloads: Vec<Arc<RunningWorkload>>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut before = before.into_iter().peekable();
    for (number, workload) in workloads.iter().enumerate() {
        let key = |w: &RunningWorkload| w.group.path.cmp(&workload.group.path);
        while let Some(gone) = before.next_if(|b| key(b).is_lt()) {
            snapshot.removed.push(gone);
        }
        match before.next_if(|b| key(b).is_eq()) {
            Some(same) if same.identity == workload.identity => {
                if !Arc::ptr_eq(&same, workload) && same != *workload {
                    snapshot.changed.push(number);
                }
            }
            other => {
                snapshot.removed.extend(other);
                snapshot.added.push(number);
            }
        }
    }
    snapshot.removed.extend(before);
    snapshot.workloads = workloads;
    snapshot
}
