//! What is known exactly of test functions: indices agree within their intervals, and intervals hold as often as they say.

mod analytic;
mod coverage;
mod functions;
mod ranking;
