//! `evenhand when`

mod calibrate;
pub(crate) mod starts;

use crate::arguments::{Common, WhenArgs};
use crate::failure::Failure;
use crate::inputs::site_log::SiteLog;
use crate::output::console::Console;

pub(crate) fn run(args: &WhenArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let site = SiteLog::read(&args.log, common, console)?;
    if args.calibrate {
        calibrate::run(args, &site, common, console)
    } else {
        starts::run(args, &site, common, console)
    }
}
