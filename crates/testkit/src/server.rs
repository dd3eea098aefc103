//! The server: a thread of its own with its own runtime, so that tests of any kind can use it and its timing does
//! not depend on theirs.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use windlass_models::{Player, Script};

use crate::connection::serve;
use crate::exchange::{Exchange, Reply};
use crate::render::Rendered;

/// What a server does beside playing its script.
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions {
    /// Keeps the body of each request.
    pub keep_bodies: bool,
    /// Refuses requests that the real API would refuse. Costs time before the answer that grows with the request.
    pub check_requests: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { keep_bodies: true, check_requests: true }
    }
}

/// A scripted Messages API on a loopback port. It stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the connections of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) player: Player,
    pub(crate) prepared: Vec<Arc<Rendered>>,
    pub(crate) options: ServerOptions,
    exchanges: Mutex<Vec<Exchange>>,
    news: Condvar,
}

impl Server {
    /// Starts to play the script; requests are kept and checked.
    pub fn start(script: Script) -> io::Result<Self> {
        Self::start_with(script, ServerOptions::default())
    }

    /// Starts to play the script.
    pub fn start_with(script: Script, options: ServerOptions) -> io::Result<Self> {
        let plays = 0..script.plays();
        let prepared =
            plays.filter_map(|play| script.playback(play)).map(|p| Arc::new(Rendered::new(&p))).collect();
        let shared = Arc::new(Shared {
            player: Player::new(script),
            prepared,
            options,
            exchanges: Mutex::default(),
            news: Condvar::new(),
        });
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new().name("scripted-api".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    // Without a listener every connection is refused, which the test will see.
                    _ = accept(for_thread, listener) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The base URL, for `ANTHROPIC_BASE_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far and what came of them, in the order in which they were read.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.lock().clone()
    }

    /// How many turns of the script have been taken.
    #[must_use]
    pub fn played(&self) -> usize {
        self.shared.player.played()
    }

    /// Whether every response of the script has been asked for.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.played() >= self.shared.player.script().plays()
    }

    /// Waits until so many requests have been read; whether they came in time.
    #[must_use]
    pub fn wait_for_requests(&self, count: usize, timeout: Duration) -> bool {
        self.shared.wait(timeout, |exchanges| exchanges.len() >= count)
    }

    /// Waits until the responses to all requests so far are over; whether that came in time.
    #[must_use]
    pub fn wait_until_quiet(&self, timeout: Duration) -> bool {
        self.shared.wait(timeout, |exchanges| exchanges.iter().all(|exchange| exchange.reply.is_some()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed by then and shows as missing answers.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Adds an exchange and says at which place.
    pub(crate) fn record(&self, exchange: Exchange) -> usize {
        let mut exchanges = self.lock();
        exchanges.push(exchange);
        self.news.notify_all();
        exchanges.len() - 1
    }

    pub(crate) fn finish(&self, number: usize, reply: Reply) {
        if let Some(exchange) = self.lock().get_mut(number) {
            exchange.reply = Some(reply);
        }
        self.news.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Exchange>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, timeout: Duration, enough: impl Fn(&[Exchange]) -> bool) -> bool {
        let until = Instant::now() + timeout;
        let mut exchanges = self.lock();
        while !enough(&exchanges) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            exchanges = self.news.wait_timeout(exchanges, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

async fn accept(shared: Arc<Shared>, listener: std::net::TcpListener) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    for number in 0.. {
        let (stream, _) = listener.accept().await?;
        connections.spawn(serve(shared.clone(), stream, number));
        while connections.try_join_next().is_some() {}
    }
    Ok(())
}
