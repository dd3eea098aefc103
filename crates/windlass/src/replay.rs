//! A session played again from its log, without a model and without tools. Each process that opened the log had an engine of its own,
//! which is built anew from what the process said about itself.

mod rebuild;

use std::collections::BTreeMap;
use std::path::PathBuf;

use windlass_engine::protocol::{Block, Event, MessageId, Record, Role, ToolUse};
use windlass_engine::{Engine, Mismatch, Recall, RecalledSession, Replay};
use windlass_session::{
    Damage, Header, LogEnd, LogItem, LoggedRecord, SessionInfo, SessionMark, load, log_items,
};

use crate::error::SessionError;
use crate::sessions::read_before_usd;
pub use rebuild::ArgumentsReader;

/// How far a session was played, and what came of it.
#[derive(Default)]
pub struct SessionReplay {
    /// None if nothing in the log can be played.
    pub replay: Option<Replay>,
    /// How it ended.
    pub end: ReplayEnd,
    /// Where the log goes on behind it.
    pub offset: u64,
    /// Calls the model had made that have no result yet.
    pub open: BTreeMap<MessageId, ToolUse>,
    /// What was said last.
    pub last: Option<LastMessage>,
    /// What was not as it was when the log was written.
    pub differences: Vec<String>,
    /// How many pieces of the log could not be read.
    pub unread: u64,
}

/// The message that a log ends with, as far as it was played.
pub struct LastMessage {
    /// `user`, `model` or `result`.
    pub speaker: &'static str,
    /// Its content.
    pub blocks: Vec<Block>,
}

/// How it ended.
#[derive(Default)]
pub enum ReplayEnd {
    /// Everything is equal.
    #[default]
    Equal,
    /// Everything is equal, and the log ends in the middle of something.
    CutOff,
    /// The engine would have written something else.
    Differs(Mismatch),
    /// The log cannot be read there.
    Damaged(Damage),
}

impl SessionReplay {
    /// How many events were played.
    pub fn events(&self) -> u64 {
        self.replay.as_ref().map_or(0, Replay::events)
    }

    /// Whether the engine decided everything as the log says.
    pub fn is_equal(&self) -> bool {
        matches!(self.end, ReplayEnd::Equal | ReplayEnd::CutOff)
    }

    /// Keeps what is told about the end.
    fn note(&mut self, record: &Record) {
        match record {
            Record::Said(said) => {
                let blocks = said.message.blocks.iter().skip(said.context).cloned().collect();
                self.last = Some(LastMessage { speaker: "user", blocks });
            }
            Record::Answered(answered) => {
                self.last = Some(LastMessage { speaker: "model", blocks: vec![answered.block.clone()] });
                let call = answered.block.as_tool_use();
                self.open.extend(call.map(|call| (answered.id, call.clone())));
            }
            Record::Result(result) => {
                self.last = Some(LastMessage { speaker: "result", blocks: vec![result.result.clone()] });
                self.open.remove(&result.asked_by);
            }
            Record::Retracted(messages) => self.open.retain(|id, _| !messages.contains(id)),
            Record::Ended(_) => self.open.clear(),
            _ => {}
        }
    }
}

/// Plays a session, to its end or to the end of this event. `arguments` reads the command lines in logs of earlier versions.
pub fn play(
    session: &SessionInfo,
    until: Option<u64>,
    arguments: ArgumentsReader<'_>,
) -> Result<SessionReplay, SessionError> {
    let unread = |error| SessionError::Log { path: session.path.clone(), error };
    let mut player =
        Player { session, arguments, played: SessionReplay::default(), process: None, damage: None };
    let end = std::fs::metadata(&session.path).map_err(unread)?.len();
    for item in log_items(&session.path).map_err(unread)? {
        let item = item.map_err(unread)?;
        let offset = begins(&item);
        if let Some(offset) = offset.filter(|_| until.is_some_and(|until| player.played.events() >= until)) {
            return Ok(player.finish(None, offset));
        }
        if let Err(difference) = player.take(item)? {
            return Ok(player.finish(Some(difference), offset.unwrap_or(end)));
        }
    }
    if player.played.replay.is_none() {
        return Err(SessionError::NoEvents);
    }
    Ok(player.finish(None, end))
}

/// A session as it was at some point of its log.
pub struct EarlierSession {
    /// Its directory, if the log names it.
    pub directory: Option<PathBuf>,
    /// Whether the model has not answered yet.
    pub is_awaiting_answer: bool,
}

