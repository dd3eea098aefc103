//! What can be written and what can be read.

use std::fs;
use std::os::unix::fs::symlink;

use windlass_sandbox::{BackendChoice, CommandStatus, ProtectedPath, ShellCommand};

use crate::world::{World, run};
use crate::{BOTH, Case, NAMESPACES, case};

pub(crate) const CASES: &[Case] = &[
    case("only_the_project_and_temporary_files_can_be_written", BOTH, only_the_project),
    case("metadata_outside_stays", NAMESPACES, metadata_outside_stays),
    case("links_do_not_lead_out", BOTH, links_do_not_lead_out),
    case("a_writable_place_inside_another_is_not_swapped", BOTH, place_inside_another),
    case("the_process_file_system_does_not_lead_out", BOTH, process_file_system),
    case("credentials_cannot_be_read", BOTH, credentials),
    case("what_the_system_knows_of_passwords_cannot_be_read", BOTH, system_passwords),
    case("a_hidden_place_can_have_an_open_one_inside", NAMESPACES, open_inside_hidden),
    case("devices_are_few", BOTH, devices),
    case("directories_are_tracked_and_files_sourced", BOTH, tracked_and_sourced),
    case("the_environment_names_nothing_outside", BOTH, environment),
];

fn only_the_project(backend: BackendChoice) {
    let world = World::new(backend);
    world.check(
        "echo a > new && mkdir -p d/e && echo b >> src/file && mv src/file d/e/ && rm -r src && cat d/e/file new \
         && echo c > $TMPDIR/t && cat $TMPDIR/t && t=$(mktemp) && [ $(dirname $t) = $TMPDIR ] && rm $t && cat $OUT/file",
        "mine\nb\na\nc\ntheirs\n",
    );
    world.check_refused(&[
        "echo x > $OUT/new",
        "echo x > $OUT/file",
        "echo x >> $OUT/file",
        ": > $OUT/below/file",
        "truncate -s 0 $OUT/file",
        "rm $OUT/file",
        "rm -rf $OUT/below",
        "rmdir $OUT/below",
        "mkdir $OUT/d",
        "mkfifo $OUT/fifo",
        "mv $OUT/file $OUT/moved",
        "mv $OUT/file moved",
        "mv new $OUT/",
        "cp new $OUT/",
        "ln -s x $OUT/link",
        "ln new $OUT/hard",
        "echo x > /etc/windlass-was-here",
        "echo x > /tmp/windlass-was-here",
        "echo x > /var/tmp/windlass-was-here",
        "echo x > $ROOT/new",
        "mv $ROOT/project $ROOT/other",
        "mv $ROOT/outside $ROOT/other",
        "rmdir $ROOT/temp",
        "echo x > ../outside/../outside/new",
        "cd .. && echo x > outside/new",
    ]);
}

/// Landlock knows nothing of these.
fn metadata_outside_stays(backend: BackendChoice) {
    let world = World::new(backend);
    world.check_refused(&[
        "chmod 777 $OUT/file",
        "chown $(id -u) $OUT/file",
        "touch -d 2001-01-01 $OUT/file",
        "touch $OUT/file",
        "setfattr -n user.x -v y $OUT/file",
    ]);
}

fn links_do_not_lead_out(backend: BackendChoice) {
    let world = World::new(backend);
    symlink("../outside", world.path("project/out")).unwrap();
    symlink("../outside/file", world.path("project/file")).unwrap();
    world.check_refused(&[
        "echo x > file",
        "echo x > out/new",
        "echo x > out/file",
        "ln -s $OUT here && echo x > here/new",
        "ln $OUT/file hard && echo x > hard",
        "ln ~/.ssh/key hard-key",
        "ln -s ~/.ssh/key soft-key && cat soft-key",
        "rm -rf src && ln -s $OUT src && echo x > src/new",
        "mkdir swap && (while :; do mv -T swap away; ln -s $OUT swap; rm swap; mv -T away swap; done & \
         for i in $(seq 300); do echo x > swap/new; done; kill %1); [ -e $OUT/new ]",
    ]);
}

