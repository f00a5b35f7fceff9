//! The enforcer: one class a group, made when it first gets a weight.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cgroups::{Before, Change, Control, Enforcer, Group, GroupId, Hierarchies, KernelError, Levels};
use nix::errno::Errno;

use crate::traffic::minors::Minors;
use crate::traffic::nft::{self, Cgroup};
use crate::traffic::rules::{Rules, Target};
use crate::traffic::socket::{Socket, refused};
use crate::traffic::wire::Messages;
use crate::traffic::{NEUTRAL, Settings, TrafficError, TrafficMeter, htb, link, quantum};

/// Messages in one send: the answers to as many refusals fit into a socket's buffer of the usual size.
const CLASSES: usize = 128;

/// Divides what one device sends by giving each group an HTB class. See the [crate's text](crate).
#[derive(Debug)]
pub struct Traffic {
    settings: Settings,
    link: u64,
    unified: Option<PathBuf>,
    /// What stood at the device's root before us.
    stood: String,
    index: u32,
    route: Socket,
    /// Whether our queue stands, with the class of all the rest.
    queue: bool,
    rules: Rules,
    members: HashMap<GroupId, Member>,
    /// Whose class is to be sent, in the order in which levels were given.
    pending: Vec<GroupId>,
    leaving: Vec<Leaving>,
    minors: Minors,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug)]
struct Member {
    group: Group,
    minor: u16,
    cgroup: Option<Cgroup>,
    /// The quantum asked for last; 0 is none yet.
    wanted: u32,
    /// The quantum that the kernel has. `None` if it has no such class.
    written: Option<u32>,
    ruled: bool,
    pending: bool,
}

/// What is to be taken away of a group.
#[derive(Debug)]
struct Leaving {
    group: Group,
    minor: u16,
    cgroup: Option<Cgroup>,
    class: bool,
    rules: bool,
    /// Whether the number is free afterwards.
    frees: bool,
}

impl Member {
    fn target(&self) -> Target<'_> {
        Target { path: &self.group.path, minor: self.minor, cgroup: self.cgroup, devices: &self.group.devices }
    }
}

impl Leaving {
    fn target(&self) -> Target<'_> {
        Target { path: &self.group.path, minor: self.minor, cgroup: self.cgroup, devices: &self.group.devices }
    }
}

/// What the meter needs to know.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) device: u32,
    pub(crate) classes: HashMap<GroupId, u16>,
}

/// The first of several faults is told; the work goes on after it.
#[derive(Default)]
struct First(Option<KernelError>);

impl First {
    fn note(&mut self, error: KernelError) {
        self.0.get_or_insert(error);
    }

    fn done(self) -> Result<(), KernelError> {
        self.0.map_or(Ok(()), Err)
    }
}

impl Traffic {
    /// Looks at the device, and takes away what an earlier process of ours may have left there. The queue and the
    /// rules are made when the first group gets a weight.
    ///
    /// All sockets belong to the network namespace of the calling thread; speeds are read below `/sys`, which
    /// belongs to that of whoever mounted it.
    ///
    /// # Errors
    /// If there is no such device, its speed is not known, it has somebody else's queue
    /// ([`TrafficError::Foreign`]), or another process of ours is alive ([`TrafficError::Taken`]).
    pub fn open(settings: Settings, hierarchies: &Hierarchies) -> Result<Traffic, TrafficError> {
        let (mut route, mut filter) = (Socket::route()?, Socket::filter()?);
        let index = link::index(&mut route, &settings.device)?;
        let link = match settings.link {
            Some(link) => link,
            None => link::speed(&settings.device)?,
        };
        if !(10_000..=1_000_000_000_000).contains(&link) {
            return Err(TrafficError::Speed(link));
        }
        remove_leftovers(&mut route, &mut filter, index)?;
        let found = htb::root(&mut route, index)?;
        refuse_foreign(&settings, found.as_ref())?;
        Ok(Traffic {
            link,
            unified: hierarchies.unified.clone(),
            stood: found.map_or_else(|| "none".into(), |queue| queue.to_string()),
            index,
            route,
            queue: false,
            rules: Rules::new(filter),
            members: HashMap::new(),
            pending: Vec::new(),
            leaving: Vec::new(),
            minors: Minors::default(),
            seen: Arc::new(Mutex::new(Seen { device: index, classes: HashMap::new() })),
            settings,
        })
    }

