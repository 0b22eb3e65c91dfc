"""okta-mcp-server as published; only the sign-in at Okta is left out, which has no network here. Its API is at a closed port."""

import os

os.environ |= {"OKTA_ORG_URL": "https://127.0.0.1:1", "OKTA_CLIENT_ID": "none", "OKTA_SCOPES": "okta.groups.manage"}

import okta_mcp_server.utils.auth.auth_manager as auth  # noqa: E402 - it reads the environment
import okta_mcp_server.utils.scope_guard as scopes  # noqa: E402


async def signed_in(_manager, *_args, **_kwargs):
    return True


auth.OktaAuthManager.__init__ = lambda self, *_args, **_kwargs: setattr(self, "org_url", "https://127.0.0.1:1")
auth.OktaAuthManager.is_cached_token_valid = lambda _manager: True
auth.OktaAuthManager.is_valid_token = signed_in
scopes.get_configured_scopes = lambda _manager: None
scopes._extract_manager = lambda *_args: None

import okta_mcp_server.server as server  # noqa: E402

server.prune_tools_by_scope = lambda *_args, **_kwargs: None
import okta_mcp_server.tools.groups.groups  # noqa: E402, F401 - it registers its tools

server.mcp.run()
