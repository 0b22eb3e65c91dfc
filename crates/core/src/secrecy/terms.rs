//! The words for credentials, and the words that make them harmless. Written as in their language but without accents
//! and with the parts of a compound joined, which is how [`super::words`] and [`super::scan`] see them.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::{Confidence, CredentialKind};

/// The meaning of one word or compound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) secret: CredentialKind,
    pub(super) level: Confidence,
}

/// Terms of scripts with spaces: matched as whole words; a compound may have several.
const TERMS: &[(CredentialKind, Confidence, &str)] = &[
    (
        CredentialKind::Password,
        Confidence::Certain,
        "password passwd pwd passphrase passcode passkey userpass dbpass loginpass \
         passwort kennwort geheimzahl zugangscode motdepasse mdp codesecret phrasesecrete contrasena \
         contrasenya clavedeacceso clavesecreta senha palavrapasse palavrachavedeacesso codicesegreto \
         wachtwoord haslo losenord passord adgangskode adgangskoden salasana heslo jelszo sifre parolaunuz \
         пароль lozinka geslo parool slaptazodis parole katasandi katalaluan matkhau κωδικοςπροσβασης \
         סיסמה סיסמא",
    ),
    (
        CredentialKind::Password,
        Confidence::Suspicious,
        "pass parola clave credential logincredential zugangsdaten logindetails",
    ),
    (
        CredentialKind::ApiKey,
        Confidence::Certain,
        "apikey apisecret secretkey clientsecret appsecret applicationsecret consumersecret sharedsecret \
         webhooksecret signingsecret oauthsecret accesskey secretaccesskey subscriptionkey accountkey servicekey \
         masterkey deploykey serviceaccountkey serviceaccountjson openaikey openaiapikey anthropickey stripekey \
         awskey apischlussel clefapi cleapi clefsecrete clesecrete claveapi clavedeapi chaveapi chavedeapi \
         chavesecreta chiaveapi chiavesegreta apisleutel kluczapi ключapi секретныиключ",
    ),
    (
        CredentialKind::ApiKey,
        Confidence::Suspicious,
        "secret clientkey appkey authkey connectionstring secreto segredo geheimnis",
    ),
    (
        CredentialKind::Token,
        Confidence::Certain,
        "accesstoken authtoken authenticationtoken authorizationtoken bearertoken refreshtoken idtoken apitoken \
         personalaccesstoken oauthtoken sessiontoken securitytoken bottoken githubtoken gitlabtoken slacktoken \
         discordtoken npmtoken logintoken usertoken jwt jwttoken jsonwebtoken bearer sessioncookie authcookie \
         authorizationheader zugriffstoken zugangstoken jetondacces jetonacces tokendeacceso tokendeacesso \
         tokendiaccesso toegangstoken токендоступа",
    ),
    (
        CredentialKind::Token,
        Confidence::Suspicious,
        "token jeton токен sessionid cookie",
    ),
    (
        CredentialKind::PrivateKey,
        Confidence::Certain,
        "privatekey privkey sshprivatekey secretsshkey rsakey pemkey encryptionkey decryptionkey signingkey \
         pgpprivatekey gpgprivatekey privaterschlussel geheimschlussel cleprivee clefprivee claveprivada \
         chaveprivada chiaveprivata privesleutel kluczprywatny приватныиключ закрытыиключ",
    ),
    (
        CredentialKind::PrivateKey,
        Confidence::Suspicious,
        "sshkey keystore",
    ),
    (
        CredentialKind::SeedPhrase,
        Confidence::Certain,
        "seedphrase recoveryphrase secretrecoveryphrase mnemonicphrase walletseed seedwords recoverywords \
         backupphrase frasesemilla frasederecuperacion frasedirecupero fraserecuperacao phrasederecuperation \
         wiederherstellungsphrase сидфраза",
    ),
    (
        CredentialKind::SeedPhrase,
        Confidence::Suspicious,
        "mnemonic",
    ),
    (
        CredentialKind::OneTimeCode,
        Confidence::Certain,
        "otp totp hotp otpcode onetimepassword onetimecode onetimepasscode onetimepin verificationcode 2facode \
         mfacode twofactorcode authenticatorcode authenticationcode smscode logincode signincode recoverycode backupcode \
         authorizationcode bestatigungscode einmalpasswort einmalcode codedeverification codigodeverificacion \
         codigodeverificacao codicediverifica verificatiecode кодподтверждения",
    ),
    (
        CredentialKind::OneTimeCode,
        Confidence::Suspicious,
        "authcode accesscode confirmationcode codedeconfirmation 2fa mfa",
    ),
    (
        CredentialKind::Pin,
        Confidence::Certain,
        "cardpin bankpin atmpin simpin loginpin securitypin accountpin yourpin personalidentificationnumber",
    ),
    (
        CredentialKind::Pin,
        Confidence::Suspicious,
        "pin pincode pinnumber",
    ),
    (
        CredentialKind::Card,
        Confidence::Certain,
        "cardnumber creditcardnumber debitcardnumber creditcard debitcard paymentcard ccnumber ccnum creditcardno \
         cardno kreditkarte kreditkartennummer kartennummer numerodecarte cartebancaire numerodecartebancaire \
         numerodetarjeta tarjetadecredito numerodocartao cartaodecredito numerodicarta cartadicredito \
         creditcardnummer numerkarty номеркарты",
    ),
    (
        CredentialKind::CardCode,
        Confidence::Certain,
        "cvv ccv cvv2 cvc cvc2 cardverificationvalue cardverificationcode cardsecuritycode kartenprufnummer \
         kartenprufziffer cryptogramme codigocvv",
    ),
    (
        CredentialKind::CardCode,
        Confidence::Suspicious,
        "securitycode codigodeseguridad codigodeseguranca",
    ),
    (
        CredentialKind::NationalId,
        Confidence::Certain,
        "ssn socialsecuritynumber socialsecurityno socialsecurity socialinsurancenumber nationalinsurancenumber \
         sozialversicherungsnummer numerodesecuritesociale numerodeseguridadsocial",
    ),
    (
        CredentialKind::NationalId,
        Confidence::Suspicious,
        "taxpayerid nationalidnumber nationalid itin",
    ),
    (
        CredentialKind::BankAccount,
        Confidence::Suspicious,
        "bankaccountnumber accountandroutingnumber routingnumber bankaccount kontonummer",
    ),
    (
        CredentialKind::SecurityAnswer,
        Confidence::Suspicious,
        "securityanswer secretanswer securityquestionanswer mothersmaidenname maidenname",
    ),
];

