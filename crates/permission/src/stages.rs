//! Whether a call may run: an ordered list of stages over the facts of the call.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use windlass_protocol::{
    CallFacts, CallKind, CommandPath, HookPermission, NamedPath, PathFact, PathNaming, RawValue, Ruling,
    RulingRule, ToolProfile, Verdict,
};

use crate::rules::{Behaviour, RestrictionMatch, Rule, RuleScope, RuleSubject, is_private};
use crate::settings::{Answerer, PermissionMode, Permissions};

mod advice;
mod commands;
mod free_paths;
mod offer;
mod prefixes;
mod protected_paths;
mod removals;
mod sandbox;

pub use offer::{missing_rules, offers};
pub use protected_paths::{PROTECTED_DIRECTORIES, PROTECTED_FILES};
pub use sandbox::is_confined;

use advice::Remedy;
use free_paths::is_within;

/// A call as the stages see it.
#[derive(Clone, Copy)]
pub struct PermissionCase<'a> {
    /// The tool's own name.
    pub tool: &'a str,
    /// What the tool declares about itself.
    pub profile: ToolProfile,
    /// What the call was given.
    pub input: &'a RawValue,
    /// What the tool says about it.
    pub facts: &'a CallFacts,
    /// What a hook wants to become of it.
    pub hook: Option<&'a HookPermission>,
    /// Whether the same call was started before, with an unknown outcome.
    pub is_doubtful: bool,
    /// Files outside the working directories that tools made for reading.
    pub readable: &'a BTreeSet<PathBuf>,
    /// Who may do what.
    pub permissions: &'a Permissions,
    /// The working directories; the first is the project's.
    pub roots: &'a [PathBuf],
    /// Where the call would run.
    pub cwd: &'a Path,
}

static NOTHING: BTreeSet<PathBuf> = BTreeSet::new();

impl<'a> PermissionCase<'a> {
    /// A call that nothing is known of but these facts.
    pub fn new(
        tool: &'a str,
        facts: &'a CallFacts,
        permissions: &'a Permissions,
        roots: &'a [PathBuf],
    ) -> Self {
        Self {
            tool,
            profile: ToolProfile::named(tool),
            input: RawValue::NULL,
            facts,
            hook: None,
            is_doubtful: false,
            readable: &NOTHING,
            permissions,
            roots,
            cwd: roots.first().map_or(Path::new("/"), |root| root),
        }
    }

    fn mode(&self) -> PermissionMode {
        self.permissions.mode
    }

    /// What users call it.
    fn noun(&self) -> &'static str {
        if self.facts.commands.is_some() { "command" } else { "call" }
    }

    /// Whether files inside the working directories may be changed unasked.
    fn accepts_edits(&self) -> bool {
        matches!(self.mode(), PermissionMode::AcceptEdits | PermissionMode::Auto)
    }

    /// The rules that allow. Where a model judges, those that would let anything run do not count.
    fn allow_rules(&self) -> impl Iterator<Item = &'a Rule> {
        let judged = self.mode() == PermissionMode::Auto;
        self.permissions.rules.list(Behaviour::Allow).iter().filter(move |rule| !(judged && rule.is_broad()))
    }
}

/// A call on its way through the stages, with the first rule of each kind that means it. Every rule is compared once, whichever
/// stages look at the result.
struct CaseReview<'a> {
    case: PermissionCase<'a>,
    subject: RuleSubject<'a>,
    denying: Option<&'a Rule>,
    asking: Option<&'a Rule>,
    /// Denies it or asks about it, perhaps: nobody can tell.
    doubting: Option<&'a Rule>,
}

impl<'a> std::ops::Deref for CaseReview<'a> {
    type Target = PermissionCase<'a>;

    fn deref(&self) -> &PermissionCase<'a> {
        &self.case
    }
}

