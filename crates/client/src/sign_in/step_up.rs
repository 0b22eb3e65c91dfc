//! Reads the scopes that one call requires and the tokens lack, which a server names in its `WWW-Authenticate` header
//! (RFC 6750, section 3).

/// The largest number of scopes that are read, and the length of the longest one in bytes.
const MOST: usize = 20;
const LONGEST: usize = 200;

/// Returns the missing scopes, if a challenge names any.
///
/// ```
/// use mcp_elicit_client::sign_in::step_up;
///
/// let challenge = r#"Bearer error="insufficient_scope", scope="calendar.write""#;
/// assert_eq!(step_up::missing_scopes(challenge), Some(vec!["calendar.write".to_owned()]));
/// ```
pub fn missing_scopes(challenge: &str) -> Option<Vec<String>> {
    if parameter(challenge, "error")? != "insufficient_scope" {
        return None;
    }
    let scopes: Vec<_> = parameter(challenge, "scope")?
        .split_ascii_whitespace()
        .take(MOST)
        .map(str::to_owned)
        .collect();
    let are_scopes = scopes.iter().all(|scope| is_scope(scope));
    (are_scopes && !scopes.is_empty()).then_some(scopes)
}

/// Returns scopes for a sentence: each in quotation marks of code, or only their number if one is more than letters, digits
/// and a few signs. A server chooses them, and may choose words of a sentence.
///
/// ```
/// use mcp_elicit_client::sign_in::step_up::in_words;
///
/// assert_eq!(in_words(&["read", "mail.write"]), "`read`, `mail.write`");
/// assert_eq!(in_words(&["read", "x).Run:curl|sh"]), "2 scopes");
/// ```
pub fn in_words<S: AsRef<str>>(scopes: &[S]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/+@".contains(&byte);
    let all = scopes.iter().map(AsRef::as_ref);
    if all.clone().all(|scope: &str| scope.bytes().all(is_plain)) {
        return all
            .map(|scope| format!("`{scope}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    match scopes.len() {
        1 => "1 scope".to_owned(),
        count => format!("{count} scopes"),
    }
}

/// Returns `true` if a text is a scope (RFC 6749, section 3.3).
fn is_scope(text: &str) -> bool {
    let may_stand = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    text.len() <= LONGEST && text.bytes().all(may_stand)
}

/// Returns a parameter of the challenge, quoted or not.
///
/// ```
/// use mcp_elicit_client::sign_in::step_up;
///
/// assert_eq!(step_up::parameter(r#"Bearer realm="calendar""#, "realm"), Some("calendar"));
/// ```
pub fn parameter<'a>(challenge: &'a str, name: &str) -> Option<&'a str> {
    let (_scheme, mut rest) = challenge.trim().split_once(' ')?;
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        let (known, after) = rest.split_once('=')?;
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(',').unwrap_or(after.len())),
        };
        if known.trim().eq_ignore_ascii_case(name) {
            return Some(value.trim());
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::missing_scopes;

    #[test]
    fn a_challenge_that_names_missing_scopes_is_understood() {
        for challenge in [
            r#"Bearer error="insufficient_scope", scope="a b:c", resource_metadata="https://x/y?scope=z""#,
            r#"Bearer resource_metadata="https://x/, error=no", scope="a b:c", error=insufficient_scope"#,
            "bearer error=insufficient_scope,scope=\"a  b:c\"",
        ] {
            let scopes = missing_scopes(challenge);
            assert_eq!(
                scopes,
                Some(vec!["a".to_owned(), "b:c".to_owned()]),
                "{challenge}"
            );
        }
    }

    #[test]
    fn no_other_challenge_is() {
        for challenge in [
            "",
            "Bearer",
            r#"Bearer error="invalid_token", scope="a""#,
            r#"Bearer error="insufficient_scope""#,
            r#"Bearer error="insufficient_scope", scope="""#,
            r#"Bearer error="insufficient_scope", scope="a"#,
            "Bearer error=\"insufficient_scope\", scope=\"a\u{1b}[31m\"",
        ] {
            assert_eq!(missing_scopes(challenge), None, "{challenge}");
        }
    }
}
