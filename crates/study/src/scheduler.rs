//! Schedulers by name: strict order, backfilling with its settings, or Slurm's.

use evenhand_simulator::{BACKFILLS, Backfill, PlannedBackfill};

/// The schedulers by name: strict order, a kind of backfilling, or Slurm's.
pub const SCHEDULERS: [(&str, Backfill); 4] = [
    ("strict", Backfill::None),
    ("easy", Backfill::Easy),
    ("conservative", Backfill::Conservative),
    ("slurm", Backfill::Slurm),
];

/// A program's backfilling under a name of its own.
#[derive(Clone, Copy, Debug)]
pub struct BackfillPreset {
    /// The name.
    pub name: &'static str,
    /// The settings of `easy` that it stands for.
    pub settings: &'static str,
    /// The program.
    pub about: &'static str,
}

/// What other programs do by the name of EASY or of backfilling, as settings of `easy`
/// (docs/src/explanation/results/other-simulators.md).
pub const BACKFILL_PRESETS: [BackfillPreset; 6] = [
    BackfillPreset {
        name: "accasim",
        settings: "plan=once,start=planned,passing=any",
        about: "AccaSim 1.1.3, EASYBackfilling",
    },
    BackfillPreset { name: "batsim", settings: "events=each,processors=named", about: "Batsim's scheduler easy_bf" },
    BackfillPreset {
        name: "batsim-fast",
        settings: "plan=once,passing=before",
        about: "Batsim's scheduler easy_bf_fast",
    },
    BackfillPreset { name: "cqsim", settings: "waiting=run-time,events=each", about: "CQSim" },
    BackfillPreset { name: "first-fit", settings: "reserve=0", about: "every job that fits starts" },
    BackfillPreset { name: "pyss", settings: "reserve=1", about: "pyss; as easy without settings" },
];

/// Reads a scheduler: a name, and for `easy` and `conservative` settings after a colon, which are a preset's name,
/// `KEY=VALUE`, or several of these with commas between them.
///
/// ```
/// use evenhand_study::{parse_scheduler, scheduler_text, Backfill};
/// assert_eq!(parse_scheduler("easy:reserve=1"), Ok(Backfill::Easy));
/// let deep = parse_scheduler("easy:cqsim,reserve=3").unwrap();
/// assert_eq!(scheduler_text(deep), "easy:reserve=3,waiting=run-time,events=each");
/// assert!(parse_scheduler("easy:reserve=many").is_err());
/// ```
///
/// # Errors
/// A sentence on what was found and what was expected.
pub fn parse_scheduler(text: &str) -> Result<Backfill, String> {
    let names = || SCHEDULERS.map(|(name, _)| name).join(", ");
    let (name, settings) = text.split_once(':').map_or((text, None), |(name, settings)| (name, Some(settings)));
    let found = SCHEDULERS.iter().find(|(other, _)| *other == name).map(|(_, backfill)| *backfill);
    let backfill = found.ok_or_else(|| format!("expected one of: {}", names()))?;
    let Some(settings) = settings else { return Ok(backfill) };
    let base = match backfill {
        Backfill::Easy => PlannedBackfill::EASY,
        Backfill::Conservative => PlannedBackfill::CONSERVATIVE,
        _ => return Err(format!("{name} has no settings after a colon; easy and conservative have")),
    };
    let mut planned = base;
    for (place, setting) in settings.split(',').enumerate() {
        let preset = BACKFILL_PRESETS.iter().find(|preset| preset.name == setting);
        match preset {
            Some(preset) if place == 0 && backfill == Backfill::Easy => {
                preset.settings.split(',').try_for_each(|setting| planned.set(setting))?;
            }
            Some(preset) if backfill == Backfill::Easy => {
                return Err(format!("{}: a preset comes first, before the settings that change it", preset.name));
            }
            None if !setting.contains('=') => {
                let presets = BACKFILL_PRESETS.map(|preset| preset.name).join(", ");
                return Err(format!("found {setting:?}, expected KEY=VALUE or, after easy: first, one of: {presets}"));
            }
            _ => planned.set(setting)?,
        }
    }
    planned.check()?;
    // The settings of the two are the rules that have engines of their own.
    Ok(match planned {
        PlannedBackfill::EASY => Backfill::Easy,
        PlannedBackfill::CONSERVATIVE => Backfill::Conservative,
        planned => Backfill::Planned(planned),
    })
}

