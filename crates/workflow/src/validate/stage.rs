//! Checks one stage: its tasks, their operations, their parameters and the regions between them.

use super::Diagnostics;
use super::topological_order;
use super::unroll::{UnrolledCondition, UnrolledStage, UnrolledTask, unroll};
use crate::descriptor::{ParameterDescriptor, StageDescriptor};
use crate::error::{DescriptorError, Problem};
use crate::operation::{Operation, Port, Registry};
use crate::parameter::{self, Domain, Parameter};
use crate::value::{Value, ValueType};
use crate::workflow::{Condition, Guard};
use crate::workflow::{RegionDecl, Stage, StageOutput, Task, TaskInput};
use pleach_regions::ElementType;
use std::sync::Arc;

/// The parameters of a workflow so far, with the location of each definition.
#[derive(Default)]
pub(super) struct Parameters {
    list: Vec<(Parameter, String)>,
}

impl Parameters {
    pub(super) fn into_list(self) -> Vec<Parameter> {
        self.list.into_iter().map(|(parameter, _)| parameter).collect()
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|(parameter, _)| parameter.name == name)
    }
}

/// Maximum number of values of all parameters of a workflow together: 64 MB, for a few parameters with
/// [`Domain::MAX_LEVELS`].
const MAX_VALUES: usize = 4 * Domain::MAX_LEVELS;

/// A region of a stage: name, element type, and origin as a stage input or an output of a task (in listed order).
type Writer = (String, ElementType, TaskInput);

pub(super) fn check(
    at: &Diagnostics,
    descriptor: &StageDescriptor,
    registry: &Registry,
    parameters: &mut Parameters,
) -> Result<Stage, DescriptorError> {
    if descriptor.tasks.is_empty() {
        return at.fail("/tasks", Problem::Empty { what: "tasks" });
    }
    at.limit("/tasks", "tasks", descriptor.tasks.len())?;
    at.limit("/inputs", "inputs", descriptor.inputs.len())?;
    at.limit("/outputs", "outputs", descriptor.outputs.len())?;
    let unrolled = unroll(at, descriptor)?;
    let operations = operations(at, &unrolled.tasks, registry)?;
    let writers = writers(at, descriptor, &unrolled.tasks, &operations)?;
    let mut reads = reads(at, &unrolled.tasks, &operations, &writers)?;
    let mut guards = Vec::new();
    for (task, reads) in unrolled.tasks.iter().zip(&mut reads) {
        guards.push(guard(at, task, &writers, reads)?);
    }
    let order = task_order(at, &unrolled.tasks, &reads)?;
    let place = |task: usize| order.iter().position(|&t| t == task).unwrap_or(task);

    // Arguments index the parameters of the whole workflow. Tasks are visited in listed order, so that definitions
    // precede uses in the file.
    let mut arguments = Vec::new();
    for (task, operation) in unrolled.tasks.iter().zip(&operations) {
        arguments.push(task_arguments(at, task, operation.as_ref(), parameters)?);
    }
    let mut consumed: Vec<usize> = arguments.iter().flatten().copied().collect();
    consumed.sort_unstable();
    consumed.dedup();

    let tasks = order.iter().map(|&index| {
        let task = &unrolled.tasks[index].descriptor;
        let writes = task.writes.iter().zip(operations[index].outputs());
        let local = |parameter: &usize| consumed.binary_search(parameter).unwrap_or(0);
        Task {
            name: task.task.clone(),
            description: task.description.clone(),
            // With its digest, if it has one: plans, keys and caches distinguish it by that.
            operation: operations[index].name().to_owned(),
            version: task.version,
            arguments: arguments[index].iter().map(local).collect(),
            reads: reads[index].iter().map(|read| moved(*read, &place)).collect(),
            writes: writes.map(|(name, port)| region(name, port.element)).collect(),
            guard: guards[index].clone(),
        }
    });
    let tasks = tasks.collect();
    Ok(Stage {
        name: descriptor.stage.clone(),
        description: descriptor.description.clone(),
        inputs: descriptor.inputs.iter().map(Into::into).collect(),
        outputs: outputs(at, descriptor, &unrolled, &writers, &place)?,
        parameters: consumed,
        tasks,
        switch: None,
    })
}

fn region(name: &str, element: ElementType) -> RegionDecl {
    RegionDecl { region: name.to_owned(), element }
}

fn moved(read: TaskInput, place: &impl Fn(usize) -> usize) -> TaskInput {
    match read {
        TaskInput::Task { task, output } => TaskInput::Task { task: place(task), output },
        input @ TaskInput::StageInput(_) => input,
    }
}

