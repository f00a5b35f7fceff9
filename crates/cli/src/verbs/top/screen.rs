//! The screen of `top`: a status and a selected user.

use evenhand_agent::Status;
use evenhand_enforcers::cgroups::Resource;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState, Wrap};

use crate::output::table::printable;
use crate::verbs::agent::{format_amount, headline, workload_cells};

/// The state of the screen.
pub(super) struct Screen {
    status: Status,
    /// Error of the last query, if it failed: the status is old.
    query_error: Option<String>,
    /// Index of the user that the lower part explains.
    selected: usize,
}

impl Screen {
    pub(super) fn new(status: Status) -> Screen {
        Screen { status, query_error: None, selected: 0 }
    }

    /// Sets a new status, or the error of a query; the selection stays with its user.
    pub(super) fn set_status(&mut self, status: Result<Status, String>) {
        match status {
            Ok(status) => {
                let name = self.status.users.get(self.selected).map(|user| user.name.clone());
                let place = status.users.iter().position(|user| Some(&user.name) == name.as_ref());
                self.selected = place.unwrap_or(self.selected);
                (self.status, self.query_error) = (status, None);
                self.move_by(0);
            }
            Err(why) => self.query_error = Some(why),
        }
    }

    /// Moves the selection.
    pub(super) fn move_by(&mut self, users: isize) {
        let last = self.status.users.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(users).min(last);
    }

