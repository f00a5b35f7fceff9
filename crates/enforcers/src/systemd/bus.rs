//! The calls to systemd's manager.

use std::future::{Future, poll_fn};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use zbus::export::futures_core::Stream;
use zbus::{
    Connection, Error, MatchRule, Message, MessageStream, OwnedObjectPath, OwnedVariant, Variant, connection, fdo,
    message,
};

const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const PATH: &str = "/org/freedesktop/systemd1";

/// Calls that wait for an answer at the same time: the system bus of the reference implementation drops a client that
/// waits for more than 128.
const WAITING: usize = 64;

/// What an answer that is none means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is no such unit.
    Gone,
    /// systemd refused, and will again.
    Refused(String),
    /// This systemd knows no such property.
    Unknown,
    /// The call failed; the connection still works.
    Failed(String),
    /// There is no connection, or no systemd at its other end.
    Lost(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        let text = error.to_string();
        match &error {
            Error::MethodError(name, ..) => match name.as_str() {
                "org.freedesktop.systemd1.NoSuchUnit" => Fault::Gone,
                _ => Fault::Failed(text),
            },
            Error::FDO(error) => match **error {
                fdo::Error::AccessDenied(_)
                | fdo::Error::AuthFailed(_)
                | fdo::Error::InteractiveAuthorizationRequired(_)
                | fdo::Error::PropertyReadOnly(_)
                | fdo::Error::InvalidArgs(_)
                | fdo::Error::NotSupported(_) => Fault::Refused(text),
                fdo::Error::UnknownProperty(_) => Fault::Unknown,
                // A unit's object goes with the unit.
                fdo::Error::UnknownObject(_) | fdo::Error::UnknownInterface(_) => Fault::Gone,
                fdo::Error::ServiceUnknown(_)
                | fdo::Error::NameHasNoOwner(_)
                | fdo::Error::NoServer(_)
                | fdo::Error::Disconnected(_)
                | fdo::Error::NoReply(_)
                | fdo::Error::Timeout(_)
                | fdo::Error::TimedOut(_) => Fault::Lost(text),
                _ => Fault::Failed(text),
            },
            _ => Fault::Lost(text),
        }
    }
}

/// Values of properties, by name.
pub(crate) type Values = Vec<(&'static str, u64)>;

/// What one unit is to be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) unit: String,
    pub(crate) values: Values,
}

/// A connection to a bus, and what systemd says on it.
pub(crate) struct Bus {
    connection: Connection,
    reloads: MessageStream,
    /// Changes of who is called systemd on the bus.
    owners: MessageStream,
}

impl Bus {
    /// To the bus at an address, or to the system's.
    pub(crate) async fn connect(address: Option<&str>, patience: Duration) -> Result<Bus, Fault> {
        let builder = match address {
            Some(address) => connection::Builder::address(address),
            None => connection::Builder::system(),
        };
        let connection = builder.method_timeout(patience).build().await?;
        let signal = |sender, path, interface, member| {
            MatchRule::builder()
                .msg_type(message::Type::Signal)
                .sender(sender)
                .path(path)
                .interface(interface)
                .member(member)
        };
        let rule = signal(SYSTEMD, PATH, MANAGER, "Reloading").build()?;
        let reloads = MessageStream::for_match_rule(rule, &connection, NonZeroUsize::new(64)).await?;
        let (bus, path) = ("org.freedesktop.DBus", "/org/freedesktop/DBus");
        let rule = signal(bus, path, bus, "NameOwnerChanged").add_arg(SYSTEMD).build()?;
        let owners = MessageStream::for_match_rule(rule, &connection, NonZeroUsize::new(8)).await?;
        // systemd says nothing to a bus on which nobody listens.
        let nothing = ();
        match connection.call_method(Some(SYSTEMD), PATH, Some(MANAGER), "Subscribe", &nothing).await {
            Ok(_) => {}
            Err(Error::MethodError(name, ..)) if name.as_str() == "org.freedesktop.systemd1.AlreadySubscribed" => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Bus { connection, reloads, owners })
    }

    /// Whether systemd has read its files anew since this was asked last.
    ///
    /// # Errors
    /// [`Fault::Lost`] also if systemd itself came anew: it does not know then that somebody listens.
    pub(crate) fn reloaded(&mut self) -> Result<bool, Fault> {
        if next(&mut self.owners)?.is_some() {
            return Err(Fault::Lost("systemd has left the bus".into()));
        }
        let mut reloaded = false;
        while let Some(message) = next(&mut self.reloads)? {
            // It says true when it begins, and false when it is done.
            reloaded |= matches!(message.body().deserialize::<bool>(), Ok(false));
        }
        Ok(reloaded)
    }

    /// The present values of a unit's properties. What this systemd does not know is left out.
    pub(crate) async fn read(&self, unit: &str, interface: &str, names: &[&'static str]) -> Result<Values, Fault> {
        // Not by a path made of the name: systemd would load what is not there.
        let answer = self.connection.call_method(Some(SYSTEMD), PATH, Some(MANAGER), "GetUnit", &unit).await?;
        let path: OwnedObjectPath = answer.body().deserialize()?;
        let mut values = Vec::with_capacity(names.len());
        for name in names {
            let properties = Some("org.freedesktop.DBus.Properties");
            let arguments = (interface, *name);
            let answer = self.connection.call_method(Some(SYSTEMD), &path, properties, "Get", &arguments).await;
            match answer.map_err(Fault::from) {
                Ok(answer) => {
                    let value: OwnedVariant = answer.body().deserialize()?;
                    let number = u64::try_from(value);
                    let number =
                        number.map_err(|_| Fault::Failed(format!("{name} of {unit} is no number of 64 bits")))?;
                    values.push((*name, number));
                }
                Err(Fault::Unknown) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(values)
    }

    /// Sets properties until the next start of the machine: one call a unit, all of it or nothing.
    async fn set(&self, write: &Write) -> Result<(), Fault> {
        let values: Vec<(&str, Variant<'_>)> =
            write.values.iter().map(|(name, value)| (*name, (*value).into())).collect();
        let arguments = (write.unit.as_str(), true, values);
        self.connection.call_method(Some(SYSTEMD), PATH, Some(MANAGER), "SetUnitProperties", &arguments).await?;
        Ok(())
    }

    /// Sets properties of several units, without waiting for one before the next.
    pub(crate) async fn set_all(&self, writes: &[Write]) -> Vec<Result<(), Fault>> {
        let mut results = Vec::with_capacity(writes.len());
        for some in writes.chunks(WAITING) {
            results.extend(together(some.iter().map(|write| self.set(write)).collect()).await);
        }
        results
    }
}

/// A message that is there already.
fn next(stream: &mut MessageStream) -> Result<Option<Message>, Fault> {
    match Pin::new(stream).poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(message)) => Ok(Some(message?)),
        Poll::Ready(None) => Err(Fault::Lost("the bus closed the connection".into())),
        Poll::Pending => Ok(None),
    }
}

/// Waits for all; the results are in the order of the futures.
async fn together<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        let mut ready = true;
        for (future, result) in waiting.iter_mut().filter(|(_, result)| result.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(output) => *result = Some(output),
                Poll::Pending => ready = false,
            }
        }
        if ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, result)| result).collect()
}
