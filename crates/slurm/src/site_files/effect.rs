//! Which settings of a site decide when jobs start and are not part of a simulation.

use std::path::Path;

use evenhand_model::PreemptMode;
use evenhand_policies::TresWeight;

use super::qos::Qos;
use super::resources_without_effect::note_generic_resources;
use super::scheduler_settings::PreemptModes;
use super::slurm_conf::SlurmConf;
use crate::associations::{Accounts, AssociationSetting};

/// Something that the site has set and a simulation does not follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmodelled {
    /// Its name, as the site writes it.
    pub name: String,
    /// Its values, or for which partitions, nodes or associations it is set.
    pub values: Vec<String>,
    /// Where each value stands: `slurm.conf:7:20`; an empty text if that is not known, and no texts if it is known of none.
    pub places: Vec<String>,
    /// What a simulation does instead.
    pub instead: &'static str,
}

impl Unmodelled {
    fn forget_empty_places(&mut self) {
        if self.places.iter().all(String::is_empty) {
            self.places.clear();
        }
    }
}

/// What happens instead of preemption.
const NO_PREEMPTION: &str = "used only by --scheduler slurm; other schedulers preempt no job";

/// Settings of slurm.conf as a whole, with the values that change nothing, and what happens instead.
const SETTINGS: [(&str, &[&str], &str); 19] = [
    (
        "AccountingStorageEnforce",
        &["associations"],
        "limits in TRES-minutes hold no job back; submissions beyond limits are counted, not refused",
    ),
    ("CompleteWait", &["0"], "used only by --scheduler slurm; other schedulers start jobs while others are completing"),
    ("DefMemPerCPU", &["0"], "a job's memory is that of the log"),
    ("DefMemPerNode", &["0"], "a job's memory is that of the log"),
    ("EnforcePartLimits", &["NO"], "a job beyond its partition's limits is refused"),
    ("JobSubmitPlugins", &[], "jobs are as the log has them"),
    (
        "KillWait",
        &["30"],
        "used only by --scheduler slurm; under other schedulers a job's machines are free when it ends",
    ),
    ("MaxMemPerCPU", &["0"], "a job's processors are those of the log"),
    ("OverTimeLimit", &["0"], "used only by --scheduler slurm; under other schedulers jobs run as long as in the log"),
    ("PreemptMode", &["OFF"], NO_PREEMPTION),
    ("PreemptType", &["preempt/none"], NO_PREEMPTION),
    (
        "PriorityCalcPeriod",
        &[],
        "used only by --scheduler slurm; under other schedulers priorities change with every event",
    ),
    (
        "PrioritySiteFactorPlugin",
        &["site_factor/none"],
        "every job has the site factor 0: what the plugin adds to priorities is not known",
    ),
    (
        "PriorityType",
        &["priority/basic", "priority/multifactor"],
        "simulated as priority/basic: the policy site starts jobs in the order of their submission",
    ),
    ("PriorityUsageResetPeriod", &["NONE"], "past use decays by its half-life and is never cleared"),
    (
        "SchedulerParameters",
        &[],
        "used only by --scheduler slurm; other schedulers backfill at every event or keep strict order",
    ),
    ("SchedulerType", &["sched/backfill", "sched/builtin"], "simulated as sched/backfill"),
    (
        "SelectType",
        &["select/cons_tres", "select/cons_res"],
        "used only by --scheduler slurm; under other schedulers jobs share the processors of a machine",
    ),
    ("TopologyPlugin", &["topology/none", "topology/default", "topology/flat"], "machines have no topology"),
];