    /// Bytes a second that are divided.
    pub fn link(&self) -> u64 {
        self.link
    }

    /// A meter that also counts what classes have sent.
    ///
    /// # Errors
    /// If no socket can be had.
    pub fn meter(&self) -> Result<TrafficMeter, TrafficError> {
        TrafficMeter::of(Some(Arc::clone(&self.seen)))
    }

    /// Takes queue and rules away; the kernel puts back the device's own queue. Levels given later make them anew.
    /// Nothing happens if nothing stands.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn remove_all(&mut self) -> Result<(), TrafficError> {
        remove_leftovers(&mut self.route, self.rules.socket(), self.index)?;
        for left in self.leaving.drain(..).filter(|left| left.frees) {
            self.minors.free(left.minor);
        }
        self.forget_rules();
        self.forget_queue();
        Ok(())
    }

    /// Takes away what a process that is gone left on a device. Nothing happens if it left nothing, or the
    /// device is gone too.
    ///
    /// # Errors
    /// [`TrafficError::Taken`] if that process is alive, or if the kernel refuses.
    pub fn remove_leftovers(device: &str) -> Result<(), TrafficError> {
        let (mut route, mut filter) = (Socket::route()?, Socket::filter()?);
        match link::index(&mut route, device) {
            Ok(index) => remove_leftovers(&mut route, &mut filter, index),
            // Index 0 is no device.
            Err(TrafficError::NoDevice(_)) => remove_leftovers(&mut route, &mut filter, 0),
            Err(other) => Err(other),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_rules(&mut self) {
        self.rules.forget();
        for member in self.members.values_mut() {
            member.ruled = false;
        }
    }

    fn forget_queue(&mut self) {
        self.queue = false;
        self.seen().classes.clear();
        for member in self.members.values_mut() {
            member.written = None;
        }
    }

    /// Makes tables and queue, where they are not there.
    fn stand(&mut self) -> Result<(), TrafficError> {
        // Another device may have come by the name.
        self.index = link::index(&mut self.route, &self.settings.device)?;
        self.seen().device = self.index;
        let found = htb::root(&mut self.route, self.index)?;
        refuse_foreign(&self.settings, found.as_ref())?;
        self.rules.stand()?;
        let mut out = Messages::default();
        let first = self.route.number();
        // Also over ours, if somebody took classes out of it.
        htb::make_queue(&mut out, first, self.index, found.is_some_and(|queue| !queue.is_default()));
        htb::make_top(&mut out, self.route.number(), self.index, self.link);
        let last = self.route.number();
        htb::set_class(&mut out, last, self.index, htb::DEFAULT, self.link, NEUTRAL, true);
        out.acknowledged();
        let what = "making the queue of a device";
        let answers = self.route.transact(&out, first, last).map_err(crate::traffic::socket::failed(what))?;
        if let Some((_, errno)) = answers.first() {
            return Err(refused(what, *errno));
        }
        self.queue = true;
        Ok(())
    }

    /// Takes away what dismissed and restored groups had.
    fn leave(&mut self, trouble: &mut First) {
        let leaving = std::mem::take(&mut self.leaving);
        let ruled: Vec<Target<'_>> = leaving.iter().filter(|left| left.rules).map(Leaving::target).collect();
        self.rules.remove(&ruled, &mut |path, errno| trouble.note(refused("removing a rule", errno as i32).of(path)));
        let classed: Vec<&Leaving> = leaving.iter().filter(|left| left.class && self.queue).collect();
        for some in classed.chunks(CLASSES) {
            let (mut out, mut first) = (Messages::default(), 0);
            for (i, left) in some.iter().enumerate() {
                let number = self.route.number();
                first = if i == 0 { number } else { first };
                htb::delete_class(&mut out, number, self.index, left.minor);
            }
            out.acknowledged();
            match self.route.transact(&out, first, first.wrapping_add(some.len() as u32 - 1)) {
                Ok(answers) => {
                    for (number, errno) in answers.into_iter().filter(|(_, errno)| !absent(*errno)) {
                        let left = some.get(number.wrapping_sub(first) as usize);
                        let path = left.map_or("", |left| left.group.path.as_str());
                        trouble.note(refused("removing a class", errno).of(path));
                    }
                }
                Err(errno) => trouble.note(refused("removing classes", errno as i32).of(&self.settings.device)),
            }
        }
        for left in leaving.iter().filter(|left| left.frees) {
            self.minors.free(left.minor);
        }
    }

    /// Sends the classes of `ids`, and that of all the rest, by which a queue that somebody took away is noticed.
    /// Answers whether the queue is still there.
    fn send_classes(&mut self, ids: &[GroupId], trouble: &mut First) -> bool {
        let mut at = 0;
        loop {
            let some = &ids[at..ids.len().min(at + CLASSES)];
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
                    trouble.note(refused("changing classes", errno as i32).of(&self.settings.device));
                    return true;
                }
            };
            if answers.iter().any(|(number, errno)| *number == first && absent(*errno)) {
                return false;
            }
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            for (i, id) in sent.iter().enumerate() {
                let Some(member) = self.members.get_mut(id) else { continue };
                let number = first.wrapping_add(1 + i as u32);
                member.pending = false;
                // Answers are in the order of the messages.
                match answers.binary_search_by_key(&number.wrapping_sub(first), |(n, _)| n.wrapping_sub(first)) {
                    Err(_) => {
                        member.written = Some(member.wanted);
                        seen.classes.insert(*id, member.minor);
                    }
                    Ok(at) => {
                        // Made anew next time, if somebody deleted it.
                        member.written = None;
                        seen.classes.remove(id);
                        trouble.note(refused("changing a class", answers[at].1).of(&member.group.path));
                    }
                }
            }
            at += some.len();
            if at >= ids.len() {
                return true;
            }
        }
    }

    /// Makes the rules of those that have a class and none yet.
    fn send_rules(&mut self, ids: &[GroupId], trouble: &mut First) {
        let new =
            |id: &GroupId| self.members.get(id).filter(|m| m.written.is_some() && !m.ruled).map(|m| (*id, m.target()));
        let (ids, targets): (Vec<GroupId>, Vec<Target<'_>>) = ids.iter().filter_map(new).unzip();
        let made = self.rules.add(&targets, &mut |path, errno| {
            // The device or the group went away since it was admitted.
            let gone = matches!(errno, Errno::ENOENT | Errno::ENODEV);
            trouble.note(match gone {
                true => KernelError::Gone(path.into()),
                false => refused("making a rule", errno as i32).of(path),
            });
        });
        for (id, _) in ids.into_iter().zip(made).filter(|(_, made)| *made) {
            if let Some(member) = self.members.get_mut(&id) {
                member.ruled = true;
            }
        }
    }

    /// The group of version 2 as rules know it.
    fn resolve(&self, group: &Group) -> Result<Option<Cgroup>, KernelError> {
        let path = &group.path;
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(KernelError::Path(path.clone()));
        }
        let Some(unified) = &self.unified else { return Ok(None) };
        // The number of the folder is the number of the group.
        let metadata = std::fs::metadata(unified.join(path)).ok().filter(std::fs::Metadata::is_dir);
        Ok(metadata.map(|m| Cgroup { level: path.split('/').count() as u32, id: m.ino() }))
    }
}

