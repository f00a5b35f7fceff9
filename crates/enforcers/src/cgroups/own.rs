//! Which groups are not to be touched.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::cgroups::{Hierarchies, KernelError};

/// The groups in which this process runs: not to be weighed, nor those around them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own(BTreeSet<String>);

impl Own {
    /// Of this process.
    ///
    /// # Errors
    /// If `/proc/self/cgroup` cannot be read.
    pub fn detect(hierarchies: &Hierarchies) -> Result<Own, KernelError> {
        let what = Path::new("/proc/self/cgroup");
        let text =
            fs::read_to_string(what).map_err(|source| KernelError::Io { what: what.display().to_string(), source })?;
        Ok(Own::from_text(&text, hierarchies))
    }

    /// From the text of a `/proc/PID/cgroup` (cgroups(7)). Hierarchies that are not used do not count.
    pub fn from_text(text: &str, hierarchies: &Hierarchies) -> Own {
        let paths = text.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let used = match controllers {
                "" => hierarchies.unified.is_some(),
                some => some.split(',').any(|c| hierarchies.legacy.contains_key(c)),
            };
            let path = path.trim_start_matches('/');
            (used && !path.is_empty()).then(|| path.to_owned())
        });
        Own(paths.collect())
    }

    /// Whether a group may be touched.
    ///
    /// # Errors
    /// [`KernelError::Path`] if that is no path of a group (empty, absolute, or with a part that is empty, `.`
    /// or `..`), [`KernelError::Own`] if this process runs in it or in a group below it.
    pub fn check(&self, path: &str) -> Result<(), KernelError> {
        check_path(path)?;
        let around = |own: &String| own.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if self.0.iter().any(around) { Err(KernelError::Own(path.to_owned())) } else { Ok(()) }
    }
}

/// Whether this can be the path of a group below a hierarchy's root.
pub(crate) fn check_path(path: &str) -> Result<(), KernelError> {
    let sound = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\0', '\n']);
    if path.split('/').all(sound) { Ok(()) } else { Err(KernelError::Path(path.to_owned())) }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_group_or_our_own_is_refused() {
        let mut hierarchies = Hierarchies { unified: Some(PathBuf::from("/u")), ..Hierarchies::default() };
        hierarchies.legacy.insert("cpu".into(), PathBuf::from("/c"));
        let text = "9:name=systemd:/s\n4:memory:/m\n2:cpu,cpuacct:/a/b:c\n0::/system.slice/agent.service\nnonsense\n";
        let own = Own::from_text(text, &hierarchies);
        for path in ["", "/", "/a", "a/", "a//b", "..", "a/../b", "./a", "a/.", "a\0"] {
            assert!(matches!(own.check(path), Err(KernelError::Path(_))), "{path:?}");
        }
        for path in ["a", "a/b:c", "system.slice", "system.slice/agent.service"] {
            assert!(matches!(own.check(path), Err(KernelError::Own(_))), "{path}");
        }
        for path in ["a/b", "a/b:c/d", "s", "m", "system.slice/agent", "..a", "machine.slice/qemu\\x2d1.scope"] {
            assert!(own.check(path).is_ok(), "{path}");
        }
    }

    proptest! {
        /// What passes stays below the root.
        #[test]
        fn nothing_leads_out(path in "[./a]{0,8}") {
            if Own::default().check(&path).is_ok() {
                let joined = Path::new("/root").join(&path);
                prop_assert!(joined != Path::new("/root") && joined.starts_with("/root"));
                prop_assert!(joined.components().all(|c| c != std::path::Component::ParentDir));
            }
        }
    }
}
