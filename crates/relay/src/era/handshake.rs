//! The openings of clients of either era. The client's own opening goes to the server with the capability that the
//! gateway adds, if the server is addressed in its era.

use super::negotiation::with_declared;
use super::probe::EraOrder;
use super::{Contact, Server};
use crate::ClientFrame;
use mcp_elicit_core::wire::{Id, Meta, Revision, SessionVersion, members, message, meta, method};
use serde_json::value::RawValue;

use super::probe::{ClientDiscover, EraProbe, Opening, ProbeRequest};
use crate::frame_edit::{self, ErrorResponse};
use crate::parts::effect_queue::EffectQueue;
use crate::{Audience, ClientForward, Relay, Timestamp};
use mcp_elicit_core::wire::frame::{Frame, FramePart};

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
        let version = SessionVersion::for_client(&asked);
        let capabilities = members::member(params, "capabilities").map_or("{}", RawValue::get);
        self.client.open_session(params, version);
        let audience = self.settings.answer_with;
        let opening = Opening::Initialize {
            stream: frame.stream(),
            id: id.clone(),
            revision: asked.clone(),
        };
        match self.server.contact() {
            Contact::New | Contact::Unusable => {}
            Contact::Known => {
                self.answer_opening(opening);
                return ClientForward::Handled;
            }
            Contact::Probing => return self.wait_for_era(frame),
            Contact::Gone => return self.effects.reject(frame, &self.server_ended()),
        }
        let mut probe = EraProbe::new(EraOrder::of(&self.settings), opening);
        if probe.first() == ProbeRequest::Discover {
            self.send_probe(frame.at(), probe, ProbeRequest::Discover);
            return ClientForward::Handled;
        }
        let other = self.other_id_at_server(&id);
        let is_own = other.is_some();
        let id = other.unwrap_or(id);
        let requested = self.settings.session_revision().as_str();
        probe.sent_initialize(id.clone());
        if asked != requested {
            // The server's own revision determines its questions; the gateway handles those that the client's
            // version cannot express. A server that does not negotiate is asked for the client's version.
            if self.settings.revision.is_none() && version.as_str() != requested {
                probe = probe.with_older(version.as_str().to_owned(), params.to_owned());
            }
            self.server = Server::probing(probe);
            let newest = initialize_at(audience, &id, params, requested);
            self.opening_ids.note(id);
            self.effects.tell_server(newest, None);
            return ClientForward::Handled;
        }
        self.server = Server::probing(probe);
        self.opening_ids.note(id.clone());
        if is_own {
            let same = initialize_at(audience, &id, params, requested);
            self.effects.tell_server(same, None);
            return ClientForward::Handled;
        }
        let capabilities = with_declared(audience, capabilities, self.settings.session_revision());
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
            Contact::New | Contact::Unusable => {}
            Contact::Known
                if self.server.answers_discover() && !self.task_support().adds_extension() =>
            {
                return self.route(frame, method::DISCOVER);
            }
            Contact::Known => {
                self.answer_opening(opening);
                return ClientForward::Handled;
            }
            Contact::Probing => return self.wait_for_era(frame),
            Contact::Gone => return self.effects.reject(frame, &self.server_ended()),
        }
        let meta = Meta::from_params(Some(params)).ok();
        let version = meta.as_ref().and_then(Meta::protocol_version);
        let names_revision = version.as_deref() == Some(Revision::V2026_07_28.as_str());
        let capabilities = meta.and_then(|meta| meta.client_capabilities());
        let capabilities = capabilities.map_or("{}", RawValue::get);
        let audience = self.settings.answer_with;
        let changed = with_declared(audience, capabilities, Revision::V2026_07_28);
        let changed = changed.and_then(|value| {
            meta::with(Some(params), meta::CLIENT_CAPABILITIES, Some(&value)).ok()
        });
        let sent = match changed.zip(frame.range(FramePart::Params)) {
            Some((params, range)) => frame_edit::spliced(frame.text(), range, params.get()),
            None => frame.text().to_owned(),
        };
        let own = ClientDiscover {
            id,
            frame: sent,
            names_revision,
        };
        let probe = EraProbe::new(EraOrder::of(&self.settings), opening).with_discover(own);
        let first = probe.first();
        self.send_probe(frame.at(), probe, first);
        ClientForward::Handled
    }

    /// Handles the requests that waited for the server's era, once it is known.
    pub(crate) fn flush_waiting(&mut self, now: Timestamp) {
        if self.server.revision().is_none() {
            return;
        }
        for (stream, waited) in self.early_requests.take() {
            let frame = ClientFrame::of_indexed(&waited, stream, now);
            if let ClientForward::AsIs(call) = self.client_message(frame) {
                self.effects.tell_server(waited.into_text(), call);
            }
        }
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

/// Returns the client's `initialize` at this version, with the capability that the gateway adds for this audience.
pub(super) fn initialize_at(
    audience: Audience,
    id: &Id,
    params: &RawValue,
    version: &str,
) -> String {
    let revision = version.parse().unwrap_or(Revision::V2025_06_18);
    let capabilities = members::member(params, "capabilities").map_or("{}", RawValue::get);
    let mut params = params.to_owned();
    let revised = members::raw_text(version);
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
