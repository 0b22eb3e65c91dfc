// The check and the drafts of the kinds of field that only a lenient reading has: typed options, unions, lists that are written.
import type { Broken } from "../check/message.js";
import type { Reader } from "../draft/entered.js";
import { isBlank } from "./core.js";
import type { ChoiceOption, DraftValue, ElicitContent, Field, Json, LinesField, UnionField } from "../types.js";

type Value = ElicitContent[string];

const NO_TYPE = "has none of the types of this field";
const NO_LIST = "must be a list, one value per line";
const lines = (n: number) => (n === 1 ? "1 line" : `${BigInt(n)} lines`);

/** What is sent for an option. */
export const sent = (option: ChoiceOption): Json => option.typed ?? option.value;
const valuesOf = (field: { readonly options: readonly ChoiceOption[] }) => field.options.map((option) => option.value);
const areTyped = (options: readonly ChoiceOption[]) => options.some(({ typed }) => typed !== undefined);
const find = (options: readonly ChoiceOption[], value: unknown) => options.find((option) => sent(option) === value);

/** The strict check of a field or of a kind, at the field or kind itself. */
export const JUDGE: unique symbol = Symbol("judge");

/** Checks values of every kind of field. */
export class LenientCheck {
  readonly check = (field: Field, value: unknown, broken: Broken): void => {
    if (field.kind === "union") return this.#union(field, value, broken);
    if (field.kind === "lines") return this.#lines(field, value, broken);
    if (field.kind === "choice" && areTyped(field.options)) {
      if (!find(field.options, value)) broken("enum", valuesOf(field));
      return;
    }
    if (field.kind === "choices" && areTyped(field.options) && Array.isArray(value)) {
      const picked = value.map((one) => find(field.options, one)?.value);
      if (value.length < field.minItems!) broken("minItems", field.minItems);
      if (value.length > field.maxItems!) broken("maxItems", field.maxItems);
      if (picked.includes(undefined)) broken("enum", valuesOf(field));
      const known = picked.filter((one) => one !== undefined);
      if (field.unique && new Set(known).size < known.length) broken("uniqueItems");
      return;
    }
    const strict = (field as { readonly [JUDGE]?: (field: Field, value: unknown, broken: Broken) => void })[JUDGE];
    if (strict) return strict(field, value, broken);
    // Choices of a lenient reading without typed options.
    if (field.kind === "choices") {
      if (!Array.isArray(value)) return broken("type", "array");
      if (value.length < field.minItems!) broken("minItems", field.minItems);
      if (value.length > field.maxItems!) broken("maxItems", field.maxItems);
      const texts = value.filter((one) => typeof one === "string");
      if (texts.length < value.length) broken("type", "array");
      if (texts.some((text) => !find(field.options, text))) broken("enum", valuesOf(field));
      if (field.unique && new Set(texts).size < texts.length) broken("uniqueItems");
    } else if (field.kind === "choice") {
      if (typeof value !== "string") broken("type", "string");
      else if (!find(field.options, value)) broken("enum", valuesOf(field));
    }
  };

  readonly accepts = (field: Field, value: unknown): boolean => {
    let accepted = true;
    this.check(field, value, () => (accepted = false));
    return accepted;
  };

