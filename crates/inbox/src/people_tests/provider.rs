//! People who log in at a provider, which is asked about them again before they act.

use std::collections::BTreeMap;

use mcp_elicit_testkit::issuer::TestIssuer;

use super::*;
use crate::login::OidcLogin;
use crate::login::table::{LoginAdmission, LoginIdentity};

fn login(issuer: &str) -> LoginMode {
    LoginMode::Oidc(OidcLogin {
        issuer: issuer.to_owned(),
        client_id: "connect".to_owned(),
        client_secret: Some("connect-secret".to_owned()),
        scopes: Vec::new(),
        groups_claim: "groups".to_owned(),
        trust_mail: false,
    })
}

/// A browser with the cookies of each host.
#[derive(Default)]
struct Browser(BTreeMap<String, BTreeMap<String, String>>);

impl Browser {
    async fn request(&mut self, method: &str, url: &str, form: &str) -> Reply {
        let (host, path) = url
            .strip_prefix("http://")
            .unwrap()
            .split_once('/')
            .unwrap();
        let jar = self.0.entry(host.to_owned()).or_default();
        let cookies: Vec<String> = jar
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let cookies = cookies.join("; ");
        let head = format!(
            "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookies}\r\nOrigin: http://{host}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        );
        let reply = send(host, PROXY, &head, form).await;
        for line in reply.head.lines() {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            if name.eq_ignore_ascii_case("set-cookie") {
                let (name, value) = value
                    .trim()
                    .split(';')
                    .next()
                    .unwrap()
                    .split_once('=')
                    .unwrap();
                jar.insert(name.to_owned(), value.to_owned());
            }
        }
        reply
    }

    /// Logs in to the inbox at this address as the person of this name at the provider.
    async fn enter(&mut self, at: &str, name: &str) {
        let begun = self.request("GET", &format!("http://{at}/login"), "").await;
        let address = begun.header("location").unwrap().to_owned();
        let back = format!("http://{at}/login/return");
        let answer = self.sign_in(&address, name, &back).await;
        let entered = self.request("GET", &answer, "").await;
        assert_eq!(entered.status, 303, "{}", entered.body);
    }

    /// Continues from `url` as a person who signs in as `name`, until the browser is redirected to `until`.
    async fn sign_in(&mut self, url: &str, name: &str, until: &str) -> String {
        let mut url = url.to_owned();
        for _ in 0..12 {
            if url.starts_with(until) {
                return url;
            }
            let origin = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
            let mut reply = self.request("GET", &url, "").await;
            if reply.status == 200 {
                reply = self.request("POST", &url, &format!("login={name}")).await;
            }
            let next = reply
                .header("location")
                .unwrap_or_else(|| panic!("{url}: {}", reply.body));
            url = if next.starts_with('/') {
                format!("{origin}{next}")
            } else {
                next.to_owned()
            };
        }
        panic!("never sent back: {url}");
    }
}

#[tokio::test]
async fn a_session_of_a_former_issuer_is_none() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let current = "http://127.0.0.1:9/current";
    let rig = serve(listener, 1, login(current)).await;
    let port = rig.host.rsplit(':').next().unwrap();
    let logins = StateFolder::at(rig.folder.path()).logins();
    let rules = Rules::parse(FILE).unwrap();
    let enter = |issuer: &str, subject: &str| {
        let identity = LoginIdentity {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
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
        let made = logins.log_in(&identity, admission, None, "b", clock::now());
        let cookie = made.unwrap().cookie;
        format!("mcp-elicit-login-{port}={cookie}")
    };
    let question = format!("/q/{}", rig.id);
    let known = enter(current, "ada");
    let page = get(&rig, "", &question, &known).await;
    assert_eq!(page.status, 200, "{}", page.body);
    let former = enter("http://127.0.0.1:9/former", "bob");
    let origin = format!("http://{}", rig.host);
    for path in ["/", &question, "/account"] {
        let sent = get(&rig, "", path, &former).await;
        let to = sent.header("location").unwrap_or_default();
        assert!(sent.status == 303 && to.starts_with("/login"), "{path}");
    }
    // A token that a logged-in person has does not help either.
    let form = format!("csrf={}&version=0&drop=yes", page.csrf());
    let decline = format!("{question}/decline");
    let refused = post(&rig, "", &decline, &former, &origin, &form).await;
    let to = refused.header("location").unwrap_or_default();
    assert!(
        refused.status == 401 || to.starts_with("/login"),
        "{}",
        refused.status
    );
    assert!(phase(&rig).await.is_open());
}

#[tokio::test]
async fn a_person_logs_in_at_a_provider_and_an_answer_of_another_issuer_opens_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let back = format!("http://{at}/login/return");
    let redirects = [back.clone()];
    let started =
        tokio::task::spawn_blocking(move || mcp_elicit_testkit::peers::openid_provider(&redirects));
    let Some(provider) = started.await.unwrap() else {
        return;
    };
    let issuer = provider.url().trim_end_matches('/').to_owned();
    let rig = serve(listener, 1, login(&issuer)).await;
    let question = format!("http://{at}/q/{}", rig.id);
    let mut browser = Browser::default();
    // A link in a mail leads to the login, and from there to the question.
    let sent = browser.request("GET", &question, "").await;
    assert_eq!(sent.status, 303);
    let entry = format!("http://{at}{}", sent.header("location").unwrap());
    let begun = browser.request("GET", &entry, "").await;
    let address = begun.header("location").unwrap().to_owned();
    assert!(
        address.starts_with(&issuer) && address.contains("code_challenge_method=S256"),
        "{address}"
    );
    let answer = browser.sign_in(&address, "ada", &back).await;
    // Another browser cannot use it, nor can another issuer.
    let stranger = Browser::default().request("GET", &answer, "").await;
    assert_eq!(
        (stranger.status, stranger.header("set-cookie")),
        (400, None)
    );
    let begun_with = browser.0[&at.to_string()].clone();
    let entered = browser.request("GET", &answer, "").await;
    let to = entered.header("location").unwrap_or_default();
    let inside = format!("/arrived?next=/q/{}", rig.id);
    assert!(to.ends_with(&inside), "{to} {}", entered.body);
    let page = browser.request("GET", &question, "").await;
    assert!(
        page.body.contains("Who?") && page.body.contains(">ada<"),
        "{}",
        page.body
    );
    let again = browser.request("GET", &answer, "").await;
    assert_eq!(again.status, 400, "an answer counts once");
    // Not even with the cookie that the login has ended, at this gateway or at another one that shares the record.
    let beside = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = beside.local_addr().unwrap();
    let (record, id) = (rig.record.clone(), rig.id.clone());
    let hour = Duration::from_secs(60 * 60);
    let _beside = inbox_over(beside, record, id, FILE, login(&issuer), hour);
    for host in [at.to_string(), other.to_string()] {
        let mut browser = Browser::default();
        browser.0.insert(host.clone(), begun_with.clone());
        let replayed = answer.replace(&at.to_string(), &host);
        let again = browser.request("GET", &replayed, "").await;
        assert_eq!(again.status, 400, "{host}: {}", again.body);
    }
    let mut mixed = Browser::default();
    let begun = mixed.request("GET", &entry, "").await;
    let address = begun.header("location").unwrap().to_owned();
    let answer = mixed.sign_in(&address, "bob", &back).await;
    let (before, _) = answer.split_once("iss=").unwrap();
    let forged = format!("{before}iss=https%3A%2F%2Fevil.example");
    let refused = mixed.request("GET", &forged, "").await;
    assert_eq!(refused.status, 502, "{}", refused.body);
    assert_eq!(
        mixed.request("GET", &question, "").await.status,
        303,
        "not signed in"
    );
    // A person whom the file does not name is rejected.
    let mut other = Browser::default();
    let begun = other.request("GET", &entry, "").await;
    let address = begun.header("location").unwrap().to_owned();
    let answer = other.sign_in(&address, "mallory", &back).await;
    let refused = other.request("GET", &answer, "").await;
    assert_eq!(refused.status, 403);
    for words in [
        "You are logged in at the provider as mallory",
        "this gateway asks nobody of that name",
        "<a class=\"btn main\" href=\"/login?another=1\">Use another account</a>",
        "<a class=\"btn\" href=\"/\">Log in</a>",
    ] {
        assert!(refused.body.contains(words), "{words}: {}", refused.body);
    }
    // The provider asks which person, even if it would let the same one in again.
    let another = format!("http://{at}/login?another=1");
    let begun = other.request("GET", &another, "").await;
    let address = begun.header("location").unwrap();
    assert!(address.contains("prompt=select_account"), "{address}");
    // Logged out here, and redirected to the provider.
    let account = browser
        .request("GET", &format!("http://{at}/account"), "")
        .await;
    let form = format!("csrf={}", account.csrf());
    let out = browser
        .request("POST", &format!("http://{at}/logout"), &form)
        .await;
    assert!(out.status == 200 || out.status == 303, "{}", out.body);
    assert_eq!(browser.request("GET", &question, "").await.status, 303);
}

