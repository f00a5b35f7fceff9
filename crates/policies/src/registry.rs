//! Which policies there are, and the one way to build any of them.

use std::fmt;

use evenhand_documents::{DocumentError, did_you_mean};
use thiserror::Error;

use crate::Policy;
use crate::context::PolicyContext;
use crate::settings::{ReadSettings, SettingKey, SettingOption};

/// Builds a policy; the context has what the registration requires.
pub type Build = fn(&PolicyContext<'_>) -> Result<Box<dyn Policy>, PolicyError>;

/// Builds a policy that is registered while the program runs.
pub type SharedBuild = dyn Fn(&PolicyContext<'_>) -> Result<Box<dyn Policy>, PolicyError> + Send + Sync;

/// A function, or a closure that is never dropped, so that a registration is as plain as its name.
#[derive(Clone, Copy)]
enum Builder {
    Function(Build),
    Shared(&'static SharedBuild),
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Builder::Function(_) => "Function",
            Builder::Shared(_) => "Shared",
        })
    }
}

/// How a policy is found, set and built.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// The name that users type.
    pub name: &'static str,
    /// One line for lists of policies.
    pub summary: &'static str,
    /// Whether [`PolicyContext::decay`] is required.
    pub needs_decay: bool,
    /// Whether the policy gives the same order whatever the users' weights are.
    pub ignores_weights: bool,
    /// About how many times as long as a policy of this crate it takes for a decision.
    pub relative_cost: u32,
    /// Command-line options that set keys of the section `[name]`.
    pub options: &'static [&'static SettingOption],
    keys: &'static [SettingKey],
    check: fn(&'static str, &PolicyContext<'_>) -> Result<Vec<String>, PolicyError>,
    build: Builder,
}

impl Registration {
    /// Returns a registration of a policy without settings that does not need a decay.
    ///
    /// ```
    /// use evenhand_model::Rational;
    /// use evenhand_policies::{Registration, Registry, ShareKey, ShareOrder};
    ///
    /// /// The smallest share of any resource.
    /// struct SmallestShare;
    /// impl ShareKey for SmallestShare {
    ///     fn approximate(&self, shares: impl Iterator<Item = f64>) -> f64 {
    ///         shares.fold(f64::INFINITY, f64::min)
    ///     }
    ///     fn exact(&self, shares: impl Iterator<Item = Rational>) -> Rational {
    ///         shares.min().unwrap_or(Rational::ZERO)
    ///     }
    /// }
    /// let policy = Registration::new("smallest-share", "lowest smallest share, over weight", |context| {
    ///     Ok(Box::new(ShareOrder::new(context, SmallestShare)))
    /// });
    /// let registry = Registry::built_in().with(policy).unwrap();
    /// assert_eq!(registry.names().last(), Some("smallest-share"));
    /// ```
    pub const fn new(name: &'static str, summary: &'static str, build: Build) -> Registration {
        Registration::built_by(name, summary, Builder::Function(build))
    }

    const fn built_by(name: &'static str, summary: &'static str, build: Builder) -> Registration {
        Registration {
            name,
            summary,
            needs_decay: false,
            ignores_weights: false,
            relative_cost: 1,
            options: &[],
            keys: &[],
            check: check_settings::<()>,
            build,
        }
    }