impl EarlierSession {
    /// The session as it was before what stands at this offset of its log.
    pub fn at(session: &SessionInfo, offset: u64) -> Result<Self, SessionError> {
        let loaded =
            load(&session.path, LogEnd::Offset(offset)).map_err(SessionError::unreadable(session.id))?;
        let recorded = loaded.header.map(|header| header.cwd);
        let directory = recorded.or_else(|| session.preview.cwd.clone());
        let mut recall = Recall::new(directory.clone().unwrap_or_default());
        loaded.records.into_iter().for_each(|record| recall.take(record));
        let state = recall.finish().state;
        let is_awaiting_answer = state.messages().last().is_some_and(|last| last.role == Role::User);
        Ok(Self { directory, is_awaiting_answer })
    }
}

/// Where something begins that does not belong to the event before.
fn begins(item: &LogItem) -> Option<u64> {
    match item {
        LogItem::Opened { offset, .. }
        | LogItem::Told(LoggedRecord { offset, record: Record::Heard(_), .. }) => Some(*offset),
        _ => None,
    }
}

struct Player<'a> {
    session: &'a SessionInfo,
    arguments: ArgumentsReader<'a>,
    played: SessionReplay,
    /// The engine of the process that wrote this part of the log, and what it said.
    process: Option<(Engine, Box<Header>)>,
    /// What cannot be read. At the end of what a process wrote, nothing is missed.
    damage: Option<Damage>,
}

impl Player<'_> {
    fn take(&mut self, item: LogItem) -> Result<Result<(), ReplayEnd>, SessionError> {
        match item {
            LogItem::Opened { offset, header } => self.open_process(offset, header)?,
            LogItem::Marked(SessionMark::Rewound { .. }) => {
                if let Some(replay) = &mut self.played.replay {
                    replay.rewind();
                }
            }
            LogItem::Marked(_) => {}
            LogItem::Damaged(damage) => {
                self.played.unread += 1;
                if self.played.replay.is_some() && self.damage.is_none() {
                    self.damage = Some(damage);
                }
            }
            LogItem::Told(told) => return Ok(self.hear(&told.record)),
        }
        Ok(Ok(()))
    }

    /// Another process goes on with what it could read.
    fn open_process(&mut self, offset: u64, header: Box<Header>) -> Result<(), SessionError> {
        let id = self.session.id;
        let loaded =
            load(&self.session.path, LogEnd::Offset(offset)).map_err(SessionError::unreadable(id))?;
        let engine = rebuild::engine(id, &header, self.arguments)
            .map_err(|error| SessionError::NotRebuilt(Box::new(error)))?;
        self.damage = None;
        self.played.open.clear();
        let mut recalled = recall(loaded.records, &engine);
        if let Some(before_usd) = read_before_usd(&header) {
            recalled.state.set_before_usd(before_usd);
        }
        self.played.replay.get_or_insert_with(|| engine.replay()).open(&engine, recalled);
        self.process = Some((engine, header));
        Ok(())
    }

    fn hear(&mut self, record: &Record) -> Result<(), ReplayEnd> {
        let Some(replay) = &mut self.played.replay else { return Ok(()) };
        if let Some(damage) = &self.damage {
            match record {
                // Whoever wrote it knows that something is missing.
                Record::Heard(input) if matches!(input.event, Event::StoreFailed { .. }) => {
                    self.damage = None;
                }
                Record::Heard(_) => return Err(ReplayEnd::Damaged(damage.clone())),
                _ => return Ok(()),
            }
        }
        replay.take(record).map_err(ReplayEnd::Differs)?;
        self.played.note(record);
        Ok(())
    }

    fn finish(mut self, difference: Option<ReplayEnd>, offset: u64) -> SessionReplay {
        let is_complete =
            self.damage.is_none() && self.played.replay.as_ref().is_none_or(Replay::is_complete);
        if let (Some((engine, header)), Some(_)) = (&self.process, &difference) {
            self.played.differences = rebuild::differences(engine, header);
        }
        let end = if is_complete { ReplayEnd::Equal } else { ReplayEnd::CutOff };
        SessionReplay { end: difference.unwrap_or(end), offset, ..self.played }
    }
}

/// The session as a process found it.
fn recall(records: Vec<Record>, engine: &Engine) -> RecalledSession {
    let project = engine.working_directory();
    let mut recall = Recall::new(project.to_owned());
    for record in records {
        recall.take(record);
    }
    let mut recalled = recall.finish();
    // As whoever resumes a session does; but whether the directory was there then is not known any more.
    if !recalled.state.cwd().starts_with(project) {
        recalled.state.set_cwd(project.to_owned());
    }
    recalled
}
