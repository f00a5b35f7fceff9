//! A private message bus, and a fake manager on it that behaves like systemd's.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use zbus::object_server::SignalEmitter;
use zbus::{Connection, OwnedObjectPath, OwnedVariant, connection, fdo, interface};

const PATH: &str = "/org/freedesktop/systemd1";

/// A message bus; stopped when dropped.
pub struct Daemon {
    child: Child,
    pub address: String,
    _folder: tempfile::TempDir,
}

impl Daemon {
    /// Starts the bus. Returns `None` if there is no such program.
    pub fn start() -> Option<Daemon> {
        let folder = tempfile::tempdir().unwrap();
        let configuration = folder.path().join("bus.conf");
        let text = format!(
            r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
            "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <listen>unix:path={}/bus</listen>
              <policy context="default">
                <allow send_destination="*" eavesdrop="true"/> <allow eavesdrop="true"/> <allow own="*"/>
              </policy>
            </busconfig>"#,
            folder.path().display()
        );
        std::fs::write(&configuration, text).unwrap();
        let mut command = Command::new("dbus-daemon");
        command.arg("--nofork").arg("--print-address").arg(format!("--config-file={}", configuration.display()));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Some(Daemon { child, address: address.trim().to_owned(), _folder: folder })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A call of `SetUnitProperties`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub unit: String,
    pub runtime: bool,
    pub values: Vec<(String, u64)>,
}

/// The state of the manager, and the calls that it received.
#[derive(Debug, Default)]
pub struct State {
    pub units: BTreeMap<String, BTreeMap<String, u64>>,
    pub calls: Vec<Call>,
    pub subscribers: u32,
    /// Whether it refuses to set properties.
    pub denies: bool,
}

/// The state, shared with the test.
pub type Shared = Arc<Mutex<State>>;

#[derive(Debug, zbus::DBusError)]
#[zbus(prefix = "org.freedesktop.systemd1")]
enum Refusal {
    #[zbus(error)]
    ZBus(zbus::Error),
    NoSuchUnit(String),
}

struct Manager(Shared);

#[interface(name = "org.freedesktop.systemd1.Manager")]
impl Manager {
    fn subscribe(&self) {
        self.0.lock().unwrap().subscribers += 1;
    }

    fn get_unit(&self, name: &str) -> Result<OwnedObjectPath, Refusal> {
        match self.0.lock().unwrap().units.contains_key(name) {
            true => Ok(path(name)),
            false => Err(Refusal::NoSuchUnit(format!("Unit {name} not loaded."))),
        }
    }

    fn set_unit_properties(
        &self,
        name: &str,
        runtime: bool,
        properties: Vec<(String, OwnedVariant)>,
    ) -> Result<(), SetRefusal> {
        let mut state = self.0.lock().unwrap();
        if state.denies {
            return Err(SetRefusal::AccessDenied("Permission denied".into()));
        }
        // Like systemd, refuses a property of the wrong type.
        let values: Vec<(String, u64)> =
            properties.into_iter().map(|(name, value)| (name, u64::try_from(value).unwrap())).collect();
        state.calls.push(Call { unit: name.into(), runtime, values: values.clone() });
        let Some(unit) = state.units.get_mut(name) else {
            return Err(SetRefusal::NoSuchUnit(format!("Unit {name} not loaded.")));
        };
        unit.extend(values);
        Ok(())
    }

    #[zbus(signal)]
    async fn reloading(emitter: &SignalEmitter<'_>, active: bool) -> zbus::Result<()>;
}

/// Errors of setting properties, from two families of error names.
#[derive(Debug)]
enum SetRefusal {
    NoSuchUnit(String),
    AccessDenied(String),
}

impl zbus::DBusError for SetRefusal {
    fn create_reply(&self, message: &zbus::message::Header<'_>) -> zbus::Result<zbus::Message> {
        let (Self::NoSuchUnit(text) | Self::AccessDenied(text)) = self;
        zbus::Message::error(message, self.name()).build(&(text,))
    }

