//! Prompts that wait: by priority, in order within one.

use windlass_protocol::{Block, HookId, Priority, Prompt, Speaker, StartSource};

/// Prompts that the model has not seen yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    entries: Vec<WaitingPrompt>,
}

/// One prompt, and what hooks have to do with it.
#[derive(Clone, Debug)]
struct WaitingPrompt {
    prompt: Prompt,
    /// It began the run that is beginning.
    is_own: bool,
    heard: HookHearing,
    /// What hooks want the model to know with it.
    context: Vec<Block>,
    /// What hooks want said in front of it.
    front: Option<Block>,
}

/// Whether hooks have heard of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HookHearing {
    No,
    Asked(HookId),
    Passed,
}

impl Queue {
    /// One more waits, behind those of its priority.
    pub(crate) fn push(&mut self, prompt: Prompt) {
        self.insert(prompt, /* own */ false);
    }

    /// One more, which is taken behind all that wait: the prompt of a submission answers to what was said before it.
    pub(crate) fn push_own(&mut self, prompt: Prompt) {
        self.insert(prompt, /* own */ true);
    }

    /// Commands stand last: what is taken for the model are the first ones.
    fn insert(&mut self, prompt: Prompt, is_own: bool) {
        let rank = |prompt: &Prompt| (prompt.speaker == Speaker::Command, prompt.priority);
        let place = self.entries.partition_point(|waiting| rank(&waiting.prompt) <= rank(&prompt));
        self.entries.insert(place, WaitingPrompt::new(prompt, is_own));
    }

    /// The prompts, the next first.
    pub(crate) fn prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.entries.iter().map(|entry| &entry.prompt)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many are for the model.
    pub(crate) fn prompt_count(&self) -> usize {
        self.entries.iter().filter(|entry| entry.prompt.speaker != Speaker::Command).count()
    }

    /// What waits under this id waits no more. False if nothing does.
    pub(crate) fn take_back(&mut self, id: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.prompt.id.as_deref() != Some(id));
        self.entries.len() < before
    }

    /// The prompt that began the run waits no more.
    pub(crate) fn take_own(&mut self) -> Option<Prompt> {
        let place = self.entries.iter().position(|entry| entry.is_own)?;
        Some(self.entries.remove(place).prompt)
    }

    /// These wait no more, the first ones.
    pub(crate) fn drop_first(&mut self, count: usize) {
        self.entries.drain(..count.min(self.entries.len()));
    }

    /// Why the session begins, if one of them is the first of it in this process.
    pub(crate) fn take_start(&mut self) -> Option<StartSource> {
        self.entries.iter_mut().fold(None, |start, entry| entry.prompt.start.take().or(start))
    }

    /// The prompt that began the run.
    pub(crate) fn own(&self) -> Option<&Prompt> {
        self.entries.iter().find(|entry| entry.is_own).map(|entry| &entry.prompt)
    }

    /// Adds to what the model is to know with the prompt that began the run, and in front of it. False if there is none.
    pub(crate) fn add_to_own(&mut self, context: &[Block], front: Option<Block>) -> bool {
        let Some(own) = self.entries.iter_mut().find(|entry| entry.is_own) else { return false };
        own.context.extend_from_slice(context);
        own.front = front.or(own.front.take());
        true
    }

    /// Whether a person has said something that waits.
    pub(crate) fn has_spoken(&self) -> bool {
        self.entries.iter().any(|entry| entry.prompt.speaker == Speaker::User)
    }

    /// What the first prompt says that hooks have not heard of, if its time has come. News of tasks is nobody's prompt.
    pub(crate) fn unheard(&self, due: Priority) -> Option<&Prompt> {
        let first = self.entries.iter().find(|entry| entry.is_unheard())?;
        Some(&first.prompt).filter(|prompt| prompt.priority <= due)
    }
    pub(crate) fn note_question(&mut self, hook: HookId) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.is_unheard()) {
            entry.heard = HookHearing::Asked(hook);
        }
    }

    /// Hooks let a prompt pass, and want this known with it.
    pub(crate) fn pass(&mut self, hook: HookId, context: Vec<Block>) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.heard == HookHearing::Asked(hook)) {
            entry.heard = HookHearing::Passed;
            entry.context.extend(context);
        }
    }

    /// Hooks refused a prompt: it is gone. Says whether it was the one that began the run.
    pub(crate) fn refuse(&mut self, hook: HookId) -> Option<(Prompt, bool)> {
        let place = self.entries.iter().position(|entry| entry.heard == HookHearing::Asked(hook))?;
        let entry = self.entries.remove(place);
        Some((entry.prompt, entry.is_own))
    }

    /// The run is over. What hooks said about prompts that are left is forgotten, as whoever resumes the session has.
    pub(crate) fn rest(&mut self) {
        for entry in &mut self.entries {
            let prompt = std::mem::take(&mut entry.prompt);
            *entry = WaitingPrompt::new(prompt, /* own */ false);
        }
    }

    /// Nobody answers questions about them any more.
    pub(crate) fn unask(&mut self) {
        for entry in self.entries.iter_mut().filter(|entry| matches!(entry.heard, HookHearing::Asked(_))) {
            entry.heard = HookHearing::No;
        }
    }

    /// Takes what waits and whose time has come, prompt by prompt; with `heard`, only what hooks have heard of.
    pub(crate) fn take_each(&mut self, due: Priority, is_heard: bool) -> Vec<Prompt> {
        let is_taken = |entry: &mut WaitingPrompt| {
            let is_due = entry.prompt.speaker != Speaker::Command && entry.prompt.priority <= due;
            is_due && !(is_heard && entry.is_open())
        };
        self.entries.extract_if(.., is_taken).map(WaitingPrompt::into_prompt).collect()
    }

    /// Takes everything that waits, the prompt of the submission last.
    pub(crate) fn take(&mut self) -> Vec<Prompt> {
        self.entries.sort_by_key(|entry| entry.is_own);
        self.take_each(Priority::Later, /* heard only */ false)
    }
}

