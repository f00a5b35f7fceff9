//! The page of the nodes, with an agent that answers once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evenhand_model::Time;
use evenhand_serve::{AgentNode, AgentReader, AgentRecord, AgentUser};

use super::Serving;

/// An agent that answers once.
#[derive(Default)]
pub(crate) struct Agent(bool);

impl AgentReader for Agent {
    fn read(&mut self) -> Result<AgentRecord, String> {
        if std::mem::replace(&mut self.0, true) {
            return Err("agent.sock: no agent answers at this socket".into());
        }
        let user = |name: &str, heaviness: f64, share: f64| AgentUser {
            name: name.into(),
            workloads: 2,
            heaviness,
            shares: [("cpu".to_string(), share)].into(),
            entitlements: [("cpu".to_string(), 0.5)].into(),
        };
        let node = |name: &str, fresh: bool| AgentNode { name: name.into(), age_s: 3.0, state: "recent".into(), fresh };
        Ok(AgentRecord {
            node: "n1".into(),
            at_s: 99_990.0,
            applied: true,
            interval_s: 10.0,
            nodes: vec![node("n1", true), node("<n2>", false)],
            users: vec![user("bob", 0.4, 0.7), user("ann", -0.4, 0.1)],
            hidden: false,
        })
    }
}

#[test]
fn the_agents_nodes_and_users_are_shown_as_far_as_the_site_allows() {
    let site = Serving::start("none", |_| ());
    let (status, _, page) = site.get_as("ann", "/nodes");
    assert_eq!(status, 200, "{page}");
    for text in ["1 of 2", "&lt;n2&gt;", "70.0&#x20;%", "0.40", "users/bob"] {
        assert!(page.contains(text) || page.contains(&text.replace("&#x20;", " ")), "no {text} in {page}");
    }
    assert!(site.get_as("ann", "/").2.contains("href=\"nodes\""), "the list of pages leads there");
    let (status, _, record) = site.get_as("ann", "/api/v1/nodes");
    assert!(status == 200 && record.contains("\"heaviness\": 0.4") && record.contains("\"hidden\": false"), "{record}");

    // Others' usage is hidden, and so are all nodes where the site hides them.
    let site = Serving::start("usage", |_| ());
    let (_, _, record) = site.get_as("ann", "/api/v1/nodes");
    assert!(
        record.contains("\"ann\"") && !record.contains("\"bob\"") && record.contains("\"hidden\": true"),
        "{record}"
    );
    let site = Serving::start("nodes", |_| ());
    assert_eq!(site.get_as("ann", "/nodes").0, 404);
    assert!(!site.get_as("ann", "/").2.contains("href=\"nodes\""));
}

#[test]
fn the_agents_last_record_stays_when_it_does_not_answer() {
    let site = Serving::start("none", |options| options.interval = Duration::from_millis(20));
    let failed = || site.get_as("ann", "/nodes").2.contains("no agent answers at this socket");
    let stays = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        failed()
    });
    assert!(stays, "the failure is shown");
    assert!(site.get_as("ann", "/nodes").2.contains("&lt;n2&gt;"), "beside the last record");
}

/// Seconds since the agent's answer.
static LATER_S: AtomicU64 = AtomicU64::new(0);

fn later() -> Time {
    Time::from_secs(100_000 + LATER_S.load(Ordering::SeqCst))
}

#[test]
fn the_ages_of_a_silent_agents_nodes_grow_and_none_is_fresh() {
    let site = Serving::start_by(later, "none", |_| ());
    let before = site.get_as("ann", "/api/v1/nodes").2;
    for text in ["\"failure\": null", "\"fresh\": true", "\"age_s\": 0.0", "\"age_s\": 3.0"] {
        assert!(before.contains(text), "no {text} in {before}");
    }
    drop(site);
    let site = Serving::start_by(later, "none", |options| options.interval = Duration::from_millis(20));
    let record = loop {
        let record = site.get_as("ann", "/api/v1/nodes").2;
        if record.contains("\"failure\": \"agent.sock: no agent answers at this socket\"") {
            break record;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(!record.contains("\"fresh\": true") && record.contains("not known: the agent has not"), "{record}");
    LATER_S.store(600, Ordering::SeqCst);
    let record = site.get_as("ann", "/api/v1/nodes").2;
    assert!(record.contains("\"age_s\": 603.0"), "{record}");
    let page = site.get_as("ann", "/nodes").2;
    for text in ["0 of 2", "10 min old", "10.1 min", "not known: the agent has not answered since", "recent"] {
        assert!(page.contains(text), "no {text} in {page}");
    }
}
