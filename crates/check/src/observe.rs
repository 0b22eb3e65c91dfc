//! The script of each cell.

use std::time::Duration;

use mcp_elicit_core::wire::{Era, Revision, method};
use serde_json::{Map, Value, json};

use crate::call::{
    ActPlan, CallInProgress, CalledTool, InputRound, QuestionAct, RequestResponse, accepted,
    params, read_response,
};
use crate::cell::Cell;
use crate::connection::CheckConnection;
use crate::contents;
use crate::observation::{CallEnd, LearnedQuestions, Observation, ObservedQuestion};
use crate::session::{CheckSession, Next, SessionOpenError, is_request, is_response_to};

/// The longest wait for a tool that is registered after the session opens.
const LATE_TOOLS: Duration = Duration::from_secs(2);
/// The longest wait for a second question at the same time: a server may handle one call after the other.
const SECOND_QUESTION: Duration = Duration::from_secs(3);
/// The most rounds before one that has a state.
const MOST_ROUNDS: usize = 10;

/// One tool on one revision.
#[derive(Clone, Debug)]
pub struct CheckJob {
    /// The tool.
    pub tool: String,
    /// Its arguments, an object.
    pub arguments: Value,
    /// The revision.
    pub revision: Revision,
    /// The longest wait for the server's next step.
    pub time_limit: Duration,
    /// The longest wait for its first response.
    pub opening: Duration,
    /// Another tool that asks, for its state.
    pub other: Option<OtherTool>,
}

/// A tool with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherTool {
    /// The tool.
    pub tool: String,
    /// Its arguments, an object.
    pub arguments: Value,
}

/// Returns the cells after [`Cell::Accept`], for a tool that asks these questions. [`Cell::Question`] and
/// [`Cell::LateAnswer`] have no run of their own: they are judged with [`Cell::Accept`] and [`Cell::NoAnswer`].
pub fn cells(learned: &LearnedQuestions) -> Vec<Cell> {
    let rules = learned.rules();
    let fixed = Cell::FIXED.into_iter();
    let broken = Cell::RULES.into_iter().map(Cell::Wrong);
    fixed
        .chain(broken)
        .filter(|cell| match cell {
            Cell::Accept | Cell::Question | Cell::LateAnswer => false,
            Cell::Wrong(rule) => rules.iter().any(|(known, _)| known == rule),
            cell => cell.absent(learned.revision).is_none(),
        })
        .collect()
}

/// Runs one cell over a fresh connection. `learned` is `None` for [`Cell::Accept`], which is the first.
///
/// # Errors
/// If the session does not open.
pub fn observe(
    cell: Cell,
    job: &CheckJob,
    learned: Option<&LearnedQuestions>,
    connection: &mut dyn CheckConnection,
) -> Result<Observation, SessionOpenError> {
    let mut session = CheckSession::open(
        connection,
        job.revision,
        cell.declares(),
        job.opening,
        job.time_limit,
    )?;
    let is_offered = is_offered(&mut session, &job.tool);
    // The opening is the same in every cell.
    session.take_frames();
    let mut seen = if is_offered {
        script(cell, job, learned, &mut session)
    } else {
        Observation {
            not_offered: true,
            ..Observation::default()
        }
    };
    let is_over = matches!(seen.end(), Some(CallEnd::Died(_) | CallEnd::Flood))
        || matches!(cell, Cell::Disconnect)
        || seen.not_applicable.is_some();
    seen.frames = session.take_frames();
    if !is_over {
        let id = session.request("tools/list", json!({}));
        let response = session.response(id, job.time_limit);
        let responds = matches!(response, Next::Frame(_));
        seen.responds = Some(responds);
        if !responds {
            seen.frames.extend(session.take_frames());
        }
    }
    seen.took = session.elapsed();
    Ok(seen)
}

fn is_offered(session: &mut CheckSession<'_>, tool: &str) -> bool {
    let lists = |session: &mut CheckSession<'_>| {
        let tools = session.tools();
        // A server that lists nothing may have the tool nevertheless.
        tools.is_none_or(|tools| tools.iter().any(|one| one.name == tool))
    };
    lists(session) || session.tools_change(LATE_TOOLS) && lists(session)
}

