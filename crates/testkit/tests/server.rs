//! The server as a client sees it, byte for byte.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use windlass_testkit::{Exchange, ReplyEnd, Script, Server, ServerOptions};

const BODY: &str =
    r#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"say hi"}]}"#;

fn server(responses: &str) -> Server {
    Server::start(Script::parse(&format!(r#"{{"responses":[{responses}]}}"#)).unwrap()).unwrap()
}

struct Client(TcpStream);

impl Client {
    fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        Self(stream)
    }

    fn send(&mut self, body: &str) {
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: k\r\nAnthropic-Version: 2023-06-01\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.0.write_all((head + body).as_bytes()).unwrap();
    }

    /// Reads up to the end of a text, or of the connection.
    fn read_to(&mut self, end: &str) -> String {
        let mut seen = Vec::new();
        let mut byte = [0];
        while !seen.ends_with(end.as_bytes()) {
            match self.0.read(&mut byte) {
                Ok(1) => seen.push(byte[0]),
                _ => break,
            }
        }
        String::from_utf8(seen).unwrap()
    }

    fn ask(&mut self) -> String {
        self.send(BODY);
        self.read_to("\r\n0\r\n\r\n")
    }

    fn is_closed(&mut self) -> bool {
        match self.0.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

/// Waits for the responses to be over and gives the last exchange.
fn last(server: &Server) -> Exchange {
    assert!(server.wait_until_quiet(Duration::from_secs(5)));
    server.exchanges().pop().unwrap()
}

#[test]
fn a_kept_connection_gets_one_response_after_the_other() {
    let server = server(r#"{"blocks":[{"text":"one"}]},{"blocks":[{"text":"two"}]}"#);
    let mut client = Client::connect(&server);
    let first = client.ask();
    assert!(first.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream"), "{first}");
    assert!(
        first.contains("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,")
    );
    assert!(first.contains(r#""text":"one""#) && first.contains("event: message_stop\n"), "{first}");
    assert!(!server.is_used_up());
    assert!(client.ask().contains(r#""text":"two""#));
    assert!(server.is_used_up());
    client.send(BODY);
    let third = client.read_to("\"req_script\"}");
    assert!(third.starts_with("HTTP/1.1 400 "), "{third}");
    let exchanges = server.exchanges();
    assert_eq!(exchanges.iter().map(|exchange| exchange.connection).collect::<Vec<_>>(), [0, 0, 0]);
    assert_eq!(exchanges[0].header("x-api-key"), Some("k"));
    assert_eq!(exchanges[0].json()["messages"][0]["content"], "say hi");
}

#[test]
fn times_are_in_order() {
    let server = server(r#"{"blocks":[{"text":"ab"}]}"#);
    let began = Instant::now();
    Client::connect(&server).ask();
    let exchange = last(&server);
    let reply = exchange.reply.as_ref().unwrap();
    let mut times = vec![began, exchange.first_byte, exchange.read];
    times.extend(&reply.events);
    times.push(reply.ended);
    times.push(Instant::now());
    assert!(times.is_sorted());
}

/// When the head and the two deltas came, in milliseconds after the request had been read.
fn delayed_reply() -> [u128; 3] {
    let server = server(r#"{"blocks":[{"text":"ab"}],"delta_chars":1,"delta_delay_ms":30,"delay_ms":20}"#);
    Client::connect(&server).ask();
    let exchange = last(&server);
    let reply = exchange.reply.as_ref().unwrap();
    assert_eq!((reply.status, reply.end, reply.events.len()), (Some(200), ReplyEnd::Complete, 7));
    [0, 2, 3].map(|place: usize| reply.events[place].duration_since(exchange.read).as_millis())
}

#[test]
fn nothing_comes_before_its_time_or_long_after() {
    const DUE: [u128; 3] = [20, 50, 80];
    // A busy machine may be late at any time, but not every time.
    let in_time = (0..10).any(|_| {
        let seen = delayed_reply();
        assert!(seen.iter().zip(DUE).all(|(at, due)| *at >= due), "{seen:?}");
        seen.iter().zip(DUE).all(|(at, due)| *at < due + 15)
    });
    assert!(in_time);
}

/// Plays one response with this fault and gives what the client saw and how the reply ended.
fn fault(fault: &str) -> (String, ReplyEnd) {
    let server = server(&format!(r#"{{"blocks":[{{"text":"abc"}}],"fault":{fault}}}"#));
    let mut client = Client::connect(&server);
    client.send(BODY);
    let seen = client.read_to("\r\n0\r\n\r\n");
    (seen, last(&server).reply.unwrap().end)
}

#[test]
fn faults_show_on_the_wire() {
    let (seen, end) = fault(r#"{"cut":{"after_events":2}}"#);
    assert!(seen.ends_with("\"text\":\"\"}}\n\n\r\n"), "{seen}");
    assert_eq!(end, ReplyEnd::Cut);

    let (seen, end) = fault(r#"{"cut":{"after_bytes":10}}"#);
    assert!(seen.ends_with("\r\n\r\na\r\nevent: mes\r\n"), "{seen}");
    assert_eq!(end, ReplyEnd::Cut);

    assert_eq!(fault(r#""refuse""#), (String::new(), ReplyEnd::Cut));

    let (seen, end) = fault(r#"{"error":{"type":"overloaded_error","message":"busy","after_events":1}}"#);
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    assert!(seen.contains(&format!("event: error\ndata: {error}\n\n")), "{seen}");
    assert_eq!(end, ReplyEnd::Complete);

    let (seen, _) = fault(r#"{"malformed":{"after_events":1,"data":"{oops"}}"#);
    assert!(seen.contains("data: {oops\n\n") && seen.ends_with("0\r\n\r\n"), "{seen}");
}

#[test]
fn an_error_status_has_its_headers_and_keeps_the_connection() {
    let server = server(
        r#"{"fault":{"status":{"code":529,"message":"busy","headers":{"retry-after":"3"}}}},{"blocks":[{"text":"ok"}]}"#,
    );
    let mut client = Client::connect(&server);
    client.send(BODY);
    let seen = client.read_to("\"req_script\"}");
    assert!(seen.starts_with("HTTP/1.1 529 ") && seen.contains("\r\nretry-after: 3\r\n"), "{seen}");
    assert!(seen.contains(r#"{"type":"overloaded_error","message":"busy"}"#), "{seen}");
    assert!(client.ask().contains(r#""text":"ok""#));
}

#[test]
fn a_stall_keeps_the_connection_and_notices_when_the_client_leaves() {
    for (ping, pings) in [("", 0), (r#","ping_ms":10"#, 3)] {
        let server = server(&format!(
            r#"{{"blocks":[{{"text":"abc"}}],"fault":{{"stall":{{"after_events":1{ping}}}}}}}"#
        ));
        let mut client = Client::connect(&server);
        client.send(BODY);
        client.read_to("event: message_start");
        for _ in 0..pings {
            assert!(client.read_to("event: ping\n").ends_with("event: ping\n"));
        }
        assert!(!server.wait_until_quiet(Duration::from_millis(50)), "the response must not be over");
        drop(client);
        assert_eq!(last(&server).reply.unwrap().end, ReplyEnd::ClientLeft);
    }
}

#[test]
fn an_invalid_request_is_refused_and_takes_no_turn() {
    let server = server(r#"{"blocks":[{"text":"ok"}]}"#);
    let mut client = Client::connect(&server);
    client.send(&BODY.replace("say hi", " "));
    let seen = client.read_to("\"req_script\"}");
    assert!(seen.starts_with("HTTP/1.1 400 ") && seen.contains("non-whitespace"), "{seen}");
    assert_eq!(server.turns_played(), 0);
    assert!(client.ask().contains(r#""text":"ok""#));
}

#[test]
fn expectations_are_checked() {
    let server = server(
        r#"{"blocks":[],"expect":{"contains":"say ho"}},{"blocks":[],"expect":{"contains":"say hi"}}"#,
    );
    let mut client = Client::connect(&server);
    client.send(BODY);
    let seen = client.read_to("\"req_script\"}");
    assert!(seen.contains(r#"to contain \"say ho\", but it is \"say hi\""#), "{seen}");
    assert!(client.ask().starts_with("HTTP/1.1 200 "));
}

#[test]
fn bodies_may_come_in_chunks() {
    let server = server(r#"{"blocks":[{"text":"ok"}]}"#);
    let mut client = Client::connect(&server);
    let head = "POST /v1/messages HTTP/1.1\r\nx-api-key: k\r\nanthropic-version: 1\r\n\
                content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    client.0.write_all(head.as_bytes()).unwrap();
    for piece in BODY.as_bytes().chunks(13) {
        client
            .0
            .write_all(format!("{:x}\r\n{}\r\n", piece.len(), str::from_utf8(piece).unwrap()).as_bytes())
            .unwrap();
    }
    client.0.write_all(b"0\r\n\r\n").unwrap();
    assert!(client.read_to("\r\n0\r\n\r\n").contains(r#""text":"ok""#));
    assert_eq!(&*last(&server).body, BODY.as_bytes());
}

#[test]
fn measurements_need_neither_bodies_nor_checks() {
    let script = r#"{"responses":[{"blocks":[{"text":"ok"}]}],"then":"repeat"}"#;
    let options = ServerOptions { should_keep_bodies: false, should_check_requests: false };
    let server = Server::start_with(Script::parse(script).unwrap(), options).unwrap();
    let mut client = Client::connect(&server);
    for _ in 0..3 {
        client.send("{}");
        assert!(client.read_to("\r\n0\r\n\r\n").contains(r#""text":"ok""#));
    }
    let exchange = last(&server);
    assert_eq!((exchange.body.len(), exchange.body_bytes), (0, 2));
}

#[test]
fn a_dropped_server_is_gone() {
    let server = server(r#"{"blocks":[{"text":"ok"}]}"#);
    let mut client = Client::connect(&server);
    let address = server.url();
    drop(server);
    assert!(client.is_closed());
    assert!(TcpStream::connect(address.trim_start_matches("http://")).is_err());
}
