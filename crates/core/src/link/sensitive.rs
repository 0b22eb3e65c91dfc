//! Names and patterns of data that does not belong in a URL: credentials and a person's data.

/// Returns `true` if a parameter of this name holds a credential. An ambiguous name counts only with a matching value.
pub(super) fn is_credential_name(words: &[String], value: &str) -> bool {
    const ALWAYS: &str = "token accesstoken idtoken refreshtoken authtoken apikey secret clientsecret password \
        passwd pwd passphrase bearer jwt credential credentials otp sessionid jsessionid phpsessid \
        privatekey cvv";
    const IN_DOUBT: &str = "key auth authorization pass sid session pin sig";
    // "token_type", "id_token_hint", "password_reset", "session_expired": about a credential, without containing it.
    const ABOUT: &str =
        "type types hint reset expired expires expiry limit endpoint url uri policy count method";
    let Some(last) = words.last() else {
        return false;
    };
    if listed(ABOUT, last) {
        return false;
    }
    let joined = words.concat();
    let pair = words
        .len()
        .checked_sub(2)
        .map(|at| words[at..].concat())
        .unwrap_or_default();
    if [joined.as_str(), pair.as_str(), last.as_str()]
        .iter()
        .any(|name| listed(ALWAYS, name))
    {
        return true;
    }
    listed(IN_DOUBT, last) && is_random(value)
}

pub(super) fn is_personal_name(words: &[String]) -> bool {
    const PERSONAL: &str = "email mail useremail emailaddress phone phonenumber tel mobile ssn dob birthdate birthday \
        dateofbirth firstname lastname fullname surname username streetaddress postaladdress \
        passport iban creditcard cardnumber";
    let joined = words.concat();
    let pair = words
        .len()
        .checked_sub(2)
        .map(|at| words[at..].concat())
        .unwrap_or_default();
    listed(PERSONAL, &joined) || listed(PERSONAL, &pair)
}

/// Returns `true` if the value is long and mixed enough to be machine-generated.
fn is_random(value: &str) -> bool {
    value.len() >= 16
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.~+/=".contains(&byte))
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Returns `true` for formats that only credentials have: JSON Web Tokens, and the prefixed keys of well-known
/// services.
pub(super) fn is_credential_shaped(value: &str) -> bool {
    const MARKS: &str = "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xoxb- xoxp- sk- sk_live_ sk_test_ rk_live_ \
        AKIA AIza npm_";
    let marked = MARKS.split(' ').any(|mark| {
        value
            .strip_prefix(mark)
            .is_some_and(|rest| rest.len() >= 12 && is_random(value))
    });
    marked || is_jwt_shaped(value)
}

/// Returns `true` for the format of RFC 7519: three dotted parts of base64url, the first of which encodes `{"`.
fn is_jwt_shaped(value: &str) -> bool {
    let parts: Vec<&str> = value.splitn(4, '.').collect();
    value.starts_with("eyJ")
        && parts.len() == 3
        && parts[..2].iter().all(|part| part.len() > 4)
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

pub(super) fn is_email_shaped(value: &str) -> bool {
    value.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && !domain.contains('@')
            && domain
                .split_once('.')
                .is_some_and(|(name, rest)| !name.is_empty() && !rest.is_empty())
            && !value
                .chars()
                .any(|c| c.is_whitespace() || matches!(c, '/' | ':' | '?'))
    })
}

fn listed(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}
