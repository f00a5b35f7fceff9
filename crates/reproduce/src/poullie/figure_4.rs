//! Figure 4: one node, one resource.

use super::recording::{Metric, percent};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "poullie",
    figure: "figure-4",
    title: "one node, one resource: CPU weights and CPU time",
    setting: "Experiment 1: user d has two VMs on a node, user e one; all demand the whole CPU, d's first VM alone for the \
              first fifth of the time. Recorded with and without the agent in QEMU under software emulation, with one \
              processor and Debian's kernel, where control groups of cgroup v2 stand in for VMs. Time is scaled by a tenth: \
              an update per second for the paper's ten seconds, 90 s for its 15 minutes. The metric is deviation (the paper \
              uses greediness, whose parameters it does not give), with the integral controller. --data DIR draws other \
              recordings, made by tests/agent/guests.sh.",
    run,
};

/// The last third of the time, in which all VMs run and weights have settled.
const SETTLED: std::ops::Range<f64> = 0.67..1.0;
/// The time in which d's first VM runs alone, without the start.
const ALONE: std::ops::Range<f64> = 0.05..0.19;
/// The time at which the other VMs start.
const OTHERS_START: f64 = 0.2;
/// The tolerance of shares.
const TOLERANCE: f64 = 0.02;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let recordings = settings.poullie_recordings()?;
    let (off, on) = (recordings.get("one-off")?, recordings.get("one-on")?);
    let vms = ["d.1", "d.2", "e.1"];
    let without = vms.map(|vm| off.share(vm, Metric::Cpu, SETTLED));
    let with = vms.map(|vm| on.share(vm, Metric::Cpu, SETTLED));
    let list = |shares: &[f64]| shares.iter().map(|s| percent(*s)).collect::<Vec<_>>().join(", ");
    let twice = (without[0] + without[1]) / without[2];
    let [alone, all] =
        [on.mean("d.1", Metric::Cpu, ALONE), vms.map(|vm| on.mean(vm, Metric::Cpu, SETTLED)).iter().sum::<f64>()];
    let weights = vms.map(|vm| on.mean(vm, Metric::CpuWeight, SETTLED));
    // The shares at equal heaviness; see the note below.
    let due = [("d.1", 19.0 / 66.0), ("d.2", 19.0 / 66.0), ("e.1", 28.0 / 66.0)];
    let settled = match on.settles(&due, Metric::Cpu, 0.05) {
        Some(time) => format!("from {:.0} s after the last VM started", (time - OTHERS_START * on.end()).max(0.0)),
        None => "never".into(),
    };
    let third = 1.0 / 3.0;
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "without the service all VMs receive 1/3 of the CPU time",
                format!("d's two and e's receive {}", list(&without)),
                without.iter().all(|s| (s - third).abs() <= TOLERANCE),
            ),
            Verdict::new(
                "so user d receives twice the CPU time of user e",
                format!("{twice:.2} times"),
                (twice - 2.0).abs() <= 4.0 * TOLERANCE,
            ),
            Verdict::new(
                "in the first three minutes d's only busy VM fully utilizes the CPU, although its weight is low",
                format!("it receives {alone:.2} processors; later all VMs together receive {all:.2}"),
                alone >= 0.95 * all,
            ),
            Verdict::new(
                "with the service d's VMs are throttled in favour of e's",
                format!("d's two and e's receive {}", list(&with)),
                with[2] > third + TOLERANCE && with[0] < third && with[1] < third,
            ),
            Verdict::new(
                "by giving more weight to e's VM",
                format!("the mean cpu.weight is {:.0}, {:.0} and {:.0}", weights[0], weights[1], weights[2]),
                weights[2] > weights[0] && weights[2] > weights[1],
            ),
        ],
        figures: vec![
            on.draw("figure-4-weights", "CPU weights of one node's VMs", Metric::CpuWeight),
            on.draw("figure-4", "CPU time of one node's VMs", Metric::Cpu),
            off.draw("figure-4-off", "CPU time of one node's VMs, without the agent", Metric::Cpu),
        ],
        notes: vec![
            format!(
                "if all three VMs are equally heavy, e receives 28/66 = 42.4 % and each of d's VMs half of the rest; measured: \
                 e {}, d {}",
                percent(with[2]),
                percent(with[0] + with[1])
            ),
            format!("all three stay within 5 % of the CPU of these shares: {settled}"),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poullie::Recordings;

    #[test]
    fn each_statement_can_fail() {
        // The recordings with and without the agent are exchanged.
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