fn operations<'a>(
    at: &Diagnostics,
    tasks: &[UnrolledTask],
    registry: &'a Registry,
) -> Result<Vec<&'a Arc<dyn Operation>>, DescriptorError> {
    let mut operations = Vec::new();
    for (index, UnrolledTask { pointer, descriptor: task, .. }) in tasks.iter().enumerate() {
        if tasks[..index].iter().any(|other| other.descriptor.task == task.task) {
            let name = task.task.clone();
            return at.fail(format!("{pointer}/task"), Problem::DuplicateName { what: "tasks", name });
        }
        let name = task.operation.clone();
        let Some(operation) = registry.get(&name, task.version) else {
            let known = registry.versions(&name);
            return if known.is_empty() {
                let known = registry.names();
                at.fail(format!("{pointer}/operation"), Problem::UnknownOperation { name, known })
            } else {
                let version = task.version;
                at.fail(format!("{pointer}/version"), Problem::UnknownVersion { name, version, known })
            };
        };
        let counts =
            [("reads", &task.reads, operation.inputs()), ("writes", &task.writes, operation.outputs())];
        for (verb, given, ports) in counts {
            if given.len() != ports.len() {
                let ports = ports.iter().map(|port| port.name).collect();
                let problem = Problem::PortCount { operation: name, verb, ports, found: given.len() };
                return at.fail(format!("{pointer}/{verb}"), problem);
            }
        }
        operations.push(operation);
    }
    Ok(operations)
}

fn writers(
    at: &Diagnostics,
    descriptor: &StageDescriptor,
    tasks: &[UnrolledTask],
    operations: &[&Arc<dyn Operation>],
) -> Result<Vec<Writer>, DescriptorError> {
    let mut writers: Vec<Writer> = Vec::new();
    let add = |writers: &mut Vec<Writer>, pointer: String, name: &str, element, read| {
        if let Some((_, _, first)) = writers.iter().find(|(known, ..)| known == name) {
            let first = match *first {
                TaskInput::StageInput(_) => "the stage's inputs".to_owned(),
                TaskInput::Task { task, .. } => format!("task \"{}\"", tasks[task].descriptor.task),
            };
            return at.fail(pointer, Problem::DuplicateWriter { region: name.to_owned(), first });
        }
        writers.push((name.to_owned(), element, read));
        Ok(())
    };
    for (index, input) in descriptor.inputs.iter().enumerate() {
        let pointer = format!("/inputs/{index}/region");
        add(&mut writers, pointer, input.name(), input.element, TaskInput::StageInput(index))?;
    }
    for (task, operation) in operations.iter().enumerate() {
        for (output, name) in tasks[task].descriptor.writes.iter().enumerate() {
            let pointer = format!("{}/writes/{output}", tasks[task].pointer);
            let element = operation.outputs()[output].element;
            add(&mut writers, pointer, name, element, TaskInput::Task { task, output })?;
        }
    }
    Ok(writers)
}

fn reads(
    at: &Diagnostics,
    tasks: &[UnrolledTask],
    operations: &[&Arc<dyn Operation>],
    writers: &[Writer],
) -> Result<Vec<Vec<TaskInput>>, DescriptorError> {
    let mut all = Vec::new();
    for (UnrolledTask { pointer, descriptor: task, .. }, operation) in tasks.iter().zip(operations) {
        let ports: &[Port] = operation.inputs();
        let mut reads = Vec::new();
        for (number, (name, port)) in task.reads.iter().zip(ports).enumerate() {
            let pointer = format!("{pointer}/reads/{number}");
            let Some((_, found, read)) = writers.iter().find(|(known, ..)| known == name) else {
                let known = writers.iter().map(|(name, ..)| name.clone()).collect();
                return at.fail(pointer, Problem::DanglingRead { region: name.clone(), known });
            };
            if !port.element.accepts(*found) {
                let reader = format!("input \"{}\" of operation \"{}\"", port.name, task.operation);
                let (region, found, wanted) = (name.clone(), *found, port.element);
                return at.fail(pointer, Problem::TypesDiffer { region, found, wanted, reader });
            }
            reads.push(*read);
        }
        all.push(reads);
    }
    Ok(all)
}

