//! Random forms, most of them legal, and contents near their limits. One seed gives one corpus on every machine.

use serde_json::{Map, Value, json};

/// `SplitMix64`: small, and the same on every machine.
pub(crate) struct Random(u64);

const NAMES: &[&str] = &[
    "a",
    "b",
    "name",
    "é",
    "a b",
    "x/y~z",
    "__proto__",
    "constructor",
    "10",
    "2",
    "toString",
    "Z",
    "length",
    "",
];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "10",
    "1.0",
    "0.5",
    "2.50",
    "-0.0",
    "0.1",
    "0.3",
    "0.30000000000000004",
    "1e3",
    "1e21",
    "1e-7",
    "1.5e300",
    "-2.5",
    "100",
    "9007199254740992",
    "9007199254740993",
    "18446744073709551615",
    "12345678901234567890",
    "-9223372036854775808",
    "4.35",
    "1e22",
    "123456789.123",
];
const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "ab",
    "abc",
    "aaaa",
    "é",
    "👍",
    "a b",
    "A1",
    "x-y.z",
    "2024-02-29",
    "2023-02-29",
    "2026-11-21T09:00:00Z",
    "2026-11-21T09:00:00",
    "ada@example.com",
    "a@b",
    "a@@b",
    "https://example.com/x?y#z",
    "urn:x",
    "http://",
    " ",
    "\n",
    "0123456789",
    "x",
    "y",
    "X",
    "__proto__",
    "αβγ",
    "日本語",
    "true",
    "1",
];
const OPTIONS: &[&str] = &[
    "x",
    "y",
    "z",
    "a",
    "b",
    "",
    "é",
    "__proto__",
    "two words",
    "X",
    "k",
    "l",
];
const ATOMS: &[&str] = &[
    "a",
    "b",
    "ab",
    "x",
    r"\d",
    r"\w",
    r"\s",
    r"\W",
    ".",
    "[ab]",
    "[^a]",
    "[a-c]",
    "[^]",
    "(a|b)",
    "(?:ab|a)",
    "(a*)",
    "(|b)",
    r"\.",
    r"\-",
    "é",
    r"\p{L}",
    r"[\p{Lu}x]",
    r"\P{L}",
    r"\b",
    "^",
    "$",
    "[\\w-.]",
    "{",
    r"\x61",
    r"\u0062",
    "(?<n>a)",
];
const COUNTS: &[&str] = &[
    "", "", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?",
];
const ODD: &[&str] = &[
    "(", ")", "[", "*", "(?=a)", r"\1", r"\A", "(?i)", "a{3,2}", r"\k", "a**", "[b-a]", "{2}",
    "(?<n>b)", r"\p{x}",
];

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }

    /// Returns `true` once in `times` calls, on average.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    fn number(&mut self) -> Value {
        if self.once_in(3) {
            return json!(self.below(12));
        }
        serde_json::from_str(self.pick(NUMBERS)).expect("a number")
    }

    pub(super) fn text(&mut self) -> String {
        match self.below(4) {
            0 => (0..self.below(6))
                .map(|_| {
                    let chars = ['a', 'b', ' ', 'x', 'A', '1', '.', '-', '_', 'é'];
                    chars[self.below(chars.len())]
                })
                .collect(),
            1 => format!("{}{}", self.pick(TEXTS), self.pick(TEXTS)),
            _ => self.pick(TEXTS).to_owned(),
        }
    }

    fn address(&mut self) -> String {
        const PIECES: &[&str] = &[
            "a", "b.c", "@", ":", "//", "/", "?", "#", "[::1]", "[", "]", "%41", "%4", ".", "..",
            "-", "xn--", "1.2.3.4", ":80", "http", "é", " ", "\"", "x", "mailto:", "https://",
            "ex.org",
        ];
        let mut out = if self.once_in(2) {
            self.pick(&["https://", "a@", "urn:", "\"q\"@"]).to_owned()
        } else {
            String::new()
        };
        for _ in 0..self.below(5) {
            out.push_str(self.pick(PIECES));
        }
        out
    }

    fn moment(&mut self) -> String {
        let mut date = format!(
            "{:04}-{:02}-{:02}",
            1999 + self.below(30),
            self.below(14),
            self.below(33)
        );
        if self.once_in(2) {
            let offset = self
                .pick(&["Z", "z", "+01:00", "-23:59", "+24:00", "", "+5"])
                .to_owned();
            date = format!(
                "{date}T{:02}:{:02}:{:02}{}{offset}",
                self.below(25),
                self.below(61),
                self.below(62),
                self.pick(&["", "", ".5", "."])
            );
        }
        date
    }

    fn pattern(&mut self) -> String {
        let mut out = String::new();
        if self.once_in(2) {
            out.push('^');
        }
        for _ in 0..=self.below(4) {
            let atom = self.pick(ATOMS);
            out.push_str(atom);
            if !matches!(atom, "^" | "$" | r"\b") || self.once_in(20) {
                out.push_str(self.pick(COUNTS));
            }
            if self.once_in(12) {
                out.push('|');
            }
            if self.once_in(40) {
                out.push_str(self.pick(ODD));
            }
        }
        if self.once_in(2) {
            out.push('$');
        }
        out
    }

    fn options(&mut self) -> Vec<&'static str> {
        let mut left = OPTIONS.to_vec();
        let count = 1 + self.below(left.len());
        let mut out: Vec<_> = (0..count)
            .map(|_| left.remove(self.below(left.len())))
            .collect();
        if self.once_in(60) {
            out.push(out[0]);
        }
        out
    }

    fn titled(&mut self) -> Value {
        let options = self.options();
        options
            .iter()
            .map(|value| {
                if self.once_in(2) {
                    json!({"const": value, "title": self.pick(TEXTS)})
                } else {
                    json!({"const": value})
                }
            })
            .collect()
    }

    fn put(
        &mut self,
        times: usize,
        field: &mut Map<String, Value>,
        key: &str,
        value: impl FnOnce(&mut Self) -> Value,
    ) {
        if self.once_in(times) {
            let value = value(self);
            field.insert(key.to_owned(), value);
        }
    }

    pub(super) fn field(&mut self) -> Map<String, Value> {
        let mut field = Map::new();
        let kind = self.pick(&[
            "string", "string", "number", "integer", "boolean", "enum", "oneOf", "array", "array",
        ]);
        let written = match kind {
            "enum" | "oneOf" => "string",
            other => other,
        };
        field.insert("type".to_owned(), written.into());
        self.put(3, &mut field, "title", |random| random.text().into());
        match kind {
            "string" => {
                self.put(3, &mut field, "minLength", |random| random.below(4).into());
                self.put(3, &mut field, "maxLength", |random| {
                    (2 + random.below(6)).into()
                });
                self.put(3, &mut field, "pattern", |random| random.pattern().into());
                self.put(3, &mut field, "format", |random| {
                    random.pick(&["email", "uri", "date", "date-time"]).into()
                });
                self.put(25, &mut field, "const", |random| random.text().into());
                self.put(12, &mut field, "default", |random| random.text().into());
            }
            "number" | "integer" => {
                self.put(3, &mut field, "minimum", Self::number);
                self.put(4, &mut field, "maximum", Self::number);
                self.put(6, &mut field, "exclusiveMinimum", Self::number);
                self.put(6, &mut field, "exclusiveMaximum", Self::number);
                self.put(4, &mut field, "multipleOf", Self::number);
                self.put(25, &mut field, "const", Self::number);
                self.put(12, &mut field, "default", Self::number);
            }
            "boolean" => {
                self.put(5, &mut field, "const", |random| random.once_in(2).into());
                self.put(5, &mut field, "default", |random| random.once_in(2).into());
            }
            "enum" => {
                let options = self.options();
                let names: Value = options.iter().map(|_| self.pick(TEXTS)).collect();
                field.insert("enum".to_owned(), json!(options));
                self.put(4, &mut field, "enumNames", |_| names);
                self.put(6, &mut field, "default", |random| {
                    random.pick(OPTIONS).into()
                });
                self.put(20, &mut field, "const", |random| {
                    random.pick(OPTIONS).into()
                });
            }
            "oneOf" => {
                let options = self.titled();
                field.insert("oneOf".to_owned(), options);
                self.put(6, &mut field, "default", |random| {
                    random.pick(OPTIONS).into()
                });
            }
            _ => {
                let items = match self.below(3) {
                    0 => json!({"type": "string", "enum": self.options()}),
                    1 => json!({"anyOf": self.titled()}),
                    _ => json!({"oneOf": self.titled()}),
                };
                field.insert("items".to_owned(), items);
                self.put(3, &mut field, "minItems", |random| random.below(3).into());
                self.put(3, &mut field, "maxItems", |random| {
                    (1 + random.below(3)).into()
                });
                self.put(3, &mut field, "uniqueItems", |random| {
                    random.once_in(2).into()
                });
                self.put(8, &mut field, "default", |random| {
                    json!([random.pick(OPTIONS)])
                });
            }
        }
        if self.once_in(40) {
            let key = self.pick(&[
                "minLength",
                "maximum",
                "minItems",
                "enum",
                "oneOf",
                "not",
                "$ref",
                "properties",
                "x-y",
                "const",
                "default",
                "type",
                "title",
                "items",
                "format",
            ]);
            let value = match self.below(5) {
                0 => json!(null),
                1 => json!([]),
                2 => json!({}),
                3 => self.number(),
                _ => json!(self.text()),
            };
            field.insert(key.to_owned(), value);
        }
        field
    }

    fn value(&mut self, field: &Map<String, Value>) -> Value {
        if self.once_in(12) {
            return match self.below(6) {
                0 => json!(null),
                1 => json!(true),
                2 => self.number(),
                3 => json!(self.text()),
                4 => json!({}),
                _ => json!([self.pick(OPTIONS), 1]),
            };
        }
        let kind = field
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match kind {
            "string" if field.contains_key("enum") || field.contains_key("oneOf") => {
                json!(self.pick(OPTIONS))
            }
            "string" => match field.get("format").and_then(Value::as_str) {
                Some("email" | "uri") if !self.once_in(4) => json!(self.address()),
                Some("date" | "date-time") if !self.once_in(4) => json!(self.moment()),
                _ => json!(self.text()),
            },
            "number" | "integer" => {
                // At a limit, or at any value.
                let bounds: Vec<_> = [
                    "minimum",
                    "maximum",
                    "exclusiveMinimum",
                    "exclusiveMaximum",
                    "multipleOf",
                ]
                .iter()
                .filter_map(|key| field.get(*key))
                .filter(|bound| bound.is_number())
                .cloned()
                .collect();
                if !bounds.is_empty() && self.once_in(2) {
                    return bounds[self.below(bounds.len())].clone();
                }
                self.number()
            }
            "boolean" => json!(self.once_in(2)),
            _ => (0..self.below(4)).map(|_| self.pick(OPTIONS)).collect(),
        }
    }

    /// Returns a schema and contents, as texts.
    pub(crate) fn form(&mut self, contents: usize) -> (String, Vec<String>) {
        let mut properties = Map::new();
        for _ in 0..self.below(6) {
            let name = self.pick(NAMES);
            let field = self.field();
            properties.insert(name.to_owned(), Value::Object(field));
        }
        let mut schema = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), Value::Object(properties.clone())),
        ]);
        let required: Vec<_> = properties
            .keys()
            .filter(|_| self.once_in(3))
            .cloned()
            .collect();
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        self.put(8, &mut schema, "additionalProperties", |random| {
            random.once_in(4).into()
        });
        self.put(60, &mut schema, "minProperties", |_| json!(1));
        let contents = (0..contents)
            .map(|_| {
                let mut content = Map::new();
                for (name, field) in &properties {
                    if !self.once_in(6) {
                        let value = field
                            .as_object()
                            .map_or(Value::Null, |field| self.value(field));
                        content.insert(name.clone(), value);
                    }
                }
                if self.once_in(10) {
                    content.insert(self.pick(NAMES).to_owned(), self.number());
                }
                Value::Object(content).to_string()
            })
            .collect();
        (Value::Object(schema).to_string(), contents)
    }
}
