//! Variables that somebody else sets for the commands that follow.

use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What changes in the environment of later commands. Cheap to clone; all clones are the same.
///
/// It goes *below* [`child_environment`](crate::child_environment): whatever that leaves out or sets itself stays so.
#[derive(Clone, Debug, Default)]
pub struct VariableChanges {
    /// Names, with their values or nothing if they are taken away.
    changes: Arc<Mutex<Vec<VariableChange>>>,
    hidden: Arc<[OsString]>,
}

type VariableChange = (OsString, Option<OsString>);

impl VariableChanges {
    /// No changes yet, and never one of these names.
    #[must_use]
    pub fn new(hidden: impl IntoIterator<Item = OsString>) -> Self {
        Self { hidden: hidden.into_iter().collect(), ..Self::default() }
    }

    /// Whether commands must not see a name.
    #[must_use]
    pub fn hides(&self, name: &OsStr) -> bool {
        self.hidden.iter().any(|hidden| hidden == name)
    }

    /// Puts these changes in the place of all earlier ones.
    pub fn set(&self, changes: impl IntoIterator<Item = (OsString, Option<OsString>)>) {
        *self.lock() = changes.into_iter().filter(|(name, _)| !self.hides(name)).collect();
    }

    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The environment with the changes made.
    #[must_use]
    pub fn over(&self, environment: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        let changes = self.lock();
        let is_changed = |name: &OsString| changes.iter().any(|(changed, _)| changed == name);
        let kept = environment.iter().filter(|(name, _)| !is_changed(name)).cloned();
        let set = changes.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        kept.chain(set).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<VariableChange>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::child_environment;

    #[test]
    fn changes_never_bring_in_what_children_must_not_have() {
        let parent: Vec<(OsString, OsString)> =
            [("HOME", "/h"), ("LANG", "C"), ("PATH", "/bin")].map(|(n, v)| (n.into(), v.into())).into();
        let check = |name: &str, value: Option<&str>, seen: Option<&str>| {
            let later = VariableChanges::new(["HIDDEN".into()]);
            later.set([(name.into(), value.map(OsString::from))]);
            let child = child_environment(later.over(&parent), &["PASSED_KEY".into()], Path::new("/project"));
            let found: Vec<_> =
                child.iter().filter(|(other, _)| other == name).map(|(_, v)| v.clone()).collect();
            assert_eq!(found, seen.map(OsString::from).into_iter().collect::<Vec<_>>(), "{name}");
        };
        check("TEAM", Some("blue"), Some("blue"));
        check("LANG", Some("de_DE.UTF-8"), Some("de_DE.UTF-8"));
        check("LANG", Some("zh_CN.GBK"), Some("C.UTF-8"));
        check("LANG", None, None);
        check("PASSED_KEY", Some("x"), Some("x"));
        check("OTHER_KEY", Some("x"), None);
        check("HIDDEN", Some("x"), None);
        for name in ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "BASH_ENV", "ENV", "BASH_FUNC_ls%%"] {
            check(name, Some("x"), None);
        }
        check("CLAUDE_PROJECT_DIR", Some("/elsewhere"), Some("/project"));
        check("CLAUDECODE", None, Some("1"));
        check("PATH", Some("/opt/bin:.:bin"), Some("/opt/bin"));
    }

    #[test]
    fn later_changes_take_the_place_of_earlier_ones_everywhere() {
        let later = VariableChanges::default();
        let other = later.clone();
        later.set([("A".into(), Some("1".into()))]);
        later.set([("B".into(), Some("2".into()))]);
        assert_eq!(other.over(&[]), [("B".into(), "2".into())]);
        later.set([]);
        assert!(other.is_empty());
    }
}
