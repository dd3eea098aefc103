//! What happened in a session, in short.

use std::io;

use crate::catalogue::SessionInfo;
use crate::history::{ContentPiece, HistoryItem, RetractedMessages, SessionHistory, Utterance, Who};

/// Numbers and the end of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionOutline {
    /// How often somebody said something.
    pub prompts: u64,
    /// How many calls were made.
    pub calls: u64,
    /// How often the conversation was compacted.
    pub compactions: u64,
    /// What was said last.
    pub last_prompt: Option<String>,
    /// What the model said to it, as far as it did.
    pub last_answer: Option<String>,
}

/// Reads a session from end to end, a line at a time.
pub fn outline(session: &SessionInfo) -> io::Result<SessionOutline> {
    let retracted = RetractedMessages::of(&session.path)?;
    let mut history = SessionHistory::open(&session.path)?;
    let mut outline = SessionOutline::default();
    while let Some(item) = history.next(|_| true)? {
        match item {
            HistoryItem::Said(said) if !retracted.holds(&said) => outline.take(&said),
            HistoryItem::Compacted(_) => outline.compactions += 1,
            HistoryItem::Said(_) | HistoryItem::Rewound => {}
        }
    }
    Ok(outline)
}

impl SessionOutline {
    fn take(&mut self, said: &Utterance) {
        let calls = said.pieces.iter().filter(|piece| matches!(piece, ContentPiece::Call { .. })).count();
        self.calls += calls as u64;
        let texts = said.pieces.iter().filter_map(|piece| match piece {
            ContentPiece::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        match said.who {
            Who::User => {
                self.prompts += 1;
                self.last_prompt = Some(text);
                self.last_answer = None;
            }
            Who::Assistant if !text.is_empty() => self.last_answer = Some(text),
            _ => {}
        }
    }
}
