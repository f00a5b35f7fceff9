//! The entitlement of each user in the whole cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use evenhand_documents::{Document, DocumentError, Format, Node, Source, did_you_mean};
use evenhand_enforcers::cgroups::Resource;
use twox_hash::XxHash3_128;

use crate::discovery::split_fields::lines;
use crate::trusted_files::read_source;

/// The entitlement of each user in the whole cloud: amounts of resources, a weight, or both.
///
/// Only the ratios of a resource's amounts between users matter (Poullie et al. 2016, Eq. 2). A user without an
/// amount of a resource is entitled to the user's weight times the default's amount; where neither the default nor
/// any user has an amount of it, to the weight alone. All nodes must have the same quotas: [`digest`](Quotas::digest)
/// shows whether they have.
///
/// ```
/// use evenhand_documents::{Document, Format};
/// let text = "
///     [default]
///     cpu = 4
///     mem = \"16Gi\"
///     [users]
///     alice = { cpu = 16 }
///     bob = { weight = 2 }
/// ";
/// let quotas = evenhand_agent::Quotas::from_document(&Document::parse("quotas.toml", text, Some(Format::Toml))?)?;
/// assert_eq!(quotas.amount("alice", "cpu"), Some(16.0));
/// assert_eq!(quotas.amount("bob", "cpu"), Some(8.0));
/// assert_eq!(quotas.amount("carol", "cpu"), Some(4.0));
/// assert_eq!(quotas.amount("bob", "net"), Some(2.0));
/// # Ok::<(), evenhand_documents::DocumentError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quotas {
    default: Quota,
    users: BTreeMap<String, Quota>,
    /// Resources of which some user has an amount, but not the default.
    without_default: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Quota {
    weight: f64,
    amounts: BTreeMap<String, f64>,
}

impl Default for Quota {
    fn default() -> Quota {
        Quota { weight: 1.0, amounts: BTreeMap::new() }
    }
}

const WEIGHT: &str = "weight";
/// In lines, stands for all users who are not named.
const OTHERS: &str = "*";

impl Quotas {
    /// Reads a file: TOML or JSON by its extension, else lines of which the first names the columns, `user weight cpu
    /// mem`, and in which `*` stands for all users who are not named.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or has another form.
    pub fn open(path: &Path) -> Result<Quotas, DocumentError> {
        let source = read_source(path)?;
        match Format::of_path(path) {
            Some(format) => Quotas::from_document(&Document::of(source, Some(format))?),
            None => Quotas::read_lines(&source),
        }
    }

    /// Reads the tables `default` and `users` of a document.
    ///
    /// # Errors
    /// Returns an error if the document has another form, or if a user has a weight but there is no default amount
    /// that it could multiply.
    pub fn from_document(document: &Document) -> Result<Quotas, DocumentError> {
        let table = document.root()?;
        table.deny_unknown(&["default", "users"])?;
        let mut quotas = Quotas::default();
        if let Some(node) = table.get("default") {
            quotas.default = quota(&node)?;
        }
        let mut weights = Vec::new();
        if let Some(users) = table.get("users") {
            for (key, node) in users.table()?.entries() {
                if key.name().is_empty() {
                    return Err(key.error("found \"\", expected the name of a user"));
                }
                quotas.users.insert(key.name().to_owned(), quota(&node)?);
                weights.extend(node.table()?.get(WEIGHT).map(|weight| (key.name(), weight)));
            }
        }
        quotas.find_without_default();
        for (user, weight) in weights {
            quotas.check_weight(user).map_err(|problem| weight.error(problem))?;
        }
        Ok(quotas)
    }

    fn read_lines(source: &Source) -> Result<Quotas, DocumentError> {
        let mut lines = lines(source.text());
        let mut quotas = Quotas::default();
        let Some(heading) = lines.next() else { return Ok(quotas) };
        let mut names = BTreeSet::new();
        for (number, field) in heading.iter().enumerate() {
            if number == 0 && field.text != "user" {
                return Err(field.error(source, format!("found {:?}, expected user, and then resources", field.text)));
            }
            if number > 0 {
                check_name(field.text).map_err(|problem| field.error(source, problem))?;
            }
            if !names.insert(field.text) {
                return Err(field.error(source, format!("found {:?}, expected each resource once", field.text)));
            }
        }
        let mut weights = Vec::new();
        for row in lines {
            let Some(user) = row.first().copied().filter(|field| !field.text.is_empty()) else {
                let at = row.first().map_or(0..0, |field| field.span());
                return Err(source.error(at, "found no user, expected a name, or * for all others"));
            };
            if let Some(more) = row.get(heading.len()) {
                return Err(
                    more.error(source, format!("found field {}, expected {}", heading.len() + 1, heading.len()))
                );
            }
            let mut quota = Quota::default();
            for (name, field) in heading.iter().zip(&row).skip(1).filter(|(_, field)| !field.text.is_empty()) {
                let amount = field.positive(source, name.text)?;
                match name.text {
                    WEIGHT => {
                        quota.weight = amount;
                        weights.push((user, field.span()));
                    }
                    resource => drop(quota.amounts.insert(resource.to_owned(), amount)),
                }
            }
            let before = match user.text {
                OTHERS => Some(std::mem::replace(&mut quotas.default, quota)).filter(|d| *d != Quota::default()),
                name => quotas.users.insert(name.to_owned(), quota),
            };
            if before.is_some() {
                return Err(user.error(source, format!("{:?} occurs a second time, expected once", user.text)));
            }
        }
        quotas.find_without_default();
        for (user, span) in weights.into_iter().filter(|(user, _)| user.text != OTHERS) {
            quotas.check_weight(user.text).map_err(|problem| source.error(span, problem))?;
        }
        Ok(quotas)
    }

