//! A page to look into a run: lanes that can be enlarged, and below them what each client has used.

use minijinja::value::Serde;
use serde::Serialize;

use super::{ProcessRun, draw_gantt, draw_use, encode, seconds};
use crate::ReportError;
use crate::chart::{self, Caption};
use crate::format::{percent, seconds_text};
use crate::page::{STYLE as REPORT_STYLE, environment};

const TEMPLATE: &str = include_str!("../../assets/process.html");
const STYLE: &str = include_str!("../../assets/process.css");
const SCRIPT: &str = include_str!("../../assets/process.js");

/// All that the template shows. Figures, styles, script and data are text that it does not escape.
#[derive(Serialize)]
struct Page<'a> {
    chart_style: &'static str,
    report_style: &'static str,
    style: &'static str,
    script: &'static str,
    data: String,
    title: &'a str,
    clients: usize,
    resources: &'a [String],
    horizon: String,
    facts: &'a [(String, String)],
    totals: Vec<Client>,
    busy: Vec<Total>,
    gantt: String,
    cumulative: String,
}

/// What a client used: of each resource, and together.
#[derive(Serialize)]
struct Client {
    name: String,
    uses: Vec<Total>,
    sum: String,
}

/// A use, and its share of the run's time.
#[derive(Serialize)]
struct Total {
    seconds: String,
    share: String,
}

impl Total {
    fn new(ns: u64, horizon_ns: u64) -> Total {
        Total {
            seconds: seconds_text(seconds(ns)),
            share: if horizon_ns == 0 { String::new() } else { percent(ns as f64 / horizon_ns as f64) },
        }
    }
}

/// A page of its own that shows a run and needs neither a network nor a server. Without script, and on paper,
/// it shows the Gantt chart, cumulative use and totals as a whole. Names are text wherever they appear.
///
/// # Errors
/// If numbers or times are not of the run.
pub fn process_page(run: &ProcessRun) -> Result<String, ReportError> {
    let caption = |name: &str, title: &str| Caption {
        name: name.into(),
        title: format!("{title}: {}", run.title),
        description: String::new(),
    };
    let (gantt, _) = draw_gantt(run, caption("gantt", "Who uses which resource when"))?;
    let (cumulative, _) = draw_use(run, None, caption("use", "Cumulative use of all resources"))?;
    let totals = run.totals();
    let total = |ns: u64| Total::new(ns, run.horizon_ns);
    let row = |name: &str, uses: &[u64]| {
        let sum = uses.iter().map(|&ns| seconds(ns)).sum();
        Client { name: name.into(), uses: uses.iter().map(|&ns| total(ns)).collect(), sum: seconds_text(sum) }
    };
    let busy = (0..run.resources.len())
        .map(|r| total(totals.iter().map(|uses| uses[r]).fold(0, u64::saturating_add)))
        .collect();
    let page = Page {
        chart_style: chart::style(),
        report_style: REPORT_STYLE,
        style: STYLE,
        script: SCRIPT,
        data: encode::json(run)?,
        title: &run.title,
        clients: run.clients.len(),
        resources: &run.resources,
        horizon: seconds_text(seconds(run.horizon_ns)),
        facts: &run.facts,
        totals: run.clients.iter().zip(&totals).map(|(name, uses)| row(name, uses)).collect(),
        busy,
        gantt: gantt.inline(),
        cumulative: cumulative.inline(),
    };
    let mut environment = environment()?;
    environment.add_template("process.html", TEMPLATE)?;
    Ok(environment.get_template("process.html")?.render(Serde(page))?)
}
