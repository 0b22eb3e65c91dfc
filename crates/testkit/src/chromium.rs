//! A real Chromium, driven over WebDriver, for a person's actions on a page and the page's content.
//!
//! Without `chromium` and `chromedriver`, a start reports the skip and returns `None`; with `MCP_ELICIT_MUST_BROWSE` in
//! the environment it fails. Every other error panics, because it ends the test.
#![expect(
    clippy::missing_panics_doc,
    reason = "what goes wrong ends the test, as the module says"
)]

pub mod accessible;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};
use fantoccini::elements::Element;
use fantoccini::error::CmdError;
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder, Locator};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// The time that a page has to reach a state; a loaded machine is slow.
const STATE_TIMEOUT: Duration = Duration::from_secs(60);

/// The number of attempts to start chromedriver, after which the test fails.
const DRIVER_STARTS: u32 = 10;

/// A browser with one window, closed when dropped.
pub struct Chromium {
    /// The driver, for actions without a method here.
    pub client: Client,
    _driver: Child,
    profile: PathBuf,
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // A test that panics has not closed the browser: only the driver would die with its handle.
        let browsers = running_with(&self.profile);
        if !browsers.is_empty() {
            let _ = std::process::Command::new("kill")
                .arg("-KILL")
                .args(&browsers)
                .stderr(Stdio::null())
                .status();
        }
        // A profile left in the temporary folder is harmless.
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

/// The set-up of the browser.
#[derive(Clone, Copy, Default)]
pub struct Setup {
    /// Pages run no script.
    pub without_script: bool,
    /// The person prefers dark colours.
    pub dark: bool,
    /// A window as narrow as a telephone.
    pub narrow: bool,
}

/// Reports on stderr that something was not tested.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
pub fn report_skipped(why: &str) {
    eprintln!("\n*** SKIPPED: {why} ***\n");
}

/// The ids of the processes that were started with this profile, which is unique.
fn running_with(profile: &Path) -> Vec<String> {
    let wanted = format!("--user-data-dir={}", profile.display());
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|process| {
            let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let mut words = command.split(|byte| *byte == 0);
            words.any(|word| word == wanted.as_bytes())
        })
        .filter_map(|process| process.file_name().into_string().ok())
        .collect()
}

fn found(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|file| file.is_file())
}

/// Starts chromedriver, and returns it with its port.
///
/// On a loaded machine, it may end before it reports a port; it is then started again.
async fn start_driver(program: &Path) -> (Child, String) {
    let mut said = Vec::new();
    for _ in 0..DRIVER_STARTS {
        let mut driver = Command::new(program)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("chromedriver starts");
        let mut lines = BufReader::new(driver.stdout.take().expect("its output is piped")).lines();
        while let Some(line) = lines.next_line().await.expect("it speaks") {
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                let port = port.trim_end_matches('.').to_owned();
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return (driver, port);
            }
            said.push(line);
        }
    }
    panic!("chromedriver has not said its port: {said:?}");
}

/// The most presses of Tab on the way to an element. A date and time has nine stops: its parts, its button, its zone.
const TABS: usize = 150;

/// A script that names the element with the focus.
const WHERE_FOCUS_IS: &str = "const at = document.activeElement; return `${at.tagName} #${at.id}`;";

impl Chromium {
    /// Starts a browser. Returns `None`, and reports the skip, if none is installed.
    pub async fn start(setup: Setup) -> Option<Self> {
        let driver = found(&["chromedriver"]);
        let browser = found(&["chromium", "chromium-browser", "google-chrome"]);
        let (Some(driver), Some(browser)) = (driver, browser) else {
            assert!(
                std::env::var_os("MCP_ELICIT_MUST_BROWSE").is_none(),
                "no chromium and chromedriver here"
            );
            report_skipped("no chromium and chromedriver here, NOTHING WAS TESTED");
            return None;
        };
        let (driver, port) = start_driver(&driver).await;
        let profile =
            std::env::temp_dir().join(format!("mcp-elicit-web-{}-{port}", std::process::id()));
        let client = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(capabilities(&browser, &profile))
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("chromium starts");
        let chromium = Self {
            client,
            _driver: driver,
            profile,
        };
        // No window manager gives a window of these tests the focus: the first press would, and would not count.
        chromium
            .cdp(
                "Emulation.setFocusEmulationEnabled",
                json!({"enabled": true}),
            )
            .await;
        if setup.without_script {
            chromium.forbid_script().await;
        }
        if setup.dark {
            let features = json!([{"name": "prefers-color-scheme", "value": "dark"}]);
            chromium
                .cdp("Emulation.setEmulatedMedia", json!({"features": features}))
                .await;
        }
        if setup.narrow {
            let size =
                json!({"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": false});
            chromium
                .cdp("Emulation.setDeviceMetricsOverride", size)
                .await;
        }
        Some(chromium)
    }

