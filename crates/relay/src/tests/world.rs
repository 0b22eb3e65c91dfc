//! The world around a relay: peers as values, a record that counts deliveries, and a clock that only this file changes.

mod client;
mod record;
mod server;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::question::ProofNumber;
use mcp_elicit_core::wire::{Action, Capability, Revision};

use crate::{
    AccessNumber, ClientForward, Effect, Event, Relay, RelaySettings, ServerForward, StateSeal,
    StreamId, Timestamp,
};
use client::Client;
use record::{Kept, TaskKept};
pub(super) use server::Asks;
use server::Peer;

pub(super) const ANSWER: &str = r#"{"name":"Ada","age":36}"#;

/// Returns the seal of states that outlives a restart.
pub(super) fn seal() -> StateSeal {
    StateSeal::new(&[7; 32], "server", "caller")
}

pub(super) struct World {
    pub(super) relay: Relay,
    pub(super) now: Timestamp,
    pub(super) server: Peer,
    pub(super) client: Client,
    pub(super) store: HashMap<String, Kept>,
    pub(super) to_client: VecDeque<(StreamId, String)>,
    pub(super) to_server: VecDeque<String>,
    /// Pending events of the record, if it is slow.
    pub(super) events: VecDeque<Event>,
    /// The action with which people answer immediately, if they do.
    pub(super) people: Option<Action>,
    /// The reasons in people's replies.
    pub(super) reasons: Vec<String>,
    /// While no delivery can be written: `Some(true)` if its person is told so, and the question is open again.
    pub(super) unwritable: Option<bool>,
    /// Set if requests for the server's tools get lost, so that a test which plays the server does not see them.
    drops_tool_listings: bool,
    next_record: u64,
    /// The tasks in the record.
    pub(super) tasks: Vec<TaskKept>,
    /// The tasks of other sessions that were cancelled here.
    pub(super) cancels: Vec<String>,
    /// The proof of the client's requests.
    pub(super) proof: ProofNumber,
    /// The access token of the client's requests.
    pub(super) access: AccessNumber,
    /// The access tokens of the calls that waited for the last answers.
    pub(super) delivers_for: Vec<AccessNumber>,
    pub(super) restarts: u32,
    /// The evidence in the audit that acts, which counted, may be no person's.
    pub(super) doubts: Vec<(String, NotAPerson)>,
    /// Questions in the audit that nobody could be shown: the messages and the reasons.
    pub(super) not_shown: Vec<(String, String)>,
    /// The addresses with which the record has calls that no client waits for.
    pub(super) kept_links: Vec<Option<String>>,
}

impl World {
    pub(super) fn new(
        client: Revision,
        capability: Capability,
        server: Revision,
        asks: Asks,
    ) -> Self {
        Self::with(RelaySettings::default(), client, capability, server, asks)
    }

    pub(super) fn with(
        settings: RelaySettings,
        client: Revision,
        capability: Capability,
        server: Revision,
        asks: Asks,
    ) -> Self {
        Self {
            relay: Relay::new(settings, seal()),
            now: Timestamp::from_millis(1_000_000),
            server: Peer::new(server, asks),
            client: Client::new(client, capability),
            store: HashMap::new(),
            to_client: VecDeque::new(),
            to_server: VecDeque::new(),
            events: VecDeque::new(),
            people: Some(Action::Accept),
            reasons: Vec::new(),
            unwritable: None,
            drops_tool_listings: false,
            next_record: 0,
            tasks: Vec::new(),
            cancels: Vec::new(),
            proof: ProofNumber::default(),
            access: AccessNumber::default(),
            delivers_for: Vec::new(),
            restarts: 0,
            doubts: Vec::new(),
            not_shown: Vec::new(),
            kept_links: Vec::new(),
        }
    }

    /// Opens the session and runs until nothing is pending.
    pub(super) fn opened(mut self) -> Self {
        let open = self.client.open();
        self.client_sends(&open);
        self.settle();
        assert!(
            self.client.opened.is_some(),
            "the opening was never answered"
        );
        self
    }

    /// Returns an open session of 2025-11-25 whose client cannot be asked, in which the test plays the server and
    /// people.
    pub(super) fn with_silent_server(settings: RelaySettings) -> Self {
        let revision = Revision::V2025_11_25;
        let mut world = Self::with(
            settings,
            revision,
            Capability::NONE,
            revision,
            Asks::Nothing,
        )
        .opened();
        world.people = None;
        world.drop_tool_listings();
        world
    }

    /// From now on, requests for the server's tools get lost.
    pub(super) fn drop_tool_listings(&mut self) {
        self.drops_tool_listings = true;
    }

    pub(super) fn call(&mut self) -> u64 {
        let (id, frame) = self.client.call();
        self.client_sends(&frame);
        id
    }

    pub(super) fn client_sends(&mut self, frame: &str) {
        let stream = StreamId::of_request(0, self.proof).with_access(self.access);
        if let ClientForward::AsIs(_) = self.relay.client_frame(self.now, stream, frame.as_bytes())
        {
            self.to_server.push_back(frame.to_owned());
        }
        self.effects();
    }

    pub(super) fn server_sends(&mut self, frame: &str) {
        if let ServerForward::AsIs { stream, .. } =
            self.relay.server_frame(self.now, None, frame.as_bytes())
        {
            self.to_client.push_back((stream, frame.to_owned()));
        }
        self.effects();
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.relay.handle(self.now, event);
        self.effects();
    }

