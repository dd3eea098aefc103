//! Changes of permissions as hosts and hooks ask for them.

use serde_json::Value;

use super::change::{Destination, PermissionChange, RuleKind};

impl PermissionChange {
    /// Reads an entry of `updatedPermissions` or of a host's answer. Without a destination it is for the session alone.
    ///
    /// ```
    /// use windlass_config::{Destination, PermissionChange, RuleKind};
    /// let entry = serde_json::json!({
    ///     "type": "addRules", "behavior": "allow", "destination": "localSettings",
    ///     "rules": [{"toolName": "Bash", "ruleContent": "npm test"}],
    /// });
    /// let change = PermissionChange::AddRules(RuleKind::Allow, vec!["Bash(npm test)".into()]);
    /// assert_eq!(PermissionChange::parse(&entry), Ok((change, Some(Destination::Local))));
    /// ```
    pub fn parse(entry: &Value) -> Result<(Self, Option<Destination>), String> {
        let destination = match entry["destination"].as_str() {
            Some("session") => None,
            Some("localSettings") => Some(Destination::Local),
            Some("projectSettings") => Some(Destination::Project),
            Some("userSettings") => Some(Destination::User),
            _ => return Err(wrong("destination", "session, localSettings, projectSettings or userSettings")),
        };
        let change = match entry["type"].as_str() {
            Some("addRules") => Self::AddRules(kind(entry)?, rules(entry)?),
            Some("replaceRules") => Self::ReplaceRules(kind(entry)?, rules(entry)?),
            Some("removeRules") => Self::RemoveRules(kind(entry)?, rules(entry)?),
            Some("setMode") => {
                Self::SetMode(entry["mode"].as_str().ok_or_else(|| wrong("mode", "text"))?.to_owned())
            }
            Some("addDirectories") => Self::AddDirectories(directories(entry)?),
            Some("removeDirectories") => Self::RemoveDirectories(directories(entry)?),
            _ => {
                let types =
                    "addRules, replaceRules, removeRules, setMode, addDirectories or removeDirectories";
                return Err(wrong("type", types));
            }
        };
        Ok((change, destination))
    }
}

fn kind(entry: &Value) -> Result<RuleKind, String> {
    let kinds = [RuleKind::Allow, RuleKind::Ask, RuleKind::Deny];
    let named = entry["behavior"].as_str();
    kinds
        .into_iter()
        .find(|kind| Some(kind.name()) == named)
        .ok_or_else(|| wrong("behavior", "allow, ask or deny"))
}

fn rules(entry: &Value) -> Result<Vec<String>, String> {
    let list = entry["rules"].as_array().ok_or_else(|| wrong("rules", "a list"))?;
    let rule = |rule: &Value| {
        let tool = rule["toolName"].as_str().filter(|name| !name.is_empty());
        let tool = tool.ok_or_else(|| wrong("toolName", "the name of a tool"))?;
        match &rule["ruleContent"] {
            Value::Null => Ok(tool.to_owned()),
            Value::String(content) => Ok(format!("{tool}({content})")),
            _ => Err(wrong("ruleContent", "text")),
        }
    };
    list.iter().map(rule).collect()
}

fn directories(entry: &Value) -> Result<Vec<String>, String> {
    let accepts = || wrong("directories", "a list of paths");
    let list = entry["directories"].as_array().ok_or_else(accepts)?;
    list.iter().map(|path| path.as_str().map(str::to_owned).ok_or_else(accepts)).collect()
}

fn wrong(field: &str, accepts: &str) -> String {
    format!("`{field}` must be {accepts}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_are_read_or_named() {
        let check = |entry: Value, expected: &str| {
            let seen = match PermissionChange::parse(&entry) {
                Ok((change, destination)) => format!("{change:?} {destination:?}"),
                Err(problem) => problem,
            };
            assert_eq!(seen, expected, "{entry}");
        };
        let rules = json!([{"toolName": "Read"}, {"toolName": "Bash", "ruleContent": "ls *"}]);
        check(
            json!({"type": "replaceRules", "behavior": "deny", "rules": rules, "destination": "userSettings"}),
            r#"ReplaceRules(Deny, ["Read", "Bash(ls *)"]) Some(User)"#,
        );
        check(
            json!({"type": "removeRules", "behavior": "ask", "rules": [], "destination": "session"}),
            "RemoveRules(Ask, []) None",
        );
        check(
            json!({"type": "setMode", "mode": "plan", "destination": "projectSettings"}),
            r#"SetMode("plan") Some(Project)"#,
        );
        check(
            json!({"type": "addDirectories", "directories": ["/a"], "destination": "localSettings"}),
            r#"AddDirectories(["/a"]) Some(Local)"#,
        );
        check(
            json!({"type": "removeDirectories", "directories": ["/a"], "destination": "localSettings"}),
            r#"RemoveDirectories(["/a"]) Some(Local)"#,
        );
        check(json!({}), "`destination` must be session, localSettings, projectSettings or userSettings");
        let session = |entry: Value| {
            let mut entry = entry;
            entry["destination"] = "session".into();
            entry
        };
        check(
            session(json!({"type": "x"})),
            "`type` must be addRules, replaceRules, removeRules, setMode, addDirectories or removeDirectories",
        );
        check(session(json!({"type": "addRules", "rules": []})), "`behavior` must be allow, ask or deny");
        check(session(json!({"type": "addRules", "behavior": "allow"})), "`rules` must be a list");
        check(
            session(json!({"type": "addRules", "behavior": "allow", "rules": [{"toolName": ""}]})),
            "`toolName` must be the name of a tool",
        );
        check(session(json!({"type": "setMode"})), "`mode` must be text");
        check(session(json!({"type": "addDirectories"})), "`directories` must be a list of paths");
    }
}
