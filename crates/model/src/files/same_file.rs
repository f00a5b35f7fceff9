//! Comparison of files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns whether both paths are the same regular file, under whatever names: symbolic links are followed, and hard links
/// are the same file. Files that do not exist, pipes and devices are not.
///
/// ```
/// use evenhand_model::files::is_same_file;
/// let dir = tempfile::tempdir()?;
/// let (a, b, c) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("c"));
/// std::fs::write(&a, "")?;
/// std::os::unix::fs::symlink(&a, &b)?;
/// std::fs::hard_link(&a, &c)?;
/// assert!(is_same_file(&a, &b) && is_same_file(&b, &c));
/// std::fs::remove_file(&c)?;
/// assert!(!is_same_file(&a, &c) && !is_same_file(&c, &c));
/// # std::io::Result::Ok(())
/// ```
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    let file = |path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|found| (found.dev(), found.ino()));
    file(a).is_some_and(|a| file(b) == Some(a))
}