impl Enforcer for Traffic {
    fn name(&self) -> &'static str {
        "htb"
    }

    fn controls(&self) -> &[Control] {
        &[Control::Network]
    }

    fn admit(&mut self, id: GroupId, group: &Group) -> Result<Before, KernelError> {
        Enforcer::dismiss(self, id);
        let cgroup = self.resolve(group)?;
        // Nothing to tell its packets by. Not a fault of the group's: others may divide what else it uses.
        if cgroup.is_none() && group.devices.is_empty() {
            return Err(KernelError::Gone(group.path.clone()));
        }
        for device in &group.devices {
            link::index(&mut self.route, device).map_err(|error| match error {
                TrafficError::NoDevice(name) => KernelError::Gone(name),
                other => other.of(&group.path),
            })?;
        }
        let minor = self.minors.take().map_err(|error| error.of(&group.path))?;
        let group = group.clone();
        let member = Member { group, minor, cgroup, wanted: 0, written: None, ruled: false, pending: false };
        self.members.insert(id, member);
        let found = [("device", &self.settings.device), ("queue", &self.stood)];
        Ok(Before(found.into_iter().map(|(k, v)| (k.to_owned(), v.clone())).collect()))
    }

    fn apply(&mut self, id: GroupId, levels: &Levels, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        let member = self.members.get_mut(&id).ok_or(KernelError::Unknown(id))?;
        let Some(weight) = levels.network else { return Ok(()) };
        let value = quantum(weight);
        // A class without its rules is sent again, so that the rules are tried again.
        if member.wanted == value && (member.pending || (member.written == Some(value) && member.ruled)) {
            return Ok(());
        }
        member.wanted = value;
        changes.push(Change { group: id, control: Control::Network, value: u64::from(value) });
        if !member.pending {
            member.pending = true;
            self.pending.push(id);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), KernelError> {
        let mut trouble = First::default();
        self.leave(&mut trouble);
        let mut ids = std::mem::take(&mut self.pending);
        if !self.queue && ids.is_empty() {
            return trouble.done();
        }
        if !(self.queue && self.send_classes(&ids, &mut trouble)) {
            // Not made yet, or taken away by somebody: everybody's class has to be made.
            if self.queue {
                self.forget_queue();
                ids = self.members.iter().filter(|(_, m)| m.wanted > 0).map(|(id, _)| *id).collect();
                ids.sort_unstable();
            }
            if let Err(error) = self.stand() {
                for id in &ids {
                    if let Some(member) = self.members.get_mut(id) {
                        member.pending = false;
                    }
                }
                trouble.note(error.of(&self.settings.device));
                return trouble.done();
            }
            self.send_classes(&ids, &mut trouble);
        }
        self.send_rules(&ids, &mut trouble);
        trouble.done()
    }

    fn dismiss(&mut self, id: GroupId) {
        let Some(member) = self.members.remove(&id) else { return };
        self.seen().classes.remove(&id);
        self.pending.retain(|pending| *pending != id);
        let Member { group, minor, cgroup, written, ruled, .. } = member;
        if written.is_some() || ruled {
            let (class, rules) = (written.is_some(), ruled);
            self.leaving.push(Leaving { group, minor, cgroup, class, rules, frees: true });
        } else {
            self.minors.free(minor);
        }
    }

    fn restore(&mut self, group: &Group, _: &Before) -> Result<(), KernelError> {
        let ids: Vec<GroupId> = self.members.iter().filter(|(_, m)| m.group == *group).map(|(id, _)| *id).collect();
        for id in ids {
            self.seen().classes.remove(&id);
            self.pending.retain(|pending| *pending != id);
            let Some(member) = self.members.get_mut(&id) else { continue };
            self.leaving.push(Leaving {
                group: member.group.clone(),
                minor: member.minor,
                cgroup: member.cgroup,
                class: member.written.take().is_some(),
                rules: std::mem::take(&mut member.ruled),
                frees: false,
            });
            (member.wanted, member.pending) = (0, false);
        }
        let mut trouble = First::default();
        self.leave(&mut trouble);
        if (self.queue || self.rules.stands()) && self.members.values().all(|m| m.written.is_none()) {
            self.remove_all().map_err(|error| error.of(&self.settings.device))?;
        }
        trouble.done()
    }
}

/// Whether an object is not there, be it for itself, its queue or its device.
fn absent(errno: i32) -> bool {
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
    if index != 0 && htb::root(route, index)?.is_some_and(|queue| queue.is_ours()) {
        let (mut out, number) = (Messages::default(), route.number());
        htb::delete_queue(&mut out, number, index);
        out.acknowledged();
        let what = "removing the queue of a device";
        let answers = route.transact(&out, number, number).map_err(crate::traffic::socket::failed(what))?;
        if let Some((_, errno)) = answers.first().filter(|(_, errno)| !absent(*errno)) {
            return Err(refused(what, *errno));
        }
    }
    Ok(())
}
