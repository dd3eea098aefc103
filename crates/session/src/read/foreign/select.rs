//! Which entries of a file are its conversation: from the last one back to the first, or to the last compaction.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::value::RawValue;
use uuid::Uuid;
use windlass_protocol::{MessageId, RawObject};

use crate::format::{EntryKind, LogEntry};

/// What is kept of each entry while one is looking for the conversation.
#[derive(Debug)]
struct Node {
    /// Without its message.
    entry: LogEntry,
    place: (u64, u64),
    /// The response it is part of.
    response: Option<Arc<str>>,
    asks: Vec<Arc<str>>,
    answers: Vec<Arc<str>>,
    /// The number that we gave it.
    number: Option<MessageId>,
    /// The first message that our compaction left.
    tail: Option<MessageId>,
}

#[derive(Debug, Default)]
pub(crate) struct EntryIndex {
    nodes: Vec<Node>,
    by_uuid: HashMap<Uuid, usize>,
}

impl EntryIndex {
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Takes the next entry of the file.
    pub(crate) fn add(&mut self, offset: u64, length: u64, entry: &LogEntry) {
        let mut node = Node {
            place: (offset, length),
            response: None,
            asks: Vec::new(),
            answers: Vec::new(),
            number: entry.number(),
            tail: entry.compaction_tail(),
            entry: LogEntry { message: None, structured: None, metadata: None, meta: None, ..*entry },
        };
        node.outline(entry.message.as_deref());
        self.by_uuid.insert(node.entry.uuid, self.nodes.len());
        self.nodes.push(node);
    }

    /// The conversation that ends with this entry, or with the one that others would choose: where its entries stand and
    /// how long they are, in order; and its last entry. There must be an entry.
    pub(crate) fn select(&self, leaf: Option<Uuid>) -> (Vec<(u64, u64)>, Uuid) {
        let leaf = leaf.and_then(|leaf| self.by_uuid.get(&leaf).copied()).unwrap_or_else(|| self.leaf());
        let path = self.path(leaf, true);
        let tail = path.first().and_then(|first| self.tail_before(&self.nodes[*first])).unwrap_or_default();
        let whole = self.with_parallel_calls(&[tail, path].concat());
        let places = whole.into_iter().map(|place| self.nodes[place].place);
        (places.collect(), self.nodes[leaf].entry.uuid)
    }

    /// The last entry of the conversation: nobody follows it, and a person sees it, or the one it belongs to.
    fn leaf(&self) -> usize {
        let followed: HashSet<Uuid> = self.nodes.iter().filter_map(|node| node.entry.parent).collect();
        let ends = (0..self.nodes.len()).filter(|place| !followed.contains(&self.nodes[*place].entry.uuid));
        let mut speakers = HashMap::new();
        let leaves: Vec<(usize, usize)> =
            ends.filter_map(|end| Some((self.speaker(end, &mut speakers)?, end))).collect();
        let is_main = |(speaker, _): &&(usize, usize)| {
            !self.nodes[*speaker].entry.is_aside && !self.nodes[*speaker].entry.is_meta
        };
        let last = leaves.iter().filter(is_main).max().or_else(|| leaves.iter().max());
        last.map_or(self.nodes.len() - 1, |(_, end)| *end)
    }

    /// The nearest entry, from this one back, in which somebody speaks. Every entry is passed once, whatever is asked.
    fn speaker(&self, end: usize, known: &mut HashMap<usize, Option<usize>>) -> Option<usize> {
        let mut passed = Vec::new();
        let mut at = Some(end);
        let speaker = loop {
            let Some(here) = at else { break None };
            if matches!(self.nodes[here].entry.kind, EntryKind::User | EntryKind::Assistant) {
                break Some(here);
            }
            if let Some(speaker) = known.get(&here) {
                break *speaker;
            }
            known.insert(here, None);
            passed.push(here);
            at = self.parent_of(here);
        };
        known.extend(passed.into_iter().map(|here| (here, speaker)));
        speaker
    }

    /// The entries from the first, or from the last boundary, to this one.
    fn path(&self, last: usize, has_boundary: bool) -> Vec<usize> {
        let mut path = Vec::new();
        let mut seen = HashSet::new();
        let mut at = Some(last);
        while let Some(here) = at.filter(|here| seen.insert(*here)) {
            let is_boundary = self.nodes[here].entry.is_boundary;
            if !is_boundary || has_boundary {
                path.push(here);
            }
            if is_boundary {
                break;
            }
            at = self.parent_of(here);
        }
        path.reverse();
        path
    }

