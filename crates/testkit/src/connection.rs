//! One connection: reads requests and plays their responses, one after the other.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use windlass_models::{StatusError, newest_user_text};

use crate::check::check_request;
use crate::exchange::{Exchange, Reply, ReplyEnd};
use crate::http::{Request, read_request};
use crate::render::{After, Rendered, chunk};
use crate::server::Shared;

/// Serves one connection until one side closes it. An error of the connection is the client's leaving.
pub(crate) async fn serve(shared: Arc<Shared>, mut stream: TcpStream, connection: usize) -> io::Result<()> {
    stream.set_nodelay(true)?;
    while let Some(request) = read_request(&mut stream).await? {
        let rendered = choose(&shared, &request);
        let number = shared.record(exchange(&shared, request, connection));
        let mut writer =
            Writer { stream: &mut stream, events: Vec::with_capacity(rendered.events.len()), ended: None };
        let end = writer.play(&rendered).await;
        let Writer { events, ended, .. } = writer;
        let (end, keep) = match end {
            Ok(After::Keep) => (ReplyEnd::Complete, true),
            Ok(After::Close | After::Stall(_)) => (ReplyEnd::Cut, false),
            Err(_) => (ReplyEnd::ClientLeft, false),
        };
        let status = rendered.head.as_ref().map(|head| head.status);
        shared.finish(number, Reply { status, events, ended: ended.unwrap_or_else(Instant::now), end });
        if !keep {
            return Ok(());
        }
    }
    Ok(())
}

fn exchange(shared: &Shared, request: Request, connection: usize) -> Exchange {
    let body_bytes = request.body.len();
    let body = if shared.options.keep_bodies { request.body } else { Vec::new() };
    Exchange {
        connection,
        method: request.method,
        target: request.target,
        headers: request.headers,
        body: body.into(),
        body_bytes,
        first_byte: request.first_byte,
        read: request.read,
        reply: None,
    }
}

/// The response to a request: the next of the script, or an error of the API if the request is not valid. An
/// invalid request does not take a turn.
fn choose(shared: &Shared, request: &Request) -> Arc<Rendered> {
    let refused = |error: &StatusError| Arc::new(Rendered::status(error));
    if shared.options.check_requests
        && let Err(error) = check_request(request)
    {
        return refused(&error);
    }
    let mismatch = |what: String| refused(&StatusError::new(400, "invalid_request_error", &what));
    let play = match shared.player.next() {
        Ok(play) => play,
        Err(error) => return mismatch(error.to_string()),
    };
    if let Err(error) = play.check(|| newest_text(&request.body)) {
        return mismatch(error.to_string());
    }
    match shared.prepared.get(play.number) {
        Some(prepared) => prepared.clone(),
        None => Arc::new(Rendered::new(&play.playback())),
    }
}

fn newest_text(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let newest: Vec<_> = messages.iter().rev().take_while(|message| message["role"] == "user").collect();
    newest_user_text(newest.into_iter().rev().map(|message| &message["content"]))
}

struct Writer<'a> {
    stream: &'a mut TcpStream,
    events: Vec<Instant>,
    ended: Option<Instant>,
}

impl Writer<'_> {
    async fn play(&mut self, rendered: &Rendered) -> io::Result<After> {
        // Waits are counted from one start, so that the lateness of timers does not add up.
        let mut due = tokio::time::Instant::now() + rendered.delay;
        self.wait_until(due, rendered.delay).await?;
        let Some(head) = &rendered.head else {
            return Ok(rendered.after);
        };
        self.write(&head.bytes).await?;
        for (delay, bytes) in &rendered.events {
            due += *delay;
            self.wait_until(due, *delay).await?;
            self.events.push(Instant::now());
            self.write(bytes).await?;
        }
        if !rendered.rest.is_empty() {
            self.write(&rendered.rest).await?;
        }
        if let After::Stall(ping) = rendered.after {
            self.stall(ping).await?;
        }
        Ok(rendered.after)
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.ended = Some(Instant::now());
        self.stream.write_all(bytes).await
    }

    async fn stall(&mut self, ping: Option<Duration>) -> io::Result<()> {
        loop {
            let interval = ping.unwrap_or(Duration::from_hours(1));
            self.wait_until(tokio::time::Instant::now() + interval, interval).await?;
            if ping.is_some() {
                self.write(&chunk("event: ping\ndata: {\"type\":\"ping\"}\n\n")).await?;
            }
        }
    }

    /// Waits, and notices if the client leaves meanwhile.
    async fn wait_until(&mut self, due: tokio::time::Instant, delay: Duration) -> io::Result<()> {
        if delay.is_zero() {
            return Ok(());
        }
        let mut byte = [0];
        tokio::select! {
            () = tokio::time::sleep_until(due) => return Ok(()),
            peeked = self.stream.peek(&mut byte) => {
                if peeked? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        tokio::time::sleep_until(due).await;
        Ok(())
    }
}
