import { useLayoutEffect } from "react";
import { createRoot } from "react-dom/client";
import Form from "@rjsf/core";
import validator from "@rjsf/validator-ajv8";
import { drawn, root, schema } from "./forms.js";

function App() {
  useLayoutEffect(drawn, []);
  return <Form schema={schema} validator={validator} />;
}

createRoot(root).render(<App />);
