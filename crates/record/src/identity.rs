//! The identity of a question: its server, caller, call and content. Each part enters a keyed hash, so that the record
//! and the audit can distinguish questions without revealing them.

use mcp_elicit_core::digest::DigestKey;
use mcp_elicit_core::question::{NewQuestion, TaskEntry};
use mcp_elicit_core::wire::members::Members;
use std::fmt;
use std::io;
use std::path::Path;

use data_encoding::HEXLOWER;

use super::encryption;
use crate::scopes::SessionScope;

const KEY: usize = 32;

/// The key of all identities. It never changes, because earlier questions must be found again.
#[derive(Clone)]
pub struct IdentityKey(DigestKey);

impl fmt::Debug for IdentityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdentityKey(..)")
    }
}

/// The server of a session, as it is distinguished from others and shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The name that the operator gave it, or that of its program or host.
    pub name: String,
    /// `true` if the operator set that name.
    pub is_named: bool,
    /// Its command or URL, as shown.
    pub address: String,
    /// The keyed hash of everything that identifies the server.
    pub key: String,
}

/// The caller and the server of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionIdentity {
    /// The server.
    pub server: ServerIdentity,
    /// The caller: a word, or a keyed hash of its credentials.
    pub caller: String,
}

impl IdentityKey {
    pub(crate) fn new(key: [u8; KEY]) -> Self {
        Self(DigestKey::new(&key))
    }

    /// Creates a key for this process only.
    pub fn random() -> io::Result<Self> {
        encryption::random().map(Self::new)
    }

    /// Reads the key from this file, and creates it if there is none. Only its owner may read it.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        encryption::key_in_file(path, &encryption::random::<KEY>()?).map(Self::new)
    }

    /// Reads the key from this file; `None` if there is no complete one.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let keys = encryption::read_keys(path)?;
        Ok(keys.and_then(|keys| keys.first().copied().map(Self::new)))
    }

    /// Returns the keyed hash of these parts, in hex. Different lists of parts have different input.
    pub fn hash(&self, purpose: &str, parts: &[&[u8]]) -> String {
        HEXLOWER.encode(&self.mac(purpose, parts))
    }

    /// Returns the key of the grant for a call of a caller at a server, under a rule: the call by its digest, the
    /// server by its key, the rule by its digest.
    pub fn grant_key(&self, caller: &str, server: &str, call: &str, rule_digest: &str) -> String {
        let parts = [caller, server, call, rule_digest].map(str::as_bytes);
        self.hash("grant", &parts)
    }

    /// Returns the evidence of a call by its digest, for the audit: whoever has this key and a call can tell whether it
    /// is the one, and nobody else learns anything of it.
    pub fn evidence(&self, call: &str) -> String {
        self.hash("evidence", &[call.as_bytes()])
    }

    /// Returns a separate key for another purpose.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        self.mac(purpose, &[])
    }

    fn mac(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        self.0
            .of_parts(std::iter::once(&purpose.as_bytes()).chain(parts))
    }

    /// Returns the caller with these credentials.
    pub fn caller(&self, credentials: &[u8]) -> String {
        let hash = self.hash("caller", &[credentials]);
        format!("caller-{}", &hash[..32])
    }
}

impl ServerIdentity {
    /// Returns the name for people: the operator's, else the reported one, else that of the program or host.
    fn shown_name(&self, reported: Option<String>) -> String {
        let reported = reported.filter(|_| !self.is_named);
        // No text of PostgreSQL has a NUL.
        let reported = reported.map(|name| name.replace('\0', "\u{fffd}"));
        reported.unwrap_or_else(|| self.name.clone())
    }
}

impl SessionIdentity {
    /// Returns the scope of this caller's calls at this server, which reports this `server_info`.
    pub(super) fn scope(&self, key: &IdentityKey, server_info: Option<&str>) -> SessionScope {
        let members = server_info.and_then(info_members);
        let info = |name| members.as_ref().and_then(|members| text_of(members, name));
        let (name, version) = (info("name"), info("version"));
        let parts = [
            self.caller.as_bytes(),
            self.server.key.as_bytes(),
            name.as_deref().unwrap_or_default().as_bytes(),
            version.as_deref().unwrap_or_default().as_bytes(),
        ];
        SessionScope {
            hash: key.hash("binding", &parts),
            server_name: self.server.shown_name(name),
        }
    }
}

