# `just` alone lists these. `just check` is what CI checks.

_list:
    @just --list --unsorted

# everything that must hold before a change lands
check: locks fmt-check clippy docs deny test

# the whole of CI, which also installs what it needs
ci:
    .ci/run

# format everything
fmt:
    cargo fmt --all

fmt-check:
    cargo fmt --all --check

# both lock files are up to date: the workspace's and the fuzz targets'
locks:
    cargo metadata --locked --format-version 1 >/dev/null
    cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null

# every lint, warnings as errors
clippy:
    cargo clippy --workspace --all-targets --locked --features full -- -D warnings

# the documentation, warnings as errors
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --features full

# licences, bans and sources of dependencies
deny:
    cargo deny --locked check bans licenses sources

# security advisories of dependencies; needs the network, so CI leaves it out
advisories:
    cargo deny --locked check advisories

# every test; those with real peers say so loudly where node or python is absent
test *args:
    cargo test --workspace --locked --features full {{args}}

# the tests of one crate: `just one core link`
one crate *args:
    cargo test -p mcp-elicit-{{crate}} --locked {{args}}

# a server asks, you answer
demo *args:
    cargo run -- demo {{args}}

# what a gateway costs, ours beside others; the others are installed first
speed *args:
    crates/speed/peers.sh
    cargo run --release --locked -p mcp-elicit-speed -- {{args}}

# published servers, clients and agents, with the gateway and without it; `--write` updates docs/real-programs.md
real-programs *args:
    cargo build --locked -p mcp-elicit --features full
    python3 tests/real-programs/run.py {{args}}

# `check` before published servers and small servers of each SDK; `--write` updates docs/check.md
check-servers *args:
    cargo build --locked -p mcp-elicit --features full
    python3 tests/real-programs/check_servers.py {{args}}

# lists and searches of a record with 100,000 open questions
record-speed *args:
    cargo run --release --locked -p mcp-elicit-record --features postgres --example lists -- {{args}}

# replicas of one PostgreSQL record killed while people answer; MCP_ELICIT_SEED repeats the choices of an earlier run
replica-kills kills="500" calls="200":
    MCP_ELICIT_REPLICA_KILLS={{kills}} MCP_ELICIT_CALLS_OPEN={{calls}} cargo test --locked -p mcp-elicit --features full --test inbox replicas_killed -- --nocapture

# the time from an answer at one gateway to the result of the call at another; `--release` for the optimised program
replica-latency answers="1000" *args:
    MCP_ELICIT_LATENCIES={{answers}} cargo test --locked -p mcp-elicit --features full {{args}} --test inbox replicas::latency -- --nocapture

# the instructions of a call and of a question in a gateway's process, of one or several built programs
instructions *programs:
    crates/speed/instructions.py {{programs}}

# agents' frameworks, without a model, through the gateway; `--write` updates docs/agents.md
frameworks *args:
    cargo build --locked -p mcp-elicit --features full
    python3 tests/real-programs/frameworks.py {{args}}