fn script(
    cell: Cell,
    job: &CheckJob,
    learned: Option<&LearnedQuestions>,
    session: &mut CheckSession<'_>,
) -> Observation {
    let target = CalledTool {
        tool: &job.tool,
        arguments: &job.arguments,
    };
    let form_at = learned
        .and_then(LearnedQuestions::form_question)
        .map(|(at, _)| at);
    let at_form = |act| match form_at {
        Some(at) => Ok(ActPlan { at, act }),
        None => Err("the tool asks no form"),
    };
    let first = |act| Ok(ActPlan { at: 0, act });
    let plan = match cell {
        Cell::Accept
        | Cell::Question
        | Cell::DeclaredNone
        | Cell::DeclaredEmpty
        | Cell::DeclaredForm
        | Cell::DeclaredUrl => first(QuestionAct::Accept),
        Cell::AcceptLeast => {
            let all = learned.into_iter().flat_map(|one| &one.accept.asked);
            let forms = all.filter_map(ObservedQuestion::form);
            if forms.into_iter().any(|form| contents::has_optional(&form)) {
                first(QuestionAct::Least)
            } else {
                Err("no question has an optional field")
            }
        }
        Cell::Decline => first(QuestionAct::Send(json!({"action": "decline"}))),
        Cell::Cancel => first(QuestionAct::Send(json!({"action": "cancel"}))),
        Cell::Error => first(QuestionAct::Error),
        Cell::NoAnswer | Cell::LateAnswer => first(QuestionAct::Withhold),
        Cell::Disconnect => first(QuestionAct::Leave),
        Cell::AnswerTwice => first(QuestionAct::Twice),
        Cell::UnknownId => first(QuestionAct::UnknownIdFirst),
        Cell::Cancelled => first(QuestionAct::Withdraw),
        Cell::Wrong(rule) => {
            let rules = learned.map(LearnedQuestions::rules).unwrap_or_default();
            let found = rules.into_iter().find(|(known, _)| *known == rule);
            let at = found.map(|(_, at)| at);
            at.map(|at| ActPlan {
                at,
                act: QuestionAct::Break(rule),
            })
            .ok_or("no question has this rule")
        }
        Cell::UnknownMember => at_form(QuestionAct::Unknown),
        Cell::NoContent => at_form(QuestionAct::Send(json!({"action": "accept"}))),
        Cell::NullContent => at_form(QuestionAct::Send(
            json!({"action": "accept", "content": null}),
        )),
        Cell::ListContent => at_form(QuestionAct::Send(
            json!({"action": "accept", "content": ["a"]}),
        )),
        Cell::DeclineWithContent => at_form(QuestionAct::WithAction("decline")),
        Cell::UnknownAction => first(QuestionAct::WithAction("approve")),
        Cell::TwoCalls => return two_calls(session, target),
        Cell::StateChanged => return state_changed(session, target),
        Cell::StateOfOtherTool => return state_of_other_tool(session, target, job),
        Cell::StateOfOtherArguments => return state_of_other_arguments(session, target),
        Cell::StateTwice | Cell::NoState | Cell::MissingKey | Cell::ExtraKey => {
            return round_changed(cell, session, target);
        }
    };
    let plan = match plan {
        Ok(plan) => plan,
        Err(why) => return Observation::not_applicable(why),
    };
    if learned.is_some_and(|one| {
        only_in_errors(one) && !matches!(cell.group(), crate::CellGroup::Declared)
    }) {
        return Observation::not_applicable("the questions are in an error, which has no answer");
    }
    let mut tool_call = CallInProgress::new(session, plan);
    let end = tool_call.run(target);
    let mut seen = tool_call.seen;
    seen.ends.push(end);
    seen
}

/// Returns `true` if every question was listed in an error -32042.
fn only_in_errors(learned: &LearnedQuestions) -> bool {
    let asked = &learned.accept.asked;
    !asked.is_empty() && asked.iter().all(|one| one.in_error)
}

/// Makes two calls at once, and answers their questions in reverse.
fn two_calls(session: &mut CheckSession<'_>, target: CalledTool<'_>) -> Observation {
    if session.revision().era() == Era::Rounds {
        return two_rounds(session, target);
    }
    let mut seen = Observation::default();
    let ids = [(); 2].map(|()| session.request("tools/call", params(target, None)));
    let mut ends: [Option<CallEnd>; 2] = [None, None];
    let mut open: Vec<(Value, ObservedQuestion)> = Vec::new();
    let mut deadline = session.elapsed() + session.time_limit();
    // Both questions are collected first.
    let mut collecting = Some(SECOND_QUESTION);
    while ends.iter().any(Option::is_none) {
        let until = match collecting {
            Some(wait) if !open.is_empty() => deadline.min(session.elapsed() + wait),
            _ => deadline,
        };
        match session.next_until(until) {
            Next::Silence if !open.is_empty() => collecting = None,
            Next::Silence => break,
            Next::Ended(why) => {
                ends = ends.map(|end| end.or_else(|| Some(CallEnd::Died(why.clone()))));
            }
            Next::Flood => ends = ends.map(|end| end.or(Some(CallEnd::Flood))),
            Next::Frame(frame) => {
                if let Some(at) = ids.iter().position(|id| is_response_to(&frame, *id)) {
                    ends[at] = Some(match read_response(frame, Era::Pushed) {
                        RequestResponse::End(end) => end,
                        RequestResponse::Round(_) | RequestResponse::Visits(_) => CallEnd::Left,
                    });
                } else if frame["method"] == method::CREATE && is_request(&frame) {
                    let asked = ObservedQuestion::read(frame["params"].clone(), None);
                    seen.asked.push(asked.clone());
                    open.push((frame["id"].clone(), asked));
                    if seen.asked.len() > 40 {
                        ends = ends.map(|end| end.or(Some(CallEnd::Flood)));
                    }
                } else if is_request(&frame) {
                    session.respond(&frame);
                }
            }
        }
        if open.len() >= 2 || collecting.is_none() {
            collecting = None;
            for (id, asked) in open.drain(..).rev() {
                session.send(&json!({"jsonrpc": "2.0", "id": id, "result": accepted(&asked)}));
            }
            deadline = session.elapsed() + session.time_limit();
        }
    }
    seen.ends = ends.map(|end| end.unwrap_or(CallEnd::Never)).into();
    seen
}

