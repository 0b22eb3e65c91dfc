//! The openings of clients of either era. The client's own opening goes to the server first, with the capability that
//! the gateway adds.

use super::negotiation::with_declared;
use super::{Contact, Server};
use crate::ClientFrame;
use mcp_elicit_core::wire::{Id, Meta, Revision, members, message, meta, method};
use serde_json::value::RawValue;

use super::probe::{EraProbe, Opening, ProbeRequest};
use crate::frame_edit::{self, ErrorResponse};
use crate::parts::effect_queue::EffectQueue;
use crate::{Audience, ClientForward, Relay, Timer, Timestamp};
use mcp_elicit_core::wire::frame::{Frame, FrameIndex, FramePart};

impl Relay {
    /// Handles the opening of a session by the client.
    pub(crate) fn client_initializes(&mut self, frame: ClientFrame<'_>) -> ClientForward {
        let Some((id, params)) = opening(*frame) else {
            return self.effects.reject(
                frame,
                &ErrorResponse::new(-32602, "`initialize` needs params"),
            );
        };
        let asked = string_member(params, "protocolVersion").unwrap_or_default();
        let capabilities = members::member(params, "capabilities").map_or("{}", RawValue::get);
        let spoken = asked
            .parse()
            .unwrap_or(Revision::LATEST_PUSHED)
            .min(Revision::LATEST_PUSHED);
        self.client.open_session(params, spoken);
        let audience = self.settings.answer_with;
        let opening = Opening::Initialize {
            stream: frame.stream(),
            id: id.clone(),
            revision: asked,
        };
        match self.server.contact() {
            Contact::New => {}
            Contact::Known => {
                self.answer_opening(opening);
                return ClientForward::Handled;
            }
            Contact::Probing => return self.wait_for_era(frame),
            Contact::Gone => return self.effects.reject(frame, &self.server_ended()),
        }
        let other = self.other_id_at_server(&id);
        let is_own = other.is_some();
        let id = other.unwrap_or(id);
        let probe = EraProbe::new(id.clone(), opening);
        if spoken < Revision::LATEST_PUSHED {
            // The server's own revision determines its questions; the gateway handles those that the client's
            // revision cannot express.
            self.server = Server::probing(probe.with_older(spoken, params.to_owned()));
            let newest = initialize_at(audience, &id, params, Revision::LATEST_PUSHED);
            self.opening_ids.note(id);
            self.effects.tell_server(newest, None);
            return ClientForward::Handled;
        }
        self.server = Server::probing(probe);
        if is_own {
            let same = initialize_at(audience, &id, params, spoken);
            self.effects.tell_server(same, None);
            return ClientForward::Handled;
        }
        self.opening_ids.note(id);
        let capabilities = with_declared(audience, capabilities, spoken);
        let changed = capabilities.and_then(|value| {
            let all = members::Members::read(params, "params").ok()?;
            Some(all.with("capabilities", Some(&value)))
        });
        self.effects.forward_opening(*frame, changed.as_deref())
    }

    /// Handles the client's request for the server's revisions.
    pub(crate) fn client_discovers(&mut self, frame: ClientFrame<'_>) -> ClientForward {
        let Some((id, params)) = opening(*frame) else {
            return self.effects.reject(
                frame,
                &ErrorResponse::new(-32602, "`server/discover` needs params"),
            );
        };
        self.client.learn_from_discover(*frame);
        let opening = Opening::Discover {
            stream: frame.stream(),
            id: id.clone(),
        };
        match self.server.contact() {
            Contact::New => {}
            Contact::Known if self.server.answers_discover() => {
                return self.route(frame, method::DISCOVER);
            }
            Contact::Known => {
                self.answer_opening(opening);
                return ClientForward::Handled;
            }
            Contact::Probing => return self.wait_for_era(frame),
            Contact::Gone => return self.effects.reject(frame, &self.server_ended()),
        }
        if let Some(own) = self.other_id_at_server(&id) {
            let probe = EraProbe::new(own.clone(), opening);
            self.send_probe(frame.at(), probe, &own, ProbeRequest::Discover);
            return ClientForward::Handled;
        }
        self.opening_ids.note(id.clone());
        let meta = Meta::from_params(Some(params)).ok();
        let version = meta.as_ref().and_then(Meta::protocol_version);
        let names_revision = version.as_deref() == Some(Revision::V2026_07_28.as_str());
        let probe = EraProbe::new(id, opening).with_client_params(names_revision);
        self.server = Server::probing(probe);
        self.timers
            .set(frame.at().after(self.settings.probe), Timer::Probe);
        let capabilities = meta.and_then(|meta| meta.client_capabilities());
        let capabilities = capabilities.map_or("{}", RawValue::get);
        let audience = self.settings.answer_with;
        let changed = with_declared(audience, capabilities, Revision::V2026_07_28);
        let changed = changed.and_then(|value| {
            meta::with(Some(params), meta::CLIENT_CAPABILITIES, Some(&value)).ok()
        });
        self.effects.forward_opening(*frame, changed.as_deref())
    }

    pub(crate) fn flush_waiting(&mut self, now: Timestamp) {
        if self.server.revision().is_none() {
            return;
        }
        for (stream, waited) in self.early_requests.take() {
            if let ClientForward::AsIs(call) = self.client_frame(now, stream, &waited) {
                self.effects
                    .tell_server(String::from_utf8_lossy(&waited).into_owned(), call);
            }
        }
    }

    pub(crate) fn reject_waiting(&mut self, why: &str) {
        let refusal =
            ErrorResponse::new(-32603, format!("the server {} {why}", self.shown_server()));
        for (stream, waited) in self.early_requests.take() {
            let index = FrameIndex::at(&waited);
            if let Some(frame) = index.as_ref().and_then(|index| Frame::new(&waited, index)) {
                self.effects.reject_on(stream, frame, &refusal);
            }
        }
    }

    pub(crate) fn server_ended(&self) -> ErrorResponse {
        ErrorResponse::new(
            -32603,
            format!("the server {} has ended", self.shown_server()),
        )
    }
}

fn opening(frame: Frame<'_>) -> Option<(Id, &RawValue)> {
    let id = frame.id()?;
    Some((id, frame.params()?))
}

fn string_member(object: &RawValue, name: &str) -> Option<String> {
    members::member(object, name)
        .and_then(members::text)
        .map(std::borrow::Cow::into_owned)
}

impl EffectQueue {
    /// Forwards an opening, with these params in place of the client's if there are any.
    fn forward_opening(&mut self, frame: Frame<'_>, params: Option<&RawValue>) -> ClientForward {
        match params.zip(frame.range(FramePart::Params)) {
            Some((params, range)) => {
                self.tell_server(frame_edit::spliced(frame.text(), range, params.get()), None);
                ClientForward::Handled
            }
            None => ClientForward::AsIs(None),
        }
    }
}

/// Returns the client's `initialize` at this revision, with the capability that the gateway adds for this audience.
pub(super) fn initialize_at(
    audience: Audience,
    id: &Id,
    params: &RawValue,
    revision: Revision,
) -> String {
    let capabilities = members::member(params, "capabilities").map_or("{}", RawValue::get);
    let mut params = params.to_owned();
    let revised = members::raw_text(revision.as_str());
    let declared = with_declared(audience, capabilities, revision);
    for (name, value) in [
        ("protocolVersion", Some(revised)),
        ("capabilities", declared),
    ] {
        if let (Some(value), Ok(all)) = (value, members::Members::read(&params, "params")) {
            params = all.with(name, Some(&value));
        }
    }
    message::request(id, method::INITIALIZE, Some(&params))
}
