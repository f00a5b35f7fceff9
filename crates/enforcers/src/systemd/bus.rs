//! Calls to systemd's manager over D-Bus.

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

/// The maximum number of calls that wait for an answer at the same time: the reference implementation of the system
/// bus disconnects a client that waits for more than 128.
pub(crate) const MAX_PENDING: usize = 64;

/// Classifies D-Bus errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BusError {
    /// There is no such unit.
    Gone,
    /// systemd refused, and will refuse again.
    Refused(String),
    /// This version of systemd does not know the property.
    Unknown,
    /// The call failed, but the connection still works.
    Failed(String),
    /// There is no connection, or systemd has left the bus.
    Lost(String),
}

impl From<Error> for BusError {
    fn from(error: Error) -> BusError {
        let text = error.to_string();
        match &error {
            Error::MethodError(name, ..) => match name.as_str() {
                "org.freedesktop.systemd1.NoSuchUnit" => BusError::Gone,
                _ => BusError::Failed(text),
            },
            Error::FDO(error) => match **error {
                fdo::Error::AccessDenied(_)
                | fdo::Error::AuthFailed(_)
                | fdo::Error::InteractiveAuthorizationRequired(_)
                | fdo::Error::PropertyReadOnly(_)
                | fdo::Error::InvalidArgs(_)
                | fdo::Error::NotSupported(_) => BusError::Refused(text),
                fdo::Error::UnknownProperty(_) => BusError::Unknown,
                // The object of a unit disappears with the unit.
                fdo::Error::UnknownObject(_) | fdo::Error::UnknownInterface(_) => BusError::Gone,
                fdo::Error::ServiceUnknown(_)
                | fdo::Error::NameHasNoOwner(_)
                | fdo::Error::NoServer(_)
                | fdo::Error::Disconnected(_)
                | fdo::Error::NoReply(_)
                | fdo::Error::Timeout(_)
                | fdo::Error::TimedOut(_) => BusError::Lost(text),
                _ => BusError::Failed(text),
            },
            _ => BusError::Lost(text),
        }
    }
}

/// Values of properties, by name.
pub(crate) type Values = Vec<(&'static str, u64)>;

/// The new values of one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) unit: String,
    pub(crate) values: Values,
}

/// A connection to a message bus with systemd on it.
pub(crate) struct Bus {
    connection: Connection,
    reloads: MessageStream,
    /// The signals that another process owns systemd's name on the bus.
    owners: MessageStream,
}

impl Bus {
    /// Connects to the bus at an address, or to the system bus.
    pub(crate) async fn connect(address: Option<&str>, timeout: Duration) -> Result<Bus, BusError> {
        let builder = match address {
            Some(address) => connection::Builder::address(address),
            None => connection::Builder::system(),
        };
        let connection = builder.method_timeout(timeout).build().await?;
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
        // systemd sends signals only to buses with a subscriber.
        let nothing = ();
        match connection.call_method(Some(SYSTEMD), PATH, Some(MANAGER), "Subscribe", &nothing).await {
            Ok(_) => {}
            Err(Error::MethodError(name, ..)) if name.as_str() == "org.freedesktop.systemd1.AlreadySubscribed" => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Bus { connection, reloads, owners })
    }

    /// Returns whether systemd has reloaded its files since the last call.
    ///
    /// # Errors
    /// Returns [`BusError::Lost`] also if systemd has restarted, because the new process does not know the
    /// subscription.
    pub(crate) fn reloaded(&mut self) -> Result<bool, BusError> {
        if next(&mut self.owners)?.is_some() {
            return Err(BusError::Lost("systemd has left the bus".into()));
        }
        let mut reloaded = false;
        while let Some(message) = next(&mut self.reloads)? {
            // The signal carries true when a reload begins, and false when it is done.
            reloaded |= matches!(message.body().deserialize::<bool>(), Ok(false));
        }
        Ok(reloaded)
    }

    /// Reads the present values of a unit's properties. Properties that this systemd does not know are omitted.
    pub(crate) async fn read(&self, unit: &str, interface: &str, names: &[&'static str]) -> Result<Values, BusError> {
        // Not by a path derived from the name: systemd would load a unit that does not exist.
        let answer = self.connection.call_method(Some(SYSTEMD), PATH, Some(MANAGER), "GetUnit", &unit).await?;
        let path: OwnedObjectPath = answer.body().deserialize()?;
        let mut values = Vec::with_capacity(names.len());
        for name in names {
            let properties = Some("org.freedesktop.DBus.Properties");
            let arguments = (interface, *name);
            let answer = self.connection.call_method(Some(SYSTEMD), &path, properties, "Get", &arguments).await;
            match answer.map_err(BusError::from) {
                Ok(answer) => {
                    let value: OwnedVariant = answer.body().deserialize()?;
                    let number = u64::try_from(value);
                    let number =
                        number.map_err(|_| BusError::Failed(format!("{name} of {unit} is not a 64-bit number")))?;
                    values.push((*name, number));
                }
                Err(BusError::Unknown) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(values)
    }

    /// Sets properties until the next reboot, in one call: all of them or none.
    async fn set(&self, write: &Write) -> Result<(), BusError> {
        let values: Vec<(&str, Variant<'_>)> =
            write.values.iter().map(|(name, value)| (*name, (*value).into())).collect();
        let arguments = (write.unit.as_str(), true, values);
        self.connection.call_method(Some(SYSTEMD), PATH, Some(MANAGER), "SetUnitProperties", &arguments).await?;
        Ok(())
    }

    /// Sets properties of several units without waiting for each call before the next.
    pub(crate) async fn set_all(&self, writes: &[Write]) -> Vec<Result<(), BusError>> {
        let mut results = Vec::with_capacity(writes.len());
        for some in writes.chunks(MAX_PENDING) {
            results.extend(join_all(some.iter().map(|write| self.set(write)).collect()).await);
        }
        results
    }
}

/// Returns a message that has already arrived.
fn next(stream: &mut MessageStream) -> Result<Option<Message>, BusError> {
    match Pin::new(stream).poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(message)) => Ok(Some(message?)),
        Poll::Ready(None) => Err(BusError::Lost("the bus closed the connection".into())),
        Poll::Pending => Ok(None),
    }
}

/// Waits for all futures; the results are in the order of the futures.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
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
