//! The table of keys for others: a schema for editors, and the list in the documentation.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::keys::{self, Allowed, KEYS, Key, Kind};

/// A JSON schema of settings files, for editors.
#[must_use]
pub fn settings_schema() -> String {
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Windlass settings",
    });
    if let (Value::Object(schema), Value::Object(group)) = (&mut schema, group("")) {
        schema.extend(group);
    }
    format!("{schema:#}\n")
}

/// The keys as a list for the documentation, in Markdown.
#[must_use]
pub fn settings_list() -> String {
    let mut list = String::from("| Key | Value | Default | Meaning |\n|---|---|---|---|\n");
    for key in KEYS.iter().filter(|key| key.acts && !matches!(key.kind, Kind::Group)) {
        let about = format!("{}{}", key.about, limits(key));
        let accepts = key.kind.accepts();
        let _ = writeln!(list, "| `{}` | {accepts} | {} | {about} |", key.path, key.default);
    }
    let idle = KEYS.iter().filter(|key| !key.acts && !matches!(key.kind, Kind::Group));
    let idle: Vec<String> = idle.map(|key| format!("`{}`", key.path)).collect();
    let _ = write!(
        list,
        "\nNot supported yet: these are checked and ignored; `windlass doctor` lists those that are set:\n{}.\n",
        idle.join(", ")
    );
    list
}

/// The names of every key, with the groups they lie in.
pub fn setting_names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.path)
}

/// The keys whose names begin so, as a page for a terminal; nothing if there is none.
#[must_use]
pub fn settings_page(prefix: &str) -> Option<String> {
    let is_wanted = |key: &&Key| {
        let rest = key.path.strip_prefix(prefix);
        rest.is_some_and(|rest| prefix.is_empty() || rest.is_empty() || rest.starts_with('.'))
    };
    let wanted = KEYS.iter().filter(|key| !matches!(key.kind, Kind::Group)).filter(is_wanted);
    let mut page = String::new();
    for key in wanted {
        let idle = if key.acts { "" } else { " Not supported yet; ignored." };
        let default = if key.default.is_empty() { "none" } else { key.default };
        let (about, accepts) = (key.about, key.kind.accepts());
        let _ = write!(
            page,
            "{}\n    {about}{idle}{}\n    Value: {accepts}. Default: {default}.\n",
            key.path,
            limits(key)
        );
    }
    (!page.is_empty()).then_some(page)
}

/// Who may not set a key, for people.
fn limits(key: &Key) -> &'static str {
    let group = key.path.rsplit_once('.').and_then(|(group, _)| keys::find(group));
    let allowed = match group {
        Some(group) if key.allowed == Allowed::Everywhere => group.allowed,
        _ => key.allowed,
    };
    match allowed {
        Allowed::Managed => " Managed settings only.",
        Allowed::OutsideRepositories => " Not in project or local settings.",
        Allowed::NotForeign => " Not in project settings.",
        Allowed::ForeignOnly(true) => " A project can only turn it on.",
        Allowed::ForeignOnly(false) => " A project can only turn it off.",
        Allowed::Everywhere if key.waits => " In project settings it needs trust.",
        Allowed::Everywhere => "",
    }
}

fn group(path: &str) -> Value {
    let mut properties = Map::new();
    for key in KEYS.iter().filter(|key| key.is_in(path)) {
        let mut schema = kind(&key.kind, key.path);
        let idle = if key.acts { "" } else { " Not supported yet; ignored." };
        schema["description"] = format!("{}{idle}{}", key.about, limits(key)).into();
        properties.insert(key.name().to_owned(), schema);
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn kind(kind: &Kind, path: &str) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Switch => json!({ "type": "boolean" }),
        Kind::Whole(least, u64::MAX) => json!({ "type": "integer", "minimum": least }),
        Kind::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Kind::Share(least, most) => json!({ "type": "number", "minimum": least, "maximum": most }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::List(inner) => json!({ "type": "array", "items": self::kind(inner, path) }),
        Kind::Map(inner) => json!({ "type": "object", "additionalProperties": self::kind(inner, path) }),
        Kind::Group => group(path),
        Kind::Fields(list) => fields(list, path),
        Kind::Object => json!({ "type": "object" }),
        Kind::Any => json!({}),
    }
}

fn fields(list: &[(&str, Kind, bool)], path: &str) -> Value {
    let properties: Map<String, Value> =
        list.iter().map(|(name, inner, _)| ((*name).to_owned(), kind(inner, path))).collect();
    let required: Vec<&str> = list.iter().filter(|(_, _, needed)| *needed).map(|(name, ..)| *name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
