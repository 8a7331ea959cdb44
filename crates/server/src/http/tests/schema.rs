//! Checker for the schemas of `openapi.json`. It knows the part of JSON Schema that the document uses and rejects the
//! rest.

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Returns the target of a reference within the document, or the value itself.
pub(super) fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let Some(reference) = value.get("$ref") else { return value };
    let pointer = reference.as_str().unwrap().strip_prefix('#').expect("a reference within the document");
    document.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
}

/// Checks a value against a schema. The error gives the first mismatch. Fields that the schema does not have are
/// mismatches.
///
/// # Panics
/// Panics at an unknown keyword.
pub(super) fn check(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let schema = resolved(document, schema);
    let fits = |fits: bool, why: &str| if fits { Ok(()) } else { Err(format!("{at}: {why}: {value}")) };
    for (keyword, rule) in schema.as_object().expect("a schema") {
        match keyword.as_str() {
            "description" => {}
            "type" => {
                let types: Vec<&Value> = rule.as_array().map_or(vec![rule], |types| types.iter().collect());
                let is_any = types.iter().any(|one| is_of(value, one.as_str().unwrap()));
                fits(is_any, &format!("not of type {rule}"))?;
            }
            "enum" => fits(rule.as_array().unwrap().contains(value), "none of the values")?,
            "minimum" => fits(value.as_f64().is_none_or(|n| n >= rule.as_f64().unwrap()), "too small")?,
            "maximum" => fits(value.as_f64().is_none_or(|n| n <= rule.as_f64().unwrap()), "too large")?,
            "format" if rule == "date-time" => {
                let parses = |text| OffsetDateTime::parse(text, &Rfc3339).is_ok();
                fits(value.as_str().is_none_or(parses), "no time of RFC 3339")?;
            }
            "pattern" if rule == "^[0-9a-f]{64}$" => {
                let is_hex = |text: &str| {
                    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
                };
                fits(value.as_str().is_none_or(is_hex), "not of the pattern")?;
            }
            "minItems" => {
                let least = rule.as_u64().unwrap() as usize;
                fits(value.as_array().is_none_or(|items| items.len() >= least), "too few")?;
            }
            "maxItems" => {
                let most = rule.as_u64().unwrap() as usize;
                fits(value.as_array().is_none_or(|items| items.len() <= most), "too many")?;
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(document, rule, item, &format!("{at}[{index}]"))?;
                }
            }
            "required" => {
                let has = |name: &Value| value.get(name.as_str().unwrap()).is_some();
                fits(
                    value.as_object().is_none() || rule.as_array().unwrap().iter().all(has),
                    "lacks fields",
                )?;
            }
            "properties" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    let rule = rule.get(name).ok_or_else(|| format!("{at}.{name}: not in the schema"))?;
                    check(document, rule, inner, &format!("{at}.{name}"))?;
                }
            }
            keyword => panic!("{at}: the checker does not know {keyword}: {rule}"),
        }
    }
    Ok(())
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        name => panic!("the checker does not know the type {name}"),
    }
}

#[test]
fn schema_violation_names_field_and_rule() {
    let document: Value = serde_json::from_str(include_str!("../openapi.json")).unwrap();
    let schema = |name: &str| serde_json::json!({ "$ref": format!("#/components/schemas/{name}") });
    let good = serde_json::json!({ "type": "about:blank", "title": "t", "status": 404, "detail": "d" });
    let fit = |value: &Value| check(&document, &schema("Problem"), value, "problem");
    assert_eq!(fit(&good), Ok(()));
    for (field, value, expected) in [
        ("status", 200.into(), "problem.status: too small: 200"),
        ("status", 600.into(), "problem.status: too large: 600"),
        ("status", "404".into(), "problem.status: not of type \"integer\": \"404\""),
        ("more", 1.into(), "problem.more: not in the schema"),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert_eq!(fit(&bad), Err(expected.to_owned()));
    }
    let mut less = good.clone();
    less.as_object_mut().unwrap().remove("detail");
    assert!(fit(&less).unwrap_err().starts_with("problem: lacks fields"));
    let stored = serde_json::json!({ "digest": "0".repeat(63), "bytes": 1 });
    assert!(check(&document, &schema("Stored"), &stored, "s").unwrap_err().contains("not of the pattern"));
    let health = serde_json::json!({ "status": "fine" });
    assert!(check(&document, &schema("Health"), &health, "h").unwrap_err().contains("none of the values"));
}
