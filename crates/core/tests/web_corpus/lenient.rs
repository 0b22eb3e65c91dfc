//! Forms that no revision lists: each row of the table of the lenient reading, and random ones.

use serde_json::{Map, Value, json};

use super::random::Random;

/// Fields, each alone in a form that has some definitions.
const FIELDS: &[&str] = &[
    r#"{"anyOf":[{"type":"string"},{"type":"null"}],"default":null,"title":"Nick"}"#,
    r#"{"anyOf":[{"type":"integer","minimum":0,"maximum":150},{"type":"null"}]}"#,
    r#"{"type":["string","null"],"minLength":2}"#,
    r#"{"type":["integer","string"]}"#,
    r#"{"type":["string","number","null"]}"#,
    r#"{"type":["array","string"],"items":{"type":"string"}}"#,
    r#"{"type":["null"]}"#,
    r#"{"type":"null"}"#,
    r#"{"type":"string","nullable":true}"#,
    r#"{"type":"integer","enum":[1,2,3],"default":2}"#,
    r#"{"type":"integer","enum":[1,2,3],"default":4}"#,
    r#"{"type":"number","enum":[0.5,1],"enumNames":["Half","All"]}"#,
    r#"{"type":"boolean","enum":[true]}"#,
    r#"{"enum":["auto",1,true,"1","true"]}"#,
    r#"{"enum":["a","b",null]}"#,
    r#"{"enum":["a","a","b"],"enumNames":["A"]}"#,
    r#"{"enum":[{"a":1},[2]]}"#,
    r#"{"enum":["a",{"a":1}]}"#,
    r#"{"enum":[]}"#,
    r#"{"enum":"a"}"#,
    r#"{"const":"a"}"#,
    r#"{"const":7}"#,
    r#"{"type":"integer","const":7}"#,
    r#"{"type":"integer","const":"7"}"#,
    r#"{"oneOf":[{"const":"low","title":"Low"},{"const":"high","title":"High"}]}"#,
    r#"{"oneOf":[{"const":1,"title":"One"},{"const":2,"title":"Two"}],"default":2}"#,
    r#"{"anyOf":[{"type":"string","const":"a"},{"type":"string","const":"b","title":"B"}]}"#,
    r#"{"anyOf":[{"const":"a","description":"First"},{"enum":["b","c"]},{"type":"null"}]}"#,
    r#"{"anyOf":[{"const":"auto","type":"string"},{"type":"integer"}]}"#,
    r#"{"anyOf":[{"type":"integer"},{"type":"string"}],"default":3}"#,
    r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
    r#"{"anyOf":[{"type":"number"},{"type":"boolean"}]}"#,
    r#"{"anyOf":[{"type":"string","format":"email"},{"type":"string","format":"uri"}]}"#,
    r#"{"anyOf":[{"type":"string"},{"type":"object","properties":{}}]}"#,
    r#"{"anyOf":[{"type":"object"},{"type":"array","items":{"type":"object"}}]}"#,
    r#"{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]}"#,
    r#"{"anyOf":[]}"#,
    r#"{"type":"string","enum":["a","b"],"anyOf":[{"minLength":1}]}"#,
    r#"{"type":"string","enum":["a","b"],"oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}"#,
    r##"{"$ref":"#/$defs/Color"}"##,
    r##"{"$ref":"#/$defs/Color","title":"Mine","default":"blue"}"##,
    r##"{"$ref":"#/definitions/a~1b%20c"}"##,
    r##"{"$ref":"#/$defs/Loop"}"##,
    r##"{"$ref":"#/$defs/None"}"##,
    r#"{"$ref":"other.json"}"#,
    r##"{"allOf":[{"$ref":"#/$defs/Color"}],"default":"red"}"##,
    r#"{"allOf":[{"type":"string","minLength":2},{"minLength":3}]}"#,
    r##"{"anyOf":[{"$ref":"#/$defs/Color"},{"type":"null"}]}"##,
    r##"{"type":"array","items":{"$ref":"#/$defs/Color"},"minItems":1}"##,
    r#"{"type":"array","items":{"type":"string"}}"#,
    r#"{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2,"uniqueItems":true,"default":["a"]}"#,
    r#"{"type":"array","items":{"type":"integer","minimum":0}}"#,
    r#"{"type":"array","items":{"type":"boolean"}}"#,
    r#"{"type":"array","items":{"type":["integer","string"]}}"#,
    r#"{"type":"array","items":{"enum":[1,2,3],"type":"integer"},"default":[2]}"#,
    r#"{"type":"array","items":{"enum":["a","b"]},"minItems":5}"#,
    r#"{"type":"array","items":{"type":"array","items":{"type":"string"}}}"#,
    r#"{"type":"array","items":{"type":"object","properties":{}}}"#,
    r#"{"type":"array"}"#,
    r#"{"type":"array","items":{}}"#,
    r#"{"items":{"type":"string"},"minItems":3,"maxItems":1}"#,
    r#"{"type":"string","format":"uuid"}"#,
    r#"{"type":"string","format":"time","pattern":"(?i)a"}"#,
    r#"{"type":"string","pattern":"\\Aa\\Z","minLength":5,"maxLength":2}"#,
    r#"{"type":"string","minLength":-1,"maxLength":"3"}"#,
    r#"{"type":"string","pattern":7,"title":3,"format":null}"#,
    r#"{"type":"string","default":7}"#,
    r#"{"type":"integer","minimum":5,"maximum":3,"multipleOf":0}"#,
    r#"{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2}"#,
    r#"{"type":"string","not":{"const":"a"},"if":{},"then":{}}"#,
    r#"{"type":"string","properties":{},"required":["a"]}"#,
    r#"{"type":"string","required":true}"#,
    r#"{"minLength":2}"#,
    r#"{"minimum":2}"#,
    r#"{"default":true}"#,
    r#"{"default":3}"#,
    r#"{"title":"Anything"}"#,
    r#"{"type":"int"}"#,
    r#"{"type":"Float"}"#,
    r#"{"type":"bool"}"#,
    r#"{"type":"date"}"#,
    r#"{"type":7}"#,
    r#"{"type":"object","properties":{"x":{"type":"string"}}}"#,
    r#"{"properties":{"x":{"type":"string"}}}"#,
    "true",
    "[]",
    "false",
    r#""string""#,
];

