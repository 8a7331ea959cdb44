//! Parts of manual pages that the grammar does not contain: exit statuses, environment variables, examples.
//!
//! Tests compare `docs/reference.md` with the table of exit statuses, and parse every example with the grammar.

/// Exit statuses of every command, which `exit` returns.
pub(crate) const EXIT_STATUSES: [(u8, &str); 7] = [
    (0, "Success."),
    (
        2,
        "The input or an argument is wrong. One line names the file, the field, the value and the allowed values.",
    ),
    (
        3,
        "Some runs failed, stored regions or files were corrupt, or a check found an error. Everything else is written.",
    ),
    (4, "The manager cannot be reached or refused the request, or the study failed there."),
    (5, "Interrupted by a signal. A study can be resumed."),
    (6, "No space left on the device. A study can be resumed."),
    (70, "Internal error of pleach."),
];

/// Environment variables without an equivalent option: an option that each command with the variable has, the variable,
/// and its meaning.
pub(super) const VARIABLES: [(&str, &str, &str); 2] = [
    ("timeout", "PLEACH_TOKEN", "Token of the manager, instead of a client's certificate or --token-file."),
    (
        "log_format",
        "PLEACH_LOG",
        "Log level: off, error, warn, info (the default), debug or trace, or a list as in pleach=info,pleach_actors=debug.",
    ),
];

/// Example: a command line, and its effect.
pub(crate) type Example = (&'static str, &'static str);

