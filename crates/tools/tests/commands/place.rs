//! Where commands run, what they see of their surroundings, and commands that only look.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use libtest_mimic::Trial;
use serde_json::json;
use windlass_ports::{AnyTool, ExamineContext, ToolContext};
use windlass_protocol::CallKind;
use windlass_tools::Bash;

use super::{Session, block_on, numbers, raw, text, trial};

pub(super) fn trials() -> Vec<Trial> {
    vec![
        trial("looking_runs_no_program_of_the_project", looking_runs_no_program_of_the_project),
        trial("looking_with_git_runs_nothing_that_a_repository_names", looking_with_git),
        trial("looking_with_git_enters_no_repository_inside", looking_at_repositories_inside),
        trial("looking_with_git_knows_an_index_that_is_split", looking_at_an_index),
        trial("looking_follows_no_link_that_was_swapped", looking_follows_no_link_that_was_swapped),
        trial("nothing_runs_that_was_not_decided", nothing_runs_that_was_not_decided),
        trial("a_forged_directory_leads_nowhere", a_forged_directory_leads_nowhere),
        trial("the_working_directory_carries_over_inside_the_roots", the_working_directory_carries_over),
        trial("a_working_directory_that_is_gone_is_replaced", a_working_directory_that_is_gone),
        trial("secrets_and_shell_setup_stay_outside", secrets_and_shell_setup_stay_outside),
        trial("an_env_file_is_sourced", an_env_file_is_sourced),
        trial("names_that_are_not_text_work", names_that_are_not_text_work),
        trial("looking_at_a_file_makes_it_known", looking_at_a_file_makes_it_known),
    ]
}

fn looking_runs_no_program_of_the_project() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let env_file = dir.path().join("env");
        fs::write(&env_file, "cat() { echo caught; }; cd /\n").unwrap();
        let mut session = Session::with(|settings| settings.env_file = Some(env_file));
        let project = session.project();
        fs::create_dir(project.join("bin")).unwrap();
        for program in ["cat", "bin/cat", "bin/grep"] {
            let path = project.join(program);
            fs::write(&path, "#!/bin/sh\necho caught\n").unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        fs::write(project.join("a.txt"), "text\n").unwrap();
        let path = format!(".::{}/bin:{}", project.display(), std::env::var("PATH").unwrap());
        session.settings.env = vec![("PATH".into(), path.into())];
        for command in ["cat a.txt", "grep text a.txt"] {
            let outcome = session.bash(json!({ "command": command })).await;
            assert_eq!(text(&outcome), "text", "{command}");
        }
        // What somebody was asked about may use what the user set up.
        let outcome = session.bash(json!({ "command": "cat a.txt && touch b.txt" })).await;
        assert!(text(&outcome).starts_with("caught"), "{}", text(&outcome));
    });
}

const GIT_LOOKS: [&str; 9] = [
    "git status",
    "git log",
    "git log -p",
    "git log -m -p --remerge-diff",
    "git show",
    "git diff",
    "git blame file",
    "git ls-files -m",
    "git describe --always --dirty",
];

