//! `evenhand when`

mod calibrate;
pub(crate) mod starts;

use crate::arguments::{Common, Release, WhenArgs};
use crate::failure::Failure;
use crate::inputs::site_log::SiteLog;
use crate::output::console::Console;

pub(crate) fn run(args: &WhenArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    if !args.calibrate && args.shape.is_empty() && args.job.is_empty() {
        let problem = "found nothing to forecast, expected --shape SHAPE for a job that could be submitted (4x16cpu,2h), \
                       --job JOB for a job that waits, or --calibrate for how good forecasts are";
        return Err(Failure::Input(problem.into()));
    }
    if !args.calibrate {
        let of_calibrate = [("--from", args.from.is_some()), ("--to", args.to.is_some())];
        Failure::refuse_without("--calibrate", &of_calibrate)?;
    }
    let site = SiteLog::read(&args.log, common, console)?;
    let site = site.released(args.release.unwrap_or(Release::Submit), args.release.is_some(), console)?;
    if args.calibrate {
        calibrate::run(args, &site, common, console)
    } else {
        starts::run(args, &site, common, console)
    }
}
