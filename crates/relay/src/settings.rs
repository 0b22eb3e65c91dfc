//! An operator's settings for one server.

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::secret::SecretText;
use mcp_elicit_core::wire::frame::FramePart;
use mcp_elicit_core::wire::{Capability, Frame, Revision};

use crate::CallSummary;
use crate::client_facts::ClientFacts;
use crate::decisions::{Decisions, RuleRefusal};
use crate::frame_edit::ErrorResponse;
use crate::parts::asking_targets::AskingTargets;
use crate::parts::client_waits::ClientWaits;
use crate::parts::frame_reports::FrameReports;
use crate::parts::held_bytes::ByteAccounts;
use crate::parts::server_eras::ServerEras;
use crate::parts::task_owners::TaskOwners;

/// The people or program that questions go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audience {
    /// The client if it declared the mode, else people.
    #[default]
    Auto,
    /// The client only; a mode that it did not declare is refused.
    Client,
    /// People only.
    People,
}

impl Audience {
    /// Returns the capability that the gateway declares to the server for a client with this capability.
    pub const fn declared(self, client: Capability) -> Capability {
        match self {
            Self::Client => client,
            Self::Auto | Self::People => Capability::BOTH,
        }
    }
}

/// The settings of one server's relays.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the server or its client"
)]
#[derive(Clone, Debug)]
pub struct RelaySettings {
    /// The operator's name of the server.
    pub server: String,
    /// `true` if the operator set that name; otherwise people are shown the reported one.
    pub is_named: bool,
    /// The audience of questions.
    pub answer_with: Audience,
    /// The time that a call is held for a person before it is handed back with the address for answers.
    pub hold: Duration,
    /// The time that a call waits for its turn while nothing moves, if its question has to name the one call that asks.
    pub turn_wait: Duration,
    /// The interval at which a held call is kept alive with progress.
    pub keep_alive: Duration,
    /// The time that a question waits for an answer.
    pub open_for: Duration,
    /// The time that the result of a call without a waiting client is kept.
    pub keep_results: Duration,
    /// `true` if calls may be tasks of the gateway.
    pub tasks: bool,
    /// The time limit for the server's answer about its era.
    pub probe: Duration,
    /// The most pending questions in one session; `None` for no limit.
    pub pending: Option<usize>,
    /// The longest message of a question, in bytes.
    pub message_bytes: usize,
    /// The total size of pending questions in one session, in bytes.
    pub pending_bytes: usize,
    /// The most questions within any minute in one session; `None` for no limit.
    pub per_minute: Option<u32>,
    /// The most open requests of one session.
    pub open_calls: usize,
    /// The size that the open requests of one session may reach before another is refused, in bytes.
    pub call_bytes: usize,
    /// The accounts in which the bytes of open requests count, besides the session's own limit.
    pub byte_accounts: ByteAccounts,
    /// The most calls of one session that may wait for their turn with the server.
    pub waiting_calls: usize,
    /// The most consecutive rounds of a call.
    pub rounds: u32,
    /// `true` if the server answers each call on its own stream, and asks there (HTTP).
    pub server_streams: bool,
    /// The only revision in which the server is addressed; `None` to detect it.
    pub revision: Option<Revision>,
    /// The eras in which the server was seen to ask.
    pub eras: ServerEras,
    /// `true` if the server is known to speak the pushed era, from another connection with it.
    pub is_pushed: bool,
    /// The number after which calls are numbered: connections that serve one caller together use separate ranges.
    pub first_call: u64,
    /// The tools of the server that were seen to ask.
    pub askers: AskingTargets,
    /// The observed timeouts of clients.
    pub client_waits: ClientWaits,
    /// The reports about frames that are not passed on.
    pub reports: FrameReports,
    /// The operator's credentials at the server: no name of the server and no log shows them.
    pub secrets: Arc<[SecretText]>,
    /// The caller that began each task of the server.
    pub task_owners: TaskOwners,
    /// The caller, if the server cannot distinguish it from others and its tasks are kept apart here.
    pub task_caller: Option<String>,
    /// `true` if several client requests share this relay, each with its own stream (HTTP).
    pub client_streams: bool,
    /// The shell's facts about clients; `None` if their declarations count.
    pub client_facts: Option<Arc<dyn ClientFacts>>,
    /// The operator's decisions about calls and questions; `None` if there are none.
    pub decisions: Option<Arc<dyn Decisions>>,
}

