//! Where a configuration comes from: its file, drop-in files beside it, and environment variables.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use evenhand_documents::{Document, DocumentError, Format, toml_string};

use super::SECTIONS;
use crate::trusted_files::{TrustError, check_trusted, check_trusted_folder, read_document};

/// Variables with this beginning set a key, as in `EVENHAND_AGENT__CONTROL__INTERVAL=5s`.
const VARIABLES: &str = "EVENHAND_AGENT__";

/// The layers of a configuration, from the weakest: the file, the drop-in files `FILE.d/*.toml` in the order of their names,
/// and the environment variables `EVENHAND_AGENT__SECTION__KEY`. A key has the value of the last layer that has it; a list is
/// replaced as a whole.
#[derive(Debug)]
pub struct ConfigurationSources {
    pub(super) documents: Vec<Document>,
    files: Vec<PathBuf>,
    folder: Option<PathBuf>,
    variables: Vec<String>,
    misspelt: Misspelt,
}

impl ConfigurationSources {
    /// Reads the layers of the configuration in `file`, of which standard input (`-`) has no drop-in files.
    ///
    /// # Errors
    /// Returns an error about the first file that cannot be read or is not TOML, or the first variable that names no key.
    pub fn read(
        file: &Path,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<ConfigurationSources, DocumentError> {
        let (folder, drop_ins) = drop_in_files(file)?;
        let files: Vec<PathBuf> = std::iter::once(file.to_owned()).chain(drop_ins).collect();
        let mut documents = files.iter().map(|file| read_document(file)).collect::<Result<Vec<_>, _>>()?;
        let (variables, misspelt) = read_variables(environment, &mut documents)?;
        Ok(ConfigurationSources { documents, files, folder, variables, misspelt })
    }

    /// Takes a document as the only file, below the variables.
    ///
    /// # Errors
    /// Returns an error about the first variable that names no key.
    pub fn of_document(
        document: Document,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<ConfigurationSources, DocumentError> {
        let mut documents = vec![document];
        let (variables, misspelt) = read_variables(environment, &mut documents)?;
        Ok(ConfigurationSources { documents, files: Vec::new(), folder: None, variables, misspelt })
    }

    /// Returns the files, from the weakest.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the names of the variables, which are stronger than all files.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Returns the variables that are ignored, but have the name of a key but for an underscore, each with the name that sets
    /// the key.
    pub fn misspelt(&self) -> &[(String, String)] {
        &self.misspelt
    }

    /// Checks that only root and the user who runs this process can change the files or add one.
    ///
    /// # Errors
    /// Returns the first violation.
    pub fn check_trusted(&self) -> Result<(), TrustError> {
        self.folder.iter().try_for_each(|folder| check_trusted_folder(folder))?;
        self.files.iter().filter(|file| file.exists()).try_for_each(|file| check_trusted(file))
    }
}

/// Returns the folder of drop-in files, if there is one, and the files in it, sorted.
pub(super) fn drop_in_files(file: &Path) -> Result<(Option<PathBuf>, Vec<PathBuf>), DocumentError> {
    let mut folder = file.as_os_str().to_owned();
    folder.push(".d");
    let folder = PathBuf::from(folder);
    if file == Path::new("-") || !folder.is_dir() {
        return Ok((None, Vec::new()));
    }
    let failure = |source| DocumentError::Read { path: folder.display().to_string(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(failure)? {
        let path = entry.map_err(failure)?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if path.extension().is_some_and(|extension| extension == "toml") && !hidden {
            files.push(path);
        }
    }
    files.sort();
    Ok((Some(folder), files))
}

/// Names of variables that are ignored, each with the likely name.
type Misspelt = Vec<(String, String)>;

/// Adds a document for each variable that sets a key, by name. Returns their names, and those with too few underscores.
pub(super) fn read_variables(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    documents: &mut Vec<Document>,
) -> Result<(Vec<String>, Misspelt), DocumentError> {
    let named = environment.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let mut all: Vec<(String, OsString)> = named.filter(|(name, _)| name.starts_with("EVENHAND_AGENT_")).collect();
    all.sort();
    let misspelt = all.iter().filter_map(|(name, _)| Some((name.clone(), likely_variable(name)?))).collect();
    all.retain(|(name, _)| name.starts_with(VARIABLES));
    for (name, value) in &all {
        documents.push(variable(name, &value.to_string_lossy())?);
    }
    Ok((all.into_iter().map(|(name, _)| name).collect(), misspelt))
}

/// Returns the variable that sets a key, for a name with too few underscores (`EVENHAND_AGENT_CONTROL__GAIN`,
/// `EVENHAND_AGENT_CONTROL_GAIN`); `None` if the name is another one.
pub fn likely_variable(name: &str) -> Option<String> {
    let rest = name.strip_prefix("EVENHAND_AGENT_").filter(|rest| !rest.starts_with('_'))?;
    let section = SECTIONS.iter().map(|section| section.to_ascii_uppercase()).find_map(|section| {
        let key = rest.strip_prefix(section.as_str())?.strip_prefix('_')?;
        Some((section, key.trim_start_matches('_').to_owned()))
    });
    let (section, key) = section.filter(|(_, key)| !key.is_empty())?;
    Some(format!("{VARIABLES}{section}__{key}"))
}

/// Reads a variable as a document with one key. A value is written as in TOML, where a text needs no quotation marks.
fn variable(name: &str, value: &str) -> Result<Document, DocumentError> {
    let source = format!("environment variable {name}");
    let keys: Vec<String> = name[VARIABLES.len()..].split("__").map(str::to_ascii_lowercase).collect();
    let is_key = |key: &String| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let [section, key] = &keys[..] else { return Err(no_key(&source, name)) };
    if !is_key(section) || !is_key(key) {
        return Err(no_key(&source, name));
    }
    let as_toml = |value: &str| Document::parse(&source, &format!("{section}.{key} = {value}"), Some(Format::Toml));
    // A value with a line of its own would be another key.
    if !value.contains('\n')
        && let Ok(document) = as_toml(value)
    {
        return Ok(document);
    }
    as_toml(&toml_string(value))
}

fn no_key(source: &str, name: &str) -> DocumentError {
    let problem =
        format!("found the variable {name}, expected {VARIABLES}SECTION__KEY, as in {VARIABLES}CONTROL__INTERVAL");
    evenhand_documents::Source::new(source, name).error(0..name.len(), problem)
}
