//! `evenhand top`: the running agent's view in a terminal.

mod screen;

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use self::screen::Screen;
use crate::arguments::TopArgs;
use crate::failure::Failure;
use crate::output::console::Console;
use crate::verbs::agent::query_status;

/// Interval at which the status is queried.
const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &TopArgs, console: &Console) -> Result<(), Failure> {
    let first = query_status(&args.socket)?;
    if console.is_json() {
        return console.json(&first);
    }
    let mut screen = Screen::new(first);
    if args.once {
        return console.result(&screen.text(100, 40));
    }
    let failed = |e: std::io::Error| Failure::Environment(format!("the terminal: {e}"));
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let ended = (|| -> std::io::Result<()> {
        let mut queried = Instant::now();
        loop {
            terminal.draw(|frame| screen.draw(frame))?;
            if event::poll(INTERVAL.saturating_sub(queried.elapsed()))?
                && let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
            {
                match key.code {
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Down | KeyCode::Char('j') => screen.move_by(1),
                    KeyCode::Up | KeyCode::Char('k') => screen.move_by(-1),
                    KeyCode::PageDown => screen.move_by(10),
                    KeyCode::PageUp => screen.move_by(-10),
                    _ => {}
                }
            }
            if queried.elapsed() >= INTERVAL {
                queried = Instant::now();
                // Keeps the last status on the screen while the agent restarts.
                screen.set_status(query_status(&args.socket).map_err(|failure| failure.to_string()));
            }
        }
    })();
    ratatui::restore();
    ended.map_err(failed)
}