/// Options of partitions and nodes, with the values that change nothing.
const OPTIONS: [(&str, &[&str], &str); 25] = [
    ("PartitionName AllowAccounts", &["ALL"], "every account may use it"),
    ("PartitionName AllowGroups", &["ALL"], "every user may use it"),
    ("PartitionName AllowQos", &["ALL"], "every QOS may use it"),
    ("PartitionName DenyAccounts", &[], "every account may use it"),
    ("PartitionName DenyQos", &[], "every QOS may use it"),
    ("PartitionName DefaultTime", &["NONE"], "a job without a limit is expected to take its run time"),
    ("PartitionName DefMemPerCPU", &["0"], "a job's memory is that of the log"),
    ("PartitionName ExclusiveUser", &["NO"], "users share machines"),
    ("PartitionName GraceTime", &["0"], NO_PREEMPTION),
    ("PartitionName Hidden", &["NO"], "it takes jobs as other partitions do"),
    ("PartitionName LLN", &["NO"], "--placement decides"),
    ("PartitionName MaxCPUsPerNode", &["UNLIMITED"], "jobs may use all processors of a machine"),
    ("PartitionName MaxMemPerCPU", &["0"], "a job's processors are those of the log"),
    ("PartitionName MaxNodes", &["UNLIMITED"], "jobs may use any number of machines"),
    ("PartitionName MinNodes", &["0", "1"], "jobs may use any number of machines"),
    ("PartitionName OverSubscribe", &["NO", "EXCLUSIVE"], "jobs share machines and never processors"),
    ("PartitionName PreemptMode", &["OFF"], NO_PREEMPTION),
    ("PartitionName QOS", &["N/A"], "its limits are in no file of --qos"),
    ("PartitionName ReqResv", &["NO"], "no reservation is needed"),
    ("PartitionName RootOnly", &["NO"], "every user may use it"),
    ("PartitionName State", &["UP"], "it takes jobs"),
    ("NodeName CoreSpecCount", &["0"], "all processors are for jobs"),
    ("NodeName CpuSpecList", &[], "all processors are for jobs"),
    (
        "NodeName State",
        &["UNKNOWN", "IDLE", "FUTURE"],
        "the node takes jobs all the time; --without-down leaves out nodes that are down or drained, --events has when they were",
    ),
    ("DownNodes", &[], "its nodes take jobs"),
];

/// Returns the options of nodes (`NodeName`) or partitions (`PartitionName`) that [`unmodelled_settings`] looks at.
pub(super) fn option_names(kind: &'static str) -> impl Iterator<Item = &'static str> {
    let others = [BILLING, "NodeName Gres"];
    let all = OPTIONS.iter().map(|(name, _, _)| *name).chain(others);
    all.filter_map(move |name| name.strip_prefix(kind)?.strip_prefix(' '))
}

/// Flags of PriorityFlags, and what happens instead.
const PRIORITY_FLAGS: [(&str, &str); 3] = [
    ("ACCRUE_ALWAYS", "a job's age counts from when it became eligible; from its submission with --release submit"),
    ("CALCULATE_RUNNING", "a running job keeps the priority with which it started"),
    ("INCR_ONLY", "priorities also fall"),
];

/// The weights by which a partition bills.
const BILLING: &str = "PartitionName TRESBillingWeights";

/// Resources that PriorityWeightTRES can name and a workload can have.
const TRES: [&str; 3] = ["cpu", "mem", "gres/gpu"];

/// The files whose texts were read, for places.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextFiles<'a> {
    /// The file of the qualities of service.
    pub qos: Option<&'a Path>,
    /// The file of the associations.
    pub associations: Option<&'a Path>,
}

impl TextFiles<'_> {
    fn place(file: Option<&Path>, line: usize) -> String {
        file.filter(|_| line > 0).map_or(String::new(), |file| format!("{}:{line}", file.display()))
    }
}

/// Columns of a QOS or an association that do not decide when a job starts, or have no effect without such a column.
const QOS_WITHOUT_EFFECT: [&str; 4] = ["Description", "ID", "PreemptExemptTime", "GraceTime"];

