//! The transcript: an append-only list of messages that is serialised as it grows.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::{BlockKind, Message, Role};

/// The conversation, with its JSON.
///
/// A message is serialised once, when it is pushed. Pieces of JSON live in [`Segment`]s that are merged as
/// they grow, so that a transcript of any length has few of them; cloning a transcript shares them. The
/// concatenation of all segments, without its first byte (a comma), is the inside of the `messages` array of
/// the Messages API, with neighbouring messages of one role joined.
///
/// ```
/// use windlass_protocol::{Block, Message, MessageId, Origin, Transcript};
/// let mut transcript = Transcript::default();
/// transcript.push(Message::user(MessageId(1), Origin::Prompt, vec![Block::text("hi")]).into());
/// assert_eq!(transcript.to_json(), r#"[{"role":"user","content":[{"type":"text","text":"hi"}]}]"#);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    segments: Vec<Arc<Segment>>,
    len: usize,
}

/// A run of neighbouring messages and their JSON.
#[derive(Clone, Debug)]
pub struct Segment {
    messages: Vec<Arc<Message>>,
    json: Bytes,
    /// For each message, where in `json` the brace stands that closes its last block.
    ends: Vec<Option<usize>>,
}

/// Segments of this size are not merged any further: one write moves about as much.
const SEGMENT_BYTES_MAX: usize = 256 * 1024;

/// What closes a message: the end of its block list and of the message.
const CLOSE: &[u8] = b"]}";

impl Transcript {
    /// Appends a message.
    pub fn push(&mut self, message: Arc<Message>) {
        let joins = self.last().is_some_and(|last| last.role == message.role);
        if joins {
            self.reopen();
        }
        self.segments.push(Arc::new(Segment::of(message, joins)));
        self.len += 1;
        self.merge_tail();
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The messages, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.segments.iter().flat_map(|segment| &segment.messages)
    }

    /// The newest message.
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.segments.last().and_then(|segment| segment.messages.last())
    }

    /// The first `len` messages. What is serialised of them is shared, but for the last piece.
    #[must_use]
    pub fn prefix(&self, len: usize) -> Self {
        if len >= self.len {
            return self.clone();
        }
        // A piece is taken whole if its last message is complete in it: the next one has another role.
        let (mut whole, mut taken, mut seen) = (0, 0, 0);
        for (place, pair) in self.segments.windows(2).enumerate() {
            seen += pair[0].messages.len();
            if seen > len {
                break;
            }
            let role = |message: Option<&Arc<Message>>| message.map(|message| message.role);
            if role(pair[0].messages.last()) != role(pair[1].messages.first()) {
                (whole, taken) = (place + 1, seen);
            }
        }
        let mut prefix = Self { segments: self.segments[..whole].to_vec(), len: taken };
        let rest = self.segments[whole..].iter().flat_map(|segment| &segment.messages);
        prefix.extend(rest.take(len - taken).cloned());
        prefix
    }

    /// The serialised pieces, oldest first.
    pub fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// The whole as a JSON array. For tests and exports; requests are built from the segments.
    pub fn to_json(&self) -> String {
        let mut json = Vec::with_capacity(2 + self.segments.iter().map(|s| s.json.len()).sum::<usize>());
        json.push(b'[');
        for segment in &self.segments {
            json.extend_from_slice(&segment.json);
        }
        if json.len() > 1 {
            json.remove(1);
        }
        json.push(b']');
        String::from_utf8_lossy(&json).into_owned()
    }

    /// Takes the closing of the last message off again, so that the next one can join it.
    fn reopen(&mut self) {
        let Some(last) = self.segments.pop() else { return };
        let segment = Arc::unwrap_or_clone(last);
        let json = segment.json.slice(..segment.json.len() - CLOSE.len());
        self.segments.push(Arc::new(Segment { json, ..segment }));
    }

    /// Merges the newest segments while they are of similar size: each byte moves a logarithmic number of times.
    fn merge_tail(&mut self) {
        while let [.., older, newer] = &self.segments[..] {
            let together = older.json.len() + newer.json.len();
            if newer.json.len() * 2 < older.json.len() || together > SEGMENT_BYTES_MAX {
                return;
            }
            let merged = Arc::new(Segment::merge(older, newer));
            self.segments.truncate(self.segments.len() - 2);
            self.segments.push(merged);
        }
    }
}

impl Extend<Arc<Message>> for Transcript {
    fn extend<I: IntoIterator<Item = Arc<Message>>>(&mut self, messages: I) {
        messages.into_iter().for_each(|message| self.push(message));
    }
}

impl FromIterator<Arc<Message>> for Transcript {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        let mut transcript = Self::default();
        transcript.extend(messages);
        transcript
    }
}

impl Segment {
    /// The JSON of these messages. It begins with a comma.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The messages.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Where in [`Segment::json`] further fields of the last block of message `index` can be inserted (with a
    /// leading comma); `None` if that block takes no cache marker.
    pub fn last_block_end(&self, index: usize) -> Option<usize> {
        self.ends.get(index).copied().flatten()
    }

