//! Scripts that are refused, each with its line and reason.

use super::Scripts;
use std::fs;

/// Bodies of `def f(tile, *, level=1.0):`, which begins in line 5, with the line and a part of the message.
const BODIES: [(&str, u32, &str); 28] = [
    ("exec('x = 1')\n    return tile.sum() * level", 6, "exec: runs code that the analysis cannot see"),
    ("return eval('tile.sum() * level')", 6, "eval: runs code"),
    ("return locals()['tile'].sum() * level", 6, "locals: reads names"),
    ("return vars()['tile'].sum() * level", 6, "vars: reads names"),
    ("return globals()['np'].sum(tile) * level", 6, "globals: reads names"),
    (
        "global STATE\n    STATE = level\n    return tile.sum()",
        6,
        "global STATE: state that other tasks lack",
    ),
    ("TABLE[0] = level\n    return tile.sum()", 6, "changes TABLE of the file"),
    ("TABLE.append(level)\n    return tile.sum()", 6, "changes TABLE of the file"),
    ("yield tile.sum() * level", 6, "yield; return a value"),
    ("import os.path as p\n    from os import *\n    return level", 7, "import * binds names"),
    (
        "x = np.random.rand()\n    return tile.sum() * x * level",
        6,
        "numpy.random.rand: random numbers without a seed",
    ),
    (
        "rng = np.random.default_rng()\n    return rng.normal() * level",
        6,
        "numpy.random.default_rng: random numbers",
    ),
    ("return random.random() * level", 6, "random.random: random numbers without a seed"),
    ("return drawn(tile) * level", 3, "numpy.random.normal: random numbers without a seed"),
    ("start = time.time()\n    return start * level", 6, "time.time: a clock"),
    ("np.seterr(all='ignore')\n    return tile.sum() / level", 6, "numpy.seterr: changes state"),
    (
        "warnings.simplefilter('ignore')\n    return tile.sum() / level",
        6,
        "warnings.simplefilter: changes state",
    ),
    ("def g():\n        nonlocal tile\n        tile = 0\n    g()\n    return level", 7, "nonlocal tile"),
    (
        "x = tile.copy()\n    def g():\n        x[0] = level\n    g()\n    return x.sum()",
        8,
        "an inner function changes x",
    ),
    ("class A:\n        pass\n    return level", 6, "a class within the function"),
    ("x = tile.sum() * level", 6, "f does not end with return and a value"),
    ("if level:\n        return tile.sum()", 6, "f does not end with return and a value"),
    ("return __import__('numpy').sum(tile) * level", 6, "__import__: imports a module"),
    ("async def g():\n        pass\n    return level", 6, "async; plain functions are allowed"),
    ("return (await tile) * level", 6, "await; plain functions are allowed"),
    ("input()\n    return tile.sum() * level", 6, "input: reads from the terminal"),
    ("x = = 1\n    return level", 6, "invalid syntax"),
    ("from . import other\n    return level", 6, "an import relative to a package"),
];

/// Whole files with the arguments of the command, and a part of the message.
const FILES: [(&str, &[&str], &str); 15] = [
    (
        "import numpy as np\nRNG = np.random.default_rng(3)\n\n\ndef f(tile, a=1):\n    return RNG.normal() + a\n",
        &[],
        "f.py, line 6: changes RNG of the file: state that other tasks lack",
    ),
    (
        "def f(tile, a=1):\n    import os\n    os.kill(os.getpid(), 11)\n    return {'a': a}\n",
        &["--tile", "tiles/tissue_01.png", "--out", "out"],
        "failed to analyze f.py: signal: 11 (SIGSEGV)",
    ),
    ("def f(tile):\n    return 1.0\n", &[], "f.py, line 1: f has no parameters with a number as default"),
    ("def f(tile, *, a):\n    return a\n", &[], "f.py, line 1: parameter a has no default"),
    (
        "def f(tile, mask, *, a=1):\n    return a\n",
        &[],
        "f.py, line 1: f has the inputs tile, mask; one is allowed",
    ),
    ("def f(*tiles, a=1):\n    return a\n", &["--function", "f"], "f.py, line 1: *tiles: parameters by name"),
    ("import functools\n@functools.cache\ndef f(tile, a=1):\n    return a\n", &[], "f has a decorator"),
    ("async def f(tile, a=1):\n    return a\n", &["--function", "f"], "f.py, line 1: async"),
    (
        "def f(tile, a=1):\n    return a\n",
        &["--function", "g"],
        "f.py: no function g; a function at the top of the file is allowed: f",
    ),
    (
        "def f(tile, a=1):\n    return a\n\n\ndef g(tile, a=1):\n    return a\n",
        &[],
        "functions that no other calls: f, g; choose one with --function",
    ),
    ("def f(tile, a=1):\n    return a\n", &["--constant", "b"], "--constant b: no such parameter of f"),
    ("def f(tile, a=1):\n    return a\n", &["--join", "b"], "--join b: no such task; allowed: result"),
    (
        "def f(tile, a=1):\n    return [a]\n",
        &["--tile", "tiles/tissue_01.png", "--out", "out"],
        "f returns list; a dict of numbers, a number, a mask or a label map is allowed",
    ),
    (
        "def f(tile, a=1):\n    return {'a': tile[a - 2000000].sum()}\n",
        &["--tile", "tiles/tissue_01.png", "--out", "out"],
        "f fails at its defaults: IndexError",
    ),
    (
        "N = [0]\n\n\ndef count(n=N):\n    n[0] += 1\n    return n[0]\n\n\ndef f(tile, a=1):\n    return {'a': count() + a}\n",
        &["--function", "f", "--tile", "tiles/tissue_01.png", "--out", "out"],
        "f gives different results for equal inputs",
    ),
];

