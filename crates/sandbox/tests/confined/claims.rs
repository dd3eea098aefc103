//! What a sandbox says of itself is compared with what commands in it can do.

use std::fs;
use std::net::TcpListener;

use windlass_sandbox::{Arbiter, BackendChoice, CommandStatus, Network, NetworkVerdict, ProtectedPath};

use crate::world::World;
use crate::{BOTH, Case, case};

pub(crate) const CASES: &[Case] = &[
    case("what_is_said_about_writing_holds", BOTH, writing),
    case("what_is_said_about_protected_files_holds", BOTH, protected),
    case("what_is_said_about_hidden_files_holds", BOTH, hidden),
    case("what_is_said_about_the_network_holds", BOTH, network),
    case("what_is_said_about_a_failure_is_what_is_said_before", BOTH, failure),
];

/// A sentence is said if and only if the script fails.
#[track_caller]
fn check(world: &World, script: &str, sentence: &str) {
    let limits = world.sandbox().limits();
    let (output, exit) = world.run(script);
    let is_refused = exit.status != CommandStatus::Code(0);
    assert_eq!(limits.contains(sentence), is_refused, "{script}: {output}\n{limits}");
}

fn writing(backend: BackendChoice) {
    let world = World::new(backend);
    let limits = world.sandbox().limits();
    let project = world.path("project");
    let only = format!("Commands can write only in {} and $TMPDIR.", project.display());
    assert!(limits.contains(&only), "{limits}");
    world.check_refused(&["echo x > $OUT/new", "echo x >> $OUT/file", "echo x > $HOME/new"]);
    world.check("echo a > new && echo b > \"$TMPDIR/new\" && cat new \"$TMPDIR/new\"", "a\nb\n");
}

fn protected(backend: BackendChoice) {
    let mut world = World::new(backend);
    let project = world.path("project");
    fs::create_dir_all(project.join(".git/refs")).unwrap();
    for name in ["Makefile", "README", ".envrc", ".git/config"] {
        fs::write(project.join(name), "before\n").unwrap();
    }
    let closed = format!("created, deleted or renamed directly in {}", project.display());
    check(&world, "echo x > .envrc", "Protected files in there cannot be changed");
    check(&world, "touch new1", &closed);
    check(&world, "touch .git/index.lock", "Git can read and not commit.");
    world.protect(&[".envrc", ".git/config", ".npmrc"].map(ProtectedPath::new));
    check(&world, "echo x > .envrc", "Protected files in there cannot be changed");
    check(&world, "echo x > .npmrc", "Protected files in there cannot be changed");
    check(&world, "touch new2", &closed);
    check(&world, "mv Makefile other", &closed);
    check(&world, "touch .git/index.lock2", "Git can read and not commit.");
    world.check("echo x >> README && echo y > src/new && mv src/new src/newer && cat src/newer", "y\n");
}

fn hidden(backend: BackendChoice) {
    let mut world = World::new(backend);
    check(&world, "cat $HOME/.ssh/key", "Credentials and other hidden files cannot be read.");
    // A secret inside a writable directory closes that directory where only grants can be given.
    let project = world.path("project");
    fs::write(project.join("secret"), "x").unwrap();
    world.policy.hidden.push(project.join("secret"));
    let closed = format!("created, deleted or renamed directly in {}", project.display());
    check(&world, "touch new", &closed);
    world.check_refused(&["cat secret"]);
}

fn network(backend: BackendChoice) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let proxied = || Network::Proxied(Arbiter::new(|_| async { NetworkVerdict::AllowLiterally }));
    for network in [Network::Off, Network::Open, proxied()] {
        let mut world = World::new(backend);
        world.policy.network = network;
        let limits = world.sandbox().limits();
        let says_proxied = limits.contains("Only allowed hosts can be reached, through the proxy");
        let (seen, _) = world.run("echo ${HTTP_PROXY:-none}");
        assert_eq!(says_proxied, !seen.ends_with("none\n"), "{seen}\n{limits}");
        if !says_proxied {
            check(&world, &connect, "There is no network, not even on this machine.");
        }
    }
}

fn failure(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.protect(&[ProtectedPath::new(".envrc")]);
    world.policy.network = Network::Proxied(Arbiter::new(|_| async { NetworkVerdict::Allow }));
    let sandbox = world.sandbox();
    let limits = sandbox.limits();
    for script in ["touch $OUT/new", "cat $HOME/.ssh/key", "touch .envrc"] {
        let (output, exit) = world.run(&format!("{script} 2>&1"));
        assert_ne!(exit.status, CommandStatus::Code(0), "{script}");
        // What cannot be seen at all is no sign of a sandbox.
        let Some(said) = sandbox.explain(&output) else { continue };
        let said = said.strip_prefix("The command runs in a sandbox. ").unwrap();
        assert!(limits.contains(said), "{script}: {said}\n{limits}");
    }
    let (output, _) = world.run("curl -sS --max-time 3 --noproxy '*' http://www.example.com/ 2>&1");
    if let Some(said) = sandbox.explain(&output) {
        let said = said.strip_prefix("The command runs in a sandbox. ").unwrap();
        assert!(limits.ends_with(said), "{said}\n{limits}");
    }
}
