//! Log of managers and workers on stdout: one line per event, as text or as JSON.
//!
//! Events come through [`tracing`] with their spans: study, bucket and task, with their numbers. `PLEACH_LOG` sets the
//! level; the default has the events that an operator needs. Buckets are logged at `debug` and tasks at `trace`, when
//! their spans close. [`rate_limit`] bounds the lines of each call site.
//!
//! Other commands print through `terminal`. An error that ends a process goes to stderr (`exit`).

mod error;
mod line;
mod rate_limit;

pub(crate) use error::LogError;

use clap::ValueEnum;
use line::{Fields, Line, SpanState};
use parking_lot::Mutex;
use pleach_study::Defect;
use rate_limit::LogRateLimiter;
use std::io::Write;
use std::time::{Instant, SystemTime};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, SpanRef};
use tracing_subscriber::util::SubscriberInitExt;

/// Environment variable that sets the log level.
const VARIABLE: &str = "PLEACH_LOG";

/// Prefix of the targets of pleach's own crates.
const OWN: &str = "pleach";

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line of text, with the time
    Text,
    /// A line of JSON
    Json,
}

/// Starts logging. Call it once, before any thread logs.
///
/// # Errors
/// [`LogError::Levels`] if `PLEACH_LOG` is neither a level nor a list of levels by crate.
pub(crate) fn start(format: LogFormat) -> Result<(), LogError> {
    let wanted = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let targets = targets(wanted.as_deref())?;
    let log = Log { format, started: Instant::now(), bounds: Mutex::default() };
    let installed = tracing_subscriber::registry().with(log.with_filter(targets)).try_init();
    Ok(installed.map_err(Defect::new)?)
}

/// Parses the levels. A single level applies to pleach only, because its dependencies log a lot.
fn targets(wanted: Option<&str>) -> Result<Targets, LogError> {
    let Some(text) = wanted else { return Ok(Targets::new().with_target(OWN, Level::INFO)) };
    if let Ok(level) = text.parse::<LevelFilter>() {
        return Ok(Targets::new().with_target(OWN, level));
    }
    text.parse().map_err(|_| LogError::Levels { value: text.to_owned() })
}

/// Layer that writes a line for each event and for each span that closes.
struct Log {
    format: LogFormat,
    started: Instant,
    bounds: Mutex<LogRateLimiter>,
}

impl Log {
    fn write<S>(&self, metadata: &'static Metadata<'static>, fields: Fields, span: Option<SpanRef<'_, S>>)
    where
        S: for<'a> LookupSpan<'a>,
    {
        let mut bounds = self.bounds.lock();
        let Some(suppressed) = bounds.may(metadata.callsite(), self.started.elapsed()) else { return };
        // Formatting and a slow reader of stdout must not hold up the threads whose lines are suppressed.
        drop(bounds);
        let mut spans = Vec::new();
        for span in span.into_iter().flat_map(|span| span.scope().from_root()) {
            let fields = span.extensions().get::<SpanState>().map(|state| state.fields.clone());
            spans.push((span.name(), fields.unwrap_or_default()));
        }
        let line = Line {
            time: SystemTime::now(),
            level: *metadata.level(),
            target: metadata.target(),
            fields,
            spans,
            suppressed,
        };
        let text = match self.format {
            LogFormat::Text => line.text(),
            LogFormat::Json => line.json(),
        };
        // A closed stdout does not stop the process.
        let _ = writeln!(std::io::stdout(), "{text}");
    }
}

impl<S> Layer<S> for Log
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(SpanState { fields, started: Instant::now() });
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(state) = span.extensions_mut().get_mut::<SpanState>()
        {
            values.record(&mut state.fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.write(event.metadata(), fields, context.event_span(event));
    }

    /// Logs spans below `info` when they close, with their duration. Events cover the spans that an operator needs.
    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id).filter(|span| *span.metadata().level() > Level::INFO) else {
            return;
        };
        let started = span.extensions().get::<SpanState>().map(|state| state.started);
        let Some(started) = started else { return };
        let fields = Fields::closed_span(span.name(), started.elapsed());
        self.write(span.metadata(), fields, Some(span));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::filter::LevelFilter as Filter;
    use tracing_subscriber::registry::Registry;

    fn hint(wanted: &str) -> Option<Filter> {
        let targets = targets(Some(wanted)).unwrap();
        Layer::<Registry>::max_level_hint(&targets)
    }

    #[test]
    fn a_level_is_for_pleach_itself() {
        let debug = targets(Some("debug")).unwrap();
        assert!(debug.would_enable("pleach_actors::manager", &Level::DEBUG));
        assert!(!debug.would_enable("quinn_proto", &Level::ERROR));
        let default = targets(None).unwrap();
        assert!(default.would_enable("pleach::command", &Level::INFO));
        assert!(!default.would_enable("pleach::command", &Level::DEBUG));
        assert_eq!((hint("off"), hint("trace")), (Some(Filter::OFF), Some(Filter::TRACE)));
    }

    #[test]
    fn levels_by_crate_are_taken_as_they_are() {
        let targets = targets(Some("pleach=warn,pleach_actors=trace,quinn=info")).unwrap();
        assert!(targets.would_enable("pleach_actors::stage", &Level::TRACE));
        assert!(targets.would_enable("quinn", &Level::INFO));
        assert!(!targets.would_enable("pleach::service", &Level::INFO));
    }

    #[test]
    fn invalid_log_level_error_lists_allowed_levels() {
        let error = targets(Some("pleach=loud")).unwrap_err();
        assert!(matches!(&error, LogError::Levels { value } if value == "pleach=loud"), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with("PLEACH_LOG=pleach=loud: off, error, warn, info,"), "{text}");
    }
}