const ROOTS: &[&str] = &[
    "null",
    "[]",
    "{}",
    "[1]",
    "7",
    r#"{"type":"object"}"#,
    r#"{"type":"string"}"#,
    r#"{"type":"object","properties":[]}"#,
    r#"{"type":"object","properties":null}"#,
    r#"{"type":"object","properties":3}"#,
    r#"{"properties":{"a":{"type":"string"}}}"#,
    r#"{"type":["object","null"],"properties":{"a":{"type":"string"}}}"#,
    r#"{"type":"array","properties":{"a":{"type":"string"}}}"#,
    r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b",3]}"#,
    r#"{"type":"object","properties":{"a":{"type":"string"}},"required":"a"}"#,
    r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"},"oneOf":[{"required":["a"]}]}"#,
    r#"{"type":"object","properties":{"a":{"type":"integer","enum":[1]}},"additionalProperties":false}"#,
    r##"{"$ref":"#/$defs/F","$defs":{"F":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}"##,
    r#"{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"null"}]}"#,
    r#"{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{"type":"string"}}}]}"#,
    r#"{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"a":{"type":"integer"},"b":{"type":"boolean"}},"required":["b"]}]}"#,
    r#"{"type":"object","properties":{"a":{"type":"string"},"o":{"type":"object","properties":{}},"p":{"type":"array","items":{"type":"object"}}}}"#,
];

const DEFINITIONS: &str = r##"{"Color":{"enum":["red","blue"],"title":"Color","type":"string"},"Loop":{"$ref":"#/$defs/Loop"}}"##;

