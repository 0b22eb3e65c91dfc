import { clip, CONSTRAINS, isObject, kindOf } from "./core.js";
import type { LenientReader, Place } from "./read.js";

/** The deepest chain of references and alternatives. */
const DEPTH = 24;

/** Keywords whose values are schemas: each is counted where it is read. */
export const SCHEMAS = new Set(["anyOf", "oneOf", "items"]);

/** The keywords of one schema, with its references and `allOf` in place. Of a keyword that several parts have, the first is used. */
export class Flat {
  keywords = new Map<string, unknown>();
  /** The `properties` and the `required` of every part. */
  properties: unknown[] = [];
  required: unknown[] = [];

  get(key: string): unknown {
    return this.keywords.get(key);
  }

  has(...keys: readonly string[]): boolean {
    return keys.some((key) => this.keywords.has(key));
  }

  without(...keys: readonly string[]): Flat {
    const flat = this.over(new Flat());
    for (const key of keys) flat.keywords.delete(key);
    return flat;
  }

  /** Returns the keywords of both; those of this one are used first. */
  over(other: Flat): Flat {
    const flat = new Flat();
    flat.keywords = new Map([...this.keywords, ...[...other.keywords].filter(([key]) => !this.keywords.has(key))]);
    flat.properties = [...this.properties, ...other.properties];
    flat.required = [...this.required, ...other.required];
    return flat;
  }

  /** Whether the schema accepts only null. */
  isNull(): boolean {
    const [options, type] = [this.get("enum"), this.get("type")];
    if (this.has("const")) return this.get("const") === null;
    const only = (list: readonly unknown[], one: unknown) => list.length > 0 && list.every((each) => each === one);
    if (Array.isArray(options) && options.length) return only(options, null);
    return type === "null" || (Array.isArray(type) && only(type, "null"));
  }
}

/** Returns the keywords of a schema with its references and `allOf` in place. */
export function flatten(reader: LenientReader, schema: unknown, place: Place): Flat {
  const flat = new Flat();
  into(schema, 0);
  return flat;

  function into(schema: unknown, depth: number): void {
    if (depth > DEPTH) throw reader.defect(place.child("$ref"), "reference", "the references lead back to themselves, so there is no end to this field");
    // The schema that accepts everything.
    if (schema === true) return;
    if (Array.isArray(schema) && !schema.length) return reader.adjust("empty-list", place, "an empty list stands in place of an empty object and is read as one");
    if (!isObject(schema)) throw reader.defect(place, "field-not-an-object", `a schema must be an object, not ${kindOf(schema)}`);
    const entries = Object.entries(schema);
    reader.spend(entries.length + 1, place);
    let reference: unknown;
    let parts: readonly unknown[] | undefined;
    for (const [key, value] of entries) {
      if (key === "$ref") reference = value;
      else if (key === "allOf" && Array.isArray(value)) parts = value;
      else if (key === "properties") {
        if (isObject(value)) reader.spendBytes(Object.keys(value).length, place);
        flat.properties.push(value);
      } else if (key === "required") {
        reader.spendValue(value, place);
        flat.required.push(value);
      }
      // Some serializers write null for a keyword that is not set.
      else if (value === null && key !== "const" && key !== "default") reader.adjust("keyword-ignored", place.child(key), `\`${clip(key)}\` is null and is read as absent`);
      else put(key, value);
    }
    if (reference !== undefined) into(definition(reference), depth + 1);
    if (!parts) return;
    if (parts.length) reader.adjust("all-of", place.child("allOf"), "the parts of `allOf` are read in place");
    for (const part of parts) into(part, depth + 1);
  }

  function put(key: string, value: unknown): void {
    const constrains = CONSTRAINS.has(key);
    // Other members say nothing about the value.
    if (!constrains && !/^(title|description|default|enumNames|nullable)$/.test(key)) return;
    if (flat.has(key) || !SCHEMAS.has(key)) reader.spendValue(value, place);
    if (!flat.has(key)) flat.keywords.set(key, value);
    else if (constrains && !same(flat.get(key), value)) reader.adjust("rule-not-enforced", place.child(key), `\`${key}\` is there with two values; the second is not checked`);
  }

  /** Returns the definition that a `$ref` names, which must be in this schema. */
  function definition(reference: unknown): unknown {
    const name = typeof reference === "string" ? reference : "";
    let lookedAt = 0;
    const target = name[0] === "#" ? point(reader.root, decoded(name.slice(1)), (members) => (lookedAt += members)) : undefined;
    reader.spendBytes(lookedAt, place);
    const at = place.child("$ref");
    if (target === undefined) throw reader.defect(at, "reference", `\`${clip(name)}\` refers to no definition of this form, so the field is not known`);
    reader.adjust("reference", at, `the definition \`${clip(name.split("/").at(-1)!)}\` of the same form is read in place`);
    return target;
  }
}

/** Returns the value at a JSON Pointer; tells the number of members among which it is searched. */
function point(root: unknown, pointer: string, searched: (members: number) => void): unknown {
  if (!pointer) return root;
  const tokens = pointer.split("/");
  if (tokens.shift() !== "" || tokens.length >= DEPTH) return undefined;
  return tokens.reduce<unknown>((at, token) => {
    const key = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (isObject(at)) searched(Object.keys(at).length);
    return (isObject(at) || (Array.isArray(at) && /^\+?\d+$/.test(key))) && Object.hasOwn(at, Array.isArray(at) ? Number(key) : key) ? (at as Record<string, unknown>)[Array.isArray(at) ? Number(key) : key] : undefined;
  }, root);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function same(a: unknown, b: unknown): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((one, i) => same(one, b[i]));
  if (!isObject(a)) return a === b;
  const [left, right] = [Object.entries(a), isObject(b) ? Object.entries(b) : []];
  return isObject(b) && left.length === right.length && left.every(([key, value], i) => key === right[i]![0] && same(value, right[i]![1]));
}
