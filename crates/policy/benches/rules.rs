//! The time of one decision among 1,000 rules: `cargo bench -p mcp-elicit-policy --features cel`.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::unwrap_used, reason = "a bench may stop where it stands")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use mcp_elicit_core::wire::CallKind;
use mcp_elicit_policy::{Annotations, Caller, Facts, KnownCall, Now, QuestionFacts, Rules};

const RULES: usize = 1_000;
const TIMES: u32 = 2_000;

/// Returns a thousand rules, each made by `rule` from its number.
fn file(rule: impl Fn(usize) -> String) -> Rules {
    let mut text = "[people.ada]\nmail = \"ada@example.com\"\n".to_owned();
    for number in 0..RULES {
        let _written = writeln!(
            text,
            "[[rules]]\n{}ask = {{ person = \"ada\" }}",
            rule(number)
        );
    }
    Rules::parse(&text).unwrap()
}

fn main() {
    let cases = [
        (
            "another server each",
            file(|number| format!("server = \"s{number}\"\n")),
        ),
        (
            "another tool each",
            file(|number| format!("tool = \"t{number}_*\"\n")),
        ),
        (
            "one tool, a compared argument each",
            file(|number| {
                format!("tool = \"deploy\"\nwhen = 'arguments.environment == \"e{number}\"'\n")
            }),
        ),
        (
            "100 of them left for CEL",
            file(|number| match number % 10 {
                0 => format!("when = 'arguments.environment.startsWith(\"e{number}\")'\n"),
                _ => format!(
                    "when = 'arguments.environment == \"e{number}\" && arguments.size > 3'\n"
                ),
            }),
        ),
    ];
    let (caller, now) = (Caller::default(), Now::default());
    let groups = ["ops".to_owned()];
    let call = KnownCall {
        kind: CallKind::Tool,
        target: "deploy",
        arguments: Some(r#"{"environment":"production","size":5,"note":"a rather usual call"}"#),
        annotations: Annotations::default(),
    };
    let facts = Facts {
        caller: &caller,
        groups: &groups,
        server: "deploy",
        call: Some(call),
        now: &now,
    };
    let question = QuestionFacts {
        mode: "form".to_owned(),
        ..QuestionFacts::default()
    };
    println!("{RULES} rules, none of which matches; one decision takes:");
    for (name, rules) in cases {
        black_box(rules.plan(&facts, &question));
        let start = Instant::now();
        for _ in 0..TIMES {
            black_box(rules.plan(black_box(&facts), &question));
        }
        println!(
            "  {name:<36} {:>7.2} µs",
            start.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES)
        );
    }
}
