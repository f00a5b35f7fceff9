//! Whether all of this can be done here.

use std::fs;

use crate::cgroups::Hierarchies;
use nix::sched::{CloneFlags, unshare};

use crate::traffic::nft::{Cgroup, Transaction};
use crate::traffic::socket::{Socket, failed, refused};
use crate::traffic::wire::Messages;
use crate::traffic::{Settings, TrafficError, htb, link};

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What, in a few words.
    pub what: &'static str,
    /// Whether it works. `None`: it could not be tried.
    pub works: Option<bool>,
    /// What was found, as a sentence.
    pub sentence: String,
}

/// Looks whether what a device sends can be divided here. Nothing that is there is changed: what has to be tried is
/// tried in a network namespace of its own, on a thread that ends. (The kernel may load its modules for it.)
pub fn probe(settings: &Settings, hierarchies: &Hierarchies) -> Vec<Finding> {
    let mut findings = vec![right(), device(settings), speed(settings), version(hierarchies)];
    match std::thread::spawn(apart).join() {
        Ok(Ok(tried)) => findings.extend(tried),
        Ok(Err(why)) => findings.extend(TRIED.map(|what| Finding { what, works: None, sentence: why.clone() })),
        Err(_) => {}
    }
    findings
}

const TRIED: [&str; 3] = ["classes", "rules for groups", "rules for devices"];

fn finding(what: &'static str, result: Result<String, String>) -> Finding {
    let works = Some(result.is_ok());
    let (Ok(sentence) | Err(sentence)) = result;
    Finding { what, works, sentence }
}

fn right() -> Finding {
    // CAP_NET_ADMIN is the 12th.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    finding(
        "right",
        match bits >> 12 & 1 {
            1 => Ok("This process may set up network devices (CAP_NET_ADMIN).".into()),
            _ => Err("This process may not set up network devices: it lacks CAP_NET_ADMIN.".into()),
        },
    )
}

fn device(settings: &Settings) -> Finding {
    let name = &settings.device;
    let look = || -> Result<Result<String, String>, TrafficError> {
        let mut socket = Socket::route()?;
        let index = link::index(&mut socket, name)?;
        Ok(match htb::root(&mut socket, index)? {
            None => Ok(format!("{name} has no queue yet.")),
            Some(queue) if queue.is_default() => Ok(format!("{name} has the kernel's own queue ({}).", queue.kind)),
            Some(queue) if queue.is_ours() => {
                Ok(format!("{name} has a queue of evenhand's ({queue}), in use or left over."))
            }
            Some(queue) if settings.force => Ok(format!(
                "{name} has a queue that somebody set up ({queue}); as configured it is replaced, and not put back."
            )),
            Some(queue) => Err(format!("{name} has a queue that somebody set up ({queue}), which is left alone.")),
        })
    };
    finding("device", look().unwrap_or_else(|error| Err(format!("Sending cannot be divided: {error}."))))
}

fn speed(settings: &Settings) -> Finding {
    let said = match settings.link {
        Some(link) => Ok(format!("The link carries {link} bytes a second, as configured.")),
        None => link::speed(&settings.device)
            .map(|link| format!("The link carries {link} bytes a second, as {} says.", settings.device))
            .map_err(|error| format!("The speed of the link is not known: {error}.")),
    };
    finding("link", said)
}

fn version(hierarchies: &Hierarchies) -> Finding {
    finding("groups", match &hierarchies.unified {
        Some(path) => Ok(format!("Senders are told apart by the control groups of version 2 at {}.", path.display())),
        None => Err("Control groups of version 2 are not mounted: only guests with a device of their own can be told apart.".into()),
    })
}

/// Runs on a thread that ends.
fn apart() -> Result<Vec<Finding>, String> {
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|errno| format!("This was not tried: a network namespace cannot be made ({}).", errno.desc()))?;
    let [classes, groups, devices] = TRIED;
    let said = |result: Result<(), TrafficError>, yes: &str, no: &str| {
        result.map(|()| yes.to_owned()).map_err(|error| format!("{no} ({error})."))
    };
    let queue = said(try_queue(), "The kernel has HTB classes.", "The kernel does not make HTB classes");
    let tables = try_rules(|_, _| {});
    let rules = |made: Result<(), TrafficError>, what: &str| match &tables {
        Ok(()) => said(
            made,
            &format!("The kernel's packet filter tells {what} apart."),
            &format!("The kernel's packet filter cannot tell {what} apart"),
        ),
        Err(error) => {
            Err(format!("The kernel has no packet filter with tables that a process owns, Linux 5.12 ({error})."))
        }
    };
    Ok(vec![
        finding(classes, queue),
        finding(
            groups,
            rules(
                try_rules(|t, s| {
                    t.make_level(s, 1);
                    t.set_levels(s, [1].into_iter());
                    t.add_cgroup(s, Cgroup { level: 1, id: 1 }, htb::handle(8));
                }),
                "control groups",
            ),
        ),
        finding(devices, rules(try_rules(|t, s| t.add_device(s, "lo", htb::handle(8))), "devices")),
    ])
}

fn try_queue() -> Result<(), TrafficError> {
    let what = "making classes";
    let mut socket = Socket::route()?;
    let lo = link::index(&mut socket, "lo")?;
    let (mut out, first) = (Messages::default(), socket.number());
    htb::make_queue(&mut out, first, lo, false);
    let last = socket.number();
    htb::make_top(&mut out, last, lo, 1_000_000);
    out.acknowledged();
    let answers = socket.transact(&out, first, last).map_err(failed(what))?;
    answers.first().map_or(Ok(()), |(_, errno)| Err(refused(what, *errno)))
}

/// In tables that go away with the socket.
fn try_rules(fill: impl FnOnce(&mut Transaction, &mut Socket)) -> Result<(), TrafficError> {
    let mut socket = Socket::filter()?;
    let mut transaction = Transaction::begin(&mut socket);
    transaction.make_tables(&mut socket);
    fill(&mut transaction, &mut socket);
    transaction.commit(&mut socket).map_err(failed("making rules"))
}
