//! What a node proves itself with: the shared key, and a certificate. Both are read again when their files change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

use crate::transport::shared_key::{KeyError, read_keys};
use crate::transport::tls::{Tls, TlsError, TlsFiles};

/// How often the files are examined.
const INTERVAL: Duration = Duration::from_secs(1);

/// What a node proves itself with.
#[derive(Clone)]
pub enum Credentials {
    /// A key in memory.
    Key([u8; 32]),
    /// Files.
    Files(CredentialFiles),
}

impl From<[u8; 32]> for Credentials {
    fn from(key: [u8; 32]) -> Credentials {
        Credentials::Key(key)
    }
}

/// Files of a shared key and of a certificate. They are examined every second; what they hold is used for all connections
/// from then on, and those that were made before are opened anew. Files that cannot be used leave the earlier ones in use.
#[derive(Clone)]
pub struct CredentialFiles {
    /// The file with the key, or several ([`read_keys`]).
    pub key: PathBuf,
    /// The files of the certificate; without them connections have no TLS.
    pub tls: Option<TlsFiles>,
    /// An additional check of each file before it is read again.
    pub check: fn(&Path) -> Result<(), String>,
}

/// Why credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The key cannot be used.
    #[error("{}: {source}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why.
        source: KeyError,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A file does not pass the additional check.
    #[error("{0}")]
    Check(String),
}

impl fmt::Debug for Credentials {
    /// Prints no key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credentials::Key(_) => f.write_str("Key(..)"),
            Credentials::Files(files) => f.debug_tuple("Files").field(&files.key).field(&files.tls).finish(),
        }
    }
}

/// Credentials in memory.
pub(crate) struct Loaded {
    /// The first one encrypts, all of them decrypt.
    pub(crate) keys: Vec<[u8; 32]>,
    pub(crate) tls: Option<Tls>,
    /// The files before they were read.
    stamps: Stamps,
}

/// What changes with the content of the files: their numbers, sizes and times of modification.
type Stamps = Vec<Option<(u64, u64, Option<SystemTime>)>>;

impl Credentials {
    pub(crate) fn load(&self, node: &str) -> Result<Loaded, CredentialError> {
        match self {
            Credentials::Key(key) => Ok(Loaded { keys: vec![*key], tls: None, stamps: Stamps::default() }),
            Credentials::Files(files) => files.load(node),
        }
    }
}

impl CredentialFiles {
    fn all(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.key.as_path()).chain(self.tls.iter().flat_map(TlsFiles::all))
    }

    /// Reads the files as a node of this name does when it starts, and uses them for nothing.
    ///
    /// # Errors
    /// Returns an error if the node could not start with them.
    pub fn check_usable(&self, node: &str) -> Result<(), CredentialError> {
        self.load(node).map(|_| ())
    }

    fn load(&self, node: &str) -> Result<Loaded, CredentialError> {
        let stamps = self.stamps();
        for path in self.all() {
            (self.check)(path).map_err(CredentialError::Check)?;
        }
        let key_error = |source| CredentialError::Key { path: self.key.clone(), source };
        let keys = read_keys(&self.key).map_err(key_error)?;
        let tls = self.tls.as_ref().map(|files| Tls::load(files, node)).transpose()?;
        Ok(Loaded { keys, tls, stamps })
    }

    fn stamps(&self) -> Stamps {
        use std::os::unix::fs::MetadataExt;
        let stamp = |path: &Path| {
            let found = std::fs::metadata(path).ok()?;
            Some((found.ino(), found.len(), found.modified().ok()))
        };
        self.all().map(stamp).collect()
    }
}

/// The present credentials, and why newer files are not in use.
pub(crate) struct CurrentCredentials {
    pub(crate) current: watch::Sender<Arc<Loaded>>,
    pub(crate) problem: Arc<Mutex<Option<String>>>,
}

impl CurrentCredentials {
    /// Reads the files again when they change; without files it never returns either.
    pub(crate) async fn follow(&self, credentials: &Credentials, node: &str) {
        let Credentials::Files(files) = credentials else { return std::future::pending().await };
        let mut failed = None;
        loop {
            let found = files.stamps();
            let is_used = self.current.borrow().stamps == found;
            // A file that comes later than the others makes another attempt.
            if !is_used && failed.as_ref() != Some(&found) {
                let loaded = files.load(node);
                let problem = loaded
                    .as_ref()
                    .err()
                    .map(|error| format!("the earlier key and certificate for other nodes stay in use: {error}"));
                *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
                match loaded {
                    Ok(loaded) => drop(self.current.send_replace(Arc::new(loaded))),
                    Err(_) => failed = Some(found),
                }
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}