#[test]
fn scripts_are_refused_with_line_and_reason() {
    let Some(scripts) = Scripts::new("scripts_are_refused_with_line_and_reason", "64") else { return };
    let head = "import random, time, warnings\nimport numpy as np\ndef drawn(x): return np.random.normal()\nTABLE = [0]\n";
    for (body, line, reason) in BODIES {
        let is_async = body.contains("await");
        let start = if is_async { "async def" } else { "def" };
        let script = format!("{head}{start} f(tile, *, level=1.0):\n    {body}\n");
        fs::write(scripts.path().join("f.py"), script).expect("written");
        let answer = scripts.instrument(&["f.py", "--function", "f"]);
        // An asynchronous function is refused as a whole.
        let (line, reason) =
            if is_async { (5, "async; plain functions are allowed") } else { (line, reason) };
        let start = format!("error: f.py, line {line}: ");
        assert!(
            answer.code == 2 && answer.stderr.starts_with(&start) && answer.stderr.contains(reason),
            "{body}: {answer:?}"
        );
        assert_eq!((answer.stdout.as_str(), answer.stderr.lines().count()), ("", 1), "{body}");
    }
}

#[test]
fn refused_files_and_arguments_write_nothing() {
    let Some(scripts) = Scripts::new("refused_files_and_arguments_write_nothing", "64") else { return };
    let listed = || {
        let mut names: Vec<_> = fs::read_dir(scripts.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        names
    };
    fs::write(scripts.path().join("f.py"), "").expect("written");
    let before = listed();
    for (script, arguments, reason) in FILES {
        fs::write(scripts.path().join("f.py"), script).expect("written");
        let answer = scripts.instrument(&[&["f.py"], arguments].concat());
        assert!(answer.code == 2 && answer.stderr.contains(reason), "{script}: {answer:?}");
        assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    }
    let refused = [
        (&["none.py"][..], "none.py: no such file; a Python file is allowed"),
        (&["segment.py", "--out", "cut"], "--tile <FILE>"),
        (
            &["segment.py", "--tile", "tiles/tissue_01.png", "--out", "tiles"],
            "--out tiles: exists; a new or empty folder",
        ),
        (&["segment.py", "--tile", "none.png"], "none.png"),
    ];
    for (arguments, reason) in refused {
        let answer = scripts.instrument(arguments);
        assert!(answer.code == 2 && answer.stderr.contains(reason), "{arguments:?}: {answer:?}");
    }
    assert_eq!(listed(), before);
}

/// Names that a value, a helper or an alias binds are seen through, and calls without a result are named.
#[test]
fn doubts_are_warnings_with_their_lines() {
    let Some(scripts) = Scripts::new("doubts_are_warnings_with_their_lines", "64") else { return };
    let script = "import numpy as np\n\n\ndef f(tile, *, level=1.0, unused=2):\n    gray = tile.mean(axis=2)\n    \
                  np.save('gray.npy', gray)\n    mask = gray > level\n    return {'area': float(mask.sum())}\n";
    fs::write(scripts.path().join("f.py"), script).expect("written");
    let shown = scripts.instrument(&["f.py"]).done();
    assert!(shown.contains("warning: line 6: a call without a result"), "{shown}");
    assert!(shown.contains("warning: parameter unused is not used; the study omits it"), "{shown}");
    assert!(shown.contains("f.py: f: 4 statements, 1 parameter, 2 tasks\n"), "{shown}");
}
