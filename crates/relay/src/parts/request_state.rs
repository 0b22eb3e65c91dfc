//! `requestState` as a client of the rounds era carries it: sealed, and bound to one call of one caller at one server.
//!
//! The token is `mcp-elicit.s1.` and base64url of the nonce and the ciphertext, XChaCha20-Poly1305. Between them is
//! the name of the gateway that has its questions and a point, if others may send it the retry. The key is derived for
//! one caller and one server; kind, name and arguments of the call are associated data. So a state that was changed,
//! that belongs to another caller or that came with another call does not open. The nonce is a keyed hash of the
//! sealed text: equal nonces mean equal texts, and no randomness is needed here.

use std::fmt;
use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use mcp_elicit_core::digest::{self, DigestKey};
use mcp_elicit_core::seal::{Cipher, NONCE};
use mcp_elicit_core::wire::Frame;
use serde::{Deserialize, Serialize};

use crate::frame_edit::OWN;
use crate::parts::calls;
use crate::parts::retry_answers::CarriedAnswer;
use crate::{CallKind, Timestamp};

/// The mark of this format, after the gateway's own prefix of a state.
const FORM: &str = "s1.";
/// The end of a gateway's name in a state. No base64url has it.
const HOLDER_END: char = '.';

/// The sealing of states for one caller and one server.
#[derive(Clone)]
pub struct StateSeal {
    cipher: Cipher,
    nonces: [u8; 32],
    /// The name of this gateway, if others send it the retries of its rounds.
    holder: Option<Arc<str>>,
}

/// The content of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StateClaims {
    /// The time of its expiry, in milliseconds since 1970.
    #[serde(rename = "x")]
    expires: u64,
    /// The number that distinguishes two states of one call.
    #[serde(rename = "n")]
    number: u64,
    /// The questions under it: keys of `inputRequests` with the records of the questions; the record is empty for a
    /// request that is not a question.
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    asked: Vec<(String, String)>,
    /// The client's answers to questions that have not come up since the call was started again.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    carried: Vec<CarriedAnswer>,
    /// Present if the client makes the call again from its first round: the number of rounds that it has repeated with
    /// this one.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    repeated: Option<usize>,
    /// Present if the round is the server's own and continues with the client's retry.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    server: Option<ServerState>,
    /// The gateway that is named before the sealed text.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    holder: Option<Arc<str>>,
}

/// The server's state, if it gave one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerState {
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

impl StateClaims {
    /// Creates a state that expires at this time. Its number is unique in the session.
    pub(crate) fn new(expires: Timestamp, number: u64) -> Self {
        Self {
            expires: expires.as_millis(),
            number,
            asked: Vec::new(),
            carried: Vec::new(),
            repeated: None,
            server: None,
            holder: None,
        }
    }

    /// Returns the time of its expiry.
    pub(crate) fn expires(&self) -> Timestamp {
        Timestamp::from_millis(self.expires)
    }

    /// Adds the questions under it: keys of `inputRequests` with the records of the questions.
    pub(crate) fn asking(self, asked: Vec<(String, String)>) -> Self {
        Self { asked, ..self }
    }

    /// Adds the client's answers to questions that have not come up again.
    pub(crate) fn carrying(self, carried: Vec<CarriedAnswer>) -> Self {
        Self { carried, ..self }
    }

    /// Records that the client repeats rounds, this many with the next one.
    pub(crate) fn repeating(self, rounds: usize) -> Self {
        let repeated = Some(rounds);
        Self { repeated, ..self }
    }

    /// Adds the state of a server whose own round this is.
    pub(crate) fn of_server(self, server: Option<ServerState>) -> Self {
        Self { server, ..self }
    }

    /// Returns the questions under it: keys of `inputRequests` with the records of the questions.
    pub(crate) fn asked(&self) -> &[(String, String)] {
        &self.asked
    }

    /// Returns the client's answers to questions that have not come up again.
    pub(crate) fn carried(&self) -> &[CarriedAnswer] {
        &self.carried
    }

    /// Returns the records of the questions that the client has answered with a retry under it, or before.
    pub(crate) fn records(&self) -> Vec<String> {
        let asked = self.asked.iter().map(|(_, record)| record.as_str());
        let carried = self.carried.iter().map(CarriedAnswer::record);
        let all = asked.chain(carried).filter(|record| !record.is_empty());
        all.map(str::to_owned).collect()
    }

    /// Returns the entry of a request under this key that is not a question.
    pub(crate) fn other(entry: String) -> (String, String) {
        (entry, String::new())
    }

    /// Returns `true` if a request that is not a question goes to the client under this key.
    pub(crate) fn has_other(&self, entry: &str) -> bool {
        self.asks(entry, "")
    }

    /// Returns `true` if the question of this record is asked under this key.
    pub(crate) fn asks(&self, entry: &str, record: &str) -> bool {
        let mut asked = self.asked.iter();
        asked.any(|(known, of)| known == entry && of == record)
    }

    /// Returns the number of rounds that the client has repeated with this one, if it makes the call again from its
    /// first round.
    pub(crate) fn repeated(&self) -> Option<usize> {
        self.repeated
    }

