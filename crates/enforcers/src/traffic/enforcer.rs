//! The enforcer: one HTB class for each group, created when the group first gets a weight.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cgroups::{
    Change, Enforcer, Group, GroupId, Hierarchies, KernelError, Resource, SavedState, Targets, is_group_path,
};
use nix::errno::Errno;

use crate::traffic::class_numbers::ClassNumbers;
use crate::traffic::netlink::Messages;
use crate::traffic::nft::{self, Cgroup};
use crate::traffic::rules::{Rules, Target};
use crate::traffic::socket::{Socket, refused};

use crate::traffic::{NEUTRAL, Settings, TrafficError, TrafficMeter, htb, link, quantum};

/// The maximum number of messages in one send: the answers to as many rejections fit into a socket's default buffer.
const MAX_MESSAGES: usize = 128;

/// Divides what one device sends by giving each group an HTB class. See the [module's documentation](crate::traffic).
#[derive(Debug)]
pub struct TrafficEnforcer {
    settings: Settings,
    link: u64,
    unified: Option<PathBuf>,
    /// The queueing discipline at the device's root before this one, as text.
    previous_queue: String,
    index: u32,
    route: Socket,
    /// Whether our queueing discipline is installed, with the default class.
    queue: bool,
    rules: Rules,
    members: HashMap<GroupId, Member>,
    /// The members whose class is to be sent, in the order in which their targets changed.
    pending: Vec<GroupId>,
    removals: Vec<Removal>,
    minors: ClassNumbers,
    shared: Arc<Mutex<SharedClasses>>,
}

#[derive(Debug)]
struct Member {
    group: Group,
    minor: u16,
    cgroup: Option<Cgroup>,
    /// The quantum requested last; 0: none yet.
    wanted: u32,
    /// The quantum that the kernel has; `None`: it has no such class.
    written: Option<u32>,
    has_rules: bool,
    pending: bool,
}

/// The objects of a group that are to be removed.
#[derive(Debug)]
struct Removal {
    group: Group,
    minor: u16,
    cgroup: Option<Cgroup>,
    class: bool,
    rules: bool,
    /// Whether the class number is free afterwards.
    frees_number: bool,
}

impl Member {
    fn target(&self) -> Target<'_> {
        Target { path: &self.group.path, minor: self.minor, cgroup: self.cgroup, devices: &self.group.devices }
    }
}

impl Removal {
    fn target(&self) -> Target<'_> {
        Target { path: &self.group.path, minor: self.minor, cgroup: self.cgroup, devices: &self.group.devices }
    }
}

/// The classes that the meter reads.
#[derive(Debug, Default)]
pub(crate) struct SharedClasses {
    pub(crate) device: u32,
    pub(crate) classes: HashMap<GroupId, u16>,
}

/// Keeps the first of several errors, while the work continues.
#[derive(Default)]
struct FirstError(Option<KernelError>);

impl FirstError {
    fn note(&mut self, error: KernelError) {
        self.0.get_or_insert(error);
    }

    fn into_result(self) -> Result<(), KernelError> {
        self.0.map_or(Ok(()), Err)
    }
}

impl TrafficEnforcer {
    /// Opens a device and removes what an earlier process may have left there. The queueing discipline and the rules
    /// are created when the first group gets a weight.
    ///
    /// All sockets belong to the network namespace of the calling thread; speeds are read below `/sys`, which belongs
    /// to the namespace in which it was mounted.
    ///
    /// # Errors
    /// Returns an error if there is no such device, if its speed is unknown, if another program configured its
    /// queueing discipline ([`TrafficError::Foreign`]), or if another process of the agent is alive
    /// ([`TrafficError::Taken`]).
    pub fn open(settings: Settings, hierarchies: &Hierarchies) -> Result<TrafficEnforcer, TrafficError> {
        let (mut route, mut filter) = (Socket::route()?, Socket::filter()?);
        let index = link::index(&mut route, &settings.device)?;
        let link = settings.link_speed()?;
        remove_leftovers(&mut route, &mut filter, index)?;
        let found = htb::root(&mut route, index)?;
        refuse_foreign(&settings, found.as_ref())?;
        Ok(TrafficEnforcer {
            link,
            unified: hierarchies.unified.clone(),
            previous_queue: found.map_or_else(|| "none".into(), |queue| queue.to_string()),
            index,
            route,
            queue: false,
            rules: Rules::new(filter),
            members: HashMap::new(),
            pending: Vec::new(),
            removals: Vec::new(),
            minors: ClassNumbers::default(),
            shared: Arc::new(Mutex::new(SharedClasses { device: index, classes: HashMap::new() })),
            settings,
        })
    }

