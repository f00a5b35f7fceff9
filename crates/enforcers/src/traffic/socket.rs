//! A socket to the kernel.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{self, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType};
use nix::sys::time::TimeVal;

use crate::traffic::TrafficError;
use crate::traffic::wire::{self, Message, Messages};

/// As large as the kernel makes a part of a dump, twice.
const BUFFER: usize = 64 * 1024;
/// Netlink answers at once; without an end to waiting a lost answer would stop the agent for good.
const PATIENCE: i64 = 5;

/// Answers to messages that were sent: which message, and the kernel's error number, if not 0.
pub(crate) type Refusals = Vec<(u32, i32)>;

/// A netlink socket of one family, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Socket {
    descriptor: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
    /// Whether messages go in transactions, of which the first message is the opening.
    transactions: bool,
}

impl Socket {
    pub(crate) fn route() -> Result<Socket, TrafficError> {
        Socket::open(SockProtocol::NetlinkRoute, false)
            .map_err(failed("opening a socket to the kernel's network devices"))
    }

    pub(crate) fn filter() -> Result<Socket, TrafficError> {
        Socket::open(SockProtocol::NetlinkNetFilter, true)
            .map_err(failed("opening a socket to the kernel's packet filter"))
    }

    fn open(protocol: SockProtocol, transactions: bool) -> nix::Result<Socket> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let descriptor = socket::socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        socket::bind(descriptor.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        socket::setsockopt(&descriptor, socket::sockopt::ReceiveTimeout, &TimeVal::new(PATIENCE, 0))?;
        // A transaction is one piece, however many rules it has. Without the right to it the usual size remains.
        let _ = socket::setsockopt(&descriptor, socket::sockopt::SndBufForce, &(4 << 20));
        Ok(Socket { descriptor, sequence: 0, buffer: vec![0; BUFFER], transactions })
    }

    /// The number that the kernel knows the socket by.
    pub(crate) fn port(&self) -> u32 {
        socket::getsockname::<NetlinkAddr>(self.descriptor.as_raw_fd()).map_or(0, |address| address.pid())
    }

    /// A number for the next message.
    pub(crate) fn number(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    fn send(&self, messages: &Messages) -> nix::Result<()> {
        loop {
            match socket::send(self.descriptor.as_raw_fd(), messages.bytes(), MsgFlags::empty()) {
                Err(Errno::EINTR) => {}
                other => return other.map(drop),
            }
        }
    }

    fn receive(&mut self) -> nix::Result<usize> {
        loop {
            match socket::recv(self.descriptor.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Err(Errno::EINTR) => {}
                // SO_RCVTIMEO ends in this.
                Err(Errno::EAGAIN) => return Err(Errno::ETIMEDOUT),
                other => return other,
            }
        }
    }

    /// Sends messages with numbers from `first` to `last`, the last of them to be
    /// [acknowledged](Messages::acknowledged), and waits for that. The kernel speaks of the others only where it
    /// refuses: those are the answer.
    pub(crate) fn transact(&mut self, messages: &Messages, first: u32, last: u32) -> nix::Result<Refusals> {
        self.send(messages)?;
        let span = last.wrapping_sub(first);
        let mut refused = Vec::new();
        loop {
            let length = self.receive()?;
            for message in wire::messages(self.buffer.get(..length).unwrap_or(&[])) {
                // Answers to something given up on earlier.
                if message.kind != wire::ERROR || message.sequence.wrapping_sub(first) > span {
                    continue;
                }
                let errno = wire::number32(message.payload).map_or(0, |e| (e as i32).wrapping_neg());
                if errno != 0 {
                    refused.push((message.sequence, errno));
                }
                // A transaction that fails as a whole is answered in the name of its opening alone.
                let whole = self.transactions && errno != 0 && message.sequence == first;
                if message.sequence == last || whole {
                    return Ok(refused);
                }
            }
        }
    }

    /// Sends one request, numbered last, for a list or [acknowledged](Messages::acknowledged), and hands every
    /// message of the answer to `each`.
    pub(crate) fn ask(&mut self, request: &Messages, mut each: impl FnMut(&Message<'_>)) -> nix::Result<()> {
        self.send(request)?;
        loop {
            let length = self.receive()?;
            for message in wire::messages(self.buffer.get(..length).unwrap_or(&[])) {
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    wire::DONE => return Ok(()),
                    wire::ERROR => {
                        let errno = wire::number32(message.payload).map_or(0, |e| (e as i32).wrapping_neg());
                        return if errno == 0 { Ok(()) } else { Err(Errno::from_raw(errno)) };
                    }
                    _ => each(&message),
                }
            }
        }
    }
}

/// Says what was asked when the kernel refused.
pub(crate) fn failed(what: &'static str) -> impl FnOnce(Errno) -> TrafficError {
    move |errno| TrafficError::Netlink { what, source: io::Error::from(errno) }
}

/// The same, from the number in an answer.
pub(crate) fn refused(what: &'static str, errno: i32) -> TrafficError {
    TrafficError::Netlink { what, source: io::Error::from_raw_os_error(errno) }
}
