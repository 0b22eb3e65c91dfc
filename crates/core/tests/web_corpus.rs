//! A corpus of this crate's verdicts on forms, contents and drafts, for the check in TypeScript (`web/packages/form`),
//! which must give the same verdicts.
//!
//! The files in `web/corpus` are compared with the crate's present verdicts. After an intended change, write them again
//! with `UPDATE_CORPUS=1 cargo test -p mcp-elicit-core --test web_corpus`, and change the TypeScript so that `npm test`
//! in `web` passes.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use mcp_elicit_core::answer::{CheckError, Draft, DraftValue, Violations};
use mcp_elicit_core::form::{
    ChoiceOptions, Field, Form, Format, Kind, Number as NumberRules, Pattern,
};
use mcp_elicit_testkit::peers::forms_record;
use serde_json::{Map, Number, Value, json};

mod web_corpus {
    pub(crate) mod drafts;
    pub(crate) mod lenient;
    pub(crate) mod random;
    pub(crate) mod rules;
}

/// Returns the crate's verdict on a content, in the corpus's format.
fn content_verdict(schema: &str, content: &str) -> Value {
    let form = match form(schema) {
        Ok(form) => form,
        Err(defects) => return defects,
    };
    match form.check_text(content) {
        Ok(answers) => {
            let mut verdict =
                json!({"verdict": "answers", "answers": answers.to_value().to_string()});
            if !answers.ignored().is_empty() {
                verdict["ignored"] = json!(answers.ignored());
            }
            verdict
        }
        Err(CheckError::Violations(violations)) => violated(&violations),
        Err(CheckError::Broken(_)) => json!({"verdict": "broken"}),
        Err(other @ CheckError::TooLarge { .. }) => panic!("{other}"),
    }
}

fn draft_verdict(form: &Form, draft: &Value) -> Value {
    let mut entered = Draft::new();
    for (field, value) in draft.as_object().expect("a draft is an object") {
        entered.set(field, DraftValue::from_value(Some(value)));
    }
    match form.read(&entered) {
        Ok(answers) => json!({"verdict": "answers", "answers": answers.to_value().to_string()}),
        Err(violations) => violated(&violations),
    }
}

fn form(schema: &str) -> Result<Form, Value> {
    Form::parse(schema).map_err(|defects| {
        let list: Vec<_> = defects
            .iter()
            .map(|defect| json!([defect.pointer, defect.code.as_str(), defect.message]))
            .collect();
        json!({"verdict": "defects", "defects": list})
    })
}

fn violated(violations: &Violations) -> Value {
    let list: Vec<_> = violations
        .iter()
        .map(|violation| {
            json!([
                violation.field(),
                violation.rule().code(),
                violation.message()
            ])
        })
        .collect();
    json!({"verdict": "violations", "violations": list})
}

/// Returns a text as a browser reads it: numbers are binary64, the last of several equal keys is used, and array
/// indices come first.
fn as_in_a_browser(text: &str) -> Option<String> {
    serde_json::from_str(text)
        .ok()
        .map(|value| browser_value(value).to_string())
}

fn browser_value(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(browser_number(&number)),
        Value::Array(items) => items.into_iter().map(browser_value).collect(),
        Value::Object(entries) => {
            let index = |key: &str| {
                let number = key.parse::<u32>().ok()?;
                (number < u32::MAX && number.to_string() == key).then_some(number)
            };
            let mut entries: Vec<_> = entries
                .into_iter()
                .map(|(key, value)| (key, browser_value(value)))
                .collect();
            entries.sort_by_key(|(key, _)| index(key).map_or((1, 0), |index| (0, index)));
            Value::Object(entries.into_iter().collect::<Map<_, _>>())
        }
        other => other,
    }
}

fn browser_number(number: &Number) -> Number {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().expect("a JSON number");
    #[expect(clippy::cast_possible_truncation, reason = "whole and at most 2^53")]
    if float.fract() == 0.0 && float.abs() <= EXACT {
        Number::from(float as i64)
    } else {
        Number::from_f64(float).expect("finite")
    }
}

/// Returns the verdicts on one content, with a browser's verdict only if it differs.
fn judge(schema: &str, content: &str) -> Map<String, Value> {
    let mut case = Map::new();
    let core = content_verdict(schema, content);
    case.insert("content".to_owned(), content.into());
    if let (Some(schema), Some(content)) = (as_in_a_browser(schema), as_in_a_browser(content)) {
        let web = content_verdict(&schema, &content);
        if !same(&web, &core) {
            case.insert("web".to_owned(), web);
        }
    }
    case.insert("core".to_owned(), core);
    case
}

/// Returns `true` if two verdicts are equal in a browser, where 1.0 is 1.
fn same(a: &Value, b: &Value) -> bool {
    let plain = |verdict: &Value| {
        let mut verdict = verdict.clone();
        if let Some(answers) = verdict["answers"].as_str().and_then(as_in_a_browser) {
            verdict["answers"] = answers.into();
        }
        verdict
    };
    plain(a) == plain(b)
}