/// Returns the guard of a task, and adds the regions that it reads to the reads of the task.
fn guard(
    at: &Diagnostics,
    task: &UnrolledTask,
    writers: &[Writer],
    reads: &mut Vec<TaskInput>,
) -> Result<Option<Guard>, DescriptorError> {
    let operands = reads.len();
    let mut read = |name: &str, pointer: &str, wanted: ElementType, reader: &str| {
        let Some((_, found, read)) = writers.iter().find(|(known, ..)| known == name) else {
            let known = writers.iter().map(|(name, ..)| name.clone()).collect();
            return at.fail(pointer, Problem::DanglingRead { region: name.to_owned(), known });
        };
        if *found != wanted {
            let (region, found, reader) = (name.to_owned(), *found, reader.to_owned());
            return at.fail(pointer, Problem::TypesDiffer { region, found, wanted, reader });
        }
        let known = reads[operands..].iter().position(|known| known == read);
        Ok(operands
            + known.unwrap_or_else(|| {
                reads.push(*read);
                reads.len() - operands - 1
            }))
    };
    let mut conditions = Vec::with_capacity(task.conditions.len());
    for condition in &task.conditions {
        let UnrolledCondition { pointer, region, comparison, expected, passes } = condition;
        let value = read(region, pointer, ElementType::Scalar, "the condition")?;
        let mut passed = Vec::with_capacity(passes.len());
        for (output, pass) in task.descriptor.writes.iter().zip(passes) {
            passed.push(match pass {
                None => None,
                Some((name, pointer)) => {
                    // The output has been listed as a writer with the type of its port.
                    let own = writers.iter().find(|(known, ..)| known == output);
                    let wanted = own.map_or(ElementType::Scalar, |(_, element, _)| *element);
                    Some(read(name, pointer, wanted, &format!("region \"{output}\", which it replaces"))?)
                }
            });
        }
        let (comparison, expected, passes) = (*comparison, *expected, passed);
        conditions.push(Condition { value, comparison, expected, passes });
    }
    Ok((!conditions.is_empty()).then_some(Guard { operands, conditions }))
}

fn task_order(
    at: &Diagnostics,
    tasks: &[UnrolledTask],
    reads: &[Vec<TaskInput>],
) -> Result<Vec<usize>, DescriptorError> {
    let task_of = |read: &TaskInput| match *read {
        TaskInput::Task { task, .. } => Some(task),
        TaskInput::StageInput(_) => None,
    };
    let waits_for: Vec<Vec<usize>> =
        reads.iter().map(|reads| reads.iter().filter_map(task_of).collect()).collect();
    topological_order::order(&waits_for).or_else(|cycle| {
        let members = cycle.iter().chain(cycle.first());
        let members = members.map(|&task| tasks[task].descriptor.task.clone()).collect();
        at.fail(&tasks[cycle[0]].pointer, Problem::Cycle { what: "tasks", members })
    })
}

fn outputs(
    at: &Diagnostics,
    descriptor: &StageDescriptor,
    unrolled: &UnrolledStage,
    writers: &[Writer],
    place: &impl Fn(usize) -> usize,
) -> Result<Vec<StageOutput>, DescriptorError> {
    if descriptor.outputs.is_empty() {
        return at.fail("/outputs", Problem::Empty { what: "outputs" });
    }
    let mut outputs = Vec::new();
    for (index, output) in descriptor.outputs.iter().enumerate() {
        let pointer = format!("/outputs/{index}/region");
        let written = unrolled.region(&output.region);
        let writer = writers.iter().find_map(|(name, element, read)| match *read {
            TaskInput::Task { task, output: number } if *name == written => Some((*element, task, number)),
            _ => None,
        });
        let Some((found, task, number)) = writer else {
            return at.fail(pointer, Problem::UnwrittenOutput { region: output.region.clone() });
        };
        if found != output.element {
            let reader = format!("the outputs of stage \"{}\"", descriptor.stage);
            let (region, wanted) = (output.region.clone(), output.element);
            return at.fail(pointer, Problem::TypesDiffer { region, found, wanted, reader });
        }
        outputs.push(StageOutput {
            region: region(&output.region, output.element),
            task: place(task),
            output: number,
            durable: output.durable,
            tier: output.tier,
        });
    }
    Ok(outputs)
}

/// Returns the workflow parameter bound to each argument of the operation.
fn task_arguments(
    at: &Diagnostics,
    UnrolledTask { pointer: place, descriptor: task, .. }: &UnrolledTask,
    operation: &dyn Operation,
    parameters: &mut Parameters,
) -> Result<Vec<usize>, DescriptorError> {
    let mut bound: Vec<Option<usize>> = vec![None; operation.arguments().len()];
    for (number, written) in task.parameters.iter().enumerate() {
        let pointer = format!("{place}/parameters/{number}");
        let name = written.argument.as_ref().unwrap_or(&written.name);
        let Some(slot) = operation.arguments().iter().position(|argument| argument.name == *name) else {
            let known = operation.arguments().iter().map(|argument| argument.name).collect();
            let (operation, argument) = (task.operation.clone(), name.clone());
            return at.fail(pointer, Problem::UnknownArgument { operation, argument, known });
        };
        if bound[slot].is_some() {
            return at.fail(pointer, Problem::DuplicateArgument { argument: name.clone() });
        }
        let parameter = define(at, &pointer, written, parameters)?;
        let found = parameters.list[parameter].0.value_type;
        let wanted = operation.arguments()[slot].accepts.value_type();
        if found != wanted {
            let (parameter, operation) = (written.name.clone(), task.operation.clone());
            return at.fail(pointer, Problem::ParameterType { parameter, operation, found, wanted });
        }
        bound[slot] = Some(parameter);
    }
    let mut arguments = Vec::new();
    for (argument, parameter) in operation.arguments().iter().zip(bound) {
        let Some(parameter) = parameter else {
            let (operation, argument) = (task.operation.clone(), argument.name);
            let pointer = format!("{place}/parameters");
            return at.fail(pointer, Problem::MissingArgument { operation, argument });
        };
        arguments.push(parameter);
    }
    Ok(arguments)
}

