//! The profiles of clients, as the relay's facts about them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_elicit_clients::{Dialog, EmptyForm, ObservedClient, Profile, Profiles, Shows};
use mcp_elicit_core::form::FieldKinds;
use mcp_elicit_core::wire::Capability;
use mcp_elicit_forms::view::sanitize;
use mcp_elicit_relay::{ClientFacts, ClientProfile, SeenClient};
use serde_json::Value;

use crate::config::Config;

/// The most clients that are remembered as logged.
const MAX_LOGGED: usize = 1_000;

/// The profiles of clients.
#[derive(Debug)]
struct ProfileFacts {
    profiles: Profiles,
    /// `true` if the client has started this process, whose environment it has set.
    is_child: bool,
    /// The clients whose profiles are in the log, each with the reason.
    logged: Mutex<HashSet<(String, &'static str)>>,
    /// The last client, because a question needs its profile several times.
    last: Mutex<Option<LastClient>>,
}

/// A client as it was seen, and its profile.
#[derive(Debug)]
struct LastClient {
    info: Option<String>,
    declares: Capability,
    declares_apps: bool,
    call_meta: Option<String>,
    profile: ClientProfile,
}

impl LastClient {
    fn new(seen: &SeenClient<'_>, profile: ClientProfile) -> Self {
        Self {
            info: seen.info.map(str::to_owned),
            declares: seen.declares,
            declares_apps: seen.declares_apps,
            call_meta: seen.call_meta.map(str::to_owned),
            profile,
        }
    }

    fn is(&self, seen: &SeenClient<'_>) -> bool {
        self.info.as_deref() == seen.info
            && self.call_meta.as_deref() == seen.call_meta
            && self.declares == seen.declares
            && self.declares_apps == seen.declares_apps
    }
}

impl Config {
    /// Recognizes clients by these profiles.
    #[must_use]
    pub fn with_profiles(mut self, profiles: Profiles) -> Self {
        let facts: Arc<dyn ClientFacts> = Arc::new(ProfileFacts {
            profiles,
            is_child: self.listen.is_none(),
            logged: Mutex::default(),
            last: Mutex::default(),
        });
        for server in &mut self.servers {
            server.settings.client_facts = Some(facts.clone());
        }
        self
    }
}

impl ClientFacts for ProfileFacts {
    fn profile(&self, seen: &SeenClient<'_>) -> ClientProfile {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(last) if last.is(seen) => last.profile.clone(),
            _ => {
                let profile = self.find(seen);
                last.insert(LastClient::new(seen, profile)).profile.clone()
            }
        }
    }
}

impl ProfileFacts {
    fn find(&self, seen: &SeenClient<'_>) -> ClientProfile {
        let info = seen.info.and_then(|info| serde_json::from_str(info).ok());
        let info: Value = info.unwrap_or_default();
        let text = |name: &str| info[name].as_str().unwrap_or_default();
        let env = |name: &str| std::env::var(name).ok();
        let seen = ObservedClient {
            name: text("name"),
            version: text("version"),
            declares: seen.declares,
            declares_apps: seen.declares_apps,
            env: self.is_child.then_some(&env),
            call_meta: seen.call_meta,
        };
        let profile = self.profiles.profile(&seen);
        if let Some(reason) = reason_for_people(&profile) {
            self.log(&seen, reason);
        }
        ClientProfile {
            modes: Capability {
                form: profile.form == Shows::Declared,
                url: profile.url == Shows::Declared,
            },
            has_person: profile.dialog == Dialog::Person,
            kinds: profile.kinds,
            shows_empty_forms: profile.empty_form == EmptyForm::Shown,
            doubt: profile.doubt,
            wait: profile.wait,
        }
    }

    /// Logs once for each client that people are asked in its place, with the profiles that say so.
    fn log(&self, seen: &ObservedClient<'_>, reason: &'static str) {
        let client = sanitize::line(seen.name, sanitize::LABEL);
        {
            let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
            if logged.len() >= MAX_LOGGED || !logged.insert((client.clone(), reason)) {
                return;
            }
        }
        let recognized = self.profiles.recognize(seen);
        let profiles: Vec<&str> = recognized
            .entries
            .iter()
            .filter_map(|entry| entry.id())
            .collect();
        tracing::info!(client, profiles = profiles.join(", "), "{reason}");
    }
}

/// Returns why people are asked some questions in place of the client, although it declares their mode.
fn reason_for_people(profile: &Profile) -> Option<&'static str> {
    if profile.dialog == Dialog::None {
        Some("no person sits at this client: people are asked in its place")
    } else if profile.form == Shows::No {
        Some("this client shows no forms: people are asked in its place")
    } else if profile.kinds != FieldKinds::ALL || profile.empty_form == EmptyForm::Inbox {
        Some("this client does not show all kinds of form: people are asked the others")
    } else if profile.url == Shows::No {
        Some("this client shows no links: people are asked in its place")
    } else {
        None
    }
}
