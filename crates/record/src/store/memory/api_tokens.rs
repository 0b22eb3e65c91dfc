//! The tokens of programs and the blocked callers, in memory.

use mcp_elicit_core::lifecycle::Timestamp;

use super::super::RecordStoreError;
use super::super::api_tokens::{Added, ApiToken, ApiTokenStore, BlockedCaller, MOST, seconds};
use super::Memory;

/// The tokens and the blocked callers, each in the order of their making.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    tokens: Vec<ApiToken>,
    blocked: Vec<BlockedCaller>,
}

impl Tokens {
    fn find(&mut self, id: &str) -> Option<&mut ApiToken> {
        self.tokens.iter_mut().find(|token| token.id == id)
    }

    fn is_blocked(&self, issuer: &str, subject: &str) -> bool {
        let mut blocked = self.blocked.iter();
        blocked.any(|caller| caller.issuer == issuer && caller.subject == subject)
    }
}

impl ApiTokenStore for Memory {
    fn add(&self, token: &ApiToken) -> Result<Added, RecordStoreError> {
        Ok(self.with(|inner| {
            let table = &mut inner.tokens;
            if table.tokens.len() >= MOST {
                return Added::Full;
            }
            if table.find(&token.id).is_some() {
                return Added::Already;
            }
            table.tokens.push(token.clone());
            Added::Yes
        }))
    }

    fn tokens(&self) -> Result<Vec<ApiToken>, RecordStoreError> {
        Ok(self.with(|inner| inner.tokens.tokens.clone()))
    }

    fn find(&self, id: &str) -> Result<Option<ApiToken>, RecordStoreError> {
        Ok(self.with(|inner| inner.tokens.find(id).cloned()))
    }

    fn count_named(&self, name: &str) -> Result<usize, RecordStoreError> {
        Ok(self.with(|inner| {
            let all = inner.tokens.tokens.iter();
            all.filter(|token| token.name == name).count()
        }))
    }

    fn of_person(&self, person: &str) -> Result<Vec<String>, RecordStoreError> {
        Ok(self.with(|inner| {
            let all = inner.tokens.tokens.iter();
            let theirs = all.filter(|token| token.person() == Some(person));
            theirs.map(|token| token.id.clone()).collect()
        }))
    }

    fn revoke(&self, id: &str, now: Timestamp) -> Result<bool, RecordStoreError> {
        Ok(self.with(|inner| {
            let known = inner.tokens.find(id);
            let Some(token) = known.filter(|token| token.revoked_at.is_none()) else {
                return false;
            };
            token.revoked_at = Some(seconds(now));
            true
        }))
    }

    fn remove(&self, id: &str) -> Result<(), RecordStoreError> {
        self.with(|inner| inner.tokens.tokens.retain(|token| token.id != id));
        Ok(())
    }

    fn prune(&self, now: Timestamp) -> Result<usize, RecordStoreError> {
        Ok(self.with(|inner| {
            let all = &mut inner.tokens.tokens;
            let before = all.len();
            all.retain(|token| token.is_valid(now));
            before - all.len()
        }))
    }

    fn note_use(&self, id: &str, now: Timestamp) -> Result<(), RecordStoreError> {
        self.with(|inner| {
            if let Some(token) = inner.tokens.find(id) {
                token.used_at = token.used_at.max(Some(seconds(now)));
            }
        });
        Ok(())
    }

    fn block(&self, caller: &BlockedCaller) -> Result<Added, RecordStoreError> {
        Ok(self.with(|inner| {
            let table = &mut inner.tokens;
            if table.is_blocked(&caller.issuer, &caller.subject) {
                return Added::Already;
            }
            if table.blocked.len() >= MOST {
                return Added::Full;
            }
            table.blocked.push(caller.clone());
            Added::Yes
        }))
    }

    fn unblock(&self, issuer: &str, subject: &str) -> Result<bool, RecordStoreError> {
        Ok(self.with(|inner| {
            let blocked = &mut inner.tokens.blocked;
            let before = blocked.len();
            blocked.retain(|caller| caller.issuer != issuer || caller.subject != subject);
            blocked.len() < before
        }))
    }

    fn blocked(&self) -> Result<Vec<BlockedCaller>, RecordStoreError> {
        Ok(self.with(|inner| inner.tokens.blocked.clone()))
    }

    fn is_blocked(&self, issuer: &str, subject: &str) -> Result<bool, RecordStoreError> {
        Ok(self.with(|inner| inner.tokens.is_blocked(issuer, subject)))
    }
}
