//! The bodies of the API's requests and responses, for the server and its clients. `openapi.json` has their schemas, which
//! a test here makes from the types.

use mcp_elicit_core::lifecycle::{Delivery, Phase, Timestamp};
use mcp_elicit_core::wire::{Action, CallKind, Mode};
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The parameters of a request for a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListRequest {
    /// `true` for the questions that ended.
    #[serde(default)]
    pub ended: bool,
    /// The most questions.
    pub most: Option<usize>,
    /// The question after which the page starts.
    pub after: Option<String>,
    /// Words, each of which must occur in the question, its call or its caller, or begin its id.
    pub find: Option<String>,
    /// The server's name for people.
    pub server: Option<String>,
    /// The kind of the call.
    pub kind: Option<CallKind>,
    /// A form to fill in, or a link to visit.
    pub mode: Option<Mode>,
    /// The name of the tool or prompt, or the resource's URI.
    pub target: Option<String>,
    /// The principal of the call.
    pub principal: Option<String>,
}

/// A question as a list shows it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a member of its own of the JSON"
)]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedQuestion {
    /// Its id: 32 letters and digits.
    pub id: String,
    /// Its phase; the first two are open.
    #[schemars(schema_with = "phases")]
    pub phase: Phase,
    /// The server's name for people.
    pub server: String,
    /// The server's command or URL, where the operator gave it no name.
    pub server_address: Option<String>,
    /// The principal of the call.
    pub principal: String,
    /// On whose behalf it is asked, in words for a person.
    pub on_behalf_of: Option<String>,
    /// The client that made the call, as it calls itself.
    pub client: Option<ClientName>,
    /// The kind of the call.
    #[schemars(schema_with = "kinds_or_null")]
    pub kind: Option<CallKind>,
    /// The name of the tool or prompt, or the resource's URI.
    pub target: Option<String>,
    /// The names of other calls that may have asked, where the server did not say for which call it asks; null for those
    /// to whom the question is not addressed.
    pub others: Option<Vec<String>>,
    /// A form to fill in, or a link to visit.
    #[schemars(schema_with = "modes")]
    pub mode: Mode,
    /// Its first 1,000 characters in a list, all of it in one question; null for those to whom the question is not
    /// addressed.
    pub message: Option<String>,
    /// The names of the form's fields; not in a list, but for those to whom the question is not addressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
    /// Milliseconds since 1970-01-01 UTC.
    #[schemars(with = "u64")]
    pub asked_at: Timestamp,
    /// The time until which it can be answered, in the same unit.
    #[schemars(with = "Option<u64>")]
    pub until: Option<Timestamp>,
    /// The time at which it ended, in the same unit.
    #[schemars(with = "Option<u64>")]
    pub ended_at: Option<Timestamp>,
    /// The responder, as the gateway knows it: never what the one who answers says.
    pub by: Option<String>,
    /// The reason of its end.
    pub reason: Option<String>,
    /// The time at which the server had the answer, in the same unit.
    #[schemars(with = "Option<u64>")]
    pub delivered_at: Option<Timestamp>,
    /// The delivery state of the answer; null while no person has acted.
    #[schemars(schema_with = "deliveries_or_null")]
    pub delivery: Option<Delivery>,
    /// Why the answer was not delivered.
    pub delivery_reason: Option<String>,
    /// The time until which an answer that was not delivered is kept; for the same call made again where `foundAgain`.
    #[schemars(with = "Option<u64>")]
    pub valid_until: Option<Timestamp>,
    /// `true` if a call waits for the answer right now.
    pub waited_for: bool,
    /// `true` if it is known which call asked: then the same call made again finds the question and its answer.
    pub found_again: bool,
    /// `true` if the client shows it in its own dialog.
    #[serde(default)]
    pub asked_in_client: bool,
    /// The evidence that no person answered in the client's own dialog, for which the question moved to people.
    pub moved_from_client: Option<MovedFromClient>,
    /// The question's page.
    pub link: Option<String>,
    /// The rule that asks people, who answer on the inbox's pages only, each under their own name.
    pub rule: Option<String>,
    /// A call waits for approval, and its fields are arguments that may be changed.
    #[serde(default)]
    pub approval: bool,
}

/// A client, as it calls itself.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClientName {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
}

