//! What is said about a call that is denied because nobody is asked: what would allow it.

use std::path::{Path, PathBuf};

use windlass_protocol::{Offers, PathFact};

use super::{MANAGED_ONLY, PermissionCase, can_ask, offer};
use crate::settings::{Answerer, PermissionMode};

/// What would let a call run that nobody is asked about.
pub(super) enum Remedy {
    /// Each of these would; fits behind "To allow it:".
    Any(Vec<String>),
    /// No rule for just this command, but each of these.
    Wider(Vec<String>),
    /// Rules of the administrator, and no others.
    Administrator,
    /// No rule and no mode, here.
    Nothing,
    /// No rule and no mode, ever.
    Hand,
}

impl Remedy {
    pub(super) fn one(text: impl Into<String>) -> Self {
        Self::Any(vec![text.into()])
    }
}

/// The reason of a denial with what would allow the call.
pub(super) fn denial(case: &PermissionCase<'_>, reason: &str, remedy: Remedy) -> String {
    let why = match case.mode() {
        PermissionMode::DontAsk => "the mode dontAsk never asks",
        _ => "not running interactively",
    };
    // What a hook says need not be a sentence.
    let end = if reason.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    let reason = format!("{reason}{end}");
    match remedy {
        Remedy::Any(ways) => format!("{reason} Denied: {why}. To allow it: {}.", ways.join(", or ")),
        Remedy::Wider(ways) => format!(
            "{reason} Denied: {why}, and no rule can allow just this command. To allow it: {}.",
            ways.join(", or ")
        ),
        Remedy::Administrator => format!("{reason} Denied: {why}, and {MANAGED_ONLY}."),
        Remedy::Nothing => format!("{reason} Denied: {why}, and no rule or mode allows it."),
        Remedy::Hand => format!("{reason} No rule or mode allows that; do it by hand."),
    }
}

/// What somebody does who wants to be asked.
pub(super) fn being_asked(case: &PermissionCase<'_>) -> String {
    let mut ways = Vec::new();
    if case.permissions.asking == Answerer::Nobody {
        ways.push("run interactively");
    }
    if case.mode() == PermissionMode::DontAsk {
        ways.push("use --permission-mode default");
    }
    ways.join(" and ")
}

/// The rules a question would offer or one for the very line, and the least permissive mode; else wider ways.
pub(super) fn remedy(case: &PermissionCase<'_>) -> Remedy {
    let managed = case.permissions.is_managed_only;
    let Offers { mut rules, prefix_rules, .. } = offer::offers(case);
    if rules.is_empty() && !managed {
        rules.extend(offer::whole_line(case));
    }
    let named = (!rules.is_empty()).then(|| allowed_tools(&rules));
    let wider = (!prefix_rules.is_empty())
        .then(|| format!("{} for other arguments too", allowed_tools(&prefix_rules)));
    let ways: Vec<String> = named.into_iter().chain(wider).chain(elsewhere(case)).collect();
    if !ways.is_empty() {
        return Remedy::Any(ways);
    }
    let whole_tool = [case.tool.to_owned()];
    let by_tool = || offer::passes_with(case, &whole_tool);
    let bypass = PermissionMode::BypassPermissions;
    let passes = offer::passes_in(case, bypass);
    let by_mode = (passes && !case.permissions.is_bypass_refused).then(|| mode_flag(bypass));
    if managed && (!offer::sufficient(case).is_empty() || by_tool()) {
        Remedy::Administrator
    } else if case.facts.commands.is_some() && by_tool() {
        // Every other command would be allowed as well.
        Remedy::Wider(std::iter::once(being_asked(case)).chain(by_mode).collect())
    } else if by_tool() {
        Remedy::one(allowed_tools(&whole_tool))
    } else if passes {
        Remedy::one(by_mode.unwrap_or_else(|| being_asked(case)))
    } else {
        Remedy::Nothing
    }
}

/// Another mode, another working directory, or both: the first of these that is enough.
fn elsewhere(case: &PermissionCase<'_>) -> Option<String> {
    if let Some(mode) = offer::mode(case) {
        return Some(mode_flag(mode));
    }
    let directory = directory(case.outside()?)?;
    let roots: Vec<PathBuf> = case.roots.iter().cloned().chain([directory.to_owned()]).collect();
    let inside = PermissionCase { roots: &roots, ..*case };
    let add = format!("--add-dir {}", quote(&directory.to_string_lossy()));
    if offer::passes_with(&inside, &[]) {
        return Some(add);
    }
    offer::mode(&inside).map(|mode| format!("{add} and {}", mode_flag(mode)))
}

/// What a mode that changes nothing denies, with the mode that would allow it.
pub(super) fn in_plan_mode(case: &PermissionCase<'_>, reason: String) -> String {
    // Who can be asked hears of the mode anyway.
    let mode = if can_ask(case.permissions) { None } else { offer::mode(case) };
    match mode {
        Some(mode) => format!("{reason} To allow it: {}.", mode_flag(mode)),
        None => reason,
    }
}

fn mode_flag(mode: PermissionMode) -> String {
    format!("--permission-mode {}", mode.name())
}

pub(super) fn allowed_tools(rules: &[String]) -> String {
    let rules: Vec<String> = rules.iter().map(|rule| quote(rule)).collect();
    format!("--allowedTools {}", rules.join(" "))
}

/// A word as a shell takes it.
fn quote(word: &str) -> String {
    let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "_/.-".contains(c));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// The directory that holds a path, or that it is.
fn directory(path: &PathFact) -> Option<&Path> {
    let resolved = path.resolved.as_deref()?;
    if path.is_directory { Some(resolved) } else { resolved.parent() }
}

impl PermissionCase<'_> {
    /// The first path that is not free to read.
    pub(super) fn outside(&self) -> Option<&PathFact> {
        self.facts.paths.iter().find(|path| !self.can_read(path))
    }
}
