//! Charges for GPUs, which the paper leaves to future work.

use std::sync::Arc;

use evenhand_documents::{Cell, Csv};
use evenhand_model::{Rational, Resource, Span, Task, Time, Workload, WorkloadBuilder, to_f64};
use evenhand_policies::equivalents::{Combine, Equivalents};
use evenhand_report::chart::{Axis, BarChart, BarSeries, Caption, Scale, Unit};

use super::testbed::{Machines, RunOptions, Testbed, cluster};
use crate::{Experiment, FigureWithData, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "klusacek-rudova",
    figure: "gpus",
    title: "three ways to charge for GPUs",
    setting: "The paper states that GPUs need another calculation, since a machine whose GPUs are all in use can still \
              run other jobs. Three are tested: max, sum (MetaCentrum today) and max-plus-optional (the larger of the job's \
              fractions of processors and memory, times the processors, plus for each GPU the ratio of all processors to all \
              GPUs). 24 machines of 32 processors and 128 GB, and 8 that also have 4 GPUs; three users who always have jobs \
              waiting, with equal shares: 8 processors and 16 GB; 1 processor, 8 GB and a GPU; 8 processors, 16 GB and a GPU. \
              EASY backfilling, policy penalty, half-life 72 h, 30 days, measured over the second half. With --data a log \
              that has cpu, mem and gpu is charged on the machines of Alibaba's cluster (GPU trace of 2023).",
    run,
};

const RESOURCES: [&str; 3] = ["cpu", "mem", "gpu"];
const PLAIN: Machines<'static> = ("plain", 24, &["32", "128", "0"], "1");
const WITH_GPUS: Machines<'static> = ("gpu", 8, &["32", "128", "4"], "1");
const NAMES: [&str; 3] = ["no GPU", "mostly GPU", "both"];
const DEMANDS: [[u64; 3]; 3] = [[8, 16, 0], [1, 8, 1], [8, 16, 1]];
const DAYS: u64 = 30;

/// The kinds of machines in the node list of Alibaba's GPU trace of 2023 that have twenty or more machines.
const ALIBABA: [Machines<'static>; 12] = [
    ("96-384-8", 549, &["96", "384Gi", "8"], "1"),
    ("104-512-2", 387, &["104", "512Gi", "2"], "1"),
    ("32-256", 129, &["32", "256Gi", "0"], "1"),
    ("16-120-2", 107, &["16", "120Gi", "2"], "1"),
    ("96-512", 59, &["96", "512Gi", "0"], "1"),
    ("128-768-8", 39, &["128", "768Gi", "8"], "1"),
    ("96-384", 30, &["96", "384Gi", "0"], "1"),
    ("32-128-4", 28, &["32", "128Gi", "4"], "1"),
    ("32-128", 23, &["32", "128Gi", "0"], "1"),
    ("64-512", 22, &["64", "512Gi", "0"], "1"),
    ("64-256-2", 22, &["64", "256Gi", "2"], "1"),
    ("96-768-8", 21, &["96", "768Gi", "8"], "1"),
];

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let mut outcome = Outcome { verdicts: vec![without_gpus()?], ..Outcome::default() };
    outcome.verdicts.extend(full_machine()?);
    let testbed = Testbed::new("three users", three_users()?.into(), cluster(&RESOURCES, &[PLAIN, WITH_GPUS])?)?;
    let held: Vec<Held> = Combine::ALL.iter().map(|c| Held::of(&testbed, *c)).collect::<Result<_, _>>()?;
    outcome.figures.push(draw(&held));
    outcome.notes.extend(held.iter().map(Held::about));
    match &settings.trace {
        Some(trace) if is_charged(trace) => outcome.notes.extend(charges(trace)?),
        Some(_) => outcome
            .notes
            .push("on the log of --data: skipped, because its resources are not exactly cpu, mem and gpu".into()),
        None => outcome.notes.push("on a real log with GPUs: skipped, because none was given (--data LOG)".into()),
    }
    Ok(outcome)
}