    /// Lets the record do its work.
    pub(super) fn run_record(&mut self) {
        while let Some(event) = self.events.pop_front() {
            self.tell(event);
        }
    }

    pub(super) fn pass_time(&mut self, by: Duration) {
        self.now = self.now.after(by);
        self.relay.tick(self.now);
        self.effects();
    }

    pub(super) fn effects(&mut self) {
        while let Some(effect) = self.relay.effect() {
            let Some(effect) = self.at_once(effect) else {
                continue;
            };
            match effect {
                Effect::ToClient { stream, frame, .. } => self.to_client.push_back((stream, frame)),
                Effect::ToServer {
                    frame, delivery, ..
                } => {
                    if !self.drops_tool_listings || !frame.contains(r#""method":"tools/list""#) {
                        self.to_server.push_back(frame);
                    }
                    let accepted = delivery.map(Event::Accepted);
                    self.events.extend(accepted);
                }
                Effect::Record { question, asked } => self.record(question, asked),
                Effect::Submit {
                    question,
                    record,
                    outcome,
                } => {
                    self.client_settled(&record, &outcome);
                    self.events.push_back(Event::Answered { question });
                }
                Effect::BeginDelivery {
                    questions,
                    records,
                    accesses,
                } => {
                    self.delivers_for = accesses;
                    self.take(questions, &records);
                }
                Effect::MoveToPeople {
                    record, why, calls, ..
                } => self.moved(&record, why, calls),
                Effect::DoubtAct { record, why } => self.doubts.push((record, why)),
                Effect::NotShown { message, why, .. } => self.not_shown.push((message, why)),
                Effect::End { record, .. } => self.end(&record),
                Effect::BeginTask { .. }
                | Effect::UpdateTask { .. }
                | Effect::EndTask { .. }
                | Effect::FindTask { .. }
                | Effect::FollowTask { .. }
                | Effect::CancelTask { .. }
                | Effect::DropCall { .. } => self.task_effect(effect),
                Effect::KeepCall { link, .. } => self.kept_links.push(link),
                // A single session shares no calls with another.
                Effect::FindCall { .. }
                | Effect::KeepResult { .. }
                | Effect::FollowCall { .. }
                | Effect::Delivered { .. }
                | Effect::InDoubt { .. }
                | Effect::Abandon { .. }
                | Effect::LeaveSession => {}
                Effect::Leave { record } => self.leave(&record),
                Effect::ClientReturned { records } => self.client_returned(&records),
                Effect::DeliveryRefused { records, .. } => self.put_back(&records),
                Effect::Restart => {
                    self.restarts += 1;
                    self.events.push_back(Event::Restarted);
                }
            }
        }
        assert!(
            !self.relay.holds_up_a_call(self.now),
            "a call waits that could go to the server"
        );
        if self.relay.calls.len() < 100 {
            self.relay.calls.check();
        }
    }

    /// Kills the gateway and its server and starts them again. Only the record remains; callers must open a session and
    /// call again.
    pub(super) fn restart(&mut self, settings: RelaySettings) {
        self.relay = Relay::new(settings, seal());
        for task in &mut self.tasks {
            task.has_owner = false;
        }
        self.to_client.clear();
        self.to_server.clear();
        self.events.clear();
        self.forget_unwritten();
        self.server.restart();
        self.client.restart();
        let open = self.client.open();
        self.client_sends(&open);
        self.settle();
    }

    /// Goes on at another gateway of the same record, with a process of its own of the server. Returns the relay of the first,
    /// which runs on.
    pub(super) fn other_gateway(&mut self, settings: RelaySettings) -> Relay {
        let mut first = Relay::new(settings, seal());
        self.swap_gateways(&mut first);
        self.server.restart();
        self.server.seen.clear();
        let open = self.client.open();
        self.client_sends(&open);
        self.settle();
        first
    }

    /// Goes on at the other gateway, and keeps the relay of this one.
    pub(super) fn swap_gateways(&mut self, other: &mut Relay) {
        std::mem::swap(&mut self.relay, other);
        self.is_the_other_gateway();
    }

    /// Performs one pending step. Returns `false` if there is none.
    pub(super) fn step(&mut self, which: usize) -> bool {
        let ways = [
            !self.to_client.is_empty(),
            !self.to_server.is_empty(),
            !self.events.is_empty(),
        ];
        let ready: Vec<usize> = (0..3).filter(|at| ways[*at]).collect();
        if ready.is_empty() {
            return false;
        }
        match ready[which % ready.len()] {
            0 => {
                let (_, frame) = self.to_client.pop_front().unwrap();
                for sent in self.client.receive(&frame) {
                    self.client_sends(&sent);
                }
            }
            1 => {
                let frame = self.to_server.pop_front().unwrap();
                for sent in self.server.receive(&frame) {
                    self.server_sends(&sent);
                }
            }
            _ => {
                let event = self.events.pop_front().unwrap();
                self.tell(event);
            }
        }
        true
    }

    /// Runs until nothing is pending; people answer their questions.
    pub(super) fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.step(0) {
                continue;
            }
            let Some(action) = self.people else { return };
            let Some(record) = self.open_to_people().first().cloned() else {
                return;
            };
            self.answer(&record, action);
        }
        panic!("the world does not come to rest");
    }
}
