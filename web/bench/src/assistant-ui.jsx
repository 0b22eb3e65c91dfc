// Size only: its parts draw inside assistant-ui's own runtime, with a server connected.
import { createRoot } from "react-dom/client";
import { McpElicitationPrimitive } from "@assistant-ui/react-mcp";

createRoot(document.querySelector("#root")).render(
  <McpElicitationPrimitive.Items>
    <McpElicitationPrimitive.Root>
      <McpElicitationPrimitive.Message />
      <McpElicitationPrimitive.Fields>{({ name }) => <input name={name} />}</McpElicitationPrimitive.Fields>
      <McpElicitationPrimitive.Error />
      <McpElicitationPrimitive.Accept />
      <McpElicitationPrimitive.Decline />
      <McpElicitationPrimitive.Cancel />
    </McpElicitationPrimitive.Root>
  </McpElicitationPrimitive.Items>,
);
