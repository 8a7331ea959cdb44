//! Operations in Python: loading a package, its processes, and its tasks.

mod batches;
pub mod instrument;
mod launch;
mod operation;

use crate::environment::{Description, Environment};
use crate::error::ExternalError;
use crate::identity::{CONTRACT, Identity};
use crate::manifest::{Declaration, Manifest, Program};
use crate::pool::{Launch, Pool};
use launch::PythonLaunch;
use operation::PythonOperation;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Setup and variables of a kind of process.
type Kind<'a> = (Option<&'a str>, &'a BTreeMap<String, String>);

/// A declaration with its function.
struct Function<'a> {
    declaration: &'a Declaration,
    function: &'a str,
    setup: Option<&'a str>,
}

impl Function<'_> {
    fn module(&self) -> &str {
        module_of(self.function)
    }

    /// Returns the modules whose imports are part of the identity.
    fn modules(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.module()).chain(self.setup.map(module_of))
    }
}

fn module_of(function: &str) -> &str {
    function.split(':').next().unwrap_or(function)
}

/// Loads the Python operations of a manifest.
pub(crate) fn load(
    manifest: &Manifest,
    environment: &Environment,
    pool: &Arc<Pool>,
) -> Result<Vec<(PythonOperation, Identity)>, ExternalError> {
    let functions: Vec<Function<'_>> = manifest.operations.iter().filter_map(function).collect();
    if functions.is_empty() {
        return Ok(Vec::new());
    }
    let mut modules: Vec<&str> = functions.iter().flat_map(Function::modules).collect();
    modules.sort_unstable();
    modules.dedup();
    // The modules of a distribution are known by its list of files.
    let (own, modules) = match &manifest.distribution {
        Some(distribution) => (std::slice::from_ref(distribution), &[][..]),
        None => (&[][..], &modules[..]),
    };
    let required = manifest.requires.iter().map(|required| &required.distribution);
    let requires: Vec<String> = own.iter().chain(required).cloned().collect();
    let description = environment.describe(&manifest.folder, &requires, modules)?;
    check_versions(manifest, environment, &description)?;
    for function in functions.iter().filter(|_| manifest.distribution.is_none()) {
        if let Some(module) = function.modules().find(|module| files_of(&description, module).is_none()) {
            return Err(ExternalError::NoModule {
                manifest: manifest.file.clone(),
                operation: function.declaration.name,
                module: module.to_owned(),
                folder: manifest.folder.clone(),
            });
        }
    }
    // One kind of process for each setup and its variables: a process calls its setup once.
    let mut kinds: BTreeMap<Kind<'_>, Vec<&Function<'_>>> = BTreeMap::new();
    for function in &functions {
        kinds.entry((function.setup, &function.declaration.variables)).or_default().push(function);
    }
    let mut operations = Vec::new();
    for ((setup, variables), members) in kinds {
        let mut files = BTreeMap::new();
        for module in members.iter().flat_map(|function| function.modules()) {
            files.extend(files_of(&description, module).into_iter().flatten());
        }
        let of_launch: Vec<(Declaration, String)> =
            members.iter().map(|f| (f.declaration.clone(), f.function.to_owned())).collect();
        let allowed = description.distributions.iter().flat_map(|distribution| distribution.tops.clone());
        let launch = PythonLaunch::new(launch::Setup {
            interpreter: environment.interpreter.clone(),
            folder: manifest.folder.clone(),
            is_installed: manifest.distribution.is_some(),
            files,
            allowed: allowed.collect(),
            sources: description.distributions.iter().filter_map(|of| of.source.clone()).collect(),
            operations: of_launch,
            setup: setup.map(str::to_owned),
            variables: variables.clone(),
        })?;
        let launch: Arc<dyn Launch> = Arc::new(launch);
        for (index, function) in members.iter().enumerate() {
            let identity = identity(manifest, function, &description)?;
            let operation = PythonOperation::new(function.declaration, &identity, index, &launch, pool);
            operations.push((operation, identity));
        }
    }
    Ok(operations)
}

/// Checks the versions of the required distributions.
fn check_versions(
    manifest: &Manifest,
    environment: &Environment,
    description: &Description,
) -> Result<(), ExternalError> {
    let mut found = Vec::new();
    let mut needed = Vec::new();
    for requirement in &manifest.requires {
        let mut installed = description.distributions.iter().filter(|of| requirement.is_of(&of.name));
        if let Some(installed) = installed.find(|of| !requirement.allows(&of.version)) {
            found.push(format!("{} {}", installed.name, installed.version));
            needed.push(requirement.to_string());
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let (manifest, interpreter) = (manifest.file.clone(), environment.interpreter.clone());
    Err(ExternalError::Versions { interpreter, manifest, found, needed })
}

fn function(declaration: &Declaration) -> Option<Function<'_>> {
    match &declaration.program {
        Program::Python { function, setup } => {
            Some(Function { declaration, function, setup: setup.as_deref() })
        }
        Program::Command { .. } => None,
    }
}

/// Returns the files that a module of the package imports. `None` for a module that is not in the package.
fn files_of(description: &Description, module: &str) -> Option<BTreeMap<String, PathBuf>> {
    description.modules.get(module).filter(|files| files.contains_key(module)).cloned()
}

/// Returns the components that determine the results of an operation.
fn identity(
    manifest: &Manifest,
    function: &Function<'_>,
    description: &Description,
) -> Result<Identity, ExternalError> {
    let mut identity = Identity::default();
    identity.add("contract", CONTRACT.to_string());
    identity.add(description.implementation.clone(), description.version.clone());
    identity.add("platform", description.platform.clone());
    identity.add("manifest entry", function.declaration.entry.clone());
    if function.declaration.depends_on_gpu() {
        identity.add_gpu();
    }
    for distribution in &description.distributions {
        identity.add(distribution.name.clone(), format!("{} {}", distribution.version, distribution.record));
    }
    let modules = function.modules().filter_map(|module| files_of(description, module));
    for file in modules.flat_map(BTreeMap::into_values).collect::<std::collections::BTreeSet<_>>() {
        identity.add_file(&manifest.folder, &file)?;
    }
    for file in &function.declaration.files {
        identity.add_file(&manifest.folder, file)?;
    }
    Ok(identity)
}
