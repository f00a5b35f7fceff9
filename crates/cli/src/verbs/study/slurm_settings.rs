//! The settings of a site's own Slurm, from a slurm.conf.

use evenhand_slurm::{SiteFileError, read_slurm_conf, scheduler_settings, site_configuration};

use super::SiteScheduler;
use super::site_folder::SLURM_CONF;
use crate::arguments::StudyArgs;
use crate::failure::Failure;
use crate::output::console::Console;

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
    if args.scheduler == Some(evenhand_study::Backfill::Slurm) {
        settings.notes.iter().for_each(|note| console.note(note));
    }
    let configuration = Some(site_configuration(&conf.configuration, &conf.partitions));
    Ok(SiteScheduler { options: settings.options, configuration })
}