/// Examples of each command, by its words after `pleach`. Those of `pleach` itself come first.
pub(crate) const EXAMPLES: [(&str, &[Example]); 50] = [
    (
        "",
        &[
            ("pleach tissue --out tiles", "Make 4 tiles of synthetic tissue to try pleach on."),
            ("pleach plan study.toml", "Show the planned execution and reuse of a study."),
            ("pleach run study.toml --out results", "Run the study. Open results/report.html afterwards."),
        ],
    ),
    (
        "run",
        &[
            ("pleach run study.toml --out results", "Run a study and write its results to a folder."),
            ("pleach run study.toml --out results --resume", "Continue it after Ctrl-C or a crash."),
            (
                "pleach run study.toml --workers 4 --memory 8GB --cache cache",
                "Limit threads and memory, and reuse results of earlier studies.",
            ),
            (
                "pleach run study.toml --accelerators emulate:2x --schedule heft",
                "Try a schedule policy without a GPU, on an emulated device.",
            ),
        ],
    ),
    (
        "plan",
        &[
            ("pleach plan study.toml --strategy all --reuse all", "Compare all strategies and reuse scopes."),
            (
                "pleach plan study.toml --plot makespan.svg",
                "Draw the predicted makespan over 1 to 256 workers.",
            ),
            ("pleach plan study.toml --overhead 60", "Plan for buckets that wait in a queue for 60 s each."),
        ],
    ),
    (
        "explain",
        &[
            (
                "pleach explain results --evaluation 12",
                "Show the worker of each task of evaluation 12, or the source of its reused result.",
            ),
            ("pleach explain 7 --evaluation 12 --json", "The same for study 7 of a manager, as JSON."),
            ("pleach explain study.toml --evaluation 12", "Predict it from a study file."),
        ],
    ),
    (
        "sample",
        &[(
            "pleach sample problem.toml --method moat --trajectories 20 --out samples.csv",
            "Draw parameter sets for an external model.",
        )],
    ),
    (
        "analyze",
        &[(
            "pleach analyze problem.toml --samples samples.csv --responses out.csv --plot figures",
            "Compute and draw the sensitivity indices of a model's responses.",
        )],
    ),
    (
        "classify",
        &[(
            "pleach classify study.toml --results results --labels labels.csv --out classes",
            "Classify slides by the features of a study, and rank the parameters that change their labels.",
        )],
    ),
    ("workflow check", &[("pleach workflow check mine.json", "Check a workflow and its references.")]),
    (
        "workflow show",
        &[
            ("pleach workflow show nuclei", "List tasks and parameters of the built-in workflow."),
            ("pleach workflow show nuclei --cwl > nuclei.cwl", "Write one run of it as a tool for CWL."),
        ],
    ),
    (
        "workflow new",
        &[
            ("pleach workflow new my-workflow", "Begin a workflow of built-in operations."),
            ("pleach workflow new my-pipeline --python", "Begin a pipeline in Python."),
        ],
    ),
    (
        "workflow import",
        &[
            (
                "pleach workflow import seg.t2flow --map map.json --out seg",
                "Convert a Taverna workflow, with the operations that a map gives its calls.",
            ),
            ("pleach workflow import model.in --out study.toml", "Convert a Dakota input to a study file."),
        ],
    ),
    (
        "workflow stub",
        &[("pleach workflow stub stage.json --rust --out src", "Begin the operations of a stage in Rust.")],
    ),
    ("init", &[("pleach init slides", "Write a study file for the images of a folder.")]),
    (
        "schema",
        &[("pleach schema > study.schema.json", "Write the schema that #:schema of a study file names.")],
    ),
    (
        "instrument",
        &[
            ("pleach instrument segment.py", "Propose cuts of the function in a script, and print the diff."),
            (
                "pleach instrument segment.py --tile tile.png --out pipeline",
                "Run the function on a tile, compare the tasks with it, and write the folder of a study.",
            ),
        ],
    ),
    (
        "export",
        &[
            (
                "pleach export study.toml --evaluation best --results results --as geojson,csv --out best",
                "Write the best evaluation on the study's images: outlines for QuPath, and a table.",
            ),
            (
                "pleach export study.toml --as labels,ome-zarr --out defaults",
                "Write label images of the segmentation at the defaults.",
            ),
        ],
    ),
    (
        "apply",
        &[
            (
                "pleach apply study.toml slides --evaluation best --results results --as geojson --out cohort",
                "Segment all images and slides of a folder with the best parameters of a study.",
            ),
            (
                "pleach apply study.toml slides --set G1=60 --as parquet --out cohort --resume",
                "Continue an interrupted segmentation with a parameter set of yours.",
            ),
            (
                "pleach apply study.toml slides --as geojson --out cohort --manager https://HOST:7118 --certs certs/me --cache /shared/cache",
                "Segment on the workers of a cluster that have this task cache.",
            ),
        ],
    ),
    (
        "segment",
        &[(
            "pleach segment tile.png --out mask.png --set G1=60",
            "Segment a tile with one parameter changed.",
        )],
    ),
    ("region show", &[("pleach region show regions", "List the data regions of a template.")]),
    (
        "region export",
        &[("pleach region export mask.region --out nuclei.geojson", "Write a mask as polygons for QuPath.")],
    ),
    ("certs init", &[("pleach certs init --dir ca", "Create the certificate authority of a new cluster.")]),
    (
        "certs issue",
        &[
            (
                "pleach certs issue --dir ca --name manager --role manager",
                "Create the manager's certificate.",
            ),
            ("pleach certs issue --dir ca --name me --role client", "Create your client certificate."),
        ],
    ),
    (
        "certs token",
        &[("pleach certs token --dir ca --ttl 1h", "Print a token for workers that join within 1 hour.")],
    ),
    (
        "manager",
        &[("pleach manager --state state --certs ca/manager", "Run a manager that workers may join.")],
    ),
    (
        "worker",
        &[
            (
                "pleach worker --manager 10.0.0.1:7117 --certs certs --token token --name node-1",
                "Run a worker. At its first start, it exchanges the token in a file for a certificate.",
            ),
            (
                "pleach worker --manager 10.0.0.1:7117 --certs certs --memory 8GB --ssd /tmp/pleach --until 90m",
                "Run a worker that spills to a local disk and leaves within 90 minutes.",
            ),
            (
                "pleach worker --manager 10.0.0.1:7117 --certs certs --accelerators 2 --device-memory 16GiB",
                "Run a worker with two accelerators, each with at most 16 GiB of buffers.",
            ),
        ],
    ),
    (
        "submit",
        &[
            ("pleach submit study.toml --out results", "Submit a study, wait for it and fetch its results."),
            ("pleach submit study.toml --deadline 2h", "Submit a study with a deadline in 2 hours."),
        ],
    ),
    (
        "status",
        &[
            ("pleach status", "List studies and workers."),
            ("pleach status 3 --json", "Print study 3 as JSON."),
        ],
    ),
    ("watch", &[("pleach watch", "Follow all open studies.")]),
    ("results", &[("pleach results 3 --out results", "Fetch the results of study 3.")]),
    ("cancel", &[("pleach cancel 3", "Cancel study 3.")]),
    ("forget", &[("pleach forget 3 4", "Remove the ended studies 3 and 4 and their results.")]),
    (
        "query",
        &[
            (
                "pleach query 3 --stage spots --output spots --evaluation 1 --box 0,0,500,500",
                "Find the spots of evaluation 1 of study 3 in a box.",
            ),
            (
                "pleach query study.toml --cache cache --stage spots --output spots --evaluation 0 --nearest 40,60 --count 3",
                "Find the 3 spots nearest to a point, in a task cache.",
            ),
        ],
    ),
    (
        "doctor",
        &[
            ("pleach doctor", "Check libraries, Python, limits, ports and clock of this machine."),
            ("pleach doctor --ssd /tmp/pleach --certs certs", "Check a worker's disk and certificate, too."),
            (
                "pleach doctor --manager https://HOST:7118 --certs certs/me",
                "Check that a manager accepts a certificate, and compare the clocks.",
            ),
            ("pleach doctor --state state", "Check every file of a manager's state directory, too."),
        ],
    ),
    (
        "upgrade-check",
        &[(
            "pleach upgrade-check state cache results",
            "Check before an upgrade whether the new version reads these folders.",
        )],
    ),
    (
        "pools",
        &[
            (
                "pleach pools --pools pools.toml --state state",
                "List the workers that the manager has started.",
            ),
            (
                "pleach pools --pools pools.toml --state state --reap",
                "Stop workers that the manager's journal lacks.",
            ),
        ],
    ),
    ("drain", &[("pleach drain node-1", "Drain worker node-1.")]),
    (
        "simulate",
        &[(
            "pleach simulate burst.toml --out pictures",
            "Simulate the policies of a burst file, and draw them.",
        )],
    ),
    (
        "replay",
        &[(
            "pleach replay run.log --max-events 500",
            "Show the state of a simulated cluster after 500 events.",
        )],
    ),
    (
        "cluster",
        &[
            (
                "pleach cluster workflow.dax --method all",
                "Compare all clustering methods on a workflow, by simulation.",
            ),
            (
                "pleach cluster workflow.dax --method best --workers 50 --queue 120 --plot figures",
                "Choose a method for 50 workers behind a queue of 120 s, and draw the execution.",
            ),
            (
                "pleach cluster workflow.dax --method hrb --vertical prior --out jobs.json",
                "Join chains, balance the run times of each level, and write the jobs.",
            ),
            (
                "pleach cluster workflow.dax --study execution.toml --results results",
                "Find the parameters of the execution that matter, such as queue and workers.",
            ),
        ],
    ),
    (
        "cluster generate",
        &[(
            "pleach cluster generate ligo --tasks 800 --seed 1 --out ligo.dax",
            "Generate a workflow with the shape of LIGO's.",
        )],
    ),
    (
        "cache search",
        &[(
            "pleach cache search cache --operation nuclei.candidates --parameter G1=80",
            "List the results of an operation with a value.",
        )],
    ),
    ("cache stats", &[("pleach cache stats cache", "Show the size of a cache, and of each user's results.")]),
    ("storage bench", &[("pleach storage bench --ssd /tmp/pleach", "Measure a tier on a local disk.")]),
    (
        "storage ls",
        &[("pleach storage ls --lustre /scratch/pleach --json", "List the regions of a shared tier.")],
    ),
    ("storage verify", &[("pleach storage verify --ssd /tmp/pleach", "Check the regions of a tier.")]),
    (
        "storage gc",
        &[(
            "pleach storage gc --lustre /scratch/pleach --older-than 7d --dry-run",
            "Count the regions that are older than 7 days.",
        )],
    ),
    ("demo", &[("pleach demo", "Study nuclear segmentation on generated tissue, in the folder demo.")]),
    (
        "tissue",
        &[
            ("pleach tissue --out tiles --count 4 --size 1024", "Make 4 tiles of 1024 x 1024 px."),
            (
                "pleach tissue --volume 192x144x32x6 --out spots.ome.zarr",
                "Make a z-stack of spots over time.",
            ),
            ("pleach tissue --slide 20000x20000 --out slide.tif", "Make a slide of 20,000 x 20,000 px."),
        ],
    ),
    (
        "completions",
        &[(
            "pleach completions bash > ~/.local/share/bash-completion/completions/pleach",
            "Install completions for bash.",
        )],
    ),
    ("man", &[("pleach man --out ~/.local/share/man/man1", "Install these pages for your user.")]),
];

/// Returns the examples of a command, or of the members of a command group.
pub(crate) fn examples(command: &str) -> Vec<Example> {
    let own = EXAMPLES.iter().filter(|(name, _)| *name == command);
    let members = EXAMPLES.iter().filter(|(name, _)| {
        let rest = name.strip_prefix(command).unwrap_or_default();
        !command.is_empty() && rest.starts_with(' ')
    });
    own.chain(members).flat_map(|(_, examples)| examples.iter().copied()).collect()
}

/// Returns the variables that a command reads, with their meanings.
pub(crate) fn variables(command: &clap::Command) -> Vec<(String, String)> {
    let of_argument = |argument: &clap::Arg| {
        let variable = argument.get_env()?.to_str()?.to_owned();
        let help = argument.get_help()?.to_string();
        Some((variable, format!("Default of --{}: {help}.", argument.get_long()?)))
    };
    let mut all: Vec<(String, String)> = command.get_arguments().filter_map(of_argument).collect();
    let has = |option: &str| command.get_arguments().any(|argument| argument.get_id() == option);
    let others = VARIABLES.iter().filter(|(option, ..)| has(option));
    all.extend(others.map(|(_, variable, meaning)| ((*variable).to_owned(), (*meaning).to_owned())));
    all
}
