//! The page of the agent's nodes and users.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;

use crate::agent_nodes::AgentRecord;
use crate::answers::{NoAnswer, View};
use crate::guard::Visitor;
use crate::pages::is_stale;
use crate::routes::{PageOf, Shared, Site};

#[derive(Serialize)]
struct NodesPage {
    fresh: usize,
    resources: Vec<String>,
    /// Whether the last question to the agent failed, or its last answer is older than it should be.
    silent: bool,
    agent: NodesRecord,
}

/// What the agent reports, with the age of its answer.
#[derive(Serialize)]
struct NodesRecord {
    #[serde(flatten)]
    record: AgentRecord,
    age_s: f64,
    failure: Option<String>,
}

/// What the agent reports, as far as the visitor sees it.
fn agent(site: &Site, view: &View<'_>) -> Result<NodesPage, NoAnswer> {
    let hidden_or_absent = || NoAnswer::NotFound("No agent is asked here, or the site hides its nodes.".to_string());
    let answer = site.latest.agent().filter(|_| view.sight.nodes).ok_or_else(hidden_or_absent)?;
    let Some(record) = answer.record else {
        let why = answer.failure.unwrap_or_else(|| "it was not asked yet".to_string());
        return Err(NoAnswer::NotYet(format!("The agent has not answered yet: {why}")));
    };
    let age_s = answer.answered_at.map_or(0.0, |at| (site.clock)().since(at).secs_f64());
    let silent = answer.failure.is_some() || is_stale(age_s, site.interval);
    let record = record.seen_by(|user| view.sight.sees_usage(user, "")).aged(age_s, silent);
    let fresh = record.nodes.iter().filter(|node| node.fresh).count();
    let resources = record.resources();
    Ok(NodesPage { fresh, resources, silent, agent: NodesRecord { record, age_s, failure: answer.failure } })
}

pub(crate) async fn nodes(State(site): Shared, Extension(visitor): Extension<Visitor>) -> Response {
    site.page(&visitor, |view| {
        let answer = agent(&site, view)?;
        Ok(PageOf { template: "nodes.html", title: "Nodes of the agent".into(), here: "nodes", answer })
    })
}

pub(crate) async fn api_nodes(State(site): Shared, Extension(visitor): Extension<Visitor>) -> Response {
    site.api(&visitor, |view| Ok(agent(&site, view)?.agent))
}
