//! "Two gateways, step by step" of docs/operate.md, run as it is written: on free ports, and with waits where its reader looks.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use mcp_elicit_testkit::peers::free_port;
use mcp_elicit_testkit::postgres::PostgresServer;

use crate::running::haproxy;
use crate::{search_path, text};

/// Returns the blocks of code of this language in a part of the guide.
fn blocks<'a>(part: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    let rests = part.split(&begin).skip(1);
    rests
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

/// Returns the part of the guide below this heading.
fn part<'a>(guide: &'a str, heading: &str) -> &'a str {
    let (_, rest) = guide.split_once(&format!("\n## {heading}\n")).unwrap();
    rest.split("\n## ").next().unwrap()
}

/// Waits for this number of questions.
fn until_asked(count: usize) -> String {
    format!(
        "until [ \"$(mcp-elicit inbox list --state state-b | wc -l)\" = {count} ]; do sleep 0.2; done"
    )
}

/// Runs these lines of the guide in a folder, and ends all that they have started. Fails if one of them does.
fn run(folder: &std::path::Path, script: &str) {
    let file = folder.join("script");
    let ended =
        "trap 'kill -9 $(jobs -p) $(cat a.pid b.pid balancer.pid) 2>/dev/null || true' EXIT";
    fs::write(&file, format!("set -eu\n{ended}\n{script}\n")).unwrap();
    let (out, said) = (folder.join("out"), folder.join("said"));
    let done = Command::new("bash")
        .arg("-x")
        .arg(&file)
        .current_dir(folder)
        .env("PATH", search_path())
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&said).unwrap())
        // Its background jobs are its own, as in a terminal.
        .process_group(0)
        .status()
        .unwrap();
    let read = |file| String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
    assert!(done.success(), "{}\n{}", read(&out), read(&said));
}

#[test]
fn the_steps_of_the_guide_work_as_they_are_written() {
    let Some(program) = haproxy() else {
        return;
    };
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let guide = text("docs/operate.md");
    let steps = part(&guide, "Two gateways, step by step");
    let balancer = blocks(
        part(&guide, "A balancer before several gateways"),
        "haproxy",
    )[0];

    // The database of the test asks for no password, and one that is told to a server that does not ask is an error.
    server.sql("postgres", "CREATE ROLE elicit LOGIN").unwrap();
    let made = "CREATE DATABASE elicit OWNER elicit TEMPLATE template0 ENCODING 'UTF8'";
    server.sql("postgres", made).unwrap();
    let [public, a, b, inbox_a, inbox_b] = [(); 5].map(|()| free_port().to_string());
    let ports = [
        ("8080", &public),
        ("8081", &a),
        ("8082", &b),
        ("7871", &inbox_a),
        ("7872", &inbox_b),
    ];
    let moved = |text: &str| {
        let named = |text: String, (old, new): (&str, &String)| {
            text.replace(&format!(":{old}"), &format!(":{new}"))
        };
        ports.into_iter().fold(text.to_owned(), named)
    };
    let file = blocks(steps, "toml")[0];
    let of_b = file
        .replace("8081", "8082")
        .replace("7871", "7872")
        .replace("state-a", "state-b");
    for (name, file) in [("a.toml", file), ("b.toml", &of_b)] {
        let lines = file
            .lines()
            .filter(|line| !line.starts_with("record-password"));
        let file = lines.collect::<Vec<_>>().join("\n");
        let file = file.replace(":5432", &format!(":{}", server.port()));
        fs::write(folder.path().join(name), moved(&file)).unwrap();
    }
    let balancer = balancer
        .replace(":443 ssl crt /etc/haproxy/mcp.pem", "127.0.0.1:8080")
        .replace("mcp.example.com", "127.0.0.1:8080")
        .replace("10.0.0.1:8000", "127.0.0.1:8081")
        .replace("10.0.0.2:8000", "127.0.0.1:8082");
    fs::write(folder.path().join("balancer.cfg"), moved(&balancer)).unwrap();

    let commands = blocks(steps, "console").concat();
    let lines = commands
        .lines()
        .map(|line| line.strip_prefix("$ ").unwrap_or(line));
    let mut script = String::new();
    for line in lines {
        // The steps of the database are above.
        if line.starts_with("sudo ") || line.contains("cat > db-password") {
            continue;
        }
        let next = match line.split_once("# the question, as soon") {
            Some(_) => {
                until_asked(1) + "\nID=$(mcp-elicit inbox list --state state-b | cut -d' ' -f1)"
            }
            None if line.contains("# eight questions") => until_asked(8),
            None => line
                .replace("accept ID", "accept $ID")
                .replace("/usr/sbin/haproxy", program),
        };
        script += &next;
        script.push('\n');
        // The prompt of the reader's next command comes when the first call has its result.
        if line.contains("accept ID") {
            script += "wait %?n=0\n";
        }
    }
    assert!(script.matches("mcp-elicit ").count() > 12, "{script}");
    script += "tail --pid=\"$(cat a.pid)\" -f /dev/null\n! kill -0 \"$(cat a.pid)\"\n";
    run(folder.path(), &moved(&script));
    let said = fs::read_to_string(folder.path().join("out")).unwrap();
    let accepted = said
        .lines()
        .filter(|line| line.contains("  accepted  "))
        .count();
    assert_eq!(accepted, 9, "each question once: {said}");
}
