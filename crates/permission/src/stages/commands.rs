//! Command lines: every command of a line needs its own leave.

use windlass_protocol::{CommandEffect, NamedPath, PathFact, PathNaming, PlainCommand, Ruling};

use super::{PermissionCase, allow, allow_by, is_within};
use crate::rules::{PathAccess, Rule};

/// What a command of a line still needs.
pub(super) enum MissingRight<'a> {
    /// A rule for the command itself.
    Command,
    /// Leave to change what a redirection names.
    Write(&'a PathFact),
    /// Leave to read what it names.
    Read(&'a PathFact),
    /// Nothing but a person can tell.
    Person,
}

/// The line, if every command in it may run.
pub(super) fn allowed_line(case: &PermissionCase<'_>) -> Option<Ruling> {
    let commands = case.facts.commands.as_ref()?.plain.as_ref().ok()?;
    let rules =
        commands.iter().map(|command| allowance(case, command)).collect::<Result<Vec<_>, _>>().ok()?;
    if let Some(rule) = rules.into_iter().flatten().next() {
        return Some(allow_by(rule));
    }
    let mut written = commands.iter().flat_map(|command| &command.writes).filter(|named| named.is_redirected);
    let freed = |named: &NamedPath| {
        let path = exact(named)?;
        case.allow_rules().find(|rule| rule.covers_path(PathAccess::Edit, path))
    };
    if let Some(rule) = written.clone().find_map(freed) {
        return Some(allow_by(rule));
    }
    let changes = commands.iter().any(|command| command.effect == CommandEffect::ChangesFiles)
        || written.next().is_some();
    Some(allow(if changes {
        format!("The mode {} allows changes of files inside the working directories.", case.mode().name())
    } else {
        "This only reads, inside the working directories.".to_owned()
    }))
}

/// The rule that lets one command run; `None` if it only looks or changes files, where that is free.
pub(super) fn allowance<'a>(
    case: &PermissionCase<'a>,
    command: &'a PlainCommand,
) -> Result<Option<&'a Rule>, MissingRight<'a>> {
    if command.has_network {
        return Err(MissingRight::Person);
    }
    check_redirected(&command.writes, |path| case.can_write(path), MissingRight::Write)?;
    if let Some(rule) = case.allow_rules().find(|rule| rule.covers_command(case.tool, command)) {
        check_redirected(&command.reads, |path| case.can_read(path), MissingRight::Read)?;
        return Ok(Some(rule));
    }
    let can_read = || case.first_unfree(&command.reads, PermissionCase::can_read_named).is_none();
    let can_change = || case.first_unfree(&command.writes, PermissionCase::can_change).is_none();
    let is_free = match command.effect {
        CommandEffect::Looks => can_read(),
        CommandEffect::ChangesFiles => case.accepts_edits() && can_read() && can_change(),
        CommandEffect::Unknown => false,
    };
    if is_free { Ok(None) } else { Err(MissingRight::Command) }
}

/// Whether every file that a redirection names may be touched.
fn check_redirected<'a>(
    named: &'a [NamedPath],
    may_touch: impl Fn(&PathFact) -> bool,
    missing: fn(&'a PathFact) -> MissingRight<'a>,
) -> Result<(), MissingRight<'a>> {
    let is_closed = |named: &&NamedPath| !exact(named).is_some_and(&may_touch);
    match named.iter().filter(|named| named.is_redirected).find(is_closed) {
        None => Ok(()),
        Some(closed) => Err(exact(closed).map_or(MissingRight::Person, missing)),
    }
}

/// The path that is named, if it is named as it is.
fn exact(named: &NamedPath) -> Option<&PathFact> {
    named.path.as_known().filter(|_| named.naming == PathNaming::Exact)
}

/// Why a line is not simply allowed.
pub(super) fn reason(case: &PermissionCase<'_>) -> Option<String> {
    let facts = case.facts.commands.as_ref()?;
    let needs_approval = |why| format!("This command needs approval: it cannot be fully analysed ({why}).");
    let commands = match &facts.plain {
        Ok(commands) => commands,
        Err(why) => return Some(needs_approval(why)),
    };
    let lacking = commands.iter().find_map(|command| Some((command, allowance(case, command).err()?)));
    Some(match lacking {
        None => format!("{} needs approval.", case.tool),
        Some((command, MissingRight::Write(path))) => {
            format!("No rule allows `{}` to write to {}.", command.text, path.lexical.display())
        }
        Some((command, MissingRight::Read(path))) => {
            format!("No rule allows `{}` to read {}.", command.text, path.lexical.display())
        }
        Some((command, MissingRight::Command | MissingRight::Person)) => refusal_reason(case, command),
    })
}

/// What is said about a command that has no leave of its own.
fn refusal_reason(case: &PermissionCase<'_>, command: &PlainCommand) -> String {
    let unfree = case.first_unfree(&command.reads, PermissionCase::can_read_named).and_then(exact);
    // Leave to read is not enough for a command that does more.
    if let Some(path) = unfree.filter(|_| command.effect != CommandEffect::Unknown) {
        // A link can lead outside from a name inside.
        let resolved = path.resolved.as_ref().filter(|_| is_within(&path.lexical, case.roots));
        let outside = resolved.unwrap_or(&path.lexical).display();
        return format!("`{}` reads {outside}, outside the working directories.", command.text);
    }
    format!("No rule allows `{}`.{}", command.text, held_back(case, command).unwrap_or_default())
}

/// What is said about a rule whose star fits a command and does not cover it.
fn held_back(case: &PermissionCase<'_>, command: &PlainCommand) -> Option<String> {
    let (rule, held) =
        case.allow_rules().find_map(|rule| Some((rule, rule.holds_back(case.tool, command)?)))?;
    let why = match held.told {
        Some(word) if word.is_known() => format!("`*` does not cover other programs (`{word}`)"),
        Some(word) => format!("`*` does not cover substituted commands (`{word}`)"),
        None => "`*` does not cover what this does".to_owned(),
    };
    let other = held.pattern.map(|pattern| format!(" {}({pattern}) would allow it.", case.tool));
    let other = other.unwrap_or_default();
    Some(format!(" The rule {} ({}) is not enough: {why}.{other}", rule.text, rule.source))
}
