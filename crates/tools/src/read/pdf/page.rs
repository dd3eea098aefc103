//! Follows what a page draws and collects its text.

use std::collections::HashMap;
use std::rc::Rc;

use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::{self, TypedInstruction as Instruction};
use hayro_syntax::object::{Array, Dict, Name, Object, Stream};
use hayro_syntax::page::{Page, Resources};
use windlass_ports::CancellationToken;

use super::font::Font;
use super::layout::{PageLayout, PagePoint, TextRun};

/// Forms inside forms are followed this deep.
const DEPTH_MAX: usize = 8;
/// Saved states beyond this are not kept.
const STATES_MAX: usize = 256;
/// Instructions of one page, forms included; a page that has more is cut.
const INSTRUCTIONS_MAX: usize = 2_000_000;

/// The text of a page; `None` if the call was cancelled.
pub(super) fn text(page: &Page<'_>, cancel: &CancellationToken) -> Option<String> {
    let state = State { stretch: 1.0, ..State::default() };
    let mut drawing = Drawing { layout: PageLayout::default(), state, left: INSTRUCTIONS_MAX, cancel };
    drawing.follow(page.typed_operations(), page.resources(), 0)?;
    Some(drawing.layout.finish())
}

/// A transformation of the plane, as the six numbers that stand for it in a file: what becomes of the two axes, and of the origin.
#[derive(Clone, Copy)]
struct Matrix([f64; 6]);

impl Default for Matrix {
    fn default() -> Self {
        Self::shift(0.0, 0.0)
    }
}

impl Matrix {
    fn shift(x: f64, y: f64) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// This one first, then `outer`.
    fn then(self, outer: Self) -> Self {
        let (own, outer) = (self.0, outer.0);
        let turn = |at: usize| {
            let (x, y) = (own[at], own[at + 1]);
            [x * outer[0] + y * outer[2], x * outer[1] + y * outer[3]]
        };
        let (right, up, origin) = (turn(0), turn(2), turn(4));
        Self([right[0], right[1], up[0], up[1], origin[0] + outer[4], origin[1] + outer[5]])
    }

    fn origin(self) -> PagePoint {
        PagePoint { x: self.0[4], y: self.0[5] }
    }

    /// How much it enlarges heights.
    fn scale(self) -> f64 {
        self.0[2].hypot(self.0[3])
    }
}

#[derive(Clone, Default)]
struct State {
    page: Matrix,
    /// Where the next glyph stands, and where its line began.
    glyph: Matrix,
    line: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    char_space: f64,
    word_space: f64,
    stretch: f64,
    leading: f64,
    rise: f64,
}

struct Drawing<'a> {
    layout: PageLayout,
    state: State,
    left: usize,
    cancel: &'a CancellationToken,
}

/// What one stream of instructions needs besides the drawing.
struct Scope<'a, 'r> {
    resources: &'r Resources<'a>,
    fonts: HashMap<Vec<u8>, Option<Rc<Font>>>,
    saved: Vec<State>,
    depth: usize,
}