/// A repository with this setting, which names a program that leaves a mark. Either git is not said to only look in there, or it
/// runs and leaves no mark.
fn check_git(setting: &str, looks: bool) {
    let session = Session::new();
    let project = session.project();
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(&project).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments);
        assert!(command.env("GIT_CONFIG_GLOBAL", "/dev/null").status().unwrap().success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    fs::write(project.join(".gitattributes"), "* diff=own filter=own\n").unwrap();
    fs::write(project.join("file"), "one\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    fs::write(project.join("file"), "two\n").unwrap();
    git(&["config", "log.showSignature", "true"]);
    let program = project.join(".git/program");
    fs::write(&program, format!("#!/bin/sh\ntouch {}\ncat\n", project.join("ran").display())).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    if setting == "core.hooksPath" {
        git(&["config", setting, project.join(".git").to_str().unwrap()]);
        fs::rename(&program, project.join(".git/post-index-change")).unwrap();
    } else {
        git(&["config", setting, program.to_str().unwrap()]);
    }
    check_git_looks(&session, setting, looks);
}

fn check_git_looks(session: &Session, setting: &str, looks: bool) {
    let project = session.project();
    for command in GIT_LOOKS {
        let cx = ExamineContext::new(project.clone(), [project.clone()].into());
        let tool = Bash::new(session.settings.clone(), Arc::clone(&session.tasks));
        let facts = AnyTool::examine(&tool, &raw(&json!({ "command": command })), &cx).unwrap();
        let looks = looks && !(command.contains("--dirty") && project.join("inside").exists());
        assert_eq!(facts.kind == CallKind::Read, looks, "{command} with {setting}");
        if looks {
            block_on(session.bash(json!({ "command": command })));
            assert!(!project.join("ran").exists(), "{command} with {setting}");
        }
    }
}

/// A repository inside of another one has a configuration of its own.
fn looking_at_repositories_inside() {
    let session = Session::new();
    let project = session.project();
    let git = |directory: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(project.join(directory)).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        command.args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null").stderr(std::process::Stdio::null());
        assert!(command.status().unwrap().success(), "{arguments:?}");
    };
    git("", &["init", "-q"]);
    git("", &["init", "-q", "inside"]);
    fs::write(project.join("inside/.gitattributes"), "* filter=own\n").unwrap();
    fs::write(project.join("inside/file"), "one\n").unwrap();
    fs::write(project.join("file"), "one\n").unwrap();
    for directory in ["inside", ""] {
        git(directory, &["add", "."]);
        git(directory, &["commit", "-qm", "one"]);
    }
    fs::write(project.join("inside/file"), "two two\n").unwrap();
    let mark = format!("touch {}; cat", project.join("ran").display());
    git("inside", &["config", "filter.own.clean", &mark]);
    check_git_looks(&session, "a filter inside", true);
    let modules = "[submodule \"inside\"]\n\tpath = inside\n\turl = ./inside\n";
    fs::write(project.join(".gitmodules"), modules).unwrap();
    check_git_looks(&session, "a submodule", true);
    fs::write(project.join(".gitmodules"), format!("{modules}\tignore = none\n")).unwrap();
    check_git_looks(&session, "a submodule to be looked into", false);
}

/// A file may be called like the part of an index that says that the rest is elsewhere.
fn looking_at_an_index() {
    for version in ["2", "4"] {
        let session = Session::new();
        let project = session.project();
        let git = |arguments: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.current_dir(&project).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments);
            assert!(
                command.env("GIT_CONFIG_GLOBAL", "/dev/null").status().unwrap().success(),
                "{arguments:?}"
            );
        };
        git(&["init", "-q"]);
        fs::create_dir(project.join("src")).unwrap();
        fs::write(project.join("file"), "one\n").unwrap();
        // Behind each of these stands another number of NULs.
        for number in 0..100 {
            let name = "a".repeat(number % 8);
            for name in [format!("src/{number}{name}link"), format!("src/{number}{name}linked.rs")] {
                fs::write(project.join(name), "one\n").unwrap();
            }
        }
        fs::write(project.join("links.md"), "one\n").unwrap();
        git(&["add", "."]);
        git(&["commit", "-qm", "one"]);
        git(&["update-index", "--index-version", version]);
        check_git_looks(&session, &format!("files called link in version {version}"), true);
        git(&["update-index", "--split-index"]);
        check_git_looks(&session, &format!("a split index of version {version}"), false);
        git(&["update-index", "--no-split-index"]);
        check_git_looks(&session, &format!("an index of version {version} in one piece"), true);
    }
}

fn looking_with_git() {
    for setting in
        ["core.fsmonitor", "core.pager", "pager.log", "core.hooksPath", "core.sshCommand", "core.editor"]
    {
        check_git(setting, true);
    }
    for setting in [
        "filter.own.clean",
        "filter.own.process",
        "diff.own.textconv",
        "diff.own.command",
        "diff.external",
        "merge.own.driver",
        "gpg.program",
        "include.path",
    ] {
        check_git(setting, false);
    }
}

fn looking_follows_no_link_that_was_swapped() {
    block_on(async {
        let session = Session::new();
        let project = session.project();
        fs::write(project.join("mine"), "mine").unwrap();
        fs::write(project.join("theirs"), "theirs").unwrap();
        symlink("mine", project.join("link")).unwrap();
        for command in ["cat mine link", "cat min* lin*"] {
            let input = json!({ "command": command });
            let mut cx = session.context();
            cx.facts = session.facts(&input, &cx).unwrap();
            assert_eq!(text(&session.bash_decided(input.clone(), cx.clone()).await), "minemine");
            fs::remove_file(project.join("link")).unwrap();
            symlink("theirs", project.join("link")).unwrap();
            let outcome = session.bash_decided(input, cx).await;
            let text = text(&outcome);
            assert!(outcome.is_error && text.contains("link now leads to another file"), "{text}");
            fs::remove_file(project.join("link")).unwrap();
            symlink("mine", project.join("link")).unwrap();
        }
    });
}