/// Defines the parameters that no task reads, after all others. Samplers vary them, and no result depends on them.
pub(super) fn define_unread(
    at: &Diagnostics,
    unread: &[ParameterDescriptor],
    parameters: &mut Parameters,
) -> Result<(), DescriptorError> {
    at.limit("/unread", "unread parameters", unread.len())?;
    for (index, written) in unread.iter().enumerate() {
        let (pointer, parameter) = (format!("/unread/{index}"), written.name.clone());
        if let Some(known) = parameters.find(&written.name) {
            let first = parameters.list[known].1.clone();
            return at.fail(pointer, Problem::ReadParameter { parameter, first });
        }
        if written.argument.is_some() {
            return at.fail(format!("{pointer}/argument"), Problem::UnreadArgument { parameter });
        }
        define(at, &pointer, written, parameters)?;
    }
    Ok(())
}

/// Finds or defines a parameter. A definition has a type, a default and a domain. A use has only the name.
fn define(
    at: &Diagnostics,
    pointer: &str,
    written: &ParameterDescriptor,
    parameters: &mut Parameters,
) -> Result<usize, DescriptorError> {
    let name = || written.name.clone();
    let defines = written.value_type.is_some()
        || written.default.is_some()
        || written.range.is_some()
        || written.step.is_some()
        || written.values.is_some()
        || written.fixed.is_some();
    match (parameters.find(&written.name), defines) {
        (Some(known), false) => return Ok(known),
        (Some(known), true) => {
            let first = parameters.list[known].1.clone();
            return at.fail(pointer, Problem::RedefinedParameter { parameter: name(), first });
        }
        (None, _) => {}
    }
    if !defines {
        return at.fail(pointer, Problem::UndefinedParameter { parameter: name() });
    }
    let Some(value_type) = written.value_type else {
        return at.fail(pointer, Problem::IncompleteParameter { parameter: name(), missing: "type" });
    };
    if written.step.is_some() && written.range.is_none() {
        return at.fail(format!("{pointer}/step"), Problem::StepWithoutRange { parameter: name() });
    }
    let domain = match (&written.range, &written.values, written.fixed) {
        (Some(range), None, None) => {
            let Ok(range) = <[f64; 2]>::try_from(range.as_slice()) else {
                let problem = Problem::RangeLength { parameter: name(), found: range.len() };
                return at.fail(format!("{pointer}/range"), problem);
            };
            Domain::stepped(value_type, range, written.step)
        }
        (None, Some(values), None) => Domain::set(value_type, values).map_err(|error| ("values", error)),
        (None, None, Some(number)) => Domain::fixed(value_type, number).map_err(|error| ("fixed", error)),
        _ => return at.fail(pointer, Problem::DomainKind { parameter: name() }),
    };
    let domain = match domain {
        Ok(domain) => domain,
        Err((key, error)) => {
            return at.fail(format!("{pointer}/{key}"), Problem::Domain { parameter: name(), error });
        }
    };
    let held: usize = parameters.list.iter().map(|(parameter, _)| parameter.domain.values_held()).sum();
    if held + domain.values_held() > MAX_VALUES {
        return at.fail(pointer, Problem::TooManyValues { parameter: name(), most: MAX_VALUES });
    }
    let default = default_value(at, pointer, written, value_type)?;
    let place = format!("{}#{pointer}", at.file.display());
    let parameter = Parameter { name: name(), value_type, default, domain };
    parameters.list.push((parameter, place));
    Ok(parameters.list.len() - 1)
}

fn default_value(
    at: &Diagnostics,
    pointer: &str,
    written: &ParameterDescriptor,
    value_type: ValueType,
) -> Result<Value, DescriptorError> {
    // A fixed parameter has its value in the reference too. Every other parameter needs a default.
    let Some(number) = written.fixed.or(written.default) else {
        let parameter = written.name.clone();
        return at.fail(pointer, Problem::IncompleteParameter { parameter, missing: "default" });
    };
    match parameter::value_of(value_type, number) {
        Ok(value) => Ok(value),
        Err(error) => {
            let parameter = written.name.clone();
            at.fail(format!("{pointer}/default"), Problem::Domain { parameter, error })
        }
    }
}
