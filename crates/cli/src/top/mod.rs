//! `evenhand top`: the running agent's view in a terminal.

mod view;

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use self::view::View;
use crate::agent::{TopArgs, status};
use crate::console::Console;
use crate::failure::Failure;

/// How often the agent is asked.
const EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &TopArgs, console: &Console) -> Result<(), Failure> {
    let first = status(&args.socket)?;
    if console.is_json() {
        return console.json(&first);
    }
    let mut view = View::new(first);
    if args.once {
        return console.result(&view.text(100, 40));
    }
    let failed = |e: std::io::Error| Failure::Environment(format!("the terminal: {e}"));
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let ended = (|| -> std::io::Result<()> {
        let mut asked = Instant::now();
        loop {
            terminal.draw(|frame| view.draw(frame))?;
            if event::poll(EVERY.saturating_sub(asked.elapsed()))?
                && let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
            {
                match key.code {
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Down | KeyCode::Char('j') => view.move_by(1),
                    KeyCode::Up | KeyCode::Char('k') => view.move_by(-1),
                    KeyCode::PageDown => view.move_by(10),
                    KeyCode::PageUp => view.move_by(-10),
                    _ => {}
                }
            }
            if asked.elapsed() >= EVERY {
                asked = Instant::now();
                // An agent that is being restarted comes back; what was seen last stays until then.
                view.take_in(status(&args.socket).map_err(|failure| failure.to_string()));
            }
        }
    })();
    ratatui::restore();
    ended.map_err(failed)
}
