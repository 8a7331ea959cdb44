//! Checks names and numbers of loops and choices before they are unrolled.

use super::{Diagnostics, exports};
use crate::descriptor::{ChoiceDescriptor, EntryDescriptor, LoopDescriptor, StageDescriptor};
use crate::error::{DescriptorError, Problem};

/// Maximum iterations of a loop: each copy of its tasks is planned.
const MAX_ITERATIONS: u32 = 1000;

/// Names so far: of tasks, of loops and choices, and of regions with their writers.
struct Names<'a> {
    at: &'a Diagnostics,
    tasks: Vec<&'a str>,
    blocks: Vec<&'a str>,
    regions: Vec<(&'a str, String)>,
}

/// Checks the entries of a stage that has a loop or a choice.
pub(super) fn check(at: &Diagnostics, stage: &StageDescriptor) -> Result<(), DescriptorError> {
    let mut names = Names { at, tasks: Vec::new(), blocks: Vec::new(), regions: Vec::new() };
    for (index, input) in stage.inputs.iter().enumerate() {
        names.region(input.name(), format!("/inputs/{index}/region"), || "the stage's inputs".to_owned())?;
    }
    names.list(&stage.tasks, "/tasks")?;
    at.limit("/tasks", "tasks in all iterations", tasks(&stage.tasks))
}

/// Counts the tasks of all iterations.
fn tasks(entries: &[EntryDescriptor]) -> usize {
    let count = |entry: &EntryDescriptor| match entry {
        EntryDescriptor::Task(_) => 1,
        EntryDescriptor::Loop(repeated) => tasks(&repeated.tasks).saturating_mul(repeated.at_most as usize),
        EntryDescriptor::Choice(choice) => tasks(&choice.then).saturating_add(tasks(&choice.otherwise)),
    };
    entries.iter().map(count).fold(0, usize::saturating_add)
}

const BLOCKS: &str = "loops or choices";

/// Adds a name that must be unique.
fn add<'a>(
    at: &Diagnostics,
    known: &mut Vec<&'a str>,
    (what, name): (&'static str, &'a str),
    pointer: String,
) -> Result<(), DescriptorError> {
    if known.contains(&name) {
        return at.fail(pointer, Problem::DuplicateName { what, name: name.to_owned() });
    }
    known.push(name);
    Ok(())
}

impl<'a> Names<'a> {
    fn list(&mut self, entries: &'a [EntryDescriptor], pointer: &str) -> Result<(), DescriptorError> {
        self.at.limit(pointer, "tasks", entries.len())?;
        for (index, entry) in entries.iter().enumerate() {
            let pointer = format!("{pointer}/{index}");
            match entry {
                EntryDescriptor::Task(task) => {
                    add(self.at, &mut self.tasks, ("tasks", &task.task), format!("{pointer}/task"))?;
                    for (number, region) in task.writes.iter().enumerate() {
                        let writer = || format!("task \"{}\"", task.task);
                        self.region(region, format!("{pointer}/writes/{number}"), writer)?;
                    }
                }
                EntryDescriptor::Loop(repeated) => self.repeated(repeated, &pointer)?,
                EntryDescriptor::Choice(choice) => self.choice(choice, &pointer)?,
            }
        }
        Ok(())
    }

    fn repeated(&mut self, repeated: &'a LoopDescriptor, pointer: &str) -> Result<(), DescriptorError> {
        add(self.at, &mut self.blocks, (BLOCKS, &repeated.name), format!("{pointer}/loop"))?;
        if !(1..=MAX_ITERATIONS).contains(&repeated.at_most) {
            let (found, most) = (repeated.at_most, MAX_ITERATIONS);
            let problem = Problem::Iterations { name: repeated.name.clone(), found, most };
            return self.at.fail(format!("{pointer}/at_most"), problem);
        }
        if repeated.tasks.is_empty() {
            return self.at.fail(format!("{pointer}/tasks"), Problem::Empty { what: "tasks" });
        }
        for (number, carry) in repeated.carries.iter().enumerate() {
            let writer = || format!("loop \"{}\"", repeated.name);
            self.region(&carry.region, format!("{pointer}/carries/{number}/region"), writer)?;
        }
        self.list(&repeated.tasks, &format!("{pointer}/tasks"))
    }

    fn choice(&mut self, choice: &'a ChoiceDescriptor, pointer: &str) -> Result<(), DescriptorError> {
        add(self.at, &mut self.blocks, (BLOCKS, &choice.name), format!("{pointer}/choice"))?;
        if choice.then.is_empty() && choice.otherwise.is_empty() {
            return self.at.fail(format!("{pointer}/then"), Problem::Empty { what: "tasks" });
        }
        if choice.gives.is_empty() {
            return self.at.fail(format!("{pointer}/gives"), Problem::Empty { what: "regions" });
        }
        self.list(&choice.then, &format!("{pointer}/then"))?;
        self.list(&choice.otherwise, &format!("{pointer}/else"))?;
        let (then, otherwise) = (exports(&choice.then, &[]), exports(&choice.otherwise, &[]));
        let mut sources: Vec<&str> = Vec::new();
        for (number, give) in choice.gives.iter().enumerate() {
            let place = |key: &str| format!("{pointer}/gives/{number}/{key}");
            let writer = || format!("choice \"{}\"", choice.name);
            self.region(&give.region, place("region"), writer)?;
            let (key, source) = match (then.find(&give.then), otherwise.find(&give.otherwise)) {
                (Some(_), _) => ("then", &give.then),
                (None, Some(_)) => ("else", &give.otherwise),
                (None, None) => {
                    let (region, choice) = (give.region.clone(), choice.name.clone());
                    return self.at.fail(place("region"), Problem::GivesOutside { region, choice });
                }
            };
            // A skipped writer can pass only one region for each of its outputs.
            if sources.contains(&source.as_str()) {
                return self.at.fail(place(key), Problem::GivenTwice { region: source.clone() });
            }
            sources.push(source);
        }
        Ok(())
    }

    fn region(
        &mut self,
        name: &'a str,
        pointer: String,
        writer: impl FnOnce() -> String,
    ) -> Result<(), DescriptorError> {
        if let Some((_, first)) = self.regions.iter().find(|(known, _)| *known == name) {
            let (region, first) = (name.to_owned(), first.clone());
            return self.at.fail(pointer, Problem::DuplicateWriter { region, first });
        }
        self.regions.push((name, writer()));
        Ok(())
    }
}
