//! Configuration files as the documentation of each client writes them, and as people change them.

/// A file: its name, its client, its bytes, and the servers that can be wrapped.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) client: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) servers: &'static [&'static str],
}

/// The shape of each client: with a program, and with an address where the client has one.
const SHAPES: &[(&str, &str, &[&str])] = &[
    (
        "claude-desktop",
        "{\n  \"mcpServers\": {\n    \"files\": {\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"@modelcontextprotocol/server-filesystem\", \"/home/me/Desktop\"],\n      \"env\": {\"API_KEY\": \"s3cret\"}\n    }\n  },\n  \"globalShortcut\": \"\"\n}\n",
        &["files"],
    ),
    (
        "claude-code",
        "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"deploy\": {\"type\": \"stdio\", \"command\": \"deploy-server\", \"args\": [], \"env\": {}},\n    \"crm\": {\n      \"type\": \"http\",\n      \"url\": \"https://crm.example/mcp\",\n      \"headers\": {\n        \"Authorization\": \"Bearer ${TOKEN}\",\n        \"X-Team\": \"ops\"\n      }\n    }\n  },\n  \"projects\": {\n    \"/work/a\": {\"mcpServers\": {\"local\": {\"command\": \"./run\"}}},\n    \"/work/b\": {\"mcpServers\": {}}\n  }\n}\n",
        &["deploy", "crm", "local"],
    ),
    (
        "vscode",
        "{\n\t\"inputs\": [{\"type\": \"promptString\", \"id\": \"key\", \"password\": true}],\n\t\"servers\": {\n\t\t\"playwright\": {\n\t\t\t\"command\": \"npx\",\n\t\t\t\"args\": [\n\t\t\t\t\"-y\",\n\t\t\t\t\"@playwright/mcp@latest\"\n\t\t\t],\n\t\t\t\"envFile\": \"${workspaceFolder}/.env\"\n\t\t},\n\t\t\"github\": {\n\t\t\t\"type\": \"http\",\n\t\t\t\"url\": \"https://api.githubcopilot.com/mcp/\",\n\t\t\t\"headers\": { \"Authorization\": \"Bearer ${input:key}\" }\n\t\t}\n\t}\n}\n",
        &["playwright", "github"],
    ),
    (
        "cursor",
        "{\n  \"mcpServers\": {\n    \"api\": { \"command\": \"python\", \"args\": [\"mcp-server.py\"], \"env\": { \"API_KEY\": \"${env:API_KEY}\" } },\n    \"remote\": { \"url\": \"http://localhost:3000/mcp\", \"headers\": { \"X-Key\": \"v\" } },\n    \"open\": { \"url\": \"https://open.example/mcp\" }\n  }\n}\n",
        &["api", "remote", "open"],
    ),
    (
        "codex",
        "model = \"gpt\"\n\n[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\"-y\", \"docs-server\"]\n\n[mcp_servers.docs.env]\nKEY = \"v\"\n\n[mcp_servers.bare]\ncommand = 'bare-server'\nstartup_timeout_sec = 20\n\n[mcp_servers.figma]\nurl = \"https://mcp.figma.com/mcp\"\nbearer_token_env_var = \"FIGMA_OAUTH_TOKEN\"\n\n[mcp_servers.head]\nurl = \"https://head.example/mcp\"\n\n[mcp_servers.head.http_headers]\n\"X-Region\" = \"us-east-1\"\n\n[profiles.fast]\nmodel = \"small\"\n",
        &["docs", "bare", "figma", "head"],
    ),
    (
        "gemini",
        "{\n  \"theme\": \"Default\",\n  \"mcpServers\": {\n    \"py\": {\n      \"command\": \"python\",\n      \"args\": [\"-m\", \"my_server\", \"--port\", \"8080\"],\n      \"cwd\": \"./mcp\",\n      \"timeout\": 15000\n    },\n    \"http\": { \"httpUrl\": \"https://api.example/mcp\", \"headers\": {\"Authorization\": \"Bearer t\"} }\n  }\n}\n",
        &["py", "http"],
    ),
    (
        "goose",
        "GOOSE_MODEL: big\nextensions:\n  developer:\n    bundled: true\n    enabled: true\n    name: developer\n    type: builtin\n  fetch:\n    name: fetch\n    cmd: uvx\n    args:\n    - mcp-server-fetch\n    - --quiet\n    enabled: true\n    envs:\n      KEY: v\n    type: stdio\n    timeout: 300\n  web:\n    type: streamable_http\n    uri: https://web.example/mcp\n    headers:\n      X-Key: abc\n    enabled: true\n",
        &["fetch", "web"],
    ),
    (
        "zed",
        "{\n  \"theme\": \"One Dark\",\n  \"context_servers\": {\n    \"some\": {\n      \"command\": \"some-command\",\n      \"args\": [\"arg-1\", \"arg-2\"],\n      \"env\": {}\n    },\n    \"older\": { \"command\": { \"path\": \"older-server\", \"args\": [\"--stdio\"], \"env\": { \"A\": \"b\" } }, \"settings\": {} },\n    \"remote\": { \"url\": \"https://zed.example/mcp\", \"headers\": { \"Authorization\": \"Bearer x\" } }\n  },\n}\n",
        &["some", "older", "remote"],
    ),
    (
        "windsurf",
        "{\n  \"mcpServers\": {\n    \"github\": { \"command\": \"docker\", \"args\": [\"run\", \"-i\", \"--rm\", \"ghcr.io/github/github-mcp-server\"] },\n    \"remote\": { \"serverUrl\": \"https://w.example/mcp\", \"headers\": { \"API_KEY\": \"v\" } }\n  }\n}\n",
        &["github", "remote"],
    ),
    (
        "kiro",
        "{\"mcpServers\":{\"one\":{\"command\":\"uvx\",\"args\":[\"one@latest\"],\"disabled\":false,\"autoApprove\":[]},\"two\":{\"url\":\"https://k.example/mcp\"}}}",
        &["one", "two"],
    ),
    (
        "librechat",
        "version: 1.2.1\nmcpServers:\n  everything:\n    command: npx\n    args:\n      - -y\n      - \"@modelcontextprotocol/server-everything\"\n    timeout: 60000 # a minute\n  remote:\n    type: streamable-http\n    url: https://l.example/mcp\n",
        &["everything", "remote"],
    ),
    (
        "cline",
        "{\n  \"mcpServers\": {\n    \"local\": { \"command\": \"node\", \"args\": [\"/path/to/server.js\"], \"alwaysAllow\": [\"tool1\"], \"disabled\": false },\n    \"remote\": { \"type\": \"streamableHttp\", \"url\": \"https://c.example/mcp\", \"headers\": { \"Authorization\": \"Bearer t\" }, \"disabled\": true }\n  }\n}\n",
        &["local", "remote"],
    ),
    (
        "continue",
        "name: My assistant\nversion: 0.0.1\nschema: v1\nmcpServers:\n  - name: SQLite\n    command: npx\n    args: [\"-y\", \"mcp-sqlite\", \"/path/db.sqlite\"]\n    env:\n      K: ${{ secrets.K }}\n  - name: Web\n    type: streamable-http\n    url: https://co.example/mcp\nmodels: []\n",
        &["SQLite", "Web"],
    ),
    (
        "opencode",
        "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n    \"local\": {\n      \"type\": \"local\",\n      \"command\": [\"npx\", \"-y\", \"my-mcp\"],\n      \"enabled\": true,\n      \"environment\": { \"MY\": \"v\" }\n    },\n    \"remote\": { \"type\": \"remote\", \"url\": \"https://o.example/mcp\", \"enabled\": true, \"headers\": { \"Authorization\": \"Bearer k\" } }\n  }\n}\n",
        &["local", "remote"],
    ),
    (
        "copilot-cli",
        "{\n  \"mcpServers\": {\n    \"local\": { \"type\": \"local\", \"command\": \"npx\", \"args\": [\"x\"], \"tools\": [\"*\"] },\n    \"remote\": { \"type\": \"http\", \"url\": \"https://cp.example/mcp\", \"tools\": [\"*\"] }\n  }\n}\n",
        &["local", "remote"],
    ),
];