/// Terms that may occur anywhere: scripts without spaces, or parts of longer words.
const GLUED: &[(CredentialKind, &str)] = &[
    (
        CredentialKind::Password,
        "密码 密碼 口令 パスワード 暗証番号 合言葉 비밀번호 암호 كلمةالمرور كلمةالسر पासवर्ड รหัสผ่าน",
    ),
    (
        CredentialKind::ApiKey,
        "api密钥 api密鑰 密钥 密鑰 apiキー 秘密キー シークレットキー api키 مفتاحapi",
    ),
    (
        CredentialKind::Token,
        "访问令牌 存取權杖 令牌 アクセストークン 액세스토큰",
    ),
    (CredentialKind::PrivateKey, "私钥 私鑰 秘密鍵 개인키"),
    (
        CredentialKind::SeedPhrase,
        "助记词 助記詞 シードフレーズ 시드구문 니모닉",
    ),
    (
        CredentialKind::OneTimeCode,
        "验证码 驗證碼 認証コード 確認コード ワンタイムパスワード 인증번호 인증코드 رمزالتحقق",
    ),
    (
        CredentialKind::Card,
        "信用卡号 信用卡號 银行卡号 カード番号 카드번호",
    ),
];

/// Services that name their keys after themselves: "Notion token", `hf_token`, `GITHUB_PAT`.
const SERVICES: &str = "airtable anthropic asana aws azure bitbucket circleci cloudflare confluence datadog digitalocean discord docker \
    dropbox figma gcp github gitlab google grafana heroku hf hubspot huggingface jira linear linkedin mailgun netlify notion npm openai \
    pypi salesforce sendgrid sentry shopify slack stripe supabase telegram terraform trello twilio vault vercel zoom";

/// The last part of the name of a service's key.
const SERVICE_SECRETS: [(&str, CredentialKind); 3] = [
    ("token", CredentialKind::Token),
    ("pat", CredentialKind::Token),
    ("secret", CredentialKind::ApiKey),
];
/// Endings of one word that are certain: `dbpassword`, `Datenbankpasswort`.
const ENDINGS: [&str; 11] = [
    "password",
    "passwort",
    "kennwort",
    "passwd",
    "passphrase",
    "apikey",
    "clientsecret",
    "accesstoken",
    "privatekey",
    "wachtwoord",
    "contrasena",
];

/// Words after a term that make the field about the secret, without containing it ("token limit", "password policy").
const ABOUT: &str = "change frequency limit limits count counts length size sizes policy policies strength rule rules type types kind format name \
    names label alias title description id ids identifier identifiers url urls uri link endpoint path paths file \
    filename folder directory location store storage manager vault backend provider issuer expiry expiration \
    expires expired expire ttl lifetime age duration date rotation interval reset recovery hint hints reminder \
    question status state scope scopes permission permissions owner budget usage cost price bucket symbol \
    address amount supply standard contract holder metadata version versions ref reference arn prefix suffix \
    pattern regex algorithm method methods mode option options setting settings enabled disabled column variable \
    var parameter attempts attempt retries requirements env brand company network rate fail last4 last four \
    santa sauce ingredient garden admirer menu society agent service weapon recipe word words message color \
    colour board layout assignment mapping tracker richtlinie lange politique longueur politica longitud";

