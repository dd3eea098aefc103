//! One connection: reads requests and plays their responses, one after the other.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::answer::{ApiAnswer, choose};
use crate::exchange::{Exchange, Reply, ReplyEnd};
use crate::http::{HttpRequest, read_request};
use crate::render::{ConnectionEnd, RenderedResponse, chunk};
use crate::server::ServerState;

/// Serves one connection until one side closes it. An error of the connection is the client's leaving.
pub(crate) async fn serve(
    shared: Arc<ServerState>,
    mut stream: TcpStream,
    connection: usize,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    while let Some(request) = read_request(&mut stream).await? {
        let answer = choose(&shared, &request);
        let rendered = Arc::clone(&answer.rendered);
        let number = shared.record(exchange(&shared, request, connection, answer));
        let mut writer =
            Writer { stream: &mut stream, events: Vec::with_capacity(rendered.events.len()), ended: None };
        let end = writer.play(&rendered).await;
        let Writer { events, ended, .. } = writer;
        let (end, keep) = match end {
            Ok(ConnectionEnd::Keep) => (ReplyEnd::Complete, true),
            Ok(ConnectionEnd::Close | ConnectionEnd::Stall(_)) => (ReplyEnd::Cut, false),
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

fn exchange(shared: &ServerState, request: HttpRequest, connection: usize, answer: ApiAnswer) -> Exchange {
    let body_bytes = request.body.len();
    let body = if shared.options.should_keep_bodies { request.body } else { Vec::new() };
    Exchange {
        connection,
        method: request.method,
        target: request.target,
        headers: request.headers,
        body: body.into(),
        body_bytes,
        is_streamed: answer.is_streamed,
        refusal: answer.refusal,
        first_byte: request.first_byte,
        read: request.read,
        reply: None,
    }
}

struct Writer<'a> {
    stream: &'a mut TcpStream,
    events: Vec<Instant>,
    ended: Option<Instant>,
}

impl Writer<'_> {
    async fn play(&mut self, rendered: &RenderedResponse) -> io::Result<ConnectionEnd> {
        // Waits are counted from one start, so that the lateness of timers does not add up.
        let mut due = tokio::time::Instant::now() + rendered.delay;
        self.wait_until(due, rendered.delay).await?;
        if let Some(head) = &rendered.head {
            self.write(&head.bytes).await?;
        }
        for (delay, bytes) in &rendered.events {
            due += *delay;
            self.wait_until(due, *delay).await?;
            self.events.push(Instant::now());
            self.write(bytes).await?;
        }
        if !rendered.rest.is_empty() {
            self.write(&rendered.rest).await?;
        }
        if let ConnectionEnd::Stall(ping) = rendered.after {
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
