//! Which tools a user means by the names in rules.

use windlass_protocol::{Behaviour, KNOWN_TOOLS, ToolSpec};

use crate::rules::{Rule, ToolPattern, fold};
use crate::settings::Permissions;

/// A rule whose tool is none of those there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTool {
    /// The rule.
    pub rule: Rule,
    /// In which list it stands.
    pub behaviour: Behaviour,
    /// The name in it.
    pub name: String,
}

impl Permissions {
    /// Puts the tools' own names in place of aliases and, in restrictions, of other spellings; returns the rules
    /// that mean no tool. Names with `_` or `*` may mean tools that come later, and are left alone.
    pub fn resolve_names(&mut self, known: &[ToolSpec]) -> Vec<UnknownTool> {
        let mut unknown = Vec::new();
        for behaviour in [Behaviour::Deny, Behaviour::Ask, Behaviour::Allow] {
            for rule in self.rules.list_mut(behaviour) {
                let given = rule.tool.text.clone();
                let same = |name: &str| match behaviour {
                    Behaviour::Allow => name == given,
                    Behaviour::Ask | Behaviour::Deny => fold(name) == fold(&given),
                };
                let meant = known
                    .iter()
                    .find(|tool| same(&tool.name) || tool.profile.aliases.iter().any(|alias| same(alias)));
                match meant {
                    Some(tool) => rule.tool = ToolPattern::of(&tool.name),
                    None if given.contains(['_', '*']) || KNOWN_TOOLS.iter().any(|name| same(name)) => (),
                    None => unknown.push(UnknownTool { rule: rule.clone(), behaviour, name: given }),
                }
            }
        }
        unknown
    }
}

#[cfg(test)]
mod tests {
    use windlass_protocol::{RawValue, ToolProfile};

    use super::*;
    use crate::rules::{Anchors, RuleSource};

    fn tool(name: &str, aliases: &'static [&'static str]) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            description: "".into(),
            input_schema: RawValue::NULL.to_owned().into(),
            result_chars_max: None,
            profile: ToolProfile { aliases, ..ToolProfile::named(name) },
        }
    }

    /// Whether a name as a permission, and as a ban, means each of the two tools.
    #[track_caller]
    fn check(given: &str, allowed: &str, disallowed: &str) {
        let known = [tool("Bash", &[]), tool("TaskStop", &["KillShell"])];
        for (behaviour, expected) in [(Behaviour::Allow, allowed), (Behaviour::Deny, disallowed)] {
            let mut permissions = Permissions::default();
            let added =
                permissions.rules.add(behaviour, given, RuleSource::named("--tools"), &Anchors::default());
            let seen = if added.is_ok() {
                let unknown = permissions.resolve_names(&known);
                let rules = permissions.rules.list(behaviour);
                let meant = ["Bash", "TaskStop"].into_iter().filter(|tool| rules[0].covers_tool(tool));
                let names: Vec<&str> = meant.collect();
                format!("{}{}", names.join(" "), if unknown.is_empty() { "" } else { "?" })
            } else {
                "refused".to_owned()
            };
            assert_eq!(seen, expected, "{given} {behaviour:?}");
        }
    }

    #[test]
    fn bans_are_read_generously_and_permissions_strictly() {
        check("Bash", "Bash", "Bash");
        check("KillShell", "TaskStop", "TaskStop");
        check("bash", "?", "Bash");
        check("killshell", "?", "TaskStop");
        check("*", "refused", "Bash TaskStop");
        check("Ba*", "refused", "Bash");
        check("*sh", "refused", "Bash");
        check("Bas", "?", "?");
        check("Read", "", "");
    }
}
