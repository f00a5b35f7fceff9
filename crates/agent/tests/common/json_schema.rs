//! The part of JSON Schema (draft 7) that the schema of configurations uses.

use regex_lite::Regex;
use serde_json::Value;

/// Returns whether a value is valid by a schema, of which `root` has the definitions. Panics at a keyword that is not known here.
pub(crate) fn holds(schema: &Value, value: &Value, root: &Value) -> bool {
    schema.as_object().unwrap().iter().all(|(keyword, wanted)| {
        let all =
            |schemas: &Value| schemas.as_array().unwrap().iter().map(|one| holds(one, value, root)).collect::<Vec<_>>();
        let (number, text, list, table) = (value.as_f64(), value.as_str(), value.as_array(), value.as_object());
        let limit = || wanted.as_f64().unwrap();
        let count = || wanted.as_u64().unwrap() as usize;
        match keyword.as_str() {
            "$schema" | "title" | "description" | "default" | "definitions" | "then" => true,
            "$ref" => {
                let path = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                holds(root.pointer(path).unwrap(), value, root)
            }
            "type" => is_of_type(value, wanted.as_str().unwrap()),
            "enum" => wanted.as_array().unwrap().iter().any(|one| is_equal(one, value)),
            "const" => is_equal(wanted, value),
            "anyOf" => all(wanted).contains(&true),
            "allOf" => !all(wanted).contains(&false),
            "not" => !holds(wanted, value, root),
            "if" => !holds(wanted, value, root) || schema.get("then").is_none_or(|then| holds(then, value, root)),
            "required" => table.is_none_or(|table| {
                wanted.as_array().unwrap().iter().all(|key| table.contains_key(key.as_str().unwrap()))
            }),
            "properties" => table.is_none_or(|table| {
                let properties = wanted.as_object().unwrap();
                properties.iter().all(|(key, one)| table.get(key).is_none_or(|value| holds(one, value, root)))
            }),
            "additionalProperties" => {
                assert_eq!(wanted, &Value::Bool(false));
                table.is_none_or(|table| table.keys().all(|key| schema["properties"].get(key).is_some()))
            }
            "propertyNames" => {
                table.is_none_or(|table| table.keys().all(|key| holds(wanted, &Value::from(key.as_str()), root)))
            }
            "dependencies" => table.is_none_or(|table| {
                let dependencies = wanted.as_object().unwrap();
                dependencies.iter().all(|(key, one)| !table.contains_key(key) || holds(one, value, root))
            }),
            "items" => list.is_none_or(|list| list.iter().all(|item| holds(wanted, item, root))),
            "minItems" => list.is_none_or(|list| list.len() >= count()),
            "uniqueItems" => list.is_none_or(|list| (1..list.len()).all(|at| !list[..at].contains(&list[at]))),
            "minimum" => number.is_none_or(|number| number >= limit()),
            "maximum" => number.is_none_or(|number| number <= limit()),
            "exclusiveMinimum" => number.is_none_or(|number| number > limit()),
            "exclusiveMaximum" => number.is_none_or(|number| number < limit()),
            "minLength" => text.is_none_or(|text| text.chars().count() >= count()),
            "pattern" => text.is_none_or(|text| Regex::new(wanted.as_str().unwrap()).unwrap().is_match(text)),
            other => panic!("the keyword {other} is not known here"),
        }
    })
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        // Also 3.0.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("the type {other} is not known here"),
    }
}

/// Numbers are equal by their values: 1 and 1.0.
fn is_equal(a: &Value, b: &Value) -> bool {
    if a.is_number() && b.is_number() { a.as_f64() == b.as_f64() } else { a == b }
}