fn two_rounds(session: &mut CheckSession<'_>, target: CalledTool<'_>) -> Observation {
    let mut call = CallInProgress::new(session, accept());
    let first = call.request(target, None);
    let second = call.request(target, None);
    let mut ends = Vec::new();
    for response in [second, first] {
        // Each has its own questions.
        ends.push(call.follow(target, response));
    }
    let mut seen = call.seen;
    seen.ends = ends;
    seen
}

fn accept() -> ActPlan {
    ActPlan {
        at: 0,
        act: QuestionAct::Accept,
    }
}

/// Accepts rounds until one has a state and questions. `None` if none has.
fn round_with_state(
    call: &mut CallInProgress<'_, '_>,
    target: CalledTool<'_>,
) -> Option<InputRound> {
    let mut response = call.request(target, None);
    for _ in 0..MOST_ROUNDS {
        let RequestResponse::Round(round) = response else {
            return None;
        };
        call.seen.asked.extend(round.asked.iter().cloned());
        if round.state.is_some() && !round.asked.is_empty() {
            return Some(round);
        }
        response = call.request(target, Some((responses(&round), round.state.clone())));
    }
    None
}

fn responses(round: &InputRound) -> Value {
    let all = round.asked.iter().filter_map(|asked| {
        let key = asked.key.clone()?;
        Some((key, accepted(asked)))
    });
    Value::Object(all.collect::<Map<_, _>>())
}

const NO_STATE: &str = "the tool sends no requestState";

/// Records the response to a changed retry: an end, the same questions again, or others.
fn record(
    call: &mut CallInProgress<'_, '_>,
    target: CalledTool<'_>,
    response: RequestResponse,
    round: &InputRound,
) {
    if let RequestResponse::Round(next) = &response {
        let is_known = |asked: &ObservedQuestion| round.asked.iter().any(|one| asked.repeats(one));
        let is_again = next.asked.iter().all(is_known);
        if is_again {
            call.seen.asked_again = true;
            call.seen.ends.push(CallEnd::Left);
            return;
        }
        call.seen.went_on = true;
    }
    let end = call.follow(target, response);
    call.seen.ends.push(end);
}

/// Sends a state with one changed character, at up to three places.
fn state_changed(session: &mut CheckSession<'_>, target: CalledTool<'_>) -> Observation {
    let mut seen: Option<Observation> = None;
    for place in [1, 2, 3] {
        let mut call = CallInProgress::new(session, accept());
        let Some(round) = round_with_state(&mut call, target) else {
            return seen.unwrap_or_else(|| Observation::not_applicable(NO_STATE));
        };
        let state = round.state.as_deref().unwrap_or_default();
        let Some(changed) = changed(state, place) else {
            return Observation::not_applicable("the requestState has no character to change");
        };
        let response = call.request(target, Some((responses(&round), Some(changed))));
        record(&mut call, target, response, &round);
        let next = call.seen;
        let so_far = seen.get_or_insert_with(Observation::default);
        so_far.asked.extend(next.asked);
        so_far.ends.extend(next.ends);
        so_far.asked_again |= next.asked_again;
        so_far.went_on |= next.went_on;
        so_far.pushed_in_rounds |= next.pushed_in_rounds;
        if so_far.ends.iter().any(CallEnd::is_success) {
            break;
        }
    }
    seen.unwrap_or_default()
}

