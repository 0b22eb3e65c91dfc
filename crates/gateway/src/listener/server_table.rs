//! The servers at their paths. They are replaced when the file is read again: sessions that are open go on with the server
//! as they began, and others get it as the file defines it now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::response::Response;
use http::{HeaderMap, StatusCode};

use crate::callers::resource::Resource;
use crate::config::ByteLimits;
use crate::listener::endpoint::header_checks::refusal;
use crate::listener::endpoint::{EndpointContext, McpEndpoint};
use crate::listener::origin_guard::OriginGuard;
use crate::listener::page_access::AllowedOrigins;
use crate::replaceable::Replaceable;
use crate::runtime::Runtime;
use crate::runtime::current_file::ServedServers;

/// The path of the only server, besides its own.
const ONLY: &str = "/mcp";

/// The servers of a listener.
pub(crate) struct ServerTable {
    /// The origin under which callers reach the listener.
    origin: String,
    origin_guard: OriginGuard,
    origins: AllowedOrigins,
    shared: EndpointContext,
    paths: Replaceable<ServedPaths>,
}

type ServedPaths = BTreeMap<String, Arc<ServedPath>>;

/// A path, and the servers that are or were served there.
pub(crate) struct ServedPath {
    /// The path.
    pub(crate) path: Arc<str>,
    /// The server as a resource of its callers' access tokens.
    pub(crate) resource: Arc<Resource>,
    /// The server for new sessions; `None` if the file has none for this path any more.
    current: Option<Arc<McpEndpoint>>,
    /// Those of earlier files, the latest last. Only their sessions are served.
    earlier: Vec<Arc<McpEndpoint>>,
}

impl ServerTable {
    /// Creates a table without servers. `local` is `true` if the listener's address is a loopback one.
    pub(crate) fn new(origin: String, local: bool, public_url: Option<&str>) -> Arc<Self> {
        let origins = AllowedOrigins::default();
        Arc::new(Self {
            origin,
            origin_guard: OriginGuard::new(local, origins.clone()).behind(public_url),
            origins,
            shared: EndpointContext::new(&ByteLimits::DEFAULT),
            paths: Replaceable::default(),
        })
    }

    /// Returns the guard of all servers.
    pub(crate) fn origin_guard(&self) -> &OriginGuard {
        &self.origin_guard
    }

    /// Returns the origins whose pages may use the listener.
    pub(crate) fn origins(&self) -> &AllowedOrigins {
        &self.origins
    }

    /// Returns the bytes that the calls of all callers hold.
    pub(crate) fn call_bytes(&self) -> usize {
        self.shared.call_bytes()
    }

    /// Replaces the limits of all sessions together, and the origins.
    pub(crate) fn set_limits(&self, limits: &ByteLimits, origins: &[String]) {
        self.shared.set_limits(limits);
        self.origins.replace(origins);
    }

    /// Replaces the servers. Those that are the same object stay as they are, with their sessions. Must be called in a tokio
    /// runtime.
    pub(crate) fn replace(&self, runtime: &Runtime, servers: &ServedServers) {
        let before = self.paths.get();
        let mut next: BTreeMap<String, Arc<McpEndpoint>> = BTreeMap::new();
        for (name, served) in servers {
            let path = format!("{ONLY}/{name}");
            let known = before.get(&path).and_then(|at| at.current.clone());
            let known = known.filter(|known| Arc::ptr_eq(known.served(), served));
            let endpoint = known.unwrap_or_else(|| {
                let guard = self.origin_guard.clone();
                McpEndpoint::new(runtime.clone(), served.clone(), guard, self.shared.clone())
            });
            if servers.len() == 1 {
                next.insert(ONLY.to_owned(), endpoint.clone());
            }
            next.insert(path, endpoint);
        }
        let all: BTreeSet<_> = before.keys().chain(next.keys()).collect();
        let paths = all.into_iter().map(|path| {
            let current = next.get(path).cloned();
            let served = self.served_path(path, before.get(path), current);
            (path.clone(), Arc::new(served))
        });
        let paths = Arc::new(paths.collect::<ServedPaths>());
        self.paths.set(paths.clone());
        // Not before: until then they may get new sessions.
        for endpoint in before.values().filter_map(|at| at.current.as_ref()) {
            let is_current = |at: &Arc<ServedPath>| at.is_current(endpoint);
            if !paths.values().any(is_current) {
                endpoint.retire();
            }
        }
    }

