"""Functions and methods that the analysis knows.

pleach runs the files of this folder as one program: `calls.py`, `facts.py`, `flow.py`, `cuts.py`, `trace.py`, `write.py`, `main.py`.
Standard library only, and numpy of the user's environment if a tile is given.
"""

# Methods that change their object, wherever they are called. In a statement of its own, any method may.
CHANGING_METHODS = set(
    "add append clear discard extend fill insert itemset partition pop popitem put remove resize reverse setdefault setfield "
    "setflags sort update write writelines shuffle".split()
)

# Functions that change their first argument.
CHANGING_FUNCTIONS = set(
    "numpy.copyto numpy.put numpy.place numpy.putmask numpy.fill_diagonal numpy.add.at numpy.subtract.at numpy.maximum.at "
    "numpy.minimum.at numpy.multiply.at numpy.put_along_axis heapq.heappush heapq.heappop heapq.heapify setattr delattr next "
    "cv2.drawContours cv2.circle cv2.line cv2.rectangle cv2.polylines cv2.fillPoly cv2.floodFill cv2.ellipse cv2.putText".split()
)

# Keyword arguments that name an output.
OUTPUT_KEYWORDS = ("out", "output")

# Functions and methods whose result may share memory with an argument or the object.
SHARING = set(
    "asarray asanyarray ascontiguousarray asfortranarray array require ravel reshape squeeze transpose swapaxes moveaxis rollaxis "
    "expand_dims flip fliplr flipud rot90 diagonal split hsplit vsplit array_split broadcast_to broadcast_arrays atleast_1d "
    "atleast_2d atleast_3d view astype nan_to_num asmatrix get values items iter reversed enumerate zip dict_values img_as_float "
    "img_as_float32 img_as_float64 img_as_ubyte img_as_uint img_as_int img_as_bool list tuple next pop setdefault real imag".split()
)

# Functions whose effect no later statement sees: they may run once for several runs.
REPORTS = ("print", "warnings.warn", "logging.", "logger.", "log.", "sys.stdout.", "sys.stderr.")

REFUSED_CALLS = {
    "exec": "runs code that the analysis cannot see",
    "eval": "runs code that the analysis cannot see",
    "compile": "makes code that the analysis cannot see",
    "locals": "reads names that the analysis cannot see",
    "globals": "reads names that the analysis cannot see",
    "__import__": "imports a module that the analysis cannot see; an import statement is allowed",
    "importlib.import_module": "imports a module that the analysis cannot see; an import statement is allowed",
    "input": "reads from the terminal",
    "os.urandom": "gives random numbers without a seed",
    "numpy.seterr": "changes state that other tasks lack; `with np.errstate(…)` is allowed",
    "warnings.simplefilter": "changes state that other tasks lack; call it at the top of the file",
    "warnings.filterwarnings": "changes state that other tasks lack; call it at the top of the file",
    "os.chdir": "changes state that other tasks lack",
    "os.putenv": "changes state that other tasks lack",
}
CLOCKS = ("time.time", "time.perf_counter", "time.monotonic", "time.process_time", "datetime.", "uuid.", "secrets.")
GENERATORS = set("default_rng RandomState Random Generator PCG64 MT19937 Philox SFC64 SeedSequence".split())

# Weight from which statements count as work: one call of a library, or three calls of numpy, whose functions take a few
# passes over memory each.
WORK = 3

# Methods and types that cost a pass over memory, or less.
LIGHT_METHODS = set(
    "astype copy ravel reshape flatten squeeze transpose min max sum mean any all item tolist size shape clip round argmax argmin "
    "nonzero fill view items keys values get append extend format join split strip lower upper startswith endswith replace".split()
)
NUMPY_TYPES = set(
    "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool_ dtype intp finfo iinfo errstate".split()
)
