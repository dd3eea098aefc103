//! Which tools a user means by the names in the lists of allowed and disallowed ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::Permissions;

/// The names a tool answers to.
#[derive(Clone, Debug)]
pub struct ToolNames<'a> {
    /// Its own.
    pub name: Arc<str>,
    /// The others.
    pub aliases: &'a [&'static str],
}

/// Names in the lists that mean no tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownTools {
    /// Among the allowed ones.
    pub allowed: Vec<Arc<str>>,
    /// Among the disallowed ones.
    pub disallowed: Vec<Arc<str>>,
}

impl Permissions {
    /// Puts the tools' own names in place of those the user gave, and returns what means no tool.
    ///
    /// A ban is read generously, since one that is missed would let the tool run: `*` stands for anything, and case
    /// does not count. A permission is read strictly.
    pub fn resolve_names(&mut self, known: &[ToolNames<'_>]) -> UnknownTools {
        UnknownTools {
            allowed: resolve(&mut self.allowed, known, |given, name| given == name),
            disallowed: resolve(&mut self.disallowed, known, is_ban_of),
        }
    }
}

fn resolve(
    list: &mut BTreeSet<Arc<str>>,
    known: &[ToolNames<'_>],
    means: fn(&str, &str) -> bool,
) -> Vec<Arc<str>> {
    let mut unknown = Vec::new();
    for given in std::mem::take(list) {
        let is_meant = |tool: &&ToolNames<'_>| {
            means(&given, &tool.name) || tool.aliases.iter().any(|alias| means(&given, alias))
        };
        let meant: Vec<Arc<str>> = known.iter().filter(is_meant).map(|tool| tool.name.clone()).collect();
        if meant.is_empty() {
            unknown.push(given);
        }
        list.extend(meant);
    }
    unknown
}

/// Whether a ban of `given` is a ban of the tool of this name.
fn is_ban_of(given: &str, name: &str) -> bool {
    let (given, name) = (given.to_lowercase(), name.to_lowercase());
    let mut parts = given.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        let Some(place) = rest.find(part) else { return false };
        last = Some(part);
        rest = &rest[place + part.len()..];
    }
    last.map_or(rest.is_empty(), |last| name.ends_with(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tools that a list of names means, and after `?` those that mean none: as a permission, then as a ban.
    #[track_caller]
    fn check(given: &[&str], allowed: &str, disallowed: &str) {
        let known = [
            ToolNames { name: "Bash".into(), aliases: &[] },
            ToolNames { name: "TaskStop".into(), aliases: &["KillShell"] },
        ];
        let list: BTreeSet<Arc<str>> = given.iter().map(|&name| name.into()).collect();
        let mut permissions =
            Permissions { allowed: list.clone(), disallowed: list, ..Permissions::default() };
        let unknown = permissions.resolve_names(&known);
        let shown = |list: &BTreeSet<Arc<str>>, unknown: &[Arc<str>]| {
            let list: Vec<&str> = list.iter().map(|name| &**name).collect();
            format!("{}?{}", list.join(" "), unknown.join(" "))
        };
        assert_eq!(shown(&permissions.allowed, &unknown.allowed), allowed, "{given:?} allowed");
        assert_eq!(shown(&permissions.disallowed, &unknown.disallowed), disallowed, "{given:?} disallowed");
    }

    #[test]
    fn bans_are_read_generously_and_permissions_strictly() {
        check(&[], "?", "?");
        check(&["Bash"], "Bash?", "Bash?");
        check(&["KillShell"], "TaskStop?", "TaskStop?");
        check(&["bash", "killshell"], "?bash killshell", "Bash TaskStop?");
        check(&["*"], "?*", "Bash TaskStop?");
        check(&["Kill*"], "?Kill*", "TaskStop?");
        check(&["*sh", "B*h*"], "?*sh B*h*", "Bash?");
        check(&["*s*x", "Bash*x", "*x"], "?*s*x *x Bash*x", "?*s*x *x Bash*x");
        check(&["Bas", "ash"], "?Bas ash", "?Bas ash");
        check(&["B*shh"], "?B*shh", "?B*shh");
    }
}
