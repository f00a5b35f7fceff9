//! The settings of Slurm's scheduler in slurm.conf, for a simulation of it.

use evenhand_model::{PreemptMode, Span};
use evenhand_simulator::{PreemptType, SlurmOptions};

use super::slurm_conf::SlurmConf;
use super::{Position, SiteFileError};
use crate::configuration::Configuration;
use crate::error::quoted;
use crate::parse_values::Limit;
use crate::partitions::Partition;

/// The settings of a site's scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerSettings {
    /// The settings; what slurm.conf does not set has the default of release 22.05. The rules are those of the release that
    /// `SLURM_VERSION` says, as `scontrol show config` prints it, or else of 22.05.
    pub options: SlurmOptions,
    /// What is set and not simulated, and what is assumed, in sentences with file and line.
    pub notes: Vec<String>,
}

/// Options of SchedulerParameters that a simulation does not follow, with what it does instead.
const NOT_FOLLOWED: [(&str, &str); 7] = [
    ("bf_node_space_size", "a plan has as many intervals as bf_max_job_test"),
    ("bf_one_resv_per_job", "backfill reserves nodes for a job in each of its partitions"),
    ("bf_running_job_reserve", "running jobs are planned by their limits"),
    ("pack_serial_at_end", "jobs of one processor are put as all others"),
    ("reduce_completing_frag", "CompleteWait holds all jobs back"),
    ("time_min_as_soft_limit", "a log has no --time-min"),
    ("bf_hetjob_immediate", "components of a job are jobs of their own"),
];

/// Options of SchedulerParameters that decide no start in a simulation, where a pass takes no time.
const WITHOUT_EFFECT: [&str; 50] = [
    "allow_zero_lic",
    "allow_zero_mem",
    "batch_job_array_limit",
    "bb_array_stage_cnt",
    "bf_allow_magnetic_slot",
    "bf_continue",
    "bf_hetjob_prio",
    "bf_ignore_newly_avail_nodes",
    "bf_max_time",
    "bf_topopt_enable",
    "bf_topopt_iterations",
    "bf_yield_interval",
    "bf_yield_rpc_cnt",
    "bf_yield_sleep",
    "build_queue_timeout",
    "correspond_after_task_cnt",
    "default_gbytes",
    "disable_hetjob_steps",
    "disable_job_shrink",
    "disable_pack_steps",
    "enable_hetjob_steps",
    "enable_job_state_cache",
    "enable_pack_steps",
    "enable_user_top",
    "extra_constraints",
    "ignore_constraint_validation",
    "ignore_numa",
    "ignore_prefer_validation",
    "max_array_tasks",
    "max_depend_depth",
    "max_rpc_cnt",
    "max_sched_time",
    "max_script_size",
    "max_submit_line_size",
    "max_switch_wait",
    "no_backup_scheduling",
    "no_env_cache",
    "no_reserve_gpu_cores",
    "nohold_on_prolog_fail",
    "requeue_delay",
    "requeue_on_resume_failure",
    "requeue_setup_env_fail",
    "salloc_wait_nodes",
    "sbatch_wait_nodes",
    "sched_min_interval",
    "spec_cores_first",
    "step_retry_count",
    "step_retry_time",
    "whole_hetjob",
    "whole_pack",
];

/// Options of SchedulerParameters that a simulation follows.
const FOLLOWED: [&str; 28] = [
    "assoc_limit_stop",
    "batch_sched_delay",
    "bf_busy_nodes",
    "bf_interval",
    "bf_licenses",
    "bf_job_part_count_reserve",
    "bf_max_job_array_resv",
    "bf_max_job_assoc",
    "bf_max_job_part",
    "bf_max_job_start",
    "bf_max_job_test",
    "bf_max_job_user",
    "bf_max_job_user_part",
    "bf_min_age_reserve",
    "bf_min_prio_reserve",
    "bf_resolution",
    "bf_window",
    "bf_window_linear",
    "default_queue_depth",
    "defer",
    "defer_batch",
    "max_job_bf",
    "partition_job_depth",
    "preempt_reorder_count",
    "preempt_strict_order",
    "preempt_youngest_first",
    "sched_interval",
    "sched_max_job_start",
];

