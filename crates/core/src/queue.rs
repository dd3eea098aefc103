//! Prompts that wait: by priority, in order within one.

use std::sync::Arc;

use windlass_protocol::Block;

use windlass_protocol::Prompt;

/// Prompts that the model has not seen yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    prompts: Vec<Prompt>,
}

/// Prompts that go in together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    /// What the engine puts in front.
    pub(crate) context: Vec<Block>,
    /// What they say, without blank text.
    pub(crate) blocks: Vec<Block>,
    /// The ids their senders gave them.
    pub(crate) ids: Vec<Arc<str>>,
}

impl Queue {
    /// One more waits, behind those of its priority.
    pub(crate) fn push(&mut self, prompt: Prompt) {
        let place = self.prompts.partition_point(|waiting| waiting.priority <= prompt.priority);
        self.prompts.insert(place, prompt);
    }

    /// One more, behind all that wait: the prompt of a submission answers to what was said before it.
    pub(crate) fn push_last(&mut self, prompt: Prompt) {
        self.prompts.push(prompt);
    }

    /// The prompts, the next first.
    pub(crate) fn prompts(&self) -> &[Prompt] {
        &self.prompts
    }

    pub(crate) fn len(&self) -> usize {
        self.prompts.len()
    }

    /// These wait no more, the first ones.
    pub(crate) fn drop_first(&mut self, count: usize) {
        self.prompts.drain(..count.min(self.prompts.len()));
    }

    /// Takes everything that waits, prompt by prompt.
    pub(crate) fn take_each(&mut self) -> Vec<Prompt> {
        let mut prompts = std::mem::take(&mut self.prompts);
        for prompt in &mut prompts {
            prompt.blocks.retain(|block| !block.is_blank());
        }
        prompts
    }

    /// Takes everything that waits, as one.
    pub(crate) fn take(&mut self) -> Taken {
        let mut taken = Taken::default();
        for prompt in self.take_each() {
            taken.context.extend(prompt.context);
            taken.ids.extend(prompt.id);
            taken.blocks.extend(prompt.blocks);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::Priority;

    fn prompt(text: &str, priority: Priority) -> Prompt {
        Prompt { id: Some(text.into()), priority, ..text.into() }
    }

    #[test]
    fn higher_priorities_go_first_and_each_keeps_its_order() {
        use Priority::*;
        let mut queue = Queue::default();
        for (text, priority) in [("a", Next), ("b", Later), ("c", Now), ("d", Next), ("e", Now), (" ", Later)]
        {
            queue.push(prompt(text, priority));
        }
        queue.push_last(prompt("f", Now));
        let taken = queue.take();
        let texts: Vec<&str> = taken.blocks.iter().filter_map(Block::as_text).collect();
        assert_eq!(texts, ["c", "e", "a", "d", "b", "f"]);
        assert_eq!(taken.ids.len(), 7);
        assert_eq!(queue.len(), 0);
    }
}