/// Changes the letter or digit nearest to this quarter of the state to its neighbour.
fn changed(state: &str, quarter: usize) -> Option<String> {
    let mut letters: Vec<char> = state.chars().collect();
    let near = letters.len() * quarter / 4;
    let places = (near..letters.len()).chain((0..near).rev());
    let mut places = places.filter(|at| letters[*at].is_ascii_alphanumeric());
    let at = places.next()?;
    letters[at] = match letters[at] {
        'z' => 'y',
        'Z' => 'Y',
        '9' => '8',
        letter => char::from(u8::try_from(letter).ok()? + 1),
    };
    Some(letters.into_iter().collect())
}

fn state_of_other_tool(
    session: &mut CheckSession<'_>,
    target: CalledTool<'_>,
    job: &CheckJob,
) -> Observation {
    let Some(other) = &job.other else {
        return Observation::not_applicable("no other tool that asks was named");
    };
    let other = CalledTool {
        tool: &other.tool,
        arguments: &other.arguments,
    };
    with_state_of(session, target, other)
}

fn state_of_other_arguments(session: &mut CheckSession<'_>, target: CalledTool<'_>) -> Observation {
    let mut arguments = target.arguments.clone();
    let members = arguments.as_object_mut().into_iter().flatten();
    let is_changed = members.into_iter().any(|(_, value)| match value {
        Value::String(text) => {
            text.push('x');
            true
        }
        Value::Number(number) => {
            let next = number.as_i64().map(|number| json!(number.wrapping_add(1)));
            let is_whole = next.is_some();
            *value = next.unwrap_or_default();
            is_whole
        }
        Value::Bool(flag) => {
            *flag = !*flag;
            true
        }
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    });
    if !is_changed {
        return Observation::not_applicable("the tool is called without arguments");
    }
    let other = CalledTool {
        tool: target.tool,
        arguments: &arguments,
    };
    with_state_of(session, target, other)
}

/// Answers a call's questions with the state of another call.
fn with_state_of(
    session: &mut CheckSession<'_>,
    target: CalledTool<'_>,
    other: CalledTool<'_>,
) -> Observation {
    let mut call = CallInProgress::new(session, accept());
    let Some(foreign) = round_with_state(&mut call, other) else {
        return Observation::not_applicable("the other call has no requestState");
    };
    let Some(round) = round_with_state(&mut call, target) else {
        return Observation::not_applicable(NO_STATE);
    };
    let response = call.request(target, Some((responses(&round), foreign.state)));
    record(&mut call, target, response, &round);
    call.seen
}

/// Changes one retry otherwise.
fn round_changed(
    cell: Cell,
    session: &mut CheckSession<'_>,
    target: CalledTool<'_>,
) -> Observation {
    let mut tool_call = CallInProgress::new(session, accept());
    let needs_state = matches!(cell, Cell::StateTwice | Cell::NoState);
    let found = if needs_state {
        round_with_state(&mut tool_call, target).ok_or(NO_STATE)
    } else {
        match tool_call.request(target, None) {
            RequestResponse::Round(round) if !round.asked.is_empty() => {
                tool_call.seen.asked.extend(round.asked.iter().cloned());
                Ok(round)
            }
            _ => Err("the first response has no questions"),
        }
    };
    let round = match found {
        Ok(round) => round,
        Err(why) => return Observation::not_applicable(why),
    };
    let state = round.state.clone();
    let mut answers = responses(&round);
    match cell {
        Cell::NoState => {
            let response = tool_call.request(target, Some((answers, None)));
            record(&mut tool_call, target, response, &round);
        }
        Cell::MissingKey => {
            let first = round.asked.first().and_then(|asked| asked.key.clone());
            if let (Some(all), Some(key)) = (answers.as_object_mut(), first) {
                all.remove(&key);
            }
            let response = tool_call.request(target, Some((answers, state)));
            record(&mut tool_call, target, response, &round);
        }
        Cell::ExtraKey => {
            answers["mcp-elicit-check"] = json!({"action": "cancel"});
            let response = tool_call.request(target, Some((answers, state)));
            record(&mut tool_call, target, response, &round);
        }
        _ => {
            for _ in 0..2 {
                let again = Some((answers.clone(), state.clone()));
                let response = tool_call.request(target, again);
                record(&mut tool_call, target, response, &round);
            }
        }
    }
    tool_call.seen
}

#[cfg(test)]
mod tests {
    use super::changed;

    #[test]
    fn one_character_of_a_state_changes() {
        assert_eq!(changed("abcd", 2).as_deref(), Some("abdd"));
        assert_eq!(changed("{\"step\":9}", 3).as_deref(), Some("{\"step\":8}"));
        assert_eq!(changed("a--", 3).as_deref(), Some("b--"));
        assert_eq!(changed("---", 1), None);
        assert_eq!(changed("", 1), None);
    }
}
