//! Metrics of the agent for Prometheus.

use evenhand_agent::Status;

use crate::output::serve_metrics::{LABELLED, MetricsText, by_user_and_resource};

/// Returns the agent's state as metrics.
pub(super) fn metrics(status: &Status) -> String {
    let mut text = MetricsText::default();
    let one = |value: f64| [(Vec::new(), value)];
    let totals = &status.totals;
    text.family("evenhand_agent_updates_total", "counter", "Updates.", one(status.updates as f64));
    text.family("evenhand_agent_changes_total", "counter", "Values written.", one(totals.changes as f64));
    text.family("evenhand_agent_errors_total", "counter", "Reads and writes that failed.", one(totals.errors as f64));
    let help = "Counters that went backwards.";
    text.family("evenhand_agent_backwards_total", "counter", help, one(totals.backwards as f64));
    text.family("evenhand_agent_update_seconds", "gauge", "Duration of the last update.", one(totals.update_s));
    let help = "Processor time of the last update.";
    text.family("evenhand_agent_update_cpu_seconds", "gauge", help, one(totals.update_cpu_s));
    let applied = f64::from(u8::from(status.applied));
    text.family("evenhand_agent_applied", "gauge", "Whether weights are written.", one(applied));
    let alone = status.alone_s.unwrap_or(0.0);
    text.family(
        "evenhand_agent_alone_seconds",
        "gauge",
        "Time since the last message of another node; 0 if another node is connected.",
        one(alone),
    );
    let help = "Whether a node's last message is recent enough to count in full.";
    let rows = status.nodes.iter().map(|node| (vec![("node", &*node.name)], f64::from(u8::from(node.fresh))));
    text.family("evenhand_node_fresh", "gauge", help, rows);
    let resources = || status.resources.iter().filter(|(_, of)| of.supply > 0.0);
    let rows = resources().map(|(name, of)| (vec![("resource", name.as_str())], of.supply));
    text.family(
        "evenhand_node_supply",
        "gauge",
        "Supply of this node, in processors, bytes, or bytes per second.",
        rows,
    );
    let rows = resources().map(|(name, of)| (vec![("resource", name.as_str())], of.used));
    text.family("evenhand_node_used", "gauge", "Use of it by workloads.", rows);
    let help = "Heaviness h_u of a user over all nodes: 0 is exactly the entitlement.";
    // By decreasing heaviness: those who yield first.
    let rows = status.users.iter().take(LABELLED).map(|user| (vec![("user", &*user.name)], user.heaviness));
    text.family("evenhand_user_heaviness", "gauge", help, rows);
    text.family("evenhand_users", "gauge", "Users with workloads on any node.", one(status.users.len() as f64));
    for (name, help, is_share) in [
        ("evenhand_user_share", "Share of the cloud that a user has.", true),
        ("evenhand_user_entitlement", "Share of the cloud to which a user is entitled.", false),
    ] {
        let users = status.users.iter().map(|user| {
            let parts = if is_share { &user.shares } else { &user.entitlements };
            (vec![("user", &*user.name)], parts.iter().map(|(resource, part)| (resource.as_str(), *part)).collect())
        });
        let rows = by_user_and_resource(users);
        text.family(name, "gauge", help, rows);
    }
    let rows = status.workloads.iter().take(LABELLED).map(|workload| {
        let labels = vec![("guest", &*workload.name), ("user", &*workload.owner), ("path", &*workload.path)];
        (labels, workload.weight)
    });
    text.family("evenhand_guest_weight", "gauge", "Weight of a workload among its siblings; 1 is neutral.", rows);
    text.finish()
}