    fn name(&self) -> zbus::names::ErrorName<'_> {
        zbus::names::ErrorName::from_static_str_unchecked(match self {
            SetRefusal::NoSuchUnit(_) => "org.freedesktop.systemd1.NoSuchUnit",
            SetRefusal::AccessDenied(_) => "org.freedesktop.DBus.Error.AccessDenied",
        })
    }

    fn description(&self) -> Option<&str> {
        let (Self::NoSuchUnit(text) | Self::AccessDenied(text)) = self;
        Some(text)
    }
}

struct Unit(Shared, String);

impl Unit {
    fn get(&self, property: &str) -> fdo::Result<u64> {
        let state = self.0.lock().unwrap();
        let found = state.units.get(&self.1).and_then(|unit| unit.get(property));
        found.copied().ok_or_else(|| fdo::Error::UnknownProperty(property.into()))
    }
}

#[interface(name = "org.freedesktop.systemd1.Scope")]
impl Unit {
    #[zbus(property, name = "CPUWeight")]
    fn cpu_weight(&self) -> fdo::Result<u64> {
        self.get("CPUWeight")
    }

    #[zbus(property, name = "IOWeight")]
    fn io_weight(&self) -> fdo::Result<u64> {
        self.get("IOWeight")
    }

    #[zbus(property)]
    fn memory_low(&self) -> fdo::Result<u64> {
        self.get("MemoryLow")
    }

    #[zbus(property)]
    fn memory_min(&self) -> fdo::Result<u64> {
        self.get("MemoryMin")
    }
}

/// Escapes a name as systemd does.
fn path(unit: &str) -> OwnedObjectPath {
    let escaped: String = unit
        .bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("_{b:02x}") })
        .collect();
    OwnedObjectPath::try_from(format!("{PATH}/unit/{escaped}")).unwrap()
}

/// The manager; leaves the bus when dropped.
pub struct Fake {
    pub state: Shared,
    connection: Connection,
}

impl Fake {
    /// Starts a manager with scopes of these names, whose weights are not set and whose memory is not protected.
    pub fn start(address: &str, units: &[&str]) -> Fake {
        let unset = [("CPUWeight", u64::MAX), ("IOWeight", u64::MAX), ("MemoryLow", 0), ("MemoryMin", 0)];
        let unset: BTreeMap<String, u64> = unset.map(|(name, value)| (name.to_owned(), value)).into();
        let units = units.iter().map(|unit| ((*unit).to_owned(), unset.clone())).collect();
        Fake::with(address, Arc::new(Mutex::new(State { units, ..State::default() })))
    }

    pub fn with(address: &str, state: Shared) -> Fake {
        let names: Vec<String> = state.lock().unwrap().units.keys().cloned().collect();
        let connection = zbus::block_on(async {
            let manager = Manager(Arc::clone(&state));
            let mut builder = connection::Builder::address(address).serve_at(PATH, manager);
            for name in names {
                builder = builder.serve_at(path(&name), Unit(Arc::clone(&state), name));
            }
            builder.name("org.freedesktop.systemd1").build().await.unwrap()
        });
        Fake { state, connection }
    }

    /// Reloads its files, of which one of the administrator's sets all CPU weights to 50.
    pub fn reload(&self) {
        zbus::block_on(async {
            let emitter = SignalEmitter::new(&self.connection, PATH).unwrap();
            Manager::reloading(&emitter, true).await.unwrap();
            for unit in self.state.lock().unwrap().units.values_mut() {
                unit.insert("CPUWeight".into(), 50);
            }
            Manager::reloading(&emitter, false).await.unwrap();
        });
    }

    pub fn value(&self, unit: &str, property: &str) -> u64 {
        self.state.lock().unwrap().units[unit][property]
    }

    /// Returns the calls since the last call of this function.
    pub fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.state.lock().unwrap().calls)
    }

    pub fn stop(self) -> Shared {
        zbus::block_on(self.connection.close()).unwrap();
        self.state
    }
}
