//! What happened in a session, in short.

use std::io;

use crate::catalogue::SessionInfo;
use crate::history::{History, Item, Piece, Retracted, Said, Who};

/// Numbers and the end of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
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
pub fn outline(session: &SessionInfo) -> io::Result<Outline> {
    let retracted = Retracted::of(&session.path)?;
    let mut history = History::open(&session.path)?;
    let mut outline = Outline::default();
    while let Some(item) = history.next(|_| true)? {
        match item {
            Item::Said(said) if !retracted.holds(&said) => outline.take(&said),
            Item::Compacted(_) => outline.compactions += 1,
            Item::Said(_) | Item::Rewound => {}
        }
    }
    Ok(outline)
}

impl Outline {
    fn take(&mut self, said: &Said) {
        let calls = said.pieces.iter().filter(|piece| matches!(piece, Piece::Call { .. })).count();
        self.calls += calls as u64;
        let texts = said.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
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
