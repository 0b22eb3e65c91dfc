//! Patterns that only credentials match: only a credential begins with `ghp_` or has the digits of a payment card.

use super::scan::{FoundCredential, Intent};
use super::{Confidence, CredentialKind};

/// The prefixes of well-known services' keys, as written in a pattern.
const MARKS: &[(&str, CredentialKind)] = &[
    ("ghp_", CredentialKind::Token),
    ("gho_", CredentialKind::Token),
    ("ghs_", CredentialKind::Token),
    ("github_pat_", CredentialKind::Token),
    ("glpat-", CredentialKind::Token),
    ("xox", CredentialKind::Token),
    ("npm_", CredentialKind::Token),
    ("eyJ", CredentialKind::Token),
    ("[Bb]earer", CredentialKind::Token),
    ("Bearer", CredentialKind::Token),
    ("sk-", CredentialKind::ApiKey),
    ("sk_live", CredentialKind::ApiKey),
    ("sk_test", CredentialKind::ApiKey),
    ("sk_", CredentialKind::ApiKey),
    ("rk_live", CredentialKind::ApiKey),
    ("AKIA", CredentialKind::ApiKey),
    ("AIza", CredentialKind::ApiKey),
    ("-----BEGIN", CredentialKind::PrivateKey),
];

/// Digit counts that only these numbers have, however the pattern spells a digit.
const DIGITS: &[(&str, CredentialKind, Confidence)] = &[
    ("D{16}", CredentialKind::Card, Confidence::Certain),
    ("D{13,16}", CredentialKind::Card, Confidence::Certain),
    ("D{13,19}", CredentialKind::Card, Confidence::Certain),
    ("D{15,16}", CredentialKind::Card, Confidence::Certain),
    ("(D{4}-?){3}D{4}", CredentialKind::Card, Confidence::Certain),
    (
        "(D{4}[ -]?){3}D{4}",
        CredentialKind::Card,
        Confidence::Certain,
    ),
    (
        "D{3}-D{2}-D{4}",
        CredentialKind::NationalId,
        Confidence::Certain,
    ),
    (
        "D{3}-?D{2}-?D{4}",
        CredentialKind::NationalId,
        Confidence::Certain,
    ),
];

/// Returns the credential that a pattern describes.
pub(super) fn from_pattern(pattern: &str) -> Option<FoundCredential> {
    // The spellings of other languages, which forms that are read leniently may have.
    let pattern = pattern.trim_start_matches("(?i)");
    let pattern = pattern.strip_prefix("\\A").unwrap_or(pattern);
    let body = pattern
        .trim_start_matches('^')
        .trim_start_matches("(?:")
        .trim_start_matches('(')
        .replace("\\-", "-");
    if let Some((_, secret)) = MARKS.iter().find(|(mark, _)| body.starts_with(mark)) {
        return Some(FoundCredential {
            secret: *secret,
            level: Confidence::Certain,
            intent: Intent::Asked,
        });
    }
    let digits = pattern
        .replace("\\d", "D")
        .replace("[0-9]", "D")
        .replace("\\s", " ")
        .replace("?:", "");
    let digits = digits.trim_start_matches('^').trim_end_matches('$');
    let (_, secret, level) = DIGITS.iter().find(|(shape, ..)| *shape == digits)?;
    Some(FoundCredential {
        secret: *secret,
        level: *level,
        intent: Intent::Asked,
    })
}

/// Returns the credential that a format names, although forms have no such format.
pub(super) fn from_format(name: &str) -> Option<FoundCredential> {
    name.eq_ignore_ascii_case("password")
        .then_some(FoundCredential {
            secret: CredentialKind::Password,
            level: Confidence::Certain,
            intent: Intent::Asked,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_secrets_are_known() {
        for (pattern, secret) in [
            ("^ghp_[A-Za-z0-9]{36}$", CredentialKind::Token),
            ("^(ghp_|gho_).+", CredentialKind::Token),
            (r"^sk\-[a-z]+", CredentialKind::ApiKey),
            ("^AKIA[0-9A-Z]{16}$", CredentialKind::ApiKey),
            ("^-----BEGIN PRIVATE", CredentialKind::PrivateKey),
            (r"^\d{16}$", CredentialKind::Card),
            ("^[0-9]{13,19}$", CredentialKind::Card),
            (r"^(?:\d{4}[ -]?){3}\d{4}$", CredentialKind::Card),
            (r"^\d{3}-\d{2}-\d{4}$", CredentialKind::NationalId),
        ] {
            assert_eq!(
                from_pattern(pattern).map(|found| found.secret),
                Some(secret),
                "{pattern}"
            );
        }
    }

    #[test]
    fn ordinary_patterns_are_not() {
        for pattern in [
            "^[a-z]+$",
            r"^\d{5}$",
            r"^\d{4}-\d{2}-\d{2}$",
            r"^\+?\d{10}$",
            "^v\\d+",
            "",
            "^",
            "^sku-",
            "^task-",
        ] {
            assert_eq!(
                from_pattern(pattern).map(|found| found.secret),
                None,
                "{pattern}"
            );
        }
    }
}
