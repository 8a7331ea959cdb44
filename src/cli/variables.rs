//! Environment variables in messages about options that are missing.

/// Returns the part of a message that names the environment variables for missing options.
pub(super) fn instead_of(message: &str) -> String {
    let grammar = super::grammar();
    let called = std::env::args().nth(1).and_then(|name| grammar.find_subcommand(name));
    let variable = |argument: &clap::Arg| {
        let option = format!("--{} ", argument.get_long()?);
        let variable = argument.get_env()?.to_str()?;
        message.contains(&option).then(|| variable.to_owned())
    };
    let arguments = called.into_iter().flat_map(clap::Command::get_arguments);
    let variables: Vec<String> = arguments.filter_map(variable).collect();
    match variables.is_empty() {
        true => String::new(),
        false => format!("; or set {}", variables.join(" and ")),
    }
}
