//! Fairshare by processor time ignores memory.

use evenhand_documents::{Cell, Csv};
use evenhand_model::{Resource, Span, Task, Time, Workload, WorkloadBuilder};
use evenhand_report::chart::{Axis, BarChart, BarSeries, Bubble, Caption, Scale, ScatterChart, Side, Unit};

use super::testbed::{RunOptions, Testbed, cluster, skipped};
use crate::{Experiment, FigureWithData, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "klusacek-rudova",
    figure: "memory",
    title: "fairshare by processor time against fairshare by minimum processor equivalents",
    setting: "Two users who always have jobs waiting, with equal shares, on ten machines of 16 processors and 64 GB, for \
              60 days: the jobs of the first hold 1 processor and 32 GB, those of the second 4 processors and 4 GB. EASY \
              backfilling, jobs of one to nine hours, half-life 72 h (as in the authors' simulator), the policies cpu-time \
              and penalty. Holdings are measured over the second half; in equivalents both together may hold more than the \
              capacity, since each job counts by the larger of its two fractions. Then a log: each user's charges under both \
              policies, on the machines of MetaCentrum's log of CERIT-SC.",
    run,
};

const DAYS: u64 = 60;
const NAMES: [&str; 2] = ["much memory", "many processors"];
const DEMANDS: [[u64; 2]; 2] = [[1, 32], [4, 4]];
const MACHINES: u32 = 10;

/// The tolerance for a share of one half.
const EVEN: f64 = 0.05;
/// A user's share of all charges rises by at least this factor if memory decides the price of its jobs.
const MUCH: f64 = 2.0;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let testbed = Testbed::new("two users", two_users()?.into(), cluster(&["cpu", "mem"], &[site()])?)?;
    let held = ["cpu-time", "penalty"].map(|policy| Held::of(&testbed, policy));
    let [by_time, by_penalty] = held;
    let (by_time, by_penalty) = (by_time?, by_penalty?);
    let mut outcome = Outcome::default();
    outcome.verdicts.extend(two_verdicts(&by_time, &by_penalty));
    outcome.figures.push(draw_two(&by_time, &by_penalty));
    let testbeds = Testbed::metacentrum(settings)?;
    for testbed in &testbeds {
        let ran = testbed.run(RunOptions::of("cpu-time"))?;
        let charges = [testbed.processors(), testbed.equivalents(Default::default())?];
        let charged = charges.map(|rate| shares(testbed.by_user(&ran, &rate)));
        outcome.verdicts.push(log_verdict(testbed.name, &charged));
        outcome.figures.push(draw_log(testbed, &charged));
        outcome.notes.push(testbed.about());
        outcome.notes.push(waits(testbed, &charged)?);
    }
    outcome.notes.extend(skipped(settings, &testbeds));
    Ok(outcome)
}

fn site() -> super::testbed::Machines<'static> {
    ("node", MACHINES, &["16", "64"], "1")
}

/// Generates the workload of two users, each of whom always has more waiting than fits.
fn two_users() -> Result<Workload, ReproduceError> {
    let mut builder = WorkloadBuilder::new(["cpu", "mem"].map(|r| Resource::new(r, "")));
    for i in 0..DAYS * 24 * 4 {
        for (user, demand) in NAMES.iter().zip(DEMANDS) {
            builder.push(&Task {
                // A quarter of an hour apart, from one to nine hours, alternately.
                submit: Time::from_secs(i * 900),
                duration: Span::from_secs(3600 * (1 + i * 7 % 9)),
                requested: Some(Span::from_secs(10 * 3600)),
                user,
                amounts: &demand.map(|d| u128::from(d) * 1_000_000_000),
                ..Task::default()
            });
            // The same number again: twice the work that the site can do.
            builder.push(&Task {
                submit: Time::from_secs(i * 900),
                duration: Span::from_secs(3600 * (9 - i * 7 % 9)),
                requested: Some(Span::from_secs(10 * 3600)),
                user,
                amounts: &demand.map(|d| u128::from(d) * 1_000_000_000),
                ..Task::default()
            });
        }
    }
    builder.finish().map_err(|e| ReproduceError::Setup(e.to_string()))
}

/// The mean shares that two users held in the second half of the time.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Of all processors, by user.
    processors: [f64; 2],
    /// Of all memory.
    memory: [f64; 2],
    /// Charges in processor equivalents, divided by all processors.
    equivalents: [f64; 2],
}