/// Forms that people give their files.
const SPECIAL: &[(&str, &str, &str, &[&str])] = &[
    (
        "comments everywhere",
        "zed",
        "// settings\n{\n  /* a */ \"theme\": \"x\", // b\n  \"context_servers\": { // c\n    // d\n    \"s\": { // e\n      \"command\" /* f */ : /* g */ \"run\" /* h */, // i\n      \"args\": [ // j\n        // k\n        \"a\", // l\n        \"b\" // m\n      ], // n\n    }, // o\n  },\n}\n// p\n",
        &["s"],
    ),
    (
        "an empty list with a comment",
        "cursor",
        "{\"mcpServers\": {\"s\": {\"command\": \"run\", \"args\": [ /* none */ ]}}}",
        &["s"],
    ),
    (
        "escapes and other scripts",
        "cursor",
        "{\"mcpServers\": {\"g\\u00fcn\u{1f389}\": {\"command\": \"C:\\\\Program Files\\\\x.exe\", \"args\": [\"\\u0041\", \"ü\"]}}}",
        &["gün🎉"],
    ),
    (
        "a name with a hyphen",
        "cursor",
        "{\"mcpServers\": {\"-s\": {\"command\": \"run\"}, \"\": {\"command\": \"run\"}}}",
        &["-s", ""],
    ),
    (
        "a duplicate elsewhere",
        "cursor",
        "{\"a\": 1, \"a\": 2, \"mcpServers\": {\"s\": {\"command\": \"run\"}}}",
        &["s"],
    ),
    (
        "large numbers",
        "gemini",
        "{\"n\": 123456789012345678901234567890, \"e\": 1E400, \"mcpServers\": {\"s\": {\"command\": \"run\"}}}",
        &["s"],
    ),
    (
        "inline tables",
        "codex",
        "mcp_servers = { a = { command = \"run\", args = ['x'] }, b = { command = \"run\" } } # both\n",
        &["a", "b"],
    ),
    (
        "comments in a list of TOML",
        "codex",
        "[mcp_servers.a] # a\ncommand = \"run\" # b\nargs = [ # c\n    \"x\", # d\n    # e\n    \"y\", # f\n]# g\nlast = 1979-05-27T07:32:00Z\n",
        &["a"],
    ),
    (
        "a multi-line text of TOML",
        "codex",
        "[mcp_servers.\"a b\"]\ncommand = \"\"\"run\"\"\"\nargs = [\"\"\"\n x\"\"\"]\n",
        &["a b"],
    ),
    (
        "dotted keys",
        "codex",
        "[mcp_servers]\na.command = \"run\"\na.args = [\"x\"]\n",
        &["a"],
    ),
    (
        "comments in YAML",
        "goose",
        "# first\nextensions: # e\n  # f\n  s: # s\n    cmd: run # c\n    args: # a\n      # before\n      - x # x\n      # between\n      - y # y\n    # last\n    type: stdio\n# end\n",
        &["s"],
    ),
    (
        "quotes and comments in YAML",
        "goose",
        "extensions:\n  s:\n    cmd: 'r''un' # c\n    type: \"stdio\" # t\n  w:\n    uri: \"https://w\" # \"u\"\n    type: 'streamable_http' # t\n    headers: # h\n      \"X-Key\": \"\\\"v\" # v\n",
        &["s", "w"],
    ),
    (
        "lists and comments in YAML",
        "goose",
        "extensions: # e\n  s:\n    cmd: run\n    args: [a, b, # b\n      c] # c\n  t:\n    cmd: run\n    args: [] # none\n    envs: {} # none\n",
        &["s", "t"],
    ),
    (
        "flow style of YAML",
        "goose",
        "extensions: {s: {cmd: run, args: [x, 'y', \"z\"], type: stdio}, t: {cmd: 'run', type: stdio}}\n",
        &["s", "t"],
    ),
    (
        "quoted and folded texts",
        "librechat",
        "mcpServers:\n  s:\n    command: 'it''s'\n    args:\n      - >-\n        folded\n        text\n      - |\n        block\n  t:\n    command: \"run\"\n    args: []\n",
        &["s", "t"],
    ),
    (
        "anchors elsewhere",
        "librechat",
        "a: &a {x: 1}\nb: *a\nmcpServers:\n  s:\n    command: run\n    args:\n    - x\n",
        &["s"],
    ),
    (
        "a list of flow maps",
        "continue",
        "mcpServers:\n- {name: s, command: run}\n- {name: t, command: run, args: [x]}\n",
        &["s", "t"],
    ),
    (
        "other letters before it",
        "librechat",
        "título: ñandú 🎉\nmcpServers:\n  señal:\n    command: run\n    args: [\"á\"]\n",
        &["señal"],
    ),
];

/// Returns all of them, with every line end and mark that an editor writes.
pub(crate) fn all() -> Vec<Sample> {
    let plain = SHAPES
        .iter()
        .map(|(client, text, servers)| ("as documented", *client, *text, *servers));
    let mut samples = Vec::new();
    for (name, client, text, servers) in plain.chain(SPECIAL.iter().copied()) {
        let mut add = |form: &str, bytes: String| {
            samples.push(Sample {
                name: format!("{client}, {name}, {form}"),
                client,
                bytes: bytes.into_bytes(),
                servers,
            });
        };
        add("plain", text.to_owned());
        add("CRLF", text.replace('\n', "\r\n"));
        add("BOM", format!("\u{feff}{text}"));
        add("no last line end", text.trim_end().to_owned());
        if !text.contains('\t') && matches!(text.trim_start().as_bytes().first(), Some(b'{')) {
            add("tabs", text.replace("  ", "\t"));
        }
    }
    samples
}
