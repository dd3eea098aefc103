//! Stage 5: what the model is told besides the results, in a fixed order, in the message that carries them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_protocol::{
    AmbientChanges, Block, FileChange, FileSeen, LookId, MemoryNote, Message, Origin, Priority, PromptId,
    SessionMemory, Speaker, UserEntry,
};

use crate::effect::Effect;
use crate::step::Cx;

/// What is attached, in order. Skills that were discovered have their place after memory.
const ATTACHMENTS: [Attachment; 5] =
    [said_by_hooks, waiting_prompts, changed_files, found_memory, task_reminder];

/// One kind of attachment: what it has to say, if anything. Each piece is a message of its own, so that one that is superseded can
/// be taken out.
type Attachment = fn(&mut Cx<'_>, &AttachmentContext<'_>) -> Vec<Arc<Message>>;

/// What is known when attachments are made.
pub(crate) struct AttachmentContext<'a> {
    /// What the driver has seen.
    pub(crate) found: &'a AmbientChanges,
    /// Which of the prompts that wait go in now.
    pub(crate) due: Priority,
}

/// As many of the files known last are watched.
const FILES_MAX: usize = 50;
/// As many of them are looked at between two requests.
const LOOKED_AT: usize = 20;
/// After so many turns without a word about it, the model is reminded of its task list.
const REMIND_AFTER: u32 = 10;

/// What attachments have told the model, and what they are to tell it.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttachmentNotes {
    /// Files the conversation knows, the latest last.
    recent: Vec<PathBuf>,
    /// Changes the model was told of, by the hash of the content: each is told once.
    told_changes: BTreeMap<PathBuf, u64>,
    /// Memory that was found and not told yet.
    found: Vec<MemoryNote>,
    told_memory: BTreeSet<PathBuf>,
    tasks: Option<Tasks>,
    /// What hooks want told with the next results.
    pub(crate) from_hooks: Vec<String>,
}

/// The task list as it was seen last.
#[derive(Clone, Debug)]
struct Tasks {
    list: Arc<str>,
    /// Turns since it changed or was told.
    silent_turns: u32,
}

impl AttachmentNotes {
    /// What a session remembered.
    pub(crate) fn from_rest(rest: &SessionMemory) -> Self {
        Self {
            recent: rest.recent.clone(),
            told_changes: rest.told_changes.iter().cloned().collect(),
            found: rest.found_memory.clone(),
            told_memory: rest.told_memory.iter().cloned().collect(),
            tasks: rest.tasks.clone().map(|(list, silent_turns)| Tasks { list, silent_turns }),
            from_hooks: Vec::new(),
        }
    }

    /// Adds what a session remembers.
    pub(crate) fn add_to(&self, rest: &mut SessionMemory) {
        rest.recent.clone_from(&self.recent);
        rest.told_changes = self.told_changes.iter().map(|(path, hash)| (path.clone(), *hash)).collect();
        rest.found_memory.clone_from(&self.found);
        rest.told_memory = self.told_memory.iter().cloned().collect();
        rest.tasks = self.tasks.as_ref().map(|tasks| (tasks.list.clone(), tasks.silent_turns));
    }

    /// The conversation knows this file now as it is.
    pub(crate) fn saw(&mut self, path: &Path) {
        self.told_changes.remove(path);
        self.recent.retain(|known| known != path);
        self.recent.push(path.to_owned());
        let excess = self.recent.len().saturating_sub(FILES_MAX);
        for forgotten in self.recent.drain(..excess) {
            self.told_changes.remove(&forgotten);
        }
    }

    /// What the model was told is gone from the conversation and may be told again.
    pub(crate) fn forget_told(&mut self) {
        self.told_memory.clear();
    }

    /// Memory that may help was found; it is told with the next results.
    pub(crate) fn on_prefetched(&mut self, notes: Vec<MemoryNote>) {
        for note in notes {
            if self.found.iter().all(|found| found.path != note.path) {
                self.found.push(note);
            }
        }
    }

