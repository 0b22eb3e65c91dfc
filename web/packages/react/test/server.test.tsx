import { renderToString } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { createElement } from "react";
import { Elicitations, useElicitation } from "../src/index.js";

describe("on a server", () => {
  it("renders what is empty, and touches no document", () => {
    function App() {
      return createElement(Elicitations, { of: useElicitation(null), empty: "Nothing is asked." });
    }
    expect(renderToString(createElement(App))).toBe("Nothing is asked.");
  });
});
