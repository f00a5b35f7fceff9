//! Figure 2: what updates cost.

use evenhand_documents::{Cell, Csv};
use evenhand_report::chart::{Axis, Caption, Line, LineChart, Scale, Shape, Unit};

use super::overhead::{Fit, Overhead, Variant, fit};
use crate::{Drawn, Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "poullie",
    figure: "figure-2",
    title: "CPU time of the agent, by the number of guests and the update interval",
    setting: "One node, guests without load (a) and with load (b), CPU time in four minutes. The paper's is that of four OpenStack services; ours is \
              that of the agent's updates: one update as measured with emptied caches, times the updates in four minutes, so \
              that growth with shorter intervals follows from how it was worked out. Two points of a real run took a third and half more. \
              With load, every value is written at each update. Guests are control groups. Beside the agent stand what only reads the same counters from kept \
              descriptors (floor), and what opens and closes each file each time and writes all (naive). The paper's figure leaves network access \
              aside, and so does ours.",
    run,
};

/// How much of the variance a straight line has to explain to be called one.
const STRAIGHT: f64 = 0.98;
/// The paper's runs, s.
const FOUR_MINUTES: f64 = 240.0;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let Some(overhead) = settings.recorded()?.overhead() else {
        let note = "not drawn: there is no overhead.csv among the recordings";
        return Ok(Outcome { notes: vec![note.into()], ..Outcome::default() });
    };
    let agent = Variant::Agent;
    let loads = [false, true];
    let intervals = overhead.intervals(agent);
    let fits = |of: Vec<Vec<(f64, f64)>>| of.iter().filter_map(|line| fit(line)).collect::<Vec<_>>();
    let by_guests: Vec<Vec<Fit>> = loads
        .iter()
        .map(|loaded| fits(intervals.iter().map(|i| overhead.by_guests(agent, *loaded, *i)).collect()))
        .collect();
    let rates: Vec<_> = loads.iter().flat_map(|loaded| overhead.by_rate(agent, *loaded)).collect();
    let (guests, rate) = (by_guests.concat(), fits(rates));
    // From the shortest interval to the longest each guest more costs less.
    let contained =
        by_guests.iter().all(|fits| fits.windows(2).all(|two| two[1].slope < two[0].slope)) && guests.len() > 1;
    let ends = |fits: &[Fit]| match fits {
        [first, .., last] => Some(format!("{:.2} to {:.2} ms", 1e3 * first.slope, 1e3 * last.slope)),
        _ => None,
    };
    let slopes: Vec<String> = by_guests.iter().filter_map(|fits| ends(fits)).collect();
    let [short, long] = [intervals.first(), intervals.last()].map(|i| i.copied().unwrap_or(0.0));
    Ok(Outcome {
        verdicts: vec![
            Verdict::new("CPU overhead increases linearly with the number of VMs", said(&guests), straight(&guests)),
            Verdict::new("and with shorter update intervals", said(&rate), straight(&rate)),
            Verdict::new(
                "what higher numbers of VMs cost is contained by longer intervals",
                format!(
                    "in four minutes a guest more costs {} of CPU time, from {short} s to {long} s (without load; with load)",
                    if slopes.is_empty() { "nothing that was measured".into() } else { slopes.join("; ") }
                ),
                contained,
            ),
        ],
        drawn: vec![draw(overhead, false), draw(overhead, true)],
        notes: loads.iter().filter_map(|loaded| beside(overhead, *loaded)).collect(),
    })
}

fn straight(fits: &[Fit]) -> bool {
    !fits.is_empty() && fits.iter().all(|fit| fit.slope > 0.0 && fit.explained >= STRAIGHT)
}

fn said(fits: &[Fit]) -> String {
    let worst = fits.iter().map(|fit| fit.explained).reduce(f64::min);
    match worst {
        None => "no three runs that differ in this alone".into(),
        Some(worst) if fits.iter().all(|fit| fit.slope > 0.0) => {
            format!("straight lines explain {:.2} % of the variance or more ({} lines)", 100.0 * worst, fits.len())
        }
        Some(_) => "it falls somewhere".into(),
    }
}

