"""FastMCP: one tool with an argument, whose work is counted for each order. It pushes its question. `refund_server.py EFFECTS`"""

import json
import sys

from fastmcp import Context, FastMCP
from pydantic import BaseModel

server = FastMCP("refunds")


class Refund(BaseModel):
    reason: str


@server.tool(name="refund")
async def refund(order: str, ctx: Context) -> str:
    """Refunds an order."""
    outcome = await ctx.elicit(f"Refund order {order}?", response_type=Refund)
    if outcome.action != "accept":
        return f"not refunded: {outcome.action}"
    with open(sys.argv[1], "a") as effects:
        print(json.dumps({"order": order, "reason": outcome.data.reason}), file=effects)
    return f"refunded {order}: {outcome.data.reason}"


server.run(show_banner=False)
