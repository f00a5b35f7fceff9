//! Waits by class of job and user.

use evenhand_model::{Span, Time, Workload};

use super::{ClassRecord, Pair};

/// The key of a header that dates second 0 of the log.
const START: &str = "UnixStartTime";
/// Times from here on count seconds since 1970, also without that key: a log of 1973 or later.
const DATED: Time = Time::from_secs(100_000_000);

/// Returns the mean waits by size, length, user and time of submission. Classes without jobs are left out.
pub(super) fn classes(workload: &Workload, pairs: &[Pair], resource: usize) -> Vec<ClassRecord> {
    let columns = workload.columns();
    let size = |pair: &Pair| {
        let resource_steps = workload.resources()[resource].steps();
        let units = workload.amounts(pair.row)[resource].0.div_ceil(resource_steps);
        let name = &workload.resources()[resource].name;
        let class = match units {
            0..=1 => 0,
            2..=8 => 1,
            9..=64 => 2,
            65..=512 => 3,
            _ => 4,
        };
        (class, format!("{} {name}", ["1", "2 to 8", "9 to 64", "65 to 512", "more than 512"][class]))
    };
    let length = |pair: &Pair| {
        let limits = [600, 3600, 6 * 3600].map(Span::from_secs);
        let class = limits.iter().filter(|limit| columns.duration[pair.row] >= **limit).count();
        (class, ["below 10 min", "10 min to 1 h", "1 to 6 h", "6 h and more"][class].to_string())
    };
    let heavy = heavy_users(workload, pairs, resource);
    let user = |pair: &Pair| match heavy[columns.user[pair.row].index()] {
        true => (0, "users who together used half".to_string()),
        false => (1, "all other users".to_string()),
    };
    let mut records = Vec::new();
    records.extend(table("size", workload, pairs, size));
    records.extend(table("length", workload, pairs, length));
    records.extend(table("user", workload, pairs, user));
    if let Some(origin) = date_of_second_0(workload) {
        let submitted = |pair: &Pair| {
            let seconds = origin + columns.submit[pair.row].nanos() / 1_000_000_000;
            // 1970-01-01 was a Thursday; days count from Monday.
            let (day, hour) = ((seconds / 86_400 + 3) % 7, seconds % 86_400 / 3600);
            let class = match (day, hour) {
                (5.., _) => 2,
                (_, 8..18) => 0,
                _ => 1,
            };
            (class, ["weekdays, 8 to 18 h UTC", "weekdays, other hours", "weekends"][class].to_string())
        };
        records.extend(table("submitted", workload, pairs, submitted));
    }
    records
}

/// Returns the means of each class that has jobs.
fn table(by: &str, workload: &Workload, pairs: &[Pair], class: impl Fn(&Pair) -> (usize, String)) -> Vec<ClassRecord> {
    let mut sums: Vec<Option<(String, u64, u128, u128)>> = vec![None; 5];
    for pair in pairs {
        let (at, name) = class(pair);
        let (logged, simulated) = pair.waits(workload.columns().submit[pair.row]);
        let sum = sums[at].get_or_insert((name, 0, 0, 0));
        sum.1 += 1;
        sum.2 += u128::from(logged);
        sum.3 += u128::from(simulated);
    }
    let mean = |sum: u128, jobs: u64| sum as f64 / jobs as f64 / 1e9;
    let record = |(class, jobs, logged, simulated): (String, u64, u128, u128)| ClassRecord {
        by: by.to_string(),
        class,
        jobs,
        logged_mean_wait_s: mean(logged, jobs),
        mean_wait_s: mean(simulated, jobs),
    };
    sums.into_iter().flatten().map(record).collect()
}

/// Returns by user whether it is one of the fewest users who together used at least half of the resource. Ties go to
/// the smaller number.
fn heavy_users(workload: &Workload, pairs: &[Pair], resource: usize) -> Vec<bool> {
    let columns = workload.columns();
    let mut used = vec![0u128; workload.users().len()];
    for pair in pairs {
        let area = u128::from(workload.amounts(pair.row)[resource].0) * u128::from(columns.duration[pair.row].nanos());
        used[columns.user[pair.row].index()] += area;
    }
    let all: u128 = used.iter().sum();
    let mut order: Vec<usize> = (0..used.len()).collect();
    order.sort_by_key(|user| (std::cmp::Reverse(used[*user]), *user));
    let mut heavy = vec![false; used.len()];
    let mut sum = 0;
    for user in order {
        if 2 * sum >= all {
            break;
        }
        sum += used[user];
        heavy[user] = true;
    }
    heavy
}

/// Returns the date of second 0 of a log, in seconds since 1970, if it is known.
fn date_of_second_0(workload: &Workload) -> Option<u64> {
    let first = workload.columns().submit.first().copied().unwrap_or_default();
    if first >= DATED {
        return Some(0);
    }
    let (_, value) = workload.header().iter().find(|(key, _)| key == START)?;
    value.split_whitespace().next()?.parse().ok()
}
