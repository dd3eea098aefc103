//! Command lines: every command of a line needs its own leave.

use std::path::Path;

use windlass_protocol::{CommandEffect, NamedPath, Naming, PathFact, PlainCommand, Ruling, UNKNOWN_TEXT};

use super::{Case, allow, by_rule, is_within};
use crate::rules::{Access, Rule};

/// Why a command of a line may run.
pub(super) enum Leave<'a> {
    /// A rule covers it.
    Rule(&'a Rule),
    /// It only looks, where looking is free.
    Looks,
    /// It changes files where the mode lets it.
    Changes,
}

/// What a command of a line still needs.
pub(super) enum Lack<'a> {
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
pub(super) fn allowed(case: &Case<'_>) -> Option<Ruling> {
    let commands = case.facts.commands.as_ref()?.plain.as_ref().ok()?;
    let leaves = commands.iter().map(|command| leave(case, command)).collect::<Result<Vec<_>, _>>().ok()?;
    let rule = leaves.iter().find_map(|leave| match leave {
        Leave::Rule(rule) => Some(*rule),
        Leave::Looks | Leave::Changes => None,
    });
    if let Some(rule) = rule {
        let reason = format!("Allowed by the rule {} ({}).", rule.text, rule.source);
        return Some(Ruling { rule: Some(by_rule(rule)), ..allow(reason) });
    }
    let mut written = commands.iter().flat_map(|command| &command.writes).filter(|named| named.redirected);
    let freed =
        |named: &NamedPath| case.allow_rules().find(|rule| rule.covers_path(Access::Edit, &named.path));
    if let Some(rule) = written.clone().find_map(freed) {
        let reason = format!("Allowed by the rule {} ({}).", rule.text, rule.source);
        return Some(Ruling { rule: Some(by_rule(rule)), ..allow(reason) });
    }
    let changes = leaves.iter().any(|leave| matches!(leave, Leave::Changes)) || written.next().is_some();
    Some(allow(if changes {
        format!("The mode {} allows changes of files inside the working directories.", case.mode().name())
    } else {
        "This only reads, inside the working directories.".to_owned()
    }))
}

/// Whether one command may run, and why.
pub(super) fn leave<'a>(case: &Case<'a>, command: &'a PlainCommand) -> Result<Leave<'a>, Lack<'a>> {
    if command.network {
        return Err(Lack::Person);
    }
    let redirected = |list: &'a [NamedPath]| list.iter().filter(|named| named.redirected);
    let may_change = |named: &&NamedPath| !is_free(case, named);
    if let Some(named) = redirected(&command.writes).find(may_change) {
        return Err(if is_exact(named) { Lack::Write(&named.path) } else { Lack::Person });
    }
    if let Some(rule) = case.allow_rules().find(|rule| rule.covers_command(case.tool, command)) {
        return match redirected(&command.reads).find(|named| !is_exact(named) || !case.may_read(&named.path))
        {
            None => Ok(Leave::Rule(rule)),
            Some(named) if is_exact(named) => Err(Lack::Read(&named.path)),
            Some(_) => Err(Lack::Person),
        };
    }
    match command.effect {
        CommandEffect::Looks => match case.named(&command.reads, |case, named| case.may_read(&named.path)) {
            None => Ok(Leave::Looks),
            Some(_) => Err(Lack::Command),
        },
        CommandEffect::ChangesFiles if case.accepts_edits() => {
            let reads = case.named(&command.reads, |case, named| case.may_read(&named.path));
            match reads.or_else(|| case.named(&command.writes, Case::may_change)) {
                None => Ok(Leave::Changes),
                Some(_) => Err(Lack::Command),
            }
        }
        CommandEffect::ChangesFiles | CommandEffect::Unknown => Err(Lack::Command),
    }
}

fn is_exact(named: &NamedPath) -> bool {
    named.naming == Naming::Exact
}

fn is_free(case: &Case<'_>, named: &NamedPath) -> bool {
    is_exact(named) && case.may_write(&named.path)
}

/// Why a line is not simply allowed.
pub(super) fn reason(case: &Case<'_>) -> Option<String> {
    let facts = case.facts.commands.as_ref()?;
    let commands = match &facts.plain {
        Ok(commands) => commands,
        Err(why) => {
            return Some(format!("This command needs approval: it cannot be fully analysed ({why})."));
        }
    };
    let lacking = commands.iter().find_map(|command| Some((command, leave(case, command).err()?)));
    Some(match lacking {
        None => format!("{} needs approval.", case.tool),
        Some((command, Lack::Write(path))) => {
            format!("No rule allows `{}` to write to {}.", command.text, path.lexical.display())
        }
        Some((command, Lack::Read(path))) => {
            format!("No rule allows `{}` to read {}.", command.text, path.lexical.display())
        }
        Some((command, Lack::Command | Lack::Person)) => unallowed(case, command),
    })
}

/// What is said about a command that has no leave of its own.
fn unallowed(case: &Case<'_>, command: &PlainCommand) -> String {
    if let Some(path) = outside(case, command) {
        return format!(
            "`{}` reads {}, outside the working directories.",
            command.text,
            leads_to(case, path).display()
        );
    }
    format!("No rule allows `{}`.{}", command.text, held_back(case, command).unwrap_or_default())
}

/// The name of a path that is outside: a link can lead there from a name inside.
fn leads_to<'a>(case: &Case<'_>, path: &'a PathFact) -> &'a Path {
    match &path.resolved {
        Some(resolved) if is_within(&path.lexical, case.roots) => resolved,
        _ => &path.lexical,
    }
}

/// What is said about a rule whose star fits a command and does not cover it.
fn held_back(case: &Case<'_>, command: &PlainCommand) -> Option<String> {
    let (rule, held) =
        case.allow_rules().find_map(|rule| Some((rule, rule.holds_back(case.tool, command)?)))?;
    let why = match held.told {
        Some(word) if word.contains(UNKNOWN_TEXT) => {
            format!("`*` does not cover substituted commands (`{}`)", word.replace(UNKNOWN_TEXT, "$…"))
        }
        Some(word) => format!("`*` does not cover other programs (`{word}`)"),
        None => "`*` does not cover what this does".to_owned(),
    };
    let other = held.pattern.map(|pattern| format!(" {}({pattern}) would allow it.", case.tool));
    Some(format!(
        " The rule {} ({}) is not enough: {why}.{}",
        rule.text,
        rule.source,
        other.unwrap_or_default()
    ))
}

/// What a command that only looks, or only changes files, names outside.
fn outside<'a>(case: &Case<'_>, command: &'a PlainCommand) -> Option<&'a PathFact> {
    if command.effect == CommandEffect::Unknown {
        return None;
    }
    case.named(&command.reads, |case, named| case.may_read(&named.path))
        .filter(|named| is_exact(named))
        .map(|named| &named.path)
}
