//! A program and its arguments as one option.

use mcp_elicit_gateway::config::Program;

use crate::failure::Failure;

/// Returns the program and arguments of `--answer-command`, quoted as in a shell.
pub(crate) fn of_answer_command(line: &str) -> Result<Program, Failure> {
    program_of("--answer-command", line)
}

/// Returns the program and arguments of `--record-password-command`, quoted as in a shell.
pub(crate) fn of_password_command(line: &str) -> Result<Program, Failure> {
    program_of("--record-password-command", line)
}

fn program_of(option: &str, line: &str) -> Result<Program, Failure> {
    let words = shell_words::split(line).unwrap_or_default();
    Program::from_words(words).ok_or_else(|| {
        Failure::usage(format!("`{option}` names no program")).hint("a quote may be open in it.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_as_in_a_shell() {
        let program = of_answer_command("'/opt/my hooks/ask' --for \"the team\"").unwrap();
        assert_eq!(program.program, "/opt/my hooks/ask");
        assert_eq!(program.arguments, ["--for", "the team"]);
        assert!(of_answer_command("").is_err() && of_answer_command("'open").is_err());
    }
}
