use windlass_protocol::{CommandPath, CommandWord};

use super::*;

mod oracle;

fn anchors() -> Anchors {
    Anchors {
        settings: "/srv/app/conf".into(),
        start: "/srv/app".into(),
        roots: vec!["/srv/app".into(), "/data".into()],
        home: Some("/home/me".into()),
    }
}

fn pattern(text: &str, behaviour: Behaviour) -> PathPattern {
    PathPattern::parse(text, behaviour, &anchors()).unwrap()
}

fn place(path: &str) -> PathFact {
    PathFact { lexical: path.into(), resolved: Some(path.into()), is_directory: false }
}

/// A pattern and a path: whether an allow rule covers it, whether a deny rule means it.
#[track_caller]
fn check(text: &str, path: &str, allow: bool, deny: bool) {
    let seen = (
        pattern(text, Behaviour::Allow).covers(&place(path)),
        pattern(text, Behaviour::Deny).restricts(&PathNames::of(&place(path))),
    );
    assert_eq!(seen, (allow, deny), "{text} {path}");
}

#[test]
fn patterns_are_anchored_and_read_like_ignore_files() {
    check("//etc/hosts", "/etc/hosts", true, true);
    check("//etc/**", "/etc/a/b", true, true);
    check("//etc/**", "/etc", false, true);
    check("//etc", "/etc/a", true, true);
    check("~/x", "/home/me/x", true, true);
    check("~/.zshrc", "/home/me/.zshrc", true, true);
    check("~", "/home/me/any", true, true);
    check("/x", "/srv/app/conf/x", true, true);
    check("/x", "/srv/app/x", false, false);
    check("./src/a.rs", "/srv/app/src/a.rs", true, true);
    check("src/a.rs", "/srv/app/src/a.rs", true, true);
    check("src/a.rs", "/srv/app/x/src/a.rs", false, false);
    check("src/a.rs", "/data/src/a.rs", false, true);
    check(".env", "/srv/app/.env", true, true);
    check(".env", "/srv/app/a/b/.env", true, true);
    check(".env", "/srv/.env", false, false);
    check(".env", "/srv/app/.envrc", false, false);
    check(".env", "/srv/app/x.env", false, false);
    check(".env", "/srv/app/.ENV", false, true);
    check("**/.env", "/srv/app/.env", true, true);
    check("**/.env", "/srv/app/a/.env", true, true);
    check("*.rs", "/srv/app/a.rs", true, true);
    check("*.rs", "/srv/app/b/a.rs", true, true);
    check("src/*.rs", "/srv/app/src/a.rs", true, true);
    check("src/*.rs", "/srv/app/src/b/a.rs", false, false);
    check("src/**/a.rs", "/srv/app/src/a.rs", true, true);
    check("src/**/a.rs", "/srv/app/src/x/y/a.rs", true, true);
    check("src/**/a.rs", "/srv/app/src/xa.rs", false, false);
    check("src/**", "/srv/app/src/a", true, true);
    check("src/**", "/srv/app/src", false, true);
    check("src/**", "/srv/app/lib/src/a", false, true);
    check("src/**", "/srv/app/srcs/a", false, false);
    check("./src/**", "/srv/app/lib/src/a", false, false);
    check("a/b/**", "/srv/app/a/b/c", true, true);
    check("a/b/**", "/srv/app/x/a/b/c", false, false);
    check("/srv/app", "/srv/app2/x", false, false);
    check("//srv/app", "/srv/app2/x", false, false);
    check("**", "/srv/app/a/b", true, true);
    check("**", "/srv/app", false, true);
    check("//**", "/", false, true);
    check("./**", "/srv/app/a", true, true);
    check("*", "/srv/app/a/b", true, true);
    check("a?c", "/srv/app/abc", true, true);
    check("a?c", "/srv/app/a/c", false, false);
    check("[ab].rs", "/srv/app/b.rs", true, true);
    check("[!ab].rs", "/srv/app/b.rs", false, false);
    check("[!ab].rs", "/srv/app/c.rs", true, true);
    check("[a-c]x", "/srv/app/bx", true, true);
    check("[", "/srv/app/[", true, true);
    check("\\*.rs", "/srv/app/*.rs", true, true);
    check("\\*.rs", "/srv/app/a.rs", false, false);
    check("build/", "/srv/app/build/x", true, true);
    check("build/", "/srv/app/build", false, true);
    check("secrets", "/srv/app/secrets/key", true, true);
    check("//**", "/any/thing", true, true);
    check("../lib/x", "/srv/lib/x", true, true);
    check("../lib/x", "/srv/app/lib/x", false, false);
    check("caf\u{e9}", "/srv/app/cafe\u{301}", false, true);
}

