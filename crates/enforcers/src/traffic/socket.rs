//! Netlink sockets.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{self, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType};
use nix::sys::time::TimeVal;

use crate::traffic::TrafficError;
use crate::traffic::netlink::{self, Message, Messages};

/// Twice the size of a part of a dump.
const BUFFER: usize = 64 * 1024;
/// The receive timeout in seconds. Netlink answers at once; without a timeout a lost answer would block the agent
/// forever.
const TIMEOUT_S: i64 = 5;

/// The rejected messages of a transaction: their sequence numbers and the kernel's error numbers.
pub(crate) type Refusals = Vec<(u32, i32)>;

/// A netlink socket of one family, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Socket {
    descriptor: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
    /// Whether messages form transactions, of which the first message is the opening.
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
        socket::setsockopt(&descriptor, socket::sockopt::ReceiveTimeout, &TimeVal::new(TIMEOUT_S, 0))?;
        // A transaction is one piece, however many rules it has. Without the capability the default size remains.
        let _ = socket::setsockopt(&descriptor, socket::sockopt::SndBufForce, &(4 << 20));
        Ok(Socket { descriptor, sequence: 0, buffer: vec![0; BUFFER], transactions })
    }

    /// Returns a socket through which nothing can be sent.
    #[cfg(test)]
    pub(crate) fn unusable() -> Socket {
        let descriptor = std::fs::File::open("/dev/null").unwrap().into();
        Socket { descriptor, sequence: 0, buffer: vec![0; BUFFER], transactions: false }
    }

    /// Returns a socket whose other end is a thread that answers every piece of messages: with the messages that `answer`
    /// writes for it, and an acknowledgement of each message.
    #[cfg(test)]
    pub(crate) fn answered(
        transactions: bool,
        mut answer: impl FnMut(&[u8], &mut Messages) + Send + 'static,
    ) -> Socket {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (descriptor, kernel) = socket::socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
        socket::setsockopt(&descriptor, socket::sockopt::ReceiveTimeout, &TimeVal::new(TIMEOUT_S, 0)).unwrap();
        std::thread::spawn(move || {
            let mut buffer = vec![0; BUFFER];
            while let Ok(length @ 1..) = socket::recv(kernel.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                let mut out = Messages::default();
                answer(&buffer[..length], &mut out);
                for message in netlink::messages(&buffer[..length]) {
                    out.begin(netlink::ERROR, 0, message.sequence, &[0; 20]);
                }
                let _ = socket::send(kernel.as_raw_fd(), out.bytes(), MsgFlags::empty());
            }
        });
        Socket { descriptor, sequence: 0, buffer: vec![0; BUFFER], transactions }
    }

    /// Returns the netlink port: the number by which the kernel identifies the socket.
    pub(crate) fn port(&self) -> u32 {
        socket::getsockname::<NetlinkAddr>(self.descriptor.as_raw_fd()).map_or(0, |address| address.pid())
    }

    /// Returns the sequence number for the next message.
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
                // SO_RCVTIMEO ends in this error.
                Err(Errno::EAGAIN) => return Err(Errno::ETIMEDOUT),
                other => return other,
            }
        }
    }

    /// Sends messages with sequence numbers from `first` to `last`, of which the last is to be
    /// [acknowledged](Messages::acknowledged), and waits for the acknowledgement. Returns the messages that the
    /// kernel refused.
    pub(crate) fn transact(&mut self, messages: &Messages, first: u32, last: u32) -> nix::Result<Refusals> {
        self.send(messages)?;
        let span = last.wrapping_sub(first);
        let mut refused = Vec::new();
        loop {
            let length = self.receive()?;
            for message in netlink::messages(self.buffer.get(..length).unwrap_or(&[])) {
                // Skips answers to an earlier request that timed out.
                if message.kind != netlink::ERROR || message.sequence.wrapping_sub(first) > span {
                    continue;
                }
                let errno = netlink::number32(message.payload).map_or(0, |e| (e as i32).wrapping_neg());
                if errno != 0 {
                    refused.push((message.sequence, errno));
                }
                // A transaction that fails as a whole is answered with the sequence number of its opening only.
                let whole = self.transactions && errno != 0 && message.sequence == first;
                if message.sequence == last || whole {
                    return Ok(refused);
                }
            }
        }
    }

    /// Sends one request with the last sequence number, for a dump or [acknowledged](Messages::acknowledged), and
    /// calls `each` for every message of the answer.
    pub(crate) fn request(&mut self, request: &Messages, mut each: impl FnMut(&Message<'_>)) -> nix::Result<()> {
        self.send(request)?;
        loop {
            let length = self.receive()?;
            for message in netlink::messages(self.buffer.get(..length).unwrap_or(&[])) {
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    netlink::DONE => return Ok(()),
                    netlink::ERROR => {
                        let errno = netlink::number32(message.payload).map_or(0, |e| (e as i32).wrapping_neg());
                        return if errno == 0 { Ok(()) } else { Err(Errno::from_raw(errno)) };
                    }
                    _ => each(&message),
                }
            }
        }
    }
}

/// Returns a function that adds the failed request to an error.
pub(crate) fn failed(what: &'static str) -> impl FnOnce(Errno) -> TrafficError {
    move |errno| TrafficError::Netlink { what, source: io::Error::from(errno) }
}

/// As [`failed`], from the error number in an answer.
pub(crate) fn refused(what: &'static str, errno: i32) -> TrafficError {
    TrafficError::Netlink { what, source: io::Error::from_raw_os_error(errno) }
}
