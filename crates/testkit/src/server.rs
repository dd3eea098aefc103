//! The server: a thread of its own with its own runtime, so that tests of any kind can use it and its timing does
//! not depend on theirs.

use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use windlass_models::{Script, ScriptPlayer, ScriptResponse, UsageSpec};

use crate::builder::{ServerBehaviour, ServerBuilder};
use crate::connection::serve;
use crate::counting::{Cache, RequestSize};
use crate::exchange::{Exchange, Reply};
use crate::render::RenderedResponse;

/// What a server does beside playing its script.
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions {
    /// Keeps the body of each request.
    pub should_keep_bodies: bool,
    /// Refuses requests that the real API would refuse. Costs time before the answer that grows with the request.
    pub should_check_requests: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { should_keep_bodies: true, should_check_requests: true }
    }
}

/// A scripted Messages API on a loopback port. It stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<ServerState>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the connections of a server share.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) player: ScriptPlayer,
    pub(crate) prepared: Vec<Arc<RenderedResponse>>,
    pub(crate) options: ServerOptions,
    pub(crate) behaviour: ServerBehaviour,
    /// The players of scripts for certain models, by a part of their names.
    players: Vec<(String, ScriptPlayer)>,
    memory: Mutex<Memory>,
    exchanges: Mutex<Vec<Exchange>>,
    news: Condvar,
}

/// What a server remembers from one request to the next.
#[derive(Debug, Default)]
struct Memory {
    /// The models whose last answer was paused.
    paused: HashSet<String>,
    cache: Cache,
}

impl Server {
    /// Sets up a server that does more than play its script.
    pub fn builder(script: Script) -> ServerBuilder {
        ServerBuilder::new(script)
    }

    /// Starts to play the script; requests are kept and checked.
    pub fn start(script: Script) -> io::Result<Self> {
        Self::start_with(script, ServerOptions::default())
    }

    /// Starts to play the script.
    pub fn start_with(script: Script, options: ServerOptions) -> io::Result<Self> {
        Self::builder(script).options(options).start()
    }

    pub(crate) fn launch(
        script: Script,
        players: Vec<(String, ScriptPlayer)>,
        options: ServerOptions,
        behaviour: ServerBehaviour,
    ) -> io::Result<Self> {
        let plays = 0..script.plays();
        let render = |playback| Arc::new(RenderedResponse::new(&playback, &behaviour.headers));
        let prepared = plays.filter_map(|play| script.playback(play)).map(render).collect();
        let shared = Arc::new(ServerState {
            player: ScriptPlayer::new(script),
            prepared,
            options,
            behaviour,
            players,
            memory: Mutex::default(),
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

    /// The error bodies with which the server itself, not its script, refused requests. A test of a client that does
    /// everything right finds none.
    #[must_use]
    pub fn refusals(&self) -> Vec<String> {
        self.shared.lock().iter().filter_map(|exchange| exchange.refusal.clone()).collect()
    }

    /// How many turns of the script have been taken; scripts for certain models do not count.
    #[must_use]
    pub fn turns_played(&self) -> usize {
        self.shared.player.played()
    }

    /// Whether every response that the script gives in order has been asked for.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.shared.player.is_used_up()
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

impl ServerState {
    /// The player for requests to this model.
    pub(crate) fn player_for(&self, model: &str) -> &ScriptPlayer {
        let own = self.players.iter().find(|(part, _)| model.contains(part));
        own.map_or(&self.player, |(_, player)| player)
    }

    /// Whether an answer depends on more than the number of its request.
    pub(crate) fn looks_at_requests(&self) -> bool {
        self.behaviour.looks_at_requests()
            || !self.players.is_empty()
            || self.player.script().looks_at_requests()
    }

    /// Whether the last answer of a model was paused.
    pub(crate) fn is_paused(&self, model: &str) -> bool {
        self.memory().paused.contains(model)
    }

    /// Remembers how the answer of a model ends.
    pub(crate) fn note_stop(&self, model: &str, response: &ScriptResponse) {
        let pauses = response.stop_reason.as_deref() == Some("pause_turn");
        let answered = response.fault.is_none();
        let paused = &mut self.memory().paused;
        if pauses && answered {
            paused.insert(model.to_owned());
        } else if answered {
            paused.remove(model);
        }
    }

    /// Fills what a response does not say about its input.
    pub(crate) fn report(&self, model: &str, counted: RequestSize, usage: &mut UsageSpec) {
        self.memory().cache.report(model, counted, usage);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

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

async fn accept(shared: Arc<ServerState>, listener: std::net::TcpListener) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    for number in 0.. {
        let (stream, _) = listener.accept().await?;
        connections.spawn(serve(shared.clone(), stream, number));
        while connections.try_join_next().is_some() {}
    }
    Ok(())
}
