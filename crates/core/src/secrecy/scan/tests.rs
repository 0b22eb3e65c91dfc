use super::*;

fn label(text: &str) -> Option<(CredentialKind, Confidence)> {
    scan(text, TextStyle::Label)
        .found
        .map(|found| (found.secret, found.level))
}

fn prose(text: &str) -> Option<(CredentialKind, Confidence)> {
    scan(text, TextStyle::Prose)
        .found
        .map(|found| (found.secret, found.level))
}

#[test]
fn labels_that_ask_for_a_secret() {
    use CredentialKind::{
        ApiKey, BankAccount, Card, CardCode, NationalId, OneTimeCode, Password, Pin, PrivateKey,
        SeedPhrase, Token,
    };
    for (text, secret) in [
        ("password", Password),
        ("Password", Password),
        ("PASSWORD", Password),
        ("user_password", Password),
        ("userPassword", Password),
        ("dbpassword", Password),
        ("Confirm password", Password),
        ("password2", Password),
        ("Password (required)", Password),
        ("New password again", Password),
        ("Password for GitHub", Password),
        ("pass word", Password),
        ("p a s s w o r d", Password),
        ("p4ssw0rd", Password),
        ("pаsswоrd", Password),
        ("ｐａｓｓｗｏｒｄ", Password),
        ("pass\u{200b}word", Password),
        ("Passwort", Password),
        ("Datenbankpasswort", Password),
        ("Kennwort", Password),
        ("Mot de passe", Password),
        ("Contraseña", Password),
        ("senha", Password),
        ("Wachtwoord", Password),
        ("hasło", Password),
        ("Lösenord", Password),
        ("Пароль", Password),
        ("密码", Password),
        ("パスワード", Password),
        ("비밀번호", Password),
        ("رمز كلمة المرور", Password),
        ("Mật khẩu", Password),
        ("Username and password", Password),
        ("api_key", ApiKey),
        ("apiKey", ApiKey),
        ("APIKey", ApiKey),
        ("X-API-Key", ApiKey),
        ("OpenAI API key", ApiKey),
        ("openai_api_key", ApiKey),
        ("client_secret", ApiKey),
        ("AWS Secret Access Key", ApiKey),
        ("API-Schlüssel", ApiKey),
        ("Clé API", ApiKey),
        ("clave de API", ApiKey),
        ("accessToken", Token),
        ("personal access token", Token),
        ("JWT", Token),
        ("hf_token", Token),
        ("GITHUB_PAT", Token),
        ("Contraseña nueva", Password),
        ("private_key", PrivateKey),
        ("SSH private key", PrivateKey),
        ("seed phrase", SeedPhrase),
        ("Secret recovery phrase", SeedPhrase),
        ("助记词", SeedPhrase),
        ("OTP", OneTimeCode),
        ("one-time password", OneTimeCode),
        ("verificationCode", OneTimeCode),
        ("2FA code", OneTimeCode),
        ("验证码", OneTimeCode),
        ("card pin", Pin),
        ("Credit card number", Card),
        ("cardNumber", Card),
        ("Kreditkartennummer", Card),
        ("CVV", CardCode),
        ("cvc2", CardCode),
        ("SSN", NationalId),
        ("Social Security Number", NationalId),
    ] {
        assert_eq!(label(text), Some((secret, Confidence::Certain)), "{text}");
    }
    for (text, secret) in [
        ("token", Token),
        ("secret", ApiKey),
        ("pin", Pin),
        ("PIN code", Pin),
        ("passwords", Password),
        ("password_required", Password),
        ("arcade token", Token),
        ("password banana", Password),
        ("security code", CardCode),
        ("bank account number", BankAccount),
    ] {
        assert_eq!(
            label(text),
            Some((secret, Confidence::Suspicious)),
            "{text}"
        );
    }
}

