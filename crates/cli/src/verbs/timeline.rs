//! `evenhand timeline`

use evenhand_documents::Document;
use evenhand_mechanisms::problem_files::ScenarioFile;
use evenhand_mechanisms::{Arithmetic, Computation, Mechanism, MechanismError, Number};
use evenhand_model::{Quantity, Rational, Span};
use evenhand_report::chart::Caption;
use evenhand_report::{StackedShare, draw_timeline};
use evenhand_timeline::{
    Interval, Participant, Phase, Scenario, ScenarioError, Timeline, TimelineError, TimelineOptions, divide_over_time,
};
use serde::Serialize;

use crate::arguments::TimelineArgs;
use crate::arguments::decay;
use crate::failure::Failure;
use crate::inputs::problems::{mechanism_options, mechanisms_named};
use crate::output::console::{Console, to_json};
use crate::output::named_values::NamedValues;
use crate::output::numbers::percent;
use crate::output::output_number::{OutputNumber, ToOutputNumber};
use crate::output::table::Table;
use crate::output::write_files::{file_name, lock_folder, write_file};

/// The mechanism that considers past use.
const STATEFUL: &str = "sdrf";
/// Largest number of users that have a column each.
const MAX_COLUMNS: usize = 6;

pub(crate) fn run(args: &TimelineArgs, console: &Console) -> Result<(), Failure> {
    let found = mechanisms_named(std::slice::from_ref(&args.mechanism))?;
    let [mechanism] = found[..] else { return Err(Failure::Input("--mechanism: expected one".into())) };
    refuse_without_effect(args, mechanism)?;
    if let Some(figure) = args.figure.as_ref().filter(|path| path.extension().is_none_or(|e| e != "svg")) {
        let (found, expected) = (figure.display(), figure.with_extension("svg"));
        return Err(Failure::Input(format!(
            "--figure: found \"{found}\", expected a name that ends in .svg, since figures are SVG; give {}",
            expected.display()
        )));
    }
    let options = TimelineOptions {
        mechanism: mechanism_options(&args.options, &found, console),
        decay: Some(decay::parse_decay(args.delta.as_deref(), args.half_life.as_deref())?),
        irrevocable: args.irrevocable,
        until: args.until.as_deref().map(|text| seconds("--until", text)).transpose()?,
        resolution_s: args.resolution.as_deref().map(|t| Ok(span("--resolution", t)?.secs_f64())).transpose()?,
        ..TimelineOptions::default()
    };
    let arithmetic = if args.exact { Arithmetic::Exact } else { Arithmetic::Float };
    let document = Document::read(&args.scenario).map_err(Failure::document)?;
    let file = ScenarioFile::read(&document, arithmetic).map_err(Failure::document)?;
    let scenario = scenario(&file).map_err(|e| Failure::Input(format!("{}: {e}", document.source().name())))?;
    let text = arithmetic.run(Run { args, mechanism, options: &options, file: &file, scenario: &scenario, console })?;
    console.result(&text)
}

/// Rejects options on past use, of a mechanism that does not consider it.
fn refuse_without_effect(args: &TimelineArgs, mechanism: &dyn Mechanism) -> Result<(), Failure> {
    let given = [
        ("--delta", args.delta.is_some()),
        ("--half-life", args.half_life.is_some()),
        ("--resolution", args.resolution.is_some()),
    ];
    match given.iter().find(|(_, given)| *given && mechanism.name() != STATEFUL) {
        Some((option, _)) => Err(Failure::Input(format!(
            "{option}: applies to the mechanism {STATEFUL} only, and --mechanism is {}; leave it out, or give --mechanism {STATEFUL}",
            mechanism.name()
        ))),
        None => Ok(()),
    }
}

/// Division of a scenario, with its table or record and its figures.
struct Run<'a> {
    args: &'a TimelineArgs,
    mechanism: &'static dyn Mechanism,
    options: &'a TimelineOptions,
    file: &'a ScenarioFile,
    scenario: &'a Scenario,
    console: &'a Console,
}

