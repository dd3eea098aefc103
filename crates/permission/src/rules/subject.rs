//! A call as rules see it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::Path;

use windlass_protocol::{
    CallFacts, CommandPath, NamedPath, PathFact, PathNaming, RawValue, ToolProfile, ToolSubject,
};

use super::PathAccess;
use super::text::fold;

/// A call as rules see it. What they compare again and again is made once.
pub(crate) struct RuleSubject<'a> {
    /// The tool as the model names it, if rules name it in another way.
    pub(super) given: Option<&'a str>,
    /// As rules do.
    pub(crate) tool: &'a str,
    pub(crate) profile: ToolProfile,
    pub(crate) input: &'a RawValue,
    pub(crate) facts: &'a CallFacts,
    touched: OnceCell<Vec<TouchedPath<'a>>>,
}

/// A path that a command of the call names.
pub(super) struct TouchedPath<'a> {
    pub(super) access: PathAccess,
    pub(super) named: &'a NamedPath,
    pub(super) names: PathNames<'a>,
}

impl<'a> RuleSubject<'a> {
    /// Tools have had other names, and rules go by the present one.
    pub(crate) fn new(
        tool: &'a str,
        profile: ToolProfile,
        input: &'a RawValue,
        facts: &'a CallFacts,
    ) -> Self {
        let present = match profile.subject {
            // Whoever runs it, a command line is one like any other.
            ToolSubject::Command(_) => "Bash",
            _ => ToolProfile::present_name(tool),
        };
        let given = (present != tool).then_some(tool);
        Self { given, tool: present, profile, input, facts, touched: OnceCell::new() }
    }

    /// What the commands of the call name, in both readings.
    pub(super) fn touched_paths(&self) -> &[TouchedPath<'a>] {
        self.touched.get_or_init(|| {
            let commands = || self.facts.commands.iter();
            let plain = commands().flat_map(|facts| facts.plain.iter().flatten());
            let plain = plain.map(|command| (&command.reads, &command.writes));
            let found = commands().flat_map(|facts| &facts.found);
            let lists = found.map(|command| (&command.reads, &command.writes)).chain(plain);
            let each = lists.flat_map(|(reads, writes)| {
                let read = reads.iter().map(|named| (access(named), named));
                read.chain(writes.iter().map(|named| (PathAccess::Edit, named)))
            });
            each.map(|(access, named)| TouchedPath { access, named, names: PathNames::of_named(&named.path) })
                .collect()
        })
    }
}

/// What code mentions it may change as well.
fn access(read: &NamedPath) -> PathAccess {
    if read.naming == PathNaming::Mentioned { PathAccess::Edit } else { PathAccess::Read }
}

/// The names of a path as restrictions compare them.
pub(crate) struct PathNames<'a> {
    pub(super) lexical: NameSpelling<'a>,
    /// Where it leads, if that is another name.
    resolved: Option<NameSpelling<'a>>,
}

impl<'a> PathNames<'a> {
    pub(crate) fn of(path: &'a PathFact) -> Self {
        let resolved = path.resolved.as_deref().filter(|resolved| *resolved != path.lexical);
        Self { lexical: NameSpelling::of(&path.lexical), resolved: resolved.map(NameSpelling::of) }
    }

    pub(crate) fn of_named(path: &'a CommandPath) -> Self {
        match path {
            CommandPath::Known(path) => Self::of(path),
            CommandPath::Partial(word) => {
                let (start, more) =
                    word.pieces().split_first().map_or(("", &[][..]), |(start, more)| (start, more));
                Self { lexical: NameSpelling::new(start.into(), more), resolved: None }
            }
        }
    }

    pub(super) fn each(&self) -> impl Iterator<Item = &NameSpelling<'a>> {
        std::iter::once(&self.lexical).chain(&self.resolved)
    }
}

/// A name as it is written, and without case.
pub(super) struct NameSpelling<'a> {
    /// Its text up to the first part that is not known.
    start: Cow<'a, str>,
    /// The texts behind each such part.
    more: &'a [String],
    /// Both without case, if they are others then.
    folded: Option<(String, Vec<String>)>,
}

/// A name as patterns see it: the text up to the first unknown part, and the texts behind each such part.
#[derive(Clone, Copy)]
pub(super) struct NameText<'a> {
    pub(super) start: &'a str,
    pub(super) more: &'a [String],
}

impl<'a> NameSpelling<'a> {
    fn of(name: &'a Path) -> Self {
        Self::new(name.to_string_lossy(), &[])
    }

    fn new(start: Cow<'a, str>, more: &'a [String]) -> Self {
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
        let is_folded = is_plain(&start) && more.iter().all(|piece| is_plain(piece));
        let folded = (!is_folded).then(|| (fold(&start), more.iter().map(|piece| fold(piece)).collect()));
        Self { start, more, folded }
    }

    pub(super) fn text(&self, is_folded: bool) -> NameText<'_> {
        match &self.folded {
            Some((start, more)) if is_folded => NameText { start, more },
            _ => NameText { start: &self.start, more: self.more },
        }
    }
}
