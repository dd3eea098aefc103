//! The table of keys for others: a schema for editors, pages for a terminal, and the list in the documentation.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::keys::{self, KEYS, Key, KeyScope, ValueType};

/// A JSON schema of settings files, for editors.
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

/// The names of every key, with the groups they lie in.
pub fn setting_names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.path)
}

/// The keys whose names begin so, as a page for a terminal; nothing if there is none.
pub fn settings_page(prefix: &str) -> Option<String> {
    let is_wanted = |key: &&Key| {
        let rest = key.path.strip_prefix(prefix);
        rest.is_some_and(|rest| prefix.is_empty() || rest.is_empty() || rest.starts_with('.'))
    };
    let wanted = KEYS.iter().filter(|key| !matches!(key.kind, ValueType::Group)).filter(is_wanted);
    let mut page = String::new();
    for key in wanted {
        let idle = if key.has_effect { "" } else { " Not supported yet; ignored." };
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
        Some(group) if key.allowed == KeyScope::Everywhere => group.allowed,
        _ => key.allowed,
    };
    match allowed {
        KeyScope::Managed => " Managed settings only.",
        KeyScope::OutsideRepositories => " Not in project or local settings.",
        KeyScope::NotForeign => " Not in project settings.",
        KeyScope::ForeignOnly(true) => " A project can only turn it on.",
        KeyScope::ForeignOnly(false) => " A project can only turn it off.",
        KeyScope::Everywhere if key.is_awaiting_trust => " In project settings it needs trust.",
        KeyScope::Everywhere => "",
    }
}

fn group(path: &str) -> Value {
    let mut properties = Map::new();
    for key in KEYS.iter().filter(|key| key.is_in(path)) {
        let mut schema = kind(&key.kind, key.path);
        let idle = if key.has_effect { "" } else { " Not supported yet; ignored." };
        schema["description"] = format!("{}{idle}{}", key.about, limits(key)).into();
        properties.insert(key.name().to_owned(), schema);
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn kind(kind: &ValueType, path: &str) -> Value {
    match kind {
        ValueType::Text => json!({ "type": "string" }),
        ValueType::Switch => json!({ "type": "boolean" }),
        ValueType::Whole(least, u64::MAX) => json!({ "type": "integer", "minimum": least }),
        ValueType::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        ValueType::Share(least, most) => json!({ "type": "number", "minimum": least, "maximum": most }),
        ValueType::Choice(words) => json!({ "enum": words }),
        ValueType::List(inner) => json!({ "type": "array", "items": self::kind(inner, path) }),
        ValueType::Map(inner) => json!({ "type": "object", "additionalProperties": self::kind(inner, path) }),
        ValueType::Group => group(path),
        ValueType::Fields(list) => fields(list, path),
        ValueType::Object => json!({ "type": "object" }),
        ValueType::Any => json!({}),
    }
}

fn fields(list: &[(&str, ValueType, bool)], path: &str) -> Value {
    let properties: Map<String, Value> =
        list.iter().map(|(name, inner, _)| ((*name).to_owned(), kind(inner, path))).collect();
    let required: Vec<&str> = list.iter().filter(|(_, _, needed)| *needed).map(|(name, ..)| *name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The keys as a list for the documentation, in Markdown.
    fn settings_list() -> String {
        let mut list = String::from("| Key | Value | Default | Meaning |\n|---|---|---|---|\n");
        for key in KEYS.iter().filter(|key| key.has_effect && !matches!(key.kind, ValueType::Group)) {
            let about = format!("{}{}", key.about, limits(key));
            let accepts = key.kind.accepts();
            let _ = writeln!(list, "| `{}` | {accepts} | {} | {about} |", key.path, key.default);
        }
        let idle = KEYS.iter().filter(|key| !key.has_effect && !matches!(key.kind, ValueType::Group));
        let idle: Vec<String> = idle.map(|key| format!("`{}`", key.path)).collect();
        let _ = write!(
            list,
            "\nNot supported yet: these are checked and ignored; `windlass doctor` lists those that are set:\n{}.\n",
            idle.join(", ")
        );
        list
    }

    #[test]
    fn the_list_of_settings_is_up_to_date() {
        const UPDATE: &str = "WINDLASS_UPDATE_SETTINGS";
        const BEGIN: &str =
            "<!-- The table below is made from crates/config/src/settings_files/keys/table.rs. -->\n\n";
        const END: &str = "\n<!-- The end of the table. -->\n";
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
        let page = std::fs::read_to_string(&file).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let expected = format!("{before}{BEGIN}{}{END}{after}", settings_list());
        if std::env::var_os(UPDATE).is_some() {
            return std::fs::write(file, expected).unwrap();
        }
        assert!(
            page == expected,
            "write docs/settings.md anew: {UPDATE}=1 cargo test -p windlass-config up_to_date"
        );
    }
}
