//! Builds the shell scripts that Slurm runs.

use std::path::Path;

/// Returns a text as one word of a shell, in single quotes if necessary.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:+@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Returns the script of the arrays. Its first argument is the chunk of task 0. `None` if a path is not UTF-8.
pub(super) fn task(program: &Path, dir: &Path) -> Option<String> {
    let (program, dir) = (quoted(program.to_str()?), quoted(dir.to_str()?));
    Some(format!(
        "#!/bin/sh\nexec {program} --quiet --threads \"${{SLURM_CPUS_PER_TASK:-1}}\" \
         sweep-task -- {dir} \"$(($1 + SLURM_ARRAY_TASK_ID))\"\n"
    ))
}

/// Returns the script of the job that gathers the results. `None` if a path is not UTF-8.
pub(super) fn gather(program: &Path, dir: &Path) -> Option<String> {
    let (program, dir) = (quoted(program.to_str()?), quoted(dir.to_str()?));
    Some(format!("#!/bin/sh\nexec {program} --quiet sweep gather -- {dir}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn a_shell_reads_a_quoted_text_as_one_word(text in "[ -~äß\n\t]{0,20}") {
            let output = Command::new("sh").args(["-c", &format!("printf '%s|' {}", quoted(&text))]).output().unwrap();
            prop_assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{text}|"));
        }
    }

    #[test]
    fn paths_with_blanks_and_quotes_stay_one_word() {
        let script = task(Path::new("/opt/even hand"), Path::new("/home/o'brien/a sweep")).unwrap();
        let line = script.lines().last().unwrap();
        assert!(line.contains("'/opt/even hand' --quiet") && line.contains(r"'/home/o'\''brien/a sweep'"), "{line}");
        // Run the script with a program that prints its arguments.
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("it's a program");
        std::fs::write(&program, "#!/bin/sh\nprintf '<%s>' \"$@\"\n").unwrap();
        let status = Command::new("chmod").arg("+x").arg(&program).status().unwrap();
        assert!(status.success());
        let script = task(&program, Path::new("/a b/$HOME")).unwrap();
        let output =
            Command::new("sh").args(["-c", &script, "script", "40"]).env("SLURM_ARRAY_TASK_ID", "2").output().unwrap();
        let arguments = String::from_utf8(output.stdout).unwrap();
        assert_eq!(arguments, "<--quiet><--threads><1><sweep-task><--></a b/$HOME><42>");
    }
}