    /// Returns the speed of the link that is divided, in bytes per second.
    pub fn link(&self) -> u64 {
        self.link
    }

    /// Creates a meter that also counts what the classes have sent.
    ///
    /// # Errors
    /// Returns an error if no socket can be opened.
    pub fn meter(&self) -> Result<TrafficMeter, TrafficError> {
        TrafficMeter::of(Some(Arc::clone(&self.shared)))
    }

    /// Removes the queueing discipline and the rules; the kernel installs the device's own again. Targets applied
    /// later create them anew. Does nothing if nothing is installed.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    pub fn remove_all(&mut self) -> Result<(), TrafficError> {
        remove_leftovers(&mut self.route, self.rules.socket(), self.index)?;
        for removal in self.removals.drain(..).filter(|removal| removal.frees_number) {
            self.minors.free(removal.minor);
        }
        self.forget_rules();
        self.forget_queue();
        Ok(())
    }

    /// Removes what a dead process left on a device. Does nothing if it left nothing, or if the device no longer
    /// exists.
    ///
    /// # Errors
    /// Returns [`TrafficError::Taken`] if that process is alive, or an error if the kernel refuses.
    pub fn remove_leftovers(device: &str) -> Result<(), TrafficError> {
        let (mut route, mut filter) = (Socket::route()?, Socket::filter()?);
        match link::index(&mut route, device) {
            Ok(index) => remove_leftovers(&mut route, &mut filter, index),
            Err(TrafficError::NoDevice(_)) => remove_leftovers(&mut route, &mut filter, 0),
            Err(other) => Err(other),
        }
    }

    fn shared(&self) -> MutexGuard<'_, SharedClasses> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_rules(&mut self) {
        self.rules.forget();
        for member in self.members.values_mut() {
            member.has_rules = false;
        }
    }

    fn forget_queue(&mut self) {
        self.queue = false;
        self.shared().classes.clear();
        for member in self.members.values_mut() {
            member.written = None;
        }
    }

    /// Creates the tables and the queueing discipline if they do not exist.
    fn install(&mut self) -> Result<(), TrafficError> {
        // A new device may have the name.
        self.index = link::index(&mut self.route, &self.settings.device)?;
        self.shared().device = self.index;
        let found = htb::root(&mut self.route, self.index)?;
        refuse_foreign(&self.settings, found.as_ref())?;
        self.rules.install()?;
        let mut out = Messages::default();
        let first = self.route.number();
        // Replaces ours too, if another program removed classes from it.
        htb::make_queue(&mut out, first, self.index, found.is_some_and(|queue| !queue.is_default()));
        htb::make_top(&mut out, self.route.number(), self.index, self.link);
        let last = self.route.number();
        htb::set_class(&mut out, last, self.index, htb::DEFAULT, self.link, NEUTRAL, true);
        out.acknowledged();
        let what = "creating the queueing discipline of a device";
        let answers = self.route.transact(&out, first, last).map_err(crate::traffic::socket::failed(what))?;
        if let Some((_, errno)) = answers.first() {
            return Err(refused(what, *errno));
        }
        self.queue = true;
        Ok(())
    }

    /// Removes the objects of dismissed and restored groups.
    fn remove(&mut self, errors: &mut FirstError) {
        let removals = std::mem::take(&mut self.removals);
        let with_rules: Vec<Target<'_>> =
            removals.iter().filter(|removal| removal.rules).map(Removal::target).collect();
        self.rules.remove(&with_rules, &mut |path, errno| {
            errors.note(refused("removing a rule", errno as i32).into_kernel_error(path));
        });
        let with_class: Vec<&Removal> = removals.iter().filter(|removal| removal.class && self.queue).collect();
        for some in with_class.chunks(MAX_MESSAGES) {
            let (mut out, mut first) = (Messages::default(), 0);
            for (i, removal) in some.iter().enumerate() {
                let number = self.route.number();
                first = if i == 0 { number } else { first };
                htb::delete_class(&mut out, number, self.index, removal.minor);
            }
            out.acknowledged();
            match self.route.transact(&out, first, first.wrapping_add(some.len() as u32 - 1)) {
                Ok(answers) => {
                    for (number, errno) in answers.into_iter().filter(|(_, errno)| !is_absent(*errno)) {
                        let removal = some.get(number.wrapping_sub(first) as usize);
                        let path = removal.map_or("", |removal| removal.group.path.as_str());
                        errors.note(refused("removing a class", errno).into_kernel_error(path));
                    }
                }
                Err(errno) => {
                    errors.note(refused("removing classes", errno as i32).into_kernel_error(&self.settings.device));
                }
            }
        }
        for removal in removals.iter().filter(|removal| removal.frees_number) {
            self.minors.free(removal.minor);
        }
    }

    /// Sends the classes of `ids`, and the default class, by which the loss of the queueing discipline is noticed.
    /// Returns whether the queueing discipline still exists.
    fn send_classes(&mut self, ids: &[GroupId], errors: &mut FirstError) -> bool {
        let mut at = 0;
        loop {
            let some = &ids[at..ids.len().min(at + MAX_MESSAGES)];
            let mut out = Messages::default();
            let first = self.route.number();
            htb::set_class(&mut out, first, self.index, htb::DEFAULT, self.link, NEUTRAL, false);
            let mut sent = Vec::with_capacity(some.len());
            for id in some {
                let Some(member) = self.members.get(id) else { continue };
                let (number, make) = (self.route.number(), member.written.is_none());
                htb::set_class(&mut out, number, self.index, member.minor, self.link, member.wanted, make);
                sent.push(*id);
            }
            out.acknowledged();
            let answers = match self.route.transact(&out, first, first.wrapping_add(sent.len() as u32)) {
                Ok(answers) => answers,
                Err(errno) => {
                    errors.note(refused("changing classes", errno as i32).into_kernel_error(&self.settings.device));
                    return true;
                }
            };
            if answers.iter().any(|(number, errno)| *number == first && is_absent(*errno)) {
                return false;
            }
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            for (i, id) in sent.iter().enumerate() {
                let Some(member) = self.members.get_mut(id) else { continue };
                let number = first.wrapping_add(1 + i as u32);
                // The answers are in the order of the messages.
                match answers.binary_search_by_key(&number.wrapping_sub(first), |(n, _)| n.wrapping_sub(first)) {
                    Err(_) => {
                        member.written = Some(member.wanted);
                        shared.classes.insert(*id, member.minor);
                    }
                    Ok(at) => {
                        // The class is created again next time, if another program deleted it.
                        member.written = None;
                        shared.classes.remove(id);
                        errors.note(refused("changing a class", answers[at].1).into_kernel_error(&member.group.path));
                    }
                }
            }
            at += some.len();
            if at >= ids.len() {
                return true;
            }
        }
    }

    /// Creates the rules of the members that have a class and no rules yet.
    fn send_rules(&mut self, ids: &[GroupId], errors: &mut FirstError) {
        let without_rules = |id: &GroupId| {
            self.members.get(id).filter(|m| m.written.is_some() && !m.has_rules).map(|m| (*id, m.target()))
        };
        let (ids, targets): (Vec<GroupId>, Vec<Target<'_>>) = ids.iter().filter_map(without_rules).unzip();
        let made = self.rules.add(&targets, &mut |path, errno| {
            // The device or the group disappeared after it was admitted.
            let gone = matches!(errno, Errno::ENOENT | Errno::ENODEV);
            errors.note(match gone {
                true => KernelError::Gone(path.into()),
                false => refused("creating a rule", errno as i32).into_kernel_error(path),
            });
        });
        for (id, _) in ids.into_iter().zip(made).filter(|(_, made)| *made) {
            if let Some(member) = self.members.get_mut(&id) {
                member.has_rules = true;
            }
        }
    }
}

