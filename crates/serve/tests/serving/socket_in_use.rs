//! A socket at which another process listens.

use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenhand_model::Span;
use evenhand_serve::{Listen, Progress, Readers, ServeError, SlurmSite, Stop, serve};
use evenhand_slurm::RecordedOutput;
use evenhand_unix_http::connect;

use super::{clock, options};

#[test]
fn a_socket_whose_process_accepts_nothing_is_kept_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _stopped = UnixListener::bind(&path).unwrap();
    // Until its queue is full.
    let mut waiting = Vec::new();
    while let Ok(stream) = connect(&path, Duration::from_millis(20)) {
        waiting.push(stream);
    }
    let site = Box::new(SlurmSite::new(Box::new(RecordedOutput::default()), Span::ZERO));
    let readers = Readers { site, agent: None };
    let begin = Instant::now();
    let options = options(Listen::Unix(path.clone()));
    let progress = Progress::default();
    let ended = serve(options, Arc::default(), readers, clock, &Stop::default(), |_| (), (&progress, &|| ()));
    let error = ended.unwrap_err();
    assert!(matches!(error, ServeError::Listen(_)) && error.is_environment(), "{error:?}");
    assert!(error.to_string().contains("another process listens there"), "{error}");
    assert!(path.exists() && begin.elapsed() < Duration::from_secs(5));
}
