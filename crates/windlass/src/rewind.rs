//! Going back to an earlier prompt: which one is meant, and bringing back the files, the conversation, or both.

use windlass_protocol::{SessionKey, SessionSeed};
use windlass_session::{Checkpoints, Lease, LeaseError, SessionInfo};
pub use windlass_session::{
    PointInfo, PromptLine, RewindAction, RewindChange, RewindPlan, RewindPoint, RewindResult,
};

use crate::error::SessionError;
use crate::sessions::KeptSession;

/// What is to go back, and to where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewindRequest {
    /// The number of a prompt as it is listed, or its uuid.
    pub to: String,
    /// What goes back.
    pub scope: RewindScope,
}

/// What goes back to before a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindScope {
    /// The files that calls have changed.
    Files,
    /// What the model remembers.
    Conversation,
    /// The conversation, and the files as far as there are checkpoints.
    Both,
}

impl RewindRequest {
    /// Reads the words behind the command; none means that the prompts are to be listed.
    pub fn parse(words: &str) -> Result<Option<Self>, SessionError> {
        let mut words = words.split_whitespace();
        let Some(to) = words.next() else { return Ok(None) };
        let scope = match words.next() {
            None | Some("both") => RewindScope::Both,
            Some("files" | "code") => RewindScope::Files,
            Some("conversation") => RewindScope::Conversation,
            Some(other) => return Err(SessionError::UnknownScope(other.to_owned())),
        };
        match words.next() {
            None => Ok(Some(Self { to: to.to_owned(), scope })),
            Some(_) => Err(SessionError::TooManyWords),
        }
    }

    fn find<'a>(&self, prompts: &'a [PromptLine]) -> Result<&'a PromptLine, SessionError> {
        let by_number = self.to.parse::<usize>().ok().and_then(|number| prompts.get(number.checked_sub(1)?));
        let by_id = || prompts.iter().find(|prompt| prompt.uuid.to_string() == self.to.to_ascii_lowercase());
        by_number.or_else(by_id).ok_or_else(|| SessionError::UnknownPrompt(self.to.clone()))
    }
}

/// What became of a [`RewindRequest`].
#[derive(Debug)]
pub struct RewindOutcome {
    /// What became of the files; nothing if they were to stay. An error did not keep the conversation from going back.
    pub files: Option<Result<RewindReport, SessionError>>,
    /// The prompt that the conversation is before now; nothing if it was to stay.
    pub prompt: Option<PromptLine>,
}

/// The changes of files that were made, or would be.
#[derive(Debug)]
pub struct RewindReport {
    /// What is to be done.
    pub plan: RewindPlan,
    /// What was done; nothing if the plan was only made.
    pub rewound: Option<RewindResult>,
}

impl RewindReport {
    /// The changes of the plan that were made; all of them if it was only made.
    pub fn changes(&self) -> impl Iterator<Item = &RewindChange> {
        let is_done = |change: &&RewindChange| match &self.rewound {
            Some(rewound) => rewound.done.contains(&change.path),
            None => true,
        };
        self.plan.changes.iter().filter(is_done)
    }
}

/// Takes an open session back to before a prompt. Files go first: if they cannot, nothing has changed.
pub(crate) async fn rewind(
    kept: &KeptSession,
    session: &mut windlass_engine::Session,
    request: &RewindRequest,
) -> Result<RewindOutcome, SessionError> {
    let prompts = kept.prompts()?;
    let prompt = request.find(&prompts)?;
    let point = RewindPoint::Prompt(prompt.uuid);
    let files = match request.scope {
        RewindScope::Files => Some(Ok(rewind_files(&kept.checkpoints(), point)?)),
        // Without checkpoints no call changed anything, or they were off.
        RewindScope::Both => Some(rewind_files(&kept.checkpoints(), point)),
        RewindScope::Conversation => None,
    };
    if request.scope == RewindScope::Files {
        return Ok(RewindOutcome { files, prompt: None });
    }
    kept.rewind(session, prompt).await?;
    Ok(RewindOutcome { files, prompt: Some(prompt.clone()) })
}

/// The caller holds the session's lease.
fn rewind_files(checkpoints: &Checkpoints, to: RewindPoint) -> Result<RewindReport, SessionError> {
    let plan = checkpoints.plan(to)?;
    let rewound = Some(checkpoints.apply(&plan)?);
    Ok(RewindReport { plan, rewound })
}

/// The points that the files of a session can go back to, which need not be open.
pub fn points(session: &SessionInfo) -> Result<Vec<PointInfo>, SessionError> {
    Ok(checkpoints(session).points()?)
}

/// What [`rewind_saved`] would do.
pub fn preview_saved(session: &SessionInfo, to: RewindPoint) -> Result<RewindReport, SessionError> {
    Ok(RewindReport { plan: checkpoints(session).plan(to)?, rewound: None })
}

/// Brings files back in a session that no process has open.
pub fn rewind_saved(session: &SessionInfo, to: RewindPoint) -> Result<RewindReport, SessionError> {
    let _lease = Lease::take(session.paths().file()).map_err(|error| match error {
        LeaseError::Busy(_) => SessionError::InUse(session.id),
        LeaseError::Failed { .. } => SessionError::Unreadable { id: session.id, problem: error.into() },
    })?;
    rewind_files(&checkpoints(session), to)
}

fn checkpoints(session: &SessionInfo) -> Checkpoints {
    Checkpoints::new(&session.paths(), SessionKey::from(SessionSeed(session.id.as_u128())))
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
                (Ok(Some(request)), Ok(Some((to, scope)))) => {
                    assert_eq!((&*request.to, request.scope), (to, scope));
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
