//! The record of the simulator: it behaves like the gateway's record, and provides data for checks.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::question::{FoundTask, with_reasons};
use mcp_elicit_core::wire::{Action, ElicitRequest, Revision};

use super::{ANSWER, World};
use crate::{AskId, AskedVia, CallId, CallSummary, Effect, Event, NewQuestion, TakenAnswer};

/// One record of the store.
pub(in crate::tests) struct Kept {
    pub(in crate::tests) asked: Box<NewQuestion>,
    pub(in crate::tests) key: Option<AskId>,
    pub(in crate::tests) reply: Option<String>,
    pub(in crate::tests) deliveries: u32,
    pub(in crate::tests) ended: bool,
    /// `true` if a call of another running gateway has it.
    elsewhere: bool,
    /// `true` if it is written behind.
    noted: bool,
    /// The part of it that is on the disk, if it is written behind.
    stored: Option<Stored>,
    /// The number of actions of a person, and of answers that went to the server, including those that a kill lost.
    pub(in crate::tests) acts: u32,
    pub(in crate::tests) told: u32,
    /// The move from the client's dialog to people.
    pub(in crate::tests) moved: Option<NotAPerson>,
}

/// A task in the record.
pub(in crate::tests) struct TaskKept {
    pub(in crate::tests) key: CallId,
    pub(in crate::tests) id: String,
    pub(in crate::tests) state: String,
    pub(in crate::tests) ended: Option<String>,
    /// `false` once the gateway that runs it was killed.
    pub(in crate::tests) has_owner: bool,
    followers: Vec<CallId>,
}

#[derive(Clone)]
struct Stored {
    reply: Option<String>,
    deliveries: u32,
    ended: bool,
}

impl Kept {
    fn new(asked: Box<NewQuestion>, question: AskId, noted: bool) -> Self {
        Self {
            asked,
            key: Some(question),
            reply: None,
            deliveries: 0,
            ended: false,
            elsewhere: false,
            noted,
            stored: None,
            acts: 0,
            told: 0,
            moved: None,
        }
    }

    fn answer(&mut self, reply: String) {
        self.reply = Some(reply);
        self.acts += 1;
    }

    fn is_free(&self) -> bool {
        self.reply.is_some() && self.deliveries == 0 && !self.ended
    }
}

impl World {
    /// Carries out an effect on tasks.
    pub(super) fn task_effect(&mut self, effect: Effect) {
        match effect {
            Effect::BeginTask { task, state, .. } => {
                let id = format!("kept-{}", self.tasks.len());
                self.tasks.push(TaskKept {
                    key: task,
                    id: id.clone(),
                    state,
                    ended: None,
                    has_owner: true,
                    followers: Vec::new(),
                });
                let id = Some(id);
                self.events.push_back(Event::TaskBegun { task, id });
            }
            Effect::UpdateTask { task, state } => self.own_task(task).unwrap().state = state,
            Effect::EndTask { task, ended, .. } => {
                let kept = self.own_task(task).unwrap();
                kept.ended = Some(ended);
                let followers = std::mem::take(&mut kept.followers);
                self.tell_followers(followers);
            }
            Effect::FindTask { lookup, id, .. } => {
                let kept = self.tasks.iter().find(|kept| kept.id == id);
                let found = match kept {
                    None => FoundTask::Nothing,
                    Some(kept) => match &kept.ended {
                        Some(ended) => FoundTask::Finished(ended.clone()),
                        None if kept.has_owner => FoundTask::Running(kept.state.clone()),
                        None => FoundTask::Lost(kept.state.clone()),
                    },
                };
                self.events.push_back(Event::TaskFound { lookup, found });
            }
            Effect::FollowTask { call, id } => {
                let mut all = self.tasks.iter_mut();
                match all.find(|kept| kept.id == id && kept.ended.is_none()) {
                    Some(kept) => kept.followers.push(call),
                    None => self.tell_followers(vec![call]),
                }
            }
            Effect::CancelTask { id, .. } => self.cancels.push(id),
            Effect::DropCall { call } => {
                let at = self
                    .tasks
                    .iter()
                    .position(|kept| kept.key == call && kept.has_owner);
                if let Some(at) = at {
                    let kept = self.tasks.remove(at);
                    self.tell_followers(kept.followers);
                }
            }
            _ => {}
        }
    }

    fn own_task(&mut self, task: CallId) -> Option<&mut TaskKept> {
        let mut all = self.tasks.iter_mut();
        all.find(|kept| kept.key == task && kept.has_owner)
    }

    fn tell_followers(&mut self, followers: Vec<CallId>) {
        let ended = |call| Event::FollowedCallEnded { call };
        self.events.extend(followers.into_iter().map(ended));
    }

