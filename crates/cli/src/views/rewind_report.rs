//! `/rewind`: back to a prompt, with the files, the conversation, or both.

use std::fmt::Write as _;

use windlass_engine::Session;
use windlass_session::{PromptLine, RewindPoint};
use windlass_text::shorten::shorten;

use crate::commands::rewind as files;
use crate::display;
use crate::error::CommandError;
use windlass::sessions::Rewinder;

/// As much of a prompt is shown.
const PROMPT_CHARS: usize = 60;

/// What is to go back, and to where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RewindRequest {
    /// The number of a prompt as it is listed, or its uuid.
    to: String,
    what: RewindScope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RewindScope {
    Files,
    Conversation,
    Both,
}

impl RewindRequest {
    /// Reads the words behind the command; none means that the prompts are to be listed.
    pub(crate) fn parse(words: &str) -> Result<Option<Self>, CommandError> {
        let mut words = words.split_whitespace();
        let Some(to) = words.next() else { return Ok(None) };
        let what = match words.next() {
            None | Some("both") => RewindScope::Both,
            Some("files" | "code") => RewindScope::Files,
            Some("conversation") => RewindScope::Conversation,
            Some(other) => {
                let other = display::line(other);
                return Err(format!(
                    "unknown word {other:?}. Usage: /rewind PROMPT [files|conversation|both]."
                )
                .into());
            }
        };
        match words.next() {
            None => Ok(Some(Self { to: to.to_owned(), what })),
            Some(_) => Err("too many words. Usage: /rewind PROMPT [files|conversation|both].".into()),
        }
    }
}

/// What there is to go back to.
pub(crate) fn listed(rewinder: &Rewinder) -> Result<String, CommandError> {
    let prompts = rewinder.prompts()?;
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
pub(crate) async fn rewind(
    rewinder: &Rewinder,
    session: &mut Session,
    request: &RewindRequest,
) -> Result<String, CommandError> {
    let prompts = rewinder.prompts()?;
    let prompt = find(&prompts, &request.to)?;
    let mut text = String::new();
    if request.what != RewindScope::Conversation {
        let done = files::rewind(
            &rewinder.checkpoints(),
            RewindPoint::Prompt(prompt.uuid),
            /* only look */ false,
        );
        match done {
            Ok(done) => text.push_str(&done.to_text(rewinder.cwd(), &rewinder.id())),
            // Without checkpoints no call changed anything, or they were off.
            Err(error) if request.what == RewindScope::Both => {
                let _ = writeln!(text, "Files were not rewound: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    if request.what != RewindScope::Files {
        rewinder.rewind(session, prompt).await?;
        let _ = writeln!(text, "The conversation was rewound to before: {}", short(&prompt.text));
    }
    Ok(text)
}

fn find<'a>(prompts: &'a [PromptLine], to: &str) -> Result<&'a PromptLine, CommandError> {
    let by_number = to.parse::<usize>().ok().and_then(|number| prompts.get(number.checked_sub(1)?));
    let by_id = || prompts.iter().find(|prompt| prompt.uuid.to_string() == to.to_ascii_lowercase());
    by_number.or_else(by_id).ok_or_else(|| {
        let to = display::line(to);
        CommandError::Usage(format!("there is no prompt {to} in this session. /rewind lists all prompts."))
    })
}

fn short(text: &str) -> String {
    shorten(&display::line(text.trim()), PROMPT_CHARS, "...").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_where_to_and_what() {
        let check = |words: &str, expected: Result<Option<(&str, RewindScope)>, &str>| {
            let seen = RewindRequest::parse(words);
            match (&seen, expected) {
                (Ok(None), Ok(None)) => (),
                (Ok(Some(request)), Ok(Some((to, what)))) => {
                    assert_eq!((&*request.to, request.what), (to, what));
                }
                (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
                _ => panic!("{words}: {seen:?}"),
            }
        };
        check("", Ok(None));
        check("2", Ok(Some(("2", RewindScope::Both))));
        check("2 both", Ok(Some(("2", RewindScope::Both))));
        check("2 files", Ok(Some(("2", RewindScope::Files))));
        check("2 code", Ok(Some(("2", RewindScope::Files))));
        check("abc conversation", Ok(Some(("abc", RewindScope::Conversation))));
        check("2 everything", Err("unknown word \"everything\""));
        check("2 files now", Err("too many words"));
    }
}
