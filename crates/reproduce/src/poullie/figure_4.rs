//! Figure 4: one node, one resource.

use super::recording::{What, percent};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "poullie",
    figure: "figure-4",
    title: "one node, one resource: CPU weights and CPU time",
    setting: "Experiment 1: user d has two guests on a node, user e one; all want all of the CPU, d's first alone for the first fifth of the \
              time. Recorded in a guest of QEMU under software emulation with one processor and Debian's kernel, where guests are control groups \
              of cgroup v2, off and on. Time is scaled by a tenth: an update a second for the paper's ten, 90 s for its 15 minutes. \
              The metric is deviation (the paper's is greediness, whose parameters it does not give), the controller the integral one. \
              --data DIR draws other recordings, as tests/agent/guests.sh leaves them.",
    run,
};

/// The last third, in which all run and weights are settled.
const SETTLED: std::ops::Range<f64> = 0.67..1.0;
/// d's first is alone, but for the beginning.
const ALONE: std::ops::Range<f64> = 0.05..0.19;
/// When the others begin.
const BEGUN: f64 = 0.2;
/// Of shares.
const TOLERANCE: f64 = 0.02;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let recordings = settings.recorded()?;
    let (off, on) = (recordings.get("one-off")?, recordings.get("one-on")?);
    let guests = ["d.1", "d.2", "e.1"];
    let without = guests.map(|g| off.share(g, What::Cpu, SETTLED));
    let with = guests.map(|g| on.share(g, What::Cpu, SETTLED));
    let said = |shares: &[f64]| shares.iter().map(|s| percent(*s)).collect::<Vec<_>>().join(", ");
    let twice = (without[0] + without[1]) / without[2];
    let [alone, all] =
        [on.mean("d.1", What::Cpu, ALONE), guests.map(|g| on.mean(g, What::Cpu, SETTLED)).iter().sum::<f64>()];
    let weights = guests.map(|g| on.mean(g, What::CpuWeight, SETTLED));
    // What is stated of shares below.
    let due = [("d.1", 19.0 / 66.0), ("d.2", 19.0 / 66.0), ("e.1", 28.0 / 66.0)];
    let settled = match on.settles(&due, What::Cpu, 0.05) {
        Some(time) => format!("from {:.0} s after all run on", (time - BEGUN * on.end()).max(0.0)),
        None => "not to the end".into(),
    };
    let third = 1.0 / 3.0;
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "without it all guests receive 1/3 of the CPU time",
                format!("d's two and e's have {}", said(&without)),
                without.iter().all(|s| (s - third).abs() <= TOLERANCE),
            ),
            Verdict::new(
                "so that d receives twice the CPU time of e",
                format!("{twice:.2} times"),
                (twice - 2.0).abs() <= 4.0 * TOLERANCE,
            ),
            Verdict::new(
                "in the first three minutes d's only busy guest fully utilizes the CPU, although its weight is low",
                format!("it has {alone:.2} processors, where later all have {all:.2} together"),
                alone >= 0.95 * all,
            ),
            Verdict::new(
                "with it d's guests are throttled in favour of e's",
                format!("d's two and e's have {}", said(&with)),
                with[2] > third + TOLERANCE && with[0] < third && with[1] < third,
            ),
            Verdict::new(
                "by giving more weight to e's",
                format!("cpu.weight is {:.0}, {:.0} and {:.0} in the mean", weights[0], weights[1], weights[2]),
                weights[2] > weights[0] && weights[2] > weights[1],
            ),
        ],
        drawn: vec![
            on.draw("figure-4-weights", "CPU weights of one node's guests", What::CpuWeight),
            on.draw("figure-4", "CPU time of one node's guests", What::Cpu),
            off.draw("figure-4-off", "CPU time of one node's guests, without weights", What::Cpu),
        ],
        notes: vec![
            format!(
                "where all three are equally heavy e has 28/66 = 42.4 % and d the rest in halves; e has {}, d {}",
                percent(with[2]),
                percent(with[0] + with[1])
            ),
            format!("all three stay within 5 % of the CPU of that: {settled}"),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poullie::Recordings;

    #[test]
    fn each_statement_can_fail() {
        // With what happens without the agent in place of what happens with it, and the other way round.
        let text = |e: &str, d: &str| {
            let header = "time_s,group,owner,cpu_cores,disk_bytes_per_s,cpu_weight,io_weight\n".to_owned();
            let row = |t: u32| format!("{t},d.1,d,{d},0,100,100\n{t},d.2,d,{d},0,100,100\n{t},e.1,e,{e},0,90,100\n");
            (1..=90).fold(header, |text, t| text + &row(t))
        };
        let (off, on) = (text("0.4", "0.3"), text("0.3", "0.35"));
        let names = ["one-off", "two-off-a", "two-off-b", "two-on-a", "two-on-b"].map(|name| (name, off.as_str()));
        let recordings = Recordings::read(names.into_iter().chain([("one-on", on.as_str())])).unwrap();
        let outcome = run(&Settings::new(1).recordings(recordings)).unwrap();
        assert!(outcome.verdicts.iter().all(|v| !v.holds), "{:?}", outcome.verdicts);
    }
}