impl SessionScope {
    /// Returns a deduplication key; random if the call is unknown.
    pub(super) fn binding(&self, key: &IdentityKey, asked: &NewQuestion) -> io::Result<String> {
        let rule = asked.team.iter().map(|team| team.rule_digest.as_bytes());
        if let Some(TaskEntry { task, key: entry }) = &asked.task {
            // The same one in every session, whatever is known there of its calls.
            let question = asked.identity_text();
            let mut parts = vec![self.hash.as_bytes(), task.as_bytes(), entry.as_bytes()];
            parts.push(question.as_bytes());
            parts.extend(rule);
            return Ok(key.hash("question of a task", &parts));
        }
        if asked.is_ambiguous() {
            return encryption::random_id();
        }
        let call = asked.call.as_ref();
        let digest = call.map_or("", |calling| calling.digest.as_str());
        let question = asked.identity_text();
        let mut parts = vec![self.hash.as_bytes(), digest.as_bytes(), question.as_bytes()];
        // Under another rule it is another question: an answer does not count for people who were not asked.
        parts.extend(rule);
        Ok(key.hash("question", &parts))
    }
}

/// Returns the members of a server's `serverInfo`; `None` if it cannot be read.
fn info_members(info: &str) -> Option<Members<'_>> {
    Members::read_text(info, "serverInfo").ok()
}

/// Returns the text of this member of an object, if it has one.
fn text_of(object: &Members<'_>, name: &'static str) -> Option<String> {
    let text = object.text(name).ok()??;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use mcp_elicit_core::question::TeamPlan;
    use mcp_elicit_core::wire::{ElicitRequest, Revision};

    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        let key = IdentityKey::random().unwrap();
        let one = key.hash("p", &[b"ab", b"c"]);
        assert_eq!(one, key.hash("p", &[b"ab", b"c"]));
        assert_ne!(one, key.hash("p", &[b"a", b"bc"]));
        assert_ne!(one, key.hash("q", &[b"ab", b"c"]));
        assert_ne!(
            one,
            IdentityKey::random().unwrap().hash("p", &[b"ab", b"c"])
        );
    }

    /// Later versions must find rows and approvals under the same hashes.
    #[test]
    fn hashes_of_calls_questions_and_grants_keep_their_values() {
        let key = IdentityKey::new([7; KEY]);
        assert_eq!(
            key.caller(b"Bearer x"),
            "caller-eb9efdb57c76d3cca380eab662364ec5"
        );
        assert_eq!(
            key.grant_key("local", "k", "d", "r"),
            "a2b845afbc3b81aa2c8aec87e55e40a81d6b29d0a6b8b6e5168719986c08e41b"
        );
        assert_eq!(
            key.evidence("d"),
            "f5ac017f3c7bfc415157a6fecbfdb90df91c6e0f26267a407d4460d5073ca186"
        );
        let who = SessionIdentity {
            server: ServerIdentity {
                name: "s".to_owned(),
                is_named: true,
                address: "s".to_owned(),
                key: "k".to_owned(),
            },
            caller: "local".to_owned(),
        };
        let scope = who.scope(&key, Some(r#"{"name":"files","version":"1.2"}"#));
        assert_eq!(
            scope.hash,
            "7acd18a31aeb198156995129c5affc414fd2275f834198661614627be91ceaaa"
        );
        let params = serde_json::json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}});
        let mut asked = NewQuestion {
            request: ElicitRequest::from_value(&params, Revision::V2025_06_18).unwrap(),
            ..crate::tests::asked("Who?")
        };
        assert_eq!(
            scope.binding(&key, &asked).unwrap(),
            "69bfbf161c7887622fb5d3e42fa9fcf1f2b4f3e5fd9dc1a7c1bccf4e7fae414d"
        );
        asked.team = Some(TeamPlan {
            rule_digest: "0123456789abcdef0123456789abcdef".to_owned(),
            text: "{}".into(),
            tool: None,
        });
        assert_eq!(
            scope.binding(&key, &asked).unwrap(),
            "82920af2042ec92e39424c19a39a4e64e710101907db99ebd899bb401dbe0b87"
        );
    }

    #[test]
    fn a_caller_is_never_its_credentials() {
        let bytes = [7; KEY];
        let key = IdentityKey::new(bytes);
        let caller = key.caller(b"Bearer hunter2");
        assert_eq!(caller, key.caller(b"Bearer hunter2"));
        assert_ne!(caller, key.caller(b"Bearer hunter3"));
        assert!(!caller.contains("hunter2"));
        assert!(!format!("{key:?}").contains(&HEXLOWER.encode(&bytes)));
    }

    #[test]
    fn an_unnamed_server_is_shown_by_the_name_that_it_reports() {
        let mut server = ServerIdentity {
            name: "npx".to_owned(),
            is_named: false,
            address: "npx -y files".to_owned(),
            key: "k".to_owned(),
        };
        let info = || Some("files".to_owned());
        assert_eq!(server.shown_name(info()), "files");
        assert_eq!(server.shown_name(None), "npx");
        server.is_named = true;
        assert_eq!(server.shown_name(info()), "npx");
    }
}
