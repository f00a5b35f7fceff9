//! Figure 2: the CPU time of updates.

use evenhand_documents::{Cell, Csv};
use evenhand_report::chart::{Axis, Caption, Line, LineChart, Scale, Shape, Unit};

use super::overhead_measurements::{Fit, Overhead, Variant, fit};
use crate::{Experiment, FigureWithData, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "poullie",
    figure: "figure-2",
    title: "CPU time of the agent, by the number of VMs and the update interval",
    setting: "One node, VMs without load (a) and with load (b), CPU time in four minutes. The paper measures four OpenStack \
              services; ours is the CPU time of the agent's updates: the measured time of one update with emptied caches, \
              multiplied by the number of updates in four minutes. So the growth with shorter intervals is calculated, not \
              measured; two points of a real run took a third and half more. With load, each update writes every value. \
              Control groups stand in for VMs. Two programs are compared with the agent: floor only reads the same counters \
              from open descriptors; naive opens and closes each file at each update and writes all values. Like the paper's \
              figure, ours leaves out network access.",
    run,
};

/// The part of the variance that a straight line has to explain for growth to count as linear.
const STRAIGHT: f64 = 0.98;
/// The length of the paper's runs, in seconds.
const FOUR_MINUTES: f64 = 240.0;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let Some(overhead) = settings.poullie_recordings()?.overhead() else {
        let note = "not drawn: the recordings contain no overhead.csv";
        return Ok(Outcome { notes: vec![note.into()], ..Outcome::default() });
    };
    let agent = Variant::Agent;
    let loads = [false, true];
    let intervals = overhead.intervals(agent);
    let fits = |of: Vec<Vec<(f64, f64)>>| of.iter().filter_map(|line| fit(line)).collect::<Vec<_>>();
    let by_vms: Vec<Vec<Fit>> = loads
        .iter()
        .map(|loaded| fits(intervals.iter().map(|i| overhead.by_vms(agent, *loaded, *i)).collect()))
        .collect();
    let rates: Vec<_> = loads.iter().flat_map(|loaded| overhead.by_rate(agent, *loaded)).collect();
    let (vms, rate) = (by_vms.concat(), fits(rates));
    // An additional VM costs less at each longer interval.
    let contained = by_vms.iter().all(|fits| fits.windows(2).all(|two| two[1].slope < two[0].slope)) && vms.len() > 1;
    let ends = |fits: &[Fit]| match fits {
        [first, .., last] => Some(format!("{:.2} to {:.2} ms", 1e3 * first.slope, 1e3 * last.slope)),
        _ => None,
    };
    let slopes: Vec<String> = by_vms.iter().filter_map(|fits| ends(fits)).collect();
    let [short, long] = [intervals.first(), intervals.last()].map(|i| i.copied().unwrap_or(0.0));
    Ok(Outcome {
        verdicts: vec![
            Verdict::new("CPU overhead increases linearly with the number of VMs", linearity(&vms), is_linear(&vms)),
            Verdict::new(
                "CPU overhead increases linearly with shorter update intervals",
                linearity(&rate),
                is_linear(&rate),
            ),
            Verdict::new(
                "longer intervals limit the cost of higher numbers of VMs",
                format!(
                    "in four minutes an additional VM costs {} of CPU time, from an interval of {short} s to {long} s (without \
                     load; with load)",
                    if slopes.is_empty() { "an unknown amount".into() } else { slopes.join("; ") }
                ),
                contained,
            ),
        ],
        figures: vec![draw(overhead, false), draw(overhead, true)],
        notes: loads.iter().filter_map(|loaded| cost_by_variant(overhead, *loaded)).collect(),
    })
}

fn is_linear(fits: &[Fit]) -> bool {
    !fits.is_empty() && fits.iter().all(|fit| fit.slope > 0.0 && fit.explained >= STRAIGHT)
}

fn linearity(fits: &[Fit]) -> String {
    let worst = fits.iter().map(|fit| fit.explained).reduce(f64::min);
    match worst {
        None => "there are no three runs that differ in this alone".into(),
        Some(worst) if fits.iter().all(|fit| fit.slope > 0.0) => {
            format!("straight lines explain {:.2} % of the variance or more ({} lines)", 100.0 * worst, fits.len())
        }
        Some(_) => "it decreases in some case".into(),
    }
}

/// Reports the cost of an update per VM for all variants, with the highest number of VMs and the shortest interval.
fn cost_by_variant(overhead: &Overhead, loaded: bool) -> Option<String> {
    let interval = *overhead.intervals(Variant::Agent).first()?;
    let line = overhead.by_vms(Variant::Agent, loaded, interval);
    let (highest, _) = *line.last().filter(|(vms, _)| *vms > 0.0)?;
    let of = |variant: Variant| {
        let line = overhead.by_vms(variant, loaded, interval);
        let (_, cpu) = line.iter().find(|(vms, _)| *vms == highest)?;
        Some(format!("{} {:.1} us", variant.name(), 1e6 * cpu * interval / FOUR_MINUTES / highest))
    };
    let costs: Vec<String> = Variant::ALL.into_iter().filter_map(of).collect();
    let load = if loaded { "with" } else { "without" };
    Some(format!(
        "{load} load, {highest} VMs, an update every {interval} s: the cost of an update per VM is {}",
        costs.join(", ")
    ))
}

