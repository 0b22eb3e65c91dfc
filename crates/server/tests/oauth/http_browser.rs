//! A browser's part of a sign-in, step by step: cookies and redirects, each visible to the test.

use std::collections::BTreeMap;

use http::header::{COOKIE, LOCATION, SET_COOKIE};
use http::{Method, StatusCode};
use url::Url;

/// A browser with cookies. Everything here is on 127.0.0.1, where cookies are not separated by port.
pub(crate) struct HttpBrowser {
    http: reqwest::Client,
    cookies: BTreeMap<String, String>,
}

/// The page that a request led to.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) body: String,
    pub(crate) onward: Option<Url>,
    at: Url,
}

impl HttpBrowser {
    pub(crate) fn new() -> Self {
        let _chosen_already = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            http,
            cookies: BTreeMap::new(),
        }
    }

    /// Sends one request, without following its redirect.
    pub(crate) async fn step(&mut self, method: Method, url: &Url, form: &str) -> Page {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut request = self.http.request(method.clone(), url.clone());
        if !cookies.is_empty() {
            request = request.header(COOKIE, cookies.join("; "));
        }
        if method == Method::POST {
            let origin = url.origin().ascii_serialization();
            request = request
                .header("origin", origin)
                .header("content-type", "application/x-www-form-urlencoded")
                .body(form.to_owned());
        }
        let response = request.send().await.unwrap();
        for set in response.headers().get_all(SET_COOKIE) {
            self.keep(set.to_str().unwrap());
        }
        let onward = response.headers().get(LOCATION);
        let onward = onward.map(|onward| url.join(onward.to_str().unwrap()).unwrap());
        Page {
            status: response.status(),
            onward,
            at: url.clone(),
            body: response.text().await.unwrap(),
        }
    }

    /// Returns the number of cookies.
    pub(crate) fn cookies(&self) -> usize {
        self.cookies.len()
    }

    fn keep(&mut self, set: &str) {
        let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
        if value.is_empty() || set.contains("Max-Age=0") {
            self.cookies.remove(name);
        } else {
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
    }

    pub(crate) async fn get(&mut self, url: &str) -> Page {
        self.step(Method::GET, &Url::parse(url).unwrap(), "").await
    }

    pub(crate) async fn post(&mut self, url: &str, form: &str) -> Page {
        self.step(Method::POST, &Url::parse(url).unwrap(), form)
            .await
    }

    /// Follows redirects to the first page, or to the first address that starts with `stop`, which is not opened.
    pub(crate) async fn follow(&mut self, mut page: Page, stop: &str) -> Result<Page, Url> {
        while let Some(onward) = page.onward.take() {
            if onward.as_str().starts_with(stop) {
                return Err(onward);
            }
            page = self.step(Method::GET, &onward, "").await;
        }
        Ok(page)
    }

    /// Signs in at the provider as `name` and authorizes the server, from the provider's first page on. Returns the
    /// address to which the provider redirects the browser.
    pub(crate) async fn agree(&mut self, page: Page, name: &str, back: &str) -> Url {
        let mut page = page;
        for form in [format!("login={name}"), "yes=1".to_owned()] {
            let at = match self.follow(page, back).await {
                Ok(page) => page,
                // A person who has been there before is not asked again.
                Err(back) => return back,
            };
            assert!(at.at.path().starts_with("/interaction/"), "{at:?}");
            page = self.step(Method::POST, &at.at, &form).await;
        }
        match self.follow(page, back).await {
            Err(back) => back,
            Ok(page) => panic!("the provider stays at {page:?}"),
        }
    }

    /// Declines at the provider.
    pub(crate) async fn refuse(&mut self, page: Page, back: &str) -> Url {
        let at = self.follow(page, back).await.unwrap();
        let page = self.step(Method::POST, &at.at, "no=1").await;
        match self.follow(page, back).await {
            Err(back) => back,
            Ok(page) => panic!("the provider stays at {page:?}"),
        }
    }
}
