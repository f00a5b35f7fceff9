//! Requests to the loop of the agent, which it handles between two updates.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use evenhand_agent::{Agent, Status};

use super::since_1970;

/// The answer to a reload: the file that was read, or why the agent goes on as it was.
pub(super) type Reloading = Result<String, String>;

/// Request that the loop handles between two updates.
pub(super) enum Request {
    /// Exit.
    End,
    /// Restore everything and exit; the answer describes the result.
    Release(Sender<String>),
    /// Read the configuration again.
    Reload(Sender<Reloading>),
    /// Return the status.
    Status(Sender<Status>),
}

/// Time for which a client waits for an answer while an update is running.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);

/// Reason why the wait between two updates ended.
pub(super) enum WaitOutcome {
    Update,
    End,
    Release(Sender<String>),
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
    let (answer, answered) = channel();
    requests.send(request(answer)).ok()?;
    answered.recv_timeout(ANSWER_TIMEOUT).ok()
}

/// Answers a word that a client wrote to the control socket.
pub(super) fn answer(requests: &Sender<Request>, word: &str) -> String {
    let late = || "{\"error\":\"the agent is busy or ending\"}".to_owned();
    match word {
        "status" => {
            let status = request_answer(requests, Request::Status).map(|status| serde_json::to_string(&status));
            status.and_then(Result::ok).unwrap_or_else(late)
        }
        "release" => request_answer(requests, Request::Release).unwrap_or_else(late),
        "reload" => match request_answer(requests, Request::Reload) {
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
