//! A person's browser at the pages of a team.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::header::{COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, redirect};

/// The time that a question may take to come.
const WITHIN: Duration = Duration::from_secs(60);
/// The most pages that a sign-in leads through.
const MOST_STEPS: usize = 8;

/// Creates the settings of a client that goes through no proxy of this machine.
pub(crate) fn client() -> ClientBuilder {
    // Another test of this process may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy()
}

/// A page, and the address at which it came.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) at: String,
    pub(crate) text: String,
}

impl Page {
    /// Returns the value of the first attribute that follows `before`.
    pub(crate) fn after(&self, before: &str) -> &str {
        let (_, rest) = self
            .text
            .split_once(before)
            .unwrap_or_else(|| panic!("no {before} at {}: {}", self.at, self.text));
        rest.split('"').next().unwrap()
    }

    pub(crate) fn csrf(&self) -> &str {
        self.after("name=\"csrf\" value=\"")
    }
}

/// A browser of one person: follows redirects and keeps cookies by host and port.
pub(crate) struct Browser {
    client: Client,
    cookies: BTreeMap<(String, String), String>,
}

impl Browser {
    /// Creates one that finds hosts, and believes certificates, as this client does.
    fn with(client: ClientBuilder) -> Self {
        let client = client.redirect(redirect::Policy::none());
        Self {
            client: client.build().unwrap(),
            cookies: BTreeMap::new(),
        }
    }

    pub(crate) async fn get(&mut self, at: &str) -> Page {
        self.go(Method::GET, at, None).await
    }

    pub(crate) async fn post(&mut self, at: &str, form: &str) -> Page {
        self.go(Method::POST, at, Some(form)).await
    }

    async fn go(&mut self, method: Method, at: &str, form: Option<&str>) -> Page {
        let (mut method, mut at, mut form) = (method, at.to_owned(), form);
        for _ in 0..MOST_STEPS {
            let origin: String = at.split('/').take(3).collect::<Vec<_>>().join("/");
            let request = self.client.request(method.clone(), &at);
            let request = self.with_cookies(request, &origin).header(ORIGIN, &origin);
            let request = match form {
                Some(form) => request
                    .header("content-type", "application/x-www-form-urlencoded")
                    .body(form.to_owned()),
                None => request,
            };
            let reply = request.send().await.unwrap();
            for cookie in reply.headers().get_all(SET_COOKIE) {
                let pair = cookie.to_str().unwrap().split(';').next().unwrap();
                let (name, value) = pair.split_once('=').unwrap();
                self.cookies
                    .insert((origin.clone(), name.to_owned()), value.to_owned());
            }
            let Some(next) = reply.headers().get(LOCATION) else {
                return Page {
                    status: reply.status().as_u16(),
                    at,
                    text: reply.text().await.unwrap(),
                };
            };
            let next = next.to_str().unwrap();
            at = if next.starts_with('/') {
                format!("{origin}{next}")
            } else {
                next.to_owned()
            };
            (method, form) = (Method::GET, None);
        }
        panic!("no end of redirects at {at}");
    }

    fn with_cookies(&self, request: RequestBuilder, origin: &str) -> RequestBuilder {
        let own = self.cookies.iter().filter(|((of, _), _)| of == origin);
        let pairs: Vec<String> = own
            .map(|((_, name), value)| format!("{name}={value}"))
            .collect();
        request.header(COOKIE, pairs.join("; "))
    }

    /// Signs in at the inbox as the person of this number on the issuer's page.
    pub(crate) async fn signed_in(client: ClientBuilder, inbox: &str, person: usize) -> Self {
        let mut browser = Self::with(client);
        let page = browser.get(&format!("{inbox}login")).await;
        let login = page.after("name=\"login\" value=\"");
        let form = format!("login={login}&person={person}");
        let issuer: String = page.at.split('/').take(3).collect::<Vec<_>>().join("/");
        let page = browser.post(&format!("{issuer}/authorize"), &form).await;
        // The pages are below a path that no address gives away.
        assert_eq!(page.status, 200);
        let inside = page.at.strip_prefix(inbox).unwrap();
        assert!(inside.len() > 40 && inside.ends_with('/'), "{}", page.at);
        browser
    }

    /// Waits until the list has a question other than `known`, and returns its address.
    pub(crate) async fn asked(&mut self, inbox: &str, known: &str) -> String {
        let found = async {
            loop {
                let page = self.get(inbox).await;
                let links = page.text.split("href=\"").skip(1);
                let links = links.filter_map(|rest| rest.split('"').next());
                let ids = links.filter_map(|link| Some(link.split_once("/q/")?.1));
                let mut new = ids.filter(|id| !known.ends_with(*id));
                if let Some(id) = new.next() {
                    return format!("{inbox}q/{id}");
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(WITHIN, found).await.unwrap()
    }

    /// Enters answers, and sends them if the review has these words.
    pub(crate) async fn fill(&mut self, question: &str, fields: &str, words: &str) -> Page {
        let page = self.get(question).await;
        let version = page.after("name=\"version\" value=\"");
        let form = format!("csrf={}&version={version}&{fields}", page.csrf());
        let review = self.post(&format!("{question}/review"), &form).await;
        assert!(review.text.contains(words), "{words}: {}", review.text);
        let seen = review.after("name=\"seen\" value=\"");
        let form = format!("csrf={}&version={version}&seen={seen}", review.csrf());
        self.post(&format!("{question}/accept"), &form).await
    }
}
