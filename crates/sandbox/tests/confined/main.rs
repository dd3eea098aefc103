//! Attempts to get out of a sandbox, with real processes on the real kernel, in each way to confine and both as root and
//! as a user without rights. The supervisor and the inside are this very test program started again.
//!
//! What the kernel here does not offer is skipped, and says so.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "what is skipped is said, and what an engine started")]

mod claims;
mod files;
mod network;
mod processes;
mod protected;
mod repositories;
mod setup;
mod world;

use std::os::unix::process::CommandExt;
use std::process::Command;

use libtest_mimic::{Arguments, Trial};
use windlass_sandbox::{BackendChoice, Sandbox};
use world::World;

/// A user without any rights, and its group.
const NOBODY: u32 = 65534;

/// Something that must hold, and where.
struct Case {
    name: &'static str,
    on: &'static [BackendChoice],
    run: fn(BackendChoice),
}

const BOTH: &[BackendChoice] = &[BackendChoice::Bubblewrap, BackendChoice::Landlock];
const NAMESPACES: &[BackendChoice] = &[BackendChoice::Bubblewrap];
const LANDLOCK: &[BackendChoice] = &[BackendChoice::Landlock];

const fn case(name: &'static str, on: &'static [BackendChoice], run: fn(BackendChoice)) -> Case {
    Case { name, on, run }
}

fn main() {
    windlass_sandbox::run_if_supervisor();
    let arguments: Vec<String> = std::env::args().collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "case", backend, name] => return run_case(backend, name),
        [_, "engine", backend, directory] => return processes::engine(choice(backend), directory),
        [_, "terminal", project, script] => return setup::terminal(project, script),
        _ => {}
    }
    libtest_mimic::run(&Arguments::from_args(), trials()).exit();
}

fn cases() -> Vec<Case> {
    [
        claims::CASES,
        files::CASES,
        protected::CASES,
        network::CASES,
        processes::CASES,
        repositories::CASES,
        setup::CASES,
    ]
    .into_iter()
    .flatten()
    .map(|case| Case { ..*case })
    .collect()
}

fn trials() -> Vec<Trial> {
    let users: &[&str] = if rustix::process::getuid().is_root() { &["root", "nobody"] } else { &["user"] };
    let mut trials = Vec::new();
    for Case { name, on, .. } in cases() {
        for (&backend, user) in on.iter().flat_map(|backend| users.iter().map(move |user| (backend, *user))) {
            let trial = Trial::test(format!("{}_{user}_{name}", word(backend)), move || {
                start_case(backend, user, name);
                Ok(())
            });
            trials.push(trial);
        }
    }
    trials
}

fn word(backend: BackendChoice) -> &'static str {
    if backend == BackendChoice::Landlock { "landlock" } else { "bubblewrap" }
}

fn choice(word: &str) -> BackendChoice {
    if word == "landlock" { BackendChoice::Landlock } else { BackendChoice::Bubblewrap }
}

/// Runs a case in a process of its own, as the user.
fn start_case(backend: BackendChoice, user: &str, name: &str) {
    let mut command = Command::new("/proc/self/exe");
    command.args(["case", word(backend), name]).current_dir("/");
    if user == "nobody" {
        command.uid(NOBODY).gid(NOBODY).env("HOME", "/nonexistent").env_remove("XDG_RUNTIME_DIR");
    }
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    print!("{}", text(&output.stdout));
    assert!(output.status.success(), "{:?}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
}

fn run_case(backend: &str, name: &str) {
    let backend = choice(backend);
    if let Err(unavailable) = Sandbox::prepare(&World::new(backend).policy) {
        let is_needed = std::env::var_os("CI").is_some() && unavailable.missing == "bubblewrap";
        assert!(!is_needed, "{unavailable}");
        println!("SKIPPED: {unavailable}");
        return;
    }
    let case = cases().into_iter().find(|case| case.name == name).unwrap();
    (case.run)(backend);
}
