//! A server written frame by frame, so that a test controls the exact bytes.

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

use mcp_elicit_client::{
    ClientSettings, ConnectError, ConnectOptions, Connection, ElicitingClient,
};
use mcp_elicit_core::wire::Revision;

/// The server's end of a pipe.
pub(crate) struct Server {
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
}

impl Server {
    /// Creates the server at this end of a pipe.
    pub(crate) fn over(pipe: DuplexStream) -> Self {
        let (read, write) = tokio::io::split(pipe);
        Self {
            read: BufReader::new(read).lines(),
            write,
        }
    }

    /// Returns the next frame from the client; `None` if it has closed its side.
    pub(crate) async fn read(&mut self) -> Option<Value> {
        let line = self.read.next_line().await.expect("a line")?;
        Some(serde_json::from_str(&line).expect("the client writes JSON"))
    }

    /// Returns the next frame that is wanted; others are skipped.
    pub(crate) async fn read_until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.read().await.expect("the client is still there");
            if wanted(&frame) {
                return frame;
            }
        }
    }

    /// Returns the next request of this method.
    pub(crate) async fn request(&mut self, method: &str) -> Value {
        self.read_until(|frame| frame["method"] == method).await
    }

    /// Returns the response to the request with this id.
    pub(crate) async fn response(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        self.read_until(|frame| frame.get("method").is_none() && frame["id"] == id)
            .await
    }

    /// Writes a frame. A disconnected client is no failure of the server.
    pub(crate) async fn send(&mut self, frame: &Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        let _gone = self.write.write_all(format!("{text}\n").as_bytes()).await;
    }

    pub(crate) async fn result(&mut self, id: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
            .await;
    }

    /// Pushes a question to the client.
    pub(crate) async fn push(&mut self, id: &str, params: Value) {
        self.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}),
        )
        .await;
    }

    /// Answers the handshake of the revision, and returns the capabilities that the client declared.
    pub(crate) async fn greet(&mut self, revision: Revision) -> Value {
        let info = json!({"name": "hostile", "version": "1"});
        if revision == Revision::V2026_07_28 {
            let probe = self.request("server/discover").await;
            let result = json!({
                "resultType": "complete", "supportedVersions": [revision.as_str()],
                "capabilities": {"tools": {}}, "serverInfo": info, "ttlMs": 0, "cacheScope": "private",
            });
            self.result(&probe["id"], result).await;
            return probe["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone();
        }
        let hello = self.request("initialize").await;
        let result = json!({
            "protocolVersion": revision.as_str(), "capabilities": {"tools": {}}, "serverInfo": info,
        });
        self.result(&hello["id"], result).await;
        hello["params"]["capabilities"].clone()
    }
}

/// Returns a connected client with these settings, its server, and the capabilities that the client declared.
pub(crate) async fn connected(
    revision: Revision,
    settings: ClientSettings,
) -> (Connection<()>, Server, Value) {
    let (client, mut server) = pipe(settings);
    let options = ConnectOptions::default().revision(revision);
    let (connection, declared) = tokio::join!(client(options), server.greet(revision));
    (connection.expect("a connection"), server, declared)
}

/// Returns a client that is not connected yet, and its server.
pub(crate) fn pipe(
    settings: ClientSettings,
) -> (
    impl AsyncFnOnce(ConnectOptions) -> Result<Connection<()>, ConnectError>,
    Server,
) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let server = Server::over(theirs);
    let client = async move |options: ConnectOptions| {
        let (read, write) = tokio::io::split(ours);
        Connection::over(
            read,
            write,
            ElicitingClient::new((), "hostile", settings),
            &options,
        )
        .await
    };
    (client, server)
}

/// Returns a form with one required choice and an optional number that only an exact value satisfies.
pub(crate) fn form() -> Value {
    json!({
        "message": "Where?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "pattern": "^[a-z]+$", "default": "here"},
                "count": {"type": "integer", "multipleOf": 3},
            },
            "required": ["place"],
        },
    })
}
