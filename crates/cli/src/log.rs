//! The log of a gateway on stderr, as text or as JSON lines.

use std::fmt::{self, Write as _};
use std::io::IsTerminal as _;

use mcp_elicit_gateway::SERVER_STDERR;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{Format, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

use crate::args::gateway::Log;
use crate::failure::Failure;
use crate::output;

/// The levels by default: one line for each step of a question, and warnings of the libraries.
const USUAL: &str = "warn,mcp_elicit=info";
/// The levels of a check, which reports the errors of connections in its own words.
const OF_CHECK: &str = "warn,mcp_elicit=info,rmcp=off";

/// Starts the log, filtered by `MCP_ELICIT_LOG`. The stderr of servers is always shown, unless its target is named.
pub(crate) fn start(form: Log, check: bool) -> Result<(), Failure> {
    let usual = if check { OF_CHECK } else { USUAL };
    let wanted = std::env::var("MCP_ELICIT_LOG").unwrap_or_else(|_| usual.to_owned());
    let targets: Targets = wanted.parse().map_err(|error| {
        Failure::usage(format!("MCP_ELICIT_LOG={wanted} is not a level of the log"))
            .because(error)
            .hint("set it to error, warn, info, debug or trace, or to a list such as `warn,mcp_elicit_gateway=debug`.")
    })?;
    let targets = if wanted.contains(SERVER_STDERR) {
        targets
    } else {
        targets.with_target(SERVER_STDERR, LevelFilter::INFO)
    };
    let colours = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(colours);
    let layer = match form {
        Log::Text => {
            let lines = Lines {
                usual: Format::default(),
                for_person: std::io::stderr().is_terminal(),
            };
            layer.event_format(lines).boxed()
        }
        Log::Json => {
            output::write_lines_as_json();
            layer.with_ansi(false).json().boxed()
        }
    };
    // Only one log can be started; an earlier command in this process may have started it.
    drop(
        tracing_subscriber::registry()
            .with(layer.with_filter(targets))
            .try_init(),
    );
    Ok(())
}

/// The format of text. A line of a server's stderr is the server's name and the line. At a terminal, the reader is the
/// person who started the gateway: warnings look like those of any command, without time and module.
struct Lines<F> {
    usual: F,
    for_person: bool,
}

impl<S, N, F> FormatEvent<S, N> for Lines<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let known = event.metadata();
        if known.target() == SERVER_STDERR {
            let mut line = ServerLine::default();
            event.record(&mut line);
            return writeln!(writer, "{}: {}", line.server, line.message);
        }
        // Details are for developers, who see their module.
        let (label, style) = match *known.level() {
            Level::ERROR => ("error:", output::ERROR),
            Level::WARN => ("warning:", output::WARNING),
            Level::INFO => ("note:", output::HINT),
            _ => return self.usual.format_event(context, writer, event),
        };
        if !self.for_person {
            return self.usual.format_event(context, writer, event);
        }
        if writer.has_ansi_escapes() {
            write!(writer, "{} ", output::styled(style, label))?;
        } else {
            write!(writer, "{label} ")?;
        }
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// A line of a server's stderr.
#[derive(Default)]
struct ServerLine {
    server: String,
    message: String,
}

impl Visit for ServerLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = match field.name() {
            "server" => &mut self.server,
            "message" => &mut self.message,
            _ => return,
        };
        // Writing to a string cannot fail.
        let _written = write!(text, "{value:?}");
    }
}