    /// Stores the client's answer.
    pub(super) fn client_settled(&mut self, record: &str, outcome: &Outcome) {
        let content = outcome
            .answers()
            .map(|answers| answers.to_value().to_string());
        let kept = self.store.get_mut(record).unwrap();
        if kept.reply.is_none() && !kept.ended {
            kept.answer(reply_text(outcome.action(), content.as_deref()));
        }
    }

    /// Performs the effects that need not wait for the disk, like the gateway's session. Returns the effect if it does.
    pub(super) fn at_once(&mut self, effect: Effect) -> Option<Effect> {
        let noted = |world: &Self, id: &String| world.store[id].noted;
        let event = match effect {
            Effect::Record { question, asked }
                if !asked.outlives && self.left_over(&asked).is_none() =>
            {
                assert_eq!(asked.via, AskedVia::Client, "people may come later");
                let record = self.insert(question, asked, true);
                Event::Recorded {
                    question,
                    record,
                    link: None,
                    answered: false,
                    refused: false,
                }
            }
            Effect::Submit {
                question,
                record,
                outcome,
            } if noted(self, &record) => {
                self.client_settled(&record, &outcome);
                Event::Answered { question }
            }
            Effect::BeginDelivery {
                questions, records, ..
            } if records.iter().all(|id| noted(self, id)) => {
                self.delivery_begun(questions, &records)
            }
            other => return Some(other),
        };
        self.relay.handle(self.now, event);
        None
    }

    /// Writes everything that was left behind.
    pub(in crate::tests) fn flush(&mut self) {
        for kept in self.store.values_mut() {
            let taken = kept.deliveries > 0 || kept.ended;
            kept.stored = Some(Stored {
                // A noted answer is written with its delivery.
                reply: kept.reply.clone().filter(|_| taken),
                deliveries: kept.deliveries,
                ended: kept.ended,
            });
        }
    }

    /// Forgets, as after a kill, everything that was not written.
    pub(super) fn forget_unwritten(&mut self) {
        for kept in self.store.values_mut() {
            kept.key = None;
            if !kept.noted {
                continue;
            }
            match kept.stored.clone() {
                Some(stored) => {
                    kept.reply = stored.reply;
                    kept.deliveries = stored.deliveries;
                    kept.ended = stored.ended;
                }
                // It does not exist at all, and is not found.
                None => kept.ended = true,
            }
            kept.noted = false;
        }
    }

    pub(super) fn end(&mut self, record: &str) {
        let kept = self.store.get_mut(record).unwrap();
        // An answered question remains so, for the same call made again.
        kept.ended |= kept.reply.is_none();
        kept.key = None;
    }

    /// Lists a question of the client's dialog as one for people.
    pub(super) fn moved(&mut self, record: &str, why: NotAPerson, calls: Vec<CallSummary>) {
        self.flush();
        let kept = self.store.get_mut(record).unwrap();
        assert_eq!(kept.asked.via, AskedVia::Client, "a question moves once");
        kept.asked.via = AskedVia::People;
        kept.asked.candidates = calls.into_iter().skip(1).collect();
        kept.noted = false;
        kept.moved = Some(why);
    }

    /// Releases a question of the session.
    /// Records that this is the other of two gateways from now on.
    pub(super) fn is_the_other_gateway(&mut self) {
        for kept in self.store.values_mut() {
            kept.elsewhere = !kept.elsewhere;
        }
    }

    /// Lets the same call take over these questions from another gateway.
    pub(super) fn client_returned(&mut self, records: &[String]) {
        for record in records {
            let kept = self.store.get_mut(record).unwrap();
            if std::mem::take(&mut kept.elsewhere) {
                kept.key = None;
            }
        }
    }

    pub(super) fn leave(&mut self, record: &str) {
        self.store.get_mut(record).unwrap().key = None;
    }

    /// Returns `true` if no call waits for this question.
    pub(in crate::tests) fn is_left(&self, record: &str) -> bool {
        self.store[record].key.is_none()
    }

    /// Keeps these answers, which the server has refused, for the next call.
    pub(super) fn put_back(&mut self, records: &[String]) {
        for record in records {
            let kept = self.store.get_mut(record).unwrap();
            kept.deliveries -= 1;
            kept.told -= 1;
            kept.key = None;
        }
    }

    /// Answers as a person. Returns `false` if another action was first.
    pub(in crate::tests) fn answer(&mut self, record: &str, action: Action) -> bool {
        self.answer_with(record, action, ANSWER)
    }

