//! The command of `--effect`, which shows what the calls have done.

use std::time::Duration;

use mcp_elicit_gateway::config::Program;
use mcp_elicit_gateway::{RawLine, RawServer};

use crate::failure::Failure;

/// The longest time of the command.
const WITHIN: Duration = Duration::from_secs(30);
/// The longest line of its output, in bytes.
const LONGEST_LINE: usize = 1 << 20;
/// The most lines of its output.
const MOST_LINES: usize = 100_000;

/// Runs the command in a shell, and returns its output.
pub(super) fn output(command: &str) -> Result<String, Failure> {
    let shell = if cfg!(windows) {
        ["cmd", "/C", command]
    } else {
        ["sh", "-c", command]
    };
    let failed = |why: String| Failure::usage(format!("the command of --effect {why}"));
    let program = Program::from_words(shell).ok_or_else(|| failed("is empty".to_owned()))?;
    let mut running = RawServer::start(&program, "--effect", LONGEST_LINE)
        .map_err(|error| failed("cannot be started".to_owned()).because(error))?;
    running.leave();
    let mut lines = Vec::new();
    loop {
        match running.next(WITHIN) {
            RawLine::Line(line) => lines.push(String::from_utf8_lossy(&line).into_owned()),
            RawLine::Silence => {
                return Err(failed(format!(
                    "has not ended within {} s",
                    WITHIN.as_secs()
                )));
            }
            RawLine::Ended(_) => return Ok(lines.join("\n")),
        }
        if lines.len() > MOST_LINES {
            return Err(failed(format!("prints more than {MOST_LINES} lines")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::output;

    #[cfg(unix)]
    #[test]
    fn the_output_of_a_command_is_read_to_its_end() {
        assert_eq!(output("printf 'a\\nb\\n'").unwrap(), "a\nb");
        assert_eq!(output("cat /nothing/there 2>/dev/null").unwrap(), "");
    }
}
