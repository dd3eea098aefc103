//! Other processes, privileges, and what is left of a command.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use windlass_sandbox::{BackendChoice, CommandStatus, ShellProcess};

use crate::world::{World, block_on, supervised};
use crate::{BOTH, Case, NAMESPACES, case, word};

pub(crate) const CASES: &[Case] = &[
    case("there_are_no_privileges", BOTH, no_privileges),
    case("no_descriptor_is_inherited", BOTH, no_descriptor),
    case("system_calls_are_refused", BOTH, system_calls),
    case("other_processes_cannot_be_touched", BOTH, other_processes),
    case("siblings_cannot_be_traced", BOTH, siblings),
    case("daemons_do_not_survive", BOTH, daemons),
    case("a_deaf_command_is_killed_and_a_polite_one_has_time", BOTH, deaf_and_polite),
    case("nothing_survives_the_kill_of_the_engine", BOTH, engine_is_killed),
    case("a_flood_of_processes_is_held", BOTH, flood),
    case("other_processes_cannot_be_seen", NAMESPACES, not_seen),
];

fn no_privileges(backend: BackendChoice) {
    let world = World::new(backend);
    world.check(
        "grep -E '^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'; ulimit -c",
        "CapInh:0000000000000000\nCapPrm:0000000000000000\nCapEff:0000000000000000\nCapAmb:0000000000000000\n\
         NoNewPrivs:1\nSeccomp:2\n0\n",
    );
    world.check_refused(&[
        "su -c true nobody",
        "sudo -n true",
        "setpriv --reuid 1 true",
        "mount -t tmpfs none src",
        "mount --bind $OUT src",
        "umount -l ~/.ssh",
        "unshare -Ur true",
        "unshare -Urm true",
        "unshare -Urn true",
        "unshare -p true",
        "nsenter -t 1 -m true",
        "chroot / true",
        "bwrap --ro-bind / / true",
        "hostname $(hostname)",
        "date -s @$(date +%s)",
        "dmesg",
    ]);
}

fn no_descriptor(backend: BackendChoice) {
    let leak = fs::File::open("/").unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    let world = World::new(backend);
    world.check("for i in {0..300}; do [ ! -e /proc/$$/fd/$i ] || echo -n \"$i \"; done", "0 1 2 ");
    world.check("cat; read x; echo $?", "1\n");
    world.check("(: </dev/tty) 2>/dev/null || echo none", "none\n");
}

/// A system call by its number. The refusal is what counts, so the arguments are nothing.
fn call(number: libc::c_long, arguments: &str) -> String {
    format!("perl -e 'my $r = syscall({number}, {arguments}); print $r, \" \", $!+0, \"\\n\"'")
}

const REFUSED: [libc::c_long; 16] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_fsopen,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_pivot_root,
    libc::SYS_kexec_load,
    libc::SYS_setns,
    libc::SYS_pidfd_getfd,
];

fn system_calls(backend: BackendChoice) {
    let world = World::new(backend);
    let refused = format!("-1 {}\n", libc::EPERM);
    let missing = format!("-1 {}\n", libc::ENOSYS);
    let check = |calls: &[String], expected: &str| {
        world.check(&calls.join("; "), &expected.repeat(calls.len()));
    };
    check(&REFUSED.map(|number| call(number, "0, 0, 0, 0, 0")), &refused);
    check(&[libc::SYS_io_uring_setup, libc::SYS_clone3].map(|number| call(number, "0, 0, 0")), &missing);
    // Typing into a terminal, also with bits that the kernel does not look at.
    let typing = ["0x5412", "0x541c", "0x100005412"];
    check(&typing.map(|code| call(libc::SYS_ioctl, &format!("0, {code}, 0"))), &refused);
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    check(
        &[
            call(libc::SYS_unshare, &libc::CLONE_NEWUSER.to_string()),
            call(libc::SYS_clone, &format!("{flags}, 0, 0, 0, 0")),
        ],
        &refused,
    );
    if cfg!(target_arch = "x86_64") {
        let (_, exit) = world.run(&format!("exec {}", call(0x4000_0000 + libc::SYS_getpid, "0")));
        assert_eq!(exit.status, CommandStatus::Signal(libc::SIGSYS), "the second set of numbers");
        let (_, exit) = world.run(&format!("exec {}", call(0x4000_0000 + libc::SYS_ptrace, "0")));
        assert_eq!(exit.status, CommandStatus::Signal(libc::SIGSYS));
    }
}

fn other_processes(backend: BackendChoice) {
    let world = World::new(backend);
    let mut victim = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = victim.id();
    let engine = std::process::id();
    let mut lines = vec![
        format!("head -c 1 /proc/{pid}/mem"),
        format!("[ -s /proc/{pid}/environ ] && cat /proc/{pid}/environ"),
        format!("ls -l /proc/{pid}/cwd/"),
        format!("cat /proc/{engine}/environ"),
        call(libc::SYS_ptrace, &format!("16, {pid}, 0, 0")) + " | grep -v '^-1'",
    ];
    let reaches_signals = !world.sandbox().report().contains("signalled");
    if reaches_signals {
        lines.push(format!("kill -TERM {pid}"));
        lines.push(format!("kill -0 {engine}"));
    }
    world.check_refused(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(victim.try_wait().unwrap().is_none());
    victim.kill().unwrap();
    victim.wait().unwrap();
}

fn siblings(backend: BackendChoice) {
    let world = World::new(backend);
    let trace = call(libc::SYS_ptrace, "16, $ENV{P}, 0, 0");
    world.check(&format!("sleep 30 & export P=$!; {trace}; kill $P"), &format!("-1 {}\n", libc::EPERM));
}

/// Living processes that were started with this argument.
fn with_argument(argument: &str) -> Vec<i32> {
    let is_meant = |pid: &i32| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|&byte| byte == 0).any(|part| part == argument.as_bytes())
    };
    let names =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    names.filter(is_meant).collect()
}