/// Words before a term that change its meaning ("page token", "public key", "GPIO pin").
const ANOTHER: &str = "color colour theme css spacing icon node page next previous continuation pagination sync stop pad padding eos bos unk design special start end cursor \
    csrf xsrf gpio map digital analog board led drop rolling hairpin bowling public trade open family erc20 \
    governance utility reward nft crypto max min maximum minimum total num count prompt output context \
    completion reasoning remaining lexer parser syntax mask separator delimiter boarding ski season bus train \
    gate wristband forgot forgotten lost change has is use uses enable show hide passwordless";

/// Words around a term that do not change its meaning.
const QUALIFIERS: &str = "again confirm confirmation confirmed repeat repeated retype new old current value values here below now \
    please text string input digit digits number code secret key token encrypted plain plaintext nueva \
    nuevo actual ancien nouveau admin ein hier ici aqui qui";

/// Words that make a request.
const ASKING: &str = "enter provide type paste input insert give supply submit send tell share specify fill need needs require \
    requires confirm put write eingeben geben gib entrez entrer saisissez fournissez indiquez introduzca \
    introduce ingrese ingresa escriba proporcione digite insira informe inserisci fornisci voer geef wprowadz \
    podaj ange введите укажите";

/// Words that express possession.
const OWN: &str = "your my ihr ihre dein deine votre ton ta tu su sus seu sua teu tua tuo uw je jouw twoje din ditt ваш";

/// Words after which a noun is no longer the subject of the text.
const TURNING: &str = "how why whether of for that which whose where with about to from by in on at via using used into under than as because von \
    fur mit zum zur pour avec dont para con per por voor met dla для de del des di da do du d";

/// Words that end a noun phrase and continue the text.
const ENDING: &str = "we you they it and or und oder et ou y o e i и is are was were be been must should shall will would can could may might has \
    have had so if when while then but also only der die das le la les el los the a an";

/// Verbs after which a text is about a secret and does not ask for it ("your token has expired") ...
const TELLING: &str = "is are was were has have had will hat ist wurde est a fue";

/// ... unless the text says that it is needed.
const NEEDED: &str = "required needed necessary missing erforderlich requis necesario";

/// Words of negation.
const DENYING: &str = "not never no don dont without nicht kein keine niemals pas jamais sans nunca sin nao sem non mai niet не без";

static WORDS: LazyLock<FxHashMap<&'static str, Term>> = LazyLock::new(|| {
    let terms = TERMS.iter().flat_map(|(secret, level, list)| {
        list.split_whitespace().map(|word| {
            (
                word,
                Term {
                    secret: *secret,
                    level: *level,
                },
            )
        })
    });
    terms.collect()
});

/// The length of the longest term, in bytes.
static LONGEST: LazyLock<usize> = LazyLock::new(|| {
    WORDS
        .keys()
        .map(|word| word.len())
        .max()
        .unwrap_or_default()
});

/// The number of first bytes that the filter uses, which every term has.
const START: usize = 3;

/// The number of possible starts of a term: five bits of each byte.
const STARTS: usize = 1 << (5 * START);

/// A bit set of the starts of terms. Other texts may share a start; a text without its bit starts no term.
static STARTS_OF_TERMS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut bits = vec![0; STARTS / 64];
    let mut add = |term: &str| {
        if let Some(bit) = start_of(term.bytes()) {
            bits[bit / 64] |= 1 << (bit % 64);
        }
    };
    WORDS.keys().copied().for_each(&mut add);
    for service in SERVICES.split_whitespace() {
        for (ending, _) in SERVICE_SECRETS {
            add(&[service, ending].concat());
        }
    }
    bits
});

/// Returns the bit for a text that starts with these bytes; `None` if they are too few.
fn start_of(bytes: impl Iterator<Item = u8>) -> Option<usize> {
    let (mut bit, mut count) = (0, 0);
    for byte in bytes.take(START) {
        bit = bit << 5 | usize::from(byte & 0x1f);
        count += 1;
    }
    (count == START).then_some(bit)
}

/// Returns `false` if no term begins with these bytes, neither as they are nor with digits read as letters.
pub(super) fn may_begin(bytes: impl Iterator<Item = u8> + Clone) -> bool {
    let has = |bit: Option<usize>| {
        bit.is_some_and(|bit| STARTS_OF_TERMS[bit / 64] >> (bit % 64) & 1 == 1)
    };
    has(start_of(bytes.clone())) || has(start_of(bytes.map(letter_meant)))
}

