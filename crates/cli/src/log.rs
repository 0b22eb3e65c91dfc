//! The log of a gateway on stderr, as text or as JSON lines.

use std::fmt;
use std::io::{self, IsTerminal as _};

use mcp_elicit_gateway::SERVER_STDERR;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{DefaultFields, Format, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

use crate::args::gateway::LogFormat;
use crate::failure::Failure;
use crate::output::{self, harmless, harmless_json};
use crate::stderr;

/// The levels by default: one line for each step of a question, and warnings of the libraries.
const USUAL: &str = "warn,mcp_elicit=info";
/// The levels of a check, which reports the errors of connections in its own words.
const OF_CHECK: &str = "warn,mcp_elicit=info,rmcp=off";

/// Starts the log, filtered by `MCP_ELICIT_LOG`. The stderr of servers is always shown, unless its target is named.
pub(crate) fn start(form: LogFormat, check: bool) -> Result<(), Failure> {
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
    let colours = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let layer = tracing_subscriber::fmt::layer();
    let layer = match form {
        LogFormat::Text => {
            let lines = TextLines {
                usual: Format::default(),
                for_person: io::stderr().is_terminal(),
            };
            let layer = layer.with_writer(|| stderr::LogWriter).with_ansi(colours);
            layer.fmt_fields(HarmlessFields).event_format(lines).boxed()
        }
        LogFormat::Json => {
            output::write_lines_as_json();
            let layer = layer.with_writer(|| JsonLogLines(stderr::LogWriter));
            layer.with_ansi(false).json().boxed()
        }
    };
    stderr::start(output::missing_lines)
        .map_err(|error| Failure::usage("cannot start the thread of the log").because(error))?;
    show_panics_there();
    mcp_elicit_gateway::before_exit(stderr::flush);
    // Only one log can be started; an earlier command in this process may have started it.
    drop(
        tracing_subscriber::registry()
            .with(layer.with_filter(targets))
            .try_init(),
    );
    Ok(())
}

/// Shows the warnings of a record to the person who runs a command.
pub(crate) fn show_warnings_of_record() {
    let colours = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let lines = TextLines {
        usual: Format::default(),
        for_person: true,
    };
    let layer = tracing_subscriber::fmt::layer();
    let layer = layer.with_writer(io::stderr).with_ansi(colours);
    let layer = layer.fmt_fields(HarmlessFields).event_format(lines);
    let targets = Targets::new().with_target("mcp_elicit_record", LevelFilter::WARN);
    // One that was started earlier shows them too.
    drop(
        tracing_subscriber::registry()
            .with(layer.with_filter(targets))
            .try_init(),
    );
}

/// The fields of an event as text, in which nothing that acts on a screen or begins another line is left.
struct HarmlessFields;

impl<'w> FormatFields<'w> for HarmlessFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut text = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut text), fields)?;
        writer.write_str(&harmless(&text))
    }
}

/// Lines of JSON, in whose texts nothing that acts on a screen is left as it is. Each is written at once.
struct JsonLogLines<W>(W);

impl<W: io::Write> io::Write for JsonLogLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let line = harmless_json(text.trim_end_matches('\n'));
        self.0.write_all(format!("{line}\n").as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Sends the message of a panic the way of the log, so that it does not wait for a stderr that nobody reads.
fn show_panics_there() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name").to_owned();
        let trace = std::backtrace::Backtrace::capture();
        let trace = match trace.status() {
            std::backtrace::BacktraceStatus::Captured => format!("\n{trace}"),
            _ => String::new(),
        };
        output::say(output::harmless_lines(&format!(
            "thread '{name}' {panic}{trace}"
        )));
        stderr::flush();
    }));
}

/// The format of text. A line of a server's stderr is the server's name and the line. At a terminal, the reader is the
/// person who started the gateway: warnings look like those of any command, without time and module.
struct TextLines<F> {
    usual: F,
    for_person: bool,
}

impl<S, N, F> FormatEvent<S, N> for TextLines<F>
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
            let (server, message) = (harmless(&line.server), harmless(&line.message));
            return writeln!(writer, "{server}: {message}");
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
        *text = format!("{value:?}");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Bytes that a test looks at.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const HOSTILE: &str = "a\u{9b}31m\u{202e}b\u{2028}c\u{2029}d\u{1b}[2J\nERROR forged\u{200b}";

    fn logged(
        layer: impl tracing_subscriber::Layer<tracing_subscriber::Registry> + Send + Sync,
        written: &Written,
    ) -> String {
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::warn!(tool = %HOSTILE, quoted = HOSTILE, debug = ?HOSTILE, "called {HOSTILE}");
            tracing::info!(target: SERVER_STDERR, server = %HOSTILE, "{HOSTILE}");
        });
        String::from_utf8(written.0.lock().expect("no panic").clone()).expect("text")
    }

    #[test]
    fn a_strangers_text_in_a_log_acts_on_nothing_and_begins_no_line() {
        for for_person in [false, true] {
            let written = Written::default();
            let lines = TextLines {
                usual: Format::default(),
                for_person,
            };
            let layer = tracing_subscriber::fmt::layer().with_ansi(false);
            let writer = written.clone();
            let layer = layer.with_writer(move || writer.clone());
            let layer = layer.fmt_fields(HarmlessFields).event_format(lines);
            let text = logged(layer, &written);
            assert_eq!(text.lines().count(), 2, "{text}");
            let acts = |c| c != '\n' && mcp_elicit_core::view::sanitize::acts_on_a_screen(c);
            assert!(!text.contains(acts), "{text:?}");
        }
    }

    #[test]
    fn a_log_of_json_means_the_same_and_acts_on_nothing() {
        let written = Written::default();
        let writer = written.clone();
        let layer = tracing_subscriber::fmt::layer().with_ansi(false);
        let layer = layer
            .with_writer(move || JsonLogLines(writer.clone()))
            .json();
        let text = logged(layer, &written);
        let acts = |c| c != '\n' && mcp_elicit_core::view::sanitize::acts_on_a_screen(c);
        assert!(!text.contains(acts), "{text:?}");
        let mut lines = text.lines();
        let first: serde_json::Value =
            serde_json::from_str(lines.next().expect("a line")).expect("JSON");
        assert_eq!(first["fields"]["tool"], HOSTILE);
        assert_eq!(lines.count(), 1);
    }
}
