//! Who sees what: Slurm's PrivateData, and a policy file that can only narrow it, except for administrators.

use std::collections::BTreeSet;
use std::path::Path;

use evenhand_documents::{Document, DocumentError, Node};
use evenhand_slurm::Job;

use crate::snapshot::Snapshot;

/// Who visits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// Nobody whom the site knows.
    Anonymous,
    /// A user of the site.
    User(String),
}

/// Whose jobs and whose usage is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// Nobody's.
    Nothing,
    /// The viewer's own.
    Own,
    /// Those of the viewer's accounts.
    Account,
    /// All.
    All,
}

/// The site's own rules on who sees what, from the policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisibilityPolicy {
    /// What visitors without a name see.
    pub anonymous: Extent,
    /// What users see.
    pub users: Extent,
    /// Who sees everything.
    pub administrators: BTreeSet<String>,
}

impl Default for VisibilityPolicy {
    /// What PrivateData shows.
    fn default() -> VisibilityPolicy {
        VisibilityPolicy { anonymous: Extent::All, users: Extent::All, administrators: BTreeSet::new() }
    }
}

impl VisibilityPolicy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// Returns an error with its position if the file cannot be read, or has another key or value.
    pub fn read(path: &Path) -> Result<VisibilityPolicy, DocumentError> {
        VisibilityPolicy::of(&Document::read_toml(path)?)
    }

    fn of(document: &Document) -> Result<VisibilityPolicy, DocumentError> {
        let table = document.root()?;
        table.deny_unknown(&["anonymous", "users", "administrators"])?;
        let mut policy = VisibilityPolicy::default();
        if let Some(node) = table.get("anonymous") {
            policy.anonymous = one_of(&node, &[("none", Extent::Nothing), ("all", Extent::All)])?;
        }
        if let Some(node) = table.get("users") {
            policy.users = one_of(&node, &[("own", Extent::Own), ("account", Extent::Account), ("all", Extent::All)])?;
        }
        if let Some(node) = table.get("administrators") {
            policy.administrators = node.list()?.map(|name| name.text().map(String::from)).collect::<Result<_, _>>()?;
        }
        // A visitor who gives no name must not see more.
        if policy.users < Extent::All && table.get("anonymous").is_none() {
            policy.anonymous = Extent::Nothing;
        }
        Ok(policy)
    }
}

fn one_of(node: &Node<'_>, known: &[(&str, Extent)]) -> Result<Extent, DocumentError> {
    let text = node.text()?;
    known.iter().find(|(name, _)| *name == text).map(|(_, extent)| *extent).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        node.error(format!("found {text:?}, expected one of: {}", names.join(", ")))
    })
}

/// What one visitor sees of a snapshot.
#[derive(Clone, Debug)]
pub struct Sight {
    user: Option<String>,
    accounts: BTreeSet<String>,
    /// The accounts whose jobs and usage Slurm shows to the viewer although it hides those of others.
    coordinated: BTreeSet<String>,
    /// Of jobs.
    pub jobs: Extent,
    /// Of usage and shares.
    pub usage: Extent,
    /// Whether nodes are shown.
    pub nodes: bool,
}

impl Sight {
    /// Determines what a viewer sees.
    pub fn new(viewer: &Viewer, policy: &VisibilityPolicy, snapshot: &Snapshot) -> Sight {
        let user = match viewer {
            Viewer::Anonymous => None,
            Viewer::User(name) => Some(name.clone()),
        };
        let accounts = user.as_deref().map(|name| accounts_of(name, snapshot)).unwrap_or_default();
        let everything = user.as_deref().is_some_and(|name| {
            // As in Slurm itself. SlurmUser is printed with its number: slurm(64030).
            let slurm_user = snapshot.setting("SlurmUser").and_then(|text| text.split('(').next());
            name == "root" || slurm_user == Some(name) || policy.administrators.contains(name)
        });
        // The policy can narrow what coordinators see too.
        let coordinates = user.as_deref().filter(|_| policy.users > Extent::Own);
        let coordinated =
            coordinates.map(|name| snapshot.slow.coordinators.accounts_of(name).map(String::from).collect());
        let extent = |hidden: bool| match (everything, &user, hidden) {
            (true, ..) => Extent::All,
            (_, Some(_), true) => Extent::Own,
            (_, Some(_), false) => policy.users,
            (_, None, true) => Extent::Nothing,
            (_, None, false) => policy.anonymous,
        };
        let hides_usage = ["usage", "users", "accounts"].iter().any(|kind| snapshot.hides(kind));
        Sight {
            jobs: extent(snapshot.hides("jobs")),
            usage: extent(hides_usage),
            nodes: everything || !snapshot.hides("nodes"),
            user,
            accounts,
            coordinated: coordinated.unwrap_or_default(),
        }
    }

