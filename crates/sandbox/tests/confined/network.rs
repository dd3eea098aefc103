//! What of the network can be reached, and by whose decision.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use windlass_sandbox::{
    Arbiter, BackendChoice, CommandStatus, Host, Network, NetworkDestination, NetworkVerdict, Sandbox,
};

use crate::world::World;
use crate::{BOTH, Case, LANDLOCK, NAMESPACES, case};

pub(crate) const CASES: &[Case] = &[
    case("without_a_network_nobody_is_reached", BOTH, nobody_is_reached),
    case("sockets_of_other_programs_are_not_reached", BOTH, sockets_of_others),
    case("an_open_network_is_open", BOTH, open_network),
    case("unix_sockets_work_inside_where_they_are_allowed", NAMESPACES, unix_sockets_inside),
    case("unix_sockets_are_not_to_be_had_without_namespaces", LANDLOCK, no_unix_sockets),
    case("the_proxy_lets_through_what_is_allowed", NAMESPACES, proxy_lets_through),
    case("the_proxy_looks_at_addresses", NAMESPACES, proxy_looks_at_addresses),
    case("the_proxy_is_the_only_way", NAMESPACES, proxy_is_the_only_way),
    case("a_redirect_is_decided_again", NAMESPACES, redirect),
    case("without_namespaces_a_proxied_network_is_off", LANDLOCK, proxied_is_off),
];

/// Counts who connects.
fn listening() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for stream in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    (port, count)
}

fn nobody_is_reached(backend: BackendChoice) {
    let world = World::new(backend);
    let (port, count) = listening();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let udp_port = udp.local_addr().unwrap().port();
    let lines = [
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
        format!("exec 3<>/dev/tcp/localhost/{port}"),
        format!("echo x > /dev/udp/127.0.0.1/{udp_port}"),
        format!("curl -sS --max-time 3 http://127.0.0.1:{port}/"),
        format!("curl -sS --max-time 3 --noproxy '*' http://localhost:{port}/"),
        "ping -c 1 -W 1 127.0.0.1".to_owned(),
        "getent ahosts www.example.com".to_owned(),
        "exec 3<>/dev/udp/1.1.1.1/53".to_owned(),
        perl("socket(S, PF_INET, SOCK_RAW, 1)"),
        perl("socket(S, 17, SOCK_RAW, 768)"),
        perl("socket(S, 40, SOCK_STREAM, 0)"),
        perl("socket(S, PF_INET6, SOCK_STREAM, 0)"),
        perl("socketpair(A, B, PF_UNIX, SOCK_DGRAM, 0)"),
    ];
    world.check_refused(&lines.each_ref().map(String::as_str));
    assert_eq!(count.load(Ordering::SeqCst), 0);
    assert!(udp.recv(&mut [0; 10]).is_err(), "nothing arrived");
    world.check(&perl("socketpair(A, B, PF_UNIX, SOCK_STREAM, 0)"), "");
}

/// Succeeds if the expression is true.
fn perl(expression: &str) -> String {
    format!("perl -MSocket -e 'exit(({expression}) ? 0 : 1)'")
}

fn sockets_of_others(backend: BackendChoice) {
    let mut world = World::new(backend);
    let path = world.path("project/socket");
    let _by_path = UnixListener::bind(&path).unwrap();
    let name = format!("windlass-test-{}", std::process::id());
    let _by_name = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let connect = |address: &str| {
        let open = "socket(S, PF_UNIX, SOCK_STREAM, 0)";
        perl(&format!("{open} && connect(S, pack_sockaddr_un({address}))"))
    };
    let to_path = connect(&format!("\"{}\"", path.display()));
    let to_name = connect(&format!("\"\\0{name}\""));
    // Outside, both work.
    for line in [&to_path, &to_name] {
        let status = std::process::Command::new("sh").args(["-c", line]).status().unwrap();
        assert!(status.success(), "{line}");
    }
    let anyone = [
        to_path,
        to_name.clone(),
        perl("socket(S, PF_UNIX, SOCK_DGRAM, 0)"),
        "[ -n \"$(ls /run/user)\" ]".to_owned(),
        "cat /run/docker.sock".to_owned(),
    ];
    world.check_refused(&anyone.each_ref().map(String::as_str));
    // With an open network, names are shared unless something else closes them.
    world.policy.network = Network::Open;
    world.check_refused(&[&to_name]);
    if backend == BackendChoice::Bubblewrap {
        world.policy.can_make_unix_sockets = true;
        match Sandbox::prepare(&world.policy) {
            Ok(_) => world.check_refused(&[&to_name]),
            Err(unavailable) => println!("SKIPPED: {unavailable}"),
        }
    }
}