    fn find_without_default(&mut self) {
        let named = self.users.values().flat_map(|quota| quota.amounts.keys());
        self.without_default =
            named.filter(|resource| !self.default.amounts.contains_key(*resource)).cloned().collect();
    }

    /// Checks that the user's weight has a default amount to multiply, wherever it is used.
    fn check_weight(&self, user: &str) -> Result<(), String> {
        let Some(quota) = self.users.get(user) else { return Ok(()) };
        match self.without_default.iter().find(|resource| !quota.amounts.contains_key(*resource)) {
            Some(r) => Err(format!(
                "other users have amounts of {r:?} and the default has none, so that a weight multiplies nothing; expected default.{r}, or an amount for {user}"
            )),
            None => Ok(()),
        }
    }

    /// Returns the user's entitlement to the resource, in units of that resource's own; `None` if others have
    /// amounts, and neither this user nor the default has.
    pub fn amount(&self, user: &str, resource: &str) -> Option<f64> {
        let quota = self.users.get(user).unwrap_or(&self.default);
        let own = quota.amounts.get(resource).copied();
        let multiple = || match self.default.amounts.get(resource) {
            // The default's own weight is for resources without a default amount.
            Some(amount) => Some(quota.weight * amount),
            None => (!self.without_default.contains(resource)).then_some(quota.weight),
        };
        own.or_else(multiple)
    }

    /// Iterates over the users who are named, sorted by name.
    pub fn users(&self) -> impl ExactSizeIterator<Item = &str> {
        self.users.keys().map(String::as_str)
    }

    /// Returns a hash of the quotas, which is the same on every machine.
    pub fn digest(&self) -> u64 {
        let mut bytes = Vec::new();
        let text = |bytes: &mut Vec<u8>, text: &str| {
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        };
        // The default comes first, under a name that no user has.
        for (user, quota) in [("", &self.default)].into_iter().chain(self.users.iter().map(|(u, q)| (u.as_str(), q))) {
            text(&mut bytes, user);
            bytes.extend_from_slice(&quota.weight.to_bits().to_le_bytes());
            bytes.extend_from_slice(&(quota.amounts.len() as u64).to_le_bytes());
            for (resource, amount) in &quota.amounts {
                text(&mut bytes, resource);
                bytes.extend_from_slice(&amount.to_bits().to_le_bytes());
            }
        }
        (XxHash3_128::oneshot(&bytes) & u128::from(u64::MAX)) as u64
    }
}

fn quota(node: &Node<'_>) -> Result<Quota, DocumentError> {
    let mut quota = Quota::default();
    for (key, value) in node.table()?.entries() {
        check_name(key.name()).map_err(|problem| key.error(problem))?;
        let amount = value.positive()?.to_f64();
        match key.name() {
            WEIGHT => quota.weight = amount,
            resource => drop(quota.amounts.insert(resource.to_owned(), amount)),
        }
    }
    Ok(quota)
}