    /// Returns a registration of a policy that is known only while the program runs, such as one of a host's language.
    ///
    /// Name, summary and constructor stay in memory until the process ends: a constructor should hold little.
    ///
    /// # Errors
    /// Returns none itself; an error of `build` is returned where the registry builds the policy.
    ///
    /// ```
    /// use evenhand_policies::{Registration, Registry};
    /// let wrapped = "fifo".to_string();
    /// let policy = Registration::shared("as-they-come", "what it wraps", move |context| {
    ///     Registry::built_in().build(&wrapped, context)
    /// });
    /// assert!(Registry::built_in().with(policy).is_ok());
    /// ```
    pub fn shared(
        name: &str,
        summary: &str,
        build: impl Fn(&PolicyContext<'_>) -> Result<Box<dyn Policy>, PolicyError> + Send + Sync + 'static,
    ) -> Registration {
        let (name, summary): (&'static str, &'static str) = (name.to_string().leak(), summary.to_string().leak());
        Registration::built_by(name, summary, Builder::Shared(Box::leak(Box::new(build))))
    }

    /// Requires a decay in the context.
    #[must_use]
    pub const fn needing_decay(self) -> Registration {
        Registration { needs_decay: true, ..self }
    }

    /// States that the order does not depend on users' weights.
    #[must_use]
    pub const fn ignoring_weights(self) -> Registration {
        Registration { ignores_weights: true, ..self }
    }

    /// States about how many times as long as a policy of this crate it takes for a decision, so that a study does not
    /// simulate it many times unasked.
    #[must_use]
    pub const fn costing(self, relative_cost: u32) -> Registration {
        Registration { relative_cost, ..self }
    }

    /// Declares the settings that `build` reads with [`PolicyContext::read_settings`].
    #[must_use]
    pub const fn with_settings<S: ReadSettings>(self) -> Registration {
        Registration { keys: S::KEYS, check: check_settings::<S>, ..self }
    }

    /// Declares command-line options that set keys of the section.
    #[must_use]
    pub const fn with_options(self, options: &'static [&'static SettingOption]) -> Registration {
        Registration { options, ..self }
    }

    /// Returns the keys of the policy's section with their help.
    pub fn keys(&self) -> &'static [SettingKey] {
        self.keys
    }

    /// Builds the policy.
    ///
    /// # Errors
    /// Returns an error if the context lacks what the policy requires, or a setting is refused.
    pub fn build(&self, context: &PolicyContext<'_>) -> Result<Box<dyn Policy>, PolicyError> {
        if self.needs_decay && context.decay.is_none() {
            return Err(PolicyError::NoDecay { policy: self.name });
        }
        if let Some(tree) = context.accounts.filter(|tree| tree.users() != context.weights.len()) {
            return Err(PolicyError::Users { in_tree: tree.users(), weights: context.weights.len() });
        }
        match self.build {
            Builder::Function(build) => build(context),
            Builder::Shared(build) => build(context),
        }
    }

    /// Reads the policy's section and returns what a user should know, in sentences.
    ///
    /// # Errors
    /// Returns an error if a setting is refused.
    pub fn check(&self, context: &PolicyContext<'_>) -> Result<Vec<String>, PolicyError> {
        (self.check)(self.name, context)
    }
}

fn check_settings<S: ReadSettings>(
    name: &'static str,
    context: &PolicyContext<'_>,
) -> Result<Vec<String>, PolicyError> {
    let section = context.settings.section(name)?;
    let notes = S::read(&section, context)?.notes();
    let sources = section.sources().collect::<Vec<_>>().join(", ");
    let source = if sources.is_empty() { name } else { &sources };
    Ok(notes.into_iter().map(|note| format!("{source}: {note}")).collect())
}

impl PolicyContext<'_> {
    /// Reads the settings of a policy from the section of its name.
    ///
    /// # Errors
    /// Returns an error if a value is refused, with file, line and column.
    pub fn read_settings<S: ReadSettings>(&self, policy: &str) -> Result<S, PolicyError> {
        S::read(&self.settings.section(policy)?, self)
    }
}

