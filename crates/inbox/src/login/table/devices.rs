//! The devices of people: browsers that show a notification when a question waits, even if no page is open.
//!
//! A device outlives the expiry of its session, since a person wants to be notified overnight. It ends when that
//! session is ended by its person, an administrator, the issuer or further logins; when its browser signs out or
//! another person signs in there; and when the push service no longer knows it. It keeps the issuer's name of the
//! session, so that a logout token ends it even after the session.

use std::fmt;
use std::io;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_forms::view::sanitize;
use mcp_elicit_record::encryption::random_id;
use serde::{Deserialize, Serialize};

use super::{BROWSER, LoginSession, LoginTable, Logins, hash, seconds};
use crate::viewer::SignedIn;

/// The most devices of one person; a further one replaces the oldest.
const MOST_OF_ONE: usize = 10;
/// The most devices in all.
const MOST: usize = 20_000;

/// The subscription of a browser at its push service.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceKeys {
    /// The address at which the push service accepts messages for the browser. It allows anyone who knows it to send.
    pub endpoint: String,
    /// The public key of the browser, in base64url.
    pub p256dh: String,
    /// The secret that the browser shares with its senders, in base64url.
    pub auth: String,
}

/// A newly registered device.
pub struct AddedDevice {
    /// The browser's new cookie.
    pub cookie: String,
    /// The device's public name.
    pub id: String,
    /// The devices that it replaced.
    pub replaced: Vec<Device>,
}

impl fmt::Debug for AddedDevice {
    /// Formats the name: the cookie is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddedDevice")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The reason why a device was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceRefused {
    /// The session of its person has been ended.
    #[error("the session has been ended")]
    SessionEnded,
    /// There are too many devices.
    #[error("there are too many devices")]
    TooMany,
}

/// The reason why a device could not be registered.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// It is refused.
    #[error(transparent)]
    Refused(#[from] DeviceRefused),
    /// The devices cannot be read or written, or there is no randomness.
    #[error("the devices cannot be read or written: {0}")]
    File(#[from] io::Error),
}

/// The prefix of a device among the recipients of the record's messages.
const RECIPIENT: &str = "device:";

/// Writes the device of this public name as a recipient for the record.
pub fn recipient(id: &str) -> String {
    format!("{RECIPIENT}{id}")
}

/// Returns the public name of the device in a recipient of the record.
pub fn id_of_recipient(recipient: &str) -> Option<&str> {
    recipient.strip_prefix(RECIPIENT)
}

impl fmt::Debug for DeviceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceKeys(***)")
    }
}

/// A browser that is notified of questions.
#[derive(Clone, Serialize, Deserialize)]
pub struct Device {
    /// SHA-256 of the browser's cookie, in hexadecimal digits.
    digest: String,
    person: String,
    issuer: String,
    subject: String,
    /// The public name of the session in which the browser was last signed in.
    session: String,
    /// The issuer's name of that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sid: Option<String>,
    browser: String,
    made: u64,
    keys: DeviceKeys,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("id", &self.id())
            .field("person", &self.person)
            .finish_non_exhaustive()
    }
}

impl Device {
    /// Returns its public name, sixteen hexadecimal digits.
    pub fn id(&self) -> &str {
        self.digest.get(..16).unwrap_or_default()
    }

    /// Returns the person.
    pub fn person(&self) -> &str {
        &self.person
    }

    /// Returns the public name of the session in which the browser was last signed in.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Returns the browser's own name, made safe to show.
    pub fn browser(&self) -> &str {
        &self.browser
    }

    /// Returns the time of its registration, in seconds since 1970.
    pub fn made(&self) -> u64 {
        self.made
    }

    fn is_of(&self, person: &str, issuer: &str, subject: &str) -> bool {
        self.person == person && self.issuer == issuer && self.subject == subject
    }

    /// Returns the browser's subscription.
    pub fn keys(&self) -> &DeviceKeys {
        &self.keys
    }
}

impl LoginTable {
    /// Returns the devices of a person, the latest first, without those of another person who had the same name before.
    pub fn devices_of<'t>(&'t self, person: &'t str) -> impl Iterator<Item = &'t Device> {
        let of = self.devices.iter().rev();
        of.filter(move |device| device.person == person && self.is_current(device))
    }

    /// Returns the device of this public name.
    pub fn device(&self, id: &str) -> Option<&Device> {
        let mut devices = self.devices.iter();
        devices.find(|device| device.id() == id && self.is_current(device))
    }

    fn is_current(&self, device: &Device) -> bool {
        self.people
            .get(&device.person)
            .is_some_and(|known| known.issuer == device.issuer && known.subject == device.subject)
    }

    /// Removes and returns the devices of sessions that were ended.
    pub(super) fn end_devices_of(&mut self, ended: &[LoginSession]) -> Vec<Device> {
        taken(&mut self.devices, |device| {
            let mut ended = ended.iter();
            ended.any(|session| session.id() == device.session)
        })
    }