/// Returns the schemas that are written by hand.
pub(crate) fn schemas() -> Vec<String> {
    let field = |field: &&str, required: &str| {
        format!(
            r#"{{"type":"object","properties":{{"a":{field}}}{required},"$defs":{DEFINITIONS},"definitions":{{"a/b c":{{"type":"boolean"}}}}}}"#
        )
    };
    let roots = ROOTS.iter().map(|root| (*root).to_owned());
    let fields = FIELDS
        .iter()
        .flat_map(|one| ["", r#","required":["a"]"#].map(|required| field(one, required)));
    roots.chain(fields).chain(too_large()).collect()
}

/// Returns schemas whose definitions are read in place too often, have too many types, or too many alternatives.
fn too_large() -> Vec<String> {
    let shared = |definition: &str| {
        let fields: Vec<_> = (0..256)
            .map(|i| format!(r##""f{i}":{{"$ref":"#/$defs/a"}}"##))
            .collect();
        let fields = fields.join(",");
        format!(r#"{{"type":"object","properties":{{{fields}}},"$defs":{{"a":{definition}}}}}"#)
    };
    let text = "é".repeat(20_000);
    let types: Vec<_> = (0..65).map(|i| format!(r#""t{i}""#)).collect();
    let alternatives: Vec<_> = (0..40)
        .map(|i| format!(r#"{{"minLength":{i}}},{{"minimum":{i}}}"#))
        .collect();
    let (one, other) = (alternatives[..20].join(","), alternatives[20..].join(","));
    vec![
        shared(&format!(r#"{{"type":"string","description":"{text}"}}"#)),
        shared(&format!(r#"{{"type":"string","format":"{text}"}}"#)),
        shared(&format!(r#"{{"enum":["{text}","b"]}}"#)),
        shared(&format!(
            r#"{{"anyOf":[{{"type":"string","title":"{text}"}},{{"type":"null"}}]}}"#
        )),
        format!(
            r#"{{"type":"object","properties":{{"a":{{"type":[{}]}}}}}}"#,
            types.join(",")
        ),
        format!(
            r#"{{"type":"object","properties":{{"a":{{"anyOf":[{{"anyOf":[{one}]}},{{"anyOf":[{other}]}}]}}}}}}"#
        ),
    ]
}

/// Values that a content may have, whatever the field is.
const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "1",
    "2",
    "3",
    "7",
    "0.5",
    "1.5",
    "-1",
    "\"\"",
    "\"a\"",
    "\"b\"",
    "\"red\"",
    "\"1\"",
    "\"true\"",
    "\"low\"",
    "\"abc\"",
    "\"a@b.org\"",
    "\"x:y\"",
    "[]",
    "[\"a\"]",
    "[\"a\",\"a\"]",
    "[\"a\",\"b\",\"c\"]",
    "[1,2]",
    "[2]",
    "[true]",
    "[1,\"a\"]",
    "[null]",
    "{}",
    "\"auto\"",
];

/// Texts that a person may write into any field.
const TEXTS: &[&str] = &[
    "",
    "  ",
    "a",
    "b",
    "A",
    "red",
    "Low",
    "One",
    "1",
    "2",
    "7",
    "1.0",
    "1,5",
    "0.5",
    "-3",
    "yes",
    "no",
    "true",
    "auto",
    "\"1\"",
    "a\nb",
    "a\r\n\nb\n",
    "1\n2",
    "true\nno",
    "[\"a\",\"b\"]",
    "[1, 2]",
    "[1,\"a\"]",
    "a, b",
    "2; 3",
    "abc",
    "ada@example.com",
    "x\ty",
];

/// Returns contents and drafts, as texts, for fields of these names.
pub(crate) fn answers(
    names: &[String],
    random: &mut Random,
    count: usize,
) -> (Vec<String>, Vec<Value>) {
    let mut contents = Vec::new();
    let mut drafts = Vec::new();
    let one = |all: &[&str], i: usize, random: &mut Random| {
        // Forms of one field get each in turn.
        let place = if names.len() == 1 {
            i % all.len()
        } else {
            random.below(all.len())
        };
        all[place].to_owned()
    };
    for i in 0..count {
        let mut content = Map::new();
        let mut draft = Map::new();
        for name in names {
            if names.len() == 1 || !random.once_in(5) {
                let value = one(VALUES, i, random);
                content.insert(name.clone(), serde_json::from_str(&value).expect("JSON"));
            }
            draft.insert(name.clone(), json!(one(TEXTS, i, random)));
        }
        contents.push(Value::Object(content).to_string());
        drafts.push(Value::Object(draft));
    }
    (contents, drafts)
}

impl Random {
    /// Returns a schema that servers may send, legal or not.
    pub(crate) fn sent(&mut self) -> String {
        let mut properties = Map::new();
        let mut definitions = Map::new();
        for i in 0..=self.below(3) {
            let field = self.sent_field(0);
            let name = format!("f{i}");
            if self.once_in(8) {
                definitions.insert(name.clone(), field);
                let reference = json!({ "$ref": format!("#/$defs/{name}") });
                properties.insert(
                    name,
                    if self.once_in(3) {
                        json!({ "allOf": [reference] })
                    } else {
                        reference
                    },
                );
            } else {
                properties.insert(name, field);
            }
        }
        let mut schema =
            json!({ "type": "object", "properties": properties, "$defs": definitions });
        if self.once_in(2) {
            schema["required"] = (0..self.below(4))
                .map(|_| format!("f{}", self.below(4)))
                .collect();
        }
        if self.once_in(10) {
            schema["additionalProperties"] = self.once_in(3).into();
        }
        if self.once_in(20) {
            schema.as_object_mut().expect("an object").remove("type");
        }
        schema.to_string()
    }

    fn sent_field(&mut self, depth: usize) -> Value {
        let plain = Value::Object(self.field());
        if depth > 2 {
            return plain;
        }
        match self.below(14) {
            0 => json!({ "anyOf": [plain, { "type": "null" }], "default": null }),
            1 => {
                let key = if self.once_in(2) { "anyOf" } else { "oneOf" };
                let parts: Vec<_> = (0..=self.below(3))
                    .map(|_| self.sent_field(depth + 1))
                    .collect();
                json!({ key: parts, "title": "Several" })
            }
            2 => {
                let kinds = ["string", "integer", "number", "boolean", "null", "array"];
                let kinds: Vec<_> = (0..=self.below(3))
                    .map(|_| self.pick(&kinds).to_owned())
                    .collect();
                let mut field = plain;
                field["type"] = json!(kinds);
                field
            }
            3 => {
                let options: Vec<_> = (0..self.below(5)).map(|_| self.scalar()).collect();
                let mut field = json!({ "enum": options });
                if self.once_in(2) {
                    field["type"] = json!(self.pick(&["integer", "number", "boolean", "string"]));
                }
                if self.once_in(3) {
                    field["default"] = self.scalar();
                }
                field
            }
            4 => {
                let options: Vec<_> = (0..=self.below(4))
                    .map(|_| json!({ "const": self.scalar(), "title": self.text() }))
                    .collect();
                json!({ "oneOf": options })
            }
            5 | 6 => {
                let mut field = json!({ "type": "array", "items": self.sent_field(depth + 1) });
                if self.once_in(3) {
                    field["minItems"] = self.below(4).into();
                }
                if self.once_in(3) {
                    field["maxItems"] = self.below(4).into();
                }
                if self.once_in(3) {
                    field["uniqueItems"] = true.into();
                }
                if self.once_in(4) {
                    field["default"] = json!([self.scalar()]);
                }
                field
            }
            7 => {
                let mut field = plain;
                field.as_object_mut().expect("an object").remove("type");
                field
            }
            8 => {
                let mut field = plain;
                let keys = [
                    "format",
                    "pattern",
                    "minLength",
                    "maximum",
                    "enum",
                    "const",
                    "not",
                    "required",
                    "nullable",
                    "title",
                    "default",
                ];
                let key = self.pick(&keys).to_owned();
                field[key] = match self.below(6) {
                    0 => json!("uuid"),
                    1 => json!("(?i)a"),
                    2 => json!(true),
                    3 => json!(null),
                    4 => json!(["a", 1]),
                    _ => self.scalar(),
                };
                field
            }
            9 if self.once_in(3) => json!({ "type": "object", "properties": { "x": plain } }),
            10 => json!({ "type": self.pick(&["int", "float", "bool", "date", "Text"]) }),
            _ => plain,
        }
    }

    fn scalar(&mut self) -> Value {
        match self.below(6) {
            0 => json!(null),
            1 => json!(self.once_in(2)),
            2 | 3 => json!(self.below(4)),
            _ => json!(self.pick(&["a", "b", "1", "true", "x"])),
        }
    }
}
