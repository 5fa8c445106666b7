// Package rate sends HTTP/1.1 requests to one address and measures how long the answers take, at so little
// cost that it can sit on one core beside the server that it measures. It knows nothing of visitors; for
// what a crowd is to a waiting room there is bench/load.
//
// # Two models
//
// In the open model (a rate is given) every request has a time at which it is due, fixed before the run and
// whatever the server does. Latency runs from that time to the last byte of the answer. Where all connections
// are busy, requests wait in line, and the wait counts. So a server that stands still for a fifth of a
// second shows it in every request that was due meanwhile, and what is known as coordinated omission cannot
// come about; nothing is corrected afterwards.
//
// In the closed model (rate 0) each connection sends when it has its answer. That finds the highest rate,
// and no latency that a visitor would see: a stall is seen by as many requests as there are connections. Its
// result says which model it is of.
//
// # Why not wrk
//
// wrk knows the closed model only: at which rate a server is asked is up to the server. To its --latency it
// adds requests afterwards that it takes to have been left out while the server stood still, by the mean time
// between two of a connection; so these are percentiles of a load that was not sent. Nor does it say how much
// of its figures is its own. Here the load is sent, the generator reports its share of the processor, how
// long it waited for one, and how late it was, and it costs less for a request.
//
// # What it promises
//
//   - No request of the schedule is left out: Result.Due is Result.Answered and errors by kind.
//   - Requests are not sent twice. What a client with retries would hide is counted.
//   - An answer counts when its last byte was read. What cannot be read as HTTP/1.1 is an error.
//   - How late the generator was is told apart from how long requests waited for a connection.
//   - Nothing is allocated per request, so that no collector runs in between.
//
// It does not see that an answer has come before it reads it: with a burst of answers, the last one's
// latency has the time in it that the others took. That, too, is small while its share of the processor is.
//
// # Why not a goroutine for each connection
//
// It runs on Linux, as one goroutine on a thread of its own around epoll; elsewhere [Run] returns an error. A goroutine
// for each connection takes about a third more processor time for a request, and Go's timers wake whoever sleeps for
// less than a millisecond half a millisecond late. Several runs may go on at once, each on its own core at best.
package rate