impl<'a> CaseReview<'a> {
    fn new(case: &PermissionCase<'a>) -> Self {
        let subject = RuleSubject::new(case.tool, case.profile, case.input, case.facts);
        let rules = &case.permissions.rules;
        let mut doubting = None;
        let mut means = |rule: &&'a Rule| {
            let seen = restricts(rule, case, &subject);
            doubting = doubting.or((seen == RestrictionMatch::May).then_some(*rule));
            seen == RestrictionMatch::Yes
        };
        let denying = rules.list(Behaviour::Deny).iter().find(&mut means);
        // A rule about every command was made for commands that can reach everything.
        let counts = |rule: &&Rule| !(rule.is_about_all_of(subject.tool) && sandbox::is_free(case));
        // Behind a denial nothing counts any more.
        let asked = rules.list(Behaviour::Ask).iter().filter(|_| denying.is_none());
        let asking = asked.filter(counts).find(means);
        Self { case: *case, subject, denying, asking, doubting }
    }
}

/// Where a part of a line cannot be seen, every command may hide, and every path that no sandbox keeps closed.
fn restricts(rule: &Rule, case: &PermissionCase<'_>, subject: &RuleSubject<'_>) -> RestrictionMatch {
    let seen = rule.restricts(subject);
    let unseen = case.facts.commands.as_ref().is_some_and(|commands| commands.unseen.is_some());
    let may_hide = || match rule.what {
        RuleScope::Commands(_) => rule.covers_tool(case.tool),
        RuleScope::Paths(..) => !sandbox::is_confined(case),
        _ => false,
    };
    if unseen && may_hide() { seen.max(RestrictionMatch::May) } else { seen }
}

