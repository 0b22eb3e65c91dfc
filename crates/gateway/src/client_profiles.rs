//! The profiles of clients, as the relay's facts about them.

use std::sync::Arc;

use mcp_elicit_clients::{Dialog, EmptyForm, Profiles, Seen, Shows};
use mcp_elicit_core::wire::Capability;
use mcp_elicit_relay::{ClientFacts, ClientProfile, SeenClient};
use serde_json::Value;

use crate::config::Config;

/// The profiles of clients.
#[derive(Debug)]
struct ProfileFacts {
    profiles: Profiles,
    /// `true` if the client has started this process, whose environment it has set.
    is_child: bool,
}

impl Config {
    /// Recognizes clients by these profiles.
    #[must_use]
    pub fn with_profiles(mut self, profiles: Profiles) -> Self {
        let facts: Arc<dyn ClientFacts> = Arc::new(ProfileFacts {
            profiles,
            is_child: self.listen.is_none(),
        });
        for server in &mut self.servers {
            server.settings.client_facts = Some(facts.clone());
        }
        self
    }
}

impl ClientFacts for ProfileFacts {
    fn profile(&self, seen: &SeenClient<'_>) -> ClientProfile {
        let info = seen.info.and_then(|info| serde_json::from_str(info).ok());
        let info: Value = info.unwrap_or_default();
        let text = |name: &str| info[name].as_str().unwrap_or_default();
        let env = |name: &str| std::env::var(name).ok();
        let profile = self.profiles.profile(&Seen {
            name: text("name"),
            version: text("version"),
            declares: seen.declares,
            declares_apps: seen.declares_apps,
            env: self.is_child.then_some(&env),
            call_meta: seen.call_meta,
        });
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
}