/// Formats one line: a schema, and each content with its verdict. An illegal schema has no contents.
fn line(id: &str, schema: &str, contents: &[String]) -> String {
    let mut out = Map::from_iter([
        ("id".to_owned(), id.into()),
        ("schema".to_owned(), schema.into()),
    ]);
    if let Err(defects) = form(schema) {
        if let Some(browser) = as_in_a_browser(schema) {
            let web = form(&browser).map_or_else(|defects| defects, |_| json!({"verdict": "form"}));
            if web != defects {
                out.insert("web".to_owned(), web);
            }
        }
        out.insert("core".to_owned(), defects);
    } else {
        let cases: Vec<_> = contents
            .iter()
            .map(|content| judge(schema, content))
            .collect();
        out.insert("cases".to_owned(), json!(cases));
    }
    Value::Object(out).to_string()
}

fn rules() -> String {
    let lines = web_corpus::rules::cases()
        .into_iter()
        .enumerate()
        .map(|(i, (schema, contents))| line(&format!("rules/{i:03}"), &schema, &contents));
    lines.fold(String::new(), |out, line| out + &line + "\n")
}

fn drafts() -> String {
    let mut out = String::new();
    for (i, (schema, drafts)) in web_corpus::drafts::cases().into_iter().enumerate() {
        let form = Form::parse(&schema).unwrap_or_else(|defects| panic!("{schema}: {defects}"));
        let cases: Vec<_> = drafts
            .iter()
            .map(|draft| json!({"draft": draft, "core": draft_verdict(&form, draft)}))
            .collect();
        out +=
            &json!({"id": format!("drafts/{i:03}"), "schema": schema, "cases": cases}).to_string();
        out.push('\n');
    }
    out
}

/// Returns lines of this number of legal forms with ten contents each, and of the illegal ones between them.
fn random(seed: u64, forms: usize) -> String {
    let mut random = web_corpus::random::Random::new(seed);
    let mut out = String::new();
    let (mut number, mut legal) = (0, 0);
    while legal < forms {
        let (schema, contents) = random.form(10);
        out += &line(&format!("random/{number:05}"), &schema, &contents);
        out.push('\n');
        number += 1;
        legal += usize::from(Form::parse(&schema).is_ok());
    }
    out
}

/// Returns the parts of a kind of field, as both sides spell them.
fn parts(kind: &Kind) -> Value {
    let number = |name: &str, rules: &NumberRules| {
        json!([
            name,
            rules.minimum,
            rules.maximum,
            rules.exclusive_minimum,
            rules.exclusive_maximum,
            rules.multiple_of,
            rules.constant
        ])
    };
    let options = |options: &ChoiceOptions| -> Value {
        let parts = options
            .iter()
            .map(|option| json!([&*option.value, option.title, option.sent()]));
        parts.collect()
    };
    match kind {
        Kind::Text(text) => {
            let pattern = text.pattern.as_ref().map(Pattern::as_str);
            let format = text.format.map(Format::as_str);
            json!([
                "text",
                text.min_length,
                text.max_length,
                pattern,
                format,
                text.other_format,
                text.constant
            ])
        }
        Kind::Number(rules) => number("number", rules),
        Kind::Integer(rules) => number("integer", rules),
        Kind::Boolean(rules) => json!(["boolean", rules.constant]),
        Kind::Choice(choice) => json!(["choice", options(&choice.options)]),
        Kind::Choices(choices) => {
            json!([
                "choices",
                options(&choices.options),
                choices.min_items,
                choices.max_items,
                choices.unique
            ])
        }
        Kind::Union(union) => json!([
            "union",
            union.alternatives.iter().map(parts).collect::<Vec<_>>()
        ]),
        Kind::Lines(lines) => json!([
            "lines",
            parts(&lines.item),
            lines.min_items,
            lines.max_items,
            lines.unique
        ]),
    }
}

/// Formats one line of a schema that is read leniently: the form or its defects, and verdicts on contents and drafts.
/// Everything is as a browser reads it.
fn lenient_line(
    id: &str,
    schema: &str,
    random: &mut web_corpus::random::Random,
    count: usize,
) -> String {
    let schema = as_in_a_browser(schema).expect("a schema is JSON");
    let form = match Form::parse_leniently(&schema) {
        Ok(form) => form,
        Err(defects) => {
            let list: Vec<_> = defects
                .iter()
                .map(|defect| json!([defect.pointer, defect.code.as_str()]))
                .collect();
            return json!({"id": id, "schema": schema, "defects": list}).to_string();
        }
    };
    let adjustments: Vec<_> = form
        .adjustments()
        .iter()
        .map(|one| json!([one.pointer, one.field, one.kind.as_str(), one.message]))
        .collect();
    let field = |field: &Field| {
        json!([
            field.name(),
            field.label(),
            field.required(),
            field.nullable(),
            field.null_when_empty(),
            parts(field.kind()),
            field.default()
        ])
    };
    let names: Vec<String> = form
        .fields()
        .iter()
        .map(|field| field.name().to_owned())
        .collect();
    let (contents, drafts) = web_corpus::lenient::answers(&names, random, count);
    let contents = contents.iter().map(|content| {
        let content = as_in_a_browser(content).expect("a content is JSON");
        let verdict = match form.check_text(&content) {
            Ok(answers) => json!({"verdict": "answers", "answers": answers.to_value().to_string()}),
            Err(CheckError::Violations(violations)) => violated(&violations),
            Err(other) => panic!("{other}"),
        };
        json!({"content": content, "core": verdict})
    });
    let drafts = drafts
        .iter()
        .map(|draft| json!({"draft": draft, "core": draft_verdict(&form, draft)}));
    let cases: Vec<_> = contents.chain(drafts).collect();
    let fields: Vec<_> = form.fields().iter().map(field).collect();
    json!({"id": id, "schema": schema, "adjustments": adjustments, "fields": fields, "cases": cases}).to_string()
}

