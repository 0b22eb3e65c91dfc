//! A server on rmcp that asks for every kind of answer with `Peer::elicit`, whose forms schemars makes of Rust types.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{ElicitationError, RequestContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{Peer, RoleServer, ServerHandler, ServiceExt as _};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Declares one type with the field `value` for each kind, the list of kinds, and the way to ask for one.
macro_rules! kinds {
    ($($kind:literal $name:ident $(#[$meta:meta])* $type:ty;)*) => {
        $(
            #[derive(Debug, Deserialize, JsonSchema)]
            struct $name {
                $(#[$meta])*
                value: $type,
            }
            rmcp::elicit_safe!($name);
        )*

        const KINDS: &[&str] = &[$($kind,)* "two fields", "documented type", "no fields", "tagged"];

        async fn ask(peer: &Peer<RoleServer>, kind: &str) -> Result<Value, ElicitationError> {
            let message = format!("Please give: {kind}");
            match kind {
                $($kind => Ok(given(peer.elicit::<$name>(message).await?.map(|it| it.value).as_ref())),)*
                "two fields" => Ok(given(peer.elicit::<Person>(message).await?.as_ref())),
                "documented type" => Ok(given(peer.elicit::<Delivery>(message).await?.as_ref())),
                "tagged" => Ok(given(peer.elicit::<Tagged>(message).await?.as_ref())),
                _ => Ok(given(peer.elicit::<Nothing>(message).await?.as_ref())),
            }
        }
    };
}

kinds! {
    "text" Text String;
    "text default" TextDefault #[serde(default)] String;
    "text bounds" TextBounds #[schemars(length(min = 2, max = 20))] String;
    "text pattern" TextPattern #[schemars(regex(pattern = r"^[A-Z]{3}-\d+$"))] String;
    "email" Mail #[schemars(email)] String;
    "url" Link #[schemars(url)] String;
    "character" Character char;
    "integer" Integer i64;
    "integer 8" Small u8;
    "integer bounds" IntegerBounds #[schemars(range(min = 1, max = 5))] u32;
    "number" Number f64;
    "boolean" Boolean bool;
    "optional text" OptionalText Option<String>;
    "optional integer" OptionalInteger Option<u32>;
    "optional boolean" OptionalBoolean Option<bool>;
    "optional enum" OptionalEnum Option<Color>;
    "enum" Enum Color;
    "enum of documented options" EnumDescribed Size;
    "enum of one option" EnumOfOne Only;
    "union" UnionOf IntegerOrText;
    "list of text" ListOfText Vec<String>;
    "list of integers" ListOfIntegers Vec<u32>;
    "list of enum" ListOfEnum Vec<Color>;
    "set of text" SetOfText HashSet<String>;
    "optional list of text" OptionalList Option<Vec<String>>;
    "dictionary" Dictionary BTreeMap<String, String>;
    "nested object" Nested Person;
    "list of objects" ListOfObjects Vec<Person>;
    "ip address" Address std::net::Ipv4Addr;
    "path" FilePath std::path::PathBuf;
    "unit" Unit ();
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Color {
    Red,
    Blue,
}

/// The size of the box.
#[derive(Debug, Deserialize, JsonSchema)]
enum Size {
    /// Fits into a letter box
    Small,
    /// Needs a car
    Large,
}

#[derive(Debug, Deserialize, JsonSchema)]
enum Only {
    One,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only printed")]
enum IntegerOrText {
    Integer(i64),
    Text(String),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only printed")]
struct Person {
    name: String,
    age: u8,
}

/// The address of a delivery.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "only printed")]
struct Delivery {
    /// Street and number
    street_name: String,
    #[serde(default)]
    floor: i32,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
#[expect(dead_code, reason = "only printed")]
enum Tagged {
    Cat { lives: u8 },
    Dog { tricks: String },
}

rmcp::elicit_safe!(Person, Delivery, Nothing, Tagged);

fn given<T: std::fmt::Debug>(value: Option<&T>) -> Value {
    let is = std::any::type_name::<T>();
    json!({ "action": "accept", "is": is.rsplit("::").next().unwrap_or(is), "value": format!("{value:?}") })
}

#[derive(Clone)]
struct Forms;

impl ServerHandler for Forms {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if call.name == "kinds" {
            let list = json!(KINDS).to_string();
            return Ok(CallToolResult::success(vec![ContentBlock::text(list)]).into());
        }
        let kind = call.arguments.as_ref().and_then(|all| all.get("kind"));
        let kind = kind.and_then(Value::as_str).unwrap_or_default();
        let said = match ask(&context.peer, kind).await {
            Ok(given) => given,
            Err(ElicitationError::UserDeclined) => json!({ "action": "decline" }),
            Err(error) => {
                let text = ContentBlock::text(error.to_string());
                return Ok(CallToolResult::error(vec![text]).into());
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(said.to_string())]).into())
    }
}

/// The places where the server can be reached, until the test program ends.
pub(crate) struct Serving {
    /// Lines of JSON, one session per connection.
    pub(crate) lines: SocketAddr,
    /// Streamable HTTP.
    pub(crate) url: String,
}

/// Serves on a thread of its own.
pub(crate) fn serve() -> Serving {
    let (ready, places) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let lines = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let http = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = http.local_addr().expect("a bound address");
            let serving = Serving {
                lines: lines.local_addr().expect("a bound address"),
                url: format!("http://{address}/mcp"),
            };
            ready.send(serving).expect("the test waits");
            let mcp = StreamableHttpService::new(
                || Ok(Forms),
                LocalSessionManager::default().into(),
                StreamableHttpServerConfig::default(),
            );
            let router = axum::Router::new().nest_service("/mcp", mcp);
            tokio::spawn(async move { axum::serve(http, router).await });
            while let Ok((stream, _)) = lines.accept().await {
                tokio::spawn(async move {
                    if let Ok(service) = Forms.serve(stream).await {
                        let _ = service.waiting().await;
                    }
                });
            }
        });
    });
    places.recv().expect("the server starts")
}