/// The move of a question from the client's own dialog to people.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MovedFromClient {
    /// The time, in milliseconds since 1970-01-01 UTC.
    #[schemars(with = "u64")]
    pub at: Timestamp,
    /// The evidence: `error`, `malformed`, `unusable`, `no-person` or `too-fast`.
    pub why: String,
    /// The evidence in words.
    pub words: String,
}

/// A question with everything that a person needs to answer it, and without answers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WholeQuestion {
    /// The question as a list shows it.
    #[serde(flatten)]
    pub question: ListedQuestion,
    /// The warnings for a person.
    #[serde(default)]
    pub cautions: Vec<String>,
    /// The reason why the client's answer is not checked in full: the form cannot be read, or only in part.
    pub unchecked: Option<String>,
    /// The server's `serverInfo`.
    #[serde(default)]
    pub server_info: Value,
    /// The client's `clientInfo`.
    #[serde(default)]
    pub client_info: Value,
    /// The arguments of the call; null where there are none, or they cannot be read as JSON here.
    #[serde(default)]
    pub arguments: Value,
    /// The arguments of the call as they were sent.
    pub arguments_text: Option<String>,
    /// The values that a rule keeps for auditors, if the reader is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_for_auditors: Option<RetainedValues>,
    /// The server's claims about the tool of a call that waits for approval; nothing checks them.
    pub tool: Option<ListedTool>,
    /// The length of the arguments in bytes, if they were too long to be stored (`argument-bytes`).
    pub arguments_left_out: Option<usize>,
    /// All calls that may have asked, the likeliest first, where the server did not say which; else none.
    #[serde(default)]
    pub candidates: Vec<CandidateCall>,
    /// `true` if the form asks for a credential, so that accepting it takes `allowCredentials`.
    #[serde(default)]
    pub asks_for_credential: bool,
    /// The form, as the server wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub requested_schema: Option<Value>,
    /// The differences between the schema and the form that is shown, if the schema is not legal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjustments: Option<Vec<FormAdjustment>>,
    /// The link to visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub url: Option<String>,
}

/// The values of a call that a rule keeps for auditors.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RetainedValues {
    /// The arguments as the call was made.
    pub arguments: Value,
    /// The answers of the people who were asked, by JSON Pointer or by field.
    pub answers: Option<Value>,
    /// The time at which they are erased, in milliseconds since 1970-01-01 UTC.
    #[schemars(with = "u64")]
    pub until: Timestamp,
}

/// The server's claims about a tool.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedTool {
    /// The tool's description, at most 2,000 characters of it.
    pub description: Option<String>,
    /// The tool's annotations, in words.
    pub hints: Vec<String>,
    /// Arguments of the tool's schema that the call leaves out, at most 20.
    pub left_out: Vec<LeftOutArgument>,
    /// The number of further ones.
    pub more_left_out: usize,
}

/// An argument that a call leaves out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOutArgument {
    /// Its name.
    pub name: String,
    /// The default in the schema, JSON.
    pub default_text: Option<String>,
}

/// A call that may have asked.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateCall {
    /// Its kind.
    #[schemars(schema_with = "kinds")]
    pub kind: CallKind,
    /// The name of the tool or prompt, or the resource's URI.
    pub target: String,
    /// The arguments of the call as they were sent.
    pub arguments_text: Option<String>,
}

/// A difference between a schema that is not legal and the form that is shown.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormAdjustment {
    /// Its kind.
    pub kind: String,
    /// The JSON Pointer within the schema.
    pub pointer: String,
    /// The field.
    pub field: Option<String>,
    /// The difference in words.
    pub message: String,
    /// A rule of the schema is not checked.
    pub not_checked: bool,
}

/// One page of a list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListedQuestions {
    /// The questions, in the order of their arrival.
    pub questions: Vec<ListedQuestion>,
    /// The value of `after` for the next page; null if there is none.
    pub next: Option<String>,
    /// The number of all waiting questions, those of rules included, which are not listed for a token where people log in.
    pub waiting: usize,
}

/// A person's act.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerRequest {
    /// The act.
    #[schemars(schema_with = "actions")]
    pub action: Action,
    /// With an accepted form: its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub content: Option<Map<String, Value>>,
    /// With a decline: why, in one line of 1 to 500 characters. The server gets it in `_meta` of its result, as
    /// `mcp-elicit/reasons`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 500))]
    pub reason: Option<String>,
    /// Accept although the form asks for a credential.
    #[serde(default)]
    pub allow_credentials: bool,
}

