//! Patterns of paths, in the manner of ignore files, each with the place it is anchored at.

use std::path::{Path, PathBuf};

use windlass_protocol::{NamedPath, PathFact, PathNaming};

use super::RestrictionMatch::{self, May, No, Yes};
use super::subject::{NameSpelling, NameText, PathNames};
use super::{Anchors, Behaviour};

mod form;

use form::PatternForm;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPattern {
    /// One pattern for each place it may be anchored at. A restriction has them without case as well: it must hold for every spelling,
    /// and for what it says as it is written.
    forms: Vec<PatternForm>,
    /// Only what lies below what the pattern names.
    is_only_below: bool,
    /// Only directories, and what lies below them.
    is_only_directories: bool,
}

impl PathPattern {
    /// Reads what stands between the parentheses; the error says what is wrong.
    pub(crate) fn parse(text: &str, behaviour: Behaviour, anchors: &Anchors) -> Result<Self, &'static str> {
        let restricts = behaviour != Behaviour::Allow;
        let (text, is_only_directories) = match text.strip_suffix('/') {
            Some(body) if !body.is_empty() && !body.ends_with('/') => (body, true),
            _ => (text, false),
        };
        let (places, body) = places(text, restricts, anchors)?;
        // Directories in a directory are not all that is in it.
        let all = if is_only_directories && !restricts { "" } else { body };
        let rest = std::iter::successors(without_all(all), |rest| without_all(rest)).last();
        // A directory that nothing may be read in is not listed either.
        let is_only_below = rest.is_some() && !restricts;
        let body = rest.unwrap_or(body);
        let anchored = text.starts_with(['/', '~']) || text.starts_with("./") || text.starts_with("../");
        let floats =
            !anchored && !body.is_empty() && (is_name(text) || restricts && rest.is_some_and(is_name));
        let mut forms = Vec::new();
        for place in &places {
            forms.push(PatternForm::compile(place, body, floats, false)?);
            if restricts {
                forms.push(PatternForm::compile(place, body, floats, true)?);
            }
        }
        Ok(Self { forms, is_only_below, is_only_directories })
    }

    /// The same pattern for reading: whoever may read all that is in a directory may list it.
    pub(crate) fn for_reading(mut self) -> Self {
        self.is_only_below = false;
        self
    }

    /// A pattern that means this path and no other.
    pub(crate) fn literal(path: &Path) -> Option<String> {
        let text = path.to_str().filter(|text| !text.chars().any(char::is_control))?;
        let special = |c: char| matches!(c, '*' | '?' | '[' | '\\' | '(' | ')');
        let escaped: String =
            text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect();
        Some(format!("/{escaped}"))
    }

    /// Whether an allow rule covers a path, by both of its names.
    pub(crate) fn covers(&self, path: &PathFact) -> bool {
        let covers = |name: &Path| {
            let text = NameText { start: &name.to_string_lossy(), more: &[] };
            self.forms.iter().any(|form| self.meets(form, text, path.is_directory))
        };
        covers(&path.lexical) && path.resolved.as_deref().is_some_and(covers)
    }

    /// Whether a restriction means a path, by either of its names.
    pub(crate) fn restricts(&self, names: &PathNames<'_>) -> bool {
        // What may be a directory by now is taken for one.
        names.each().any(|name| self.tries(name, |form, text| self.meets(form, text, true)))
    }

    /// Whether a restriction means a path that a command names, or may mean it.
    pub(crate) fn restricts_named(
        &self,
        named: &NamedPath,
        names: &PathNames<'_>,
        is_deep: bool,
    ) -> RestrictionMatch {
        let may_be = |name: &NameSpelling<'_>| self.tries(name, |form, text| can_meet(form, text, is_deep));
        match named.naming {
            // It may be mere text.
            PathNaming::Mentioned
                if names.lexical.text(false).start.contains("/**/") && may_be(&names.lexical) =>
            {
                May
            }
            PathNaming::Mentioned => May.min(RestrictionMatch::sure(self.restricts(names))),
            _ if self.restricts(names) => Yes,
            PathNaming::Unknown => May,
            PathNaming::Pattern if may_be(&names.lexical) => May,
            PathNaming::Exact if is_deep && names.each().any(may_be) => May,
            PathNaming::Pattern | PathNaming::Exact => No,
        }
    }

    /// Whether a path, or a directory above it, is what a form of the pattern says.
    fn meets(&self, form: &PatternForm, name: NameText<'_>, is_directory: bool) -> bool {
        if form.is_empty() {
            return !self.is_only_below || name.start.len() > 1 || !name.more.is_empty();
        }
        let Some((mut walk, rest)) = form.begin(name) else { return false };
        let behind = name.more.iter().flat_map(|piece| std::iter::once(None).chain(piece.chars().map(Some)));
        let mut chars = rest.chars().map(Some).chain(behind);
        loop {
            let ends = walk.is_over();
            match chars.next() {
                Some(Some('/')) if ends => return true,
                None => return ends && !self.is_only_below && (is_directory || !self.is_only_directories),
                Some(c) if walk.take(c) => (),
                Some(_) => return false,
            }
        }
    }

    /// Whether one of the forms fits a name, as it is written or without case.
    fn tries(&self, name: &NameSpelling<'_>, fits: impl Fn(&PatternForm, NameText<'_>) -> bool) -> bool {
        self.forms.iter().any(|form| fits(form, name.text(form.is_folded)))
    }
}

