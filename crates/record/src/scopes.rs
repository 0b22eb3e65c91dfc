//! The scopes of sessions, which bind the calls of a caller to a server. Each is computed from the server's
//! information. The last ones are cached, since a session has many questions.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::identity::{IdentityKey, SessionIdentity};

/// The most cached scopes.
const MAX_SCOPES: usize = 64;
/// The longest server information of a cached scope, in bytes.
const MAX_INFO: usize = 16 << 10;

/// The scope of a session.
pub(crate) struct SessionScope {
    /// The keyed hash of caller and server.
    pub(crate) hash: String,
    /// The server's name for people.
    pub(crate) server_name: String,
}

/// The most recently used scopes, under one key, the newest first.
#[derive(Default)]
pub(crate) struct Scopes {
    known: Mutex<VecDeque<KnownScope>>,
}

struct KnownScope {
    who: SessionIdentity,
    server_info: Option<String>,
    scope: Arc<SessionScope>,
}

impl Scopes {
    /// Returns the scope of a session with a server that reports this information.
    pub(crate) fn of(
        &self,
        key: &IdentityKey,
        who: &SessionIdentity,
        server_info: Option<&str>,
    ) -> Arc<SessionScope> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let fits =
            |known: &KnownScope| known.server_info.as_deref() == server_info && known.who == *who;
        if let Some(at) = known.iter().position(fits)
            && let Some(found) = known.remove(at)
        {
            let scope = found.scope.clone();
            known.push_front(found);
            return scope;
        }
        let scope = Arc::new(who.scope(key, server_info));
        if server_info.is_none_or(|info| info.len() <= MAX_INFO) {
            known.truncate(MAX_SCOPES - 1);
            known.push_front(KnownScope {
                who: who.clone(),
                server_info: server_info.map(str::to_owned),
                scope: scope.clone(),
            });
        }
        scope
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerIdentity;

    fn session(caller: &str) -> SessionIdentity {
        SessionIdentity {
            server: ServerIdentity {
                name: "files".to_owned(),
                is_named: false,
                address: "npx files".to_owned(),
                key: "k".to_owned(),
            },
            caller: caller.to_owned(),
        }
    }

    #[test]
    fn a_kept_scope_is_the_one_of_its_session_and_its_servers_words() {
        let (key, scopes) = (IdentityKey::random().unwrap(), Scopes::default());
        let infos = [None, Some(r#"{"name":"a"}"#), Some(r#"{"name":"b"}"#)];
        for _ in 0..2 {
            for number in 0..MAX_SCOPES {
                for info in infos {
                    let who = session(&number.to_string());
                    let kept = scopes.of(&key, &who, info);
                    let computed = who.scope(&key, info);
                    assert_eq!(kept.hash, computed.hash);
                    assert_eq!(kept.server_name, computed.server_name);
                }
            }
        }
        assert_eq!(scopes.known.lock().unwrap().len(), MAX_SCOPES);
        let last = (MAX_SCOPES - 1).to_string();
        let again = |info| scopes.of(&key, &session(&last), info);
        assert!(Arc::ptr_eq(&again(infos[2]), &again(infos[2])), "kept");
        let long = "x".repeat(MAX_INFO + 1);
        scopes.of(&key, &session(&last), Some(&long));
        assert!(
            Arc::ptr_eq(&again(infos[2]), &again(infos[2])),
            "the longest are not kept"
        );
    }
}
