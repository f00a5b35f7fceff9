//! Metrics of `serve` for Prometheus: the queue by reason, the nodes, and how forecasts come true. None names a user.

use std::cmp::Reverse;

use evenhand_serve::{Latest, waiting_by_reason};
use evenhand_slurm::explain_reason;

use crate::output::serve_metrics::{LABELLED, MetricsText, REST};

/// Returns the metrics of the last answer.
pub(super) fn metrics(latest: &Latest) -> String {
    let mut text = MetricsText::default();
    let one = |value: f64| [(Vec::new(), value)];
    let (reads, errors) = latest.reads();
    let answer = latest.answer();
    text.family("evenhand_site_reads_total", "counter", "Questions to Slurm.", one(reads as f64));
    text.family(
        "evenhand_site_read_errors_total",
        "counter",
        "Questions that Slurm did not answer.",
        one(errors as f64),
    );
    let up = f64::from(u8::from(answer.snapshot.is_some() && answer.failure.is_none()));
    text.family("evenhand_site_up", "gauge", "Whether Slurm answered the last question.", one(up));

    let score = latest.forecast_score();
    for (name, help, value) in [
        ("evenhand_forecasts_checked_total", "Jobs that started after their start was forecast.", score.checked as f64),
        ("evenhand_forecasts_covered_total", "Those that started within the interval of 80 %.", score.covered as f64),
        (
            "evenhand_forecast_error_seconds_total",
            "Differences between the median forecast and the start, each without its sign.",
            score.error_s,
        ),
        ("evenhand_forecast_interval_seconds_total", "Lengths of the intervals of 80 %.", score.width_s),
    ] {
        text.family(name, "counter", help, one(value));
    }
    let known = latest.forecasts().starts.len() as f64;
    text.family("evenhand_forecasts", "gauge", "Waiting jobs whose start is forecast now.", one(known));

    if let Some(agent) = latest.agent() {
        let up = f64::from(u8::from(agent.failure.is_none()));
        text.family("evenhand_site_agent_up", "gauge", "Whether the agent answered the last question.", one(up));
        let answered = agent.answered_at.map(|at| (Vec::new(), at.secs_f64()));
        text.family("evenhand_site_agent_read_timestamp_seconds", "gauge", "When the agent answered last.", answered);
    }

    let Some(snapshot) = &answer.snapshot else { return text.finish() };
    let read_at = one(snapshot.read_at.secs_f64());
    text.family("evenhand_site_read_timestamp_seconds", "gauge", "When Slurm answered last.", read_at);
    let running = snapshot.queue.jobs.iter().filter(|job| job.state.holds_resources()).count();
    text.family("evenhand_site_jobs_running", "gauge", "Jobs that hold resources.", one(running as f64));
    // Slurm has some 200 reasons, but a plug-in may print any text.
    let mut reasons: Vec<(&str, u64)> = waiting_by_reason(&snapshot.queue.jobs).into_iter().collect();
    reasons.sort_by_key(|&(reason, jobs)| (Reverse(jobs), reason));
    let rest: u64 = reasons.iter().skip(LABELLED).map(|(_, jobs)| jobs).sum();
    let rows = reasons.iter().take(LABELLED).map(|&(reason, jobs)| {
        let (kind, _) = explain_reason(reason);
        (vec![("reason", reason), ("kind", kind.name())], jobs as f64)
    });
    let rest = (rest > 0).then(|| (vec![("reason", REST), ("kind", REST)], rest as f64));
    let help = "Waiting jobs by Slurm's reason, each task of an array counted.";
    text.family("evenhand_site_jobs_waiting", "gauge", help, rows.chain(rest));
    let counts = snapshot.node_counts();
    for (name, help, value) in [
        ("evenhand_site_nodes", "Nodes.", counts.nodes as f64),
        ("evenhand_site_nodes_unavailable", "Nodes that are down or drained.", counts.unavailable as f64),
        ("evenhand_site_cpus", "CPUs of all nodes.", counts.cpus as f64),
        ("evenhand_site_cpus_allocated", "CPUs that jobs hold.", counts.cpus_allocated as f64),
    ] {
        text.family(name, "gauge", help, one(value));
    }
    text.finish()
}

