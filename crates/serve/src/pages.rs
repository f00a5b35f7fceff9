//! The pages, from templates. Every value is escaped.

use std::time::Duration;

use evenhand_model::calendar::date_and_time;
use evenhand_model::duration_text::duration;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, UndefinedBehavior};
use serde::Serialize;

const ABSENT: &str = "–";

/// The templates, by name.
const TEMPLATES: [(&str, &str); 9] = [
    ("layout.html", include_str!("../assets/layout.html")),
    ("tables.html", include_str!("../assets/tables.html")),
    ("overview.html", include_str!("../assets/overview.html")),
    ("queue.html", include_str!("../assets/queue.html")),
    ("job.html", include_str!("../assets/job.html")),
    ("party.html", include_str!("../assets/party.html")),
    ("nodes.html", include_str!("../assets/nodes.html")),
    ("week.html", include_str!("../assets/week.html")),
    ("message.html", include_str!("../assets/message.html")),
];

/// What every page says of the site and of its visitor.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Frame {
    pub(crate) title: String,
    /// From the page to the overview: empty, or `../` for each folder of the path.
    pub(crate) root: String,
    pub(crate) here: &'static str,
    pub(crate) cluster: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) study: bool,
    /// Whether there is a page of the agent's nodes that the visitor may see.
    pub(crate) nodes: bool,
    pub(crate) read_s: Option<f64>,
    pub(crate) age_s: Option<f64>,
    /// Whether the answer is older than it should be.
    pub(crate) stale: bool,
    pub(crate) failure: Option<String>,
}

#[derive(Serialize)]
struct Page<'a, T> {
    frame: &'a Frame,
    answer: &'a T,
}

/// The templates, parsed.
pub(crate) struct Pages {
    environment: Environment<'static>,
    style: String,
}

impl Pages {
    pub(crate) fn new() -> Result<Pages, Error> {
        let mut environment = Environment::new();
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.add_filter("dur", |s: Option<f64>| s.map_or(ABSENT.to_string(), duration));
        environment.add_filter("at", |s: Option<f64>| {
            s.and_then(|s| date_and_time(s.max(0.0) as u64)).unwrap_or(ABSENT.to_string())
        });
        environment.add_filter("day", |s: f64| {
            evenhand_model::calendar::date(s.max(0.0) as u64).unwrap_or(ABSENT.to_string())
        });
        environment.add_filter("pct", |part: Option<f64>| {
            part.filter(|part| part.is_finite()).map_or(ABSENT.to_string(), |part| format!("{:.1} %", 100.0 * part))
        });
        environment.add_filter("hours", |s: f64| format!("{:.1}", s / 3600.0));
        environment.add_filter("fixed", |value: Option<f64>| {
            value.filter(|value| value.is_finite()).map_or(ABSENT.to_string(), |value| format!("{value:.2}"))
        });
        environment.add_filter("or_dash", |text: Option<String>| text.unwrap_or(ABSENT.to_string()));
        environment.add_filter("url", |text: String| url_part(&text));
        for (name, text) in TEMPLATES {
            environment.add_template(name, text)?;
        }
        let style = format!("{}\n{}", evenhand_report::page_style(), include_str!("../assets/serve.css"));
        Ok(Pages { environment, style })
    }

    pub(crate) fn style(&self) -> String {
        self.style.clone()
    }

    pub(crate) fn render(&self, template: &str, frame: &Frame, answer: &impl Serialize) -> Result<String, Error> {
        self.environment.get_template(template)?.render(Serde(Page { frame, answer }))
    }
}

/// Encodes text as one part of a path, or as a value of a query.
pub(crate) fn url_part(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => encoded.push(byte as char),
            // A name of dots only would be a step in the path.
            b'.' if !text.bytes().all(|byte| byte == b'.') => encoded.push('.'),
            _ => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

/// Whether an answer is older than three questions to the site take.
pub(crate) fn is_stale(age_s: f64, interval: Duration) -> bool {
    age_s > 3.0 * interval.as_secs_f64() + 30.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_pages_and_in_addresses() {
        let frame = Frame {
            title: "<b>".into(),
            root: String::new(),
            here: "message",
            cluster: Some("a&b".into()),
            user: Some("<script>".into()),
            study: true,
            nodes: true,
            read_s: Some(0.0),
            age_s: Some(60.0),
            stale: true,
            failure: Some("\"<img src=x>".into()),
        };
        #[derive(Serialize)]
        struct Message {
            message: &'static str,
        }
        let page = Pages::new().unwrap().render("message.html", &frame, &Message { message: "'\"><i>" }).unwrap();
        for wrong in ["<b>", "<script>", "<img", "<i>"] {
            assert!(!page.contains(wrong), "{wrong} in {page}");
        }
        assert!(page.contains("&lt;b&gt;") && page.contains("a&amp;b"));
        assert_eq!(url_part("a/b c?<é"), "a%2Fb%20c%3F%3C%C3%A9");
        assert_eq!((url_part(".."), url_part("a.b")), ("%2E%2E".to_string(), "a.b".to_string()));
    }
}
