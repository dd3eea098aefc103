//! A script as a model client.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::vec;

use futures_util::stream;
use serde_json::Value;
use windlass_ports::{BoxStream, ModelClient};
use windlass_protocol::{Failure, FailureClass, ModelEvent, ModelRequest, Role};

use super::expand::{Ending, Opening, Playback, StatusError, TimedEvent};
use super::format::Script;
use super::player::{Asked, Mismatch, Player, newest_user_text};
use crate::anthropic::unstreamed::{self, Unreadable};
use crate::anthropic::{AnthropicSettings, WatchdogLimits};
use crate::assemble::Assembler;
use crate::classify::{ErrorBody, answer_failure, read_headers};

/// A model client that plays a [`Script`], without a network. Clones share the place in the script.
///
/// Its responses go through the same assembler as those of a real model, so what a run sees differs only in
/// where the bytes came from.
#[derive(Clone, Debug)]
pub struct ScriptModel {
    player: Player,
}

impl ScriptModel {
    /// Plays the script from its beginning.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self { player: Player::new(script) }
    }

    /// How many requests have been answered.
    #[must_use]
    pub fn played(&self) -> usize {
        self.player.played()
    }
}

impl ModelClient for ScriptModel {
    fn stream(&self, request: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
        let answer = Answer { player: self.player.clone(), request, stage: Stage::Asked };
        Box::pin(stream::unfold(answer, |mut answer| async move {
            let event = answer.next().await?;
            Some((event, answer))
        }))
    }
}

/// The answer to one request, on its way.
struct Answer {
    player: Player,
    request: Arc<ModelRequest>,
    stage: Stage,
}

enum Stage {
    Asked,
    Whole(VecDeque<ModelEvent>),
    Playing { events: vec::IntoIter<TimedEvent>, ending: Ending, assembler: Box<Assembler> },
    Over,
}

impl Answer {
    /// The next event, or `None` after the last.
    async fn next(&mut self) -> Option<ModelEvent> {
        if let Stage::Asked = self.stage {
            match self.open().await {
                Ok(stage) => self.stage = stage,
                Err(failure) => return Some(self.fail(*failure)),
            }
        }
        let (events, ending, assembler) = match &mut self.stage {
            Stage::Playing { events, ending, assembler } => (events, ending, assembler),
            Stage::Whole(events) => return events.pop_front(),
            Stage::Asked | Stage::Over => return None,
        };
        loop {
            if let Some(event) = assembler.take_held() {
                return Some(event);
            }
            let Some(timed) = events.next() else { break };
            wait(timed.delay).await;
            if let Some(event) = assembler.on_event(&timed.json) {
                return Some(event);
            }
        }
        let failure = match ending {
            Ending::End => return assembler.on_eof(),
            Ending::Cut { .. } => {
                Failure::new(FailureClass::Cut, "Scripted fault: the connection closed during the stream.")
            }
            Ending::Stall { ping } => stall(ping.is_some()).await,
        };
        Some(self.fail(failure))
    }

    fn fail(&mut self, failure: Failure) -> ModelEvent {
        self.stage = Stage::Over;
        ModelEvent::Failed(Box::new(failure))
    }

    /// Takes the request's turn and waits for the head of its response.
    async fn open(&self) -> Result<Stage, Box<Failure>> {
        let Playback { delay, opening, events, ending } = self.take_turn().map_err(|mismatch| {
            let message = format!("The request does not match the script: {mismatch}.");
            Box::new(Failure::new(FailureClass::BadRequest, message))
        })?;
        wait(delay).await;
        match opening {
            Opening::Stream => {
                let events = events.into_iter();
                let assembler = Box::new(Assembler::for_model(Arc::clone(&self.request.model)));
                Ok(Stage::Playing { events, ending, assembler })
            }
            Opening::Whole(message) => self.open_whole(&message, ending).await,
            Opening::Status(status) => Err(status_failure(&status).into()),
            Opening::Refuse => {
                let message = "Scripted fault: the connection closed without a response.";
                Err(Failure::new(FailureClass::Cut, message).into())
            }
        }
    }

    async fn open_whole(&self, message: &str, ending: Ending) -> Result<Stage, Box<Failure>> {
        match ending {
            Ending::End => {}
            Ending::Cut { .. } => {
                let told = "Scripted fault: the connection closed during the response.";
                return Err(Failure::new(FailureClass::Cut, told).into());
            }
            Ending::Stall { .. } => return Err(whole_stall().await.into()),
        }
        let events = unstreamed::events(message, Arc::clone(&self.request.model)).map_err(|problem| {
            let (class, told) = match problem {
                Unreadable::Cut => (FailureClass::Cut, "it broke off".to_owned()),
                Unreadable::Wrong(told) => (FailureClass::Malformed, told),
            };
            Failure::new(class, format!("The scripted response is not a message: {told}."))
        })?;
        Ok(Stage::Whole(events))
    }

    fn take_turn(&self) -> Result<Playback, Mismatch> {
        let asked = || Asked { model: self.request.model.to_string(), newest: self.newest_user_text() };
        Ok(self.player.next(asked)?.playback(self.request.delivery))
    }

    /// Neighbouring user messages are one message to a model.
    fn newest_user_text(&self) -> String {
        let messages: Vec<_> =
            self.request.transcript.iter().rev().take_while(|message| message.role == Role::User).collect();
        let blocks = messages.iter().rev().flat_map(|message| &message.blocks);
        let values: Vec<Value> = blocks.filter_map(|block| serde_json::from_str(block.json()).ok()).collect();
        newest_user_text(&values)
    }
}

async fn wait(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

/// Stays silent until the watchdog of a real client would bark, with its default limits.
async fn stall(pings: bool) -> Failure {
    let WatchdogLimits { bytes, events } = WatchdogLimits::default();
    let (limit, what) = if pings { (events, "event") } else { (bytes, "byte") };
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    tokio::time::sleep(limit).await;
    let message = format!("Scripted fault: no {what} for {} s.", limit.as_secs());
    Failure::new(FailureClass::Stalled, &message)
}

/// The same for an answer that comes whole.
async fn whole_stall() -> Failure {
    let limit = AnthropicSettings::default().whole_wait;
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    tokio::time::sleep(limit).await;
    let message = format!("Scripted fault: no byte for {} s.", limit.as_secs());
    Failure::new(FailureClass::Stalled, &message)
}

fn status_failure(status: &StatusError) -> Failure {
    let header = |name: &str| {
        let found = status.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    };
    let headers = read_headers(header, SystemTime::now());
    answer_failure(status.code, &ErrorBody::parse(&status.body), headers, "the script")
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