/// Checks the name of a resource or of the weight. An amount of a resource that the agent does not divide would change
/// nothing, so that the user would have the default's amount of the resource that was meant.
fn check_name(name: &str) -> Result<(), String> {
    let [cpu, mem, disk, net] = Resource::ALL.map(Resource::name);
    let known = [WEIGHT, cpu, mem, disk, net];
    if known.contains(&name) {
        return Ok(());
    }
    let near = did_you_mean(name, known);
    Err(format!("found {name:?}, expected {WEIGHT}, {cpu}, {mem}, {disk} or {net}{near}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn toml(text: &str) -> Result<Quotas, String> {
        let document = Document::parse("q.toml", text, Some(Format::Toml)).map_err(|e| e.to_string())?;
        Quotas::from_document(&document).map_err(|e| e.to_string())
    }

    fn message(result: Result<Quotas, impl ToString>) -> String {
        result.unwrap_err().to_string().lines().next().unwrap().to_owned()
    }

    fn rows(text: &str) -> Result<Quotas, DocumentError> {
        Quotas::read_lines(&Source::new("q", text))
    }

    #[test]
    fn both_file_formats_give_the_same_quotas() {
        let tables = toml(
            "[default]\ncpu = 4\nmem = '16Gi'\n[users]\nbob = { weight = 2 }\nalice = { mem = 1024, cpu = 1.5 }\n",
        )
        .unwrap();
        let lines = rows("# what is due\nuser, mem, weight, cpu\n*, 16Gi,, 4\nalice, 1024, , 3/2\nbob,,2,\n").unwrap();
        assert_eq!(tables, lines);
        assert_eq!(tables.digest(), lines.digest());
        assert_eq!(
            (tables.amount("bob", "mem"), tables.amount("alice", "cpu")),
            (Some(2.0 * 16.0 * 1024.0_f64.powi(3)), Some(1.5))
        );
        assert_eq!(tables.users().collect::<Vec<_>>(), ["alice", "bob"]);
        // A fixed value, because nodes with another build and machine must compute the same.
        assert_eq!(Quotas::default().digest(), rows("").unwrap().digest());
        assert_eq!(format!("{:016x}", tables.digest()), "465c9d7b83fcbc5e");
    }

    #[test]
    fn without_a_default_amounts_are_unknown_and_weights_are_rejected() {
        let quotas = toml("[users]\nalice = { cpu = 4 }\nbob = { net = 1, cpu = 1 }\n").unwrap();
        assert_eq!(
            (quotas.amount("carol", "cpu"), quotas.amount("alice", "net"), quotas.amount("carol", "disk")),
            (None, None, Some(1.0))
        );
        let wrong = message(toml("[users]\nalice = { cpu = 4 }\nbob = { weight = 2 }\n"));
        assert!(wrong.starts_with("q.toml:3:18: weight: other users have amounts of \"cpu\""), "{wrong}");
        let wrong = message(rows("user weight cpu\nbob,2,\nalice,,4\n"));
        assert!(wrong.starts_with("q:2:5: other users have amounts of \"cpu\""), "{wrong}");
        let only = toml("[default]\nweight = 3\n[users]\nbob = { weight = 2 }\n").unwrap();
        assert_eq!((only.amount("bob", "cpu"), only.amount("carol", "cpu")), (Some(2.0), Some(3.0)));
    }

    #[test]
    fn errors_have_a_position() {
        assert!(message(toml("[user]\n")).contains("q.toml:1:2: unknown field \"user\""));
        assert!(message(toml("[users]\na = { cpu = 0 }\n")).contains("q.toml:2:13: cpu: found \"0\""));
        assert!(message(toml("[users]\na = 3\n")).contains("q.toml:2:5: a: found a number, expected a table"));
        assert!(message(toml("[users]\n'' = {}\n")).contains("q.toml:2:1: found \"\""));
        assert!(message(rows("name cpu\n")).contains("q:1:1: found \"name\", expected user"));
        assert!(message(rows("user cpu cpu\n")).contains("q:1:10: found \"cpu\", expected each resource once"));
        assert!(message(rows("user cpu\na 1\na 2\n")).contains("q:3:1: \"a\" occurs a second time"));
        assert!(message(rows("user cpu\n* 1\n* 2\n")).contains("q:3:1: \"*\" occurs a second time"));
        assert!(message(rows("user cpu\na 1 2\n")).contains("q:2:5: found field 3, expected 2"));
        assert!(message(rows("user cpu\n,1\n")).contains("q:2:1: found no user"));
        assert!(message(rows("user cpu\na x\n")).contains("q:2:3: cpu: found \"x\""));
    }

    #[test]
    fn names_of_resources_that_the_agent_does_not_divide_are_rejected() {
        let problem = "found \"memory\", expected weight, cpu, mem, disk or net; did you mean \"mem\"?";
        assert_eq!(message(toml("[users]\na = { memory = 1 }\n")), format!("q.toml:2:7: {problem}"));
        assert_eq!(message(toml("[default]\nmemory = 1\n")), format!("q.toml:2:1: {problem}"));
        assert_eq!(message(rows("user cpu memory\na 1 1\n")), format!("q:1:10: {problem}"));
        let wrong = message(rows("user,jobs\na,1\n"));
        assert_eq!(wrong, "q:1:6: found \"jobs\", expected weight, cpu, mem, disk or net");
        assert!(message(rows("user,,cpu\n")).contains("q:1:6: found \"\", expected weight, cpu"));
        assert!(message(rows("user,user\n")).contains("q:1:6: found \"user\", expected weight, cpu"));
    }

    #[test]
    fn different_quotas_have_different_digests() {
        let texts = [
            "",
            "[default]\ncpu = 1\n",
            "[default]\nmem = 1\n",
            "[default]\ncpu = 2\n",
            "[users.a]\ncpu = 1\n",
            "[users.acpu]\n",
            "[users.a]\nweight = 2\n",
            "[users.a]\n",
        ];
        let digests: BTreeSet<u64> = texts.iter().map(|text| toml(text).unwrap().digest()).collect();
        assert_eq!(digests.len(), texts.len());
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_read_or_rejected(text in "(user|weight|cpu|\\*|,| |\n|#|1|-1|16Gi|users|default|=|\\{|\\}|\\[|\\]|\"|\\PC){0,24}") {
            let _ = toml(&text);
            if let Ok(quotas) = rows(&text) {
                for user in quotas.users().chain(["carol"]) {
                    prop_assert!(quotas.amount(user, "cpu").is_none_or(|amount| amount > 0.0));
                }
            }
        }
    }
}
