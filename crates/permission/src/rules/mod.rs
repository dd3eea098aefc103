//! Permission rules: what users write, where it comes from, and what it covers.
//!
//! A rule is `Tool` or `Tool(what)`. Rules that allow are read strictly, rules that deny or ask generously: a restriction
//! that is missed would let something run, a permission that is missed only costs a question.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use windlass_protocol::Behaviour;
use windlass_protocol::{
    CallKind, ExaminedCall, KNOWN_TOOLS, PathFact, PathNaming, PlainCommand, ToolProfile, ToolSubject,
};

mod command;
mod grammar;
mod host;
mod host_reach;
mod input;
mod path;
mod position_set;
mod subject;
mod text;
mod tool;

use RestrictionMatch::{May, No, Yes};
pub use command::CommandPattern;
use command::UncoveredProgram;
pub use grammar::RuleError;
use host::HostPattern;
pub(crate) use host::is_private;
pub use host_reach::{HostReach, Hosts};
pub(crate) use input::runs_input;
pub(crate) use path::PathPattern;
pub(crate) use subject::RuleSubject;
use subject::{PathNames, TouchedPath};
pub(crate) use text::{covers as text_covers, fold};
pub(crate) use tool::{ToolPattern, has_value, is_skill, skill_text};

/// Where a rule stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleSource {
    /// In words: `user settings`, `--allowedTools`, `this session`.
    pub place: Arc<str>,
    /// The file, if it stands in one.
    pub file: Option<PathBuf>,
    /// The line in it.
    pub line: Option<u32>,
}

impl RuleSource {
    /// A place that is no file.
    pub fn named(place: &str) -> Self {
        Self { place: place.into(), file: None, line: None }
    }

    /// A rule that holds until the session ends.
    pub fn session() -> Self {
        Self::named("this session")
    }
}

impl std::fmt::Display for RuleSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}", file.display()),
            (Some(file), None) => write!(f, "{}", file.display()),
            (None, _) => f.write_str(&self.place),
        }
    }
}

/// What the anchors of path patterns mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchors {
    /// What `/x` is relative to: the place of the settings file, or the start directory.
    pub settings: PathBuf,
    /// What `x` and `./x` are relative to: the directory the session started in.
    pub start: PathBuf,
    /// The working directories; a restriction on a relative path holds in each.
    pub roots: Vec<PathBuf>,
    /// What `~/x` is relative to.
    pub home: Option<PathBuf>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// As it was written.
    pub text: Arc<str>,
    /// Where it stands.
    pub source: RuleSource,
    behaviour: Behaviour,
    pub(crate) tool: ToolPattern,
    pub(crate) what: RuleScope,
}

/// What of a tool's uses a rule covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuleScope {
    Every,
    Commands(CommandPattern),
    Paths(PathAccess, PathPattern),
    Hosts(HostPattern),
    /// The name of an agent or a skill; `true` if anything may follow it.
    Named(String, bool),
    /// A value of the input.
    Parameter(String, String),
}

/// What a rule about paths is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathAccess {
    Read,
    Edit,
}

/// Whether a restriction means a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RestrictionMatch {
    No,
    /// It cannot be told.
    May,
    Yes,
}

impl RestrictionMatch {
    pub(crate) fn sure(is_matching: bool) -> Self {
        if is_matching { Self::Yes } else { Self::No }
    }
}

