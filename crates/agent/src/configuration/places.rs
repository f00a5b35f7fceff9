//! What releasing needs of a configuration, also of one that is invalid otherwise.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use evenhand_documents::{Document, DocumentError, Node};

use super::NodeSection;
use super::sources::{drop_in_files, read_variables};
use crate::trusted_files::{check_trusted, check_trusted_folder, read_document};

/// Where an agent keeps its state and listens, as far as its configuration can be read: errors elsewhere in it do not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPlaces {
    /// The directory for the state that survives a crash.
    pub state: PathBuf,
    /// The socket for requests to the running agent.
    pub socket: PathBuf,
    /// What of the configuration could not be read or is not trusted, and was left out: a place may be a default for that
    /// reason.
    pub left_out: Vec<String>,
}

impl AgentPlaces {
    /// Reads the places from the layers of a configuration, of which a later one is stronger. A layer that cannot be read, or that
    /// another user could change, is left out.
    pub fn read(file: &Path, environment: impl IntoIterator<Item = (OsString, OsString)>) -> AgentPlaces {
        let NodeSection { state, socket, .. } = NodeSection::default();
        let mut places = AgentPlaces { state, socket, left_out: Vec::new() };
        let mut documents: Vec<Document> = Vec::new();
        let mut drop_ins = Vec::new();
        match drop_in_files(file) {
            Ok((Some(folder), files)) => match check_trusted_folder(&folder) {
                Ok(()) => drop_ins = files,
                Err(error) => places.left_out.push(error.to_string()),
            },
            Ok((None, _)) => {}
            Err(error) => places.leave_out(&error),
        }
        for file in std::iter::once(file.to_owned()).chain(drop_ins) {
            match read_document(&file) {
                Err(error) => places.leave_out(&error),
                Ok(document) => match check_trusted(&file) {
                    Ok(()) => documents.push(document),
                    Err(error) => places.left_out.push(error.to_string()),
                },
            }
        }
        for variable in environment {
            if let Err(error) = read_variables([variable], &mut documents) {
                places.leave_out(&error);
            }
        }
        for document in &documents {
            if let Err(error) = places.take(document) {
                places.leave_out(&error);
            }
        }
        places
    }

    /// Takes what a layer says.
    fn take(&mut self, document: &Document) -> Result<(), DocumentError> {
        let Some(node) = document.root()?.get("node") else { return Ok(()) };
        let table = node.table()?;
        let path = |node: Node<'_>| node.text().map(PathBuf::from);
        if let Some(node) = table.get("state") {
            self.state = path(node)?;
        }
        if let Some(node) = table.get("socket") {
            self.socket = path(node)?;
        }
        Ok(())
    }

    fn leave_out(&mut self, error: &DocumentError) {
        self.left_out.push(error.to_string().lines().next().unwrap_or_default().to_owned());
    }
}