/// Returns the prices of processors, memory and GPUs on these machines.
fn prices(groups: &[Machines<'_>], combine: Combine) -> Result<Equivalents, ReproduceError> {
    let resources = RESOURCES.map(|r| Resource::new(r, ""));
    Equivalents::of_cluster(&cluster(&RESOURCES, groups)?, &resources, combine)
        .map_err(|e| ReproduceError::Setup(e.to_string()))
}

fn price(prices: &Equivalents, demand: [u64; 3]) -> f64 {
    prices.lowest(&demand.map(Rational::from)).map_or(f64::NAN, |(_, e)| to_f64(&e.processors))
}

/// Tests that a job without GPUs has the same price whether or not the cluster has GPUs.
fn without_gpus() -> Result<Verdict, ReproduceError> {
    let bare: Machines<'_> = ("bare", 8, &["32", "128", "0"], "1");
    let jobs = [[8, 16, 0], [1, 128, 0], [32, 1, 0]];
    let mut differ = Vec::new();
    for combine in Combine::ALL {
        let (with, without) = (prices(&[PLAIN, WITH_GPUS], combine)?, prices(&[PLAIN, bare], combine)?);
        let same = jobs.iter().all(|j| price(&with, *j) == price(&without, *j));
        if !same {
            differ.push(combine.name());
        }
    }
    Ok(Verdict::new(
        "a job without GPUs is charged the same whether or not some machines have GPUs",
        if differ.is_empty() { "under all three".into() } else { format!("not under {}", differ.join(", ")) },
        differ.is_empty(),
    ))
}

/// Two sets of jobs (number, demand) that fill a machine completely: GPU jobs with one processor each and jobs without
/// GPUs; and jobs that take equal fractions of processors and GPUs.
const FILLINGS: [&[(f64, [u64; 3])]; 2] = [&[(4.0, [1, 4, 1]), (7.0, [4, 16, 0])], &[(4.0, [8, 32, 1])]];

fn full_machine() -> Result<[Verdict; 2], ReproduceError> {
    let mut gpu_jobs = Vec::new();
    let mut full = Vec::new();
    for combine in Combine::ALL {
        let prices = prices(&[WITH_GPUS], combine)?;
        let charged = |jobs: &[(f64, [u64; 3])]| jobs.iter().map(|(n, d)| n * price(&prices, *d)).sum::<f64>() / 32.0;
        gpu_jobs.push(charged(&FILLINGS[0][..1]));
        full.push(FILLINGS.map(charged));
    }
    Ok(full_verdicts(&gpu_jobs, &full))
}

fn full_verdicts(gpu_jobs: &[f64], full: &[[f64; 2]]) -> [Verdict; 2] {
    let by_name = |text: &dyn Fn(usize) -> String| {
        let each = Combine::ALL.iter().enumerate().map(|(i, c)| format!("{} {}", c.name(), text(i)));
        each.collect::<Vec<_>>().join(", ")
    };
    let same = |of: &[f64; 2]| (of[0] - of[1]).abs() < 1e-12;
    [
        Verdict::new(
            "a machine with fully consumed GPUs may still execute other jobs: if GPUs count like processors and memory \
             (max), jobs that use all GPUs and an eighth of the rest pay for the whole machine, and jobs on the remaining \
             processors and memory pay in addition",
            format!("in machines: {}", by_name(&|i| format!("{:.2} and {:.2}", gpu_jobs[i], full[i][0] - gpu_jobs[i]))),
            gpu_jobs[0] >= 1.0 && full[0][0] > gpu_jobs[0],
        ),
        Verdict::new(
            "under max the charges of a full machine depend on which GPU jobs fill it; not if GPUs are charged separately, \
             nor if all resources are added",
            format!(
                "for two sets of jobs, in machines: {}",
                by_name(&|i| format!("{:.2} and {:.2}", full[i][0], full[i][1]))
            ),
            same(&full[2]) && same(&full[1]) && !same(&full[0]),
        ),
    ]
}

fn three_users() -> Result<Workload, ReproduceError> {
    let mut builder = WorkloadBuilder::new(RESOURCES.map(|r| Resource::new(r, "")));
    for i in 0..DAYS * 24 * 8 {
        for (user, demand) in NAMES.iter().zip(DEMANDS) {
            for part in 0..4 {
                builder.push(&Task {
                    submit: Time::from_secs(i * 450),
                    duration: Span::from_secs(3600 * (1 + (i * 5 + part * 3) % 9)),
                    requested: Some(Span::from_secs(10 * 3600)),
                    user,
                    amounts: &demand.map(|d| u128::from(d) * 1_000_000_000),
                    ..Task::default()
                });
            }
        }
    }
    builder.finish().map_err(|e| ReproduceError::Setup(e.to_string()))
}

/// The mean shares of processors and GPUs that three users held in the second half.
struct Held {
    combine: Combine,
    processors: [f64; 3],
    gpus: [f64; 3],
}

impl Held {
    fn of(testbed: &Testbed, combine: Combine) -> Result<Held, ReproduceError> {
        let ran = testbed.run(RunOptions { combine, ..RunOptions::of("penalty") })?;
        let (from, to) = (DAYS as f64 * 43_200.0, DAYS as f64 * 86_400.0);
        let seconds = testbed.held_seconds(&ran, [from, to]);
        let held = |r: usize, of: f64| [0, 1, 2].map(|u| seconds[u] / (to - from) * DEMANDS[u][r] as f64 / of);
        Ok(Held { combine, processors: held(0, 1024.0), gpus: held(2, 32.0) })
    }

    fn about(&self) -> String {
        let percents = |x: &[f64; 3]| x.map(|x| format!("{:.0} %", 100.0 * x)).join(", ");
        format!(
            "{}: {} of processors, {} of GPUs ({})",
            self.combine.name(),
            percents(&self.processors),
            percents(&self.gpus),
            NAMES.join(", ")
        )
    }
}

fn draw(held: &[Held]) -> FigureWithData {
    let mut csv = Csv::new(&["combine", "user", "processors", "gpus"]);
    for held in held {
        for (user, name) in NAMES.iter().enumerate() {
            csv.row(&[
                Cell::Text(held.combine.name()),
                Cell::Text(name),
                Cell::Number(Some(held.processors[user])),
                Cell::Number(Some(held.gpus[user])),
            ]);
        }
    }
    let series = NAMES.iter().enumerate().map(|(user, name)| BarSeries {
        label: (*name).into(),
        series: user,
        values: held.iter().flat_map(|h| [Some(h.processors[user]), Some(h.gpus[user])]).collect(),
    });
    let chart = BarChart {
        caption: Caption {
            name: "klusacek-rudova-gpus".into(),
            title: "Resources held by three users with equal shares, by the charge for GPUs".into(),
            description: "Share of all processors and of all GPUs by user, under each way to charge.".into(),
        },
        groups_title: "charge, resource".into(),
        groups: held.iter().flat_map(|h| ["cpu", "gpu"].map(|r| format!("{}: {r}", h.combine.name()))).collect(),
        y: Axis {
            title: "share of capacity held".into(),
            unit: Unit::Percent,
            scale: Scale::fixed(0.0, 1.0, Unit::Percent),
        },
        series: series.collect(),
    };
    FigureWithData { figure: chart.draw(), csv: csv.finish() }
}

fn is_charged(trace: &Workload) -> bool {
    trace.resources().len() == 3 && RESOURCES.iter().all(|name| trace.resources().iter().any(|r| r.name == *name))
}

/// Reports the share of all charges that jobs with GPUs pay, under each way to charge.
fn charges(trace: &Arc<Workload>) -> Result<Vec<String>, ReproduceError> {
    let testbed = Testbed::new("trace", Arc::clone(trace), cluster(&RESOURCES, &ALIBABA)?)?;
    let gpu = trace.resources().iter().position(|r| r.name == "gpu").unwrap_or(0);
    let has_gpu = |row: usize| trace.amounts(row)[gpu].0 > 0;
    let seconds = |row: usize| trace.columns().duration[row].secs_f64();
    let processors = testbed.processors();
    let time = |row: &usize| processors[*row] * seconds(*row);
    let all: f64 = (0..trace.len()).map(|row| time(&row)).sum();
    let with_gpus: f64 = (0..trace.len()).filter(|row| has_gpu(*row)).map(|row| time(&row)).sum();
    let mut shares = Vec::new();
    for combine in Combine::ALL {
        let rate = testbed.equivalents(combine)?;
        let (mut with, mut all) = (0.0, 0.0);
        for (row, rate) in rate.iter().enumerate() {
            let charge = rate * seconds(row);
            all += charge;
            if has_gpu(row) {
                with += charge;
            }
        }
        shares.push(format!("{} {:.1} %", combine.name(), 100.0 * with / all));
    }
    let paid = format!(
        "trace: jobs with GPUs have {:.1} % of all processor time; their share of all charges is {}",
        100.0 * with_gpus / all,
        shares.join(", ")
    );
    Ok(vec![testbed.about(), paid])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_about_gpus_hold() {
        let outcome = run(&Settings::new(1)).unwrap();
        outcome.verdicts.iter().for_each(|v| assert!(v.holds, "{v:?}"));
        // One note for each way to charge.
        let held: Vec<&String> = outcome.notes.iter().filter(|n| n.contains("of GPUs")).collect();
        assert_eq!(held.len(), 3, "{held:?}");
        assert!(full_verdicts(&[0.9, 1.0, 1.0], &[[1.0; 2]; 3]).iter().all(|v| !v.holds));
    }
}