impl Rule {
    /// Why an allow rule has no effect, if it has none.
    pub fn idleness(&self) -> Option<&'static str> {
        match &self.what {
            RuleScope::Paths(..) if self.tool.is_family() => None,
            RuleScope::Paths(PathAccess::Edit, _) => {
                Some("use Edit(path), which covers every tool that changes files")
            }
            RuleScope::Paths(PathAccess::Read, _) => {
                Some("use Read(path), which covers every tool that reads files")
            }
            _ => None,
        }
    }

    /// Whether it means every use of a tool, so that a denied tool need not be offered at all.
    pub(crate) fn is_about_all_of(&self, tool: &str) -> bool {
        self.what == RuleScope::Every && self.tool.names(tool, self.behaviour)
    }

    pub(crate) fn covers_tool(&self, tool: &str) -> bool {
        self.tool.names(tool, self.behaviour)
    }

    fn names(&self, subject: &RuleSubject<'_>, behaviour: Behaviour) -> bool {
        self.tool.names(subject.tool, behaviour)
            || subject.given.is_some_and(|given| self.tool.names(given, behaviour))
    }

    /// Whether a rule that denies or asks means a call.
    pub(crate) fn restricts(&self, subject: &RuleSubject<'_>) -> RestrictionMatch {
        let own = self.names(subject, self.behaviour);
        let facts = subject.facts;
        RestrictionMatch::sure(match &self.what {
            RuleScope::Paths(access, pattern) => return restricts_paths(*access, pattern, subject),
            RuleScope::Commands(pattern) => {
                let line = facts.commands.as_ref().filter(|_| own);
                return line.map_or(No, |facts| pattern.restricts(facts));
            }
            RuleScope::Every => own || self.is_of_family(subject),
            RuleScope::Hosts(pattern) => {
                own && facts.url.as_ref().is_some_and(|url| pattern.covers(&url.host))
            }
            RuleScope::Named(name, prefix) => {
                own && tool::is_named(subject, &fold(name), *prefix, Behaviour::Deny)
            }
            RuleScope::Parameter(name, value) => own && tool::has_value(subject.input, name, value),
        })
    }

    /// Whether the rule is about a call, read generously; `None` if that cannot be told.
    pub fn is_about(&self, call: &ExaminedCall) -> Option<bool> {
        let (facts, input) = (&call.facts, call.tool_use.input.json());
        match self.restricts(&RuleSubject::new(&call.tool, call.profile, &input, facts)) {
            Yes => Some(true),
            May => None,
            No if facts.commands.as_ref().is_some_and(|commands| commands.unseen.is_some()) => None,
            No => Some(false),
        }
    }

    /// Whether a rule that allows covers a whole call. Command lines are covered part by part; see [`Rule::covers_command`].
    pub(crate) fn covers(&self, subject: &RuleSubject<'_>) -> bool {
        let own = self.names(subject, Behaviour::Allow);
        match &self.what {
            RuleScope::Every => own,
            RuleScope::Commands(pattern) => {
                let line = subject.facts.commands.as_ref().filter(|_| own);
                line.is_some_and(|facts| pattern.is_line(&facts.line))
            }
            RuleScope::Paths(access, pattern) => {
                let kind = subject.facts.kind;
                let meant = match access {
                    // Leave to edit a file is leave to read it.
                    PathAccess::Edit => matches!(kind, CallKind::Edit | CallKind::Read),
                    PathAccess::Read => kind == CallKind::Read,
                };
                let paths = &subject.facts.paths;
                let fits = self.tool.is_family() && (own || !tool::is_foreign(subject.tool));
                let covers_all = || !paths.is_empty() && paths.iter().all(|path| pattern.covers(path));
                meant && fits && subject.facts.commands.is_none() && covers_all()
            }
            RuleScope::Hosts(pattern) => {
                own && subject.facts.url.as_ref().is_some_and(|url| pattern.covers(&url.host))
            }
            RuleScope::Named(name, prefix) => own && tool::is_named(subject, name, *prefix, Behaviour::Allow),
            RuleScope::Parameter(..) => false,
        }
    }

    /// Whether a rule that allows covers one command of a line.
    pub(crate) fn covers_command(&self, tool: &str, command: &PlainCommand) -> bool {
        let own = self.tool.names(tool, Behaviour::Allow);
        match &self.what {
            RuleScope::Every => own,
            RuleScope::Commands(pattern) => own && pattern.covers(command),
            _ => false,
        }
    }

    /// Why a rule that allows does not cover a command that its star fits.
    pub(crate) fn holds_back(&self, tool: &str, command: &PlainCommand) -> Option<UncoveredProgram> {
        match &self.what {
            RuleScope::Commands(pattern) if self.tool.names(tool, Behaviour::Allow) => {
                pattern.holds_back(command)
            }
            _ => None,
        }
    }

    /// Whether a rule that allows covers reading or changing a path that a command names.
    pub(crate) fn covers_path(&self, access: PathAccess, path: &PathFact) -> bool {
        match &self.what {
            RuleScope::Every => access == PathAccess::Edit && self.tool.names("Edit", Behaviour::Allow),
            RuleScope::Paths(own, pattern) => {
                (*own == access || access == PathAccess::Read)
                    && self.tool.is_family()
                    && pattern.covers(path)
            }
            _ => false,
        }
    }

    /// A ban of Edit is one of every tool that changes files, and one of Read of every tool that reads them.
    fn is_of_family(&self, subject: &RuleSubject<'_>) -> bool {
        let commands = subject.facts.commands.as_deref();
        let found = || commands.into_iter().flat_map(|commands| &commands.found);
        if tool::is_foreign(subject.tool) {
            return false;
        }
        let kind = subject.facts.kind;
        let edits = || match commands {
            Some(_) => found().any(|command| !command.writes.is_empty()),
            None => kind == CallKind::Edit,
        };
        let reads = || match commands {
            Some(_) => {
                found().flat_map(|command| &command.reads).any(|named| named.naming != PathNaming::Mentioned)
            }
            None => kind == CallKind::Read && !subject.facts.paths.is_empty(),
        };
        let means = |family| self.tool.names(family, self.behaviour);
        means("Edit") && edits() || means("Read") && reads()
    }

    /// Whether it lets so much run that a mode in which a model judges must not rely on it.
    pub(crate) fn is_broad(&self) -> bool {
        match &self.what {
            RuleScope::Every => {
                let runs_anything = |tool: &&&str| {
                    matches!(ToolProfile::named(tool).subject, ToolSubject::Command(_) | ToolSubject::Agent)
                };
                let mut broad = KNOWN_TOOLS.iter().filter(runs_anything);
                broad.any(|tool| self.tool.names(tool, Behaviour::Allow))
            }
            RuleScope::Commands(pattern) => pattern.is_broad,
            _ => false,
        }
    }
}

