//! `/rewind`: back to a prompt, with the files, the conversation, or both.

use std::fmt::Write as _;

use windlass_engine::Session;
use windlass_session::{Point, PromptLine};

use crate::opening::Again;
use crate::{display, rewind as files};

/// As much of a prompt is shown.
const PROMPT_CHARS: usize = 60;

/// What is to go back, and to where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// The number of a prompt as it is listed, or its uuid.
    to: String,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Files,
    Conversation,
    Both,
}

impl Wish {
    /// Reads the words behind the command; none means that the prompts are to be listed.
    pub(crate) fn parse(words: &str) -> Result<Option<Self>, String> {
        let mut words = words.split_whitespace();
        let Some(to) = words.next() else { return Ok(None) };
        let what = match words.next() {
            None | Some("both") => What::Both,
            Some("files" | "code") => What::Files,
            Some("conversation") => What::Conversation,
            Some(other) => {
                let other = display::line(other);
                return Err(format!(
                    "unknown word {other:?}. Usage: /rewind PROMPT [files|conversation|both]."
                ));
            }
        };
        match words.next() {
            None => Ok(Some(Self { to: to.to_owned(), what })),
            Some(_) => Err("too many words. Usage: /rewind PROMPT [files|conversation|both].".into()),
        }
    }
}

/// What there is to go back to.
pub(crate) fn listed(again: &Again) -> Result<String, String> {
    let prompts = again.prompts()?;
    if prompts.is_empty() {
        return Ok("This session has no prompts yet, so there is nothing to rewind.\n".into());
    }
    let mut text = String::from("Prompts of this session:\n");
    for (place, PromptLine { uuid, text: said, standing, .. }) in prompts.iter().enumerate() {
        let left = if *standing { "" } else { " (no longer in the conversation)" };
        let _ = writeln!(text, "{:>4}  {uuid}  {}{left}", place + 1, short(said));
    }
    text.push_str(
        "\nGo back to before a prompt with /rewind NUMBER; add files or conversation to rewind \
                   only one of them.\n",
    );
    Ok(text)
}

/// Goes back to before a prompt. Files go first: if they cannot, nothing has changed.
pub(crate) async fn rewind(again: &Again, session: &mut Session, wish: &Wish) -> Result<String, String> {
    let prompts = again.prompts()?;
    let prompt = find(&prompts, &wish.to)?;
    let mut text = String::new();
    if wish.what != What::Conversation {
        let done =
            files::rewind(&again.checkpoints(), Point::Prompt(prompt.uuid), /* only look */ false);
        match done {
            Ok(done) => text.push_str(&done.to_text(again.cwd(), &again.id())),
            // Without checkpoints no call changed anything, or they were off.
            Err(error) if wish.what == What::Both => {
                let _ = writeln!(text, "Files were not rewound: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    if wish.what != What::Files {
        again.rewind(session, prompt).await?;
        let _ = writeln!(text, "The conversation was rewound to before: {}", short(&prompt.text));
    }
    Ok(text)
}

fn find<'a>(prompts: &'a [PromptLine], to: &str) -> Result<&'a PromptLine, String> {
    let by_number = to.parse::<usize>().ok().and_then(|number| prompts.get(number.checked_sub(1)?));
    let by_id = || prompts.iter().find(|prompt| prompt.uuid.to_string() == to.to_ascii_lowercase());
    by_number.or_else(by_id).ok_or_else(|| {
        format!("there is no prompt {} in this session. /rewind lists all prompts.", display::line(to))
    })
}

fn short(text: &str) -> String {
    let line = display::line(text.trim());
    match line.char_indices().nth(PROMPT_CHARS) {
        None => line,
        Some((end, _)) => format!("{}...", &line[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_where_to_and_what() {
        let check = |words: &str, expected: Result<Option<(&str, What)>, &str>| {
            let seen = Wish::parse(words);
            match (&seen, expected) {
                (Ok(None), Ok(None)) => (),
                (Ok(Some(wish)), Ok(Some((to, what)))) => assert_eq!((&*wish.to, wish.what), (to, what)),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
                _ => panic!("{words}: {seen:?}"),
            }
        };
        check("", Ok(None));
        check("2", Ok(Some(("2", What::Both))));
        check("2 both", Ok(Some(("2", What::Both))));
        check("2 files", Ok(Some(("2", What::Files))));
        check("2 code", Ok(Some(("2", What::Files))));
        check("abc conversation", Ok(Some(("abc", What::Conversation))));
        check("2 everything", Err("unknown word \"everything\""));
        check("2 files now", Err("too many words"));
    }
}
