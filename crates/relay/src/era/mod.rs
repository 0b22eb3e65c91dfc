//! The eras: the state of each side, and the translation between eras.
//!
//! | file | contents |
//! | --- | --- |
//! | `pushed_client` | a client with a session: questions are pushed to it, and it responds |
//! | `rounds_client` | a client whose retries answer an `input_required` |
//! | `pushed_server` | a server that pushes its questions |
//! | `rounds_server` | a server that asks in its results |
//! | `client`, `server` | one side in any era |
//! | `abilities` | the questions that a client can really show |
//! | `handshake` | the openings of a client of either era |
//! | `probe`, `probing` | a server that is being asked for its era: the state; the relay's part |
//! | `negotiation` | declarations to the server; `initialize` and `server/discover` answered for either era |
//! | `rounds_to_rounds` | rounds that go to the client as the server wrote them, and their retries |
//! | `round_taken_back` | a passed round whose client has no person: people are asked instead |
//! | `repeated_rounds` | rounds that are presented again, when a call is made again from the first |
//! | `refusals` | refusals for a server that has ended, that cannot be used, or that answers in another revision |
//! | `session_exit` | servers with a session that ask as in the rounds era |
//! | `url_required` | `-32042`: links to visit before a call is made again |
//!
//! All other code asks [`Client`] and [`Server`] for a rule of the protocol, and the relay to translate. The file of an
//! era contains only the rules of that era, with their clauses. The era itself is visible only in this folder. Both
//! eras at once are matched only in the translation of a request.

mod abilities;
mod client;
mod handshake;
mod negotiation;
mod peer_info;
mod probe;
mod probing;
mod pushed_client;
mod pushed_server;
mod refusals;
mod repeated_rounds;
mod round_taken_back;
mod rounds_client;
mod rounds_server;
mod rounds_to_rounds;
mod server;
mod session_exit;
mod url_required;

use crate::call_start::{Carried, Start};
use crate::parts::turns::Rule;
use crate::{AskId, Audience, CallId, CallKind, ClientForward, ClientFrame, Relay, Timestamp};
pub(crate) use client::Client;
use client::ClientEra;
pub(crate) use client::own_info;
pub(crate) use rounds_client::declared_in;
use rounds_client::declared_with_own;
use server::ServerEra;
pub(crate) use server::{Contact, Server};

impl Relay {
    /// Returns the rule about calls that may be with the server at once, so that the call of a question is known: a
    /// question that is pushed over stdio names none.
    ///
    /// Until the server asks for the first time, all calls of a client of the rounds era that shows no questions go to
    /// it at once: most servers never ask, and one that also speaks 2026-07-28 would get them at once there. The first
    /// question goes to people, who are shown each call in progress.
    pub(crate) fn rule(&self) -> Rule {
        if self.settings.server_streams || !self.server.pushes_questions() {
            return Rule::Free;
        }
        let has_people =
            self.settings.answer_with != Audience::Client && self.settings.decisions.is_none();
        match self.client.rule_at_pushing_server() {
            Rule::Single
                if has_people
                    && self.client.shows_no_question()
                    && !self.settings.eras.known().pushed =>
            {
                Rule::Seen
            }
            rule => rule,
        }
    }

    /// Asks the client a recorded question, in the client's era: in the result of this call, or by a request.
    pub(crate) fn ask_client(&mut self, now: Timestamp, key: AskId, call: Option<CallId>) {
        match (&self.client.0, call) {
            (ClientEra::Rounds(_), Some(call)) => {
                if !self.uses_retry_answer(now, key, call) {
                    self.present_round(now, call);
                }
            }
            _ => self.push_to_client(now, key),
        }
    }

    /// Sends a request of a known client to a known server, in the server's era.
    pub(crate) fn translate_request(
        &mut self,
        frame: ClientFrame<'_>,
        method: &str,
        carried: Carried,
    ) -> ClientForward {
        match (&self.client.0, &self.server.0) {
            (ClientEra::Pushed(_), ServerEra::Rounds(_)) => self.pushed_to_rounds(frame, method),
            (ClientEra::Rounds(_), ServerEra::Pushed(_)) => {
                self.rounds_to_pushed(frame, method, carried)
            }
            (ClientEra::Rounds(_), _) => {
                let audience = self.settings.answer_with;
                let (capability, changed) = declared_with_own(*frame, audience);
                let start = Start::new(CallKind::of_method(method), capability);
                self.start(frame, start.changed(changed).carrying(carried))
            }
            (ClientEra::Unknown | ClientEra::Pushed(_), _) => {
                let capability = self.client.capability(None);
                self.start(frame, Start::new(CallKind::of_method(method), capability))
            }
        }
    }
}