/// Lists what the site has set that decides when jobs start and that a simulation on the folder's files does not follow.
///
/// `limits` are those of associations.
pub fn unmodelled_settings(
    conf: Option<&SlurmConf>,
    qos: &[Qos],
    limits: &[AssociationSetting],
    files: TextFiles<'_>,
) -> Vec<Unmodelled> {
    let mut found: Vec<Unmodelled> = Vec::new();
    let place_of = |name: &str| conf.map_or(String::new(), |conf| conf.place_of(name));
    for (name, neutral, instead) in SETTINGS {
        let value = conf.and_then(|c| c.configuration.get(name));
        if let Some(value) = value.filter(|v| !is_neutral(v, neutral)) {
            found.push(Unmodelled {
                name: name.to_string(),
                values: vec![value.to_string()],
                places: vec![place_of(name)],
                instead,
            });
        }
    }
    let flags = conf.and_then(|c| c.configuration.get("PriorityFlags")).unwrap_or_default();
    for flag in flags.split(',').map(str::trim) {
        if let Some((_, instead)) = PRIORITY_FLAGS.iter().find(|(name, _)| name.eq_ignore_ascii_case(flag)) {
            add(&mut found, "PriorityFlags".into(), flag.to_string(), place_of("PriorityFlags"), instead);
        }
    }
    let weights = conf.and_then(|c| c.configuration.get("PriorityWeightTRES")).unwrap_or_default();
    for weight in weights.split(',').filter(|weight| !weight.is_empty()) {
        let name = weight.split('=').next().unwrap_or_default().trim();
        if !TRES.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            let place = place_of("PriorityWeightTRES");
            let instead = "it adds nothing to priorities";
            add(&mut found, "PriorityWeightTRES".into(), weight.to_string(), place, instead);
        }
    }
    for (conf, (option, values)) in conf.iter().flat_map(|conf| conf.options.iter().map(move |option| (conf, option))) {
        let Some((name, neutral, instead)) = OPTIONS.iter().find(|(name, _, _)| name.eq_ignore_ascii_case(option))
        else {
            continue;
        };
        // What a QOS that was read sets is listed by itself.
        let is_known =
            |value: &str| *name == "PartitionName QOS" && qos.iter().any(|q| q.name.eq_ignore_ascii_case(value));
        let set = |v: &String| {
            let value = v.rsplit('=').next().unwrap_or_default();
            !is_neutral(value, neutral) && !is_known(value)
        };
        let set: Vec<(usize, &String)> = values.iter().enumerate().filter(|(_, value)| set(value)).collect();
        if !set.is_empty() {
            found.push(Unmodelled {
                name: name.to_string(),
                values: set.iter().map(|(_, value)| (*value).clone()).collect(),
                places: set.iter().map(|(at, _)| conf.place_of_option(option, *at)).collect(),
                instead,
            });
        }
    }
    if let Some(conf) = conf {
        note_billing_weights(conf, &mut found);
        note_generic_resources(conf, &mut found);
    }
    for one in qos {
        for (column, value) in &one.settings {
            if !QOS_WITHOUT_EFFECT.iter().any(|c| c.eq_ignore_ascii_case(column)) {
                let place = TextFiles::place(files.qos, one.line);
                add(&mut found, format!("QOS {column}"), format!("{}={value}", one.name), place, "it limits no job");
            }
        }
    }
    for AssociationSetting { column, value, line } in limits {
        let place = TextFiles::place(files.associations, *line);
        if column == AssociationSetting::QOS {
            let instead = "priorities and limits of QOS are read from the file of --qos alone";
            add(&mut found, column.clone(), value.clone(), place, instead);
            continue;
        }
        let instead = match column.eq_ignore_ascii_case("Priority") {
            true => {
                "the priority of the user's association without a partition counts in every partition, or else that of the \
                 first"
            }
            false => "it limits no job",
        };
        add(&mut found, format!("association {column}"), value.clone(), place, instead);
    }
    found.iter_mut().for_each(Unmodelled::forget_empty_places);
    found
}

