//! Where words and lines end, told from where text stands on the page.

/// A gap wider than this, in units of the font size, is a space between words.
const SPACE_GAP: f64 = 0.2;
/// A step across the line larger than this begins a new line.
const LINE_STEP: f64 = 0.5;
/// A step larger than this leaves an empty line.
const PARAGRAPH_STEP: f64 = 1.9;
/// Text of one page beyond this is left out.
const TEXT_BYTES_MAX: usize = 1024 * 1024;

#[derive(Clone, Copy, Debug)]
pub(super) struct PagePoint {
    pub(super) x: f64,
    pub(super) y: f64,
}

#[derive(Debug)]
pub(super) struct TextRun {
    pub(super) text: String,
    pub(super) start: PagePoint,
    pub(super) end: PagePoint,
    /// Font size as it appears on the page.
    pub(super) size: f64,
}

/// Strings runs together in the order in which the page draws them.
#[derive(Debug, Default)]
pub(super) struct PageLayout {
    text: String,
    last: Option<TextRun>,
}

impl PageLayout {
    pub(super) fn push(&mut self, run: &TextRun) {
        if run.text.is_empty() || self.text.len() > TEXT_BYTES_MAX {
            return;
        }
        if let Some(last) = &self.last {
            let between = separator(last, run);
            let doubled = between == " " && (self.text.ends_with(' ') || run.text.starts_with(' '));
            if !doubled {
                self.text.push_str(between);
            }
        }
        self.text.push_str(&run.text);
        self.last = Some(TextRun { text: String::new(), ..*run });
    }

    pub(super) fn finish(self) -> String {
        let lines: Vec<&str> = self.text.lines().map(str::trim_end).collect();
        lines.join("\n").trim().to_owned()
    }
}

/// What separates two runs.
fn separator(last: &TextRun, next: &TextRun) -> &'static str {
    let size = last.size.max(next.size).max(0.1);
    let (along_x, along_y) = direction(last);
    let (dx, dy) = (next.start.x - last.end.x, next.start.y - last.end.y);
    let forward = dx * along_x + dy * along_y;
    let across = (dx * along_y - dy * along_x).abs();
    let turned = {
        let (x, y) = direction(next);
        x * along_x + y * along_y < 0.9
    };
    if across > PARAGRAPH_STEP * size {
        "\n\n"
    } else if across > LINE_STEP * size || turned || forward < -size {
        "\n"
    } else if forward > SPACE_GAP * size {
        " "
    } else {
        ""
    }
}

fn direction(run: &TextRun) -> (f64, f64) {
    let (x, y) = (run.end.x - run.start.x, run.end.y - run.start.y);
    let length = x.hypot(y);
    if length < 1e-6 { (1.0, 0.0) } else { (x / length, y / length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_steps() {
        let check = |runs: &[(&str, f64, f64)], expected: &str| {
            let mut layout = PageLayout::default();
            for (text, x, y) in runs {
                #[expect(clippy::cast_precision_loss, reason = "short texts")]
                let width = text.len() as f64 * 5.0;
                layout.push(&TextRun {
                    text: (*text).to_owned(),
                    start: PagePoint { x: *x, y: *y },
                    end: PagePoint { x: x + width, y: *y },
                    size: 10.0,
                });
            }
            assert_eq!(layout.finish(), expected);
        };
        check(&[("ab", 0.0, 0.0), ("cd", 10.5, 0.0)], "abcd");
        check(&[("ab", 0.0, 0.0), ("cd", 13.0, 0.0)], "ab cd");
        check(&[("ab ", 0.0, 0.0), ("cd", 18.0, 0.0)], "ab cd");
        check(&[("ab", 0.0, 0.0), ("cd", 0.0, -12.0)], "ab\ncd");
        check(&[("ab", 0.0, 0.0), ("cd", 0.0, -30.0)], "ab\n\ncd");
        check(&[("ab", 50.0, 0.0), ("cd", 0.0, 0.0)], "ab\ncd");
        check(&[("x", 0.0, 0.0), ("2", 5.0, 3.0)], "x2");
    }
}
