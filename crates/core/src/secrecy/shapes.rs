//! Patterns that give a secret away: only a credential begins with `ghp_` or has the digits of a payment card.

use super::scan::{Found, Voice};
use super::{Level, Secret};

/// The marks with which well-known services begin their keys, as they stand in a pattern.
const MARKS: &[(&str, Secret)] = &[
    ("ghp_", Secret::Token),
    ("gho_", Secret::Token),
    ("ghs_", Secret::Token),
    ("github_pat_", Secret::Token),
    ("glpat-", Secret::Token),
    ("xox", Secret::Token),
    ("npm_", Secret::Token),
    ("eyJ", Secret::Token),
    ("[Bb]earer", Secret::Token),
    ("Bearer", Secret::Token),
    ("sk-", Secret::ApiKey),
    ("sk_live", Secret::ApiKey),
    ("sk_test", Secret::ApiKey),
    ("sk_", Secret::ApiKey),
    ("rk_live", Secret::ApiKey),
    ("AKIA", Secret::ApiKey),
    ("AIza", Secret::ApiKey),
    ("-----BEGIN", Secret::PrivateKey),
];

/// Digits as only these numbers have them, however the pattern spells a digit.
const DIGITS: &[(&str, Secret, Level)] = &[
    ("D{16}", Secret::Card, Level::Certain),
    ("D{13,16}", Secret::Card, Level::Certain),
    ("D{13,19}", Secret::Card, Level::Certain),
    ("D{15,16}", Secret::Card, Level::Certain),
    ("(D{4}-?){3}D{4}", Secret::Card, Level::Certain),
    ("(D{4}[ -]?){3}D{4}", Secret::Card, Level::Certain),
    ("D{3}-D{2}-D{4}", Secret::NationalId, Level::Certain),
    ("D{3}-?D{2}-?D{4}", Secret::NationalId, Level::Certain),
];

/// Returns the credential that a pattern has the shape of.
pub(super) fn of_pattern(pattern: &str) -> Option<Found> {
    let body = pattern
        .trim_start_matches('^')
        .trim_start_matches("(?:")
        .trim_start_matches('(')
        .replace("\\-", "-");
    if let Some((_, secret)) = MARKS.iter().find(|(mark, _)| body.starts_with(mark)) {
        return Some(Found {
            secret: *secret,
            level: Level::Certain,
            voice: Voice::Asked,
        });
    }
    let digits = pattern
        .replace("\\d", "D")
        .replace("[0-9]", "D")
        .replace("\\s", " ")
        .replace("?:", "");
    let digits = digits.trim_start_matches('^').trim_end_matches('$');
    let (_, secret, level) = DIGITS.iter().find(|(shape, ..)| *shape == digits)?;
    Some(Found {
        secret: *secret,
        level: *level,
        voice: Voice::Asked,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_secrets_are_known() {
        for (pattern, secret) in [
            ("^ghp_[A-Za-z0-9]{36}$", Secret::Token),
            ("^(ghp_|gho_).+", Secret::Token),
            (r"^sk\-[a-z]+", Secret::ApiKey),
            ("^AKIA[0-9A-Z]{16}$", Secret::ApiKey),
            ("^-----BEGIN PRIVATE", Secret::PrivateKey),
            (r"^\d{16}$", Secret::Card),
            ("^[0-9]{13,19}$", Secret::Card),
            (r"^(?:\d{4}[ -]?){3}\d{4}$", Secret::Card),
            (r"^\d{3}-\d{2}-\d{4}$", Secret::NationalId),
        ] {
            assert_eq!(
                of_pattern(pattern).map(|found| found.secret),
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
                of_pattern(pattern).map(|found| found.secret),
                None,
                "{pattern}"
            );
        }
    }
}
