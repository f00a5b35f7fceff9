//! The messages of the ring, and their encoding.

use std::sync::Arc;

use crate::exchange::wire_format::{Reader, Writer};
use crate::exchange::{DecodeError, MAX_NODES};

use super::{Member, RoundSums, ViewId};

/// A message between members of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Collects a round and distributes the previous one: one message for each node and interval.
    Token(Token),
    /// Acknowledges a token or an election.
    Ack {
        /// The view of the acknowledged message.
        view: ViewId,
        /// The acknowledged message.
        of: Acknowledged,
        /// The name of the sender.
        from: String,
    },
    /// The election of Chang and Roberts ("An improved algorithm for decentralized extrema-finding in circular
    /// configurations of processes", 1979): the live member with the smallest name wins.
    Election {
        /// The view whose leader is replaced.
        view: ViewId,
        /// The name of the receiver.
        to: String,
        /// The member that forwarded it.
        from: Member,
        /// The smallest name so far.
        candidate: String,
        /// Members that do not acknowledge.
        suspects: Vec<String>,
    },
    /// A leader looks for nodes outside its view.
    Probe {
        /// Its view.
        view: ViewId,
        /// The leader.
        leader: Member,
    },
    /// Informs the receiver of a view.
    Hint {
        /// The view.
        view: ViewId,
        /// Its leader.
        leader: Member,
        /// The sender, a member of that view.
        from: Member,
    },
    /// Nodes request admission to the view of the receiver.
    Join {
        /// Their present view.
        view: ViewId,
        /// The nodes.
        members: Vec<Member>,
        /// How often the request was forwarded to a leader.
        hops: u8,
    },
}

/// The content of [`Message::Token`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The view.
    pub view: ViewId,
    /// The number of the round in this view.
    pub round: u64,
    /// The name of the receiver.
    pub to: String,
    /// The members, until a round of this view is complete.
    pub members: Option<Arc<Vec<Member>>>,
    /// The sums of this round so far.
    pub collect: RoundSums,
    /// The result of the previous round.
    pub distribute: Option<Arc<RoundSums>>,
}

/// The message that is acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// The token of this round.
    Token(u64),
    /// The election of this candidate.
    Election(String),
}

impl Message {
    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        match self {
            Message::Token(token) => {
                out.byte(0);
                view(&mut out, &token.view);
                out.number(token.round);
                out.text(&token.to);
                out.byte(u8::from(token.members.is_some()));
                if let Some(all) = &token.members {
                    members(&mut out, all);
                }
                sums(&mut out, &token.collect);
                out.byte(u8::from(token.distribute.is_some()));
                if let Some(found) = &token.distribute {
                    sums(&mut out, found);
                }
            }
            Message::Ack { view: id, of, from } => {
                out.byte(1);
                view(&mut out, id);
                match of {
                    Acknowledged::Token(round) => {
                        out.byte(0);
                        out.number(*round);
                    }
                    Acknowledged::Election(candidate) => {
                        out.byte(1);
                        out.text(candidate);
                    }
                }
                out.text(from);
            }
            Message::Election { view: id, to, from, candidate, suspects } => {
                out.byte(2);
                view(&mut out, id);
                out.text(to);
                member(&mut out, from);
                out.text(candidate);
                names(&mut out, suspects);
            }
            Message::Probe { view: id, leader } => {
                out.byte(3);
                view(&mut out, id);
                member(&mut out, leader);
            }
            Message::Hint { view: id, leader, from } => {
                out.byte(4);
                view(&mut out, id);
                member(&mut out, leader);
                member(&mut out, from);
            }
            Message::Join { view: id, members: all, hops } => {
                out.byte(5);
                view(&mut out, id);
                members(&mut out, all);
                out.byte(*hops);
            }
        }
        out.bytes
    }

    /// Decodes a message from bytes of any origin. It never panics.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a message of this version.
    pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
        let mut from = Reader::new(bytes)?;
        let message = match from.byte()? {
            0 => Message::Token(Token {
                view: read_view(&mut from)?,
                round: from.number()?,
                to: from.text()?,
                members: if flag(&mut from)? { Some(Arc::new(read_members(&mut from)?)) } else { None },
                collect: read_sums(&mut from)?,
                distribute: if flag(&mut from)? { Some(Arc::new(read_sums(&mut from)?)) } else { None },
            }),
            1 => {
                let view = read_view(&mut from)?;
                let of = if flag(&mut from)? {
                    Acknowledged::Election(from.text()?)
                } else {
                    Acknowledged::Token(from.number()?)
                };
                Message::Ack { view, of, from: from.text()? }
            }
            2 => Message::Election {
                view: read_view(&mut from)?,
                to: from.text()?,
                from: read_member(&mut from)?,
                candidate: from.text()?,
                suspects: read_names(&mut from)?,
            },
            3 => Message::Probe { view: read_view(&mut from)?, leader: read_member(&mut from)? },
            4 => Message::Hint {
                view: read_view(&mut from)?,
                leader: read_member(&mut from)?,
                from: read_member(&mut from)?,
            },
            5 => Message::Join { view: read_view(&mut from)?, members: read_members(&mut from)?, hops: from.byte()? },
            kind => return Err(DecodeError::Kind(kind)),
        };
        from.end()?;
        Ok(message)
    }
}

