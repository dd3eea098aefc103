//! Removals that nobody wants by accident: of whole trees that hold more than the work.

use std::path::Path;

use windlass_protocol::{NamedPath, PathNaming, UNKNOWN_TEXT};

use super::PermissionCase;

/// What a call would remove that is asked about in every mode.
pub(super) fn critical<'a>(case: &'a PermissionCase<'_>) -> Option<&'a NamedPath> {
    let commands = case.facts.commands.as_ref()?;
    let mut removed = commands.found.iter().flat_map(|command| &command.removes);
    removed.find(|named| is_critical(named, case))
}

fn is_critical(named: &NamedPath, case: &PermissionCase<'_>) -> bool {
    let lexical = &named.path.lexical;
    match named.naming {
        PathNaming::Unknown => {
            is_below_variable(lexical)
                || is_unknown_at_top(lexical)
                || is_unknown_whole(lexical, case)
                || is_all_of(lexical, case)
                || lexical.starts_with("/proc")
                || lexical.starts_with("/dev")
        }
        PathNaming::Pattern => is_all_of(lexical, case),
        PathNaming::Exact | PathNaming::Mentioned => {
            let names = [Some(lexical.as_path()), named.path.resolved.as_deref()];
            names.into_iter().flatten().any(|name| is_precious(name, case) || is_work(name, case))
        }
    }
}

/// Everything in a directory that holds more than the work, or in one that was added to it.
fn is_all_of(pattern: &Path, case: &PermissionCase<'_>) -> bool {
    let above = pattern.parent().unwrap_or(pattern);
    let is_all = pattern.file_name().is_some_and(|name| name == "*" || name == ".*");
    is_all && (is_precious(above, case) || case.roots.iter().skip(1).any(|root| root == above))
}

/// Nothing at all is known of it, so it may be anything.
fn is_unknown_whole(path: &Path, case: &PermissionCase<'_>) -> bool {
    // As text: what lies below a directory that is named is known to be there.
    path.as_os_str() == case.cwd.join(UNKNOWN_TEXT.to_string()).as_os_str()
}

/// The root, a directory right below it, the home directory or what holds it.
fn is_precious(path: &Path, case: &PermissionCase<'_>) -> bool {
    let depth = path.components().count();
    let holds_home = case.permissions.anchors.home.as_ref().is_some_and(|home| home.starts_with(path));
    depth <= 2 || holds_home
}

/// A working directory or what holds one.
fn is_work(path: &Path, case: &PermissionCase<'_>) -> bool {
    case.roots.iter().any(|root| root.starts_with(path)) || case.cwd.starts_with(path)
}

/// Right below the root, whatever the name turns out to be.
fn is_unknown_at_top(path: &Path) -> bool {
    path.components().nth(1).is_some_and(|part| part.as_os_str().to_string_lossy().contains(UNKNOWN_TEXT))
}

/// A slash or a pattern right behind text that is only known at run time: an empty variable makes it the root.
fn is_below_variable(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let mut before = None;
    for c in text.chars() {
        if before == Some(UNKNOWN_TEXT) && matches!(c, '/' | '*' | '?') {
            return true;
        }
        before = Some(c);
    }
    false
}
