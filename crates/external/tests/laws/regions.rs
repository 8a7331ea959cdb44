//! Regions of all element types to Python and back, and the rules for outputs.

use crate::python::{Package, entry, has_ended, until};
use pleach_regions::{
    AnnotatedObjects, DataRegion, DenseArray, ElementType, LabelMap, NumberType, Points, Polygons,
    RaggedArray, Raster, Table, TypedValues,
};
use std::fmt::Write as _;

const NAN_WITH_PAYLOAD: u64 = 0x7FF8_0000_DEAD_BEEF;
const SIGNALING_NAN: u64 = 0xFFF0_0000_0000_0001;

fn doubles() -> Vec<f64> {
    let special = [f64::INFINITY, f64::NEG_INFINITY, f64::MIN, f64::MAX, f64::from_bits(1), -0.0, 0.1, 1.0];
    special.into_iter().chain([NAN_WITH_PAYLOAD, SIGNALING_NAN].map(f64::from_bits)).collect()
}

/// Returns 12 values of a number type, with the extreme ones.
fn extremes(number: NumberType) -> TypedValues {
    match number {
        NumberType::U8 => (0..12).map(|n| n * 23).collect::<Vec<u8>>().into(),
        NumberType::U16 => (0..12).map(|n| n * 5957).collect::<Vec<u16>>().into(),
        NumberType::I32 => {
            [i32::MIN, i32::MAX, -1, 0].into_iter().cycle().take(12).collect::<Vec<_>>().into()
        }
        NumberType::F32 => {
            let nan = [0x7FC0_BEEF, 0xFF80_0001].map(f32::from_bits);
            let special = [f32::INFINITY, f32::MIN, f32::MAX, f32::from_bits(1), -0.0, 0.1];
            nan.into_iter().chain(special).cycle().take(12).collect::<Vec<_>>().into()
        }
        NumberType::F64 => doubles().into_iter().cycle().take(12).collect::<Vec<_>>().into(),
    }
}

fn raster(channels: u8, value: impl Fn(u32) -> u8) -> Raster {
    Raster::new(5, 3, channels, (0..15 * u32::from(channels)).map(value).collect()).unwrap()
}

fn noise(place: u32) -> u8 {
    (place * 89 + 7) as u8
}

fn objects(columns: &[&str]) -> DataRegion {
    let mut objects = AnnotatedObjects::new(columns.to_vec()).unwrap();
    let numbers = &doubles()[..columns.len()];
    let square = [[-0.0, 0.0], [1e9, 0.0], [0.5, 7.25]];
    objects.push_polygon(&[&square[..], &square[..]], "Größe", numbers).unwrap();
    objects.push_box([-1.0, 2.0], [3.0, 4.0], "細胞", numbers).unwrap();
    objects.push_polygon::<[[f64; 2]; 3]>(&[], "Größe", numbers).unwrap();
    DataRegion::Objects(Box::new(objects))
}

fn arrays(number: NumberType) -> Vec<DataRegion> {
    // A third axis without channels is a volume, which the port declares.
    let shapes: [(&[u32], u16); 6] =
        [(&[12], 1), (&[4, 3], 1), (&[2, 3], 2), (&[1, 2, 3], 2), (&[12, 1], 1), (&[1, 1], 12)];
    let array = |(extents, channels)| DenseArray::new(extents, channels, extremes(number)).unwrap();
    shapes.map(|shape| DataRegion::Array(array(shape))).to_vec()
}

fn raggeds(number: NumberType) -> Vec<DataRegion> {
    let empty = match extremes(number) {
        TypedValues::U8(_) => Vec::<u8>::new().into(),
        TypedValues::U16(_) => Vec::<u16>::new().into(),
        TypedValues::I32(_) => Vec::<i32>::new().into(),
        TypedValues::F32(_) => Vec::<f32>::new().into(),
        TypedValues::F64(_) => TypedValues::from(Vec::<f64>::new()),
    };
    let ragged = |ends: &[u64], values| DataRegion::Ragged(RaggedArray::new(ends.to_vec(), values).unwrap());
    vec![ragged(&[], empty.clone()), ragged(&[0, 0], empty), ragged(&[0, 5, 5, 12], extremes(number))]
}

