//! A program that prints the password of the record's database.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::config::{Program, SecretText};

/// The time in which the program must end.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes that it may print.
const LONGEST: u64 = 64 * 1024;

/// Runs the program, and returns the one line that it prints.
///
/// # Errors
/// If it cannot be run, fails, takes too long or prints no password: a reason that names the program and its exit code, never
/// its output, and the next step.
pub(super) fn password(program: &Program) -> Result<String, (String, String)> {
    run(program, TIMEOUT)
}

fn run(program: &Program, timeout: Duration) -> Result<String, (String, String)> {
    let name = program.program.display();
    let refused = |why: String| {
        let next = format!(
            "run `{name}` with its arguments by hand: it has to print the password of the database, and nothing else, on one line within {} seconds.",
            timeout.as_secs()
        );
        (
            format!("{name}, which gives the password of the record's database, {why}"),
            next,
        )
    };
    let started = Command::new(&program.program)
        .args(&program.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = started.map_err(|error| refused(format!("cannot be run: {error}")))?;
    let printed = printed_by(&mut child);
    // What it prints ends with the program, or with a descendant that has its output.
    let Ok(output) = printed.recv_timeout(timeout) else {
        end(&mut child);
        return Err(refused(format!(
            "did not end within {} seconds",
            timeout.as_secs()
        )));
    };
    if output.len() as u64 > LONGEST {
        end(&mut child);
        return Err(refused("printed too much".to_owned()));
    }
    let status = child
        .wait()
        .map_err(|error| refused(format!("cannot be waited for: {error}")))?;
    if !status.success() {
        return Err(refused(match status.code() {
            Some(code) => format!("ended with exit code {code}"),
            None => "was ended by a signal".to_owned(),
        }));
    }
    let text = String::from_utf8(output).ok();
    let secret = text.and_then(|text| SecretText::from_line(&text));
    secret
        .map(|secret| secret.reveal().to_owned())
        .ok_or_else(|| refused("printed nothing, or more than one line".to_owned()))
}

/// Reads the output on a thread of its own.
fn printed_by(child: &mut Child) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _cut_off = stdout.take(LONGEST + 1).read_to_end(&mut bytes);
            let _nobody_waits = sender.send(bytes);
        });
    }
    receiver
}

fn end(child: &mut Child) {
    let _ended_already = child.kill();
    let _ended_already = child.wait();
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn sh(script: &str) -> Result<String, (String, String)> {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        let program = Program::from_words(words).expect("a program");
        run(&program, Duration::from_secs(2))
    }

    #[test]
    fn the_one_line_of_the_program_is_the_password_and_an_error_never_has_it() {
        assert_eq!(sh("echo s3cret").as_deref(), Ok("s3cret"));
        assert_eq!(sh("printf s3cret").as_deref(), Ok("s3cret"));
        for (script, why) in [
            ("echo s3cret; exit 7", "exit code 7"),
            ("echo s3cret >&2; echo s3cret; kill -9 $$", "signal"),
            ("true", "printed nothing"),
            ("echo s3cret; echo more", "more than one line"),
            ("yes s3cret", "printed too much"),
            ("echo s3cret; exec sleep 60", "did not end within 2 seconds"),
        ] {
            let (found, next) = sh(script).unwrap_err();
            assert!(found.starts_with("sh, ") && found.contains(why), "{found}");
            assert!(!found.contains("s3cret") && !next.contains("s3cret"));
        }
        let missing = Program::from_words(vec!["/nowhere/to/be".to_owned()]).unwrap();
        let (why, _) = run(&missing, TIMEOUT).unwrap_err();
        assert!(why.contains("cannot be run"), "{why}");
    }
}
