//! What the templates of all pages share: the template engine's settings and the style sheet.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior};

use crate::ReportError;

/// The style sheet of every page; each page adds its own rules and those of the figures.
pub(crate) const PAGE_STYLE: &str = include_str!("../assets/page.css");

/// Returns a template environment in which a line that holds only a block leaves no empty line and an
/// undefined variable is an error.
pub(crate) fn environment() -> Result<Environment<'static>, ReportError> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    Ok(environment)
}
