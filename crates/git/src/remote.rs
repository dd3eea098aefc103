//! Where a repository came from, in one spelling for all ways to say it.

use std::path::Path;

use windlass_text::paths::clean;

use crate::files::read_text;
use crate::settings::settings;

/// A longer configuration is not read.
const BYTES_MAX: u64 = 1024 * 1024;

/// The address of `origin` in the configuration of a repository, else of the only other remote; `root` is the top of the work tree.
pub fn origin(common: &Path, root: &Path) -> Option<String> {
    address(&read_text(&common.join("config"), BYTES_MAX).ok()?, root)
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
    normalised(named.or(only)?.1, root)
}

/// One spelling for `https://user:key@Host/a/b.git/`, `ssh://git@host:22/a/b` and `git@host:a/b`: `host/a/b`. A path
/// becomes absolute. Who asks never shows: an address may hold a password.
fn normalised(address: &str, root: &Path) -> Option<String> {
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
    fn every_way_to_write_an_address_is_the_same() {
        let check = |address: &str, expected: &str| {
            assert_eq!(normalised(address, Path::new("/top")).as_deref(), Some(expected), "{address}");
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
        assert_eq!(normalised("https://code.example", Path::new("/")), None);
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