impl Drawing<'_> {
    /// `None` if the call was cancelled.
    fn follow(&mut self, mut content: TypedIter<'_>, resources: &Resources<'_>, depth: usize) -> Option<()> {
        let mut scope = Scope { resources, fonts: HashMap::new(), saved: Vec::new(), depth };
        while let Some(instruction) = content.next() {
            if self.left == 0 {
                return Some(());
            }
            self.left -= 1;
            if self.left.is_multiple_of(1024) && self.cancel.is_cancelled() {
                return None;
            }
            if let Instruction::XObject(ops::XObject(name)) = &instruction {
                self.follow_form(name, &scope)?;
            } else {
                self.perform(&instruction, &mut scope);
            }
        }
        Some(())
    }

    fn perform(&mut self, instruction: &Instruction<'_, '_>, scope: &mut Scope<'_, '_>) {
        let state = &mut self.state;
        match instruction {
            Instruction::SaveState(_) if scope.saved.len() < STATES_MAX => scope.saved.push(state.clone()),
            Instruction::RestoreState(_) => *state = scope.saved.pop().unwrap_or_else(|| state.clone()),
            Instruction::Transform(to) => {
                let numbers = [to.0, to.1, to.2, to.3, to.4, to.5].map(|number| number.as_f64());
                state.page = Matrix(numbers).then(state.page);
            }
            Instruction::BeginText(_) => state.start_line(Matrix::default()),
            Instruction::CharacterSpacing(ops::CharacterSpacing(space)) => state.char_space = space.as_f64(),
            Instruction::WordSpacing(ops::WordSpacing(space)) => state.word_space = space.as_f64(),
            Instruction::HorizontalScaling(ops::HorizontalScaling(percent)) => {
                state.stretch = percent.as_f64() / 100.0;
            }
            Instruction::TextLeading(ops::TextLeading(leading)) => state.leading = leading.as_f64(),
            Instruction::TextRise(ops::TextRise(rise)) => state.rise = rise.as_f64(),
            Instruction::TextFont(ops::TextFont(name, size)) => {
                state.size = size.as_f64();
                state.font = scope.font(name);
            }
            Instruction::NextLine(ops::NextLine(x, y)) => state.next_line(x.as_f64(), y.as_f64()),
            Instruction::NextLineAndSetLeading(ops::NextLineAndSetLeading(x, y)) => {
                state.leading = -y.as_f64();
                state.next_line(x.as_f64(), y.as_f64());
            }
            Instruction::SetTextMatrix(to) => {
                let numbers = [to.0, to.1, to.2, to.3, to.4, to.5].map(|number| number.as_f64());
                state.start_line(Matrix(numbers));
            }
            Instruction::NextLineUsingLeading(_) => state.next_line(0.0, -state.leading),
            other => self.show(other),
        }
    }

    fn show(&mut self, instruction: &Instruction<'_, '_>) {
        match instruction {
            Instruction::ShowText(ops::ShowText(string)) => self.show_string(string),
            Instruction::NextLineAndShowText(ops::NextLineAndShowText(string)) => {
                self.state.next_line(0.0, -self.state.leading);
                self.show_string(string);
            }
            Instruction::ShowTextWithParameters(ops::ShowTextWithParameters(word, char, string)) => {
                self.state.word_space = word.as_f64();
                self.state.char_space = char.as_f64();
                self.state.next_line(0.0, -self.state.leading);
                self.show_string(string);
            }
            Instruction::ShowTexts(ops::ShowTexts(items)) => self.show_items(items),
            _ => {}
        }
    }

    fn show_items(&mut self, items: &Array<'_>) {
        for item in items.iter::<Object<'_>>() {
            match item {
                Object::String(string) => self.show_string(&string),
                Object::Number(back) => {
                    let state = &mut self.state;
                    state.advance(-back.as_f64() / 1000.0 * state.size * state.stretch);
                }
                _ => {}
            }
        }
    }

    fn show_string(&mut self, string: &[u8]) {
        let Some(font) = self.state.font.clone() else { return };
        let start = self.state.position();
        let mut text = String::new();
        for glyph in font.glyphs(string) {
            text.push_str(&glyph.text);
            let state = &mut self.state;
            let space = state.char_space + if glyph.is_space { state.word_space } else { 0.0 };
            state.advance((glyph.width * state.size + space) * state.stretch);
        }
        let end = self.state.position();
        let size = (self.state.size * self.state.glyph.then(self.state.page).scale()).abs();
        self.layout.push(&TextRun { text, start, end, size });
    }

    /// A form is a drawing of its own that a page shows at some place.
    fn follow_form(&mut self, name: &Name<'_>, scope: &Scope<'_, '_>) -> Option<()> {
        let form = scope.resources.get_x_object(name).filter(|_| scope.depth < DEPTH_MAX);
        let is_form =
            |form: &Stream<'_>| form.dict().get::<Name<'_>>("Subtype").is_some_and(|name| &*name == b"Form");
        let Some(form) = form.filter(is_form) else { return Some(()) };
        let Ok(content) = form.decoded_data() else { return Some(()) };
        let saved = self.state.clone();
        if let Some(matrix) = form.dict().get::<[f32; 6]>("Matrix") {
            self.state.page = Matrix(matrix.map(f64::from)).then(self.state.page);
        }
        let own = form.dict().get::<Dict<'_>>("Resources").map(Resources::new);
        let followed =
            self.follow(TypedIter::new(&content), own.as_ref().unwrap_or(scope.resources), scope.depth + 1);
        self.state = saved;
        followed
    }
}

impl Scope<'_, '_> {
    fn font(&mut self, name: &Name<'_>) -> Option<Rc<Font>> {
        let resources = self.resources;
        let load = || resources.get_font(name).map(|dict| Rc::new(Font::new(&dict)));
        self.fonts.entry(name.to_vec()).or_insert_with(load).clone()
    }
}

impl State {
    fn start_line(&mut self, at: Matrix) {
        self.line = at;
        self.glyph = at;
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.start_line(Matrix::shift(x, y).then(self.line));
    }

    fn advance(&mut self, distance: f64) {
        self.glyph = Matrix::shift(distance, 0.0).then(self.glyph);
    }

    fn position(&self) -> PagePoint {
        Matrix::shift(0.0, self.rise).then(self.glyph).then(self.page).origin()
    }
}