impl WaitingPrompt {
    fn new(prompt: Prompt, is_own: bool) -> Self {
        Self { prompt, is_own, heard: HookHearing::No, context: Vec::new(), front: None }
    }

    fn is_unheard(&self) -> bool {
        self.heard == HookHearing::No && self.prompt.speaker == Speaker::User
    }

    /// Whether hooks may still refuse it.
    fn is_open(&self) -> bool {
        self.is_unheard() || matches!(self.heard, HookHearing::Asked(_))
    }

    fn into_prompt(self) -> Prompt {
        let Self { mut prompt, context, front, .. } = self;
        prompt.blocks.splice(0..0, front);
        prompt.blocks.retain(|block| !block.is_blank());
        prompt.context.extend(context);
        prompt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str, priority: Priority) -> Prompt {
        Prompt { id: Some(text.into()), priority, ..text.into() }
    }

    fn texts(prompts: &[Prompt]) -> Vec<&str> {
        prompts.iter().flat_map(|prompt| &prompt.blocks).filter_map(Block::as_text).collect()
    }

    #[test]
    fn higher_priorities_go_first_and_each_keeps_its_order() {
        use Priority::*;
        let mut queue = Queue::default();
        for (text, priority) in [("a", Next), ("b", Later), ("c", Now), ("d", Next), ("e", Now), (" ", Later)]
        {
            queue.push(prompt(text, priority));
        }
        queue.push_own(prompt("f", Now));
        let taken = queue.take();
        assert_eq!(texts(&taken), ["c", "e", "a", "d", "b", "f"]);
        assert_eq!(taken.len(), 7);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn what_is_for_later_waits_until_its_time_has_come() {
        let mut queue = Queue::default();
        for (text, priority) in [("later", Priority::Later), ("next", Priority::Next), ("now", Priority::Now)]
        {
            queue.push(prompt(text, priority));
        }
        assert_eq!(texts(&queue.take_each(Priority::Next, false)), ["now", "next"]);
        assert!(queue.unheard(Priority::Next).is_none());
        assert_eq!(texts(&queue.take_each(Priority::Later, false)), ["later"]);
    }

    #[test]
    fn a_command_is_never_taken_for_the_model() {
        let mut queue = Queue::default();
        queue.push(Prompt { speaker: Speaker::Command, ..prompt("/cost", Priority::Now) });
        queue.push(prompt("a", Priority::Later));
        assert_eq!((queue.len(), queue.prompt_count(), queue.has_spoken()), (2, 1, true));
        assert_eq!(texts(&queue.take()), ["a"]);
        assert!(queue.take_back("/cost") && !queue.take_back("/cost"));
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn only_what_hooks_let_pass_is_taken_with_the_results() {
        let mut queue = Queue::default();
        for text in ["a", "b", "c"] {
            queue.push(prompt(text, Priority::Next));
        }
        queue.push(Prompt { speaker: Speaker::Task, ..prompt("t", Priority::Now) });
        assert_eq!(queue.unheard(Priority::Next).unwrap().id.as_deref(), Some("a"));
        queue.note_question(HookId(1));
        queue.push(prompt("n", Priority::Now));
        queue.pass(HookId(1), vec![Block::text("note")]);
        queue.note_question(HookId(2));
        assert!(
            queue
                .refuse(HookId(2))
                .is_some_and(|(prompt, is_own)| prompt.id.as_deref() == Some("n") && !is_own)
        );
        queue.note_question(HookId(3));
        let taken = queue.take_each(Priority::Next, true);
        assert_eq!(texts(&taken), ["t", "a"]);
        assert_eq!(taken[1].context.len(), 1);
        queue.rest();
        assert_eq!(
            queue.prompts().map(|prompt| prompt.id.as_deref().unwrap()).collect::<Vec<_>>(),
            ["b", "c"]
        );
    }
}