/// Returns the lines of the forms that are written by hand and that SDKs send.
fn lenient() -> String {
    let mut random = web_corpus::random::Random::new(2027);
    let record =
        std::fs::read_to_string(forms_record()).expect("the record of sent forms is there");
    let mut schemas = web_corpus::lenient::schemas();
    for row in record.lines() {
        let row: Value = serde_json::from_str(row).expect("a row is JSON");
        let sent = row.get("sent").map(Value::to_string);
        schemas.extend(sent.filter(|sent| Form::parse(sent).is_err()));
    }
    schemas.sort();
    schemas.dedup();
    let lines = schemas.iter().enumerate();
    let lines =
        lines.map(|(i, schema)| lenient_line(&format!("lenient/{i:03}"), schema, &mut random, 32));
    lines.fold(String::new(), |out, line| out + &line + "\n")
}

/// Returns the lines of this number of random forms that servers may send.
fn sent(seed: u64, forms: usize) -> String {
    let mut random = web_corpus::random::Random::new(seed);
    let lines = (0..forms).map(|i| {
        let schema = random.sent();
        lenient_line(&format!("sent/{i:05}"), &schema, &mut random, 6)
    });
    lines.fold(String::new(), |out, line| out + &line + "\n")
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../web/corpus")
}

#[track_caller]
fn compare(name: &str, now: &str, committed: &str) {
    for (number, (now, committed)) in now.lines().zip(committed.lines()).enumerate() {
        assert!(
            now == committed,
            "{name}, line {}: this crate says now\n{now}\nand the corpus says\n{committed}\nRun UPDATE_CORPUS=1 cargo test -p mcp-elicit-core --test web_corpus",
            number + 1
        );
    }
    assert_eq!(
        now.lines().count(),
        committed.lines().count(),
        "{name}: number of lines"
    );
}

#[track_caller]
fn check(name: &str, now: &str) {
    let path = folder().join(name);
    if std::env::var_os("UPDATE_CORPUS").is_some() {
        std::fs::write(&path, now).expect("the corpus can be written");
    }
    let committed = std::fs::read_to_string(&path).expect("the corpus is there");
    compare(name, now, &committed);
}

#[test]
fn every_rule_at_its_bounds() {
    check("rules.jsonl", &rules());
}

#[test]
fn drafts_as_people_enter_them() {
    check("drafts.jsonl", &drafts());
}

#[test]
fn forms_as_servers_send_them() {
    check_packed("lenient.jsonl.gz", &lenient());
}

#[test]
fn random_forms_that_servers_may_send() {
    check_packed("sent.jsonl.gz", &sent(2028, 1_000));
    if let Some(seed) = fresh_seed() {
        let path = std::env::var_os("FRESH_CORPUS_FILE").expect("FRESH_CORPUS_FILE names a file");
        let path = PathBuf::from(path).with_extension("sent");
        std::fs::write(path, sent(seed, 1_000)).expect("the fresh corpus can be written");
    }
}

fn fresh_seed() -> Option<u64> {
    let seed = std::env::var("FRESH_CORPUS").ok()?;
    u64::from_str_radix(&seed, 16).ok()
}

#[track_caller]
fn check_packed(name: &str, now: &str) {
    let path = folder().join(name);
    if std::env::var_os("UPDATE_CORPUS").is_some() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(now.as_bytes()).expect("memory");
        std::fs::write(&path, packed.finish().expect("memory")).expect("the corpus can be written");
    }
    let mut committed = String::new();
    let packed = std::fs::File::open(&path).expect("the corpus is there");
    GzDecoder::new(packed)
        .read_to_string(&mut committed)
        .expect("gzip");
    compare(name, now, &committed);
}

#[test]
fn random_forms_and_contents() {
    let now = random(2026, 2_000);
    check_packed("random.jsonl.gz", &now);
    // Otherwise a corpus of refusals only would pass on both sides.
    for verdict in ["answers", "violations", "defects"] {
        let count = now.matches(&format!(r#""verdict":"{verdict}""#)).count();
        assert!(count > 200, "{count} times {verdict}");
    }
    if let Some(seed) = fresh_seed() {
        let path = std::env::var_os("FRESH_CORPUS_FILE").expect("FRESH_CORPUS_FILE names a file");
        std::fs::write(path, random(seed, 2_000)).expect("the fresh corpus can be written");
    }
}
