//! Reservations and outages of a site, from texts of Slurm's commands.

use std::path::Path;

use evenhand_model::{Closure, Cluster, SiteTime};
use evenhand_slurm::{SiteClosure, parse_events, parse_reservations};

use super::parsed;
use crate::arguments::SiteImportArgs;
use crate::failure::Failure;
use crate::output::console::Console;

/// How many nodes that the site does not have are named.
const SHOWN_NODES: usize = 4;

/// Reads the reservations and outages of a cluster, whose machines are known.
pub(super) fn read(args: &SiteImportArgs, cluster: &mut Cluster, console: &Console) -> Result<(), Failure> {
    if let Some(path) = &args.reservations {
        let found = parsed(path, "scontrol show reservation", parse_reservations)?;
        note_overlaps(path, &found, console);
        cluster.reservations = of_known_nodes(path, found, cluster, console);
        // What Slurm has let happen is no mistake of the file.
        cluster.reservations.iter_mut().for_each(|reservation| reservation.may_overlap = true);
    }
    if let Some(path) = &args.events {
        cluster.outages = of_known_nodes(path, parsed(path, "sacctmgr -P show event", parse_events)?, cluster, console);
    }
    Ok(())
}

/// What was found, in a sentence.
pub(super) fn found(cluster: &Cluster) -> Option<String> {
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let (reservations, outages) = (cluster.reservations.len(), cluster.outages.len());
    (reservations + outages > 0).then(|| {
        format!(
            "Found: {} and {} (down or drained), which --scheduler slurm follows.",
            count(reservations, "reservation"),
            count(outages, "outage")
        )
    })
}

/// Without the nodes that the cluster does not have, of which a note is printed.
fn of_known_nodes(path: &Path, found: Vec<SiteClosure>, cluster: &Cluster, console: &Console) -> Vec<Closure> {
    let names = cluster.machine_names();
    let (mut unknown, mut first_line) = (Vec::new(), None);
    let mut closures = Vec::new();
    for one in found {
        let (known, others): (Vec<String>, Vec<String>) =
            one.nodes.into_iter().partition(|node| names.numbers(node).is_ok());
        if !others.is_empty() {
            first_line = first_line.or(Some(one.line));
            unknown.extend(others);
        }
        if !known.is_empty() {
            closures.push(Closure {
                name: one.name,
                machines: known,
                from: SiteTime::Date(one.from),
                to: one.to.map(SiteTime::Date),
                may_overlap: false,
            });
        }
    }
    unknown.sort();
    unknown.dedup();
    if let Some(line) = first_line {
        let more = unknown.len().saturating_sub(SHOWN_NODES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown = unknown.iter().take(SHOWN_NODES).map(String::as_str).collect::<Vec<_>>().join(", ");
        console.note(&format!(
            "{}:{line}: {}.",
            path.display(),
            match unknown.len() {
                1 => format!("node {shown} is not a machine of the site and is ignored"),
                _ => format!("nodes {shown}{more} are not machines of the site and are ignored"),
            }
        ));
    }
    closures
}

/// Notes reservations that overlap though Slurm would not let them.
fn note_overlaps(path: &Path, found: &[SiteClosure], console: &Console) {
    let meets =
        |a: &SiteClosure, b: &SiteClosure| a.to.is_none_or(|to| b.from < to) && b.to.is_none_or(|to| a.from < to);
    for (at, one) in found.iter().enumerate().filter(|(_, one)| !one.may_overlap) {
        let mut before = found[..at].iter().filter(|other| !other.may_overlap && meets(one, other));
        let shared = before.find_map(|other| Some((other, one.nodes.iter().find(|node| other.nodes.contains(node))?)));
        if let Some((other, node)) = shared {
            console.note(&format!(
                "{}:{}: the reservation {} overlaps {} of line {} on {node}, and neither is MAINT or OVERLAP; on what they \
                 share, no job of either starts then.",
                path.display(),
                one.line,
                one.name,
                other.name,
                other.line
            ));
        }
    }
}
