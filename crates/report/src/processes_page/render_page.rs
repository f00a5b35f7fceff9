//! Renders the interactive page of a run: zoomable lanes of the resources and the cumulative use of each client.

use minijinja::value::Serde;
use serde::Serialize;

use super::{ProcessRun, draw_cumulative_use, draw_gantt, script_data, seconds};
use crate::ReportError;
use crate::chart::{self, Caption};
use crate::format_numbers::{percent, seconds_text};
use crate::template::{PAGE_STYLE, environment};

const TEMPLATE: &str = include_str!("../../assets/processes_page.html");
const STYLE: &str = include_str!("../../assets/processes_page.css");
const SCRIPT: &str =
    concat!(include_str!("../../assets/processes_page_data.js"), include_str!("../../assets/processes_page.js"));

/// The template's variables. The template does not escape figures, styles, script and data.
#[derive(Serialize)]
struct Page<'a> {
    chart_style: &'static str,
    page_style: &'static str,
    style: &'static str,
    script: &'static str,
    data: String,
    title: &'a str,
    clients: usize,
    resources: &'a [String],
    horizon: String,
    marks: bool,
    details: &'a [(String, String)],
    totals: Vec<Client>,
    busy: Vec<Total>,
    gantt: String,
    cumulative: String,
}

/// The use of one client: of each resource, and of all together.
#[derive(Serialize)]
struct Client {
    name: String,
    uses: Vec<Total>,
    sum: String,
}

/// A total use in seconds, and its share of the run's time.
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

/// Renders the page of a run as one HTML file that needs neither a network nor a server.
///
/// Without script, and on paper, the page shows static figures of the whole run instead of the interactive ones. All
/// names are escaped.
///
/// # Errors
/// Returns an error if an index or a time of the run is invalid.
pub fn render_processes_page(run: &ProcessRun) -> Result<String, ReportError> {
    let caption = |name: &str, title: &str| Caption {
        name: name.into(),
        title: format!("{title}: {}", run.title),
        description: String::new(),
    };
    let (gantt, _) = draw_gantt(run, caption("gantt", "Use of each resource over time"))?;
    let (cumulative, _) = draw_cumulative_use(run, None, caption("use", "Cumulative use of all resources"))?;
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
        page_style: PAGE_STYLE,
        style: STYLE,
        script: SCRIPT,
        data: script_data::to_json(run)?,
        title: &run.title,
        clients: run.clients.len(),
        resources: &run.resources,
        horizon: seconds_text(seconds(run.horizon_ns)),
        marks: !run.marks.is_empty(),
        details: &run.details,
        totals: run.clients.iter().zip(&totals).map(|(name, uses)| row(name, uses)).collect(),
        busy,
        gantt: gantt.inline(),
        cumulative: cumulative.inline(),
    };
    let mut environment = environment()?;
    environment.add_template("processes_page.html", TEMPLATE)?;
    Ok(environment.get_template("processes_page.html")?.render(Serde(page))?)
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_run;
    use super::*;

    #[test]
    fn names_are_escaped_and_the_page_needs_no_other_file() {
        let page = render_processes_page(&small_run()).unwrap();
        assert_eq!(page, render_processes_page(&small_run()).unwrap(), "the same bytes");
        assert!(page.contains("<h1>Two &amp; two</h1>"));
        assert!(page.contains("&lt;&#x2f;script&gt;&lt;b&gt;red") && !page.contains("<b>red"));
        assert_eq!(page.matches("</script>").count(), 2, "only the data and the script end");
        let links = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!links.contains("http:") && !links.contains("https:") && !links.contains("src=\""));
        let identities: Vec<&str> = page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        let distinct: std::collections::BTreeSet<_> = identities.iter().collect();
        assert_eq!(identities.len(), distinct.len(), "{identities:?}");
    }

    #[test]
    fn the_table_contains_the_totals() {
        let page = render_processes_page(&small_run()).unwrap();
        let plain = page.replace(['\u{a0}', '\u{202f}'], " ");
        let table = plain.split_once("id=\"totals\"").unwrap().1;
        for cell in [
            "<td>0.900 s</td><td class=\"share\">45.0 %</td>",
            "<td>1.40 s</td><td class=\"share\">70.0 %</td>",
            "<td>1.50 s</td></tr>",
        ] {
            assert!(table.contains(cell), "{cell}");
        }
        assert!(table.contains("All clients</th><td>1.00 s</td><td class=\"share\">50.0 %</td>"));
        assert!(plain.contains("Run of 2 clients on 2 resources over 2.00 s"));
    }

    #[test]
    fn an_empty_run_has_a_page_and_an_invalid_one_is_an_error() {
        assert!(render_processes_page(&ProcessRun::default()).unwrap().contains("Run of 0 clients"));
        let mut run = small_run();
        run.uses[0].resource = 2;
        let error = render_processes_page(&run).unwrap_err();
        assert!(error.to_string().contains("use 0 refers to resource 2"), "{error}");
    }

    #[test]
    fn a_page_with_a_hundred_thousand_uses_stays_below_two_megabytes() {
        let one = |k: u64| super::super::ResourceUse {
            client: (k * k % 7) as usize,
            resource: (k % 4) as usize,
            from_ns: k / 4 * 123_456_789,
            until_ns: k / 4 * 123_456_789 + 100_000_001 + k % 1000,
        };
        let run = ProcessRun {
            clients: (0..7).map(|k| format!("c{k}")).collect(),
            resources: (0..4).map(|k| format!("r{k}")).collect(),
            horizon_ns: 25_001 * 123_456_789,
            uses: (0..100_000).map(one).collect(),
            ..ProcessRun::default()
        };
        let page = render_processes_page(&run).unwrap();
        assert!(page.len() < 1_600_000, "{} bytes", page.len());
    }
}
