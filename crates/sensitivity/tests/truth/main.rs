//! Exact indices of test functions: estimates agree within their intervals, and intervals have their nominal
//! coverage.

mod analytic;
mod coverage;
mod functions;
mod ranking;