/// Returns the group of cgroup v2 as rules match it; `None` if it has none, so that its packets are known by its devices only.
///
/// # Errors
/// Returns an error if the path is none of a group, or if the group has neither: its packets cannot be classified.
pub(super) fn cgroup_of(group: &Group, unified: Option<&Path>) -> Result<Option<Cgroup>, KernelError> {
    let path = &group.path;
    if !is_group_path(path) {
        return Err(KernelError::InvalidPath(path.clone()));
    }
    // The inode number of the directory is the id of the group.
    let metadata = unified.and_then(|root| std::fs::metadata(root.join(path)).ok()).filter(std::fs::Metadata::is_dir);
    let cgroup = metadata.map(|m| Cgroup { level: path.split('/').count() as u32, id: m.ino() });
    // This is not an error of the group: other enforcers may divide its other resources.
    if cgroup.is_none() && group.devices.is_empty() {
        return Err(KernelError::Gone(path.clone()));
    }
    Ok(cgroup)
}

impl Enforcer for TrafficEnforcer {
    fn name(&self) -> &'static str {
        "htb"
    }

    fn resources(&self) -> &[Resource] {
        &[Resource::Network]
    }

    fn admit(&mut self, id: GroupId, group: &Group) -> Result<SavedState, KernelError> {
        Enforcer::dismiss(self, id);
        let cgroup = cgroup_of(group, self.unified.as_deref())?;
        for device in &group.devices {
            link::index(&mut self.route, device).map_err(|error| match error {
                TrafficError::NoDevice(name) => KernelError::Gone(name),
                other => other.into_kernel_error(&group.path),
            })?;
        }
        let minor = self.minors.take().map_err(|error| error.into_kernel_error(&group.path))?;
        let group = group.clone();
        let member = Member { group, minor, cgroup, wanted: 0, written: None, has_rules: false, pending: false };
        self.members.insert(id, member);
        let found = [("device", &self.settings.device), ("queue", &self.previous_queue)];
        Ok(SavedState(found.into_iter().map(|(k, v)| (k.to_owned(), v.clone())).collect()))
    }

    fn apply(&mut self, id: GroupId, targets: &Targets, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        let member = self.members.get_mut(&id).ok_or(KernelError::NotAdmitted(id))?;
        let Some(weight) = targets.network else { return Ok(()) };
        let value = quantum(weight);
        // A class without its rules is sent again, so that the rules are tried again.
        if member.wanted == value && (member.pending || (member.written == Some(value) && member.has_rules)) {
            return Ok(());
        }
        member.wanted = value;
        changes.push(Change { group: id, resource: Resource::Network, value: u64::from(value) });
        if !member.pending {
            member.pending = true;
            self.pending.push(id);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), KernelError> {
        let mut errors = FirstError::default();
        self.remove(&mut errors);
        let mut ids = std::mem::take(&mut self.pending);
        // Whatever fails from here on: a class that was not sent is queued again by the next call of `apply`.
        for id in &ids {
            if let Some(member) = self.members.get_mut(id) {
                member.pending = false;
            }
        }
        if !self.queue && ids.is_empty() {
            return errors.into_result();
        }
        if !(self.queue && self.send_classes(&ids, &mut errors)) {
            // It was not created yet, or another program removed it: all classes have to be created.
            if self.queue {
                self.forget_queue();
                ids = self.members.iter().filter(|(_, m)| m.wanted > 0).map(|(id, _)| *id).collect();
                ids.sort_unstable();
            }
            if let Err(error) = self.install() {
                errors.note(error.into_kernel_error(&self.settings.device));
                return errors.into_result();
            }
            if !self.send_classes(&ids, &mut errors) {
                // Another program removed it again: the next flush creates it anew.
                self.forget_queue();
                let error = refused("changing classes", Errno::ENOENT as i32);
                errors.note(error.into_kernel_error(&self.settings.device));
                return errors.into_result();
            }
        }
        self.send_rules(&ids, &mut errors);
        errors.into_result()
    }

    fn dismiss(&mut self, id: GroupId) {
        let Some(member) = self.members.remove(&id) else { return };
        self.shared().classes.remove(&id);
        self.pending.retain(|pending| *pending != id);
        let Member { group, minor, cgroup, written, has_rules: rules, .. } = member;
        if written.is_some() || rules {
            let class = written.is_some();
            self.removals.push(Removal { group, minor, cgroup, class, rules, frees_number: true });
        } else {
            self.minors.free(minor);
        }
    }

    fn restore(&mut self, group: &Group, saved: &SavedState) -> Result<(), KernelError> {
        let mut errors = FirstError::default();
        // An earlier process divided another device. Its rules have ended with it.
        if let Some(other) = saved.0.get("device").filter(|device| **device != self.settings.device)
            && let Err(error) = remove_queue_of(&mut self.route, other)
        {
            errors.note(error.into_kernel_error(&group.path));
        }
        let ids: Vec<GroupId> = self.members.iter().filter(|(_, m)| m.group == *group).map(|(id, _)| *id).collect();
        for id in ids {
            self.shared().classes.remove(&id);
            self.pending.retain(|pending| *pending != id);
            let Some(member) = self.members.get_mut(&id) else { continue };
            self.removals.push(Removal {
                group: member.group.clone(),
                minor: member.minor,
                cgroup: member.cgroup,
                class: member.written.take().is_some(),
                rules: std::mem::take(&mut member.has_rules),
                frees_number: false,
            });
            (member.wanted, member.pending) = (0, false);
        }
        self.remove(&mut errors);
        if (self.queue || self.rules.is_installed()) && self.members.values().all(|m| m.written.is_none()) {
            self.remove_all().map_err(|error| error.into_kernel_error(&self.settings.device))?;
        }
        errors.into_result()
    }
}