/// Draws a line for each update interval of the agent, and the other variants at the shortest interval.
fn draw(overhead: &Overhead, loaded: bool) -> FigureWithData {
    let intervals = overhead.intervals(Variant::Agent);
    let own = intervals.iter().map(|interval| (Variant::Agent, *interval));
    let others =
        intervals.first().into_iter().flat_map(|i| [Variant::Floor, Variant::Naive].map(|variant| (variant, *i)));
    let points = |(variant, interval): (Variant, f64)| {
        let line = overhead.by_vms(variant, loaded, interval);
        let points: Vec<_> = line.into_iter().map(|(vms, cpu)| (vms, Some(cpu))).collect();
        (format!("{}, {interval} s", variant.name()), points)
    };
    let lines: Vec<_> = own.chain(others).map(points).filter(|(_, points)| !points.is_empty()).collect();
    let all = || lines.iter().flat_map(|(_, points)| points);
    let (part, load) = if loaded { ("b", "with load") } else { ("a", "without load") };
    let chart = LineChart {
        caption: Caption {
            name: format!("poullie-figure-2{part}"),
            title: format!("CPU time of updates, VMs {load}"),
            description: "CPU time in four minutes by the number of VMs, one line per update interval.".into(),
        },
        x: Axis {
            title: "VMs".into(),
            unit: Unit::Number,
            scale: Scale::linear(all().map(|(vms, _)| *vms), true, Unit::Number),
        },
        y: Axis {
            title: "CPU time in four minutes, s".into(),
            unit: Unit::Number,
            scale: Scale::linear(all().filter_map(|(_, cpu)| *cpu), true, Unit::Number),
        },
        lines: lines
            .iter()
            .enumerate()
            .map(|(series, (label, points))| Line { label: label.clone(), series, shape: Shape::Points(points) })
            .collect(),
    };
    let mut csv = Csv::new(&["guests", "interval_s", "variant", "cpu_s_per_4min"]);
    for run in overhead.runs().iter().filter(|run| run.loaded == loaded) {
        csv.row(&[
            Cell::Number(Some(run.vms)),
            Cell::Number(Some(run.interval)),
            Cell::Text(run.variant.name()),
            Cell::Number(Some(run.cpu)),
        ]);
    }
    FigureWithData { figure: chart.draw(), csv: csv.finish() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poullie::Recordings;

    /// Runs the experiment on this CPU time by VMs and interval, for all variants and loads.
    fn outcome(cpu: impl Fn(f64, f64) -> f64) -> Outcome {
        let mut text = "guests,interval_s,loaded,variant,cpu_s_per_4min\n".to_owned();
        for vms in [1.0, 50.0, 100.0, 200.0] {
            for interval in [1.0, 5.0, 10.0] {
                for (loaded, variant) in [false, true].into_iter().flat_map(|l| Variant::ALL.map(|v| (l, v))) {
                    let cpu = cpu(vms, interval);
                    text += &format!("{vms},{interval},{loaded},{},{cpu}\n", variant.name());
                }
            }
        }
        let recording = "time_s,group,owner,cpu_cores,disk_bytes_per_s,cpu_weight,io_weight\n1,d.1,d,1,0,100,100\n";
        let names = ["one-off", "one-on", "two-off-a", "two-off-b", "two-on-a", "two-on-b"].map(|n| (n, recording));
        let texts = names.into_iter().chain([("overhead", text.as_str())]);
        run(&Settings::new(1).recordings(Recordings::read(texts).unwrap())).unwrap()
    }

    #[test]
    fn linear_growth_is_recognised() {
        // 10 us per VM and update, and 1 ms per update.
        let outcome = outcome(|vms, interval| FOUR_MINUTES / interval * (1e-3 + 1e-5 * vms));
        assert!(outcome.verdicts.iter().all(|v| v.holds), "{:?}", outcome.verdicts);
        assert!(outcome.notes[0].ends_with("agent 15.0 us, floor 15.0 us, naive 15.0 us"), "{:?}", outcome.notes);
        let names: Vec<_> = outcome.figures.iter().map(|f| f.figure.name()).collect();
        assert_eq!(names, ["poullie-figure-2a", "poullie-figure-2b"]);
        assert_eq!(outcome.figures[0].csv.lines().count(), 1 + 4 * 3 * 3);
    }

    #[test]
    fn each_statement_can_fail() {
        let outcome = outcome(|vms, interval| vms * vms * vms * interval);
        assert!(outcome.verdicts.iter().all(|v| !v.holds), "{:?}", outcome.verdicts);
    }
}