#[tokio::test]
async fn name_and_groups_that_the_id_token_does_not_say_are_asked_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let back = format!("http://{at}/login/return");
    let redirects = [back.clone()];
    let started =
        tokio::task::spawn_blocking(move || mcp_elicit_testkit::peers::openid_provider(&redirects));
    let Some(provider) = started.await.unwrap() else {
        return;
    };
    let mut mode = login(provider.url().trim_end_matches('/'));
    if let LoginMode::Oidc(login) = &mut mode {
        login.scopes = ["profile", "email", "groups"].map(str::to_owned).to_vec();
    }
    let _rig = serve(listener, 1, mode).await;
    let mut browser = Browser::default();
    let begun = browser
        .request("GET", &format!("http://{at}/login"), "")
        .await;
    let address = begun.header("location").unwrap().to_owned();
    // A person whom the file does not name, and who is in the group `leads` only by the provider's UserInfo.
    let answer = browser.sign_in(&address, "lee", &back).await;
    let entered = browser.request("GET", &answer, "").await;
    assert_eq!(entered.status, 303, "{}", entered.body);
    let account = browser
        .request("GET", &format!("http://{at}/account"), "")
        .await;
    assert!(
        account.body.contains("Lee at the provider"),
        "{}",
        account.body
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_left_a_group_at_a_real_provider_is_refused_at_the_next_act() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let back = format!("http://{at}/login/return");
    let redirects = [back];
    let started =
        tokio::task::spawn_blocking(move || mcp_elicit_testkit::peers::openid_provider(&redirects));
    let Some(provider) = started.await.unwrap() else {
        return;
    };
    let issuer = provider.url().trim_end_matches('/').to_owned();
    let mut mode = login(&issuer);
    if let LoginMode::Oidc(login) = &mut mode {
        login.scopes = ["profile", "groups"].map(str::to_owned).to_vec();
    }
    let (rig, question) = asked_of_leads(listener, mode, None).await;
    let mut lee = Browser::default();
    lee.enter(&at.to_string(), "lee").await;
    let page = lee.request("GET", &question, "").await;
    assert!(page.body.contains("Who?"), "{}", page.body);
    let form = format!("csrf={}&version=0", page.csrf());
    lee.request("POST", &format!("{issuer}/groups"), "lee=staff")
        .await;
    refused_after_leaving(&rig, &mut lee, &question, &form).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_at_a_real_provider_ends_the_session_here() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let redirects = [format!("http://{at}/login/return")];
    let told = format!("http://{at}/login/logout-token");
    let started = tokio::task::spawn_blocking(move || {
        mcp_elicit_testkit::peers::logout_provider(&redirects, &told)
    });
    let Some(provider) = started.await.unwrap() else {
        return;
    };
    let issuer = provider.url().trim_end_matches('/').to_owned();
    let _rig = serve(listener, 1, login(&issuer)).await;
    let account = format!("http://{at}/account");
    let (mut ada, mut bob) = (Browser::default(), Browser::default());
    ada.enter(&at, "ada").await;
    bob.enter(&at, "bob").await;
    let asked = ada
        .request("GET", &format!("{issuer}/session/end"), "")
        .await;
    let (_, rest) = asked.body.split_once("name=\"xsrf\" value=\"").unwrap();
    let (secret, _) = rest.split_once('"').unwrap();
    let ended = ada
        .request(
            "POST",
            &format!("{issuer}/session/end/confirm"),
            &format!("xsrf={secret}&logout=yes"),
        )
        .await;
    assert_eq!(ended.status, 303, "{}", ended.body);
    assert_eq!(ada.request("GET", &account, "").await.status, 303);
    assert_eq!(bob.request("GET", &account, "").await.status, 200);
}

