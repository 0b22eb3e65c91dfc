//! One call, whose questions are answered by a plan.

use std::time::Duration;

use mcp_elicit_core::wire::{Era, Mode, method, pushed, rounds};
use serde_json::{Map, Value, json};

use crate::contents;
use crate::observation::{CallEnd, Observation, ObservedQuestion};
use crate::session::{CheckSession, Next, is_request, is_response_to};

/// The most questions of one call.
const MOST_QUESTIONS: usize = 20;

/// An act on one question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum QuestionAct {
    /// Accept with valid content.
    Accept,
    /// Accept with the required fields alone.
    Least,
    /// Accept with content that breaks this rule.
    Break(&'static str),
    /// Accept with valid content and an unknown member.
    Unknown,
    /// This `ElicitResult`.
    Send(Value),
    /// Valid content with this action.
    WithAction(&'static str),
    /// A JSON-RPC error.
    Error,
    /// Valid content, twice.
    Twice,
    /// Valid content under an unknown id, then under the right one.
    UnknownIdFirst,
    /// Nothing for the time limit, then valid content.
    Withhold,
    /// The call is withdrawn.
    Withdraw,
    /// The client leaves.
    Leave,
}

impl QuestionAct {
    /// Returns `true` if the questions after it are accepted.
    fn goes_on(&self) -> bool {
        match self {
            Self::Accept
            | Self::Least
            | Self::Break(_)
            | Self::Unknown
            | Self::Twice
            | Self::UnknownIdFirst
            | Self::Withhold => true,
            Self::Send(result) => result["action"] == "accept",
            Self::WithAction(action) => *action == "accept",
            Self::Error | Self::Withdraw | Self::Leave => false,
        }
    }
}

/// The act on the question at this position; those before it are accepted.
#[derive(Clone, Debug)]
pub(crate) struct ActPlan {
    pub(crate) at: usize,
    pub(crate) act: QuestionAct,
}

/// A tool with its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CalledTool<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
}

/// A round of 2026-07-28.
#[derive(Clone, Debug)]
pub(crate) struct InputRound {
    pub(crate) asked: Vec<ObservedQuestion>,
    pub(crate) state: Option<String>,
}

/// The response to one request of a call.
#[derive(Clone, Debug)]
pub(crate) enum RequestResponse {
    /// The call has ended.
    End(CallEnd),
    /// It asks (2026-07-28).
    Round(InputRound),
    /// It asks for visits (error -32042).
    Visits(Vec<ObservedQuestion>),
}

/// Returns the `ElicitResult` that accepts a question with valid content.
pub(crate) fn accepted(asked: &ObservedQuestion) -> Value {
    with_content(asked, contents::valid)
}

fn with_content(
    asked: &ObservedQuestion,
    content: impl Fn(&mcp_elicit_core::form::Form) -> Option<Value>,
) -> Value {
    match asked.mode {
        Mode::Url => json!({"action": "accept"}),
        Mode::Form => {
            let content = asked.form().and_then(|form| content(&form));
            json!({"action": "accept", "content": content.unwrap_or_else(|| json!({}))})
        }
    }
}

fn result_of(asked: &ObservedQuestion, act: &QuestionAct) -> Value {
    match act {
        QuestionAct::Least => with_content(asked, contents::least),
        QuestionAct::Break(rule) => {
            let all = asked.violations();
            let broken = all.into_iter().find(|(known, _)| known == rule);
            match broken {
                Some((_, content)) => json!({"action": "accept", "content": content}),
                None => accepted(asked),
            }
        }
        QuestionAct::Unknown => {
            let mut result = accepted(asked);
            result["content"]["mcp-elicit-check"] = json!("unknown");
            result
        }
        QuestionAct::Send(result) => result.clone(),
        QuestionAct::WithAction(action) => {
            let mut result = accepted(asked);
            result["action"] = json!(action);
            result
        }
        QuestionAct::Accept
        | QuestionAct::Error
        | QuestionAct::Twice
        | QuestionAct::UnknownIdFirst
        | QuestionAct::Withhold
        | QuestionAct::Withdraw
        | QuestionAct::Leave => accepted(asked),
    }
}

/// A call in progress.
pub(crate) struct CallInProgress<'s, 'c> {
    pub(crate) session: &'s mut CheckSession<'c>,
    pub(crate) seen: Observation,
    plan: ActPlan,
    /// The id of the request in progress.
    id: u64,
}

impl<'s, 'c> CallInProgress<'s, 'c> {
    pub(crate) fn new(session: &'s mut CheckSession<'c>, plan: ActPlan) -> Self {
        Self {
            session,
            seen: Observation::default(),
            plan,
            id: 0,
        }
    }