/// Waits until there are so many of them.
#[track_caller]
fn wait_for(argument: &str, count: usize) {
    let start = Instant::now();
    while with_argument(argument).len() != count {
        assert!(start.elapsed() < Duration::from_secs(5), "{count} expected: {:?}", with_argument(argument));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A time to sleep that nobody else sleeps.
fn own_time() -> String {
    format!("8{}", std::process::id())
}

fn daemons_script(time: &str) -> String {
    format!(
        "sleep {time} >/dev/null 2>&1 &
         setsid sleep {time} >/dev/null 2>&1 &
         (setsid bash -c 'sleep {time} & disown' >/dev/null 2>&1 &)
         nohup sleep {time} >/dev/null 2>&1 & sleep 0.3; echo up; "
    )
}

fn daemons(backend: BackendChoice) {
    let world = World::new(backend);
    let time = own_time();
    block_on(async {
        let process = supervised().start(&world.job(&daemons_script(&time))).unwrap();
        let ShellProcess { mut output, mut exit, tree } = process;
        assert_eq!(exit.recv().await.status, CommandStatus::Code(0));
        assert_eq!(output.read_u8().await.unwrap(), b'u');
        if backend == BackendChoice::Landlock {
            wait_for(&time, 4);
        }
        tree.stop().await;
        assert_eq!(with_argument(&time), [0; 0]);
    });
    block_on(async {
        let process =
            supervised().start(&world.job(&format!("{}sleep {time}", daemons_script(&time)))).unwrap();
        let ShellProcess { mut output, tree, .. } = process;
        output.read_u8().await.unwrap();
        wait_for(&time, 5);
        tree.stop().await;
        assert_eq!(with_argument(&time), [0; 0]);
    });
}

fn deaf_and_polite(backend: BackendChoice) {
    let world = World::new(backend);
    let end = |script: &str| {
        block_on(async {
            let ShellProcess { mut output, mut exit, tree } = supervised().start(&world.job(script)).unwrap();
            output.read_u8().await.unwrap();
            let start = Instant::now();
            tree.stop().await;
            let mut rest = String::new();
            output.read_to_string(&mut rest).await.unwrap();
            (rest, exit.recv().await.status, start.elapsed())
        })
    };
    let (_, status, took) = end("trap '' TERM; echo u; while :; do sleep 1; done");
    assert_eq!(status, CommandStatus::Signal(9));
    assert!((1900..6000).contains(&took.as_millis()), "{took:?}");
    let (rest, status, took) = end(
        "exec 2>/dev/null; trap 'sleep 0.2; echo bye; exit 5' TERM; echo -n u; while :; do sleep 0.05; done",
    );
    assert_eq!((rest.as_str(), status), ("bye\n", CommandStatus::Code(5)));
    assert!(took < Duration::from_millis(1900), "{took:?}");
}

/// Starts a command in a sandbox, says that it runs, and waits to be killed.
pub(crate) fn engine(backend: BackendChoice, time: &str) {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).unwrap();
    let world = World::new(backend);
    block_on(async {
        let script = format!("{}sleep {time}", daemons_script(time));
        let mut process = supervised().start(&world.job(&script)).unwrap();
        process.output.read_u8().await.unwrap();
        println!("{}", world.root.display());
        std::future::pending::<()>().await;
    });
}

fn engine_is_killed(backend: BackendChoice) {
    let time = own_time();
    let mut command = Command::new("/proc/self/exe");
    let mut engine = command.args(["engine", word(backend), &time]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(engine.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // The engine itself is one of them.
    wait_for(&time, 6);
    engine.kill().unwrap();
    engine.wait().unwrap();
    wait_for(&time, 0);
    fs::remove_dir_all(Path::new(line.trim())).unwrap();
}

fn flood(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.policy.limits.processes = 40;
    if world.sandbox().report().contains("process limit: none") {
        println!("SKIPPED: nothing limits the processes of root here");
        return;
    }
    let time = own_time();
    let script =
        format!("exec 2>/dev/null; for i in $(seq 200); do sleep {time} & done; echo up; exec sleep {time}");
    block_on(async {
        let process = supervised().start(&world.job(&script)).unwrap();
        let start = Instant::now();
        while with_argument(&time).len() < 20 {
            assert!(start.elapsed() < Duration::from_secs(10), "{:?}", with_argument(&time));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Bash goes on trying for a while; what matters is how many there are.
        tokio::time::sleep(Duration::from_millis(700)).await;
        let count = with_argument(&time).len();
        assert!((20..=40).contains(&count), "{count}");
        let tree = process.tree;
        tree.stop().await;
        assert_eq!(with_argument(&time), [0; 0]);
    });
    world.check("echo still works", "still works\n");
}

fn not_seen(backend: BackendChoice) {
    let world = World::new(backend);
    let (output, _) = world.run("ls -d /proc/[0-9]* | wc -l; cat /proc/1/comm; echo $$");
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines[0].parse::<usize>().unwrap() <= 5, "{output}");
    assert_eq!(lines[2], "2");
    world.check_refused(&[
        "kill -9 1; sleep 0.1; [ ! -e /proc/1 ]",
        "kill -STOP 1; grep -q 'State:.T' /proc/1/status",
    ]);
}