fn nothing_runs_that_was_not_decided() {
    block_on(async {
        let session = Session::new();
        let mut cx = session.context();
        cx.facts = session.facts(&json!({ "command": "echo one" }), &cx).unwrap();
        let outcome = session.bash_decided(json!({ "command": "echo two" }), cx.clone()).await;
        assert!(outcome.is_error && text(&outcome).contains("another command line"), "{}", text(&outcome));
        let (input, sub) = (json!({ "command": "cat f" }), session.project().join("sub"));
        fs::create_dir(&sub).unwrap();
        cx.cwd.clone_from(&sub);
        cx.facts = session.facts(&input, &cx).unwrap();
        fs::remove_dir(&sub).unwrap();
        let outcome = session.bash_decided(input, cx).await;
        assert!(outcome.is_error && text(&outcome).contains("was removed"), "{}", text(&outcome));
    });
}

fn a_forged_directory_leads_nowhere() {
    block_on(async {
        let session = Session::new();
        let project = session.project();
        fs::create_dir(project.join("sub")).unwrap();
        for forged in ["$PWD/../..", "$PWD/sub/../..", "$PWD/out", "/", "nonsense"] {
            let command = format!("ln -sfn / out; trap \"echo {forged} >&250\" EXIT");
            let outcome = session.bash(json!({ "command": command })).await;
            assert_eq!(outcome.cwd, None, "{forged}: {}", text(&outcome));
        }
    });
}

fn the_working_directory_carries_over() {
    block_on(async {
        let session = Session::new();
        let project = session.project();
        fs::create_dir_all(project.join("sub/deep")).unwrap();
        let outcome = session.bash(json!({ "command": "cd sub/deep && echo hi" })).await;
        assert_eq!(outcome.cwd, Some(project.join("sub/deep")));
        assert_eq!(
            text(&outcome),
            format!("hi\nThe working directory is now {}/sub/deep", project.display())
        );

        let mut cx = session.context();
        cx.cwd = project.join("sub");
        let outcome = session.bash_in(json!({ "command": "pwd; cd /" }), cx.clone()).await;
        assert_eq!(outcome.cwd, Some(project.clone()));
        let expected = format!("{0}/sub\nShell cwd was reset to {0}", project.display());
        assert_eq!(text(&outcome), expected);

        let outcome = session.bash_in(json!({ "command": "pwd" }), cx.clone()).await;
        assert_eq!(
            (outcome.cwd.as_ref(), text(&outcome)),
            (None, format!("{}/sub", project.display()).as_str())
        );

        let session = Session::with(|settings| settings.should_keep_directory = true);
        fs::create_dir_all(session.project().join("sub")).unwrap();
        let outcome = session.bash(json!({ "command": "cd sub" })).await;
        assert_eq!(outcome.cwd, None);
        assert_eq!(text(&outcome), format!("Shell cwd was reset to {}", session.project().display()));
    });
}

fn a_working_directory_that_is_gone() {
    block_on(async {
        let session = Session::new();
        let mut cx = session.context();
        cx.cwd = session.project().join("gone");
        for command in ["pwd", "echo `pwd`"] {
            let outcome = session.bash_in(json!({ "command": command }), cx.clone()).await;
            assert_eq!(outcome.cwd, Some(session.project()));
            let expected = format!(
                "The working directory {0}/gone no longer exists; the command ran in {0}.\n{0}",
                session.project().display()
            );
            assert_eq!(text(&outcome), expected);
        }
    });
}

