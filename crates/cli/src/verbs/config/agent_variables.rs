//! Variables in `*.env` files that set keys of the agent's configuration, checked as those of the agent's environment are.

use std::ffi::OsString;
use std::path::Path;

use evenhand_agent::ConfigurationSources;
use evenhand_documents::{Document, DocumentError, Format, Source};

use super::service_options::Assignment;
use crate::failure::Failure;
use crate::verbs::agent::configuration_of;

/// The file of the configuration, beside the file of variables.
const CONFIGURATION: &str = "agent.toml";
/// The keys that a configuration must have, for variables that stand alone.
const REQUIRED: &str = "[[guests]]\nfrom = \"user-slices\"\n";
/// Those of sections that a configuration may leave out, with bounds that no variable alone contradicts.
const SECTIONS: [(&str, &str); 2] = [
    ("EVENHAND_AGENT__PEERS__", "[peers]\nlisten = \"127.0.0.1:9751\"\nkey = \"key\"\nfresh = 1\nlost = 1000000\n"),
    ("EVENHAND_AGENT__NETWORK__", "[network]\ndevice = \"eth0\"\n"),
];
/// How an error names the document that a variable gives.
const VARIABLE: &str = "environment variable ";

/// Checks the variables on the configuration beside their file, or on the least one.
pub(super) fn check(file: &Path, source: &Source, keys: &[Assignment]) -> Result<(), Failure> {
    if keys.is_empty() {
        return Ok(());
    }
    let variables = || keys.iter().map(|key| (OsString::from(key.name()), OsString::from(key.value())));
    let beside = Some(file.with_file_name(CONFIGURATION)).filter(|path| path.exists());
    let sources = match &beside {
        Some(path) => ConfigurationSources::read(path, variables()),
        None => {
            let sections = SECTIONS.iter().filter(|(begin, _)| keys.iter().any(|key| key.name().starts_with(begin)));
            let text = std::iter::once(REQUIRED).chain(sections.map(|(_, keys)| *keys)).collect::<String>();
            Document::parse(CONFIGURATION, &text, Some(Format::Toml))
                .and_then(|document| ConfigurationSources::of_document(document, variables()))
        }
    };
    let checked = match sources {
        Ok(sources) => configuration_of(&sources)?.map(|_| ()),
        Err(error) => Err(error),
    };
    match checked {
        Ok(()) => Ok(()),
        Err(error) => match placed(source, keys, &error) {
            Some(error) => Err(Failure::document(error)),
            // Without the configuration it is not known what the other keys are.
            None if beside.is_none() => Ok(()),
            None => Err(Failure::document(error)),
        },
    }
}

/// Returns the error of a variable at its place in the file; `None` if the error is of something else.
fn placed(source: &Source, keys: &[Assignment], error: &DocumentError) -> Option<DocumentError> {
    let DocumentError::Content(content) = error else { return None };
    let name = content.path().strip_prefix(VARIABLE)?;
    // Of several with one name the last one counts.
    let key = keys.iter().rev().find(|key| key.name() == name)?;
    Some(source.error(key.place(), format!("{name}: {}", content.problem())))
}
