//! Messages of libtiff, by which OpenSlide reads most slides: kept for errors of ours, and away from stderr.
//!
//! libtiff has one handler for errors and one for warnings in a process, and prints to stderr by itself. OpenSlide links
//! it, so both setters are among the symbols that are loaded. Where they are not, messages stay as they are. A handler runs
//! on the thread that reads, so the last error of a thread belongs to what this thread has read last.

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

/// Longest message that is kept, bytes. libtiff's are below 200, and may quote a file.
const MAX_MESSAGE_BYTES: usize = 512;

thread_local! {
    /// The last error that libtiff reported on this thread.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Takes libtiff's messages from stderr, once for the process.
pub(crate) fn capture() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (name, handler) in [
            (c"TIFFSetErrorHandler", keep as Handler),
            // Warnings are of fields that readers pass over, many of them scanners' own: `tags` judges those that matter.
            (c"TIFFSetWarningHandler", ignore as Handler),
        ] {
            // SAFETY: the name is a C string; a null handle means all loaded symbols.
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

/// Takes the last error of this thread.
pub(crate) fn last_error() -> Option<String> {
    LAST.try_with(|last| last.take()).ok().flatten()
}

unsafe extern "C" fn ignore(_: *const c_char, _: *const c_char, _: *mut c_void) {}

unsafe extern "C" fn keep(_: *const c_char, format: *const c_char, arguments: *mut c_void) {
    if format.is_null() {
        return;
    }
    let mut text = [0; MAX_MESSAGE_BYTES];
    // SAFETY: the buffer has as many bytes, and format and arguments are libtiff's own pair, used once.
    let length = unsafe { vsnprintf(text.as_mut_ptr(), text.len(), format, arguments) };
    if length <= 0 {
        return;
    }
    // SAFETY: vsnprintf ends what it writes with a zero within the buffer.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
    // A thread that ends has nothing to report any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = Some(text));
}
