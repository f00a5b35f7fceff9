//! Parsers shared by the sections of the configuration.

use std::path::{Path, PathBuf};
use std::time::Duration;

use evenhand_documents::{DocumentError, Node, did_you_mean};
use evenhand_model::Span;

use super::section::Section;

/// Parses a time such as `10s`, of at least `minimum`.
pub(super) fn span(
    table: &Section<'_>,
    key: &str,
    default: Duration,
    minimum: Duration,
) -> Result<Duration, DocumentError> {
    let Some(node) = table.get(key) else { return Ok(default) };
    let span = Span::parse(node.text()?).map_err(|e| node.error(e.to_string()))?;
    let span = Duration::from_nanos(span.nanos());
    if span < minimum {
        return Err(node.error(format!("found {}, expected at least {} s", node.text()?, minimum.as_secs_f64())));
    }
    Ok(span)
}

/// Parses a number that `accepts` holds for.
pub(super) fn number(
    table: &Section<'_>,
    key: &str,
    default: f64,
    expected: &str,
    accepts: impl Fn(f64) -> bool,
) -> Result<f64, DocumentError> {
    let Some(node) = table.get(key) else { return Ok(default) };
    let found = node.quantity()?.to_f64();
    if accepts(found) { Ok(found) } else { Err(node.error(format!("found {}, expected {expected}", node.written()?))) }
}

/// Parses one of several names.
pub(super) fn choice<T: Copy>(node: &Node<'_>, choices: &[(&str, T)]) -> Result<T, DocumentError> {
    let found = node.text()?;
    choices.iter().find(|(name, _)| *name == found).map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let near = did_you_mean(found, names.iter().copied());
        node.error(format!("found {found:?}, expected one of: {}{near}", names.join(", ")))
    })
}

/// Parses a path.
pub(super) fn path(table: &Section<'_>, key: &str) -> Result<Option<PathBuf>, DocumentError> {
    table.get(key).map(|node| node.text().map(PathBuf::from)).transpose()
}

/// Where systemd puts the credentials of the agent's unit.
const CREDENTIALS: &str = "/run/credentials/evenhand-agent.service";

/// Returns whether a file is a credential of the agent's unit, which systemd has loaded only while that runs, and is not there.
pub(crate) fn is_not_loaded(path: &Path) -> bool {
    path.starts_with(CREDENTIALS) && !Path::new(CREDENTIALS).exists()
}

/// Parses the path of a file with a secret. `credential:NAME` is a credential that systemd loads for the unit
/// (`LoadCredential=NAME:FILE`).
pub(super) fn secret(node: &Node<'_>) -> Result<PathBuf, DocumentError> {
    let text = node.text()?;
    let Some(name) = text.strip_prefix("credential:") else { return Ok(PathBuf::from(text)) };
    if name.is_empty() || name.contains('/') || name == ".." || name == "." {
        return Err(
            node.error(format!("found {text:?}, expected the name of a credential, as in \"credential:peers.key\""))
        );
    }
    let folder = std::env::var_os("CREDENTIALS_DIRECTORY").unwrap_or_else(|| CREDENTIALS.into());
    Ok(PathBuf::from(folder).join(name))
}

/// Parses a text by the `FromStr` of its type.
pub(super) fn parsed<T: std::str::FromStr>(node: &Node<'_>, expected: &str) -> Result<T, DocumentError> {
    let text = node.text()?;
    text.parse().map_err(|_| node.error(format!("found {text:?}, expected {expected}")))
}
