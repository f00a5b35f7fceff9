//! Paths of groups, names of units, and escaped names.

use std::io;
use std::path::Path;

use evenhand_enforcers::cgroups::{Hierarchies, KernelError, ListedGroup};

use crate::discovery::DiscoveryError;

/// Returns the last component.
pub(crate) fn last(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, last)| last)
}

/// Lists the children of `parent`: none if it does not exist, or if it disappears while it is listed.
pub(crate) fn children(hierarchies: &Hierarchies, parent: &str) -> Result<Vec<ListedGroup>, DiscoveryError> {
    // The kernel's error for a file or directory whose group no longer exists.
    let gone = |error: &io::Error| error.raw_os_error() == Some(nix::libc::ENODEV);
    match hierarchies.children(parent) {
        Err(KernelError::Gone(_)) => Ok(Vec::new()),
        Err(KernelError::Io { source, .. }) if gone(&source) => Ok(Vec::new()),
        other => Ok(other?),
    }
}

/// Returns the unit of the system's manager that a group is, judging by its name.
///
/// Groups within a service or scope are not units: they were delegated to its processes, for example to a user's own
/// manager or to a container.
pub(crate) fn unit_of(path: &str) -> Option<String> {
    let is = |part: &str, endings: &[&str]| endings.iter().any(|e| part.len() > e.len() && part.ends_with(e));
    let (within, last) = path.rsplit_once('/').unwrap_or(("", path));
    if within.split('/').any(|part| is(part, &[".service", ".scope"])) || !is(last, &[".slice", ".scope", ".service"]) {
        return None;
    }
    // systemd puts `_` before names that could be those of kernel files.
    Some(last.strip_prefix('_').unwrap_or(last).to_owned())
}

/// Returns whether systemd runs here, by sd_booted(3).
pub(crate) fn systemd_runs() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// Removes systemd's escapes from a name: `a\x2db` is `a-b`.
pub(crate) fn unescaped(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, after @ ..] = rest {
        let code = match rest {
            [b'\\', b'x', high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &rest[4..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|d| u8::try_from(d).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_those_of_the_system_manager() {
        let unit = |path| unit_of(path);
        assert_eq!(unit("user.slice/user-1000.slice").as_deref(), Some("user-1000.slice"));
        assert_eq!(
            unit("machine.slice/machine-qemu\\x2d1\\x2da.scope").as_deref(),
            Some("machine-qemu\\x2d1\\x2da.scope")
        );
        assert_eq!(unit("system.slice/_cpu.service").as_deref(), Some("cpu.service"));
        assert_eq!(unit("user.slice/user-1.slice/user@1.service/user.slice/libpod-1.scope"), None);
        assert_eq!(unit("system.slice/slurmstepd.scope/job_1"), None);
        assert_eq!(unit("docker/abc"), None);
        assert_eq!(unit(".slice"), None);
    }

    #[test]
    fn escapes_are_removed_once() {
        assert_eq!(unescaped("qemu\\x2d1\\x2dweb"), "qemu-1-web");
        assert_eq!(unescaped("a\\x5cx2d"), "a\\x2d");
        assert_eq!(unescaped("\\x2"), "\\x2");
        assert_eq!(unescaped("\\xzz\\"), "\\xzz\\");
        assert_eq!(unescaped("\\xc3\\xa9"), "\u{e9}");
        assert_eq!(unescaped("\\xff"), "\u{fffd}");
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(text in "(\\\\x?[0-9a-f]{0,3}|.|\\.scope|/){0,12}") {
            let (plain, _) = (unescaped(&text), unit_of(&text));
            prop_assert!(plain.len() <= 3 * text.len());
            if !text.contains('\\') {
                prop_assert_eq!(plain, text);
            }
        }
    }
}