    /// Removes and returns the devices of an issuer's session, or of all sessions of a subject, that the issuer has
    /// ended, including those whose session here has expired.
    pub(super) fn end_devices_at(
        &mut self,
        issuer: &str,
        subject: Option<&str>,
        sid: Option<&str>,
    ) -> Vec<Device> {
        taken(&mut self.devices, |device| {
            device.issuer == issuer
                && (sid.is_some() || subject.is_some())
                && sid.is_none_or(|sid| device.sid.as_deref() == Some(sid))
                && subject.is_none_or(|subject| device.subject == subject)
        })
    }

    /// Moves the devices of session `before` to the session that replaces it in a browser, if the person is the same.
    /// The others are removed and returned.
    pub(super) fn hand_devices_on(&mut self, before: &str, to: &LoginSession) -> Vec<Device> {
        let ended = taken(&mut self.devices, |device| {
            device.session == before && !device.is_of(&to.person, &to.issuer, &to.subject)
        });
        for device in &mut self.devices {
            if device.session == before {
                to.id().clone_into(&mut device.session);
                device.sid.clone_from(&to.sid);
            }
        }
        ended
    }

    /// Returns the issuer's name of the session of this public name.
    fn sid_of(&self, session: &str) -> Option<String> {
        let mut sessions = self.sessions.iter();
        sessions.find(|known| known.id() == session)?.sid.clone()
    }
}

impl Logins {
    /// Registers the browser of a person as a device, replacing its earlier data.
    ///
    /// # Errors
    /// If the device is refused, the store cannot be read or written, or there is no randomness.
    pub fn add_device(
        &self,
        who: &SignedIn,
        browser: &str,
        before: Option<&str>,
        keys: &DeviceKeys,
        now: Timestamp,
    ) -> Result<AddedDevice, DeviceError> {
        let cookie = format!("{}{}", random_id()?, random_id()?);
        let before = before.map(hash);
        self.0.try_change(|table| {
            if !table.has_session(&who.session) {
                return Err(DeviceRefused::SessionEnded.into());
            }
            // The endpoint belongs to the browser, whichever person was signed in there.
            let mut replaced = taken(&mut table.devices, |device| {
                device.keys.endpoint == keys.endpoint || Some(&device.digest) == before.as_ref()
            });
            let own = table
                .devices
                .iter()
                .filter(|device| device.person == who.person);
            if own.count() >= MOST_OF_ONE {
                let mut devices = table.devices.iter();
                if let Some(oldest) = devices.position(|device| device.person == who.person) {
                    replaced.push(table.devices.remove(oldest));
                }
            }
            if table.devices.len() >= MOST {
                return Err(DeviceRefused::TooMany.into());
            }
            let device = Device {
                digest: hash(&cookie),
                person: who.person.clone(),
                issuer: who.issuer.clone(),
                subject: who.subject.clone(),
                session: who.session.clone(),
                sid: table.sid_of(&who.session),
                browser: sanitize::line(browser, BROWSER),
                made: seconds(now),
                keys: keys.clone(),
            };
            let id = device.id().to_owned();
            table.devices.push(device);
            let cookie = cookie.clone();
            Ok(AddedDevice {
                cookie,
                id,
                replaced,
            })
        })
    }

    /// Handles a sign-in at the browser with this cookie: its device stays if the person is the same and their session
    /// has not been ended meanwhile. Otherwise it is removed and returned.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn device_signed_in(&self, cookie: &str, who: &SignedIn) -> io::Result<Vec<Device>> {
        let digest = hash(cookie);
        if !self
            .table()?
            .devices
            .iter()
            .any(|device| device.digest == digest)
        {
            return Ok(Vec::new());
        }
        self.0.change(|table| {
            let has_ended = !table.has_session(&who.session);
            let ended = taken(&mut table.devices, |device| {
                device.digest == digest
                    && (has_ended || !device.is_of(&who.person, &who.issuer, &who.subject))
            });
            let sid = table.sid_of(&who.session);
            for device in &mut table.devices {
                if device.digest == digest {
                    device.session.clone_from(&who.session);
                    device.sid.clone_from(&sid);
                }
            }
            Ok(ended)
        })
    }

    /// Removes the device of the browser with this cookie, and returns it.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn end_device_of_browser(&self, cookie: &str) -> io::Result<Vec<Device>> {
        let digest = hash(cookie);
        self.end_devices(|device| device.digest == digest)
    }

    /// Removes the devices that `ends` selects, and returns them.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn end_devices(&self, ends: impl Fn(&Device) -> bool) -> io::Result<Vec<Device>> {
        if !self.table()?.devices.iter().any(&ends) {
            return Ok(Vec::new());
        }
        self.0.change(|table| Ok(taken(&mut table.devices, &ends)))
    }
}