/// Returns whether the object does not exist, or its queueing discipline or device does not.
fn is_absent(errno: i32) -> bool {
    matches!(Errno::from_raw(errno), Errno::ENOENT | Errno::ENODEV | Errno::EINVAL)
}

fn refuse_foreign(settings: &Settings, found: Option<&htb::Queue>) -> Result<(), TrafficError> {
    match found {
        Some(queue) if !settings.force && !queue.is_default() && !queue.is_ours() => {
            Err(TrafficError::Foreign { device: settings.device.clone(), found: queue.to_string() })
        }
        _ => Ok(()),
    }
}

fn remove_leftovers(route: &mut Socket, filter: &mut Socket, index: u32) -> Result<(), TrafficError> {
    nft::check_owner(filter)?;
    nft::remove_tables(filter)?;
    // Index 0 is not a device.
    if index == 0 { Ok(()) } else { remove_queue(route, index) }
}

/// Removes our queueing discipline from a device of this name, if there is such a device.
fn remove_queue_of(route: &mut Socket, device: &str) -> Result<(), TrafficError> {
    match link::index(route, device) {
        Ok(index) => remove_queue(route, index),
        Err(TrafficError::NoDevice(_)) => Ok(()),
        Err(other) => Err(other),
    }
}

/// Removes our queueing discipline from a device.
fn remove_queue(route: &mut Socket, index: u32) -> Result<(), TrafficError> {
    if htb::root(route, index)?.is_some_and(|queue| queue.is_ours()) {
        let (mut out, number) = (Messages::default(), route.number());
        htb::delete_queue(&mut out, number, index);
        out.acknowledged();
        let what = "removing the queueing discipline of a device";
        let answers = route.transact(&out, number, number).map_err(crate::traffic::socket::failed(what))?;
        if let Some((_, errno)) = answers.first().filter(|(_, errno)| !is_absent(*errno)) {
            return Err(refused(what, *errno));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::netlink;

    const GET_LINK: u16 = 18;
    const NEW_CLASS: u16 = 40;

    /// An enforcer of a device with our queueing discipline, whose requests are sent through this socket, and with one group.
    fn enforcer(route: Socket) -> TrafficEnforcer {
        let group = Group { path: "a".into(), devices: vec!["tap0".into()], ..Group::default() };
        let member =
            Member { group, minor: 8, cgroup: None, wanted: 0, written: None, has_rules: false, pending: false };
        TrafficEnforcer {
            settings: Settings { device: "e0".into(), link: Some(12_500_000), force: false },
            link: 12_500_000,
            unified: None,
            previous_queue: "none".into(),
            index: 1,
            route,
            queue: true,
            rules: Rules::new(Socket::answered(true, |_, _| {})),
            members: HashMap::from([(GroupId(0), member)]),
            pending: Vec::new(),
            removals: Vec::new(),
            minors: ClassNumbers::default(),
            shared: Arc::default(),
        }
    }

    #[test]
    fn a_class_that_could_not_be_sent_is_sent_again() {
        let mut traffic = enforcer(Socket::unusable());
        for weight in [2.0, 2.0, 3.0] {
            let mut changes = Vec::new();
            traffic.apply(GroupId(0), &Targets::equal_weights(weight), &mut changes).unwrap();
            assert_eq!((changes.len(), traffic.pending.as_slice()), (1, &[GroupId(0)][..]));
            // A second call before the flush sends nothing twice.
            traffic.apply(GroupId(0), &Targets::equal_weights(weight), &mut changes).unwrap();
            assert_eq!((changes.len(), traffic.pending.len()), (1, 1));
            assert!(traffic.flush().is_err());
        }
    }

    #[test]
    fn a_queueing_discipline_that_is_removed_again_at_once_is_reported_and_made_again() {
        let mut removals = 2;
        let kernel = move |piece: &[u8], out: &mut Messages| {
            let first = netlink::messages(piece).next().unwrap();
            match first.kind {
                // The device has index 1.
                GET_LINK => {
                    let mut link = [0; 16];
                    link[4] = 1;
                    out.begin(GET_LINK, 0, first.sequence, &link);
                }
                // Changing the default class finds no queueing discipline, twice.
                NEW_CLASS if removals > 0 => {
                    removals -= 1;
                    let absent = (-(Errno::ENOENT as i32)).to_ne_bytes();
                    out.begin(netlink::ERROR, 0, first.sequence, &[&absent[..], &[0; 16]].concat());
                }
                _ => {}
            }
        };
        let mut traffic = enforcer(Socket::answered(false, kernel));
        let mut changes = Vec::new();
        let mut update = |traffic: &mut TrafficEnforcer| {
            changes.clear();
            traffic.apply(GroupId(0), &Targets::equal_weights(2.0), &mut changes).unwrap();
            (changes.len(), traffic.flush().is_ok())
        };
        assert_eq!(update(&mut traffic), (1, false));
        assert_eq!(update(&mut traffic), (1, true));
        assert_eq!(update(&mut traffic), (0, true));
        assert!(traffic.queue && traffic.members[&GroupId(0)].has_rules);
    }
}
