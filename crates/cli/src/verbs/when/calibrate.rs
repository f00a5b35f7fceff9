//! `evenhand when --calibrate`: how good the forecasts of a past period were.

use evenhand_forecast::{Calibration, ORIGINS, Stratum, calibrate};
use evenhand_model::counted;
use serde::Serialize;

use crate::arguments::{Common, WhenArgs};
use crate::failure::Failure;
use crate::inputs::site_log::SiteLog;
use crate::output::console::Console;
use crate::output::fold_lines::{COLUMNS, fold_lines};
use crate::output::human_units::duration;
use crate::output::named_values::NamedValues;
use crate::output::numbers::{four_digits, percent};
use crate::output::table::Table;

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct CalibrationRecord {
    jobs: usize,
    /// The part of the jobs whose wait was in the 80 % interval.
    coverage_80: f64,
    /// The mean of the pinball losses at 10, 50 and 90 %.
    pinball_s: f64,
    baselines: Baselines,
    median_interval_s: f64,
    /// How much each origin of forecasts counted, in the mean.
    weights: NamedValues<f64>,
    by_forecast: Vec<StratumRecord>,
    from_s: i64,
    to_s: i64,
}

#[derive(Debug, Serialize)]
struct Baselines {
    last_two_waits: Baseline,
    requested_limits: Baseline,
}

#[derive(Debug, Serialize)]
struct Baseline {
    pinball_s: f64,
}

#[derive(Debug, Serialize)]
struct StratumRecord {
    median_above_s: i64,
    median_to_s: Option<i64>,
    jobs: usize,
    coverage_80: f64,
}

pub(super) fn run(args: &WhenArgs, site: &SiteLog, common: &Common, console: &Console) -> Result<(), Failure> {
    let time = |option: &str, text: &Option<String>| -> Result<Option<i64>, Failure> {
        text.as_deref().map(|text| site.clock.parse(option, text)).transpose()
    };
    let to = time("--to", &args.to)?.unwrap_or(site.clock.last() + 1);
    let first = site.log.jobs()[0].submit;
    let from = time("--from", &args.from)?.unwrap_or((to - 28 * 86_400).max(first).min(to - 1));
    if from >= to {
        let shown = |seconds| site.clock.show(seconds);
        return Err(Failure::Input(format!(
            "--from: found {}, expected a time before --to, which is {}",
            shown(from),
            shown(to)
        )));
    }
    let found = calibrate(&site.log, from, to, common.seed()).ok_or_else(|| {
        let jobs = site.log.jobs();
        Failure::Input(format!(
            "--from, --to: found no submission from {} to {}, expected a period of the log, which has submissions from {} to {}",
            site.clock.show(from),
            site.clock.show(to),
            site.clock.show(jobs[0].submit),
            site.clock.show(jobs[jobs.len() - 1].submit),
        ))
    })?;
    if console.is_json() {
        console.json(&record(&found, from, to))
    } else {
        console.result(&tables(&found, site, from, to))
    }
}

fn record(found: &Calibration, from_s: i64, to_s: i64) -> CalibrationRecord {
    let stratum = |s: &Stratum| StratumRecord {
        median_above_s: s.above_s,
        median_to_s: s.to_s,
        jobs: s.jobs,
        coverage_80: s.coverage,
    };
    let weights = ORIGINS.iter().zip(found.weights).map(|(origin, w)| (origin.name().to_string(), w));
    CalibrationRecord {
        jobs: found.jobs,
        coverage_80: found.coverage,
        pinball_s: found.pinball_s,
        baselines: Baselines {
            last_two_waits: Baseline { pinball_s: found.last_two_waits_s },
            requested_limits: Baseline { pinball_s: found.requested_limits_s },
        },
        median_interval_s: found.median_width_s,
        weights: NamedValues(weights.collect()),
        by_forecast: found.strata.iter().map(stratum).collect(),
        from_s,
        to_s,
    }
}

fn tables(found: &Calibration, site: &SiteLog, from: i64, to: i64) -> String {
    let mut blocks = vec![format!(
        "{} submitted from {} to {}, each forecast with what was known at its submission.\n\
         The 80 % interval held {} of the waits; its median width is {}.",
        counted(found.jobs, "job", "jobs"),
        site.clock.show(from),
        site.clock.show(to),
        percent(found.coverage),
        duration(found.median_width_s),
    )];
    let mut losses = Table::new(1, ["forecast", "pinball s", "ratio"]);
    for (name, loss) in [
        ("this one", found.pinball_s),
        ("user's last two waits", found.last_two_waits_s),
        ("plan by requested limits", found.requested_limits_s),
    ] {
        let ratio = if loss > 0.0 { four_digits(found.pinball_s / loss) } else { "-".into() };
        losses.row(vec![name.into(), four_digits(loss), ratio]);
    }
    let meaning = "pinball s: the mean loss of the 10, 50 and 90 % forecasts, which is less for better ones; ratio: that of this \
                   one to that of the row, below 1 where this one is better";
    blocks.push(format!("{}\n\n{}", losses.render(), fold_lines(meaning, COLUMNS, "  ")));
    let mut strata = Table::new(1, ["median forecast", "jobs", "in interval"]);
    for s in &found.strata {
        let name = match (s.above_s, s.to_s) {
            (0, Some(to)) => format!("up to {}", duration(to as f64)),
            (above, Some(to)) => format!("{} to {}", duration(above as f64), duration(to as f64)),
            (above, None) => format!("above {}", duration(above as f64)),
        };
        strata.row(vec![name, s.jobs.to_string(), percent(s.coverage)]);
    }
    blocks.push(strata.render());
    let weights = ORIGINS.iter().zip(found.weights).map(|(origin, w)| format!("{} {}", origin.name(), percent(w)));
    blocks.push(format!(
        "Sources of the forecasts, by how much each counts in the mean: {}.",
        weights.collect::<Vec<_>>().join(", ")
    ));
    blocks.join("\n\n")
}
