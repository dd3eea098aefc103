//! A script as a model client.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::vec;

use futures_util::stream;
use serde_json::Value;
use windlass_ports::{BoxStream, ModelClient};
use windlass_protocol::{Failure, FailureClass, ModelEvent, ModelRequest, Role};

use super::expand::{Playback, PlaybackEnd, PlaybackStart, StatusError, TimedEvent};
use super::format::Script;
use super::player::{RequestView, ScriptPlayer, newest_user_text};
use crate::anthropic::whole_answer::{self, MessageError};
use crate::anthropic::{AnthropicSettings, WatchdogLimits};
use crate::assemble::ResponseAssembler;
use crate::classify::{ErrorBody, answer_failure, read_headers};

/// Plays a [`Script`] as a model client, through the assembler of a real one. Clones share the place.
#[derive(Clone, Debug)]
pub struct ScriptModel {
    player: ScriptPlayer,
}

impl ScriptModel {
    /// Plays the script from its beginning.
    pub fn new(script: Script) -> Self {
        Self { player: ScriptPlayer::new(script) }
    }

    /// How many requests have been answered.
    pub fn played_count(&self) -> usize {
        self.player.played_count()
    }
}

impl ModelClient for ScriptModel {
    fn stream(&self, request: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
        let answer = ScriptedAnswer { player: self.player.clone(), request, stage: AnswerStage::Unsent };
        Box::pin(stream::unfold(answer, |mut answer| async move {
            let event = answer.next().await?;
            Some((event, answer))
        }))
    }
}

struct ScriptedAnswer {
    player: ScriptPlayer,
    request: Arc<ModelRequest>,
    stage: AnswerStage,
}

enum AnswerStage {
    Unsent,
    Whole(VecDeque<ModelEvent>),
    Playing { events: vec::IntoIter<TimedEvent>, ending: PlaybackEnd, assembler: Box<ResponseAssembler> },
    Over,
}

impl ScriptedAnswer {
    async fn next(&mut self) -> Option<ModelEvent> {
        if let AnswerStage::Unsent = self.stage {
            match self.open().await {
                Ok(stage) => self.stage = stage,
                Err(failure) => return Some(self.fail(*failure)),
            }
        }
        let (events, ending, assembler) = match &mut self.stage {
            AnswerStage::Playing { events, ending, assembler } => (events, ending, assembler),
            AnswerStage::Whole(events) => return events.pop_front(),
            AnswerStage::Unsent | AnswerStage::Over => return None,
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
            PlaybackEnd::End => return assembler.on_eof(),
            PlaybackEnd::Cut(_) => {
                Failure::new(FailureClass::Cut, "Scripted fault: the connection closed during the stream.")
            }
            PlaybackEnd::Stall(Some(_)) => stall(WatchdogLimits::default().events, "event").await,
            PlaybackEnd::Stall(None) => stall(WatchdogLimits::default().bytes, "byte").await,
        };
        Some(self.fail(failure))
    }

    fn fail(&mut self, failure: Failure) -> ModelEvent {
        self.stage = AnswerStage::Over;
        ModelEvent::Failed(Box::new(failure))
    }

    /// Takes the request's turn and waits for the head of its response.
    async fn open(&self) -> Result<AnswerStage, Box<Failure>> {
        let asked = || RequestView { model: self.request.model.to_string(), newest: self.newest_user_text() };
        let turn = self.player.next(asked).map_err(|mismatch| {
            let message = format!("The request does not match the script: {mismatch}.");
            Box::new(Failure::new(FailureClass::BadRequest, message))
        })?;
        let Playback { delay, opening, events, ending } = turn.playback(self.request.delivery);
        wait(delay).await;
        match opening {
            PlaybackStart::Stream => {
                let events = events.into_iter();
                let assembler = Box::new(ResponseAssembler::for_model(Arc::clone(&self.request.model)));
                Ok(AnswerStage::Playing { events, ending, assembler })
            }
            PlaybackStart::Whole(message) => self.open_whole(&message, ending).await,
            PlaybackStart::Status(status) => Err(status_failure(&status).into()),
            PlaybackStart::Refuse => {
                let message = "Scripted fault: the connection closed without a response.";
                Err(Failure::new(FailureClass::Cut, message).into())
            }
        }
    }

    async fn open_whole(&self, message: &str, ending: PlaybackEnd) -> Result<AnswerStage, Box<Failure>> {
        match ending {
            PlaybackEnd::End => {}
            PlaybackEnd::Cut(_) => {
                let told = "Scripted fault: the connection closed during the response.";
                return Err(Failure::new(FailureClass::Cut, told).into());
            }
            PlaybackEnd::Stall(_) => {
                return Err(stall(AnthropicSettings::default().whole_wait, "byte").await.into());
            }
        }
        let events = whole_answer::events(message, Arc::clone(&self.request.model)).map_err(|problem| {
            let (class, told) = match problem {
                MessageError::Cut => (FailureClass::Cut, "it broke off".to_owned()),
                MessageError::Wrong(told) => (FailureClass::Malformed, told),
            };
            Failure::new(class, format!("The scripted response is not a message: {told}."))
        })?;
        Ok(AnswerStage::Whole(events))
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

/// Stays silent until the watchdog of a real client would bark.
async fn stall(limit: Option<Duration>, missing: &str) -> Failure {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    tokio::time::sleep(limit).await;
    Failure::new(FailureClass::Stalled, format!("Scripted fault: no {missing} for {} s.", limit.as_secs()))
}

fn status_failure(status: &StatusError) -> Failure {
    let header = |name: &str| {
        let found = status.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    };
    let headers = read_headers(header, SystemTime::now());
    answer_failure(status.code, &ErrorBody::parse(&status.body), headers, "The script")
}

#[cfg(test)]
mod tests;