/// What an update costs a guest, for all variants, with the most guests and the shortest interval.
fn beside(overhead: &Overhead, loaded: bool) -> Option<String> {
    let interval = *overhead.intervals(Variant::Agent).first()?;
    let line = overhead.by_guests(Variant::Agent, loaded, interval);
    let (most, _) = *line.last().filter(|(guests, _)| *guests > 0.0)?;
    let of = |variant: Variant| {
        let line = overhead.by_guests(variant, loaded, interval);
        let (_, cpu) = line.iter().find(|(guests, _)| *guests == most)?;
        Some(format!("{} {:.1} us", variant.name(), 1e6 * cpu * interval / FOUR_MINUTES / most))
    };
    let costs: Vec<String> = Variant::ALL.into_iter().filter_map(of).collect();
    let load = if loaded { "with" } else { "without" };
    Some(format!("{load} load, {most} guests, an update each {interval} s: one costs a guest {}", costs.join(", ")))
}

/// A line an interval of the agent's, and the others beside its shortest.
fn draw(overhead: &Overhead, loaded: bool) -> Drawn {
    let intervals = overhead.intervals(Variant::Agent);
    let own = intervals.iter().map(|interval| (Variant::Agent, *interval));
    let others =
        intervals.first().into_iter().flat_map(|i| [Variant::Floor, Variant::Naive].map(|variant| (variant, *i)));
    let points = |(variant, interval): (Variant, f64)| {
        let line = overhead.by_guests(variant, loaded, interval);
        let points: Vec<_> = line.into_iter().map(|(guests, cpu)| (guests, Some(cpu))).collect();
        (format!("{}, {interval} s", variant.name()), points)
    };
    let lines: Vec<_> = own.chain(others).map(points).filter(|(_, points)| !points.is_empty()).collect();
    let all = || lines.iter().flat_map(|(_, points)| points);
    let (part, load) = if loaded { ("b", "with load") } else { ("a", "without load") };
    let chart = LineChart {
        caption: Caption {
            name: format!("poullie-figure-2{part}"),
            title: format!("CPU time of updates, guests {load}"),
            description: "CPU time in four minutes by the number of guests, a line an update interval.".into(),
        },
        x: Axis {
            title: "guests".into(),
            unit: Unit::Number,
            scale: Scale::linear(all().map(|(guests, _)| *guests), true, Unit::Number),
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
            Cell::Number(Some(run.guests)),
            Cell::Number(Some(run.interval)),
            Cell::Text(run.variant.name()),
            Cell::Number(Some(run.cpu)),
        ]);
    }
    Drawn { figure: chart.draw(), csv: csv.finish() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poullie::Recordings;

    /// CPU time by guests and interval, for all variants and loads.
    fn outcome(cpu: impl Fn(f64, f64) -> f64) -> Outcome {
        let mut text = "guests,interval_s,loaded,variant,cpu_s_per_4min\n".to_owned();
        for guests in [1.0, 50.0, 100.0, 200.0] {
            for interval in [1.0, 5.0, 10.0] {
                for (loaded, variant) in [false, true].into_iter().flat_map(|l| Variant::ALL.map(|v| (l, v))) {
                    let cpu = cpu(guests, interval);
                    text += &format!("{guests},{interval},{loaded},{},{cpu}\n", variant.name());
                }
            }
        }
        let recording = "time_s,group,owner,cpu_cores,disk_bytes_per_s,cpu_weight,io_weight\n1,d.1,d,1,0,100,100\n";
        let names = ["one-off", "one-on", "two-off-a", "two-off-b", "two-on-a", "two-on-b"].map(|n| (n, recording));
        let texts = names.into_iter().chain([("overhead", text.as_str())]);
        run(&Settings::new(1).recordings(Recordings::read(texts).unwrap())).unwrap()
    }

    #[test]
    fn straight_lines_are_called_so() {
        // 10 us a guest and update, 1 ms an update.
        let outcome = outcome(|guests, interval| FOUR_MINUTES / interval * (1e-3 + 1e-5 * guests));
        assert!(outcome.verdicts.iter().all(|v| v.holds), "{:?}", outcome.verdicts);
        assert!(outcome.notes[0].ends_with("agent 15.0 us, floor 15.0 us, naive 15.0 us"), "{:?}", outcome.notes);
        let names: Vec<_> = outcome.drawn.iter().map(|d| d.figure.name()).collect();
        assert_eq!(names, ["poullie-figure-2a", "poullie-figure-2b"]);
        assert_eq!(outcome.drawn[0].csv.lines().count(), 1 + 4 * 3 * 3);
    }

    #[test]
    fn each_statement_can_fail() {
        let outcome = outcome(|guests, interval| guests * guests * guests * interval);
        assert!(outcome.verdicts.iter().all(|v| !v.holds), "{:?}", outcome.verdicts);
    }
}
