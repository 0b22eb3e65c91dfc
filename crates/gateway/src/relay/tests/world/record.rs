//! The record of the simulator: what the gateway's book promises, and what its checks look at.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::wire::{Action, Request, Revision};

use super::{ANSWER, World};
use crate::relay::{Asked, Event, Place, QuestionKey};

/// One record of the store.
pub(in crate::relay::tests) struct Kept {
    pub(in crate::relay::tests) asked: Box<Asked>,
    pub(in crate::relay::tests) key: Option<QuestionKey>,
    pub(in crate::relay::tests) reply: Option<String>,
    pub(in crate::relay::tests) deliveries: u32,
    pub(in crate::relay::tests) ended: bool,
}

impl World {
    /// The client's answer comes to the record, which says that the question is settled, by whomever.
    pub(super) fn client_settled(
        &mut self,
        question: QuestionKey,
        record: &str,
        outcome: &Outcome,
    ) {
        let content = outcome
            .answers()
            .map(|answers| answers.to_value().to_string());
        let kept = self.store.get_mut(record).unwrap();
        if kept.reply.is_none() && !kept.ended {
            kept.reply = Some(reply_text(outcome.action(), content.as_deref()));
        }
        self.events.push_back(Event::Settled { question });
    }

    pub(super) fn end(&mut self, record: &str) {
        let kept = self.store.get_mut(record).unwrap();
        kept.ended = true;
        kept.key = None;
    }

    /// A person answers at the desk; `false` when somebody was first.
    pub(in crate::relay::tests) fn answer(&mut self, record: &str, action: Action) -> bool {
        let kept = self.store.get_mut(record).unwrap();
        if kept.reply.is_some() || kept.ended {
            return false;
        }
        let content = (action == Action::Accept
            && matches!(kept.asked.request, Request::Form { .. }))
        .then_some(ANSWER);
        kept.reply = Some(reply_text(action, content));
        if let Some(question) = kept.key {
            self.events.push_back(Event::Settled { question });
        }
        true
    }

    pub(in crate::relay::tests) fn open_on_desk(&self) -> Vec<String> {
        let open = |(_, kept): &(&String, &Kept)| {
            kept.reply.is_none() && !kept.ended && kept.asked.place == Place::Desk
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

    /// Answers that people gave and that wait to be delivered.
    pub(in crate::relay::tests) fn undelivered(&self) -> Vec<&str> {
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

    /// The same question of the same call, which nobody waits for since a restart; an answered one first.
    fn left_over(&self, asked: &Asked) -> Option<String> {
        let same = |kept: &Kept| {
            let digest =
                |asked: &Asked| asked.calling.as_ref().map(|calling| calling.digest.clone());
            let said = |asked: &Asked| {
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

    pub(super) fn record(&mut self, question: QuestionKey, asked: Box<Asked>) {
        if let Some(id) = self.left_over(&asked) {
            let kept = self.store.get_mut(&id).unwrap();
            kept.key = Some(question);
            self.events.push_back(Event::Recorded {
                question,
                record: id,
                link: Some("http://inbox/".to_owned()),
                answered: kept.reply.is_some(),
            });
            return;
        }
        self.next_record += 1;
        let id = format!("r{}", self.next_record);
        self.store.insert(
            id.clone(),
            Kept {
                asked,
                key: Some(question),
                reply: None,
                deliveries: 0,
                ended: false,
            },
        );
        self.events.push_back(Event::Recorded {
            question,
            record: id,
            link: Some("http://inbox/".to_owned()),
            answered: false,
        });
    }

    pub(super) fn take(&mut self, questions: Vec<QuestionKey>, records: &[String]) {
        let free = records.iter().all(|id| {
            self.store[id].reply.is_some()
                && self.store[id].deliveries == 0
                && !self.store[id].ended
        });
        if !free {
            self.events.push_back(Event::NotTaken { questions });
            return;
        }
        let mut replies = Vec::new();
        for (question, id) in questions.into_iter().zip(records) {
            let kept = self.store.get_mut(id).unwrap();
            kept.deliveries += 1;
            replies.push((question, kept.reply.clone().unwrap()));
        }
        self.events.push_back(Event::Taken { replies });
    }
}

fn reply_text(action: Action, content: Option<&str>) -> String {
    match content {
        Some(content) => format!(r#"{{"action":"{action}","content":{content}}}"#),
        None => format!(r#"{{"action":"{action}"}}"#),
    }
}