    /// What a compaction of ours left of the conversation before it.
    fn tail_before(&self, boundary: &Node) -> Option<Vec<usize>> {
        let (tail, last) = (boundary.tail?, self.by_uuid.get(&boundary.entry.logical_parent?)?);
        let path = self.path(*last, false);
        let mut first = path.iter().position(|place| self.nodes[*place].number == Some(tail))?;
        // A message has the number of its last part.
        while first > 0 && self.are_parts_of_one(path[first - 1], path[first]) {
            first -= 1;
        }
        Some(path[first..].to_vec())
    }

    fn are_parts_of_one(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.nodes[one], &self.nodes[other]);
        one.number == other.number || (one.response.is_some() && one.response == other.response)
    }

    /// The path with the calls and results beside it: those of a response whose next entry follows only one of them.
    fn with_parallel_calls(&self, path: &[usize]) -> Vec<usize> {
        let on_path: HashSet<usize> = path.iter().copied().collect();
        let beside = OffPathEntries::new(self, &on_path);
        let mut taken = on_path;
        let mut whole = Vec::with_capacity(path.len());
        for (index, place) in path.iter().enumerate() {
            whole.push(*place);
            let Some(response) = &self.nodes[*place].response else { continue };
            let next = path.get(index + 1).and_then(|next| self.nodes[*next].response.as_ref());
            if next == Some(response) {
                continue;
            }
            let parts = path[..=index].iter().rev().copied();
            let parts = parts.take_while(|part| self.nodes[*part].response.as_ref() == Some(response));
            for more in beside.parts_of(response, parts, &self.nodes[*place]) {
                if taken.insert(more) {
                    whole.push(more);
                }
            }
        }
        whole
    }

    fn parent_of(&self, place: usize) -> Option<usize> {
        self.by_uuid.get(&self.nodes[place].entry.parent?).copied()
    }
}

/// What is not on the path, by what ties it to a response.
struct OffPathEntries<'a> {
    index: &'a EntryIndex,
    blocks: HashMap<&'a Arc<str>, Vec<usize>>,
    results_by_entry: HashMap<Uuid, Vec<usize>>,
    results_by_call: HashMap<&'a Arc<str>, Vec<usize>>,
}

impl<'a> OffPathEntries<'a> {
    fn new(index: &'a EntryIndex, on_path: &HashSet<usize>) -> Self {
        let mut beside = Self {
            index,
            blocks: HashMap::new(),
            results_by_entry: HashMap::new(),
            results_by_call: HashMap::new(),
        };
        for (place, node) in index.nodes.iter().enumerate().filter(|(place, _)| !on_path.contains(place)) {
            if let Some(response) = &node.response {
                beside.blocks.entry(response).or_default().push(place);
            }
            for call in &node.answers {
                beside.results_by_call.entry(call).or_default().push(place);
                for entry in node.entry.parent.into_iter().chain(node.entry.source) {
                    beside.results_by_entry.entry(entry).or_default().push(place);
                }
            }
        }
        beside
    }

    /// The other blocks of a response, then the results of all, in the order of the file.
    fn parts_of(&self, response: &Arc<str>, on_path: impl Iterator<Item = usize>, like: &Node) -> Vec<usize> {
        let same_side = |place: &&usize| self.index.nodes[**place].entry.is_aside == like.entry.is_aside;
        let blocks: Vec<usize> =
            self.blocks.get(response).into_iter().flatten().filter(same_side).copied().collect();
        let mut results = Vec::new();
        for part in on_path.chain(blocks.iter().copied()) {
            let part = &self.index.nodes[part];
            results.extend(self.results_by_entry.get(&part.entry.uuid).into_iter().flatten().copied());
            for call in &part.asks {
                results.extend(self.results_by_call.get(call).into_iter().flatten().copied());
            }
        }
        results.sort_unstable();
        results.dedup();
        blocks.into_iter().chain(results).collect()
    }
}

impl Node {
    /// Takes from the message what ties the entry to others.
    fn outline(&mut self, message: Option<&RawValue>) {
        let Some(message) = message.and_then(|raw| RawObject::parse(raw.get()).ok()) else { return };
        if self.entry.kind == EntryKind::Assistant {
            self.response = message.read("id").filter(|id: &Arc<str>| !id.is_empty());
        }
        for block in message.read::<Vec<&RawValue>>("content").unwrap_or_default() {
            let Ok(block) = RawObject::parse(block.get()) else { continue };
            match block.get("type").map(RawValue::get) {
                Some(r#""tool_use""#) => self.asks.extend(block.read::<Arc<str>>("id")),
                Some(r#""tool_result""#) => self.answers.extend(block.read::<Arc<str>>("tool_use_id")),
                _ => {}
            }
        }
    }
}
