//! The page of approvals that apply for a while, with a button that ends one.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use mcp_elicit_forms::web::{self, GrantLine, Grants};
use mcp_elicit_policy::access::{self, AccessAction};
use mcp_elicit_record::RecordError;
use mcp_elicit_record::clock::system_time;
use mcp_elicit_record::grants::ApprovalGrant;

use super::directory::DirectoryNow;
use super::pages::{FORMS, FormBody, go, posted_form, value_of};
use super::request_session::Gate;
use crate::team_view;
use crate::viewer::InboxViewer;

/// The most approvals on the page.
const MOST: usize = 200;

/// Shows the approvals that the reader may see.
pub(super) async fn grants(
    State(gate): State<Arc<Gate>>,
    viewer: Option<Extension<InboxViewer>>,
    RawQuery(query): RawQuery,
) -> Response {
    let Some(Extension(viewer)) = viewer else {
        return go(&format!("{}/login?next=/grants", gate.site.outer_path()));
    };
    let Some(signed_in) = viewer.person() else {
        return StatusCode::FORBIDDEN.into_response();
    };
    let visible = match visible(&gate, &gate.people(), &viewer).await {
        Ok(visible) => visible,
        Err(fault) => return failed(&gate, &fault),
    };
    let has_ended = value_of(query.as_deref().unwrap_or_default(), "did").is_some();
    let page = Grants {
        name: signed_in.name.clone(),
        token: gate.site.form_token(&signed_in.session, FORMS),
        told: has_ended
            .then(|| "The approval is ended. Gateways follow within two seconds.".to_owned()),
        grants: visible.into_iter().map(|(_, line)| line).collect(),
    };
    web::grants(&gate.site, page)
}

/// Ends an approval.
pub(super) async fn end(
    State(gate): State<Arc<Gate>>,
    viewer: Option<Extension<InboxViewer>>,
    headers: HeaderMap,
    FormBody(body): FormBody,
) -> Response {
    let reader = viewer.as_ref().map(|Extension(viewer)| viewer.clone());
    let (signed_in, text) = match posted_form(&gate, viewer, &headers, &body) {
        Ok(posted) => posted,
        Err(response) => return *response,
    };
    let Some(reader) = reader else {
        return StatusCode::FORBIDDEN.into_response();
    };
    let id = value_of(&text, "grant").unwrap_or_default();
    let visible = match visible(&gate, &gate.people(), &reader).await {
        Ok(visible) => visible,
        Err(fault) => return failed(&gate, &fault),
    };
    let found = visible
        .into_iter()
        .find(|(_, line)| line.id == id && line.may_end);
    let Some((grant, _)) = found else {
        let line = "There is no such approval that you may end. It may have ended already.";
        return gate.notice(StatusCode::NOT_FOUND, "Nothing was ended", line);
    };
    match gate
        .record
        .end_grants(&[grant], &signed_in.actor().to_string())
        .await
    {
        Ok(()) => go(&format!("{}/grants?did=end", gate.site.path())),
        Err(fault) => failed(&gate, &fault),
    }
}

/// Returns the approvals that the viewer may see, the next to expire first.
async fn visible(
    gate: &Gate,
    people: &DirectoryNow,
    viewer: &InboxViewer,
) -> Result<Vec<(ApprovalGrant, GrantLine)>, RecordError> {
    let mut all = gate.record.grants().await?;
    all.sort_by_key(|grant| grant.until);
    let mut visible = Vec::new();
    for grant in all {
        if visible.len() == MOST {
            break;
        }
        let row = match &grant.question {
            Some(question) => gate.record.find(question).await?,
            None => None,
        };
        let standing = match &row {
            Some(row) => people.of(row).standing(viewer, row),
            None => people.role(viewer),
        };
        let may = |action| access::may(standing, action).is_ok();
        if !may(AccessAction::EndGrant) && !may(AccessAction::Audit) {
            continue;
        }
        let body = row.as_ref().map(|row| &*row.body);
        let caller = row.as_ref().and_then(|row| row.team.as_ref());
        let caller = caller.map(|team| team_view::caller_name(people, team));
        let line = GrantLine {
            id: grant.key.clone(),
            call: body
                .and_then(|body| body.target.clone())
                .unwrap_or_else(|| "a call whose question is no longer stored".to_owned()),
            question: row.as_ref().map(|row| row.id.clone()),
            server: body.map(|body| body.server.clone()),
            caller: caller.filter(|name| !name.is_empty()),
            rule: grant.rule.clone(),
            approved: system_time(grant.at),
            until: system_time(grant.until),
            may_end: may(AccessAction::EndGrant),
        };
        visible.push((grant, line));
    }
    Ok(visible)
}

fn failed(gate: &Gate, fault: &RecordError) -> Response {
    tracing::error!(%fault, "approvals cannot be read or ended");
    let line = "Approvals cannot be read or ended right now. Try again in a moment, or use `mcp-elicit grants` where the gateway runs.";
    gate.notice(StatusCode::SERVICE_UNAVAILABLE, "Not right now", line)
}