/// What may not be read may not be changed either.
fn restricts_paths(access: PathAccess, pattern: &PathPattern, subject: &RuleSubject<'_>) -> RestrictionMatch {
    if subject.facts.commands.is_some() {
        return restricts_commands(access, pattern, subject);
    }
    let meant = match access {
        PathAccess::Read => matches!(subject.facts.kind, CallKind::Read | CallKind::Edit),
        PathAccess::Edit => subject.facts.kind == CallKind::Edit,
    };
    let restricts = |path: &PathFact| match &path.resolved {
        _ if pattern.restricts(&PathNames::of(path)) => Yes,
        Some(_) => No,
        // It leads nobody knows where.
        None => May,
    };
    subject.facts.paths.iter().filter(|_| meant).map(restricts).max().unwrap_or(No)
}

fn restricts_commands(
    access: PathAccess,
    pattern: &PathPattern,
    subject: &RuleSubject<'_>,
) -> RestrictionMatch {
    let is_meant = |path: &&TouchedPath<'_>| access == PathAccess::Read || path.access == PathAccess::Edit;
    let meant = subject.touched_paths().iter().filter(is_meant);
    // Who changes everything below a directory shows nothing of it; what may not be read there is listed beside it.
    let is_deep = |path: &TouchedPath<'_>| path.named.is_recursive && path.access == access;
    let matches = meant.map(|path| pattern.restricts_named(path.named, &path.names, is_deep(path)));
    matches.max().unwrap_or(No)
}

/// All rules of a session, in the order in which they were given. A copy shares them: each call gets one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Those of each behaviour, in the order of [`Behaviour::ALL`].
    lists: [Arc<Vec<Rule>>; Behaviour::ALL.len()],
    /// Every rule as it was written, to find doubles among very many.
    written: Arc<BTreeSet<RuleKey>>,
}