/// A stage settles the case or passes it on.
type Stage = fn(&CaseReview<'_>) -> Option<Ruling>;

/// The stages, in order; the first that settles decides. What none settles is asked.
const STAGES: [Stage; 19] = [
    denied_by_hook,
    denied_by_rule,
    plan_mode,
    asked_by_rule,
    doubted_by_rule,
    asked_by_hook,
    needs_person,
    outcome_unknown,
    critical_removal,
    private_host,
    sandbox::leaves_sandbox,
    bypass_mode,
    protected_edit,
    sandbox::confined_command,
    allowed_by_hook,
    allowed_by_rule,
    harmless_call,
    accepted_edit,
    judged_call,
];

/// Decides about a call.
pub fn decide_call(case: &PermissionCase<'_>) -> Ruling {
    let review = CaseReview::new(case);
    STAGES.iter().find_map(|stage| stage(&review)).unwrap_or_else(|| ask(case))
}

/// Why nothing would spare the question about a call, in a few words.
pub fn why_each_time(case: &PermissionCase<'_>) -> String {
    let review = CaseReview::new(case);
    if let Some(rule) = review.asking.or(review.doubting) {
        return format!("the rule {} ({}) requires it", rule.text, rule.source);
    }
    let removes_much = || removals::critical(&review).is_some();
    let hidden = case.facts.commands.as_ref().is_some_and(|commands| commands.has_hidden);
    let changed = protected_path(case);
    let why = match case.hook {
        Some(HookPermission::Ask(_)) => "a hook requires it",
        _ if case.profile.is_for_person => "only you can answer it",
        _ if case.is_doubtful => "whether it took effect before is unknown",
        _ if removes_much() => "it deletes more than one project's files",
        _ if changed.as_ref().is_some_and(|changed| changed.perhaps.is_some()) => {
            "it may change a protected file"
        }
        _ if changed.is_some() => "it changes a protected file",
        _ if sandbox::asks_to_leave(case) => "leaving the sandbox is asked about every time",
        _ if case.permissions.is_managed_only => MANAGED_ONLY,
        _ if hidden => "part of the command is invisible",
        _ => "no rule can describe just this call",
    };
    why.to_owned()
}

/// Asks in place of a model that could not tell, or denies where nobody answers.
pub fn ask_in_place(case: &PermissionCase<'_>, reason: String) -> Ruling {
    ask_because(case, reason, || advice::remedy(case))
}

/// Whether a person or a host answers questions.
pub fn can_ask(permissions: &Permissions) -> bool {
    permissions.asking == Answerer::Person && permissions.mode != PermissionMode::DontAsk
}

fn allow(reason: impl Into<String>) -> Ruling {
    Ruling { verdict: Verdict::Allow, rule: None, reason: reason.into(), is_undecided: false }
}

fn allow_by(rule: &Rule) -> Ruling {
    let reason = format!("Allowed by the rule {} ({}).", rule.text, rule.source);
    Ruling { rule: Some(by_rule(rule)), ..allow(reason) }
}

fn deny(reason: impl Into<String>) -> Ruling {
    Ruling { verdict: Verdict::Deny, rule: None, reason: reason.into(), is_undecided: false }
}

fn by_rule(rule: &Rule) -> RulingRule {
    RulingRule { text: rule.text.clone(), source: rule.source.to_string().into() }
}

fn denied_by_hook(case: &CaseReview<'_>) -> Option<Ruling> {
    let Some(HookPermission::Deny(reason)) = case.hook else { return None };
    Some(deny(format!("A hook denied this call: {reason}")))
}

/// A denial is final, whatever allows the call.
fn denied_by_rule(case: &CaseReview<'_>) -> Option<Ruling> {
    let rule = case.denying?;
    let reason = format!("The rule {} ({}) denies this {}.", rule.text, rule.source, case.noun());
    Some(Ruling { rule: Some(by_rule(rule)), ..deny(reason) })
}

/// Plan mode stands before the rules that allow: nothing changes while a plan is made.
fn plan_mode(case: &CaseReview<'_>) -> Option<Ruling> {
    let changes = matches!(case.facts.kind, CallKind::Edit | CallKind::Execute);
    (case.mode() == PermissionMode::Plan && changes)
        .then(|| deny(advice::in_plan_mode(case, "Plan mode allows only reading.".to_owned())))
}

fn asked_by_rule(case: &CaseReview<'_>) -> Option<Ruling> {
    let rule = case.asking?;
    let reason =
        format!("The rule {} ({}) requires approval for this {}.", rule.text, rule.source, case.noun());
    // It beats every rule that allows, so another rule is no help.
    let remedy =
        || Remedy::Any(vec![advice::being_asked(case), format!("remove that rule from {}", rule.source)]);
    let asked = ask_because(case, reason, remedy);
    Some(Ruling { rule: Some(by_rule(rule)), ..asked })
}

/// Where something that is denied, or to be asked about, could hide and nobody can tell, it is asked about.
fn doubted_by_rule(case: &CaseReview<'_>) -> Option<Ruling> {
    let rule = case.doubting?;
    let unseen = case.facts.commands.as_ref().and_then(|commands| commands.unseen.as_ref());
    let why = unseen.map_or("what it names is only known when it runs", String::as_str);
    let reason =
        format!("The rule {} ({}) may apply; this cannot be checked: {why}.", rule.text, rule.source);
    let asked = ask_because(case, reason, || Remedy::one("use a command that shows what it does"));
    Some(Ruling { rule: Some(by_rule(rule)), ..asked })
}

/// A hook's question is asked whatever would allow the call; what denies it stands before this.
fn asked_by_hook(case: &CaseReview<'_>) -> Option<Ruling> {
    let Some(HookPermission::Ask(reason)) = case.hook else { return None };
    Some(ask_because(case, format!("A hook requires approval: {reason}"), || {
        Remedy::Any(vec![advice::being_asked(case), "change that hook".to_owned()])
    }))
}

fn needs_person(case: &CaseReview<'_>) -> Option<Ruling> {
    case.profile.is_for_person.then(|| {
        let reason = format!("{} needs an answer from the user.", case.tool);
        ask_because(case, reason, || Remedy::one(advice::being_asked(case)))
    })
}

/// Nothing that does more than read is made twice without a decision, whatever else allows it.
fn outcome_unknown(case: &CaseReview<'_>) -> Option<Ruling> {
    let doubtful = case.is_doubtful && !case.facts.kind.is_read_only();
    doubtful.then(|| {
        let reason =
            "The same call was running when the session was cut off; whether it took effect is unknown.";
        ask_because(case, reason.to_owned(), || {
            Remedy::one("check whether it took effect, then prompt again")
        })
    })
}

fn critical_removal(case: &CaseReview<'_>) -> Option<Ruling> {
    let removed = removals::critical(case)?;
    let path = removed.path.lexical();
    let path = path.strip_prefix(case.cwd).unwrap_or(&path).display();
    let what = match &removed.path {
        CommandPath::Known(fact) => format!("`{}`", fact.lexical.display()),
        CommandPath::Partial(_) => format!("`{path}`, which is only known at run time"),
    };
    let this = if can_ask(case.permissions) { "This" } else { "Refused: this" };
    Some(ask_because(case, format!("{this} would delete {what}."), || Remedy::Hand))
}

/// What only this machine and its network can reach needs a rule that names the very host.
fn private_host(case: &CaseReview<'_>) -> Option<Ruling> {
    let url = case.facts.url.as_ref().filter(|url| is_private(&url.host))?;
    let is_literal = |rule: &&Rule| matches!(&rule.what, RuleScope::Hosts(pattern) if pattern.is_literal());
    if case.allow_rules().filter(is_literal).any(|rule| rule.covers(&case.subject)) {
        return None;
    }
    let reason = format!("{} is an address of this machine or its network.", url.host);
    Some(ask_because(case, reason, || advice::remedy(case)))
}

fn bypass_mode(case: &CaseReview<'_>) -> Option<Ruling> {
    (case.mode() == PermissionMode::BypassPermissions)
        .then(|| allow("The mode bypassPermissions allows everything."))
}

/// Files that can make other programs run something are always asked about: allowing a tool does not mean these.
fn protected_edit(case: &CaseReview<'_>) -> Option<Ruling> {
    let changed = protected_path(case)?;
    if case.mode() == PermissionMode::Auto {
        return Some(classify(case));
    }
    let path = changed.path.display();
    let reason = match changed.perhaps {
        None => format!("This changes the protected file {path}."),
        Some(name) => {
            format!("This changes everything that {path} matches, perhaps a protected file such as {name}.")
        }
    };
    Some(ask_because(case, reason, || advice::remedy(case)))
}

/// A hook's permission spares the question, and nothing else: what denies a call and what is always asked stand before it.
fn allowed_by_hook(case: &CaseReview<'_>) -> Option<Ruling> {
    (case.hook == Some(&HookPermission::Allow)).then(|| allow("A hook allowed this call."))
}

fn allowed_by_rule(case: &CaseReview<'_>) -> Option<Ruling> {
    let rule = case.allow_rules().find(|rule| rule.covers(&case.subject));
    rule.map(allow_by).or_else(|| commands::allowed_line(case))
}

/// Reading inside the working directories, and what touches only the session itself.
fn harmless_call(case: &CaseReview<'_>) -> Option<Ruling> {
    // The parts of a command line have been looked at one by one.
    if case.facts.commands.is_some() {
        return None;
    }
    match case.facts.kind {
        CallKind::Session => Some(allow("This affects only the session itself.")),
        CallKind::Read => {
            let free = case.facts.paths.iter().all(|path| case.can_read(path));
            free.then(|| allow("Reading inside the working directories needs no approval."))
        }
        CallKind::Fetch | CallKind::Edit | CallKind::Execute => None,
    }
}

fn accepted_edit(case: &CaseReview<'_>) -> Option<Ruling> {
    let edits = case.accepts_edits() && case.facts.kind == CallKind::Edit;
    let inside = || !case.facts.paths.is_empty() && case.facts.paths.iter().all(|path| case.is_inside(path));
    (edits && inside()).then(|| {
        allow(format!("The mode {} allows edits inside the working directories.", case.mode().name()))
    })
}

fn judged_call(case: &CaseReview<'_>) -> Option<Ruling> {
    (case.mode() == PermissionMode::Auto).then(|| classify(case))
}

fn classify(case: &PermissionCase<'_>) -> Ruling {
    Ruling { verdict: Verdict::Classify, rule: None, reason: reason(case), is_undecided: false }
}

fn ask(case: &PermissionCase<'_>) -> Ruling {
    ask_because(case, reason(case), || advice::remedy(case))
}

/// Asks, or denies with the same reason where nobody answers.
fn ask_because(case: &PermissionCase<'_>, reason: String, remedy: impl FnOnce() -> Remedy) -> Ruling {
    if can_ask(case.permissions) {
        return Ruling { verdict: Verdict::Ask, ..allow(reason) };
    }
    Ruling { is_undecided: true, ..deny(advice::denial(case, &reason, remedy())) }
}

/// What no rule of the user can do anything about.
const MANAGED_ONLY: &str = "only rules in managed settings can allow it; ask your administrator";

/// Why the call is not simply allowed.
fn reason(case: &PermissionCase<'_>) -> String {
    if let Some(reason) = commands::reason(case) {
        return reason;
    }
    let (tool, facts) = (case.tool, case.facts);
    match case.outside() {
        None if facts.kind == CallKind::Edit || facts.url.is_some() => {
            format!("{tool} of {} needs approval.", facts.target)
        }
        None => format!("{tool} needs approval."),
        Some(PathFact { lexical, resolved: None, .. }) => {
            format!("Where {} leads cannot be checked.", lexical.display())
        }
        Some(PathFact { lexical, resolved: Some(resolved), .. }) if is_within(lexical, case.roots) => {
            format!("{} leads to {}, outside the working directories.", lexical.display(), resolved.display())
        }
        Some(PathFact { lexical, .. }) => {
            format!("{} is outside the working directories.", lexical.display())
        }
    }
}

/// A path that is protected, or may be.
struct ProtectedChange<'a> {
    path: Cow<'a, Path>,
    /// A protected name that the path, a pattern, may stand for.
    perhaps: Option<&'static str>,
}