fn open_network(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.policy.network = Network::Open;
    let (port, count) = listening();
    world.check(&format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo in"), "in\n");
    assert_eq!(count.load(Ordering::SeqCst), 1);
    world.check_refused(&[&perl("socket(S, 40, SOCK_STREAM, 0)"), &perl("socket(S, 16, SOCK_RAW, 9)")]);
}

fn unix_sockets_inside(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.policy.can_make_unix_sockets = true;
    let script = perl(
        "socket(S, PF_UNIX, SOCK_STREAM, 0) && bind(S, pack_sockaddr_un(\"src/s\")) && listen(S, 1) \
         && socket(C, PF_UNIX, SOCK_STREAM, 0) && connect(C, pack_sockaddr_un(\"src/s\"))",
    );
    world.check(&script, "");
}

fn no_unix_sockets(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.policy.can_make_unix_sockets = true;
    let unavailable = Sandbox::prepare(&world.policy).unwrap_err();
    assert!(unavailable.to_string().contains("Unix sockets"), "{unavailable}");
}

fn proxied_is_off(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.proxied(Arbiter::new(|_| async { NetworkVerdict::AllowLiterally }));
    let (port, count) = listening();
    world.check_refused(&[&format!("exec 3<>/dev/tcp/127.0.0.1/{port}")]);
    assert_eq!(count.load(Ordering::SeqCst), 0);
    let report = world.sandbox().report();
    assert!(report.contains("hosts cannot be allowed by name, so the network is off"), "{report}");
}

/// A server that answers every request the same way, and keeps what it was asked.
fn web_server(answer: &'static str) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = vec![0; 4096];
            let count = stream.read(&mut bytes).unwrap();
            kept.lock().unwrap().push(String::from_utf8_lossy(&bytes[..count]).into_owned());
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (port, asked)
}

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n";

/// Allows one host by its name, and addresses as they are if they are in the wide world.
fn only(host: &'static str) -> Arbiter {
    Arbiter::new(move |NetworkDestination { host: wanted, .. }| async move {
        match wanted {
            Host::Name(name) if name == host => NetworkVerdict::AllowLiterally,
            Host::Address(_) => NetworkVerdict::Allow,
            Host::Name(_) => NetworkVerdict::Deny("no rule names it".to_owned()),
        }
    })
}

/// Whether there is a program to ask the proxy with.
fn has_curl() -> bool {
    let found = std::process::Command::new("curl").arg("--version").output().is_ok();
    if !found {
        println!("SKIPPED: there is no curl");
    }
    found
}

fn proxy_lets_through(backend: BackendChoice) {
    if !has_curl() {
        return;
    }
    let mut world = World::new(backend);
    let (port, asked) = web_server(HELLO);
    world.proxied(only("localhost"));
    // Plain HTTP, a tunnel, and SOCKS. `localhost` is not meant to go through a proxy, so it is told to.
    for options in ["", "-p", "--proxy socks5h://127.0.0.1:3128"] {
        let script = format!("curl -sS --noproxy '' --max-time 10 {options} http://localhost:{port}/x");
        world.check(&script, "hello\n");
    }
    {
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 3);
        assert!(asked[0].starts_with(&format!("GET /x HTTP/1.1\r\nHost: localhost:{port}\r\n")), "{asked:?}");
        assert!(!asked[0].to_lowercase().contains("proxy"), "{asked:?}");
    }
    let denied = "curl -sS --max-time 10 http://example.com/; curl -sS --max-time 10 https://example.org/ 2>/dev/null; \
                  curl -sS --max-time 10 --proxy socks5h://127.0.0.1:3128 http://example.net/ 2>/dev/null; \
                  curl -s http://example.com/ >/dev/null; true";
    let (output, exit) = world.run(denied);
    assert_eq!(output, "network: example.com:80 was refused: no rule names it\n");
    let refused: Vec<String> = exit.refused.iter().map(ToString::to_string).collect();
    let expected = ["example.com:80", "example.org:443", "example.net:80"]
        .map(|place| format!("network: {place} was refused: no rule names it"));
    assert_eq!(refused, expected);
}