#[test]
fn a_link_must_be_covered_by_both_names_and_is_denied_by_either() {
    let link = PathFact {
        lexical: "/srv/app/link".into(),
        resolved: Some("/srv/app/.env".into()),
        is_directory: false,
    };
    assert!(!pattern("link", Behaviour::Allow).covers(&link));
    assert!(!pattern(".env", Behaviour::Allow).covers(&link));
    assert!(pattern("link", Behaviour::Deny).restricts(&PathNames::of(&link)));
    assert!(pattern(".env", Behaviour::Deny).restricts(&PathNames::of(&link)));
    let nowhere = PathFact { resolved: None, ..link };
    assert!(!pattern("*", Behaviour::Allow).covers(&nowhere));
}

#[test]
fn what_a_command_names_by_pattern_or_below_may_be_meant() {
    use RestrictionMatch::{May, No, Yes};
    let check = |rule: &str, path: &str, naming, is_recursive, expected| {
        let word = CommandWord::from_marked(path, "$");
        let place = word.as_known().map(|path| place(path).into()).unwrap_or(CommandPath::Partial(word));
        let named = NamedPath { path: place, naming, is_recursive, is_redirected: false };
        assert_eq!(
            pattern(rule, Behaviour::Deny).restricts_named(
                &named,
                &PathNames::of_named(&named.path),
                named.is_recursive
            ),
            expected,
            "{rule} {path}"
        );
    };
    let (exact, glob, unknown) = (PathNaming::Exact, PathNaming::Pattern, PathNaming::Unknown);
    check(".env", "/srv/app/.env", exact, false, Yes);
    check(".env", "/srv/app/.e*", glob, false, May);
    check(".env", "/srv/app/.en?", glob, false, May);
    check(".env", "/srv/app/*", glob, false, No);
    check(".env", "/srv/app/*.rs", glob, false, No);
    check("secret.txt", "/srv/app/*", glob, false, May);
    check("secret.txt", "/srv/app/*.txt", glob, false, May);
    check("secret.txt", "/srv/app/*.rs", glob, false, No);
    check("secret.txt", "/srv/app/src/*.rs", glob, false, No);
    check("secrets/**", "/srv/app/sec*/key", glob, false, May);
    check("secrets/**", "/srv/app/*/key", glob, false, May);
    check("secrets/**", "/srv/app/src/*", glob, false, May);
    check("./secrets/**", "/srv/app/src/*", glob, false, No);
    check(".env", "/srv/app/**/*.py", glob, false, No);
    check(".env", "/srv/app/**/.e*", glob, false, May);
    check("*.pem", "/srv/app/**/*.py", glob, false, No);
    check("*.py", "/srv/app/**/*.py", glob, false, Yes);
    check("a*.py", "/srv/app/**/*.py", glob, false, May);
    check("secret.txt", "/srv/app/**/*.py", glob, false, No);
    check("./secret.txt", "/srv/app/**/*", glob, false, May);
    check("./src/gen/**", "/srv/app/**/*.py", glob, false, May);
    check("./src/gen/**", "/srv/app/src/**/*.py", glob, false, May);
    check("./src/gen/**", "/srv/app/lib/**/*.py", glob, false, No);
    check("gen", "/srv/app/src/**/*.py", glob, false, May);
    check("./src/gen/**", "/srv/app/src/**/*.py", PathNaming::Mentioned, false, May);
    check("./src/gen/**", "/srv/app/lib/**/*.py", PathNaming::Mentioned, false, No);
    check("./src/gen/**", "/srv/app/src/*.py", PathNaming::Mentioned, false, No);
    check(".env", "/srv/app", exact, true, May);
    check("./.env", "/srv/app/src", exact, true, No);
    check("./.env", "/srv/app", exact, true, May);
    check("./conf/key", "/srv/app/conf", exact, true, May);
    check("./conf/key", "/srv/app/confx", exact, true, No);
    check(".env", "/srv/app/$", unknown, false, May);
    check(".env", "/srv/app/.env", PathNaming::Mentioned, false, May);
    check("secrets/**", "/srv/app/a/secrets/key", PathNaming::Mentioned, false, May);
    check(".env", "/srv/app/hello", PathNaming::Mentioned, false, No);
    check(".env", "/srv/app/$", PathNaming::Mentioned, false, No);
}

#[test]
fn what_names_no_path_is_refused() {
    for text in ["", "/", "a\0b", "a/../b", ".."] {
        assert!(PathPattern::parse(text, Behaviour::Deny, &anchors()).is_err(), "{text}");
    }
    let homeless = Anchors { home: None, ..anchors() };
    assert!(PathPattern::parse("~/x", Behaviour::Allow, &homeless).is_err());
}

#[test]
fn a_literal_pattern_means_its_path_alone() {
    for path in ["/srv/app/a b", "/srv/app/[x]*?", "/srv/app/a\\b", "/srv/(x)"] {
        let text = PathPattern::literal(Path::new(path)).unwrap();
        let rule = pattern(&text, Behaviour::Allow);
        assert!(rule.covers(&place(path)), "{text}");
        assert!(!rule.covers(&place("/srv/app/x")), "{text}");
    }
    assert_eq!(PathPattern::literal(Path::new("/a\nb")), None);
}
