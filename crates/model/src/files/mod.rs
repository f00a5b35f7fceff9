//! Durable, atomic writes of files and folders.
//!
//! All results are written with these functions. A full disk, a crash, `kill -9` or a power failure leaves the old file
//! or the new one, never a part of it; when a function has returned, the new one survives a power failure.
//!
//! - A regular file is written beside its destination, synced, and renamed; then its folder is synced. It keeps the
//!   permissions of the file that it replaces, and as root also the owner.
//! - A symbolic link is followed, as `cp` does: its target is replaced and the link stays. A link without a target is
//!   an error.
//! - A pipe or a character device is written to as a stream and never replaced. Anything else that is not a regular
//!   file is an error.
//! - A folder of results has one process at a time that writes to it ([`FolderLock`]).
//! - Partial files that a killed process left in a folder are removed by the next that writes there.

mod destination;
mod folder;
mod folder_lock;
mod partial_file;
mod replace;
mod same_file;

use std::io;

pub use folder::{create_folder, sync_folder};
pub use folder_lock::FolderLock;
pub use replace::{replace_file, write_all_atomically, write_atomically};
pub use same_file::is_same_file;

/// Returns whether an error in reading a file is one of the path that was given, such as a missing file or a folder in place
/// of a file, and not of the environment.
pub fn is_error_of_input(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | IsADirectory | NotADirectory | InvalidInput)
}

/// Returns what to do about an error in reading a file, to append to its text; empty if there is no general remedy.
///
/// ```
/// let error = std::fs::read("none.toml").unwrap_err();
/// assert_eq!(evenhand_model::files::remedy_for_reading(&error), "; check the path");
/// ```
pub fn remedy_for_reading(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "; check the path",
        io::ErrorKind::IsADirectory => "; name a file, not a folder",
        io::ErrorKind::PermissionDenied => "; make it readable for this user",
        _ => "",
    }
}
