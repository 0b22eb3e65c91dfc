//! The official JSON Schemas and examples of each revision, to check messages against the protocol.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use jsonschema::Validator;
use serde_json::{Value, json};

/// The definitions of one revision. Keep it between checks: a type is prepared once and is then quick to check.
#[derive(Debug)]
pub struct Spec {
    schema: Value,
    prepared: RefCell<HashMap<String, Rc<Validator>>>,
}

impl Spec {
    /// Reads the schema of a revision, such as `2025-11-25`.
    pub fn from_revision(revision: &str) -> std::io::Result<Self> {
        let text = std::fs::read_to_string(folder().join(revision).join("schema.json"))?;
        Ok(Self {
            schema: serde_json::from_str(&text)?,
            prepared: RefCell::default(),
        })
    }

    /// Returns `true` if the revision defines a type of this name.
    pub fn defines(&self, name: &str) -> bool {
        self.schema[self.definitions()].get(name).is_some()
    }

    /// Returns the problems of a value that should have the named type; empty if there are none.
    pub fn problems(&self, name: &str, value: &Value) -> Vec<String> {
        if !self.defines(name) {
            return vec![format!("the revision defines no {name}")];
        }
        match self.prepared(name) {
            Ok(validator) => validator
                .iter_errors(value)
                .map(|error| format!("{name} at {}: {error}", error.instance_path()))
                .collect(),
            Err(error) => vec![error],
        }
    }

    fn prepared(&self, name: &str) -> Result<Rc<Validator>, String> {
        if let Some(validator) = self.prepared.borrow().get(name) {
            return Ok(Rc::clone(validator));
        }
        let definitions = self.definitions();
        let schema = json!({
            "$schema": self.schema["$schema"],
            "$ref": format!("#/{definitions}/{name}"),
            definitions: self.schema[definitions],
        });
        let validator =
            Rc::new(jsonschema::validator_for(&schema).map_err(|error| error.to_string())?);
        self.prepared
            .borrow_mut()
            .insert(name.to_owned(), Rc::clone(&validator));
        Ok(validator)
    }

    fn definitions(&self) -> &'static str {
        if self.schema.get("$defs").is_some() {
            "$defs"
        } else {
            "definitions"
        }
    }
}

/// Returns the official examples of a type, with their names; empty for revisions without examples.
pub fn examples(revision: &str, name: &str) -> std::io::Result<Vec<(String, String)>> {
    let folder = folder().join(revision).join("examples").join(name);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut examples = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        examples.push((path.display().to_string(), std::fs::read_to_string(&path)?));
    }
    examples.sort();
    Ok(examples)
}

/// Returns the folder of the official files.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("spec")
}
