//! Several sources as one.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use evenhand_documents::{DocumentError, Table, did_you_mean};
use evenhand_enforcers::cgroups::Hierarchies;

use crate::discovery::own::is_whole;
use crate::discovery::paths::is_path;
use crate::discovery::roll::such_as;
use crate::discovery::{Guest, Own, SOURCES, Source, source_named};

/// What was seen at a look.
#[derive(Debug, Default)]
pub struct Seen {
    /// All guests, in order of their groups' paths.
    pub guests: Vec<Arc<Guest>>,
    /// Which of them were not there before: by path and identity.
    pub added: Vec<usize>,
    /// Which of them were there, but with another name, owner, size, unit or device.
    pub changed: Vec<usize>,
    /// Those that are not there any more, in order of their paths. A group that was made anew under the same
    /// path is here with its old identity and among those added with its new one.
    pub removed: Vec<Arc<Guest>>,
    /// What an operator should hear of. What still holds is said again at each look, in the same words.
    pub remarks: Vec<Remark>,
}

/// Something an operator should hear of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remark {
    /// No hierarchy of control groups is mounted.
    NotMounted,
    /// In which group this process runs cannot be found out; what was found last stays.
    Own {
        /// What went wrong.
        why: String,
    },
    /// A source failed. What it found last stays what it is.
    Failed {
        /// Its number among those of the configuration, from 0, and its name.
        source: (usize, String),
        /// What went wrong.
        why: String,
    },
    /// A source has something to say.
    Said {
        /// As in [`Failed`](Remark::Failed).
        source: (usize, String),
        /// What.
        what: String,
    },
    /// Groups that a source found and that are never guests.
    Refused {
        /// As in [`Failed`](Remark::Failed).
        source: (usize, String),
        /// Why not.
        why: Refusal,
        /// How many.
        count: usize,
        /// The first of them.
        first: String,
    },
}

/// Why a group is no guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It is no path below the root.
    Path,
    /// It is the root, or a whole of which guests are parts: `system.slice`.
    Whole,
    /// This process runs in it or in a group below it.
    Own,
    /// It is within another guest, which is the one that is weighed.
    Nested,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As people count.
        let of = |(number, name): &(usize, String)| format!("source {} ({name})", number + 1);
        match self {
            Remark::NotMounted => f.write_str("no control groups are mounted: nobody is found"),
            Remark::Own { why } => write!(f, "the groups of this process itself: {why}"),
            Remark::Failed { source, why } => write!(f, "{}: {why}; what it found before stays", of(source)),
            Remark::Said { source, what } => write!(f, "{}: {what}", of(source)),
            Remark::Refused { source, why, count, first } => {
                let why = match why {
                    Refusal::Path => "not the path of a group below the root",
                    Refusal::Whole => "a whole of which guests are parts",
                    Refusal::Own => "this process itself runs there",
                    Refusal::Nested => "within another guest, which is the one that is weighed",
                };
                write!(f, "{}: {} left alone: {why}", of(source), such_as(*count, first))
            }
        }
    }
}

struct Rule {
    name: String,
    source: Box<dyn Source>,
    last: Vec<Arc<Guest>>,
}

/// Several sources as one: the guests of all, each group at most once.
///
/// - A group that several sources find is the guest of the first of them.
/// - A group within a guest is no guest; the outer one is kept, whichever source found it.
/// - The root, wholes such as `system.slice`, and every group in which this process runs are never guests.
/// - A source that fails keeps what it found last, and the failure is among the remarks.
pub struct Guests {
    rules: Vec<Rule>,
    own: Own,
    mounted: bool,
    seen: Seen,
}

