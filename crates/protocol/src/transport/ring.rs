//! The ring over sealed connections.

use std::sync::Arc;
use std::time::Duration;

use crate::exchange::ring::{Input, Message, Output, Ring};
use tokio::sync::mpsc;

use crate::transport::link::{Link, Received};
use crate::transport::running::Shared;

const MESSAGE: u8 = 10;

pub(crate) async fn run(link: Link, mut received: mpsc::Receiver<Received>, shared: &Arc<Shared<Ring>>) {
    loop {
        let due = shared.lock().next_tick();
        // No earlier than a moment from now, should there be something that is due and does not get done.
        let due = due.max(shared.now() + Duration::from_millis(1)).min(shared.now() + Duration::from_secs(3600));
        let input = tokio::select! {
            message = received.recv() => match message {
                None => return,
                Some(Received { from, kind: MESSAGE, bytes }) => match Message::decode(&bytes) {
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