/// Returns the weights of the priority whose factor is 0 for every job, since no text has priorities of associations or QOS.
pub fn weights_without_priorities(conf: &SlurmConf, accounts: Option<&Accounts>, qos: &[Qos]) -> Vec<Unmodelled> {
    let has_qos = qos.iter().any(|one| one.settings.iter().any(|(column, _)| column.eq_ignore_ascii_case("Priority")));
    let kinds = [
        (
            "PriorityWeightAssoc",
            accounts.is_some_and(|accounts| !accounts.priorities().is_empty()),
            "the factor is 0 for every job: no association of --assoc or --sacctmgr-dump has a Priority",
        ),
        ("PriorityWeightQOS", has_qos, "the factor is 0 for every job: no QOS of --qos has a Priority"),
    ];
    let mut found = Vec::new();
    for (name, is_known, instead) in kinds {
        if let Some(weight) = conf.configuration.get(name).filter(|weight| !is_known && *weight != "0") {
            add(&mut found, name.into(), weight.to_string(), conf.place_of(name), instead);
        }
    }
    found
}

/// Returns what is not followed of `PreemptMode=GANG` where jobs are requeued or cancelled; `None` without both.
///
/// With GANG the select plugin puts a job on processors of jobs of lower tiers, whatever their mode (`_job_test` of
/// select/cons_tres passes its first test only then), and the gang scheduler requeues or cancels these when the job has started
/// (`_preempt_job_dequeue` of gang.c). Without GANG they end first.
pub fn gang_with_other_modes(conf: &SlurmConf, qos: &[Qos], files: TextFiles<'_>) -> Option<Unmodelled> {
    let own = PreemptModes::read(conf.configuration.get("PreemptMode")?);
    if !own.gang {
        return None;
    }
    let ends = |value: &str| matches!(PreemptModes::read(value).mode, Some(PreemptMode::Cancel | PreemptMode::Requeue));
    let is_mode = |name: &str| name.eq_ignore_ascii_case("PreemptMode");
    let mut values: Vec<(String, String)> = Vec::new();
    if matches!(own.mode, Some(PreemptMode::Cancel | PreemptMode::Requeue)) {
        let of_site = conf.configuration.get("PreemptMode");
        values.extend(of_site.map(|value| (value.to_string(), conf.place_of("PreemptMode"))));
    }
    let of_partitions =
        conf.options.iter().filter(|(option, _)| option.eq_ignore_ascii_case("PartitionName PreemptMode"));
    for (option, of_partition) in of_partitions {
        let all = of_partition.iter().enumerate();
        let all = all.filter(|(_, value)| ends(value.rsplit('=').next().unwrap_or_default()));
        values.extend(all.map(|(at, value)| (value.clone(), conf.place_of_option(option, at))));
    }
    for one in qos {
        let modes = one.settings.iter().filter(|(column, value)| is_mode(column) && ends(value));
        let place = TextFiles::place(files.qos, one.line);
        values.extend(modes.map(|(_, value)| (format!("QOS {}={value}", one.name), place.clone())));
    }
    let (values, places): (Vec<String>, Vec<String>) = values.into_iter().unzip();
    let mut found = (!values.is_empty()).then(|| Unmodelled {
        name: "PreemptMode GANG with REQUEUE or CANCEL".into(),
        values,
        places,
        instead: "such jobs end before the job for which they make way starts; with GANG Slurm starts it at once on their \
                  processors, if memory is free, and ends them then",
    });
    found.iter_mut().for_each(Unmodelled::forget_empty_places);
    found
}

/// Lists the weights of partitions that charge nothing: those of resources that no job of a workload has, and negative ones,
/// which slurm.conf(5) allows.
fn note_billing_weights(conf: &SlurmConf, found: &mut Vec<Unmodelled>) {
    for (option, values) in conf.options.iter().filter(|(option, _)| option.eq_ignore_ascii_case(BILLING)) {
        for (at, value) in values.iter().enumerate() {
            let (partition, weights) = value.split_once('=').unwrap_or((value, ""));
            note_weights(found, partition, weights, &conf.place_of_option(option, at));
        }
    }
}

fn note_weights(found: &mut Vec<Unmodelled>, partition: &str, weights: &str, place: &str) {
    let weights = TresWeight::parse_list(weights).unwrap_or_default();
    for TresWeight { name, text, .. } in weights.iter().filter(|weight| !weight.is_followed()) {
        add(found, BILLING.into(), format!("{partition}={name}={text}"), place.to_string(), "it charges nothing");
    }
}

