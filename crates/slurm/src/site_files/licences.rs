//! The licences of slurm.conf.

use evenhand_model::{Licence, parse_licences};

use super::slurm_conf::SlurmConf;
use super::{Position, SiteFileError};
use crate::error::quoted;

/// Returns the licences of a site (`Licenses`); those of the database, which sacctmgr adds, are not among them.
///
/// # Errors
/// Returns an error with file, line and column if they are malformed.
pub fn licences_of_conf(conf: &SlurmConf) -> Result<Vec<Licence>, SiteFileError> {
    let Some(text) = conf.configuration.get("Licenses") else { return Ok(Vec::new()) };
    parse_licences(text).ok_or_else(|| {
        let place = conf.places.get("licenses").cloned();
        SiteFileError::Invalid {
            place: place.unwrap_or_else(|| Position { file: "slurm.conf".into(), line: 1, column: 1 }),
            found: quoted(text),
            expected: "names with counts, such as matlab:10,ansys:2".into(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::read_slurm_conf;
    use super::*;

    fn read(text: &str) -> Result<Vec<Licence>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slurm.conf");
        std::fs::write(&path, text).unwrap();
        licences_of_conf(&read_slurm_conf(&path).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn licences_are_read_and_errors_have_their_place() {
        let found = read("ClusterName=x\nLicenses=matlab:10,fluent\n").unwrap();
        let found: Vec<(&str, u64)> = found.iter().map(|licence| (licence.name.as_str(), licence.count)).collect();
        assert_eq!(found, [("matlab", 10), ("fluent", 1)]);
        assert_eq!(read("ClusterName=x\n"), Ok(Vec::new()));
        let error = read("ClusterName=x\nLicenses=matlab*10\n").unwrap_err();
        assert!(error.contains("slurm.conf:2:10: found") && error.contains("matlab:10,ansys:2"), "{error}");
    }
}