/// The names of slurm.conf of which a simulation follows the values.
const SETTINGS: [&str; 16] = [
    "accountingstorageenforce",
    "clustername",
    "completewait",
    "epilog",
    "fairsharedampeningfactor",
    "killwait",
    "overtimelimit",
    "preemptexempttime",
    "preemptmode",
    "preemptparameters",
    "preempttype",
    "schedulerparameters",
    "schedulertype",
    "selecttype",
    "selecttypeparameters",
    "slurm_version",
];

/// The newest release whose slurm.conf(5) is known.
const NEWEST: (u32, u32) = (26, 5);

/// How long the nodes of a job run its epilog; slurm.conf does not set it.
const EPILOG_TAKES: Span = Span::from_secs(1);

/// Reads the settings of the scheduler.
///
/// # Errors
/// Returns an error with file, line and column if a value is malformed.
pub fn scheduler_settings(conf: &SlurmConf) -> Result<SchedulerSettings, SiteFileError> {
    let mut settings = SchedulerSettings { options: SlurmOptions::default(), notes: Vec::new() };
    for (name, value) in conf.configuration.settings() {
        let place = conf.places.get(name).cloned();
        let place = place.unwrap_or_else(|| Position { file: "slurm.conf".into(), line: 1, column: 1 });
        let error = |expected: &str| SiteFileError::Invalid {
            place: place.clone(),
            found: quoted(value),
            expected: expected.to_string(),
        };
        let minutes = || match Limit::parse_configured(first_word(value)) {
            Some(limit) => Ok(limit.span()),
            None => Err(error("minutes, or a time such as 0:30:00")),
        };
        let seconds = || first_word(value).parse().map(Span::from_secs).map_err(|_| error("a whole number of seconds"));
        let o = &mut settings.options;
        match name {
            "schedulerparameters" => read_parameters(value, &place, &mut settings)?,
            "preempttype" => match value.to_ascii_lowercase().as_str() {
                "preempt/partition_prio" => o.preempt_type = Some(PreemptType::Partition),
                "preempt/qos" => o.preempt_type = Some(PreemptType::Qos),
                "preempt/none" => o.preempt_type = None,
                _ => settings.notes.push(format!("{place}: PreemptType={value} is not followed: no job is preempted.")),
            },
            "preemptmode" => {
                let read = PreemptModes::read(value);
                o.preempt_mode = read.mode.unwrap_or(PreemptMode::Off);
                o.preempt_gang = read.gang || o.preempt_mode == PreemptMode::Suspend;
                (o.preempt_within, o.preempt_priority) = (read.within, read.priority);
                if read.is_unknown {
                    o.preempt_mode = PreemptMode::Off;
                    settings.notes.push(format!(
                        "{place}: PreemptMode={value} is not followed: no job is preempted. Expected OFF, CANCEL, REQUEUE or \
                         SUSPEND, with GANG, WITHIN or PRIORITY."
                    ));
                } else if o.preempt_mode == PreemptMode::Suspend && !read.gang {
                    settings.notes.push(format!(
                        "{place}: PreemptMode={value} lacks GANG, without which Slurm resumes no job: simulated as \
                         {value},GANG."
                    ));
                }
            }
            "preemptexempttime" if value == "-1" => {}
            "preemptexempttime" => o.preempt_exempt_time = minutes()?.unwrap_or_default(),
            "preemptparameters" => read_preempt_parameters(value, &place, &mut settings)?,
            "schedulertimeslice" => {
                let slice = seconds()?;
                o.scheduler_time_slice =
                    Some(slice).filter(|s| *s > Span::ZERO).ok_or_else(|| error("at least a second"))?;
            }
            "schedulertype" => o.backfill = !value.ends_with("builtin"),
            "prioritycalcperiod" => {
                let period = minutes()?.filter(|period| *period > Span::ZERO);
                o.priority_calc_period = period.ok_or_else(|| error("a time of at least a minute"))?;
            }
            "overtimelimit" => o.over_time_limit = minutes()?,
            "killwait" => o.kill_wait = seconds()?,
            "epilog" => {
                o.epilog = !value.is_empty() && !value.eq_ignore_ascii_case("(null)");
                o.completing = if o.epilog { EPILOG_TAKES } else { Span::ZERO };
            }
            "completewait" => o.complete_wait = seconds()?,
            "selecttype" => o.whole_nodes = value.ends_with("linear"),
            "selecttypeparameters" => {
                o.least_loaded = value.to_ascii_uppercase().split(',').any(|p| p.trim() == "CR_LLN")
            }
            _ => {}
        }
    }
    // Where only some partitions are exclusive, the queues of the cluster file say so.
    if !conf.partitions.is_empty() && conf.partitions.iter().all(|partition| partition.exclusive) {
        settings.options.whole_nodes = true;
    }
    settings.options.charge_ends = conf.configuration.enforces_limits();
    let release = conf.configuration.release_month();
    settings.options.tests_by_interval = release.is_some_and(|release| release >= (24, 11));
    if let (Some(name), true) = (conf.configuration.release(), release.is_some_and(|release| release > NEWEST)) {
        settings.notes.push(format!(
            "The release of Slurm is {name}, and the newest that is known is {}.{:02}: simulated by the rules of 24.11.",
            NEWEST.0, NEWEST.1
        ));
    }
    let selects = conf.configuration.get("SelectType").is_some();
    if !selects && release.is_some_and(|release| release <= (22, 5)) {
        settings.options.whole_nodes = true;
    } else if !selects && release.is_none_or(|release| release < (23, 11)) {
        settings.notes.push(
            "slurm.conf does not set SelectType, whose default is select/linear up to 22.05 and select/cons_tres in 23.11 \
             and later: jobs share nodes here. Set it as `scontrol show config` prints it."
                .into(),
        );
    }
    Ok(settings)
}

