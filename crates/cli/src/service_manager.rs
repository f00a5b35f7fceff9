//! Notifications to the service manager: `Type=notify` and `WatchdogSec=` of systemd's units, by the protocol of
//! sd_notify(3), which is a datagram with lines of text.
//!
//! A service notifies from the loop that does its work, never from a thread of its own: a loop that hangs is silent, and
//! systemd starts the service again. Nothing is sent, and nothing fails, where no manager asks for it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The connection to the service manager, if there is one.
#[derive(Debug, Default)]
pub(crate) struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// The time without a notification after which the manager restarts the service, as it was configured.
    watchdog: Option<Duration>,
    /// Whether the last notification of the state was "ready".
    is_ready: AtomicBool,
}

impl ServiceManager {
    /// Connects to the manager that the environment names.
    pub(crate) fn of_process() -> ServiceManager {
        let of = |name: &str| std::env::var_os(name);
        let is_meant = of("WATCHDOG_PID").is_none_or(|process| process == *std::process::id().to_string());
        ServiceManager::connect(of("NOTIFY_SOCKET"), of("WATCHDOG_USEC").filter(|_| is_meant))
    }

    fn connect(socket: Option<OsString>, watchdog_usec: Option<OsString>) -> ServiceManager {
        let connected = socket.and_then(|name| Some((UnixDatagram::unbound().ok()?, address(&name).ok()?)));
        let microseconds = watchdog_usec.and_then(|text| text.to_str()?.parse().ok());
        ServiceManager {
            socket: connected,
            watchdog: microseconds.map(Duration::from_micros),
            is_ready: AtomicBool::new(false),
        }
    }

    /// Reports that the service works: the loop has made a pass. The first time after a start or a reload this says that
    /// it is ready, and makes the manager wait for at least `silence` from one report to the next, where its unit says
    /// less: the interval of the loop is the configuration's.
    pub(crate) fn passed(&self, silence: Duration) {
        if self.is_ready.swap(true, Ordering::Relaxed) {
            return self.send("WATCHDOG=1\n");
        }
        match self.watchdog.filter(|limit| *limit < silence) {
            Some(_) => self.send(&format!("READY=1\nWATCHDOG_USEC={}\nWATCHDOG=1\n", silence.as_micros())),
            None => self.send("READY=1\nWATCHDOG=1\n"),
        }
    }

    /// Reports that a part of a pass is done, such as a command that has ended.
    #[cfg(feature = "slurm")]
    pub(crate) fn progressed(&self) {
        if self.is_ready.load(Ordering::Relaxed) {
            self.send("WATCHDOG=1\n");
        }
    }

    /// Reports that the service reads its configuration again; the next pass ends that.
    #[cfg(feature = "agent")]
    pub(crate) fn reloading(&self) {
        self.is_ready.store(false, Ordering::Relaxed);
        self.send("RELOADING=1\nWATCHDOG=1\n");
    }

    /// Reports that the service ends.
    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1\n");
    }

    /// A manager that does not listen does not stop a service.
    fn send(&self, message: &str) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(message.as_bytes(), address);
        }
    }
}

fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(Path::new(socket)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manager whose watchdog has this limit, and a function that returns the next notification.
    fn manager(folder: &Path, watchdog_usec: Option<&str>) -> (ServiceManager, impl Fn() -> String) {
        let path = folder.join("notify");
        let listening = UnixDatagram::bind(&path).unwrap();
        listening.set_nonblocking(true).unwrap();
        let manager = ServiceManager::connect(Some(path.into()), watchdog_usec.map(OsString::from));
        let next = move || {
            let mut buffer = [0; 256];
            let read = listening.recv(&mut buffer).unwrap();
            String::from_utf8(buffer[..read].to_vec()).unwrap()
        };
        (manager, next)
    }

    #[test]
    fn the_first_pass_reports_that_the_service_is_ready_and_each_further_one_that_it_works() {
        let folder = tempfile::tempdir().unwrap();
        let (manager, next) = manager(folder.path(), Some("60000000"));
        manager.passed(Duration::from_secs(30));
        assert_eq!(next(), "READY=1\nWATCHDOG=1\n");
        manager.passed(Duration::from_secs(30));
        assert_eq!(next(), "WATCHDOG=1\n");
        manager.stopping();
        assert_eq!(next(), "STOPPING=1\n");
    }

    #[test]
    fn a_loop_with_a_longer_interval_than_the_unit_allows_asks_for_more_time() {
        let folder = tempfile::tempdir().unwrap();
        let (manager, next) = manager(folder.path(), Some("60000000"));
        manager.passed(Duration::from_secs(90));
        assert_eq!(next(), "READY=1\nWATCHDOG_USEC=90000000\nWATCHDOG=1\n");
        #[cfg(feature = "agent")]
        {
            manager.reloading();
            assert_eq!(next(), "RELOADING=1\nWATCHDOG=1\n");
            manager.passed(Duration::from_secs(45));
            assert_eq!(next(), "READY=1\nWATCHDOG=1\n");
        }
    }

    #[cfg(feature = "slurm")]
    #[test]
    fn parts_of_a_pass_count_only_after_the_first_pass() {
        let folder = tempfile::tempdir().unwrap();
        let (manager, next) = manager(folder.path(), None);
        manager.progressed();
        manager.passed(Duration::from_secs(90));
        assert_eq!(next(), "READY=1\nWATCHDOG=1\n");
        manager.progressed();
        assert_eq!(next(), "WATCHDOG=1\n");
    }

    #[test]
    fn without_a_manager_or_with_one_that_is_gone_nothing_fails() {
        ServiceManager::default().passed(Duration::from_secs(1));
        let folder = tempfile::tempdir().unwrap();
        let (manager, next) = manager(folder.path(), Some("no number"));
        drop(next);
        manager.passed(Duration::from_secs(1));
        manager.stopping();
        assert!(manager.watchdog.is_none());
    }
}