fn place_inside_another(backend: BackendChoice) {
    let mut world = World::new(backend);
    fs::create_dir_all(world.path("project/deep/cache")).unwrap();
    fs::create_dir_all(world.path("project/deeper")).unwrap();
    symlink("../../outside/below", world.path("project/deeper/cache")).unwrap();
    symlink("project", world.path("alias")).unwrap();
    for name in ["project/deep/cache", "project/deeper/cache", "alias/deeper/cache"] {
        world.policy.writable.push(world.path(name));
    }
    world.check("echo x > deep/cache/new; cat deep/cache/new", "x\n");
    world.check_refused(&["echo x > deeper/cache/new", "echo x > $OUT/below/file"]);
    if backend == BackendChoice::Bubblewrap {
        world.check_refused(&["mv deep away", "rm -r deep", "mv deep/cache away"]);
    }
}

/// Succeeds if one of the files that a command lists can be opened for writing.
fn any_opens(list: &str) -> String {
    format!("{list} | perl -ne 'chomp; open(F, \">>\", $_) and $found = 1; END {{ exit !$found }}'")
}

fn process_file_system(backend: BackendChoice) {
    let world = World::new(backend);
    world.check_refused(&[
        "echo x > /proc/self/root$OUT/new",
        "echo x > /proc/self/cwd/../outside/new",
        "echo x > /proc/1/root$OUT/new",
        "echo x > /proc/$PPID/root$OUT/new",
        "echo x > /proc/$PPID/cwd/../outside/new",
        "f=$(find /proc/*/fd -lname \"$OUT*\" | head -1); [ -n \"$f\" ] && echo x > $f",
        "for f in $(find /proc/*/fd -lname / -o -lname $ROOT); do echo x > $f$OUT/new && exit; done; false",
        "exec 5<$OUT/file && echo x > /proc/self/fd/5",
        "exec 5<$OUT && echo x > /proc/self/fd/5/new",
        "echo x > /dev/fd/../../..$OUT/new",
        "head -c 1 /proc/1/mem",
        "head -c 1 /proc/$PPID/mem",
        "echo x > /proc/$PPID/mem",
        "cat /proc/1/environ",
        "[ -s /proc/$PPID/environ ] && cat /proc/$PPID/environ",
        "readlink /proc/$PPID/fd/0",
        "cat /proc/$PPID/maps",
        "ls /proc/1/root/",
        // These are opened only: where a sandbox fails, the machine must not suffer.
        ": >> /proc/sys/kernel/core_pattern",
        ": >> /proc/sys/kernel/modprobe",
        ": >> /proc/sys/vm/drop_caches",
        ": >> /proc/sysrq-trigger",
        ": >> /proc/self/oom_score_adj",
        &any_opens("find /sys/fs/cgroup -name cgroup.procs -o -name release_agent"),
        &any_opens("find /proc/sys /proc/irq /proc/bus -type f"),
    ]);
}

/// Root owns these, and needs no capability to read what it owns.
fn system_passwords(backend: BackendChoice) {
    let world = World::new(backend);
    assert!(fs::metadata("/etc/shadow").is_ok(), "there is a file to be read");
    world.check("[ -n \"$(cat /etc/passwd)\" ] && echo read", "read\n");
    world.check_refused(&[
        "[ -n \"$(cat /etc/shadow)\" ]",
        "[ -n \"$(cat /etc/gshadow)\" ]",
        "[ -n \"$(cat /proc/self/root/etc/shadow)\" ]",
        "[ -n \"$(cd /etc && cat ./shadow)\" ]",
        "cp /etc/shadow copy && [ -s copy ]",
        "ln /etc/shadow link && [ -s link ]",
        "[ -n \"$(ls /etc/sudoers.d)\" ]",
    ]);
}