fn view(out: &mut Writer, id: &ViewId) {
    out.number(id.epoch);
    out.text(&id.leader);
    out.number(id.incarnation);
}

fn read_view(from: &mut Reader<'_>) -> Result<ViewId, DecodeError> {
    Ok(ViewId { epoch: from.number()?, leader: from.text()?, incarnation: from.number()? })
}

fn member(out: &mut Writer, member: &Member) {
    out.text(&member.node);
    out.number(member.incarnation);
    out.text(&member.address);
}

fn read_member(from: &mut Reader<'_>) -> Result<Member, DecodeError> {
    Ok(Member { node: from.text()?, incarnation: from.number()?, address: from.text()? })
}

fn members(out: &mut Writer, all: &[Member]) {
    out.count(all.len());
    all.iter().for_each(|one| member(out, one));
}

fn read_members(from: &mut Reader<'_>) -> Result<Vec<Member>, DecodeError> {
    let count = from.count("nodes", MAX_NODES)?;
    (0..count).map(|_| read_member(from)).collect()
}

fn names(out: &mut Writer, all: &[String]) {
    out.count(all.len());
    all.iter().for_each(|name| out.text(name));
}

fn read_names(from: &mut Reader<'_>) -> Result<Vec<String>, DecodeError> {
    let count = from.count("nodes", MAX_NODES)?;
    (0..count).map(|_| from.text()).collect()
}

fn flag(from: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match from.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(DecodeError::Kind(other)),
    }
}

fn sums(out: &mut Writer, sums: &RoundSums) {
    view(out, &sums.view);
    out.number(sums.round);
    out.number(sums.digest);
    out.number(sums.count);
    out.fixed(&sums.supply);
    out.fixed(&sums.largest);
    out.users(&sums.users);
    names(out, &sums.missing);
    out.count(sums.excluded.len());
    for (name, digest) in &sums.excluded {
        out.text(name);
        out.byte(u8::from(digest.is_some()));
        if let Some(digest) = digest {
            out.number(*digest);
        }
    }
}

fn read_sums(from: &mut Reader<'_>) -> Result<RoundSums, DecodeError> {
    let (view, round) = (read_view(from)?, from.number()?);
    let (digest, count, supply, largest) = (from.number()?, from.number()?, from.fixed()?, from.fixed()?);
    let (users, missing) = (from.users()?, read_names(from)?);
    let excluded = (0..from.count("nodes", MAX_NODES)?)
        .map(|_| Ok((from.text()?, if flag(from)? { Some(from.number()?) } else { None })))
        .collect::<Result<_, DecodeError>>()?;
    Ok(RoundSums { view, round, digest, count, supply, largest, users, missing, excluded })
}
