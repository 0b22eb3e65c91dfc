//! The works that are compared, and the command of each.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The transport of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Stdio,
    Http,
}

/// The transports of client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wiring {
    pub(crate) front: End,
    pub(crate) back: End,
}

impl Wiring {
    /// Every wiring, those that a relay and no gateway at all can be measured on first.
    pub(crate) const ALL: [Self; 4] = [
        Self::of(End::Stdio, End::Stdio),
        Self::of(End::Http, End::Http),
        Self::of(End::Http, End::Stdio),
        Self::of(End::Stdio, End::Http),
    ];

    const fn of(front: End, back: End) -> Self {
        Self { front, back }
    }
}

impl fmt::Display for Wiring {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |end| match end {
            End::Stdio => "stdio",
            End::Http => "HTTP",
        };
        write!(
            to,
            "{} client, {} server",
            word(self.front),
            word(self.back)
        )
    }
}

/// The program between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Direct,
    Relay,
    Ours,
    FastMcp,
    McpProxyPyPi,
    McpProxyNpm,
    Supergateway,
    McpRemote,
}

impl Name {
    const ALL: [Self; 8] = [
        Self::Direct,
        Self::Relay,
        Self::Ours,
        Self::FastMcp,
        Self::McpProxyPyPi,
        Self::McpProxyNpm,
        Self::Supergateway,
        Self::McpRemote,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Direct => "no gateway",
            Self::Relay => "byte relay",
            Self::Ours => "mcp-elicit gateway",
            Self::FastMcp => "FastMCP proxy",
            Self::McpProxyPyPi => "mcp-proxy (PyPI)",
            Self::McpProxyNpm => "mcp-proxy (npm)",
            Self::Supergateway => "supergateway",
            Self::McpRemote => "mcp-remote",
        }
    }

    /// Returns `true` if it can stand between such ends.
    fn speaks(self, wiring: Wiring) -> bool {
        match self {
            Self::Direct | Self::Relay => wiring.front == wiring.back,
            Self::Ours | Self::FastMcp => true,
            Self::McpProxyNpm => wiring == Wiring::of(End::Http, End::Stdio),
            Self::McpProxyPyPi | Self::Supergateway => wiring.front != wiring.back,
            Self::McpRemote => wiring == Wiring::of(End::Stdio, End::Http),
        }
    }
}

/// One thing that is measured.
pub(crate) struct Work {
    pub(crate) wiring: Wiring,
    pub(crate) name: Name,
    /// Its program; our own for what needs none.
    program: PathBuf,
}

impl fmt::Display for Work {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}: {}", self.wiring, self.name.word())
    }
}

impl Work {
    pub(crate) fn word(&self) -> &'static str {
        self.name.word()
    }

    /// Returns what starts it between these ends; `None` if the client goes to the server itself.
    pub(crate) fn command(&self, ends: &Ends) -> Option<Vec<String>> {
        let mut words = vec![self.program.display().to_string()];
        let (front, back) = (self.wiring.front, self.wiring.back);
        let mut more = |texts: &[&str]| words.extend(texts.iter().map(|text| (*text).to_owned()));
        let (port, upstream) = (ends.port.to_string(), ends.upstream());
        match self.name {
            Name::Direct => return None,
            Name::Relay if front == End::Stdio => more(&["relay", "stdio"]),
            Name::Relay => more(&["relay", "http", &port, &ends.upstream_host()]),
            Name::Ours => {
                more(&[
                    "gateway",
                    "--pending",
                    "off",
                    "--questions-per-minute",
                    "off",
                ]);
                more(&["--inbox", "127.0.0.1:0", "--state", &ends.state]);
                if front == End::Http {
                    more(&["--listen", &ends.host()]);
                }
                if back == End::Http {
                    more(&["--upstream", &upstream]);
                }
            }
            Name::FastMcp => {
                more(&[
                    &ends.fastmcp,
                    if front == End::Stdio { "stdio" } else { &port },
                ]);
                if back == End::Http {
                    more(&["--url", &upstream]);
                }
            }
            Name::McpProxyPyPi if front == End::Http => more(&["--port", &port]),
            Name::McpProxyPyPi => more(&["--transport", "streamablehttp", &upstream]),
            Name::McpProxyNpm => {
                more(&["--host", "127.0.0.1", "--port", &port, "--server", "stream"]);
            }
            Name::Supergateway if front == End::Http => {
                let server = ends.server(End::Stdio).join(" ");
                more(&[
                    "--logLevel",
                    "none",
                    "--outputTransport",
                    "streamableHttp",
                    "--stateful",
                ]);
                more(&["--port", &port, "--stdio", &server]);
            }
            Name::Supergateway => more(&["--logLevel", "none", "--streamableHttp", &upstream]),
            Name::McpRemote => more(&[&upstream, "--allow-http"]),
        }
        if back == End::Stdio && self.name != Name::Supergateway {
            if self.name != Name::Relay {
                words.push("--".to_owned());
            }
            words.extend(ends.server(End::Stdio));
        }
        Some(words)
    }
}