#[cfg(test)]
mod tests {
    use evenhand_model::{Span, Time};
    use evenhand_serve::{AgentReader, AgentRecord, Readers, SlurmSite};
    use evenhand_slurm::RecordedOutput;

    use super::*;

    /// An agent that answers once.
    struct Agent(bool);

    impl AgentReader for Agent {
        fn read(&mut self) -> Result<AgentRecord, String> {
            if std::mem::take(&mut self.0) { Ok(AgentRecord::default()) } else { Err("away".into()) }
        }
    }

    #[test]
    fn an_agent_that_ceases_to_answer_is_seen() {
        let site = || Box::new(SlurmSite::new(Box::new(RecordedOutput::default()), Span::from_secs(1)));
        let latest = Latest::default();
        latest.read_agent(&mut Readers { site: site(), agent: None }, Time::from_secs(900));
        assert!(!metrics(&latest).contains("evenhand_site_agent"), "no agent is asked");
        let mut readers = Readers { site: site(), agent: Some(Box::new(Agent(true))) };
        for (now, up) in [(1000, 1), (1010, 0)] {
            latest.read_agent(&mut readers, Time::from_secs(now));
            let text = metrics(&latest);
            assert!(text.contains(&format!("\nevenhand_site_agent_up {up}\n")), "{text}");
            assert!(text.contains("\nevenhand_site_agent_read_timestamp_seconds 1000\n"), "{text}");
        }
    }

    #[test]
    fn jobs_are_counted_by_reason_and_no_user_is_named() {
        let squeue = "JOBID|USER|STATE|REASON|PARTITION|SUBMIT_TIME|TIME_LIMIT|CPUS|ARRAY_JOB_ID|ARRAY_TASK_ID\n\
            1|ann|RUNNING|None|main|900|5:00|1|1|N/A\n\
            2|ann|PENDING|Priority|main|900|5:00|1|2|N/A\n\
            3|bob|PENDING|Priority|main|900|5:00|1|3|1-4\n\
            4|bob|PENDING|Odd \"text\"|main|900|5:00|1|4|N/A\n";
        let node = "NodeName=n1 CPUAlloc=1 CPUTot=8 RealMemory=1000 AllocMem=0 Partitions=main State=MIXED CfgTRES=cpu=8,mem=1000M\n\
            NodeName=n2 CPUAlloc=0 CPUTot=4 RealMemory=1000 AllocMem=0 Partitions=main State=DOWN CfgTRES=cpu=4,mem=1000M\n";
        let site = RecordedOutput::default().with("squeue", squeue).with("scontrol show node", node);
        let latest = Latest::default();
        let mut site = SlurmSite::new(Box::new(site), Span::from_secs(1));
        assert!(metrics(&latest).contains("\nevenhand_site_up 0\n"));
        latest.read(&mut site, Time::from_secs(1000)).unwrap();
        let text = metrics(&latest);
        for line in [
            "evenhand_site_up 1",
            "evenhand_site_reads_total 1",
            "evenhand_site_read_timestamp_seconds 1000",
            "evenhand_site_jobs_running 1",
            "evenhand_site_jobs_waiting{reason=\"Priority\",kind=\"priority\"} 5",
            "evenhand_site_nodes 2",
            "evenhand_site_nodes_unavailable 1",
            "evenhand_site_cpus 12",
            "evenhand_site_cpus_allocated 1",
            "evenhand_forecasts_checked_total 0",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        }
        assert!(text.contains("reason=\"Odd \\\"text\\\"\""), "{text}");
        assert!(!text.contains("ann") && !text.contains("bob"), "{text}");
    }
}
