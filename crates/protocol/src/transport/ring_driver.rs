//! Runs the ring over sealed connections.

use std::sync::Arc;
use std::time::Duration;

use crate::exchange::ring::{Input, Message, Output, Ring};
use tokio::sync::mpsc;

use crate::transport::exchange_thread::Shared;
use crate::transport::sealed_connections::{ReceivedMessage, SealedConnections};

const MESSAGE: u8 = 10;

pub(crate) async fn run(
    link: SealedConnections,
    mut received: mpsc::Receiver<ReceivedMessage>,
    shared: &Arc<Shared<Ring>>,
) {
    loop {
        let due = shared.lock().next_tick();
        // At least a millisecond from now, in case an overdue timer has no effect.
        let due = due.max(shared.now() + Duration::from_millis(1)).min(shared.now() + Duration::from_secs(3600));
        let input = tokio::select! {
            message = received.recv() => match message {
                None => return,
                Some(ReceivedMessage { from, kind: MESSAGE, bytes, .. }) => match Message::decode(&bytes) {
                    Ok(message) => Input::Message { from: from.to_string(), message },
                    Err(_) => continue,
                },
                Some(_) => continue,
            },
            () = tokio::time::sleep_until((shared.begun() + due).into()) => Input::Tick,
        };
        let outputs = shared.lock().step(shared.now(), input);
        for output in outputs {
            if let Output::Send { to, message } = output
                && let Ok(to) = to.parse()
            {
                link.send(to, MESSAGE, &message.encode());
            }
        }
    }
}