/// Everything that can be measured here and whose wiring and name contain `only`, wiring by wiring.
pub(crate) fn all(gateway: &Path, only: &str) -> io::Result<Vec<Work>> {
    let own = std::env::current_exe()?;
    let peers = peers(&own);
    let mut works = Vec::new();
    for wiring in Wiring::ALL {
        for name in Name::ALL.into_iter().filter(|name| name.speaks(wiring)) {
            let program = match name {
                Name::Direct | Name::Relay => own.clone(),
                Name::Ours => gateway.to_owned(),
                Name::FastMcp => peers.join("fastmcp/bin/python"),
                Name::McpProxyPyPi => peers.join("mcp-proxy/bin/mcp-proxy"),
                Name::McpProxyNpm => peers.join("node_modules/.bin/mcp-proxy"),
                Name::Supergateway => peers.join("node_modules/.bin/supergateway"),
                Name::McpRemote => peers.join("node_modules/.bin/mcp-remote"),
            };
            let work = Work {
                wiring,
                name,
                program,
            };
            if !work.to_string().contains(only) {
                continue;
            }
            if work.program.exists() {
                works.push(work);
            } else {
                super::tell(&format!(
                    "{work}: left out, since there is no {} (see crates/speed/peers.sh)",
                    work.program.display()
                ));
            }
        }
    }
    Ok(works)
}

/// Returns where `peers.sh` installs: `target/speed`.
fn peers(own: &Path) -> PathBuf {
    let target = own.parent().and_then(Path::parent);
    target.unwrap_or_else(|| Path::new("target")).join("speed")
}

/// Both ends of a work, and what it may write to.
pub(crate) struct Ends {
    port: u16,
    upstream_port: u16,
    own: String,
    state: String,
    fastmcp: String,
}

impl Ends {
    pub(crate) fn new(port: u16, upstream_port: u16, state: &Path) -> io::Result<Self> {
        let own = std::env::current_exe()?;
        let fastmcp = Path::new(env!("CARGO_MANIFEST_DIR")).join("fastmcp_proxy.py");
        Ok(Self {
            port,
            upstream_port,
            own: own.display().to_string(),
            state: state.display().to_string(),
            fastmcp: fastmcp.display().to_string(),
        })
    }

    /// Returns where the work is to listen.
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns where the server listens.
    pub(crate) fn upstream_host(&self) -> String {
        format!("127.0.0.1:{}", self.upstream_port)
    }

    fn upstream(&self) -> String {
        format!("http://{}/mcp", self.upstream_host())
    }

    /// Returns what starts the server.
    pub(crate) fn server(&self, back: End) -> Vec<String> {
        let mut words = vec![self.own.clone(), "server".to_owned()];
        match back {
            End::Stdio => words.push("stdio".to_owned()),
            End::Http => words.extend(["http".to_owned(), self.upstream_port.to_string()]),
        }
        words
    }
}
