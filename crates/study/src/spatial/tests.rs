//! Tests of queries across the tiles of a slide.

use super::*;
use pleach_regions::{DataRegion, Points, SpatialIndex};

/// Tiles of 100 px with a halo of 10 px of a slide of 200 × 100 px at half of its magnification.
fn places() -> Vec<TilePlace> {
    let calibration = Calibration { slide_px_a_px: 2.0, microns_a_slide_px: Some(0.25) };
    let place = |(name, core, window): (&str, [u32; 4], [u32; 4])| TilePlace {
        name: name.to_owned(),
        image: "s".to_owned(),
        slide: Some(SlideTile { magnification: None, core, window }),
        calibration,
    };
    let cut =
        [("s/0_0", [0, 0, 100, 100], [0, 0, 110, 100]), ("s/100_0", [100, 0, 100, 100], [90, 0, 110, 100])];
    cut.map(place).to_vec()
}

fn query(selection: Selection) -> ObjectQuery {
    let (stage, output) = ("spots".to_owned(), "spots".to_owned());
    ObjectQuery { stage, output, evaluation: 1, image: None, selection, count: 10, in_microns: false }
}

/// Answers a query over these points of the slide, each of which is in the regions of all tiles whose window has it.
fn answer(points: &[[f64; 2]], query: &ObjectQuery) -> LocatedObjects {
    let places = places();
    let (mut search, queries) = ObjectSearch::begin(&places, query, false).unwrap();
    for (tile, of_tile) in queries {
        let [left, top, width, height] = places[tile].slide.as_ref().unwrap().window.map(f64::from);
        let own = points.iter().map(|[x, y]| [x / 2.0 - left, y / 2.0 - top]);
        let own = own.filter(|[x, y]| (0.0..=width).contains(x) && (0.0..=height).contains(y));
        let region = DataRegion::Points(Points::new(2, own.flatten().collect()).unwrap());
        search.add(tile, SpatialIndex::new(&region).unwrap().find(&of_tile).unwrap(), region.bytes());
    }
    search.finish()
}

#[test]
fn object_in_two_halos_is_found_once_in_coordinates_of_the_slide() {
    // The second and the third are in both windows, the last one at the slide's end.
    let points = [[10.0, 20.0], [190.0, 40.0], [200.0, 40.0], [400.0, 200.0]];
    let all = answer(&points, &query(Selection::InBox { low: vec![0.0; 2], high: vec![400.0; 2] }));
    let found: Vec<(&str, &[f64])> =
        all.objects.iter().map(|object| (&*object.tile, &*object.centroid)).collect();
    let expected = points.iter().zip(["s/0_0", "s/0_0", "s/100_0", "s/100_0"]);
    assert_eq!(found, expected.map(|(point, tile)| (tile, &point[..])).collect::<Vec<_>>());
    assert_eq!((all.total, all.regions, all.missing.len()), (4, 2, 0));
    assert_eq!(all.objects[3].centroid_um, Some(vec![100.0, 50.0]));
    let near = answer(&points, &query(Selection::Nearest { at: vec![199.0, 40.0] }));
    let distances: Vec<f64> = near.objects.iter().take(2).filter_map(|object| object.distance).collect();
    assert_eq!((distances, near.objects[0].distance_um), (vec![1.0, 9.0], Some(0.25)));
    // The same point in micrometers.
    let selection = Selection::Nearest { at: vec![199.0 / 4.0, 10.0] };
    let in_microns = answer(&points, &ObjectQuery { in_microns: true, ..query(selection) });
    assert_eq!(in_microns, near);
    let one =
        answer(&points, &ObjectQuery { count: 1, ..query(Selection::Nearest { at: vec![199.0, 40.0] }) });
    assert_eq!((&one.objects[..], one.total), (&near.objects[..1], 4));
    let tile = Some("s/100_0".to_owned());
    let tile =
        answer(&points, &ObjectQuery { image: tile, ..query(Selection::Nearest { at: vec![0.0; 2] }) });
    assert_eq!((tile.total, tile.regions), (2, 1));
}

#[test]
fn query_without_an_answer_names_the_images() {
    let mut places = places();
    let selection = Selection::Nearest { at: vec![0.0; 2] };
    let refusal = |places: &[TilePlace], query: ObjectQuery, is_whole: bool| {
        ObjectSearch::begin(places, &query, is_whole).map(|_| ()).unwrap_err().to_string()
    };
    let of = |image: &str| ObjectQuery { image: Some(image.to_owned()), ..query(selection.clone()) };
    assert_eq!(refusal(&places, of("t"), false), "tile: \"t\" is not in the study; allowed: s");
    // A region of the whole slide has no tiles.
    assert!(ObjectSearch::begin(&places, &of("s"), true).is_ok_and(|(_, queries)| queries.len() == 1));
    assert!(ObjectSearch::begin(&places, &of("s/0_0"), true).is_err());
    places[1].image = "t".to_owned();
    let missing = "tile: missing, and the study has several images; allowed: s, t";
    assert_eq!(refusal(&places, query(selection.clone()), false), missing);
    places[0].calibration = Calibration::NONE;
    assert_eq!(
        refusal(&places, ObjectQuery { in_microns: true, ..of("s") }, false),
        "um: s does not state micrometers per pixel; coordinates in pixels are allowed"
    );
}

#[test]
fn selections_are_read_from_text() {
    let boxed = Selection::InBox { low: vec![1.0, -2.5], high: vec![3.0, 4.0] };
    assert_eq!(selection(Some("1,-2.5, 3,4"), None), Ok(boxed));
    assert_eq!(selection(None, Some("1,2,3")), Ok(Selection::Nearest { at: vec![1.0, 2.0, 3.0] }));
    let refusal = |within, nearest| selection(within, nearest).unwrap_err().to_string();
    assert_eq!(refusal(None, None), "box and nearest: exactly one of them is needed");
    assert_eq!(refusal(Some("1,2,3,4"), Some("1,2")), "box and nearest: exactly one of them is needed");
    assert_eq!(refusal(Some("1,2,3"), None), "box: \"1,2,3\" is not allowed; allowed: X0,Y0,X1,Y1");
    assert_eq!(refusal(None, Some("1,NaN")), "nearest: \"1,NaN\" is not allowed; allowed: X,Y");
}
