//! Which directory is ours, for each way to be started.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsString;
use std::path::Path;

use windlass_config::{FileSettings, Flags, Home, ProcessContext, RunConfig, Settings};

fn home(variables: &[(&str, &str)], user: Option<&str>) -> Home {
    let pairs = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let place = ProcessContext {
        cwd: "/project".into(),
        is_root: false,
        home: user.map(Into::into),
        managed: "/none".into(),
    };
    RunConfig::new(
        Settings::from_environment(pairs).unwrap(),
        &Flags::default(),
        &place,
        FileSettings::default(),
    )
    .unwrap()
    .home
}

#[test]
fn sessions_are_kept_where_their_readers_look() {
    const OWN: (&str, &str) = ("WINDLASS_HOME", "/own");
    const SHARED: (&str, &str) = ("CLAUDE_CONFIG_DIR", "/shared");
    const SDK: (&str, &str) = ("CLAUDE_CODE_ENTRYPOINT", "sdk-py");
    const VERSION: (&str, &str) = ("CLAUDE_AGENT_SDK_VERSION", "0.1.2");
    let check = |variables: &[(&str, &str)], expected: &str| {
        let home = home(variables, Some("/home/u"));
        assert_eq!(home.require().unwrap(), Path::new(expected), "{variables:?}");
        assert_eq!(home.is_started_by_sdk, variables.contains(&SDK) || variables.contains(&VERSION));
    };
    check(&[], "/home/u/.windlass");
    check(&[OWN], "/own");
    check(&[SHARED], "/shared");
    check(&[OWN, SHARED], "/own");
    check(&[("WINDLASS_HOME", "relative")], "/project/relative");
    check(&[("WINDLASS_HOME", ""), SHARED], "/shared");
    check(&[SDK], "/home/u/.claude");
    check(&[SDK, OWN], "/home/u/.claude");
    check(&[SDK, OWN, SHARED], "/shared");
    check(&[VERSION, OWN], "/home/u/.claude");
    check(&[VERSION, SHARED], "/shared");
    check(&[("CLAUDE_CODE_ENTRYPOINT", "cli"), OWN], "/own");
    check(&[("CLAUDE_CODE_ENTRYPOINT", "my-sdk-tool")], "/home/u/.windlass");
}

#[test]
fn without_a_home_only_writing_is_refused() {
    let none = home(&[], None);
    assert_eq!(none.directory(), None);
    let error = none.require().unwrap_err().to_string();
    assert!(error.contains("WINDLASS_HOME") && error.contains("--no-session-persistence"), "{error}");
    assert_eq!(home(&[("WINDLASS_HOME", "/own")], None).directory(), Some(Path::new("/own")));
}
