//! What happens when a sandbox cannot be had, and how one is reported.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_sandbox::{
    BackendChoice, Barrier, CommandStatus, LaunchError, Launcher, ProgramBounds, ProgramCommand,
    ProgramInput, Sandbox, SandboxPolicy, run_command,
};

use crate::world::{World, block_on, run, supervised};
use crate::{BOTH, Case, NAMESPACES, case};

pub(crate) const CASES: &[Case] = &[
    case("without_its_program_there_is_no_sandbox", NAMESPACES, without_program),
    case("a_program_that_does_not_confine_is_noticed", NAMESPACES, false_program),
    case("another_program_is_not_taken_for_bubblewrap", BOTH, other_program),
    case("what_fails_while_setting_up_is_told", BOTH, failures_are_told),
    case("every_barrier_is_reported", BOTH, every_barrier),
    case("programs_are_confined_too", BOTH, programs),
    case("the_sandbox_has_its_own_place_for_temporary_files", BOTH, own_temp),
    case("a_command_can_run_at_a_terminal", BOTH, at_a_terminal),
    case("limits_hold", BOTH, limits),
    case("without_a_supervisor_nothing_is_confined", BOTH, without_supervisor),
];

fn script(world: &World, name: &str, text: &str) -> PathBuf {
    let path = world.path(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn without_program(backend: BackendChoice) {
    let mut world = World::new(backend);
    let refused = |world: &World| Sandbox::prepare(&world.policy).unwrap_err();
    world.policy.bwrap = Some("/nowhere/bwrap".into());
    assert_eq!(refused(&world).missing, "bubblewrap");
    world.policy.bwrap = Some("bwrap".into());
    assert_eq!(refused(&world).missing, "bubblewrap");
    // Not from where a command can write, and not one that others can change.
    fs::copy("/usr/bin/bwrap", world.path("project/bwrap")).unwrap();
    world.policy.bwrap = Some(world.path("project/bwrap"));
    assert_eq!(refused(&world).missing, "bubblewrap");
    fs::copy("/usr/bin/bwrap", world.path("outside/bwrap")).unwrap();
    fs::set_permissions(world.path("outside/bwrap"), fs::Permissions::from_mode(0o777)).unwrap();
    world.policy.bwrap = Some(world.path("outside/bwrap"));
    assert_eq!(refused(&world).missing, "bubblewrap");
    world.policy.bwrap = Some(script(&world, "outside/fails", "#!/bin/sh\necho no namespaces >&2; exit 1\n"));
    let unavailable = refused(&world);
    assert_eq!(
        (unavailable.missing.as_str(), unavailable.why.as_str()),
        ("the right to create namespaces", "no namespaces")
    );
    // The weaker way is taken only when that is allowed, and the report says why it was.
    world.policy.backend = BackendChoice::Best;
    match Sandbox::prepare(&world.policy) {
        Ok(sandbox) => {
            assert!(sandbox.backend() == "landlock" && sandbox.is_reduced());
            let report = sandbox.report();
            assert!(
                report.contains(
                    "bubblewrap cannot be used here: the right to create namespaces is missing (no namespaces)"
                ),
                "{report}"
            );
        }
        Err(unavailable) => println!("SKIPPED: {unavailable}"),
    }
}

/// A program that succeeds whatever it is given makes no namespaces.
fn other_program(_: BackendChoice) {
    let mut world = World::new(BackendChoice::Bubblewrap);
    let truth = ["/bin/true", "/usr/bin/true"].into_iter().find(|path| Path::new(path).exists()).unwrap();
    world.policy.bwrap = Some(truth.into());
    let unavailable = Sandbox::prepare(&world.policy).unwrap_err();
    assert!(unavailable.why.contains("does not behave like bubblewrap"), "{unavailable}");
}

/// Runs what it is given after the double dash, and confines nothing.
const FALSE_PROGRAM: &str = "#!/bin/sh\n[ \"$1\" = --version ] && echo bubblewrap 1 && exit\nwhile [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n";

fn false_program(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.policy.bwrap = Some(script(&world, "outside/bwrap", FALSE_PROGRAM));
    let (output, exit) = world.run("echo ran; touch $OUT/new");
    assert_eq!((output.as_str(), exit.status), ("", CommandStatus::NotStarted(libc::EPERM)));
    assert!(exit.reason.unwrap().contains("did not make the namespaces"), "said");
    assert!(!world.path("outside/new").exists());
}

fn failures_are_told(backend: BackendChoice) {
    let world = World::new(backend);
    let check = |job: &windlass_sandbox::ShellCommand, expected: &str| {
        let (output, exit) = run(job);
        assert_eq!((output.as_str(), exit.status), ("", CommandStatus::NotStarted(libc::EPERM)), "{exit:?}");
        let reason = exit.reason.unwrap();
        assert!(
            reason.starts_with("the sandbox could not be set up: ") && reason.contains(expected),
            "{reason}"
        );
    };
    if backend == BackendChoice::Bubblewrap {
        let mut world = World::new(backend);
        world.policy.bwrap = Some(world.path("outside/bwrap"));
        fs::copy("/usr/bin/bwrap", world.path("outside/bwrap")).unwrap();
        let job = world.job("echo ran");
        fs::remove_file(world.path("outside/bwrap")).unwrap();
        check(&job, "No such file");
        world.policy.bwrap = None;
        world.policy.writable.push("/".into());
        assert!(Sandbox::prepare(&world.policy).is_err(), "nothing is safe then, not even bwrap");
        world.policy.writable.pop();
        world.policy.protected.push(windlass_sandbox::ProtectedPath::new(world.path("project/../outside/x")));
        check(&world.job("echo ran"), "its location is uncertain");
        // A place that is hidden cannot be entered.
        let mut job = World::new(backend).job("echo ran");
        job.cwd = world.path("home/.ssh");
        job.sandbox = Some(world_with_hidden(&world));
        check(&job, "cannot be entered");
    }
    let mut job = world.job("echo ran");
    job.cwd = world.path("nowhere");
    match block_on(async { supervised().start(&job).map(drop) }) {
        Err(LaunchError::Program { .. }) => {}
        other => panic!("{other:?}"),
    }
}

fn world_with_hidden(world: &World) -> Sandbox {
    let mut policy = SandboxPolicy::new(vec![world.path("project")], &world.path("home"));
    policy.backend = world.policy.backend;
    Sandbox::prepare(&policy).unwrap()
}

fn every_barrier(backend: BackendChoice) {
    let sandbox = World::new(backend).sandbox();
    let barriers: Vec<Barrier> = sandbox.active_barriers().iter().map(|barrier| barrier.barrier).collect();
    assert_eq!(
        barriers,
        [
            Barrier::Writing,
            Barrier::Protected,
            Barrier::Hidden,
            Barrier::Network,
            Barrier::Sockets,
            Barrier::Processes,
            Barrier::Privileges,
            Barrier::SystemCalls,
            Barrier::ProcessLimit
        ]
    );
    let report = sandbox.report();
    assert_eq!(report.lines().next().unwrap().contains("(reduced)"), sandbox.is_reduced());
    let is_reported = |barrier: &Barrier| report.contains(&format!("\n  {}: ", barrier.name()));
    assert!(barriers.iter().all(is_reported), "{report}");
    if backend == BackendChoice::Landlock {
        assert!(sandbox.is_reduced(), "{report}");
    }
}

fn programs(backend: BackendChoice) {
    let world = World::new(backend);
    let job = ProgramCommand {
        argv: ["sh", "-c", "cat; echo err >&2; echo x > \"$OUT/new\"; exit 4"].map(OsString::from).to_vec(),
        cwd: world.path("project"),
        environment: vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("OUT".into(), world.path("outside").into()),
        ],
        input: ProgramInput::Pipe,
        sandbox: Some(world.sandbox()),
    };
    let bounds =
        ProgramBounds { time: std::time::Duration::from_secs(20), output_bytes: 100, error_bytes: 1000 };
    let finished = block_on(supervised().run(&job, b"input\n", bounds)).unwrap();
    assert_eq!(finished.exit.unwrap().status, CommandStatus::Code(4));
    assert_eq!(finished.output.bytes, b"input\n");
    assert!(finished.errors.bytes.starts_with(b"err\n"), "{:?}", finished.errors);
    assert!(!world.path("outside/new").exists());
    let missing = ProgramCommand { argv: vec!["no-such-program".into()], ..job };
    let finished = block_on(supervised().run(&missing, b"", bounds)).unwrap();
    assert_eq!(finished.exit.unwrap().status, CommandStatus::NotStarted(libc::ENOENT));
}

fn own_temp(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.policy.temp = None;
    let sandbox = world.sandbox();
    let temp = sandbox.temp().to_owned();
    assert_eq!(fs::metadata(&temp).unwrap().permissions().mode() & 0o777, 0o700);
    let job =
        windlass_sandbox::ShellCommand { sandbox: Some(sandbox), ..world.job("echo kept > $TMPDIR/file") };
    assert_eq!(run(&job).1.status, CommandStatus::Code(0));
    let again = windlass_sandbox::ShellCommand { script: "cat $TMPDIR/file".to_owned(), ..job.clone() };
    assert_eq!(run(&again).0, "kept\n");
    drop((job, again));
    assert!(!temp.exists());
}

/// Becomes a command at a terminal.
pub(crate) fn terminal(project: &str, script: &str) {
    let mut policy = SandboxPolicy::new(vec![project.into()], "/nonexistent".as_ref());
    if let Some(bwrap) = std::env::var_os("TEST_BWRAP") {
        policy.bwrap = Some(bwrap.into());
        policy.backend = BackendChoice::Bubblewrap;
    }
    let argv = ["sh", "-c", script].map(OsString::from).to_vec();
    std::process::exit(run_command(&policy, argv, std::env::vars_os().collect()));
}

fn at_a_terminal(backend: BackendChoice) {
    let world = World::new(backend);
    let check = |script: &str, code: i32, output: &str, errors: &str| {
        let mut command = Command::new("/proc/self/exe");
        command
            .args(["terminal", world.path("project").to_str().unwrap(), script])
            .current_dir(world.path("project"));
        if script == "never" {
            command.env("TEST_BWRAP", "/nowhere");
        }
        let found = command.output().unwrap();
        assert_eq!(found.status.code(), Some(code), "{found:?}");
        assert_eq!(String::from_utf8_lossy(&found.stdout), output, "{script}");
        assert!(String::from_utf8_lossy(&found.stderr).contains(errors), "{found:?}");
    };
    check("echo in; echo new > new; exit 3", 3, "in\n", "sandbox: ");
    check("echo x > ../outside/new", 2, "", "cannot create");
    check("kill -9 $$", 137, "", "sandbox: ");
    check("never", 126, "", "no sandbox: bubblewrap is missing (sandbox.bwrapPath is /nowhere: ");
    assert!(world.path("project/new").exists() && !world.path("outside/new").exists());
}

fn limits(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.policy.limits.open_files = 64;
    world.policy.limits.file_bytes = Some(8192);
    world.check(
        "exec 2>/dev/null; ulimit -n; ulimit -c; (dd if=/dev/zero of=src/big bs=1024 count=64); stat -c %s src/big",
        "64\n0\n8192\n",
    );
}

fn without_supervisor(backend: BackendChoice) {
    let job = World::new(backend).job("echo ran");
    match block_on(async { Launcher::direct().start(&job).map(drop) }) {
        Err(LaunchError::NeedsSupervisor) => {}
        other => panic!("{other:?}"),
    }
}
