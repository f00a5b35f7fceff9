//! The socket for requests to the running agent.
//!
//! A request is a line with one word, an answer is one line.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The timeout for reading and writing.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Serves requests until it is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
}

impl ControlSocket {
    /// Starts to listen, and answers each word with the line that `handle` returns for it. Root may send requests, and the
    /// owner and group of the socket (mode 660).
    ///
    /// # Errors
    /// Returns an error if the socket cannot be created, or if another agent listens there. An abandoned socket is replaced.
    pub fn listen(path: &Path, handle: impl Fn(&str) -> String + Send + Sync + 'static) -> io::Result<ControlSocket> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another agent listens there"));
        }
        if path.exists() {
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
        let handle = Arc::new(handle);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let handle = Arc::clone(&handle);
                // Each on its own thread, so that a slow client does not delay others.
                thread::spawn(move || answer(&stream, &*handle));
            }
        });
        Ok(ControlSocket { path: path.to_owned() })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn answer(mut stream: &UnixStream, handle: &dyn Fn(&str) -> String) {
    let _ = stream.set_read_timeout(Some(TIMEOUT));
    let _ = stream.set_write_timeout(Some(TIMEOUT));
    let mut word = String::new();
    if io::Read::take(BufReader::new(stream), 64).read_line(&mut word).is_ok() {
        let text = handle(word.trim());
        let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.write_all(b"\n"));
    }
}

/// Sends a request to the agent that listens at this socket, and returns its answer.
///
/// # Errors
/// Returns an error if no agent listens there, or if the answer does not arrive within five seconds.
pub fn request(path: &Path, word: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    // In one write: the agent may answer and close before a second one.
    stream.write_all(format!("{word}\n").as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_answered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/agent.sock");
        let socket = ControlSocket::listen(&path, |word| format!("{word}!")).unwrap();
        assert_eq!(request(&path, "status").unwrap(), "status!\n");
        assert_eq!(request(&path, &"x".repeat(60)).unwrap(), format!("{}!\n", "x".repeat(60)));
        assert_eq!(ControlSocket::listen(&path, str::to_owned).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());
        // A socket that a crash left behind.
        drop(UnixListener::bind(&path).unwrap());
        ControlSocket::listen(&path, str::to_owned).unwrap();
    }
}