impl Computation for Run<'_> {
    type Output = Result<String, Failure>;

    fn run<N: Number>(self) -> Self::Output {
        let Run { args, mechanism, options, file, scenario, console } = self;
        let timeline: Timeline<N> =
            divide_over_time(scenario, mechanism, options).map_err(|e| timeline_failure(&e, file))?;
        if args.figure.is_some() || args.out.is_some() {
            // Figures are drawn from 64-bit numbers.
            let computed = divide_over_time(scenario, mechanism, options).map_err(|e| timeline_failure(&e, file))?;
            draw(args, file, scenario, &computed, console)?;
        }
        render(file, scenario, &timeline, mechanism, console)
    }
}

/// Classifies an error: a division that made no progress or could not be certified is not the input's fault.
fn timeline_failure(error: &TimelineError, file: &ScenarioFile) -> Failure {
    let environment = matches!(
        error,
        TimelineError::NoProgress { .. } | TimelineError::Mechanism { source: MechanismError::NotCertified { .. }, .. }
    );
    match error {
        TimelineError::NotPermanent { user } | TimelineError::CommitmentsMove { user, .. } => {
            Failure::Input(format!("{error} (user {user} is {:?})", file.users[*user].name))
        }
        _ => Failure::new(error, environment),
    }
}

fn span(option: &str, text: &str) -> Result<Span, Failure> {
    let span = Span::parse(text).map_err(|e| Failure::Input(format!("{option} {text}: {e}")))?;
    if span == Span::ZERO {
        return Err(Failure::Input(format!("{option} {text}: found 0, expected a time above 0")));
    }
    Ok(span)
}

/// Parses a time as scenario files have it: a number of seconds, or a duration with its unit.
fn seconds(option: &str, text: &str) -> Result<Rational, Failure> {
    let of_span = |span: Span| Rational::from(span.nanos()) / Rational::from(1_000_000_000u64);
    let number = Quantity::parse(text).map(|number| number.exact().clone());
    match number.or_else(|_| Span::parse(text).map(of_span)) {
        Ok(time) if !time.is_zero() => Ok(time),
        Ok(_) => Err(Failure::Input(format!("{option} {text}: found 0, expected a time above 0"))),
        Err(_) => Err(Failure::Input(format!(
            "{option} {text}: found {text:?}, expected seconds, or a number and a unit s, m, h, d or w, such as 90s, 1.5h or 8d"
        ))),
    }
}

/// Converts the file's amounts to shares of capacity.
fn scenario(file: &ScenarioFile) -> Result<Scenario, ScenarioError> {
    let share = |(d, c): (&Rational, &Rational)| if d.is_zero() { Rational::ZERO } else { d / c };
    let users = file.users.iter().map(|user| Participant {
        weight: user.weight.clone(),
        commitment: user.commitment.clone(),
        phases: user
            .phases
            .iter()
            .map(|phase| Phase {
                from: phase.from.clone(),
                until: phase.until.clone(),
                demand: phase.demand.iter().zip(&file.capacity).map(share).collect(),
                limit: phase.tasks.clone(),
                work: None,
            })
            .collect(),
    });
    let scenario = Scenario::new(file.resources.len(), users.collect::<Vec<_>>())?;
    match file.account_tree()? {
        Some(tree) => {
            let homes = (0..tree.users()).map(|user| tree.account_of(user)).collect();
            scenario.with_accounts(tree.accounts().to_vec(), homes)
        }
        None => Ok(scenario),
    }
}