impl Guests {
    /// The sources of a configuration's tables `[[guests]]`, in their order.
    ///
    /// # Errors
    /// If a table names no source, or the source refuses it.
    pub fn read<'d>(
        tables: impl IntoIterator<Item = Table<'d>>,
        hierarchies: &Hierarchies,
        own: Own,
    ) -> Result<Guests, DocumentError> {
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
        let mut guests = Guests::new(sources, own);
        guests.mounted = hierarchies.main().is_some();
        Ok(guests)
    }

    /// These sources, with what remarks call them.
    pub fn new(sources: impl IntoIterator<Item = (String, Box<dyn Source>)>, own: Own) -> Guests {
        let rule = |(name, source)| Rule { name, source, last: Vec::new() };
        Guests { rules: sources.into_iter().map(rule).collect(), own, mounted: true, seen: Seen::default() }
    }

    /// What was seen at the last look.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Looks who is here now.
    pub fn look(&mut self) -> &Seen {
        let mut remarks = Vec::new();
        if !self.mounted {
            remarks.push(Remark::NotMounted);
        }
        if let Err(error) = self.own.refresh() {
            remarks.push(Remark::Own { why: error.to_string() });
        }
        for (number, rule) in self.rules.iter_mut().enumerate() {
            let source = || (number, rule.name.clone());
            match rule.source.look() {
                Ok(found) => rule.last = found,
                Err(error) => remarks.push(Remark::Failed { source: source(), why: error.to_string() }),
            }
            let said = rule.source.remarks();
            remarks.extend(said.into_iter().map(|what| Remark::Said { source: source(), what }));
        }
        let guests = self.select(&mut remarks);
        let before = std::mem::take(&mut self.seen.guests);
        self.seen = Seen { remarks, ..compared(before, guests) };
        &self.seen
    }

    /// All that the sources found, but each group once, and none that may not be one.
    fn select(&self, remarks: &mut Vec<Remark>) -> Vec<Arc<Guest>> {
        let all = self.rules.iter().enumerate().flat_map(|(rule, r)| r.last.iter().map(move |guest| (rule, guest)));
        let mut found: Vec<(usize, &Arc<Guest>)> = all.collect();
        // Stable: of the same path, the first rule's comes first. What is within a group comes right behind it.
        found.sort_by(|a, b| within_first(&a.1.group.path, &b.1.group.path));
        let mut refused = vec![[(0_usize, ""); 4]; self.rules.len()];
        let mut kept: Vec<Arc<Guest>> = Vec::with_capacity(found.len());
        for (rule, guest) in found {
            let path = guest.group.path.as_str();
            let why = if is_whole(path) {
                Some(Refusal::Whole)
            } else if !is_path(path) {
                Some(Refusal::Path)
            } else if self.own.is_around(path) {
                Some(Refusal::Own)
            } else {
                let last = kept.last().and_then(|last| path.strip_prefix(last.group.path.as_str()));
                match last {
                    Some("") => continue,
                    Some(rest) if rest.starts_with('/') => Some(Refusal::Nested),
                    _ => None,
                }
            };
            match why {
                None => kept.push(Arc::clone(guest)),
                Some(why) => {
                    let (count, first) = &mut refused[rule][why as usize];
                    if *count == 0 {
                        *first = path;
                    }
                    *count += 1;
                }
            }
        }
        for (number, counts) in refused.iter().enumerate() {
            let whys = [Refusal::Path, Refusal::Whole, Refusal::Own, Refusal::Nested];
            for (why, &(count, first)) in whys.into_iter().zip(counts).filter(|(_, (count, _))| *count > 0) {
                let source = (number, self.rules[number].name.clone());
                remarks.push(Remark::Refused { source, why, count, first: first.to_owned() });
            }
        }
        kept.sort_by(|a, b| a.group.path.cmp(&b.group.path));
        kept
    }
}

/// The order in which what is within a group comes right behind it: as if `/` were the smallest of characters.
fn within_first(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    match a.iter().zip(b).find(|(a, b)| a != b) {
        None => a.len().cmp(&b.len()),
        Some((b'/', _)) => Ordering::Less,
        Some((_, b'/')) => Ordering::Greater,
        Some((a, b)) => a.cmp(b),
    }
}

/// What changed from `before` to `guests`, both in order of paths.
fn compared(before: Vec<Arc<Guest>>, guests: Vec<Arc<Guest>>) -> Seen {
    let mut seen = Seen::default();
    let mut before = before.into_iter().peekable();
    for (number, guest) in guests.iter().enumerate() {
        let key = |g: &Guest| g.group.path.cmp(&guest.group.path);
        while let Some(gone) = before.next_if(|b| key(b).is_lt()) {
            seen.removed.push(gone);
        }
        match before.next_if(|b| key(b).is_eq()) {
            Some(same) if same.identity == guest.identity => {
                if !Arc::ptr_eq(&same, guest) && same != *guest {
                    seen.changed.push(number);
                }
            }
            other => {
                seen.removed.extend(other);
                seen.added.push(number);
            }
        }
    }
    seen.removed.extend(before);
    seen.guests = guests;
    seen
}