#[test]
fn labels_that_only_sound_like_it() {
    for text in [
        "token limit",
        "token_type",
        "color_token",
        "credential_type",
        "password_change_frequency",
        "s3_key",
        "max_tokens",
        "maxTokens",
        "tokenizer",
        "page_token",
        "nextPageToken",
        "token count",
        "Token symbol",
        "password policy url",
        "password_length",
        "passwordPolicyUrl",
        "password reset email",
        "Forgot password",
        "secret santa",
        "Secret ingredient",
        "secret_name",
        "Name of the secret",
        "secret manager project",
        "client secret name",
        "key",
        "Key",
        "keyboard",
        "primary key",
        "public key",
        "sort_key",
        "api key id",
        "api_key_name",
        "Key of the song",
        "author",
        "authority",
        "authorized_by",
        "auth method",
        "passport office",
        "passenger",
        "compass",
        "bypass",
        "passage",
        "boarding pass",
        "pass rate",
        "pinned",
        "spinning",
        "pineapple",
        "GPIO pin",
        "shopping",
        "opinion",
        "pin color",
        "card type",
        "credit card company",
        "Card holder name",
        "postcard",
        "scorecard",
        "code",
        "zip code",
        "country code",
        "error code",
        "discount code",
        "session",
        "certificate authority",
        "environment",
        "note",
        "email",
        "username",
        "Secretary",
        "secretariat",
        "private",
        "seed",
        "random seed",
        "phrase",
        "mode de passage",
        "Clés",
        "monkey",
        "turkey",
        "passwordless login",
        "no password",
        "stop token",
        "cookie preference",
        "expiry date",
        "name of the API key",
        "",
    ] {
        assert_eq!(label(text), None, "{text}");
    }
}

#[test]
fn a_script_without_spaces_leaves_doubt_when_the_label_goes_on() {
    assert_eq!(
        label("密码强度"),
        Some((CredentialKind::Password, Confidence::Suspicious))
    );
    assert_eq!(
        label("新密码"),
        Some((CredentialKind::Password, Confidence::Certain))
    );
}

#[test]
fn sentences_that_ask() {
    for text in [
        "Your GitHub personal access token",
        "Please enter your password.",
        "To continue, enter your password",
        "Enter the API key",
        "Paste your OpenAI API key here",
        "We could not sign in. Please provide your account password again",
        "What is your password?",
        "Bitte geben Sie Ihr Passwort ein",
        "Veuillez saisir votre mot de passe",
        "Introduzca su contraseña",
        "请输入您的密码",
        "パスワードを入力してください",
        "Type in the 12 words of your wallet: your seed phrase",
    ] {
        assert_eq!(
            prose(text).map(|(_, level)| level),
            Some(Confidence::Certain),
            "{text}"
        );
    }
    assert_eq!(
        prose("Password").map(|(_, level)| level),
        Some(Confidence::Suspicious)
    );
}

#[test]
fn sentences_that_only_mention() {
    for text in [
        "Do not enter passwords here",
        "Never share your password",
        "Your username, not your password",
        "Name of the secret to rotate",
        "How many tokens the model may write",
        "Your password policy",
        "Enter the name of your API key",
        "Where the password is stored",
        "Used to look up the token of the page",
        "Which environment should I deploy to?",
        "The maximum token limit",
        "We will send a link to reset your password to this address",
        "Pick a name for your new API key",
    ] {
        assert_eq!(prose(text), None, "{text}");
    }
}

#[test]
fn a_message_that_tells_asks_for_nothing() {
    let message = |text| {
        scan(text, TextStyle::Message)
            .found
            .map(|found| found.level)
    };
    for text in [
        "Your access token has expired. Which account should I reconnect?",
        "The API key for staging was rotated. Enter a reason for the audit log.",
        "Choose how the password should be generated",
        "Enter a commit message. It must not contain passwords or API keys.",
        "I will store the token in your keychain. Give it a label.",
    ] {
        assert_eq!(message(text), None, "{text}");
    }
    for (text, level) in [
        (
            "Please type the verification code we sent you",
            Confidence::Certain,
        ),
        ("I need your OpenAI API key", Confidence::Certain),
        (
            "Please share your seed phrase so we can restore your wallet",
            Confidence::Certain,
        ),
        ("Your password is required", Confidence::Suspicious),
        (
            "Login to continue: username/password",
            Confidence::Suspicious,
        ),
    ] {
        assert_eq!(message(text), Some(level), "{text}");
    }
}

#[test]
fn a_harmless_sense_is_told() {
    assert_eq!(
        scan("The page token to continue from", TextStyle::Prose).harmless,
        [CredentialKind::Token]
    );
}

/// A search that is quadratic takes minutes here.
#[test]
fn a_long_text_of_nothing_but_terms_is_read_once() {
    for style in [TextStyle::Label, TextStyle::Prose, TextStyle::Message] {
        let text = "password ".repeat(40_000);
        assert!(scan(&text, style).found.is_some() || style == TextStyle::Message);
        let text = "your password api key of name ".repeat(8_000);
        scan(&text, style);
    }
}
