// Package accesslog writes one line for each finished request, in the combined format that
// every reader of access logs knows, with three fields of ours behind it:
//
//	203.0.113.7 - - [01/Mar/2026:12:00:00 +0000] "GET /a?b HTTP/1.1" 200 512 "-" "Browser/1.0" "shop" "queued" 12.500
//
// These are the room, what became of the request, and how many seconds the visitor has
// waited so far; "-" where there is none. Times are UTC, and of the end of the request.
//
// Whatever a request says, a line is one line of printable ASCII, and a quoted text ends at
// its quote: quotes and backslashes are escaped with a backslash, and all bytes that are
// not printable ASCII are written as \xhh. Texts that are too long are cut.
//
// # Never in the way
//
// [Log.Write] puts the line into a buffer in memory and returns; it does not allocate, and
// waits for other lines only, never for the disk. [Log.Run] writes the buffer to the file.
// When the disk does not keep up and the buffer is full, lines are dropped and counted.
//
// # Rotation
//
// The file may be renamed or removed at any time: a new one is made within a second, or at
// once with [Log.Reopen]. No line is lost by that, and none is split between the two. The
// file must not be truncated in place by a program that copies it (logrotate's
// copytruncate), which loses what is written in between.
//
// An access log holds addresses of visitors and whatever is in the query of a URL. It is the
// operator's duty to keep it no longer than is allowed.
package accesslog
