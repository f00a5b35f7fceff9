//! The installed rules, which classify the packets of groups.

use std::collections::BTreeSet;

use nix::errno::Errno;

use crate::traffic::nft::{self, Cgroup, Transaction};
use crate::traffic::socket::{Socket, failed};
use crate::traffic::{TrafficError, htb};

/// The maximum number of groups in a transaction: it is sent in one piece, which must fit the socket's buffer.
const MAX_GROUPS: usize = 256;

/// A group whose packets are to be classified, or no longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) path: &'a str,
    pub(crate) minor: u16,
    pub(crate) cgroup: Option<Cgroup>,
    pub(crate) devices: &'a [String],
}

/// The tables, and the socket that owns them.
#[derive(Debug)]
pub(crate) struct Rules {
    socket: Socket,
    installed: bool,
    /// The cgroup depths that have a map.
    levels: BTreeSet<u32>,
}

impl Rules {
    pub(crate) fn new(socket: Socket) -> Rules {
        Rules { socket, installed: false, levels: BTreeSet::new() }
    }

    pub(crate) fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    pub(crate) fn is_installed(&self) -> bool {
        self.installed
    }

    /// Records that the tables no longer exist.
    pub(crate) fn forget(&mut self) {
        self.installed = false;
        self.levels.clear();
    }

    /// Creates the tables if they do not exist.
    pub(crate) fn install(&mut self) -> Result<(), TrafficError> {
        if self.installed {
            return Ok(());
        }
        nft::check_owner(&mut self.socket)?;
        let mut transaction = Transaction::begin(&mut self.socket);
        transaction.make_tables(&mut self.socket);
        transaction.commit(&mut self.socket).map_err(failed("creating the tables of rules"))?;
        self.installed = true;
        Ok(())
    }

    /// Adds the rules of these groups. Returns for each whether it has its rules now, and calls `refused` for those
    /// that have not.
    pub(crate) fn add(&mut self, targets: &[Target<'_>], refused: &mut dyn FnMut(&str, Errno)) -> Vec<bool> {
        let mut made = Vec::with_capacity(targets.len());
        for some in targets.chunks(MAX_GROUPS) {
            if self.try_add(some).is_ok() {
                made.resize(made.len() + some.len(), true);
                continue;
            }
            // One of them made the whole transaction fail.
            for target in some {
                let result = self.try_add(std::slice::from_ref(target));
                made.push(result.is_ok());
                if let Err(errno) = result {
                    refused(target.path, errno);
                }
            }
        }
        made
    }

    fn try_add(&mut self, targets: &[Target<'_>]) -> nix::Result<()> {
        let socket = &mut self.socket;
        let mut levels = self.levels.clone();
        let mut transaction = Transaction::begin(socket);
        for cgroup in targets.iter().filter_map(|target| target.cgroup) {
            if levels.insert(cgroup.level) {
                transaction.make_level(socket, cgroup.level);
            }
        }
        if levels.len() > self.levels.len() {
            transaction.set_levels(socket, levels.iter().copied());
        }
        for target in targets {
            let class = htb::handle(target.minor);
            if let Some(cgroup) = target.cgroup {
                transaction.add_cgroup(socket, cgroup, class);
            }
            for device in target.devices {
                transaction.add_device(socket, device, class);
            }
        }
        transaction.commit(socket)?;
        self.levels = levels;
        Ok(())
    }

    /// Removes the rules of these groups. Rules that are already gone are not an error.
    pub(crate) fn remove(&mut self, targets: &[Target<'_>], refused: &mut dyn FnMut(&str, Errno)) {
        if !self.installed {
            return;
        }
        for some in targets.chunks(MAX_GROUPS) {
            let all = some.iter().map(|target| (target.cgroup, target.devices));
            if self.try_remove(all).is_ok() {
                continue;
            }
            // A chain disappeared with its device. The others are removed one by one.
            for target in some {
                let devices = target.devices.iter().map(|device| (None, std::slice::from_ref(device)));
                for piece in devices.chain([(target.cgroup, &[][..])]) {
                    match self.try_remove([piece].into_iter()) {
                        Ok(()) | Err(Errno::ENOENT) => {}
                        Err(errno) => refused(target.path, errno),
                    }
                }
            }
        }
    }

    fn try_remove<'a>(&mut self, pieces: impl Iterator<Item = (Option<Cgroup>, &'a [String])>) -> nix::Result<()> {
        let socket = &mut self.socket;
        let mut transaction = Transaction::begin(socket);
        for (cgroup, devices) in pieces {
            for device in devices {
                transaction.remove_device(socket, device);
            }
            if let Some(cgroup) = cgroup {
                transaction.remove_cgroup(socket, cgroup);
            }
        }
        transaction.commit(socket)
    }
}
