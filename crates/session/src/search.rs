//! Finds words in what was said in sessions.

use std::ops::ControlFlow;
use std::path::PathBuf;

use memchr::memmem;

use crate::catalogue::SessionInfo;
use crate::history::{HistoryItem, SearchSpeaker, SessionHistory};
use crate::preview::OWN;

/// As many characters are shown in front of what was found, and behind it.
const CHARS_BEFORE: usize = 40;
const CHARS_BEHIND: usize = 120;

/// A place where the words stand.
#[derive(Clone, Debug)]
pub struct SearchHit<'a> {
    /// The session.
    pub session: &'a SessionInfo,
    /// The message.
    pub uuid: String,
    /// When it was said, in milliseconds since 1970.
    pub at_ms: Option<u64>,
    /// Who said it.
    pub who: SearchSpeaker,
    /// What stands in front of the words.
    pub before: String,
    /// The words as they were said.
    pub words: String,
    /// What follows.
    pub behind: String,
}

/// Looks for words in sessions, one after the other; upper and lower case are the same. Each message counts once. What the
/// engine told the model is passed over, and so is a response that did not stand.
///
/// Returns the logs that could not be read.
pub fn search<'a>(
    sessions: &'a [SessionInfo],
    words: &str,
    found: &mut dyn FnMut(SearchHit<'a>) -> ControlFlow<()>,
) -> Vec<PathBuf> {
    let wanted = SearchWords::new(words);
    let mut unreadable = Vec::new();
    if wanted.characters.is_empty() {
        return unreadable;
    }
    for session in sessions {
        match search_one(session, &wanted, found) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => break,
            Err(_) => unreadable.push(session.path.clone()),
        }
    }
    unreadable
}

fn search_one<'a>(
    session: &'a SessionInfo,
    wanted: &SearchWords,
    found: &mut dyn FnMut(SearchHit<'a>) -> ControlFlow<()>,
) -> std::io::Result<ControlFlow<()>> {
    let hit = |[before, words, behind]: [String; 3], uuid, at_ms, who| SearchHit {
        session,
        uuid,
        at_ms,
        who,
        before,
        words,
        behind,
    };
    if let Some(place) = session.preview.title.as_deref().and_then(|title| wanted.find_in(title))
        && found(hit(place, String::new(), session.preview.created_ms, SearchSpeaker::Title)).is_break()
    {
        return Ok(ControlFlow::Break(()));
    }
    let mut history = SessionHistory::open(&session.path)?;
    let mut lowered = Vec::new();
    while let Some(item) = history.next(|line| wanted.can_be_in(line, &mut lowered))? {
        let HistoryItem::Said(said) = item else { continue };
        let place = said.pieces.iter().find_map(|piece| wanted.find_in(piece.text()));
        let Some(place) = place.filter(|_| said.who != SearchSpeaker::Engine) else { continue };
        if !history.has_retracted(&said)? && found(hit(place, said.uuid, said.at_ms, said.who)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// What is looked for, ready to be compared.
struct SearchWords {
    /// In lower case.
    characters: Vec<char>,
    /// The same as it stands in a line of JSON; only if it is always written in the same way there.
    plain: Option<memmem::Finder<'static>>,
}

impl SearchWords {
    fn new(words: &str) -> Self {
        let characters: Vec<char> = words.trim().chars().flat_map(char::to_lowercase).collect();
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || " _-.".contains(*c);
        let plain = characters.iter().all(is_plain).then(|| {
            let text: String = characters.iter().collect();
            memmem::Finder::new(text.as_bytes()).into_owned()
        });
        Self { characters, plain }
    }

    /// Whether a line is worth reading.
    fn can_be_in(&self, line: &[u8], lowered: &mut Vec<u8>) -> bool {
        if line.starts_with(OWN) {
            return false;
        }
        let Some(plain) = &self.plain else { return true };
        lowered.clear();
        lowered.extend(line.iter().map(u8::to_ascii_lowercase));
        plain.find(lowered).is_some()
    }

    /// The first place where a text holds the words: what stands in front of them, they, and what follows.
    fn find_in(&self, text: &str) -> Option<[String; 3]> {
        let (start, end) = text.char_indices().find_map(|(start, _)| {
            let length = self.length_at(&text[start..])?;
            Some((start, start + length))
        })?;
        let before = text[..start].char_indices().rev().nth(CHARS_BEFORE - 1).map_or(0, |(at, _)| at);
        let behind = text[end..].char_indices().nth(CHARS_BEHIND).map_or(text.len(), |(at, _)| end + at);
        let dots = |is_cut: bool| if is_cut { "\u{2026}" } else { "" };
        Some([
            format!("{}{}", dots(before > 0), &text[before..start]),
            text[start..end].to_owned(),
            format!("{}{}", &text[end..behind], dots(behind < text.len())),
        ])
    }

    /// How many bytes of a text are what is looked for, if it begins with it.
    fn length_at(&self, text: &str) -> Option<usize> {
        let mut wanted = self.characters.iter().peekable();
        for (at, c) in text.char_indices() {
            if wanted.peek().is_none() {
                return Some(at);
            }
            if !c.to_lowercase().all(|c| wanted.next() == Some(&c)) {
                return None;
            }
        }
        wanted.peek().is_none().then_some(text.len())
    }
}
