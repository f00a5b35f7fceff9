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
const SCRIPT: &str = concat!(include_str!("../../assets/process_data.js"), include_str!("../../assets/process.js"));

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
    marks: bool,
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
        marks: !run.marks.is_empty(),
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

#[cfg(test)]
mod tests {
    use super::super::tests::small;
    use super::*;

    #[test]
    fn names_are_text_and_nothing_comes_from_elsewhere() {
        let page = process_page(&small()).unwrap();
        assert_eq!(page, process_page(&small()).unwrap(), "the same bytes");
        assert!(page.contains("<h1>Two &amp; two</h1>"));
        assert!(page.contains("&lt;&#x2f;script&gt;&lt;b&gt;red") && !page.contains("<b>red"));
        assert_eq!(page.matches("</script>").count(), 2, "the data and the script end where they should");
        let links = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!links.contains("http:") && !links.contains("https:") && !links.contains("src=\""));
        let identities: Vec<&str> = page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        let distinct: std::collections::BTreeSet<_> = identities.iter().collect();
        assert_eq!(identities.len(), distinct.len(), "{identities:?}");
    }

    #[test]
    fn totals_are_in_the_table() {
        let page = process_page(&small()).unwrap();
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
        assert!(plain.contains("A run of 2 clients on 2 resources, 2.00 s"));
    }

    #[test]
    fn a_run_without_anything_has_a_page_and_a_wrong_one_has_none() {
        assert!(process_page(&ProcessRun::default()).unwrap().contains("A run of 0 clients"));
        let mut run = small();
        run.uses[0].resource = 2;
        let error = process_page(&run).unwrap_err();
        assert!(error.to_string().contains("use 0 is of resource 2"), "{error}");
    }

    #[test]
    fn a_hundred_thousand_uses_make_a_page_of_a_megabyte_and_a_half() {
        let one = |k: u64| super::super::Use {
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
        let page = process_page(&run).unwrap();
        assert!(page.len() < 1_600_000, "{} bytes", page.len());
    }
}
