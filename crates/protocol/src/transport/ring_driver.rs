//! Runs the ring over sealed connections.

use std::net::SocketAddr;
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
                Some(ReceivedMessage { from, kind: MESSAGE, bytes, node, .. }) => match Message::decode(&bytes) {
                    Ok(message) => {
                        note_member(&link, &shared.lock(), &node, from);
                        Input::Message { from: from.to_string(), message }
                    }
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

/// Notes where the member of the view is that has the sender's name, if that is not where the sender is: a node outside the view
/// sends to some members only, which may receive nothing of the member.
fn note_member(link: &SealedConnections, ring: &Ring, sender: &str, from: SocketAddr) {
    let member = ring.view().member(sender).and_then(|member| member.address.parse().ok());
    if let Some(address) = member.filter(|address| *address != from) {
        link.note_name(sender, address);
    }
}
