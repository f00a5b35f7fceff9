//! `evenhand agent why`

use std::path::Path;

use evenhand_documents::did_you_mean;

use super::query_status;
use crate::failure::Failure;
use crate::output::console::Console;

/// Explains the weights of the user's workloads.
pub(super) fn run(socket: &Path, user: &str, console: &Console) -> Result<(), Failure> {
    let status = query_status(socket)?;
    let Some(text) = status.why(user) else {
        let near = did_you_mean(user, status.users.iter().map(|user| user.name.as_str()));
        return Err(Failure::Input(format!("found {user:?}, expected a user with workloads on some node{near}")));
    };
    if console.is_json() {
        let user_status = status.users.iter().find(|of| of.name == user);
        let workloads: Vec<_> = status.workloads.iter().filter(|workload| workload.owner == user).collect();
        return console.json(&serde_json::json!({ "user": user_status, "guests": workloads, "why": text }));
    }
    console.result(&text)
}
