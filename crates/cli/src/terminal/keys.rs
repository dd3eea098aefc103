//! The keyboard of a terminal, key by key, and the mode that the terminal needs for it.

use std::collections::VecDeque;
use std::io::{self, Write as _};

use rustix::process::{Pid, Signal as Sent, getpid, getppid, kill_process};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcsetattr,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::standard_io::StandardInput;
use crate::terminal::line_editor::{CTRL_C, EditorEvent, LineEditor};
use crate::views::layout;

/// Turns a special character off: no key sends it.
const NO_KEY: u8 = 0;

/// Has the terminal say where a pasted text begins and ends.
const MARK_PASTES: &str = "\x1b[?2004h";
/// Has it stop that.
const MARK_NO_PASTES: &str = "\x1b[?2004l";

/// What a person types.
pub(crate) struct Keys {
    source: StandardInput,
    /// Read and not looked at yet.
    bytes: VecDeque<u8>,
    pub(crate) editor: LineEditor,
    mode: KeyMode,
    suspend: Signal,
    resume: Signal,
}

/// What comes from the keyboard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KeyboardEvent {
    Key(EditorEvent),
    /// The process was suspended and goes on: others have used the terminal meanwhile.
    Resumed,
    /// The keyboard is gone; nothing more comes. There may be something to say about it.
    Gone(Option<String>),
}

impl Keys {
    /// Must be called inside a tokio runtime with I/O. The terminal is as before when it is dropped.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            source: StandardInput::new(),
            bytes: VecDeque::new(),
            editor: LineEditor::default(),
            suspend: signal(SignalKind::from_raw(Sent::TSTP.as_raw()))?,
            resume: signal(SignalKind::from_raw(Sent::CONT.as_raw()))?,
            mode: KeyMode::enter(),
        })
    }

    /// Forgets every key that was pressed and not looked at, and gives the draft.
    pub(crate) fn take_draft(&mut self) -> String {
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        self.bytes.clear();
        self.editor.take()
    }

    /// The next key that amounts to something. Can be dropped at any point and called again: nothing is lost.
    pub(crate) async fn next(&mut self) -> KeyboardEvent {
        loop {
            while let Some(byte) = self.bytes.pop_front() {
                if let Some(typed) = self.editor.feed(byte) {
                    return KeyboardEvent::Key(typed);
                }
            }
            self.editor.drop_lone_escape();
            tokio::select! {
                _ = self.suspend.recv() => self.mode.suspend(),
                _ = self.resume.recv() => {
                    self.mode.set();
                    return KeyboardEvent::Resumed;
                }
                piece = self.source.read() => match piece {
                    Ok(piece) if piece.is_empty() => return KeyboardEvent::Gone(None),
                    Ok(piece) => {
                        // KeyboardEvent, not pasted: the end of the pasted text was lost.
                        if *piece == [CTRL_C] {
                            self.editor.is_pasting = false;
                        }
                        self.bytes.extend(piece);
                    }
                    // A terminal whose other end is gone.
                    Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                        return KeyboardEvent::Gone(None);
                    }
                    Err(error) => {
                        return KeyboardEvent::Gone(Some(format!("cannot read standard input: {error}.")));
                    }
                },
            }
        }
    }
}

/// The terminal hands over each key at once, shows none, marks pasted text, and Ctrl-C is a key like others.
///
/// One that cannot redraw lines is left alone and edits them itself. Keys that stop or suspend work as before.
struct KeyMode {
    /// As it was, and as it is now; nothing where the terminal does not say or is left alone.
    modes: Option<(Termios, Termios)>,
}

impl KeyMode {
    fn enter() -> Self {
        let before = tcgetattr(io::stdin()).ok().filter(|_| layout::can_redraw());
        let modes = before.map(|before| {
            let mut keys = before.clone();
            keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
            // Two bytes that end one line of a pasted text would look like two ends.
            keys.input_modes.remove(InputModes::ICRNL);
            keys.special_codes[SpecialCodeIndex::VMIN] = 1;
            keys.special_codes[SpecialCodeIndex::VTIME] = 0;
            keys.special_codes[SpecialCodeIndex::VINTR] = NO_KEY;
            // It would end the process without a chance to put the terminal back.
            keys.special_codes[SpecialCodeIndex::VQUIT] = NO_KEY;
            (before, keys)
        });
        let mode = Self { modes };
        mode.set();
        mode
    }

    fn set(&self) {
        self.change(MARK_PASTES, |(_, keys)| keys);
    }

    fn put_back(&self) {
        self.change(MARK_NO_PASTES, |(before, _)| before);
    }

    /// A terminal that is gone needs no mode.
    fn change(&self, pastes: &str, to: fn(&(Termios, Termios)) -> &Termios) {
        if let Some(modes) = &self.modes {
            let _ = io::stderr().write_all(pastes.as_bytes());
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, to(modes));
        }
    }

    /// Stops the process with the terminal as it was; it goes on from here.
    fn suspend(&self) {
        // Without a shell above it nobody could wake it again.
        let has_shell = getppid().is_some_and(|parent| {
            let session = session_of(getpid());
            session != Some(getpid().as_raw_pid()) && session_of(parent) == session
        });
        if !has_shell {
            return;
        }
        self.put_back();
        let _ = kill_process(getpid(), Sent::STOP);
        self.set();
    }
}

/// The session of a process; 0 where its leader is out of sight (a container), which rustix' `getsid` denies.
fn session_of(process: Pid) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in parentheses, can hold anything.
    let (_, fields) = status.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(3)?.parse().ok()
}

impl Drop for KeyMode {
    fn drop(&mut self) {
        self.put_back();
    }
}