    fn served_path(
        &self,
        path: &str,
        before: Option<&Arc<ServedPath>>,
        current: Option<Arc<McpEndpoint>>,
    ) -> ServedPath {
        let resource = before.map_or_else(
            || Arc::new(Resource::new(&self.origin, path)),
            |before| before.resource.clone(),
        );
        if let Some(current) = &current {
            current.add_resource(&resource.url);
        }
        let is_next = |endpoint: &Arc<McpEndpoint>| {
            current
                .as_ref()
                .is_some_and(|current| Arc::ptr_eq(current, endpoint))
        };
        let mut earlier = Vec::new();
        if let Some(before) = before {
            let with_sessions = before.earlier.iter().filter(|at| at.may_have_sessions());
            earlier.extend(with_sessions.cloned());
            // Also without a session: one may be about to be opened.
            earlier.extend(before.current.clone());
            if earlier.is_empty() && current.is_none() {
                // The last one says that the path has no server any more.
                earlier.extend(before.earlier.last().cloned());
            }
            earlier.retain(|endpoint| !is_next(endpoint));
        }
        ServedPath {
            path: path.into(),
            resource,
            current,
            earlier,
        }
    }

    /// Returns the servers at this path, which may end in a slash: people type one, and some clients add one.
    pub(crate) fn at(&self, path: &str) -> Option<Arc<ServedPath>> {
        let paths = self.paths.get();
        let without_slash = path.strip_suffix('/').unwrap_or(path);
        paths.get(without_slash).cloned()
    }

    /// Returns the servers of this and of earlier files that have or may get sessions.
    pub(crate) fn endpoints(&self) -> Vec<Arc<McpEndpoint>> {
        let paths = self.paths.get();
        // The only server has a path of its own, too.
        let named = paths.iter().filter(|(path, _)| *path != ONLY);
        let all = named.flat_map(|(_, at)| at.current.iter().chain(&at.earlier));
        all.cloned().collect()
    }
}

impl ServedPath {
    /// Returns the server for new sessions.
    pub(crate) fn current(&self) -> Option<&Arc<McpEndpoint>> {
        self.current.as_ref()
    }

    /// Returns `true` if this server gets the new sessions.
    pub(crate) fn is_current(&self, endpoint: &Arc<McpEndpoint>) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|current| Arc::ptr_eq(current, endpoint))
    }

    /// Returns the servers of earlier files, the latest first.
    pub(crate) fn earlier(&self) -> impl Iterator<Item = &Arc<McpEndpoint>> {
        self.earlier.iter().rev()
    }

    /// Returns the server that a request with these headers is for: that of its session, else the current one. A path
    /// without a current one has its latest, for proofs of callers and sessions at other gateways.
    pub(crate) fn of_request(&self, headers: &HeaderMap) -> Option<&Arc<McpEndpoint>> {
        let all = || self.current.iter().chain(self.earlier());
        let of_session = all().find(|endpoint| endpoint.has_session_of(headers));
        of_session.or_else(|| all().next())
    }

    /// Returns the response to a caller that would open a session, if the file has no server for this path any more.
    pub(crate) fn gone(&self) -> Response {
        let why = if &*self.path == ONLY {
            "the configuration of this gateway was changed: it has no single server any more, and each is at /mcp/NAME; sessions that are open go on"
        } else {
            "the configuration of this gateway was changed: it has no server of this name any more; sessions that are open go on"
        };
        refusal(StatusCode::NOT_FOUND, -32600, why)
    }
}