fn proxy_looks_at_addresses(backend: BackendChoice) {
    if !has_curl() {
        return;
    }
    let mut world = World::new(backend);
    let (port, count) = listening();
    // Everything is allowed, and nothing by its very name.
    world.proxied(Arbiter::new(|_| async { NetworkVerdict::Allow }));
    for host in ["localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1"] {
        let script = format!(
            "curl -s --noproxy '' --max-time 10 -o /dev/null -w '%{{http_code}}\\n' http://{host}:{port}/"
        );
        let (output, exit) = world.run(&script);
        assert_eq!(output, "403\n", "{host}: {exit:?}");
        assert!(exit.refused[0].reason.contains("only a rule with this exact host"), "{exit:?}");
    }
    for host in ["127.1", "0x7f.1", "2130706433", "user@localhost"] {
        let request = format!("printf 'CONNECT {host}:{port} HTTP/1.1\\r\\n\\r\\n' >&3; head -1 <&3");
        world.check(&format!("exec 3<>/dev/tcp/127.0.0.1/3128; {request}"), "HTTP/1.1 400 Bad Request\r\n");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

fn proxy_is_the_only_way(backend: BackendChoice) {
    let mut world = World::new(backend);
    let (port, count) = listening();
    world.proxied(only("localhost"));
    world.check_refused(&[
        &format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
        &format!("curl -sS --max-time 3 --noproxy '*' http://localhost:{port}/"),
        "getent ahosts www.example.com",
        "exec 3<>/dev/udp/1.1.1.1/53 && echo x >&3",
        "ping -c 1 -W 1 1.1.1.1",
        &perl("socket(S, PF_UNIX, SOCK_STREAM, 0)"),
        &perl("socket(S, 40, SOCK_STREAM, 0)"),
    ]);
    assert_eq!(count.load(Ordering::SeqCst), 0);
    // Between its own processes a command has a network.
    let own = "perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1:7777\"); \
               if (!fork) { IO::Socket::INET->new(\"127.0.0.1:7777\")->print(\"own\\n\"); exit } print $s->accept->getline'";
    world.check(own, "own\n");
}

const ELSEWHERE: &str = "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/meta-data/\r\n\
                             Content-Length: 0\r\nConnection: close\r\n\r\n";

fn redirect(backend: BackendChoice) {
    if !has_curl() {
        return;
    }
    let mut world = World::new(backend);
    let (port, _) = web_server(ELSEWHERE);
    world.proxied(only("localhost"));
    let (output, exit) = world.run(&format!(
        "curl -sSL --noproxy '' --max-time 10 -o /dev/null -w '%{{http_code}}\\n' http://localhost:{port}/"
    ));
    assert_eq!((output.as_str(), exit.status), ("403\n", CommandStatus::Code(0)), "{exit:?}");
    let refused: Vec<String> = exit.refused.iter().map(ToString::to_string).collect();
    assert!(refused.len() == 1 && refused[0].contains("169.254.169.254:80 was refused"), "{refused:?}");
}