    fn of(message: Arc<Message>, should_join: bool) -> Self {
        let size: usize = message.blocks.iter().map(|block| block.json().len() + 1).sum();
        let mut json = BytesMut::with_capacity(size + 40);
        json.extend_from_slice(match (should_join, message.role) {
            (true, _) => b",",
            (false, Role::User) => br#",{"role":"user","content":["#,
            (false, Role::Assistant) => br#",{"role":"assistant","content":["#,
        });
        for (index, block) in message.blocks.iter().enumerate() {
            if index > 0 {
                json.extend_from_slice(b",");
            }
            json.extend_from_slice(block.json().as_bytes());
        }
        let end = message.blocks.last().filter(|block| takes_marker(block.kind())).map(|_| json.len() - 1);
        json.extend_from_slice(CLOSE);
        Self { messages: vec![message], json: json.freeze(), ends: vec![end] }
    }

    fn merge(older: &Self, newer: &Self) -> Self {
        let mut json = BytesMut::with_capacity(older.json.len() + newer.json.len());
        json.extend_from_slice(&older.json);
        json.extend_from_slice(&newer.json);
        let offset = older.json.len();
        let moved = newer.ends.iter().map(|end| end.map(|end| end + offset));
        Self {
            messages: older.messages.iter().chain(&newer.messages).cloned().collect(),
            json: json.freeze(),
            ends: older.ends.iter().copied().chain(moved).collect(),
        }
    }
}

/// The API refuses cache markers on reasoning and on empty text.
fn takes_marker(kind: &BlockKind) -> bool {
    match kind {
        BlockKind::Text(text) => !text.trim().is_empty(),
        BlockKind::Thinking | BlockKind::RedactedThinking | BlockKind::Other(_) => false,
        BlockKind::ToolUse(_) | BlockKind::ToolResult { .. } | BlockKind::Image | BlockKind::Document => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, MessageId, Origin};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn message(role: Role, texts: &[String]) -> Arc<Message> {
        let blocks = texts.iter().map(|text| Block::text(text)).collect();
        Arc::new(Message::new(MessageId(0), role, Origin::Prompt, blocks))
    }

    /// The plain way to say the same: join neighbours of one role, then serialise everything.
    fn plain(messages: &[Arc<Message>]) -> Value {
        let mut joined: Vec<(Role, Vec<Value>)> = Vec::new();
        for message in messages {
            let blocks = message.blocks.iter().map(|b| serde_json::from_str(b.json()).unwrap());
            match joined.last_mut() {
                Some((role, list)) if *role == message.role => list.extend(blocks),
                _ => joined.push((message.role, blocks.collect())),
            }
        }
        let name = |role| if role == Role::User { "user" } else { "assistant" };
        joined.into_iter().map(|(role, content)| json!({"role": name(role), "content": content})).collect()
    }

    proptest! {
        #[test]
        fn segments_say_what_the_messages_say(
            list in prop::collection::vec((any::<bool>(), prop::collection::vec(".{0,40}", 1..4)), 0..60)
        ) {
            let messages: Vec<_> = list.iter()
                .map(|(user, texts)| message(if *user { Role::User } else { Role::Assistant }, texts))
                .collect();
            let mut transcript = Transcript::default();
            for message in &messages {
                let before = transcript.clone();
                transcript.push(message.clone());
                prop_assert_eq!(before.len() + 1, transcript.len());
            }
            let json: Value = serde_json::from_str(&transcript.to_json()).unwrap();
            prop_assert_eq!(json, plain(&messages));
            prop_assert!(transcript.iter().zip(&messages).all(|(a, b)| Arc::ptr_eq(a, b)));
            for len in 0..=messages.len() {
                let prefix = transcript.prefix(len);
                prop_assert_eq!(prefix.len(), len);
                let json: Value = serde_json::from_str(&prefix.to_json()).unwrap();
                prop_assert_eq!(json, plain(&messages[..len]));
            }
            for segment in transcript.segments() {
                for index in 0..segment.messages().len() {
                    if let Some(end) = segment.last_block_end(index) {
                        prop_assert_eq!(segment.json()[end], b'}');
                    }
                }
            }
        }
    }

    #[test]
    fn a_shared_transcript_does_not_see_later_messages() {
        let mut transcript: Transcript = [message(Role::User, &["a".into()])].into_iter().collect();
        let before = transcript.clone();
        transcript.push(message(Role::User, &["b".into()]));
        assert_eq!(before.to_json(), r#"[{"role":"user","content":[{"type":"text","text":"a"}]}]"#);
    }

    #[test]
    fn a_thousand_messages_are_a_handful_of_segments() {
        let text = "x".repeat(1000);
        let transcript: Transcript = (0..1000)
            .map(|n| {
                message(if n % 2 == 0 { Role::User } else { Role::Assistant }, std::slice::from_ref(&text))
            })
            .collect();
        assert!(transcript.segments().len() < 20, "{}", transcript.segments().len());
    }
}
