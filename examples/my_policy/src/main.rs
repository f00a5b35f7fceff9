//! `evenhand` with one more policy.

fn main() -> std::process::ExitCode {
    evenhand::cli().policy(my_policy::REGISTRATION).main()
}
