//! Temporary.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "temporary")]
use opencv::prelude::*;
use pleach_pathology::{registry, tile};
use pleach_regions::{DataRegion, ElementType, Raster};
use pleach_workflow::{Real, Value};
use std::time::Instant;
fn i(n: i64) -> Value {
    Value::Integer(n)
}
fn r(n: f64) -> Value {
    Value::Real(Real::try_from(n).unwrap())
}
fn main() {
    let t = tile::read_bgr(std::path::Path::new("/work/shared/data/tiles/CMU-1_x150_y800_2048.png")).unwrap();
    let t = t.raster(ElementType::Bgr8).unwrap();
    let (w, h) = (t.width_px() as usize, t.height_px() as usize);
    let mut big = vec![0u8; 3 * 4 * w * h];
    for y in 0..2 * h {
        for x in 0..2 * w {
            let (sy, sx) = (if y < h { y } else { 2 * h - 1 - y }, if x < w { x } else { 2 * w - 1 - x });
            let (d, s) = (3 * (y * 2 * w + x), 3 * (sy * w + sx));
            big[d..d + 3].copy_from_slice(&t.data()[s..s + 3]);
        }
    }
    let img = DataRegion::Bgr8(Raster::new(2 * w as u32, 2 * h as u32, 3, big.clone()).unwrap());
    let reg = registry();
    let runs = 5;
    let mut times: std::collections::BTreeMap<String, Vec<f64>> = Default::default();
    for k in 0..runs {
        let mut timed = |name: &str, ins: &[&DataRegion], args: &[Value]| {
            let op = reg.get(name, 1).unwrap();
            let s = Instant::now();
            let out = op.run(ins, args).unwrap();
            times.entry(name.into()).or_default().push(s.elapsed().as_secs_f64() * 1e3);
            out
        };
        timed("nuclei.normalize", &[&img], &[]);
        let a = timed("nuclei.background", &[&img], &[i(220), i(220), i(220), r(5.0), r(4.0)]);
        let b = timed("nuclei.reconstruct", &[&img], &[i(8)]);
        let c = timed("nuclei.candidates", &[&b[0], &b[1]], &[i(80), i(4)]);
        let d = timed("nuclei.candidate-area", &[&c[1]], &[i(11), i(1000)]);
        let e = timed("nuclei.nuclei", &[&c[0], &d[0], &a[0], &a[1]], &[i(45)]);
        let f = timed("nuclei.separate", &[&e[0], &img], &[i(30), i(8)]);
        let g = timed("nuclei.final-area", &[&f[0]], &[i(21), i(1000), i(4)]);
        timed("compare.masks", &[&g[0], &f[0]], &[]);
        if k == 0 {
            println!(
                "mask px {}",
                g[0].raster(ElementType::Mask).unwrap().data().iter().filter(|v| **v != 0).count()
            );
            println!(
                "peak {}",
                std::fs::read_to_string("/proc/self/status")
                    .unwrap()
                    .lines()
                    .find(|l| l.starts_with("VmHWM"))
                    .unwrap()
            );
        }
    }
    let src = Mat::new_rows_cols_with_bytes::<opencv::core::Vec3b>(2 * h as i32, 2 * w as i32, &big).unwrap();
    for _ in 0..3 {
        let mut dst = Mat::default();
        let s = Instant::now();
        opencv::imgproc::median_blur(&src, &mut dst, 7).unwrap();
        times.entry("yardstick".into()).or_default().push(s.elapsed().as_secs_f64() * 1e3);
        assert!(!dst.empty());
    }
    for (n, v) in &mut times {
        v.sort_by(f64::total_cmp);
        println!(
            "{n:24} {:8.1} ms  ({:.1} .. {:.1})  {:.2} ns/px",
            v[v.len() / 2],
            v[0],
            v[v.len() - 1],
            v[v.len() / 2] * 1e6 / (4 * w * h) as f64
        );
    }
}
