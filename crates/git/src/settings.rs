//! The file `config` of a repository, line by line: where its work tree is, and where it came from.

use std::path::{Path, PathBuf};

use windlass_text::paths::clean;

use crate::directory::read_text;

/// A longer file is not looked through.
pub(crate) const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// One setting: `[section "subsection"]`, `key = value`.
struct GitSetting<'a> {
    section: &'a str,
    subsection: Option<&'a str>,
    key: &'a str,
    value: &'a str,
}

impl GitSetting<'_> {
    /// Whether this is the setting `section.key`, with or without a subsection. Case does not matter.
    fn is(&self, section: &str, key: &str) -> bool {
        self.section.eq_ignore_ascii_case(section) && self.key.eq_ignore_ascii_case(key)
    }
}

/// The settings that stand on lines of their own. Lines that go on are not put together.
fn settings(text: &str) -> impl Iterator<Item = GitSetting<'_>> {
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
    let text = read_text(&repository.join("config"), CONFIG_BYTES_MAX).ok()?;
    let named =
        settings(&text).find(|setting| setting.is("core", "worktree") && setting.subsection.is_none())?;
    repository.join(named.value).canonicalize().ok()
}

/// The address of `origin` in the configuration of a repository, else of the only other remote; `root` is the top of the work tree.
pub fn origin(common: &Path, root: &Path) -> Option<String> {
    address(&read_text(&common.join("config"), CONFIG_BYTES_MAX).ok()?, root)
}

fn address(config: &str, root: &Path) -> Option<String> {
    let mut remotes: Vec<(&str, &str)> = Vec::new();
    for setting in settings(config).filter(|setting| setting.is("remote", "url")) {
        if let Some(name) = setting.subsection
            && !remotes.iter().any(|(known, _)| *known == name)
        {
            remotes.push((name, setting.value));
        }
    }
    let named = remotes.iter().find(|(name, _)| *name == "origin");
    let only = if remotes.len() == 1 { remotes.first() } else { None };
    normalise(named.or(only)?.1, root)
}

/// One spelling for `https://user:key@Host/a/b.git/`, `ssh://git@host:22/a/b` and `git@host:a/b`: `host/a/b`. A path
/// becomes absolute. Who asks never shows: an address may hold a password.
fn normalise(address: &str, root: &Path) -> Option<String> {
    let (host, path) = match address.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file") => ("", rest),
        Some((_, rest)) => rest.split_once('/')?,
        None => match address.split_once(':') {
            Some((host, path)) if !host.contains('/') && !host.is_empty() => (host, path),
            _ => ("", address),
        },
    };
    if host.is_empty() {
        return local(path, root);
    }
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    let host =
        [":22", ":80", ":443", ":9418"].iter().find_map(|port| host.strip_suffix(port)).unwrap_or(&host);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    (!path.is_empty()).then(|| format!("{host}/{path}"))
}

/// A repository on this machine: where it lies.
fn local(path: &str, root: &Path) -> Option<String> {
    let path = root.join(path);
    let path = path.canonicalize().unwrap_or_else(|_| clean(&path));
    let path = path.to_str()?;
    Some(path.strip_suffix("/.git").unwrap_or(path).to_owned()).filter(|path| !path.is_empty())
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

    #[test]
    fn every_way_to_write_an_address_is_the_same() {
        let check = |address: &str, expected: &str| {
            assert_eq!(normalise(address, Path::new("/top")).as_deref(), Some(expected), "{address}");
        };
        check("https://code.example/a/b.git", "code.example/a/b");
        check("https://me:s3cret@Code.Example:443/a/b/", "code.example/a/b");
        check("ssh://git@code.example:22/a/b.git", "code.example/a/b");
        check("git@code.example:a/b.git", "code.example/a/b");
        check("code.example:a/b", "code.example/a/b");
        check("git://code.example/a/b", "code.example/a/b");
        check("https://code.example:8443/a/b", "code.example:8443/a/b");
        check("https://code.example/a/b?token=x", "code.example/a/b");
        check("/srv/git/b.git", "/srv/git/b.git");
        check("../other/.git", "/other");
        check("file:///srv/b", "/srv/b");
        check("./with:colon", "/top/with:colon");
        assert_eq!(normalise("https://code.example", Path::new("/")), None);
    }

    #[test]
    fn the_configuration_is_read_as_git_does() {
        let check = |config: &str, expected: Option<&str>| {
            assert_eq!(address(config, Path::new("/top")).as_deref(), expected, "{config}");
        };
        check(
            "[core]\n\turl = no/x\n[remote \"origin\"]\n\tfetch = x\n\turl = h:a/b # mine\n",
            Some("h/a/b"),
        );
        check("[remote \"up\"]\nurl=h:a/b", Some("h/a/b"));
        check("[remote \"up\"]\nurl=h:a/b\n[remote \"two\"]\nurl=h:c/d", None);
        check(
            "[remote \"up\"]\nurl=h:a/b\n[REMOTE \"origin\"] ; x\nURL = \"h:c/d\"\nurl = h:e/f",
            Some("h/c/d"),
        );
        check("[remote \"origin\"]\nfetch = x", None);
        check("", None);
    }
}