/// The first protected path that the call would change.
fn protected_path<'a>(case: &'a PermissionCase<'_>) -> Option<ProtectedChange<'a>> {
    let edited = case.facts.paths.iter().filter(|_| case.facts.kind == CallKind::Edit);
    let commands = case.facts.commands.as_deref();
    let found = commands.into_iter().flat_map(|commands| &commands.found).flat_map(|command| &command.writes);
    let plain = commands.into_iter().flat_map(|commands| commands.plain.iter().flatten());
    let mut written = found.chain(plain.flat_map(|command| &command.writes));
    let is_one = |name: &Path| protected_paths::is_protected(name, &case.facts.git_directories, case.roots);
    let changed = |path: &'a PathFact| {
        let is_protected = is_one(&path.lexical) || path.resolved.as_deref().is_some_and(is_one);
        is_protected.then_some(ProtectedChange { path: Cow::Borrowed(&path.lexical), perhaps: None })
    };
    let named = |named: &'a NamedPath| {
        let path = named.path.lexical();
        let perhaps = match (&named.path, named.naming) {
            (CommandPath::Known(fact), _) if changed(fact).is_some() => None,
            (CommandPath::Partial(_), _) if is_one(&path) => None,
            (_, PathNaming::Pattern) => Some(protected_paths::perhaps_protected(&path)?),
            (_, PathNaming::Exact | PathNaming::Unknown | PathNaming::Mentioned) => return None,
        };
        Some(ProtectedChange { path, perhaps })
    };
    edited.into_iter().find_map(changed).or_else(|| written.find_map(named))
}

#[cfg(test)]
mod tests;
