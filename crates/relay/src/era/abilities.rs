//! The questions that a client can really show: fewer than it declares, if its profile or its responses say so.

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::form::{FieldKinds, Form};
use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::{Action, Capability, ElicitRequest, Mode, meta};

use super::Client;
use super::client::ClientEra;
use super::rounds_client::declared_in;
use crate::Audience;
use crate::client_facts::{ClientFacts, ClientProfile, SeenClient};
use crate::parts::calls::Call;
use crate::parts::indexed_frame::IndexedFrame;

/// The knowledge about a client besides its declarations.
#[derive(Default)]
pub(super) struct Abilities {
    /// The shell's facts about clients.
    facts: Option<Arc<dyn ClientFacts>>,
    /// The profile of a client with a session.
    profile: ClientProfile,
    /// The modes in which its dialog has failed, in this session.
    failed: Capability,
    /// The kinds of field that it answers with nothing, in this session.
    unanswered: FieldKinds,
}

impl Abilities {
    /// Creates the knowledge about a client that has sent nothing yet.
    fn new(facts: Option<Arc<dyn ClientFacts>>) -> Self {
        Self {
            facts,
            ..Self::default()
        }
    }

    /// Learns the description of a client that opened a session.
    pub(super) fn opened(&mut self, info: &str, declares: Capability, declares_apps: bool) {
        if let Some(facts) = &self.facts {
            self.profile = facts.profile(&SeenClient {
                info: Some(info),
                declares,
                declares_apps,
                call_meta: None,
            });
        }
        self.failed = Capability::NONE;
        self.unanswered = FieldKinds::default();
    }
}

impl Client {
    /// Creates a client that has sent nothing yet, with the shell's facts about clients.
    pub(crate) fn new(facts: Option<Arc<dyn ClientFacts>>) -> Self {
        Self(ClientEra::default(), Abilities::new(facts))
    }

    /// Returns its profile in this call.
    fn profile(&self, call: Option<&Call>) -> ClientProfile {
        // Of a client with a session, a call says nothing more without `_meta`.
        let says_more =
            |frame: &Frame<'_>| !self.is_pushed_to() || frame.range(FramePart::Meta).is_some();
        let frame = call.and_then(Call::frame).map(IndexedFrame::frame);
        let frame = frame.filter(says_more);
        let profile = frame.and_then(|frame| self.profile_in(frame, self.capability(call)));
        profile.unwrap_or_else(|| self.1.profile.clone())
    }

    /// Returns its profile according to this request, which declares these modes; `None` if no facts are known.
    fn profile_in(&self, frame: Frame<'_>, declares: Capability) -> Option<ClientProfile> {
        let facts = self.1.facts.as_ref()?;
        let own = self.info();
        let named = frame.member(FramePart::Meta, meta::CLIENT_INFO);
        Some(facts.profile(&SeenClient {
            info: named.or(own.as_deref()),
            declares,
            declares_apps: declares_apps(&self.capabilities()),
            call_meta: frame.part(FramePart::Meta),
        }))
    }

    /// Returns the modes in which a client with a session shows questions of this audience itself.
    pub(crate) fn shown(&self, audience: Audience) -> Capability {
        match audience {
            Audience::Client => self.capability(None),
            Audience::People => Capability::NONE,
            Audience::Auto => {
                let can = |mode| self.1.profile.shows_mode(mode) && !self.1.failed.has(mode);
                self.capability(None).and(Capability {
                    form: can(Mode::Form),
                    url: can(Mode::Url),
                })
            }
        }
    }

    /// Returns `true` if the client shows this question to a person, as far as is known. If only the client may answer,
    /// its declaration counts.
    pub(crate) fn shows(
        &self,
        audience: Audience,
        call: Option<&Call>,
        request: &ElicitRequest,
        form: Option<&Form>,
    ) -> bool {
        match audience {
            Audience::Client => return true,
            Audience::People => return false,
            Audience::Auto => {}
        }
        let mode = request.mode();
        let profile = self.profile(call);
        let is_answered = |form: &Form| form.kinds().without(self.1.unanswered) == form.kinds();
        !call.is_some_and(Call::asks_people)
            && profile.shows_mode(mode)
            && !self.1.failed.has(mode)
            && form.is_none_or(|form| profile.shows_form(form) && is_answered(form))
    }

    /// Returns the evidence if this act in a call's dialog, which came after this time, is not a person's.
    pub(crate) fn doubts(
        &self,
        call: Option<&Call>,
        act: Action,
        after: Option<Duration>,
    ) -> Option<NotAPerson> {
        self.profile(call).doubts(act, after)
    }

    /// Returns the evidence if this act in a retry, which came after this time, is not a person's.
    pub(crate) fn doubts_retry(
        &self,
        retry: Frame<'_>,
        act: Action,
        after: Option<Duration>,
    ) -> Option<NotAPerson> {
        let profile = self.profile_in(retry, declared_in(retry))?;
        profile.doubts(act, after)
    }

    /// Returns the time that the client waits for a call according to its profile.
    pub(crate) fn profile_wait(&self) -> Option<Duration> {
        self.1.profile.wait
    }

    /// Records that the client's dialog failed in this mode. It is not asked in it any more, in this session.
    pub(crate) fn dialog_failed(&mut self, mode: Mode) {
        if self.is_pushed_to() {
            self.1.failed = self.1.failed.or(Capability::needed(mode));
        }
    }

    /// Records that the client answers fields of these kinds with nothing. It is not asked for any of them, in this
    /// session.
    pub(crate) fn left_unanswered(&mut self, kinds: FieldKinds) {
        if self.is_pushed_to() {
            self.1.unanswered = self.1.unanswered.or(kinds);
        }
    }

    /// Returns its name, which stays the same when it is updated: the key of the facts learned about it.
    pub(crate) fn name(&self) -> Option<String> {
        let info: serde_json::Value = serde_json::from_str(&self.info()?).ok()?;
        Some(info["name"].as_str()?.to_owned())
    }
}

/// Returns `true` if these capabilities of a client contain views of MCP Apps.
pub(super) fn declares_apps(capabilities: &serde_json::Value) -> bool {
    capabilities["extensions"]["io.modelcontextprotocol/ui"].is_object()
}