    /// Answers a form as a person, with this content. Returns `false` if another action was first.
    pub(in crate::tests) fn answer_with(
        &mut self,
        record: &str,
        action: Action,
        content: &str,
    ) -> bool {
        let kept = self.store.get_mut(record).unwrap();
        if kept.reply.is_some() || kept.ended {
            return false;
        }
        let content = (action == Action::Accept
            && matches!(kept.asked.request, ElicitRequest::Form { .. }))
        .then_some(content);
        kept.answer(with_reasons(reply_text(action, content), &self.reasons));
        if let Some(question) = kept.key {
            self.events.push_back(Event::Answered { question });
        }
        true
    }

    pub(in crate::tests) fn open_to_people(&self) -> Vec<String> {
        let open = |(_, kept): &(&String, &Kept)| {
            kept.reply.is_none() && !kept.ended && kept.asked.via == AskedVia::People
        };
        let mut found: Vec<String> = self
            .store
            .iter()
            .filter(open)
            .map(|(id, _)| id.clone())
            .collect();
        found.sort();
        found
    }

    /// Returns the answers of people that wait to be delivered.
    pub(in crate::tests) fn undelivered(&self) -> Vec<&str> {
        let waits = |(_, kept): &(&String, &Kept)| {
            kept.reply.is_some() && !kept.ended && kept.deliveries == 0
        };
        let mut found: Vec<&str> = self
            .store
            .iter()
            .filter(waits)
            .map(|(id, _)| id.as_str())
            .collect();
        found.sort_unstable();
        found
    }

    /// Returns the same question of the same call that no session has waited for since a restart; an answered one
    /// first.
    fn left_over(&self, asked: &NewQuestion) -> Option<String> {
        let same = |kept: &Kept| {
            let digest =
                |asked: &NewQuestion| asked.call.as_ref().map(|calling| calling.digest.clone());
            let said = |asked: &NewQuestion| {
                let params = asked.request.to_raw_params(Revision::LATEST).unwrap();
                params.get().to_owned()
            };
            said(&kept.asked) == said(asked) && digest(&kept.asked) == digest(asked)
        };
        let free = |(_, kept): &(&String, &Kept)| {
            kept.key.is_none() && !kept.ended && kept.deliveries == 0 && same(kept)
        };
        let mut found: Vec<(bool, &String)> = self
            .store
            .iter()
            .filter(free)
            .map(|(id, kept)| (kept.reply.is_none(), id))
            .collect();
        found.sort();
        found.first().map(|(_, id)| (*id).clone())
    }

    pub(super) fn record(&mut self, question: AskId, asked: Box<NewQuestion>) {
        self.flush();
        if let Some(id) = self.left_over(&asked) {
            let kept = self.store.get_mut(&id).unwrap();
            kept.key = Some(question);
            self.events.push_back(Event::Recorded {
                question,
                record: id,
                link: Some("http://inbox/".to_owned()),
                answered: kept.reply.is_some(),
                refused: false,
            });
            return;
        }
        let record = self.insert(question, asked, false);
        self.events.push_back(Event::Recorded {
            question,
            record,
            link: Some("http://inbox/".to_owned()),
            answered: false,
            refused: false,
        });
    }

    fn insert(&mut self, question: AskId, asked: Box<NewQuestion>, noted: bool) -> String {
        self.next_record += 1;
        let id = format!("r{}", self.next_record);
        let kept = Kept::new(asked, question, noted);
        self.store.insert(id.clone(), kept);
        id
    }

    pub(super) fn take(&mut self, questions: Vec<AskId>, records: &[String]) {
        // A write with a waiter follows all writes that were left behind.
        self.flush();
        let event = self.delivery_begun(questions, records);
        self.events.push_back(event);
    }

    fn delivery_begun(&mut self, questions: Vec<AskId>, records: &[String]) -> Event {
        if !records.iter().all(|id| self.store[id].is_free()) {
            return Event::NoDelivery { questions };
        }
        if let Some(is_open) = self.unwritable {
            if is_open {
                for id in records {
                    self.store.get_mut(id).unwrap().reply = None;
                }
            }
            let questions = questions.into_iter().map(|question| (question, is_open));
            return Event::DeliveryNotWritten {
                questions: questions.collect(),
            };
        }
        let mut answers = Vec::new();
        for (question, id) in questions.into_iter().zip(records) {
            let kept = self.store.get_mut(id).unwrap();
            kept.deliveries += 1;
            kept.told += 1;
            answers.push(TakenAnswer {
                question,
                record: id.clone(),
                reply: kept.reply.clone().unwrap(),
            });
        }
        Event::DeliveryBegun { answers }
    }
}

fn reply_text(action: Action, content: Option<&str>) -> String {
    match content {
        Some(content) => format!(r#"{{"action":"{action}","content":{content}}}"#),
        None => format!(r#"{{"action":"{action}"}}"#),
    }
}