/// `30 sec` as `scontrol` prints it is `30`.
fn first_word(value: &str) -> &str {
    value.split_whitespace().next().unwrap_or_default()
}

fn read_parameters(text: &str, place: &Position, settings: &mut SchedulerSettings) -> Result<(), SiteFileError> {
    let mut at = 0;
    for part in text.split(',') {
        let place = Position { column: place.column + at, ..place.clone() };
        at += part.len() + 1;
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let lower = name.trim().to_ascii_lowercase();
        if let Some((_, instead)) = NOT_FOLLOWED.iter().find(|(known, _)| *known == lower) {
            settings.notes.push(format!("{place}: {name} of SchedulerParameters is not followed: {instead}."));
        } else if FOLLOWED.contains(&lower.as_str()) {
            set(&mut settings.options, &lower, value.trim(), &place)?;
        } else if !WITHOUT_EFFECT.contains(&lower.as_str()) {
            settings.notes.push(format!(
                "{place}: {name} is no option of SchedulerParameters in slurm.conf(5); the scheduler is simulated as if \
                 it were not there."
            ));
        }
    }
    Ok(())
}

fn set(o: &mut SlurmOptions, name: &str, value: &str, place: &Position) -> Result<(), SiteFileError> {
    let error = |expected: &str| SiteFileError::Invalid {
        place: place.clone(),
        found: quoted(&format!("{name}={value}")),
        expected: expected.to_string(),
    };
    let number = || value.parse::<u32>().map_err(|_| error(&format!("{name}= and a whole number")));
    let seconds =
        || value.parse::<u32>().map(u64::from).map_err(|_| error(&format!("{name}= and a number of seconds")));
    let at_least_one =
        || seconds().and_then(|s| if s == 0 { Err(error("at least 1")) } else { Ok(Span::from_secs(s)) });
    match name {
        "assoc_limit_stop" => o.assoc_limit_stop = true,
        "batch_sched_delay" => o.batch_sched_delay = Span::from_secs(seconds()?),
        "bf_busy_nodes" => o.bf_busy_nodes = true,
        "bf_interval" if value == "-1" => o.backfill = false,
        "bf_interval" => o.bf_interval = at_least_one()?,
        "bf_licenses" => o.bf_licenses = true,
        "bf_job_part_count_reserve" => o.bf_job_part_count_reserve = number()?,
        "bf_max_job_assoc" => o.bf_max_job_assoc = number()?,
        "bf_max_job_part" => o.bf_max_job_part = number()?,
        "bf_max_job_start" => o.bf_max_job_start = number()?,
        "bf_max_job_test" | "max_job_bf" => o.bf_max_job_test = number()?,
        "bf_max_job_array_resv" => o.bf_max_job_array_resv = number()?,
        "bf_max_job_user" => o.bf_max_job_user = number()?,
        "bf_max_job_user_part" => o.bf_max_job_user_part = number()?,
        "bf_min_age_reserve" => o.bf_min_age_reserve = Span::from_secs(seconds()?),
        "bf_min_prio_reserve" => o.bf_min_prio_reserve = number()?,
        "bf_resolution" => o.bf_resolution = at_least_one()?,
        "bf_window" => o.bf_window = Span::from_secs(u64::from(number()?) * 60),
        "bf_window_linear" => o.bf_window_linear = Some(at_least_one()?),
        "default_queue_depth" => o.default_queue_depth = number()?,
        "defer" | "defer_batch" => o.defer = true,
        "partition_job_depth" => o.partition_job_depth = number()?,
        "preempt_reorder_count" => o.preempt_reorder_count = number()?,
        "preempt_strict_order" => o.preempt_strict_order = true,
        "preempt_youngest_first" => o.preempt_youngest_first = true,
        "sched_interval" if value == "-1" => o.sched_interval = None,
        "sched_interval" => o.sched_interval = Some(at_least_one()?),
        "sched_max_job_start" => o.sched_max_job_start = number()?,
        _ => {}
    }
    Ok(())
}

