// Package suite is the benchmarks of ropeline beside what else a site could use: each has a question, servers that
// are measured in turn, and what has to come out.
//
// # How it measures
//
// One server runs at a time, with one core to itself; load and site have the other. All are measured once before any is
// measured again, so that what else the machine does meanwhile is spread over all of them, and ratios and
// differences are formed within such a round, and then their median. Processor time of the server for each request is the figure to
// go by: unlike the rate it does not depend on what the generator can do, and hardly on other programs.
//
// A server that is not on the machine is named below the table, with who would bring it; the others are measured.
//
// # What it is not
//
// It has no opinion about absolute figures: they are of one machine on one day.
//
// A run starts processes and ends them; two runs at a time would measure each other.
package suite