    /// Whether it is time to remind of the task list. A list that changed was just on the model's mind.
    fn is_reminder_due(&mut self, list: &Arc<str>) -> bool {
        let before = self.tasks.as_ref().filter(|tasks| tasks.list == *list);
        let silent_turns = before.map_or(0, |tasks| tasks.silent_turns + 1);
        let due = silent_turns >= REMIND_AFTER;
        self.tasks = Some(Tasks { list: list.clone(), silent_turns: if due { 0 } else { silent_turns } });
        due
    }
}

impl Cx<'_> {
    /// The files the conversation knows, the latest first.
    pub(crate) fn known_files(&self, most: usize) -> Vec<FileSeen> {
        let carry = &self.state.carry;
        let known = carry.notes.recent.iter().rev().filter_map(|path| carry.tools.files.get(path));
        known.take(most).cloned().collect()
    }

    /// The files used last, and some of the others in turn: each look costs time before a request.
    fn files_to_look_at(&self) -> Vec<FileSeen> {
        let mut known = self.known_files(FILES_MAX);
        let mut others = known.split_off(known.len().min(LOOKED_AT / 2));
        let turns = usize::try_from(self.state.carry.turn_count).unwrap_or(0);
        if !others.is_empty() {
            let from = turns.wrapping_mul(LOOKED_AT / 2) % others.len();
            others.rotate_left(from);
        }
        known.extend(others.into_iter().take(LOOKED_AT / 2));
        known
    }

    /// Looks for what changed around the run, if there is anything to look at.
    pub(crate) fn look_around(&mut self) -> Option<LookId> {
        if self.config.source.is_summariser() {
            return None;
        }
        let known = self.files_to_look_at();
        let has_tasks = self.config.tools.iter().any(|tool| tool.profile.is_task_list);
        if known.is_empty() && !has_tasks {
            return None;
        }
        let look = self.state.ids.look();
        self.effects.push(Effect::LookAround { look, known, show: Vec::new() });
        Some(look)
    }

    /// Everything there is to tell the model with the results; the caller sees it too.
    pub(crate) fn attachments(&mut self, around: &AttachmentContext<'_>) -> Vec<Arc<Message>> {
        ATTACHMENTS.iter().flat_map(|attachment| attachment(self, around)).collect()
    }

    /// Takes the prompts that wait and whose time has come. What one speaker says in a row stays together.
    pub(crate) fn waiting_prompts(&mut self, due: Priority) -> Vec<Arc<Message>> {
        let prompts = self.state.carry.waiting.take_each(due, self.asks_about_prompts());
        if prompts.is_empty() {
            return Vec::new();
        }
        self.start_prompts(prompts.iter().filter_map(|prompt| prompt.id.clone()).collect());
        if let Some(total) = prompts.iter().rev().find_map(|prompt| prompt.token_budget) {
            self.state.carry.budget.total = Some(total);
        }
        let mut attached = Vec::new();
        for said in prompts.chunk_by(|one, next| one.speaker == next.speaker) {
            let is_task = said.iter().all(|prompt| prompt.speaker == Speaker::Task);
            let origin = if is_task { Origin::Attachment } else { Origin::Prompt };
            let blocks = said.iter().flat_map(|prompt| prompt.context.iter().chain(&prompt.blocks)).cloned();
            let prompts = said.iter().filter_map(|prompt| prompt.id.clone()).collect();
            attached.extend(self.attach(origin, blocks.collect(), (prompts, said.len())));
        }
        self.requeue();
        attached
    }

    /// Tells the model something on the spot.
    pub(crate) fn tell(&mut self, blocks: Vec<Block>) {
        let told = self.attach(Origin::Attachment, blocks, (Vec::new(), 0));
        self.state.carry.messages.extend(told);
    }

    fn remind(&mut self, texts: &[String]) -> Vec<Arc<Message>> {
        self.attach(Origin::Attachment, reminders(texts), (Vec::new(), 0)).into_iter().collect()
    }

    /// A message that holds so many waiting prompts, which have these ids; none without anything to say.
    fn attach(
        &mut self,
        origin: Origin,
        blocks: Vec<Block>,
        (prompts, taken): (Vec<Arc<str>>, usize),
    ) -> Option<Arc<Message>> {
        if blocks.is_empty() {
            return None;
        }
        let message = Arc::new(Message::user(self.message_id(), origin, blocks));
        let said = UserEntry { message: message.clone(), context: 0, prompts, taken };
        self.note_prompt(&said);
        self.show_said(said);
        Some(message)
    }

    /// What a person said is what the run is about, and unfinished until the run ends well.
    pub(crate) fn note_prompt(&mut self, said: &UserEntry) {
        if said.is_prompt() {
            self.state.ledger.prompt =
                Some(PromptId { message: said.message.id, prompts: said.prompts.clone() });
            self.state.carry.unfinished.push(said.unfinished_prompt());
        }
    }
}