impl RelaySettings {
    /// Returns the revision that `initialize` requests.
    pub(crate) fn session_revision(&self) -> Revision {
        let newest = Revision::LATEST_PUSHED;
        self.revision.map_or(newest, |one| one.min(newest))
    }

    /// Returns a text of the server without the operator's credentials.
    pub(crate) fn masked(&self, text: &str) -> String {
        let mask = |text: String, secret: &SecretText| secret.masked_in(&text);
        self.secrets.iter().fold(text.to_owned(), mask)
    }

    /// Returns `true` if a client's messages are checked: by rules, or by the owners of tasks.
    pub(crate) fn has_callers_to_judge(&self) -> bool {
        self.decisions.is_some() || self.task_caller.is_some()
    }

    /// Returns the refusal of a request that is attached to a task of another caller, or to one that is not known.
    pub(crate) fn refusal_of_related_task(&self, frame: Frame<'_>) -> Option<ErrorResponse> {
        let caller = self.task_caller.as_ref()?;
        let params = frame.part(FramePart::Params)?;
        self.task_owners.refusal_of_related(params, caller)
    }

    /// Returns the error that the server gets instead of a response that is attached to a task of another caller.
    pub(crate) fn error_for_foreign_response(&self, frame: Frame<'_>) -> Option<ErrorResponse> {
        let caller = self.task_caller.as_ref()?;
        let result = frame.part(FramePart::Result)?;
        self.task_owners.refusal_of_related(result, caller)
    }

    /// Returns the refusal of a request about a task of another caller, or of one that is not known.
    pub(crate) fn refusal_of_task_request(
        &self,
        frame: Frame<'_>,
        method: &str,
    ) -> Option<ErrorResponse> {
        let caller = self.task_caller.as_ref()?;
        if !method.starts_with("tasks/") || method == "tasks/list" {
            return None;
        }
        self.task_owners.refusal(frame.params(), caller)
    }

    /// Returns `true` if a notification of either side is about a task of another caller, or an unknown task.
    pub(crate) fn is_of_foreign_task(&self, frame: Frame<'_>) -> bool {
        let caller = self.task_caller.as_ref();
        caller.is_some_and(|caller| !self.task_owners.has_own_only(frame, caller))
    }

    /// Tells the operator that a question was not asked.
    pub(crate) fn tell_not_asked(&self, call: Option<&CallSummary>, refusal: &RuleRefusal) {
        if let Some(decisions) = &self.decisions {
            decisions.not_asked(call, refusal);
        }
    }

    /// Returns `true` if the gateway answers every round, and no client receives one as the server wrote it: if other
    /// people answer the next round, the client's retry would carry its own answers to the server.
    pub(crate) fn holds_rounds(&self) -> bool {
        self.decisions.is_some() || self.answer_with == Audience::People
    }
}

impl Default for RelaySettings {
    fn default() -> Self {
        Self {
            server: "server".to_owned(),
            is_named: true,
            answer_with: Audience::Auto,
            hold: Duration::from_secs(50),
            turn_wait: Duration::from_secs(10),
            keep_alive: Duration::from_secs(10),
            open_for: Duration::from_secs(24 * 60 * 60),
            keep_results: Duration::from_secs(15 * 60),
            tasks: false,
            probe: Duration::from_secs(3),
            pending: Some(100),
            message_bytes: 64 * 1024,
            pending_bytes: 8 * 1024 * 1024,
            per_minute: Some(60),
            open_calls: 32_768,
            call_bytes: 64 * 1024 * 1024,
            byte_accounts: ByteAccounts::default(),
            waiting_calls: 1_000,
            rounds: 32,
            server_streams: false,
            revision: None,
            eras: ServerEras::default(),
            is_pushed: false,
            first_call: 0,
            askers: AskingTargets::default(),
            client_waits: ClientWaits::default(),
            reports: FrameReports::default(),
            secrets: Arc::default(),
            task_owners: TaskOwners::default(),
            task_caller: None,
            client_streams: false,
            client_facts: None,
            decisions: None,
        }
    }
}
