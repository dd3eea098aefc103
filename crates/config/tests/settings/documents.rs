//! The schema of settings is made from the table of keys, and what the documentation shows is right.

use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_config::settings_schema;

use crate::machine::Machine;

/// Set to have the files written.
const UPDATE: &str = "WINDLASS_UPDATE_SETTINGS";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

#[track_caller]
fn check(name: &str, expected: &str) {
    let file = file(name);
    if std::env::var_os(UPDATE).is_some() {
        return std::fs::write(file, expected).unwrap();
    }
    let seen = std::fs::read_to_string(file).unwrap();
    assert!(seen == expected, "write docs/{name} anew: {UPDATE}=1 cargo test -p windlass-config up_to_date");
}

#[test]
fn the_schema_is_up_to_date() {
    check("settings.schema.json", &settings_schema());
}

#[test]
fn examples_in_the_documentation_have_no_problems() {
    let page = std::fs::read_to_string(file("settings.md")).unwrap();
    let examples: Vec<&str> =
        page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        let machine = Machine::new(&[("home/.claude/settings.json", example)]);
        machine.check_problems(&machine.read(None).effective(true).problems, &[]);
    }
}

#[test]
fn the_schema_names_every_setting() {
    let schema: Value = serde_json::from_str(&settings_schema()).unwrap();
    let at = |path: &str| schema.pointer(path).unwrap_or_else(|| panic!("{path} is missing")).clone();
    assert_eq!(at("/properties/permissions/properties/deny/items/type"), "string");
    assert_eq!(at("/properties/sandbox/properties/network/properties/deniedDomains/type"), "array");
    assert_eq!(at("/properties/env/additionalProperties/type"), "string");
    assert_eq!(at("/properties/effortLevel/enum/0"), "low");
    assert_eq!(at("/properties/cleanupPeriodDays/minimum"), 1);
    assert_eq!(at("/properties/hooks/additionalProperties/items/type"), "object");
    assert_eq!(at("/properties/sandbox/properties/credentials/properties/files/items/required/0"), "path");
    assert_eq!(at("/properties/$schema/type"), "string");
}