    /// The viewer's name.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns whether a job is shown.
    pub fn sees_job(&self, job: &Job) -> bool {
        self.within(self.jobs, &job.user, job.account.as_deref())
    }

    /// Returns whether the usage of a user in an account is shown.
    pub fn sees_usage(&self, user: &str, account: &str) -> bool {
        self.within(self.usage, user, Some(account))
    }

    /// Returns whether everything is shown: what names users without belonging to one needs this.
    pub fn sees_all(&self) -> bool {
        self.jobs == Extent::All && self.usage == Extent::All
    }

    fn within(&self, extent: Extent, user: &str, account: Option<&str>) -> bool {
        let own = self.user.as_deref() == Some(user) || account.is_some_and(|name| self.coordinated.contains(name));
        match extent {
            Extent::Nothing => false,
            Extent::Own => own,
            Extent::Account => own || account.is_some_and(|name| self.accounts.contains(name)),
            Extent::All => true,
        }
    }

    /// Says in a sentence what is hidden.
    pub fn hidden(&self) -> Option<&'static str> {
        Some(match self.jobs {
            Extent::All => return None,
            Extent::Account => "Only the jobs of your accounts are shown and counted, by the policy of the site.",
            Extent::Own if !self.coordinated.is_empty() => {
                "Only your own jobs and those of the accounts that you coordinate are shown and counted: the site hides \
                 those of others (PrivateData, or its policy)."
            }
            Extent::Own => {
                "Only your own jobs are shown and counted: the site hides those of others (PrivateData, or its policy)."
            }
            Extent::Nothing => {
                "Without a user name no jobs are shown: the site hides them (PrivateData, or its policy)."
            }
        })
    }
}