impl Held {
    fn of(testbed: &Testbed, policy: &'static str) -> Result<Held, ReproduceError> {
        let ran = testbed.run(RunOptions::of(policy))?;
        let (from, to) = (DAYS as f64 * 43_200.0, DAYS as f64 * 86_400.0);
        let seconds = testbed.held_seconds(&ran, [from, to]);
        let equivalents = testbed.equivalents(Default::default())?;
        let each = [0, 1].map(|user| seconds[user] / (to - from) / f64::from(MACHINES));
        let row = |user: usize| testbed.workload.columns().user.iter().position(|u| u.index() == user).unwrap_or(0);
        Ok(Held {
            processors: [0, 1].map(|u| each[u] * DEMANDS[u][0] as f64 / 16.0),
            memory: [0, 1].map(|u| each[u] * DEMANDS[u][1] as f64 / 64.0),
            equivalents: [0, 1].map(|u| each[u] * equivalents[row(u)] / 16.0),
        })
    }
}

fn two_verdicts(by_time: &Held, by_penalty: &Held) -> [Verdict; 3] {
    let percent = |x: f64| format!("{:.1} %", 100.0 * x);
    let even = |[a, b]: [f64; 2]| (a / (a + b) - 0.5).abs() <= EVEN;
    let idle = 1.0 - by_time.processors.iter().sum::<f64>();
    [
        Verdict::new(
            "remaining CPUs cannot be utilized by remaining users since there is no free RAM left",
            format!(
                "by processor time {} of the processors are idle while jobs of both wait; {} of the memory is in use, and the \
                 job at the head of the queue often needs half of a machine's",
                percent(idle),
                percent(by_time.memory.iter().sum())
            ),
            idle >= 0.25 && by_time.memory.iter().sum::<f64>() >= 0.8,
        ),
        Verdict::new(
            "by consumed CPU time users with high RAM requirements are not adequately penalized with respect to users who \
             only need CPUs",
            format!(
                "the user with much memory holds {} of the machines in equivalents, the other {}",
                percent(by_time.equivalents[0]),
                percent(by_time.equivalents[1])
            ),
            by_time.equivalents[0] >= 1.5 * by_time.equivalents[1],
        ),
        Verdict::new(
            "by minimum processor equivalents they are adequately penalized",
            format!("{} against {}", percent(by_penalty.equivalents[0]), percent(by_penalty.equivalents[1])),
            even(by_penalty.equivalents),
        ),
    ]
}

fn draw_two(by_time: &Held, by_penalty: &Held) -> FigureWithData {
    let groups = ["processors", "memory", "processor equivalents"];
    let values = |held: &Held, user: usize| [held.processors[user], held.memory[user], held.equivalents[user]];
    let mut csv = Csv::new(&["policy", "user", "processors", "memory", "equivalents"]);
    let mut series = Vec::new();
    for (policy, held) in [("cpu-time", by_time), ("penalty", by_penalty)] {
        for (user, name) in NAMES.iter().enumerate() {
            let values = values(held, user);
            csv.row(&[
                Cell::Text(policy),
                Cell::Text(name),
                Cell::Number(Some(values[0])),
                Cell::Number(Some(values[1])),
                Cell::Number(Some(values[2])),
            ]);
            series.push(BarSeries {
                label: format!("{name}, {policy}"),
                series: series.len(),
                values: values.map(Some).to_vec(),
            });
        }
    }
    let chart = BarChart {
        caption: Caption {
            name: "klusacek-rudova-memory-two".into(),
            title: "Resources held by two users with equal shares, by policy".into(),
            description: "Share of the site's processors, memory and processor equivalents, by user and policy.".into(),
        },
        groups_title: "resource".into(),
        groups: groups.map(String::from).to_vec(),
        y: Axis {
            title: "share of capacity held".into(),
            unit: Unit::Percent,
            scale: Scale::fixed(0.0, 1.0, Unit::Percent),
        },
        series,
    };
    FigureWithData { figure: chart.draw(), csv: csv.finish() }
}

/// Divides numbers by their sum.
fn shares(sums: Vec<f64>) -> Vec<f64> {
    let all: f64 = sums.iter().sum();
    sums.into_iter().map(|s| if all > 0.0 { s / all } else { 0.0 }).collect()
}

/// Returns the factor by which each user's share of all charges rises; `None` for a user who ran nothing.
fn rises([by_time, by_penalty]: &[Vec<f64>; 2]) -> Vec<Option<f64>> {
    by_time.iter().zip(by_penalty).map(|(t, p)| (*t > 0.0).then(|| p / t)).collect()
}

