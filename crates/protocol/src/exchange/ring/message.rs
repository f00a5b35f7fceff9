//! What members send each other.

use std::sync::Arc;

use crate::exchange::codec::{Reader, Writer};
use crate::exchange::{DecodeError, MOST_NODES};

use super::{Member, Sums, ViewId};

/// A message of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Collects a round and distributes the one before: one a node and interval.
    Token(Token),
    /// A token or an election has come.
    Ack {
        /// Of which view.
        view: ViewId,
        /// What has come.
        of: Of,
        /// To whom.
        from: String,
    },
    /// Chang and Roberts' election ("An improved algorithm for decentralized extrema-finding in circular
    /// configurations of processes", 1979): the least name among those who live.
    Election {
        /// Of which view a new leader is sought.
        view: ViewId,
        /// For whom it is.
        to: String,
        /// Who passed it on.
        from: Member,
        /// The least name so far.
        candidate: String,
        /// Who does not answer.
        suspects: Vec<String>,
    },
    /// A leader looks for nodes that are not in its view.
    Probe {
        /// Its view.
        view: ViewId,
        /// It.
        leader: Member,
    },
    /// There is a view, and it has a leader.
    Hint {
        /// Which.
        view: ViewId,
        /// Who.
        leader: Member,
        /// Who says so, and is in that view.
        from: Member,
    },
    /// Nodes that want to be in the view of whoever gets this.
    Join {
        /// Where they are now.
        view: ViewId,
        /// Who.
        members: Vec<Member>,
        /// How often it was passed on to somebody's leader.
        hops: u8,
    },
}

/// See [`Message::Token`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Of which view.
    pub view: ViewId,
    /// Which round of it.
    pub round: u64,
    /// For whom it is.
    pub to: String,
    /// The members, until a round of this view is complete.
    pub members: Option<Arc<Vec<Member>>>,
    /// What this round has so far.
    pub collect: Sums,
    /// What the round before has found.
    pub distribute: Option<Arc<Sums>>,
}

/// What is acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// The token of a round.
    Token(u64),
    /// The election of a candidate.
    Election(String),
}

impl Message {
    /// As bytes.
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
                    Of::Token(round) => {
                        out.byte(0);
                        out.number(*round);
                    }
                    Of::Election(candidate) => {
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

    /// From bytes of any origin; it never panics.
    ///
    /// # Errors
    /// If they are not a message of this version.
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
                let of = if flag(&mut from)? { Of::Election(from.text()?) } else { Of::Token(from.number()?) };
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
    let count = from.count("nodes", MOST_NODES)?;
    (0..count).map(|_| read_member(from)).collect()
}

fn names(out: &mut Writer, all: &[String]) {
    out.count(all.len());
    all.iter().for_each(|name| out.text(name));
}

fn read_names(from: &mut Reader<'_>) -> Result<Vec<String>, DecodeError> {
    let count = from.count("nodes", MOST_NODES)?;
    (0..count).map(|_| from.text()).collect()
}

fn flag(from: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match from.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(DecodeError::Kind(other)),
    }
}

fn sums(out: &mut Writer, sums: &Sums) {
    view(out, &sums.view);
    out.number(sums.round);
    out.number(sums.digest);
    out.number(sums.count);
    out.fixed(&sums.supply);
    out.fixed(&sums.largest);
    out.users(&sums.users);
    names(out, &sums.missing);
    out.count(sums.apart.len());
    for (name, digest) in &sums.apart {
        out.text(name);
        out.byte(u8::from(digest.is_some()));
        if let Some(digest) = digest {
            out.number(*digest);
        }
    }
}

fn read_sums(from: &mut Reader<'_>) -> Result<Sums, DecodeError> {
    let (view, round) = (read_view(from)?, from.number()?);
    let (digest, count, supply, largest) = (from.number()?, from.number()?, from.fixed()?, from.fixed()?);
    let (users, missing) = (from.users()?, read_names(from)?);
    let apart = (0..from.count("nodes", MOST_NODES)?)
        .map(|_| Ok((from.text()?, if flag(from)? { Some(from.number()?) } else { None })))
        .collect::<Result<_, DecodeError>>()?;
    Ok(Sums { view, round, digest, count, supply, largest, users, missing, apart })
}