fn draw(
    args: &TimelineArgs,
    file: &ScenarioFile,
    scenario: &Scenario,
    timeline: &Timeline<f64>,
    console: &Console,
) -> Result<(), Failure> {
    let users: Vec<String> = file.users.iter().map(|user| user.name.clone()).collect();
    let figure = |name: &str, held: StackedShare, what: &str| {
        let caption = Caption {
            name: name.to_string(),
            title: format!("{what} over time, {}", timeline.mechanism),
            description: format!("What each user holds of {what}, stacked, under {}.", timeline.mechanism),
        };
        draw_timeline(scenario, timeline, &users, held, caption)
    };
    let dominant = || figure("dominant-share", StackedShare::Dominant, "dominant share");
    let of = |r: usize| {
        figure(
            &format!("use-{}-{}", r + 1, file_name(&file.resources[r])),
            StackedShare::Resource(r),
            &file.resources[r],
        )
    };
    if let Some(path) = &args.figure {
        let (figure, _) = if file.resources.len() == 1 { of(0) } else { dominant() };
        write_file(path, &figure.standalone())?;
        console.note(&format!("Figure: {}", path.display()));
    }
    if let Some(folder) = &args.out {
        let _lock = lock_folder(folder)?;
        let mut figures: Vec<_> = (0..file.resources.len()).map(of).collect();
        if file.resources.len() > 1 {
            figures.push(dominant());
        }
        for (figure, csv) in figures {
            write_file(&folder.join(format!("{}.csv", figure.name())), &csv)?;
            write_file(&folder.join(format!("{}.svg", figure.name())), &figure.standalone())?;
        }
        console.note(&format!("Figures and their data: {}", folder.display()));
    }
    Ok(())
}

fn render<N: Number>(
    file: &ScenarioFile,
    scenario: &Scenario,
    timeline: &Timeline<N>,
    mechanism: &dyn Mechanism,
    console: &Console,
) -> Result<String, Failure> {
    if console.is_json() {
        let record = TimelineRecord::new(file, scenario, timeline);
        return to_json(&record);
    }
    Ok(format!("{}: {}\n\n{}", mechanism.name(), mechanism.about(), table(file, timeline)))
}

fn table<N: Number>(file: &ScenarioFile, timeline: &Timeline<N>) -> String {
    let each_user = file.users.len() <= MAX_COLUMNS;
    let any_level = timeline.intervals.iter().any(|i| i.level.is_some());
    let of_resources = timeline.intervals.iter().any(|i| i.levels.iter().any(Option::is_some));
    let mut header = vec!["from s".to_string(), "until s".to_string()];
    if each_user {
        header.extend(file.users.iter().map(|user| user.name.clone()));
    } else {
        header.push("users".to_string());
    }
    header.extend(file.resources.clone());
    if any_level {
        header.push("level".to_string());
    }
    if of_resources {
        header.extend(file.resources.iter().map(|name| format!("level {name}")));
    }
    let mut table = Table::new(0, header);
    for i in &timeline.intervals {
        let ending = i.ending.as_ref();
        let moving = |begin: String, end: Option<String>| match end.filter(|end| *end != begin) {
            Some(end) => format!("{begin} → {end}"),
            None => begin,
        };
        let number = |n: &N| n.output_number().to_text();
        let mut row = vec![number(&i.from), i.until.as_ref().map_or("on".to_string(), number)];
        if each_user {
            for (user, share) in i.users.iter().enumerate() {
                let end = ending.and_then(|e| e.tasks[user].as_ref()).map(number);
                row.push(share.as_ref().map_or("-".to_string(), |share| moving(number(&share.tasks), end)));
            }
        } else {
            row.push(i.users.iter().flatten().count().to_string());
        }
        for (r, load) in i.loads.iter().enumerate() {
            row.push(moving(percent(load.to_f64()), ending.map(|e| percent(e.loads[r].to_f64()))));
        }
        let level = |level: &Option<N>| level.as_ref().map_or("-".to_string(), number);
        if any_level {
            row.push(moving(level(&i.level), ending.map(|e| level(&e.level))));
        }
        if of_resources {
            row.extend((0..file.resources.len()).map(|r| i.levels.get(r).map_or("-".to_string(), level)));
        }
        table.row(row);
    }
    let note = if each_user { "\n\nUnder each user: tasks at a time; - while away." } else { "" };
    format!("{}{note}", table.render())
}

