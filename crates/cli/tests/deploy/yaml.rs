//! YAML as JSON values: aliases and merged maps are resolved.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Map, Value};

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// The values of anchors, by their ids.
    anchors: HashMap<usize, Value>,
}

/// Returns the documents of a text.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
    };
    let mut all = Vec::new();
    loop {
        match reader.next() {
            Event::StreamEnd => return all,
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            event => {
                let document = reader.value(event);
                all.push(document);
            }
        }
    }
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Event<'a> {
        let event = self.parser.next_event().expect("the text goes on");
        event.expect("it is YAML").0
    }

    fn value(&mut self, event: Event<'a>) -> Value {
        let (anchor, value) = match event {
            Event::Alias(id) => return self.anchors[&id].clone(),
            Event::Scalar(text, style, anchor, _) => (anchor, scalar(&text, style)),
            Event::SequenceStart(anchor, _) => {
                let mut values = Vec::new();
                loop {
                    match self.next() {
                        Event::SequenceEnd => break,
                        event => {
                            let value = self.value(event);
                            values.push(value);
                        }
                    }
                }
                (anchor, Value::Array(values))
            }
            Event::MappingStart(anchor, _) => (anchor, Value::Object(self.members())),
            event => panic!("{event:?} is no value"),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, value.clone());
        }
        value
    }

    fn members(&mut self) -> Map<String, Value> {
        let (mut members, mut merged) = (Map::new(), Map::new());
        loop {
            let event = self.next();
            if event == Event::MappingEnd {
                // A map's own members count before those that it takes over.
                merged.extend(members);
                return merged;
            }
            let name = self.value(event);
            let name = name.as_str().expect("a name").to_owned();
            let event = self.next();
            let value = self.value(event);
            if name == "<<" {
                merged.extend(value.as_object().expect("a map").clone());
            } else {
                let before = members.insert(name.clone(), value);
                assert_eq!(before, None, "{name} is there twice");
            }
        }
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return text.into();
    }
    // Numbers in other bases, as modes of files, stay texts.
    let is_decimal = !text.starts_with('0') || text == "0";
    match text {
        "" | "~" | "null" => Value::Null,
        "true" => true.into(),
        "false" => false.into(),
        _ => match text.parse::<i64>().ok().filter(|_| is_decimal) {
            Some(number) => number.into(),
            None => text.into(),
        },
    }
}

#[test]
fn aliases_and_merged_maps_are_resolved() {
    let text = "a: &a {x: 1, y: [b, \"2\"]}\nc: {<<: *a, x: 3}\n---\nd: |\n  e\n";
    let expected = [
        serde_json::json!({"a": {"x": 1, "y": ["b", "2"]}, "c": {"x": 3, "y": ["b", "2"]}}),
        serde_json::json!({"d": "e\n"}),
    ];
    assert_eq!(documents(text), expected);
}