/// Returns regions of an element type: empty ones where the type has them, and extreme values.
fn examples(element: ElementType) -> Vec<DataRegion> {
    match element {
        ElementType::Bgr8 => {
            vec![DataRegion::Bgr8(raster(3, noise)), DataRegion::Bgr8(Raster::filled(1, 1, 3, 9).unwrap())]
        }
        ElementType::Gray8 => {
            vec![DataRegion::Gray8(raster(1, noise)), DataRegion::Gray8(Raster::filled(1, 1, 1, 0).unwrap())]
        }
        ElementType::Mask => {
            vec![DataRegion::Mask(raster(1, |place| if noise(place) > 99 { 255 } else { 0 }))]
        }
        ElementType::Labels => {
            vec![DataRegion::Labels(LabelMap::new(2, 3, vec![0, 1, u32::MAX, 1 << 31, 70_000, 5]).unwrap())]
        }
        ElementType::Table => {
            let names = ["Größe", "面積", "", "e\u{301}", "a", "b", "c", "d", "e", "nan"];
            let empty: [(&str, f64); 0] = [];
            vec![
                DataRegion::Table(Table::new(empty)),
                DataRegion::Table(Table::new(names.into_iter().zip(doubles()))),
            ]
        }
        ElementType::Points => {
            let finite = || vec![f64::MIN, f64::MAX, -0.0, f64::from_bits(1), 0.1, 7.0];
            let of = |axes, coordinates| DataRegion::Points(Points::new(axes, coordinates).unwrap());
            (1..=3).flat_map(|axes| [of(axes, Vec::new()), of(axes, finite())]).collect()
        }
        ElementType::Polygons => {
            let square = vec![[0.0, -0.0], [1.0, 1e-300], [1.5, 1e9]];
            let hole = vec![vec![square.clone(), square.clone()], Vec::new(), vec![square]];
            let none: Vec<Vec<Vec<[f64; 2]>>> = Vec::new();
            [none, hole].map(|all| DataRegion::Polygons(Box::new(Polygons::new(all).unwrap()))).to_vec()
        }
        ElementType::Objects => {
            let mut none = AnnotatedObjects::new(["Fläche"]).unwrap();
            let all = [DataRegion::Objects(Box::default()), DataRegion::Objects(Box::new(none.clone()))];
            none.push_box([0.0; 2], [1.0; 2], "", &[f64::from_bits(NAN_WITH_PAYLOAD)]).unwrap();
            all.into_iter()
                .chain([DataRegion::Objects(Box::new(none)), objects(&[]), objects(&["a", "面積"])])
                .collect()
        }
        ElementType::Scalar => doubles().into_iter().map(DataRegion::Scalar).collect(),
        _ => {
            let number = element.number().unwrap();
            if element == ElementType::array_of(number) { arrays(number) } else { raggeds(number) }
        }
    }
}

/// Asserts equality of the bits: a NaN equals itself, and -0.0 differs from 0.0.
fn assert_same(found: &DataRegion, wanted: &DataRegion) {
    assert_eq!(found.element(), wanted.element());
    assert_eq!(found.shape(), wanted.shape(), "{}", wanted.element());
    assert_eq!(found.content(), wanted.content(), "{} of {:?}", wanted.element(), wanted.shape());
}

/// Returns an operation of one input and one output of equal types.
fn unary(name: &str, function: &str, element: &str, more: &str) -> String {
    entry(
        name,
        &format!(
            "function = \"m:{function}\"\ninputs = [{{ name = \"input\", type = \"{element}\"{more} }}]\n\
             outputs = [{{ name = \"out\", type = \"{element}\"{more} }}]"
        ),
    )
}

const FORMS: &str = r#"
import numpy as np

def identity(region):
    return region

def arrays_of(region):
    if isinstance(region, np.ndarray):
        yield region
    elif isinstance(region, dict):
        yield from (value for value in region.values() if isinstance(value, np.ndarray))
    elif isinstance(region, tuple):
        yield from region

def changed(region, form):
    if isinstance(region, np.ndarray):
        return form(region)
    if isinstance(region, dict):
        return {name: changed(value, form) for name, value in region.items()}
    if isinstance(region, tuple):
        return tuple(changed(value, form) for value in region)
    return region

def strided(region):
    return changed(region, lambda array: np.repeat(array, 2, axis=0)[::2])

def fortran(region):
    return changed(region, np.asfortranarray)

def big(region):
    return changed(region, lambda array: array.astype(array.dtype.newbyteorder(">")))

def locked(region):
    for array in arrays_of(region):
        assert array.flags.aligned, array.dtype
        assert array.dtype.isnative, array.dtype
        if array.size:
            assert not array.flags.writeable
            try:
                array[...] = 0
            except ValueError:
                continue
            raise AssertionError("an input was written to")
    return region
