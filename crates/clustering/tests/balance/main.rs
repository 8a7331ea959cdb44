//! Imbalance metrics and clustering methods: worked examples, published figures, references and laws.

#[path = "../../../../tests/support/data.rs"]
mod data;
mod examples;
mod figures;
mod large;
mod laws;
mod method_laws;
mod reference;
mod support;
mod workflowsim;