/// The words of a PreemptMode, of slurm.conf, a partition or a QOS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PreemptModes {
    /// What becomes of preempted jobs; `None` if the words do not say.
    pub(crate) mode: Option<PreemptMode>,
    pub(crate) gang: bool,
    pub(crate) within: bool,
    pub(crate) priority: bool,
    /// Whether one is no word of slurm.conf(5), or two modes contradict each other.
    pub(crate) is_unknown: bool,
}

impl PreemptModes {
    pub(crate) fn read(text: &str) -> PreemptModes {
        let mut read = PreemptModes::default();
        for word in text.split(',').map(str::trim) {
            match word.to_ascii_uppercase().as_str() {
                "GANG" => read.gang = true,
                "WITHIN" => read.within = true,
                "PRIORITY" => read.priority = true,
                _ => {
                    let mode = PreemptMode::of_name(word);
                    read.is_unknown |= mode.is_none() || read.mode.is_some();
                    read.mode = mode;
                }
            }
        }
        read
    }
}

fn read_preempt_parameters(
    text: &str,
    place: &Position,
    settings: &mut SchedulerSettings,
) -> Result<(), SiteFileError> {
    let mut at = 0;
    for part in text.split(',') {
        let place = Position { column: place.column + at, ..place.clone() };
        at += part.len() + 1;
        let (name, value) = part.trim().split_once('=').unwrap_or((part.trim(), ""));
        match name.to_ascii_lowercase().as_str() {
            "" => {}
            "reorder_count" | "strict_order" | "youngest_first" => {
                set(&mut settings.options, &format!("preempt_{}", name.to_ascii_lowercase()), value, &place)?;
            }
            _ => settings.notes.push(format!("{place}: {name} of PreemptParameters is not followed.")),
        }
    }
    Ok(())
}

/// The first line of [`simulated_settings_text`].
pub const SIMULATED_SETTINGS: &str = "# What a simulation follows of the site's slurm.conf.";

