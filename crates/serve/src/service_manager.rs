//! Reports to the service manager (systemd's `Type=notify`) that the server answers.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Reports that the program is ready, if a service manager asked for it by `NOTIFY_SOCKET`.
///
/// # Errors
/// Returns an error if the socket does not take the message.
pub(crate) fn report_ready() -> io::Result<()> {
    match std::env::var_os("NOTIFY_SOCKET") {
        Some(socket) => send(socket.as_encoded_bytes(), b"READY=1\n"),
        None => Ok(()),
    }
}

fn send(socket: &[u8], message: &[u8]) -> io::Result<()> {
    let address = match socket.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::path::Path::new(
            <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(socket),
        ))?,
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_reaches_the_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str().as_encoded_bytes(), b"READY=1\n").unwrap();
        let mut buffer = [0; 32];
        let read = manager.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..read], b"READY=1\n");
        drop(manager);
        assert!(send(path.as_os_str().as_encoded_bytes(), b"READY=1\n").is_err());
    }
}
