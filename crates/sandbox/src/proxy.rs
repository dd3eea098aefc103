//! The proxy through which a confined command reaches what it is allowed to.
//!
//! The command has a network of its own with one listening socket, opened inside and handed to the engine, which
//! accepts connections on it and makes others outside: the proxy is the only way. It speaks HTTP (`CONNECT`, and whole
//! addresses) and SOCKS5 on the same port. Every connection is decided by the name it asks for and by the address that
//! name turns out to have, which is exactly the one connected to. What is encrypted is not looked into: an allowed
//! server can pass it on.

mod dial;
mod head;
mod socks;

use std::io;
use std::net::TcpListener as StdTcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::network::{Arbiter, RefusedConnections};
use dial::{DialError, Dialer};
use head::{ProxyAction, ProxyRequest};

/// Connections at a time; more of them wait.
const CONNECTIONS_MAX: usize = 256;
/// A client says within this time what it wants.
const HEAD_TIME: Duration = Duration::from_secs(30);
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(50);
/// What a SOCKS client says first.
const SOCKS: u8 = 5;

/// Serves a listening socket for one command. Dropping what is returned ends every connection.
pub(crate) fn open(
    socket: OwnedFd,
    arbiter: Arbiter,
    refusals: RefusedConnections,
) -> io::Result<AbortOnDropHandle<()>> {
    let listener = StdTcpListener::from(socket);
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let serving = tokio::spawn(serve(listener, Arc::new(Dialer { arbiter, refusals })));
    Ok(AbortOnDropHandle::new(serving))
}

async fn serve(listener: TcpListener, dialer: Arc<Dialer>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((client, _)) = accepted else {
            sleep(PAUSE_AFTER_ERROR).await;
            continue;
        };
        let dialer = Arc::clone(&dialer);
        connections.spawn(async move {
            // The client sees that its connection is closed, and there is nobody else to tell.
            let _ = attend(client, &dialer).await;
        });
    }
}

async fn attend(mut client: TcpStream, dialer: &Dialer) -> io::Result<()> {
    let mut first = [0];
    timeout(HEAD_TIME, client.peek(&mut first)).await??;
    if first == [SOCKS] {
        let Some(destination) = timeout(HEAD_TIME, socks::read_request(&mut client)).await?? else {
            return Ok(());
        };
        let connected = dialer.connect(destination).await;
        client.write_all(&socks::answer(&connected)).await?;
        if let Ok(mut server) = connected {
            copy_bidirectional(&mut client, &mut server).await?;
        }
        return Ok(());
    }
    let mut client = BufReader::new(client);
    let Some(head) = timeout(HEAD_TIME, read_head(&mut client)).await?? else { return Ok(()) };
    let head = match ProxyRequest::parse(&head) {
        Ok(head) => head,
        Err(problem) => return refuse(&mut client, "400 Bad Request", problem).await,
    };
    let mut server = match dialer.connect(head.destination.clone()).await {
        Ok(server) => server,
        Err(DialError::Refused(refused)) => {
            return refuse(&mut client, "403 Forbidden", &refused.to_string()).await;
        }
        Err(DialError::Unreachable(problem)) => {
            return refuse(&mut client, "502 Bad Gateway", &problem).await;
        }
    };
    match &head.action {
        ProxyAction::Tunnel => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
        ProxyAction::Forward(request) => server.write_all(request).await?,
    }
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// Reads up to the empty line; `None` if it does not come, or too late.
async fn read_head(client: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let mut client = client.take(head::BYTES_MAX);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if client.read_until(b'\n', &mut head).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(head))
}

async fn refuse(client: &mut BufReader<TcpStream>, status: &str, text: &str) -> io::Result<()> {
    let text = format!("{text}\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         X-Proxy-Error: windlass-sandbox\r\nConnection: close\r\n\r\n",
        text.len()
    );
    client.write_all(head.as_bytes()).await?;
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await
}