    /// Returns the server's state, if the round is the server's own and continues with the client's retry.
    pub(crate) fn server(&self) -> Option<&ServerState> {
        self.server.as_ref()
    }
}

impl ServerState {
    /// Creates the server's state, if it gave one.
    pub(crate) fn new(state: Option<String>) -> Self {
        Self { state }
    }

    /// Returns the state.
    pub(crate) fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

impl fmt::Debug for ServerState {
    /// Hides the state, which may contain a person's earlier answers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.state.as_ref().map(String::len);
        f.debug_struct("ServerState")
            .field("bytes", &bytes)
            .finish()
    }
}

/// The reason why a state is refused. A forged state gets no details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StateDefect {
    /// It is not a string.
    #[error(
        "`requestState` must be a string: make the call again without `requestState` and `inputResponses`"
    )]
    NotText,
    /// There are answers, but no state.
    #[error(
        "`inputResponses` came without the `requestState` of the result that they answer: return both, or make the call again without them"
    )]
    Missing,
    /// It was not created here, was changed, or belongs to another call, caller or server.
    #[error(
        "this `requestState` is not one for this call: make the call again without `requestState` and `inputResponses`"
    )]
    Foreign,
    /// It was used before, and its result is not stored.
    #[error(
        "this `requestState` was used before: make the call again without `requestState` and `inputResponses`"
    )]
    Used,
    /// It has expired.
    #[error(
        "this `requestState` has expired: make the call again without `requestState` and `inputResponses`"
    )]
    Expired,
}

/// The facts that a state is bound to, besides caller and server: the kind of a call, its name and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallBinding(String);

impl CallBinding {
    /// Creates the binding to the call of this request. Arguments whose spellings cannot be compared count as written.
    pub(crate) fn of_frame(kind: CallKind, frame: Frame<'_>) -> Self {
        if let Ok(calling) = calls::summary(kind, frame) {
            return Self(calling.digest);
        }
        let index = frame.index();
        let parts = [&index.name, &index.uri, &index.arguments]
            .map(|part| part.clone().map_or("", |range| &frame.text()[range]));
        let hash = BASE64URL_NOPAD.encode(&digest::of_parts(parts));
        Self(format!("{} as written {hash}", kind.word()))
    }
}

impl fmt::Debug for StateSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateSeal(..)")
    }
}

impl StateSeal {
    /// Derives the sealing for this caller and server from a key that outlives the process.
    pub fn new(key: &[u8; 32], server: &str, caller: &str) -> Self {
        let own = hash(
            key,
            &[b"request state", server.as_bytes(), caller.as_bytes()],
        );
        Self {
            cipher: Cipher::new(&hash(&own, &[b"text"])),
            nonces: hash(&own, &[b"nonce"]),
            holder: None,
        }
    }

    /// Lets states name this gateway, which has their questions, so that others can send it the retries.
    #[must_use]
    pub fn held_by(self, gateway: &str) -> Self {
        let holder = Some(gateway.into());
        Self { holder, ..self }
    }

    pub(crate) fn seal(&self, call: &CallBinding, claims: StateClaims) -> Option<String> {
        let holder = self.holder.clone();
        let claims = StateClaims { holder, ..claims };
        let text = serde_json::to_vec(&claims).ok()?;
        let hash = hash(&self.nonces, &[call.0.as_bytes(), &text]);
        let nonce = hash.first_chunk::<NONCE>()?;
        let sealed = self.cipher.seal(nonce, call.0.as_bytes(), &text).ok()?;
        let token = BASE64URL_NOPAD.encode(&sealed);
        Some(match &claims.holder {
            Some(holder) => format!("{OWN}{FORM}{holder}{HOLDER_END}{token}"),
            None => format!("{OWN}{FORM}{token}"),
        })
    }

    pub(crate) fn open(
        &self,
        call: &CallBinding,
        state: &str,
        now: Timestamp,
    ) -> Result<StateClaims, StateDefect> {
        let claims = self.claims(call, state).ok_or(StateDefect::Foreign)?;
        if claims.expires <= now.as_millis() {
            return Err(StateDefect::Expired);
        }
        Ok(claims)
    }

    fn claims(&self, call: &CallBinding, state: &str) -> Option<StateClaims> {
        let (holder, token) = holder_and_token(state)?;
        let sealed = BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
        let text = self.cipher.open(call.0.as_bytes(), &sealed).ok()?;
        let claims: StateClaims = serde_json::from_slice(&text).ok()?;
        // One state has one spelling, by which it is known as used.
        (claims.holder.as_deref() == holder).then_some(claims)
    }
}

/// Returns the name of the gateway that has the questions of this state, if it says one. Only the gateway that opens the
/// state knows if it is true.
pub fn holder_of_state(state: &str) -> Option<&str> {
    holder_and_token(state)?.0
}

