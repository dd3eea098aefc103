//! The file `config` of a repository, line by line.

use std::path::{Path, PathBuf};

use crate::files::read_text;

/// A longer file is not looked through.
pub(crate) const BYTES_MAX: u64 = 256 * 1024;

/// One setting: `[section "subsection"]`, `key = value`.
pub(crate) struct GitSetting<'a> {
    pub(crate) section: &'a str,
    pub(crate) subsection: Option<&'a str>,
    pub(crate) key: &'a str,
    pub(crate) value: &'a str,
}

impl GitSetting<'_> {
    /// Whether this is the setting `section.key`, with or without a subsection. Case does not matter.
    pub(crate) fn is(&self, section: &str, key: &str) -> bool {
        self.section.eq_ignore_ascii_case(section) && self.key.eq_ignore_ascii_case(key)
    }
}

/// The settings that stand on lines of their own. Lines that go on are not put together.
pub(crate) fn settings(text: &str) -> impl Iterator<Item = GitSetting<'_>> {
    let mut section = ("", None);
    text.lines().map(str::trim).filter_map(move |line| {
        if let Some(header) = line.strip_prefix('[') {
            section = named_section(header.split(']').next().unwrap_or_default());
            return None;
        }
        let (key, value) = line.split_once('=')?;
        Some(GitSetting { section: section.0, subsection: section.1, key: key.trim(), value: plain(value) })
    })
}

/// The two names in `remote "name"`.
fn named_section(header: &str) -> (&str, Option<&str>) {
    let Some((section, rest)) = header.split_once(char::is_whitespace) else { return (header, None) };
    match rest.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(subsection) => (section, Some(subsection)),
        None => ("", None),
    }
}

/// A value without quotes and comments.
fn plain(value: &str) -> &str {
    let value = value.trim();
    let value = match value.strip_prefix('"').and_then(|rest| rest.split('"').next()) {
        Some(quoted) => quoted,
        None => value.split([';', '#']).next().unwrap_or_default(),
    };
    value.trim()
}

/// The work tree that a repository says is its own, resolved.
pub fn core_work_tree(repository: &Path) -> Option<PathBuf> {
    let text = read_text(&repository.join("config"), BYTES_MAX).ok()?;
    let named =
        settings(&text).find(|setting| setting.is("core", "worktree") && setting.subsection.is_none())?;
    repository.join(named.value).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_know_their_section() {
        let check = |text: &str, expected: &[&str]| {
            let shown = settings(text).map(|setting| {
                let GitSetting { section, subsection, key, value } = setting;
                format!("{section}.{}.{key}={value}", subsection.unwrap_or("-"))
            });
            assert_eq!(shown.collect::<Vec<_>>(), expected, "{text}");
        };
        check("[core]\n\tworktree = ../x\n", &["core.-.worktree=../x"]);
        check("[Remote \"a b\"] ; x\nURL = \"h:c/d\" # y", &["Remote.a b.URL=h:c/d"]);
        check("[core]\nbare\nurl=h:a/b # mine\n[x y]\nz=1", &["core.-.url=h:a/b", ".-.z=1"]);
        check("", &[]);
    }
}
