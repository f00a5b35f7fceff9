//! Options of a study that change nothing under its policies: notes, because scripts try policies in turn with the same
//! options.

use evenhand_policies::{Order, Registry, SITE_RULE};
use evenhand_study::LOGGED;

use crate::arguments::StudyArgs;
use crate::output::console::Console;

/// Prints a note on each option that changes nothing.
pub(super) fn note_options_without_effect(
    args: &StudyArgs,
    policies: &[String],
    registry: &Registry,
    console: &Console,
) {
    let remembers = policies.iter().any(|name| registry.get(name).is_ok_and(|registration| registration.needs_decay));
    let decay = [("--delta", &args.delta), ("--half-life", &args.half_life)].into_iter().find(|(_, v)| !v.is_empty());
    if let Some((option, _)) = decay.filter(|_| !remembers) {
        let why = match policies.iter().any(|name| name == SITE_RULE.name) {
            true => {
                "the policy site forgets as slurm.conf says (PriorityDecayHalfLife), and no other one discounts past use"
            }
            false => "no policy of --policy discounts past use",
        };
        console.note(&format!("{option} changes nothing: {why}."));
    }
    if args.order != Order::default() && !remembers {
        console.note("--order changes nothing: no policy of --policy remembers past use.");
    }
    let goes_by_weights =
        |name: &String| name != LOGGED && registry.get(name).is_ok_and(|policy| !policy.ignores_weights);
    if args.weights.is_some() && !policies.iter().any(goes_by_weights) {
        console.note(
            "--weights changes no wait: no policy of --policy goes by users' weights; the division of users into classes \
             does. `evenhand policies` lists others.",
        );
    }
}
