//! The file at which a process listens: made in place of one that was left behind, removed at the end, and connected to with a
//! limit.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// The time in which a listener that is in the way takes a connection. A busy one keeps its socket.
const PROBE_TIME: Duration = Duration::from_millis(100);

/// The file of a listening socket, which is removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// The device and number of the file, so that no other one is removed.
    identity: (u64, u64),
}

impl SocketFile {
    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|now| (now.dev(), now.ino()) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens at a path, with these permissions of the file. A socket at which nobody listens any more is replaced.
///
/// # Errors
/// Returns an error if the socket cannot be created; and if a process listens there, something other than a socket is
/// there, or it cannot be found out whether anybody listens: then what is there is kept.
pub fn listen(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    remove_abandoned(path)?;
    let listener = UnixListener::bind(path)?;
    let made = fs::symlink_metadata(path)?;
    let file = SocketFile { path: path.to_owned(), identity: (made.dev(), made.ino()) };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok((listener, file))
}

/// Removes a socket at which nobody listens.
fn remove_abandoned(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let kept = |kind, problem: String| Err(io::Error::new(kind, problem));
    if !found.is_socket() {
        let problem = "found something other than a socket, which is kept; expected a path for a new socket";
        return kept(ErrorKind::AlreadyExists, problem.into());
    }
    match connect(path, PROBE_TIME) {
        // Another process may have removed it meanwhile.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
        Ok(_) => kept(ErrorKind::AddrInUse, "another process listens there".into()),
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            kept(ErrorKind::AddrInUse, "another process listens there, and does not answer".into())
        }
        Err(error) => {
            let problem = format!(
                "found a socket, which is kept, since it is not known whether a process listens there ({error}); expected a \
                 path for a new socket, or one at which nobody listens"
            );
            kept(error.kind(), problem)
        }
    }
}

/// Connects to a Unix socket. A blocking connect would wait without a limit for a process that listens and does not accept,
/// such as a stopped one.
///
/// # Errors
/// Returns the system's error, or [`ErrorKind::TimedOut`] after this time.
pub fn connect(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let deadline = Instant::now() + limit;
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            // The queue of the socket is full (unix(7)).
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
            Err(Errno::AGAIN | Errno::INTR) => return Err(io::Error::new(ErrorKind::TimedOut, "no answer in time")),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    fn kind(path: &Path) -> ErrorKind {
        listen(path, 0o600).unwrap_err().kind()
    }

    #[test]
    fn only_a_socket_at_which_nobody_listens_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (listener, file) = listen(&path, 0o660).unwrap();
        assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o660);
        assert_eq!(kind(&path), ErrorKind::AddrInUse);
        drop(file);
        assert!(!path.exists());
        drop(listener);
        // A crash left it behind.
        drop(UnixListener::bind(&path).unwrap());
        drop(listen(&path, 0o600).unwrap());
        // It is a socket, and a process reads from it.
        let datagrams = UnixDatagram::bind(&path).unwrap();
        let error = listen(&path, 0o600).unwrap_err().to_string();
        assert!(error.contains("which is kept") && error.contains("at which nobody listens"), "{error}");
        assert!(path.exists());
        drop((datagrams, fs::remove_file(&path)));
        fs::write(&path, "data").unwrap();
        assert_eq!(kind(&path), ErrorKind::AlreadyExists);
        // A link is not followed to what it names.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(kind(&link), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "data");
    }

    #[test]
    fn a_process_that_listens_and_does_not_accept_keeps_its_socket_and_delays_nobody_without_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _stopped = UnixListener::bind(&path).unwrap();
        // Until its queue is full.
        let mut waiting = Vec::new();
        while let Ok(stream) = connect(&path, Duration::from_millis(20)) {
            waiting.push(stream);
        }
        assert!(!waiting.is_empty());
        assert_eq!(kind(&path), ErrorKind::AddrInUse);
        assert_eq!(connect(&path, Duration::from_millis(20)).unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(path.exists());
    }

    #[test]
    fn only_the_own_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (_listener, file) = listen(&path, 0o600).unwrap();
        // Somebody replaced it meanwhile.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "other").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "other");
    }
}