/// What hooks said when the calls were answered.
fn said_by_hooks(cx: &mut Cx<'_>, _: &AttachmentContext<'_>) -> Vec<Arc<Message>> {
    let said = std::mem::take(&mut cx.state.carry.notes.from_hooks);
    cx.remind(&said)
}

/// What was typed meanwhile, and what background tasks have to say. What one speaker says in a row stays together.
fn waiting_prompts(cx: &mut Cx<'_>, around: &AttachmentContext<'_>) -> Vec<Arc<Message>> {
    cx.waiting_prompts(around.due)
}

/// What the conversation knows of such a file stays as it was: an edit must not pass unread changes.
fn changed_files(cx: &mut Cx<'_>, around: &AttachmentContext<'_>) -> Vec<Arc<Message>> {
    let told = &mut cx.state.carry.notes.told_changes;
    let is_news = |change: &&FileChange| told.insert(change.path.clone(), change.hash) != Some(change.hash);
    let say = |change: &FileChange| {
        format!(
            "The file {} has changed on disk, and not through your calls.\n{} Read it again before you rely \
             on it or edit it; do not undo these changes.",
            change.path.display(),
            change.note
        )
    };
    let news: Vec<String> = around.found.changed.iter().filter(is_news).map(say).collect();
    cx.remind(&news)
}

/// Only what the model has not seen in any way.
fn found_memory(cx: &mut Cx<'_>, _: &AttachmentContext<'_>) -> Vec<Arc<Message>> {
    let (config, carry) = (cx.config, &mut cx.state.carry);
    let mut found = std::mem::take(&mut carry.notes.found);
    found.retain(|note| {
        !carry.tools.files.contains_key(&note.path)
            && config.memory.iter().all(|always| always.path != note.path)
            && carry.notes.told_memory.insert(note.path.clone())
    });
    let say = |note: &MemoryNote| format!("Notes from {} that may help:\n{}", note.path.display(), note.text);
    let notes: Vec<String> = found.iter().map(say).collect();
    cx.remind(&notes)
}

fn task_reminder(cx: &mut Cx<'_>, around: &AttachmentContext<'_>) -> Vec<Arc<Message>> {
    let list = around.found.tasks.as_ref().filter(|list| !list.trim().is_empty());
    let due = list.filter(|list| cx.state.carry.notes.is_reminder_due(list));
    let text = due.map(|list| {
        format!(
            "You have not updated the task list for a while. Update it if it still helps; clear it if it \
             does not. Its content:\n{list}"
        )
    });
    cx.remind(text.as_slice())
}

/// Texts that the model does not take for the user's, as blocks.
pub(crate) fn reminders(texts: &[String]) -> Vec<Block> {
    texts.iter().map(|text| Block::text(&reminder(text))).collect()
}

/// A text that the model does not take for the user's.
pub(crate) fn reminder(text: &str) -> String {
    format!("<system-reminder>{text}</system-reminder>")
}