/// Takes the devices that `ends` selects out of the list.
fn taken(devices: &mut Vec<Device>, ends: impl Fn(&Device) -> bool) -> Vec<Device> {
    let (ended, kept) = std::mem::take(devices).into_iter().partition(ends);
    *devices = kept;
    ended
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use mcp_elicit_policy::Rules;

    use super::super::{Lifetimes, LoginAdmission, LoginIdentity};
    use super::*;
    use crate::state_folder::tables;

    const FILE: &str = "[people.ada]\nsubject = \"ada\"\n[people.bob]\nsubject = \"bob\"\n";
    const START: Timestamp = Timestamp::from_millis(1_000_000);

    fn keys(endpoint: usize) -> DeviceKeys {
        DeviceKeys {
            endpoint: format!("https://push.example.com/{endpoint}"),
            p256dh: "p".to_owned(),
            auth: "a".to_owned(),
        }
    }

    fn log_in(
        logins: &Logins,
        rules: &Rules,
        name: &str,
        before: Option<&str>,
    ) -> (String, SignedIn) {
        log_in_at(logins, rules, name, before, START)
    }

    fn log_in_at(
        logins: &Logins,
        rules: &Rules,
        name: &str,
        before: Option<&str>,
        now: Timestamp,
    ) -> (String, SignedIn) {
        let identity = LoginIdentity {
            issuer: "i".to_owned(),
            subject: name.to_owned(),
            sid: Some(format!("sid-{name}")),
            ..LoginIdentity::default()
        };
        let admission = LoginAdmission {
            people: rules.people(),
            allow: &[],
            lifetimes: Lifetimes {
                idle: Duration::from_secs(60 * 60),
                max: Duration::from_secs(60 * 60),
            },
        };
        let made = logins.log_in(&identity, admission, before, "b", now);
        let made = made.unwrap();
        (made.cookie, made.signed_in)
    }

    #[test]
    fn a_device_goes_on_after_the_time_of_its_session_and_a_logout_token_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let logins = Logins::of(Arc::new(tables(&folder.path().join("record.sqlite"))));
        let rules = Rules::parse(FILE).unwrap();
        let (_, ada) = log_in(&logins, &rules, "ada", None);
        let add = |endpoint: usize| {
            let added = logins.add_device(&ada, "b", None, &keys(endpoint), START);
            added.unwrap().id
        };
        let id = add(1);
        let later = START.after(Duration::from_secs(2 * 60 * 60));
        log_in_at(&logins, &rules, "bob", None, later);
        let table = logins.table().unwrap();
        assert!(
            table
                .sessions()
                .iter()
                .all(|session| session.person() != "ada")
        );
        assert!(table.device(&id).is_some(), "told overnight");
        let end = |sub: &str, sid: &str| {
            let ended =
                logins.end_by_token("i", Some(sub), Some(sid), &format!("{sub} {sid}"), later);
            let devices = ended.unwrap().unwrap().devices;
            devices
                .iter()
                .map(|device| device.id().to_owned())
                .collect::<Vec<_>>()
        };
        assert!(end("ada", "sid-other").is_empty() && end("bob", "sid-ada").is_empty());
        assert_eq!(end("ada", "sid-ada"), [id]);
        assert!(logins.table().unwrap().devices_of("ada").next().is_none());
    }

    #[test]
    fn a_device_ends_with_a_session_that_further_logins_push_out() {
        let folder = tempfile::tempdir().unwrap();
        let logins = Logins::of(Arc::new(tables(&folder.path().join("record.sqlite"))));
        let rules = Rules::parse(FILE).unwrap();
        let (_, ada) = log_in(&logins, &rules, "ada", None);
        let added = logins.add_device(&ada, "b", None, &keys(1), START);
        let id = added.unwrap().id;
        let of_ada = |logins: &Logins| logins.table().unwrap().devices_of("ada").count();
        while logins.table().unwrap().has_session(&ada.session) {
            assert_eq!(of_ada(&logins), 1);
            log_in(&logins, &rules, "ada", None);
        }
        assert_eq!(of_ada(&logins), 0);
        assert!(logins.table().unwrap().device(&id).is_none());
    }

    #[test]
    fn a_device_goes_over_to_the_session_that_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let logins = Logins::of(Arc::new(tables(&folder.path().join("record.sqlite"))));
        let rules = Rules::parse(FILE).unwrap();
        let (cookie, ada) = log_in(&logins, &rules, "ada", None);
        logins.add_device(&ada, "b", None, &keys(1), START).unwrap();
        let (cookie, again) = log_in(&logins, &rules, "ada", Some(&cookie));
        let table = logins.table().unwrap();
        let sessions: Vec<&str> = table.devices_of("ada").map(Device::session).collect();
        assert_eq!(sessions, [again.session.as_str()]);
        // Another person takes the browser, which sends no device cookie.
        log_in(&logins, &rules, "bob", Some(&cookie));
        assert!(logins.table().unwrap().devices_of("ada").next().is_none());
    }

    #[test]
    fn a_device_ends_with_its_session_and_with_another_person() {
        let folder = tempfile::tempdir().unwrap();
        let logins = Logins::of(Arc::new(tables(&folder.path().join("record.sqlite"))));
        let rules = Rules::parse(FILE).unwrap();
        let (first, ada) = log_in(&logins, &rules, "ada", None);
        let add = |who: &SignedIn, endpoint: usize, before: Option<&str>| {
            let added = logins.add_device(who, "b", before, &keys(endpoint), START);
            added.unwrap().cookie
        };
        let of = |person: &str| logins.table().unwrap().devices_of(person).count();
        let device = add(&ada, 1, None);
        assert_eq!((of("ada"), of("bob")), (1, 0));
        // The same browser again.
        let device = add(&ada, 1, Some(&device));
        let device = add(&ada, 2, Some(&device));
        assert_eq!(of("ada"), 1);
        // After another sign-in, the device belongs to the new session.
        let (_, again) = log_in(&logins, &rules, "ada", Some(&first));
        logins.device_signed_in(&device, &again).unwrap();
        logins.end(|session| session.id() == ada.session).unwrap();
        assert_eq!(of("ada"), 1);
        logins.end(|session| session.id() == again.session).unwrap();
        assert_eq!(of("ada"), 0);

        let (_, ada) = log_in(&logins, &rules, "ada", None);
        let device = add(&ada, 3, None);
        let (_, bob) = log_in(&logins, &rules, "bob", None);
        logins.device_signed_in(&device, &bob).unwrap();
        assert_eq!((of("ada"), of("bob")), (0, 0), "nobody is told for another");
        add(&ada, 4, None);
        // Another person takes the same browser.
        add(&bob, 4, None);
        assert_eq!((of("ada"), of("bob")), (0, 1));
        logins.unbind("bob").unwrap();
        assert_eq!(of("bob"), 0);

        add(&ada, 5, None);
        let ended = logins.end_by_token("i", Some("ada"), None, "t", START);
        assert!(ended.unwrap().is_some());
        assert_eq!(of("ada"), 0, "signed out everywhere");
    }

    #[test]
    fn a_session_that_was_ended_leaves_no_device() {
        let folder = tempfile::tempdir().unwrap();
        let logins = Logins::of(Arc::new(tables(&folder.path().join("record.sqlite"))));
        let rules = Rules::parse(FILE).unwrap();
        let (_, ada) = log_in(&logins, &rules, "ada", None);
        let added = logins.add_device(&ada, "b", None, &keys(1), START);
        let device = added.unwrap().cookie;
        let (_, again) = log_in(&logins, &rules, "ada", None);
        logins.end(|session| session.id() == again.session).unwrap();
        let refused = logins.add_device(&again, "b", None, &keys(2), START);
        let ended = DeviceRefused::SessionEnded;
        assert!(matches!(refused, Err(DeviceError::Refused(why)) if why == ended));
        assert_eq!(logins.table().unwrap().devices_of("ada").count(), 1);
        // Ended between the login and the check of its browser's device.
        let ended = logins.device_signed_in(&device, &again).unwrap();
        assert_eq!(ended.len(), 1);
        assert_eq!(logins.table().unwrap().devices_of("ada").count(), 0);
    }

    #[test]
    fn a_person_has_so_many_devices_and_no_secret_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let logins = Logins::of(Arc::new(tables(&folder.path().join("record.sqlite"))));
        let rules = Rules::parse(FILE).unwrap();
        let (_, ada) = log_in(&logins, &rules, "ada", None);
        for endpoint in 0..2 * MOST_OF_ONE {
            let added = logins.add_device(&ada, "b", None, &keys(endpoint), START);
            let added = added.unwrap();
            // The oldest is replaced.
            assert_eq!(added.replaced.len(), usize::from(endpoint >= MOST_OF_ONE));
        }
        let table = logins.table().unwrap();
        let devices: Vec<&Device> = table.devices_of("ada").collect();
        assert_eq!(devices.len(), MOST_OF_ONE);
        assert_eq!(devices[0].keys(), &keys(2 * MOST_OF_ONE - 1));
        let shown = format!("{:?} {:?}", devices[0], devices[0].keys());
        assert!(!shown.contains("push.example.com"), "{shown}");
        let id = devices[0].id().to_owned();
        let end = || logins.end_devices(|device| device.id() == id).unwrap();
        assert_eq!(end().len(), 1);
        assert!(end().is_empty());
        assert!(logins.table().unwrap().device(&id).is_none());
    }
}
