//! The wrapper around any rmcp server, whose handlers may then ask.
//!
//! Every method of `ServerHandler` is forwarded explicitly, because a forgotten one would silently fall back to rmcp's
//! default. `clippy::missing_trait_methods` is denied on the implementation, so the build fails when rmcp's trait
//! grows. Three methods do more: the three requests that may need input according to the protocol (`tools/call`,
//! `prompts/get`, `resources/read`). The openings declare that all tools ask in every era.

#![expect(
    deprecated,
    reason = "what rmcp deprecates is still passed on, for the clients that use it"
)]

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_elicit_core::wire::ASKS_IN_EVERY_ERA;
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestParams, CompleteResult, CustomNotification, CustomRequest, CustomResult,
    DiscoverResult, GetPromptRequestParams, GetPromptResponse, GetSkillRequestParams,
    GetSkillResult, GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListSkillsResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ReadResourceDirectoryRequestParams, ReadResourceDirectoryResult,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{
    MaybeSendFuture, NotificationContext, RequestContext, RoleServer, SubscriptionContext,
};

use crate::panicked::answered;
use crate::serve::{self, CallTarget};
use crate::settings::{ServerSettings, SharedSettings};

/// Declares that the tools of this server ask in results as well as in sessions, so that clients and gateways need not
/// hold it in a session.
fn declare_every_era(capabilities: &mut ServerCapabilities) {
    let experimental = capabilities.experimental.get_or_insert_default();
    experimental
        .entry(ASKS_IN_EVERY_ERA.to_owned())
        .or_default();
}

/// A server that can be wrapped so that its handlers can ask. Every server implements it; it cannot be implemented
/// elsewhere.
///
/// ```
/// use mcp_elicit_server::{ElicitingExt, ServerSettings};
/// use rmcp::ServerHandler;
///
/// struct Calendar {
///     name: &'static str,
/// }
///
/// impl ServerHandler for Calendar {}
///
/// let server = Calendar { name: "calendar" }.eliciting(ServerSettings::default());
/// assert_eq!(server.inner().name, "calendar");
/// ```
pub trait ElicitingExt: ServerHandler + sealed::Sealed {
    /// Wraps this server: its tool, prompt and resource handlers can take an [`Elicit`](crate::Elicit).
    ///
    /// A stateless HTTP service builds a handler for each request: create the [`ServerSettings`] once, outside
    /// the factory, and clone them; otherwise the questions of one request cannot be answered on the next.
    ///
    /// Wrapping once is enough. If a server is wrapped twice, the outer wrapper asks with its settings, the inner one
    /// forwards, and the log says so. The log also warns of a server without a name, which people see as "rmcp".
    ///
    /// ```
    /// use mcp_elicit_server::{ElicitingExt, ServerSettings};
    /// # use rmcp::ServerHandler;
    /// # struct Calendar;
    /// # impl ServerHandler for Calendar {}
    ///
    /// // Once, outside of the factory of a stateless HTTP service.
    /// let settings = ServerSettings::default();
    /// let factory = move || Calendar.eliciting(settings.clone());
    /// # factory();
    /// ```
    fn eliciting(self, settings: ServerSettings) -> ElicitingServer<Self> {
        // A service may wrap a server for every request: the first one is enough.
        static WAS_CHECKED: AtomicBool = AtomicBool::new(false);
        if !WAS_CHECKED.swap(true, Ordering::Relaxed) {
            warn_of_default_name(&self.get_info().server_info.name);
        }
        ElicitingServer {
            inner: self,
            shared: settings.shared(),
        }
    }
}

impl<S: ServerHandler> ElicitingExt for S {}

/// Warns of a server without a name of its own: people see rmcp's.
fn warn_of_default_name(name: &str) {
    if name == Implementation::from_build_env().name {
        tracing::warn!(
            target: "mcp_elicit",
            "the server is shown to people as {name:?}: name it, with #[tool_handler(name = \"…\", version = \"…\")] or in get_info"
        );
    }
}

mod sealed {
    /// Seals [`ElicitingExt`](super::ElicitingExt), so that it can gain methods.
    pub trait Sealed {}

    impl<S: rmcp::ServerHandler> Sealed for S {}
}

/// A server whose handlers can ask. Made by [`ElicitingExt::eliciting`].
///
/// ```
/// use mcp_elicit_server::{ElicitingExt, ElicitingServer, ServerSettings};
/// # use rmcp::ServerHandler;
/// # struct Calendar;
/// # impl ServerHandler for Calendar {}
///
/// fn server() -> ElicitingServer<Calendar> {
///     Calendar.eliciting(ServerSettings::default())
/// }
/// # server();
/// ```
#[derive(Clone)]
pub struct ElicitingServer<S> {
    inner: S,
    shared: Arc<SharedSettings>,
}

impl<S> ElicitingServer<S> {
    /// Returns the wrapped server.
    ///
    /// ```
    /// use mcp_elicit_server::{ElicitingExt, ServerSettings};
    /// # use rmcp::ServerHandler;
    /// # struct Calendar { days: u16 }
    /// # impl ServerHandler for Calendar {}
    ///
    /// let server = Calendar { days: 365 }.eliciting(ServerSettings::default());
    /// assert_eq!(server.inner().days, 365);
    /// ```
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: ServerHandler> ServerHandler for ElicitingServer<S> {
    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + MaybeSendFuture + '_ {
        let asked = CallTarget::tool(&request);
        serve::serve(&self.shared, asked, request, context, |request, context| {
            answered(|| self.inner.call_tool(request, context))
        })
    }

    fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<GetPromptResponse, ErrorData>> + MaybeSendFuture + '_ {
        let asked = CallTarget::prompt(&request);
        serve::serve(&self.shared, asked, request, context, |request, context| {
            answered(|| self.inner.get_prompt(request, context))
        })
    }

    fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ReadResourceResponse, ErrorData>> + MaybeSendFuture + '_ {
        let asked = CallTarget::resource(&request);
        serve::serve(&self.shared, asked, request, context, |request, context| {
            answered(|| self.inner.read_resource(request, context))
        })
    }

    fn ping(
        &self,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<(), ErrorData>> + MaybeSendFuture + '_ {
        self.inner.ping(context)
    }

    fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<InitializeResult, ErrorData>> + MaybeSendFuture + '_ {
        let opened = self.inner.initialize(request, context);
        async move {
            let mut result = opened.await?;
            declare_every_era(&mut result.capabilities);
            Ok(result)
        }
    }

    fn negotiate_initialize(
        &self,
        request: &InitializeRequestParams,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.inner.negotiate_initialize(request)?;
        declare_every_era(&mut result.capabilities);
        Ok(result)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.inner.supported_protocol_versions()
    }

    fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<DiscoverResult, ErrorData>> + MaybeSendFuture + '_ {
        let discovered = self.inner.discover(context);
        async move {
            let mut result = discovered.await?;
            declare_every_era(&mut result.capabilities);
            Ok(result)
        }
    }

    fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CompleteResult, ErrorData>> + MaybeSendFuture + '_ {
        answered(|| self.inner.complete(request, context))
    }

    fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<(), ErrorData>> + MaybeSendFuture + '_ {
        answered(|| self.inner.set_level(request, context))
    }

    fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListPromptsResult, ErrorData>> + MaybeSendFuture + '_ {
        answered(|| self.inner.list_prompts(request, context))
    }

    fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListResourcesResult, ErrorData>> + MaybeSendFuture + '_ {
        answered(|| self.inner.list_resources(request, context))
    }

    fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListResourceTemplatesResult, ErrorData>> + MaybeSendFuture + '_
    {
        answered(|| self.inner.list_resource_templates(request, context))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.inner.accepted_subscription_filter(requested)
    }

    fn listen(
        &self,
        context: SubscriptionContext,
    ) -> impl Future<Output = Result<(), ErrorData>> + MaybeSendFuture + '_ {
        self.inner.listen(context)
    }

    fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<(), ErrorData>> + MaybeSendFuture + '_ {
        answered(|| self.inner.subscribe(request, context))
    }

    fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<(), ErrorData>> + MaybeSendFuture + '_ {
        answered(|| self.inner.unsubscribe(request, context))
    }

    fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + MaybeSendFuture + '_ {
        answered(|| self.inner.list_tools(request, context))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.inner.get_tool(name)
    }

    fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CustomResult, ErrorData>> + MaybeSendFuture + '_ {
        // Only requests that rmcp could not read as one of these come here under its name.
        let unreadable = matches!(
            request.method.as_str(),
            "tools/call" | "prompts/get" | "resources/read"
        );
        async move {
            if unreadable {
                let why = format!("the params of {} cannot be read", request.method);
                return Err(ErrorData::invalid_params(why, None));
            }
            answered(|| self.inner.on_custom_request(request, context)).await
        }
    }

    fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) -> impl Future<Output = ()> + MaybeSendFuture + '_ {
        self.inner.on_cancelled(notification, context)
    }

    fn on_progress(
        &self,
        notification: ProgressNotificationParam,
        context: NotificationContext<RoleServer>,
    ) -> impl Future<Output = ()> + MaybeSendFuture + '_ {
        self.inner.on_progress(notification, context)
    }

    fn on_initialized(
        &self,
        context: NotificationContext<RoleServer>,
    ) -> impl Future<Output = ()> + MaybeSendFuture + '_ {
        self.inner.on_initialized(context)
    }

    fn on_roots_list_changed(
        &self,
        context: NotificationContext<RoleServer>,
    ) -> impl Future<Output = ()> + MaybeSendFuture + '_ {
        self.inner.on_roots_list_changed(context)
    }

    fn on_custom_notification(
        &self,
        notification: CustomNotification,
        context: NotificationContext<RoleServer>,
    ) -> impl Future<Output = ()> + MaybeSendFuture + '_ {
        self.inner.on_custom_notification(notification, context)
    }

    fn get_info(&self) -> ServerConfig {
        self.inner.get_info()
    }

    fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<GetTaskResult, ErrorData>> + MaybeSendFuture + '_ {
        answered(|| self.inner.get_task(request, context))
    }

    fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<(), ErrorData>> + MaybeSendFuture + '_ {
        answered(|| self.inner.update_task(request, context))
    }

    fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<(), ErrorData>> + MaybeSendFuture + '_ {
        answered(|| self.inner.cancel_task(request, context))
    }

    fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListSkillsResult, ErrorData>> + MaybeSendFuture + '_ {
        answered(|| self.inner.list_skills(request, context))
    }

    fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<GetSkillResult, ErrorData>> + MaybeSendFuture + '_ {
        answered(|| self.inner.get_skill(request, context))
    }

    fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ReadResourceDirectoryResult, ErrorData>> + MaybeSendFuture + '_
    {
        answered(|| self.inner.read_resource_directory(request, context))
    }
}
