//! The bare client: sends given request bodies over one kept connection and reads the streams, without an agent.
//!
//! Purpose: what the benchmarks compare with. Invariant: it does what any client must do to get the same answers, as
//! directly as possible, and nothing else; it never ships.
//!
//! ```text
//! windlass-bare URL BODIES [--echo] [--tools]
//! ```
//!
//! `BODIES` is a file of request bodies: the length of each in decimal on a line, then its bytes. `--echo` prints
//! the data of each delta on a line as it comes. `--tools` runs the commands of Bash calls with `sh` as soon as
//! their block is complete, and waits for them before the next request.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use reqwest::Client;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "--version") {
        return print(env!("CARGO_PKG_VERSION"));
    }
    let [url, bodies, flags @ ..] = &args[..] else {
        bail!("usage: windlass-bare URL BODIES [--echo] [--tools]");
    };
    let flag = |name: &str| flags.iter().any(|flag| flag == name);
    let bodies = read_bodies(bodies)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = client()?;
        let mut reader =
            Reader { should_echo: flag("--echo"), has_tools: flag("--tools"), ..Reader::default() };
        for body in bodies {
            reader.exchange(&client, url, body).await?;
        }
        print(&reader.text)
    })
}

/// A client that could speak TLS, as any client of the API must, but trusts nobody: the server is on loopback.
fn client() -> Result<Client> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let tls = tls.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    Ok(Client::builder().tls_backend_preconfigured(tls).no_proxy().tcp_nodelay(true).build()?)
}

fn print(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

fn read_bodies(path: &str) -> Result<Vec<Bytes>> {
    let mut rest = Bytes::from(std::fs::read(path).with_context(|| format!("cannot read {path}"))?);
    let mut bodies = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n').context("a length has no end of line")?;
        let length: usize = std::str::from_utf8(&rest[..end])?.parse()?;
        let _ = rest.split_to(end + 1);
        bodies.push(rest.split_to(length));
    }
    Ok(bodies)
}

/// Any event of the stream: the fields this client reads.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    partial_json: Option<std::borrow::Cow<'a, str>>,
}

#[derive(Deserialize)]
struct BashInput {
    command: String,
}

/// Reads responses and does what they ask for.
#[derive(Default)]
struct Reader {
    should_echo: bool,
    has_tools: bool,
    buffer: Vec<u8>,
    text: String,
    input: Option<String>,
    running: Vec<Child>,
}

impl Reader {
    async fn exchange(&mut self, client: &Client, url: &str, body: Bytes) -> Result<()> {
        let request = client
            .post(format!("{url}/v1/messages"))
            .header("x-api-key", "test-key")
            .header("anthropic-version", "2023-06-01")
            .header("content-type", "application/json")
            .header("accept", "text/event-stream");
        let mut response = request.body(body).send().await?.error_for_status()?;
        self.text.clear();
        self.buffer.clear();
        while let Some(bytes) = response.chunk().await? {
            self.buffer.extend_from_slice(&bytes);
            self.take_lines()?;
        }
        for child in self.running.drain(..) {
            child.wait_with_output()?;
        }
        Ok(())
    }

    /// Handles the complete lines of the buffer and keeps the rest.
    fn take_lines(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let mut start = 0;
        while let Some(length) = buffer[start..].iter().position(|byte| *byte == b'\n') {
            if let Some(data) = buffer[start..start + length].strip_prefix(b"data: ") {
                self.on_event(std::str::from_utf8(data)?)?;
            }
            start += length + 1;
        }
        self.buffer = buffer;
        self.buffer.drain(..start);
        Ok(())
    }

    fn on_event(&mut self, data: &str) -> Result<()> {
        let event: Event<'_> = serde_json::from_str(data)?;
        match (event.kind, event.content_block, event.delta) {
            ("content_block_start", Some(block), _) if self.has_tools && block.kind == "tool_use" => {
                self.input = Some(String::new());
            }
            ("content_block_delta", _, Some(delta)) => {
                if self.should_echo {
                    print(data)?;
                }
                if let Some(text) = delta.text {
                    self.text.push_str(&text);
                }
                if let (Some(input), Some(json)) = (&mut self.input, delta.partial_json) {
                    input.push_str(&json);
                }
            }
            ("content_block_stop", ..) => {
                if let Some(input) = self.input.take() {
                    self.start_tool(&input)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn start_tool(&mut self, input: &str) -> Result<()> {
        let BashInput { command } = serde_json::from_str(input)?;
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).stdin(Stdio::null()).stdout(Stdio::piped());
        self.running.push(shell.spawn()?);
        Ok(())
    }
}
