//! The export as JSON: one object, a line per message.

use std::io;

use serde_json::{Value, json};

use super::{ExportForm, Out};
use crate::catalogue::SessionInfo;
use crate::history::{HistoryItem, Utterance, Who};

#[derive(Default)]
pub(super) struct JsonExport {
    begun: bool,
}

impl ExportForm for JsonExport {
    fn begin(&mut self, session: &SessionInfo, out: &mut Out<'_>) -> io::Result<()> {
        let about = session.to_json().to_string();
        write!(out.to, "{{\"session\":{},\n\"messages\":[", (out.redact)(&about))
    }

    fn item(&mut self, item: &HistoryItem, retracted: bool, out: &mut Out<'_>) -> io::Result<()> {
        let line = match item {
            HistoryItem::Said(said) => message(said, retracted, out),
            HistoryItem::Compacted(compacted) => json!({
                "type": "compacted",
                "timestamp": compacted.at_ms.map(crate::time::iso),
                "trigger": compacted.trigger,
                "tokensBefore": compacted.tokens_before,
            }),
            HistoryItem::Rewound => json!({"type": "rewound"}),
        };
        let comma = if self.begun { "," } else { "" };
        self.begun = true;
        write!(out.to, "{comma}\n{line}")
    }

    fn end(&mut self, out: &mut Out<'_>) -> io::Result<()> {
        writeln!(out.to, "\n]}}")
    }
}

fn message(said: &Utterance, retracted: bool, out: &Out<'_>) -> Value {
    let (who, tool) = match &said.who {
        Who::User => ("user", None),
        Who::Assistant => ("assistant", None),
        Who::Tool(name) => ("tool", Some(name)),
        Who::Engine => ("engine", None),
        Who::Summary => ("summary", None),
        Who::Title => ("title", None),
    };
    let message = (out.redact)(&said.message);
    let message: Value =
        serde_json::from_str(&message).unwrap_or_else(|_| Value::String(message.into_owned()));
    let mut line = json!({
        "type": "message",
        "uuid": said.uuid,
        "timestamp": said.at_ms.map(crate::time::iso),
        "who": who,
        "message": message,
    });
    if let Some(tool) = tool {
        line["tool"] = tool.as_str().into();
    }
    if retracted {
        line["retracted"] = true.into();
    }
    line
}
