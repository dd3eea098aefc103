//! A small HTTP server that does exactly what a test says, byte by byte.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// One thing to do on a connection after a request was read.
#[derive(Clone)]
pub(super) enum Step {
    Send(Vec<u8>),
    Pause(u64),
    /// Waits until the client goes away.
    AwaitClose,
    Close,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) connection: usize,
    pub(super) head: String,
    pub(super) body: String,
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    answers: Mutex<VecDeque<Vec<Step>>>,
    seen: Mutex<Vec<Seen>>,
    connections: Mutex<usize>,
    closed: Mutex<usize>,
}

impl Server {
    /// Serves one list of steps per request.
    pub(super) fn start(answers: Vec<Vec<Step>>) -> Self {
        Self::start_with(answers, None)
    }

    pub(super) fn start_tls(answers: Vec<Vec<Step>>, tls: Arc<ServerConfig>) -> Self {
        Self::start_with(answers, Some(tls))
    }

    fn start_with(answers: Vec<Vec<Step>>, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { answers: Mutex::new(answers.into()), ..Shared::default() });
        let server = Self { address, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                let (shared, tls) = (Arc::clone(&shared), tls.clone());
                thread::spawn(move || match tls {
                    None => shared.serve(stream),
                    Some(config) => {
                        shared.serve(StreamOwned::new(ServerConnection::new(config).unwrap(), stream));
                    }
                });
            }
        });
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        *self.shared.connections.lock().unwrap()
    }

    /// How often the client closed a connection that still had an answer on its way.
    pub(super) fn closed_by_client(&self) -> usize {
        *self.shared.closed.lock().unwrap()
    }
}

impl Shared {
    fn serve(&self, mut stream: impl Read + Write) {
        let connection = {
            let mut connections = self.connections.lock().unwrap();
            *connections += 1;
            *connections
        };
        while let Some((head, body)) = read_request(&mut stream) {
            self.seen.lock().unwrap().push(Seen { connection, head, body });
            let steps = self.answers.lock().unwrap().pop_front();
            let Some(steps) = steps else { return };
            if !steps.into_iter().all(|step| self.perform(step, &mut stream)) {
                return;
            }
        }
    }

    /// Whether the connection goes on.
    fn perform(&self, step: Step, stream: &mut (impl Read + Write)) -> bool {
        match step {
            Step::Send(bytes) => stream.write_all(&bytes).and_then(|()| stream.flush()).is_ok(),
            Step::Pause(ms) => {
                thread::sleep(Duration::from_millis(ms));
                true
            }
            Step::AwaitClose => {
                while stream.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
                *self.closed.lock().unwrap() += 1;
                false
            }
            Step::Close => false,
        }
    }
}

fn read_request(stream: &mut impl Read) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 65536];
    let head_len = loop {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8(bytes[..head_len].to_vec()).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok())
        .expect("every request says its length");
    while bytes.len() < head_len + length {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
    }
    Some((head, String::from_utf8(bytes[head_len..].to_vec()).unwrap()))
}

pub(super) fn send(text: impl Into<Vec<u8>>) -> Step {
    Step::Send(text.into())
}

/// The head of a streamed answer.
pub(super) fn stream_head() -> Step {
    send(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nrequest-id: req_7\r\n\
         transfer-encoding: chunked\r\n\r\n",
    )
}

pub(super) fn chunk(bytes: &[u8]) -> Step {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    Step::Send(framed)
}

pub(super) fn stream_end() -> Step {
    send("0\r\n\r\n")
}

/// An answer that is sent whole, with further header lines.
pub(super) fn whole(status: &str, header_lines: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    vec![send(format!("HTTP/1.1 {status}\r\n{header_lines}content-length: {length}\r\n\r\n{body}"))]
}

/// The events of a short response.
pub(super) fn events() -> String {
    let data = [
        r#"{"type":"message_start","message":{"id":"m1","model":"x","content":[],"usage":{"input_tokens":3}}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße 😀"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let lines = data.map(|data| format!("event: e\r\ndata: {data}\r\n\r\n"));
    lines.concat()
}

/// A whole, well-behaved streamed answer.
pub(super) fn good() -> Vec<Step> {
    vec![stream_head(), chunk(events().as_bytes()), stream_end()]
}