/// The accounts in which a user may submit; without accounting those of the jobs in the queue.
fn accounts_of(user: &str, snapshot: &Snapshot) -> BTreeSet<String> {
    let entitled =
        snapshot.slow.entitlements.keys().filter(|(_, name)| name == user).map(|(account, _)| account.clone());
    let found: BTreeSet<String> = entitled.collect();
    if !snapshot.slow.entitlements.is_empty() {
        return found;
    }
    snapshot.queue.jobs.iter().filter(|job| job.user == user).filter_map(|job| job.account.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenhand_documents::Format;
    use evenhand_model::Time;
    use evenhand_slurm::{Configuration, Coordinators, Priorities, Queue, ShareTable};

    use super::*;
    use crate::snapshot::{Computed, SlowPart};

    fn snapshot(private: Option<&str>) -> Snapshot {
        let text = "JOBID|USER|ACCOUNT|STATE\n1|ann|art|PENDING\n2|bob|art|PENDING\n3|cid|bio|PENDING\n";
        let configuration =
            private.map(|p| Configuration::parse(&format!("SlurmUser = slurm(64030)\nPrivateData = {p}\n")));
        Snapshot {
            read_at: Time::from_secs(1000),
            queue: Queue::parse(text).unwrap(),
            nodes: Vec::new(),
            priorities: Priorities::default(),
            shares: ShareTable::default(),
            slow: Arc::new(SlowPart {
                configuration: configuration.map(Result::unwrap),
                coordinators: Coordinators::parse("User|Coord Accounts\nbob|art\ndan|bio,art\n").unwrap(),
                ..SlowPart::default()
            }),
            notes: Vec::new(),
            computed: Computed::default(),
        }
    }

    fn policy(text: &str) -> VisibilityPolicy {
        VisibilityPolicy::of(&Document::parse("policy.toml", text, Some(Format::Toml)).unwrap()).unwrap()
    }

    #[test]
    fn private_data_and_the_policy_decide_whose_jobs_are_seen() {
        let (own, account, closed) = ("users = \"own\"", "users = \"account\"", "anonymous = \"none\"");
        let admins = "users = \"own\"\nadministrators = [\"zoe\"]";
        // PrivateData (? if it could not be read), policy, viewer, the jobs that are seen.
        let table: [(&str, &str, &str, &[u64]); 25] = [
            ("none", "", "", &[1, 2, 3]),
            ("none", "", "ann", &[1, 2, 3]),
            ("none", closed, "", &[]),
            ("none", closed, "ann", &[1, 2, 3]),
            ("none", own, "", &[]),
            ("none", own, "ann", &[1]),
            ("none", account, "ann", &[1, 2]),
            ("none", account, "cid", &[3]),
            ("none", account, "zoe", &[]),
            ("none", account, "", &[]),
            ("jobs", "", "", &[]),
            ("jobs", "", "ann", &[1]),
            ("jobs,usage", account, "ann", &[1]),
            ("usage", "", "ann", &[1, 2, 3]),
            ("jobs", "", "root", &[1, 2, 3]),
            ("jobs", "", "slurm", &[1, 2, 3]),
            ("jobs", admins, "zoe", &[1, 2, 3]),
            ("jobs", admins, "ann", &[1]),
            ("?", "", "ann", &[1]),
            ("jobs", "", "bob", &[1, 2]),
            ("jobs", "", "dan", &[1, 2, 3]),
            ("jobs", account, "bob", &[1, 2]),
            ("jobs", own, "bob", &[2]),
            ("none", own, "dan", &[]),
            ("?", "", "bob", &[1, 2]),
        ];
        for (private, rules, viewer, seen) in table {
            let snapshot = snapshot((private != "?").then_some(private));
            let who = if viewer.is_empty() { Viewer::Anonymous } else { Viewer::User(viewer.into()) };
            let sight = Sight::new(&who, &policy(rules), &snapshot);
            let found: Vec<u64> =
                snapshot.queue.jobs.iter().filter(|job| sight.sees_job(job)).map(|job| job.id).collect();
            assert_eq!(found, seen, "PrivateData {private}, policy {rules:?}, viewer {viewer:?}");
        }
    }

    #[test]
    fn usage_is_hidden_on_its_own() {
        let sight = |private: &str, viewer: Viewer| Sight::new(&viewer, &policy(""), &snapshot(Some(private)));
        let ann = || Viewer::User("ann".into());
        assert!(sight("jobs", ann()).sees_usage("bob", "art"));
        assert!(!sight("usage", ann()).sees_usage("bob", "art"));
        assert!(sight("usage", ann()).sees_usage("ann", "art"));
        let bob = || Viewer::User("bob".into());
        assert!(sight("usage", bob()).sees_usage("ann", "art") && !sight("usage", bob()).sees_usage("cid", "bio"));
        assert!(!sight("accounts", Viewer::Anonymous).sees_usage("ann", "art"));
        assert!(sight("none", Viewer::Anonymous).sees_all() && !sight("usage", ann()).sees_all());
        assert!(!sight("nodes", ann()).nodes && sight("jobs", ann()).nodes);
    }

    #[test]
    fn a_wrong_policy_file_is_reported_with_its_place() {
        for (text, expected) in [
            ("users = \"everybody\"\n", "expected one of: own, account, all"),
            ("anonymous = \"own\"\n", "expected one of: none, all"),
            ("user = \"own\"\n", "unknown field"),
            ("administrators = \"ann\"\n", "expected a list"),
        ] {
            let document = Document::parse("policy.toml", text, Some(Format::Toml)).unwrap();
            let error = VisibilityPolicy::of(&document).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("policy.toml:1:"), "{error}");
        }
    }
}