/// The result of a person's act.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerResponse {
    /// The question.
    pub id: String,
    /// Its phase now: `answered`, `declined` or `cancelled`.
    #[schemars(schema_with = "phases")]
    pub phase: Phase,
    /// `true` if a call waited for it; if none did, the same call made again gets it where `foundAgain`, and nobody
    /// otherwise.
    pub waited_for: bool,
    /// `true` if it is known which call asked: then the same call made again finds the question and its answer.
    pub found_again: bool,
}

/// A refusal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApiProblem {
    /// The reason.
    pub error: ProblemReason,
    /// The violations of a form, without values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<FieldViolation>")]
    pub violations: Option<Vec<FieldViolation>>,
    /// The question that had ended before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ListedQuestion")]
    pub question: Option<Box<ListedQuestion>>,
}

/// The reason of a refusal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProblemReason {
    /// A code that stays the same.
    pub code: String,
    /// The reason in words.
    pub message: String,
}

/// A field whose value breaks a rule of the form.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FieldViolation {
    /// The field.
    pub field: String,
    /// The rule's code.
    pub rule: String,
    /// The rule in words.
    pub message: String,
}

/// One page of the audit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AuditLinks {
    /// The links, in order.
    pub links: Vec<AuditLink>,
    /// The number of the first link on the next page; null at the end.
    pub next: Option<u64>,
}

/// A link of the audit's chain.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AuditLink {
    /// Its number: from 1 on, without gaps.
    pub number: u64,
    /// The hash of this link and all before it; `mcp-elicit audit --verify` checks the chain.
    pub hash: String,
    /// The event, with its time `at` in milliseconds since 1970-01-01 UTC and its name `event`.
    pub entry: Value,
}

fn phases(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({"enum": Phase::ALL.map(Phase::as_str)})
}

fn deliveries_or_null(_: &mut schemars::SchemaGenerator) -> Schema {
    let words = Delivery::ALL.map(|delivery| Some(delivery.as_str()));
    json_schema!({"enum": words.into_iter().chain([None]).collect::<Vec<_>>()})
}

const KINDS: [CallKind; 3] = [CallKind::Tool, CallKind::Prompt, CallKind::Resource];

fn kinds(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({"enum": KINDS.map(CallKind::word)})
}

fn kinds_or_null(_: &mut schemars::SchemaGenerator) -> Schema {
    let words = KINDS.map(|kind| Some(kind.word()));
    json_schema!({"enum": words.into_iter().chain([None]).collect::<Vec<_>>()})
}

fn modes(_: &mut schemars::SchemaGenerator) -> Schema {
    let all = [Mode::Form, Mode::Url];
    json_schema!({"enum": all.map(Mode::as_str)})
}

fn actions(_: &mut schemars::SchemaGenerator) -> Schema {
    let all = [Action::Accept, Action::Decline, Action::Cancel];
    json_schema!({"enum": all.map(Action::as_str)})
}

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;

    use super::*;

    /// The part of the description that is made from the types.
    fn components() -> Value {
        let mut settings = SchemaSettings::draft2020_12().for_serialize();
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        let mut generator = settings.into_generator();
        generator.subschema_for::<ListedQuestions>();
        generator.subschema_for::<WholeQuestion>();
        generator.subschema_for::<AnswerRequest>();
        generator.subschema_for::<AnswerResponse>();
        generator.subschema_for::<ApiProblem>();
        generator.subschema_for::<AuditLinks>();
        let mut all = Value::Object(generator.take_definitions(true));
        // Only these two are not required of a request.
        all["AnswerRequest"]["required"] = serde_json::json!(["action"]);
        all
    }

    /// With `UPDATE_OPENAPI=1` the file is written anew.
    #[test]
    fn the_description_has_the_schemas_of_the_types() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/openapi.json");
        let text = std::fs::read_to_string(file).unwrap();
        let mut document: Value = serde_json::from_str(&text).unwrap();
        document["components"]["schemas"] = components();
        let made = format!("{document:#}\n");
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(file, &made).unwrap();
            return;
        }
        assert_eq!(text, made, "run it with UPDATE_OPENAPI=1");
    }
}