fn add(found: &mut Vec<Unmodelled>, name: String, value: String, place: String, instead: &'static str) {
    match found.iter_mut().find(|f| f.name == name && f.instead == instead) {
        Some(same) => {
            same.values.push(value);
            same.places.push(place);
        }
        None => found.push(Unmodelled { name, values: vec![value], places: vec![place], instead }),
    }
}

fn is_neutral(value: &str, neutral: &[&str]) -> bool {
    neutral.iter().any(|n| n.eq_ignore_ascii_case(value))
}

#[cfg(test)]
mod tests {
    use super::super::Position;
    use super::*;
    use crate::parse_qos;

    #[test]
    fn gang_is_listed_where_jobs_are_requeued_or_cancelled() {
        let found = |own: &str, partition: &str, qos: &str| {
            let configuration = crate::Configuration::parse(&format!("PreemptMode={own}\n")).unwrap();
            let mut conf = SlurmConf { configuration, ..SlurmConf::default() };
            conf.options.insert("PartitionName PreemptMode".into(), vec![format!("low={partition}")]);
            let qos = parse_qos(&format!("Name|PreemptMode\nnormal|{qos}\n")).unwrap();
            gang_with_other_modes(&conf, &qos, TextFiles::default()).map(|found| found.values)
        };
        let listed = |value: &str| Some(vec![value.to_string()]);
        assert_eq!(found("GANG,REQUEUE", "OFF", "cluster"), listed("GANG,REQUEUE"));
        assert_eq!(found("SUSPEND,GANG", "CANCEL", "cluster"), listed("low=CANCEL"));
        assert_eq!(found("SUSPEND,GANG", "OFF", "requeue"), listed("QOS normal=requeue"));
        assert_eq!(found("SUSPEND,GANG", "SUSPEND", "suspend"), None);
        assert_eq!(found("REQUEUE", "CANCEL", "requeue"), None);
    }

    #[test]
    fn weights_of_live_partitions_that_charge_nothing_are_listed() {
        let of = |text: &str| {
            let mut conf = SlurmConf::default();
            conf.set_options_of_partitions(Path::new("scontrol show partition"), text);
            unmodelled_settings(Some(&conf), &[], &[], TextFiles::default())
        };
        assert_eq!(of("PartitionName=main\nPartitionName=fat TRESBillingWeights=CPU=1,Mem=0.25G\n"), []);
        let found = of("PartitionName=main\nPartitionName=fat TRESBillingWeights=CPU=-1,bb/cray=2G\n");
        assert_eq!((found[0].name.as_str(), found[0].values.len()), (BILLING, 2));
        assert_eq!(
            (found[0].values[1].as_str(), found[0].places[1].as_str()),
            ("fat=bb/cray=2G", "scontrol show partition:2:38")
        );
    }