fn holder_and_token(state: &str) -> Option<(Option<&str>, &str)> {
    let rest = state.strip_prefix(OWN)?.strip_prefix(FORM)?;
    Some(match rest.split_once(HOLDER_END) {
        Some((holder, token)) => (Some(holder), token),
        None => (None, rest),
    })
}

/// Returns a keyed hash of these parts, unambiguous for any content.
fn hash(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    DigestKey::new(key).of_parts(parts)
}

#[cfg(test)]
mod tests {
    use mcp_elicit_core::wire::FrameIndex;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn binding(frame: &str) -> CallBinding {
        let index = FrameIndex::at(frame.as_bytes()).unwrap();
        CallBinding::of_frame(CallKind::Tool, Frame::of_text(frame, &index))
    }

    fn call() -> CallBinding {
        binding(r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1,"b":2}}}"#)
    }

    fn claims() -> StateClaims {
        StateClaims {
            expires: 2_000,
            number: 7,
            asked: vec![("k".to_owned(), "r".to_owned())],
            carried: Vec::new(),
            repeated: None,
            holder: None,
            server: Some(ServerState {
                state: Some("inner".to_owned()),
            }),
        }
    }

    fn seal() -> StateSeal {
        StateSeal::new(&[7; 32], "server", "caller")
    }

    #[test]
    fn a_state_opens_for_its_own_call_until_it_expires() {
        let state = seal().seal(&call(), claims()).unwrap();
        assert!(!state.contains("inner"));
        assert_eq!(seal().open(&call(), &state, NOW), Ok(claims()));
        let again = binding(
            r#"{"params":{"requestState":"x","arguments":{"b":2, "a":1},"name":"t"},"method":"tools/call","id":2}"#,
        );
        assert_eq!(seal().open(&again, &state, NOW), Ok(claims()));
        let stateless = StateClaims {
            server: Some(ServerState { state: None }),
            ..claims()
        };
        let sealed = seal().seal(&call(), stateless.clone()).unwrap();
        assert_eq!(seal().open(&call(), &sealed, NOW), Ok(stateless));
        let late = Timestamp::from_millis(2_000);
        assert_eq!(
            seal().open(&call(), &state, late),
            Err(StateDefect::Expired)
        );
    }

    #[test]
    fn a_state_of_another_call_caller_server_or_key_is_foreign() {
        let state = seal().seal(&call(), claims()).unwrap();
        for other in [
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1,"b":3}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"u","arguments":{"a":1,"b":2}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1,"b":1e999}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":7}}"#,
        ] {
            let opened = seal().open(&binding(other), &state, NOW);
            assert_eq!(opened, Err(StateDefect::Foreign), "{other}");
        }
        let prompt =
            r#"{"id":1,"method":"prompts/get","params":{"name":"t","arguments":{"a":1,"b":2}}}"#;
        let index = FrameIndex::at(prompt.as_bytes()).unwrap();
        let prompt = CallBinding::of_frame(CallKind::Prompt, Frame::of_text(prompt, &index));
        assert_eq!(seal().open(&prompt, &state, NOW), Err(StateDefect::Foreign));
        for other in [
            StateSeal::new(&[8; 32], "server", "caller"),
            StateSeal::new(&[7; 32], "servercaller", ""),
            StateSeal::new(&[7; 32], "other", "caller"),
            StateSeal::new(&[7; 32], "server", "other"),
        ] {
            assert_eq!(other.open(&call(), &state, NOW), Err(StateDefect::Foreign));
        }
    }

    #[test]
    fn a_state_names_the_gateway_that_has_its_questions() {
        let held = seal().held_by("there");
        let state = held.seal(&call(), claims()).unwrap();
        assert_eq!(holder_of_state(&state), Some("there"));
        // Any gateway with the key opens it.
        for other in [seal(), seal().held_by("here")] {
            assert!(other.open(&call(), &state, NOW).is_ok());
        }
        let anonymous = state.replacen("there.", "", 1);
        for changed in [state.replacen("there", "here", 1), anonymous] {
            let opened = seal().open(&call(), &changed, NOW);
            assert_eq!(opened, Err(StateDefect::Foreign), "{changed}");
        }
        let own = seal().seal(&call(), claims()).unwrap();
        for anywhere in [own.as_str(), "of.another", "mcp-elicit.s1.AAAA"] {
            assert_eq!(holder_of_state(anywhere), None, "{anywhere}");
        }
    }

    #[test]
    fn every_changed_character_is_noticed() {
        for seal in [seal(), seal().held_by("there")] {
            let state = seal.seal(&call(), claims()).unwrap();
            for index in 0..state.len() {
                let mut changed = state.clone().into_bytes();
                changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
                let changed = String::from_utf8(changed).unwrap();
                let opened = seal.open(&call(), &changed, NOW);
                assert!(opened.is_err(), "character {index}");
            }
        }
        for foreign in [
            "",
            "mcp-elicit.",
            "mcp-elicit.1.r1",
            "mcp-elicit.s1.AAAA",
            "other",
        ] {
            let opened = seal().open(&call(), foreign, NOW);
            assert_eq!(opened, Err(StateDefect::Foreign), "{foreign}");
        }
    }
}