/// What `timeline` prints as JSON.
#[derive(Debug, Serialize)]
struct TimelineRecord {
    mechanism: &'static str,
    intervals: Vec<IntervalRecord>,
    /// End of each user's last phase; null if it has none.
    left: NamedValues<Option<OutputNumber>>,
}

#[derive(Debug, Serialize)]
struct IntervalRecord {
    from: OutputNumber,
    until: Option<OutputNumber>,
    level: Option<OutputNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    levels: Option<NamedValues<Option<OutputNumber>>>,
    users: Vec<ShareRecord>,
    resources: Vec<UseRecord>,
}

#[derive(Debug, Serialize)]
struct ShareRecord {
    name: String,
    phase: usize,
    tasks: OutputNumber,
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks_at_end: Option<OutputNumber>,
    allocation: NamedValues<OutputNumber>,
    dominant_share: OutputNumber,
    #[serde(skip_serializing_if = "Option::is_none")]
    commitment: Option<NamedValues<OutputNumber>>,
}

#[derive(Debug, Serialize)]
struct UseRecord {
    name: String,
    used: OutputNumber,
    utilization: OutputNumber,
    #[serde(skip_serializing_if = "Option::is_none")]
    utilization_at_end: Option<OutputNumber>,
}

impl TimelineRecord {
    fn new<N: Number>(file: &ScenarioFile, scenario: &Scenario, timeline: &Timeline<N>) -> TimelineRecord {
        let names: Vec<String> = file.users.iter().map(|user| user.name.clone()).collect();
        TimelineRecord {
            mechanism: timeline.mechanism,
            intervals: timeline.intervals.iter().map(|i| IntervalRecord::new(file, scenario, i)).collect(),
            left: NamedValues::new(&names, timeline.left.iter().map(|left| left.as_ref().map(N::output_number))),
        }
    }
}

impl IntervalRecord {
    fn new<N: Number>(file: &ScenarioFile, scenario: &Scenario, interval: &Interval<N>) -> IntervalRecord {
        let names = &file.resources;
        let width = names.len();
        let ending = interval.ending.as_ref();
        let shares = interval.users.iter().enumerate().filter_map(|(user, share)| {
            let share = share.as_ref()?;
            let demand = &file.users[user].phases[share.phase].demand;
            let held = interval.held(scenario, user);
            let commitment = interval.commitments.get(user * width..(user + 1) * width);
            Some(ShareRecord {
                name: file.users[user].name.clone(),
                phase: share.phase,
                tasks: share.tasks.output_number(),
                tasks_at_end: ending.and_then(|e| e.tasks[user].as_ref()).map(N::output_number),
                allocation: NamedValues::new(
                    names,
                    demand.iter().map(|d| (N::from_exact(d) * &share.tasks).output_number()),
                ),
                dominant_share: held.into_iter().fold(N::zero(), N::larger).output_number(),
                commitment: commitment.map(|amounts| NamedValues::new(names, amounts.iter().map(N::output_number))),
            })
        });
        let resources = names.iter().enumerate().map(|(r, name)| UseRecord {
            name: name.clone(),
            used: (N::from_exact(&file.capacity[r]) * &interval.loads[r]).output_number(),
            utilization: interval.loads[r].output_number(),
            utilization_at_end: ending.map(|e| e.loads[r].output_number()),
        });
        let has_levels = !interval.levels.is_empty();
        IntervalRecord {
            from: interval.from.output_number(),
            until: interval.until.as_ref().map(N::output_number),
            level: interval.level.as_ref().map(N::output_number),
            levels: has_levels.then(|| {
                NamedValues::new(names, interval.levels.iter().map(|level| level.as_ref().map(N::output_number)))
            }),
            users: shares.collect(),
            resources: resources.collect(),
        }
    }
}