fn secrets_and_shell_setup_stay_outside() {
    block_on(async {
        let session = Session::with(|settings| {
            settings.env_pass = vec!["PASSED_TOKEN".into()];
            settings.env = vec![("CLAUDE_CODE_SESSION_ID".into(), "s1".into())];
        });
        let outcome = session.bash(json!({ "command": "env; ls /proc/self/fd" })).await;
        assert!(!text(&outcome).contains("hush"), "{}", text(&outcome));
        let project = format!("CLAUDE_PROJECT_DIR={}", session.project().display());
        let expected = [
            "CLAUDECODE=1",
            "WINDLASS=1",
            "PAGER=cat",
            "GIT_TERMINAL_PROMPT=0",
            "CLAUDE_CODE_SESSION_ID=s1",
            "PASSED_TOKEN=passed",
            &project,
        ];
        for line in expected {
            assert!(text(&outcome).lines().any(|other| other == line), "{line} in {}", text(&outcome));
        }
        assert!(!text(&outcome).contains("BASH_ENV"));
    });
}

const ECHO: &str = "echo \"<$GREETING>\"";

fn an_env_file_is_sourced() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("env");
        fs::write(&file, "export GREETING=hello\n").unwrap();
        let session = Session::with(|settings| settings.env_file = Some(file.clone()));
        for command in ["echo $GREETING", "printenv GREETING"] {
            let outcome = session.bash(json!({ "command": command })).await;
            assert_eq!(text(&outcome), "hello");
        }
        fs::remove_file(&file).unwrap();
        let tool = Arc::new(Bash::new(session.settings.clone(), Arc::clone(&session.tasks)));
        let notice = format!("CLAUDE_ENV_FILE is {}, which is not a file; ignored.\n", file.display());
        for (command, expected) in
            [("echo only looking", "only looking"), (ECHO, &format!("{notice}<>")), (ECHO, "<>")]
        {
            let (input, cx) = (json!({ "command": command }), session.context());
            let cx = ToolContext { facts: session.facts(&input, &cx).unwrap(), ..cx };
            let outcome = AnyTool::run(Arc::clone(&tool), raw(&input), cx).await;
            assert_eq!(text(&outcome), expected);
        }
        // What goes on in the background was asked for, whatever it does.
        let outcome = session.bash(json!({ "command": "echo a", "run_in_background": true })).await;
        assert!(text(&outcome).starts_with(&notice), "{}", text(&outcome));
    });
}

fn names_that_are_not_text_work() {
    block_on(async {
        let session = Session::new();
        let outcome = session.bash(json!({ "command": "mkdir $'d\\xff' && echo hi > $'d\\xff/f\\xfe' && cd $'d\\xff' && cat $'f\\xfe'" })).await;
        assert!(text(&outcome).starts_with("hi\n") && !outcome.is_error, "{}", text(&outcome));
        let mut cx = session.context();
        cx.cwd = outcome.cwd.unwrap();
        let outcome = session.bash_in(json!({ "command": "cat f*" }), cx).await;
        assert_eq!(text(&outcome), "hi");
    });
}

fn looking_at_a_file_makes_it_known() {
    block_on(async {
        let session = Session::new();
        fs::write(session.project().join("a.txt"), "one\ntwo\n").unwrap();
        let long = numbers(1..=100);
        fs::write(session.project().join("long.txt"), &long).unwrap();
        let check = async |command: &str, expected: Option<bool>| {
            let outcome = session.bash(json!({ "command": command })).await;
            assert_eq!(outcome.seen.first().map(|seen| seen.is_whole), expected, "{command}");
            for seen in outcome.seen {
                let content = fs::read(&seen.path).unwrap();
                assert_eq!(seen.hash, xxhash_rust::xxh3::xxh3_64(&content), "{command}");
            }
        };
        check("cat a.txt", Some(true)).await;
        check("head a.txt", Some(true)).await;
        check("head long.txt", Some(false)).await;
        check("tail long.txt", Some(false)).await;
        check("grep one a.txt", Some(false)).await;
        check("sed -n '1,1p' a.txt", Some(false)).await;
        check("sed -n '1,2p' a.txt", Some(true)).await;
        check("nl a.txt", Some(false)).await;
        check("cat -n a.txt", Some(false)).await;
        check("egrep 'one|two' a.txt", Some(true)).await;
        check("fgrep one a.txt", Some(false)).await;
        check("sed -n '1,2p' a.txt > b.txt", None).await;
        check("sed '1,2p' a.txt", None).await;
        check("cat a.txt a.txt", None).await;
        check("cat a.txt | head", None).await;
        check("cat none.txt", None).await;
        check("wc a.txt", None).await;
        fs::write(session.project().join("big.txt"), "line\n".repeat(10_000)).unwrap();
        check("cat big.txt", Some(false)).await;
    });
}