/// Whether some name that a pattern of the shell stands for, or that lies below it, is what a form says. When in doubt, it is.
fn can_meet(form: &PatternForm, name: NameText<'_>, is_recursive: bool) -> bool {
    let mut walk = form.walk();
    let mut before = '/';
    let text = name.start;
    for (at, c) in text.char_indices() {
        // It stands for directories at any depth.
        if c == '*' && before == '/' && text[at..].starts_with("**/") {
            let end = name.more.last().map_or(text, String::as_str);
            return form.can_end_in(end.rsplit('/').next().unwrap_or_default());
        }
        let goes_on = match c {
            '*' | '?' | '[' | ']' => walk.take_some_of_name(before == '/'),
            c => walk.take(Some(c)),
        };
        if !goes_on {
            return false;
        }
        if c == '/' && walk.has_passed_end {
            return true;
        }
        before = c;
    }
    !name.more.is_empty() || walk.is_over() || is_recursive && walk.take(Some('/'))
}

/// A pattern without `**` at its end, if that stands there.
fn without_all(text: &str) -> Option<&str> {
    if text == "**" { Some("") } else { text.strip_suffix("/**") }
}

/// Whether a pattern is a single name, which means that name at any depth.
fn is_name(text: &str) -> bool {
    !text.contains('/')
}

/// Where a pattern is anchored, and what of it is left.
fn places<'a>(
    text: &'a str,
    is_restriction: bool,
    anchors: &Anchors,
) -> Result<(Vec<PathBuf>, &'a str), &'static str> {
    if text.is_empty() || text == "/" {
        return Err("it names no path; write a pattern such as Read(src/**)");
    }
    if text.contains('\0') {
        return Err("a path cannot contain a NUL character; remove it");
    }
    if let Some(rest) = text.strip_prefix("//") {
        return Ok((vec!["/".into()], rest));
    }
    if text == "~" || text.starts_with("~/") {
        let home =
            anchors.home.clone().ok_or("the home directory is unknown; write a path that begins with //")?;
        return Ok((vec![home], text.trim_start_matches('~').trim_start_matches('/')));
    }
    if let Some(rest) = text.strip_prefix('/') {
        return Ok((vec![anchors.settings.clone()], rest));
    }
    let mut rest = text.strip_prefix("./").unwrap_or(text);
    // A restriction on a relative path holds in every working directory.
    let roots = if is_restriction { anchors.roots.clone() } else { vec![anchors.start.clone()] };
    let mut places = if roots.is_empty() { vec![anchors.start.clone()] } else { roots };
    while let Some(above) = rest.strip_prefix("../") {
        rest = above;
        for place in &mut places {
            place.pop();
        }
    }
    Ok((places, rest))
}

#[cfg(test)]
mod tests;
