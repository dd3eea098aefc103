//! Here-documents: their text begins after the line that names them.

use super::{Document, Scanner};

impl Scanner<'_, '_> {
    pub(super) fn end_line(&mut self) {
        self.end_word();
        if self.top().in_test {
            return;
        }
        if !self.top().in_pattern {
            // A line may go on behind `&&`, `||` and `|`.
            let has_command = !self.top().words.is_empty();
            self.end_command();
            self.end_chain();
            self.top().is_uncertain &= !has_command;
        }
        let documents = std::mem::take(&mut self.top().documents);
        for document in documents {
            self.read_document(&document);
        }
    }

    fn read_document(&mut self, document: &Document) {
        let mut body = String::new();
        let mut is_closed = false;
        while self.at < self.text.len() && !is_closed {
            let rest = &self.text[self.at..];
            let length = rest.find('\n').unwrap_or(rest.len());
            let line =
                if document.strips_tabs { rest[..length].trim_start_matches('\t') } else { &rest[..length] };
            is_closed = line == document.end;
            // Inside a substitution bash goes on behind the end if a parenthesis follows in the line.
            if !is_closed && self.levels.len() > 1 && line.starts_with(&document.end) && line.contains(')') {
                self.walk.note_unseen("a here document has an unusual delimiter");
                self.at += length - line.len() + document.end.len();
                break;
            }
            if !is_closed {
                body.push_str(line);
                body.push('\n');
            }
            self.at += (length + 1).min(rest.len());
        }
        if !is_closed && self.at >= self.text.len() {
            self.walk.note_unseen("a here document is not closed");
        }
        let places = self.top().places.clone();
        if document.is_live {
            self.walk.substitutions(&body, &places);
        }
        // What is for no single command is for those of a group.
        self.walk.taken_in(&body, document.input.unwrap_or(self.walk.input), &places);
        for name in &document.keeps {
            self.walk.made.file(name, Some(&body), &places);
        }
    }
}