    /// Forbids the pages of the current tab to run scripts; the test's own scripts still run.
    pub async fn forbid_script(&self) {
        self.cdp(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": true}),
        )
        .await;
    }

    /// Ends the browser.
    pub async fn close(self) {
        self.client.clone().close().await.expect("it closes");
    }

    /// Goes to the address.
    pub async fn open(&self, address: &str) {
        self.client.goto(address).await.expect("the page opens");
    }

    /// Waits until an element matches, and returns it.
    pub async fn at(&self, css: &str) -> Element {
        loop {
            let wait = self.client.wait().at_most(STATE_TIMEOUT);
            match wait.for_element(Locator::Css(css)).await {
                Ok(element) => return element,
                // One page was replacing another.
                Err(error) if is_of_former_page(&error) => {}
                Err(error) => panic!("{css}: {error}"),
            }
        }
    }

    /// Returns the number of elements that match now.
    pub async fn count(&self, css: &str) -> usize {
        loop {
            match self.client.find_all(Locator::Css(css)).await {
                Ok(found) => return found.len(),
                // One page was replacing another.
                Err(error) if is_of_former_page(&error) => {}
                Err(error) => panic!("{css}: {error}"),
            }
        }
    }

    /// Clicks the element with the mouse, after scrolling it to the middle of the window.
    pub async fn click(&self, css: &str) {
        // The driver counts an element under the bar at the bottom of the window as visible; a person would scroll.
        let script = "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})";
        loop {
            let element = self.at(css).await;
            self.let_presses_count().await;
            // A new confirmation takes no press in its first moment.
            for _ in 0..60 {
                if element.is_enabled().await.unwrap_or(true) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let it = serde_json::to_value(&element).expect("an element can be named");
            let _ = self.client.execute(script, vec![it]).await;
            match element.click().await {
                Ok(()) => return,
                // The element belonged to the page before: nothing was clicked.
                Err(error) if is_of_former_page(&error) => {}
                Err(error) => panic!("{css}: {error}"),
            }
        }
    }

    /// Lets presses count at once on a page that has only just come up, as they do a moment later.
    async fn let_presses_count(&self) {
        // No window manager gives the window of a test the focus: the first press would, and would not count.
        let enabled = json!({"enabled": true});
        self.cdp("Emulation.setFocusEmulationEnabled", enabled)
            .await;
        self.run("delete document.body?.dataset.fresh").await;
    }

    /// Types into the control, after its present content.
    pub async fn fill(&self, css: &str, text: &str) {
        self.let_presses_count().await;
        loop {
            match self.at(css).await.send_keys(text).await {
                Ok(()) => return,
                // The element belonged to the page before: nothing was typed.
                Err(error) if is_of_former_page(&error) => {}
                Err(error) => panic!("{css}: {error}"),
            }
        }
    }

    /// Presses keys on the focused element.
    pub async fn press(&self, keys: &str) {
        self.let_presses_count().await;
        let focused = self
            .client
            .active_element()
            .await
            .expect("something has the focus");
        focused.send_keys(keys).await.expect("keys can be pressed");
    }

    /// Returns the element's visible text.
    pub async fn text(&self, css: &str) -> String {
        loop {
            match self.at(css).await.text().await {
                Ok(text) => return text,
                Err(error) if is_of_former_page(&error) => {}
                Err(error) => panic!("{css}: {error}"),
            }
        }
    }

    /// Returns the control's value.
    pub async fn value(&self, css: &str) -> String {
        loop {
            match self.at(css).await.prop("value").await {
                Ok(value) => return value.unwrap_or_default(),
                // The element belonged to the page before.
                Err(error) if is_of_former_page(&error) => {}
                Err(error) => panic!("{css}: {error}"),
            }
        }
    }

    /// Presses Tab until the element has the focus, which proves that the keyboard can reach it.
    ///
    /// The keys are those of a keyboard, and are not sent to an element: to send keys to one, the driver gives it the
    /// focus first, and may so put a date back to its first part, from which no number of Tabs leads on.
    pub async fn tab_to(&self, css: &str) {
        let there = format!("return document.activeElement.matches({})", json!(css));
        for _ in 0..TABS {
            if self.run(&there).await == Value::Bool(true) {
                return;
            }
            self.type_keys("\u{e004}").await;
        }
        let reached = self.run(WHERE_FOCUS_IS).await;
        panic!("{css} cannot be reached with Tab; the focus is at {reached}");
    }

    /// Types keys as a keyboard does: they go to whatever has the focus.
    pub async fn type_keys(&self, keys: &str) {
        self.let_presses_count().await;
        self.type_at_once(keys).await;
    }

    /// Types keys, also on a page that has only just come up.
    pub async fn type_at_once(&self, keys: &str) {
        let typed = keys.chars().flat_map(|value| {
            let down = KeyAction::Down { value };
            [down, KeyAction::Up { value }]
        });
        let keys = typed.fold(KeyActions::new("keyboard".to_owned()), KeyActions::then);
        self.client
            .perform_actions(keys)
            .await
            .expect("keys can be typed");
    }

    /// Holds a key down for this time, also on a page that has only just come up.
    pub async fn hold_at_once(&self, value: char, duration: Duration) {
        let held = KeyActions::new("keyboard".to_owned())
            .then(KeyAction::Down { value })
            .then(KeyAction::Pause { duration })
            .then(KeyAction::Up { value });
        self.client
            .perform_actions(held)
            .await
            .expect("a key can be held");
    }

    /// Writes a screenshot of the whole page to `file` as PNG.
    pub async fn picture(&self, file: &Path) {
        let whole = json!({"captureBeyondViewport": true});
        let shot = self.cdp("Page.captureScreenshot", whole).await;
        let data = shot["data"].as_str().expect("a picture");
        let bytes = STANDARD.decode(data).expect("it is base64");
        std::fs::write(file, bytes).expect("it can be written");
    }

    /// Returns the address without its query and fragment.
    pub async fn path(&self) -> String {
        self.client
            .current_url()
            .await
            .expect("there is a page")
            .path()
            .to_owned()
    }

    /// Waits until the page shows `text`.
    pub async fn shows(&self, text: &str) {
        let text_of = async {
            loop {
                // While one page replaces another, there is no body to query.
                let body = self.client.find(Locator::Css("body")).await;
                let shown = match body {
                    Ok(body) => body.text().await.unwrap_or_default(),
                    Err(_) => String::new(),
                };
                if shown.contains(text) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let in_time = tokio::time::timeout(STATE_TIMEOUT, text_of).await.is_ok();
        assert!(
            in_time,
            "the page never shows {text:?} but: {}",
            self.text("body").await
        );
    }

    /// Waits until the script returns `true`.
    pub async fn until(&self, script: &str) {
        let holds = async {
            while self.run(script).await != Value::Bool(true) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let in_time = tokio::time::timeout(STATE_TIMEOUT, holds).await.is_ok();
        assert!(in_time, "never true: {script}");
    }

    /// Runs the script and returns its value; null if it fails.
    pub async fn run(&self, script: &str) -> Value {
        self.client
            .execute(script, Vec::new())
            .await
            .unwrap_or(Value::Null)
    }

    /// Returns the page's title.
    pub async fn title(&self) -> String {
        self.client.title().await.expect("a page has a title")
    }

    /// Runs a command of Chromium's own protocol.
    pub async fn cdp(&self, method: &str, params: Value) -> Value {
        let command = Cdp(json!({"cmd": method, "params": params}));
        self.client
            .issue_cmd(command)
            .await
            .unwrap_or_else(|error: CmdError| panic!("{method}: {error}"))
    }
}

fn capabilities(browser: &Path, profile: &Path) -> Capabilities {
    let options = json!({
        "binary": browser,
        "args": [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage", "--force-prefers-reduced-motion", "--window-size=1000,900",
            format!("--user-data-dir={}", profile.display()),
        ],
    });
    let mut capabilities = Capabilities::new();
    capabilities.insert("goog:chromeOptions".to_owned(), options);
    capabilities
}

#[derive(Debug)]
struct Cdp(Value);

impl WebDriverCompatibleCommand for Cdp {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        base.join(&format!(
            "session/{}/goog/cdp/execute",
            session.unwrap_or_default()
        ))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.0.to_string()))
    }
}

/// Returns `true` if the element was on a page that has been replaced. If the page changes during a command, the driver
/// reports that with another error.
fn is_of_former_page(error: &CmdError) -> bool {
    let said = error.to_string();
    let known = ["does not belong to the document", "aborted by navigation"];
    error.is_stale_element_reference() || known.iter().any(|words| said.contains(words))
}
