//! The works that are compared, and the command of each.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The transport of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SideTransport {
    Stdio,
    Http,
}

/// The transports of client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wiring {
    pub(crate) front: SideTransport,
    pub(crate) back: SideTransport,
}

impl Wiring {
    /// Every wiring. Those on which a relay and no gateway can be measured come first.
    pub(crate) const ALL: [Self; 4] = [
        Self::of(SideTransport::Stdio, SideTransport::Stdio),
        Self::of(SideTransport::Http, SideTransport::Http),
        Self::of(SideTransport::Http, SideTransport::Stdio),
        Self::of(SideTransport::Stdio, SideTransport::Http),
    ];

    const fn of(front: SideTransport, back: SideTransport) -> Self {
        Self { front, back }
    }
}

impl fmt::Display for Wiring {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |end| match end {
            SideTransport::Stdio => "stdio",
            SideTransport::Http => "HTTP",
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
pub(crate) enum MiddleProgram {
    Direct,
    Relay,
    Ours,
    FastMcp,
    McpProxyPyPi,
    McpProxyNpm,
    Supergateway,
    McpRemote,
}

impl MiddleProgram {
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

    /// Returns `true` if the program supports this wiring.
    fn speaks(self, wiring: Wiring) -> bool {
        match self {
            Self::Direct | Self::Relay => wiring.front == wiring.back,
            Self::Ours | Self::FastMcp => true,
            Self::McpProxyNpm => wiring == Wiring::of(SideTransport::Http, SideTransport::Stdio),
            Self::McpProxyPyPi | Self::Supergateway => wiring.front != wiring.back,
            Self::McpRemote => wiring == Wiring::of(SideTransport::Stdio, SideTransport::Http),
        }
    }
}

/// A program to be measured, with its wiring.
pub(crate) struct Work {
    pub(crate) wiring: Wiring,
    pub(crate) name: MiddleProgram,
    /// Its program; this one if it needs no other.
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

    /// Returns the command line between these ends; `None` if the client connects to the server itself.
    pub(crate) fn command(&self, ends: &Ends) -> Option<Vec<String>> {
        let mut words = vec![self.program.display().to_string()];
        let (front, back) = (self.wiring.front, self.wiring.back);
        let mut more = |texts: &[&str]| words.extend(texts.iter().map(|text| (*text).to_owned()));
        let (port, upstream) = (ends.port.to_string(), ends.upstream());
        match self.name {
            MiddleProgram::Direct => return None,
            MiddleProgram::Relay if front == SideTransport::Stdio => more(&["relay", "stdio"]),
            MiddleProgram::Relay => more(&["relay", "http", &port, &ends.upstream_host()]),
            MiddleProgram::Ours => {
                more(&[
                    "gateway",
                    "--pending",
                    "off",
                    "--questions-per-minute",
                    "off",
                ]);
                more(&["--inbox", "127.0.0.1:0", "--state", &ends.state]);
                if front == SideTransport::Http {
                    more(&["--listen", &ends.host()]);
                }
                if back == SideTransport::Http {
                    more(&["--upstream", &upstream]);
                }
            }
            MiddleProgram::FastMcp => {
                more(&[
                    &ends.fastmcp,
                    if front == SideTransport::Stdio {
                        "stdio"
                    } else {
                        &port
                    },
                ]);
                if back == SideTransport::Http {
                    more(&["--url", &upstream]);
                }
            }
            MiddleProgram::McpProxyPyPi if front == SideTransport::Http => more(&["--port", &port]),
            MiddleProgram::McpProxyPyPi => more(&["--transport", "streamablehttp", &upstream]),
            MiddleProgram::McpProxyNpm => {
                more(&["--host", "127.0.0.1", "--port", &port, "--server", "stream"]);
            }
            MiddleProgram::Supergateway if front == SideTransport::Http => {
                let server = ends.server(SideTransport::Stdio).join(" ");
                more(&[
                    "--logLevel",
                    "none",
                    "--outputTransport",
                    "streamableHttp",
                    "--stateful",
                ]);
                more(&["--port", &port, "--stdio", &server]);
            }
            MiddleProgram::Supergateway => {
                more(&["--logLevel", "none", "--streamableHttp", &upstream]);
            }
            MiddleProgram::McpRemote => more(&[&upstream, "--allow-http"]),
        }
        if back == SideTransport::Stdio && self.name != MiddleProgram::Supergateway {
            if self.name != MiddleProgram::Relay {
                words.push("--".to_owned());
            }
            words.extend(ends.server(SideTransport::Stdio));
        }
        Some(words)
    }
}

/// Returns everything that can be measured here and whose wiring and name contain `only`, ordered by wiring.
pub(crate) fn all(gateway: &Path, only: &str) -> io::Result<Vec<Work>> {
    let own = std::env::current_exe()?;
    let peers = peers(&own);
    let mut works = Vec::new();
    for wiring in Wiring::ALL {
        for name in MiddleProgram::ALL
            .into_iter()
            .filter(|name| name.speaks(wiring))
        {
            let program = match name {
                MiddleProgram::Direct | MiddleProgram::Relay => own.clone(),
                MiddleProgram::Ours => gateway.to_owned(),
                MiddleProgram::FastMcp => peers.join("fastmcp/bin/python"),
                MiddleProgram::McpProxyPyPi => peers.join("mcp-proxy/bin/mcp-proxy"),
                MiddleProgram::McpProxyNpm => peers.join("node_modules/.bin/mcp-proxy"),
                MiddleProgram::Supergateway => peers.join("node_modules/.bin/supergateway"),
                MiddleProgram::McpRemote => peers.join("node_modules/.bin/mcp-remote"),
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

/// Returns the folder into which `peers.sh` installs: `target/speed`.
fn peers(own: &Path) -> PathBuf {
    let target = own.parent().and_then(Path::parent);
    target.unwrap_or_else(|| Path::new("target")).join("speed")
}

/// Both ends of a work, and the folder to which it may write.
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

    /// Returns the address at which the work listens.
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the address at which the server listens.
    pub(crate) fn upstream_host(&self) -> String {
        format!("127.0.0.1:{}", self.upstream_port)
    }

    fn upstream(&self) -> String {
        format!("http://{}/mcp", self.upstream_host())
    }

    /// Returns the command line of the server.
    pub(crate) fn server(&self, back: SideTransport) -> Vec<String> {
        let mut words = vec![self.own.clone(), "server".to_owned()];
        match back {
            SideTransport::Stdio => words.push("stdio".to_owned()),
            SideTransport::Http => {
                words.extend(["http".to_owned(), self.upstream_port.to_string()]);
            }
        }
        words
    }
}
