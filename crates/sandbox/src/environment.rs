//! What a child process finds in its environment, and what others change in it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Our own credentials and where they go. No setting passes these on.
#[rustfmt::skip]
const OURS: &[&str] = &[
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS",
    "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    "CLAUDE_CODE_OAUTH_TOKEN",
];

/// A name that contains one of these, in any case, is taken for a secret.
const SECRET: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];

/// Variables that would make bash, or a command of the read-only list, behave differently from what was examined.
#[rustfmt::skip]
const SHELL: &[&str] = &[
    "BASH_COMPAT", "BASH_ENV", "BASH_LOADABLES_PATH", "BASHOPTS", "BASH_XTRACEFD", "CDPATH", "ENV",
    "EXECIGNORE", "GLOBIGNORE", "GREP_OPTIONS", "OLDPWD", "POSIXLY_CORRECT", "PROMPT_COMMAND", "PS4",
    "SHELLOPTS",
];

/// Variables that make programs load code or read messages from a chosen place, beside those with `LD_`.
const LOADER: &[&str] = &["GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH"];

/// Where programs are looked for when nothing is said, or nothing usable.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Replaces locales whose encoding, such as GBK, may end a character in a backslash: commands would change.
const LOCALE_DEFAULT: &str = "C.UTF-8";