"#;

#[test]
fn all_element_types_keep_their_bits() {
    let functions = ["identity", "strided", "fortran", "big", "locked"];
    let mut manifest = String::new();
    for element in ElementType::ALL {
        for function in functions {
            let name = format!("{function}_{}", element.name().replace('-', "_"));
            manifest.push_str(&unary(&name, function, element.name(), ""));
        }
    }
    let Some(package) = Package::new("all_element_types_keep_their_bits", &manifest, FORMS) else { return };
    for element in ElementType::ALL {
        for region in examples(element) {
            assert_eq!(region.element(), element);
            for function in functions {
                let name = format!("{function}_{}", element.name().replace('-', "_"));
                let found = package.run(&name, &[&region], &[]);
                let found = found.unwrap_or_else(|error| panic!("{name} of {region:?}: {error}"));
                assert_same(&found[0], &region);
            }
        }
    }
}

#[test]
fn volumes_and_rgb_are_converted_both_ways() {
    let module = r#"
import numpy as np
def volume(array):
    assert array.shape == (2, 3, 4), array.shape
    return array
def flat(array):
    assert array.shape == (3, 4), array.shape
    return array
def deep(array):
    assert array.shape == (2, 3, 2, 1) or array.shape == (1, 2, 3, 2), array.shape
    return array
def red(image):
    assert image.shape == (1, 2, 3)
    assert image[0, 0].tolist() == [3, 2, 1], image[0, 0]
    return image
def blue(image):
    assert image[0, 0].tolist() == [1, 2, 3]
    return image
"#;
    let zyx = r#", axes = "zyx""#;
    let manifest = unary("volume", "volume", "array-u16", zyx)
        + &unary("flat", "flat", "array-u8", zyx)
        + &unary("deep", "deep", "array-i32", zyx)
        + &unary("red", "red", "bgr8", r#", channels = "rgb""#)
        + &unary("blue", "blue", "bgr8", r#", channels = "bgr""#)
        + &entry(
            "mixed",
            "function = \"m:red\"\ninputs = [{ name = \"input\", type = \"bgr8\", channels = \"rgb\" }]\n\
             outputs = [{ name = \"out\", type = \"bgr8\" }]",
        );
    let Some(package) = Package::new("volumes_and_rgb_are_converted_both_ways", &manifest, module) else {
        return;
    };
    let volume = DenseArray::new(&[4, 3, 2], 1, (0..24).collect::<Vec<u16>>().into()).unwrap();
    let flat = DenseArray::new(&[4, 3], 1, (0..12).collect::<Vec<u8>>().into()).unwrap();
    let deep = DenseArray::new(&[3, 2, 1], 2, (0..12).collect::<Vec<i32>>().into()).unwrap();
    for (name, array) in [("volume", volume), ("flat", flat), ("deep", deep)] {
        let region = DataRegion::Array(array);
        assert_same(&package.run(name, &[&region], &[]).unwrap()[0], &region);
    }
    let image = |data: &[u8]| DataRegion::Bgr8(Raster::new(2, 1, 3, data.to_vec()).unwrap());
    let tile = image(&[1, 2, 3, 4, 5, 6]);
    assert_same(&package.run("red", &[&tile], &[]).unwrap()[0], &tile);
    assert_same(&package.run("blue", &[&tile], &[]).unwrap()[0], &tile);
    assert_same(&package.run("mixed", &[&tile], &[]).unwrap()[0], &image(&[3, 2, 1, 6, 5, 4]));
}

/// Returns an operation without inputs whose output `out` has this type.
fn source(function: &str, element: &str) -> String {
    entry(function, &format!("outputs = [{{ name = \"out\", type = \"{element}\" }}]"))
}

#[test]
fn close_types_are_converted() {
    let cases = [
        ("mask", "np.array([[True, False]])", DataRegion::Mask(Raster::new(2, 1, 1, vec![255, 0]).unwrap())),
        (
            "labels",
            "np.array([[0, 4294967295]], dtype='int64')",
            DataRegion::Labels(LabelMap::new(2, 1, vec![0, u32::MAX]).unwrap()),
        ),
        (
            "labels",
            "np.array([[0, 9]], dtype='>u2')",
            DataRegion::Labels(LabelMap::new(2, 1, vec![0, 9]).unwrap()),
        ),
        ("labels", "np.array([[False, True]])", DataRegion::Labels(LabelMap::new(2, 1, vec![0, 1]).unwrap())),
        (
            "ragged-u8",
            "(np.array([1, 2]), np.array([3, 4], 'u1'))",
            DataRegion::Ragged(RaggedArray::new(vec![1, 2], vec![3_u8, 4].into()).unwrap()),
        ),
        ("scalar", "3", DataRegion::Scalar(3.0)),
        ("scalar", "np.float32(0.5)", DataRegion::Scalar(0.5)),
        ("scalar", "np.array(2)", DataRegion::Scalar(2.0)),
        ("table", "{'n': np.int64(4), 'x': -0.0}", DataRegion::Table(Table::new([("n", 4.0), ("x", -0.0)]))),
    ];
    let (mut manifest, mut module) = (String::new(), String::from("import numpy as np\n"));
    for (index, (element, value, _)) in cases.iter().enumerate() {
        manifest.push_str(&source(&format!("f{index}"), element));
        writeln!(module, "def f{index}():\n    return {value}").unwrap();
    }
    let Some(package) = Package::new("close_types_are_converted", &manifest, &module) else { return };
    for (index, (_, value, wanted)) in cases.iter().enumerate() {
        let found = package.run(&format!("f{index}"), &[], &[]);
        assert_same(&found.unwrap_or_else(|error| panic!("{value}: {error}"))[0], wanted);
    }
}

#[test]
fn invalid_outputs_fail_with_port_and_rule() {
    let cases = [
        ("labels", "np.array([[-1, 5]])", "output out: values -1 to 5; 0 to 4294967295 is allowed"),
        (
            "labels",
            "np.array([[1 << 32]])",
            "output out: values 4294967296 to 4294967296; 0 to 4294967295 is allowed",
        ),
        ("labels", "np.array([[0.5]])", "output out: dtype float64; uint32 is allowed for labels"),
        ("array-f32", "np.zeros((2, 2))", "output out: dtype float64; float32 is allowed for array-f32"),
        ("array-f32", "np.float32(1)", "output out: float32; a numpy array is allowed"),
        ("array-f32", "np.zeros((0, 2), 'f4')", "output out: shape (0, 2); sides of at least 1 are allowed"),
        (
            "array-u8",
            "np.zeros((1, 1, 1, 1, 1), 'u1')",
            "output out: shape (1, 1, 1, 1, 1); 1 or 2 or 3 or 4 dimensions are allowed",
        ),
        ("gray8", "np.zeros((2, 2, 3), 'u1')", "output out: shape (2, 2, 3); 2 dimensions are allowed"),
        ("gray8", "np.zeros((2, 2))", "output out: dtype float64; uint8 is allowed for gray8"),
        ("bgr8", "np.zeros((2, 2, 4), 'u1')", "output out: shape (2, 2, 4); 3 channels are allowed"),
        ("bgr8", "[[[1, 2, 3]]]", "output out: list; a numpy array is allowed"),
        (
            "mask",
            "np.array([[0, 7]], 'u1')",
            "output out: a mask of other values; 0 and 255, or bool, are allowed",
        ),
        ("scalar", "'7'", "output out: the output is '7'; a number is allowed"),
        ("scalar", "None", "output out: the output is None; a number is allowed"),
        ("scalar", "1j", "output out: the output is 1j; a number is allowed"),
        ("scalar", "np.complex128(1j)", "output out: the output is"),
        ("scalar", "np.array('x')", "output out: the output is"),
        ("scalar", "10**400", "output out: the output is"),
        ("table", "[1]", "output out: list; a dict of name to number is allowed"),
        ("table", "{'a': 'b'}", "output out: a is 'b'; a number is allowed"),
        ("table", "{1: 2}", "output out: the name 1; texts are allowed"),
        ("points", "np.zeros((2, 2), 'f4')", "output out: dtype float32; float64 is allowed for points"),
        ("points", "np.array([[0, np.nan]])", "output out: a coordinate is not finite"),
        ("points", "np.zeros((2, 4))", "output out: shape (2, 4); 1 to 3 coordinates are allowed"),
        ("polygons", "7", "output out: int; a tuple (ends, ring_ends, positions) is allowed"),
        (
            "polygons",
            "([1], [3], np.zeros((3, 3)))",
            "output out: positions of shape (3, 3); 2 coordinates are allowed",
        ),
        (
            "polygons",
            "(np.array([1]), np.array([2]), np.zeros((3, 2)))",
            "output out: the last of ring_ends is 2; 3 is allowed",
        ),
        (
            "polygons",
            "(np.array([1]), np.array([3]), np.array([[0, 0], [0, np.inf], [0, 1]]))",
            "output out: a coordinate is not finite",
        ),
        ("ragged-u8", "np.zeros(2, 'u1')", "output out: ndarray; a tuple (ends, values) is allowed"),
        ("ragged-u8", "(np.array([2, 1]), np.zeros(1, 'u1'))", "output out: ends decrease"),
        ("ragged-u8", "(np.array([-1, 1]), np.zeros(1, 'u1'))", "output out: values -1 to 1"),
        (
            "ragged-u8",
            "(np.array([1]), np.zeros(2, 'u1'))",
            "output out: the last of ends is 1; 2 is allowed",
        ),
        ("objects", "[]", "output out: list; a dict with"),
        ("objects", "{'classes': []}", "output out: class_of is missing"),
        ("objects", "dict(GOOD, class_of=np.array([3]))", "output out: class 3; classes below 1 are allowed"),
        (
            "objects",
            "dict(GOOD, numbers=np.zeros((2, 1)))",
            "output out: numbers of shape (2, 1); (1, 1) is allowed",
        ),
        (
            "objects",
            "dict(GOOD, columns=['a', 'a'], numbers=np.zeros((1, 2)))",
            "output out: a name occurs twice",
        ),
    ];
    let mut manifest = entry("pid", "");
    let mut module = String::from("import numpy as np\n");
    module.push_str(
        "GOOD = dict(classes=['c'], class_of=np.array([0]), ends=np.array([1]), ring_ends=np.array([3]),\n    \
         positions=np.array([[0.0, 0], [1, 0], [1, 1]]), columns=['a'], numbers=np.zeros((1, 1)))\n",
    );
    for (index, (element, value, _)) in cases.iter().enumerate() {
        manifest.push_str(&source(&format!("f{index}"), element));
        writeln!(module, "def f{index}():\n    return {value}").unwrap();
    }
    manifest.push_str(&source("good", "objects"));
    module.push_str("def good():\n    return GOOD\n");
    let Some(package) = Package::new("invalid_outputs_fail_with_port_and_rule", &manifest, &module) else {
        return;
    };
    let first = package.number("pid").unwrap();
    let mut wrong = Vec::new();
    for (index, (element, value, wanted)) in cases.iter().enumerate() {
        let found = match package.run(&format!("f{index}"), &[], &[]) {
            Ok(regions) => format!("{regions:?}"),
            Err(error) => error.to_string(),
        };
        if !found.contains(wanted) || found.contains("invalid answer") {
            wrong.push(format!("{element} {value}: {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    package.run("good", &[], &[]).unwrap();
    assert_eq!(package.number("pid"), Ok(first), "a mistake of a function ends no process");
}

#[test]
fn number_of_outputs_is_that_of_the_manifest() {
    let pair = r#"outputs = [{ name = "a", type = "scalar" }, { name = "b", type = "scalar" }]"#;
    let manifest: String = ["two", "one", "three", "listed"].map(|function| entry(function, pair)).concat();
    let module = "def two():\n    return 1, 2\ndef listed():\n    return [3, 4]\ndef one():\n    return 1\n\
                  def three():\n    return 1, 2, 3\n";
    let Some(package) = Package::new("number_of_outputs_is_that_of_the_manifest", &manifest, module) else {
        return;
    };
    let pair = |a, b| vec![DataRegion::Scalar(a), DataRegion::Scalar(b)];
    assert_eq!(package.run("two", &[], &[]).unwrap(), pair(1.0, 2.0));
    assert_eq!(package.run("listed", &[], &[]).unwrap(), pair(3.0, 4.0));
    assert_eq!(package.failure("one"), "the function returned int; a tuple of 2 outputs is allowed");
    assert_eq!(package.failure("three"), "the function returned 3 values; a tuple of 2 outputs is allowed");
}

#[test]
fn pools_end_their_processes() {
    let Some(package) = Package::new("pools_end_their_processes", &entry("pid", ""), "") else { return };
    let process = package.number("pid").unwrap() as u32;
    assert!(!has_ended(process) && package.pool.resident_bytes() > 1_000_000);
    package.pool.clear();
    until(|| has_ended(process));
    assert_eq!(package.pool.resident_bytes(), 0);
}
