//! The priorities and usage factors of qualities of service, and what they preempt.

use evenhand_model::{Cluster, QualityOfService, preempted_by_themselves};

use super::qos::Qos;
use super::scheduler_settings::PreemptModes;
use crate::parse_values::Limit;

/// Columns that say what is preempted, and how, and what a job's priority and usage have of its QOS.
const COLUMNS: [&str; 6] = ["Priority", "UsageFactor", "Preempt", "PreemptMode", "PreemptExemptTime", "GraceTime"];

/// Gives a cluster the qualities of service, if any has a priority or a usage factor, preempts or is preempted. Returns `rest`, the
/// qualities of service with what a simulation has not followed so far, without what it then follows.
///
/// Names that no QOS has are left out, and so are circles: those in one preempt nothing.
pub fn priorities_and_preemption_of_qos(cluster: &mut Cluster, all: &[Qos], mut rest: Vec<Qos>) -> Vec<Qos> {
    let of = |qos: &Qos, column: &str| {
        let found = qos.settings.iter().find(|(name, _)| name.eq_ignore_ascii_case(column));
        found.map(|(_, value)| value.clone())
    };
    if !all.iter().any(|qos| COLUMNS.iter().any(|column| of(qos, column).is_some())) {
        return rest;
    }
    let named = |name: &str| all.iter().find(|qos| qos.name.eq_ignore_ascii_case(name.trim()));
    for qos in all {
        if cluster.qos.iter().any(|known| known.name == qos.name) {
            continue;
        }
        let names = of(qos, "Preempt").unwrap_or_default();
        let time = |column: &str| of(qos, column).and_then(|value| Limit::parse(&value)).and_then(Limit::span);
        let modes = of(qos, "PreemptMode").map(|value| PreemptModes::read(&value)).unwrap_or_default();
        cluster.qos.push(QualityOfService {
            name: qos.name.clone(),
            priority: qos.priority(),
            usage_factor: qos.usage_factor(),
            preempts: names.split(',').filter_map(named).map(|other| other.name.clone()).collect(),
            preempts_within: modes.within,
            preempt_mode: modes.mode,
            preempt_exempt_time: time("PreemptExemptTime"),
            grace_time: time("GraceTime").unwrap_or_default(),
        });
    }
    let circles = preempted_by_themselves(&cluster.qos);
    cluster.qos.iter_mut().filter(|qos| circles.contains(&qos.name)).for_each(|qos| qos.preempts.clear());
    for qos in &mut rest {
        qos.settings.retain(|(column, value)| match column.to_ascii_lowercase().as_str() {
            "priority" | "usagefactor" | "preempt" | "preemptexempttime" | "gracetime" => false,
            // `cluster`: as slurm.conf has it.
            "preemptmode" => PreemptModes::read(value).is_unknown && !value.eq_ignore_ascii_case("cluster"),
            _ => true,
        });
    }
    rest
}

#[cfg(test)]
mod tests {
    use evenhand_model::{PreemptMode, Span};

    use super::super::qos::parse_qos;
    use super::*;

    #[test]
    fn what_preempts_and_is_preempted_is_followed() {
        let text = "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode\nhigh|10||LOW,none||\nlow|0|00:00:30||00:05:00|requeue\n\
            a|0||b||within\nb|0||a,low||suspend,gang\nc|0||||stop\n";
        let qos = parse_qos(text).unwrap();
        let mut cluster = Cluster::default();
        let rest = priorities_and_preemption_of_qos(&mut cluster, &qos, qos.clone());
        let of = |name: &str| QualityOfService { name: name.into(), ..QualityOfService::default() };
        assert_eq!(
            cluster.qos,
            [
                QualityOfService { priority: 10, preempts: vec!["low".into()], ..of("high") },
                QualityOfService {
                    preempt_mode: Some(PreemptMode::Requeue),
                    preempt_exempt_time: Some(Span::from_secs(300)),
                    grace_time: Span::from_secs(30),
                    ..of("low")
                },
                QualityOfService { preempts_within: true, ..of("a") },
                QualityOfService { preempt_mode: Some(PreemptMode::Suspend), ..of("b") },
                of("c"),
            ]
        );
        let left: Vec<&str> = rest.iter().flat_map(|qos| &qos.settings).map(|(column, _)| column.as_str()).collect();
        assert_eq!(left, ["PreemptMode"]);
        let alone = parse_qos("Name|Priority\nhigh|10\n").unwrap();
        let mut cluster = Cluster::default();
        assert_eq!(priorities_and_preemption_of_qos(&mut cluster, &alone, alone.clone())[0].settings, []);
        assert_eq!(cluster.qos, [QualityOfService { priority: 10, ..of("high") }]);
        let none = parse_qos("Name|Priority|MaxWall\nhigh|0|5:00\n").unwrap();
        let mut cluster = Cluster::default();
        assert_eq!(priorities_and_preemption_of_qos(&mut cluster, &none, none.clone()), none);
        assert_eq!(cluster.qos, []);
    }
}
