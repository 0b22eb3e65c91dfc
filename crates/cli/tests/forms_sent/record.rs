//! The record of what each SDK sends, and of how it is answered.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;

use mcp_elicit_testkit::peers::forms_record;
use serde_json::{Value, json};

/// One kind of one SDK.
pub(crate) struct Row {
    pub(crate) sdk: String,
    pub(crate) kind: String,
    /// The `requestedSchema`; `None` if the SDK refused to ask.
    pub(crate) sent: Option<Value>,
    /// The end of the call, if it was asked.
    pub(crate) end: Option<Value>,
}

impl Row {
    fn line(&self) -> String {
        let mut line = json!({ "sdk": self.sdk, "kind": self.kind });
        match &self.sent {
            Some(sent) => line["sent"] = sent.clone(),
            None => line["refused by the SDK"] = true.into(),
        }
        if let Some(end) = self.end.as_ref().and_then(Value::as_object) {
            for (name, value) in end {
                line[name] = value.clone();
            }
        }
        line.to_string()
    }
}

/// Returns the texts that a person types for each kind, by field; the defaults are accepted for kinds without.
pub(crate) fn answers() -> BTreeMap<String, BTreeMap<String, String>> {
    let text = fs::read_to_string(forms_record().with_file_name("answers.json"));
    serde_json::from_str(&text.expect("answers.json is there")).expect("answers.json is JSON")
}

static WRITING: Mutex<()> = Mutex::new(());

/// Compares the rows of one SDK with the record, or writes them there.
///
/// # Panics
///
/// If they differ.
pub(crate) fn compare(sdk: &str, rows: &[Row]) {
    let _one = WRITING.lock();
    let now: Vec<String> = rows.iter().map(Row::line).collect();
    let recorded = fs::read_to_string(forms_record()).unwrap_or_default();
    let begins = json!({ "sdk": sdk }).to_string();
    let begins = format!("{},", begins.trim_end_matches('}'));
    let (own, others): (Vec<&str>, Vec<&str>) =
        recorded.lines().partition(|line| line.starts_with(&begins));
    if std::env::var_os("UPDATE_FORMS").is_some() {
        let mut all: Vec<&str> = others
            .into_iter()
            .chain(now.iter().map(String::as_str))
            .collect();
        // A stable sort: the kinds of one SDK stay in its order.
        all.sort_by_key(|line| line.split(',').next().unwrap_or_default().to_owned());
        fs::write(forms_record(), all.join("\n") + "\n").expect("the record can be written");
        return;
    }
    for (now, then) in now.iter().zip(&own) {
        assert_eq!(now, then, "{sdk} differs from the record");
    }
    assert_eq!(now.len(), own.len(), "{sdk} has other kinds");
}