    /// Makes the call, and returns its end.
    pub(crate) fn run(&mut self, target: CalledTool<'_>) -> CallEnd {
        let response = self.request(target, None);
        self.follow(target, response)
    }

    /// Answers rounds until the call ends.
    pub(crate) fn follow(
        &mut self,
        target: CalledTool<'_>,
        mut response: RequestResponse,
    ) -> CallEnd {
        loop {
            match response {
                RequestResponse::End(end) => return end,
                RequestResponse::Visits(visits) => {
                    let first = self.seen.asked.is_empty();
                    let accepts = matches!(self.plan.act, QuestionAct::Accept | QuestionAct::Least);
                    self.seen.asked.extend(visits);
                    if !first || !accepts {
                        return CallEnd::Error {
                            code: pushed::URL_REQUIRED_CODE,
                            message: "visits are required".to_owned(),
                        };
                    }
                    response = self.request(target, None);
                }
                RequestResponse::Round(round) => {
                    if self.seen.asked.len() + round.asked.len() > MOST_QUESTIONS {
                        return CallEnd::Flood;
                    }
                    if self.is_asked_again(&round) {
                        // Nobody waits for an answer, so the call may end here.
                        self.seen.asked.extend(round.asked);
                        return CallEnd::Left;
                    }
                    let mut responses = Map::new();
                    for asked in round.asked {
                        let act = self.act_on(&asked);
                        let key = asked.key.clone().unwrap_or_default();
                        if act == QuestionAct::Leave {
                            self.seen.asked.push(asked);
                            self.seen.exits = self.session.leave();
                            return CallEnd::Left;
                        }
                        responses.insert(key, result_of(&asked, &act));
                        self.seen.asked.push(asked);
                    }
                    let answers = (Value::Object(responses), round.state);
                    response = self.request(target, Some(answers));
                }
            }
        }
    }

    /// Sends one request of the call, and answers what is pushed until its response.
    pub(crate) fn request(
        &mut self,
        target: CalledTool<'_>,
        answers: Option<(Value, Option<String>)>,
    ) -> RequestResponse {
        self.id = self.session.request("tools/call", params(target, answers));
        let mut deadline = self.deadline();
        loop {
            match self.session.next_until(deadline) {
                Next::Silence => return RequestResponse::End(CallEnd::Never),
                Next::Ended(why) => return RequestResponse::End(CallEnd::Died(why)),
                Next::Flood => return RequestResponse::End(CallEnd::Flood),
                Next::Frame(frame) if is_response_to(&frame, self.id) => {
                    return read_response(frame, self.session.revision().era());
                }
                Next::Frame(frame) if frame["method"] == method::CREATE && is_request(&frame) => {
                    if self.seen.asked.len() >= MOST_QUESTIONS {
                        return RequestResponse::End(CallEnd::Flood);
                    }
                    if let Some(end) = self.answer_pushed(&frame) {
                        return RequestResponse::End(end);
                    }
                    deadline = self.deadline();
                }
                Next::Frame(frame) if is_request(&frame) => self.session.respond(&frame),
                // A call that makes progress is not stuck, but one that only says so has an end, too.
                Next::Frame(_) => {}
            }
        }
    }

    /// Returns `true` if a round asks the question of the plan once more, and notes it.
    fn is_asked_again(&mut self, round: &InputRound) -> bool {
        let Some(answered) = self.seen.asked.get(self.plan.at) else {
            return false;
        };
        let accepts = matches!(self.plan.act, QuestionAct::Accept | QuestionAct::Least);
        let all = || round.asked.iter();
        let again =
            !accepts && all().next().is_some() && all().all(|asked| asked.repeats(answered));
        let same = again && all().any(|asked| asked.is_same(answered));
        self.seen.asked_again |= again;
        self.seen.without_reason |= same;
        again
    }

    fn deadline(&self) -> Duration {
        self.session.elapsed() + self.session.time_limit()
    }

    /// Returns the act on a question, by the plan.
    fn act_on(&mut self, asked: &ObservedQuestion) -> QuestionAct {
        let position = self.seen.asked.len();
        match position.cmp(&self.plan.at) {
            std::cmp::Ordering::Less => QuestionAct::Accept,
            std::cmp::Ordering::Equal => self.plan.act.clone(),
            std::cmp::Ordering::Greater => {
                let answered = self.seen.asked.get(self.plan.at);
                let again = answered.is_some_and(|answered| asked.repeats(answered));
                let same = answered.is_some_and(|answered| asked.is_same(answered));
                self.seen.asked_again |= again;
                self.seen.without_reason |= same;
                self.seen.went_on |= !again;
                match &self.plan.act {
                    QuestionAct::Accept | QuestionAct::Least => self.plan.act.clone(),
                    act if act.goes_on() && !again => QuestionAct::Accept,
                    _ => QuestionAct::Send(json!({"action": "cancel"})),
                }
            }
        }
    }