/// Returns a browser of a person who logged in at this issuer, and a question for the group of a claim.
async fn at_issuer(issuer: &TestIssuer) -> (Rig, Browser, String) {
    at_issuer_lately(issuer, None).await
}

/// The same with a question that may be answered only after a login that is not older than `reauth`.
async fn at_issuer_lately(issuer: &TestIssuer, reauth: Option<Duration>) -> (Rig, Browser, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let (rig, question) = asked_of_leads(listener, login(issuer.url()), reauth).await;
    let mut browser = Browser::default();
    browser.enter(&at, "").await;
    (rig, browser, question)
}

/// Returns an inbox that asks the issuer before every action, and the address of a question for the group of a claim.
async fn asked_of_leads(
    listener: TcpListener,
    mode: LoginMode,
    reauth: Option<Duration>,
) -> (Rig, String) {
    let at = listener.local_addr().unwrap();
    let mut rig = serve_asking_again(listener, 1, mode, Duration::ZERO).await;
    let mut plan = plan(1);
    plan.ask.to = vec![Addressee::Group("leads".to_owned())];
    plan.reauth = reauth;
    let caller = TeamCaller {
        person: Some("cy".to_owned()),
        ..TeamCaller::default()
    };
    let team = Team::new(
        "leads",
        "r",
        caller,
        &plan,
        Vec::new(),
        Duration::from_secs(60 * 60),
    );
    let asked = sample::raised_for(&rig.record, Some(team.to_plan().unwrap()));
    rig.id = asked.await.unwrap();
    let question = format!("http://{at}/q/{}", rig.id);
    (rig, question)
}

