//! The program `pleach`: the command line with the built-in operations.

fn main() -> std::process::ExitCode {
    pleach::run(&pleach::builtin_operations())
}