fn credentials(backend: BackendChoice) {
    let mut world = World::new(backend);
    symlink("home/.ssh", world.path("alias")).unwrap();
    fs::create_dir_all(world.path("vault/aws")).unwrap();
    fs::write(world.path("vault/aws/credentials"), "secret").unwrap();
    symlink("../vault/aws", world.path("home/.aws")).unwrap();
    fs::write(world.path("home/.netrc"), "secret").unwrap();
    world.policy.hidden.push(world.path("not-there"));
    world.check("cat ~/notes", "notes\n");
    world.check_refused(&[
        "cat ~/.ssh/key",
        "cat ~/.ssh//key",
        "cat ~/.ssh/./key",
        "cat ~/./.ssh/key",
        "cat ~/.ssh/../.ssh/key",
        "cat $ROOT/alias/key",
        "cp -r ~/.ssh copy; chmod -R u+rwx copy; [ -s copy/key ]",
        "tar c -C ~ .ssh | grep -a 'the key'",
        "grep -r 'the key' ~",
        "cd ~/.ssh && cat key",
        "cat /proc/self/root$HOME/.ssh/key",
        "cat ~/.aws/credentials",
        "cat $ROOT/vault/aws/credentials",
        "cat ~/.netrc",
        "cat ~/.netrc/",
        "echo x > ~/.ssh/authorized_keys",
        "echo x > ~/.ssh/key",
        "mv ~/.ssh ~/ssh",
        "echo x > ~/.netrc",
        "cp ~/.netrc here",
    ]);
}

fn open_inside_hidden(backend: BackendChoice) {
    let mut world = World::new(backend);
    for name in ["home/.ssh/public", "home/.ssh/work"] {
        fs::create_dir_all(world.path(name)).unwrap();
    }
    fs::write(world.path("home/.ssh/public/hosts"), "hosts\n").unwrap();
    world.policy.readable.push(world.path("home/.ssh/public"));
    world.policy.writable.push(world.path("home/.ssh/work"));
    world.check("cat ~/.ssh/public/hosts; echo x > ~/.ssh/work/new; cat ~/.ssh/work/new", "hosts\nx\n");
    fs::remove_file(world.path("home/.ssh/work/new")).unwrap();
    world.check_refused(&[
        "cat ~/.ssh/key",
        "ls ~/.ssh",
        "echo x > ~/.ssh/public/hosts",
        "echo x > ~/.ssh/new",
    ]);
}

fn devices(backend: BackendChoice) {
    let world = World::new(backend);
    world.check(
        "echo x > /dev/null && head -c 3 /dev/zero | wc -c && [ -n \"$(head -c 8 /dev/urandom | od)\" ]",
        "3\n",
    );
    world.check("cat <(echo a) <(echo b); echo c | tee /dev/stderr >/dev/null", "a\nb\nc\n");
    world.check_refused(&[
        "head -c 1 /dev/mem",
        "head -c 1 /dev/kmsg",
        "for d in /dev/sda /dev/vda /dev/nvme0n1; do head -c 1 $d && exit; done; false",
        "for t in /dev/pts/[0-9]*; do exec 5<>$t && exit; done; false",
        "mknod disk b 8 0",
        "mknod zero c 1 5",
    ]);
}

fn tracked_and_sourced(backend: BackendChoice) {
    let world = World::new(backend);
    fs::write(world.path("outside/env"), "export FROM_FILE=yes\n").unwrap();
    let job = ShellCommand {
        should_track_cwd: true,
        source: Some(world.path("outside/env")),
        ..world.job("echo $FROM_FILE $LINENO; cd src")
    };
    let (output, exit) = run(&job);
    assert_eq!((output.as_str(), exit.status), ("yes 1\n", CommandStatus::Code(0)), "{exit:?}");
    assert_eq!(exit.cwd, Some(world.path("project/src")));
    for (script, status) in [
        ("exit 7", CommandStatus::Code(7)),
        ("kill -KILL $$", CommandStatus::Signal(9)),
        ("kill -TERM $$", CommandStatus::Signal(15)),
    ] {
        assert_eq!(world.run(script).1.status, status, "{script}");
    }
}

fn environment(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.protect(&[ProtectedPath::new(".mcp.json")]);
    let mut job =
        world.job("echo ${SSH_AUTH_SOCK-none} ${DOCKER_HOST-none} ${HTTP_PROXY-none} $TMPDIR $LD_X");
    for (name, value) in [
        ("SSH_AUTH_SOCK", "/s"),
        ("DOCKER_HOST", "d"),
        ("HTTP_PROXY", "p"),
        ("TMPDIR", "/x"),
        ("LD_X", "kept"),
    ] {
        job.environment.push((name.into(), value.into()));
    }
    let (output, exit) = run(&job);
    assert_eq!(exit.status, CommandStatus::Code(0), "{exit:?}");
    assert_eq!(output, format!("none none none {} kept\n", world.path("temp").display()));
}
