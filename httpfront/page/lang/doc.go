// Package lang has the words of the waiting page: in every language its texts,
// how it writes numbers, spans of time and clock times, and which of the
// languages suits a visitor's Accept-Language.
//
// A [Language] and everything reached from it is read-only once it is loaded,
// so all functions may be called from many goroutines at once. The first call of
// any function loads and checks all languages; after that only [All] and [Tags]
// allocate, and the Append methods where their buffer is too small. A process
// that wants to know at its start calls [Load] there: texts that break a rule are
// a mistake in the program, and panic in all other functions.
//
// What Text and the Append methods give holds none of the characters < > & " '
// and \ and no control characters, so it may stand as it is in HTML, in a quoted
// attribute and in a JSON string. Title texts that are handed in are the
// caller's affair.
//
// The facts about plural forms are those of golang.org/x/text/feature/plural;
// those about digits, separators and clock times are from the Unicode Common
// Locale Data Repository, version 48, because those in x/text/number are of
// version 32, write Arabic and Persian with European digits and group
// four-digit numbers where the language does not.
package lang