    /// Answers a pushed question. Returns the call's end if that is the cell's own doing.
    fn answer_pushed(&mut self, frame: &Value) -> Option<CallEnd> {
        self.seen.pushed_in_rounds |= self.session.revision().era() == Era::Rounds;
        let asked = ObservedQuestion::read(frame["params"].clone(), None);
        let act = self.act_on(&asked);
        let result = result_of(&asked, &act);
        self.seen.asked.push(asked);
        let id = &frame["id"];
        let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
        match act {
            QuestionAct::Error => {
                let error = json!({"code": -32603, "message": "the question cannot be shown"});
                self.session
                    .send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            QuestionAct::Twice => {
                self.session.send(&response);
                self.session.send(&response);
            }
            QuestionAct::UnknownIdFirst => {
                let mut other = response.clone();
                other["id"] = json!("mcp-elicit-check-unknown");
                self.session.send(&other);
                self.session.send(&response);
            }
            QuestionAct::Withhold => return self.withhold(&response),
            QuestionAct::Withdraw => {
                let params =
                    json!({"requestId": self.id, "reason": "mcp-elicit check withdraws it"});
                self.session.send(
                    &json!({"jsonrpc": "2.0", "method": method::CANCELLED, "params": params}),
                );
                return Some(CallEnd::Left);
            }
            QuestionAct::Leave => {
                self.seen.exits = self.session.leave();
                return Some(CallEnd::Left);
            }
            _ => self.session.send(&response),
        }
        None
    }

    /// Withholds an answer for the time limit. Returns the call's end if the server gives up in this time.
    fn withhold(&mut self, response: &Value) -> Option<CallEnd> {
        let deadline = self.deadline();
        loop {
            match self.session.next_until(deadline) {
                Next::Silence => {
                    self.seen.gave_up = Some(false);
                    self.session.send(response);
                    return None;
                }
                Next::Ended(why) => return Some(CallEnd::Died(why)),
                Next::Flood => return Some(CallEnd::Flood),
                Next::Frame(frame) if is_response_to(&frame, self.id) => {
                    self.seen.gave_up = Some(true);
                    // The answer comes too late, and must change nothing.
                    self.session.send(response);
                    return match read_response(frame, Era::Pushed) {
                        RequestResponse::End(end) => Some(end),
                        RequestResponse::Round(_) | RequestResponse::Visits(_) => None,
                    };
                }
                Next::Frame(frame) if is_request(&frame) => self.session.respond(&frame),
                Next::Frame(_) => {}
            }
        }
    }
}

/// Returns the params of a call, or of its retry.
pub(crate) fn params(target: CalledTool<'_>, answers: Option<(Value, Option<String>)>) -> Value {
    let mut params = json!({"name": target.tool, "arguments": target.arguments});
    if let Some((responses, state)) = answers {
        params["inputResponses"] = responses;
        if let Some(state) = state {
            params["requestState"] = json!(state);
        }
    }
    params
}

/// Reads the response to a call.
pub(crate) fn read_response(mut frame: Value, era: Era) -> RequestResponse {
    if let Some(error) = frame.get("error") {
        let code = error["code"].as_i64().unwrap_or_default();
        let visits = error["data"]["elicitations"].as_array();
        if code == pushed::URL_REQUIRED_CODE && era == Era::Pushed {
            let visits = visits.into_iter().flatten().map(|params| ObservedQuestion {
                in_error: true,
                ..ObservedQuestion::read(params.clone(), None)
            });
            return RequestResponse::Visits(visits.take(MOST_QUESTIONS).collect());
        }
        let message = error["message"].as_str().unwrap_or_default().to_owned();
        return RequestResponse::End(CallEnd::Error { code, message });
    }
    let result = frame["result"].take();
    if era == Era::Rounds && result["resultType"] == rounds::INPUT_REQUIRED {
        let requests = result["inputRequests"].as_object();
        let questions = requests.into_iter().flatten();
        let questions = questions.filter(|(_, request)| request["method"] == method::CREATE);
        let asked = questions
            .map(|(key, request)| {
                ObservedQuestion::read(request["params"].clone(), Some(key.clone()))
            })
            .collect();
        return RequestResponse::Round(InputRound {
            asked,
            state: result["requestState"].as_str().map(str::to_owned),
        });
    }
    let texts = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = texts.filter_map(|part| part["text"].as_str()).collect();
    let text = if texts.is_empty() {
        result.to_string()
    } else {
        texts.join("\n")
    };
    RequestResponse::End(CallEnd::Result {
        is_error: result["isError"] == true,
        text,
    })
}
