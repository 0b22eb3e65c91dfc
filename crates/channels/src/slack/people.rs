//! The person of a Slack user, by a mail address that the workspace has verified.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::tz::TimeZone;
use mcp_elicit_core::lifecycle::Timestamp;
use serde_json::Value;

use super::Slack;

/// The time for which a user is cached.
const KNOWN: Duration = Duration::from_secs(10 * 60);
/// The most cached users.
const MOST: usize = 10_000;

/// A full member of the workspace.
#[derive(Clone, PartialEq, Eq)]
pub struct SlackUser {
    /// The workspace.
    pub team: String,
    /// The user's id.
    pub user: String,
    /// The mail address, in lower case.
    pub mail: String,
    /// The user's time zone.
    pub zone: TimeZone,
}

impl std::fmt::Debug for SlackUser {
    /// Formats everything but the mail address.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlackUser")
            .field("team", &self.team)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// The cached users.
#[derive(Default)]
pub(super) struct KnownUsers(Mutex<HashMap<String, (Arc<SlackUser>, Timestamp)>>);

impl KnownUsers {
    pub(super) fn get(&self, user: &str, now: Timestamp) -> Option<Arc<SlackUser>> {
        let users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (found, at) = users.get(user)?;
        (now.since(*at) < KNOWN).then(|| Arc::clone(found))
    }

    fn put(&self, user: Arc<SlackUser>, now: Timestamp) {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if users.len() >= MOST {
            users.retain(|_, (_, at)| now.since(*at) < KNOWN);
        }
        if users.len() < MOST {
            users.insert(user.user.clone(), (user, now));
        }
    }
}

/// The reason why a Slack user is not a person here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// Slack cannot be asked.
    Unknown,
    /// A guest, a bot, a user of another workspace, or one without an address.
    NotMember,
}

impl Slack {
    /// Returns the user, from the cache or from Slack.
    pub(super) async fn user(
        &self,
        user: &str,
        now: Timestamp,
    ) -> Result<Arc<SlackUser>, Stranger> {
        if let Some(found) = self.users.get(user, now) {
            return Ok(found);
        }
        let info = self.api.look_up("users.info", "user", user).await;
        let info = info.map_err(|_| Stranger::Unknown)?;
        let found = member(&info["user"], &self.team).filter(|found| found.user == user);
        let found = Arc::new(found.ok_or(Stranger::NotMember)?);
        self.users.put(Arc::clone(&found), now);
        Ok(found)
    }
}

/// Reads a user object; `None` unless it is a full member of this workspace with an address. A missing flag is assumed
/// to be unfavourable.
fn member(user: &Value, team: &str) -> Option<SlackUser> {
    let is_off = |flag: &str| user[flag] == false;
    // Only users of other workspaces have this flag.
    let is_stranger = user.get("is_stranger").is_some_and(|flag| flag != false);
    // Not every workspace reports it; if it does, the address must be confirmed.
    let is_unconfirmed = user
        .get("is_email_confirmed")
        .is_some_and(|flag| flag != true);
    let is_member = user["team_id"] == team
        && is_off("deleted")
        && is_off("is_bot")
        && is_off("is_restricted")
        && is_off("is_ultra_restricted")
        && !is_stranger
        && !is_unconfirmed;
    if !is_member {
        return None;
    }
    let mail = user["profile"]["email"]
        .as_str()?
        .trim()
        .to_ascii_lowercase();
    let zone = user["tz"]
        .as_str()
        .and_then(|name| TimeZone::get(name).ok());
    (mail.contains('@')).then(|| SlackUser {
        team: team.to_owned(),
        user: user["id"].as_str().unwrap_or_default().to_owned(),
        mail,
        zone: zone.unwrap_or(TimeZone::UTC),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_full_members_with_an_address_are_people() {
        let sound = json!({
            "id": "U1", "team_id": "T1", "deleted": false, "is_bot": false, "is_restricted": false,
            "is_ultra_restricted": false, "tz": "Europe/Berlin", "profile": {"email": "Ops-1@Example.com"},
        });
        let found = member(&sound, "T1").unwrap();
        assert_eq!(found.mail, "ops-1@example.com");
        assert!(!format!("{found:?}").contains("ops-1"));
        // The lower case of the kelvin sign is `k`, which makes another mailbox.
        let mut kelvin = sound.clone();
        kelvin["profile"]["email"] = "\u{212a}im@example.com".into();
        let found = member(&kelvin, "T1").unwrap();
        assert_eq!(found.mail, "\u{212a}im@example.com");
        assert!(member(&sound, "T2").is_none());
        for flag in [
            "deleted",
            "is_bot",
            "is_restricted",
            "is_ultra_restricted",
            "is_stranger",
        ] {
            let mut guest = sound.clone();
            guest[flag] = true.into();
            assert!(member(&guest, "T1").is_none(), "{flag}");
        }
        let mut unconfirmed = sound.clone();
        unconfirmed["is_email_confirmed"] = false.into();
        assert!(member(&unconfirmed, "T1").is_none());
        for missing in ["deleted", "is_restricted", "profile"] {
            let mut user = sound.clone();
            user.as_object_mut().unwrap().remove(missing);
            assert!(member(&user, "T1").is_none(), "{missing}");
        }
    }

    #[test]
    fn users_are_asked_about_again_after_ten_minutes() {
        let known = KnownUsers::default();
        let now = Timestamp::from_millis(1_000_000);
        let user = SlackUser {
            team: "T1".to_owned(),
            user: "U1".to_owned(),
            mail: "a@example.com".to_owned(),
            zone: TimeZone::UTC,
        };
        known.put(Arc::new(user), now);
        assert!(known.get("U1", now.after(KNOWN / 2)).is_some());
        assert!(known.get("U1", now.after(KNOWN)).is_none());
        assert!(known.get("U2", now).is_none());
    }
}