/// Why a policy cannot be built.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// There is no policy of that name.
    #[error("unknown policy {found:?}, expected one of: {}{near}", known.join(", "))]
    Unknown {
        /// The name that was asked for.
        found: String,
        /// The names that there are.
        known: Vec<&'static str>,
        /// A hint at a name that differs little, or nothing.
        near: String,
    },
    /// There are two policies of one name.
    #[error("there are two policies called {name:?}, expected another name for each")]
    Twice {
        /// The name.
        name: &'static str,
    },
    /// The policy remembers the past and was not given a decay.
    #[error("the policy {policy} needs a decay, found none (a half-life, or delta)")]
    NoDecay {
        /// The policy.
        policy: &'static str,
    },
    /// Account tree and weights are of different users.
    #[error("the account tree has {in_tree} users, expected {weights}, one for each weight")]
    Users {
        /// Users of the tree.
        in_tree: usize,
        /// Users with a weight.
        weights: usize,
    },
    /// A setting is refused.
    #[error(transparent)]
    Settings(#[from] DocumentError),
    /// A setting of the site's own scheduler cannot be read.
    #[error("the site's configuration: {setting} = {found:?}, expected {expected}")]
    Site {
        /// Its name in slurm.conf(5).
        setting: String,
        /// Its value.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// Another reason, of a policy from outside this crate.
    #[error("the policy {policy}: {reason}")]
    Refused {
        /// The policy.
        policy: &'static str,
        /// Why, and what to do.
        reason: String,
    },
}

/// The policies of a program: those of this crate, and those added from outside.
///
/// A value that is passed along; there is no global list.
#[derive(Clone, Debug)]
pub struct Registry {
    policies: Vec<Registration>,
}

impl Registry {
    /// Returns the policies of this crate.
    pub fn built_in() -> Registry {
        Registry { policies: crate::BUILT_IN.to_vec() }
    }

    /// Adds a policy.
    ///
    /// # Errors
    /// Returns an error if there is a policy of that name.
    pub fn with(mut self, registration: Registration) -> Result<Registry, PolicyError> {
        if self.names().any(|name| name == registration.name) {
            return Err(PolicyError::Twice { name: registration.name });
        }
        self.policies.push(registration);
        Ok(self)
    }

    /// Returns all policies, in the order in which they are listed.
    pub fn policies(&self) -> &[Registration] {
        &self.policies
    }

    /// Returns the names of all policies.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.policies.iter().map(|registration| registration.name)
    }

    /// Returns the policy called `name`.
    ///
    /// # Errors
    /// Returns an error if there is none, with the names that there are.
    pub fn get(&self, name: &str) -> Result<&Registration, PolicyError> {
        self.policies.iter().find(|registration| registration.name == name).ok_or_else(|| PolicyError::Unknown {
            found: name.to_string(),
            known: self.names().collect(),
            near: did_you_mean(name, self.names()),
        })
    }

    /// Builds the policy called `name`: the one way to build a policy, for every verb.
    ///
    /// # Errors
    /// Returns an error if there is no such policy, the context lacks what it requires, or a setting is refused.
    pub fn build(&self, name: &str, context: &PolicyContext<'_>) -> Result<Box<dyn Policy>, PolicyError> {
        self.get(name)?.build(context)
    }

    /// Reads the section of every policy that has one, also of those that are not used, and returns what a user should
    /// know, in sentences.
    ///
    /// # Errors
    /// Returns an error if a setting is refused.
    pub fn check(&self, context: &PolicyContext<'_>) -> Result<Vec<String>, PolicyError> {
        let mut notes = Vec::new();
        for registration in &self.policies {
            if !context.settings.section(registration.name)?.is_absent() {
                notes.extend(registration.check(context)?);
            }
        }
        notes.dedup();
        Ok(notes)
    }

    /// Returns the command-line options of all policies, each once, by name.
    pub fn options(&self) -> Vec<&'static SettingOption> {
        let mut options: Vec<&'static SettingOption> = Vec::new();
        for option in self.policies.iter().flat_map(|registration| registration.options) {
            if !options.iter().any(|known| known.option == option.option) {
                options.push(option);
            }
        }
        options.sort_by_key(|option| option.option);
        options
    }
}

impl Default for Registry {
    fn default() -> Registry {
        Registry::built_in()
    }
}