/// Says that nobody sits at a terminal, and who is running the command.
#[rustfmt::skip]
const SET: &[(&str, &str)] = &[
    ("CLAUDECODE", "1"), ("WINDLASS", "1"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"),
    ("MANPAGER", "cat"), ("PAGER", "cat"),
];

/// Makes the environment of a child from `parent`.
///
/// Always left out are our own provider variables, and what would change how a shell reads a command (start-up files,
/// exported functions, shell options); names that look like a secret (containing *key*, *token*, *secret*, *password*,
/// *passwd*, *passphrase* or *credential*) are, unless `pass` lists them. Pagers and git's terminal prompt are switched
/// off, `TERM` is `dumb` where there is none, `CLAUDECODE`, `WINDLASS` and `CLAUDE_PROJECT_DIR` are set, and a locale
/// that is neither C, POSIX nor one of UTF-8 becomes `C.UTF-8`. `PATH` keeps only absolute entries: the name of a
/// program, which a permission may be given for, does not mean another program in every directory.
pub fn child_environment(
    parent: impl IntoIterator<Item = (OsString, OsString)>,
    pass: &[String],
    project: &Path,
) -> Vec<(OsString, OsString)> {
    let set: Vec<(OsString, OsString)> = SET
        .iter()
        .map(|&(name, value)| (name.into(), value.into()))
        .chain([("CLAUDE_PROJECT_DIR".into(), project.into())])
        .collect();
    let is_set = |name: &OsStr| set.iter().any(|(other, _)| other == name);
    let mut environment: Vec<_> =
        parent.into_iter().filter(|(name, _)| !is_set(name) && is_passed_on(name, pass)).collect();
    for (_, value) in
        environment.iter_mut().filter(|(name, value)| is_locale(name) && !is_plain_locale(value))
    {
        *value = LOCALE_DEFAULT.into();
    }
    for (name, default) in [("TERM", "dumb"), ("PATH", PATH_DEFAULT)] {
        if !environment.iter().any(|(other, _)| other == name) {
            environment.push((name.into(), default.into()));
        }
    }
    filter_path(&mut environment, |_| true);
    environment.extend(set);
    environment
}

/// Lets no program of an untrusted place run under a well-known name: `PATH` keeps only directories that exist outside
/// of these places (absolute, resolved), and what tells the loader to load more is left out.
pub fn distrust(environment: &mut Vec<(OsString, OsString)>, places: &[PathBuf]) {
    environment.retain(|(name, _)| !tells_loader(name));
    filter_path(environment, |entry| {
        let resolved = entry.canonicalize();
        resolved.is_ok_and(|entry| !places.iter().any(|place| entry.starts_with(place)))
    });
}

/// What of an environment does not make programs load code.
pub(crate) fn without_loader(
    environment: &[(OsString, OsString)],
) -> impl Iterator<Item = (&OsString, &OsString)> {
    environment.iter().filter(|(name, _)| !tells_loader(name)).map(|(name, value)| (name, value))
}

fn tells_loader(name: &OsStr) -> bool {
    let upper = name.to_string_lossy().to_ascii_uppercase();
    upper.starts_with("LD_") || LOADER.contains(&upper.as_str())
}

/// Keeps the entries of `PATH` that are absolute and that `keep` accepts.
fn filter_path(environment: &mut [(OsString, OsString)], keep: impl Fn(&Path) -> bool) {
    for (_, value) in environment.iter_mut().filter(|(name, _)| name == "PATH") {
        let kept = std::env::split_paths(value).filter(|entry| entry.is_absolute() && keep(entry));
        // Entries that come from splitting can be joined.
        let kept = std::env::join_paths(kept).unwrap_or_default();
        *value = if kept.is_empty() { PATH_DEFAULT.into() } else { kept };
    }
}

fn is_locale(name: &OsStr) -> bool {
    name == "LANG" || name.as_encoded_bytes().starts_with(b"LC_")
}

fn is_plain_locale(value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    let (language, encoding) = value.split_once('.').unwrap_or((&value, ""));
    let is_name = language.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let encoding = encoding.split('@').next().unwrap_or_default().to_ascii_lowercase();
    matches!(&*value, "" | "C" | "POSIX") || (is_name && matches!(encoding.as_str(), "utf-8" | "utf8"))
}

fn is_passed_on(name: &OsStr, pass: &[String]) -> bool {
    let upper = name.to_string_lossy().to_ascii_uppercase();
    let listed = || pass.iter().any(|passed| name == passed.as_str());
    let dropped = OURS.contains(&upper.as_str())
        || SHELL.contains(&upper.as_str())
        || upper.starts_with("BASH_FUNC_")
        || (SECRET.iter().any(|word| upper.contains(word)) && !listed());
    !dropped
}

/// Changes in the environment of later commands. Cheap to clone; all clones are the same. They go *below*
/// [`child_environment`]: whatever that leaves out or sets itself stays so.
#[derive(Clone, Debug, Default)]
pub struct VariableChanges {
    /// Names, with their values or nothing if they are taken away.
    changes: Arc<Mutex<Vec<VariableChange>>>,
    hidden: Arc<[OsString]>,
}

type VariableChange = (OsString, Option<OsString>);

impl VariableChanges {
    /// No changes yet, and never one of these names.
    pub fn new(hidden: impl IntoIterator<Item = OsString>) -> Self {
        Self { hidden: hidden.into_iter().collect(), ..Self::default() }
    }

    /// Whether commands must not see a name.
    pub fn hides(&self, name: &OsStr) -> bool {
        self.hidden.iter().any(|hidden| hidden == name)
    }

    /// Puts these changes in the place of all earlier ones.
    pub fn set(&self, changes: impl IntoIterator<Item = (OsString, Option<OsString>)>) {
        *self.lock() = changes.into_iter().filter(|(name, _)| !self.hides(name)).collect();
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The environment with the changes made.
    pub fn over(&self, environment: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        let changes = self.lock();
        let is_changed = |name: &OsString| changes.iter().any(|(changed, _)| changed == name);
        let kept = environment.iter().filter(|(name, _)| !is_changed(name)).cloned();
        let set = changes.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        kept.chain(set).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<VariableChange>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(parent: &[(&str, &str)], pass: &[&str]) -> Vec<(OsString, OsString)> {
        let parent = parent.iter().map(|&(name, value)| (name.into(), value.into()));
        let pass: Vec<String> = pass.iter().map(ToString::to_string).collect();
        child_environment(parent, &pass, Path::new("/project"))
    }

    fn check(name: &str, pass: &[&str], kept: bool) {
        let child = child(&[(name, "value")], pass);
        let found = child.iter().any(|(other, value)| other == name && value == "value");
        assert_eq!(found, kept, "{name} with {pass:?}");
    }

    #[test]
    fn secrets_stay_behind() {
        check("HOME", &[], true);
        check("LANGUAGE", &[], true);
        for name in OURS {
            check(name, &[name], false);
        }
        for name in
            ["GITHUB_TOKEN", "aws_secret_access_key", "MyPassword", "DB_CREDENTIALS", "X_KEY_Y", "PGPASSWD"]
        {
            check(name, &[], false);
            check(name, &[name], true);
            check(name, &["OTHER"], false);
        }
    }

    #[test]
    fn no_locale_changes_how_the_shell_reads() {
        let check = |name: &str, value: &str, expected: &str| {
            let found = child(&[(name, value)], &[]).into_iter().find(|(other, _)| other == name);
            assert_eq!(found.unwrap().1, expected, "{name}={value}");
        };
        for value in ["", "C", "POSIX", "C.UTF-8", "en_US.UTF-8", "de_DE.utf8", "de_DE.UTF-8@euro"] {
            check("LC_ALL", value, value);
        }
        for name in ["LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES"] {
            for value in
                ["zh_CN.GBK", "zh_CN", "ja_JP.SJIS", "japanese", "zh_TW.Big5", "x.UTF-8.GBK", "GBK@.utf8"]
            {
                check(name, value, "C.UTF-8");
            }
        }
    }

    #[test]
    fn nothing_changes_how_the_shell_reads() {
        for name in SHELL.iter().chain(&["BASH_FUNC_ls%%", "BASH_FUNC_ls()"]) {
            check(name, &[name], false);
        }
        // A name that only looks alike is somebody's own.
        for name in ["BASH", "BASH_FUNCTIONS", "ENVIRONMENT", "MY_PS4"] {
            check(name, &[], true);
        }
    }

    /// The variables are named by what they do to a real shell: each would run code, or give words another meaning.
    #[test]
    fn no_variable_makes_a_shell_run_something_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        let script = dir.path().join("start.sh");
        std::fs::write(&script, "echo caught\n").unwrap();
        let check = |name: &str, value: &str, shell: &[&str], expected: &str| {
            let said = |environment: Vec<(OsString, OsString)>| {
                let mut command = std::process::Command::new(shell[0]);
                command.args(&shell[1..]).env_clear().envs(environment).current_dir("/");
                let output = command.stdin(std::process::Stdio::null()).output().unwrap();
                let text = [output.stdout, output.stderr].concat();
                String::from_utf8_lossy(&text).into_owned()
            };
            let given = child(&[(name, value)], &[name]);
            let as_given = [&child(&[], &[])[..], &[(name.into(), value.into())]].concat();
            assert!(said(as_given).contains(expected), "{name} does what it is left out for");
            let seen = said(given);
            assert!(!seen.contains(expected), "{name}: {seen}");
        };
        let (script, place) = (script.to_str().unwrap(), dir.path().to_str().unwrap());
        check("BASH_ENV", script, &["bash", "-c", "true"], "caught");
        check("ENV", script, &["sh", "-i", "-c", "true"], "caught");
        check("BASH_FUNC_ls%%", "() { echo caught; }", &["bash", "-c", "ls /"], "caught");
        check("SHELLOPTS", "xtrace", &["bash", "-c", "echo hello"], "+ echo");
        check(
            "PROMPT_COMMAND",
            "echo caught",
            &["bash", "--norc", "-i", "-c", "echo $PROMPT_COMMAND"],
            "caught",
        );
        check("BASHOPTS", "nullglob", &["bash", "-c", "shopt nullglob"], "on");
        check("CDPATH", place, &["bash", "-c", "cd sub"], place);
        check("POSIXLY_CORRECT", "1", &["bash", "-c", "echo $SHELLOPTS"], "posix");
    }

    #[test]
    fn programs_are_looked_for_in_the_same_places_everywhere() {
        let check = |given: &str, expected: &str| {
            let child = child(&[("PATH", given)], &[]);
            let found: Vec<_> = child.iter().filter(|(name, _)| name == "PATH").collect();
            assert!(found.len() == 1 && found[0].1 == expected, "{given}: {found:?}");
        };
        check("/usr/bin:/bin", "/usr/bin:/bin");
        check(".:/usr/bin:node_modules/.bin:/bin", "/usr/bin:/bin");
        check(":/usr/bin::/bin:", "/usr/bin:/bin");
        check("/opt/not-there:/bin", "/opt/not-there:/bin");
        check(".", PATH_DEFAULT);
        check("", PATH_DEFAULT);
        assert!(child(&[], &[]).contains(&("PATH".into(), PATH_DEFAULT.into())));
    }

    #[test]
    fn nothing_of_an_untrusted_place_is_run() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["project/bin", "elsewhere"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("../project/bin", root.join("elsewhere/link")).unwrap();
        let check = |given: &str, expected: &str| {
            let root = root.to_str().unwrap();
            let given = given.replace('R', root);
            let mut environment = vec![("PATH".into(), given.into()), ("HOME".into(), "/h".into())];
            for name in ["LD_PRELOAD", "LD_LIBRARY_PATH", "GCONV_PATH"] {
                environment.push((name.into(), "/x".into()));
            }
            distrust(&mut environment, &[dir.path().canonicalize().unwrap().join("project")]);
            let expected =
                [("PATH".into(), expected.replace('R', root).into()), ("HOME".into(), "/h".into())];
            assert_eq!(environment, expected);
        };
        check("/usr/bin:/bin", "/usr/bin:/bin");
        check(".:R/project:R/project/bin:/bin", "/bin");
        check("R/elsewhere/../project/bin:R/elsewhere/link:R/elsewhere:/bin", "R/elsewhere:/bin");
        check("R/not-there:/bin", "/bin");
        check("R/project/bin", PATH_DEFAULT);
    }

    #[test]
    fn children_know_where_they_are() {
        let value = |parent: &[(&str, &str)], name: &str| {
            let values: Vec<OsString> = child(parent, &[])
                .into_iter()
                .filter(|(other, _)| other == name)
                .map(|(_, value)| value)
                .collect();
            assert_eq!(values.len(), 1, "{name}");
            values[0].clone()
        };
        assert_eq!(value(&[], "CLAUDECODE"), "1");
        assert_eq!(value(&[], "WINDLASS"), "1");
        assert_eq!(value(&[], "CLAUDE_PROJECT_DIR"), "/project");
        assert_eq!(value(&[("PAGER", "less")], "PAGER"), "cat");
        assert_eq!(value(&[("GIT_PAGER", "less")], "GIT_PAGER"), "cat");
        assert_eq!(value(&[], "GIT_TERMINAL_PROMPT"), "0");
        assert_eq!(value(&[], "TERM"), "dumb");
        assert_eq!(value(&[("TERM", "xterm")], "TERM"), "xterm");
    }

    #[test]
    fn changes_never_bring_in_what_children_must_not_have() {
        let parent: Vec<(OsString, OsString)> =
            [("HOME", "/h"), ("LANG", "C"), ("PATH", "/bin")].map(|(n, v)| (n.into(), v.into())).into();
        let check = |name: &str, value: Option<&str>, seen: Option<&str>| {
            let later = VariableChanges::new(["HIDDEN".into()]);
            later.set([(name.into(), value.map(OsString::from))]);
            let child = child_environment(later.over(&parent), &["PASSED_KEY".into()], Path::new("/project"));
            let found: Vec<_> =
                child.iter().filter(|(other, _)| other == name).map(|(_, v)| v.clone()).collect();
            assert_eq!(found, seen.map(OsString::from).into_iter().collect::<Vec<_>>(), "{name}");
        };
        check("TEAM", Some("blue"), Some("blue"));
        check("LANG", Some("de_DE.UTF-8"), Some("de_DE.UTF-8"));
        check("LANG", Some("zh_CN.GBK"), Some("C.UTF-8"));
        check("LANG", None, None);
        check("PASSED_KEY", Some("x"), Some("x"));
        check("OTHER_KEY", Some("x"), None);
        check("HIDDEN", Some("x"), None);
        for name in ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "BASH_ENV", "ENV", "BASH_FUNC_ls%%"] {
            check(name, Some("x"), None);
        }
        check("CLAUDE_PROJECT_DIR", Some("/elsewhere"), Some("/project"));
        check("CLAUDECODE", None, Some("1"));
        check("PATH", Some("/opt/bin:.:bin"), Some("/opt/bin"));
    }

    #[test]
    fn later_changes_take_the_place_of_earlier_ones_everywhere() {
        let later = VariableChanges::default();
        let other = later.clone();
        later.set([("A".into(), Some("1".into()))]);
        later.set([("B".into(), Some("2".into()))]);
        assert_eq!(other.over(&[]), [("B".into(), "2".into())]);
        later.set([]);
        assert!(other.is_empty());
    }
}
