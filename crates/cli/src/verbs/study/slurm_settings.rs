//! The settings of a site's own Slurm, from a slurm.conf.

use evenhand_policies::SITE_RULE;
use evenhand_slurm::{SiteFileError, read_slurm_conf, scheduler_settings, site_configuration};
use evenhand_study::Backfill;

use super::SiteScheduler;
use super::question::Question;
use super::site_folder::SLURM_CONF;
use crate::arguments::StudyArgs;
use crate::failure::Failure;
use crate::output::console::Console;

/// Says that `--slurm-conf` is without effect where neither the scheduler nor a policy of the study follows it.
pub(super) fn note_if_unused(args: &StudyArgs, question: &Question, leaves_memory_out: bool, console: &Console) {
    let is_followed =
        question.scheduler == Backfill::Slurm || question.policies.iter().any(|name| name == SITE_RULE.name);
    if args.slurm_conf.is_some() && !is_followed && !leaves_memory_out {
        let unused = format!("the scheduler is not slurm and --policy names no {}", SITE_RULE.name);
        console.note(&format!("--slurm-conf changes nothing: {unused}."));
    }
}

/// Reads the file of `--slurm-conf`, or that of the folder of `--site`; defaults where there is neither.
pub(super) fn read(args: &StudyArgs, console: &Console) -> Result<SiteScheduler, Failure> {
    let of_site = || args.site.as_ref().map(|site| site.join(SLURM_CONF)).filter(|path| path.is_file());
    let Some(path) = args.slurm_conf.clone().or_else(of_site) else { return Ok(SiteScheduler::default()) };
    let failure = |error: SiteFileError| {
        let environment = error.is_environment();
        Failure::new(error, environment)
    };
    let conf = read_slurm_conf(&path).map_err(failure)?;
    let settings = scheduler_settings(&conf).map_err(failure)?;
    if args.scheduler == Some(Backfill::Slurm) {
        settings.notes.iter().for_each(|note| console.note(note));
    }
    let configuration = Some(site_configuration(&conf.configuration, &conf.partitions));
    let leaves_memory_out = !conf.configuration.counts_memory();
    Ok(SiteScheduler { options: settings.options, configuration, leaves_memory_out })
}
