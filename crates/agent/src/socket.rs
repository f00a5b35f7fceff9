//! The socket at which a person asks the running agent.
//!
//! A request is a line with one word, an answer is a line.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long a slow reader is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers for as long as it is kept.
#[derive(Debug)]
pub struct Answers {
    path: PathBuf,
}

impl Answers {
    /// Listens from now on, and answers each word with what `of` makes of it: one line. Who may ask: root, and who may
    /// write to the socket (owner and group, mode 660).
    ///
    /// # Errors
    /// If the socket cannot be made. One that nobody listens at any more is replaced.
    pub fn listen(path: &Path, of: impl Fn(&str) -> String + Send + Sync + 'static) -> io::Result<Answers> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another agent answers there"));
        }
        if path.exists() {
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
        let of = Arc::new(of);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let of = Arc::clone(&of);
                // Who is slow keeps nobody else waiting.
                thread::spawn(move || answer(&stream, &*of));
            }
        });
        Ok(Answers { path: path.to_owned() })
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn answer(mut stream: &UnixStream, of: &dyn Fn(&str) -> String) {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let mut word = String::new();
    if io::Read::take(BufReader::new(stream), 64).read_line(&mut word).is_ok() {
        let text = of(word.trim());
        let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.write_all(b"\n"));
    }
}

/// Asks the agent that listens there.
///
/// # Errors
/// If nobody does, or the answer does not come in time.
pub fn ask(path: &Path, word: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // At once: who answers an odd word may be gone before a second part.
    stream.write_all(format!("{word}\n").as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_answered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/agent.sock");
        let answers = Answers::listen(&path, |word| format!("{word}!")).unwrap();
        assert_eq!(ask(&path, "status").unwrap(), "status!\n");
        assert_eq!(ask(&path, &"x".repeat(60)).unwrap(), format!("{}!\n", "x".repeat(60)));
        assert_eq!(Answers::listen(&path, str::to_owned).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(answers);
        assert!(!path.exists());
        // One that a crash left behind.
        drop(UnixListener::bind(&path).unwrap());
        Answers::listen(&path, str::to_owned).unwrap();
    }
}
