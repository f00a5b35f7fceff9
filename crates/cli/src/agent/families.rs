//! The agent's state for Prometheus.

use evenhand_agent::Status;

use crate::exposition::Text;

pub(super) fn families(status: &Status) -> String {
    let mut text = Text::default();
    let one = |value: f64| [(Vec::new(), value)];
    let totals = &status.totals;
    text.family("evenhand_agent_updates_total", "counter", "Updates.", one(status.updates as f64));
    text.family("evenhand_agent_changes_total", "counter", "Values written.", one(totals.changes as f64));
    text.family("evenhand_agent_errors_total", "counter", "Reads and writes that failed.", one(totals.errors as f64));
    let help = "Counters that went backwards.";
    text.family("evenhand_agent_backwards_total", "counter", help, one(totals.backwards as f64));
    text.family("evenhand_agent_update_seconds", "gauge", "How long the last update took.", one(totals.update_s));
    let help = "Processor time of the last update.";
    text.family("evenhand_agent_update_cpu_seconds", "gauge", help, one(totals.update_cpu_s));
    let applied = f64::from(u8::from(status.applied));
    text.family("evenhand_agent_applied", "gauge", "Whether weights are written.", one(applied));
    let alone = status.alone_s.unwrap_or(0.0);
    text.family("evenhand_agent_alone_seconds", "gauge", "Since another node was heard; 0 if one is.", one(alone));
    let help = "Whether a node's word counts in full.";
    let rows = status.nodes.iter().map(|node| (vec![("node", &*node.name)], f64::from(u8::from(node.fresh))));
    text.family("evenhand_node_fresh", "gauge", help, rows);
    let resources = || status.resources.iter().filter(|(_, of)| of.supply > 0.0);
    let rows = resources().map(|(name, of)| (vec![("resource", name.as_str())], of.supply));
    text.family("evenhand_node_supply", "gauge", "What this node has, in processors, bytes, bytes a second.", rows);
    let rows = resources().map(|(name, of)| (vec![("resource", name.as_str())], of.used));
    text.family("evenhand_node_used", "gauge", "What guests use of it.", rows);
    let help = "h_u of a user over all nodes: 0 is just what is due.";
    let rows = status.users.iter().map(|user| (vec![("user", &*user.name)], user.heaviness));
    text.family("evenhand_user_heaviness", "gauge", help, rows);
    for (name, help, of) in [
        ("evenhand_user_share", "What a user has, as a part of the cloud.", true),
        ("evenhand_user_entitlement", "What is due to a user, as a part of the cloud.", false),
    ] {
        let rows = status.users.iter().flat_map(|user| {
            let parts = if of { &user.shares } else { &user.entitlements };
            parts.iter().map(|(resource, part)| (vec![("user", &*user.name), ("resource", resource.as_str())], *part))
        });
        text.family(name, "gauge", help, rows);
    }
    let rows = status
        .workloads
        .iter()
        .map(|guest| (vec![("guest", &*guest.name), ("user", &*guest.owner), ("path", &*guest.path)], guest.weight));
    text.family("evenhand_guest_weight", "gauge", "A guest's weight among its siblings; 1 is neutral.", rows);
    text.finish()
}
