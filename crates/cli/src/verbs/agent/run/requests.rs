//! Requests to the loop of the agent, which it handles between two updates.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use evenhand_agent::{Agent, EXIT_LIMIT, Released, Status};

use super::{released_sentence, since_1970};

/// The answer to a reload: the file that was read, or why the agent goes on as it was.
pub(super) type Reloading = Result<String, String>;

/// Request that the loop handles between two updates.
pub(super) enum Request {
    /// Exit.
    End,
    /// Restore everything and exit; the answer is the result.
    Release(Sender<Released>),
    /// Read the configuration again.
    Reload(Sender<Reloading>),
    /// Return the status.
    Status(Sender<Status>),
}

/// Time for which a client waits for an answer while an update is running.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);
/// As [`ANSWER_TIMEOUT`], for a release or a reload: the end of the update that is running, and the restoration.
const RELEASE_TIMEOUT: Duration = EXIT_LIMIT.saturating_add(Duration::from_secs(2));

/// Reason why the wait between two updates ended.
pub(super) enum WaitOutcome {
    Update,
    End,
    Release(Sender<Released>),
    Reload(Sender<Reloading>),
}

/// Waits until the next update is due; answers status requests meanwhile.
pub(super) fn wait_for_next_update(requests: &Receiver<Request>, agent: &Agent, until: Instant) -> WaitOutcome {
    loop {
        match requests.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Request::Status(answer)) => _ = answer.send(agent.status(since_1970())),
            Ok(Request::Release(answer)) => return WaitOutcome::Release(answer),
            Ok(Request::Reload(answer)) => return WaitOutcome::Reload(answer),
            Ok(Request::End) | Err(RecvTimeoutError::Disconnected) => return WaitOutcome::End,
            Err(RecvTimeoutError::Timeout) => return WaitOutcome::Update,
        }
    }
}

/// Sends a request to the loop, and waits for the answer for a limited time.
pub(super) fn request_answer<T>(requests: &Sender<Request>, request: impl FnOnce(Sender<T>) -> Request) -> Option<T> {
    answer_within(ANSWER_TIMEOUT, requests, request)
}

fn answer_within<T>(
    limit: Duration,
    requests: &Sender<Request>,
    request: impl FnOnce(Sender<T>) -> Request,
) -> Option<T> {
    let (answer, answered) = channel();
    requests.send(request(answer)).ok()?;
    answered.recv_timeout(limit).ok()
}

/// Answers a word that a client wrote to the control socket.
pub(super) fn answer(requests: &Sender<Request>, word: &str) -> String {
    let late = || "{\"error\":\"the agent is busy or ending\"}".to_owned();
    match word {
        "status" => {
            let status = request_answer(requests, Request::Status).map(|status| serde_json::to_string(&status));
            status.and_then(Result::ok).unwrap_or_else(late)
        }
        "release" => match answer_within(RELEASE_TIMEOUT, requests, Request::Release) {
            Some(released) if released.failed.is_empty() => released_sentence(&released),
            Some(released) => serde_json::json!({ "failed": released_sentence(&released) }).to_string(),
            None => late(),
        },
        "reload" => match answer_within(RELEASE_TIMEOUT, requests, Request::Reload) {
            Some(Ok(file)) => serde_json::json!({ "reloading": file }).to_string(),
            Some(Err(error)) => serde_json::json!({ "error": error }).to_string(),
            None => late(),
        },
        other => {
            let error = format!("found {other:?}, expected status, reload or release");
            serde_json::json!({ "error": error }).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_release_tells_failures_apart() {
        let answered = |failed: Vec<String>| {
            let (sender, requests) = channel();
            let agent = std::thread::spawn(move || {
                let Ok(Request::Release(answer)) = requests.recv() else { return };
                let _ = answer.send(Released { groups: 2, failed, ..Released::default() });
            });
            let text = answer(&sender, "release");
            agent.join().unwrap();
            text
        };
        assert_eq!(answered(Vec::new()), "2 groups have their old values again.");
        let failed = answered(vec!["no bus".into()]);
        assert_eq!(failed, r#"{"failed":"2 groups have their old values again. no bus."}"#);
        assert!(RELEASE_TIMEOUT > EXIT_LIMIT);
    }
}
