//! Removals that nobody wants by accident: of whole trees that hold more than the work.

use std::path::Path;

use windlass_protocol::{CommandPath, CommandWord, NamedPath, PathNaming};

use super::PermissionCase;

/// What a call would remove that is asked about in every mode.
pub(super) fn critical<'a>(case: &'a PermissionCase<'_>) -> Option<&'a NamedPath> {
    let commands = case.facts.commands.as_ref()?;
    let mut removed = commands.found.iter().flat_map(|command| &command.removes);
    removed.find(|named| is_critical(named, case))
}

fn is_critical(named: &NamedPath, case: &PermissionCase<'_>) -> bool {
    let lexical = named.path.lexical();
    let is_lost = |word| is_below_variable(word) || is_unknown_at_top(word) || is_unknown_whole(word, case);
    match named.naming {
        PathNaming::Unknown => {
            matches!(&named.path, CommandPath::Partial(word) if is_lost(word))
                || is_all_of(&lexical, case)
                || lexical.starts_with("/proc")
                || lexical.starts_with("/dev")
        }
        PathNaming::Pattern => is_all_of(&lexical, case),
        PathNaming::Exact | PathNaming::Mentioned => {
            let resolved = named.path.as_known().and_then(|path| path.resolved.as_deref());
            let names = [Some(&*lexical), resolved];
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
fn is_unknown_whole(path: &CommandWord, case: &PermissionCase<'_>) -> bool {
    // As text: what lies below a directory that is named is known to be there.
    path.pieces() == [&*case.cwd.join("").to_string_lossy(), ""]
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
fn is_unknown_at_top(path: &CommandWord) -> bool {
    // A slash at the end begins one more name.
    Path::new(&format!("{}x", path.start())).components().count() <= 2
}

/// A slash or a pattern right behind text that is only known at run time: an empty variable makes it the root.
fn is_below_variable(path: &CommandWord) -> bool {
    path.pieces().iter().skip(1).any(|piece| piece.starts_with(['/', '*', '?']))
}