/// Writes a scheduler as it is read, with the settings that differ.
pub fn scheduler_text(backfill: Backfill) -> String {
    match backfill {
        Backfill::Planned(planned) => {
            let texts = [("easy", PlannedBackfill::EASY), ("conservative", PlannedBackfill::CONSERVATIVE)]
                .map(|(name, base)| format!("{name}:{}", planned.differences(&base)));
            let [easy, conservative] = texts;
            let shorter = conservative.matches('=').count() < easy.matches('=').count();
            if shorter { conservative } else { easy }
        }
        backfill => SCHEDULERS.iter().find(|(_, other)| *other == backfill).map_or("", |(name, _)| *name).into(),
    }
}

/// Writes a kind of backfilling: as a scheduler, but `none` for strict order.
pub(crate) fn backfill_text(backfill: Backfill) -> String {
    let plain = BACKFILLS.iter().find(|(_, other)| *other == backfill);
    plain.map_or_else(|| scheduler_text(backfill), |(name, _)| (*name).into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_is_read_as_it_is_written() {
        let presets = BACKFILL_PRESETS.iter().map(|preset| format!("easy:{}", preset.name));
        let plain = SCHEDULERS.iter().map(|(name, _)| name.to_string());
        let others =
            ["conservative:plan=once", "conservative:waiting=run-time,running=run-time", "easy:order=shortest"];
        for text in presets.chain(plain).chain(others.map(String::from)) {
            let read = parse_scheduler(&text).unwrap();
            assert_eq!(parse_scheduler(&scheduler_text(read)), Ok(read), "{text}");
        }
        assert_eq!(scheduler_text(parse_scheduler("easy:reserve=all,plan=once").unwrap()), "conservative:plan=once");
    }

    #[test]
    fn a_preset_is_what_its_settings_are() {
        for preset in BACKFILL_PRESETS {
            let settings = parse_scheduler(&format!("easy:{}", preset.settings));
            assert_eq!(parse_scheduler(&format!("easy:{}", preset.name)), settings, "{}", preset.name);
            assert!(settings.is_ok());
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_with_what_is_expected() {
        let problems = [
            ("easi", "expected one of: strict, easy, conservative, slurm"),
            ("strict:reserve=2", "strict has no settings after a colon; easy and conservative have"),
            (
                "easy:",
                "found \"\", expected KEY=VALUE or, after easy: first, one of: accasim, batsim, batsim-fast, cqsim, first-fit, pyss",
            ),
            ("easy:reserve=-1", "reserve: found \"-1\", expected how many jobs have a reservation, or all"),
            ("easy:order=fast", "order: found \"fast\", expected one of: policy, shortest, longest, narrowest, widest"),
            ("easy:reserve=2,cqsim", "cqsim: a preset comes first, before the settings that change it"),
            (
                "easy:depth=2",
                "found the setting \"depth\", expected one of: reserve, waiting, running, plan, start, passing, order, events, processors",
            ),
            (
                "easy:start=planned",
                "start=planned: a plan made anew at each event has no start to wait for; add plan=once",
            ),
            (
                "conservative:order=shortest",
                "order: is that of jobs without a reservation, and with reserve=all there are none; leave one out",
            ),
        ];
        for (text, problem) in problems {
            assert_eq!(parse_scheduler(text).unwrap_err(), problem, "{text}");
        }
    }
}