/// Returns the letter that a digit replaces in `p4ssw0rd`; any other byte unchanged.
pub(super) const fn letter_meant(byte: u8) -> u8 {
    match byte {
        b'0' => b'o',
        b'1' => b'i',
        b'3' => b'e',
        b'4' => b'a',
        b'5' => b's',
        b'7' => b't',
        other => other,
    }
}

/// Returns `true` if these joined words are short enough to be a term.
pub(super) fn may_match(joined: &str) -> bool {
    joined.len() <= *LONGEST + 2
}

/// Returns the term of these joined words, and whether they are its plural.
pub(super) fn term(joined: &str) -> Option<(Term, bool)> {
    if let Some(term) = WORDS.get(joined) {
        return Some((*term, false));
    }
    if let Some(term) = service_term(joined) {
        return Some((term, false));
    }
    // "password2", "apikey1": the second of two.
    let unnumbered = joined.trim_end_matches(|c: char| c.is_ascii_digit());
    if unnumbered.len() < joined.len()
        && let Some(term) = WORDS.get(unnumbered)
    {
        return Some((*term, false));
    }
    let singular = unnumbered.strip_suffix('s')?;
    WORDS.get(singular).map(|term| (*term, true))
}

fn service_term(joined: &str) -> Option<Term> {
    let (service, secret) = SERVICE_SECRETS
        .into_iter()
        .find_map(|(ending, secret)| Some((joined.strip_suffix(ending)?, secret)))?;
    lists(service).is_service().then_some(Term {
        secret,
        level: Confidence::Certain,
    })
}

/// Returns the term at the end of one long word.
pub(super) fn glued_ending(word: &str) -> Option<Term> {
    ENDINGS
        .into_iter()
        .find(|ending| word.len() > ending.len() && word.ends_with(ending))
        .and_then(term)
        .map(|(term, _)| term)
}

/// Returns the term inside a text without spaces, and whether the text ends with it.
pub(super) fn glued(text: &str) -> Option<(CredentialKind, bool)> {
    if text.is_ascii() {
        return None;
    }
    GLUED.iter().find_map(|(secret, list)| {
        let term = list.split_whitespace().find(|term| text.contains(term))?;
        Some((*secret, text.ends_with(term)))
    })
}

/// The lists that contain a word.
#[derive(Clone, Copy, Default)]
pub(super) struct TermLists(u16);

static LISTS: LazyLock<FxHashMap<&'static str, TermLists>> = LazyLock::new(|| {
    let mut lists: FxHashMap<&'static str, TermLists> = FxHashMap::default();
    for (bit, words) in ALL_LISTS {
        for word in words.split_whitespace() {
            lists.entry(word).or_default().0 |= bit;
        }
    }
    lists
});

/// Returns the lists that contain a word.
pub(super) fn lists(word: &str) -> TermLists {
    LISTS.get(word).copied().unwrap_or_default()
}

macro_rules! lists {
    ($($name:ident: $list:ident, $bit:literal;)*) => {
        const ALL_LISTS: &[(u16, &str)] = &[$((1 << $bit, $list)),*];

        impl TermLists {
            $(pub(super) const fn $name(self) -> bool {
                self.0 & 1 << $bit != 0
            })*
        }
    };
}

lists! {
    is_service: SERVICES, 0;
    is_about: ABOUT, 1;
    is_another: ANOTHER, 2;
    is_qualifier: QUALIFIERS, 3;
    is_asking: ASKING, 4;
    is_own: OWN, 5;
    is_telling: TELLING, 6;
    is_needed: NEEDED, 7;
    is_turning: TURNING, 8;
    is_ending: ENDING, 9;
    is_denying: DENYING, 10;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_term_may_begin_where_it_stands() {
        let services = SERVICES
            .split_whitespace()
            .flat_map(|service| SERVICE_SECRETS.map(|(ending, _)| [service, ending].concat()));
        let all: Vec<String> = WORDS
            .keys()
            .copied()
            .map(str::to_owned)
            .chain(services)
            .collect();
        for term in &all {
            assert!(term.len() >= START, "{term}");
            assert!(may_begin(term.bytes()), "{term}");
            let disguised = term.replace('o', "0").replace('a', "4").replace('e', "3");
            let disguised = disguised
                .replace('i', "1")
                .replace('s', "5")
                .replace('t', "7");
            assert!(may_begin(disguised.bytes()), "{disguised}");
        }
        for other in ["", "a", "pa", "ship", "environment"] {
            assert!(!may_begin(other.bytes()), "{other}");
        }
    }
}
