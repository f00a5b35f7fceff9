//! The command `evenhand`, with the built-in policies.

fn main() -> std::process::ExitCode {
    evenhand::cli().main()
}
