//! `evenhand when`

mod calibrate;

use evenhand_forecast::Log;
use evenhand_model::Workload;

use crate::arguments::{Common, LogArgs, WhenArgs};
use crate::failure::Failure;
use crate::inputs::times::LogClock;
use crate::inputs::workloads::read_workload;
use crate::output::console::Console;

pub(crate) fn run(args: &WhenArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let site = SiteLog::read(&args.log, common, console)?;
    calibrate::run(args, &site, common, console)
}

/// A log of a site, as it was read and as forecasts take it.
pub(super) struct SiteLog {
    pub(super) log: Log,
    pub(super) clock: LogClock,
}

impl SiteLog {
    fn read(args: &LogArgs, common: &Common, console: &Console) -> Result<SiteLog, Failure> {
        let workload: Workload = read_workload(&args.log, &args.trace(), common, console)?;
        let log = Log::of(&workload).map_err(|e| Failure::Input(format!("{}: {e}", args.log.display())))?;
        let clock = LogClock::of(&workload);
        Ok(SiteLog { log, clock })
    }
}
