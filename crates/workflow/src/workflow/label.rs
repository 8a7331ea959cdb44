//! Labels of metrics, which keep equal metrics of several results apart.

/// Splits a metric such as `levelset: dice` into its label with the separator, and the metric itself. The label is empty
/// without a separator.
#[must_use]
pub fn split_label(metric: &str) -> (&str, &str) {
    const SEPARATOR: &str = ": ";
    let end = metric.find(SEPARATOR).map_or(0, |start| start + SEPARATOR.len());
    metric.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_ends_at_the_first_separator() {
        assert_eq!(split_label("levelset: dice"), ("levelset: ", "dice"));
        assert_eq!(split_label("dice"), ("", "dice"));
        assert_eq!(split_label("a:b"), ("", "a:b"));
    }
}