  #union({ alternatives }: UnionField, value: unknown, broken: Broken): void {
    let closest: Parameters<Broken>[] | undefined;
    for (const kind of alternatives) {
      const rules: Parameters<Broken>[] = [];
      this.check(kind, value, (...rule) => void rules.push(rule));
      if (!rules.length) return;
      // The rules of an alternative that the value has the type of say more than the list of types.
      if (!rules.some(([rule]) => rule === "type")) closest ??= rules;
    }
    if (closest) closest.forEach((rule) => broken(...rule));
    else broken("type", "scalar", NO_TYPE);
  }

  #lines({ item, minItems, maxItems, unique }: LinesField, value: unknown, broken: Broken): void {
    if (!Array.isArray(value)) return broken("type", "list", NO_LIST);
    if (value.length < minItems!) broken("minItems", minItems, `write at least ${lines(minItems!)}`);
    if (value.length > maxItems!) broken("maxItems", maxItems, `write at most ${lines(maxItems!)}`);
    // Each rule is told once, however many values break it.
    const told = new Set<string>();
    for (const one of value)
      this.check(item, one, (...rule) => {
        if (told.has(JSON.stringify(rule))) return;
        told.add(JSON.stringify(rule));
        broken(...rule);
      });
    const scalars = value.filter((one) => /^(string|number|boolean)$/.test(typeof one)).map((one) => (typeof one === "string" ? `"${one}` : `${one}`));
    if (unique && new Set(scalars).size < scalars.length) broken("uniqueItems", undefined, "each line can be written once");
  }

  /** Reads drafts as `reader` does, and those of the other kinds. */
  reader(reader: Reader): Reader {
    const read = (field: Field, entered: DraftValue, broken: Broken): Value | undefined => {
      // Half of a surrogate pair cannot be sent.
      const value = typeof entered === "string" ? entered.replace(/\p{Cs}/gu, "\ufffd") : entered;
      if (field.kind === "lines") {
        if (value === null || (typeof value === "string" && isBlank(value)) || (Array.isArray(value) && !value.length && !field.required)) return undefined;
        if (Array.isArray(value)) return this.#items(field.item, value as readonly string[], read, broken);
        if (typeof value !== "string") return void broken("type", "list", NO_LIST);
        const listed = jsonList(value);
        // Values may contain line breaks in a JSON list.
        if (listed) return this.#items(field.item, listed, read, broken);
        return this.#items(field.item, value.split(/\r?\n/).filter((line) => !isBlank(line)), read, broken);
      }
      if (value === null || (typeof value === "string" && isBlank(value)) || (Array.isArray(value) && !value.length && !(field.kind === "choices" && field.required))) return undefined;
      if (field.kind === "union") return this.#readUnion(field, value, read, broken);
      if (field.kind === "choice" && areTyped(field.options)) {
        const option = typeof value === "boolean" ? find(field.options, value) : undefined;
        if (option) return sent(option) as Value;
        const key = reader(field, value, broken);
        const picked = field.options.find((one) => one.value === key);
        return picked ? (sent(picked) as Value) : key;
      }
      if (field.kind === "choices" && areTyped(field.options)) {
        const listed = typeof value === "string" && !field.options.some((one) => one.value === value.trim()) ? jsonList(value) : undefined;
        const found = listed?.map((one) => find(field.options, one)?.value ?? one);
        const keys = reader(field, (found?.every((one) => typeof one === "string") ? found : value) as DraftValue, broken);
        if (!Array.isArray(keys)) return keys;
        return keys.map((key) => {
          const option = field.options.find((one) => one.value === key);
          return option ? sent(option) : key;
        }) as unknown as Value;
      }
      return reader(field, value, broken);
    };
    return read;
  }

  #item(field: Field, text: string, read: Reader, broken: Broken): Value {
    return read({ ...field, required: true }, text, broken) ?? text;
  }

  #items(field: Field, texts: readonly unknown[], read: Reader, broken: Broken): Value | undefined {
    const values: Value[] = [];
    for (const text of texts) {
      let failed = false;
      const value =
        typeof text !== "string"
          ? (text as Value)
          : this.#item(field, text, read, (...rule) => {
              if (!failed) broken(...rule);
              failed = true;
            });
      if (failed) return undefined;
      values.push(value);
    }
    return values as unknown as Value;
  }

  /** The first alternative that the text fits as it is written, or else the first that accepts a tolerant reading. */
  #readUnion({ alternatives }: UnionField, value: DraftValue, read: Reader, broken: Broken): Value | undefined {
    if (typeof value === "string") {
      for (const kind of alternatives) {
        const plain = this.#plain(kind, value, read);
        if (plain !== undefined && this.accepts(kind, plain)) return plain;
      }
    }
    let readable: Value | undefined;
    for (const kind of alternatives) {
      let failed = false;
      const found = read({ ...kind, required: true }, value, () => (failed = true));
      if (failed || found === undefined) continue;
      if (this.accepts(kind, found)) return found;
      readable ??= found;
    }
    return readable ?? void broken("type", "scalar", NO_TYPE);
  }

  /** Reads a text as a value of this kind without any tolerance, since the text may be meant for another alternative. */
  #plain(kind: Field, text: string, read: Reader): Value | undefined {
    switch (kind.kind) {
      case "text":
        return read({ ...kind, required: true }, text, () => {});
      case "number":
      case "integer":
      case "boolean": {
        let value: unknown;
        try {
          value = JSON.parse(text);
        } catch {
          return undefined;
        }
        return typeof value === (kind.kind === "boolean" ? "boolean" : "number") ? (value as Value) : undefined;
      }
      case "choice": {
        const option = kind.options.find((one) => one.value === text || (one.title ?? one.value) === text);
        return option && (sent(option) as Value);
      }
    }
    return undefined;
  }

}

/** What is filled in before a person answers. */
export const initialOf = (fields: readonly Field[]): Record<string, DraftValue> =>
  Object.fromEntries(fields.flatMap((field) => (field.default === undefined ? [] : [[field.name, draftOf(field)]])));

function draftOf(field: Field): DraftValue {
  const value = field.default as unknown;
  const key = (one: unknown) => find((field as { readonly options?: readonly ChoiceOption[] }).options ?? [], one)?.value ?? `${one}`;
  if (field.kind === "lines") return (value as readonly unknown[]).map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join("\n");
  if (field.kind === "choice") return key(value);
  if (field.kind === "choices") return (value as readonly unknown[]).map(key);
  return typeof value === "number" ? `${value}` : (value as DraftValue);
}

function jsonList(text: string): readonly unknown[] | undefined {
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? list : undefined;
  } catch {
    return undefined;
  }
}
