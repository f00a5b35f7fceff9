//! A Unix stream as `hyper` reads and writes it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

const BUFFER: usize = 64 << 10;

/// A connection whose daemon may respond and close without reading the request, as those do that reject a user by the
/// credentials of the socket (rest_auth/local of slurmrestd). So that the response is read all the same, reading waits
/// until the request is written, and a request that the daemon does not take any more counts as written.
pub(crate) struct Stream {
    stream: UnixStream,
    buffer: Box<[u8]>,
    written: bool,
    reader: Option<Waker>,
}

impl Stream {
    pub(crate) fn new(stream: UnixStream) -> Stream {
        Stream { stream, buffer: vec![0; BUFFER].into(), written: false, reader: None }
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.written {
            this.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let length = cursor.remaining().min(BUFFER);
        let mut buffer = ReadBuf::new(&mut this.buffer[..length]);
        ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer))?;
        cursor.put_slice(buffer.filled());
        Poll::Ready(Ok(()))
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = match ready!(Pin::new(&mut self.stream).poll_write(context, bytes)) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => bytes.len(),
            result => result?,
        };
        self.written = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
