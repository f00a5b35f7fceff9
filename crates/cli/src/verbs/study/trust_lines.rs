//! The lines on how far a study can be trusted.

use evenhand_study::record::StudyRecord;

/// Returns the lines, empty where the log has no starts to compare with.
pub(super) fn lines(record: &StudyRecord) -> String {
    let Some(trust) = &record.trust else { return String::new() };
    let mut text = format!("\n\nTrust ({} against what the log says happened): {}", trust.policy, trust.verdict);
    for claim in &trust.claims {
        let holds = match (claim.holds, claim.undecided) {
            (_, true) => "undecided",
            (true, _) => "trusted",
            (false, _) => "not trusted",
        };
        text.push_str(&format!("\n  {holds:<11}  {}: {}", claim.claim, claim.because));
    }
    for sentence in &trust.not_modelled {
        text.push_str(&format!("\n  {sentence}"));
    }
    text
}
