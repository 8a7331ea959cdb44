//! Captures the messages of libtiff, which OpenSlide uses for most slides: keeps them for error messages, and off
//! stderr.
//!
//! A process has one libtiff handler for errors and one for warnings. The default handlers print to stderr. OpenSlide
//! links libtiff, so both setters are among the loaded symbols. Without these symbols, messages still go to stderr. A
//! handler runs on the reading thread, so the last error of a thread belongs to its last read.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Once;

/// A handler as libtiff declares it. `arguments` is a `va_list`, which is a pointer, or passed as one, on all platforms
/// with OpenSlide (x86-64 and AArch64 of Linux and macOS).
type Handler = unsafe extern "C" fn(module: *const c_char, format: *const c_char, arguments: *mut c_void);

type SetHandler = unsafe extern "C" fn(handler: Option<Handler>) -> Option<Handler>;

unsafe extern "C" {
    fn vsnprintf(text: *mut c_char, bytes: usize, format: *const c_char, arguments: *mut c_void) -> c_int;
}

/// Maximum length of a stored message, bytes. libtiff's messages are below 200 bytes, but may quote a file.
const MAX_MESSAGE_BYTES: usize = 512;

thread_local! {
    /// The last error that libtiff reported on this thread.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Redirects libtiff's messages from stderr, once per process.
pub(crate) fn capture() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (name, handler) in [
            (c"TIFFSetErrorHandler", keep as Handler),
            // Warnings concern fields that readers ignore, many of them scanners' own. `tags` checks the relevant
            // fields.
            (c"TIFFSetWarningHandler", ignore as Handler),
        ] {
            // SAFETY: the name is a C string. The handle `RTLD_DEFAULT` searches all loaded symbols.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            if found.is_null() {
                continue;
            }
            // SAFETY: libtiff 3.5 to 4.7 declare the function of this name with this signature.
            let set = unsafe { std::mem::transmute::<*mut c_void, SetHandler>(found) };
            // SAFETY: the handler lives as long as the process, and does not unwind.
            unsafe { set(Some(handler)) };
        }
    });
}

/// Returns the last error of this thread and clears it.
pub(crate) fn last_error() -> Option<String> {
    LAST.try_with(|last| last.take()).ok().flatten()
}

unsafe extern "C" fn ignore(_: *const c_char, _: *const c_char, _: *mut c_void) {}

unsafe extern "C" fn keep(_: *const c_char, format: *const c_char, arguments: *mut c_void) {
    if format.is_null() {
        return;
    }
    let mut text = [0; MAX_MESSAGE_BYTES];
    // SAFETY: the length is that of the buffer, and format and arguments are libtiff's own pair, used once.
    let length = unsafe { vsnprintf(text.as_mut_ptr(), text.len(), format, arguments) };
    if length <= 0 {
        return;
    }
    // SAFETY: vsnprintf terminates its output with a zero within the buffer.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
    // A terminating thread has no thread-local storage, and no further read to report.
    let _ = LAST.try_with(|last| *last.borrow_mut() = Some(text));
}