    /// Draws the screen.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let why = self.why();
        // The number of lines of the wrapped text, and one more, because wrapping does not cut words.
        let width = usize::from(frame.area().width.saturating_sub(2)).max(1);
        let wrapped: usize = why.lines().map(|line| line.chars().count().div_ceil(width).max(1)).sum();
        let lower = (wrapped as u16).saturating_add(3).clamp(3, 14);
        let areas = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(6),
            Constraint::Min(4),
            Constraint::Min(4),
            Constraint::Length(lower),
            Constraint::Length(1),
        ]);
        let [head, resources, users, workloads, reason, foot] = areas.areas(frame.area());
        self.head(frame, head);
        self.resources(frame, resources);
        self.users(frame, users);
        self.workloads(frame, workloads);
        let title =
            self.status.users.get(self.selected).map_or("why".into(), |user| format!("why {}", printable(&user.name)));
        let why = Paragraph::new(why).wrap(Wrap { trim: false }).block(Block::bordered().title(title));
        frame.render_widget(why, reason);
        frame.render_widget(Line::from("up/down: another user   q: quit").dim(), foot);
    }

    fn why(&self) -> String {
        let user = self.status.users.get(self.selected);
        user.and_then(|user| self.status.why(&user.name)).unwrap_or_else(|| "no user has workloads".into())
    }

    fn head(&self, frame: &mut Frame<'_>, area: Rect) {
        let second = match (&self.query_error, self.status.warnings.first()) {
            (Some(why), _) => Line::from(why.clone()).red(),
            (None, Some(remark)) => Line::from(printable(remark)).yellow(),
            (None, None) => {
                let totals = self.status.totals;
                let took = format!(
                    "update {}, {} values {}, {} errors; the last took {:.2} ms",
                    self.status.updates,
                    totals.changes,
                    if self.status.applied { "written" } else { "to be written" },
                    totals.errors,
                    1e3 * totals.update_s
                );
                Line::from(took).dim()
            }
        };
        frame.render_widget(Paragraph::new(vec![Line::from(headline(&self.status)).bold(), second]), area);
    }

    fn resources(&self, frame: &mut Frame<'_>, area: Rect) {
        const WIDTH: usize = 30;
        let row = |control: Resource| {
            let of = self.status.resources.get(control.name())?;
            let part = if of.supply > 0.0 { (of.used / of.supply).clamp(0.0, 1.0) } else { 0.0 };
            let full = (part * WIDTH as f64).round() as usize;
            let bar = format!("{}{}", "#".repeat(full), ".".repeat(WIDTH - full));
            let bar = if of.bottleneck { Span::from(bar).red() } else { Span::from(bar).green() };
            let supply = if of.supply > 0.0 { format_amount(control, of.supply) } else { "unknown".into() };
            let by = of.enforced_by.clone().unwrap_or_else(|| "not divided".into());
            Some(Row::new(vec![
                Cell::from(control.name()),
                Cell::from(bar),
                Cell::from(format!("{} of {supply}", format_amount(control, of.used))),
                Cell::from(if of.bottleneck { "bottleneck" } else { "" }).red(),
                Cell::from(by).dim(),
            ]))
        };
        let widths = [5, WIDTH as u16, 24, 10, 40].map(Constraint::Length);
        let table = Table::new(Resource::ALL.into_iter().filter_map(row), widths)
            .block(Block::bordered().title(format!("{} has", printable(&self.status.node))));
        frame.render_widget(table, area);
    }

    fn users(&self, frame: &mut Frame<'_>, area: Rect) {
        let names: Vec<&String> =
            self.status.users.first().map(|user| user.shares.keys().collect()).unwrap_or_default();
        let header = ["user".to_owned(), "heaviness".into(), "workloads".into()];
        let header = header.into_iter().chain(names.iter().map(|name| format!("{name} has/due %")));
        let rows = self.status.users.iter().map(|user| {
            let shares = names.iter().map(|name| {
                let part = |of: &std::collections::BTreeMap<String, f64>| 100.0 * of.get(*name).copied().unwrap_or(0.0);
                let (has, due) = (part(&user.shares), part(&user.entitlements));
                let cell = Cell::from(format!("{has:.1}/{due:.1}"));
                if has > due + 1.0 { cell.red() } else { cell }
            });
            let first = [printable(&user.name), format!("{:+.3}", user.heaviness), user.workloads.to_string()];
            Row::new(first.into_iter().map(Cell::from).chain(shares).collect::<Vec<_>>())
        });
        let widths = [Constraint::Min(12), Constraint::Length(9), Constraint::Length(9)];
        let widths: Vec<Constraint> = widths.into_iter().chain(names.iter().map(|_| Constraint::Length(15))).collect();
        let table = Table::new(rows, widths)
            .header(Row::new(header.collect::<Vec<_>>()).bold())
            .row_highlight_style(Style::new().reversed())
            .block(Block::bordered().title("users, the heaviest first"));
        let mut state = TableState::new().with_selected((!self.status.users.is_empty()).then_some(self.selected));
        frame.render_stateful_widget(table, area, &mut state);
    }

    fn workloads(&self, frame: &mut Frame<'_>, area: Rect) {
        let header = ["workload", "user", "h_p", "weight", "cpu", "mem", "disk/s", "net/s", "written"];
        let chosen = self.status.users.get(self.selected).map(|user| &user.name);
        // The workloads of the selected user are first.
        let (mine, others): (Vec<_>, Vec<_>) =
            self.status.workloads.iter().partition(|workload| Some(&workload.owner) == chosen);
        let rows = mine.iter().map(|workload| Row::new(workload_cells(workload)).bold());
        let rows = rows.chain(others.iter().map(|workload| Row::new(workload_cells(workload))));
        let widths = [Constraint::Min(14), Constraint::Min(8)].into_iter();
        let widths = widths.chain([7, 7, 6, 10, 10, 10].map(Constraint::Length)).chain([Constraint::Min(20)]);
        let elsewhere = self.status.users.iter().map(|user| u64::from(user.workloads)).sum::<u64>();
        let elsewhere = elsewhere.saturating_sub(self.status.workloads.len() as u64);
        let table = Table::new(rows, widths.collect::<Vec<_>>()).header(Row::new(header.to_vec()).bold()).block(
            Block::bordered().title(format!("workloads on {}; {elsewhere} elsewhere", printable(&self.status.node))),
        );
        frame.render_widget(table, area);
    }

    /// Returns the screen as text of this width and height.
    pub(super) fn text(&mut self, width: u16, height: u16) -> String {
        let backend = ratatui::backend::TestBackend::new(width, height);
        let Ok(mut terminal) = ratatui::Terminal::new(backend);
        let Ok(_) = terminal.draw(|frame| self.draw(frame));
        let buffer = terminal.backend().buffer();
        let line = |y: u16| {
            let line: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
            line.trim_end().to_owned()
        };
        (0..height).map(line).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use evenhand_agent::{ResourceStatus, UserStatus, WorkloadStatus};

    use super::*;

    fn status() -> Status {
        let parts = |part: f64| [("cpu".to_owned(), part)].into();
        let user = |name: &str, heaviness, share| UserStatus {
            name: name.into(),
            heaviness,
            shares: parts(share),
            entitlements: parts(0.5),
            workloads: 2,
        };
        let workload = |name: &str, owner: &str| WorkloadStatus {
            name: name.into(),
            owner: owner.into(),
            path: format!("fair/{name}"),
            weight: 0.5,
            load: [("cpu".to_owned(), 1.25)].into(),
            written: [("cpu".to_owned(), 50)].into(),
            ..WorkloadStatus::default()
        };
        let cpu = ResourceStatus { supply: 2.0, used: 2.0, bottleneck: true, enforced_by: Some("cpu.weight".into()) };
        Status {
            node: "a".into(),
            metric: "deviation".into(),
            law: "integral".into(),
            applied: true,
            resources: [("cpu".to_owned(), cpu)].into(),
            users: vec![user("dora", 0.4, 0.6), user("emil", -0.4, 0.4)],
            workloads: vec![workload("d.1", "dora"), workload("e.1", "emil")],
            ..Status::default()
        }
    }

    #[test]
    fn the_screen_shows_which_user_is_heavy_and_why() {
        let mut screen = Screen::new(status());
        let text = screen.text(110, 34);
        for part in [
            "weights are written",
            "2.00 of 2.00",
            "bottleneck",
            "dora",
            "60.0/50.0",
            "cpu=50",
            "why dora",
            "workloads on a; 2 elsewhere",
            "used up on a: cpu",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        screen.move_by(1);
        assert!(screen.text(110, 34).contains("why emil"));
        screen.move_by(9);
        screen.set_status(Ok(Status { users: status().users.into_iter().rev().collect(), ..status() }));
        // The selection stays with emil.
        assert!(screen.text(110, 34).contains("why emil"));
        screen.set_status(Err("no agent answers".into()));
        assert!(screen.text(110, 34).contains("no agent answers"));
        screen.set_status(Ok(Status::default()));
        assert!(screen.text(110, 34).contains("no user has workloads"));
        // A very small terminal is no error.
        screen.text(3, 2);
    }
}
