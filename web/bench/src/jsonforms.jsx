import { useLayoutEffect } from "react";
import { createRoot } from "react-dom/client";
import { JsonForms } from "@jsonforms/react";
import { vanillaCells, vanillaRenderers } from "@jsonforms/vanilla-renderers";
import { drawn, root, schema } from "./forms.js";

function App() {
  useLayoutEffect(drawn, []);
  return <JsonForms schema={schema} data={{}} renderers={vanillaRenderers} cells={vanillaCells} />;
}

createRoot(root).render(<App />);
