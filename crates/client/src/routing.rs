//! The choice of a responder for each server.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::responder::Responder;

/// Responders by server, with a global one for the rest. The first one that exists answers:
///
/// 1. the server's own responder,
/// 2. the server's older callback,
/// 3. the global responder,
/// 4. the global older callback.
///
/// If none exists, no capability is declared, and a question that comes anyway gets the revision's error.
///
/// ```
/// use mcp_elicit_client::responder::{Defaults, Responder, Script};
/// use mcp_elicit_client::{ClientSettings, Routing};
///
/// let routing = Routing::new().everywhere(Script::decline()).server("my own server", Defaults);
/// let responder = routing.responder("my own server").ok_or("nobody answers")?;
/// assert_eq!(responder.name(), "defaults");
/// let settings = ClientSettings::default().responder(responder);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Default)]
pub struct Routing {
    global: Slot,
    servers: BTreeMap<String, Slot>,
}

#[derive(Clone, Default)]
struct Slot {
    responder: Option<Arc<dyn Responder>>,
    callback: Option<Arc<dyn Responder>>,
}

impl Slot {
    fn first(&self) -> Option<&Arc<dyn Responder>> {
        self.responder.as_ref().or(self.callback.as_ref())
    }
}

impl Routing {
    /// Creates a routing without responders.
    ///
    /// ```
    /// use mcp_elicit_client::Routing;
    ///
    /// assert!(Routing::new().responder("any server").is_none());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the responder for every server without its own.
    ///
    /// ```
    /// use mcp_elicit_client::Routing;
    /// use mcp_elicit_client::responder::Defaults;
    ///
    /// assert!(Routing::new().everywhere(Defaults).responder("any server").is_some());
    /// ```
    #[must_use]
    pub fn everywhere(mut self, responder: impl Responder) -> Self {
        self.global.responder = Some(Arc::new(responder));
        self
    }

    /// Sets the responder for the server of this name.
    ///
    /// ```
    /// use mcp_elicit_client::Routing;
    /// use mcp_elicit_client::responder::Defaults;
    ///
    /// let routing = Routing::new().server("my own server", Defaults);
    /// assert!(routing.responder("another server").is_none());
    /// ```
    #[must_use]
    pub fn server(mut self, name: impl Into<String>, responder: impl Responder) -> Self {
        self.servers.entry(name.into()).or_default().responder = Some(Arc::new(responder));
        self
    }

    /// Sets the responder for every server without its own, under the name that older clients use.
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// use mcp_elicit_client::Routing;
    /// use mcp_elicit_client::responder::Defaults;
    ///
    /// let routing = Routing::new().elicitation_callback(Defaults);
    /// assert!(routing.responder("any server").is_some());
    /// ```
    #[must_use]
    #[deprecated(note = "use `everywhere`, which goes before it")]
    pub fn elicitation_callback(mut self, callback: impl Responder) -> Self {
        self.global.callback = Some(Arc::new(callback));
        self
    }

    /// Sets the responder for the server of this name, under the name that older clients use.
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// use mcp_elicit_client::Routing;
    /// use mcp_elicit_client::responder::Defaults;
    ///
    /// let routing = Routing::new().server_elicitation_callback("my own server", Defaults);
    /// assert!(routing.responder("my own server").is_some());
    /// ```
    #[must_use]
    #[deprecated(note = "use `server`, which goes before it")]
    pub fn server_elicitation_callback(
        mut self,
        name: impl Into<String>,
        callback: impl Responder,
    ) -> Self {
        self.servers.entry(name.into()).or_default().callback = Some(Arc::new(callback));
        self
    }

    /// Returns the responder for the server of this name.
    pub fn responder(&self, name: &str) -> Option<Arc<dyn Responder>> {
        let own = self.servers.get(name).and_then(Slot::first);
        own.or_else(|| self.global.first()).cloned()
    }
}

impl std::fmt::Debug for Routing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |slot: &Slot| slot.first().map(Responder::name);
        f.debug_struct("Routing")
            .field("global", &name(&self.global))
            .field(
                "servers",
                &self
                    .servers
                    .iter()
                    .map(|(server, slot)| (server, name(slot)))
                    .collect::<BTreeMap<_, _>>(),
            )
            .finish()
    }
}

#[cfg(test)]
#[expect(deprecated, reason = "the older names are tested too")]
mod tests {
    use super::*;
    use crate::responder::{Defaults, Script};

    fn name(routing: &Routing, server: &str) -> Option<String> {
        routing
            .responder(server)
            .map(|responder| format!("{:?}", responder.modes()) + &responder.name())
    }

    #[test]
    fn the_first_that_is_there_answers() {
        let both = || Script::decline();
        let forms = || Defaults;
        let routing = Routing::new();
        assert_eq!(name(&routing, "a"), None);
        let routing = routing.elicitation_callback(forms());
        assert!(name(&routing, "a").unwrap().ends_with("defaults"));
        let routing = routing.everywhere(both());
        assert!(name(&routing, "a").unwrap().ends_with("script"));
        let routing = routing.server_elicitation_callback("a", forms());
        assert!(name(&routing, "a").unwrap().ends_with("defaults"));
        let routing = routing.server("a", both());
        assert!(name(&routing, "a").unwrap().ends_with("script"));
        assert!(name(&routing, "b").unwrap().ends_with("script"));
    }
}
