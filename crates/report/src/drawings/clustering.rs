//! Figures of task clustering, each in its own file: gain of each method, imbalance of the levels before and after, timeline of
//! the workers, and the graph of the tasks with their jobs.
//!
//! The caller passes names and numbers. This module knows no clustering methods.

mod frame;
mod gains;
mod graph;
mod imbalance;
mod timeline;

pub use gains::GainChart;
pub use graph::{ClusteredGraph, GraphTask, MAX_GRAPH_TASKS};
pub use imbalance::{ImbalanceChart, LevelImbalance};
pub use timeline::{JobTimeline, TimelineJob};

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of elements of a name in a drawing, after checks that hold for every drawing.
    fn count(svg: &str, name: &str, class: &str) -> usize {
        let drawing = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
        assert_eq!(drawing.root_element().tag_name().name(), "svg");
        for forbidden in ["NaN", "inf\"", "inf "] {
            assert!(!svg.contains(forbidden), "{forbidden}\n{svg}");
        }
        let of_class = |node: &roxmltree::Node<'_, '_>| {
            node.has_tag_name(("http://www.w3.org/2000/svg", name))
                && node.attribute("class").is_some_and(|classes| classes.split(' ').any(|one| one == class))
        };
        drawing.descendants().filter(of_class).count()
    }

    #[test]
    fn gains_are_bars_to_both_sides() {
        let bars =
            [("no clustering".to_owned(), 0.0), ("hrb".to_owned(), 0.47), ("hc <&>".to_owned(), -0.25)];
        let svg = GainChart { workflow: "a <workflow>", bars: &bars }.svg();
        assert_eq!((count(&svg, "rect", "up"), count(&svg, "rect", "down")), (2, 1));
        assert!(
            svg.contains("hc &lt;&amp;&gt;") && svg.contains("Gain of each clustering of a &lt;workflow&gt;")
        );
        GainChart { workflow: "empty", bars: &[] }.svg();
    }

    #[test]
    fn each_level_has_a_bar_before_and_after() {
        let level = |tasks, hrv| LevelImbalance { tasks, metrics: [hrv, 0.1, 26.2, 0.3] };
        let before = [level(4, 0.3), level(347, 0.28), level(1, 0.0)];
        let chart = ImbalanceChart { workflow: "w", clustering: "hrb", before: &before, after: &before[..2] };
        let svg = chart.svg();
        assert_eq!((count(&svg, "rect", "before"), count(&svg, "rect", "after")), (12 + 1, 8 + 1));
        let many = vec![level(2, f64::MAX); 1000];
        let svg = ImbalanceChart { before: &many, after: &[], ..chart }.svg();
        assert!(svg.contains("levels beyond the first 60 are not shown"), "{svg}");
        ImbalanceChart { before: &[], after: &[], ..chart }.svg();
    }

    #[test]
    fn a_timeline_has_the_phases_of_each_job() {
        let job =
            |worker, started| TimelineJob { worker, started, phases: [60.0, 5.0, 1.0, 100.0], tasks: 3 };
        let jobs = [job(0, 0.0), job(1, 0.0), job(0, 166.0)];
        let timeline =
            JobTimeline { workflow: "w", clustering: "hrb", workers: 2, makespan: 332.0, jobs: &jobs };
        let svg = timeline.svg();
        for phase in ["queue", "transfer", "clustering", "run"] {
            // One more in the key.
            assert_eq!(count(&svg, "rect", phase), 3 + 1, "{phase}");
        }
        assert_eq!(count(&svg, "rect", "row"), 2 + 1);
        assert!(svg.contains("in minutes"));
        let svg = JobTimeline { workers: 1000, ..timeline }.svg();
        assert!(svg.contains("workers beyond the first 180 are not shown"), "{svg}");
        JobTimeline { workers: 1, makespan: 0.0, jobs: &[], ..timeline }.svg();
    }

    #[test]
    fn a_graph_has_a_node_for_each_task_and_a_color_for_each_job() {
        let task = |name: &str, level, job| GraphTask { name: name.to_owned(), level, job };
        let tasks = [task("a <x>", 0, 0), task("b", 1, 1), task("c", 1, 1), task("d", 2, 2)];
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3)];
        let graph = ClusteredGraph { workflow: "diamond", clustering: "hrb", tasks: &tasks, edges: &edges };
        let svg = graph.svg();
        assert_eq!((count(&svg, "line", "edge"), count(&svg, "rect", "node")), (4, 4));
        assert_eq!((count(&svg, "rect", "j0"), count(&svg, "rect", "single")), (2, 2));
        assert!(svg.contains("a &lt;x&gt;, job 1"), "{svg}");
        ClusteredGraph { tasks: &[], edges: &[], ..graph }.svg();
        let wide: Vec<GraphTask> = (0..MAX_GRAPH_TASKS).map(|job| task("t", 0, job)).collect();
        assert_eq!(
            count(&ClusteredGraph { tasks: &wide, edges: &[], ..graph }.svg(), "rect", "node"),
            MAX_GRAPH_TASKS
        );
    }
}