async fn decline(browser: &mut Browser, question: &str) -> Reply {
    let page = browser.request("GET", question, "").await;
    assert_eq!(page.status, 200, "{}", page.head);
    let form = format!("csrf={}&version=0&drop=yes", page.csrf());
    browser
        .request("POST", &format!("{question}/decline"), &form)
        .await
}

/// Declines with this form as a person who has left the group: the action is rejected, with the reason.
async fn refused_after_leaving(rig: &Rig, browser: &mut Browser, question: &str, form: &str) {
    let refused = browser
        .request("POST", &format!("{question}/decline"), form)
        .await;
    assert_eq!(refused.status, 403, "{}", refused.head);
    assert!(
        refused.body.contains("you have left a group"),
        "{}",
        refused.body
    );
    assert!(phase(rig).await.is_open());
}

const LEADS: &str = r#"{"groups": ["leads", "staff"]}"#;

fn claims(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_token_logs_in_at_its_client_only_and_a_text_verifies_no_mail() {
    let issuer = TestIssuer::start();
    issuer.sign_in_as("gil", claims(LEADS));
    let (rig, _, _) = at_issuer(&issuer).await;
    let back = format!("http://{}/login/return", rig.host);
    for (more, status) in [
        (
            r#""email": "gil@example.com", "email_verified": "true""#,
            303,
        ),
        (
            r#""email": "gil@example.com", "email_verified": "false""#,
            303,
        ),
        (r#""azp": "connect""#, 303),
        (r#""azp": "another""#, 502),
        (r#""iat": 9999999999"#, 502),
        (r#""nbf": 9999999999"#, 502),
    ] {
        let all = format!(r#"{{"groups": ["leads"], {more}}}"#);
        issuer.sign_in_as("gil", claims(&all));
        let mut browser = Browser::default();
        let login = format!("http://{}/login", rig.host);
        let begun = browser.request("GET", &login, "").await;
        let address = begun.header("location").unwrap().to_owned();
        let answer = browser.sign_in(&address, "", &back).await;
        let entered = browser.request("GET", &answer, "").await;
        assert_eq!(entered.status, status, "{more}: {}", entered.body);
        let table = StateFolder::at(rig.folder.path()).logins().table().unwrap();
        let person = format!("{} gil", issuer.url());
        let (_, _, mail) = table.latest_login(&person).unwrap();
        assert_eq!(mail, None, "{more}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_left_a_group_at_the_provider_is_refused_at_the_next_act() {
    // The issuer is asked by a refresh, or with the access token.
    for refreshes in [true, false] {
        let issuer = TestIssuer::start();
        issuer.set_refreshes(refreshes);
        issuer.sign_in_as("gil", claims(LEADS));
        let (rig, mut browser, question) = at_issuer(&issuer).await;
        let page = browser.request("GET", &question, "").await;
        let form = format!("csrf={}&version=0", page.csrf());
        // Unchanged claims delay nothing.
        let commented = format!("{form}&text=hm");
        let kept = browser
            .request("POST", &format!("{question}/comment"), &commented)
            .await;
        assert_eq!(kept.status, 303, "{}", kept.body);
        issuer.sign_in_as("gil", claims(r#"{"groups": ["staff"]}"#));
        refused_after_leaving(&rig, &mut browser, &question, &form).await;
        // The person is no longer in any of the file's groups.
        let gone = browser.request("GET", &question, "").await;
        assert_ne!(gone.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_known_at_the_provider_any_more_is_logged_out_at_the_next_act() {
    for refreshes in [true, false] {
        let issuer = TestIssuer::start();
        issuer.set_refreshes(refreshes);
        issuer.sign_in_as("gil", claims(LEADS));
        let (rig, mut browser, question) = at_issuer(&issuer).await;
        issuer.set_ended(true);
        let refused = decline(&mut browser, &question).await;
        assert_eq!(refused.status, 401, "{}", refused.head);
        assert!(phase(&rig).await.is_open());
        assert_eq!(browser.request("GET", &question, "").await.status, 303);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_about_another_person_lets_no_act_through() {
    for refreshes in [true, false] {
        let issuer = TestIssuer::start();
        issuer.set_refreshes(refreshes);
        issuer.sign_in_as("gil", claims(LEADS));
        let (rig, mut browser, question) = at_issuer(&issuer).await;
        let of_another = r#"{"groups": ["leads", "staff"], "sub": "hal"}"#;
        issuer.sign_in_as("gil", claims(of_another));
        let refused = decline(&mut browser, &question).await;
        assert_eq!(refused.status, 401, "{}", refused.head);
        assert!(phase(&rig).await.is_open());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_provider_is_down_those_who_are_logged_in_go_on() {
    let issuer = TestIssuer::start();
    issuer.sign_in_as("gil", claims(LEADS));
    let (rig, mut browser, question) = at_issuer(&issuer).await;
    issuer.set_down(true);
    assert_eq!(decline(&mut browser, &question).await.status, 303);
    assert_eq!(phase(&rig).await, Phase::Declined);
}

/// A minute is enough for what takes five seconds.
#[tokio::test]
async fn a_provider_that_goes_down_after_a_login_gets_no_more_browsers() {
    let issuer = TestIssuer::start();
    issuer.sign_in_as("gil", claims(LEADS));
    let (rig, mut browser, question) = at_issuer(&issuer).await;
    issuer.set_down(true);
    let login = format!("http://{}/login", rig.host);
    let refused = async {
        loop {
            let begun = Browser::default().request("GET", &login, "").await;
            if begun.status != 303 {
                return begun;
            }
        }
    };
    let refused = tokio::time::timeout(Duration::from_secs(60), refused);
    let refused = refused.await.expect("browsers are sent there no more");
    assert_eq!(refused.status, 503);
    assert!(
        refused.body.contains("cannot be reached"),
        "{}",
        refused.body
    );
    // People who are logged in can continue.
    assert_eq!(decline(&mut browser, &question).await.status, 303);
}

/// Nothing waits longer than ten seconds.
#[tokio::test(flavor = "multi_thread")]
async fn while_the_provider_says_nothing_the_login_says_so_and_sessions_go_on() {
    let issuer = TestIssuer::start();
    issuer.sign_in_as("gil", claims(LEADS));
    let (rig, mut browser, question) = at_issuer(&issuer).await;
    // A login that was started, and returns.
    let login = format!("http://{}/login", rig.host);
    let mut late = Browser::default();
    let begun = late.request("GET", &login, "").await;
    assert_eq!(begun.status, 303, "{}", begun.body);
    let back = format!("http://{}/login/return", rig.host);
    let address = begun.header("location").unwrap().to_owned();
    let answer = late.sign_in(&address, "", &back).await;
    issuer.set_silent(true);
    let act = decline(&mut browser, &question);
    let refused = late.request("GET", &answer, "");
    let (act, refused) = tokio::join!(act, refused);
    assert_eq!(act.status, 303, "{}", act.body);
    assert_eq!(phase(&rig).await, Phase::Declined);
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(
        refused.body.contains("cannot be reached"),
        "{}",
        refused.body
    );
}

#[tokio::test]
async fn while_the_provider_is_down_the_login_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let _rig = serve(listener, 1, login(&issuer)).await;
    let mut browser = Browser::default();
    let down = browser
        .request("GET", &format!("http://{at}/login"), "")
        .await;
    assert_eq!(down.status, 503);
    assert!(down.body.contains("cannot be reached"), "{}", down.body);
    let token = browser
        .request(
            "POST",
            &format!("http://{at}/login/logout-token"),
            "logout_token=a.b.c",
        )
        .await;
    assert_eq!(token.status, 400, "{}", token.body);
    for junk in [
        "",
        "?",
        "?state=x",
        "?code=y&state=",
        "?state=x&state=y&code=z",
        "?error=access_denied",
    ] {
        let reply = browser
            .request("GET", &format!("http://{at}/login/return{junk}"), "")
            .await;
        assert_eq!(reply.status, 400, "{junk}");
    }
}

/// A logout token for this person and session of the provider.
fn logout_token(issuer: &TestIssuer, id: &str, sid: &str) -> String {
    let now = clock::now().as_millis() / 1_000;
    let claims = serde_json::json!({
        "iss": issuer.url(), "aud": "connect", "iat": now, "exp": now + 120, "jti": id, "sub": "gil", "sid": sid,
        "events": {"http://schemas.openid.net/event/backchannel-logout": {}},
    });
    let header = serde_json::json!({"alg": "EdDSA", "kid": issuer.kid(), "typ": "logout+jwt"});
    format!("logout_token={}", issuer.sign_under(&header, &claims))
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_logout_tokens_are_written_down_so_often_a_minute_and_a_good_one_always() {
    let issuer = TestIssuer::start();
    issuer.sign_in_as("gil", claims(r#"{"groups": ["leads"], "sid": "s1"}"#));
    let (rig, mut browser, _) = at_issuer(&issuer).await;
    let site = format!("http://{}", rig.host);
    let account = browser.request("GET", &format!("{site}/account"), "").await;
    let keys = r#""keys":{"p256dh":"p","auth":"a"}"#;
    let endpoint = "https://push.example.com/1";
    let device = format!(
        r#"{{"csrf":"{}","endpoint":"{endpoint}",{keys}}}"#,
        account.csrf()
    );
    let devices = format!("{site}/account/devices");
    let added = browser.request("POST", &devices, &device).await;
    assert_eq!(added.status, 204, "{}", added.body);
    let mut anybody = Browser::default();
    let address = format!("{site}/login/logout-token");
    for _ in 0..40 {
        let refused = anybody.request("POST", &address, "logout_token=x").await;
        assert_eq!(refused.status, 400);
    }
    assert_eq!(audited(&rig, "logout-token").await.len(), 30);
    let logins = StateFolder::at(rig.folder.path()).logins();
    for (id, sid, left) in [("t1", "s2", 1), ("t2", "s1", 0)] {
        let token = logout_token(&issuer, id, sid);
        let accepted = anybody.request("POST", &address, &token).await;
        assert_eq!(accepted.status, 200, "{}", accepted.body);
        let table = logins.table().unwrap();
        assert_eq!(table.sessions().len(), left);
    }
    assert_eq!(audited(&rig, "logout-token").await.len(), 32);
    let removed = audited(&rig, "device-removed").await;
    assert!(
        removed.len() == 1
            && removed[0].contains(r#""by":"provider""#)
            && removed[0].contains(r#""device":""#),
        "{removed:?}"
    );
    assert_eq!(audited(&rig, "session-ended").await.len(), 1);
    // The outcome for a token is the reason, not the actor.
    let last = audited(&rig, "logout-token").await.pop().unwrap();
    for part in [r#""by":"provider""#, r#""reason":"accepted""#] {
        assert!(last.contains(part), "{last}");
    }
    let long = format!("logout_token={}", "x".repeat(100_000));
    assert_eq!(anybody.request("POST", &address, &long).await.status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_keeps_so_many_logins_that_it_began() {
    let issuer = TestIssuer::start();
    issuer.sign_in_as("gil", claims(LEADS));
    let (rig, _, _) = at_issuer(&issuer).await;
    let login = format!("http://{}/login", rig.host);
    let mut browser = Browser::default();
    for _ in 0..50 {
        let begun = browser.request("GET", &login, "").await;
        assert_eq!(begun.status, 303);
        // As browsers do with expired cookies.
        for jar in browser.0.values_mut() {
            jar.retain(|_, value| !value.is_empty());
        }
        let flows = &browser.0[rig.host.as_str()];
        let flows = flows.keys().filter(|name| name.contains("-flow-"));
        assert!(flows.count() <= 8);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_login_whose_time_is_known_is_recent() {
    let issuer = TestIssuer::start();
    // The issuer does not report when people logged in.
    issuer.sign_in_as("gil", claims(LEADS));
    let reauth = Some(Duration::from_secs(10 * 60));
    let (rig, mut browser, question) = at_issuer_lately(&issuer, reauth).await;
    let at = rig.host.clone();
    let back = format!("http://{at}/login/return");
    decline(&mut browser, &question).await;
    assert!(phase(&rig).await.is_open());
    // A plain login in another browser is silent at an issuer that knows the person, and counts no more than the first.
    let mut other = Browser::default();
    let begun = other
        .request("GET", &format!("http://{at}/login"), "")
        .await;
    let address = begun.header("location").unwrap().to_owned();
    assert!(!address.contains("max_age"), "{address}");
    let answer = other.sign_in(&address, "", &back).await;
    assert_eq!(other.request("GET", &answer, "").await.status, 303);
    decline(&mut other, &question).await;
    assert!(phase(&rig).await.is_open());
    // The time that an issuer reports is accepted, also after a request for a new login.
    let again = format!("http://{at}/login?fresh=1");
    // One that cannot be read is not absent.
    for old in ["1000", "1000.5", "-5"] {
        let old = format!(r#"{{"groups": ["leads", "staff"], "auth_time": {old}}}"#);
        issuer.sign_in_as("gil", claims(&old));
        let begun = other.request("GET", &again, "").await;
        let address = begun.header("location").unwrap().to_owned();
        let answer = other.sign_in(&address, "", &back).await;
        assert_eq!(other.request("GET", &answer, "").await.status, 303);
        decline(&mut other, &question).await;
        assert!(phase(&rig).await.is_open(), "{old}");
    }
    // A new login that this inbox requested.
    issuer.sign_in_as("gil", claims(LEADS));
    let begun = browser.request("GET", &again, "").await;
    let address = begun.header("location").unwrap().to_owned();
    assert!(
        address.contains("max_age=0") && address.contains("prompt=login"),
        "{address}"
    );
    let answer = browser.sign_in(&address, "", &back).await;
    assert_eq!(browser.request("GET", &answer, "").await.status, 303);
    assert_eq!(decline(&mut browser, &question).await.status, 303);
    assert_eq!(phase(&rig).await, Phase::Declined);
}

/// Serves another port of this host, and returns its address and the heads of its requests.
async fn thief() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = heads.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = tokio::io::AsyncReadExt::read_u8(&mut stream).await else {
                    break;
                };
                head.push(byte);
            }
            let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
            let _gone = tokio::io::AsyncWriteExt::write_all(&mut stream, page.as_bytes()).await;
            seen.lock()
                .unwrap()
                .push(String::from_utf8_lossy(&head).into_owned());
        }
    });
    (at, heads)
}

#[tokio::test(flavor = "multi_thread")]
async fn another_port_of_the_host_gets_no_login() {
    use mcp_elicit_testkit::chromium::{Chromium, Setup};

    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    let issuer = TestIssuer::start();
    issuer.sign_in_as("gil", claims(LEADS));
    let (rig, _, _) = at_issuer(&issuer).await;
    let (elsewhere, heads) = thief().await;
    let question = format!("/q/{}", rig.id);
    page.open(&format!("http://{}{question}", rig.host)).await;
    // Logged in, and at the question; a reload finds the session.
    let inside = page.path().await;
    assert!(
        inside.ends_with(&question) && inside.len() > question.len() + 40,
        "{inside}"
    );
    page.open(&format!("http://{}{inside}", rig.host)).await;
    page.at("a.me").await;
    for path in ["/", &question, "/account", "/login/x", "/assets/page.js"] {
        page.open(&format!("http://{elsewhere}{path}")).await;
    }
    let heads = heads.lock().unwrap().clone();
    assert!(heads.len() >= 5);
    for head in heads {
        let head = head.to_lowercase();
        // The browser's own request for an icon names the page of that port.
        for leak in ["mcp-elicit", "cookie:", &rig.host] {
            assert!(!head.contains(leak), "{leak}: {head}");
        }
    }
    // The session is still that of the browser.
    page.open(&format!("http://{}{inside}", rig.host)).await;
    page.at("a.me").await;
    page.close().await;
}

#[tokio::test]
async fn no_page_without_a_login_gives_the_path_of_the_pages_away() {
    let issuer = TestIssuer::start();
    issuer.sign_in_as("gil", claims(LEADS));
    let (rig, mut browser, _) = at_issuer(&issuer).await;
    let begun = browser
        .request("GET", &format!("http://{}/login?fresh=1", rig.host), "")
        .await;
    let address = begun.header("location").unwrap().to_owned();
    let back = format!("http://{}/login/return", rig.host);
    let answer = browser.sign_in(&address, "", &back).await;
    let entered = browser.request("GET", &answer, "").await;
    let to = entered.header("location").unwrap();
    let secret = to.split('/').nth(1).unwrap().to_owned();
    let cookie = entered
        .head
        .lines()
        .find(|line| line.contains("mcp-elicit-login"));
    assert!(
        cookie.unwrap().contains(&format!("Path=/{secret};")),
        "{cookie:?}"
    );
    assert!(secret.len() >= 40);
    let question = format!("/q/{}", rig.id);
    for path in [
        "/",
        "/login",
        "/logged-out",
        "/account",
        "/audit",
        "/nowhere",
        "/assets/page.js",
        "/assets/none",
        "/login/return",
        &question,
        "/api/questions",
    ] {
        let mut stranger = Browser::default();
        let url = format!("http://{}{path}", rig.host);
        for method in ["GET", "POST"] {
            let reply = stranger.request(method, &url, "x=1").await;
            assert!(
                !reply.head.contains(&secret) && !reply.body.contains(&secret),
                "{path}"
            );
        }
    }
}
