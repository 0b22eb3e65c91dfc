import { expect, test } from "vitest";
import { parseLeniently } from "../src/lenient.js";

const reading = (options: string) => parseLeniently(JSON.parse(`{"type":"object","properties":{"a":{"enum":[${options}]}}}`));

test("an option that JSON.parse has rounded is refused with a sentence, since it could reach the server as another number", () => {
  for (const options of ["12345678901234567890123, 1", "9007199254740993", "1, -9007199254740993"]) {
    const parsed = reading(options);
    expect(parsed.ok, options).toBe(false);
    expect(JSON.stringify(parsed), options).toContain("more digits than a browser keeps");
  }
  for (const options of ["9007199254740991, 1.5", "0.1, 1e-9", "-9007199254740991"]) expect(reading(options).ok, options).toBe(true);
});