fn log_verdict(name: &str, charged: &[Vec<f64>; 2]) -> Verdict {
    let rises: Vec<f64> = rises(charged).into_iter().flatten().collect();
    let much = rises.iter().filter(|r| **r >= MUCH).count();
    let highest = rises.iter().copied().fold(0.0, f64::max);
    let together = |way: usize| -> f64 {
        let is_much = |user: &usize| charged[0][*user] > 0.0 && charged[1][*user] / charged[0][*user] >= MUCH;
        100.0 * (0..charged[way].len()).filter(is_much).map(|user| charged[way][user]).sum::<f64>()
    };
    Verdict::new(
        format!(
            "{name}: some users' memory is worth far more than their processors: their share of all charges at least doubles"
        ),
        format!(
            "of {} users, {much}; together from {:.2} to {:.2} % of all charges; the largest increase is {highest:.1} times",
            rises.len(),
            together(0),
            together(1)
        ),
        much > 0,
    )
}

/// Reports mean waits under both policies: of the users whose share of the charges at least doubles, and of the others.
fn waits(testbed: &Testbed, charged: &[Vec<f64>; 2]) -> Result<String, ReproduceError> {
    let rises = rises(charged);
    let mut texts = Vec::new();
    for policy in ["cpu-time", "penalty"] {
        let waits = testbed.mean_waits(&testbed.run(RunOptions::of(policy))?);
        let mean = |much: bool| {
            let of = |(rise, wait): (&Option<f64>, &Option<f64>)| {
                (*wait).filter(|_| rise.is_some_and(|r| (r >= MUCH) == much))
            };
            let waits: Vec<f64> = rises.iter().zip(&waits).filter_map(of).collect();
            waits.iter().sum::<f64>() / waits.len().max(1) as f64 / 3600.0
        };
        texts.push(format!("{policy}: {:.1} h and {:.1} h", mean(true), mean(false)));
    }
    Ok(format!(
        "{}: mean waits of the users whose share of charges doubles and of the others, {}",
        testbed.name,
        texts.join("; ")
    ))
}

fn draw_log(testbed: &Testbed, charged: &[Vec<f64>; 2]) -> FigureWithData {
    let mut csv = Csv::new(&["user", "share_of_processor_time", "share_of_penalties"]);
    let mut jobs = vec![0u64; testbed.workload.users().len()];
    testbed.workload.columns().user.iter().for_each(|u| jobs[u.index()] += 1);
    let mut bubbles = Vec::new();
    for (subject, (name, (&time, &penalty))) in
        testbed.workload.users().iter().zip(charged[0].iter().zip(&charged[1])).enumerate()
    {
        csv.row(&[Cell::Text(name), Cell::Number(Some(time)), Cell::Number(Some(penalty))]);
        bubbles.push(Bubble {
            subject,
            name: name.clone(),
            label: format!("{name}: {:.2} % of processor time, {:.2} % of penalties", 100.0 * time, 100.0 * penalty),
            at: (time > 0.0).then_some((time, penalty)),
            count: jobs[subject],
            side: match penalty.total_cmp(&time) {
                std::cmp::Ordering::Less => Side::Better,
                std::cmp::Ordering::Equal => Side::Same,
                std::cmp::Ordering::Greater => Side::Worse,
            },
        });
    }
    let axis = |title: &str| {
        let values = charged.iter().flatten().copied();
        Axis { title: title.into(), unit: Unit::Percent, scale: Scale::log_with_zero(values, Unit::Percent) }
    };
    let chart = ScatterChart {
        caption: Caption {
            name: if testbed.name == "trace" {
                "klusacek-rudova-memory-trace"
            } else {
                "klusacek-rudova-memory-generated"
            }
            .into(),
            title: format!("Shares of all charges by user, {}", testbed.name),
            description: "Each bubble is a user; its size is the logarithm of the user's number of jobs.".into(),
        },
        x: axis("share of all processor time"),
        y: axis("share of all penalties"),
        bubbles,
        above: "charged more by penalties".into(),
        below: "charged less".into(),
        counted: "jobs".into(),
    };
    FigureWithData { figure: chart.draw(), csv: csv.finish() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_can_fail() {
        let held = |processors, memory, equivalents| Held { processors, memory, equivalents };
        let full = held([0.2, 0.4], [0.8, 0.1], [0.6, 0.3]);
        let even = held([0.1, 0.5], [0.4, 0.1], [0.5, 0.52]);
        let verdicts = |time: &Held, penalty: &Held| two_verdicts(time, penalty).map(|v| v.holds);
        assert_eq!(verdicts(&full, &even), [true, true, true]);
        assert_eq!(verdicts(&even, &full), [false, false, false]);
        assert!(log_verdict("log", &[vec![0.5, 0.5], vec![0.0, 1.0]]).holds);
        assert!(!log_verdict("log", &[vec![0.5, 0.5, 0.0], vec![0.3, 0.7, 0.0]]).holds);
    }

    #[test]
    fn the_papers_statements_about_memory_hold() {
        let outcome = run(&Settings::new(1).tasks(Some(3000))).unwrap();
        outcome.verdicts.iter().for_each(|v| assert!(v.holds, "{v:?}"));
    }
}
