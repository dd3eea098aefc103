//! Where a call may look and change without anybody being asked.

use std::path::{Path, PathBuf};

use windlass_protocol::{NamedPath, PathFact, PathNaming};

use super::PermissionCase;
use crate::rules::PathAccess;

impl PermissionCase<'_> {
    /// Whether a path may be read unasked: it lies inside, a tool made it for reading, or a rule allows it.
    pub(super) fn can_read(&self, path: &PathFact) -> bool {
        let made_for_it = path.resolved.as_ref().is_some_and(|resolved| self.readable.contains(resolved));
        made_for_it || self.is_inside(path) || self.rules_allow(PathAccess::Read, path)
    }

    /// Whether a path may be changed by a redirection unasked.
    pub(super) fn can_write(&self, path: &PathFact) -> bool {
        self.accepts_edits() && self.is_inside(path) || self.rules_allow(PathAccess::Edit, path)
    }

    /// Whether a command may change a path where edits are accepted; not all of a working directory at once.
    pub(super) fn can_change(&self, named: &NamedPath) -> bool {
        let is_one = |path: &PathFact| {
            self.is_inside(path) && !(named.is_recursive && self.roots.contains(&path.lexical))
        };
        named.path.as_known().is_some_and(is_one)
    }

    /// Whether a command may read a path that it names.
    pub(super) fn can_read_named(&self, named: &NamedPath) -> bool {
        named.path.as_known().is_some_and(|path| self.can_read(path))
    }

    fn rules_allow(&self, access: PathAccess, path: &PathFact) -> bool {
        self.allow_rules().any(|rule| rule.covers_path(access, path))
    }

    /// Both names of the path must be inside, compared by components: a link inside may point outside.
    pub(super) fn is_inside(&self, path: &PathFact) -> bool {
        is_within(&path.lexical, self.roots)
            && path.resolved.as_deref().is_some_and(|resolved| is_within(resolved, self.roots))
    }

    /// The first path that is not free, as an unknown one is not; what a pattern stands for is listed beside it.
    pub(super) fn first_unfree<'a>(
        &self,
        named: &'a [NamedPath],
        may: impl Fn(&Self, &NamedPath) -> bool,
    ) -> Option<&'a NamedPath> {
        named.iter().find(|named| match named.naming {
            PathNaming::Exact | PathNaming::Mentioned => !may(self, named),
            PathNaming::Pattern => false,
            PathNaming::Unknown => true,
        })
    }
}

pub(super) fn is_within(name: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| name.starts_with(root))
}