/// Returns the settings of a slurm.conf or of `scontrol show config` that a simulation follows, as a slurm.conf: those of
/// the scheduler and of priorities, and the partitions' factors, tiers and billing weights. It has no hosts, accounts or
/// passwords.
pub fn simulated_settings_text(configuration: &Configuration, partitions: &[Partition]) -> String {
    let mut text = format!("{SIMULATED_SETTINGS}\n");
    for (name, value) in configuration.settings() {
        if SETTINGS.contains(&name) || name.starts_with("priority") {
            let value = if value.contains([' ', '\t']) { format!("\"{value}\"") } else { value.to_string() };
            let known = super::slurm_conf_names().find(|known| known.eq_ignore_ascii_case(name)).unwrap_or(name);
            text += &format!("{known}={value}\n");
        }
    }
    for p in partitions {
        let (name, tier, factor) = (&p.name, p.priority_tier, p.priority_job_factor);
        let exclusive = if p.exclusive { " OverSubscribe=EXCLUSIVE" } else { "" };
        let weights = p.billing_weights.as_ref().map_or(String::new(), |w| format!(" TRESBillingWeights=\"{w}\""));
        text += &format!("PartitionName={name} PriorityTier={tier} PriorityJobFactor={factor}{exclusive}{weights}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::read_slurm_conf;
    use super::*;

    fn read(text: &str) -> Result<SchedulerSettings, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slurm.conf");
        std::fs::write(&path, text).unwrap();
        let prefix = format!("{}/", folder.path().display());
        let mut settings =
            scheduler_settings(&read_slurm_conf(&path).unwrap()).map_err(|e| e.to_string().replace(&prefix, ""))?;
        settings.notes.iter_mut().for_each(|note| *note = note.replace(&prefix, ""));
        Ok(settings)
    }

    #[test]
    fn the_rules_are_those_of_the_release() {
        let of = |text: &str| read(text).unwrap();
        assert!(!of("SelectType=select/cons_tres\nSLURM_VERSION=23.11.4\n").options.tests_by_interval);
        assert!(of("SelectType=select/cons_tres\nSLURM_VERSION=24.11.0\n").options.tests_by_interval);
        let newer = of("SelectType=select/cons_tres\nSLURM_VERSION=99.99\n");
        let note =
            "The release of Slurm is 99.99, and the newest that is known is 26.05: simulated by the rules of 24.11.";
        assert_eq!((newer.options.tests_by_interval, newer.notes), (true, vec![note.to_string()]));
        // The default of SelectType.
        let defaults = ["22.05.8", "23.11.1", "23.02.7"].map(|release| of(&format!("SLURM_VERSION={release}\n")));
        assert_eq!(defaults.each_ref().map(|d| d.options.whole_nodes), [true, false, false]);
        assert_eq!(defaults.map(|d| d.notes.len()), [0, 0, 1]);
    }

    #[test]
    fn settings_are_read_with_the_defaults_of_the_release() {
        let none = read("SelectType=select/cons_tres\n").unwrap();
        assert_eq!(none, SchedulerSettings { options: SlurmOptions::default(), notes: vec![] });
        let o = read(
            "SelectType=select/linear\nSchedulerType=sched/backfill KillWait=60 OverTimeLimit=5 PriorityCalcPeriod=1\n\
             Epilog=/etc/slurm/epilog.d/*\n\
             SchedulerParameters=bf_interval=10,bf_window=2880,defer,sched_interval=-1,bf_continue,max_job_bf=7\n",
        )
        .unwrap();
        assert_eq!(o.notes, [""; 0]);
        let s = Span::from_secs;
        assert_eq!(
            o.options,
            SlurmOptions {
                whole_nodes: true,
                kill_wait: s(60),
                epilog: true,
                completing: s(1),
                over_time_limit: Some(s(300)),
                priority_calc_period: s(60),
                bf_interval: s(10),
                bf_window: s(2 * 86_400),
                defer: true,
                sched_interval: None,
                bf_max_job_test: 7,
                ..SlurmOptions::default()
            }
        );
        assert!(!read("SelectType=select/cons_tres\nSchedulerType=sched/builtin\n").unwrap().options.backfill);
    }

    #[test]
    fn preemption_is_read() {
        let text = "SelectType=select/cons_tres\nPreemptType=preempt/qos\nPreemptMode=GANG,REQUEUE\nPreemptExemptTime=00:02:00\n\
            PreemptParameters=youngest_first,reorder_count=3,send_user_signal\n";
        let found = read(text).unwrap();
        let o = found.options;
        assert_eq!((o.preempt_type, o.preempt_mode), (Some(PreemptType::Qos), PreemptMode::Requeue));
        assert_eq!((o.preempt_exempt_time, o.preempt_reorder_count), (Span::from_secs(120), 3));
        assert!(o.preempt_youngest_first && !o.preempt_strict_order);
        assert_eq!(found.notes, ["slurm.conf:5:50: send_user_signal of PreemptParameters is not followed."]);
        let found = read("SelectType=select/cons_tres\nPreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\n")
            .unwrap();
        assert_eq!(
            (found.options.preempt_type, found.options.preempt_mode),
            (Some(PreemptType::Partition), PreemptMode::Suspend)
        );
        assert!(found.options.preempt_gang && !found.options.preempt_within && found.notes.is_empty());
        let modes = |text: &str| read(&format!("SelectType=select/cons_tres\nPreemptMode={text}\n")).unwrap();
        let o = modes("within,PRIORITY,CANCEL").options;
        assert!(o.preempt_mode == PreemptMode::Cancel && o.preempt_within && o.preempt_priority && !o.preempt_gang);
        let found = modes("SUSPEND");
        assert!(
            found.options.preempt_gang && found.notes[0].starts_with("slurm.conf:2:13: PreemptMode=SUSPEND lacks GANG")
        );
        let found = modes("STOP,GANG");
        assert_eq!(found.options.preempt_mode, PreemptMode::Off);
        assert!(
            found.notes[0].starts_with("slurm.conf:2:13: PreemptMode=STOP,GANG is not followed: no job is preempted.")
        );
    }

    #[test]
    fn what_is_not_followed_is_named_with_its_place() {
        let found = read("SelectType=select/cons_tres\nSchedulerParameters=defer,bf_intervall=3,bf_hetjob_immediate\n")
            .unwrap();
        assert_eq!(
            found.notes,
            [
                "slurm.conf:2:27: bf_intervall is no option of SchedulerParameters in slurm.conf(5); the scheduler is \
                 simulated as if it were not there.",
                "slurm.conf:2:42: bf_hetjob_immediate of SchedulerParameters is not followed: components of a job are jobs of \
                 their own."
            ]
        );
        assert!(read("KillWait=30\n").unwrap().notes[0].contains("does not set SelectType"));
    }

    #[test]
    fn malformed_values_have_their_place() {
        let error = |text: &str| read(text).unwrap_err();
        assert_eq!(
            error("SchedulerParameters=defer,bf_interval=soon\n"),
            "slurm.conf:1:27: found \"bf_interval=soon\", expected bf_interval= and a number of seconds"
        );
        assert_eq!(error("KillWait=x\n"), "slurm.conf:1:10: found \"x\", expected a whole number of seconds");
        assert!(error("SchedulerParameters=bf_resolution=0\n").ends_with("expected at least 1"));
    }

    #[test]
    fn the_settings_that_are_followed_are_written_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slurm.conf");
        let text = "ClusterName=lab\nStoragePass=secret\nSchedulerParameters=bf_interval=10\nPriorityWeightAge=5\n\
            SelectType=select/cons_tres\nAccountingStorageEnforce=safe,qos\nNodeName=n1\n\
            PartitionName=p Nodes=n1 PriorityTier=3 OverSubscribe=EXCLUSIVE\n";
        std::fs::write(&path, text).unwrap();
        let conf = read_slurm_conf(&path).unwrap();
        let written = simulated_settings_text(&conf.configuration, &conf.partitions);
        assert!(!written.contains("secret"), "{written}");
        std::fs::write(&path, &written).unwrap();
        let again = read_slurm_conf(&path).unwrap();
        assert_eq!(scheduler_settings(&again).unwrap(), scheduler_settings(&conf).unwrap());
        let options = scheduler_settings(&again).unwrap().options;
        assert_eq!((options.whole_nodes, options.charge_ends), (true, true));
        assert_eq!(again.configuration.get("PriorityWeightAge"), Some("5"));
        assert_eq!(again.partitions[0].priority_tier, 3);
    }
}
