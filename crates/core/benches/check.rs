//! The cost of a verdict: our check, the `jsonschema` crate, and the floor under both, in one run.
//!
//! `cargo bench -p mcp-elicit-core --bench check` prints Markdown tables. Ratios hold from machine to machine, times do not.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use mcp_elicit_core::form::Form;
use serde_json::Value;

struct Case {
    name: &'static str,
    schema: &'static str,
    valid: &'static str,
    invalid: &'static str,
}

const CASES: [Case; 3] = [
    Case {
        name: "1 field",
        schema: include_str!("forms/1-field.json"),
        valid: r#"{"username":"octocat"}"#,
        invalid: r#"{"username":5}"#,
    },
    Case {
        name: "3 fields, email",
        schema: include_str!("forms/3-fields.json"),
        valid: r#"{"name":"Monalisa Octocat","email":"octocat@github.com","age":30}"#,
        invalid: r#"{"name":"Monalisa Octocat","email":"not-an-email","age":12}"#,
    },
    Case {
        name: "12 fields, mixed",
        schema: include_str!("forms/12-fields.json"),
        valid: r##"{"title":"Fix the login page","priority":"high","color":"#00FF00","area":"web","labels":["bug","docs"],"teams":["t2"],"score":88.5,"count":3,"agree":true,"email":"ada@example.com","site":"https://example.com/issues/1","due":"2026-11-21T09:00:00Z"}"##,
        invalid: r##"{"title":"","priority":"urgent","color":"#123456","area":"web","labels":["bug","docs"],"teams":["t9"],"score":188.5,"count":3,"agree":true,"email":"ada","site":"https://example.com/issues/1","due":"yesterday"}"##,
    },
];

fn main() {
    println!(
        "Cold: from the texts of schema and content to the verdict (nanoseconds; every violation if invalid).\n"
    );
    println!(
        "| form | content | floor: serde_json parses both | mcp-elicit | jsonschema builds, validates | ours / floor | jsonschema / ours |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for case in &CASES {
        for (kind, content) in [("valid", case.valid), ("invalid", case.invalid)] {
            let [floor, ours, theirs] = compare([
                &mut || {
                    black_box(parse(black_box(case.schema)));
                    black_box(parse(black_box(content)));
                },
                &mut || {
                    let form = Form::parse(black_box(case.schema)).expect("a legal form");
                    black_box(form.check_text(black_box(content)).is_ok());
                },
                &mut || {
                    let schema = parse(black_box(case.schema));
                    let content = parse(black_box(content));
                    let validator = build(&schema);
                    black_box(validator.iter_errors(&content).count());
                },
            ]);
            println!(
                "| {} | {kind} | {floor:.0} | {ours:.0} | {theirs:.0} | {:.2} | {:.1} |",
                case.name,
                ours / floor,
                theirs / ours
            );
        }
    }

    println!("\nChecking only: form and content are already parsed (nanoseconds).\n");
    println!(
        "| form | content | mcp-elicit, every violation | jsonschema is_valid | jsonschema, every error | is_valid / ours | every error / ours |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for case in &CASES {
        let form = Form::parse(case.schema).expect("a legal form");
        let validator = build(&parse(case.schema));
        for (kind, content) in [("valid", case.valid), ("invalid", case.invalid)] {
            let content = parse(content);
            assert_eq!(
                form.violations(&content).is_empty(),
                validator.is_valid(&content),
                "verdicts differ"
            );
            let [ours, valid, errors] = compare([
                &mut || {
                    black_box(form.violations(black_box(&content)));
                },
                &mut || {
                    black_box(validator.is_valid(black_box(&content)));
                },
                &mut || {
                    black_box(validator.iter_errors(black_box(&content)).count());
                },
            ]);
            println!(
                "| {} | {kind} | {ours:.0} | {valid:.0} | {errors:.0} | {:.2} | {:.2} |",
                case.name,
                valid / ours,
                errors / ours
            );
        }
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn build(schema: &Value) -> jsonschema::Validator {
    jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .expect("a legal schema")
}

/// The median nanoseconds of each over batches taken in turn, so that a machine that slows down slows all of them.
fn compare<const N: usize>(mut works: [&mut dyn FnMut(); N]) -> [f64; N] {
    const BATCHES: usize = 15;
    let rounds: Vec<u32> = works
        .iter_mut()
        .map(|work| rounds_in(work, Duration::from_millis(12)))
        .collect();
    let mut samples: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(BATCHES));
    for _ in 0..BATCHES {
        for ((work, rounds), samples) in works.iter_mut().zip(&rounds).zip(&mut samples) {
            samples.push(batch(work, *rounds).as_secs_f64() * 1e9 / f64::from(*rounds));
        }
    }
    samples.map(|mut samples| {
        samples.sort_by(f64::total_cmp);
        samples[BATCHES / 2]
    })
}

fn rounds_in(work: &mut dyn FnMut(), target: Duration) -> u32 {
    let mut rounds = 16;
    while batch(work, rounds) < target {
        rounds *= 2;
    }
    rounds
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn batch(work: &mut dyn FnMut(), rounds: u32) -> Duration {
    let start = Instant::now();
    for _ in 0..rounds {
        work();
    }
    start.elapsed()
}
