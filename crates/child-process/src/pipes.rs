//! The three pipes of a command, served by one thread without blocking.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

use crate::STDERR_LIMIT;

/// The size of one read.
const BUFFER: usize = 64 << 10;

pub(crate) struct Pipes<'a> {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// What has not been written to the command yet.
    input: &'a [u8],
    output: Vec<u8>,
    errors: Vec<u8>,
    output_limit: usize,
    buffer: Box<[u8]>,
}

impl<'a> Pipes<'a> {
    /// Takes the pipes of a command that was just started.
    pub(crate) fn of(child: &mut Child, input: &'a [u8], output_limit: usize) -> io::Result<Pipes<'a>> {
        let stdin = child.stdin.take();
        if let Some(stdin) = &stdin {
            // A pipe that can take some bytes would block on more; the others are read only when there is something.
            ioctl_fionbio(stdin, true)?;
        }
        Ok(Pipes {
            stdin: stdin.filter(|_| !input.is_empty()),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            input,
            output: Vec::new(),
            errors: Vec::new(),
            output_limit,
            buffer: vec![0; BUFFER].into(),
        })
    }

    /// Waits for at most `pause` until something can be read or written, and does that. Returns whether there was
    /// something.
    pub(crate) fn transfer(&mut self, pause: Duration) -> io::Result<bool> {
        let mut polled = Vec::with_capacity(3);
        polled.extend(self.stdin.as_ref().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT)));
        let reads_from = polled.len();
        polled.extend(self.stdout.as_ref().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)));
        polled.extend(self.stderr.as_ref().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)));
        let timeout = Timespec { tv_sec: pause.as_secs().cast_signed(), tv_nsec: pause.subsec_nanos().into() };
        match poll(&mut polled, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
        let mut reads = ready[reads_from..].iter();
        if reads_from == 1 && ready[0] {
            self.write();
        }
        if self.stdout.is_some() && reads.next() == Some(&true) {
            // One byte more than the limit shows that there is more.
            let space = (self.output_limit + 1).saturating_sub(self.output.len());
            read(&mut self.stdout, &mut self.buffer, &mut self.output, space)?;
        }
        if self.stderr.is_some() && reads.next() == Some(&true) {
            let space = STDERR_LIMIT.saturating_sub(self.errors.len());
            read(&mut self.stderr, &mut self.buffer, &mut self.errors, space)?;
        }
        Ok(ready.contains(&true))
    }

    /// Writes what the command takes now. A command that closes its input early needs no more of it; whether that is a
    /// failure, its exit status tells.
    fn write(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        match stdin.write(self.input) {
            Ok(written) => self.input = &self.input[written..],
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.input = &[],
        }
        if self.input.is_empty() {
            self.stdin = None;
        }
    }

    /// Returns whether the command's output and error are at their end.
    pub(crate) fn are_closed(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    pub(crate) fn is_too_large(&self) -> bool {
        self.output.len() > self.output_limit
    }

    /// Returns standard output and error.
    pub(crate) fn into_output(self) -> (Vec<u8>, Vec<u8>) {
        (self.output, self.errors)
    }
}

/// Reads what is in the pipe, keeps at most `space` bytes of it, and closes the pipe at its end.
fn read(pipe: &mut Option<impl Read>, buffer: &mut [u8], kept: &mut Vec<u8>, space: usize) -> io::Result<()> {
    let Some(open) = pipe else { return Ok(()) };
    match open.read(buffer) {
        Ok(0) => *pipe = None,
        Ok(count) => kept.extend_from_slice(&buffer[..count.min(space)]),
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        Err(error) => return Err(error),
    }
    Ok(())
}