/// What makes two rules the same: their list, their text and where they stand.
type RuleKey = (Behaviour, Arc<str>, RuleSource);

impl Rules {
    /// Reads a rule and adds it, unless it is there.
    pub fn add(
        &mut self,
        behaviour: Behaviour,
        text: &str,
        source: RuleSource,
        anchors: &Anchors,
    ) -> Result<(), RuleError> {
        let rule = Rule::parse(behaviour, text, source, anchors)?;
        let written = (behaviour, rule.text.clone(), rule.source.clone());
        if Arc::make_mut(&mut self.written).insert(written) {
            self.list_mut(behaviour).push(rule);
        }
        Ok(())
    }

    /// Takes out the rules of a kind that do not stay.
    pub(crate) fn retain(&mut self, behaviour: Behaviour, stays: impl Fn(&Rule) -> bool) {
        self.list_mut(behaviour).retain(stays);
        let key = |rule: &Rule| (rule.behaviour, rule.text.clone(), rule.source.clone());
        self.written = Arc::new(self.lists.iter().flat_map(|list| &**list).map(key).collect());
    }

    /// Rules of one kind about these tools altogether.
    pub fn about_tools<'a>(behaviour: Behaviour, tools: impl Iterator<Item = &'a str>) -> Self {
        let mut rules = Self::default();
        for tool in tools {
            // A tool's own name is always a rule.
            let _ = rules.add(behaviour, tool, RuleSource::session(), &Anchors::default());
        }
        rules
    }

    /// The rules of a kind.
    pub fn list(&self, behaviour: Behaviour) -> &[Rule] {
        &self.lists[behaviour as usize]
    }

    pub(crate) fn list_mut(&mut self, behaviour: Behaviour) -> &mut Vec<Rule> {
        Arc::make_mut(&mut self.lists[behaviour as usize])
    }

    /// The paths of the rules of a kind about reading.
    fn read_patterns(&self, behaviour: Behaviour) -> impl Iterator<Item = &PathPattern> {
        self.list(behaviour).iter().filter_map(|rule| match &rule.what {
            RuleScope::Paths(PathAccess::Read, pattern) => Some(pattern),
            _ => None,
        })
    }

    /// Whether a tool is denied altogether, so that it is not offered.
    pub fn removes(&self, tool: &str) -> bool {
        self.list(Behaviour::Deny).iter().any(|rule| rule.is_about_all_of(tool))
    }

    /// Whether a rule hides a path from reading, and so from searches.
    pub fn hides(&self, path: &PathFact) -> bool {
        let names = PathNames::of(path);
        self.read_patterns(Behaviour::Deny).any(|pattern| pattern.restricts(&names))
    }

    /// Whether any rule hides anything.
    pub fn hides_anything(&self) -> bool {
        self.read_patterns(Behaviour::Deny).next().is_some()
    }

    /// What stays out of sight of a call that was decided on these paths, if anything may. Whoever agreed to look where a question
    /// is due agreed to what lies there.
    pub fn hidden_from(&self, decided: &[PathFact]) -> Option<impl Fn(&Path) -> bool + use<>> {
        if !self.hides_anything() && self.read_patterns(Behaviour::Ask).next().is_none() {
            return None;
        }
        let is_agreed = decided.iter().any(|path| self.restricts_reading(path));
        let (rules, is_hidden) =
            (self.clone(), if is_agreed { Self::hides } else { Self::restricts_reading });
        Some(move |path: &Path| {
            is_hidden(&rules, &PathFact { lexical: path.to_owned(), resolved: None, is_directory: false })
        })
    }

    /// Whether a path may not be read without a question, if at all.
    fn restricts_reading(&self, path: &PathFact) -> bool {
        let names = PathNames::of(path);
        let mut patterns = self.read_patterns(Behaviour::Deny).chain(self.read_patterns(Behaviour::Ask));
        patterns.any(|pattern| pattern.restricts(&names))
    }
}

#[cfg(test)]
mod tests;
