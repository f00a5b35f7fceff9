//! The licences of a cluster file.

use evenhand_documents::{DocumentError, Table};
use evenhand_model::{Cluster, Licence, parse_licences};

use crate::cluster_file::{name, whole};

/// Reads the licences of a cluster.
pub(crate) fn read(root: &Table<'_>, cluster: &mut Cluster) -> Result<(), DocumentError> {
    let Some(all) = root.get("licences") else { return Ok(()) };
    for node in all.with_label("[[licences]]").list()? {
        let table = node.table()?;
        table.deny_unknown(&["name", "count"])?;
        let name = name(&table, cluster.licences.iter().map(|licence| licence.name.as_str()))?;
        let is_one = parse_licences(&name).is_some_and(|all| all.len() == 1 && all[0].name == name);
        if !is_one {
            let problem = format!("found {name:?}, expected a name without blanks, commas, and a count after a colon");
            return Err(table.required("name", "a name")?.error(problem));
        }
        let count = table.required("count", "how many there are")?;
        let count = whole(&count, 0, i64::from(u32::MAX), "a whole number, at least 0")? as u64;
        cluster.licences.push(Licence { name, count });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use evenhand_documents::{Document, Format};

    use crate::cluster_file::cluster_of;
    use crate::cluster_text;

    fn parse(text: &str) -> Result<evenhand_model::Cluster, String> {
        let text = format!("[[machines]]\nname = \"m\"\ncpu = 4\n{text}");
        let document = Document::parse("c.toml", &text, Some(Format::Toml)).unwrap();
        let cluster = cluster_of(&document).map_err(|e| e.to_string().trim_start_matches("c.toml").to_string());
        Ok(cluster?.unwrap())
    }

    #[test]
    fn licences_read_back_as_they_are_written_and_errors_have_their_place() {
        let text = "[[licences]]\nname = \"matlab\"\ncount = 10\n[[licences]]\nname = \"fluent@flexlm\"\ncount = 0\n";
        let cluster = parse(text).unwrap();
        assert_eq!((cluster.licences.len(), cluster.licences[0].count), (2, 10));
        let document = Document::parse("c.toml", &cluster_text(&cluster), Some(Format::Toml)).unwrap();
        assert_eq!(cluster_of(&document).unwrap().unwrap(), cluster);
        let wrong = |text: &str| parse(text).unwrap_err();
        assert!(wrong("[[licences]]\nname = \"a\"\n").contains("count"));
        assert!(wrong("[[licences]]\nname = \"a\"\ncount = -1\n").starts_with(":6:9: "));
        assert!(wrong("[[licences]]\nname = \"a:2\"\ncount = 1\n").starts_with(":5:8: "));
        let twice = "[[licences]]\nname = \"a\"\ncount = 1\n";
        assert!(wrong(&twice.repeat(2)).starts_with(":8:8: "));
    }
}
