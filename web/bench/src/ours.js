import "@mcp-elicit/form/define";
import { drawn, root, schema } from "./forms.js";

const element = document.createElement("mcp-elicitation");
element.origin = { server: "bench" };
element.request = { message: "Please fill this in.", requestedSchema: schema };
root.append(element);
drawn();
