//! What the model is told about itself and its surroundings.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::Path;

use windlass_protocol::{Block, MemoryNote, RawValue, ToolSpec};
use windlass_text::time;

/// How many digits a budget without `k` or `m` has: a shorter number is no budget, and a longer one is a telephone number.
const PLAIN_DIGITS: RangeInclusive<usize> = 4..=8;

/// The system prompt. It holds nothing that changes from day to day or place to place, so that it caches.
pub fn default_system_prompt(tools: &[ToolSpec]) -> String {
    let has = |name: &str| tools.iter().any(|tool| &*tool.name == name);
    let mut text = String::from(include_str!("../prompts/system.txt"));
    if !tools.is_empty() {
        text.push_str(include_str!("../prompts/calls.txt"));
    }
    if has("Bash") && has("Read") {
        text.push_str(include_str!("../prompts/files.txt"));
    }
    text
}

/// What the system prompt says about the form of the final answer.
pub(crate) fn form_of_answer(schema: &RawValue) -> String {
    format!(
        "A program reads your final answer. It must be one JSON value that matches this JSON schema, with nothing before or \
         after it:\n{schema}"
    )
}

/// What the first prompt begins with, since the system prompt stays the same: place, time, and what is remembered.
pub(crate) fn introduction(cwd: &Path, memory: &[MemoryNote]) -> Vec<Block> {
    let mut blocks = vec![environment_note(cwd)];
    blocks.extend((!memory.is_empty()).then(|| memory_note(memory)));
    blocks
}

fn memory_note(memory: &[MemoryNote]) -> Block {
    let mut text = String::from("<memory>\nInstructions to follow from the user and the project.\n");
    for note in memory {
        let _ = write!(text, "\nInstructions from {}:\n{}\n", note.path.display(), note.text.trim());
    }
    text.push_str("</memory>");
    Block::text(&text)
}

/// The budget of output tokens that a prompt names: a word such as `+500k`, `+2m` or `+750000` at its beginning or its end.
/// Only the first text counts; the others are data that go with it, such as a diff.
pub(crate) fn token_budget(blocks: &[Block]) -> Option<u64> {
    let mut words = blocks.iter().find_map(|block| block.as_text())?.split_whitespace();
    let (first, last) = (words.next(), words.next_back());
    first.and_then(budget_in_word).or_else(|| last.and_then(budget_in_word))
}

fn budget_in_word(word: &str) -> Option<u64> {
    let number = word.strip_prefix('+')?;
    let (number, factor) = match number.char_indices().next_back()? {
        (end, 'k' | 'K') => (&number[..end], 1_000),
        (end, 'm' | 'M') => (&number[..end], 1_000_000),
        _ if PLAIN_DIGITS.contains(&number.len()) => (number, 1),
        _ => return None,
    };
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|tokens| *tokens > 0)
}

/// Where and when the session takes place.
pub(crate) fn environment_note(cwd: &Path) -> Block {
    let now = time::iso(time::now_ms());
    let (date, _) = now.split_once('T').unwrap_or((&now, ""));
    let (cwd, system) = (cwd.display(), std::env::consts::OS);
    Block::text(&format!(
        "<environment>\nWorking directory: {cwd}\nPlatform: {system}\nDate: {date}\n</environment>"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_word_at_the_beginning_or_the_end() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(token_budget(&[Block::text(text)]), expected, "{text:?}");
        };
        check("+500k refactor this", Some(500_000));
        check("refactor this +2m", Some(2_000_000));
        check("refactor this\n+750000\n", Some(750_000));
        check("+500K", Some(500_000));
        check("+1M go", Some(1_000_000));
        check("+100k this +200k", Some(100_000));
        check("refactor this +500k", Some(500_000));
        check("spend +500k on this", None);
        check("add +500k rows to the fixture", None);
        check("x+500k", None);
        check("x+500k rows", None);
        check("rows: x+500k", None);
        check("+500kb rows", None);
        check("use +500kb", None);
        check("what is 2 +3", None);
        check("500k words", None);
        check("+500kb", None);
        check("+k", None);
        check("+", None);
        check("++500k", None);
        check("+0k go", None);
        check("+5.5m go", None);
        check("+99999999999999999999m go", None);
        check("+9999999999999999999k go", None);
        check("", None);
        check("call +14155550123", None);
        check("+99999999 go", Some(99_999_999));
        let parts = [Block::image("image/png", "AA=="), Block::text("see it +5k"), Block::text("+6k\n+7k")];
        assert_eq!(token_budget(&parts), Some(5_000));
        assert_eq!(token_budget(&[&parts[..1], &parts[2..]].concat()), Some(6_000));
        assert_eq!(token_budget(&parts[..1]), None);
    }

    #[test]
    fn memory_comes_after_the_environment() {
        let note = |path: &str, text: &str| MemoryNote { path: path.into(), text: text.into() };
        let blocks =
            introduction(Path::new("/p"), &[note("/p/A.md", "Use tabs.\n"), note("/p/B.md", "Be brief.")]);
        let texts: Vec<_> = blocks.iter().filter_map(|block| block.as_text()).collect();
        assert!(texts[0].starts_with("<environment>"));
        assert_eq!(
            texts[1],
            "<memory>\nInstructions to follow from the user and the project.\n\nInstructions from /p/A.md:\nUse tabs.\n\n\
             Instructions from /p/B.md:\nBe brief.\n</memory>"
        );
        assert_eq!(introduction(Path::new("/p"), &[]).len(), 1);
    }

    #[test]
    fn the_prompt_speaks_only_of_tools_on_offer() {
        let bare = default_system_prompt(&[]);
        assert!(!bare.contains("Bash") && !bare.contains("Calls that"));
        assert!(bare.len() < 1_000, "short prompts leave room: {}", bare.len());
    }
}