    #[test]
    fn what_decides_starts_and_is_not_followed_is_listed_by_name() {
        let mut conf = SlurmConf::default();
        let text = "SchedulerParameters=bf_interval=10\nPreemptType=preempt/none\nPriorityFlags=INCR_ONLY,NO_NORMAL_QOS\nPriorityWeightTRES=CPU=5,node=7\nPriorityWeightAssoc=9\n\
            PriorityWeightQOS=0\nPrioritySiteFactorPlugin=site_factor/lab\nPriorityType=priority/bogus\nSchedulerType=sched/builtin\nKillWait=30\nSelectType=select/linear\n";
        conf.configuration = crate::Configuration::parse(text).unwrap();
        let all = |values: &[&str]| values.iter().map(|v| v.to_string()).collect::<Vec<_>>();
        conf.options.insert("PartitionName allowaccounts".into(), all(&["main=ALL", "gpu=physics"]));
        conf.options.insert("PartitionName Nodes".into(), all(&["main=n1"]));
        conf.options.insert("NodeName State".into(), all(&["n1=UNKNOWN", "n2=DRAIN", "c[1-9]=CLOUD"]));
        conf.options.insert("PartitionName RootOnly".into(), all(&["main=NO", "admin=YES"]));
        let at = |line| Position { file: "slurm.conf".into(), line, column: 9 };
        let weights = ["main=CPU=1,Mem=0.25G", "gpu=CPU=1,license/x=10,GRES/gpu:a100=2"];
        conf.options.insert("PartitionName TRESBillingWeights".into(), all(&weights));
        conf.option_places.insert("PartitionName TRESBillingWeights".into(), vec![at(6), at(7)]);
        conf.options.insert("PartitionName Hidden".into(), all(&["admin=YES"]));
        for (name, line) in [("priorityflags", 7), ("prioritysitefactorplugin", 8), ("priorityweightassoc", 9)] {
            conf.places.insert(name.into(), at(line));
        }
        conf.option_places.insert("PartitionName RootOnly".into(), vec![at(4), at(5)]);
        let qos = parse_qos("Name|MaxTRESPU|Description|\nnormal|cpu=4|x|\n").unwrap();
        let limit =
            |column: &str, value: &str| AssociationSetting { column: column.into(), value: value.into(), line: 3 };
        let limits =
            [limit("GrpJobs", "physics=3"), limit("Priority", "ann=3 in gpu"), limit(AssociationSetting::QOS, "long")];
        let files = TextFiles { qos: Some(Path::new("qos.txt")), associations: Some(Path::new("assoc.txt")) };
        let found = unmodelled_settings(Some(&conf), &qos, &limits, files);
        let shown: Vec<(&str, &[String])> = found.iter().map(|u| (u.name.as_str(), u.values.as_slice())).collect();
        assert_eq!(
            shown,
            [
                ("PrioritySiteFactorPlugin", &all(&["site_factor/lab"])[..]),
                ("PriorityType", &all(&["priority/bogus"])[..]),
                ("SchedulerParameters", &all(&["bf_interval=10"])[..]),
                ("SelectType", &all(&["select/linear"])[..]),
                ("PriorityFlags", &all(&["INCR_ONLY"])[..]),
                ("PriorityWeightTRES", &all(&["node=7"])[..]),
                ("NodeName State", &all(&["n2=DRAIN", "c[1-9]=CLOUD"])[..]),
                ("PartitionName Hidden", &all(&["admin=YES"])[..]),
                ("PartitionName RootOnly", &all(&["admin=YES"])[..]),
                ("PartitionName AllowAccounts", &all(&["gpu=physics"])[..]),
                ("PartitionName TRESBillingWeights", &all(&["gpu=license/x=10", "gpu=GRES/gpu:a100=2"])[..]),
                ("QOS MaxTRESPU", &all(&["normal=cpu=4"])[..]),
                ("association GrpJobs", &all(&["physics=3"])[..]),
                ("association Priority", &all(&["ann=3 in gpu"])[..]),
                ("QOS", &all(&["long"])[..]),
            ]
        );
        let places = |name: &str| found.iter().find(|u| u.name == name).unwrap().places.clone();
        assert_eq!(places("PartitionName RootOnly"), ["slurm.conf:5:9"]);
        assert_eq!(
            [places("PriorityFlags"), places("PrioritySiteFactorPlugin")],
            [["slurm.conf:7:9"], ["slurm.conf:8:9"]]
        );
        assert_eq!([places("QOS MaxTRESPU"), places("association Priority")], [["qos.txt:2"], ["assoc.txt:3"]]);
        assert_eq!(places("PartitionName TRESBillingWeights"), ["slurm.conf:7:9", "slurm.conf:7:9"]);
        assert!(places("SelectType").is_empty());
        let accounts = |text: &str| Accounts::parse(&format!("Account|User|Share|Priority\n{text}")).unwrap();
        let weights = |text: &str| {
            let found = weights_without_priorities(&conf, Some(&accounts(text)), &qos);
            found.into_iter().map(|one| (one.name, one.places)).collect::<Vec<_>>()
        };
        assert_eq!(weights("a||1|\n"), [("PriorityWeightAssoc".to_string(), all(&["slurm.conf:9:9"]))]);
        assert_eq!(weights("a||1|5\n"), []);
    }
}
