//! Signatures of Slack's requests (`v0`), and of our own notes in a view.

use data_encoding::HEXLOWER;
use hmac::{Hmac, Mac as _};
use mcp_elicit_core::lifecycle::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::secret::SecretText;

/// The tolerated difference between Slack's clock and ours, in seconds.
const LEEWAY: u64 = 5 * 60;

/// The error of an invalid signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotSigned {
    Headers,
    Time,
    Signature,
}

/// The shared secret of the app.
pub(super) struct Signer(SecretText);

impl Signer {
    pub(super) const fn new(secret: SecretText) -> Self {
        Self(secret)
    }

    fn mac(&self, parts: &[&[u8]]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.reveal().as_bytes()).ok()?;
        for part in parts {
            mac.update(part);
        }
        Some(mac)
    }

    /// Verifies a request, and returns the hash that identifies a repetition.
    pub(super) fn verify(
        &self,
        timestamp: Option<&str>,
        signature: Option<&str>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<[u8; 32], NotSigned> {
        let (Some(timestamp), Some(signature)) = (timestamp, signature) else {
            return Err(NotSigned::Headers);
        };
        let is_number = (1..=12).contains(&timestamp.len())
            && timestamp.bytes().all(|byte| byte.is_ascii_digit());
        let seconds = is_number.then(|| timestamp.parse::<u64>().ok()).flatten();
        let seconds = seconds.ok_or(NotSigned::Headers)?;
        if seconds.abs_diff(now.as_millis() / 1000) > LEEWAY {
            return Err(NotSigned::Time);
        }
        let given = signature.strip_prefix("v0=").ok_or(NotSigned::Headers)?;
        let given = HEXLOWER
            .decode(given.as_bytes())
            .map_err(|_| NotSigned::Headers)?;
        let mac = self.mac(&[b"v0:", timestamp.as_bytes(), b":", body]);
        // Compares in constant time.
        mac.ok_or(NotSigned::Signature)?
            .verify_slice(&given)
            .map_err(|_| NotSigned::Signature)?;
        Ok(Sha256::digest(&given).into())
    }

    /// Returns the note of a view: the question and its version, for one Slack user.
    pub(super) fn note(&self, question: &str, version: u64, user: &str) -> String {
        let text = format!("{question}:{version}");
        let mac = self.mac(&[b"view:", user.as_bytes(), b":", text.as_bytes()]);
        let mac = mac.map(|mac| HEXLOWER.encode(&mac.finalize().into_bytes()));
        format!("{text}:{}", mac.unwrap_or_default())
    }

    /// Reads a note from this user's view.
    pub(super) fn read_note(&self, note: &str, user: &str) -> Option<(String, u64)> {
        let (text, mac) = note.rsplit_once(':')?;
        let given = HEXLOWER.decode(mac.as_bytes()).ok()?;
        let expected = self.mac(&[b"view:", user.as_bytes(), b":", text.as_bytes()])?;
        expected.verify_slice(&given).ok()?;
        let (question, version) = text.rsplit_once(':')?;
        Some((question.to_owned(), version.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Slack's documentation.
    const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
    const TIME: u64 = 1_531_420_618;
    const BODY: &[u8] = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const SIGNATURE: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";

    #[test]
    fn the_example_of_slacks_documentation_holds_and_nothing_else() {
        let signer = Signer::new(SecretText::new(SECRET));
        let verify = |time: &str, signature: &str, body: &[u8], now: u64| {
            let now = Timestamp::from_millis(now * 1000);
            signer.verify(Some(time), Some(signature), body, now).err()
        };
        let time = TIME.to_string();
        assert_eq!(verify(&time, SIGNATURE, BODY, TIME), None);
        assert_eq!(verify(&time, SIGNATURE, BODY, TIME + 300), None);
        for now in [TIME + 301, TIME - 301, 0] {
            assert_eq!(verify(&time, SIGNATURE, BODY, now), Some(NotSigned::Time));
        }
        let other = (TIME + 1).to_string();
        assert_eq!(
            verify(&other, SIGNATURE, BODY, TIME),
            Some(NotSigned::Signature)
        );
        assert_eq!(
            verify(&time, SIGNATURE, b"token=x", TIME),
            Some(NotSigned::Signature)
        );
        let bare = &SIGNATURE[3..];
        for (time, signature) in [
            (&*time, bare),
            (&*time, "v0="),
            (&*time, "v0=zz"),
            (&*time, "v1=a2"),
            ("", SIGNATURE),
            ("+1531420618", SIGNATURE),
            ("1531420618.0", SIGNATURE),
        ] {
            assert!(
                verify(time, signature, BODY, TIME).is_some(),
                "{time} {signature}"
            );
        }
        let now = Timestamp::from_millis(TIME * 1000);
        assert_eq!(
            signer.verify(None, Some(SIGNATURE), BODY, now),
            Err(NotSigned::Headers)
        );
    }

    #[test]
    fn notes_are_for_one_user() {
        let signer = Signer::new(SecretText::new(SECRET));
        let note = signer.note("5f2c:8a", 7, "U1");
        assert_eq!(
            signer.read_note(&note, "U1"),
            Some(("5f2c:8a".to_owned(), 7))
        );
        assert_eq!(signer.read_note(&note, "U2"), None);
        assert_eq!(signer.read_note(&note.replacen('7', "8", 1), "U1"), None);
        assert_eq!(signer.read_note("", "U1"), None);
    }
}
