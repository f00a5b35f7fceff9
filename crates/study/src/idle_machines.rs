//! Whether a kind of machine is free while jobs wait, which is a sign that jobs are bound to other machines than they need.

use evenhand_simulator::Layout;

use crate::jobs_on_site::GroupRecord;

/// A kind of machine is idle if at least this part of each of its resources is free for a waiting job,
const IDLE: f64 = 1.0 / 3.0;
/// and at most this part as much of some resource of another kind.
const BUSIER: f64 = 0.5;
/// Waits below are short,
const SHORT_S: f64 = 60.0;
/// and so are those below this part of run times.
const SHORT: f64 = 0.1;

/// What jobs wait for, and how long they run, on average and in seconds.
pub(crate) struct MeanWait {
    pub(crate) wait_s: f64,
    pub(crate) run_s: f64,
}

/// Returns a warning if jobs wait long while a kind of machine is free; `None` if not.
pub(crate) fn idle_machines(groups: &[GroupRecord], mean: MeanWait, layout: Layout) -> Option<String> {
    if mean.wait_s < SHORT_S.max(SHORT * mean.run_s) {
        return None;
    }
    let percent = |part: f64| format!("{:.0} %", 100.0 * part);
    // What is free of the scarcest resource.
    let free = |group: &GroupRecord| {
        let scarcest = group.free_while_waiting.iter().min_by(|(_, a), (_, b)| a.total_cmp(b));
        scarcest.map(|(name, part)| (name.clone(), *part))
    };
    let all: Vec<(&GroupRecord, String, f64)> =
        groups.iter().filter_map(|group| free(group).map(|(name, part)| (group, name, part))).collect();
    let (busiest, resource, least) = all.iter().min_by(|(_, _, a), (_, _, b)| a.total_cmp(b))?;
    let is_idle = |part: f64| part >= IDLE && *least <= BUSIER * part;
    let idle: Vec<&(&GroupRecord, String, f64)> = all.iter().filter(|(_, _, part)| is_idle(*part)).collect();
    let most = idle.first()?;
    let each: Vec<String> =
        idle.iter().map(|(group, name, part)| format!("{} of {name} of {}", percent(*part), group.name)).collect();
    let bound = 1.0 - idle.iter().filter_map(|(group, _, _)| group.waits_that_may_use).fold(0.0, f64::max);
    let them = if idle.len() == 1 { most.0.name.as_str() } else { "them" };
    let packed = match layout {
        Layout::Packed => "",
        _ => ", and try --layout packed, which spreads jobs as single processors over all kinds",
    };
    let why = match bound {
        bound if bound >= 0.5 => format!(
            "{} of the waiting is of jobs that cannot use {them}; check what binds these (queues, requirements, the size of their parts){packed}",
            percent(bound)
        ),
        bound => format!(
            "{} of the waiting is of jobs that could use {them} but need more machines at once than are free, or wait behind others; see which with `evenhand why`, and compare --scheduler easy and conservative{packed}",
            percent(1.0 - bound)
        ),
    };
    Some(format!(
        "{} stay free while jobs wait, and {} of {resource} of {}: {why}",
        each.join(", "),
        percent(*least),
        busiest.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, free: f64, may_use: f64) -> GroupRecord {
        GroupRecord {
            name: name.into(),
            machines: 4,
            free_while_waiting: [("cpu".to_string(), free), ("mem".to_string(), 0.9)].into(),
            waits_that_may_use: Some(may_use),
            ..GroupRecord::default()
        }
    }

    fn warning(thin: f64, fat: f64, wait_s: f64, layout: Layout) -> Option<String> {
        idle_machines(&[group("thin", thin, 0.1), group("fat", fat, 1.0)], MeanWait { wait_s, run_s: 3600.0 }, layout)
    }

    #[test]
    fn a_kind_that_is_free_while_jobs_wait_is_said_with_what_binds_them() {
        let found = warning(0.68, 0.11, 9000.0, Layout::Auto).unwrap();
        assert!(
            found.starts_with("68 % of cpu of thin stay free while jobs wait, and 11 % of cpu of fat: 90 % of"),
            "{found}"
        );
        assert!(found.contains("cannot use thin") && found.ends_with("over all kinds"), "{found}");
        assert!(!warning(0.68, 0.11, 9000.0, Layout::Packed).unwrap().contains("--layout"));
    }

    #[test]
    fn nothing_is_said_of_short_waits_and_of_kinds_alike() {
        for (thin, fat, wait_s) in [(0.68, 0.11, 300.0), (0.3, 0.0, 9000.0), (0.6, 0.4, 9000.0)] {
            assert_eq!(warning(thin, fat, wait_s, Layout::Auto), None, "{thin} {fat} {wait_s}");
        }
        assert_eq!(idle_machines(&[group("all", 0.9, 1.0)], MeanWait { wait_s: 9e5, run_s: 1.0 }, Layout::Auto), None);
    }
}
